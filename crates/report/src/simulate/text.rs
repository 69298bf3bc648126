//! What `simulate` predicts, for people: a row per stretch of time, when the credit runs dry, what a month costs, and the
//! volumes side by side.

use std::io;

use fathom_analysis::forecast::{CreditCourse, CreditUnit, Forecast, ForecastSlice, record_of};
use fathom_catalog::MonthlyCost;
use fathom_model::Nanos;
use fathom_model::units::{bytes, duration, grouped, latency};

use crate::bench::table::{INDENT, decimal};
use crate::columns::{Align, Columns, wrap};
use crate::{Style, TextWriter};

/// A volume under a load, and what it costs.
pub type PricedForecast<'a> = (&'a Forecast, Option<&'a MonthlyCost>);

/// Writes what the volumes would give.
///
/// # Errors
/// Those of `out`.
pub fn render(
    load: &str,
    volumes: &[PricedForecast<'_>],
    style: &Style,
    out: &mut TextWriter,
) -> io::Result<()> {
    let width = style.width.max(40);
    let head = format!("Predicted for {load}: virtual time, nothing real is measured.");
    for line in wrap(&head, width, 0, 0) {
        writeln!(out, "{line}")?;
    }
    for volume in volumes {
        writeln!(out)?;
        one(volume, style, width, out)?;
    }
    if volumes.len() > 1 {
        writeln!(out)?;
        side_by_side(volumes, style, width, out)?;
    }
    Ok(())
}

fn one(
    (forecast, cost): &PricedForecast<'_>,
    style: &Style,
    width: usize,
    out: &mut TextWriter,
) -> io::Result<()> {
    for line in wrap(&format!("{}: {}", forecast.target, forecast.title), width, 0, 2) {
        writeln!(out, "{}", style.bold(&line))?;
    }
    let mut columns = table(forecast);
    let gap = columns.fit(width - INDENT, &["p50", "dry", "mean"]);
    let lines = columns.lines(gap);
    for (index, line) in lines.iter().enumerate() {
        let is_edge = index == 0 || index + 1 == lines.len();
        writeln!(out, "{:INDENT$}{}", "", if is_edge { style.bold(line) } else { line.clone() })?;
    }
    for text in told(forecast, *cost) {
        let is_bad = text.starts_with("Broken off") || text.starts_with("Failed");
        for line in wrap(&text, width, INDENT, INDENT + 2) {
            let line = if is_bad { style.red(&line) } else { line };
            writeln!(out, "{}", if text.starts_with("Note") { style.dim(&line) } else { line })?;
        }
    }
    Ok(())
}

/// A row per stretch of time, and the whole.
fn table(forecast: &Forecast) -> Columns {
    let rows = forecast.course.rows();
    let fine = rows.get(1).is_none_or(|row| row.start_ns < 60 * SECOND);
    let mut cells: Vec<Vec<String>> = Vec::new();
    for alike in rows.chunk_by(|one, next| are_alike(forecast, one, next)) {
        let shown = if alike.len() > FEWEST_ALIKE { 1 } else { alike.len() };
        cells.extend(alike[..shown].iter().map(|row| row_cells(forecast, row, fine)));
        if let Some(first) = alike.get(shown) {
            cells
                .push(vec![clock(first.start_ns, fine), format!("and {} more like it", alike.len() - shown)]);
        }
    }
    let total = forecast.total();
    let lat = record_of(&total.lat).summary();
    let dry: u64 = rows.iter().filter_map(|row| row.dry_ns.iter().max()).sum();
    cells.push(vec![
        "whole".to_owned(),
        rate(forecast.iops()),
        decimal(forecast.bytes_per_second() / MIB),
        lat.mean.map(|mean| latency(mean as u64)).unwrap_or_default(),
        lat.p50.map(latency).unwrap_or_default(),
        lat.p99.map(latency).unwrap_or_default(),
        least_share(forecast, forecast.course.credits.iter().map(|credit| credit.left)),
        share(dry, forecast.elapsed_ns),
    ]);
    let head = vec!["from", "IOPS", "MiB/s", "mean", "p50", "p99", "credit", "dry"];
    let mut columns = Columns { align: vec![Align::Right; head.len()], head, rows: cells };
    if forecast.course.credits.is_empty() {
        columns.drop("dry");
    }
    if forecast.course.credits.iter().all(|credit| credit.capacity.is_none()) {
        columns.drop("credit");
    }
    columns
}

/// More rows than these in turn that tell the same are told of in one.
const FEWEST_ALIKE: usize = 3;

/// True where a row tells nothing that the one before did not.
fn are_alike(forecast: &Forecast, one: &ForecastSlice, next: &ForecastSlice) -> bool {
    let near = |one: f64, next: f64| (one - next).abs() <= one.abs() * 0.01;
    let told = |row: &ForecastSlice| row_cells(forecast, row, false).split_off(6);
    near(one.iops(), next.iops())
        && near(one.bytes_per_second(), next.bytes_per_second())
        && near(one.mean_ns().unwrap_or(0.0), next.mean_ns().unwrap_or(0.0))
        && told(one) == told(next)
}

const MIB: f64 = (1 << 20) as f64;
const SECOND: u64 = 1_000_000_000;

fn row_cells(forecast: &Forecast, row: &ForecastSlice, fine: bool) -> Vec<String> {
    let dry = row.dry_ns.iter().max().copied().unwrap_or(0);
    vec![
        clock(row.start_ns, fine),
        if forecast.is_stalled(row) { "stalled".to_owned() } else { rate(row.iops()) },
        decimal(row.bytes_per_second() / MIB),
        row.mean_ns().map(|mean| latency(mean as u64)).unwrap_or_default(),
        row.p50_ns().map(latency).unwrap_or_default(),
        row.p99_ns().map(latency).unwrap_or_default(),
        least_share(forecast, row.left.iter().copied()),
        share(dry, row.end_ns - row.start_ns),
    ]
}

/// Whole requests a second, or decimals where there are few.
fn rate(iops: f64) -> String {
    if iops < 99.95 && iops > 0.0 { decimal(iops) } else { grouped(iops.round() as u64) }
}

/// The credit of which the smallest share is left.
fn least_share(forecast: &Forecast, left: impl Iterator<Item = u64>) -> String {
    let shares = forecast.course.credits.iter().zip(left).filter_map(|(credit, left)| credit.share(left));
    let least = shares.fold(f64::INFINITY, f64::min);
    if least.is_finite() { format!("{:.0} %", least * 100.0) } else { String::new() }
}

fn share(part: u64, whole: u64) -> String {
    match (part, whole) {
        (part, whole) if part.saturating_mul(200) < whole || whole == 0 => String::new(),
        (part, whole) => format!("{:.0} %", part as f64 * 100.0 / whole as f64),
    }
}

/// `7:05`, hours and minutes, or with seconds.
fn clock(ns: u64, fine: bool) -> String {
    let seconds = (ns + SECOND / 2) / SECOND;
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    if fine { format!("{hours}:{minutes:02}:{:02}", seconds % 60) } else { format!("{hours}:{minutes:02}") }
}

/// What stands below the table.
fn told(forecast: &Forecast, cost: Option<&MonthlyCost>) -> Vec<String> {
    let mut told = Vec::new();
    if let Some(reason) = &forecast.interrupted {
        told.push(format!("Broken off by {reason} after {}.", duration(Nanos(forecast.elapsed_ns))));
    }
    if let Some(failure) = &forecast.failure {
        told.push(format!("Failed: {failure}."));
    }
    told.extend(stalls_text(forecast));
    told.extend(forecast.course.credits.iter().map(|credit| credit_text(credit, forecast.elapsed_ns)));
    let failed: u64 = forecast.ops.iter().map(|op| op.failed).sum();
    if failed > 0 {
        told.push(format!("{} requests failed.", grouped(failed)));
    }
    told.extend(pace_text(forecast));
    if forecast.syncs.moments.count > 0 {
        let syncs = record_of(&forecast.syncs).summary();
        told.push(format!("Flushes: {}, {}.", grouped(syncs.samples), latencies(&syncs)));
    }
    if let Some(cost) = cost {
        told.push(cost_text(cost));
    } else {
        told.push("A month: no price is sourced.".to_owned());
    }
    told.extend(forecast.notes.iter().map(|note| format!("Note: {note}.")));
    told
}

fn stalls_text(forecast: &Forecast) -> Option<String> {
    let longest = forecast.stalls.iter().max_by_key(|stall| stall.length_ns)?;
    let sum: u64 = forecast.stalls.iter().map(|stall| stall.length_ns).sum();
    let times = match forecast.stalls.len() {
        1 => String::new(),
        count => format!(" {} times, {} in sum, at the longest", grouped(count as u64), duration(Nanos(sum))),
    };
    let (length, start) = (duration(Nanos(longest.length_ns)), clock(longest.start_ns, true));
    Some(format!("Stalled:{times} nothing completed for {length} from {start} on, with requests under way."))
}

fn latencies(summary: &fathom_record::LatencySummary) -> String {
    let named = [
        ("mean", summary.mean.map(|mean| mean as u64)),
        ("p50", summary.p50),
        ("p99", summary.p99),
        ("at most", summary.max),
    ];
    let parts = named.into_iter().filter_map(|(name, ns)| Some(format!("{name} {}", time(ns?))));
    parts.collect::<Vec<_>>().join(", ")
}

/// A latency, or minutes and hours where requests queue for so long.
fn time(ns: u64) -> String {
    if ns < 100 * SECOND { latency(ns) } else { duration(Nanos(ns)) }
}

fn amount(unit: CreditUnit, count: f64) -> String {
    match unit {
        CreditUnit::Ios => format!("{} I/Os", grouped(count.round() as u64)),
        CreditUnit::Bytes => bytes(count.round() as u64),
    }
}

/// When it runs dry, and for how long; where it never does, the least that was left.
fn credit_text(credit: &CreditCourse, elapsed_ns: u64) -> String {
    let per_second = |level: f64| match credit.unit {
        CreditUnit::Ios => format!("{} IOPS", grouped(level.round() as u64)),
        CreditUnit::Bytes => format!("{}/s", bytes(level.round() as u64)),
    };
    let base = per_second(credit.base);
    let share = credit.dry_ns as f64 * 100.0 / elapsed_ns.max(1) as f64;
    // It may be over just when the time is.
    let sum = match credit.dry_ns {
        0..500_000_000 => String::new(),
        dry_ns => format!(", and for {} in sum ({share:.0} % of the time)", duration(Nanos(dry_ns))),
    };
    let first = credit.first_dry_ns.map(|first| duration(Nanos(first)));
    let Some(capacity) = credit.capacity else {
        let of = format!("Burst of {} at {}", credit.of, credit.burst.map(per_second).unwrap_or_default());
        return match first {
            Some(first) => format!("{of}: over after {first}{sum}; {base} are left then."),
            None => format!("{of}: it never has to rest."),
        };
    };
    let of = format!("Credit of {}, {}", credit.of, amount(credit.unit, capacity as f64));
    match first {
        Some(first) => format!("{of}: used up after {first}{sum}; {base} are left then."),
        None => {
            format!("{of}: never used up; at least {} were left.", amount(credit.unit, credit.least as f64))
        }
    }
}

/// What a load at its own pace adds: how long requests waited, and what was never made.
fn pace_text(forecast: &Forecast) -> Option<String> {
    let pace = forecast.own_pace.as_ref()?;
    let summary = record_of(&pace.response).summary();
    let mut text =
        format!("The load keeps its own pace: from when a request was due, {}", latencies(&summary));
    if let Some(most) = pace.most_in_flight {
        text.push_str(&format!("; at most {} under way at once", grouped(most)));
    }
    if pace.backlog > 0 {
        text.push_str(&format!("; {} were due and had not been made at the end", grouped(pace.backlog)));
    }
    if let Some(late) = pace.late_ns.filter(|late| *late >= SECOND) {
        text.push_str(&format!("; the last completed {} after the end", duration(Nanos(late))));
    }
    text.push('.');
    Some(text)
}

fn money(cost: f64) -> String {
    format!("{}.{:02}", grouped((cost * 100.0).round() as u64 / 100), (cost * 100.0).round() as u64 % 100)
}

fn cost_text(cost: &MonthlyCost) -> String {
    let price = &cost.price;
    let parts: Vec<String> =
        cost.parts.iter().map(|part| format!("{} {}", part.what, money(part.cost))).collect();
    let as_of = price.as_of.as_ref().map(|when| format!(", {when}")).unwrap_or_default();
    let unknown = match cost.unknown.as_slice() {
        [] => String::new(),
        unknown => format!("; without {}, whose price is unknown", unknown.join(" and ")),
    };
    let sum = format!("A month: {} {}", money(cost.total()), price.currency);
    format!("{sum} ({}; {}{as_of}){unknown}.", parts.join(" + "), price.region)
}

/// The volumes, a row each.
fn side_by_side(
    volumes: &[PricedForecast<'_>],
    style: &Style,
    width: usize,
    out: &mut TextWriter,
) -> io::Result<()> {
    let row = |(forecast, cost): &PricedForecast<'_>| {
        let lat = record_of(&forecast.total().lat).summary();
        let first = forecast.course.credits.iter().filter_map(|credit| credit.first_dry_ns).min();
        let dry = forecast.course.credits.iter().map(|credit| credit.dry_ns).max().unwrap_or(0);
        let known = cost.filter(|cost| !cost.parts.is_empty());
        let more = |cost: &MonthlyCost| if cost.unknown.is_empty() { "" } else { "+" };
        vec![
            forecast.target.strip_prefix("sim:").unwrap_or(&forecast.target).to_owned(),
            rate(forecast.iops()),
            decimal(forecast.bytes_per_second() / MIB),
            lat.mean.map(|mean| latency(mean as u64)).unwrap_or_default(),
            lat.p50.map(latency).unwrap_or_default(),
            lat.p99.map(latency).unwrap_or_default(),
            first.map(|first| duration(Nanos(first))).unwrap_or_else(|| "never".to_owned()),
            share(dry, forecast.elapsed_ns),
            known.map_or("unknown".to_owned(), |cost| {
                format!("{}{} {}", money(cost.total()), more(cost), cost.price.currency)
            }),
        ]
    };
    let head = vec!["side by side", "IOPS", "MiB/s", "mean", "p50", "p99", "dry after", "dry", "a month"];
    let mut align = vec![Align::Right; head.len()];
    align[0] = Align::Left;
    let mut columns = Columns { head, align, rows: volumes.iter().map(row).collect() };
    let gap = columns.fit(width - INDENT, &["p50", "mean", "dry", "MiB/s"]);
    for (index, line) in columns.lines(gap).iter().enumerate() {
        writeln!(out, "{:INDENT$}{}", "", if index == 0 { style.bold(line) } else { line.clone() })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_and_sums_of_money() {
        let hour = 3_600 * SECOND;
        for (ns, fine, expected) in [
            (0, false, "0:00"),
            (23 * hour, false, "23:00"),
            (100 * hour, false, "100:00"),
            (61 * SECOND, true, "0:01:01"),
        ] {
            assert_eq!(clock(ns, fine), expected);
        }
        for (ns, expected) in
            [(1_000_000, "1.00ms"), (95 * SECOND, "95.0s"), (hour + 60 * SECOND, "1 h 01 min")]
        {
            assert_eq!(time(ns), expected);
        }
        for (cost, expected) in [(0.0, "0.00"), (5.0, "5.00"), (1234.567, "1,234.57"), (0.999, "1.00")] {
            assert_eq!(money(cost), expected);
        }
    }

    #[test]
    fn credits_in_words() {
        let credit = |capacity, first_dry_ns| CreditCourse {
            of: "volume".to_owned(),
            unit: CreditUnit::Ios,
            capacity,
            burst: Some(3000.0),
            base: 150.0,
            least: 1_000,
            left: 0,
            first_dry_ns,
            dry_ns: 3_600 * SECOND,
            is_dry: false,
        };
        let check = |credit: CreditCourse, expected: &str| {
            assert_eq!(credit_text(&credit, 2 * 3_600 * SECOND), expected);
        };
        check(
            credit(Some(5_400_000), Some(1_895 * SECOND)),
            "Credit of volume, 5,400,000 I/Os: used up after 31 min 35 s, and for 1 h in sum (50 % of the time); \
             150 IOPS are left then.",
        );
        check(
            credit(Some(5_400_000), None),
            "Credit of volume, 5,400,000 I/Os: never used up; at least 1,000 I/Os were left.",
        );
        check(
            credit(None, Some(60 * SECOND)),
            "Burst of volume at 3,000 IOPS: over after 1 min, and for 1 h in sum (50 % of the time); 150 IOPS are left then.",
        );
        check(
            CreditCourse { dry_ns: 5, ..credit(None, Some(60 * SECOND)) },
            "Burst of volume at 3,000 IOPS: over after 1 min; 150 IOPS are left then.",
        );
    }
}
