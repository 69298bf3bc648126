//! The tables of figures: two sources side by side with ratio and verdict, or a matrix of many.

use fathom_analysis::compare::VolumeComparison;
use fathom_analysis::compare::cell::{CellState, FigureCell};
use fathom_analysis::compare::figure::{Figure, ratio_interval_text, ratio_text};
use fathom_analysis::compare::matrix::{MatrixFigure, MatrixTest};
use fathom_analysis::compare::pairs::Pair;
use fathom_analysis::compare::ratio::{IntervalBasis, RatioVerdict};
use fathom_analysis::compare::source::LABELS;
use fathom_analysis::criterion::{Metric, MetricKind, Statistic};

use crate::view::{Block, Cell, Column, Row, Table, TableDivision, Tone, iops_text};

/// Which way a matrix lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// Figures in rows, volumes in columns.
    #[default]
    Volumes,
    /// Volumes in rows, figures in columns.
    Transposed,
    /// As `Volumes`, below the prices of what each volume gives.
    Value,
}

/// Where there is little room, sources are shown in several tables.
const BY_SOURCES: TableDivision = TableDivision { repeated: 2, absent: CellState::NotMeasured.text() };

/// A rate is steady below this coefficient of variation, and where less than this share of it or of the seconds is off.
const STEADY_CV: f64 = 0.02;
const STEADY_SHARE: f64 = 0.05;

/// Which figures a table shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// Rates and latencies.
    Main,
    /// Stability, CPU time and duration.
    Other,
}

/// The figures of a test that people are shown.
fn shown(test: &MatrixTest, group: Group) -> impl Iterator<Item = &MatrixFigure> {
    test.figures.iter().filter(move |figure| match (figure.figure, group) {
        (Figure::Metric(Metric { kind, .. }), Group::Main) => match kind {
            MetricKind::Iops | MetricKind::BytesPerSecond => true,
            MetricKind::Latency(_, statistic) => {
                matches!(statistic, Statistic::Mean | Statistic::Percentile(990_000))
            }
        },
        (Figure::Metric(_), Group::Other) => false,
        (other, group) => group == Group::Other && is_remarkable(other, figure),
    })
}

/// True of stability where one of the sources is not steady, and of all other figures.
fn is_remarkable(kind: Figure, figure: &MatrixFigure) -> bool {
    let is_any = |is_it: &dyn Fn(f64) -> bool| figure.cells.iter().filter_map(|cell| cell.value).any(is_it);
    match kind {
        Figure::Variation => is_any(&|cv| cv >= STEADY_CV),
        Figure::WorstSecond => is_any(&|share| share <= 1.0 - STEADY_SHARE),
        Figure::NearMean => is_any(&|share| share <= 1.0 - STEADY_SHARE),
        _ => true,
    }
}

/// The name of a figure within its test: the direction only where the test has several.
fn label(test: &MatrixTest, figure: &MatrixFigure) -> String {
    let directions: Vec<&str> = test.figures.iter().filter_map(|figure| figure.direction).collect();
    let has_one = directions.iter().all(|direction| *direction == directions[0]);
    let name = match figure.figure {
        Figure::Metric(Metric { kind: MetricKind::BytesPerSecond, .. }) => "MiB/s".to_owned(),
        Figure::Metric(Metric { kind, .. }) => kind.label(),
        other => other.label(),
    };
    match figure.direction {
        Some(direction) if !has_one => format!("{direction} {name}"),
        _ => name,
    }
}

/// A value as a cell, or why there is none.
fn cell(figure: Figure, of: &FigureCell) -> Cell {
    let Some(value) = of.value else { return of.state.text().into() };
    let plain = match figure {
        Figure::Metric(Metric { kind: MetricKind::Iops, .. }) => Cell::real(value, iops_text(value)),
        Figure::Metric(Metric { kind: MetricKind::BytesPerSecond, .. }) => Cell::mebibytes(value),
        Figure::Metric(_) | Figure::CpuPerIo => Cell::mean_latency(value),
        Figure::Elapsed => Cell::duration(value.round() as u64),
        _ => Cell::percent(value),
    };
    Cell { text: format!("{}{}", of.prefix(), plain.text), ..plain }
}

/// The test, under it what it did where its id does not say, then blanks.
fn test_name(test: &MatrixTest, place: usize) -> Cell {
    match place {
        0 => test.test.as_str().into(),
        1 => test.work.as_str().into(),
        _ => Cell::default(),
    }
}

/// The heads of a table of two.
const OF_TWO: [Column; 7] = [
    Column::left("test"),
    Column::left("figure"),
    Column::right("A").takes_remark(),
    Column::right("B"),
    Column::right("B/A"),
    Column::right("95 % CI").dispensable(0),
    Column::left("verdict"),
];

