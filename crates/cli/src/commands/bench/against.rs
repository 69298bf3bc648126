//! `fathom bench A --against B`: measures two targets in turns, or one beside saved runs, and shows their comparison.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fathom_analysis::compare::figure::Deltas;
use fathom_analysis::compare::interleaved::LOOKS;
use fathom_analysis::compare::source::SourceRun;
use fathom_analysis::compare::{CompareSettings, compare as compared};
use fathom_assess::against::{self, AgainstPlan, AgainstSettings, Opponent};
use fathom_assess::{BenchSettings, PlannedTest, TestKeeper, is_simulated};
use fathom_history::{History, HistoryPath, Kept, RunId};
use fathom_model::Nanos;
use fathom_model::units::{bytes, duration};
use fathom_record::{RunHeader, RunRecord, TestRecord, TestStatus};
use fathom_report::compare::{self, Layout, view};
use fathom_report::formats::Format;
use fathom_report::{TextWriter, document};
use serde_json::json;

use super::plan::describe;
use super::{BenchArguments, settings};
use crate::commands::compare::sources::SourceReader;
use crate::commands::measuring::Measuring;
use crate::exit::{Complaint, Exit};
use crate::live::Hub;
use crate::output::{self, Bar};
use crate::progress::AgainstCourse;
use crate::store::{self, HistoryKeeper};

/// Compares the target with `other`, a target or saved runs.
///
/// # Errors
/// It could not begin.
pub fn run(
    mut arguments: BenchArguments,
    other: &str,
    measuring: Measuring,
    command: &[OsString],
) -> Result<Exit, Complaint> {
    let form = measuring.form;
    let (dry_run, show_fio, strict) = (arguments.dry_run, arguments.show_fio, arguments.strict);
    let plan_as_json = dry_run && form.is_json("a plan")?;
    let deltas = arguments.delta.map(|percent| Deltas { rate: percent / 100.0, latency: percent / 100.0 });
    let deltas = deltas.unwrap_or_default();
    let (budget, conditions) = (arguments.budget, std::mem::take(&mut arguments.conditions));
    let bench = settings(arguments, command);
    let opponent = opponent(other, &bench, &measuring.place)?;
    let mut plan = AgainstPlan::make(AgainstSettings { bench, opponent, budget, deltas })?;
    if dry_run {
        output::print(|out| match plan_as_json {
            true => plan_json(&plan, out),
            false => plan_text(&plan, Some(show_fio), out),
        })?;
        return Ok(Exit::Done);
    }
    let earlier = store::identifications(&measuring.place);
    plan.sides.iter_mut().for_each(|side| side.settings.run.earlier.clone_from(&earlier));
    measuring.announce(|out| plan_text(&plan, None, out))?;
    let plan = Arc::new(plan);
    let (course, measured) = (AgainstCourse::new(plan.clone()), plan.clone());
    let place = measuring.place.clone();
    let (keeper, _, is_interrupted) = measuring.measured_apart(
        move |control, observer| {
            against::run(&measured, &mut measured.session().controlled(control), observer)
        },
        |bar, hub| ComparisonKeeper::new(place, bar, hub),
        course,
    )?;
    if keeper.ended.iter().take(plan.sides.len()).any(Vec::is_empty) {
        output::warn("fathom: nothing was measured on one of the targets");
        return Ok(Exit::of_runs(is_interrupted, true));
    }
    let sources = plan.sources(&keeper.ended)?;
    let settings = CompareSettings { deltas, conditions, ..CompareSettings::default() };
    let comparison = compared(&sources, &settings).map_err(|error| Complaint::usage(error, None))?;
    form.print(
        || view(&comparison, Layout::Volumes, Vec::new()),
        |out| compare::json::render(&comparison, out),
    )?;
    if form.format() == Format::Text {
        output::print(|out| keeper.write_kept(&plan, out))?;
    }
    let has_failed = keeper.ended.iter().flatten().any(|run| run.record.status == TestStatus::Failed);
    let is_inconclusive = strict && comparison.is_inconclusive();
    Ok(Exit::of_runs(is_interrupted, has_failed).with_criteria(comparison.is_failed(), is_inconclusive))
}

