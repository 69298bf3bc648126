use fathom_model::PerOp;
use fathom_model::plan::{Fallocate, FilePlan, OnError, OpenSync, Payload, SizeSpec, ThinkTime};

use fathom_model::BlockSize;

use super::*;

const HOST: PlanningHost = PlanningHost { cpus: 4, entropy: 1 };

fn plan_of(pairs: &[(&str, &str)]) -> JobPlan {
    let section = Section::from_pairs("job", pairs, &[]).unwrap();
    resolve(&[section], &HOST).unwrap().jobs.remove(0)
}

#[test]
fn a_job_without_options_has_fios_defaults() {
    let plan = plan_of(&[]);
    assert_eq!(plan.name, "job");
    assert_eq!((plan.group, plan.phase), (0, 0));
    assert_eq!(plan.engine, EnginePlan { name: "psync".to_owned(), options: vec![] });
    assert_eq!(plan.io.pattern, Pattern { mix: Mix::Read, random: false });
    assert_eq!(plan.io.block_size, PerOp::splat(4096.into()));
    assert_eq!((plan.io.size, plan.io.io_size, plan.io.file_size), (None, None, None));
    assert_eq!((plan.io.offset, plan.io.offset_increment), (SizeSpec::Bytes(0), SizeSpec::Bytes(0)));
    assert!(plan.io.random_map && plan.io.invalidate && !plan.io.direct && !plan.io.end_fsync);
    assert_eq!((plan.io.loops, plan.io.fsync_every, plan.io.fdatasync_every), (1, 0, 0));
    assert_eq!((plan.io.open_sync, plan.io.payload), (OpenSync::None, Payload::Stamped));
    assert_eq!(plan.depth, DepthPlan::new(1));
    assert_eq!(plan.time, TimePlan::default());
    let files = FilePlan {
        fallocate: Fallocate::Native,
        overwrite: false,
        create_only: false,
        allow_create: true,
        unlink: false,
        allow_mounted_write: false,
        usage: Default::default(),
    };
    assert_eq!(plan.files, files);
    assert_eq!(plan.measure, MeasurePlan::default());
    assert_eq!(plan.clones.len(), 1);
    assert_eq!(plan.on_error, OnError::default());
    assert!(!plan.exit_all && !plan.thread_wording && !plan.group_reporting);
}

#[test]
fn operations_sizes_and_offsets_are_resolved() {
    let check = |pairs: &[(&str, &str)], holds: fn(&IoPlan) -> bool| {
        let plan = plan_of(pairs);
        assert!(holds(&plan.io), "{pairs:?}: {:?}", plan.io);
    };
    check(&[("rw", "randrw"), ("rwmixread", "75")], |io| {
        io.pattern.mix == Mix::ReadWrite { read_percent: 75 }
    });
    check(&[("rw", "rw"), ("rwmixwrite", "100")], |io| io.pattern.mix == Mix::ReadWrite { read_percent: 0 });
    check(&[("rw", "randread"), ("rwmixread", "75")], |io| io.pattern.mix == Mix::Read);
    check(&[("bs", ",16k")], |io| {
        io.block_size == PerOp { read: 4096, write: 16384, trim: 16384 }.map(BlockSize::from)
    });
    fn mix(shares: &[(u64, u8)]) -> BlockSize {
        BlockSize::of_shares(shares).unwrap()
    }
    check(&[("bssplit", "4k/60:8k/40"), ("bs", "1m")], |io| {
        io.block_size == PerOp::splat(mix(&[(4096, 60), (8192, 40)]))
    });
    check(&[("bs", "1m"), ("bssplit", ",4k/50:64k/")], |io| {
        io.block_size == PerOp { read: (1 << 20).into(), ..PerOp::splat(mix(&[(4096, 50), (65536, 50)])) }
    });
    check(&[("size", "0")], |io| io.size.is_none());
    check(&[("size", "50%"), ("io_size", "2g")], |io| {
        (io.size, io.io_size) == (Some(SizeSpec::Percent(50)), Some(SizeSpec::Bytes(2 << 30)))
    });
    check(&[("norandommap", "")], |io| !io.random_map);
    check(&[("loops", "0")], |io| io.loops == 1);
    check(&[("zero_buffers", ""), ("refill_buffers", "")], |io| io.payload == Payload::Zero);
    check(&[("refill_buffers", ""), ("scramble_buffers", "0")], |io| io.payload == Payload::Refill);
    check(&[("scramble_buffers", "0")], |io| io.payload == Payload::Fixed);
    check(&[("refill_buffers", "0")], |io| io.payload == Payload::Stamped);
}

