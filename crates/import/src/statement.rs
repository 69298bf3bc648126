//! What a page states of its own outputs in words: a rate, a runtime or a latency below an output, in several languages.
//!
//! A statement is tied to an output by its rate, or because only one output stands above it; others are left alone, since a page may
//! show two outputs and then speak of both. A statement that may be about something else is left alone: a missed
//! contradiction is better than a false one.

mod subject;

use std::collections::BTreeMap;

use fathom_record::import::{ImportedLatency, ImportedTest, StatedFigure};
use fathom_record::{MetricDirection, Statistic};

use crate::page::Output;
use crate::page_table::column::{READS, WRITES, has};
use crate::report::SourceTest;
use crate::table::{TableRow, report};
use crate::text::SourceText;

/// Words for what is counted, and units of time.
const RATES: &[&str] = &["iops", "в секунду", "per second", "每秒", "次/秒", "i/o за секунду"];
const RUNTIMES: &[&str] = &[
    "运行时间", "耗时", "用了", "завершен", "занял", "длил", "took", "finished", "completed in", "runtime",
    "runs for", "ran for",
];
/// What runs: the boot of a machine takes time too.
const RUNS: &[&str] =
    &["test", "tests", "run", "runtime", "benchmark", "job", "it", "this", "fio", "reads", "writes"];
const RUN_STEMS: &[&str] = &["тест", "прогон", "测试", "運行", "运行", "耗时"];
const LATENCIES: &[&str] = &["延迟", "时延", "задержк", "latency", "latence"];
const BANDWIDTHS: &[&str] = &["bandwidth", "throughput", "带宽", "吞吐", "пропускн"];
const TIMES: &[(&str, &str)] = &[
    ("微秒", "us"),
    ("毫秒", "ms"),
    ("микросекунд", "us"),
    ("миллисекунд", "ms"),
    ("microsecond", "us"),
    ("millisecond", "ms"),
    ("usec", "us"),
    ("msec", "ms"),
    ("分钟", "min"),
    ("минут", "min"),
    ("minute", "min"),
    ("秒", "s"),
    ("секунд", "s"),
    ("second", "s"),
];
/// Units that are words: `ms`, but not the beginning of another word.
const UNITS: &[(&str, &str)] = &[
    ("us", "us"),
    ("µs", "us"),
    ("μs", "us"),
    ("мкс", "us"),
    ("ms", "ms"),
    ("мс", "ms"),
    ("s", "s"),
    ("sec", "s"),
    ("с", "s"),
    ("сек", "s"),
    ("min", "min"),
    ("мин", "min"),
    ("kb/s", "KB/s"),
    ("mb/s", "MB/s"),
    ("gb/s", "GB/s"),
    ("kib/s", "KiB/s"),
    ("mib/s", "MiB/s"),
    ("gib/s", "GiB/s"),
    ("мб/с", "MB/s"),
];
/// The words of a statistic. What is called a mean or has no name is the mean.
const STATISTICS: &[(&str, &[&str], &[&str])] = &[
    ("mean", &["mean", "avg"], &["average", "平均", "средн"]),
    (
        "max",
        &["max", "maximum", "maximal", "peak", "highest", "worst", "longest", "tail"],
        &["最大", "最高", "最长", "峰值", "максим", "пик", "наибольш", "худш"],
    ),
    (
        "min",
        &["minimum", "minimal", "lowest", "best", "shortest"],
        &["最小", "最低", "最短", "миним", "наименьш"],
    ),
    ("p50", &["median"], &["медиан", "中位"]),
    ("stddev", &["stdev", "stddev", "deviation", "jitter"], &["标准差", "отклонен"]),
];
/// What stands behind the number of a percentile.
const PERCENTILES: &[&str] = &[
    "th", "st percentile", "nd percentile", "rd percentile", "percentile", "% percentile", "-й", "-го", "-м",
    "й", "процентил", "百分位", "分位", "%分位", "%百分位", "% 分位",
];
/// Patterns that a test has or has not.
const RANDOM: &[&str] = &["random", "случайн", "随机", "隨機"];
const SEQUENTIAL: &[&str] = &["sequential", "последовательн", "顺序", "順序", "连续"];
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
    /// The statistic that it names, or the mean.
    statistic: String,
    /// The sentence it stands in, which may name a subject.
    sentence: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StatementKind {
    Rate,
    Runtime,
    Latency,
    Bandwidth,
}