/// A target, or saved runs: what exists as a path is a target, except for a file of records.
fn opponent(name: &str, bench: &BenchSettings, place: &HistoryPath) -> Result<Opponent, Complaint> {
    let path = PathBuf::from(name);
    if is_simulated(&path) || (path.exists() && !is_records(&path)) {
        return Ok(Opponent::Target(path));
    }
    let (names, history) = (vec![name.to_owned()], place.history.clone());
    let reader = SourceReader { names, history, bench: bench.clone(), ..SourceReader::default() };
    let source = reader.read()?.remove(0);
    Ok(Opponent::Saved(Box::new(source)))
}

/// True where a file holds records, which are JSON: a target to be measured does not begin like that.
fn is_records(path: &Path) -> bool {
    let mut first = [0_u8; 2];
    let mut read = || std::fs::File::open(path)?.read_exact(&mut first);
    path.is_file() && read().is_ok() && first[0] == b'{'
}

/// Keeps the runs of both targets.
struct ComparisonKeeper {
    lanes: [HistoryKeeper; 2],
    lane: usize,
    place: HistoryPath,
    ended: Vec<Vec<SourceRun>>,
    /// The first run that was kept in the history: it names the comparison.
    first: Option<RunId>,
}

impl ComparisonKeeper {
    fn new(place: HistoryPath, bar: Bar, hub: Option<Arc<Hub>>) -> ComparisonKeeper {
        let keeper = || HistoryKeeper::new(place.clone(), Some(bar.clone())).followed(hub.clone());
        ComparisonKeeper {
            lanes: [keeper(), keeper()],
            lane: 0,
            ended: vec![Vec::new(); 2],
            first: None,
            place,
        }
    }

    /// The tag of the runs of a target.
    fn tag(&self, lane: usize) -> Option<String> {
        Some(format!("against-{}-{}", self.first?, if lane == 0 { "a" } else { "b" }))
    }

    /// Tags a run; without the tag it is kept all the same.
    fn tag_run(&self, run: RunId) {
        let Some((location, tag)) = self.place.history.as_ref().zip(self.tag(self.lane)) else { return };
        let tagged = History::open_existing(location, self.place.patience)
            .and_then(|mut history| history.tag(run, &tag).map(|_| ()));
        if let Err(error) = tagged {
            output::warn(&format!("warning: {}", crate::exit::with_causes(&error)));
        }
    }

    /// Says where the runs are, and how to compare them again.
    fn write_kept(&self, plan: &AgainstPlan, out: &mut TextWriter) -> io::Result<()> {
        let Some(first) = self.tag(0) else { return Ok(()) };
        let second = match &plan.saved {
            Some(saved) => saved.name.clone(),
            None => self.tag(1).map(|tag| format!("tag:{tag}")).unwrap_or_default(),
        };
        let runs = self.ended.iter().map(Vec::len).sum::<usize>();
        let delta = match plan.deltas == Deltas::default() {
            true => String::new(),
            false => format!(" --delta {}%", plan.deltas.rate * 100.0),
        };
        writeln!(out)?;
        writeln!(out, "Kept {runs} runs. To compare them again: fathom compare tag:{first} {second}{delta}")
    }
}

impl TestKeeper for ComparisonKeeper {
    fn begin(&mut self, header: &RunHeader) {
        self.lanes[self.lane].begin(header);
    }

    fn append(&mut self, test: &TestRecord) {
        self.lanes[self.lane].append(test);
    }

    fn lane(&mut self, lane: usize) {
        self.lane = lane;
    }