#[test]
fn batches_are_limited_by_the_depth() {
    let check = |pairs: &[(&str, &str)], expected: (u32, u32, u32, u32, u32)| {
        let depth = plan_of(pairs).depth;
        let found = (
            depth.iodepth, depth.batch_submit, depth.batch_complete_min, depth.batch_complete_max, depth.low,
        );
        assert_eq!(found, expected, "{pairs:?}");
    };
    let random = ("rw", "randread");
    check(&[random, ("iodepth", "64")], (64, 8, 1, 64, 64));
    check(&[random, ("iodepth", "256")], (256, 8, 1, 256, 256));
    check(&[random, ("iodepth", "16")], (16, 2, 1, 16, 16));
    check(&[random, ("iodepth", "4")], (4, 1, 1, 4, 4));
    check(&[random, ("iodepth", "64"), ("bs", "16k")], (64, 2, 1, 64, 64));
    check(&[random, ("iodepth", "64"), ("bs", "1m")], (64, 1, 1, 64, 64));
    check(&[random, ("iodepth", "64"), ("iodepth_batch", "1")], (64, 1, 1, 64, 64));
    check(&[("iodepth", "64")], (64, 1, 1, 64, 64));
    check(&[("iodepth", "64"), ("iodepth_batch", "16"), ("iodepth_low", "32")], (64, 16, 1, 64, 32));
    check(&[("iodepth", "64"), ("iodepth_batch_complete", "32")], (64, 1, 32, 64, 64));
    check(&[("iodepth", "64"), ("iodepth_batch", "0"), ("iodepth_low", "0")], (64, 64, 1, 64, 64));
    check(&[("iodepth", "8"), ("iodepth_batch", "99"), ("iodepth_low", "99")], (8, 8, 1, 8, 8));
    check(&[("iodepth", "8"), ("iodepth_batch_complete", "99")], (8, 1, 8, 8, 8));
    check(&[("iodepth", "8"), ("iodepth_batch_complete_min", "0")], (8, 1, 0, 8, 8));
    let both = ("iodepth_batch_complete_min", "4");
    check(&[("iodepth", "8"), both, ("iodepth_batch_complete_max", "2")], (8, 1, 4, 4, 8));
    check(&[("iodepth", "8"), both, ("iodepth_batch_complete_max", "6")], (8, 1, 4, 6, 8));
    check(&[("iodepth", "8"), both, ("iodepth_batch_complete_max", "0")], (8, 1, 4, 4, 8));
    check(&[("iodepth_batch_complete_min", "0"), ("iodepth_batch_complete_max", "0")], (1, 1, 0, 1, 1));
}

#[test]
fn inline_batches_are_larger_unless_a_size_is_given() {
    let check = |pairs: &[(&str, &str)], expected: u32| {
        assert_eq!(plan_of(pairs).depth.batch_submit_inline, expected, "{pairs:?}");
    };
    check(&[("iodepth", "64")], 32);
    let buffered = [("ioengine", "libaio"), ("iodepth", "64")];
    check(&buffered, 2);
    check(&[buffered[0], buffered[1], ("iodepth_batch", "16")], 16);
    check(&[buffered[0], buffered[1], ("direct", "1")], 32);
    check(&[("iodepth", "256"), ("bs", "512")], 32);
    check(&[("iodepth", "16")], 8);
    check(&[("iodepth", "64"), ("bs", "16k")], 8);
    check(&[("iodepth", "64"), ("bs", "1m")], 1);
    check(&[], 1);
    check(&[("iodepth", "64"), ("iodepth_batch", "4")], 4);
    check(&[("iodepth", "64"), ("iodepth_batch_complete_min", "4")], 1);
    check(&[("iodepth", "64"), ("iodepth_batch_complete_max", "4")], 1);
}

#[test]
fn time_based_needs_a_runtime() {
    let time = |pairs| plan_of(pairs).time;
    assert!(!time(&[("time_based", "")]).time_based);
    assert!(!time(&[("time_based", ""), ("runtime", "0")]).time_based);
    let based = time(&[("time_based", ""), ("runtime", "30"), ("ramp_time", "2"), ("startdelay", "1-3")]);
    assert!(based.time_based);
    assert_eq!(based.runtime, Some(Nanos::from_secs(30)));
    assert_eq!(based.ramp, Nanos::from_secs(2));
    assert_eq!(based.start_delay, (Nanos::from_secs(1), Nanos::from_secs(3)));
    assert_eq!(time(&[("runtime", "0")]).runtime, None);
}

