//! Options about the engine, the queue depth and the CPUs of workers.

use fathom_model::{OptionRow, OptionValueKind};

use super::set;
use crate::job_options::{CpuPolicy, JobOptions};
use crate::value;

const POLICY: [(&str, CpuPolicy); 2] = [("shared", CpuPolicy::Shared), ("split", CpuPolicy::Split)];

const SUBMISSION: [(&str, bool); 2] = [("inline", false), ("offload", true)];

/// The rows of this category.
pub(super) const ROWS: &[OptionRow<JobOptions>] = &[
    OptionRow {
        name: "ioengine",
        aliases: &[],
        kind: OptionValueKind::Text,
        default: "psync",
        doc: "I/O engine, the method of submitting requests to the kernel.",
        apply: |options, text| match text.trim() {
            "" => Err("an engine name is needed".to_owned()),
            name => set(&mut options.ioengine, Ok(name.to_owned())),
        },
    },
    OptionRow {
        name: "iodepth",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "1",
        doc: "Requests kept in flight by each clone; synchronous engines keep one, unless io_submit_mode=offload.",
        apply: |options, text| set(&mut options.iodepth, value::count(text, 1)),
    },
    OptionRow {
        name: "iodepth_batch",
        aliases: &["iodepth_batch_submit"],
        kind: OptionValueKind::Int,
        default: "",
        doc: "Most requests per submission; 0 means iodepth, and without it all that are ready are submitted together.",
        apply: |options, text| set(&mut options.iodepth_batch, value::count(text, 0)),
    },
    OptionRow {
        name: "iodepth_batch_complete_min",
        aliases: &["iodepth_batch_complete"],
        kind: OptionValueKind::Int,
        default: "1",
        doc: "Completions to wait for in one call; 0 polls without waiting.",
        apply: |options, text| set(&mut options.iodepth_batch_complete_min, value::count(text, 0)),
    },
    OptionRow {
        name: "iodepth_batch_complete_max",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "",
        doc: "Most completions per call; without it, all that are available.",
        apply: |options, text| set(&mut options.iodepth_batch_complete_max, value::count(text, 0)),
    },
    OptionRow {
        name: "iodepth_low",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "",
        doc: "Refill the queue once no more than this many are in flight; without it, at iodepth.",
        apply: |options, text| set(&mut options.iodepth_low, value::count(text, 0)),
    },
    OptionRow {
        name: "io_submit_mode",
        aliases: &[],
        kind: OptionValueKind::Choice(&["inline", "offload"]),
        default: "inline",
        doc: "With offload, threads execute the requests of a synchronous engine, one for each of iodepth, so that the job issues requests while others are in flight.",
        apply: |options, text| {
            value::choice(text, &SUBMISSION).map(|offload| options.threads.offload = offload)
        },
    },
    OptionRow {
        name: "numjobs",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "1",
        doc: "Clones of the job that run at the same time.",
        apply: |options, text| set(&mut options.numjobs, value::count(text, 1)),
    },
    OptionRow {
        name: "thread",
        aliases: &[],
        kind: OptionValueKind::Flag,
        default: "0",
        doc: "Write thread instead of process in reports; clones are always threads.",
        apply: |options, text| set(&mut options.thread, value::boolean(text)),
    },
    OptionRow {
        name: "cpus_allowed",
        aliases: &[],
        kind: OptionValueKind::Text,
        default: "",
        doc: "CPUs that the clones may run on, such as 0,2-5.",
        apply: |options, text| set(&mut options.cpus_allowed, value::cpus(text)),
    },
    OptionRow {
        name: "cpus_allowed_policy",
        aliases: &[],
        kind: OptionValueKind::Choice(&["shared", "split"]),
        default: "shared",
        doc: "Whether clones share the CPUs of cpus_allowed or get one each.",
        apply: |options, text| set(&mut options.cpus_allowed_policy, value::choice(text, &POLICY)),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        let check = |pair, field: fn(&JobOptions) -> bool| {
            assert!(field(&JobOptions::from_pairs(&[pair]).unwrap()), "{pair:?}");
        };
        check(("ioengine", "null"), |o| o.ioengine.as_deref() == Some("null"));
        check(("iodepth", "64"), |o| o.iodepth == Some(64));
        check(("iodepth", "100000"), |o| o.iodepth == Some(100_000));
        check(("iodepth_batch_submit", "8"), |o| o.iodepth_batch == Some(8));
        check(("iodepth_batch_complete", "0"), |o| o.iodepth_batch_complete_min == Some(0));
        check(("iodepth_batch_complete_max", "4"), |o| o.iodepth_batch_complete_max == Some(4));
        check(("iodepth_low", "32"), |o| o.iodepth_low == Some(32));
        check(("io_submit_mode", "offload"), |o| o.threads.offload);
        check(("io_submit_mode", "inline"), |o| !o.threads.offload);
        check(("numjobs", "8"), |o| o.numjobs == Some(8));
        check(("thread", ""), |o| o.thread == Some(true));
        check(("thread", "0"), |o| o.thread == Some(false));
        check(("cpus_allowed", "0-1"), |o| o.cpus_allowed == Some(vec![0, 1]));
        check(("cpus_allowed_policy", "split"), |o| o.cpus_allowed_policy == Some(CpuPolicy::Split));
        for bad in
            [("ioengine", ""), ("iodepth", "0"), ("numjobs", "0"), ("numjobs", "-1"), ("cpus_allowed", "x")]
        {
            assert!(JobOptions::from_pairs(&[bad]).is_err(), "{bad:?}");
        }
    }
}