/// The statements of a line, sentence by sentence. Its first sentence may begin in `before`, its last end in `after`.
fn statements(line: u64, text: &str, [before, after]: [&str; 2]) -> Vec<Statement> {
    if text.contains(['=', '|']) || subject::is_command_or_quote(text) {
        return Vec::new();
    }
    let parts = sentences(text);
    let (mut found, mut was_other) = (Vec::new(), false);
    for (at, part) in parts.iter().enumerate() {
        let before = if at == 0 { before } else { "" };
        let after = if at + 1 == parts.len() { after } else { "" };
        let whole = format!("{before} {part} {after}");
        let lower = whole.to_lowercase();
        was_other = subject::is_about_other(&lower) || was_other && subject::goes_on(&lower);
        if !was_other {
            let own = part.to_lowercase();
            found.extend(clauses(&own).iter().filter_map(|clause| statement(line, clause, &whole)));
        }
    }
    found
}

/// The sentences of a text.
fn sentences(text: &str) -> Vec<&str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    for (at, sign) in text.char_indices() {
        let end = at + sign.len_utf8();
        let is_end = match sign {
            '。' | '！' | '？' => true,
            '.' | '!' | '?' => {
                text[end..].starts_with(char::is_whitespace) && !is_abbreviation(&text[start..at])
            }
            _ => false,
        };
        if is_end {
            parts.push(&text[start..end]);
            start = end;
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// True where the point behind `text` is that of an abbreviation.
fn is_abbreviation(text: &str) -> bool {
    let last = text.rsplit([' ', '(']).next().unwrap_or_default().to_lowercase();
    ["approx", "ca", "e.g", "i.e", "vs", "max", "min", "avg", "resp", "т.е", "напр", "макс", "мин"]
        .contains(&last.as_str())
}

fn is_ended(text: &str) -> bool {
    text.trim_end().ends_with(['.', '!', '?', ':', '。', '！', '？', '：'])
}

/// The parts of a sentence that state one thing each.
fn clauses(sentence: &str) -> Vec<String> {
    let signs: Vec<char> = sentence.chars().collect();
    let mut clauses = vec![String::new()];
    for (at, sign) in signs.iter().enumerate() {
        let is_inside = |near: Option<&char>| near.is_some_and(char::is_ascii_digit);
        let is_in_number =
            is_inside(at.checked_sub(1).and_then(|at| signs.get(at))) && is_inside(signs.get(at + 1));
        match sign {
            ',' | '.' | ';' | '、' | '。' | '，' if !is_in_number => clauses.push(String::new()),
            _ => clauses.last_mut().into_iter().for_each(|clause| clause.push(*sign)),
        }
    }
    let parts =
        clauses.iter().flat_map(|clause| clause.split(" и ")).flat_map(|clause| clause.split(" and "));
    parts.map(str::to_owned).collect()
}

/// Where the numbers of a text begin and end.
fn numbers(text: &str) -> Vec<(usize, usize)> {
    let starts = text.char_indices().filter(|&(at, sign)| {
        let mut before = text[..at].chars().rev();
        let (last, one_before) = (before.next(), before.next());
        let is_inside = last.is_some_and(|sign| sign.is_ascii_alphanumeric())
            || last.is_some_and(|sign| matches!(sign, '.' | ','))
                && one_before.is_some_and(|sign| sign.is_ascii_digit());
        sign.is_ascii_digit() && !is_inside
    });
    let ends = starts.map(|(at, _)| {
        let end = text[at..]
            .find(|sign: char| !(sign.is_ascii_digit() || matches!(sign, '.' | ',')))
            .map_or(text.len(), |end| at + end);
        (at, end)
    });
    ends.collect()
}

fn statement(line: u64, clause: &str, sentence: &str) -> Option<Statement> {
    let whole = sentence.to_lowercase();
    let is_percentile = |&(_, end): &(usize, usize)| percentile_end(&clause[end..]);
    let all = numbers(clause);
    // A clause with several numbers says several things.
    let mut values = all.iter().filter(|number| !is_percentile(number));
    let (Some(&(at, end)), None) = (values.next(), values.next()) else { return None };
    let about = has(&clause[..at], &["~", "≈", "about", "около", "约", "大约", "approximately"]);
    let digits = plain_number(clause[at..end].trim_end_matches(['.', ',']));
    let value = if about { format!("~{digits}") } else { digits };
    let after = clause[end..].trim_start_matches([' ', '"', '\'', '«', '»']);
    let statistic = statistic(clause, at, &whole)?;
    let (kind, unit) = kind_and_unit(clause, after, &whole, &statistic)?;
    let direction = match (has(clause, READS), has(clause, WRITES)) {
        (true, false) => Some(MetricDirection::Read),
        (false, true) => Some(MetricDirection::Write),
        _ => None,
    };
    Some(Statement { line, kind, direction, value, unit, statistic, sentence: sentence.to_owned() })
}

/// What a number is by the unit behind it, and by the words around it.
fn kind_and_unit(
    clause: &str,
    after: &str,
    whole: &str,
    statistic: &str,
) -> Option<(StatementKind, &'static str)> {
    let is_mean = statistic == "mean";
    let runs =
        || has(whole, RUNTIMES) && (subject::has_word(whole, RUNS) || subject::has_stem(whole, RUN_STEMS));
    match unit_of(after) {
        Some(unit @ ("us" | "ms")) if has(whole, LATENCIES) || statistic.starts_with('p') => {
            Some((StatementKind::Latency, unit))
        }
        Some(unit @ ("s" | "min")) if is_mean && runs() => Some((StatementKind::Runtime, unit)),
        Some(unit) if is_mean && unit.ends_with("/s") && has(clause, BANDWIDTHS) => {
            Some((StatementKind::Bandwidth, unit))
        }
        // No output has the extremes of a rate for all of its programs.
        None if is_mean && has(clause, RATES) && !after.starts_with(['%', 'k', 'm', 'g', 'к', 'м', 'г']) => {
            Some((StatementKind::Rate, "IOPS"))
        }
        _ => None,
    }
}

fn unit_of(after: &str) -> Option<&'static str> {
    let word: &str = after
        .find(|sign: char| {
            !(matches!(sign, '/' | 'µ' | 'μ') || sign.is_ascii_alphabetic() || is_cyrillic(sign))
        })
        .map_or(after, |end| &after[..end]);
    let long = || TIMES.iter().find(|(begin, _)| after.starts_with(begin));
    UNITS.iter().find(|(unit, _)| *unit == word).or_else(long).map(|&(_, unit)| unit)
}

fn is_cyrillic(sign: char) -> bool {
    ('\u{400}'..='\u{4ff}').contains(&sign)
}

/// Whether a number is that of a percentile, by what stands behind it.
fn percentile_end(after: &str) -> bool {
    let after = after.trim_start();
    PERCENTILES.iter().any(|mark| after.starts_with(mark))
}

/// The statistics that a text names, each once.
fn statistics(text: &str) -> Vec<String> {
    let named = STATISTICS
        .iter()
        .filter(|(_, words, stems)| subject::has_word(text, words) || subject::has_stem(text, stems));
    let mut all: Vec<String> = named.map(|(name, ..)| (*name).to_owned()).collect();
    let ordinals = numbers(text).into_iter().filter(|&(_, end)| percentile_end(&text[end..]));
    all.extend(ordinals.map(|(at, end)| format!("p{}", text[at..end].replace(',', "."))));
    for (at, _) in text.match_indices('p') {
        let digits = text[at + 1..].split(|sign: char| !(sign.is_ascii_digit() || sign == '.')).next();
        let digits = digits.unwrap_or_default().trim_end_matches('.');
        let begins = !text[..at].ends_with(char::is_alphanumeric);
        if begins && !digits.is_empty() {
            all.push(format!("p{digits}"));
        }
    }
    all.sort();
    all.dedup();
    all
}

/// The only statistic that a clause names, else the mean; `None` where it may be any of several, or one of the rest of the sentence.
fn statistic(clause: &str, number: usize, whole: &str) -> Option<String> {
    let mut named = statistics(clause);
    // Behind a number it is a minute.
    if subject::has_word(&clause[..number], &["min"]) {
        named.push("min".to_owned());
        named.dedup();
    }
    match named.as_slice() {
        [] => statistics(whole).iter().all(|name| name == "mean").then(|| "mean".to_owned()),
        [only] => Some(only.clone()),
        _ => None,
    }
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
        if subject::begins_comments(text) {
            // Readers have disks of their own.
            until = 0;
            continue;
        }
        for one in statements(line, text, around(&lines, line)) {
            let found = tied(&one, &above, latest, outputs);
            let found = found.filter(|at| can_be_about(&one, &outputs[*at], &own_text(&lines, &starts, *at)));
            is_stating |= found.is_some();
            if let Some(at) = found {
                latest = Some(at);
                enter(&one, &mut outputs[at]);
            }
        }
    }
}

