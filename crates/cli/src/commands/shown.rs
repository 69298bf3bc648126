//! What each activity shows of a run that is kept: the same as its command did.

use std::io;

use fathom_analysis::Analysis;
use fathom_assess::VolumeTypes;
use fathom_record::{ActivityKind, RunRecord};
use fathom_report::fio::{json as fio_json, normal as fio_normal};
use fathom_report::formats::Format;
use fathom_report::view::View;
use fathom_report::{
    Style, TextWriter, fleet as fleet_report, import as import_report, prepare, surface, sweep,
};

/// Writes the report of `record` in `format`.
///
/// # Errors
/// Those of `out`.
pub fn show(record: &RunRecord, style: &Style, format: Format, out: &mut TextWriter) -> io::Result<()> {
    if record.header.fleet.is_some() {
        return show_fleet(record, style, format, out);
    }
    let shown = || view(&Analysis::of(record), style.show_fio);
    match record.header.activity.kind() {
        ActivityKind::Sweep => {
            format.write(style, out, shown, |out| sweep::document(&Analysis::of(record), style, out))
        }
        ActivityKind::Identify => super::identify::show(record, &VolumeTypes::default(), style, format, out),
        ActivityKind::Import => format.write(
            style,
            out,
            || import_report::view(record),
            |out| import_report::json::render(record, style, out),
        ),
        ActivityKind::Monitor => super::monitor::show(record, style, format, out),
        ActivityKind::Ping => super::ping::show(record, style, format, out),
        ActivityKind::Prepare => format.write(style, out, shown, |out| prepare::document(record, style, out)),
        ActivityKind::Simulate => super::simulate::show(record, style, format, out),
        ActivityKind::Surface => format.write(style, out, shown, |out| surface::document(record, style, out)),
        ActivityKind::Bench => super::bench::show(record, style, format, out),
        ActivityKind::Fio => show_fio_run(record, style, format, out),
    }
}

/// The view of a record, with the fio command of each test where `show_fio` says so.
pub fn view(analysis: &Analysis<'_>, show_fio: bool) -> View {
    let record = analysis.record;
    if record.header.fleet.is_some() {
        return fleet_view(analysis, show_fio);
    }
    match record.header.activity.kind() {
        ActivityKind::Sweep => sweep::view(analysis, show_fio),
        ActivityKind::Identify => {
            let report = super::identify::report(record, &VolumeTypes::default());
            fathom_report::identify::view(&report, show_fio)
        }
        ActivityKind::Import => import_report::view(record),
        ActivityKind::Monitor => fathom_report::monitor::means(record),
        ActivityKind::Ping => fathom_report::ping::view(record),
        ActivityKind::Prepare => prepare::view(record),
        ActivityKind::Simulate => fathom_report::simulate::view(record),
        ActivityKind::Surface => surface::view(record, show_fio),
        ActivityKind::Bench | ActivityKind::Fio => fathom_report::bench::view(analysis, show_fio),
    }
}

/// The report of several hosts: of fio's jobs in fio's own text and JSON, else in fathom's.
fn show_fleet(record: &RunRecord, style: &Style, format: Format, out: &mut TextWriter) -> io::Result<()> {
    let is_fio = record.header.activity.kind() == ActivityKind::Fio;
    match format {
        Format::Text if is_fio => fio_normal::render(record, style, out),
        Format::Json if is_fio => fio_json::render(record, style, &mut out.json()),
        _ => format.write(
            style,
            out,
            || fleet_view(&Analysis::of(record), style.show_fio),
            |out| fleet_report::json::render(record, style, out),
        ),
    }
}

/// The report of several hosts. A sweep has more points than anybody compares hosts at: it shows what it found for all of them, and
/// its rows in CSV those of the hosts.
fn fleet_view(analysis: &Analysis<'_>, show_fio: bool) -> View {
    let record = analysis.record;
    let of_hosts = fleet_report::view(record, show_fio);
    if record.header.activity.kind() != ActivityKind::Sweep {
        return of_hosts;
    }
    let mut view = sweep::view(analysis, show_fio);
    (view.head, view.data) = (of_hosts.head, of_hosts.data);
    let fleet = of_hosts.sections.into_iter().filter(|section| section.title == "Fleet");
    view.sections.extend(fleet);
    view
}

/// fio's own text and JSON; in any other format fathom's table.
fn show_fio_run(record: &RunRecord, style: &Style, format: Format, out: &mut TextWriter) -> io::Result<()> {
    match format {
        Format::Text => fio_normal::render(record, style, out),
        Format::Json => fio_json::render(record, style, &mut out.json()),
        _ => super::bench::show(record, style, format, out),
    }
}
