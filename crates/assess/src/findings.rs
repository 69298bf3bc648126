//! The findings on a run, by the rules of its command; also on one that goes on.

use fathom_analysis::{prepare, surface, sweep};
use fathom_record::{ActivityKind, Finding, RunRecord, Severity};

/// What the tests of `record` tell.
pub fn findings_of(record: &RunRecord) -> Vec<Finding> {
    match record.header.activity.kind() {
        ActivityKind::Sweep => sweep::findings(record),
        ActivityKind::Surface => surface::findings::findings(record, &surface::assess(record)),
        ActivityKind::Prepare => prepare::findings(record),
        ActivityKind::Identify => {
            // Probes are short, and go past every limit on purpose: what a single one suffers from counts, not what it is.
            let mut found = fathom_analysis::findings(record);
            found.retain(|finding| finding.severity >= Severity::Error);
            found
        }
        _ => fathom_analysis::findings(record),
    }
}
