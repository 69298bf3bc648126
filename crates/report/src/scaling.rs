//! The report of runs that differ in the number of ranks: how the total grows, and where more ranks stop helping.

pub mod json;
mod plots;

use fathom_analysis::scaling::{Scaling, ScalingOutcome, ScalingPoint, ScalingTest};
use fathom_model::units::{UnitSystem, grouped};

use serde_json::{Value, json};

use crate::Style;
use crate::document::object;
use crate::formats::chart::Chart;
use crate::view::{Block, Cell, Column, KeyFigure, Plot, Row, Table, Tone, View, ViewHead};

pub use plots::plots;

/// Everything that scaling shows; `target` names what was measured.
pub fn view(scaling: &Scaling, target: &str) -> View {
    let counts = scaling.tests.iter().flat_map(|test| &test.points).map(|point| point.ranks);
    let (least, most) = (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0));
    let ranks = format!("{} to {} ranks", grouped(least.into()), grouped(most.into()));
    let parts = [target.to_owned(), ranks].into_iter().filter(|part| !part.is_empty());
    let head = ViewHead { target: parts.collect(), ..ViewHead::default() };
    let mut view = View { head: Some(head), data: data(scaling), ..View::default() };
    view.push("Scaling", [Block::KeyFigures(scaling.tests.iter().map(verdict).collect())]);
    view.push("Limits", [Block::KeyFigures(causes(scaling))]);
    for test in &scaling.tests {
        let title = match test.work.as_str() {
            "" => test.id.clone(),
            work => format!("{} ({work})", test.id),
        };
        view.push(title, [Block::Table(table(test)), Block::Plots(plots(test))]);
    }
    view
}

/// The curves as a picture of their own.
pub fn chart(scaling: &Scaling, target: &str, style: &Style) -> Chart {
    let is_one = scaling.tests.len() == 1;
    let titled = |test: &ScalingTest, plot: Plot| match is_one {
        true => plot,
        false => Plot { title: format!("{}: {}", test.id, plot.title), ..plot },
    };
    let of_test =
        |test: &ScalingTest| plots(test).into_iter().map(|plot| titled(test, plot)).collect::<Vec<_>>();
    let mut plots: Vec<Plot> = scaling.tests.iter().flat_map(of_test).collect();
    if style.units == Some(UnitSystem::Si) {
        plots.iter_mut().for_each(|plot| plot.set_units(UnitSystem::Si));
    }
    let title = if target.is_empty() { "Scaling".to_owned() } else { format!("Scaling: {target}") };
    let notes = scaling.tests.iter().map(|test| format!("{}: {}", test.id, test.verdict.text)).collect();
    Chart { title, plots, notes, ..Chart::default() }
}

fn verdict(test: &ScalingTest) -> KeyFigure {
    let tone = match test.verdict.outcome {
        ScalingOutcome::Inconclusive => Tone::Dim,
        ScalingOutcome::Limited | ScalingOutcome::Growing => Tone::Normal,
    };
    KeyFigure { tone, ..KeyFigure::new(test.id.as_str(), test.verdict.text.as_str()) }
}

/// What holds the totals, by the findings.
fn causes(scaling: &Scaling) -> Vec<KeyFigure> {
    let of_test = |test: &ScalingTest| {
        let figure = |cause: &fathom_analysis::scaling::ScalingCause| {
            let ranks = if cause.ranks == 1 { "1 rank".to_owned() } else { format!("{} ranks", cause.ranks) };
            KeyFigure::new(format!("{}, {ranks}", test.id), format!("[{}] {}", cause.id, cause.claim))
        };
        test.verdict.causes.iter().map(figure).collect::<Vec<_>>()
    };
    scaling.tests.iter().flat_map(of_test).collect()
}

const COLUMNS: [Column; 11] = [
    Column::right("ranks"),
    Column::right("hosts").dispensable(3),
    Column::right("runs").dispensable(1),
    Column::right("IOPS").takes_remark(),
    Column::right("CI%").dispensable(6),
    Column::right("MiB/s").dispensable(7),
    Column::right("of linear"),
    Column::right("per doubling"),
    Column::right("mean").dispensable(2),
    Column::right("p50").dispensable(5),
    Column::right("p99"),
];

fn table(test: &ScalingTest) -> Table {
    let has_repetitions = test.points.iter().any(|point| point.runs > 1);
    let limit = test.verdict.ranks;
    let rows = test.points.iter().map(|point| row(point, has_repetitions, limit));
    Table::new(COLUMNS, rows)
        .without_empty()
        .with_legend("CI%", "CI%: half of the 95 % confidence interval of the rate")
        .with_legend("of linear", "of linear: rate per rank as a share of that with the fewest ranks")
        .with_legend(
            "per doubling",
            "per doubling: gain of the rate since the row above, per doubling of the ranks",
        )
}

