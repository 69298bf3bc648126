//! What `simulate` predicts: a row per stretch of time, when credits are exhausted, what a month costs, and the volumes side by side.

pub mod json;
mod verdict;

use fathom_model::units::{bytes, duration, grouped, latency};
use fathom_model::{LimitUnit, MonthlyCost, Nanos};
use fathom_record::forecast::{CreditCourse, Forecast, ForecastSlice, ForecastStall, OwnPace};
use fathom_record::{Activity, LatencySummary, RunRecord, TestRecord, TestStatus};
use serde_json::{Value, json};

use crate::catalog::show::{mark_note, marked};
use crate::document::object;
use crate::run_view;
use crate::simulate::verdict::SimulateVerdict;
use crate::view::{Block, Cell, Column, KeyFigure, Row, Table, Tone, View, ViewHead, decimal};

/// A volume under a load: its test and the results in it.
type VolumeForecast<'a> = (&'a TestRecord, &'a Forecast);

/// The volumes of a run.
fn volumes(record: &RunRecord) -> Vec<VolumeForecast<'_>> {
    record.tests.iter().filter_map(|test| Some((test, test.forecast()?))).collect()
}

const SECOND: u64 = 1_000_000_000;

/// What the volumes of a run give to its load.
pub fn view(record: &RunRecord) -> View {
    let volumes = volumes(record);
    let load = match &record.header.activity {
        Activity::Simulate(settings) => settings.load.as_str(),
        _ => "",
    };
    let head = ViewHead {
        target: vec![format!("Simulated: {load}")],
        host: vec!["virtual time, nothing is measured".to_owned()],
        started_unix_ms: 0,
    };
    let mut view = View { head: Some(head), data: data(&volumes), ..View::default() };
    SimulateVerdict::of(&volumes).push(&volumes, &mut view);
    let is_single = volumes.len() == 1;
    for &(test, forecast) in &volumes {
        let title = format!("{}: {}", forecast.target, test.title);
        if is_single {
            view.push_brief(
                title.clone(),
                [Block::Table(course(forecast)), Block::KeyFigures(figures(test, forecast))],
            );
        }
        let notes = test.notes.iter().map(|note| format!("Note: {note}.")).collect();
        view.push_full(
            title,
            [Block::Table(course(forecast)), Block::KeyFigures(figures(test, forecast)), Block::Notes(notes)],
        );
    }
    if !is_single {
        let prices = volumes.iter().filter_map(|(_, forecast)| Some(&forecast.monthly_cost.as_ref()?.price));
        let notes = Block::Notes(mark_note(prices).into_iter().collect());
        view.push("Comparison", [Block::Table(comparison(&volumes)), notes]);
    }
    crate::verdict::push_problems(record, &mut view);
    view.push_full("Findings", [run_view::brief_findings(record)]);
    view
}

/// `aws-gp3?size=100GiB` of `sim:aws-gp3?size=100GiB`.
fn short_name(target: &str) -> &str {
    target.strip_prefix("sim:").unwrap_or(target)
}

/// A row per stretch of time, and the whole.
fn course(forecast: &Forecast) -> Table {
    let columns = [
        Column::right("from"),
        Column::right("IOPS").takes_remark(),
        Column::right("MiB/s"),
        Column::right("mean").dispensable(2),
        Column::right("p50").dispensable(0),
        Column::right("p99"),
        Column::right("credits left"),
        Column::right("exhausted").dispensable(1),
    ];
    let rows = forecast.rows();
    let is_fine = rows.get(1).is_none_or(|row| row.start_ns < 60 * SECOND);
    let mut table = Table::new(columns, []);
    for alike in rows.chunk_by(|one, next| are_alike(forecast, one, next)) {
        let shown = if alike.len() > FEWEST_ALIKE { 1 } else { alike.len() };
        table.rows.extend(alike[..shown].iter().map(|slice| slice_row(forecast, slice, is_fine)));
        if let Some(first) = alike.get(shown) {
            let remark = format!("and {} more", alike.len() - shown);
            let row = Row::new([clock(first.start_ns, is_fine)]);
            table.rows.push(Row { remark: Some(remark), ..row });
        }
    }
    let credits = credits(forecast, &rows, forecast.elapsed_ns);
    table.rows.push(Row::new(["whole".into()].into_iter().chain(whole_rates(forecast)).chain(credits)));
    let has_bucket = forecast.credits.iter().any(|credit| credit.capacity.is_some());
    let absent: &[&str] = match (forecast.credits.is_empty(), has_bucket) {
        (true, _) => &["credits left", "exhausted"],
        (false, false) => &["credits left"],
        (false, true) => &[],
    };
    table.without(absent)
}

