//! fio's latency lines and percentile blocks.

use std::io;

use fathom_record::Latency;

use crate::TextWriter;
use crate::fio::number::{Family, NumberUnit, fio_number};

/// The unit of a line: values are divided by `divisor` ns.
struct LatencyScale {
    name: &'static str,
    divisor: u64,
}

const NSEC: LatencyScale = LatencyScale { name: "nsec", divisor: 1 };
const USEC: LatencyScale = LatencyScale { name: "usec", divisor: 1_000 };
const MSEC: LatencyScale = LatencyScale { name: "msec", divisor: 1_000_000 };

/// The largest unit in which the least value still has more than two thousand of the next smaller one and the rest is
/// proportionate; `stdev` is unlimited where a line shows none.
fn scale(min: u64, max: u64, stdev: f64) -> LatencyScale {
    let fits = |unit: u64| min > 2 * unit && max > 100 * unit - 1 && stdev > unit as f64;
    if fits(MSEC.divisor) {
        MSEC
    } else if fits(USEC.divisor) {
        USEC
    } else {
        NSEC
    }
}

/// `clat (usec): min=…` with the name right-aligned to `indent`; nothing without samples.
pub(crate) fn line(out: &mut TextWriter, name: &str, latency: &Latency, indent: usize) -> io::Result<()> {
    let moments = &latency.moments;
    if moments.count == 0 {
        return Ok(());
    }
    let (mean, stdev) = (moments.mean(), moments.stdev());
    let LatencyScale { name: unit, divisor } = scale(moments.min, moments.max, stdev);
    let whole = |ns: u64| fio_number(ns / divisor, 6, Family::Decimal, NumberUnit::None);
    let (mean, stdev) = (mean / divisor as f64, stdev / divisor as f64);
    writeln!(
        out,
        "{name:>indent$} ({unit}): min={}, max={}, avg={mean:5.2}, stdev={stdev:5.2}",
        whole(moments.min),
        whole(moments.max)
    )
}

/// The percentile block under a latency line; nothing without samples.
pub(crate) fn percentiles(
    out: &mut TextWriter,
    name: &str,
    latency: &Latency,
    list: &[f64],
) -> io::Result<()> {
    let values: Vec<u64> = list.iter().filter_map(|&percent| latency.fio_percentile(percent)).collect();
    let (Some(&least), Some(&greatest)) = (values.iter().min(), values.iter().max()) else { return Ok(()) };
    let LatencyScale { name: unit, divisor } = scale(least, greatest, f64::INFINITY);
    let values: Vec<u64> = values.iter().map(|value| value.div_ceil(divisor)).collect();
    let decimals = list.iter().map(|&percent| decimals(percent)).max().unwrap_or(0);
    let width = greatest.div_ceil(divisor).to_string().len().max(5);
    let per_row = ((80 - 7) / (decimals + 10 + width)).max(1);
    writeln!(out, "    {name} percentiles ({unit}):")?;
    let cell = |(percent, value): (&f64, &u64)| {
        format!(" {percent:label$.decimals$}th=[{value:width$}]", label = decimals + 3)
    };
    let cells: Vec<String> = list.iter().zip(&values).map(cell).collect();
    let last = cells.len().div_ceil(per_row) - 1;
    cells.chunks(per_row).enumerate().try_for_each(|(index, row)| {
        let end = if index < last { "," } else { "" };
        writeln!(out, "     |{}{end}", row.join(","))
    })
}

/// Decimals that `percent` needs, at most six.
fn decimals(percent: f64) -> usize {
    let text = format!("{percent:.6}");
    text.trim_end_matches('0').split_once('.').map_or(0, |(_, fraction)| fraction.len())
}

/// fio's name for a percentile in JSON.
pub(crate) fn json_percentile(percent: f64) -> String {
    format!("{percent:.6}")
}
