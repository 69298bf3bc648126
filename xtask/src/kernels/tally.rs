//! The counts of the campaign: a row for each kernel and stack.

use std::fmt;

use super::check_line::{CheckKind, CheckLine};

/// The counts of a stack under a kernel.
struct TallyRow {
    kernel: &'static str,
    stack: String,
    commands: usize,
    refusals: usize,
    writes: usize,
    failures: Vec<String>,
}

/// All counts.
#[derive(Default)]
pub struct Tally {
    rows: Vec<TallyRow>,
    broken_off: Vec<String>,
}

impl Tally {
    /// Counts a check.
    pub fn add(&mut self, kernel: &'static str, line: &CheckLine) {
        let is_its = |row: &TallyRow| row.kernel == kernel && row.stack == line.stack;
        let index = self.rows.iter().position(is_its).unwrap_or_else(|| {
            let (stack, failures) = (line.stack.clone(), Vec::new());
            self.rows.push(TallyRow { kernel, stack, commands: 0, refusals: 0, writes: 0, failures });
            self.rows.len() - 1
        });
        let row = &mut self.rows[index];
        match (&line.failure, line.kind) {
            (Some(failure), _) => row.failures.push(format!("{}: {failure}", line.name)),
            (None, CheckKind::Command) => row.commands += 1,
            (None, CheckKind::Refusal) => row.refusals += 1,
            (None, CheckKind::Write) => row.writes += 1,
        }
    }

    /// Notes that a guest did not come to its end.
    pub fn break_off(&mut self, kernel: &str, why: &str) {
        self.broken_off.push(format!("kernel {kernel}: {why}"));
    }

    /// Whether everything held, and there was something to hold.
    pub fn holds(&self) -> bool {
        !self.rows.is_empty()
            && self.broken_off.is_empty()
            && self.rows.iter().all(|row| row.failures.is_empty())
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Kernels run at once; a stable sort keeps the order of the stacks.
        let mut rows: Vec<&TallyRow> = self.rows.iter().collect();
        rows.sort_by_key(|row| row.kernel);
        for row in &rows {
            for failure in &row.failures {
                writeln!(f, "FAILED on {} under {}: {failure}", row.stack, row.kernel)?;
            }
        }
        writeln!(f, "kernel  stack            commands  refused  written  failed")?;
        for TallyRow { kernel, stack, commands, refusals, writes, failures } in rows {
            let failed = failures.len();
            writeln!(f, "{kernel:<7} {stack:<16} {commands:>8} {refusals:>8} {writes:>8} {failed:>7}")?;
        }
        self.broken_off.iter().try_for_each(|why| writeln!(f, "ENDED EARLY: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(kind: CheckKind, failure: Option<&str>) -> CheckLine {
        let failure = failure.map(str::to_owned);
        CheckLine { stack: "nvme".to_owned(), kind, name: "bench".to_owned(), failure }
    }

    #[test]
    fn a_failure_or_a_guest_that_ended_early_does_not_hold() {
        let mut tally = Tally::default();
        assert!(!tally.holds());
        tally.add("6.1", &line(CheckKind::Command, None));
        tally.add("6.1", &line(CheckKind::Refusal, None));
        tally.add("6.12", &line(CheckKind::Write, None));
        assert!(tally.holds());
        assert!(tally.to_string().contains("6.1     nvme                    1        1        0       0\n"));
        tally.add("6.12", &line(CheckKind::Command, Some("exit code 101")));
        assert!(
            !tally.holds() && tally.to_string().contains("FAILED on nvme under 6.12: bench: exit code 101")
        );
        let mut tally = Tally::default();
        tally.add("6.1", &line(CheckKind::Command, None));
        tally.break_off("6.1", "it panicked");
        assert!(!tally.holds());
    }
}
