//! What `advise` shows: the load, the answer in words, the present volume beside what was observed, the candidates with the course on the
//! best, and why others fall out.

pub mod json;

use fathom_analysis::advise::{Advice, AdvisedCandidate, AdvisedLoad, GrowthBreak, ObjectiveSource};
use fathom_model::units::{bytes, duration, grouped, latency};
use fathom_model::{Nanos, STALE};
use fathom_predict::{ExhaustionRange, LoadPace, PredictedSlice, Prediction, PredictionRange, PredictionSet};
use fathom_record::{LatencySummary, OpSummary};
use serde_json::json;

use crate::axis_text::rate_text;
use crate::catalog::show::{mark_note, month};
use crate::columns::{brief_name, capital};
use crate::document::object;
use crate::view::{
    Axis, Block, Cell, Column, KeyFigure, Plot, PlotForm, PlotPoint, PlotSeries, Row, Table, Tone, View,
    ViewHead, decimal, iops_text,
};

/// Candidates that meet the objective, or may, that are listed.
const MAX_LISTED: usize = 12;
/// What every volume has to give.
const RATE: &str = "99 % of the rate (in a closed loop 90 %)";
/// The same of a stated load, which has no end.
const ENDLESS_RATE: &str = "the whole rate";
/// Runners-up that are named.
const RUNNERS_UP: usize = 2;

/// The answer for a load.
pub fn view(advice: &Advice) -> View {
    let mut view = View { head: Some(head(&advice.observed)), data: data(advice), ..View::default() };
    push_answer(advice, &mut view);
    let observed = load_figures(advice);
    let is_first = |figure: &&KeyFigure| {
        ["need", "load", "growth", "limit", "objective"].contains(&figure.label.as_str())
    };
    view.push_brief("", [Block::KeyFigures(observed.iter().filter(is_first).cloned().collect())]);
    view.push_full("Load", [Block::KeyFigures(observed)]);
    if let Some(current) = &advice.current {
        view.push_full("Present volume", present(&advice.observed, current));
    }
    let listed: Vec<&AdvisedCandidate> = listed(advice);
    let mut brief = candidates(&listed);
    for name in brief.rows.iter_mut().filter_map(|row| row.cells.first_mut()) {
        *name = brief_name(&name.text).into();
    }
    view.push_brief("Candidates", [Block::Table(brief)]);
    view.push_full("Candidates", [Block::Table(candidates(&listed)), Block::Notes(table_notes(advice))]);
    if let Some(best) = advice.candidates.first() {
        view.push_full(format!("Course on {}", best.target), [Block::Plots(plots(best))]);
    }
    view.push_full("Not suitable", [Block::KeyFigures(unsuitable(advice))]);
    view.push_full("Notes", [Block::Notes(notes(advice))]);
    view
}

fn head(load: &AdvisedLoad) -> ViewHead {
    let mut target = vec![load.files.join(", "), load.device.clone(), load.format.clone()];
    target.retain(|part| !part.is_empty());
    let detail = match load.resolution_ns {
        _ if load.text.is_some() => "a stated load".to_owned(),
        Some(ns) => format!("sums of {}", duration(Nanos(ns))),
        None => format!("{} I/Os", grouped(load.ops)),
    };
    let length = format!("{} long", duration(Nanos(load.length_ns)));
    ViewHead {
        target,
        host: vec![detail, length, "virtual time, no device is accessed".to_owned()],
        started_unix_ms: 0,
    }
}

fn load_figures(advice: &Advice) -> Vec<KeyFigure> {
    let load = &advice.observed;
    let mut figures: Vec<KeyFigure> = Vec::new();
    let mut add = |label: &str, text: String| figures.push(KeyFigure::new(label, text));
    if let Some(text) = &load.text {
        add("need", text.clone());
    }
    let rate = load.bytes_per_second.map(|rate| format!(", {}", Cell::rate(rate).text)).unwrap_or_default();
    let peak = Cell::iops(load.peak_iops).text;
    let window = if load.resolution_ns.is_some() { " in the busiest interval" } else { " at most" };
    add("load", format!("{} IOPS{rate}; {peak} IOPS{window}", Cell::iops(load.iops).text));
    let size = load.mean_bytes.map(|mean| format!("{} on average", bytes(mean.round() as u64)));
    let reads = load.read_share.map(|share| format!("{} reads", Cell::percent(share).text));
    let sizes: Vec<String> = [size, reads].into_iter().flatten().collect();
    if !sizes.is_empty() {
        add("I/Os", sizes.join(", "));
    }
    if advice.growth != 1.0 {
        add("growth", format!("predicted for {} times this load", decimal(advice.growth)));
    }
    if load.detail == "requests" {
        add("pace", pace_text(load.pace).to_owned());
    }
    if let Some(share) = load.limit_reached_share.filter(|share| *share > 0.0) {
        let text =
            format!("reached in {} of the time: more was asked than is recorded", Cell::percent(share).text);
        figures.push(KeyFigure { tone: Tone::Alarm, ..KeyFigure::new("limit", text) });
    }
    figures.push(KeyFigure::new("objective", objective_text(advice)));
    figures
}

