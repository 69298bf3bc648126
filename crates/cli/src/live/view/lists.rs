//! The plan and where it stands, the findings, and the help.

use fathom_model::units::{UnitSystem, grouped, latency};
use fathom_record::{Finding, Severity, TestStatus};
use fathom_report::live::{LiveState, LiveStep, LiveStepState};
use fathom_report::{pad, width, wrap};

use super::NextWords;
use super::canvas::{Area, Canvas, Colour, Paint};

/// Widest name in the plan.
const NAME_COLUMNS: usize = 24;

/// Draws the plan around the step that runs, as much as there is room for.
pub fn plan(canvas: &mut Canvas, area: Area, state: &LiveState, units: UnitSystem) {
    let steps = &state.steps;
    let wide = steps.iter().map(|step| width(name(step))).max().unwrap_or(0).min(NAME_COLUMNS);
    let is_running = |step: &LiveStep| step.state == LiveStepState::Running;
    let has_ended = |step: &LiveStep| matches!(step.state, LiveStepState::Ended(_));
    let current =
        steps.iter().position(is_running).or_else(|| steps.iter().rposition(has_ended)).unwrap_or(0);
    // One that has ended stays in sight above the one that runs.
    let first = current.saturating_sub(area.height / 2).min(steps.len().saturating_sub(area.height));
    let unicode = canvas.look.unicode;
    let lines = steps.iter().skip(first).take(area.height).map(|step| {
        let (mark, paint) = mark(step, unicode);
        let text = format!("{mark} {}  {}", pad(name(step), wide), outcome(step, units));
        (text.trim_end().to_owned(), paint)
    });
    canvas.lines(area, lines);
}

fn name(step: &LiveStep) -> &str {
    if step.id.is_empty() { &step.title } else { &step.id }
}

fn mark(step: &LiveStep, unicode: bool) -> (char, Paint) {
    let either = |symbol: char, ascii: char| if unicode { symbol } else { ascii };
    match step.state {
        LiveStepState::Planned => (either('·', '.'), Paint::PLAIN),
        LiveStepState::Running => (either('▶', '>'), Paint::BOLD),
        LiveStepState::Ended(TestStatus::Complete) => (either('✓', '+'), Paint::of(Colour::Green)),
        LiveStepState::Ended(TestStatus::Skipped) => ('-', Paint::PLAIN),
        LiveStepState::Ended(TestStatus::Incomplete) => ('~', Paint::of(Colour::Yellow)),
        LiveStepState::Ended(TestStatus::Failed) => (either('✗', 'x'), Paint::of(Colour::Red)),
    }
}

fn outcome(step: &LiveStep, units: UnitSystem) -> String {
    let status = match step.state {
        LiveStepState::Planned => return step.title.clone(),
        LiveStepState::Running => return format!("running: {}", step.title),
        LiveStepState::Ended(TestStatus::Complete) => "",
        LiveStepState::Ended(status) => status.name(),
    };
    let Some(figures) = step.figures else { return status.to_owned() };
    let iops = format!("{} IOPS", grouped(figures.iops.round() as u64));
    let rate = format!("{}/s", units.amount(figures.bytes_per_second as u64));
    let p99 = figures.clat_p99_ns.map(|ns| format!("p99 {}", latency(ns))).unwrap_or_default();
    format!("{iops:<12}  {rate:<10}  {p99:<12}  {status}").trim_end().to_owned()
}

/// Draws the findings, the gravest first, and above them what has just been reported.
pub fn findings(canvas: &mut Canvas, area: Area, state: &LiveState) {
    let mut found: Vec<&Finding> = state.findings.iter().collect();
    found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let messages = state.messages.iter().rev().take(1).map(|text| (text.clone(), Paint::of(Colour::Yellow)));
    let claims = found.into_iter().map(|finding| {
        let paint = match finding.severity {
            Severity::Error => Paint::of(Colour::Red),
            Severity::Warning => Paint::of(Colour::Yellow),
            Severity::Info => Paint::PLAIN,
        };
        let tests = match finding.tests.as_slice() {
            [] => String::new(),
            [test] => format!("{test}: "),
            [test, ..] => format!("{test} and {} more: ", finding.tests.len() - 1),
        };
        (format!("{tests}{}", finding.claim), paint)
    });
    let bullet = if canvas.look.unicode { "• " } else { "* " };
    let lines = messages.chain(claims).flat_map(|(text, paint)| {
        let lines = wrap(&format!("{bullet}{text}"), area.width, 0, 2);
        lines.into_iter().map(move |line| (line, paint))
    });
    let rest = canvas.lines(area, lines);
    if rest == area {
        canvas.text(area, "none so far", Paint::PLAIN);
    }
}

/// The keys and what they do, for the help.
fn keys(next: Option<NextWords>) -> Vec<(&'static str, &'static str)> {
    let next = next.map(|words| ("n", words.long));
    let first = [("p", "pause the display, not the measurement; p again resumes")];
    let last = [
        ("q", "stop; what has been measured is kept (as Ctrl-C)"),
        ("r", "draw the screen again"),
        ("?", "show or hide this help"),
    ];
    first.into_iter().chain(next).chain(last).collect()
}

/// Draws the help over the middle of the screen.
pub fn help(canvas: &mut Canvas, next: Option<NextWords>) {
    let lines: Vec<String> = [String::new()]
        .into_iter()
        .chain(keys(next).into_iter().map(|(key, does)| format!("  {key}   {does}")))
        .chain([
            String::new(),
            "  IOPS: lowest to highest half second of each column.".to_owned(),
            "  Latency: bars to the median and to the 99th percentile.".to_owned(),
            String::new(),
        ])
        .collect();
    let columns = lines.iter().map(|line| width(line)).max().unwrap_or(0) + 2;
    let (columns, rows) = (columns.min(canvas.width), (lines.len() + 1).min(canvas.height));
    let (x, y) = ((canvas.width - columns) / 2, (canvas.height - rows) / 2);
    let mut rest = Area { x, y, width: columns, height: rows };
    for (index, line) in ["  Keys".to_owned()].iter().chain(&lines).enumerate() {
        let (row, below) = rest.split_rows(1);
        if row.height > 0 {
            canvas.bar(row, Paint::REVERSE);
            let paint = if index == 0 { Paint { bold: true, ..Paint::REVERSE } } else { Paint::REVERSE };
            canvas.text(row, line, paint);
        }
        rest = below;
    }
}

/// The keys in one row, for the lower edge of the screen.
pub fn key_row(next: Option<NextWords>) -> String {
    let next = next.map(|words| format!("  n {}", words.short)).unwrap_or_default();
    format!(" p pause{next}  q stop and keep  ? help")
}