/// What belongs to the first and to the last sentence of a line, on the lines around it.
fn around<'a>(lines: &[&'a str], line: u64) -> [&'a str; 2] {
    let at = line as usize - 1;
    let is_prose =
        |text: &&str| text.trim_start().starts_with(char::is_alphanumeric) && !text.contains(['=', '|', '[']);
    let own = lines.get(at).copied().unwrap_or_default();
    let goes_on = own.trim_start().starts_with(char::is_alphanumeric);
    let above = at.checked_sub(1).and_then(|at| lines.get(at)).copied().filter(is_prose);
    let before = above.filter(|text| goes_on && !is_ended(text)).and_then(|text| sentences(text).pop());
    let below = lines.get(at + 1).copied().filter(is_prose).filter(|_| !is_ended(own));
    [before.unwrap_or_default(), below.and_then(|text| sentences(text).first().copied()).unwrap_or_default()]
}

/// Lines above an output that tell of it.
const MAX_ABOVE: u64 = 14;

/// An output and what stands above it, up to the output before it.
fn own_text(lines: &[&str], starts: &[u64], at: usize) -> String {
    let start = starts[at];
    let earlier = starts[..at].iter().filter(|one| **one < start).max();
    let begin = earlier.map_or(0, |one| one + length(lines, *one)).max(start.saturating_sub(MAX_ABOVE));
    let end = (start + length(lines, start)).min(lines.len() as u64);
    lines.get(begin.min(end) as usize..end as usize).unwrap_or_default().join("\n")
}