fn pace_text(pace: LoadPace) -> &'static str {
    match pace {
        LoadPace::Open => "open loop: requests come by themselves, at the times of the recording",
        LoadPace::Closed => "closed loop: each request follows the completion of another, and is replayed so",
        LoadPace::Mixed => {
            "some requests follow completions, or clients limit how many are outstanding: replayed both ways"
        }
        LoadPace::Split => {
            "some threads are clients that wait for their requests, and are replayed so; others do not, or it is not known"
        }
        LoadPace::Unknown => {
            "unknown whether requests follow completions: replayed at their times, and where latencies are known both ways"
        }
    }
}

fn objective_text(advice: &Advice) -> String {
    let bounds = advice.objective.join(", ");
    let rate = if advice.observed.text.is_some() { ENDLESS_RATE } else { RATE };
    match advice.source {
        ObjectiveSource::Given => format!("{bounds}, and {rate}"),
        ObjectiveSource::Current => {
            "not more than 10 % worse than the prediction for the present volume: rate, mean latency and p99"
                .to_owned()
        }
        ObjectiveSource::Observed => {
            format!("not more than 10 % worse than observed: {bounds}; {rate}")
        }
        ObjectiveSource::Rate => format!("{rate}; no latency objective (add --expect)"),
    }
}

/// The price of a month: `USD 24.00`.
fn price_text(candidate: &AdvisedCandidate) -> String {
    match &candidate.price {
        Some(bill) if !bill.parts.is_empty() => {
            let unknown = if bill.is_whole() { "" } else { " and an unknown part" };
            let stale = if bill.price.is_stale { format!(", {STALE}") } else { String::new() };
            format!("{} {}{unknown} per month{stale}", bill.price.currency, Cell::money(bill.total).text)
        }
        _ => "price unknown".to_owned(),
    }
}

/// The answer: the volume to take with its price, the next ones, how much more load it holds, and whether the model can be trusted.
fn push_answer(advice: &Advice, view: &mut View) {
    let Some(best) = advice.answer() else {
        view.warn("Answer", no_answer(advice));
        return;
    };
    let kind = if best.is_current { "keep the present volume" } else { advice.order.text() };
    view.say("Answer", format!("{} ({}): {kind}{}", best.target, price_text(best), saving(advice, best)));
    let others =
        advice.candidates[1..].iter().filter(|other| other.verdict.verdict.is_met()).take(RUNNERS_UP);
    let others: Vec<String> =
        others.map(|other| format!("{} ({})", other.target, price_text(other))).collect();
    view.say("Next best", (!others.is_empty()).then(|| others.join("; ")));
    view.say("Headroom", best.breaks.as_ref().map(break_text));
    let doubt = advice.current.as_ref().and_then(|current| trust(&advice.observed, &current.predicted));
    view.warn("Model", doubt.filter(|text| !text.starts_with(AGREES)));
}

/// What the present volume costs beside it.
fn saving(advice: &Advice, best: &AdvisedCandidate) -> String {
    let Some(current) = advice.current.as_ref().filter(|_| !best.is_current) else { return String::new() };
    let known = |candidate: &AdvisedCandidate| {
        let bill = candidate.price.clone().filter(|bill| bill.is_whole() && !bill.parts.is_empty())?;
        Some((bill.price.currency, bill.total))
    };
    match (known(best), known(current)) {
        (Some((one, price)), Some((other, now))) if one == other && now > 0.0 => {
            let change = (price / now - 1.0) * 100.0;
            let words = if change <= 0.0 { "less" } else { "more" };
            format!(
                "; {:.0} % {words} than the present {} ({})",
                change.abs(),
                current.target,
                price_text(current)
            )
        }
        _ => format!("; the present is {} ({})", current.target, price_text(current)),
    }
}

