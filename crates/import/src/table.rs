//! Tables of figures: test, metric, value and unit, in CSV or TOML. Further columns are options of fio that describe the load.
//!
//! Metrics have the names that criteria and documents use (`read.iops`, `lat_ns.p99`), and a few of other programs' sheets.

use std::collections::BTreeMap;

use fathom_model::Op;
use fathom_record::import::{
    Figure, FigureNumber, ImportedEntry, ImportedLatency, ImportedOp, ImportedPercentile, MissingFigure,
    MissingReason, RateWindows,
};
use fathom_record::{LatencySpan, Metric, MetricDirection, MetricKind, Statistic};

use crate::number::{self, Number, Reading, UnitStyle};
use crate::report::{SourceReport, SourceTest, miss};
use crate::text::excerpt;
use crate::{ImportError, load};

const HEAD: &str = "test,metric,value,unit";

/// What stands for a figure that is not there.
const ABSENT: &[(&str, MissingReason)] = &[
    ("", MissingReason::Lost),
    ("-", MissingReason::NotMeasured),
    ("n/a", MissingReason::NotMeasured),
    ("not measured", MissingReason::NotMeasured),
    ("stalled", MissingReason::Stalled),
    ("unpublished", MissingReason::Unpublished),
];

/// One row, with the line it stands on.
#[derive(Default)]
struct TableRow {
    line: u64,
    test: String,
    metric: String,
    value: String,
    unit: String,
    /// Every other column.
    options: BTreeMap<String, String>,
}

/// Figures that other programs' sheets have beside the metrics, by their names there.
#[derive(Clone, Copy)]
enum SheetFigure {
    Metric(MetricKind),
    LowestBandwidth,
    HighestBandwidth,
    MachineCpu,
    Runtime,
    Bytes,
    Ios,
}

const MEAN_LATENCY: MetricKind = MetricKind::Latency(LatencySpan::Total, Statistic::Mean);

const SHEET: &[(&str, SheetFigure)] = &[
    ("transfer rate minimum", SheetFigure::LowestBandwidth),
    ("transfer rate maximum", SheetFigure::HighestBandwidth),
    ("transfer rate average", SheetFigure::Metric(MetricKind::BytesPerSecond)),
    ("burst rate", SheetFigure::Metric(MetricKind::BytesPerSecond)),
    ("access time", SheetFigure::Metric(MEAN_LATENCY)),
    ("cpu usage", SheetFigure::MachineCpu),
    ("bandwidth_windows.min", SheetFigure::LowestBandwidth),
    ("bandwidth_windows.max", SheetFigure::HighestBandwidth),
    ("machine_cpu", SheetFigure::MachineCpu),
    ("runtime", SheetFigure::Runtime),
    ("bytes", SheetFigure::Bytes),
    ("ios", SheetFigure::Ios),
];

/// True where a text begins with the head of such a table.
pub(crate) fn is_csv(text: &str) -> bool {
    let head = text.trim_start_matches('\u{feff}').lines().find(|line| !line.trim().is_empty());
    head.is_some_and(|head| {
        let names: Vec<String> = head
            .split([',', ';', '\t'])
            .map(|name| name.trim().trim_matches('"').to_ascii_lowercase())
            .collect();
        ["metric", "value"].iter().all(|wanted| names.iter().any(|name| name == wanted))
    })
}

/// True where a text has figures in TOML.
pub(crate) fn is_toml(text: &str) -> bool {
    text.lines().any(|line| line.trim() == "[[figure]]")
}

