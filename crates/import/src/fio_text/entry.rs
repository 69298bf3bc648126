//! The entry of a job, from the segments between its first line and the next.

use fathom_model::Op;
use fathom_record::import::{
    DepthShare, Figure, FigurePlace, ImportedCpu, ImportedEntry, ImportedLatency, ImportedOp,
    ImportedPercentile, LatencyShare, MissingFigure, MissingReason, RateWindows,
};

use super::segment::SegmentKind;
use super::{Context, Taker};
use crate::number::{self, ReadResult, Reading};
use crate::report::miss;

/// A job being read.
pub(super) struct EntryReader {
    entry: ImportedEntry,
    group: u32,
    depth: Option<u32>,
    /// The operation whose lines follow.
    op: Option<&'static str>,
    missing: Vec<MissingFigure>,
    places: Vec<FigurePlace>,
}

/// A job that was read.
pub(super) struct ReadEntry {
    pub entry: ImportedEntry,
    pub group: u32,
    /// The queue depth that its last line names.
    pub depth: Option<u32>,
    pub missing: Vec<MissingFigure>,
    pub places: Vec<FigurePlace>,
}

impl EntryReader {
    /// The job of a line `NAME: (groupid=0, jobs=1): err= 0: pid=1: Mon Jun 13 10:03:45 2016`.
    pub fn new(context: Context<'_>, name: &str) -> EntryReader {
        let mut reader = EntryReader::unnamed();
        let taker = Taker::new(context, "");
        let whole = |key: &str| taker.fields.get(key).and_then(|text| text.parse::<u32>().ok());
        reader.group = whole("groupid").unwrap_or(0);
        reader.entry.name = name.to_owned();
        reader.entry.jobs = whole("jobs");
        reader.entry.error = taker.fields.get("err").and_then(|text| text.parse().ok());
        reader.entry.reported =
            context.segment.process().map(|(_, reported)| reported.to_owned()).unwrap_or_default();
        let description =
            context.segment.body.split_once("Description").and_then(|(_, rest)| rest.split_once('['));
        if let Some((_, description)) = description {
            reader.entry.description = description.rsplit_once(']').map_or("", |(text, _)| text).to_owned();
        }
        reader
    }

    /// A job whose first line is not there.
    pub fn unnamed() -> EntryReader {
        EntryReader {
            entry: ImportedEntry::default(),
            group: 0,
            depth: None,
            op: None,
            missing: Vec::new(),
            places: Vec::new(),
        }
    }

    pub fn finish(self) -> ReadEntry {
        let EntryReader { entry, group, depth, missing, places, .. } = self;
        ReadEntry { entry, group, depth, missing, places }
    }

    /// Takes one of the lines below.
    pub fn take(&mut self, context: Context<'_>) {
        let subject = |what: &str| format!("{} {what}", self.op.unwrap_or_default());
        let missing = match &context.segment.kind {
            SegmentKind::Op(op) => {
                self.op = Some(op);
                self.operation(context, op)
            }
            SegmentKind::Latency("lat", unit) if is_histogram(context) => self.shares(context, unit),
            SegmentKind::Latency("sync", unit) => {
                self.op = Some("sync");
                self.latency(Taker::new(context, "sync"), "lat", unit)
            }
            SegmentKind::Latency(span, unit) => self.latency(Taker::new(context, subject(span)), span, unit),
            SegmentKind::Percentiles(span, unit) => {
                self.percentiles(Taker::new(context, subject(span)), span, unit)
            }
            SegmentKind::BandwidthWindows(unit) => {
                self.windows(Taker::new(context, subject("bandwidth windows")), Some(unit))
            }
            SegmentKind::IopsWindows => self.windows(Taker::new(context, subject("IOPS windows")), None),
            SegmentKind::Cpu => self.cpu(context),
            SegmentKind::Depths => self.depths(context),
            SegmentKind::Issued => self.issued(context),
            SegmentKind::Errors => self.errors(context),
            SegmentKind::Target => self.target(context),
            SegmentKind::SyncHead => {
                self.op = Some("sync");
                Vec::new()
            }
            _ => Vec::new(),
        };
        missing.into_iter().for_each(|figure| miss(&mut self.missing, figure));
        self.note_place(context);
    }

