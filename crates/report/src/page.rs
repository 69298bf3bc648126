//! The page of a run: what its view says, with a summary before it and charts of every test.
//!
//! A page shows what a terminal has no room for. Its charts are made from the record alone, as typed plots, so that the same
//! chart can stand in a page or in a file of its own.

pub(crate) mod axes;
mod conditions;
mod course;
mod front;
mod heat;
mod hosts;
mod monitored;
mod overview;
mod parts;
mod percentiles;
mod sweep_curves;

use std::fmt;
use std::str::FromStr;

use fathom_analysis::{Analysis, sweep};
use fathom_model::units::UnitSystem;
use fathom_record::{ActivityKind, Observed, RunRecord, TestRecord};

use crate::Style;
use crate::formats::chart::Chart;
use crate::run_view;
use crate::view::{Block, HeatMap, Plot, Section, View};

/// Tests whose courses are drawn: the longest, and of the probes of an identification fewer.
const MAX_COURSES: usize = 40;
const MAX_PROBES: usize = 8;
/// Bars that the first screen has room for.
const MAX_BARS: usize = 14;

/// What a chart of a run shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunChart {
    /// Rates and latencies of all tests.
    Overview,
    /// Rates and latencies of each test over time.
    Time,
    /// Latencies by percentile.
    Latency,
    /// Latencies of each test over time, as a heat map.
    Heat,
    /// Rates by queue depth and by block size.
    Depth,
    /// The rate of each host of a fleet over time.
    Hosts,
}

impl RunChart {
    /// All of them, in the order of help.
    pub const ALL: [RunChart; 6] = [
        RunChart::Overview,
        RunChart::Time,
        RunChart::Latency,
        RunChart::Heat,
        RunChart::Depth,
        RunChart::Hosts,
    ];

    /// The name as typed.
    pub const fn name(self) -> &'static str {
        match self {
            RunChart::Overview => "overview",
            RunChart::Time => "time",
            RunChart::Latency => "latency",
            RunChart::Heat => "heat",
            RunChart::Depth => "depth",
            RunChart::Hosts => "hosts",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            RunChart::Overview => "Rates and latencies",
            RunChart::Time => "Rates and latencies over time",
            RunChart::Latency => "Latency percentiles",
            RunChart::Heat => "Latencies over time",
            RunChart::Depth => "Rates by queue depth and block size",
            RunChart::Hosts => "Rates of the hosts over time",
        }
    }

    /// What a run needs to have for it.
    const fn need(self) -> &'static str {
        match self {
            RunChart::Overview => "a test with a rate",
            RunChart::Time => "a test of at least two intervals",
            RunChart::Latency => "a test with 100 I/Os or more, or an imported one with percentiles",
            RunChart::Heat => "a test of at least two intervals with latencies",
            RunChart::Depth => "a sweep",
            RunChart::Hosts => "a run of several hosts that `fathom fleet merge` made",
        }
    }
}

impl fmt::Display for RunChart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for RunChart {
    type Err = String;

    fn from_str(text: &str) -> Result<RunChart, String> {
        let names = || RunChart::ALL.map(RunChart::name).join(", ");
        RunChart::ALL
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| format!("unknown kind of chart '{text}': use one of {}", names()))
    }
}

