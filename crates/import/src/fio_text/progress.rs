//! The last line of progress, whose rates are of an instant.

use fathom_model::Op;
use fathom_record::import::ImportedEntry;

use super::Context;
use crate::number::{self, Number, Reading, UnitStyle};

/// Takes the rates of a line: `[36884KB/0KB/0KB /s] [9221/0/0 iops]`, `[r=97.4MiB/s,w=96.8MiB/s][r=24.9k,w=24.8k IOPS]`.
pub(super) fn take(context: Context<'_>, version: &str, entry: &mut ImportedEntry) {
    for part in context.segment.body.split('[').skip(1) {
        let inside = part.split(']').next().unwrap_or(part).trim();
        let (rates, is_iops) =
            match (inside.strip_suffix("iops").or_else(|| inside.strip_suffix("IOPS")), inside) {
                (Some(rates), _) => (rates, true),
                (None, rates) if rates.contains("/s") => (rates.trim_end_matches("/s"), false),
                _ => continue,
            };
        for (op, text) in by_op(rates) {
            let reading = if is_iops {
                number::iops(text, context.style).ok()
            } else {
                rate(text, context.style, version)
            };
            let Some(reading) = reading.filter(|reading| reading.value > 0.0) else { continue };
            let slot = match op {
                Op::Read => &mut entry.read,
                Op::Write => &mut entry.write,
                _ => &mut entry.trim,
            };
            // What is not among the results was not run.
            let Some(slot) = slot else { continue };
            if is_iops {
                slot.last_iops = reading.figure().ok();
            } else {
                slot.last_bytes_per_second = reading.figure().ok();
            }
        }
    }
}

/// The rates with their operations: marked by a letter, or in the order read, write, trim.
fn by_op(rates: &str) -> Vec<(Op, &str)> {
    if !rates.contains('=') {
        return Op::DATA.into_iter().zip(rates.split('/').map(str::trim)).collect();
    }
    let marked = |part: &'_ str| -> Option<Op> {
        [("r", Op::Read), ("w", Op::Write), ("t", Op::Trim)]
            .iter()
            .find(|(mark, _)| *mark == part)
            .map(|&(_, op)| op)
    };
    let parts = rates.split(',').filter_map(|part| part.split_once('='));
    parts.filter_map(|(mark, text)| Some((marked(mark.trim())?, text.trim()))).collect()
}

/// fio 1.x counts these rates in units of 1,000 bytes, and 1,024 of those in an `M`.
fn rate(text: &str, style: UnitStyle, version: &str) -> Option<Reading> {
    if !version.starts_with("1.") {
        return number::bytes(text, style).ok();
    }
    let number = Number::parse(text)?;
    let scale = match number.unit {
        "" => 1.0,
        "K" => 1e3,
        "M" => 1024e3,
        "G" => 1024.0 * 1024e3,
        _ => return None,
    };
    Some(Reading { value: number.value * scale, resolution: scale })
}