    /// The figures of the line that was taken stand there.
    fn note_place(&mut self, context: Context<'_>) {
        let op = self.op.unwrap_or("total");
        let figures = match &context.segment.kind {
            SegmentKind::Op(_) => format!("{op}."),
            SegmentKind::Latency("sync", _) => "sync.lat_ns.".to_owned(),
            SegmentKind::Latency(..) if is_histogram(context) => return,
            SegmentKind::Latency(span, _) => format!("{op}.{span}_ns."),
            SegmentKind::Percentiles(span, _) => format!("{op}.{span}_ns.p"),
            SegmentKind::Cpu => "cpu.".to_owned(),
            _ => return,
        };
        let place = FigurePlace { figures, line: context.segment.line, text: context.segment.text.clone() };
        self.places.push(place);
    }

    fn slot(&mut self, op: Option<&str>) -> &mut ImportedOp {
        match op {
            Some("write") => self.entry.op_mut(Op::Write),
            Some("trim") => self.entry.op_mut(Op::Trim),
            Some("sync") => self.entry.op_mut(Op::Sync),
            Some("read") => self.entry.op_mut(Op::Read),
            // Lines without the one that names the operation.
            _ => self.entry.total.get_or_insert_default(),
        }
    }

    /// `io=4096.0MB, bw=12065KB/s, iops=3016, runt=347640msec`, or
    /// `IOPS=52.7k, BW=206MiB/s (216MB/s)(412MiB/2001msec); 0 zone resets`.
    fn operation(&mut self, context: Context<'_>, op: &'static str) -> Vec<MissingFigure> {
        let style = context.style;
        let mut taker = Taker::new(context, op);
        let iops = taker.take(&["iops", "IOPS"], "IOPS", |text| number::iops(text, style));
        let rate = taker.take(&["bw", "BW"], "bandwidth", |text| number::bytes(text, style));
        let is_modern = ["IOPS", "BW"].iter().any(|key| taker.fields.get(key).is_some());
        let (bytes, runtime) = if is_modern {
            // The last parentheses with a time.
            let parts = context.segment.body.split('(').skip(1).filter_map(|part| part.split(')').next());
            let total = parts.filter_map(|part| part.split_once('/')).find(|(_, time)| time.contains("sec"));
            let mut of = |text: Option<&str>, name: &str, read: &dyn Fn(&str) -> ReadResult| {
                let found = text.ok_or(MissingReason::Lost).and_then(read).and_then(Reading::figure);
                found.map_err(|reason| taker.note(name, reason)).ok()
            };
            let bytes = of(total.map(|(bytes, _)| bytes), "bytes", &|text| number::bytes(text, style));
            (bytes, of(total.map(|(_, time)| time), "runtime", &number::time))
        } else {
            let bytes = taker.take(&["io"], "bytes", |text| number::bytes(text, style));
            (bytes, taker.take(&["runt"], "runtime", number::time))
        };
        let missing = taker.missing;
        let slot = self.slot(Some(op));
        (slot.iops, slot.bytes_per_second, slot.bytes, slot.runtime_ns) = (iops, rate, bytes, runtime);
        missing
    }

    /// `min=54, max=622, avg=135.46, stdev=23.21`.
    fn latency(&mut self, mut taker: Taker<'_>, span: &str, unit: &str) -> Vec<MissingFigure> {
        let style = taker.context.style;
        let read = |text: &str| number::time_in(text, unit, style);
        let (min, max) = (taker.take(&["min"], "min", read), taker.take(&["max"], "max", read));
        let (mean, stddev) = (taker.take(&["avg"], "mean", read), taker.take(&["stdev"], "stddev", read));
        let missing = taker.missing;
        let latency = self.span(span);
        (latency.min, latency.max, latency.mean, latency.stddev) = (min, max, mean, stddev);
        missing
    }

