//! The combined meaning of the options about offsets, sizes and files.

use fathom_model::plan::{AccessPlan, Distribution, StridedZones};
use fathom_model::{BlockSize, Op, PerOp};

use crate::job_options::{JobOptions, RandomGenerator};

/// fio's default block size, in bytes.
const DEFAULT_BLOCK: u64 = 4096;

/// Bytes per request: a mix of sizes takes precedence over a range, and a range over a size.
pub(crate) fn block_size(options: &JobOptions) -> PerOp<BlockSize> {
    let unaligned = options.bs_unaligned.unwrap_or(false);
    let of = |op: Op| {
        let range = options.bsrange[op].and_then(|(min, max)| BlockSize::of_range(min, max, unaligned));
        let size = || options.bs[op].unwrap_or(DEFAULT_BLOCK).into();
        options.bssplit[op].clone().or(range).unwrap_or_else(size)
    };
    let sizes = PerOp { read: of(Op::Read), write: of(Op::Write), trim: of(Op::Trim) };
    if options.bs_is_seq_rand != Some(true) {
        return sizes;
    }
    // As in fio: the first entry is that of sequential requests, the second that of random ones.
    PerOp::splat(if options.rw.is_some_and(|rw| rw.random) { sizes.write } else { sizes.read })
}

/// Options that exclude each other, and the remedy.
pub(crate) fn contradiction(options: &JobOptions) -> Option<(&'static str, &'static str)> {
    let is_strided = options.strided == Some(true);
    let access = &options.plan.io.access;
    let zone_size = access.zones.map_or(0, |zones| zones.size);
    let is_partly_random = access.percentage_random != PerOp::splat(100) || access.run > 1;
    let is_given = |rates: &PerOp<Option<u64>>| rates.iter().any(|(_, rate)| rate.unwrap_or(0) > 0);
    let is_scheduled = is_given(&options.rate) || is_given(&options.rate_iops);
    match () {
        () if is_strided && zone_size == 0 => {
            Some(("has zonemode=strided and no zonesize", "add zonesize=, for example zonesize=1m"))
        }
        () if !is_strided && zone_size > 0 => {
            Some(("has a zonesize and no zonemode", "add zonemode=strided, or omit zonesize"))
        }
        () if options.plan.io.serialize_overlap && is_scheduled => Some((
            "has serialize_overlap=1 and a rate",
            "omit one of them: requests of a rate do not wait for each other",
        )),
        () if options.plan.time.think_time.spin > options.plan.time.think_time.pause => Some((
            "has a thinktime_spin above its thinktime",
            "raise thinktime, of which thinktime_spin is a part",
        )),
        () if options.bs_is_seq_rand == Some(true) && is_partly_random => Some((
            "has bs_is_seq_rand=1, and requests of both kinds",
            "omit percentage_random and the number in rw=, or use two jobs",
        )),
        () if options.plan.files.usage.range_sync.is_some() && options.plan.io.fdatasync_every > 0 => Some((
            "has sync_file_range and fdatasync",
            "omit one of them, or use fsync beside sync_file_range",
        )),
        () if options.unlink_each_loop == Some(true) && has_loops(options) => Some((
            "has unlink_each_loop=1 and loops or time_based",
            "use one job per loop, each with stonewall and unlink=1",
        )),
        () if options.plan.threads.host.control_group.as_ref().is_some_and(|group| group.name.is_empty()) => {
            Some(("has a weight of a control group and no cgroup", "name the group with cgroup="))
        }
        () if !options.opendir.is_empty() => Some((
            "lists a directory with opendir, which only `fathom fio` does",
            "name the files with filename",
        )),
        () => None,
    }
}

fn has_loops(options: &JobOptions) -> bool {
    options.plan.io.loops > 1 || options.plan.time.time_based
}

