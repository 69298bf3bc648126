//! `versus-fio`: builds fathom, runs every row in alternation with Debian's fio, and writes the results into the pages that quote it. It
//! measures and reports; a goal that is not met is shown and fails nothing.

mod load;
mod measure;
pub mod resident;
mod runs;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use anyhow::{Context as _, bail, ensure};
use fathom_tests::measuring_alone;
use serde::{Deserialize, Serialize};
use xtask::process::root;

use crate::driver::{Asked, Campaign, Case, CaseResult, Plan};
use load::RunLoad;
use measure::Bench;
pub use runs::stat_ticks;

pub const CAMPAIGN: Campaign = Campaign {
    options: &[
        ("rounds", Some("5"), "Rounds of each row"),
        ("seconds", Some("3"), "Seconds per run"),
        ("directory", Some("/var/tmp"), "Directory of the unnamed file of 1 GiB"),
        ("quick", None, "3 rounds of 1 s"),
        ("write", None, "Write the pages although not everything was measured at full length"),
        ("verbose", None, "Print every round"),
    ],
    // The harness makes devices for those only who have asked for the machine.
    turn: Some(measuring_alone),
    ..Campaign::new(
        "versus-fio",
        "The cost of an I/O beside Debian's fio, written into the page that quotes it; FATHOM_BIN names a binary to measure",
        plan,
    )
};

/// The page with the table.
const PAGE: &str = "docs/src/explanation/versus-fio.md";
const BEGIN: &str = "<!-- versus-fio: begin, written by cargo lab versus-fio -->";
const END: &str = "<!-- versus-fio: end -->";
/// The heads of [`RowLine::cells`], and their widths on the terminal.
const HEADS: [&str; 5] = ["fathom", "fio", "ratio", "goal", "met"];
const WIDTHS: [usize; 5] = [9, 22, 20, 10, 4];
const NAME_WIDTH: usize = 14;

/// What a full measurement has, and a quick one.
#[derive(Clone, Debug)]
struct Settings {
    rounds: usize,
    /// Rounds of the rows that measure the start.
    start_rounds: usize,
    seconds: u32,
    directory: PathBuf,
    verbose: bool,
    write: bool,
}

impl Settings {
    fn from_asked(asked: &Asked) -> anyhow::Result<Settings> {
        let (rounds, seconds) = (asked.number("rounds")? as usize, asked.number("seconds")? as u32);
        ensure!((1..=3600).contains(&rounds) && (1..=3600).contains(&seconds), "both are from 1 to 3600");
        let is_full = asked.only.is_empty() && !asked.is_set("quick") && (rounds, seconds) == (5, 3);
        let (rounds, start_rounds, seconds) =
            if asked.is_set("quick") { (3, 5, 1) } else { (rounds, 11, seconds) };
        Ok(Settings {
            rounds,
            start_rounds,
            seconds,
            directory: asked.text("directory").into(),
            verbose: asked.is_set("verbose"),
            write: is_full || asked.is_set("write"),
        })
    }
}