/// More consecutive equal rows than these are shown as one.
const FEWEST_ALIKE: usize = 3;

/// True where a row tells nothing that the one before did not.
fn are_alike(forecast: &Forecast, one: &ForecastSlice, next: &ForecastSlice) -> bool {
    let near = |one: f64, next: f64| (one - next).abs() <= one.abs() * 0.01;
    let credit_texts = |slice: &ForecastSlice| slice_credits(forecast, slice).map(|cell| cell.text);
    near(one.iops(), next.iops())
        && near(one.bytes_per_second(), next.bytes_per_second())
        && near(one.lat.moments.mean(), next.lat.moments.mean())
        && credit_texts(one) == credit_texts(next)
}

fn slice_row(forecast: &Forecast, slice: &ForecastSlice, is_fine: bool) -> Row {
    let mut rates = rates(slice.iops(), slice.bytes_per_second(), &slice.lat.summary());
    if forecast.is_stalled(slice) {
        rates[0] = Cell::real(0.0, "stalled");
    }
    let from = Cell::integer(slice.start_ns, clock(slice.start_ns, is_fine));
    Row::new([from].into_iter().chain(rates).chain(slice_credits(forecast, slice)))
}

/// Rates and latencies of the whole load.
fn whole_rates(forecast: &Forecast) -> [Cell; 5] {
    let total = forecast.total();
    let [iops, bandwidth] = [total.ios, total.bytes].map(|count| forecast.per_second(count));
    rates(iops, bandwidth, &total.lat.summary())
}

/// For how long a credit was exhausted, ns.
fn exhausted_ns(slices: &[ForecastSlice]) -> u64 {
    slices.iter().fold(0, |sum, slice| sum.saturating_add(slice.longest_exhausted_ns()))
}

/// The credit of which least is left at the end of some slices, and for how much of their time one was exhausted.
fn credits(forecast: &Forecast, slices: &[ForecastSlice], length_ns: u64) -> [Cell; 2] {
    let left = slices.last().and_then(|last| least_share(forecast, &last.credits_left));
    let left = left.map(|least| Cell::real(least, format!("{:.0} %", least * 100.0)));
    [left.into(), share(exhausted_ns(slices), length_ns)]
}

fn slice_credits(forecast: &Forecast, slice: &ForecastSlice) -> [Cell; 2] {
    credits(forecast, std::slice::from_ref(slice), slice.end_ns.saturating_sub(slice.start_ns))
}

fn rates(rate: f64, bytes_per_second: f64, lat: &LatencySummary) -> [Cell; 5] {
    [
        iops(rate),
        Cell::mebibytes(bytes_per_second),
        lat.mean.map(Cell::mean_latency).into(),
        lat.p50.map(Cell::latency).into(),
        lat.p99.map(Cell::latency).into(),
    ]
}

/// Whole requests a second, or decimals where there are few.
fn iops(rate: f64) -> Cell {
    let is_few = rate < 99.95 && rate > 0.0;
    Cell::real(rate, if is_few { decimal(rate) } else { grouped(rate.round() as u64) })
}

fn least_share(forecast: &Forecast, left: &[Option<u64>]) -> Option<f64> {
    let shares = forecast.credits.iter().zip(left).filter_map(|(credit, left)| credit.share(*left));
    shares.reduce(f64::min)
}

