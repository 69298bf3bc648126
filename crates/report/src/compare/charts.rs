//! Charts of a comparison: typed plots, for the terminal and for SVG.

mod bars;
mod curves;

use std::fmt;
use std::str::FromStr;

use fathom_analysis::compare::VolumeComparison;
use fathom_model::units::UnitSystem;

use super::view::short_name;
use crate::Style;
use crate::formats::chart::Chart;
use crate::view::Plot;

/// What a chart shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChartKind {
    /// Rates and latencies of each test.
    Bars,
    /// The same on a logarithmic axis.
    LogBars,
    /// Rates by block size.
    Ladder,
    /// Rates by queue depth.
    Depth,
    /// Transfer rates by place and by time.
    Surface,
    /// Latencies by percentile.
    Latency,
    /// Rates and burst credits over a day at full load.
    Day,
}

impl ChartKind {
    /// All of them, in the order of help.
    pub const ALL: [ChartKind; 7] = [
        ChartKind::Bars,
        ChartKind::LogBars,
        ChartKind::Ladder,
        ChartKind::Depth,
        ChartKind::Latency,
        ChartKind::Day,
        ChartKind::Surface,
    ];

    /// The name as typed.
    pub const fn name(self) -> &'static str {
        match self {
            ChartKind::Bars => "bars",
            ChartKind::LogBars => "log-bars",
            ChartKind::Ladder => "ladder",
            ChartKind::Depth => "depth",
            ChartKind::Surface => "surface",
            ChartKind::Latency => "latency",
            ChartKind::Day => "day",
        }
    }

    /// The name, with what the chart shows where the name does not say it.
    pub const fn described(self) -> &'static str {
        match self {
            ChartKind::Ladder => "ladder (by block size)",
            ChartKind::Depth => "depth (by queue depth)",
            ChartKind::Latency => "latency (percentiles)",
            ChartKind::Day => "day (24 h with burst credits)",
            ChartKind::Bars | ChartKind::LogBars | ChartKind::Surface => self.name(),
        }
    }

    /// What it shows, for titles.
    const fn title(self) -> &'static str {
        match self {
            ChartKind::Bars | ChartKind::LogBars => "Rates and latencies",
            ChartKind::Ladder => "Rates by block size",
            ChartKind::Depth => "Rates by queue depth",
            ChartKind::Surface => "Transfer rates by place and time",
            ChartKind::Latency => "Latency percentiles",
            ChartKind::Day => "Rate and burst credits over 24 h at full load",
        }
    }

    /// What the sources need to have for it.
    const fn need(self) -> &'static str {
        match self {
            ChartKind::Bars | ChartKind::LogBars => "a test with a rate",
            ChartKind::Ladder => "tests that differ in the block size alone",
            ChartKind::Depth => "tests that differ in the queue depth alone",
            ChartKind::Surface => "runs of fathom surface",
            ChartKind::Latency => "a test with percentiles of latency",
            ChartKind::Day => "a test on burst credits whose length is known",
        }
    }
}

impl fmt::Display for ChartKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ChartKind {
    type Err = String;

    fn from_str(text: &str) -> Result<ChartKind, String> {
        let names = || ChartKind::ALL.map(ChartKind::name).join(", ");
        ChartKind::ALL
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| format!("unknown kind of chart '{text}': use one of {}", names()))
    }
}

/// How the series are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Naming {
    /// By the letters of the sources, which stand in the report.
    Letters,
    /// With their names.
    Full,
}

/// The plots of a chart for the terminal.
///
/// # Errors
/// The sources have nothing to show; the message says what is needed.
pub fn plots(comparison: &VolumeComparison, kind: ChartKind) -> Result<Vec<Plot>, String> {
    of_kind(comparison, kind, Naming::Letters)
}

/// The chart as a picture of its own.
///
/// # Errors
/// As for [`plots`].
pub fn chart(comparison: &VolumeComparison, kind: ChartKind, style: &Style) -> Result<Chart, String> {
    let mut plots = of_kind(comparison, kind, Naming::Full)?;
    if style.units == Some(UnitSystem::Si) {
        plots.iter_mut().for_each(|plot| plot.set_units(UnitSystem::Si));
    }
    let mut points = plots.iter().flat_map(|plot| &plot.series).flat_map(|series| &series.points);
    let has_intervals = points.any(|point| point.interval.is_some());
    let notes = notes(comparison, kind, has_intervals);
    Ok(Chart { title: kind.title().to_owned(), plots, notes, ..Chart::default() })
}

fn of_kind(comparison: &VolumeComparison, kind: ChartKind, naming: Naming) -> Result<Vec<Plot>, String> {
    let names: Vec<String> = comparison.sources.iter().map(|volume| name(volume, naming)).collect();
    let plots = match kind {
        ChartKind::Bars => bars::plots(comparison, &names, false),
        ChartKind::LogBars => bars::plots(comparison, &names, true),
        ChartKind::Ladder => curves::ladders(comparison, &names),
        ChartKind::Depth => curves::depths(comparison, &names),
        ChartKind::Surface => curves::surfaces(comparison, &names),
        ChartKind::Latency => curves::latencies(comparison, &names),
        ChartKind::Day => curves::days(comparison, &names),
    };
    match plots.is_empty() {
        true => Err(format!("cannot draw the chart {kind}: it needs {}", kind.need())),
        false => Ok(plots),
    }
}

fn name(volume: &fathom_analysis::compare::volumes::VolumeSummary, naming: Naming) -> String {
    match naming {
        Naming::Letters => volume.source.to_owned(),
        Naming::Full => {
            let named = volume.volume_type.clone().unwrap_or_else(|| short_name(&volume.name));
            format!("{} {named}", volume.source)
        }
    }
}

/// The sources, and what the picture does not show.
fn notes(comparison: &VolumeComparison, kind: ChartKind, has_intervals: bool) -> Vec<String> {
    let source = |volume: &fathom_analysis::compare::volumes::VolumeSummary| {
        format!("{}: {} ({})", volume.source, short_name(&volume.name), volume.kind.name())
    };
    let sources: Vec<String> = comparison.sources.iter().map(source).collect();
    let mut notes = vec![format!("Sources: {}.", sources.join("; "))];
    notes.extend(match kind {
        ChartKind::Bars | ChartKind::LogBars if has_intervals => {
            Some("Lines with caps are 95 % confidence intervals; single runs have one only where their seconds are independent.")
        }
        ChartKind::Day => {
            Some("By the published rule of each type, or as observed, from full credits on; a line that ends was not measured longer.")
        }
        ChartKind::Depth => Some("Dotted lines are published sustained rates."),
        _ => None,
    }
    .map(str::to_owned));
    let cited = comparison
        .sources
        .iter()
        .flat_map(|volume| &volume.notes)
        .filter(|note| note.starts_with("published in"));
    for note in cited {
        let note = format!("{}.", crate::columns::capital(note));
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes
}
