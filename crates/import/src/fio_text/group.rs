//! What fio prints behind the jobs: run status groups and disks.

use fathom_model::PerOp;
use fathom_record::import::{
    Figure, GroupFigures, ImportedDisk, ImportedEntry, ImportedGroup, ImportedOp, MissingFigure,
    MissingReason,
};

use super::{Context, Taker};
use crate::number::{self, Number, UnitStyle};

/// Takes the line of one operation of a group.
pub(super) fn take(
    context: Context<'_>,
    op: &str,
    version: &str,
    group: &mut ImportedGroup,
) -> Vec<MissingFigure> {
    let mut taker = Taker::new(context, format!("group {op}"));
    let is_legacy = ["aggrb", "minb", "mint"].iter().any(|key| taker.fields.get(key).is_some())
        || matches!(context.style, UnitStyle::Legacy | UnitStyle::LegacyDecimal);
    let figures = if is_legacy { legacy(&mut taker, version) } else { modern(&mut taker) };
    let slot = match op {
        "read" => &mut group.read,
        "write" => &mut group.write,
        "trim" => &mut group.trim,
        _ => &mut group.total,
    };
    *slot = Some(figures);
    taker.missing
}

/// `io=4096.0MB, aggrb=346522KB/s, minb=354838KB/s, maxb=354838KB/s, mint=12104msec, maxt=12104msec`.
fn legacy(taker: &mut Taker<'_>, version: &str) -> GroupFigures {
    let style = taker.context.style;
    let aggregate: Option<Figure<f64>> =
        taker.take(&["aggrb"], "bandwidth", |text| number::bytes(text, style));
    // 1.x prints these two in units of 1,000 bytes. Read as 1,024 the slowest would be faster than all together.
    let is_first = version.starts_with("1.");
    let least = taker.fields.get("minb").and_then(|text| number::bytes(text, style).ok());
    let is_too_fast =
        version.is_empty() && least.zip(aggregate).is_some_and(|(least, all)| least.value > all.value * 1.02);
    let ends = if is_first || is_too_fast { UnitStyle::LegacyDecimal } else { style };
    GroupFigures {
        bytes_per_second: aggregate,
        min_bytes_per_second: taker.take(&["minb"], "lowest bandwidth", |text| number::bytes(text, ends)),
        max_bytes_per_second: taker.take(&["maxb"], "highest bandwidth", |text| number::bytes(text, ends)),
        bytes: taker.take(&["io"], "bytes", |text| number::bytes(text, style)),
        min_runtime_ns: taker.take(&["mint"], "shortest runtime", number::time),
        max_runtime_ns: taker.take(&["maxt"], "longest runtime", number::time),
    }
}

/// `bw=100MiB/s (105MB/s), 100MiB/s-100MiB/s (105MB/s-105MB/s), io=1000MiB (1049MB), run=10001-10001msec`.
fn modern(taker: &mut Taker<'_>) -> GroupFigures {
    let style = taker.context.style;
    let mut figures = GroupFigures {
        bytes_per_second: taker.take(&["bw"], "bandwidth", |text| number::bytes(text, style)),
        bytes: taker.take(&["io"], "bytes", |text| number::bytes(text, style)),
        ..GroupFigures::default()
    };
    let body = &taker.context.segment.body;
    let range = body.split(',').map(str::trim).find(|part| !part.contains('=') && part.contains('-'));
    let ends = range.and_then(|range| range.split('(').next()?.trim().split_once('-'));
    let mut end = |text: Option<&str>, name: &str| {
        let read = text.ok_or(MissingReason::Lost).and_then(|text| number::bytes(text, style));
        read.and_then(number::Reading::figure).map_err(|reason| taker.note(name, reason)).ok()
    };
    figures.min_bytes_per_second = end(ends.map(|(min, _)| min), "lowest bandwidth");
    figures.max_bytes_per_second = end(ends.map(|(_, max)| max), "highest bandwidth");
    let run = taker.fields.get("run").and_then(|run| run.split_once('-'));
    let mut time = |text: Option<String>, name: &str| {
        let read = text.ok_or(MissingReason::Lost).and_then(|text| number::time(&text));
        read.and_then(number::Reading::figure).map_err(|reason| taker.note(name, reason)).ok()
    };
    // Only the second has the unit of both.
    let unit = run.and_then(|(_, max)| Some(Number::parse(max)?.unit));
    figures.min_runtime_ns =
        time(run.map(|(min, _)| format!("{min}{}", unit.unwrap_or_default())), "shortest runtime");
    figures.max_runtime_ns = time(run.map(|(_, max)| max.to_owned()), "longest runtime");
    figures
}

/// The entry of a text that has nothing but the group.
pub(super) fn entry(group: &ImportedGroup) -> ImportedEntry {
    let op = |figures: &GroupFigures| ImportedOp {
        bytes_per_second: figures.bytes_per_second,
        bytes: figures.bytes,
        runtime_ns: figures.max_runtime_ns,
        ..ImportedOp::default()
    };
    ImportedEntry {
        read: group.read.as_ref().map(op),
        write: group.write.as_ref().map(op),
        trim: group.trim.as_ref().map(op),
        total: group.total.as_ref().map(op),
        ..ImportedEntry::default()
    }
}

/// `ios=1030890/3, merge=0/2, ticks=441920/0, in_queue=441828, util=95.57%`.
pub(super) fn disk(context: Context<'_>, name: &str, is_below: bool) -> (ImportedDisk, Vec<MissingFigure>) {
    let mut taker = Taker::new(context, format!("disk {name}"));
    let style = context.style;
    let mut pair = |key: &str, what: &str| {
        let text = taker.fields.get(key).unwrap_or_default();
        let (reads, writes) = text.split_once('/').unwrap_or((text, ""));
        let mut one = |text: &str, op: &str| {
            let read = if text.is_empty() { Err(MissingReason::Lost) } else { number::count(text, style) };
            let name = format!("{op} {what}");
            read.and_then(number::Reading::figure).map_err(|reason| taker.note(&name, reason)).ok()
        };
        PerOp { read: one(reads, "read"), write: one(writes, "write"), trim: None }
    };
    let (ios, merges, ticks_ms) = (pair("ios", "I/Os"), pair("merge", "merges"), pair("ticks", "time"));
    let has_sectors = context.segment.body.contains("sectors=");
    let sectors = if has_sectors { pair("sectors", "sectors") } else { PerOp::default() };
    let disk = ImportedDisk {
        name: name.to_owned(),
        is_below,
        ios,
        sectors,
        merges,
        ticks_ms,
        in_queue_ms: taker.take(&["in_queue"], "time in queue", |text| number::count(text, style)),
        util_percent: taker.take(&["util"], "utilization", number::real),
    };
    (disk, taker.missing)
}
