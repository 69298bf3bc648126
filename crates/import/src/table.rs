//! Tables of figures: test, metric, value and unit, in CSV or TOML. Further columns are options of fio that describe the load.
//!
//! Metrics have the names that criteria and documents use (`read.iops`, `lat_ns.p99`), and a few of other programs' sheets.

mod figure;

use std::collections::{BTreeMap, HashMap};

use fathom_model::plan::Pattern;
use fathom_record::import::{
    FigurePlace, ImportedEntry, MissingFigure, MissingReason, StatedFigure, StatedKind,
};
use fathom_record::{Metric, MetricDirection};

use figure::{TableUnits, TableValue, address, name_of, set, value};

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
pub(crate) struct TableRow {
    pub line: u64,
    pub test: String,
    pub metric: String,
    pub value: String,
    pub unit: String,
    /// Every other column.
    pub options: BTreeMap<String, String>,
}

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
            "not a row of the table",
            format!("give every row the columns {HEAD} of the head, quoted if they hold a comma ({error})"),
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
        ImportError::new(line, format!("invalid TOML: {}", error.message()), hint)
    })?;
    let mut common = BTreeMap::new();
    for (name, value) in document.iter().filter(|(name, _)| *name != "figure") {
        let text = plain(value)
            .ok_or_else(|| ImportError::new(0, format!("'{name}' has to be a plain value"), hint))?;
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
                .ok_or_else(|| ImportError::new(line, format!("'{name}' has to be a plain value"), hint))?;
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
    /// The columns of the row, and those of all rows.
    fn all_options(&self, common: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut options = common.clone();
        options.extend(self.options.clone());
        options
    }

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

/// The tests that rows tell of; `common` are the options of all of them.
pub(crate) fn report(
    rows: Vec<TableRow>,
    common: &BTreeMap<String, String>,
) -> Result<SourceReport, ImportError> {
    let mut tests = TestsByName::default();
    let rows = || rows.iter().filter(|row| !(row.metric.is_empty() && row.value.is_empty()));
    for row in rows() {
        let test = tests.of(row);
        if test.imported.entries.is_empty() {
            test.imported.entries.push(ImportedEntry { name: row.test.clone(), ..ImportedEntry::default() });
        }
        let mut options = row.all_options(common);
        let tool = options.remove("tool");
        let version = options.remove("tool_version");
        NO_OPTIONS.iter().for_each(|name| drop(options.remove(*name)));
        describe(test, options);
        test.imported.tool = tool.unwrap_or(std::mem::take(&mut test.imported.tool));
        test.imported.tool_version = version.unwrap_or(std::mem::take(&mut test.imported.tool_version));
    }
    // What a test does may stand in any of its rows.
    for row in rows() {
        let options = row.all_options(common);
        let given = |name: &str| options.get(name).map(String::as_str);
        let units = TableUnits::of(given("kb_base"), row.line)?;
        let kind = stated_kind(given("kind"), row.line)?;
        add(tests.of(row), row, units, kind)?;
    }
    Ok(tests.report)
}

/// Tests that are found by their names.
#[derive(Default)]
struct TestsByName {
    report: SourceReport,
    places: HashMap<String, usize>,
}

impl TestsByName {
    /// The test of a row, a new one where there is none.
    fn of(&mut self, row: &TableRow) -> &mut SourceTest {
        let name = if row.test.is_empty() { "test" } else { &row.test };
        let tests = &mut self.report.tests;
        let place = *self.places.entry(name.to_owned()).or_insert_with(|| {
            tests.push(SourceTest { name: name.to_owned(), is_row: true, ..SourceTest::default() });
            tests.len() - 1
        });
        &mut tests[place]
    }
}

/// Columns that say how a row is to be read.
const NO_OPTIONS: [&str; 2] = ["kb_base", "kind"];

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

/// Whether a row is measured (`None`), or what else it is.
fn stated_kind(kind: Option<&str>, line: u64) -> Result<Option<StatedKind>, ImportError> {
    match kind {
        None | Some("measured") => Ok(None),
        Some("claimed") => Ok(Some(StatedKind::Claimed)),
        Some("expected") => Ok(Some(StatedKind::Expected)),
        Some(other) => Err(ImportError::new(
            line,
            format!("kind is {other}"),
            "write measured, claimed or expected, or nothing",
        )),
    }
}

fn add(
    test: &mut SourceTest,
    row: &TableRow,
    units: TableUnits,
    kind: Option<StatedKind>,
) -> Result<(), ImportError> {
    let (named, figure) = address(&row.metric).ok_or_else(|| {
        ImportError::new(
            row.line,
            format!("unknown metric '{}'", row.metric),
            format!("use {}", Metric::KNOWN),
        )
    })?;
    let direction = match named {
        MetricDirection::Total => only_operation(test).unwrap_or(named),
        named => named,
    };
    let word = row.value.trim().to_ascii_lowercase();
    let absent = ABSENT.iter().find(|(text, _)| *text == word).map(|&(_, reason)| reason);
    let read = match absent {
        Some(reason) => Err(reason),
        None => value(figure, row, units)?,
    };
    let name = name_of(direction, figure);
    let text = excerpt(&format!("{} {}", row.value, row.unit));
    match (read, kind) {
        (Ok(value), Some(kind)) => {
            let stated = StatedFigure { figure: name, text, line: row.line, kind, ..StatedFigure::default() };
            state(test, stated, value);
        }
        (Ok(value), None) => {
            set(&mut test.imported.entries[0], direction, figure, value);
            let text = excerpt(&format!("{} {text}", row.metric));
            test.imported.places.push(FigurePlace { figures: name, line: row.line, text });
        }
        (Err(reason), _) => {
            let missing = MissingFigure { line: row.line, text, figure: row.metric.clone(), reason };
            miss(&mut test.imported.missing, missing);
        }
    }
    Ok(())
}

/// A statement is no measurement: it stands beside the figures of the test.
fn state(test: &mut SourceTest, stated: StatedFigure, value: TableValue) {
    test.imported.stated.extend(value.real().map(|value| StatedFigure { value, ..stated }));
}

/// The only operation that a test does, where there is only one.
fn only_operation(test: &SourceTest) -> Option<MetricDirection> {
    let pattern = Pattern::named(test.imported.load.rw.as_deref()?)?;
    match (pattern.reads(), pattern.writes(), pattern.trims()) {
        (true, false, false) => Some(MetricDirection::Read),
        (false, true, false) => Some(MetricDirection::Write),
        (false, false, true) => Some(MetricDirection::Trim),
        _ => None,
    }
}