/// Reads a table in CSV, separated by commas, semicolons or tabs.
pub(crate) fn read_csv(text: &str) -> Result<SourceReport, ImportError> {
    let text = text.trim_start_matches('\u{feff}');
    let head = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let delimiter =
        [b'\t', b';', b','].into_iter().find(|sign| head.as_bytes().contains(sign)).unwrap_or(b',');
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_reader(text.as_bytes());
    let broken = |error: csv::Error| {
        let line = error.position().map_or(0, csv::Position::line);
        ImportError::new(
            line,
            "this is no row of the table",
            format!(
                "give every row the columns {HEAD} of the head, quoted where they hold a comma ({error})"
            ),
        )
    };
    let names: Vec<String> = reader.headers().map_err(broken)?.iter().map(str::to_ascii_lowercase).collect();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(broken)?;
        let line = record.position().map_or(0, csv::Position::line);
        let mut row = TableRow { line, ..TableRow::default() };
        for (name, value) in names.iter().zip(record.iter()) {
            row.set(name, value.to_owned());
        }
        rows.push(row);
    }
    report(rows, &BTreeMap::new())
}

/// Reads `[[figure]]` tables in TOML; what stands before the first is of all of them.
pub(crate) fn read_toml(text: &str) -> Result<SourceReport, ImportError> {
    let hint = "write [[figure]] with test, metric, value and unit for each figure";
    let document: toml::Table = toml::from_str(text).map_err(|error| {
        let line = error
            .span()
            .map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count() as u64 + 1);
        ImportError::new(line, format!("this is no TOML: {}", error.message()), hint)
    })?;
    let mut common = BTreeMap::new();
    for (name, value) in document.iter().filter(|(name, _)| *name != "figure") {
        let text =
            plain(value).ok_or_else(|| ImportError::new(0, format!("'{name}' is no plain value"), hint))?;
        common.insert(name.clone(), text);
    }
    let lines = text.lines().enumerate().filter(|(_, line)| line.trim() == "[[figure]]");
    let mut lines = lines.map(|(index, _)| index as u64 + 1);
    let mut rows = Vec::new();
    for figure in document.get("figure").and_then(toml::Value::as_array).into_iter().flatten() {
        let line = lines.next().unwrap_or(0);
        let mut row = TableRow { line, ..TableRow::default() };
        for (name, value) in figure.as_table().into_iter().flatten() {
            let text = plain(value)
                .ok_or_else(|| ImportError::new(line, format!("'{name}' is no plain value"), hint))?;
            row.set(name, text);
        }
        rows.push(row);
    }
    report(rows, &common)
}

fn plain(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Boolean(is_true) => Some(u8::from(*is_true).to_string()),
        toml::Value::Datetime(_) | toml::Value::Array(_) | toml::Value::Table(_) => None,
    }
}

impl TableRow {
    fn set(&mut self, name: &str, value: String) {
        match name {
            "test" => self.test = value,
            "metric" => self.metric = value,
            "value" => self.value = value,
            "unit" => self.unit = value,
            _ if value.is_empty() => {}
            _ => drop(self.options.insert(name.to_owned(), value)),
        }
    }
}

fn report(rows: Vec<TableRow>, common: &BTreeMap<String, String>) -> Result<SourceReport, ImportError> {
    let mut report = SourceReport::default();
    for row in rows {
        if row.metric.is_empty() && row.value.is_empty() {
            continue;
        }
        let mut options = common.clone();
        options.extend(row.options.clone());
        let tool = options.remove("tool");
        let version = options.remove("tool_version");
        let style = unit_style(options.remove("kb_base").as_deref(), row.line)?;
        let test = report.test(if row.test.is_empty() { "test" } else { &row.test }, 0);
        if test.imported.entries.is_empty() {
            test.imported.entries.push(ImportedEntry { name: row.test.clone(), ..ImportedEntry::default() });
        }
        describe(test, options);
        test.imported.tool = tool.unwrap_or(std::mem::take(&mut test.imported.tool));
        test.imported.tool_version = version.unwrap_or(std::mem::take(&mut test.imported.tool_version));
        add(test, &row, style)?;
    }
    Ok(report)
}

