//! `--output-format=terse` and `--minimal` of fio: versions 2 to 5, one line for each entry, fields separated by `;`.

use fathom_model::{Op, PerOp};
use fathom_record::import::{
    DepthShare, Figure, FigureNumber, FigurePlace, ImportedCpu, ImportedDisk, ImportedEntry, ImportedLatency,
    ImportedOp, ImportedPercentile, LatencyShare, MissingFigure, MissingReason, RateWindows,
};

use crate::number::Number;
use crate::report::{SourceReport, miss};
use crate::text::excerpt;

/// Slots for percentiles of an operation.
const PERCENTILES: usize = 20;
/// Fields of a disk.
const DISK_FIELDS: usize = 9;
const DEPTHS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
const CLASSES: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

/// What the versions of the format have.
struct Layout {
    version: u64,
    /// The version of fio.
    has_fio_version: bool,
    ops: &'static [Op],
    /// Counts of windows, and IOPS over them.
    has_iops_windows: bool,
}

const LAYOUTS: [Layout; 4] = [
    Layout { version: 2, has_fio_version: false, ops: &Op::DATA, has_iops_windows: false },
    Layout { version: 3, has_fio_version: true, ops: &[Op::Read, Op::Write], has_iops_windows: false },
    Layout { version: 4, has_fio_version: true, ops: &Op::DATA, has_iops_windows: false },
    Layout { version: 5, has_fio_version: true, ops: &Op::DATA, has_iops_windows: true },
];

impl Layout {
    /// The layout of a line; `None` where it is no line of this format.
    fn of(line: &str) -> Option<&'static Layout> {
        let layout = LAYOUTS.iter().find(|layout| {
            line.strip_prefix(&layout.version.to_string()).is_some_and(|rest| rest.starts_with(';'))
        })?;
        let fields = line.split(';').count();
        let has_version = !layout.has_fio_version || line.split(';').nth(1)?.starts_with("fio");
        // Even a line that is cut off has its first operation.
        (has_version && fields >= layout.head() + layout.op_fields()).then_some(layout)
    }

    /// Fields before the operations.
    fn head(&self) -> usize {
        if self.has_fio_version { 5 } else { 4 }
    }

    fn op_fields(&self) -> usize {
        4 + 4 + 4 + PERCENTILES + 4 + 5 + if self.has_iops_windows { 6 } else { 0 }
    }
}

/// True where a line is one of this format.
pub(crate) fn is_line(line: &str) -> bool {
    Layout::of(line).is_some()
}

/// Reads lines of the format, with their numbers.
pub(crate) fn read(lines: &[(u64, &str)]) -> SourceReport {
    let mut report = SourceReport::default();
    for (number, line) in lines {
        if let Some(layout) = Layout::of(line) {
            Fields::new(line, *number).entry(layout, &mut report);
        }
    }
    report
}

/// The fields of a line, taken one after the other.
struct Fields<'a> {
    fields: std::str::Split<'a, char>,
    line: u64,
    missing: Vec<MissingFigure>,
}

/// How a number is printed: base units of one, and the resolutions of whole numbers and of others.
#[derive(Clone, Copy)]
struct Digits(f64, f64, f64);

const COUNT: Digits = Digits(1.0, 0.0, 5e-7);
const KIB: Digits = Digits(1024.0, 1.0, 5e-7);
const MICROS: Digits = Digits(1e3, 1.0, 5e-7);
const MILLIS: Digits = Digits(1e6, 1.0, 5e-7);
const RATE: Digits = Digits(1.0, 1.0, 5e-7);

impl<'a> Fields<'a> {
    fn new(line: &'a str, number: u64) -> Fields<'a> {
        Fields { fields: line.split(';'), line: number, missing: Vec::new() }
    }

    fn text(&mut self) -> Option<&'a str> {
        self.fields.next()
    }

