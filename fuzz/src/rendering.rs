//! Every report and finding of a record, as `fathom history show` and the commands make them.

use std::io;
use std::sync::OnceLock;

use fathom_analysis::{Analysis, prepare as prepare_analysis};
use fathom_assess::{VolumeTypes, candidates, volume_size};
use fathom_catalog::Catalog;
use fathom_record::{ActivityKind, RunRecord};
use fathom_report::formats::Format;
use fathom_report::identify::{self as identify_report, IdentifyReport};
use fathom_report::view::View;
use fathom_report::{
    Style, TextWriter, bench, fio::json as fio_json, fio::normal as fio_normal, fio::terse as fio_terse,
    import, monitor, ping, prepare, simulate as simulate_report, surface, sweep,
};

/// Makes all reports of a record of its kind.
pub(crate) fn check(record: &RunRecord) {
    let analysis = Analysis::of(record);
    for found in analysis.findings().iter().chain(&prepare_analysis::findings(record)) {
        assert!(!found.id.name().is_empty(), "{found:?}");
    }
    analysis.conclusions();
    analysis.together();
    // Records of a target whose name has an even length are shown on a wide page, the others on the narrowest.
    let style = match record.header.target.len() % 2 {
        0 => Style { show_fio: true, ..Style::default() },
        _ => Style { width: 1, unicode: false, ..Style::default() },
    };
    let sink = &mut io::sink();
    let out = &mut TextWriter::new(sink);
    fio_normal::render(record, &style, out).expect("a sink takes everything");
    for version in 2..=5 {
        fio_terse::render(record, version, out).expect("a sink takes everything");
    }
    fio_json::render(record, &style, &mut out.json()).expect("a sink takes everything");
    fio_json::render_plus(record, &style, &mut out.json()).expect("a sink takes everything");
    show(record, &style).expect("a sink takes everything");
}

/// Checks the expectations of a record.
pub(crate) fn check_expectations(record: &RunRecord) {
    let analysis = Analysis::of(record);
    analysis.is_missed();
    bench::view(&analysis, true);
}

/// The report of `fathom history show`, as text and as JSON.
fn show(record: &RunRecord, style: &Style) -> io::Result<()> {
    let sink = &mut io::sink();
    let out = &mut TextWriter::new(sink);
    match record.header.activity.kind() {
        ActivityKind::Sweep => {
            let analysis = Analysis::of(record);
            in_all_formats(style, out, || sweep::view(&analysis, style.show_fio))?;
            sweep::document(&analysis, style, &mut out.json())
        }
        ActivityKind::Surface => {
            in_all_formats(style, out, || surface::view(record, style.show_fio))?;
            surface::document(record, style, &mut out.json())
        }
        ActivityKind::Prepare => {
            in_all_formats(style, out, || prepare::view(record))?;
            prepare::document(record, style, &mut out.json())
        }
        ActivityKind::Monitor => {
            monitor::lines::render(record, style, out)?;
            in_all_formats(style, out, || monitor::means(record))?;
            monitor::intervals(record)
                .into_iter()
                .try_for_each(|interval| monitor::json::line(interval, &mut out.json()))
        }
        ActivityKind::Import => {
            in_all_formats(style, out, || import::view(record))?;
            import::json::render(record, style, &mut out.json())
        }
        ActivityKind::Ping => {
            ping::text::render(record, style, out)?;
            in_all_formats(style, out, || ping::view(record))?;
            ping::json::render(record, style, &mut out.json())
        }
        ActivityKind::Simulate => {
            in_all_formats(style, out, || simulate_report::view(record))?;
            simulate_report::json::render(record, style, &mut out.json())
        }
        ActivityKind::Identify => identify(record, style),
        ActivityKind::Bench | ActivityKind::Fio => {
            let analysis = Analysis::of(record);
            in_all_formats(style, out, || bench::view(&analysis, style.show_fio))?;
            bench::json::render(&analysis, style, &mut out.json())
        }
    }
}

fn in_all_formats(style: &Style, out: &mut TextWriter, view: impl Fn() -> View) -> io::Result<()> {
    Format::ALL.into_iter().try_for_each(|format| format.write(style, out, &view, |_| Ok(())))
}

fn identify(record: &RunRecord, style: &Style) -> io::Result<()> {
    let size = volume_size(&record.header, &VolumeTypes::default());
    let report = IdentifyReport::new(record, |found| candidates(few_types(), found, size));
    let out = &mut io::sink();
    let out = &mut TextWriter::new(out);
    in_all_formats(style, out, || identify_report::view(&report, style.show_fio))?;
    report.document(style, &mut out.json())
}

/// A part of the catalogue: to look through all of it takes long.
fn few_types() -> &'static Catalog {
    static FEW: OnceLock<Catalog> = OnceLock::new();
    let text = include_str!("../../crates/catalog/data/digitalocean.toml");
    FEW.get_or_init(|| Catalog::parse("digitalocean.toml", text).expect("a file that is shipped"))
}
