//! Options about the start, pauses, rates, end and order of jobs.

use fathom_model::plan::{ExitScope, OnError};
use fathom_model::{Op, OptionRow, OptionValueKind, PerOp, RateProcess};

use super::set;
use crate::job_options::JobOptions;
use crate::value;

const fn going_on(continue_read: bool, continue_write: bool, continue_verify: bool) -> OnError {
    OnError { continue_read, continue_write, continue_verify }
}

const CONTINUE: [(&str, OnError); 8] = [
    ("none", going_on(false, false, false)),
    ("read", going_on(true, false, false)),
    ("write", going_on(false, true, false)),
    ("io", going_on(true, true, false)),
    ("verify", going_on(false, false, true)),
    ("all", going_on(true, true, true)),
    ("0", going_on(false, false, false)),
    ("1", going_on(true, true, true)),
];

const PROCESS: [(&str, RateProcess); 2] =
    [("linear", RateProcess::Linear), ("poisson", RateProcess::Poisson)];

const EXIT_WHAT: [(&str, ExitScope); 3] =
    [("group", ExitScope::Group), ("stonewall", ExitScope::Stonewall), ("all", ExitScope::All)];

/// Parses the rates of the operations.
fn rates(rates: &mut PerOp<Option<u64>>, text: &str) -> Result<(), String> {
    let entries = value::per_operation(text)?;
    if entries == [None; 3] {
        return Err("a rate is needed".to_owned());
    }
    let mut read = *rates;
    for (op, entry) in Op::DATA.into_iter().zip(entries) {
        if let Some(entry) = entry {
            read[op] = Some(value::integer_in(entry, 0, i64::MAX as u64)?);
        }
    }
    *rates = read;
    Ok(())
}