    /// The next field as a figure; a line that ends before it lacks it.
    fn figure<T: FigureNumber>(&mut self, digits: Digits, name: &str) -> Option<Figure<T>> {
        let text = self.text();
        let read = text.and_then(Number::parse).filter(|number| matches!(number.unit, "" | "%"));
        let figure = read.and_then(|number| {
            let Digits(scale, whole, real) = digits;
            let resolution = match number.decimals {
                0 => whole,
                6 => real,
                decimals => 0.5 * 10_f64.powi(-(decimals.min(300) as i32)),
            };
            Figure::printed(number.value * scale, resolution * scale)
        });
        if figure.is_none() {
            let reason =
                if text.is_none_or(str::is_empty) { MissingReason::Lost } else { MissingReason::Unreadable };
            let text = excerpt(text.unwrap_or_default());
            miss(&mut self.missing, MissingFigure { line: self.line, text, figure: name.to_owned(), reason });
        }
        figure
    }

    fn entry(mut self, layout: &Layout, report: &mut SourceReport) {
        self.text();
        let version = if layout.has_fio_version { self.text().unwrap_or_default() } else { "" };
        let version = version.trim_start_matches("fio").trim_start_matches(['-', ' ']);
        let name = self.text().unwrap_or_default();
        let group = self.text().and_then(|group| group.parse().ok()).unwrap_or(0);
        let error = self.text().and_then(|error| error.parse().ok());
        let mut entry = ImportedEntry { name: name.to_owned(), error, ..ImportedEntry::default() };
        // Under `unified_rw_reporting` there is one block for all operations, and CPU time follows it.
        if self.fields.clone().nth(layout.op_fields()).is_some_and(|field| field.ends_with('%')) {
            entry.total = self.op("total", layout);
        } else {
            for &op in layout.ops {
                if let Some(found) = self.op(op.name(), layout) {
                    *entry.op_mut(op) = found;
                }
            }
        }
        entry.cpu = ImportedCpu {
            user_percent: self.figure(COUNT, "user CPU"),
            system_percent: self.figure(COUNT, "system CPU"),
            machine_percent: None,
            context_switches: self.figure(COUNT, "context switches"),
            major_faults: self.figure(COUNT, "major faults"),
            minor_faults: self.figure(COUNT, "minor faults"),
        };
        for from in DEPTHS {
            let share = self.figure(COUNT, "share of a queue depth");
            entry.depths.extend(share.map(|percent| DepthShare { from, percent }));
        }
        let millis = CLASSES.iter().map(|label| label * 1_000_000).chain([2_000_000_000, 0]);
        for below_ns in CLASSES.iter().map(|label| label * 1_000).chain(millis) {
            let share = self.figure(COUNT, "share of a latency");
            entry.latencies.extend(share.map(|percent| LatencyShare { below_ns, percent }));
        }
        let disks = self.disks(&mut entry);
        let test = &mut report.test(name, group).imported;
        test.tool = "fio".to_owned();
        test.tool_version = version.to_owned();
        test.entries.push(entry);
        test.disks = disks;
        test.places.push(FigurePlace { line: self.line, ..FigurePlace::default() });
        self.missing.into_iter().for_each(|missing| miss(&mut test.missing, missing));
    }

    fn op(&mut self, name: &str, layout: &Layout) -> Option<ImportedOp> {
        let bytes: Option<Figure<u64>> = self.figure(KIB, &format!("{name} bytes"));
        let bytes_per_second = self.figure(KIB, &format!("{name} bandwidth"));
        let iops = self.figure(RATE, &format!("{name} IOPS"));
        let runtime_ns: Option<Figure<u64>> = self.figure(MILLIS, &format!("{name} runtime"));
        let slat = self.latency(&format!("{name} slat"));
        let clat = self.latency(&format!("{name} clat"));
        let percentiles = self.percentiles();
        // Without latencies, the list has zeros.
        let clat =
            if clat == ImportedLatency::default() { clat } else { ImportedLatency { percentiles, ..clat } };
        let lat = self.latency(&format!("{name} lat"));
        let bandwidth_windows = self.windows(&format!("{name} bandwidth"), layout.has_iops_windows, true);
        let iops_windows =
            if layout.has_iops_windows { self.windows(&format!("{name} IOPS"), true, false) } else { None };
        let is_idle = |figure: Option<Figure<u64>>| figure.is_none_or(|figure| figure.value == 0);
        let ran = !is_idle(bytes) || !is_idle(runtime_ns);
        ran.then(|| ImportedOp {
            iops,
            bytes_per_second,
            bytes,
            runtime_ns,
            slat,
            clat,
            lat,
            bandwidth_windows,
            iops_windows,
            ..ImportedOp::default()
        })
    }

