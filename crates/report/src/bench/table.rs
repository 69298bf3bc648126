//! The table that `bench` ends with: one row per test, units in the head, the reasons where a row has no numbers.

use std::io;

use fathom_model::units;
use fathom_record::RunRecord;

use crate::columns::{self, wrap};
use crate::{Style, TextWriter};

pub(crate) fn header(
    record: &RunRecord,
    style: &Style,
    width: usize,
    out: &mut TextWriter,
) -> io::Result<()> {
    let left = target_line(record);
    let right = host_line(record, style);
    let (wide, gap) = (columns::width(&left) + columns::width(&right), 4);
    if !left.is_empty() && !right.is_empty() && wide + gap <= width {
        let fill = " ".repeat(width - wide);
        writeln!(out, "{}{fill}{}", style.bold(&left), style.dim(&right))?;
        return writeln!(out);
    }
    for line in wrap(&left, width, 0, 2) {
        writeln!(out, "{}", style.bold(&line))?;
    }
    for line in wrap(&right, width, 0, 2) {
        writeln!(out, "{}", style.dim(&line))?;
    }
    writeln!(out)
}

/// `/mnt/data on nvme1n1, ext4, 100 GiB, Amazon Elastic Block Store, network`.
fn target_line(record: &RunRecord) -> String {
    let target = &record.header.conditions.target;
    let name = if record.header.target.is_empty() { &target.path } else { &record.header.target };
    let device = target.devices.first();
    let mut parts = vec![match device {
        Some(device) if !device.name.is_empty() && !name.ends_with(&device.name) => {
            format!("{name} on {}", device.name)
        }
        _ => name.clone(),
    }];
    if let Some(filesystem) = &target.filesystem {
        parts.push(filesystem.fs_type.clone());
    }
    let size = match (&target.filesystem, device) {
        (Some(filesystem), _) => filesystem.total_bytes,
        (None, device) => device.map_or(0, |device| device.size_bytes),
    };
    if size > 0 {
        parts.push(units::bytes(size));
    }
    // The model is known at the bottom of the stack, not for the partition or mapping on top.
    let described = target.devices.iter().find(|device| !device.model.is_empty());
    parts.extend(
        described.map(|device| format!("{} {}", device.vendor, device.model).trim_matches(' ').to_owned()),
    );
    parts.extend(target.devices.iter().find_map(|device| device.locality.clone()));
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

/// `fathom 0.1.0, Linux 6.8.0, 2 CPUs, 4.0 GiB used, 2026-11-20 18:00`.
fn host_line(record: &RunRecord, style: &Style) -> String {
    let header = &record.header;
    let host = &header.conditions.host;
    let mut parts = Vec::new();
    if !header.tool_version.is_empty() {
        parts.push(format!("fathom {}", header.tool_version));
    }
    if !host.kernel.is_empty() {
        parts.push(format!("Linux {}", host.kernel));
    }
    let cpus = if host.cpus_allowed > 0 { host.cpus_allowed } else { host.cpus_online };
    match cpus {
        0 => {}
        1 => parts.push("1 CPU".to_owned()),
        cpus => parts.push(format!("{cpus} CPUs")),
    }
    if header.size_bytes > 0 {
        parts.push(format!("{} used", units::bytes(header.size_bytes)));
    }
    if header.started_unix_ms > 0 {
        parts.push(style.time(header.started_unix_ms, "%Y-%m-%d %H:%M"));
    }
    parts.join(", ")
}

pub(crate) const INDENT: usize = 2;

/// A rate: whole from 10 on, with one decimal below.
pub(crate) fn count(rate: f64) -> String {
    if rate < 9.95 { format!("{rate:.1}") } else { units::grouped(rate.round() as u64) }
}

/// Whole from 1000 on, with one decimal below, and with three below a tenth.
pub(crate) fn decimal(value: f64) -> String {
    match value {
        999.95.. => units::grouped(value.round() as u64),
        0.0005..0.1 => format!("{value:.3}"),
        _ => format!("{value:.1}"),
    }
}