fn break_text(breaks: &GrowthBreak) -> String {
    match breaks.growth {
        Some(at) if breaks.met_at <= 1.0 => format!("none: {} at {} the load", breaks.why, times(at)),
        Some(at) => {
            format!(
                "meets the objective up to {} the load; {} at {}",
                times(breaks.met_at),
                breaks.why,
                times(at)
            )
        }
        None => format!("still meets the objective at {} the load", times(breaks.met_at)),
    }
}

/// A factor of growth: `1.25 times`.
fn times(growth: f64) -> String {
    if growth < 10.0 { format!("{growth:.2} times") } else { format!("{growth:.0} times") }
}

fn no_answer(advice: &Advice) -> String {
    let open = advice.candidates.iter().find(|candidate| candidate.verdict.verdict.is_inconclusive());
    match open {
        Some(open) => {
            let (reason, remedy) = open.verdict.verdict.reason().unwrap_or(("", None));
            let remedy = remedy.map(|remedy| format!(" To decide it, {remedy}.")).unwrap_or_default();
            format!(
                "inconclusive: no volume certainly meets the objective. {} ({}) may: {reason}.{remedy}",
                open.target,
                price_text(open)
            )
        }
        None => "no volume meets the objective".to_owned(),
    }
}

fn listed(advice: &Advice) -> Vec<&AdvisedCandidate> {
    let may = |candidate: &&AdvisedCandidate| !candidate.verdict.verdict.is_missed();
    let all: Vec<&AdvisedCandidate> = advice.candidates.iter().filter(may).take(MAX_LISTED).collect();
    // Those that are named one by one are shown whatever they give.
    if all.is_empty() { advice.candidates.iter().take(MAX_LISTED).collect() } else { all }
}

fn candidates(listed: &[&AdvisedCandidate]) -> Table {
    let percentile = |candidate: &AdvisedCandidate, figure: fn(&OpSummary) -> Option<u64>| {
        latency_range(candidate.predicted.total(|op| figure(op).map(|ns| ns as f64)))
    };
    let percent = |candidate: &AdvisedCandidate, figure: fn(&Prediction) -> Option<f64>| {
        percent_range(candidate.predicted.range(figure))
    };
    let name = |candidate: &AdvisedCandidate| {
        let name = candidate.target.strip_prefix("sim:").unwrap_or(&candidate.target);
        format!("{name}{}", if candidate.is_current { " (present)" } else { "" })
    };
    let holds = |breaks: &GrowthBreak| {
        let from = if breaks.growth.is_none() { "≥ " } else { "" };
        Cell::real(breaks.met_at, format!("{from}{:.2} x", breaks.met_at))
    };
    let table = Table::of::<&AdvisedCandidate>(
        &[
            (Column::left("volume"), &|candidate| name(candidate).into()),
            (Column::left("meets"), &|candidate| match candidate.verdict.verdict.decided() {
                Some(true) => "yes".into(),
                Some(false) => "no".into(),
                None => "maybe".into(),
            }),
            (Column::right("per month"), &|candidate| candidate.price.as_ref().map(month).into()),
            (Column::left("").id("currency"), &|candidate| {
                candidate.price.as_ref().map(|bill| bill.price.currency.as_str()).into()
            }),
            (Column::right("p50").dispensable(4), &|candidate| percentile(candidate, |op| op.lat_ns.p50)),
            (Column::right("p99"), &|candidate| percentile(candidate, |op| op.lat_ns.p99)),
            (Column::right("p99.9").dispensable(3), &|candidate| percentile(candidate, |op| op.lat_ns.p999)),
            (Column::right("throttled").dispensable(5), &|candidate| {
                percent(candidate, |one| Some(one.throttled_share))
            }),
            (Column::right("lowest credits").dispensable(1), &|candidate| {
                percent(candidate, |one| Some(one.lowest_credits?.share))
            }),
            (Column::right("exhausted at").dispensable(2), &|candidate| {
                candidate.predicted.exhausted().map(exhausted_at).into()
            }),
            (Column::right("holds up to").dispensable(0), &|candidate| {
                candidate.breaks.as_ref().map(holds).into()
            }),
        ],
        listed,
    );
    let tone = |candidate: &&AdvisedCandidate| match candidate.verdict.verdict.is_missed() {
        true => Tone::Alarm,
        false => Tone::Normal,
    };
    table.toned(listed.iter().map(tone)).without_empty()
}