/// Two sources side by side.
pub(super) fn side_by_side(comparison: &VolumeComparison) -> Vec<Block> {
    let mut columns = OF_TWO;
    if comparison.base == 1 {
        columns[4].head = "A/B";
    }
    let rows = comparison.tests.iter().flat_map(|test| {
        let all: Vec<&MatrixFigure> = shown(test, Group::Main).collect();
        let mut reasons = Vec::new();
        all.into_iter().enumerate().map(move |(place, figure)| {
            let pair = pair_of(comparison, test, figure);
            let reason = pair.and_then(|pair| pair.reason.clone());
            let is_new = reason.as_ref().is_some_and(|reason| !reasons.contains(reason));
            reasons.extend(reason.clone());
            let cells = [
                test_name(test, place),
                label(test, figure).into(),
                cell(figure.figure, &figure.cells[0]),
                cell(figure.figure, &figure.cells[1]),
                pair.and_then(|pair| pair.ratio).map(|ratio| Cell::real(ratio, ratio_text(ratio))).into(),
                pair.map(interval).unwrap_or_default().into(),
                pair.and_then(|pair| pair.verdict).map(|verdict| Cell::from(verdict.name())).into(),
            ];
            let row = Row { remark: reason.filter(|_| is_new), ..Row::new(cells) };
            let is_worse = pair.is_some_and(|pair| pair.verdict == Some(RatioVerdict::Worse));
            row.toned(if is_worse { Tone::Alarm } else { Tone::Normal })
        })
    });
    let rows: Vec<Row> = rows.collect();
    let from_within = |pair: &Pair| pair.interval == Some(IntervalBasis::WithinRun);
    let mut table = Table::new(columns, rows).without_empty();
    if comparison.pairs.iter().any(from_within) {
        let legend =
            "w: from the seconds within one run of each; differences from run to run are not included.";
        table = table.with_legend("95 % CI", legend);
    }
    vec![Block::Table(table)]
}

/// From this block size on a test is about bandwidth.
const LARGE_BYTES: f64 = 65_536.0;

/// The rate of each test in every source: IOPS, or bandwidth of large blocks; of two with the ratio and the verdict.
pub(super) fn brief(comparison: &VolumeComparison) -> Table {
    let tests = || comparison.tests.iter().filter_map(|test| Some((test, rate_of(test)?)));
    let places: Vec<usize> = (0..comparison.sources.len()).collect();
    let is_pair = places.len() == 2;
    let row = |(test, figure): (&MatrixTest, &MatrixFigure)| {
        let name = test.test.as_str();
        if let Some(held) = held(test, figure) {
            let head = [name.into(), Cell::from(format!("sustained {}", label(test, figure)))];
            let ratio = held_ratio(comparison, &held);
            let ratio = is_pair.then(|| Cell::real(ratio, ratio_text(ratio)));
            return Row::new(head.into_iter().chain(held.into_iter().map(|(_, cell)| cell)).chain(ratio));
        }
        let head = [name.into(), Cell::from(label(test, figure))];
        let values = places.iter().map(|&at| marked(figure, at));
        let pair = pair_of(comparison, test, figure).filter(|_| is_pair);
        let ratio = pair.map(|pair| {
            let ratio = pair.ratio.map(|ratio| Cell::real(ratio, ratio_text(ratio))).into();
            [ratio, interval(pair).into(), pair.verdict.map(|verdict| Cell::from(verdict.name())).into()]
        });
        let is_worse = pair.is_some_and(|pair| pair.verdict == Some(RatioVerdict::Worse));
        let row = Row::new(head.into_iter().chain(values).chain(ratio.into_iter().flatten()));
        row.toned(if is_worse { Tone::Alarm } else { Tone::Normal })
    };
    let mut columns = heads(&places);
    if is_pair {
        let [_, _, _, _, mut ratio, rest @ ..] = OF_TWO;
        if comparison.base == 1 {
            ratio.head = "A/B";
        }
        columns.extend([ratio].into_iter().chain(rest));
    }
    let is_ahead = |(test, figure): &(&MatrixTest, &MatrixFigure)| {
        let held = held(test, figure).map(|held| held_ratio(comparison, &held));
        let ratio = held.or_else(|| pair_of(comparison, test, figure)?.ratio);
        ratio.is_none_or(|ratio| ratio >= 1.0)
    };
    let (ahead, behind): (Vec<_>, Vec<_>) = tests().partition(|test| !is_pair || is_ahead(test));
    let table = Table::new(columns, alternating(ahead, behind).into_iter().map(row)).without_empty();
    if is_pair { table } else { table.divided(BY_SOURCES) }
}