/// A share of the time; no text where it is below half a percent.
fn share(part: u64, whole: u64) -> Cell {
    let share = part as f64 / whole.max(1) as f64;
    let is_seen = whole > 0 && part.saturating_mul(200) >= whole;
    Cell::real(share, if is_seen { format!("{:.0} %", share * 100.0) } else { String::new() })
}

/// `7:05`, hours and minutes, or with seconds.
fn clock(ns: u64, is_fine: bool) -> String {
    let seconds = (ns + SECOND / 2) / SECOND;
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    if is_fine {
        format!("{hours}:{minutes:02}:{:02}", seconds % 60)
    } else {
        format!("{hours}:{minutes:02}")
    }
}

/// What stands below the table.
fn figures(test: &TestRecord, forecast: &Forecast) -> Vec<KeyFigure> {
    let mut figures = Vec::new();
    let alarm = |label: &str, text: String| KeyFigure { tone: Tone::Alarm, ..KeyFigure::new(label, text) };
    if let Some(reason) = &test.interrupted {
        let text = format!("by {reason} after {}", duration(Nanos(forecast.elapsed_ns)));
        figures.push(alarm("interrupted", text));
    }
    let failure = test.reason.as_ref().filter(|_| test.status == TestStatus::Failed);
    figures.extend(failure.map(|failure| alarm("failed", failure.clone())));
    figures.extend(stalls_text(&forecast.stalls).map(|text| KeyFigure::new("stalled", text)));
    figures.extend(forecast.credits.iter().map(|credit| credit_figure(credit, forecast.elapsed_ns)));
    let failed = forecast.total().failed;
    if failed > 0 {
        figures.push(alarm("failed I/Os", grouped(failed)));
    }
    if let Some(pace) = &forecast.own_pace {
        figures.push(KeyFigure::new("response time", pace_text(pace)));
    }
    if forecast.syncs.moments.count > 0 {
        let syncs = forecast.syncs.summary();
        figures.push(KeyFigure::new("flushes", format!("{}, {}", grouped(syncs.samples), latencies(&syncs))));
    }
    let unknown = || Cell::from("unknown: no price is sourced");
    figures
        .push(KeyFigure::new("monthly cost", forecast.monthly_cost.as_ref().map_or_else(unknown, cost_cell)));
    figures
}

fn stalls_text(stalls: &[ForecastStall]) -> Option<String> {
    let longest = stalls.iter().max_by_key(|stall| stall.length_ns)?;
    let sum = stalls.iter().fold(0u64, |sum, stall| sum.saturating_add(stall.length_ns));
    let times = match stalls.len() {
        1 => String::new(),
        count => format!("{} times, {} in total; longest ", grouped(count as u64), duration(Nanos(sum))),
    };
    let (length, start) = (duration(Nanos(longest.length_ns)), clock(longest.start_ns, true));
    Some(format!("{times}{length} from {start} on, with I/Os in flight and none completing"))
}

fn latencies(summary: &LatencySummary) -> String {
    let named = [
        ("mean", summary.mean.map(|mean| mean as u64)),
        ("p50", summary.p50),
        ("p99", summary.p99),
        ("max", summary.max),
    ];
    let parts = named.into_iter().filter_map(|(name, ns)| Some(format!("{name} {}", time(ns?))));
    parts.collect::<Vec<_>>().join(", ")
}

/// A latency, or minutes and hours where requests queue for so long.
fn time(ns: u64) -> String {
    if ns < 100 * SECOND { latency(ns) } else { duration(Nanos(ns)) }
}

