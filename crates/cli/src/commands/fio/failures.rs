//! Why jobs failed, on standard error.

use fathom_model::RunPlan;
use fathom_stats::{RunOutcome, VerifyOutcome};

use crate::output;

/// A failed job ends with a code that is not 0, so standard error may say why.
pub(super) fn tell_failures(outcome: &RunOutcome, plan: &RunPlan) {
    for worker in &outcome.workers {
        let job = plan.jobs.get(worker.job).map_or("", |job| job.name.as_str());
        if let Some(problem) = worker.verified.as_ref().and_then(|verified| verified.unsaved.as_ref()) {
            output::warn(&format!("fio: {job}: {problem}"));
        }
        if let Some(verified) = worker.verified.as_ref().filter(|verified| verified.bad > 0) {
            tell_bad_blocks(job, verified);
            continue;
        }
        let Some(failure) = &worker.failure else { continue };
        output::warn(&format!("fio: {job}: {}", failure.message));
        if let Some(hint) = &failure.hint {
            output::warn(hint);
        }
    }
}

/// What is wrong with blocks that were read, in fio's words, and how many there are.
fn tell_bad_blocks(job: &str, verified: &VerifyOutcome) {
    for bad in &verified.first_bad {
        bad.problem.iter().for_each(|line| output::warn(line));
        bad.dumps.iter().for_each(|line| output::warn(&format!("       {line}")));
    }
    let VerifyOutcome { checked, bad, first_bad, .. } = verified;
    let rest = match bad - first_bad.len() as u64 {
        0 => String::new(),
        rest => format!(", {rest} of them not listed"),
    };
    output::warn(&format!(
        "fio: {job}: {} in {}{rest}",
        counted(*bad, "bad part"),
        counted(*checked, "checked block")
    ));
}

fn counted(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        assert_eq!(
            (counted(1, "bad part").as_str(), counted(2, "bad part").as_str()),
            ("1 bad part", "2 bad parts")
        );
    }
}