/// Of several rows of a test, each may add to its load.
fn describe(test: &mut SourceTest, options: BTreeMap<String, String>) {
    let mut all = std::mem::take(&mut test.imported.load.options);
    all.extend(options);
    let given = |name: &str| all.contains_key(name);
    let has = [given("iodepth"), given("numjobs"), given("direct") || given("buffered")];
    let has_blocks = ["bs", "blocksize", "bsrange", "bssplit"].iter().any(|name| given(name));
    let has_mix = given("rwmixread") || given("rwmixwrite");
    let mut load = load::of_options(all);
    // What fio takes where nothing is given is no fact of another program.
    load.queue_depth = load.queue_depth.filter(|_| has[0]);
    load.jobs = load.jobs.filter(|_| has[1]);
    load.direct = load.direct.filter(|_| has[2]);
    load.read_percent = load.read_percent.filter(|_| has_mix);
    if !has_blocks {
        load.block_size = Default::default();
    }
    test.imported.load = load;
}

fn unit_style(kb_base: Option<&str>, line: u64) -> Result<UnitStyle, ImportError> {
    match kb_base {
        None => Ok(UnitStyle::Unknown),
        Some("1024") => Ok(UnitStyle::Legacy),
        Some("1000") => Ok(UnitStyle::LegacyDecimal),
        Some(other) => Err(ImportError::new(
            line,
            format!("kb_base is {other}"),
            "write 1024 where KB and MB are powers of 1,024, or 1000",
        )),
    }
}

fn add(test: &mut SourceTest, row: &TableRow, style: UnitStyle) -> Result<(), ImportError> {
    let (direction, figure) = address(&row.metric).ok_or_else(|| {
        ImportError::new(
            row.line,
            format!("unknown metric '{}'", row.metric),
            format!("use {}", Metric::KNOWN),
        )
    })?;
    let word = row.value.trim().to_ascii_lowercase();
    let absent = ABSENT.iter().find(|(text, _)| *text == word).map(|&(_, reason)| reason);
    let read = match absent {
        Some(reason) => Err(reason),
        None => value(figure, row, style)?,
    };
    match read {
        Ok(reading) => set(&mut test.imported.entries[0], direction, figure, reading),
        Err(reason) => {
            let text = excerpt(&format!("{} {}", row.value, row.unit));
            let missing = MissingFigure { line: row.line, text, figure: row.metric.clone(), reason };
            miss(&mut test.imported.missing, missing);
        }
    }
    Ok(())
}

/// The operation and the figure of a name; without an operation it is of all of them.
fn address(name: &str) -> Option<(MetricDirection, SheetFigure)> {
    let name = name.trim().to_ascii_lowercase();
    if let Some(metric) = Metric::parse(&name) {
        return Some((metric.direction.unwrap_or(MetricDirection::Total), SheetFigure::Metric(metric.kind)));
    }
    let named = |name: &str| SHEET.iter().find(|(known, _)| *known == name).map(|&(_, figure)| figure);
    let directions = [
        ("read", MetricDirection::Read),
        ("write", MetricDirection::Write),
        ("trim", MetricDirection::Trim),
        ("total", MetricDirection::Total),
    ];
    let of_op = directions.iter().find_map(|&(word, direction)| {
        let rest = name.strip_prefix(word)?.strip_prefix(['.', ' '])?;
        Some((direction, named(rest)?))
    });
    of_op.or_else(|| Some((MetricDirection::Total, named(&name)?)))
}

