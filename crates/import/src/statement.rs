//! What a page states of its own outputs in words: a rate, a runtime or a latency below an output, in several languages.
//!
//! A statement is tied to an output by its rate, or because only one output stands above it; others are left alone, since a page may
//! show two outputs and then speak of both.

use std::collections::BTreeMap;

use fathom_record::MetricDirection;
use fathom_record::import::StatedFigure;

use crate::page::Output;
use crate::page_table::column::{READS, WRITES, has};
use crate::table::{TableRow, report};
use crate::text::SourceText;

/// Words for what is counted, and units of time.
const RATES: &[&str] = &["iops", "в секунду", "per second", "每秒", "次/秒", "i/o за секунду"];
const RUNTIMES: &[&str] =
    &["运行时间", "耗时", "завершен", "took", "finished", "completed in", "runtime", "runs for", "ran for"];
const LATENCIES: &[&str] = &["延迟", "时延", "задержк", "latency", "latence"];
const TIMES: &[(&str, &str)] = &[
    ("微秒", "us"),
    ("毫秒", "ms"),
    ("микросекунд", "us"),
    ("миллисекунд", "ms"),
    ("мкс", "us"),
    ("мс", "ms"),
    ("microsecond", "us"),
    ("millisecond", "ms"),
    ("usec", "us"),
    ("msec", "ms"),
    ("us", "us"),
    ("ms", "ms"),
    ("分钟", "min"),
    ("минут", "min"),
    ("minute", "min"),
    ("秒", "s"),
    ("секунд", "s"),
    ("second", "s"),
];
/// Lines below an output that may speak of it.
const MAX_BELOW: u64 = 14;
/// A stated rate so near to the one of an output is meant to be that.
const MISQUOTED: f64 = 0.01;

