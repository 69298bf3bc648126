//! What `bench` says of several targets: what they do apart, what together, and whether they share a limit.

use std::io;

use fathom_analysis::together::{TargetSharing, Together, together};
use fathom_record::RunRecord;
use serde::Serialize;

use crate::bench::table::{INDENT, count};
use crate::columns::{self, pad, wrap};
use crate::{Style, TextWriter};

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

/// A line per test, where there are several targets.
pub(crate) fn render(
    record: &RunRecord,
    style: &Style,
    width: usize,
    out: &mut TextWriter,
) -> io::Result<()> {
    let all = together(record);
    if all.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    writeln!(out, "{}", style.bold("Apart and together"))?;
    let label = |found: &Together| found.test.trim_end_matches("-together").to_owned();
    let names = all.iter().map(|found| columns::width(&label(found))).max().unwrap_or(0);
    let indent = INDENT + names + 2;
    for found in &all {
        for (index, line) in wrap(&sentence(found), width, indent, indent).iter().enumerate() {
            let label = if index == 0 { label(found) } else { String::new() };
            writeln!(out, "{:INDENT$}{}  {}", "", pad(&label, names), line.trim_start_matches(' '))?;
        }
    }
    Ok(())
}

fn sentence(found: &Together) -> String {
    let verdict = match found.sharing {
        TargetSharing::SharesLimit => "they share a limit",
        TargetSharing::Independent => "they are independent",
        TargetSharing::Undecided => "undecided",
    };
    let apart: Vec<String> = found
        .targets
        .iter()
        .zip(&found.iops_apart)
        .map(|(target, iops)| format!("{target} {}", count(*iops)))
        .collect();
    let percent = |share: f64| format!("{:.0}", share * 100.0);
    let interval = found.interval.map(|(low, high)| format!(" ({}-{})", percent(low), percent(high)));
    let why = found.why.map(|why| format!(": {why}")).unwrap_or_default();
    format!(
        "{verdict}{why}. {} requests a second apart; {} together, {}{} % of their sum.",
        apart.join(" and "),
        count(found.iops_together),
        percent(found.ratio),
        interval.unwrap_or_default()
    )
}