fn plan(asked: &Asked) -> anyhow::Result<Plan> {
    let settings = Settings::from_asked(asked)?;
    let rows = || ROWS.iter().filter(|row| asked.includes(&row.name));
    // A page without a place for its table is known before anything was measured.
    let page = if settings.write { Some(MarkedPage::read(PAGE)?) } else { None };
    ensure!(settings.directory.is_dir(), "{} is not a directory", settings.directory.display());
    let bench: Arc<Mutex<Option<Bench>>> = Arc::default();
    let (has_bench, has_device) = (rows().any(TableRow::has_bench), rows().any(|row| row.load.is_recorded()));
    let cases: Vec<Case> = rows()
        .map(|row| {
            let (bench, settings) = (bench.clone(), settings.clone());
            Case::new(row.name.clone(), move || {
                let mut bench = bench.lock().unwrap_or_else(PoisonError::into_inner);
                if bench.is_none() {
                    println!("building, and making files of 1 GiB ...");
                    let prepared = Bench::prepare(&settings, has_bench, has_device)?;
                    println!("{}\n\n{}", prepared.about, terminal(NAME_WIDTH + 2, &HEADS.map(str::to_owned)));
                    *bench = Some(prepared);
                }
                let measured = bench.as_mut().context("it was prepared")?.measure(row)?;
                let line = RowLine { row, measured: &measured };
                let rounds = if settings.verbose { line.rounds() } else { String::new() };
                let remark = measured.remark.as_ref().map(|remark| format!("\n    {remark}"));
                let text = terminal(NAME_WIDTH - row.name.len(), &line.cells()) + &rounds;
                Ok(CaseResult::new(text + &remark.unwrap_or_default())
                    .facts(serde_json::to_value(&measured)?))
            })
        })
        .collect();
    Ok(Plan::new(cases).judged_by(move |results| {
        let measured = results.iter().map(|result| {
            let row = ROWS.iter().find(|row| row.name == result.case).context("a case is a row")?;
            anyhow::Ok((row, serde_json::from_value::<MeasuredRow>(result.facts.clone())?))
        });
        let measured: Vec<_> = measured.collect::<anyhow::Result<_>>()?;
        let lines: Vec<RowLine<'_>> =
            measured.iter().map(|(row, measured)| RowLine { row, measured }).collect();
        println!("{}", verdict(&lines));
        let bench = bench.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(page), Some(bench)) = (page, bench.as_ref()) {
            page.write(&full_table(&bench.about, &lines))?;
            println!("wrote {PAGE}");
        }
        Ok(())
    }))
}

/// The rows (`rows.toml`).
static ROWS: LazyLock<Vec<TableRow>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct Rows {
        row: Vec<TableRow>,
    }
    let rows: Rows = toml::from_str(include_str!("versus/rows.toml")).expect("a test reads the rows");
    rows.row
});

/// One line of the table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableRow {
    name: String,
    /// The measured figure, for the table.
    what: String,
    figure: Figure,
    #[serde(default)]
    against: Against,
    goal: Option<Goal>,
    load: RunLoad,
}

impl TableRow {
    /// Whether it runs a bare loop or a bench.
    fn has_bench(&self) -> bool {
        matches!(self.against, Against::BareRing | Against::BarePread) || self.figure == Figure::NextOffset
    }
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Figure {
    /// Million requests per second of CPU time, or of time.
    PerCpuSecond,
    PerSecond,
    /// ns per request: of user time, of CPU time of the job, of CPU time of the process with its threads and children.
    UserTime,
    JobTime,
    ProcessTime,
    /// ns per request that its completion latency does not hold.
    OutsideLatency,
    /// ns of mean latency beyond the kernel's own of the device.
    BeyondDevice,
    /// ms of CPU time of the process outside of its job.
    OutsideJob,
    /// The rate of many jobs on two CPUs over twice that of one job pinned to one.
    Scaling,
    /// MiB: the largest resident size, and by how much it grows from a range of 1 GiB to the load's.
    Resident,
    ResidentGrowth,
    /// ms from the start of the program to its first read of the file.
    Start,
    /// ns: the slowest size of the bench of the next offset.
    NextOffset,
}

impl Figure {
    fn unit(self) -> &'static str {
        match self {
            Figure::PerCpuSecond | Figure::PerSecond => " M",
            Figure::OutsideJob | Figure::Start => " ms",
            Figure::Scaling => "",
            Figure::Resident | Figure::ResidentGrowth => " MiB",
            _ => " ns",
        }
    }

    /// A figure with its unit.
    fn shown(self, value: f64) -> String {
        let number = if self.unit() == " M" { format!("{value:.3}") } else { number(value) };
        number + self.unit()
    }
}

/// The programs to compare fathom with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Against {
    #[default]
    Fio,
    FioAtBest,
    BareRing,
    BarePread,
    /// fathom with nothing that shows or records its run.
    Unshown,
}

impl Against {
    /// The table's addition to the figure if it is not plain fio's.
    fn remark(self) -> &'static str {
        match self {
            Against::Fio => "",
            Against::FioAtBest => " (best options)",
            Against::BareRing => " (bare ring)",
            Against::BarePread => " (bare pread)",
            Against::Unshown => " (without)",
        }
    }
}

