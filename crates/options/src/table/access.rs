//! Options about the choice of offsets, sizes and files.

use fathom_model::plan::StridedZones;
use fathom_model::{Op, OptionRow, OptionValueKind, PerOp};

use super::set;
use crate::job_options::{JobOptions, RandomGenerator};
use crate::{distribution, value};

const GENERATORS: [(&str, RandomGenerator); 3] = [
    ("tausworthe", RandomGenerator::Tausworthe),
    ("lfsr", RandomGenerator::Lfsr),
    ("tausworthe64", RandomGenerator::Tausworthe),
];

const SEQUENCERS: [(&str, bool); 2] = [("sequential", false), ("identical", true)];

const ZONE_MODES: [(&str, bool); 2] = [("none", false), ("strided", true)];

/// The rows of this category.
pub(super) const ROWS: &[OptionRow<JobOptions>] = &[
    OptionRow {
        name: "bsrange",
        aliases: &["blocksize_range"],
        kind: OptionValueKind::Text,
        default: "",
        doc: "Smallest and largest size of a request, as 4k-64k or read,write,trim ranges; sizes are multiples of the smallest.",
        apply: block_range,
    },
    OptionRow {
        name: "bs_unaligned",
        aliases: &["blocksize_unaligned"],
        kind: OptionValueKind::Flag,
        default: "0",
        doc: "Sizes of bsrange are any number of bytes, and offsets are drawn independently.",
        apply: |options, text| set(&mut options.bs_unaligned, value::boolean(text)),
    },
    OptionRow {
        name: "bs_is_seq_rand",
        aliases: &["blocksize_is_seq_rand"],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "The sizes of bs, bsrange and bssplit are those of sequential and random requests, not of reads and writes.",
        apply: |options, text| set(&mut options.bs_is_seq_rand, value::boolean(text)),
    },
    OptionRow {
        name: "ba",
        aliases: &["blockalign"],
        kind: OptionValueKind::Size,
        default: "",
        doc: "Random offsets are multiples of this instead of the smallest block, and are drawn independently.",
        apply: |options, text| {
            per_op(&mut options.access.align, text, |size| value::integer_in(size, 1, u64::MAX / 2))
        },
    },
    OptionRow {
        name: "number_ios",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "0",
        doc: "Stop after this many requests per loop, if the size does not end it earlier; 0 means no limit.",
        apply: |options, text| value::integer(text).map(|count| options.access.number_ios = count),
    },
    OptionRow {
        name: "random_distribution",
        aliases: &[],
        kind: OptionValueKind::Text,
        default: "random",
        doc: "Distribution of random offsets: random, zipf:THETA, pareto:H, normal:PERCENT, each with :CENTER, or zones as \
              zoned:60/10:40/90 and zoned_abs:60/1g:40/9g.",
        apply: |options, text| {
            distribution::per_operation(text).map(|parsed| options.access.distribution = parsed)
        },
    },
    OptionRow {
        name: "percentage_random",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "100",
        doc: "Percentage of the requests of a random job at random offsets, or read,write,trim; the others are sequential.",
        apply: |options, text| per_op(&mut options.access.percentage_random, text, value::percent),
    },
    OptionRow {
        name: "random_generator",
        aliases: &[],
        kind: OptionValueKind::Choice(&["tausworthe", "lfsr", "tausworthe64"]),
        default: "tausworthe",
        doc: "With lfsr every block is visited once even with norandommap; the numbers come from one generator in any case.",
        apply: |options, text| set(&mut options.random_generator, value::choice(text, &GENERATORS)),
    },
    OptionRow {
        name: "rw_sequencer",
        aliases: &[],
        kind: OptionValueKind::Choice(&["sequential", "identical"]),
        default: "sequential",
        doc: "Whether the requests of rw=randread:N follow the random offset or repeat it.",
        apply: |options, text| {
            value::choice(text, &SEQUENCERS).map(|repeats| options.access.run_repeats = repeats)
        },
    },
    OptionRow {
        name: "serialize_overlap",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "A request that overlaps one in flight, of which one writes, waits for it.",
        apply: |options, text| set(&mut options.serialize_overlap, value::boolean(text)),
    },
    OptionRow {
        name: "file_service_type",
        aliases: &[],
        kind: OptionValueKind::Text,
        default: "roundrobin",
        doc: "Order of the files: roundrobin, sequential or random, each with :N requests to a file before the next, or \
              zipf:THETA, pareto:H, normal:PERCENT.",
        apply: |options, text| {
            distribution::file_order(text).map(|(order, run)| {
                (options.access.files, options.access.file_run) = (order, run);
            })
        },
    },
    OptionRow {
        name: "openfiles",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "",
        doc: "Files in use at a time; the next ones follow when these are finished.",
        apply: |options, text| value::count(text, 1).map(|files| options.access.open_files = files),
    },
    OptionRow {
        name: "zonemode",
        aliases: &[],
        kind: OptionValueKind::Choice(&["none", "strided"]),
        default: "none",
        doc: "With strided, zones of zonerange bytes are visited in turn.",
        apply: |options, text| match text.trim() {
            "zbd" => Err("zoned block devices are not supported: use none or strided".to_owned()),
            text => set(&mut options.strided, value::choice(text, &ZONE_MODES)),
        },
    },
    OptionRow {
        name: "zonesize",
        aliases: &[],
        kind: OptionValueKind::Size,
        default: "0",
        doc: "Bytes to move in a zone before the next one.",
        apply: |options, text| value::integer(text).map(|bytes| zones(options).size = bytes),
    },
    OptionRow {
        name: "zonerange",
        aliases: &[],
        kind: OptionValueKind::Size,
        default: "0",
        doc: "Bytes of a zone; without it, zonesize.",
        apply: |options, text| value::integer(text).map(|bytes| zones(options).range = bytes),
    },
    OptionRow {
        name: "zoneskip",
        aliases: &[],
        kind: OptionValueKind::Size,
        default: "0",
        doc: "Bytes between two zones.",
        apply: |options, text| value::integer(text).map(|bytes| zones(options).skip = bytes),
    },
];

