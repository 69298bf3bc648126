//! Options about the start, pauses, rates, end and order of jobs.

use fathom_model::OptionValueKind::{Choice, Int, Micros, Seconds, Size, Text};
use fathom_model::plan::{ExitScope, OnError};
use fathom_model::{Nanos, PerOp, RateProcess};

use super::{ANY, JobOption, count, flag, int, micros, per_op, row, seconds, set, size, switch};
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

/// Stores the rates of the operations.
fn rates(rates: &mut PerOp<Option<u64>>, text: &str) -> Result<(), String> {
    per_op(rates, text, "a rate is needed", |entry| value::integer_in(entry, 0, i64::MAX as u64).map(Some))
}

pub(super) const ROWS: &[JobOption] = &[
    seconds("runtime", |options, time| {
        options.plan.time.runtime = Some(time).filter(|time| *time > Nanos::ZERO)
    })
    .aliases(&["timeout"])
    .doc("Stop after this time (plain number: seconds); 0 means no time limit."),
    flag("time_based", |options, on| options.plan.time.time_based = on)
        .doc("Repeat the same range until runtime ends."),
    seconds("ramp_time", |options, time| options.plan.time.ramp = time)
        .doc("Run this long before the measured part (plain number: seconds), in addition to runtime."),
    size("ramp_size", 1..=u64::MAX, |options, number| options.plan.time.ramp_bytes = number)
        .doc("Move this many bytes before the measured part, checked every millisecond."),
    row("startdelay", Seconds, |options, text| {
        value::seconds_range(text).map(|delay| options.plan.time.start_delay = delay)
    })
    .default("0")
    .doc(
        "Wait this long before the start (plain number: seconds), or a time drawn from a range such \
              as 1-5.",
    ),
    micros("thinktime", |options, pause| options.plan.time.think_time.pause = pause)
        .doc("Pause this long between requests (plain number: microseconds)."),
    count("thinktime_blocks", 1, |options, count| options.plan.time.think_time.blocks = Some(count))
        .default("1")
        .doc("Requests between two pauses of thinktime."),
    seconds("thinktime_iotime", |options, time| options.plan.time.think_time.io_time = time).doc(
        "Time of issuing between two pauses of thinktime, or until thinktime_blocks if that is \
              reached first.",
    ),
    micros("thinktime_spin", |options, spin| options.plan.time.think_time.spin = spin)
        .doc("Part of thinktime that keeps the CPU busy instead of sleeping (plain number: microseconds)."),
    int("thinkcycles", ANY, |options, cycles| options.plan.time.think_time.cycles = cycles).default("0").doc(
        "Cycles of the CPU's time stamp counter that a job keeps the CPU busy between a completion \
              and the next request.",
    ),
    switch("rate_ignore_thinktime", |options, delays| options.plan.time.think_time.delays_rate = delays)
        .doc("Delay the schedule of a rate by each pause of thinktime instead of catching up after it."),
    row("rate", Size, |options, text| rates(&mut options.rate, text)).default("0").doc(
        "Bytes per second to issue, independent of the speed of the target: one rate, or \
              read,write,trim.",
    ),
    row("rate_iops", Int, |options, text| rates(&mut options.rate_iops, text)).default("0").doc(
        "Requests per second to issue, independent of the speed of the target: one rate, or \
              read,write,trim.",
    ),
    row("rate_process", Choice(&["linear", "poisson"]), |options, text| {
        set(&mut options.rate_process, value::choice(text, &PROCESS))
    })
    .default("linear")
    .doc("Whether the requests of a rate are evenly spaced or random (a Poisson process)."),
    flag("stonewall", |options, on| options.stonewall = Some(on))
        .aliases(&["wait_for_previous"])
        .doc("Wait until all earlier jobs have ended, and start a new reporting group."),
    flag("exitall", |options, on| options.plan.exit_all = on)
        .doc("Stop the other jobs when the first one ends."),
    flag("exitall_on_error", |options, given| options.plan.end.exit_on_error = given)
        .doc("Stop the other jobs when one fails."),
    row("exit_what", Choice(&["group", "stonewall", "all"]), |options, text| {
        value::choice(text, &EXIT_WHAT).map(|scope| options.plan.end.exit_scope = scope)
    })
    .default("group")
    .doc(
        "The jobs that exitall and exitall_on_error stop: those of the reporting group, all that \
              run, or all of the run.",
    ),
    row("wait_for", Text, |options, text| match text {
        "" => Err("the name of a job is needed".to_owned()),
        name => set(&mut options.wait_for, Ok(name.to_owned())),
    })
    .doc("Start when all clones of this earlier job have ended."),
    row("max_latency", Micros, |options, text| {
        per_op(&mut options.plan.end.max_latency, text, "", |entry| {
            value::micros(entry).map(|limit| Some(limit).filter(|limit| limit.0 > 0))
        })
    })
    .default("0")
    .doc(
        "A request that takes longer ends the job with an error (plain number: microseconds): one \
              time, or read,write,trim.",
    ),
    row("ignore_error", Text, |options, text| {
        if text.trim().is_empty() {
            return Err("errors are needed, for example ENOSPC:EIO".to_owned());
        }
        let lists = text.split(',').map(crate::errno::list).collect::<Result<Vec<_>, _>>()?;
        let mut lists = lists.into_iter();
        options.plan.end.ignored_of_reads = lists.next().unwrap_or_default();
        options.plan.end.ignored_of_writes = lists.next().unwrap_or_default();
        match lists.next() {
            Some(of_verify) if !of_verify.is_empty() => {
                Err("the third list, errors of verify, is not supported".to_owned())
            }
            _ => Ok(()),
        }
    })
    .doc(
        "Errors after which the job continues, as names or numbers separated by colons: those of \
              reads, of writes.",
    ),
    row(
        "continue_on_error",
        Choice(&["none", "read", "write", "io", "verify", "all", "0", "1"]),
        |options, text| {
            let going_on: OnError = value::choice(text, &CONTINUE)?;
            // As in fio, where a list of errors continues, and the last of both options decides.
            if !going_on.continue_read {
                options.plan.end.ignored_of_reads.clear();
            }
            if !going_on.continue_write {
                options.plan.end.ignored_of_writes.clear();
            }
            options.plan.on_error = going_on;
            Ok(())
        },
    )
    .default("none")
    .doc("Failed requests, and blocks with wrong data, that do not end the job."),
];