/// A statement.
#[derive(Clone, Debug, PartialEq)]
struct Statement {
    line: u64,
    kind: StatementKind,
    direction: Option<MetricDirection>,
    /// With `~` where it is said to be about that.
    value: String,
    unit: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StatementKind {
    Rate,
    Runtime,
    Latency,
}

/// The statements of a line, clause by clause.
fn statements(line: u64, text: &str) -> Vec<Statement> {
    let lower = text.to_lowercase();
    if lower.contains('=') || lower.contains('|') {
        return Vec::new();
    }
    let signs: Vec<char> = lower.chars().collect();
    let mut clauses = vec![String::new()];
    for (at, sign) in signs.iter().enumerate() {
        let is_inside = |near: Option<&char>| near.is_some_and(char::is_ascii_digit);
        let is_in_number =
            is_inside(at.checked_sub(1).and_then(|at| signs.get(at))) && is_inside(signs.get(at + 1));
        match sign {
            ',' | '.' | ';' | '、' | '。' if !is_in_number => clauses.push(String::new()),
            _ => clauses.last_mut().into_iter().for_each(|clause| clause.push(*sign)),
        }
    }
    let parts =
        clauses.iter().flat_map(|clause| clause.split(" и ")).flat_map(|clause| clause.split(" and "));
    parts.filter_map(|clause| statement(line, clause, &lower)).collect()
}

fn statement(line: u64, clause: &str, whole: &str) -> Option<Statement> {
    let starts = clause.char_indices().filter(|&(at, sign)| {
        let mut before = clause[..at].chars().rev();
        let (last, one_before) = (before.next(), before.next());
        let is_inside = last.is_some_and(|sign| sign.is_ascii_alphanumeric())
            || last.is_some_and(|sign| matches!(sign, '.' | ','))
                && one_before.is_some_and(|sign| sign.is_ascii_digit());
        sign.is_ascii_digit() && !is_inside
    });
    let mut numbers = starts.map(|(at, _)| {
        let end = clause[at..]
            .find(|sign: char| !(sign.is_ascii_digit() || matches!(sign, '.' | ',')))
            .map_or(clause.len(), |end| at + end);
        (at, end)
    });
    // A clause with several numbers says several things.
    let (at, end) = numbers.next()?;
    if numbers.next().is_some() {
        return None;
    }
    let about = has(&clause[..at], &["~", "≈", "about", "около", "约", "大约", "approximately"]);
    let digits = plain_number(clause[at..end].trim_end_matches(['.', ',']));
    let value = if about { format!("~{digits}") } else { digits };
    let after = clause[end..].trim_start_matches([' ', '"', '\'', '«', '»']);
    let time = TIMES.iter().find(|(word, _)| after.starts_with(word)).map(|&(_, unit)| unit);
    let (kind, unit) = match time {
        Some(unit @ ("us" | "ms")) if has(whole, LATENCIES) => (StatementKind::Latency, unit),
        Some(unit @ ("s" | "min")) if has(clause, RUNTIMES) || has(whole, RUNTIMES) => {
            (StatementKind::Runtime, unit)
        }
        None if has(clause, RATES) && !after.starts_with(['%', 'k', 'm', 'g', 'к', 'м', 'г']) => {
            (StatementKind::Rate, "IOPS")
        }
        _ => return None,
    };
    let direction = match (has(clause, READS), has(clause, WRITES)) {
        (true, false) => Some(MetricDirection::Read),
        (false, true) => Some(MetricDirection::Write),
        _ => None,
    };
    Some(Statement { line, kind, direction, value, unit })
}

/// `25089` of `25,089`, `0.3` of `0,3`: a comma is a decimal one unless it stands before three digits and behind more than a 0.
fn plain_number(digits: &str) -> String {
    match digits.split_once(',') {
        Some((whole, rest)) if whole == "0" || rest.len() != 3 && !rest.contains(',') => {
            format!("{whole}.{rest}")
        }
        _ => digits.replace(',', ""),
    }
}

/// Ties the statements of a page to its outputs, which are in their order.
pub(crate) fn tie(source: &SourceText, outputs: &mut [Output]) {
    let lines: Vec<&str> = source.as_str().split('\n').collect();
    let starts: Vec<u64> = outputs.iter().map(|output| output.report.line()).collect();
    // Outputs since the last statements, and the last line that may speak of them.
    let (mut above, mut until): (Vec<usize>, u64) = (Vec::new(), 0);
    let (mut next, mut latest, mut is_stating) = (0, None, false);
    for (line, text) in (1..).zip(&lines) {
        if starts.get(next).is_some_and(|start| *start <= line) {
            if is_stating {
                above.clear();
            }
            while starts.get(next).is_some_and(|start| *start <= line) {
                above.push(next);
                next += 1;
            }
            until = line + length(&lines, line) + MAX_BELOW;
            (latest, is_stating) = (None, false);
            continue;
        }
        if line > until || text.chars().count() > MAX_SENTENCE {
            continue;
        }
        for one in statements(line, text) {
            let found = tied(&one, &above, latest, outputs);
            is_stating |= found.is_some();
            if let Some(at) = found {
                latest = Some(at);
                enter(&one, &mut outputs[at]);
            }
        }
    }
}

/// Letters of the longest line that is looked at.
const MAX_SENTENCE: usize = 400;

/// Lines of the longest output.
const MAX_OUTPUT: usize = 200;

/// Lines of another kind that an output may have in a row: its version, its number of processes.
const MAX_OTHER: usize = 3;

/// Lines that an output takes, up to the last of its kind.
fn length(lines: &[&str], start: u64) -> u64 {
    let is_of_output =
        |line: &str| line.contains(['=', '[']) || line.contains("request") || line.contains(": ");
    let below = lines.get(start as usize..).unwrap_or_default().iter().take(MAX_OUTPUT);
    let (mut last, mut others) = (0, 0);
    for (at, line) in (1..).zip(below).filter(|(_, line)| !line.trim().is_empty()) {
        if is_of_output(line) {
            (last, others) = (at, 0);
        } else {
            others += 1;
            if others > MAX_OTHER {
                break;
            }
        }
    }
    last
}

/// The output that a statement speaks of.
fn tied(one: &Statement, above: &[usize], latest: Option<usize>, outputs: &[Output]) -> Option<usize> {
    let only = if let [only] = above { Some(*only) } else { None };
    match one.kind {
        StatementKind::Rate => {
            let stated: f64 = one.value.trim_start_matches('~').parse().ok()?;
            let apart = |at: usize| {
                rates(&outputs[at], one.direction).map(|rate| (rate / stated).ln().abs()).reduce(f64::min)
            };
            let near = above
                .iter()
                .filter_map(|at| Some((*at, apart(*at)?)))
                .min_by(|one, other| one.1.total_cmp(&other.1));
            // One that is far from any rate speaks of the only output there is, if it is the first to do so.
            let has_rate = |at: &usize| {
                let tests = &outputs[*at].report.tests;
                let stated = tests.iter().flat_map(|test| &test.imported.stated);
                tests.iter().any(|test| test.imported.tool == "ioping")
                    || stated.into_iter().any(|stated| stated.figure.ends_with(".iops"))
            };
            let near = near.filter(|(_, apart)| *apart <= MISQUOTED).map(|(at, _)| at);
            near.or(only.filter(|at| !has_rate(at)))
        }
        StatementKind::Runtime => latest.or(only),
        StatementKind::Latency => only,
    }
}

fn rates(output: &Output, direction: Option<MetricDirection>) -> impl Iterator<Item = f64> {
    let entries = output.report.tests.iter().flat_map(|test| &test.imported.entries);
    entries.flat_map(move |entry| {
        let read = entry.read.as_ref().filter(|_| direction != Some(MetricDirection::Write));
        let write = entry.write.as_ref().filter(|_| direction != Some(MetricDirection::Read));
        [read, write].into_iter().flatten().filter_map(|op| Some(op.iops?.value))
    })
}

/// Enters a statement into the test of an output that has only one.
fn enter(one: &Statement, output: &mut Output) {
    let [test] = output.report.tests.as_mut_slice() else { return };
    let entries = &test.imported.entries;
    let does = |direction| {
        entries.iter().any(|entry| match direction {
            MetricDirection::Write => entry.write.is_some(),
            _ => entry.read.is_some(),
        })
    };
    let only = match (does(MetricDirection::Read), does(MetricDirection::Write)) {
        (true, false) => Some("read"),
        (false, true) => Some("write"),
        _ => None,
    };
    let said =
        one.direction.map(|direction| if direction == MetricDirection::Write { "write" } else { "read" });
    let metric = match one.kind {
        StatementKind::Rate => format!(
            "{}.iops",
            said.filter(|said| only.is_none_or(|only| only == *said)).or(only).unwrap_or("total")
        ),
        StatementKind::Runtime => format!("{} runtime", only.unwrap_or("read")),
        StatementKind::Latency => format!("{}.lat_ns.mean", only.unwrap_or("read")),
    };
    let options = BTreeMap::from([("kind".to_owned(), "claimed".to_owned())]);
    let (value, unit) = (one.value.clone(), one.unit.to_owned());
    let row = TableRow { line: one.line, test: test.name.clone(), metric, value, unit, options };
    let Ok(found) = report(vec![row], &BTreeMap::new()) else { return };
    let stated: Vec<StatedFigure> = found.tests.into_iter().flat_map(|test| test.imported.stated).collect();
    test.imported.stated.extend(stated);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(StatementKind, Option<MetricDirection>, String, &'static str)> {
        let all = statements(1, text).into_iter();
        all.map(|one| (one.kind, one.direction, one.value, one.unit)).collect()
    }

    #[test]
    fn clauses_state_rates_times_and_latencies() {
        let (read, write) = (Some(MetricDirection::Read), Some(MetricDirection::Write));
        assert_eq!(
            found("读操作IOPS为25086,写操作的IOPS为8366,总共运行时间31秒"),
            [
                (StatementKind::Rate, read, "25086".to_owned(), "IOPS"),
                (StatementKind::Rate, write, "8366".to_owned(), "IOPS"),
                (StatementKind::Runtime, None, "31".to_owned(), "s"),
            ]
        );
        assert_eq!(
            found("Диск выполняет 33215 операций чтения в секунду и 11093 операций записи в секунду"),
            [
                (StatementKind::Rate, read, "33215".to_owned(), "IOPS"),
                (StatementKind::Rate, write, "11093".to_owned(), "IOPS"),
            ]
        );
        assert_eq!(
            found("Тест завершен за ~ 30 секунд"),
            [(StatementKind::Runtime, None, "~30".to_owned(), "s")]
        );
        assert_eq!(
            found("IO延迟平均为0.168微秒"),
            [(StatementKind::Latency, None, "0.168".to_owned(), "us")]
        );
        assert_eq!(
            found("Задержка составляет около 0,3 мс"),
            [(StatementKind::Latency, None, "~0.3".to_owned(), "ms")]
        );
        assert_eq!(
            found("The disk gave 25,089 read IOPS"),
            [(StatementKind::Rate, read, "25089".to_owned(), "IOPS")]
        );
        for none in [
            "iops=25089, runt=31342msec",
            "In 2017 we had 3 disks",
            "a 4k test with 64 jobs at 100 IOPS",
            "98 %",
        ] {
            assert!(found(none).is_empty(), "{none}: {:?}", found(none));
        }
    }
}