    fn end(&mut self, record: &RunRecord) {
        let kept = self.lanes[self.lane].finish(record);
        let origin = match &kept {
            Kept::Run(run) => {
                self.first.get_or_insert(*run);
                self.tag_run(*run);
                format!("run {run}")
            }
            Kept::File(path) => path.display().to_string(),
            Kept::Nowhere => format!("block {}", self.ended[self.lane].len() + 1),
        };
        self.ended[self.lane].push(SourceRun { origin, record: record.clone() });
    }
}

/// What is going to be done; with the tests, and their fio commands, where `in_full` says so.
fn plan_text(plan: &AgainstPlan, in_full: Option<bool>, out: &mut TextWriter) -> io::Result<()> {
    let side = &plan.sides[0];
    let names = plan.names();
    let tests: Vec<&str> =
        side.tests.iter().filter(|test| test.skip.is_none()).map(|test| test.id.as_str()).collect();
    let (least, most) = (plan.least_blocks(), plan.most_blocks());
    let note = side.targets[0].target.time_note();
    let time = plan.block_time().map(|block| {
        let of = |blocks: u64| duration(Nanos(block.0 * blocks));
        if least == most {
            format!("about {}{note}", of(most))
        } else {
            format!("between {} and {}{note}", of(least), of(most))
        }
    });
    let how = match &plan.saved {
        None => "in alternating order",
        Some(_) => "beside saved runs",
    };
    let blocks = if least == most { format!("{most}") } else { format!("{least} to {most}") };
    let time = time.unwrap_or_else(|| "no time limit".to_owned());
    output::paragraph(
        &format!(
            "Compares A ({}) with B ({}), {how}: {}; {blocks} blocks, {time}.",
            names[0],
            names[1],
            tests.join(", ")
        ),
        out,
    )?;
    let looks: Vec<String> =
        LOOKS.iter().filter(|look| u64::from(**look) < most).map(u32::to_string).collect();
    if !looks.is_empty() {
        let looks = looks.join(", ");
        output::paragraph(&format!("A test ends after {looks} blocks if its verdict is clear."), out)?;
    }
    if let Some(file) = side.test_file() {
        output::paragraph(&format!("Writes a test file of {} on each target.", bytes(file.bytes)), out)?;
    }
    output::paragraph(&format!("Each block: {}", side.traffic.text(None)), out)?;
    let mut notes: Vec<String> = plan.sides.iter().flat_map(|side| side.notes.clone()).collect();
    notes.dedup();
    output::notes(&notes, out)?;
    if let Some(show_fio) = in_full {
        let wide = side.tests.iter().map(|test| fathom_report::width(&test.id)).max().unwrap_or(0);
        for test in &side.tests {
            writeln!(out, "  {}  {}", fathom_report::pad(&test.id, wide), describe(test))?;
            for side in plan.sides.iter().filter(|_| show_fio) {
                writeln!(out.verbatim(), "  {:wide$}  {}", "", side.fio_command(test, side.size))?;
            }
        }
    }
    Ok(())
}

/// A time is null where a test takes as long as it takes.
fn plan_json(plan: &AgainstPlan, out: &mut TextWriter) -> io::Result<()> {
    let side = &plan.sides[0];
    let fio = |test: &PlannedTest| -> Vec<String> {
        plan.sides.iter().map(|side| side.fio_command(test, side.size)).collect()
    };
    let tests = side.tests.iter().map(|test| {
        json!({
            "id": test.id,
            "title": test.title,
            "fio": fio(test),
            "runtime_ns": test.runtime.map(|runtime| runtime.0),
            "ramp_ns": test.ramp.0,
            "skipped": test.skip,
        })
    });
    let document = json!({
        "schema": "fathom.against-plan/1",
        "sources": plan.names(),
        "size_bytes": side.size,
        "seed": side.seed,
        "looks": LOOKS,
        "most_blocks": plan.most_blocks(),
        "block_time_ns": plan.block_time().map(|block| block.0),
        "budget_ns": plan.budget.map(|budget| budget.0),
        "tests": tests.collect::<Vec<_>>(),
    });
    document::write(&document, &mut out.json())
}