/// One of each in turn, so that the first rows show both sides.
fn alternating<T>(ones: Vec<T>, others: Vec<T>) -> Vec<T> {
    let (mut ones, mut others, mut all) = (ones.into_iter(), others.into_iter(), Vec::new());
    loop {
        let before = all.len();
        all.extend(ones.next().into_iter().chain(others.next()));
        if all.len() == before {
            return all;
        }
    }
}

/// The rate that each source holds after its burst, where one of them ran on burst credits and it is known of all.
fn held(test: &MatrixTest, figure: &MatrixFigure) -> Option<Vec<(f64, Cell)>> {
    let share = test.figures.iter().find(|figure| figure.figure == Figure::PublishedShare)?;
    let of_source = |(of, share): (&FigureCell, &FigureCell)| {
        let held = of.value? / share.value?.max(1.0);
        Some((held, cell(figure.figure, &FigureCell { value: Some(held), ..*of })))
    };
    let is_burst = |cell: &FigureCell| cell.value.is_some_and(|share| share > BURST);
    let all: Option<Vec<(f64, Cell)>> = figure.cells.iter().zip(&share.cells).map(of_source).collect();
    all.filter(|_| share.cells.iter().any(is_burst))
}

/// The ratio of the other of two sources to the base.
fn held_ratio(comparison: &VolumeComparison, held: &[(f64, Cell)]) -> f64 {
    held[usize::from(comparison.base == 0).min(held.len() - 1)].0 / held[comparison.base].0
}

/// A rate above this share of the sustained one is a burst.
const BURST: f64 = 1.03;

/// The rate that a test is about.
fn rate_of(test: &MatrixTest) -> Option<&MatrixFigure> {
    let of = |kind: MetricKind| {
        let is_it = move |figure: &&MatrixFigure| matches!(figure.figure, Figure::Metric(metric) if metric.kind == kind);
        test.figures.iter().find(is_it)
    };
    let (iops, bytes) = (of(MetricKind::Iops), of(MetricKind::BytesPerSecond));
    let value = |figure: &MatrixFigure| figure.cells.iter().find_map(|cell| cell.value);
    let is_large = iops
        .and_then(value)
        .zip(bytes.and_then(value))
        .is_some_and(|(ios, bytes)| bytes / ios >= LARGE_BYTES);
    if is_large { bytes } else { iops.or(bytes).or_else(|| shown(test, Group::Main).next()) }
}

fn pair_of<'a>(
    comparison: &'a VolumeComparison,
    test: &MatrixTest,
    figure: &MatrixFigure,
) -> Option<&'a Pair> {
    comparison.pairs.iter().find(|pair| pair.test == test.test && pair.figure == figure.figure)
}

/// `1.92-1.98`, with a mark where it is from within one run each.
fn interval(pair: &Pair) -> String {
    let range = pair.low.zip(pair.high).map(|(low, high)| ratio_interval_text(low, high));
    let mark = if pair.interval == Some(IntervalBasis::WithinRun) { " w" } else { "" };
    range.map(|range| range + mark).unwrap_or_default()
}

/// A table for every few sources: a row per figure, the best marked by + and the worst by -.
pub(super) fn matrix(comparison: &VolumeComparison, group: Group) -> Vec<Block> {
    let places: Vec<usize> = (0..comparison.sources.len()).collect();
    let places = &places[..];
    let rows = comparison.tests.iter().flat_map(|test| {
        let all: Vec<&MatrixFigure> = shown(test, group).collect();
        all.into_iter().enumerate().map(move |(row, figure)| {
            let head = [test_name(test, row), label(test, figure).into()];
            let cells = head.into_iter().chain(places.iter().map(|at| marked(figure, *at)));
            Row { begins_group: row == 0, ..Row::new(cells) }
        })
    });
    let table = Table::new(heads(places), rows).divided(BY_SOURCES);
    let has_rows = !table.rows.is_empty();
    let mut blocks = vec![Block::Table(table)];
    if comparison.sources.len() > 1 && has_rows {
        let mut figures = comparison.tests.iter().flat_map(|test| shown(test, group));
        let is_marked = figures.any(|figure| !figure.best.is_empty() || !figure.worst.is_empty());
        let marks = "+ best, - worst, if they differ by more than the smallest difference that counts.";
        let omitted = "Stability is omitted where every CV is below 2 % and no second is 5 % below the mean.";
        let legends = [is_marked.then_some(marks), (group == Group::Other).then_some(omitted)];
        let legends = legends.into_iter().flatten().map(str::to_owned);
        blocks.push(Block::Notes(legends.collect()));
    }
    blocks
}

fn heads(places: &[usize]) -> Vec<Column> {
    let names = places.iter().map(|at| Column::right(LABELS[*at]));
    [Column::left("test"), Column::left("figure")].into_iter().chain(names).collect()
}