/// False of a statement on another disk, machine, program, operation or order than those of the test.
fn can_be_about(one: &Statement, output: &Output, own: &str) -> bool {
    let lower = one.sentence.to_lowercase();
    let is_near =
        one.kind == StatementKind::Rate && apart(one, output).is_some_and(|apart| apart <= MISQUOTED);
    let fits = |test: &SourceTest| {
        let load = &test.imported.load;
        let names = format!("{own}\n{}\n{}\n{:?}", test.name, test.heading, load.target);
        let is_random = load.rw.as_ref().map(|rw| rw.starts_with("rand"));
        let is_other_order = match (has(&lower, RANDOM), has(&lower, SEQUENTIAL)) {
            (true, false) => is_random == Some(false),
            (false, true) => is_random == Some(true),
            _ => false,
        };
        let name = format!("{}\n{}", test.name, test.heading);
        // The rate of the test itself, or its latency, ties the sentence to it.
        (is_near || is_near_latency(one, &test.imported) || subject::is_plain(&one.sentence, &name))
            && !is_other_order
            && !subject::names_other(&one.sentence, &names, &test.imported.tool)
    };
    output.report.tests.iter().all(fits)
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
    // A test that only reads says nothing on writes.
    let only = only.filter(|at| does(&outputs[*at], one.direction));
    match one.kind {
        StatementKind::Rate => {
            let near = above
                .iter()
                .filter_map(|at| Some((*at, apart(one, &outputs[*at])?)))
                .min_by(|one, other| one.1.total_cmp(&other.1));
            // One that is far from any rate speaks of the only output there is, if it is the first to do so.
            let has_rate = |at: &usize| {
                let tests = &outputs[*at].report.tests;
                let stated = tests.iter().flat_map(|test| &test.imported.stated);
                tests.iter().any(|test| test.imported.tool == "ioping")
                    || stated.into_iter().any(|stated| stated.figure.ends_with(".iops"))
            };
            let near = near.filter(|(_, apart)| *apart <= MISQUOTED).map(|(at, _)| at);
            // A disk may have more than it does.
            let is_property = subject::has_word(&one.sentence.to_lowercase(), &["has", "have"]);
            near.or(only.filter(|at| !is_property && !has_rate(at)))
        }
        StatementKind::Runtime => latest.filter(|at| does(&outputs[*at], one.direction)).or(only),
        StatementKind::Latency | StatementKind::Bandwidth => only,
    }
}