/// The value in base units; a unit of several meanings is no value.
fn value(
    figure: SheetFigure,
    row: &TableRow,
    style: UnitStyle,
) -> Result<Result<Reading, MissingReason>, ImportError> {
    let wrong = |what: &str, hint: &str| Err(ImportError::new(row.line, what.to_owned(), hint.to_owned()));
    let unit = row.unit.trim();
    let Some(number) =
        Number::parse(&row.value).filter(|number| !row.value.contains(',') && number.unit.is_empty())
    else {
        return wrong(
            &format!("'{}' is no value", row.value),
            "write a number with a point, or: stalled, not measured, unpublished",
        );
    };
    let half = if number.decimals == 0 { 0.0 } else { 0.5 * 10_f64.powi(-(number.decimals.min(300) as i32)) };
    let scaled = |scale: f64| Reading { value: number.value * scale, resolution: half * scale };
    match figure {
        SheetFigure::Metric(MetricKind::Latency(..)) | SheetFigure::Runtime => {
            match number::time_unit(unit) {
                Some(scale) => Ok(Ok(scaled(scale))),
                None => wrong(&format!("'{unit}' is no unit of time"), "write ns, us, ms or s"),
            }
        }
        SheetFigure::MachineCpu if unit == "%" => Ok(Ok(scaled(1.0))),
        SheetFigure::MachineCpu => wrong(&format!("'{unit}' is no unit of a share"), "write %"),
        SheetFigure::Metric(MetricKind::Iops) | SheetFigure::Ios => {
            match unit.to_ascii_lowercase().as_str() {
                "" | "iops" | "1/s" | "1" | "io/s" | "ops" => Ok(Ok(scaled(1.0))),
                "k" | "kiops" => Ok(Ok(scaled(1e3))),
                _ => {
                    wrong(&format!("'{unit}' is no unit of I/Os"), "write IOPS, k for thousands, or nothing")
                }
            }
        }
        _ => match (bytes_of(unit, style), unit) {
            (Some(scale), _) => Ok(Ok(scaled(scale))),
            (None, "") => wrong("the value has no unit", "write B/s, kB/s, KiB/s, MB/s, MiB/s, ..."),
            _ => Ok(Err(MissingReason::UnknownUnit)),
        },
    }
}

/// Bytes of a unit. `MB` is 1,000,000 by definition, and 1,048,576 in many programs: it needs `kb_base`.
fn bytes_of(unit: &str, style: UnitStyle) -> Option<f64> {
    let one = Number { value: 1.0, decimals: 0, unit };
    number::bytes_in(one, unit, style).ok().map(|read| read.value)
}

fn set(entry: &mut ImportedEntry, direction: MetricDirection, figure: SheetFigure, reading: Reading) {
    fn to<T: FigureNumber>(reading: Reading) -> Option<Figure<T>> {
        reading.figure().ok()
    }
    if let SheetFigure::MachineCpu = figure {
        entry.cpu.machine_percent = to(reading);
        return;
    }
    let op: &mut ImportedOp = match direction {
        MetricDirection::Read => entry.op_mut(Op::Read),
        MetricDirection::Write => entry.op_mut(Op::Write),
        MetricDirection::Trim => entry.op_mut(Op::Trim),
        MetricDirection::Sync => entry.op_mut(Op::Sync),
        MetricDirection::Total => entry.total.get_or_insert_default(),
    };
    match figure {
        SheetFigure::Metric(MetricKind::Iops) => op.iops = to(reading),
        SheetFigure::Metric(MetricKind::BytesPerSecond) => op.bytes_per_second = to(reading),
        SheetFigure::Metric(MetricKind::Latency(span, statistic)) => {
            let latency = match span {
                LatencySpan::Submission => &mut op.slat,
                LatencySpan::Completion => &mut op.clat,
                LatencySpan::Total => &mut op.lat,
            };
            set_latency(latency, statistic, to(reading));
        }
        SheetFigure::LowestBandwidth => windows(op).min = to(reading),
        SheetFigure::HighestBandwidth => windows(op).max = to(reading),
        SheetFigure::Runtime => op.runtime_ns = to(reading),
        SheetFigure::Bytes => op.bytes = to(reading),
        SheetFigure::Ios => op.ios = to(reading),
        SheetFigure::MachineCpu => {}
    }
}

fn windows(op: &mut ImportedOp) -> &mut RateWindows {
    op.bandwidth_windows.get_or_insert_default()
}

fn set_latency(latency: &mut ImportedLatency, statistic: Statistic, ns: Option<Figure<u64>>) {
    match (statistic, ns) {
        (Statistic::Least, ns) => latency.min = ns,
        (Statistic::Mean, ns) => latency.mean = ns,
        (Statistic::Greatest, ns) => latency.max = ns,
        (Statistic::Percentile(per_million), Some(ns)) => {
            latency.percentiles.push(ImportedPercentile { percent: f64::from(per_million) / 1e4, ns });
            latency.percentiles.sort_by(|one, other| one.percent.total_cmp(&other.percent));
        }
        (Statistic::Percentile(_), None) => {}
    }
}
