//! Plans for the tests, on what a job has when nothing is said.

use fathom_model::plan::{
    AccessPlan, ClonePlan, DepthPlan, EndPlan, EnginePlan, Fallocate, FilePlan, FileUsage, IoPlan,
    MeasurePlan, Mix, OnError, OpenSync, Pattern, Payload, SizeSpec, ThreadPlan, TimePlan,
};
use fathom_model::{JobPlan, Nanos, PerOp};

/// A job of 4 KiB blocks over the whole of the target called `target`, one clone.
pub fn job(name: &str, mix: Mix, random: bool, iodepth: u32) -> JobPlan {
    JobPlan {
        name: name.to_owned(),
        description: None,
        group: 0,
        phase: 0,
        group_reporting: false,
        engine: EnginePlan { name: "io_uring".to_owned(), options: Vec::new() },
        io: IoPlan {
            pattern: Pattern { mix, random },
            block_size: PerOp::splat(4096.into()),
            size: None,
            io_size: None,
            file_size: None,
            file_size_most: None,
            offset: SizeSpec::Bytes(0),
            offset_align: 0,
            offset_increment: SizeSpec::Bytes(0),
            random_map: true,
            access: AccessPlan::default(),
            serialize_overlap: false,
            loops: 1,
            fsync_every: 0,
            fdatasync_every: 0,
            end_fsync: false,
            open_sync: OpenSync::None,
            direct: false,
            invalidate: false,
            payload: Payload::Stamped,
            verify: None,
        },
        depth: DepthPlan::new(iodepth),
        time: TimePlan::default(),
        files: FilePlan {
            fallocate: Fallocate::Native,
            overwrite: false,
            create_only: false,
            allow_create: true,
            unlink: false,
            allow_mounted_write: false,
            usage: FileUsage::default(),
        },
        measure: MeasurePlan::default(),
        clones: vec![ClonePlan { paths: vec!["target".into()], seed: 7, cpus: Vec::new() }],
        threads: ThreadPlan::default(),
        end: EndPlan::default(),
        replay: None,
        exit_all: false,
        on_error: OnError::default(),
        thread_wording: false,
        options: Vec::new(),
    }
}

/// The same job, going on for `seconds`.
#[allow(dead_code, reason = "not every test binary runs by time")]
pub fn timed(mut job: JobPlan, seconds: u64) -> JobPlan {
    job.time.runtime = Some(Nanos::from_secs(seconds));
    job.time.time_based = true;
    job
}
