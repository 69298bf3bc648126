//! Options about the I/O: operations, block sizes, order, payload and syncs.

use fathom_model::plan::{OpenSync, Pattern, RangeSync};
use fathom_model::{Op, OptionRow, OptionValueKind};

use super::{MAX_BLOCK, set};
use crate::job_options::{JobOptions, ReadWriteOption};
use crate::{block_split, value};

const RW_WORDS: &[&str] = &[
    "read",
    "write",
    "trim",
    "randread",
    "randwrite",
    "randtrim",
    "rw",
    "readwrite",
    "randrw",
    "trimwrite",
    "randtrimwrite",
];

const SYNC: [(&str, OpenSync); 5] = [
    ("none", OpenSync::None),
    ("0", OpenSync::None),
    ("sync", OpenSync::Sync),
    ("1", OpenSync::Sync),
    ("dsync", OpenSync::Dsync),
];

/// The rows of this category.
pub(super) const ROWS: &[OptionRow<JobOptions>] = &[
    OptionRow {
        name: "rw",
        aliases: &["readwrite"],
        kind: OptionValueKind::Choice(RW_WORDS),
        default: "read",
        doc: "Operations, and sequential or random order; randread:8 means 8 requests per random offset, read:4k a skip of 4k \
              after each request.",
        apply: direction,
    },
    OptionRow {
        name: "bs",
        aliases: &["blocksize"],
        kind: OptionValueKind::Size,
        default: "4096",
        doc: "Bytes per request: one size, or read,write,trim, where the last one given is repeated.",
        apply: block_size,
    },
    OptionRow {
        name: "bssplit",
        aliases: &[],
        kind: OptionValueKind::Text,
        default: "",
        doc: "Mixed sizes and the percentage of requests that has each, as 4k/60:8k/40 or read,write,trim lists of it; empty \
              shares divide the rest.",
        apply: block_split,
    },
    OptionRow {
        name: "rwmixread",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "50",
        doc: "Percentage of reads in a mixed job.",
        apply: |options, text| set(&mut options.rwmixread, value::percent(text)),
    },
    OptionRow {
        name: "rwmixwrite",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "50",
        doc: "Percentage of writes in a mixed job; the last of rwmixread and rwmixwrite applies.",
        apply: |options, text| set(&mut options.rwmixread, value::percent(text).map(|writes| 100 - writes)),
    },
    OptionRow {
        name: "io_size",
        aliases: &["io_limit"],
        kind: OptionValueKind::SizeOrPercent,
        default: "",
        doc: "Bytes to move, less or more than size; if more, the range is repeated.",
        apply: |options, text| set(&mut options.io_size, value::size_or_percent(text)),
    },
    OptionRow {
        name: "loops",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "1",
        doc: "Repetitions of the job.",
        apply: |options, text| set(&mut options.loops, value::count(text, 0)),
    },
    OptionRow {
        name: "direct",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "Bypass the page cache (O_DIRECT).",
        apply: |options, text| set(&mut options.direct, value::boolean(text)),
    },
    OptionRow {
        name: "buffered",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "1",
        doc: "Use the page cache; the opposite of direct, and the last one given applies.",
        apply: |options, text| set(&mut options.direct, value::boolean(text).map(|buffered| !buffered)),
    },
    OptionRow {
        name: "invalidate",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "1",
        doc: "Drop the files from the page cache before each pass.",
        apply: |options, text| set(&mut options.invalidate, value::boolean(text)),
    },
    OptionRow {
        name: "sync",
        aliases: &[],
        kind: OptionValueKind::Choice(&["none", "0", "sync", "1", "dsync"]),
        default: "none",
        doc: "Open files with O_SYNC or O_DSYNC.",
        apply: |options, text| set(&mut options.sync, value::choice(text, &SYNC)),
    },
    OptionRow {
        name: "fsync",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "0",
        doc: "Call fsync after this many writes, or never at 0.",
        apply: |options, text| set(&mut options.fsync, value::count(text, 0)),
    },
    OptionRow {
        name: "fdatasync",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "0",
        doc: "Call fdatasync after this many writes, or never at 0.",
        apply: |options, text| set(&mut options.fdatasync, value::count(text, 0)),
    },
    OptionRow {
        name: "sync_file_range",
        aliases: &[],
        kind: OptionValueKind::Text,
        default: "",
        doc: "Call sync_file_range(2) after every N writes on the range they wrote, as wait_before,write,wait_after:N.",
        apply: |options, text| range_sync(text).map(|sync| options.usage.range_sync = Some(sync)),
    },
    OptionRow {
        name: "atomic",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "Write atomically with O_DIRECT (RWF_ATOMIC), by libaio, io_uring or pvsync2 on a kernel and device that can.",
        apply: |options, text| value::boolean(text).map(|atomic| options.usage.atomic = atomic),
    },
    OptionRow {
        name: "end_fsync",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "Call fsync on every file after the last write.",
        apply: |options, text| set(&mut options.end_fsync, value::boolean(text)),
    },
    OptionRow {
        name: "randrepeat",
        aliases: &["allrandrepeat"],
        kind: OptionValueKind::Bool,
        default: "1",
        doc: "Use the same random sequence in every run.",
        apply: |options, text| set(&mut options.randrepeat, value::boolean(text)),
    },
    OptionRow {
        name: "randseed",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "0x89",
        doc: "Seed of all random choices, which makes runs repeatable whatever randrepeat says.",
        apply: |options, text| set(&mut options.randseed, value::integer(text)),
    },
    OptionRow {
        name: "norandommap",
        aliases: &[],
        kind: OptionValueKind::Flag,
        default: "0",
        doc: "Draw random offsets independently, so that blocks may repeat or be missed.",
        apply: |options, text| set(&mut options.norandommap, value::boolean(text)),
    },
    OptionRow {
        name: "refill_buffers",
        aliases: &[],
        kind: OptionValueKind::Flag,
        default: "0",
        doc: "Write fresh random data every time.",
        apply: |options, text| set(&mut options.refill_buffers, value::boolean(text)),
    },
    OptionRow {
        name: "scramble_buffers",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "1",
        doc: "Make every written block differ from the others.",
        apply: |options, text| set(&mut options.scramble_buffers, value::boolean(text)),
    },
    OptionRow {
        name: "zero_buffers",
        aliases: &[],
        kind: OptionValueKind::Flag,
        default: "0",
        doc: "Write zeroes.",
        apply: |options, text| set(&mut options.zero_buffers, value::boolean(text)),
    },
];