/// How far a stated rate is from the nearest one of an output, as a logarithm.
fn apart(one: &Statement, output: &Output) -> Option<f64> {
    let stated: f64 = one.value.trim_start_matches('~').parse().ok()?;
    rates(output, one.direction).map(|rate| (rate / stated).ln().abs()).reduce(f64::min)
}

/// A stated latency this near to one of a test is of that, and so is one whose unit is wrong by a factor of 1,000.
const NEAR: f64 = 0.05;

/// Whether a stated latency is that of a test, nearly or but for its unit.
fn is_near_latency(one: &Statement, test: &ImportedTest) -> bool {
    let ops = test.entries.iter().flat_map(|entry| [entry.read.as_ref(), entry.write.as_ref()]).flatten();
    let mut all = ops.flat_map(|op| [&op.lat, &op.clat]).filter_map(|latency| latency_apart(one, latency));
    all.any(|apart| apart <= NEAR || (apart - 1000_f64.ln()).abs() <= NEAR)
}

/// How far a stated latency is from the same statistic of a measured one, as a logarithm.
fn latency_apart(one: &Statement, latency: &ImportedLatency) -> Option<f64> {
    let factor = if one.unit == "ms" { 1e6 } else { 1e3 };
    let is_latency = one.kind == StatementKind::Latency;
    let stated = one.value.trim_start_matches('~').parse::<f64>().ok().filter(|_| is_latency)? * factor;
    let found = latency.statistic(Statistic::parse(&one.statistic)?)?;
    Some((found.value.max(1) as f64 / stated).ln().abs())
}

fn rates(output: &Output, direction: Option<MetricDirection>) -> impl Iterator<Item = f64> {
    let entries = output.report.tests.iter().flat_map(|test| &test.imported.entries);
    entries.flat_map(move |entry| {
        let read = entry.read.as_ref().filter(|_| direction != Some(MetricDirection::Write));
        let write = entry.write.as_ref().filter(|_| direction != Some(MetricDirection::Read));
        [read, write].into_iter().flatten().filter_map(|op| Some(op.iops?.value))
    })
}

