//! What `ping` says beyond ioping's text: where requests were answered, percentiles, a histogram, failures, objectives. Pure.

use std::io;

use fathom_analysis::criterion::CriterionVerdict;
use fathom_analysis::ping::classes::LatencyClass;
use fathom_analysis::ping::{Note, Ping, PingSample, PingTarget};
use fathom_model::units::{grouped, latency};

use crate::{Style, TextWriter, ioping};

/// The line of one request, without its end: ioping's, then where it was answered.
pub fn line(place: &PingTarget, sample: &PingSample, note: Option<Note>, style: &Style) -> String {
    let asked = PingSample { result: i64::from(sample.size_bytes), ..*sample };
    if sample.result < 0 && note.is_none() {
        let line = ioping::line(place, &asked, None);
        let until = line.rfind(" time=").unwrap_or(line.len());
        return style.red(&format!("{} failed: {}", &line[..until], error(-sample.result as i32)));
    }
    let line = ioping::line(place, sample, None);
    let late = sample.response_ns.map(|ns| format!(" response={}", ioping::time(ns))).unwrap_or_default();
    let note = note.map(|note| format!(" ({})", note.words())).unwrap_or_default();
    let served = sample.served.map(|served| format!("  {}", style.dim(served.word()))).unwrap_or_default();
    format!("{line}{late}{note}{served}")
}

/// What the system calls an error, without its number.
pub fn error(errno: i32) -> String {
    let text = io::Error::from_raw_os_error(errno).to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Everything at the end that ioping does not say.
///
/// # Errors
/// Those of `out`.
pub fn summary(ping: &Ping, style: &Style, out: &mut TextWriter) -> io::Result<()> {
    let result = &ping.result;
    if result.lat_ns.samples() > 0 {
        percentiles(ping, style, out)?;
        bars(&result.histogram, style, out)?;
    }
    let notes = notes(ping);
    if !notes.is_empty() {
        writeln!(out)?;
    }
    notes.iter().try_for_each(|note| writeln!(out, "{note}"))?;
    for verdict in &ping.slo {
        let observed = verdict.observed_ns.map_or("none such".to_owned(), latency);
        let word = verdict.verdict.name();
        let word = match verdict.verdict {
            CriterionVerdict::Met => word.to_owned(),
            CriterionVerdict::Missed => style.red(word),
            CriterionVerdict::Inconclusive => format!("{word} (no I/O was made)"),
        };
        let thin = if verdict.low_sample { " (few samples)" } else { "" };
        writeln!(out, "objective {}: {word}, measured {observed}{thin}", verdict.objective)?;
    }
    Ok(())
}

fn percentiles(ping: &Ping, style: &Style, out: &mut TextWriter) -> io::Result<()> {
    let columns = ["min", "p50", "p90", "p95", "p99", "p99.9", "max", "mean"];
    let head: String = columns.iter().map(|name| format!("{name:>8}")).collect();
    writeln!(out)?;
    writeln!(out, "{}", style.bold(&format!("{:9}{head}", "")))?;
    let rows = [("time", Some(&ping.result.lat_ns)), ("response", ping.result.response_ns.as_ref())];
    for (name, record) in rows.into_iter().filter_map(|(name, record)| Some((name, record?))) {
        let summary = record.summary();
        let mean = summary.mean.map(|mean| mean.round() as u64);
        let cells = [
            summary.min,
            summary.p50,
            summary.p90,
            summary.p95,
            summary.p99,
            summary.p999,
            summary.max,
            mean,
        ];
        let cells: String =
            cells.iter().map(|cell| format!("{:>8}", cell.map_or("-".to_owned(), latency))).collect();
        writeln!(out, "{name:9}{cells}")?;
    }
    Ok(())
}

fn bars(classes: &[LatencyClass], style: &Style, out: &mut TextWriter) -> io::Result<()> {
    let most = classes.iter().map(|class| class.samples).max().unwrap_or(0).max(1);
    let all = classes.iter().map(|class| class.samples).sum::<u64>().max(1);
    let width = style.width.saturating_sub(42).clamp(10, 60) as u64;
    writeln!(out)?;
    for &LatencyClass { from_ns, below_ns, samples: count } in classes {
        let bar = "#".repeat((count * width).div_ceil(most) as usize);
        let range = format!("{:>6} - {:<6}", short(from_ns), short(below_ns));
        let share = count as f64 * 100.0 / all as f64;
        writeln!(out, "  {range} {:>11} {share:>6.2} %  {bar}", grouped(count))?;
    }
    Ok(())
}

/// A bound of a class: `500us`.
fn short(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns}ns"),
        1_000..1_000_000 => format!("{}us", ns / 1_000),
        1_000_000..1_000_000_000 => format!("{}ms", ns / 1_000_000),
        _ => format!("{}s", ns / 1_000_000_000),
    }
}