/// The goal of a row, written as `ratio >= 1.85` or `<= 25`: of the ratio, or of fathom's figure in the row's unit.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
struct Goal {
    is_ratio: bool,
    comparison: Comparison,
    value: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    AtLeast,
    AtMost,
    Below,
}

impl TryFrom<String> for Goal {
    type Error = String;

    fn try_from(text: String) -> Result<Goal, String> {
        let goal = || {
            let ratio = text.strip_prefix("ratio ");
            let (comparison, value) = ratio.unwrap_or(&text).split_once(' ')?;
            let comparison = match comparison {
                ">=" => Comparison::AtLeast,
                "<=" => Comparison::AtMost,
                "<" => Comparison::Below,
                _ => return None,
            };
            Some(Goal { is_ratio: ratio.is_some(), comparison, value: value.parse().ok()? })
        };
        goal().ok_or(format!("not a goal: {text}"))
    }
}

impl Goal {
    /// A figure that is not a number meets nothing.
    fn is_met(self, summary: &Summary) -> bool {
        let ratio = summary.ratio.map_or(f64::NAN, |ratio| ratio.median);
        let found = if self.is_ratio { ratio } else { summary.ours };
        match self.comparison {
            Comparison::AtLeast => found >= self.value,
            Comparison::AtMost => found <= self.value,
            Comparison::Below => found < self.value,
        }
    }

    /// With no digits beyond those that were chosen.
    fn shown(self, unit: &str) -> String {
        let sign = match self.comparison {
            Comparison::AtLeast => '≥',
            Comparison::AtMost => '≤',
            Comparison::Below => '<',
        };
        format!("{sign} {}{}", self.value, if self.is_ratio { " ×" } else { unit })
    }
}

/// The measurement of a row.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct MeasuredRow {
    /// In the order in which they were made; none if this machine cannot.
    rounds: Vec<Round>,
    /// Notes for the reader.
    remark: Option<String>,
    /// Other processes had the CPUs for part of a run; the remark has the share.
    is_disturbed: bool,
    /// The command lines, fathom's first.
    commands: Vec<String>,
}

/// The figures of one round of a row: fathom's, and that of the other program, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Round {
    ours: f64,
    theirs: Option<f64>,
}

impl Round {
    fn ratio(self) -> Option<f64> {
        self.theirs.map(|theirs| self.ours / theirs)
    }
}

/// The result of a row: medians of both figures, and of the ratios within each round, so that what troubles both at a time troubles
/// it little. No round is excluded, and nothing is averaged.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Summary {
    ours: f64,
    theirs: Option<f64>,
    ratio: Option<RatioSpread>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct RatioSpread {
    median: f64,
    min: f64,
    max: f64,
}

/// Sums `rounds` up; there is at least one.
fn summarise(rounds: &[Round]) -> Summary {
    let theirs: Vec<f64> = rounds.iter().filter_map(|round| round.theirs).collect();
    let ratios: Vec<f64> = rounds.iter().filter_map(|round| round.ratio()).collect();
    let spread = || RatioSpread {
        median: median(&ratios),
        min: ratios.iter().copied().fold(f64::INFINITY, f64::min),
        max: ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    };
    Summary {
        ours: median(&rounds.iter().map(|round| round.ours).collect::<Vec<_>>()),
        theirs: (!theirs.is_empty()).then(|| median(&theirs)),
        ratio: (!ratios.is_empty()).then(spread),
    }
}

/// The middle value, or the mean of the two in the middle; NaN of nothing.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => f64::NAN,
        (len, middle) if len % 2 == 0 => (sorted[middle - 1] + sorted[middle]) / 2.0,
        (_, middle) => sorted[middle],
    }
}

/// A row and its result.
struct RowLine<'a> {
    row: &'a TableRow,
    measured: &'a MeasuredRow,
}