/// `view` of `record` as a page shows it.
pub fn view(analysis: &Analysis<'_>, view: View) -> View {
    let record = analysis.record;
    let head = view.head.or_else(|| run_view::of_run(record).head);
    let front = front::front(analysis, view.front);
    let mut page =
        View { head, verdict: view.verdict, front, data: view.data, units: view.units, ..View::default() };
    let jobs = parts::jobs(record);
    let is_commands =
        |section: &Section| section.blocks.iter().all(|block| matches!(block, Block::Commands(_)));
    let sections = view.sections.into_iter().filter(|section| section.part.is_of(true));
    let (commands, mut results): (Vec<Section>, Vec<Section>) =
        titled(sections).into_iter().partition(is_commands);
    if jobs.is_some() {
        // One row for jobs of different work says nothing of any.
        let tables = results.iter_mut().map(|section| &mut section.blocks);
        tables.for_each(|blocks| blocks.retain(|block| !matches!(block, Block::Table(_))));
        results.retain(|section| !section.blocks.is_empty());
    }
    // Where every test is looked at by itself, its charts say more than the rows; else they are what the results rest on.
    let kind = record.header.activity.kind();
    let charts_first = matches!(kind, ActivityKind::Bench | ActivityKind::Fio | ActivityKind::Sweep);
    page.push("Jobs", jobs);
    if charts_first {
        push_charts(analysis, &mut page);
        page.sections.extend(results);
    } else {
        page.sections.extend(results);
        push_charts(analysis, &mut page);
    }
    if page.front.plot.is_none() && !page.sections.iter().any(has_chart) {
        page.push("Charts", [Block::note(missing_charts(record))]);
    }
    page.sections.extend(commands);
    page.push("Conditions", conditions::blocks(record));
    page
}

/// The chart of the first screen stands nowhere else; the first of all is there if no other was chosen for a verdict.
pub(crate) fn choose_front(page: &mut View) {
    let mut plots =
        page.sections.iter_mut().flat_map(|section| &mut section.blocks).filter_map(|block| match block {
            Block::Plots(plots) if !plots.is_empty() => Some(plots),
            _ => None,
        });
    match &page.front.plot {
        Some(front) => plots.for_each(|plots| plots.retain(|plot| plot.title != front.title)),
        None if page.verdict.is_empty() => {}
        None => {
            page.front.plot = plots.next().map(|plots| match plots[0].abridged(MAX_BARS) {
                Some(brief) => brief,
                None => plots.remove(0),
            });
        }
    }
    for section in &mut page.sections {
        section.blocks.retain(|block| !matches!(block, Block::Plots(plots) if plots.is_empty()));
    }
    page.sections.retain(|section| !section.blocks.is_empty());
}

fn has_chart(section: &Section) -> bool {
    section.blocks.iter().any(|block| match block {
        Block::Plots(plots) => !plots.is_empty(),
        Block::HeatMaps(maps) => !maps.is_empty(),
        Block::Tests(tests) => tests.details.iter().any(|details| !details.blocks.is_empty()),
        _ => false,
    })
}

/// Why a page has no chart.
fn missing_charts(record: &RunRecord) -> &'static str {
    match record.header.activity.kind() {
        ActivityKind::Import => "No chart: the source has one test, without two percentiles of its latency.",
        _ => "No chart: a test needs two intervals or 100 I/Os for one.",
    }
}

fn push_charts(analysis: &Analysis<'_>, page: &mut View) {
    let record = analysis.record;
    let drawn = drawn_tests(record);
    let rows = parts::tests(analysis, &drawn);
    let is_of_rows = rows.is_some();
    page.push("Tests", rows.map(Block::Tests));
    page.push("Tests side by side", [Block::Plots(overview::plots(record))]);
    page.push("Rates by queue depth and block size", [Block::Plots(sweep_plots(record))]);
    for test in drawn.iter().filter(|_| !is_of_rows) {
        let name = match &test.observed {
            Some(Observed::Forecast(forecast)) => forecast.target.as_str(),
            _ => run_view::name(test),
        };
        page.push(format!("Charts: {name}"), charts(record, test));
    }
}

/// The charts of a test.
fn charts(record: &RunRecord, test: &TestRecord) -> [Block; 2] {
    let plots = course::plots(record, test).into_iter().chain(percentiles::curves(test)).collect();
    let maps = hosts::strips(record, test).into_iter().chain(heat::map(test)).collect();
    [Block::Plots(plots), Block::HeatMaps(maps)]
}

