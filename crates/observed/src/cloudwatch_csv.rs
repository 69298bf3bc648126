//! CloudWatch metrics in CSV: a column of times, and a column for each metric.
//!
//! The rows before the first time describe the columns: names of metrics, labels, volumes, and where they are given `Statistic` and
//! `Period`. That is the table that the console downloads, and the one that scripts write with a single head.

use crate::clock_text::{self, SECOND_NS};
use crate::cloudwatch::CloudwatchSeries;
use crate::cloudwatch_metric::{CloudwatchMetric, resource_in};
use crate::load::ObservedLoad;
use crate::{LoadError, LoadFormat};

/// Rows before the values at most.
const MAX_HEADS: usize = 40;
const HINT: &str = "give every metric a column, and every row its time first";

/// A column of values.
#[derive(Debug, Default)]
struct CsvColumn {
    metric: Option<&'static CloudwatchMetric>,
    device: String,
    statistic: String,
    /// What the rows before the values say of it, for a note.
    title: String,
}

/// True where the rows before the first time name a metric.
pub(crate) fn is_table(text: &str) -> bool {
    let heads = text.lines().take(MAX_HEADS);
    heads.take_while(|line| time(first(line)).is_none()).any(|line| CloudwatchMetric::named(line).is_some())
}

fn first(line: &str) -> &str {
    line.split([',', ';', '\t']).next().unwrap_or_default().trim().trim_matches('"')
}

/// A time in ISO 8601, or with slashes and the year first, in UTC.
fn time(text: &str) -> Option<u64> {
    let instant = clock_text::iso(text).or_else(|| clock_text::iso(&text.replace('/', "-")))?;
    Some(instant.unix_ns)
}

/// Reads the table.
///
/// # Errors
/// A row or value has no meaning, a statistic is not readable, or it has several volumes and none is chosen.
pub(crate) fn read(text: &str, device: Option<&str>) -> Result<ObservedLoad, LoadError> {
    let text = text.trim_start_matches('\u{feff}');
    let head = text.lines().next().unwrap_or_default();
    let delimiter =
        [b'\t', b';', b','].into_iter().find(|sign| head.as_bytes().contains(sign)).unwrap_or(b',');
    let mut rows = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let mut columns: Vec<CsvColumn> = Vec::new();
    let mut series = CloudwatchSeries::default();
    let mut period_ns = None;
    for row in rows.records() {
        let row = row.map_err(|error| {
            let line = error.position().map_or(0, csv::Position::line);
            LoadError::new(line, format!("not a row of the table: {error}"), HINT)
        })?;
        let line = row.position().map_or(0, csv::Position::line);
        let Some(at_ns) = row.get(0).and_then(time) else {
            describe(&mut columns, &row, &mut period_ns).map_err(|error| LoadError { line, ..error })?;
            continue;
        };
        for (column, value) in columns.iter().zip(row.iter().skip(1)) {
            let Some(metric) = column.metric.filter(|_| !value.is_empty()) else { continue };
            let refuse = |problem: String| LoadError::new(line, problem, HINT).in_field(&column.title);
            if !column.statistic.is_empty() && !metric.takes(&column.statistic) {
                let (problem, hint) = metric.refusal(&column.statistic);
                return Err(LoadError { hint, ..refuse(problem) });
            }
            let number = value.parse().map_err(|_| refuse(format!("'{value}' is not a number")))?;
            series.push(&column.device, metric, at_ns, number).map_err(refuse)?;
        }
    }
    for column in columns.iter().filter(|column| column.metric.is_none() && !column.title.is_empty()) {
        series.table.note(format!("the column '{}' is not used", column.title));
    }
    if columns
        .iter()
        .any(|column| column.metric.is_some_and(CloudwatchMetric::is_sum) && column.statistic.is_empty())
    {
        series.table.note("the table does not name the statistic: counts are read as Sum");
    }
    series.finish(LoadFormat::CloudwatchCsv, period_ns, device)
}

/// Takes a row before the values. Its first cell says what it is.
fn describe(
    columns: &mut Vec<CsvColumn>,
    row: &csv::StringRecord,
    period_ns: &mut Option<u64>,
) -> Result<(), LoadError> {
    let name = row.get(0).unwrap_or_default().to_ascii_lowercase();
    for (index, cell) in row.iter().skip(1).enumerate() {
        if columns.len() <= index {
            columns.push(CsvColumn::default());
        }
        let column = &mut columns[index];
        match name.as_str() {
            "statistic" | "stat" => column.statistic = cell.to_owned(),
            "period" if !cell.is_empty() => {
                let seconds: u64 = cell.parse().map_err(|_| {
                    LoadError::new(0, format!("'{cell}' is not a period in seconds"), HINT).in_field("Period")
                })?;
                let new = seconds.checked_mul(SECOND_NS);
                if period_ns.is_some() && *period_ns != new {
                    let problem = "its columns have different periods";
                    return Err(LoadError::new(0, problem, "export all metrics with one period"));
                }
                *period_ns = new;
            }
            _ => {
                column.metric = column.metric.or_else(|| CloudwatchMetric::named(cell));
                if let Some(resource) = resource_in(cell) {
                    column.device = resource.to_owned();
                }
                if column.title.is_empty() {
                    column.title = cell.to_owned();
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::LoadCourse;

    fn ops(text: &str) -> Vec<Option<u64>> {
        let load = read(text, None).unwrap();
        let LoadCourse::Intervals(intervals) = &load.course else { panic!("these are intervals") };
        intervals.iter().map(|interval| interval.total.ops).collect()
    }

    #[test]
    fn tables_with_one_head_and_with_several_are_read() {
        let plain =
            "Timestamp,VolumeReadOps,VolumeWriteOps\n2026-11-22T10:00:00Z,60,6\n2026-11-22T10:05:00Z,30,\n";
        assert!(is_table(plain));
        assert_eq!(ops(plain), [Some(66), Some(30)]);
        let console = "Full label,vol-0123456789abcdef0 VolumeReadOps,CPU\nStatistic,Sum,Average\nPeriod,300,300\n\
            2026/11/22 10:00:00,60,1\n2026/11/22 10:05:00,30,2\n";
        assert!(is_table(console));
        assert_eq!(ops(console), [Some(60), Some(30)]);
        let load = read(console, None).unwrap();
        assert_eq!(load.device, "vol-0123456789abcdef0");
        assert_eq!(load.notes[0], "the column 'CPU' is not used");
    }

    #[test]
    fn broken_tables_are_refused_by_line_and_column() {
        let refused = |text: &str| read(text, None).unwrap_err().to_string();
        let head = "Timestamp,VolumeReadOps\n";
        assert_eq!(
            refused(&format!("{head}2026-11-22T10:00:00Z,x\n")),
            "line 2: VolumeReadOps: 'x' is not a number"
        );
        let average = format!("Label,VolumeReadOps\nStatistic,Average\n{}", "2026-11-22T10:00:00Z,1\n");
        assert_eq!(
            refused(&average),
            "line 3: VolumeReadOps: VolumeReadOps is a series of Average, not of Sum"
        );
        assert!(refused(&format!("{head}Period,x\n")).starts_with("line 2: Period: 'x'"));
        assert!(!is_table("a,b\n1,2\n") && !is_table(""));
    }
}