impl RowLine<'_> {
    fn summary(&self) -> Option<Summary> {
        (!self.measured.rounds.is_empty()).then(|| summarise(&self.measured.rounds))
    }

    /// Whether the goal is met; `None` without a goal or a measurement.
    fn is_met(&self) -> Option<bool> {
        Some(self.row.goal?.is_met(&self.summary()?))
    }

    /// fathom's figure, the other, the ratio with its spread, the goal, whether it is met.
    fn cells(&self) -> [String; 5] {
        let TableRow { figure, against, goal, .. } = self.row;
        let summary = self.summary();
        let theirs = summary.and_then(|summary| summary.theirs);
        let ratio = summary.and_then(|summary| summary.ratio);
        let ratio = ratio
            .map(|ratio| format!("{} ({}..{})", number(ratio.median), number(ratio.min), number(ratio.max)));
        let cells = [
            summary.map(|summary| figure.shown(summary.ours)),
            theirs.map(|theirs| figure.shown(theirs) + against.remark()),
            ratio,
            goal.map(|goal| goal.shown(figure.unit())),
            self.is_met().map(|is_met| if is_met { "yes" } else { "no" }.to_owned()),
        ];
        cells.map(|cell| cell.unwrap_or_else(|| "—".to_owned()))
    }

    /// Every round, for the terminal.
    fn rounds(&self) -> String {
        let shown = |round: &Round| {
            let theirs = round.theirs.map(|theirs| self.row.figure.shown(theirs)).unwrap_or_default();
            let ratio = round.ratio().map(number).unwrap_or_default();
            format!("\n    round {:>9} {theirs:>12} {ratio:>8}", self.row.figure.shown(round.ours))
        };
        self.measured.rounds.iter().map(shown).collect()
    }
}

/// Cells behind a name, which is followed by so many blanks.
fn terminal(blanks: usize, cells: &[String; 5]) -> String {
    let cells = cells.iter().zip(WIDTHS).map(|(cell, width)| format!(" {cell:>width$}"));
    " ".repeat(blanks) + &cells.collect::<String>()
}

