//! Rates over time: a plot of all slices, a row for each of a few, else for each hour of the day, and all of them as data.

use fathom_model::Nanos;
use fathom_model::units::{bytes, duration};
use fathom_observed::{LoadGap, ObservedLoad};
use fathom_predict::load_profile::{LoadProfile, LoadSlice, SliceCounts};

use super::{time_text, zone};
use crate::axis_text::rate_text;
use crate::trace_info::TraceInfo;
use crate::view::{Axis, Block, Cell, Column, Plot, PlotForm, PlotMark, PlotPoint, PlotSeries, Row, Table};

/// Rows in text.
const MAX_ROWS: usize = 24;
/// Hours beyond which those of a day are shown.
const MAX_HOURS: usize = 48;
const HOUR_NS: u64 = 3_600_000_000_000;
const HOURS: usize = 24;

/// The title of the section.
pub(super) fn title(load: &ObservedLoad, profile: &LoadProfile) -> String {
    match is_by_hour_of_day(load, profile) {
        true => format!("Rates by hour of the day ({})", zone(load)),
        false => {
            let zone = load.started_unix_ns.map(|_| format!(", {}", zone(load))).unwrap_or_default();
            format!(
                "Rates over time (rows of {}{zone})",
                duration(Nanos(profile.course.slice_ns * together(profile) as u64))
            )
        }
    }
}

/// Days are shown as one where the hours of each would be too many rows.
fn is_by_hour_of_day(load: &ObservedLoad, profile: &LoadProfile) -> bool {
    let course = &profile.course;
    course.slices.len() > MAX_HOURS && course.slice_ns == HOUR_NS && load.started_unix_ns.is_some()
}

/// The plot and the table; none where rates are unknown.
pub(super) fn blocks(load: &ObservedLoad, profile: &LoadProfile) -> Vec<Block> {
    if profile.course.slices.is_empty() {
        return Vec::new();
    }
    let table = match is_by_hour_of_day(load, profile) {
        true => by_hour_of_day(load, profile),
        false => rows(load, profile),
    };
    vec![Block::Plots(vec![plot(load, profile)]), Block::Table(table)]
}

/// The time of a moment of the load: of the wall clock where it is known.
pub(super) fn time_cell(load: &ObservedLoad, at_ns: u64) -> Cell {
    let text = match load.started_unix_ns {
        Some(started) => time_text(started + at_ns, "%m-%d %H:%M:%S"),
        None if load.length_ns < 60_000_000_000 => format!("{:.2} s", at_ns as f64 / 1e9),
        None => {
            let seconds = at_ns / 1_000_000_000;
            format!("{}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
        }
    };
    Cell::integer(at_ns, text)
}

fn columns() -> Vec<Column> {
    vec![
        Column::right("from"),
        Column::right("reads/s").takes_remark(),
        Column::right("writes/s"),
        Column::right("IOPS"),
        Column::right("peak IOPS"),
        Column::right("MiB/s"),
        Column::right("mean size").dispensable(0),
        Column::right("mean latency").dispensable(1),
    ]
}

/// The cells of a slice or of the same hour of several days.
fn row(from: Cell, slice: &LoadSlice) -> Row {
    if slice.observed_ns == 0 {
        return Row { remark: Some("no data".to_owned()), ..Row::new([from]) };
    }
    let rate = |sum: Option<f64>| slice.per_second(sum);
    let iops = |counts: &SliceCounts| Cell::from(rate(counts.ops).map(Cell::iops));
    let size = slice.total.bytes.zip(slice.total.ops.filter(|ops| *ops > 0.0)).map(|(sum, ops)| sum / ops);
    let size = size.map(|mean| Cell::real(mean, bytes(mean.round() as u64)));
    Row::new([
        from,
        iops(&slice.read),
        iops(&slice.write),
        iops(&slice.total),
        Cell::iops(slice.peak_iops),
        rate(slice.total.bytes).map(Cell::mebibytes).into(),
        size.into(),
        slice.total.mean_latency_ns().map(Cell::mean_latency).into(),
    ])
}

/// Slices that share a row.
fn together(profile: &LoadProfile) -> usize {
    profile.course.slices.len().div_ceil(MAX_ROWS).max(1)
}

/// A row for each slice, or for several together where there are many.
fn rows(load: &ObservedLoad, profile: &LoadProfile) -> Table {
    let of = |slices: &[LoadSlice]| {
        let start_ns = slices.first().map_or(0, |slice| slice.start_ns);
        row(time_cell(load, start_ns), &sum(slices.iter()))
    };
    Table::new(columns(), profile.course.slices.chunks(together(profile)).map(of)).without_empty()
}

/// A row for each hour of the day.
fn by_hour_of_day(load: &ObservedLoad, profile: &LoadProfile) -> Table {
    let started = load.started_unix_ns.unwrap_or(0);
    let hour_of = |slice: &LoadSlice| ((started + slice.start_ns) / HOUR_NS) as usize % HOURS;
    let of = |hour: usize| {
        let slices = profile.course.slices.iter().filter(|slice| hour_of(slice) == hour);
        row(Cell::integer(hour as u64, format!("{hour}:00")), &sum(slices))
    };
    Table::new(columns(), (0..HOURS).map(of)).without_empty()
}

fn sum<'a>(slices: impl Iterator<Item = &'a LoadSlice>) -> LoadSlice {
    let mut all = LoadSlice::default();
    slices.for_each(|slice| all.add(slice));
    all
}