fn range_sync(text: &str) -> Result<RangeSync, String> {
    let (words, every) = text.split_once(':').unwrap_or((text, "1"));
    let mut sync = RangeSync { every: value::count(every, 1)?, ..RangeSync::default() };
    for word in words.split(',').map(str::trim) {
        match word {
            "wait_before" => sync.wait_before = true,
            "write" => sync.write = true,
            "wait_after" => sync.wait_after = true,
            _ => return Err("valid values are wait_before, write, wait_after".to_owned()),
        }
    }
    Ok(sync)
}

fn direction(options: &mut JobOptions, text: &str) -> Result<(), String> {
    let text = text.trim();
    let (word, modifier) =
        text.split_once(':').map_or((text, None), |(word, modifier)| (word, Some(modifier)));
    let name = if word == "readwrite" { "rw" } else { word };
    let Some(Pattern { random, mix }) = Pattern::named(name) else {
        return Err(format!("valid values are {}", RW_WORDS.join(", ")));
    };
    let (mut run, mut skip) = (1, 0);
    match modifier {
        Some(count) if random => run = value::count(count, 0)?.max(1),
        Some(bytes) => skip = value::signed_integer(bytes)?,
        None => {}
    }
    options.rw = Some(ReadWriteOption { random, mix });
    (options.access.run, options.access.skip) = (run, skip);
    Ok(())
}

fn block_size(options: &mut JobOptions, text: &str) -> Result<(), String> {
    if text.contains([':', '-']) && !text.trim().starts_with('-') {
        return Err(
            "use bsrange for a range of sizes, or commas between the sizes of reads, writes and trims"
                .to_owned(),
        );
    }
    let entries = value::per_operation(text)?;
    if entries == [None; 3] {
        return Err("a size is needed".to_owned());
    }
    let mut sizes = options.bs;
    for (op, entry) in Op::DATA.into_iter().zip(entries) {
        if let Some(entry) = entry {
            sizes[op] = Some(value::integer_in(entry, 1, MAX_BLOCK)?);
        }
    }
    options.bs = sizes;
    Ok(())
}

fn block_split(options: &mut JobOptions, text: &str) -> Result<(), String> {
    let entries = value::per_operation(text)?;
    if entries == [None; 3] {
        return Err(block_split::NEEDED.to_owned());
    }
    let mut splits = options.bssplit.clone();
    for (op, entry) in Op::DATA.into_iter().zip(entries) {
        if let Some(entry) = entry {
            splits[op] = Some(block_split::parse(entry, MAX_BLOCK)?);
        }
    }
    options.bssplit = splits;
    Ok(())
}

#[cfg(test)]
mod tests {
    use fathom_model::PerOp;
    use fathom_model::plan::{Mix, SizeSpec};

    use super::*;