fn marked(figure: &MatrixFigure, at: usize) -> Cell {
    let mark = match (figure.best.contains(&at), figure.worst.contains(&at)) {
        (true, _) => " +",
        (_, true) => " -",
        _ => "",
    };
    let plain = cell(figure.figure, &figure.cells[at]);
    let is_value = figure.cells[at].state == CellState::Measured;
    if mark.is_empty() || !is_value { plain } else { Cell { text: format!("{}{mark}", plain.text), ..plain } }
}

/// The ratios of all sources to the base, with the verdict where there are repetitions.
pub(super) fn ratios(comparison: &VolumeComparison) -> Vec<Block> {
    let others: Vec<usize> = (0..comparison.sources.len()).filter(|at| *at != comparison.base).collect();
    let places = &others[..];
    let rows = comparison.tests.iter().flat_map(|test| {
        let has_ratio = |figure: &&MatrixFigure| {
            let mut cells = places.iter().map(|at| ratio_cell(comparison, test, figure, LABELS[*at]));
            cells.any(|cell| !cell.text.is_empty())
        };
        let all: Vec<&MatrixFigure> = shown(test, Group::Main).filter(has_ratio).collect();
        all.into_iter().enumerate().map(move |(row, figure)| {
            let ratio = |at: &usize| ratio_cell(comparison, test, figure, LABELS[*at]);
            let head = [test_name(test, row), label(test, figure).into()];
            Row { begins_group: row == 0, ..Row::new(head.into_iter().chain(places.iter().map(ratio))) }
        })
    });
    let table = Table::new(heads(places), rows).without_empty().divided(BY_SOURCES);
    let mut reasons: Vec<String> = Vec::new();
    for pair in &comparison.pairs {
        let reason =
            pair.reason.as_ref().map(|reason| format!("{}, {}: {reason}.", pair.source_b, pair.test));
        reasons.extend(reason.filter(|reason| !reasons.contains(reason)));
    }
    vec![Block::Table(table), Block::Notes(reasons)]
}

fn ratio_cell(comparison: &VolumeComparison, test: &MatrixTest, figure: &MatrixFigure, source: &str) -> Cell {
    let is_it =
        |pair: &&Pair| pair.test == test.test && pair.figure == figure.figure && pair.source_b == source;
    let Some(pair) = comparison.pairs.iter().find(is_it) else { return Cell::default() };
    match (pair.ratio, pair.verdict) {
        (Some(ratio), Some(verdict)) if verdict != RatioVerdict::Single => {
            Cell::real(ratio, format!("{} {}", ratio_text(ratio), verdict.name()))
        }
        (Some(ratio), _) => Cell::real(ratio, ratio_text(ratio)),
        (None, _) if pair.reason.as_ref().is_some_and(|reason| reason.starts_with("different work")) => {
            "different work".into()
        }
        (None, _) if pair.reason.is_some() => "no ratio".into(),
        (None, _) => Cell::default(),
    }
}

/// A row per test, direction and source.
pub(super) fn transposed(comparison: &VolumeComparison) -> Block {
    const COLUMNS: [Column; 9] = [
        Column::left("test"),
        Column::left("I/O"),
        Column::left("source"),
        Column::right("IOPS").takes_remark(),
        Column::right("MiB/s"),
        Column::right("lat mean"),
        Column::right("lat p50").dispensable(0),
        Column::right("lat p99"),
        Column::right("to base"),
    ];
    let mut rows = Vec::new();
    for test in &comparison.tests {
        let mut directions: Vec<&'static str> = Vec::new();
        for direction in test.figures.iter().filter_map(|figure| figure.direction) {
            if !directions.contains(&direction) {
                directions.push(direction);
            }
        }
        for (place, direction) in directions.into_iter().enumerate() {
            for (at, source) in comparison.sources.iter().map(|volume| volume.source).enumerate() {
                let name = if place == 0 && at == 0 { test.test.as_str() } else { "" };
                let head = [name, if at == 0 { direction } else { "" }, source].map(Cell::from);
                let figures = FIGURES.map(|metric| figure_named(test, direction, metric));
                let cells = figures.map(|figure| figure.map(|figure| marked(figure, at)).into());
                let ratio = figures[0].map(|rate| ratio_cell(comparison, test, rate, source)).into();
                rows.push(Row::new(head.into_iter().chain(cells).chain([ratio])));
            }
        }
    }
    Block::Table(Table::new(COLUMNS, rows))
}

/// The figures of a transposed table, in the order of its columns.
const FIGURES: [&str; 5] = ["iops", "bytes_per_second", "lat_ns.mean", "lat_ns.p50", "lat_ns.p99"];

fn figure_named<'a>(test: &'a MatrixTest, direction: &str, metric: &str) -> Option<&'a MatrixFigure> {
    test.figures.iter().find(|figure| figure.direction == Some(direction) && figure.metric == metric)
}