/// `1 h 2 min`, or `from 40 s` where they may last.
fn exhausted_at(range: ExhaustionRange) -> Cell {
    let text = |ns: u64| duration(Nanos(ns));
    match (range.value(), range.high) {
        (Some(ns), _) => Cell::duration(ns),
        (None, Some(high)) => Cell::real(range.low as f64, format!("{} to {}", text(range.low), text(high))),
        (None, None) => Cell::real(range.low as f64, format!("from {}, if ever", text(range.low))),
    }
}

/// `1.00 ms`, or `1.00 to 20.0 ms` where the load does not say more.
fn latency_range(range: Option<PredictionRange>) -> Cell {
    let text = |ns: f64| latency(ns.round() as u64);
    match range {
        None => Cell::default(),
        Some(range) if text(range.low) == text(range.high) || range.value().is_some() => {
            Cell::real(range.high, text(range.high))
        }
        Some(range) => {
            let (low, high) = (text(range.low), text(range.high));
            let low = match (low.split_once(' '), high.split_once(' ')) {
                (Some((number, unit)), Some((_, other))) if unit == other => number.to_owned(),
                _ => low,
            };
            Cell::real(range.high, format!("{low} to {high}"))
        }
    }
}

fn percent_range(range: Option<PredictionRange>) -> Cell {
    let Some(range) = range else { return Cell::default() };
    let (low, high) = (Cell::percent(range.low).text, Cell::percent(range.high).text);
    match low == high {
        true => Cell::percent(range.low),
        false => Cell::real(range.high, format!("{} to {high}", low.trim_end_matches(" %"))),
    }
}

fn table_notes(advice: &Advice) -> Vec<String> {
    let mut notes = Vec::new();
    let may: usize =
        advice.candidates.iter().filter(|candidate| !candidate.verdict.verdict.is_missed()).count();
    if may > MAX_LISTED {
        notes.push(format!("{} more meet the objective or may; CSV and JSON have all.", may - MAX_LISTED));
    }
    if advice.observed.arrivals.len() > 1 {
        notes.push(format!(
            "Ranges: I/Os arrive {}. `maybe` where only some of these meet the objective.",
            advice.observed.arrivals.join(", or ")
        ));
    }
    notes.extend(mark_note(listed(advice).into_iter().filter_map(|one| Some(&one.price.as_ref()?.price))));
    notes
}

/// Why others fall out.
fn unsuitable(advice: &Advice) -> Vec<KeyFigure> {
    let missed = advice.candidates.iter().filter(|candidate| candidate.verdict.verdict.is_missed());
    let missed = missed.map(|candidate| {
        let name = candidate.target.strip_prefix("sim:").unwrap_or(&candidate.target);
        KeyFigure::new(candidate.id.as_str(), format!("{name}: {}", candidate.verdict.why))
    });
    let others = advice.unsuitable.iter().map(|other| KeyFigure::new(other.id.as_str(), other.why.as_str()));
    missed.chain(others).collect()
}

fn notes(advice: &Advice) -> Vec<String> {
    let mut notes: Vec<String> = advice.notes.iter().map(|note| format!("{}.", capital(note))).collect();
    for candidate in listed(advice).into_iter().take(3) {
        notes.extend(candidate.notes.iter().map(|note| format!("{}: {note}.", candidate.id)));
    }
    if !advice.provider.is_empty() {
        notes.push(format!(
            "Types of {} alone were searched; --provider all searches every one.",
            advice.provider
        ));
    }
    if advice.left_out > 0 {
        notes.push(format!(
            "{} types that are no longer sold are left out; --historical includes them.",
            advice.left_out
        ));
    }
    notes
}

/// The model of the present volume serves at most this share less than was observed.
const SERVED: f64 = 0.03;

