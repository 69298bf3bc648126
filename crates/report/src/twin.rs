//! Twins of volumes: what they are made of, and how far one is from a volume.

use std::io::{self, Write};

use fathom_analysis::identified::IoScope;
use fathom_analysis::pattern::block_name;
use fathom_analysis::twin::agreement::{DISTANCE_BELOW, LoadAgreement, TwinAgreement};
use fathom_analysis::twin::measured::{P99_WITHIN, RATE_WITHIN};
use fathom_analysis::twin::{Twin, TwinLatency, TwinLimit, TwinOp, TwinRate};
use fathom_model::Nanos;
use fathom_model::units::{bytes, duration, grouped};
use serde_json::{Value, json};

use crate::document::{self, object};
use crate::history::started;
use crate::view::{Block, Cell, Column, KeyFigure, Row, Table, Tone, View};

/// The `schema` of a list of twins.
pub const LIST_SCHEMA: &str = "fathom.twins/1";
/// The `schema` of a check.
pub const CHECK_SCHEMA: &str = "fathom.twin-check/1";

/// A check of a twin.
#[derive(Clone, Copy, Debug)]
pub struct TwinCheck<'a> {
    /// The name of the twin.
    pub name: &'a str,
    /// The volume.
    pub target: &'a str,
    /// How far they are apart.
    pub agreement: &'a TwinAgreement,
    /// What to know of it.
    pub notes: &'a [String],
}

/// The differences of each load.
pub fn check_view(check: TwinCheck<'_>) -> View {
    let TwinCheck { name, target, agreement, notes } = check;
    let columns = [
        Column::left("load"),
        Column::right("QD"),
        Column::right("IOPS"),
        Column::right("twin IOPS"),
        Column::right("rate"),
        Column::right("p50").dispensable(1),
        Column::right("twin p50").dispensable(1),
        Column::right("p99").dispensable(0),
        Column::right("twin p99").dispensable(0),
        Column::right("distance"),
        Column::left("verdict"),
    ];
    let table = Table::new(columns, agreement.loads.iter().map(load_row));
    let mut view = View { data: data(agreement), ..View::default() };
    view.push("", [Block::note(verdict(name, target, agreement))]);
    view.push("Loads", [Block::Table(table)]);
    let legend = format!(
        "A load agrees if the rates differ by at most {:.0} %, p99 by at most {:.0} %, and the distance is below {DISTANCE_BELOW}. \
         rate: the twin's less the volume's. distance: Kolmogorov distance of the latencies, the largest difference of the shares \
         of I/Os that took at most some time.",
        100.0 * RATE_WITHIN,
        100.0 * P99_WITHIN
    );
    let why = agreement.loads.iter().filter_map(|load| Some(format!("{}: {}", load.id, load.why.as_ref()?)));
    view.push(
        "Notes",
        [Block::Notes([legend].into_iter().chain(why).chain(notes.iter().cloned()).collect())],
    );
    view
}

fn verdict(name: &str, target: &str, agreement: &TwinAgreement) -> String {
    let count = agreement.loads.len();
    let apart = agreement.loads.iter().filter(|load| load.agrees == Some(false)).count();
    let unknown = agreement.loads.iter().filter(|load| load.agrees.is_none()).count();
    match agreement.agrees {
        Some(true) => format!("Twin {name} agrees with {target} in all {count} loads."),
        Some(false) => format!("Twin {name} differs from {target} in {apart} of {count} loads."),
        None if count == 0 => "Inconclusive: no load ran on both.".to_owned(),
        None => {
            format!("Inconclusive: {unknown} of {count} loads of twin {name} and {target} are inconclusive.")
        }
    }
}

fn load_row(load: &LoadAgreement) -> Row {
    let LoadAgreement { volume, twin, .. } = load;
    let (word, tone) = match load.agrees {
        Some(true) => ("agrees", Tone::Normal),
        Some(false) => ("differs", Tone::Alarm),
        None => ("inconclusive", Tone::Dim),
    };
    let rate = load.rate_difference.map(|share| Cell::real(share, format!("{:+.1} %", 100.0 * share)));
    Row::new([
        Cell::from(format!("{} {}", block_name(load.block_bytes), load.op)),
        Cell::count(load.depth.into()),
        volume.iops.map(Cell::iops).into(),
        twin.iops.map(Cell::iops).into(),
        rate.into(),
        volume.p50_ns.map(Cell::latency).into(),
        twin.p50_ns.map(Cell::latency).into(),
        volume.p99_ns.map(Cell::latency).into(),
        twin.p99_ns.map(Cell::latency).into(),
        load.latency_distance.map(|share| Cell::real(share, format!("{share:.3}"))).into(),
        word.into(),
    ])
    .toned(tone)
}

fn data(agreement: &TwinAgreement) -> Table {
    const COLUMNS: &str = "\
        id,op,block_bytes,depth,iops=volume.iops,twin_iops=twin.iops,rate_difference,\
        p50_ns=volume.p50_ns,twin_p50_ns=twin.p50_ns,p99_ns=volume.p99_ns,twin_p99_ns=twin.p99_ns,\
        p99_difference,latency_distance,agrees";
    Table::of_documents(&[COLUMNS], agreement.loads.iter().map(|load| json!(load)))
}

/// Writes the document of a check, indented; loads agree up to the differences and the distance that it names.
///
/// # Errors
/// Those of `out`.
pub fn write_check(check: TwinCheck<'_>, out: &mut dyn Write) -> io::Result<()> {
    let TwinCheck { name, target, agreement, notes } = check;
    let head = json!({ "schema": CHECK_SCHEMA, "twin": name, "target": target });
    let rest = json!({
        "rate_within": RATE_WITHIN, "p99_within": P99_WITHIN, "distance_below": DISTANCE_BELOW, "notes": notes,
    });
    document::write(&object([head, json!(agreement), rest]), out)
}