/// Whether an output has this direction, if it is one.
fn does(output: &Output, direction: Option<MetricDirection>) -> bool {
    let mut entries = output.report.tests.iter().flat_map(|test| &test.imported.entries);
    match direction {
        None => true,
        Some(MetricDirection::Write) => entries.any(|entry| entry.write.is_some() || entry.read.is_none()),
        Some(_) => entries.any(|entry| entry.read.is_some() || entry.write.is_none()),
    }
}

/// The name of the latency that is meant: the span that has the statistic, and of several the one that is nearest.
fn latency_of(test: &ImportedTest, direction: &str, one: &Statement) -> Option<String> {
    Statistic::parse(&one.statistic)?;
    let ops = test.entries.iter().filter_map(|entry| match direction {
        "write" => entry.write.as_ref(),
        _ => entry.read.as_ref(),
    });
    let apart = |latency| latency_apart(one, latency);
    let spans = ops.flat_map(|op| [("lat_ns", apart(&op.lat)), ("clat_ns", apart(&op.clat))]);
    let known = spans.filter_map(|(span, apart)| Some((span, apart?)));
    let nearest = known.min_by(|one, other| one.1.total_cmp(&other.1)).map(|(span, _)| span);
    // The mean may follow from other figures.
    let span = nearest.or((one.statistic == "mean").then_some("lat_ns"))?;
    Some(format!("{direction}.{span}.{}", one.statistic))
}