/// The prediction for the present beside what was observed.
fn present(load: &AdvisedLoad, current: &AdvisedCandidate) -> Vec<Block> {
    let columns = [Column::left(""), Column::right("observed"), Column::right("predicted")];
    let set = &current.predicted;
    let lat = load.lat_ns.as_ref();
    let percentile = |name: &str, of: fn(&LatencySummary) -> Option<u64>| {
        let predicted = latency_range(set.total(|op| of(&op.lat_ns).map(|ns| ns as f64)));
        Row::new([name.into(), lat.and_then(of).map(Cell::latency).into(), predicted])
    };
    let iops = set.total(|op| Some(op.iops)).map(|range| Cell::iops(range.low));
    let mean = load.mean_latency_ns.map(Cell::mean_latency);
    let rows = [
        Row::new(["IOPS".into(), Cell::iops(load.iops), iops.into()]),
        Row::new(["mean latency".into(), mean.into(), latency_range(set.total(|op| op.lat_ns.mean))]),
        percentile("p50", |lat| lat.p50),
        percentile("p99", |lat| lat.p99),
    ];
    let mut words = vec![format!("{}: {}.", current.target, price_text(current))];
    words.extend(current.breaks.as_ref().map(|breaks| format!("Headroom: {}.", break_text(breaks))));
    words.extend(trust(load, &current.predicted));
    vec![Block::Table(Table::new(columns, rows)), Block::Notes(words)]
}

/// What is said of a prediction that agrees with what was observed.
const AGREES: &str = "The observed mean latency agrees with the prediction within a half.";

/// Whether the prediction agrees with what was observed.
fn trust(load: &AdvisedLoad, predicted: &PredictionSet) -> Option<String> {
    let served = predicted.total(|op| Some(op.iops));
    if let Some(range) = served.filter(|range| range.high < load.iops * (1.0 - SERVED)) {
        return Some(format!(
            "The model serves {} of the {} IOPS that were observed: the volume is another one, its limits are higher, or its burst \
             credits differed. Check --current before you follow the advice.",
            iops_text(range.high),
            iops_text(load.iops)
        ));
    }
    let observed = load.mean_latency_ns?;
    let range = predicted.total(|op| op.lat_ns.mean)?;
    let words = if observed < range.low / 10.0 {
        "The model has queues that were not observed: the volume is another one, its limits are higher, or its burst credits differed. \
         Check --current before you follow the advice."
    } else if observed < range.low / 1.5 {
        "The model is slower than observed: its latency is that of the catalogue, not of this volume. Compare volumes by it."
    } else if observed > range.high * 1.5 {
        "The volume was slower than the model: something else limited it, such as the instance, or it is another one. The advice does not \
         cover that."
    } else {
        AGREES
    };
    Some(words.to_owned())
}

/// The members of a candidate's document that a row has.
const COLUMNS: &str = "\
    id,target,verdict,why,size_bytes=parameters.size_bytes,iops_chosen=parameters.iops,\
    bytes_per_second_chosen=parameters.bytes_per_second,instance,iops=predicted.range.iops.high,\
    lat_p50_low_ns=predicted.range.lat_ns.p50.low,lat_p50_high_ns=predicted.range.lat_ns.p50.high,\
    lat_p99_low_ns=predicted.range.lat_ns.p99.low,lat_p99_high_ns=predicted.range.lat_ns.p99.high,\
    lat_p999_low_ns=predicted.range.lat_ns.p999.low,\
    lat_p999_high_ns=predicted.range.lat_ns.p999.high,\
    throttled_share_high=predicted.range.throttled_share.high,exhausted_ns,\
    holds_up_to_growth=breaks.met_at,monthly_cost=price.total,cost_unknown=price.unknown,\
    currency=price.currency,price_is_stale";

/// A row for each candidate.
fn data(advice: &Advice) -> Table {
    let document = |one: &AdvisedCandidate| {
        let rest = json!({
            "exhausted_ns": one.predicted.exhausted().map(|range| range.low),
            "price_is_stale": one.price.as_ref().map(|bill| bill.price.is_stale),
        });
        object([json::candidate(one), rest])
    };
    Table::of_documents(&[COLUMNS], advice.candidates.iter().map(document))
}

/// Units of time for the horizontal axis, and the length from which each is used, seconds.
const UNITS: [(&str, f64, f64); 4] =
    [("days", 86_400.0, 2.0 * 86_400.0), ("h", 3600.0, 7200.0), ("min", 60.0, 120.0), ("s", 1.0, 0.0)];

