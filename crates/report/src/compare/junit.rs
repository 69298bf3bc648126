//! The results of `--fail-if` as JUnit XML, which build servers show.

use fathom_analysis::compare::VolumeComparison;
use fathom_analysis::compare::gate::{GateResult, GateVerdict};

use crate::xml::escaped;

/// The file: a test case for each condition, test and source. An inconclusive one is skipped, or fails where `is_strict`.
pub fn render(comparison: &VolumeComparison, is_strict: bool) -> String {
    let all = &comparison.conditions;
    let is_failed = |one: &&GateResult| match one.verdict {
        GateVerdict::Failed => true,
        GateVerdict::Inconclusive => is_strict,
        GateVerdict::Passed => false,
    };
    let failures = all.iter().filter(is_failed).count();
    let skipped = all.iter().filter(|one| one.verdict == GateVerdict::Inconclusive && !is_strict).count();
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let counts =
        format!("tests=\"{}\" failures=\"{failures}\" skipped=\"{skipped}\" errors=\"0\"", all.len());
    text.push_str(&format!("<testsuites {counts}>\n<testsuite name=\"fathom compare\" {counts}>\n"));
    for one in all {
        text.push_str(&case(one, is_strict));
    }
    text.push_str("</testsuite>\n</testsuites>\n");
    text
}

fn case(one: &GateResult, is_strict: bool) -> String {
    let reason = one.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let value = if one.text.is_empty() { String::new() } else { format!("{}, ", one.text) };
    let message = escaped(&format!("{value}{}{reason}", one.verdict.name()));
    let result = match one.verdict {
        GateVerdict::Passed => format!("<system-out>{message}</system-out>"),
        GateVerdict::Inconclusive if !is_strict => format!("<skipped message=\"{message}\"/>"),
        GateVerdict::Failed | GateVerdict::Inconclusive => {
            format!("<failure type=\"{}\" message=\"{message}\"/>", one.verdict.name())
        }
    };
    let (test, name) = (escaped(&one.test), escaped(&format!("{} ({})", one.condition, one.source)));
    format!("<testcase classname=\"{test}\" name=\"{name}\">{result}</testcase>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(verdict: GateVerdict) -> GateResult {
        GateResult {
            condition: "t.iops < 0.95".to_owned(),
            test: "<t>".to_owned(),
            source: "B",
            value: Some(0.9),
            low: None,
            high: None,
            verdict,
            reason: (verdict == GateVerdict::Inconclusive).then(|| "one run & no interval".to_owned()),
            text: "0.90".to_owned(),
        }
    }

    #[test]
    fn each_condition_is_a_test_case() {
        let verdicts = [GateVerdict::Failed, GateVerdict::Passed, GateVerdict::Inconclusive];
        let comparison =
            VolumeComparison { conditions: verdicts.map(condition).to_vec(), ..VolumeComparison::default() };
        let text = render(&comparison, false);
        for part in [
            "<testsuite name=\"fathom compare\" tests=\"3\" failures=\"1\" skipped=\"1\" errors=\"0\">",
            "<testcase classname=\"&lt;t&gt;\" name=\"t.iops &lt; 0.95 (B)\"><failure type=\"failed\" message=\"0.90, failed\"/>",
            "<skipped message=\"0.90, inconclusive: one run &amp; no interval\"/>",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(render(&comparison, true).contains("failures=\"2\" skipped=\"0\""));
    }
}