/// The rows of this category.
pub(super) const ROWS: &[OptionRow<JobOptions>] = &[
    OptionRow {
        name: "runtime",
        aliases: &["timeout"],
        kind: OptionValueKind::Seconds,
        default: "0",
        doc: "Stop after this time (plain number: seconds); 0 means no time limit.",
        apply: |options, text| set(&mut options.runtime, value::seconds(text)),
    },
    OptionRow {
        name: "time_based",
        aliases: &[],
        kind: OptionValueKind::Flag,
        default: "0",
        doc: "Repeat the same range until runtime ends.",
        apply: |options, text| set(&mut options.time_based, value::boolean(text)),
    },
    OptionRow {
        name: "ramp_time",
        aliases: &[],
        kind: OptionValueKind::Seconds,
        default: "0",
        doc: "Run this long before the measured part (plain number: seconds), in addition to runtime.",
        apply: |options, text| set(&mut options.ramp_time, value::seconds(text)),
    },
    OptionRow {
        name: "ramp_size",
        aliases: &[],
        kind: OptionValueKind::Size,
        default: "",
        doc: "Move this many bytes before the measured part, checked every millisecond.",
        apply: |options, text| set(&mut options.ramp_size, value::integer_in(text, 1, u64::MAX)),
    },
    OptionRow {
        name: "startdelay",
        aliases: &[],
        kind: OptionValueKind::Seconds,
        default: "0",
        doc: "Wait this long before the start (plain number: seconds), or a time drawn from a range such as 1-5.",
        apply: |options, text| set(&mut options.startdelay, value::seconds_range(text)),
    },
    OptionRow {
        name: "thinktime",
        aliases: &[],
        kind: OptionValueKind::Micros,
        default: "0",
        doc: "Pause this long between requests (plain number: microseconds).",
        apply: |options, text| value::micros(text).map(|pause| options.think_time.pause = pause),
    },
    OptionRow {
        name: "thinktime_blocks",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "1",
        doc: "Requests between two pauses of thinktime.",
        apply: |options, text| set(&mut options.think_time.blocks, value::count(text, 1)),
    },
    OptionRow {
        name: "thinktime_iotime",
        aliases: &[],
        kind: OptionValueKind::Seconds,
        default: "0",
        doc: "Time of issuing between two pauses of thinktime, or until thinktime_blocks if that is reached first.",
        apply: |options, text| value::seconds(text).map(|time| options.think_time.io_time = time),
    },
    OptionRow {
        name: "thinktime_spin",
        aliases: &[],
        kind: OptionValueKind::Micros,
        default: "0",
        doc: "Part of thinktime that keeps the CPU busy instead of sleeping (plain number: microseconds).",
        apply: |options, text| value::micros(text).map(|spin| options.think_time.spin = spin),
    },
    OptionRow {
        name: "thinkcycles",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "0",
        doc: "Cycles of the CPU's time stamp counter that a job keeps the CPU busy between a completion and the next request.",
        apply: |options, text| value::integer(text).map(|cycles| options.think_time.cycles = cycles),
    },
    OptionRow {
        name: "rate_ignore_thinktime",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "Delay the schedule of a rate by each pause of thinktime instead of catching up after it.",
        apply: |options, text| value::boolean(text).map(|delays| options.think_time.delays_rate = delays),
    },
    OptionRow {
        name: "rate",
        aliases: &[],
        kind: OptionValueKind::Size,
        default: "0",
        doc: "Bytes per second to issue, independent of the speed of the target: one rate, or read,write,trim.",
        apply: |options, text| rates(&mut options.rate, text),
    },
    OptionRow {
        name: "rate_iops",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "0",
        doc: "Requests per second to issue, independent of the speed of the target: one rate, or read,write,trim.",
        apply: |options, text| rates(&mut options.rate_iops, text),
    },
    OptionRow {
        name: "rate_process",
        aliases: &[],
        kind: OptionValueKind::Choice(&["linear", "poisson"]),
        default: "linear",
        doc: "Whether the requests of a rate are evenly spaced or random (a Poisson process).",
        apply: |options, text| set(&mut options.rate_process, value::choice(text, &PROCESS)),
    },
    OptionRow {
        name: "stonewall",
        aliases: &["wait_for_previous"],
        kind: OptionValueKind::Flag,
        default: "0",
        doc: "Wait until all earlier jobs have ended, and start a new reporting group.",
        apply: |options, text| set(&mut options.stonewall, value::boolean(text)),
    },
    OptionRow {
        name: "exitall",
        aliases: &[],
        kind: OptionValueKind::Flag,
        default: "0",
        doc: "Stop the other jobs when the first one ends.",
        apply: |options, text| set(&mut options.exitall, value::boolean(text)),
    },
    OptionRow {
        name: "exitall_on_error",
        aliases: &[],
        kind: OptionValueKind::Flag,
        default: "0",
        doc: "Stop the other jobs when one fails.",
        apply: |options, text| value::boolean(text).map(|given| options.end.exit_on_error = given),
    },
    OptionRow {
        name: "exit_what",
        aliases: &[],
        kind: OptionValueKind::Choice(&["group", "stonewall", "all"]),
        default: "group",
        doc: "The jobs that exitall and exitall_on_error stop: those of the reporting group, all that run, or all of the run.",
        apply: |options, text| value::choice(text, &EXIT_WHAT).map(|scope| options.end.exit_scope = scope),
    },
    OptionRow {
        name: "wait_for",
        aliases: &[],
        kind: OptionValueKind::Text,
        default: "",
        doc: "Start when all clones of this earlier job have ended.",
        apply: |options, text| match text {
            "" => Err("the name of a job is needed".to_owned()),
            name => set(&mut options.wait_for, Ok(name.to_owned())),
        },
    },
    OptionRow {
        name: "max_latency",
        aliases: &[],
        kind: OptionValueKind::Micros,
        default: "0",
        doc: "A request that takes longer ends the job with an error (plain number: microseconds): one time, or read,write,trim.",
        apply: |options, text| {
            let entries = value::per_operation(text)?;
            for (op, entry) in Op::DATA.into_iter().zip(entries) {
                if let Some(entry) = entry {
                    options.end.max_latency[op] = Some(value::micros(entry)?).filter(|limit| limit.0 > 0);
                }
            }
            Ok(())
        },
    },
    OptionRow {
        name: "ignore_error",
        aliases: &[],
        kind: OptionValueKind::Text,
        default: "",
        doc: "Errors after which the job continues, as names or numbers separated by colons: those of reads, of writes.",
        apply: |options, text| {
            if text.trim().is_empty() {
                return Err("errors are needed, for example ENOSPC:EIO".to_owned());
            }
            let lists = text.split(',').map(crate::errno::list).collect::<Result<Vec<_>, _>>()?;
            let mut lists = lists.into_iter();
            options.end.ignored_of_reads = lists.next().unwrap_or_default();
            options.end.ignored_of_writes = lists.next().unwrap_or_default();
            match lists.next() {
                Some(of_verify) if !of_verify.is_empty() => {
                    Err("the third list, errors of verify, is not supported".to_owned())
                }
                _ => Ok(()),
            }
        },
    },
    OptionRow {
        name: "continue_on_error",
        aliases: &[],
        kind: OptionValueKind::Choice(&["none", "read", "write", "io", "verify", "all", "0", "1"]),
        default: "none",
        doc: "Failed requests, and blocks with wrong data, that do not end the job.",
        apply: |options, text| {
            let going_on: OnError = value::choice(text, &CONTINUE)?;
            // As in fio, where a list of errors continues, and the last of both options decides.
            if !going_on.continue_read {
                options.end.ignored_of_reads.clear();
            }
            if !going_on.continue_write {
                options.end.ignored_of_writes.clear();
            }
            options.continue_on_error = Some(going_on);
            Ok(())
        },
    },
];