/// How many goals are met, which are not, and how many rows are to be measured again on a quieter machine.
fn verdict(lines: &[RowLine<'_>]) -> String {
    let wanted = lines.iter().filter(|line| line.is_met().is_some()).count();
    let missed: Vec<&str> =
        lines.iter().filter(|line| line.is_met() == Some(false)).map(|line| line.row.name.as_str()).collect();
    let named = if missed.is_empty() { String::new() } else { format!("; not {}", missed.join(", ")) };
    let disturbed = match lines.iter().filter(|line| line.measured.is_disturbed).count() {
        0 => String::new(),
        n => format!("; rows disturbed: {n}"),
    };
    format!("{} of {wanted} goals met{named}{disturbed}", wanted - missed.len())
}

/// The text between the markers of docs/src/explanation/versus-fio.md.
fn full_table(about: &str, lines: &[RowLine<'_>]) -> String {
    let mut text = format!("{about}\n\n| row | what | {} |\n", HEADS.join(" | "));
    text += "|---|---|--:|--:|--:|--:|---|\n";
    for line in lines {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {} | {} | {} |", line.row.name, line.row.what, line.cells().join(" | "));
    }
    text += "\n### Command lines\n";
    for RowLine { row, measured } in lines {
        let _ = write!(text, "\n**{}**\n\n", row.name);
        if let Some(remark) = &measured.remark {
            let _ = write!(text, "{remark}\n\n");
        }
        for command in &measured.commands {
            let _ = writeln!(text, "    {command}");
        }
    }
    text
}

/// Three digits, or all before the point.
fn number(value: f64) -> String {
    let digits = match value.abs() {
        magnitude if magnitude < 9.995 => 2,
        magnitude if magnitude < 99.95 => 1,
        _ => 0,
    };
    let shown = format!("{value:.digits$}");
    // A value rounded to 0 has no sign.
    if shown.contains(|c: char| ('1'..='9').contains(&c)) { shown } else { shown.replace('-', "") }
}

/// A page that holds a generated part between markers.
struct MarkedPage {
    path: PathBuf,
    before: String,
    after: String,
}

impl MarkedPage {
    /// Reads a page of the workspace. Fails if it has no place for a table.
    fn read(name: &str) -> anyhow::Result<MarkedPage> {
        MarkedPage::at(&root().join(name))
    }

    fn at(path: &Path) -> anyhow::Result<MarkedPage> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let parts = text.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
        let Some((before, after)) = parts else {
            bail!("{} has no place for the table: the lines `{BEGIN}` and `{END}`", path.display());
        };
        Ok(MarkedPage { path: path.to_owned(), before: before.to_owned(), after: after.to_owned() })
    }

    /// Writes it with `part` between its markers.
    fn write(&self, part: &str) -> anyhow::Result<()> {
        let text = format!("{}{BEGIN}\n\n{part}\n{END}{}", self.before, self.after);
        std::fs::write(&self.path, text).with_context(|| format!("cannot write {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(name: &str) -> &'static TableRow {
        ROWS.iter().find(|row| row.name == name).unwrap()
    }

    fn measured(rounds: &[(f64, Option<f64>)]) -> MeasuredRow {
        let rounds = rounds.iter().map(|(ours, theirs)| Round { ours: *ours, theirs: *theirs }).collect();
        let commands = vec!["fathom fio".to_owned(), "fio".to_owned()];
        MeasuredRow { rounds, commands, ..MeasuredRow::default() }
    }

    #[test]
    fn row_names_are_unique_and_rows_that_share_runs_stand_together() {
        for (index, row) in ROWS.iter().enumerate() {
            assert!(ROWS[..index].iter().all(|earlier| earlier.name != row.name), "{}", row.name);
            assert!(row.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
            let shares = |other: &TableRow| other.load == row.load && other.against == row.against;
            let pairs = |row: &TableRow| {
                use Figure::{NextOffset, Resident, ResidentGrowth, Scaling, Start};
                !matches!(row.figure, NextOffset | Resident | ResidentGrowth | Scaling | Start)
            };
            if pairs(row)
                && let Some(last) = ROWS.iter().rposition(|other| pairs(other) && shares(other))
            {
                assert!(ROWS[index..=last].iter().all(shares), "{}", row.name);
            }
        }
        assert_eq!(ROWS.len(), 34);
    }

    #[test]
    fn numbers_have_three_significant_digits() {
        let check = |value, expected: &str| assert_eq!(number(value), expected, "{value}");
        check(0.0, "0.00");
        check(-0.126, "-0.13");
        check(-0.004, "0.00");
        check(1.849, "1.85");
        check(9.996, "10.0");
        check(99.96, "100");
        check(1234.4, "1234");
    }

    #[test]
    fn a_line_has_every_cell() {
        let check = |name: &str, measured: &MeasuredRow, expected: [&str; 5]| {
            assert_eq!(RowLine { row: find(name), measured }.cells(), expected, "{name}");
        };
        let two = measured(&[(1.0, Some(0.5)), (1.2, Some(0.625))]);
        check("uring", &two, ["1.100 M", "0.562 M", "1.96 (1.92..2.00)", "≥ 1.85 ×", "yes"]);
        check("uring-bare", &two, ["1.100 M", "0.562 M (bare ring)", "1.96 (1.92..2.00)", "≥ 0.97 ×", "yes"]);
        check("null-64", &two, ["1.100 M", "0.562 M", "1.96 (1.92..2.00)", "≥ 10 ×", "no"]);
        check("outside-psync", &two, ["1.10 ns", "0.56 ns", "1.96 (1.92..2.00)", "< 1 ×", "no"]);
        check("psync-bare", &two, ["1.100 M", "0.562 M (bare pread)", "1.96 (1.92..2.00)", "—", "—"]);
        check("next-offset", &measured(&[(7.25, None)]), ["7.25 ns", "—", "—", "≤ 10 ns", "yes"]);
        check("jobs-8-psync", &measured(&[]), ["—", "—", "—", "≥ 0.95", "—"]);
    }

    #[test]
    fn the_page_has_every_row() {
        let mut result = measured(&[(1.0, Some(0.5))]);
        result.remark = Some("a remark".to_owned());
        let lines = [RowLine { row: find("psync"), measured: &result }];
        let expected = "about\n\n\
            | row | what | fathom | fio | ratio | goal | met |\n|---|---|--:|--:|--:|--:|---|\n\
            | psync | psync: I/Os per CPU-second | 1.000 M | 0.500 M | 2.00 (2.00..2.00) | ≥ 1.35 × | yes |\n\
            \n### Command lines\n\n**psync**\n\na remark\n\n    fathom fio\n    fio\n";
        assert_eq!(full_table("about", &lines), expected);
    }

    #[test]
    fn only_text_between_the_markers_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("page.md");
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        write(&format!("# Head\n\n{BEGIN}\nold\n{END}\n\nFoot\n"));
        for part in ["| new |\n", "| newer |\n"] {
            MarkedPage::at(&path).unwrap().write(part).unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(text, format!("# Head\n\n{BEGIN}\n\n{part}\n{END}\n\nFoot\n"));
        }
        write(&format!("{END}\n{BEGIN}\n"));
        assert!(MarkedPage::at(&path).is_err() && MarkedPage::read("no-page.md").is_err());
        MarkedPage::read(PAGE).unwrap();
    }

    #[test]
    fn the_verdict_names_what_was_missed() {
        let (good, bad, none) =
            (measured(&[(2.0, Some(1.0))]), measured(&[(1.0, Some(1.0))]), MeasuredRow::default());
        let line = |name, measured| RowLine { row: find(name), measured };
        let check = |lines: &[RowLine<'_>], expected: &str| assert_eq!(verdict(lines), expected);
        check(&[line("uring", &good), line("psync", &good), line("psync-bare", &bad)], "2 of 2 goals met");
        let disturbed = MeasuredRow { is_disturbed: true, ..good.clone() };
        let expected = "1 of 2 goals met; not psync; rows disturbed: 1";
        check(&[line("uring", &disturbed), line("psync", &bad)], expected);
        check(&[line("uring", &good), line("jobs-8-psync", &none)], "1 of 1 goals met");
    }

    #[test]
    fn the_ratio_is_the_median_of_the_rounds_not_the_ratio_of_the_medians() {
        let round = |ours, theirs| Round { ours, theirs: Some(theirs) };
        let summary = summarise(&[round(2.0, 1.0), round(9.0, 3.0), round(3.0, 3.0)]);
        let ratio = Some(RatioSpread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(summary, Summary { ours: 3.0, theirs: Some(3.0), ratio });
        let alone = summarise(&[Round { ours: 7.0, theirs: None }]);
        assert_eq!(alone, Summary { ours: 7.0, theirs: None, ratio: None });
        assert_eq!((median(&[4.0, 1.0, 3.0, 2.0]), median(&[-1.0, -3.0, -2.0])), (2.5, -2.0));
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn goals_are_met_at_equality() {
        let check = |goal: &str, ours, ratio: Option<f64>, expected| {
            let ratio = ratio.map(|median| RatioSpread { median, min: 0.0, max: 9.0 });
            let summary = Summary { ours, theirs: None, ratio };
            let is_met = Goal::try_from(goal.to_owned()).unwrap().is_met(&summary);
            assert_eq!(is_met, expected, "{goal} of {ours}, {ratio:?}");
        };
        check("ratio >= 1.85", 1.0, Some(1.85), true);
        check("ratio >= 1.85", 9.0, Some(1.84), false);
        check("ratio >= 1.85", 9.0, None, false);
        check("ratio <= 0.75", 9.0, Some(0.75), true);
        check("ratio <= 0.75", 9.0, Some(0.76), false);
        check("ratio < 1", 9.0, Some(0.99), true);
        check("ratio < 1", 0.0, Some(1.0), false);
        check("<= 25", 25.0, None, true);
        check("<= 25", 25.1, Some(0.1), false);
        check("<= 25", f64::NAN, None, false);
        check(">= 0.95", 0.95, None, true);
        check(">= 0.95", 0.94, None, false);
        assert!(["ratio = 1", "25", "< much"].iter().all(|text| Goal::try_from((*text).to_owned()).is_err()));
    }
}