#[test]
fn recorded_latencies_and_percentiles() {
    let check = |pairs: &[(&str, &str)], expected: [bool; 7]| {
        let m = plan_of(pairs).measure;
        let found =
            [m.slat, m.clat, m.lat, m.bandwidth, m.slat_percentiles, m.clat_percentiles, m.lat_percentiles];
        assert_eq!(found, expected, "{pairs:?}");
    };
    check(&[], [true, true, true, true, false, true, false]);
    check(&[("gtod_reduce", "1")], [false; 7]);
    check(&[("gtod_reduce", "1"), ("disable_clat", "0")], [false, true, false, false, false, true, false]);
    check(&[("disable_clat", "1"), ("lat_percentiles", "1")], [true, false, true, true, false, false, true]);
    check(&[("disable_bw", "1"), ("slat_percentiles", "1")], [true, true, true, false, true, true, false]);
    assert_eq!(plan_of(&[("percentile_list", "99.9:50")]).measure.percentiles, [50.0, 99.9]);
}

#[test]
fn stonewall_and_new_group_start_groups_and_phases() {
    for (jobs, expected) in [
        (vec!["", "", ""], vec![(0, 0), (0, 0), (0, 0)]),
        (vec!["stonewall", "", "stonewall"], vec![(0, 0), (0, 0), (1, 1)]),
        (vec!["new_group", "new_group", ""], vec![(0, 0), (1, 0), (1, 0)]),
        (vec!["", "stonewall", "new_group", "stonewall"], vec![(0, 0), (1, 1), (2, 1), (3, 2)]),
    ] {
        let sections: Vec<Section> = jobs
            .iter()
            .map(|flag| {
                let pairs = [(*flag, "")];
                Section::from_pairs("job", if flag.is_empty() { &[] } else { &pairs }, &[]).unwrap()
            })
            .collect();
        let plan = resolve(&sections, &HOST).unwrap();
        let found: Vec<(u32, u32)> = plan.jobs.iter().map(|job| (job.group, job.phase)).collect();
        assert_eq!(found, expected, "{jobs:?}");
    }
}

#[test]
fn workers_are_bounded_and_have_different_seeds() {
    let section = |count: &str| Section::from_pairs("job", &[("numjobs", count)], &[]).unwrap();
    let error = resolve(&[section("4000"), section("97")], &HOST).unwrap_err().to_string();
    assert!(error.contains("maximum number of jobs (4096) reached"), "{error}");
    let plan = resolve(&[section("4000"), section("96")], &HOST).unwrap();
    let mut seeds: Vec<u64> = plan.jobs.iter().flat_map(|job| &job.clones).map(|clone| clone.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), 4096);
}

#[test]
fn options_are_stored_once_by_canonical_name() {
    let plan =
        plan_of(&[("timeout", "5"), ("runtime", "6"), ("thread", ""), ("filename", "a"), ("filename", "b")]);
    let options: Vec<(&str, &str)> =
        plan.options.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(options, [("runtime", "6"), ("thread", ""), ("filename", "a:b")]);
}

#[test]
fn the_remaining_options_are_copied_to_the_plan() {
    let plan = plan_of(&[
        ("name", "reported"),
        ("description", "text"),
        ("group_reporting", ""),
        ("exitall", ""),
        ("thread", ""),
        ("continue_on_error", "read"),
        ("fallocate", "none"),
        ("create_only", "1"),
        ("allow_file_create", "0"),
        ("unlink", "1"),
        ("overwrite", "1"),
        ("allow_mounted_write", "1"),
        ("ioengine", "libaio"),
        ("sync", "dsync"),
        ("fsync", "8"),
        ("fdatasync", "4"),
        ("end_fsync", "1"),
        ("thinktime", "20"),
        ("thinktime_blocks", "3"),
        ("thinktime_iotime", "9"),
    ]);
    assert_eq!(plan.name, "reported");
    assert_eq!(plan.description.as_deref(), Some("text"));
    assert!(plan.group_reporting && plan.exit_all && plan.thread_wording);
    assert_eq!(plan.on_error, OnError { continue_read: true, ..OnError::default() });
    let files = plan.files;
    assert_eq!(files.fallocate, Fallocate::None);
    assert!(files.create_only && files.unlink && files.overwrite && files.allow_mounted_write);
    assert!(!files.allow_create);
    assert_eq!(plan.engine.name, "libaio");
    assert_eq!((plan.io.open_sync, plan.io.fsync_every, plan.io.fdatasync_every), (OpenSync::Dsync, 8, 4));
    assert!(plan.io.end_fsync);
    let think_time = ThinkTime {
        pause: Nanos::from_micros(20),
        blocks: Some(3),
        io_time: Nanos::from_secs(9),
        ..ThinkTime::default()
    };
    assert_eq!(plan.time.think_time, think_time);
}
