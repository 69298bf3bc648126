//! Every figure of an imported test under one name, for tables, documents and comparisons.

use fathom_model::PerOp;

use super::{
    Figure, FigureNumber, GroupFigures, ImportedEntry, ImportedLatency, ImportedOp, ImportedTest, RateWindows,
};

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

struct Collector {
    entry: Option<usize>,
    figures: Vec<NamedFigure>,
}

impl Collector {
    fn add<T: FigureNumber>(&mut self, name: String, figure: Option<Figure<T>>) {
        let entry = self.entry;
        self.figures.extend(figure.map(|figure| NamedFigure { entry, name, figure: figure.real() }));
    }

    fn all<T: FigureNumber>(&mut self, prefix: &str, fields: &[(&str, Option<Figure<T>>)]) {
        for (field, figure) in fields {
            self.add(format!("{prefix}{field}"), *figure);
        }
    }

    fn entry(&mut self, entry: &ImportedEntry) {
        let ops = [
            ("read", &entry.read),
            ("write", &entry.write),
            ("trim", &entry.trim),
            ("total", &entry.total),
            ("sync", &entry.sync),
        ];
        for (name, op) in ops {
            op.iter().for_each(|op| self.op(&format!("{name}."), op));
        }
        self.all("", &[("job_runtime_ns", entry.job_runtime_ns), ("failed", entry.failed)]);
        let cpu = &entry.cpu;
        self.all(
            "cpu.",
            &[
                ("user_percent", cpu.user_percent),
                ("system_percent", cpu.system_percent),
                ("machine_percent", cpu.machine_percent),
            ],
        );
        self.all(
            "cpu.",
            &[
                ("context_switches", cpu.context_switches),
                ("major_faults", cpu.major_faults),
                ("minor_faults", cpu.minor_faults),
            ],
        );
        for share in &entry.depths {
            self.add(format!("depth.{}_percent", share.from), Some(share.percent));
        }
        for share in &entry.latencies {
            self.add(format!("latency_below.{}_percent", share.below_ns), Some(share.percent));
        }
        if let Some(paced) = &entry.paced {
            self.all(
                "paced.",
                &[
                    ("ios", paced.ios),
                    ("bytes", paced.bytes),
                    ("wall_ns", paced.wall_ns),
                    ("too_fast", paced.too_fast),
                    ("too_slow", paced.too_slow),
                ],
            );
            self.all("paced.", &[("iops", paced.iops), ("bytes_per_second", paced.bytes_per_second)]);
        }
    }

    fn op(&mut self, prefix: &str, op: &ImportedOp) {
        self.all(prefix, &[("iops", op.iops), ("bytes_per_second", op.bytes_per_second)]);
        self.all(
            prefix,
            &[
                ("bytes", op.bytes),
                ("ios", op.ios),
                ("short", op.short),
                ("dropped", op.dropped),
                ("runtime_ns", op.runtime_ns),
            ],
        );
        for (name, latency) in [("slat_ns.", &op.slat), ("clat_ns.", &op.clat), ("lat_ns.", &op.lat)] {
            self.latency(&format!("{prefix}{name}"), latency);
        }
        let windows = [
            ("bandwidth_windows.", "bytes_per_second", &op.bandwidth_windows),
            ("iops_windows.", "iops", &op.iops_windows),
        ];
        for (name, unit, windows) in windows {
            windows.iter().for_each(|windows| self.windows(&format!("{prefix}{name}"), unit, windows));
        }
        self.all(prefix, &[("last_iops", op.last_iops), ("last_bytes_per_second", op.last_bytes_per_second)]);
    }

    fn latency(&mut self, prefix: &str, latency: &ImportedLatency) {
        self.all(
            prefix,
            &[
                ("samples", latency.samples),
                ("min", latency.min),
                ("mean", latency.mean),
                ("max", latency.max),
                ("stddev", latency.stddev),
            ],
        );
        for percentile in &latency.percentiles {
            self.add(format!("{prefix}p{}", percentile.percent), Some(percentile.ns));
        }
        for (index, request) in latency.requests.iter().enumerate() {
            self.add(format!("{prefix}request_{}", index + 1), Some(*request));
        }
    }

    fn windows(&mut self, prefix: &str, unit: &str, windows: &RateWindows) {
        let fields = [
            ("min_", windows.min),
            ("mean_", windows.mean),
            ("max_", windows.max),
            ("stddev_", windows.stddev),
        ];
        for (field, figure) in fields {
            self.add(format!("{prefix}{field}{unit}"), figure);
        }
        self.add(format!("{prefix}samples"), windows.samples);
        self.add(format!("{prefix}group_percent"), windows.group_percent);
    }

    fn group(&mut self, prefix: &str, group: &GroupFigures) {
        self.all(
            prefix,
            &[
                ("bytes_per_second", group.bytes_per_second),
                ("min_bytes_per_second", group.min_bytes_per_second),
                ("max_bytes_per_second", group.max_bytes_per_second),
            ],
        );
        self.all(
            prefix,
            &[
                ("bytes", group.bytes),
                ("min_runtime_ns", group.min_runtime_ns),
                ("max_runtime_ns", group.max_runtime_ns),
            ],
        );
    }
}

impl ImportedTest {
    /// Every figure with its name, in the order of a report; bins of histograms are no figures.
    pub fn figures(&self) -> Vec<NamedFigure> {
        let mut list = Collector { entry: None, figures: Vec::new() };
        for (index, entry) in self.entries.iter().enumerate() {
            list.entry = Some(index);
            list.entry(entry);
        }
        list.entry = None;
        if let Some(group) = &self.group {
            let ops = [
                ("group.read.", &group.read),
                ("group.write.", &group.write),
                ("group.trim.", &group.trim),
                ("group.total.", &group.total),
            ];
            for (name, op) in ops {
                op.iter().for_each(|figures| list.group(name, figures));
            }
        }
        for disk in &self.disks {
            let prefix = format!("disk.{}.", disk.name);
            let fields: [(&str, &PerOp<Option<Figure<u64>>>); 4] = [
                ("ios", &disk.ios),
                ("sectors", &disk.sectors),
                ("merges", &disk.merges),
                ("ticks_ms", &disk.ticks_ms),
            ];
            for (field, per_op) in fields {
                for (op, figure) in per_op.iter() {
                    list.add(format!("{prefix}{}.{field}", op.name()), *figure);
                }
            }
            list.add(format!("{prefix}in_queue_ms"), disk.in_queue_ms);
            list.add(format!("{prefix}util_percent"), disk.util_percent);
        }
        list.figures
    }
}