/// One chart of a run as a picture of its own.
///
/// # Errors
/// The run has nothing to show; the message says what is needed.
pub fn chart(record: &RunRecord, kind: RunChart, style: &Style) -> Result<Chart, String> {
    let tests = drawn_tests(record);
    let titled = |test: &TestRecord, plot: Plot| match tests.len() {
        1 => plot,
        _ => Plot { title: format!("{}: {}", run_view::id(test), plot.title), ..plot },
    };
    let of_tests = |of: &dyn Fn(&TestRecord) -> Vec<Plot>| {
        tests.iter().flat_map(|test| of(test).into_iter().map(|plot| titled(test, plot))).collect()
    };
    let mut maps = Vec::new();
    let mut plots: Vec<Plot> = match kind {
        RunChart::Overview => overview::plots(record),
        RunChart::Time => of_tests(&|test| course::plots(record, test)),
        RunChart::Latency => of_tests(&|test| percentiles::curves(test).into_iter().collect()),
        RunChart::Depth => sweep_plots(record),
        RunChart::Heat => {
            let named = |test: &TestRecord| match tests.len() {
                1 => String::new(),
                _ => run_view::id(test).to_owned(),
            };
            let map = |test: &&TestRecord| Some(HeatMap { title: named(test), ..heat::map(test)? });
            maps = tests.iter().filter_map(map).collect();
            Vec::new()
        }
        RunChart::Hosts => {
            maps = tests.iter().filter_map(|test| hosts::strips(record, test)).collect();
            Vec::new()
        }
    };
    if plots.is_empty() && maps.is_empty() {
        return Err(format!("cannot draw the chart {kind}: it needs {}", kind.need()));
    }
    if style.units == Some(UnitSystem::Si) {
        plots.iter_mut().for_each(|plot| plot.set_units(UnitSystem::Si));
    }
    let title = match record.header.target.as_str() {
        "" => kind.title().to_owned(),
        target => format!("{}: {target}", kind.title()),
    };
    Ok(Chart { title, plots, maps, ..Chart::default() })
}

/// The sections with a title each: what has none belongs to the section before, or is the first of the results.
fn titled(sections: impl Iterator<Item = Section>) -> Vec<Section> {
    let mut titled: Vec<Section> = Vec::new();
    for section in sections {
        match titled.last_mut() {
            Some(last) if section.title.is_empty() => last.blocks.extend(section.blocks),
            None if section.title.is_empty() => {
                titled.push(Section { title: "Results".to_owned(), ..section });
            }
            _ => titled.push(section),
        }
    }
    titled
}

fn sweep_plots(record: &RunRecord) -> Vec<Plot> {
    match record.header.activity.kind() {
        ActivityKind::Sweep => sweep_curves::plots(&sweep::assess(record)),
        _ => Vec::new(),
    }
}

/// The tests whose courses are drawn. The points of a sweep or a surface are many, and none is looked at by itself.
fn drawn_tests(record: &RunRecord) -> Vec<&TestRecord> {
    if matches!(record.header.activity.kind(), ActivityKind::Sweep | ActivityKind::Surface) {
        return Vec::new();
    }
    let length = |test: &TestRecord| match &test.observed {
        Some(Observed::Forecast(forecast)) => forecast.elapsed_ns,
        Some(Observed::Monitor(device)) => device.means.elapsed_ns,
        Some(Observed::Ping(ping)) => ping.elapsed_ns,
        Some(Observed::Import(imported)) => {
            let runtime = imported.total().and_then(|total| total.runtime_ns);
            runtime.map_or(1, |runtime| runtime.value.max(1))
        }
        None => test.elapsed_ns,
    };
    let mut lengths: Vec<u64> = record.tests.iter().map(length).collect();
    lengths.sort_unstable_by(|one, other| other.cmp(one));
    let most = if record.header.activity.kind() == ActivityKind::Identify { MAX_PROBES } else { MAX_COURSES };
    let least = lengths.get(most).map_or(1, |length| length + 1);
    record.tests.iter().filter(|test| length(test) >= least).collect()
}