#[cfg(test)]
mod tests {
    use fathom_model::Nanos;

    use super::*;

    #[test]
    fn values() {
        let check = |pair, field: fn(&JobOptions) -> bool| {
            assert!(field(&JobOptions::from_pairs(&[pair]).unwrap()), "{pair:?}");
        };
        check(("timeout", "30"), |o| o.runtime == Some(Nanos::from_secs(30)));
        check(("runtime", "5min"), |o| o.runtime == Some(Nanos::from_secs(300)));
        check(("time_based", ""), |o| o.time_based == Some(true));
        check(("ramp_time", "2s"), |o| o.ramp_time == Some(Nanos::from_secs(2)));
        check(("startdelay", "1-2"), |o| o.startdelay == Some((Nanos::from_secs(1), Nanos::from_secs(2))));
        check(("thinktime", "20"), |o| o.think_time.pause == Nanos::from_micros(20));
        check(("thinktime_blocks", "4"), |o| o.think_time.blocks == Some(4));
        check(("thinktime_iotime", "9"), |o| o.think_time.io_time == Nanos::from_secs(9));
        check(("thinktime_iotime", "300ms"), |o| o.think_time.io_time == Nanos::from_millis(300));
        check(("ramp_size", "4m"), |o| o.ramp_size == Some(4 << 20));
        check(("thinkcycles", "900"), |o| o.think_time.cycles == 900);
        check(("rate_ignore_thinktime", "1"), |o| o.think_time.delays_rate);
        check(("rate", "1m,,512k"), |o| (o.rate.read, o.rate.write) == (Some(1 << 20), None));
        check(("rate", ",500k"), |o| (o.rate.read, o.rate.write) == (None, Some(500 << 10)));
        check(("rate_iops", "200"), |o| o.rate_iops == PerOp::splat(Some(200)));
        check(("rate_process", "poisson"), |o| o.rate_process == Some(RateProcess::Poisson));
        check(("wait_for_previous", ""), |o| o.stonewall == Some(true));
        check(("exitall", ""), |o| o.exitall == Some(true));
        check(("continue_on_error", "io"), |o| o.continue_on_error == Some(going_on(true, true, false)));
        let ignored = |pairs: &[(&str, &str)]| {
            let end = JobOptions::from_pairs(pairs).unwrap().end;
            (end.ignored_of_reads, end.ignored_of_writes)
        };
        let (ignore, go_on) = (("ignore_error", "EIO,ENOSPC"), ("continue_on_error", "read"));
        assert_eq!(ignored(&[ignore, go_on]), (vec![5], vec![]));
        assert_eq!(ignored(&[go_on, ignore]), (vec![5], vec![28]));
        for bad in [
            ("runtime", "1m30s"),
            ("runtime", "0.5"),
            ("runtime", ""),
            ("thinktime_blocks", "0"),
            ("continue_on_error", "trim"),
            ("rate", ""),
            ("ignore_error", " "),
            ("ignore_error", "FOO"),
            ("rate", ","),
            ("rate", "fast"),
            ("rate_iops", "1,2,3,4"),
            ("rate_iops", "-1"),
            ("rate_process", "uniform"),
        ] {
            assert!(JobOptions::from_pairs(&[bad]).is_err(), "{bad:?}");
        }
    }
}
