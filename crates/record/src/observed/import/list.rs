//! Every figure of an imported test under one name, for tables, documents and comparisons: the path of its members.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Figure, ImportedTest};

/// A figure with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedFigure {
    /// Index of its entry; `None` for figures of the group or of disks.
    pub entry: Option<usize>,
    /// What it is, with the operation first: `read.lat_ns.mean`, `cpu.user_percent`, `disk.vda.read.ios`. The end of a name is
    /// its unit: `_ns`, `_ms`, `_percent`, `bytes`, `bytes_per_second`, `iops`; else it is a count.
    pub name: String,
    /// The figure.
    pub figure: Figure<f64>,
}

impl ImportedTest {
    /// Every figure with its name, in the order of a report; bins of histograms are no figures.
    pub fn figures(&self) -> Vec<NamedFigure> {
        let mut list = Vec::new();
        for (index, entry) in self.entries.iter().enumerate() {
            collect(Some(index), "", &value_of(entry), &mut list);
        }
        collect(None, "group.", &value_of(&self.group), &mut list);
        for disk in &self.disks {
            let prefix = format!("disk.{}.", disk.name);
            let fields = [
                ("ios", &disk.ios),
                ("sectors", &disk.sectors),
                ("merges", &disk.merges),
                ("ticks_ms", &disk.ticks_ms),
            ];
            for (field, per_op) in fields {
                for (op, figure) in per_op.iter() {
                    add(None, format!("{prefix}{}.{field}", op.name()), &value_of(figure), &mut list);
                }
            }
            add(None, format!("{prefix}in_queue_ms"), &value_of(&disk.in_queue_ms), &mut list);
            add(None, format!("{prefix}util_percent"), &value_of(&disk.util_percent), &mut list);
        }
        list
    }
}

fn value_of(part: &impl Serialize) -> Value {
    serde_json::to_value(part).unwrap_or_default()
}

/// Adds the figures of `part`, whose names begin with `prefix`.
fn collect(entry: Option<usize>, prefix: &str, part: &Value, list: &mut Vec<NamedFigure>) {
    for (name, member) in part.as_object().into_iter().flatten() {
        let name = match name.as_str() {
            "slat" | "clat" | "lat" => format!("{name}_ns"),
            // The end of a name is its unit.
            "min" | "mean" | "max" | "stddev" if prefix.ends_with("bandwidth_windows.") => {
                format!("{name}_bytes_per_second")
            }
            "min" | "mean" | "max" | "stddev" if prefix.ends_with("iops_windows.") => format!("{name}_iops"),
            _ => name.clone(),
        };
        match member {
            Value::Array(items) => {
                for (number, item) in (1..).zip(items) {
                    let (name, figure) = match name.as_str() {
                        "percentiles" => {
                            (format!("p{}", item["percent"].as_f64().unwrap_or_default()), &item["ns"])
                        }
                        "requests" => (format!("request_{number}"), item),
                        "depths" => (format!("depth.{}_percent", item["from"]), &item["percent"]),
                        "latencies" => {
                            (format!("latency_below.{}_percent", item["below_ns"]), &item["percent"])
                        }
                        _ => continue,
                    };
                    add(entry, format!("{prefix}{name}"), figure, list);
                }
            }
            figure if figure.get("value").is_some() => add(entry, format!("{prefix}{name}"), figure, list),
            part => collect(entry, &format!("{prefix}{name}."), part, list),
        }
    }
}

fn add(entry: Option<usize>, name: String, figure: &Value, list: &mut Vec<NamedFigure>) {
    let figure = Figure::<f64>::deserialize(figure).ok();
    list.extend(figure.map(|figure| NamedFigure { entry, name, figure }));
}
