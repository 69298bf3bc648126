//! What `bench` says of several targets: what they do apart, what together, and whether they share a limit.

use fathom_analysis::together::{TargetSharing, Together, together};
use fathom_record::RunRecord;
use serde::Serialize;

use crate::view::{Block, KeyFigure, iops_text};

/// One test on all targets, in JSON.
#[derive(Serialize)]
pub(crate) struct TogetherDocument {
    test: String,
    apart: Vec<String>,
    targets: Vec<String>,
    iops_apart: Vec<f64>,
    iops_together: f64,
    /// Together as a share of the sum apart.
    ratio: RatioDocument,
    verdict: &'static str,
    reason: Option<&'static str>,
}

/// An estimate; its ends are null where the runs are too short for them.
#[derive(Serialize)]
struct RatioDocument {
    value: f64,
    low: Option<f64>,
    high: Option<f64>,
}

pub(crate) fn documents(record: &RunRecord) -> Vec<TogetherDocument> {
    let document = |found: Together| TogetherDocument {
        ratio: RatioDocument {
            value: found.ratio,
            low: found.interval.map(|(low, _)| low),
            high: found.interval.map(|(_, high)| high),
        },
        verdict: found.sharing.name(),
        reason: found.why,
        test: found.test,
        apart: found.apart,
        targets: found.targets,
        iops_apart: found.iops_apart,
        iops_together: found.iops_together,
    };
    together(record).into_iter().map(document).collect()
}

/// What each test says of several targets; nothing of one.
pub(super) fn figures(record: &RunRecord) -> Block {
    let figure = |found: Together| KeyFigure::new(found.test.trim_end_matches("-together"), sentence(&found));
    Block::KeyFigures(together(record).into_iter().map(figure).collect())
}

fn sentence(found: &Together) -> String {
    let verdict = match found.sharing {
        TargetSharing::SharesLimit => "shared limit",
        TargetSharing::Independent => "independent",
        TargetSharing::Undecided => "inconclusive",
    };
    let apart: Vec<String> = found
        .targets
        .iter()
        .zip(&found.iops_apart)
        .map(|(target, iops)| format!("{target} {}", iops_text(*iops)))
        .collect();
    let percent = |share: f64| format!("{:.0}", share * 100.0);
    let interval = found.interval.map(|(low, high)| format!(" ({}-{})", percent(low), percent(high)));
    let why = found.why.map(|why| format!(": {why}")).unwrap_or_default();
    format!(
        "{verdict}{why}. {} IOPS separately; {} IOPS together, {}{} % of the sum.",
        apart.join(" and "),
        iops_text(found.iops_together),
        percent(found.ratio),
        interval.unwrap_or_default()
    )
}
