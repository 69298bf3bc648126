//! What `catalog list` shows: a line for each volume type. Pure.

use std::io;

use fathom_catalog::{CatalogEntry, Confidence, Lifecycle};
use fathom_model::units::grouped;

use crate::bench::table::decimal;
use crate::columns::{Align, Columns};
use crate::{Style, TextWriter};

const MIB: f64 = 1_048_576.0;

/// Writes the table.
///
/// # Errors
/// Those of `out`.
pub fn render(entries: &[&CatalogEntry], style: &Style, out: &mut TextWriter) -> io::Result<()> {
    let head = vec!["type", "kind", "sizes", "IOPS", "MiB/s", "burst", "price", "as of", "state"];
    let mut align = vec![Align::Left; head.len()];
    for column in [3, 4, 6] {
        align[column] = Align::Right;
    }
    let rows = entries.iter().map(|entry| row(entry)).collect();
    let mut columns = Columns { head, align, rows };
    let gap = columns.fit(style.width, &["as of", "sizes", "burst", "kind"]);
    let lines = columns.lines(gap);
    writeln!(out, "{}", style.dim(&lines[0]))?;
    for (line, entry) in lines[1..].iter().zip(entries) {
        let is_past = entry.lifecycle() == Lifecycle::Historical;
        writeln!(out, "{}", if is_past { style.dim(line) } else { line.clone() })?;
    }
    if entries.is_empty() {
        writeln!(out, "no type is like that")?;
    }
    let legend = "Rates are what the largest volume gives for ever, where its provider publishes a rule: IOPS of 4 KiB in \
                  random order, MiB/s in sequential requests of 1 MiB. Prices are those of a GiB and month, where a source \
                  tells them. `fathom catalog show TYPE` tells all of one.";
    writeln!(out)?;
    crate::columns::wrap(legend, style.width, 0, 0)
        .iter()
        .try_for_each(|line| writeln!(out, "{}", style.dim(line)))
}

fn row(entry: &CatalogEntry) -> Vec<String> {
    let (iops, bytes) = entry.most();
    let price = entry.price().and_then(|price| Some(format!("{} {}", price.per_gib_month?, price.currency)));
    let iops = match entry.unmodelled() {
        Some(_) => "no rule".to_owned(),
        None => iops.map(|iops| grouped(iops as u64)).unwrap_or_default(),
    };
    vec![
        entry.id().to_owned(),
        entry.media().to_owned(),
        sizes(entry),
        iops,
        bytes.map(|bytes| decimal(bytes / MIB)).unwrap_or_default(),
        entry.burst_rule().unwrap_or_default().to_owned(),
        price.unwrap_or_default(),
        entry.as_of().split(['.', ' ']).next().unwrap_or_default().to_owned(),
        state(entry),
    ]
}

/// `historical`, `from memory`; nothing where it is sold and its rules were looked up.
fn state(entry: &CatalogEntry) -> String {
    let lifecycle = Some(entry.lifecycle()).filter(|lifecycle| *lifecycle != Lifecycle::Current);
    let confidence = Some(entry.confidence()).filter(|confidence| *confidence == Confidence::FromMemory);
    let local = (!entry.is_persistent()).then(|| "not persistent".to_owned());
    let words = [lifecycle.map(|word| word.to_string()), confidence.map(|word| word.to_string()), local];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// `1 GiB-16 TiB`, as far as it is known.
pub(crate) fn sizes(entry: &CatalogEntry) -> String {
    match entry.size_range() {
        (None, None) => String::new(),
        (Some(least), None) => format!("from {}", size(least)),
        (None, Some(most)) => format!("to {}", size(most)),
        (Some(least), Some(most)) => format!("{} to {}", size(least), size(most)),
    }
}

/// A size that is sold: whole TiB or GiB as such.
pub(crate) fn size(bytes: u64) -> String {
    const GIB: u64 = 1 << 30;
    match bytes {
        _ if bytes.is_multiple_of(1024 * GIB) => format!("{} TiB", bytes / (1024 * GIB)),
        _ if bytes.is_multiple_of(GIB) => format!("{} GiB", grouped(bytes / GIB)),
        _ => fathom_model::units::bytes(bytes),
    }
}
