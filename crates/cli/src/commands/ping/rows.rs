//! The options of `ping`, of ioping's name and of our own: names, values and help.

use super::grammar::{PingOption, ValueUse};
use super::options::PingProgram;

const fn flag(long: &'static str, short: char, help: &'static str) -> PingOption {
    PingOption { long, short: Some(short), takes: ValueUse::Nothing, value: "", help }
}

const fn valued(long: &'static str, short: char, value: &'static str, help: &'static str) -> PingOption {
    PingOption { long, short: Some(short), takes: ValueUse::Value, value, help }
}

const fn ours(long: &'static str, value: &'static str, help: &'static str) -> PingOption {
    let takes = if value.is_empty() { ValueUse::Nothing } else { ValueUse::Value };
    PingOption { long, short: None, takes, value, help }
}

/// ioping's options.
pub const IOPING: &[PingOption] = &[
    flag("async", 'A', "use Linux AIO"),
    flag("cached", 'C', "use cached I/O: neither drop nor flush the cache"),
    flag("direct", 'D', "use direct I/O (O_DIRECT)"),
    flag("read-write", 'G', "alternate writes and reads"),
    flag("linear", 'L', "sequential offsets instead of random; 256k requests"),
    flag("nowait", 'N', "fail instead of waiting (RWF_NOWAIT)"),
    flag("hipri", 'H', "poll for completions (RWF_HIPRI)"),
    flag("write", 'W', "write instead of read; -WWW overwrites a file"),
    flag("sync", 'Y', "use synchronous I/O (O_SYNC)"),
    flag("dsync", 'y', "use synchronous data I/O (O_DSYNC)"),
    flag("rapid", 'R', "no delay between requests, 3 s, range 64m (-q -i 0 -w 3)"),
    flag("keep", 'k', "keep and reuse ioping.tmp in the directory"),
    valued("warmup", 'a', "COUNT", "requests to ignore at the start [default: 1]"),
    valued("burst", 'b', "COUNT", "requests without delay before each interval [default: 0]"),
    valued("count", 'c', "COUNT", "stop after COUNT requests"),
    valued("entropy", 'e', "SEED", "seed of random offsets [default: the clock]"),
    valued("interval", 'i', "TIME", "time between requests [default: 1s]"),
    valued("size", 's', "SIZE", "request size [default: 4k]"),
    valued("work-size", 'S', "SIZE", "size of the range [default: 1m in a directory, else all]"),
    valued("work-offset", 'o', "SIZE", "start of the range [default: 0]"),
    valued("work-time", 'w', "TIME", "stop after TIME"),
    valued("speed-limit", 'l', "SIZE", "bandwidth limit in bytes per second"),
    valued("rate-limit", 'r', "COUNT", "IOPS limit"),
    valued("min-time", 't', "TIME", "ignore faster requests"),
    valued("max-time", 'T', "TIME", "ignore slower requests"),
    flag("batch", 'B', "print one raw line of numbers at the end"),
    PingOption {
        long: "time",
        short: Some('I'),
        takes: ValueUse::Glued,
        value: "FORMAT",
        help: "print the time before each line (-I%T)",
    },
    flag("json", 'J', "print a JSON array"),
    valued("print-count", 'p', "COUNT", "print a raw line every COUNT requests"),
    valued("print-interval", 'P', "TIME", "print a raw line every TIME"),
    flag("quiet", 'q', "omit the line per request"),
    flag("help", 'h', "print this help"),
    flag("version", 'v', "print the version"),
];

/// What `fathom ping` has beyond them; a long `--json` is its own document there, `-J` stays ioping's, and so does `-k` where a
/// long `--keep` keeps the run.
const OWN: &[PingOption] = &[
    ours("json", "", "print one JSON document (fathom.ping/1) only"),
    ours("format", "FORMAT", "print a report only: text, markdown, csv, jsonl, json [default: text]"),
    ours("units", "UNITS", "units of the report: iec (MiB/s) or si (MB/s) [default: iec]"),
    ours("events", "", "print a line of JSON per request, stall and period, and a summary"),
    ours("tui", "", "show a full-screen view while it runs; press ? for its keys"),
    ours(
        "live",
        "STREAM",
        "stream live figures: ndjson[=FILE], openmetrics[=ADDR:PORT[,NAME...]] (repeatable)",
    ),
    ours("buffered", "", "use the page cache instead of direct I/O"),
    ours("engine", "NAME", "I/O engine: io_uring, libaio, psync, ... [default: io_uring if direct]"),
    ours("schedule", "fixed", "issue requests at fixed times and measure latency from them"),
    ours("slo", "P<TIME", "latency objective such as 'p99<5ms,max<1s'; exit 3 if missed"),
    ours("strict", "", "exit 4 if an objective is inconclusive and none is missed"),
    ours("timeout", "TIME", "count slower requests as timed out [default: 10s]"),
    ours("keep", "", "keep the run in the history; --history and FATHOM_HISTORY imply it"),
    ours(
        "history",
        "FILE|URI",
        "keep the run in this file or server [default: FATHOM_HISTORY, else the user's own]",
    ),
    ours("label", "NAME=VALUE", "label of the run (repeatable)"),
    ours("tag", "NAME", "tag of the run (repeatable)"),
    ours("fleet", "", "join the job that a launcher (srun, mpiexec, mpirun) started; rank 0 reports"),
    ours("fleet-out", "DIR", "write the record of each rank to DIR/rank-NNNNN.json"),
    ours("fleet-join", "TIME", "longest wait for all ranks to come [default: 60s]"),
    ours("fleet-prepare", "TIME", "longest wait for all ranks to be ready [default: 30min]"),
    ours("fleet-grace", "TIME", "longest wait for other ranks beyond -w [default: 30s]"),
    ours("fleet-start", "HOW", "start at a barrier, or at an instant of the clock: barrier, clock"),
    ours("catalog", "FILE", "additional volume types for sim: targets [default: FATHOM_CATALOG]"),
    ours("destroy-data", "DEVICE", "allow writes to this target, a device or file; destroys its data"),
];

/// The options of a front.
pub fn rows(front: PingProgram) -> Vec<PingOption> {
    match front {
        PingProgram::Ioping => IOPING.to_vec(),
        PingProgram::Own => {
            let theirs = IOPING.iter().map(|row| match row.long {
                "json" => PingOption { long: "ioping-json", help: "print ioping's JSON array", ..*row },
                "keep" => PingOption { long: "keep-file", ..*row },
                _ => *row,
            });
            theirs.chain(OWN.iter().copied()).collect()
        }
    }
}