fn row(point: &ScalingPoint, has_repetitions: bool, limit: Option<u32>) -> Row {
    let ns = |value: Option<u64>| Cell::from(value.map(Cell::latency));
    let half = point
        .iops
        .zip(point.iops_interval)
        .map(|(iops, interval)| (interval.high - interval.low) / 2.0 / iops);
    let cells: [Cell; 11] = [
        Cell::count(point.ranks.into()),
        Cell::count(point.hosts.into()),
        has_repetitions.then(|| Cell::count(point.runs.into())).into(),
        point.iops.map(Cell::iops).into(),
        half.map(|half| Cell::real(half, format!("{:.1}", half * 100.0))).into(),
        point.bytes_per_second.map(Cell::mebibytes).into(),
        point.efficiency.map(Cell::percent).into(),
        point.gain_per_doubling.map(gain).into(),
        point.lat_mean_ns.map(Cell::mean_latency).into(),
        ns(point.lat_p50_ns),
        ns(point.lat_p99_ns),
    ];
    let row = Row { cells: cells.into(), ..Row::default() };
    let missing = match point.missing {
        0 => None,
        1 => Some("1 rank is missing".to_owned()),
        count => Some(format!("{count} ranks are missing")),
    };
    match (point.iops, missing) {
        (None, _) => Row { tone: Tone::Alarm, remark: Some("no time in common: no total".to_owned()), ..row },
        (Some(_), Some(missing)) => Row { tone: Tone::Alarm, remark: Some(missing), ..row },
        (Some(_), None) if limit == Some(point.ranks) => {
            Row { remark: Some("reaches the limit".to_owned()), ..row }
        }
        (Some(_), None) => row,
    }
}

/// A gain with its sign: `+96 %`.
fn gain(fraction: f64) -> Cell {
    let percent = fraction * 100.0;
    let text = if percent.abs() < 9.95 { format!("{percent:+.1} %") } else { format!("{percent:+.0} %") };
    Cell::real(fraction, text)
}

/// A row for each point.
fn data(scaling: &Scaling) -> Table {
    const COLUMNS: &str = "\
        test,work,ranks,hosts,missing,runs,iops,iops_low=iops_interval.low,iops_high=iops_interval.high,\
        bytes_per_second,efficiency,gain_per_doubling,lat_mean_ns,lat_p50_ns,lat_p99_ns,start_spread_ns";
    let of_test = |test: &ScalingTest| -> Vec<Value> {
        let head = json!({ "test": test.id, "work": test.work });
        test.points.iter().map(|point| object([head.clone(), json!(point)])).collect()
    };
    Table::of_documents(&[COLUMNS], scaling.tests.iter().flat_map(of_test))
}

#[cfg(test)]
mod tests {
    use fathom_analysis::scaling::{FallenRate, RateInterval, ScalingCause, ScalingVerdict};
    use fathom_record::FindingId;

    use super::*;
    use crate::formats::{Format, picture::PictureFormat};
    use crate::text_writer;

    fn point(ranks: u32, iops: f64, gain_per_doubling: Option<f64>) -> ScalingPoint {
        ScalingPoint {
            ranks,
            hosts: ranks,
            runs: 1,
            iops: Some(iops),
            iops_interval: Some(RateInterval { low: iops * 0.99, high: iops * 1.01 }),
            bytes_per_second: Some(iops * 4096.0),
            efficiency: Some(iops / 1000.0 / f64::from(ranks)),
            gain_per_doubling,
            lat_p99_ns: Some(500_000 * u64::from(ranks)),
            ..ScalingPoint::default()
        }
    }

    fn limited() -> Scaling {
        let verdict = ScalingVerdict {
            outcome: ScalingOutcome::Limited,
            text: "More than 2 ranks do not raise the total of 2,000 IOPS.".to_owned(),
            ranks: Some(2),
            iops: Some(2000.0),
            bytes_per_second: None,
            fallen: Some(FallenRate { ranks: 4, iops: 1500.0, fraction: 0.75 }),
            causes: vec![ScalingCause {
                id: FindingId::SharedLimit,
                ranks: 4,
                claim: "the hosts share a limit of 2,000 IOPS".to_owned(),
            }],
        };
        let points = vec![point(1, 1000.0, None), point(2, 2000.0, Some(1.0)), point(4, 1500.0, Some(-0.25))];
        let work = "randread 4k, QD 8".to_owned();
        Scaling { tests: vec![ScalingTest { id: "rand-read".to_owned(), work, points, verdict }] }
    }

    #[test]
    fn every_format_has_every_point() {
        let scaling = limited();
        for format in Format::ALL {
            let text = text_writer::text(|out| {
                format.write(
                    &Style::default(),
                    out,
                    || view(&scaling, "/mnt"),
                    |out| json::render(&scaling, "/mnt", out),
                )
            })
            .unwrap();
            for said in ["rand-read", "1"] {
                assert!(text.contains(said), "{format}: {text}");
            }
        }
        let text = text_writer::text(|out| {
            Format::Text.write(&Style::default(), out, || view(&scaling, "/mnt"), |_| Ok(()))
        })
        .unwrap();
        for said in ["1 to 4 ranks", "More than 2 ranks do not", "+100 %", "-25 %", "[shared-limit]"] {
            assert!(text.contains(said), "{said}: {text}");
        }
    }

    #[test]
    fn the_chart_has_rate_and_latency() {
        let chart = chart(&limited(), "/mnt", &Style::default());
        assert_eq!(chart.plots.len(), 2);
        let svg = String::from_utf8(PictureFormat::Svg.render(&chart).unwrap()).unwrap();
        assert!(svg.contains("Scaling: /mnt") && svg.contains("linear"), "{svg}");
    }
}