    /// A latency of the operation whose lines these are.
    fn span(&mut self, span: &str) -> &mut ImportedLatency {
        let op = self.op;
        let slot = self.slot(op);
        match span {
            "slat" => &mut slot.slat,
            "clat" => &mut slot.clat,
            _ => &mut slot.lat,
        }
    }

    /// `|  1.00th=[  101],  5.00th=[  155], ...`.
    fn percentiles(&mut self, mut taker: Taker<'_>, span: &'static str, unit: &str) -> Vec<MissingFigure> {
        if span == "sync" {
            self.op = Some("sync");
        }
        let style = taker.context.style;
        let all: Vec<(&str, &str)> = taker.fields.iter().collect();
        let mut found = Vec::new();
        for (key, text) in all {
            let percent = key.strip_suffix("th").and_then(|percent| percent.parse::<f64>().ok());
            let Some(percent) = percent.filter(|percent| *percent > 0.0 && *percent <= 100.0) else {
                continue;
            };
            match number::time_in(text, unit, style).and_then(Reading::figure) {
                Ok(ns) => found.push(ImportedPercentile { percent, ns }),
                Err(reason) => taker.note(&format!("p{percent}"), reason),
            }
        }
        if found.is_empty() && taker.missing.is_empty() {
            taker.note("percentiles", MissingReason::Lost);
        }
        self.span(span).percentiles = found;
        taker.missing
    }

    /// `min=200360, max=225604, per=100.00%, avg=210973.00, stdev=10846.17, samples=4`: of bandwidth in this unit, or of IOPS.
    fn windows(&mut self, mut taker: Taker<'_>, unit: Option<&str>) -> Vec<MissingFigure> {
        let style = taker.context.style;
        let read = |text: &str| match unit {
            Some(unit) => number::window_rate(text, unit, style),
            None => number::iops(text, style),
        };
        let windows = RateWindows {
            min: taker.take(&["min"], "min", read),
            max: taker.take(&["max"], "max", read),
            mean: taker.take(&["avg"], "mean", read),
            stddev: taker.take(&["stdev"], "stddev", read),
            samples: taker.take_if_there(&["samples"], "samples", |text| number::count(text, style)),
            group_percent: taker.take_if_there(&["per"], "share", number::real),
        };
        let missing = taker.missing;
        let op = self.op;
        let slot = self.slot(op);
        if unit.is_some() {
            slot.bandwidth_windows = Some(windows);
        } else {
            slot.iops_windows = Some(windows);
        }
        missing
    }

    fn cpu(&mut self, context: Context<'_>) -> Vec<MissingFigure> {
        let mut taker = Taker::new(context, "CPU");
        let count = |text: &str| number::count(text, context.style);
        self.entry.cpu = ImportedCpu {
            user_percent: taker.take(&["usr"], "user time", number::real),
            system_percent: taker.take(&["sys"], "system time", number::real),
            machine_percent: None,
            context_switches: taker.take(&["ctx"], "context switches", count),
            major_faults: taker.take(&["majf"], "major faults", count),
            minor_faults: taker.take(&["minf"], "minor faults", count),
        };
        taker.missing
    }

    /// `1=0.1%, 2=0.1%, ..., >=64=100.0%`.
    fn depths(&mut self, context: Context<'_>) -> Vec<MissingFigure> {
        let mut taker = Taker::new(context, "share of queue depth");
        let all: Vec<(&str, &str)> = taker.fields.iter().collect();
        for (label, text) in all {
            let Ok(from) = label.trim_start_matches(">=").parse::<u32>() else { continue };
            // What is not 0 is shown as 0.1 % at least.
            match number::real(text).map(|read| at_least_shown(read, 0.1)).and_then(Reading::figure) {
                Ok(percent) => self.entry.depths.push(DepthShare { from, percent }),
                Err(reason) => taker.note(label, reason),
            }
        }
        taker.missing
    }

