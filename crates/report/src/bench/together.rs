//! What `bench` says of several targets: what they do apart, what together, and whether they share a limit.

use fathom_analysis::together::{TargetSharing, Together, together};
use fathom_record::RunRecord;

use crate::view::{Block, KeyFigure, iops_text};

/// What each test says of several targets; nothing of one.
pub(super) fn figures(record: &RunRecord) -> Block {
    let figure = |found: Together| KeyFigure::new(found.test.trim_end_matches("-together"), sentence(&found));
    Block::KeyFigures(together(record).into_iter().map(figure).collect())
}

fn sentence(found: &Together) -> String {
    let verdict = match found.verdict {
        TargetSharing::SharesLimit => "shared limit",
        TargetSharing::Independent => "independent",
        TargetSharing::Inconclusive => "inconclusive",
    };
    let apart: Vec<String> = found
        .targets
        .iter()
        .zip(&found.iops_apart)
        .map(|(target, iops)| format!("{target} {}", iops_text(*iops)))
        .collect();
    let percent = |share: f64| format!("{:.0}", share * 100.0);
    let interval = found
        .ratio
        .low
        .zip(found.ratio.high)
        .map(|(low, high)| format!(" ({}-{})", percent(low), percent(high)));
    let why = found.reason.map(|why| format!(": {why}")).unwrap_or_default();
    format!(
        "{verdict}{why}. {} IOPS separately; {} IOPS together, {}{} % of the sum.",
        apart.join(" and "),
        iops_text(found.iops_together),
        percent(found.ratio.value),
        interval.unwrap_or_default()
    )
}