/// What is to be said where a request had no answer to the end.
pub fn stuck(thread: u32) -> String {
    format!(
        "the last request was never answered: thread {thread} is left in the kernel until the device answers"
    )
}

const EINVAL: i32 = 22;
/// Below so many requests the kernel's counters say nothing.
const FEW: u64 = 10;

fn notes(ping: &Ping) -> Vec<String> {
    let counts = &ping.result.counts;
    let mut notes = Vec::new();
    let answered = [
        ("device", counts.served.device),
        ("cache", counts.served.cache),
        ("a hole in the file", counts.served.hole),
    ];
    let answered: Vec<String> = answered
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(what, count)| format!("{} by {what}", grouped(*count)))
        .collect();
    if !answered.is_empty() {
        let first = counts.first_ns.map(|ns| format!("; the first took {}", latency(ns))).unwrap_or_default();
        notes.push(format!("answered: {}{first}", answered.join(", ")));
    }
    if counts.served.cache > 0 {
        notes.push("cache: this machine's memory answered, so these are no times of the device".to_owned());
    }
    if counts.served.hole > 0 {
        notes.push("hole: nothing was ever written there, so no device was asked".to_owned());
    }
    if let Some(device) = &ping.device_counts {
        let seen = device.reads + device.writes;
        if counts.served.device >= FEW && seen * 2 < counts.served.device {
            notes.push(format!(
                "cache-served: {} requests went past our cache, but the kernel counted only {} at {}",
                grouped(counts.served.device),
                grouped(seen),
                device.name
            ));
        }
    }
    for (errno, count) in &counts.errors_by_errno {
        notes.push(format!(
            "errors: {} of {} requests: {}",
            grouped(*count),
            grouped(counts.requests),
            error(*errno)
        ));
    }
    if counts.timeouts > 0 {
        notes.push(format!("timed out: {}", grouped(counts.timeouts)));
    }
    if counts.stall_count > 0 {
        let longest = counts.stalls.iter().map(|stall| stall.length_ns).max().unwrap_or(0);
        notes.push(format!(
            "stalled: {} times, {} at the longest",
            grouped(counts.stall_count),
            latency(longest)
        ));
    }
    notes.extend(ping.stuck_thread.map(stuck));
    if ping.how.direct && counts.errors_by_errno.contains_key(&EINVAL) {
        notes.push("hint: direct I/O wants whole sectors: use -s 4k, or --buffered".to_owned());
    }
    notes.extend(ping.how.notes.iter().cloned());
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_short() {
        assert_eq!(
            (short(500), short(2_000), short(5_000_000_000)),
            ("500ns".into(), "2us".into(), "5s".into())
        );
    }

    #[test]
    fn lines_say_where_and_how_late() {
        let place = PingTarget {
            path: "f".to_owned(),
            fs_type: "xfs".to_owned(),
            device: "/dev/vdb".to_owned(),
            device_size_bytes: 1 << 30,
            ..PingTarget::default()
        };
        let sample = PingSample {
            request: 2,
            operation: fathom_model::Op::Read,
            offset_bytes: 0,
            size_bytes: 4096,
            result: 4096,
            lat_ns: 91_200,
            response_ns: Some(120_000),
            served: Some(fathom_analysis::ping::ServedBy::Device),
            elapsed_ns: 0,
        };
        let check = |sample: PingSample, note: Option<Note>, expected: &str| {
            let head = "4 KiB <<< f (xfs /dev/vdb 1 GiB): request=2 ";
            assert_eq!(line(&place, &sample, note, &Style::default()), format!("{head}{expected}"));
        };
        check(sample, Some(Note::Warmup), "time=91.2 us response=120 us (warmup)  device");
        check(PingSample { response_ns: None, served: None, ..sample }, None, "time=91.2 us");
        check(PingSample { result: -5, ..sample }, None, "failed: Input/output error");
    }

    #[test]
    fn errors_are_said_in_words() {
        assert_eq!(error(5), "Input/output error");
    }
}