/// Enters a statement into the test of an output that has only one.
fn enter(one: &Statement, output: &mut Output) {
    let [test] = output.report.tests.as_mut_slice() else { return };
    let entries = &test.imported.entries;
    let (reads, writes) =
        (entries.iter().any(|entry| entry.read.is_some()), entries.iter().any(|entry| entry.write.is_some()));
    let only = match (reads, writes) {
        (true, false) => Some("read"),
        (false, true) => Some("write"),
        _ => None,
    };
    let said =
        one.direction.map(|direction| if direction == MetricDirection::Write { "write" } else { "read" });
    let direction = said.filter(|said| only.is_none_or(|only| only == *said)).or(only);
    let metric = match (one.kind, direction) {
        (StatementKind::Rate, direction) => Some(format!("{}.iops", direction.unwrap_or("total"))),
        (StatementKind::Runtime, _) => Some(format!("{} runtime", only.unwrap_or("read"))),
        // Reads and writes of a mix have latencies and bandwidths of their own.
        (_, None) if reads && writes => None,
        (StatementKind::Bandwidth, direction) => direction.map(|direction| format!("{direction}.bw")),
        (StatementKind::Latency, direction) => latency_of(&test.imported, direction.unwrap_or("read"), one),
    };
    let Some(metric) = metric else { return };
    let options = [("kind", "claimed"), ("kb_base", "either")];
    let options = options.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
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
        let all = statements(1, text, ["", ""]).into_iter();
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
    /// The figures that an article on one random read states: name and text.
    fn stated(article: &str) -> Vec<(String, String)> {
        let page = format!(
            "# Disk A\n\n```\n\
             randread: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=libaio, iodepth=1\n\
             fio-3.16\n\
             randread: (groupid=0, jobs=1): err= 0: pid=2211: Tue Mar 10 10:11:12 2020\n  \
             read: IOPS=6842, BW=26.7MiB/s (28.0MB/s)(1604MiB/60001msec)\n    \
             clat (usec): min=80, max=9800, avg=140.10, stdev=40.10\n     \
             lat (usec): min=85, max=9810, avg=145.30, stdev=40.30\n    \
             clat percentiles (usec):\n     \
             | 90.00th=[  190], 95.00th=[  240], 99.00th=[  400]\n```\n\n{article}\n"
        );
        let (_, report) = crate::page::read(&page).unwrap();
        let all = report.tests.iter().flat_map(|test| &test.imported.stated);
        all.map(|one| (one.figure.clone(), one.text.clone())).collect()
    }

    #[track_caller]
    fn assert_stated(article: &str, expected: &[(&str, &str)]) {
        let found = stated(article);
        let found: Vec<(&str, &str)> =
            found.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        assert_eq!(found, expected, "{article}");
    }

    #[test]
    fn statements_on_something_else_are_left_alone() {
        for other in [
            "My old disk reached only 500 IOPS. It had 400 IOPS at night.",
            "My old disk\nreached only 500 IOPS.",
            "According to the data sheet it does 90,000 IOPS. The limit of the volume is 3000 IOPS.",
            "I expected 20,000 IOPS, but got far less. Other users report 12,000 IOPS.",
            "The price is 120 USD, so 57 IOPS per dollar.",
            "This is good, compared with 500 IOPS of disk B. Disk B had 500 IOPS.",
            "我的旧硬盘只有 120 IOPS。厂商标称 90000 IOPS。 Старый диск давал 120 IOPS.",
            "Amazon says that gp2 has 3 IOPS per GB, that is 300 IOPS.",
            "For comparison: the SATA SSD reached 12,000 IOPS.",
            "The write test took 30 s. The boot took 30 s. The next test runs for 120 s.",
            "Sequential bandwidth is 520 MB/s.",
            "ioping said the latency is 0.3 ms. A hard disk has a latency of about 10 ms.",
            "Setting the latency target to 5 ms does not help.",
            "fio was told to run for 60 seconds. It should take 30 s.",
            "With a queue depth of 32 it reaches 40,000 IOPS.",
            "1% of reads take longer than 0.4 ms. Most reads finish below 0.2 ms.",
            "## 2 Comments\n\nIt reached 500 IOPS.",
            "The volume has 3000 IOPS.",
            "Reddit shows 12,000 IOPS. The controller latency is 5 ms. At night it reached 500 IOPS.",
            "joe: I got 500 IOPS on mine.",
        ] {
            assert_stated(other, &[]);
        }
    }

    #[test]
    fn a_statistic_is_held_against_that_statistic() {
        assert_stated(
            "The maximum latency is 9.81 ms. Minimum latency was 85 µs.",
            &[("read.lat_ns.max", "9.81 ms"), ("read.lat_ns.min", "85 us")],
        );
        assert_stated("p99 latency: 400 µs", &[("read.clat_ns.p99", "400 us")]);
        assert_stated("The 99th percentile is 4 ms.", &[("read.clat_ns.p99", "4 ms")]);
        assert_stated("最大延迟为 98 毫秒。", &[("read.lat_ns.max", "98 ms")]);
        assert_stated("Максимальная задержка 98 мс.", &[("read.lat_ns.max", "98 ms")]);
        assert_stated("The average latency is 140 µs.", &[("read.clat_ns.mean", "140 us")]);
        assert_stated("p99.99 latency: 5 ms. The latency was 1 ms at most, maximum 9 ms.", &[]);
        assert_stated("The peak was 9,000 IOPS. At the 99th percentile, the latency is 400 us.", &[]);
    }

    #[test]
    fn statements_on_the_test_are_held_against_it() {
        let runtime = ("read.runtime_ns", "30 s");
        assert_stated("The test took 30 s. Тест занял 30 с.", &[runtime, runtime]);
        assert_stated("测试用了30秒。", &[runtime]);
        assert_stated("The read bandwidth is 267 MB/s.", &[("read.bytes_per_second", "267 MB/s")]);
        assert_stated("We see that random reads get 12,000 IOPS here.", &[("read.iops", "12000 IOPS")]);
        assert_stated("Disk A reached 68,420 IOPS.", &[("read.iops", "68420 IOPS")]);
        assert_stated(
            "随机读 IOPS 达到 68420,平均延迟 1.45ms。",
            &[("read.iops", "68420 IOPS"), ("read.lat_ns.mean", "1.45 ms")],
        );
    }
}