    /// `10=0.01%, 20=0.03%, >=2000=0.1%`.
    fn shares(&mut self, context: Context<'_>, unit: &str) -> Vec<MissingFigure> {
        let mut taker = Taker::new(context, "share of latency");
        let scale = number::time_unit(unit).filter(|&scale| scale < 1e9);
        let all: Vec<(&str, &str)> = taker.fields.iter().collect();
        for (label, text) in all {
            let is_open = label.starts_with(">=");
            let Ok(value) = label.trim_start_matches(">=").parse::<u32>() else { continue };
            let Some(scale) = scale else {
                taker.note(label, MissingReason::UnknownUnit);
                continue;
            };
            let below_ns = if is_open { 0 } else { u64::from(value) * scale as u64 };
            match number::real(text).map(|read| at_least_shown(read, 0.01)).and_then(Reading::figure) {
                Ok(percent) => self.entry.latencies.push(LatencyShare { below_ns, percent }),
                Err(reason) => taker.note(label, reason),
            }
        }
        taker.missing
    }

    /// `total=r=1048576/w=0/d=0, short=r=0/w=0/d=0, drop=...`, `total=786042/262534/0, short=0/0/0`,
    /// `total=52737,0,0,0 short=0,0,0,0 dropped=0,0,0,0`.
    fn issued(&mut self, context: Context<'_>) -> Vec<MissingFigure> {
        let mut taker = Taker::new(context, "issued I/Os");
        let body = &context.segment.body;
        let part = |key: &str| {
            let (_, rest) = body.split_once(key)?;
            let end =
                ["short=", "drop"].iter().filter_map(|next| rest.find(next)).min().unwrap_or(rest.len());
            Some(numbers(&rest[..end]))
        };
        let Some(total) = part("total=").filter(|total| total.len() >= 3) else {
            taker.note("total", MissingReason::Lost);
            return taker.missing;
        };
        let (short, dropped) = (part("short=").unwrap_or_default(), part("drop").unwrap_or_default());
        let figure =
            |list: &[f64], index: usize| -> Option<Figure<u64>> { Figure::printed(*list.get(index)?, 0.0) };
        for (index, op) in Op::DATA.into_iter().enumerate() {
            let has_results = self.entry.op(op).is_some();
            if total[index] > 0.0 && self.entry.total.is_none() || has_results {
                let slot = self.entry.op_mut(op);
                slot.ios = figure(&total, index);
                slot.short = figure(&short, index);
                slot.dropped = figure(&dropped, index);
            }
        }
        if let Some(mixed) = &mut self.entry.total {
            mixed.ios = Figure::printed(total[..3].iter().sum(), 0.0);
        }
        if total.get(3).is_some_and(|&syncs| syncs > 0.0) {
            self.entry.op_mut(Op::Sync).ios = figure(&total, 3);
        }
        taker.missing
    }

    fn errors(&mut self, context: Context<'_>) -> Vec<MissingFigure> {
        let mut taker = Taker::new(context, "errors");
        self.entry.failed = taker.take(&["total"], "total", |text| number::count(text, context.style));
        taker.missing
    }

    /// The depth, unless it is one that a latency target led to.
    fn target(&mut self, context: Context<'_>) -> Vec<MissingFigure> {
        let taker = Taker::new(context, "");
        let is_free = taker.fields.get("target").is_some_and(|target| target.starts_with('0'));
        let depth = taker.fields.get("depth").and_then(|text| text.parse().ok());
        self.depth = depth.filter(|_| is_free);
        taker.missing
    }
}

/// fio shows a share that is not 0 as this much at least.
fn at_least_shown(read: Reading, least: f64) -> Reading {
    let is_least = (read.value - least).abs() < least / 100.0;
    Reading { resolution: if is_least { least } else { read.resolution }, ..read }
}

/// A line `lat (usec)` has shares, or the statistics of the latency.
fn is_histogram(context: Context<'_>) -> bool {
    let taker = Taker::new(context, "");
    let is_label = |key: &str| key.trim_start_matches(">=").parse::<u32>().is_ok();
    let mut keys = taker.fields.iter().map(|(key, _)| key).peekable();
    keys.peek().is_some() && keys.all(is_label)
}

/// The whole numbers of a text in their order.
fn numbers(text: &str) -> Vec<f64> {
    let parts = text.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    parts.filter_map(|part| part.parse().ok()).collect()
}
