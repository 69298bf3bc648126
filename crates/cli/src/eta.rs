//! fio's progress line: who runs, how far, how fast, how long still.

use fathom_model::{Nanos, RunPlan};
use fathom_report::{Family, NumberUnit, fio_number};
use fathom_stats::Snapshot;

use crate::output;

/// Digits of the rates.
const DIGITS: usize = 4;

/// Prints the line anew as the run goes on.
pub struct EtaLine {
    interval: Nanos,
    newline: Option<Nanos>,
    limits: String,
    shown_at: Option<u64>,
    broken_at: u64,
    length: usize,
}

impl EtaLine {
    /// A line about a run of `plan`, renewed every `interval`, and begun anew every `newline`.
    pub fn new(interval: Nanos, newline: Option<Nanos>, plan: &RunPlan) -> EtaLine {
        EtaLine { interval, newline, limits: limits(plan), shown_at: None, broken_at: 0, length: 0 }
    }

    /// Shows `snapshot` where it is time to.
    pub fn show(&mut self, snapshot: &Snapshot) {
        let now = snapshot.elapsed_ns;
        // Ticks come a little late or early; one that is nearly due counts.
        if self.shown_at.is_some_and(|at| now.saturating_sub(at) + 50_000_000 < self.interval.0) {
            return;
        }
        self.shown_at = Some(now);
        let text = line(snapshot, &self.limits);
        // What a longer line left behind is overwritten.
        let width = self.length.max(text.len());
        let ends = self.newline.is_some_and(|newline| now.saturating_sub(self.broken_at) >= newline.0);
        if ends {
            self.broken_at = now;
        }
        self.length = if ends { 0 } else { text.len() };
        let _ = output::print(|out| match ends {
            true => writeln!(out, "{text:width$}"),
            false => out.passing_line(&text, width),
        });
    }

    /// Leaves the line as it is and goes on below it.
    pub fn finish(&mut self) {
        if self.length > 0 {
            let _ = output::print(|out| writeln!(out));
            self.length = 0;
        }
    }
}

/// The least and greatest rates of the jobs, where their plans limit them: `, 0-500 IOPS`.
fn limits(plan: &RunPlan) -> String {
    let (mut bytes, mut ios) = (0.0_f64, 0.0_f64);
    for job in &plan.jobs {
        let clones = job.clones.len() as f64;
        // The plan counts requests in both cases.
        let is_in_bytes = job.options.iter().chain(&plan.global_options).any(|(name, _)| name == "rate");
        for (op, rate) in job.time.rate.rates.iter().filter_map(|(op, rate)| Some((op, (*rate)?))) {
            let per_second = clones * 1e9 / rate.mean_gap_ns();
            match is_in_bytes {
                true => bytes += per_second * job.io.block_size[op].bytes_of_hundred() as f64 / 100.0,
                false => ios += per_second,
            }
        }
    }
    match (bytes.round() as u64, ios.round() as u64) {
        (0, 0) => String::new(),
        (0, ios) => format!(", 0-{ios} IOPS"),
        (bytes, _) => {
            let most = fio_number(bytes, DIGITS, Family::Binary, NumberUnit::BytesPerSecond);
            format!(", 0B/s-{most}")
        }
    }
}

/// The line without its end.
fn line(snapshot: &Snapshot, limits: &str) -> String {
    let mut text = format!(
        "Jobs: {running} (f={running}){limits}: [{}]",
        states(&snapshot.states),
        running = snapshot.running
    );
    text.push_str(&match percent(snapshot) {
        Some(percent) => format!("[{percent:.1}%]"),
        None => "[-.-%]".to_owned(),
    });
    let used = |index: usize| snapshot.bytes_per_second[index] > 0.0 || snapshot.iops[index] > 0.0;
    let rates = |render: &dyn Fn(usize) -> String| {
        let parts: Vec<String> = ["r", "w", "t"]
            .into_iter()
            .enumerate()
            .filter(|(index, _)| used(*index))
            .map(|(index, letter)| format!("{letter}={}", render(index)))
            .collect();
        parts.join(",")
    };
    if (0..3).any(used) {
        let bandwidth = |index: usize| {
            fio_number(
                snapshot.bytes_per_second[index] as u64,
                DIGITS,
                Family::Binary,
                NumberUnit::BytesPerSecond,
            )
        };
        let iops =
            |index: usize| fio_number(snapshot.iops[index] as u64, DIGITS, Family::Decimal, NumberUnit::None);
        text.push_str(&format!("[{}][{} IOPS]", rates(&bandwidth), rates(&iops)));
    }
    if let Some(left) = snapshot.remaining_ns {
        text.push_str(&format!("[eta {}]", clock(left.div_ceil(1_000_000_000))));
    }
    text
}

/// Runs of the same letter as `R(10)`.
fn states(letters: &str) -> String {
    let mut runs: Vec<(char, usize)> = Vec::new();
    for letter in letters.chars() {
        match runs.last_mut() {
            Some((last, count)) if *last == letter => *count += 1,
            _ => runs.push((letter, 1)),
        }
    }
    let parts: Vec<String> = runs.iter().map(|(letter, count)| format!("{letter}({count})")).collect();
    parts.join(",")
}

fn percent(snapshot: &Snapshot) -> Option<f64> {
    let left = snapshot.remaining_ns?;
    let all = snapshot.elapsed_ns + left;
    (all > 0).then(|| snapshot.elapsed_ns as f64 * 100.0 / all as f64)
}

/// `00m:09s`, `01h:02m:03s`, `2d:03h:04m:05s`.
fn clock(seconds: u64) -> String {
    let (days, hours, minutes, rest) =
        (seconds / 86400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let mut text = String::new();
    if days > 0 {
        text.push_str(&format!("{days}d:"));
    }
    if days > 0 || hours > 0 {
        text.push_str(&format!("{hours:02}h:"));
    }
    text + &format!("{minutes:02}m:{rest:02}s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let mixed = Snapshot {
            elapsed_ns: 3_000_000_000,
            remaining_ns: Some(1_000_000_000),
            iops: [24_900.0, 24_800.0, 0.0],
            bytes_per_second: [97.4 * 1048576.0, 96.8 * 1048576.0, 0.0],
            running: 1,
            workers: 1,
            states: "m".to_owned(),
            ..Snapshot::default()
        };
        assert_eq!(
            line(&mixed, ""),
            "Jobs: 1 (f=1): [m(1)][75.0%][r=97.4MiB/s,w=96.8MiB/s][r=24.9k,w=24.8k IOPS][eta 00m:01s]"
        );
        let idle = Snapshot { running: 2, states: "PPP_r".to_owned(), ..Snapshot::default() };
        assert_eq!(line(&idle, ", 0-9 IOPS"), "Jobs: 2 (f=2), 0-9 IOPS: [P(3),_(1),r(1)][-.-%]");
    }

    #[test]
    fn clocks() {
        for (seconds, expected) in
            [(0, "00m:00s"), (61, "01m:01s"), (3723, "01h:02m:03s"), (183_845, "2d:03h:04m:05s")]
        {
            assert_eq!(clock(seconds), expected);
        }
    }
}
