//! How many I/Os of a test took how long, over time, as a heat map.

use fathom_record::{FIO_LATENCY_BINS, Histogram, TestRecord, latency_bin_lower_edge};

use super::course::{Slice, latency_name, slices};
use crate::axis_text::{latency_text, round_latencies, time_axis, time_text};
use crate::view::{Cell, HeatMap, MapTick};

/// Columns and rows of a map at most.
const MAX_COLUMNS: usize = 120;
const MAX_ROWS: usize = 36;

/// The columns: stretches of time of one length, or the slices themselves.
struct Columns<'a> {
    slices: &'a [Slice],
    count: usize,
    /// True where each slice has a column: they follow each other, though their lengths differ slightly.
    is_each: bool,
    from: u64,
    /// Length of a column, ns.
    length: f64,
}

impl Columns<'_> {
    fn new(slices: &[Slice]) -> Option<Columns<'_>> {
        let [first, .., last] = slices else { return None };
        let count = slices.len().min(MAX_COLUMNS);
        let is_each = count == slices.len() && slices.windows(2).all(|pair| pair[0].to == pair[1].from);
        let length = (last.to.saturating_sub(first.from) as f64 / count as f64).max(1.0);
        Some(Columns { slices, count, is_each, from: first.from, length })
    }

    /// The column of the slice at `place`.
    fn of_slice(&self, place: usize) -> usize {
        if self.is_each {
            return place;
        }
        let slice = &self.slices[place];
        let middle = u64::midpoint(slice.from, slice.to) - self.from;
        ((middle as f64 / self.length) as usize).min(self.count - 1)
    }

    /// When a column begins.
    fn start(&self, column: usize) -> f64 {
        match self.is_each {
            true => self.slices[column].from as f64,
            false => (self.from as f64 + column as f64 * self.length).round(),
        }
    }

    /// The place of a time, in columns.
    fn place(&self, ns: f64) -> f64 {
        let ns = ns.max(self.from as f64);
        if !self.is_each {
            return (ns - self.from as f64) / self.length;
        }
        let column = self.slices.iter().rposition(|slice| slice.from as f64 <= ns).unwrap_or(0);
        let slice = &self.slices[column];
        column as f64 + (ns - slice.from as f64) / (slice.to - slice.from).max(1) as f64
    }

    fn ticks(&self) -> Vec<MapTick> {
        let end = self.slices.last().map_or(self.from, |last| last.to);
        let tick = |ns: f64| MapTick { place: self.place(ns), text: time_text(ns) };
        time_axis(self.from, end).ticks.into_iter().map(tick).collect()
    }
}

/// The rows: so many bins of the histograms each, the slowest on top.
struct Rows {
    step: usize,
    bottom: usize,
    top: usize,
}

impl Rows {
    /// The rows from one bin to another.
    fn new(least: usize, most: usize) -> Option<Rows> {
        // Rows begin at bins that are multiples of one step: halves, quarters, ... of a power of two.
        let step =
            [8, 16, 32, 64, 128, 256].into_iter().find(|step| most / step - least / step < MAX_ROWS)?;
        Some(Rows { step, bottom: least / step, top: most / step })
    }

    fn count(&self) -> usize {
        self.top - self.bottom + 1
    }

    fn of_bin(&self, bin: usize) -> usize {
        self.top - bin / self.step
    }

    /// The lowest latency of a row.
    fn edge(&self, row: usize) -> f64 {
        self.bin_edge((self.top - row) * self.step)
    }

    fn bin_edge(&self, bin: usize) -> f64 {
        latency_bin_lower_edge(bin.min(FIO_LATENCY_BINS - 1)) as f64
    }

    /// Round latencies where two or more lie within, else the lowest latency of each row.
    fn ticks(&self) -> Vec<MapTick> {
        let (least, highest) =
            (self.bin_edge(self.bottom * self.step), self.bin_edge((self.top + 1) * self.step));
        let mut ticks: Vec<MapTick> = round_latencies(least, highest, self.count().div_ceil(2))
            .into_iter()
            .map(|ns| MapTick { place: self.place(ns), text: latency_text(ns) })
            .collect();
        if ticks.len() < 2 {
            let tick = |row: usize| MapTick { place: row as f64 + 1.0, text: latency_text(self.edge(row)) };
            return (0..self.count()).map(tick).collect();
        }
        ticks.reverse();
        ticks
    }

    /// The place of a latency, in rows from the top.
    fn place(&self, ns: f64) -> f64 {
        let row = (0..self.count()).find(|row| self.edge(*row) <= ns).unwrap_or(self.count() - 1);
        let (low, high) = (self.edge(row), self.bin_edge((self.top - row + 1) * self.step));
        row as f64 + 1.0 - ((ns - low) / (high - low).max(1.0)).clamp(0.0, 1.0)
    }
}

/// The map of a test; none where it has fewer than two intervals.
pub(super) fn map(test: &TestRecord) -> Option<HeatMap> {
    let (slices, _) = slices(test);
    let columns = Columns::new(&slices)?;
    let counts = || slices.iter().flat_map(|slice| slice.latencies.iter().flat_map(Histogram::sparse));
    let (least, most) = (counts().map(|(bin, _)| bin).min()?, counts().map(|(bin, _)| bin).max()?);
    let rows = Rows::new(least, most)?;
    let mut grid = vec![vec![0_u64; columns.count]; rows.count()];
    for (place, slice) in slices.iter().enumerate() {
        for (bin, count) in slice.latencies.iter().flat_map(Histogram::sparse) {
            grid[rows.of_bin(bin)][columns.of_slice(place)] += count;
        }
    }
    let row = |(place, counts): (usize, Vec<u64>)| {
        let cells = counts.into_iter().map(|count| (count > 0).then(|| Cell::count(count)));
        (latency_text(rows.edge(place)), cells.collect())
    };
    Some(HeatMap {
        title: String::new(),
        measure: "I/Os",
        across: "time",
        down: latency_name(test),
        columns: (0..columns.count).map(|column| time_text(columns.start(column))).collect(),
        rows: grid.into_iter().enumerate().map(row).collect(),
        column_ticks: columns.ticks(),
        row_ticks: rows.ticks(),
    })
}

#[cfg(test)]
mod tests {
    use fathom_record::latency_bin;

    use super::*;

    #[test]
    fn rows_have_marks_where_round_latencies_lie() {
        let rows = Rows::new(latency_bin(90_000), latency_bin(3_000_000)).expect("it is a short range");
        let ticks = rows.ticks();
        let texts: Vec<&str> = ticks.iter().map(|tick| tick.text.as_str()).collect();
        assert_eq!(texts, ["2.00 ms", "1.00 ms", "500 µs", "200 µs", "100 µs"]);
        for (tick, ns) in ticks.iter().zip([2e6, 1e6, 5e5, 2e5, 1e5]) {
            let row = tick.place as usize;
            assert!(rows.edge(row) <= ns && (row == 0 || rows.edge(row - 1) > ns), "{tick:?}");
        }
        assert!(ticks.windows(2).all(|pair| pair[0].place < pair[1].place));
        // Too narrow for round values: the edges themselves.
        let narrow = Rows::new(latency_bin(1_100_000), latency_bin(1_300_000)).expect("it is narrow");
        assert_eq!(narrow.ticks().len(), narrow.count());
        assert_eq!(narrow.ticks()[0].place, 1.0);
    }
}
