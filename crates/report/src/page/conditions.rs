//! The conditions of a run, at the end of its page.

use fathom_model::text::shell_quoted;
use fathom_model::units;
use fathom_record::{ActivityKind, RunRecord};

use crate::view::{Block, KeyFigure};

/// What a reader needs to repeat or to doubt the run.
pub(super) fn blocks(record: &RunRecord) -> [Block; 2] {
    let header = &record.header;
    let host = header.host();
    let target = &header.conditions.target;
    let mut figures = Vec::new();
    let mut add = |label: &str, text: String| {
        if !text.is_empty() {
            figures.push(KeyFigure::new(label, text));
        }
    };
    let is_ours = header.activity.kind() != ActivityKind::Import;
    add("target", header.target.clone());
    add(
        "program",
        match header.tool_version.as_str() {
            "" => String::new(),
            version if is_ours => format!("fathom {version}"),
            version => format!("imported by fathom {version}"),
        },
    );
    add("seed", header.seed.map(|seed| seed.to_string()).unwrap_or_default());
    add("size used", if header.size_bytes > 0 { units::bytes(header.size_bytes) } else { String::new() });
    let hosts = header.hosts.iter().map(|host| host.hostname.as_str());
    let hosts: Vec<&str> = hosts.filter(|name| !name.is_empty()).collect();
    add(if hosts.len() > 1 { "hosts" } else { "host" }, hosts.join(", "));
    add("kernel", host.kernel.clone());
    add("CPU", host.cpu_model.clone());
    add("CPUs", if host.cpus_online > 0 { host.cpus_online.to_string() } else { String::new() });
    add("memory", if host.memory_bytes > 0 { units::bytes(host.memory_bytes) } else { String::new() });
    if let Some(filesystem) = &target.filesystem {
        add("file system", filesystem.fs_type.clone());
    }
    for device in &target.devices {
        let parts = [device.vendor.as_str(), device.model.as_str()].map(str::trim);
        let size = if device.size_bytes > 0 { units::bytes(device.size_bytes) } else { String::new() };
        let parts: Vec<&str> =
            parts.into_iter().chain([size.as_str()]).filter(|part| !part.is_empty()).collect();
        add(&format!("device {}", device.name), parts.join(", "));
    }
    for (name, value) in &header.labels {
        add(&format!("label {name}"), value.clone());
    }
    add("tags", header.tags.join(", "));
    for note in &header.notes {
        add("note", note.clone());
    }
    let command: Vec<_> = header.command.iter().map(|word| shell_quoted(word)).collect();
    let is_known = is_ours && !command.is_empty();
    let commands = is_known.then(|| ("this run".to_owned(), command.join(" ")));
    [Block::KeyFigures(figures), Block::Commands(commands.into_iter().collect())]
}
