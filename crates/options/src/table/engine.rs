//! Options about the engine, the queue depth and the CPUs of workers.

use fathom_model::OptionValueKind::{Choice, Text};

use super::{JobOption, count, flag, row, set};
use crate::job_options::CpuPolicy;
use crate::value;

const POLICY: [(&str, CpuPolicy); 2] = [("shared", CpuPolicy::Shared), ("split", CpuPolicy::Split)];

const SUBMISSION: [(&str, bool); 2] = [("inline", false), ("offload", true)];

pub(super) const ROWS: &[JobOption] = &[
    row("ioengine", Text, |options, text| match text.trim() {
        "" => Err("an engine name is needed".to_owned()),
        name => set(&mut options.ioengine, Ok(name.to_owned())),
    })
    .default("psync")
    .doc("I/O engine, the method of submitting requests to the kernel."),
    count("iodepth", 1, |options, count| options.iodepth = Some(count)).default("1").doc(
        "Requests kept in flight by each clone; synchronous engines keep one, unless \
              io_submit_mode=offload.",
    ),
    count("iodepth_batch", 0, |options, count| options.iodepth_batch = Some(count))
        .aliases(&["iodepth_batch_submit"])
        .doc(
            "Most requests per submission; 0 means iodepth, and without it all that are ready are \
              submitted together.",
        ),
    count("iodepth_batch_complete_min", 0, |options, count| options.iodepth_batch_complete_min = Some(count))
        .aliases(&["iodepth_batch_complete"])
        .default("1")
        .doc("Completions to wait for in one call; 0 polls without waiting."),
    count("iodepth_batch_complete_max", 0, |options, count| options.iodepth_batch_complete_max = Some(count))
        .doc("Most completions per call; without it, all that are available."),
    count("iodepth_low", 0, |options, count| options.iodepth_low = Some(count))
        .doc("Refill the queue once no more than this many are in flight; without it, at iodepth."),
    row("io_submit_mode", Choice(&["inline", "offload"]), |options, text| {
        value::choice(text, &SUBMISSION).map(|offload| options.plan.threads.offload = offload)
    })
    .default("inline")
    .doc(
        "With offload, threads execute the requests of a synchronous engine, one for each of \
              iodepth, so that the job issues requests while others are in flight.",
    ),
    count("numjobs", 1, |options, count| options.numjobs = Some(count))
        .default("1")
        .doc("Clones of the job that run at the same time."),
    flag("thread", |options, on| options.plan.thread_wording = on)
        .doc("Write thread instead of process in reports; clones are always threads."),
    row("cpus_allowed", Text, |options, text| set(&mut options.cpus_allowed, value::cpus(text)))
        .doc("CPUs that the clones may run on, such as 0,2-5."),
    row("cpus_allowed_policy", Choice(&["shared", "split"]), |options, text| {
        set(&mut options.cpus_allowed_policy, value::choice(text, &POLICY))
    })
    .default("shared")
    .doc("Whether clones share the CPUs of cpus_allowed or get one each."),
];