    /// Zeros where nothing was counted.
    fn latency(&mut self, name: &str) -> ImportedLatency {
        let latency = ImportedLatency {
            min: self.figure(MICROS, &format!("{name} min")),
            max: self.figure(MICROS, &format!("{name} max")),
            mean: self.figure(MICROS, &format!("{name} mean")),
            stddev: self.figure(MICROS, &format!("{name} stddev")),
            ..ImportedLatency::default()
        };
        let all = [latency.min, latency.max, latency.mean, latency.stddev];
        let is_zero = all.iter().flatten().all(|figure| figure.value == 0);
        if is_zero { ImportedLatency::default() } else { latency }
    }

    fn percentiles(&mut self) -> Vec<ImportedPercentile> {
        let read = |field: &str| {
            let (percent, value) = field.split_once("%=")?;
            let percent =
                percent.parse::<f64>().ok().filter(|percent| *percent > 0.0 && *percent <= 100.0)?;
            let ns = Figure::printed(value.parse::<u64>().ok()? as f64 * MICROS.0, MICROS.0)?;
            Some(ImportedPercentile { percent, ns })
        };
        (0..PERCENTILES).filter_map(|_| self.text().and_then(read)).collect()
    }

    /// `min;max;[percent;]mean;stddev[;samples]`.
    fn windows(&mut self, name: &str, has_samples: bool, is_bandwidth: bool) -> Option<RateWindows> {
        let digits = if is_bandwidth { KIB } else { RATE };
        let (min, max) =
            (self.figure(digits, &format!("{name} min")), self.figure(digits, &format!("{name} max")));
        let share = Digits(1.0, 1e-3, 1e-3);
        let group_percent = if is_bandwidth { self.figure(share, &format!("{name} share")) } else { None };
        let mean: Option<Figure<f64>> = self.figure(digits, &format!("{name} mean"));
        let stddev = self.figure(digits, &format!("{name} stddev"));
        let samples = if has_samples { self.figure(COUNT, &format!("{name} samples")) } else { None };
        let is_empty = mean.is_none_or(|mean| mean.value == 0.0);
        (!is_empty).then_some(RateWindows { min, mean, max, stddev, samples, group_percent })
    }

    /// Nine fields each; then may come counts of errors and a description.
    fn disks(&mut self, entry: &mut ImportedEntry) -> Vec<ImportedDisk> {
        let rest: Vec<&str> = self.fields.by_ref().collect();
        let is_disk = |fields: &[&str]| {
            let counts = fields.get(1..DISK_FIELDS - 1);
            fields.len() >= DISK_FIELDS
                && fields[DISK_FIELDS - 1].ends_with('%')
                && counts.is_some_and(|counts| counts.iter().all(|count| count.parse::<u64>().is_ok()))
        };
        let (mut disks, mut at) = (Vec::new(), 0);
        while is_disk(&rest[at..]) {
            let joined = rest[at..at + DISK_FIELDS].join(";");
            disks.push(disk(&mut Fields::new(&joined, self.line)));
            at += DISK_FIELDS;
        }
        let errors = rest.get(at).and_then(|count| count.parse::<u64>().ok());
        if let (Some(count), Some(_)) = (errors, rest.get(at + 1).and_then(|errno| errno.parse::<i32>().ok()))
        {
            entry.failed = Figure::printed(count as f64, 0.0);
            at += 2;
        }
        entry.description = rest[at.min(rest.len())..].join(";").trim().to_owned();
        disks
    }
}

fn disk(fields: &mut Fields<'_>) -> ImportedDisk {
    let name = fields.text().unwrap_or_default().to_owned();
    let mut pair = || {
        let (read, write) = (fields.figure(COUNT, "disk"), fields.figure(COUNT, "disk"));
        PerOp { read, write, trim: None }
    };
    let (ios, merges, ticks_ms) = (pair(), pair(), pair());
    ImportedDisk {
        name,
        ios,
        merges,
        ticks_ms,
        in_queue_ms: fields.figure(COUNT, "disk"),
        util_percent: fields.figure(COUNT, "disk"),
        ..ImportedDisk::default()
    }
}
