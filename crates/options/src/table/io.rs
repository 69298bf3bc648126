//! Options about the I/O: operations, block sizes, order, payload and syncs.

use fathom_model::OptionValueKind::{Choice, Size, SizeOrPercent, Text};
use fathom_model::plan::{OpenSync, Pattern, RangeSync};

use super::{ANY, JobOption, MAX_BLOCK, count, flag, int, per_op, percent, row, switch, unless_zero};
use crate::job_options::{JobOptions, ReadWriteOption};
use crate::{block_split, value};

const RW_WORDS: &[&str] = &[
    "read", "write", "trim", "randread", "randwrite", "randtrim", "rw", "readwrite", "randrw", "trimwrite",
    "randtrimwrite",
];

const SYNC: [(&str, OpenSync); 5] = [
    ("none", OpenSync::None),
    ("0", OpenSync::None),
    ("sync", OpenSync::Sync),
    ("1", OpenSync::Sync),
    ("dsync", OpenSync::Dsync),
];

pub(super) const ROWS: &[JobOption] = &[
    row("rw", Choice(RW_WORDS), direction).aliases(&["readwrite"]).default("read").doc(
        "Operations, and sequential or random order; randread:8 means 8 requests per random offset, \
              read:4k a skip of 4k after each request.",
    ),
    row("bs", Size, block_size)
        .aliases(&["blocksize"])
        .default("4096")
        .doc("Bytes per request: one size, or read,write,trim, where the last one given is repeated."),
    row("bssplit", Text, |options, text| {
        per_op(&mut options.bssplit, text, block_split::NEEDED, |entry| {
            block_split::parse(entry, MAX_BLOCK).map(Some)
        })
    })
    .doc(
        "Mixed sizes and the percentage of requests that has each, as 4k/60:8k/40 or read,write,trim \
              lists of it; empty shares divide the rest.",
    ),
    percent("rwmixread", |options, percent| options.rwmixread = Some(percent))
        .default("50")
        .doc("Percentage of reads in a mixed job."),
    percent("rwmixwrite", |options, percent| options.rwmixread = Some(100 - percent))
        .default("50")
        .doc("Percentage of writes in a mixed job; the last of rwmixread and rwmixwrite applies."),
    row("io_size", SizeOrPercent, |options, text| {
        value::size_or_percent(text).map(|size| options.plan.io.io_size = unless_zero(size))
    })
    .aliases(&["io_limit"])
    .doc("Bytes to move, less or more than size; if more, the range is repeated."),
    count("loops", 0, |options, count| options.plan.io.loops = count.max(1))
        .default("1")
        .doc("Repetitions of the job."),
    switch("direct", |options, on| options.plan.io.direct = on).doc("Bypass the page cache (O_DIRECT)."),
    switch("buffered", |options, on| options.plan.io.direct = !on)
        .default("1")
        .doc("Use the page cache; the opposite of direct, and the last one given applies."),
    switch("invalidate", |options, on| options.plan.io.invalidate = on)
        .default("1")
        .doc("Drop the files from the page cache before each pass."),
    row("sync", Choice(&["none", "0", "sync", "1", "dsync"]), |options, text| {
        value::choice(text, &SYNC).map(|value| options.plan.io.open_sync = value)
    })
    .default("none")
    .doc("Open files with O_SYNC or O_DSYNC."),
    count("fsync", 0, |options, count| options.plan.io.fsync_every = count)
        .default("0")
        .doc("Call fsync after this many writes, or never at 0."),
    count("fdatasync", 0, |options, count| options.plan.io.fdatasync_every = count)
        .default("0")
        .doc("Call fdatasync after this many writes, or never at 0."),
    row("sync_file_range", Text, |options, text| {
        range_sync(text).map(|sync| options.plan.files.usage.range_sync = Some(sync))
    })
    .doc(
        "Call sync_file_range(2) after every N writes on the range they wrote, as \
              wait_before,write,wait_after:N.",
    ),
    switch("atomic", |options, atomic| options.plan.files.usage.atomic = atomic).doc(
        "Write atomically with O_DIRECT (RWF_ATOMIC), by libaio, io_uring or pvsync2 on a kernel and \
              device that can.",
    ),
    switch("end_fsync", |options, on| options.plan.io.end_fsync = on)
        .doc("Call fsync on every file after the last write."),
    switch("randrepeat", |options, on| options.randrepeat = Some(on))
        .aliases(&["allrandrepeat"])
        .default("1")
        .doc("Use the same random sequence in every run."),
    int("randseed", ANY, |options, number| options.randseed = Some(number))
        .default("0x89")
        .doc("Seed of all random choices, which makes runs repeatable whatever randrepeat says."),
    flag("norandommap", |options, on| options.norandommap = Some(on))
        .doc("Draw random offsets independently, so that blocks may repeat or be missed."),
    flag("refill_buffers", |options, on| options.refill_buffers = Some(on))
        .doc("Write fresh random data every time."),
    switch("scramble_buffers", |options, on| options.scramble_buffers = Some(on))
        .default("1")
        .doc("Make every written block differ from the others."),
    flag("zero_buffers", |options, on| options.zero_buffers = Some(on)).doc("Write zeroes."),
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
    (options.plan.io.access.run, options.plan.io.access.skip) = (run, skip);
    Ok(())
}

fn block_size(options: &mut JobOptions, text: &str) -> Result<(), String> {
    if text.contains([':', '-']) && !text.trim().starts_with('-') {
        return Err(
            "use bsrange for a range of sizes, or commas between the sizes of reads, writes and trims"
                .to_owned(),
        );
    }
    per_op(&mut options.bs, text, "a size is needed", |entry| {
        value::integer_in(entry, 1, MAX_BLOCK).map(Some)
    })
}

#[cfg(test)]
mod tests {
    use fathom_model::PerOp;
    use fathom_model::plan::Mix;

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
            assert_eq!((options.plan.io.access.run, options.plan.io.access.skip), (run, skip), "{text}");
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
}