/// The charts; none where there is no course.
fn plots(candidate: &AdvisedCandidate) -> Vec<Plot> {
    let Some(first) = candidate.predicted.first().filter(|first| first.slices.len() > 1) else {
        return Vec::new();
    };
    let worst = candidate.predicted.all.last().filter(|last| *last != first);
    let last = &first.slices[first.slices.len() - 1];
    let seconds = (last.start_ns + last.length_ns) as f64 / 1e9;
    let (name, unit, _) = UNITS.into_iter().find(|(_, _, from)| seconds >= *from).unwrap_or(UNITS[3]);
    let label = format!("time ({name})");
    let points =
        |slices: &[PredictedSlice], value: &dyn Fn(&PredictedSlice) -> Option<f64>| -> Vec<PlotPoint> {
            let at = |ns: u64| ns as f64 / 1e9 / unit;
            let of = |slice: &PredictedSlice| {
                let (from, to) = (at(slice.start_ns), at(slice.start_ns + slice.length_ns));
                Some(PlotPoint { from, to, y: value(slice)?, interval: None })
            };
            slices.iter().filter_map(of).collect()
        };
    let plot = |title: String, text: fn(f64) -> String, series: Vec<PlotSeries>| Plot {
        title,
        form: PlotForm::Steps,
        x: Axis::linear(label.clone(), |value| format!("{value:.0}")).ending(0.0, seconds / unit),
        y: Axis::linear("", text),
        series,
        limits: Vec::new(),
        marks: Vec::new(),
    };
    let one = |name: &str, points: Vec<PlotPoint>| PlotSeries { name: name.to_owned(), points };
    let rate = points(&first.slices, &|slice| Some(slice.iops));
    let mut plots = vec![plot("IOPS of the load".to_owned(), rate_text, vec![one("", rate)])];
    let credits = points(&first.slices, &|slice| Some(slice.credits? * 100.0));
    if !credits.is_empty() {
        let title = format!("Burst credits of {} (%)", candidate.id);
        plots.push(plot(title, |value| format!("{value:.0}"), vec![one("", credits)]));
    }
    let p99 = |slices: &[PredictedSlice]| points(slices, &|slice| Some(slice.p99_ns? as f64 / 1e6));
    let mut series = vec![one(if worst.is_some() { "at best" } else { "" }, p99(&first.slices))];
    series.extend(worst.map(|worst| one("at worst", p99(&worst.slices))));
    if series.iter().any(|series| !series.points.is_empty()) {
        plots.push(plot(format!("p99 latency on {} (ms)", candidate.id), millis, series));
    }
    plots
}

/// Milliseconds on an axis.
fn millis(value: f64) -> String {
    match value {
        value if value == 0.0 || value >= 10.0 => rate_text(value),
        value => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use fathom_record::{LatencySummary, OpSummary, TestSummary};

    use super::*;

    #[test]
    fn a_prediction_that_disagrees_with_what_was_observed_is_not_to_be_trusted() {
        let check = |observed: (f64, Option<f64>), predicted: (f64, f64), expected: Option<&str>| {
            let load =
                AdvisedLoad { iops: observed.0, mean_latency_ns: observed.1, ..AdvisedLoad::default() };
            let lat_ns = LatencySummary { mean: Some(predicted.1), ..LatencySummary::default() };
            let total = Some(OpSummary { iops: predicted.0, lat_ns, ..OpSummary::default() });
            let summary = TestSummary { total, ..TestSummary::default() };
            let set = PredictionSet { all: vec![Prediction { summary, ..Prediction::default() }] };
            let words = trust(&load, &set).unwrap_or_default();
            assert!(words.starts_with(expected.unwrap_or("The observed")), "{words}");
            assert_eq!(words.is_empty(), expected == Some(""), "{words}");
        };
        let few = Some("The model serves 359 of the 375 IOPS that were observed");
        check((375.0, None), (359.0, 5e11), few);
        check((375.0, Some(1e6)), (359.0, 5e11), few);
        check((375.0, None), (374.0, 5e6), Some(""));
        check((375.0, Some(1e6)), (374.0, 1.2e6), None);
        check((375.0, Some(1e6)), (374.0, 5e7), Some("The model has queues"));
        check((375.0, Some(1e6)), (374.0, 2e6), Some("The model is slower"));
        check((375.0, Some(5e6)), (374.0, 1e6), Some("The volume was slower"));
    }
}