/// The choice of offsets and files, and whether each block is accessed once per pass.
pub(crate) fn plan(options: &JobOptions) -> (AccessPlan, bool) {
    let mut access = options.plan.io.access.clone();
    let random = options.rw.is_some_and(|rw| rw.random);
    if random {
        access.skip = 0;
    } else {
        let AccessPlan { distribution, percentage_random, align, run, run_repeats, .. } =
            AccessPlan::default();
        access = AccessPlan {
            distribution,
            percentage_random,
            align,
            run,
            run_repeats,
            skip: access.skip,
            ..access
        };
    }
    if access.run <= 1 {
        access.run_repeats = false;
    }
    let zones = access.zones.filter(|_| options.strided == Some(true));
    access.zones = zones.map(|zones| StridedZones {
        range: if zones.range == 0 { zones.size } else { zones.range },
        ..zones
    });
    let is_lfsr = options.random_generator == Some(RandomGenerator::Lfsr);
    let covers = access.distribution.iter().all(|(_, distribution)| *distribution == Distribution::Random)
        && access.align == PerOp::default()
        && access.percentage_random == PerOp::splat(100);
    let wants_map = is_lfsr || !options.norandommap.unwrap_or(false);
    (access, covers && wants_map)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(pairs: &[(&str, &str)]) -> (AccessPlan, bool) {
        plan(&JobOptions::from_pairs(pairs).unwrap())
    }

    #[test]
    fn options_of_random_offsets_mean_nothing_in_a_sequential_job() {
        let given = [("random_distribution", "zipf"), ("percentage_random", "50"), ("ba", "8k")];
        assert!(planned(&given).0.is_uniform());
        let random = planned(&[&given[..], &[("rw", "randread")]].concat());
        assert!(!random.0.is_uniform() && !random.1);
        assert!(planned(&[("rw", "read:4k")]).0.skip == 4096);
        assert!(planned(&[("rw", "randread"), ("rw_sequencer", "identical")]).0.is_uniform());
        assert_eq!(planned(&[("rw", "randread:8"), ("rw_sequencer", "identical")]).0.run, 8);
    }

    #[test]
    fn a_map_needs_uniform_offsets() {
        for (pairs, expected) in [
            (&[("rw", "randread")][..], true),
            (&[("rw", "randread"), ("norandommap", "")], false),
            (&[("rw", "randread"), ("norandommap", ""), ("random_generator", "lfsr")], true),
            (&[("rw", "randread"), ("random_distribution", "pareto")], false),
            (&[("rw", "randread"), ("number_ios", "5")], true),
        ] {
            assert_eq!(planned(pairs).1, expected, "{pairs:?}");
        }
    }

    #[test]
    fn sizes_are_a_split_or_a_range_or_one() {
        let sizes = |pairs: &[(&str, &str)]| {
            block_size(&JobOptions::from_pairs(pairs).unwrap()).map(|size| size.to_string())
        };
        let text = |read: &str, write: &str| PerOp { read, write, trim: write }.map(str::to_owned);
        assert_eq!(sizes(&[("bs", "8k"), ("bsrange", "4k-16k")]), text("4096-16384", "4096-16384"));
        assert_eq!(sizes(&[("bsrange", "4k-4k,8k-16k")]), text("4096", "8192-16384"));
        let split = [("bsrange", "4k-16k"), ("bssplit", "4k/50:8k/50")];
        assert_eq!(sizes(&split), text("4096/50:8192/50", "4096/50:8192/50"));
        let of_kind = [("bs", "64k,4k"), ("bs_is_seq_rand", "1")];
        assert_eq!(sizes(&of_kind), text("65536", "65536"));
        assert_eq!(sizes(&[&of_kind[..], &[("rw", "randwrite")]].concat()), text("4096", "4096"));
    }

    #[test]
    fn strided_zones_need_a_size_and_contradictions_are_refused() {
        let strided = ("zonemode", "strided");
        let expected = StridedZones { size: 4096, range: 4096, skip: 8192 };
        assert_eq!(planned(&[strided, ("zonesize", "4k"), ("zoneskip", "8k")]).0.zones, Some(expected));
        for (pairs, is_accepted) in [
            (&[strided, ("zonesize", "4k")][..], true),
            (&[strided], false),
            (&[("zonesize", "4k")], false),
            (&[("zonemode", "none"), ("zonesize", "4k")], false),
            (&[("bs_is_seq_rand", "1"), ("rw", "randread")], true),
            (&[("bs_is_seq_rand", "1"), ("rw", "randread:2")], false),
            (&[("thinktime", "5ms"), ("thinktime_spin", "5ms")], true),
            (&[("thinktime", "5ms"), ("thinktime_spin", "6ms")], false),
            (&[("thinktime_spin", "1ms")], false),
            (&[("sync_file_range", "write:2"), ("fdatasync", "0")], true),
            (&[("sync_file_range", "write:2"), ("fdatasync", "2")], false),
            (&[("unlink_each_loop", "1")], true),
            (&[("unlink_each_loop", "1"), ("loops", "2")], false),
            (&[("cgroup", "a"), ("cgroup_weight", "200")], true),
            (&[("cgroup_weight", "200")], false),
            (&[("opendir", "d")], false),
        ] {
            let options = JobOptions::from_pairs(pairs).unwrap();
            assert_eq!(contradiction(&options).is_none(), is_accepted, "{pairs:?}");
        }
    }
}