    #[test]
    fn directions() {
        let mixed = Mix::ReadWrite { read_percent: 50 };
        for (text, random, mix) in [
            ("read", false, Mix::Read),
            ("write", false, Mix::Write),
            ("trim", false, Mix::Trim),
            ("randread", true, Mix::Read),
            ("randwrite", true, Mix::Write),
            ("randtrim", true, Mix::Trim),
            ("rw", false, mixed),
            ("readwrite", false, mixed),
            ("randrw", true, mixed),
            ("trimwrite", false, Mix::TrimWrite),
            ("randtrimwrite", true, Mix::TrimWrite),
        ] {
            let options = JobOptions::from_pairs(&[("rw", text)]).unwrap();
            assert_eq!(options.rw, Some(ReadWriteOption { random, mix }), "{text}");
        }
        for bad in ["", "rand", "randreadwrite", "READ", "reads", "rw,", "read:x", "read:"] {
            assert!(JobOptions::from_pairs(&[("rw", bad)]).is_err(), "{bad}");
        }
        for (text, run, skip) in
            [("randread:8", 8, 0), ("randwrite:0", 1, 0), ("read:4k", 1, 4096), ("write:-8k", 1, -8192)]
        {
            let options = JobOptions::from_pairs(&[("rw", text)]).unwrap();
            assert_eq!((options.access.run, options.access.skip), (run, skip), "{text}");
        }
        assert!(JobOptions::from_pairs(&[("rw", "randread:-1")]).is_err());
    }

    #[test]
    fn omitted_block_sizes_keep_their_values() {
        for (texts, expected) in [
            (vec!["8k"], [Some(8192); 3]),
            (vec!["4k,8k"], [Some(4096), Some(8192), Some(8192)]),
            (vec![",16k"], [None, Some(16384), Some(16384)]),
            (vec!["8k,"], [Some(8192), None, None]),
            (vec!["8k", ",16k"], [Some(8192), Some(16384), Some(16384)]),
            (vec!["4k,,16k"], [Some(4096), None, Some(16384)]),
        ] {
            let mut options = JobOptions::default();
            for text in &texts {
                block_size(&mut options, text).unwrap();
            }
            let [read, write, trim] = expected;
            assert_eq!(options.bs, PerOp { read, write, trim }, "{texts:?}");
        }
        for bad in ["", ",", "0", "4k,0", "-4", "4k-8k", "4k:8k", "1,2,3,4", "4g", "1.5m"] {
            let mut options = JobOptions::default();
            assert!(block_size(&mut options, bad).is_err(), "{bad}");
            assert_eq!(options.bs, PerOp::default(), "{bad} changed the options");
        }
    }

    #[test]
    fn values() {
        let check = |pairs: &[(&str, &str)], field: fn(&JobOptions) -> bool| {
            assert!(field(&JobOptions::from_pairs(pairs).unwrap()), "{pairs:?}");
        };
        check(&[("rwmixread", "70"), ("rwmixwrite", "20")], |o| o.rwmixread == Some(80));
        check(&[("rwmixwrite", "20"), ("rwmixread", "70")], |o| o.rwmixread == Some(70));
        check(&[("direct", "1"), ("buffered", "1")], |o| o.direct == Some(false));
        check(&[("buffered", "0")], |o| o.direct == Some(true));
        check(&[("io_limit", "10%")], |o| o.io_size == Some(SizeSpec::Percent(10)));
        check(&[("loops", "3")], |o| o.loops == Some(3));
        check(&[("invalidate", "0")], |o| o.invalidate == Some(false));
        check(&[("sync", "dsync")], |o| o.sync == Some(OpenSync::Dsync));
        check(&[("fsync", "32")], |o| o.fsync == Some(32));
        check(&[("fdatasync", "1")], |o| o.fdatasync == Some(1));
        check(&[("sync_file_range", "wait_before,write:3")], |o| {
            let expected = RangeSync { every: 3, wait_before: true, write: true, wait_after: false };
            o.usage.range_sync == Some(expected)
        });
        check(&[("sync_file_range", "wait_after")], |o| o.usage.range_sync.unwrap().every == 1);
        check(&[("atomic", "1")], |o| o.usage.atomic);
        check(&[("end_fsync", "1")], |o| o.end_fsync == Some(true));
        check(&[("allrandrepeat", "0")], |o| o.randrepeat == Some(false));
        check(&[("randseed", "0x10")], |o| o.randseed == Some(16));
        check(&[("norandommap", "")], |o| o.norandommap == Some(true));
        check(&[("norandommap", "0")], |o| o.norandommap == Some(false));
        check(&[("refill_buffers", "")], |o| o.refill_buffers == Some(true));
        check(&[("scramble_buffers", "0")], |o| o.scramble_buffers == Some(false));
        check(&[("zero_buffers", "1")], |o| o.zero_buffers == Some(true));
        for bad in [
            ("rwmixread", "101"),
            ("rwmixwrite", "-1"),
            ("sync", "2"),
            ("fsync", "x"),
            ("direct", "2"),
            ("sync_file_range", "foo:3"),
            ("sync_file_range", "write:0"),
        ] {
            assert!(JobOptions::from_pairs(&[bad]).is_err(), "{bad:?}");
        }
    }
}