/// A list of twins by name, and why some cannot be read.
pub fn list_view(twins: &[(String, Twin)], unreadable: &[String]) -> View {
    let columns = [
        Column::left("name"),
        Column::left("twin of"),
        Column::left("identified").dispensable(1),
        Column::left("size").dispensable(0),
        Column::left("limits"),
    ];
    let row = |(name, twin): &(String, Twin)| {
        let limits: Vec<String> = twin.limits.iter().map(limit_text).collect();
        Row::new([
            Cell::from(name.as_str()),
            twin.source.target.as_str().into(),
            identified(twin).into(),
            Cell::bytes(twin.size_bytes),
            limits.join("; ").into(),
        ])
    };
    let table = Table::new(columns, twins.iter().map(row));
    let mut view = View { data: table.clone(), ..View::default() };
    match twins.is_empty() {
        true => view.push("", [Block::note("No twins. Make one: fathom identify --save NAME TARGET")]),
        false => view.push("", [Block::Table(table)]),
    }
    view.push("Notes", [Block::Notes(unreadable.to_vec())]);
    view
}

fn identified(twin: &Twin) -> String {
    match twin.source.identified_unix_ms {
        0 => "simulated".to_owned(),
        unix_ms => started(unix_ms),
    }
}

/// Writes the document of a list, indented; `unreadable` says why other twins cannot be read.
///
/// # Errors
/// Those of `out`.
pub fn write_list(twins: &[(String, Twin)], unreadable: &[String], out: &mut dyn Write) -> io::Result<()> {
    let listed = twins.iter().map(|(name, twin)| {
        json!({
            "name": name,
            "source": twin.source,
            "size_bytes": twin.size_bytes,
            "limits": twin.limits,
        })
    });
    let listed: Vec<Value> = listed.collect();
    document::write(&json!({ "schema": LIST_SCHEMA, "twins": listed, "unreadable": unreadable }), out)
}

/// What a twin is made of.
pub fn show_view(name: &str, twin: &Twin) -> View {
    let mut figures = vec![
        KeyFigure::new("Twin of", twin.source.target.as_str()),
        KeyFigure::new("Identified", identified(twin)),
        KeyFigure::new("Size", bytes(twin.size_bytes)),
    ];
    if !twin.source.device.is_empty() {
        figures.insert(1, KeyFigure::new("Device", twin.source.device.as_str()));
    }
    figures.extend(twin.limits.iter().map(|limit| KeyFigure::new(scope(limit.scope), limit_text(limit))));
    if let Some(unit) = twin.io_unit_bytes {
        figures.push(KeyFigure::new("I/O unit size", bytes(unit)));
    }
    figures.push(KeyFigure::new("Admitted at once", format!("the I/Os of {}", duration_text(twin.turn_ns))));
    let columns = [
        Column::left("I/O"),
        Column::right("QD"),
        Column::left("state"),
        Column::right("p50"),
        Column::right("p99"),
        Column::right("p99.9"),
        Column::right("longest"),
    ];
    let row = |latency: &TwinLatency| {
        let at = |per_million: u32| {
            let found = latency.quantiles.iter().find(|(part, _)| *part >= per_million);
            found.map_or_else(Cell::default, |(_, ns)| Cell::latency(*ns))
        };
        let op = match latency.op {
            TwinOp::Read => "read",
            TwinOp::Write => "write",
            TwinOp::Sync => "sync",
        };
        Row::new([
            Cell::from(format!("{} {op}", block_name(latency.block_bytes.into()))),
            Cell::count(latency.depth.into()),
            if latency.is_limited { "at the limit" } else { "below the limits" }.into(),
            at(500_000),
            at(990_000),
            at(999_000),
            at(1_000_000),
        ])
    };
    let table = Table::new(columns, twin.latencies.iter().map(row));
    let mut view = View { data: table.clone(), ..View::default() };
    view.push(format!("Twin {name}"), [Block::KeyFigures(figures)]);
    view.push("Latencies", [Block::Table(table)]);
    view.push("Notes", [Block::Notes(twin.notes.clone())]);
    view
}

fn duration_text(ns: u64) -> String {
    if ns < 1_000_000_000 { fathom_model::units::latency(ns) } else { duration(Nanos(ns)) }
}

fn scope(scope: IoScope) -> &'static str {
    match scope {
        IoScope::Both => "Limits on reads and writes",
        IoScope::Reads => "Limits on reads",
        IoScope::Writes => "Limits on writes",
    }
}

fn limit_text(limit: &TwinLimit) -> String {
    let parts = [
        limit.iops.map(|rate| rate_text(rate, &|value| format!("{} IOPS", grouped(value)), "I/Os")),
        limit.bytes_per_second.map(|rate| rate_text(rate, &|value| format!("{}/s", bytes(value)), "bytes")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(", ")
}

fn rate_text(rate: TwinRate, text: &dyn Fn(u64) -> String, unit: &str) -> String {
    match rate.burst {
        None => text(rate.baseline),
        Some(burst) => {
            let to = burst.rate.map_or_else(|| "without a limit of its own".to_owned(), text);
            format!("{}, burst {to} with {} {unit} of credits", text(rate.baseline), grouped(burst.capacity))
        }
    }
}

/// Writes a twin as it is stored, indented.
///
/// # Errors
/// Those of `out`.
pub fn write_twin(twin: &Twin, out: &mut dyn Write) -> io::Result<()> {
    document::write(twin, out)
}