/// When a burst was over, and for how long; where it never was, the least that was left.
fn credit_figure(credit: &CreditCourse, elapsed_ns: u64) -> KeyFigure {
    let amount = |count: f64| match credit.unit {
        LimitUnit::Ios => format!("{} I/Os", grouped(count.round() as u64)),
        LimitUnit::Bytes => bytes(count.round() as u64),
    };
    let share = credit.exhausted_ns as f64 * 100.0 / elapsed_ns.max(1) as f64;
    let sum = match credit.exhausted_ns {
        // It may be over just when the time is.
        0..500_000_000 => String::new(),
        exhausted_ns => {
            format!(", for {} in total ({share:.0} % of the time)", duration(Nanos(exhausted_ns)))
        }
    };
    let (label, size) = match credit.capacity {
        Some(capacity) => (format!("{} burst credits", credit.of), amount(capacity as f64)),
        None => (
            format!("{} burst", credit.of),
            credit.burst_rate.map(|rate| credit.unit.rate_text(rate)).unwrap_or_default(),
        ),
    };
    let course = match (credit.first_exhausted_ns, credit.capacity) {
        (Some(first), _) => {
            let first = duration(Nanos(first));
            format!("exhausted after {first}{sum}; then {}", credit.unit.rate_text(credit.baseline_rate))
        }
        (None, Some(_)) => {
            format!("never exhausted; at least {} left", amount(credit.least.unwrap_or(0) as f64))
        }
        (None, None) => "never exhausted".to_owned(),
    };
    KeyFigure::new(label, format!("{size}: {course}"))
}

/// What a load at its own pace adds: how long requests took from when they were due, and what was never issued.
fn pace_text(pace: &OwnPace) -> String {
    let mut text = format!("{} from when each I/O was due", latencies(&pace.response.summary()));
    if let Some(most) = pace.most_in_flight {
        text.push_str(&format!("; at most {} in flight", grouped(most)));
    }
    if pace.backlog > 0 {
        text.push_str(&format!("; {} due but not issued at the end", grouped(pace.backlog)));
    }
    if let Some(late) = pace.late_ns.filter(|late| *late >= SECOND) {
        text.push_str(&format!("; the last completed {} after the end", duration(Nanos(late))));
    }
    text
}

fn cost_cell(cost: &MonthlyCost) -> Cell {
    let price = &cost.price;
    let parts: Vec<String> =
        cost.parts.iter().map(|part| format!("{} {}", part.what, Cell::money(part.cost).text)).collect();
    let as_of = price.date_text().map(|when| format!(", {when}")).unwrap_or_default();
    let unknown = match cost.unknown.as_slice() {
        [] => String::new(),
        unknown => format!("; without {}, whose price is unknown", unknown.join(" and ")),
    };
    let total = Cell::money(cost.total);
    let parts = parts.join(" + ");
    let text = format!("{} {} ({parts}; {}{as_of}){unknown}", total.text, price.currency, price.region);
    Cell { text, ..total }
}

/// `8.00 USD per month`.
fn cost_text(cost: &MonthlyCost) -> String {
    format!("{} {} per month", Cell::money(cost.total).text, cost.price.currency)
}

/// The volumes, a row each.
fn comparison(volumes: &[VolumeForecast<'_>]) -> Table {
    let known = |cost: &MonthlyCost| {
        let (total, more) = (Cell::money(cost.total), if cost.is_whole() { "" } else { "+" });
        marked(Cell { text: format!("{}{more} {}", total.text, cost.price.currency), ..total }, &cost.price)
    };
    let rate = |forecast: &Forecast, index: usize| whole_rates(forecast)[index].clone();
    Table::of::<VolumeForecast<'_>>(
        &[
            (Column::left("volume"), &|(_, forecast)| short_name(&forecast.target).into()),
            (Column::right("IOPS"), &|(_, forecast)| rate(forecast, 0)),
            (Column::right("MiB/s").dispensable(3), &|(_, forecast)| rate(forecast, 1)),
            (Column::right("mean").dispensable(1), &|(_, forecast)| rate(forecast, 2)),
            (Column::right("p50").dispensable(0), &|(_, forecast)| rate(forecast, 3)),
            (Column::right("p99"), &|(_, forecast)| rate(forecast, 4)),
            (Column::right("exhausted after"), &|(_, forecast)| {
                let first = forecast.credits.iter().filter_map(|credit| credit.first_exhausted_ns).min();
                first.map_or_else(|| "never".into(), Cell::duration)
            }),
            (Column::right("exhausted").dispensable(2), &|(_, forecast)| {
                let longest = forecast.credits.iter().map(|credit| credit.exhausted_ns).max();
                share(longest.unwrap_or(0), forecast.elapsed_ns)
            }),
            (Column::right("monthly cost"), &|(_, forecast)| {
                let cost = forecast.monthly_cost.as_ref().filter(|cost| !cost.parts.is_empty());
                cost.map_or_else(|| "unknown".into(), known)
            }),
        ],
        volumes,
    )
}