fn zones(options: &mut JobOptions) -> &mut StridedZones {
    options.access.zones.get_or_insert(StridedZones { size: 0, range: 0, skip: 0 })
}

/// Stores the entries of a read,write,trim list.
fn per_op<T>(
    values: &mut PerOp<T>,
    text: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<(), String> {
    let entries = value::per_operation(text)?;
    if entries == [None; 3] {
        return Err("a number is needed".to_owned());
    }
    for (op, entry) in Op::DATA.into_iter().zip(entries) {
        if let Some(entry) = entry {
            values[op] = parse(entry)?;
        }
    }
    Ok(())
}

fn block_range(options: &mut JobOptions, text: &str) -> Result<(), String> {
    let mut ranges = options.bsrange;
    per_op(&mut ranges, text, |entry| {
        let ends = entry.split_once(['-', ':']);
        let (low, high) = ends.ok_or("a range is needed, such as 4k-16k: use bs for one size")?;
        let (low, high) =
            (value::integer_in(low, 1, super::MAX_BLOCK)?, value::integer_in(high, 1, super::MAX_BLOCK)?);
        Ok(Some((low.min(high), low.max(high))))
    })?;
    options.bsrange = ranges;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        let check = |pair, field: fn(&JobOptions) -> bool| {
            assert!(field(&JobOptions::from_pairs(&[pair]).unwrap()), "{pair:?}");
        };
        check(("bsrange", "64k-4k"), |o| o.bsrange.trim == Some((4096, 65536)));
        check(("blocksize_range", "1k-4k,8k-16k"), |o| o.bsrange.read == Some((1024, 4096)));
        check(("blocksize_unaligned", ""), |o| o.bs_unaligned == Some(true));
        check(("ba", "16k"), |o| o.access.align == PerOp::splat(16384));
        check(("number_ios", "1k"), |o| o.access.number_ios == 1024);
        check(("percentage_random", "50,100"), |o| o.access.percentage_random.read == 50);
        check(("percentage_random", ",20"), |o| o.access.percentage_random.read == 100);
        check(("random_generator", "lfsr"), |o| o.random_generator == Some(RandomGenerator::Lfsr));
        check(("rw_sequencer", "identical"), |o| o.access.run_repeats);
        check(("file_service_type", "random:3"), |o| o.access.file_run == 3);
        check(("openfiles", "3"), |o| o.access.open_files == 3);
        check(("zonesize", "1m"), |o| o.access.zones.is_some_and(|zones| zones.size == 1 << 20));
        for bad in [
            ("bsrange", ""),
            ("bsrange", "0-4k"),
            ("ba", "0"),
            ("percentage_random", "101"),
            ("random_distribution", "zipf:1.0"),
            ("file_service_type", "x"),
            ("openfiles", "0"),
            ("zonemode", "zbd"),
        ] {
            assert!(JobOptions::from_pairs(&[bad]).is_err(), "{bad:?}");
        }
    }
}