/// The unit of the horizontal axis, in ns, with its name.
fn axis_unit(length_ns: u64) -> (f64, &'static str) {
    match length_ns {
        0..120_000_000_000 => (1e9, "s"),
        120_000_000_000..HOUR_NS => (60e9, "min"),
        HOUR_NS..172_800_000_000_000 => (HOUR_NS as f64, "h"),
        _ => (24.0 * HOUR_NS as f64, "days"),
    }
}

fn plot(load: &ObservedLoad, profile: &LoadProfile) -> Plot {
    let (unit, name) = axis_unit(load.length_ns);
    let place = |ns: u64| ns as f64 / unit;
    let point = |slice: &LoadSlice| {
        let y = slice.per_second(slice.total.ops)?;
        let to = place(slice.start_ns + slice.length_ns);
        Some(PlotPoint { from: place(slice.start_ns), to, y, interval: None })
    };
    let mark = |gap: &LoadGap| PlotMark {
        series: 0,
        from: place(gap.start_ns),
        to: place(gap.start_ns + gap.length_ns),
        reason: "no data",
    };
    // Gaps shorter than a slice are in its rate.
    let is_seen = |gap: &&LoadGap| gap.length_ns >= profile.course.slice_ns;
    let points = profile.course.slices.iter().filter_map(point).collect();
    Plot {
        title: "IOPS".to_owned(),
        form: PlotForm::Steps,
        x: Axis::linear(name, rate_text).ending(0.0, place(load.length_ns.max(1))),
        y: Axis::linear("", rate_text),
        series: vec![PlotSeries { name: String::new(), points }],
        limits: Vec::new(),
        marks: load.gaps.iter().filter(is_seen).map(mark).collect(),
    }
}

/// A row for each slice.
pub(super) fn data(info: TraceInfo<'_>) -> Table {
    let slices = info.profile.course.slices.iter();
    let started = info.load.started_unix_ns;
    let rate = |slice: &LoadSlice, sum: Option<f64>| -> Cell {
        slice.per_second(sum).map(|rate| Cell::real(rate, rate_text(rate))).into()
    };
    Table::data(
        &[
            ("start_unix_ns", &|slice: &&LoadSlice| {
                started.map(|started| Cell::count(started + slice.start_ns)).into()
            }),
            ("start_ns", &|slice| Cell::count(slice.start_ns)),
            ("length_ns", &|slice| Cell::count(slice.length_ns)),
            ("observed_ns", &|slice| Cell::count(slice.observed_ns)),
            ("read_iops", &|slice| rate(slice, slice.read.ops)),
            ("write_iops", &|slice| rate(slice, slice.write.ops)),
            ("iops", &|slice| rate(slice, slice.total.ops)),
            ("peak_iops", &|slice| Cell::iops(slice.peak_iops)),
            ("read_bytes_per_second", &|slice| rate(slice, slice.read.bytes)),
            ("write_bytes_per_second", &|slice| rate(slice, slice.write.bytes)),
            ("bytes_per_second", &|slice| rate(slice, slice.total.bytes)),
            ("mean_latency_ns", &|slice| slice.total.mean_latency_ns().map(Cell::mean_latency).into()),
        ],
        slices,
    )
}

#[cfg(test)]
mod tests {
    use fathom_observed::read_text;
    use fathom_predict::load_profile::load_profile;

    use super::*;
    use crate::trace_info::view;

    #[test]
    fn loads_without_times_have_no_rates() {
        let text = "fio version 2 iolog\n/f add\n/f open\n/f read 0 4096\n/f read 4096 4096\n/f close\n";
        let load = read_text(text, None).unwrap();
        let profile = load_profile(&load);
        let info = TraceInfo { file: "app.iolog", load: &load, profile: &profile };
        assert!(blocks(&load, &profile).is_empty() && data(info).rows.is_empty());
        let sections: Vec<String> = view(info).sections.into_iter().map(|section| section.title).collect();
        assert_eq!(sections, ["", "Request sizes", "Notes"]);
    }

    #[test]
    fn units_of_the_axis_follow_the_length() {
        let of = |seconds: u64| axis_unit(seconds * 1_000_000_000).1;
        assert_eq!([of(0), of(90), of(600), of(7_200), of(604_800)], ["s", "s", "min", "h", "days"]);
    }

    #[test]
    fn slices_add_up() {
        let slice = |ops: f64, peak_iops: f64| LoadSlice {
            length_ns: 1_000_000_000,
            observed_ns: 1_000_000_000,
            total: SliceCounts { ops: Some(ops), bytes: Some(ops * 4096.0), ..SliceCounts::default() },
            peak_iops,
            ..LoadSlice::default()
        };
        let all = sum([slice(10.0, 20.0), slice(30.0, 15.0)].iter());
        assert_eq!((all.per_second(all.total.ops), all.peak_iops), (Some(20.0), 20.0));
        let cells: Vec<String> = row("0".into(), &all).cells.into_iter().map(|cell| cell.text).collect();
        assert_eq!(cells, ["0", "", "", "20", "20", "0.078", "4.0 KiB", ""]);
        let empty = LoadSlice::default();
        assert_eq!(row("0".into(), &empty).remark.as_deref(), Some("no data"));
    }
}