/// The members of a stretch's document that a row has.
const COLUMNS: &str = "\
    target,scope,start_ns,end_ns,iops,bytes_per_second,lat_mean_ns=lat_ns.mean,lat_p50_ns=lat_ns.p50,\
    lat_p99_ns=lat_ns.p99,credits_left_fraction,credits_exhausted_ns,monthly_cost,currency,price_is_stale";

/// Every slice of every volume and, as `whole`, all of it together.
fn data(volumes: &[VolumeForecast<'_>]) -> Table {
    let rows = volumes.iter().flat_map(|&(_, forecast)| {
        let document = |scope: &str, figures: Value, slices: &[ForecastSlice]| {
            let left = slices.last().and_then(|last| least_share(forecast, &last.credits_left));
            let head = json!({
                "target": forecast.target,
                "scope": scope,
                "credits_left_fraction": left,
                "credits_exhausted_ns": exhausted_ns(slices),
            });
            object([figures, head])
        };
        let slices = forecast.slices.iter();
        let slices = slices.map(|slice| document("slice", json::slice(slice), std::slice::from_ref(slice)));
        let mut rows: Vec<Value> = slices.collect();
        let cost = forecast.monthly_cost.as_ref();
        let whole = json!({
            "start_ns": 0,
            "end_ns": forecast.elapsed_ns,
            "monthly_cost": cost.map(|cost| cost.total),
            "currency": cost.map(|cost| &cost.price.currency),
            "price_is_stale": cost.map(|cost| cost.price.is_stale),
        });
        let total = json::operation(forecast, &forecast.total());
        rows.push(document("whole", object([total, whole]), &forecast.slices));
        rows
    });
    Table::of_documents(&[COLUMNS], rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_show_seconds_where_they_matter() {
        let hour = 3_600 * SECOND;
        for (ns, is_fine, expected) in [
            (0, false, "0:00"),
            (23 * hour, false, "23:00"),
            (100 * hour, false, "100:00"),
            (61 * SECOND, true, "0:01:01"),
        ] {
            assert_eq!(clock(ns, is_fine), expected);
        }
        assert_eq!(time(hour + 60 * SECOND), "1 h 01 min");
    }

    #[test]
    fn credits_in_words() {
        let credit = |capacity, first_exhausted_ns| CreditCourse {
            of: "volume".to_owned(),
            capacity,
            burst_rate: Some(3000.0),
            baseline_rate: 150.0,
            least: Some(1_000),
            first_exhausted_ns,
            exhausted_ns: 3_600 * SECOND,
            ..CreditCourse::default()
        };
        let check = |credit: CreditCourse, label: &str, text: &str| {
            let figure = credit_figure(&credit, 2 * 3_600 * SECOND);
            assert_eq!((figure.label.as_str(), figure.cell.text.as_str()), (label, text));
        };
        check(
            credit(Some(5_400_000), Some(1_895 * SECOND)),
            "volume burst credits",
            "5,400,000 I/Os: exhausted after 31 min 35 s, for 1 h in total (50 % of the time); then 150 IOPS",
        );
        check(
            credit(Some(5_400_000), None),
            "volume burst credits",
            "5,400,000 I/Os: never exhausted; at least 1,000 I/Os left",
        );
        check(
            credit(None, Some(60 * SECOND)),
            "volume burst",
            "3,000 IOPS: exhausted after 1 min, for 1 h in total (50 % of the time); then 150 IOPS",
        );
        check(
            CreditCourse { exhausted_ns: 5, ..credit(None, Some(60 * SECOND)) },
            "volume burst",
            "3,000 IOPS: exhausted after 1 min; then 150 IOPS",
        );
    }
}
