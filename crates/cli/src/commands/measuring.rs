//! The frame of the commands that run tests: says what will be done, follows it with signals watched for and each test kept as
//! it ends, shows what came out, and tells how it ended. What is run and how it looks, each command says.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use fathom_assess::fleet::Fleet;
use fathom_assess::{AssessError, MeasurementEnd, StepObserver, TestKeeper, begin_measurement, follow};
use fathom_history::{HistoryPath, Kept};
use fathom_record::{RunRecord, TestStatus};
use fathom_report::formats::Format;
use fathom_report::{Style, TextWriter};
use fathom_runner::RunControl;

use super::format_arguments::FormatArguments;
use super::run_arguments::RunArguments;
use super::shown;
use crate::exit::{Complaint, Exit};
use crate::live::LiveArguments;
use crate::live::LiveObserver;
use crate::live::{Hub, LiveOutputs, LiveRun, NextKey};
use crate::output::Bar;
use crate::progress::RowPrinter;
use crate::progress::{Course, RunDisplay, RunProgress};
use crate::ranks::{RankKeeper, keep_and_print};
use crate::store::HistoryKeeper;
use crate::{keys, output, ranks, signals, store};

/// How a run is shown and where it is kept.
pub struct Measuring {
    /// Where it is kept.
    pub place: HistoryPath,
    keeps: bool,
    is_simulated: bool,
    /// The form of the report.
    pub form: FormatArguments,
    /// The command line that goes on with it where it did not come to its end.
    pub going_on: Option<String>,
    /// Where a page with charts goes as well.
    report: Option<PathBuf>,
    /// What shows it while it goes on.
    live: LiveArguments,
    /// The tests that are planned, by id and title, where they are known.
    pub planned: Vec<(String, String)>,
    /// A test can be ended without the run.
    pub can_skip: bool,
    /// The rank that this process is of a job of many.
    pub fleet: Option<Fleet>,
}

impl Measuring {
    /// As `arguments` say of a run that `is_simulated` or measured.
    pub fn new(arguments: &RunArguments, is_simulated: bool) -> Measuring {
        let (place, keeps) = (arguments.place(is_simulated), arguments.keeps(is_simulated));
        Measuring {
            place,
            keeps,
            is_simulated,
            form: arguments.form,
            going_on: None,
            report: arguments.report.clone(),
            live: arguments.live.clone(),
            planned: Vec::new(),
            can_skip: false,
            fleet: None,
        }
    }

    /// True for the process that reports: the only one, or rank 0.
    pub fn reports(&self) -> bool {
        self.fleet.as_ref().is_none_or(Fleet::reports)
    }

    /// Says what is going to be done by `plan` on standard error if that is a terminal, and warns if it cannot be kept.
    ///
    /// # Errors
    /// The file that a page is asked for in cannot be written to.
    pub fn announce(&self, plan: impl FnOnce(&mut TextWriter) -> io::Result<()>) -> Result<(), Complaint> {
        if !self.reports() {
            return Ok(());
        }
        self.report.iter().try_for_each(|path| super::report::check_report(path))?;
        // Who reads a log wants the report alone, and on a simulated volume nothing is at stake.
        if self.form.format() == Format::Text && !self.is_simulated && output::stderr_is_seen() {
            // A standard error that nobody can write to is no reason not to measure.
            let _ = output::warn_by(plan);
        }
        if self.keeps && self.place.history.is_none() {
            store::tell_of_no_place();
        }
        Ok(())
    }

    /// As [`Measuring::announce`]; where this is a rank of a job, it tells the others if it cannot begin.
    ///
    /// # Errors
    /// As there.
    pub fn announce_as_rank(
        &mut self,
        plan: impl FnOnce(&mut TextWriter) -> io::Result<()>,
    ) -> Result<(), Complaint> {
        self.announce(plan).map_err(|complaint| ranks::failed(complaint, self.fleet.take()))
    }

    /// Runs `measure` on a thread of its own, shown by its `course` and its `rows`, and shows its record by `show`, in
    /// the format asked for.
    ///
    /// # Errors
    /// It could not begin, or not be shown.
    pub fn run(
        self,
        measure: impl FnOnce(RunControl, &mut dyn StepObserver) -> Result<RunRecord, AssessError> + Send + 'static,
        course: impl Course,
        rows: Option<RowPrinter>,
        show: impl Fn(&RunRecord, &Style, Format, &mut TextWriter) -> io::Result<()>,
    ) -> Result<(RunRecord, Exit), Complaint> {
        if self.fleet.is_some() {
            return self.run_rank(measure, course, rows);
        }
        let place = self.place.clone();
        let (mut keeper, end, is_interrupted) = self.measured(
            measure,
            |bar, hub| HistoryKeeper::new(place, Some(bar)).followed(hub),
            course,
            rows,
        )?;
        let (record, is_given_up) = match end {
            MeasurementEnd::Ended(record) => (record, false),
            MeasurementEnd::GivenUp { note, record } => {
                output::warn(&format!("fathom: {note}"));
                let Some(record) = record else {
                    output::warn("fathom: nothing was measured");
                    return Ok((RunRecord::default(), Exit::Interrupted));
                };
                (*record, true)
            }
        };
        let kept = keeper.finish_and_print(&record, &self.form, show)?;
        if let Some(path) = &self.report {
            super::report::write_report(path, &record, &self.form.style())?;
        }
        let can_go_on = matches!(kept, Kept::Run(_)) && record.status != TestStatus::Complete;
        if let Some(line) = self.going_on.filter(|_| can_go_on && self.form.format() == Format::Text) {
            output::print(|out| writeln!(out.verbatim(), "To resume: {line}"))?;
        }
        let exit = match record.status {
            _ if is_given_up || is_interrupted => Exit::Interrupted,
            TestStatus::Failed | TestStatus::Incomplete => Exit::Failed,
            TestStatus::Complete | TestStatus::Skipped => Exit::Done,
        };
        Ok((record, exit))
    }

    /// Runs `measure` as one rank of a job; rank 0 keeps and shows the record of all ranks, which the others return empty.
    fn run_rank(
        mut self,
        measure: impl FnOnce(RunControl, &mut dyn StepObserver) -> Result<RunRecord, AssessError> + Send + 'static,
        course: impl Course,
        rows: Option<RowPrinter>,
    ) -> Result<(RunRecord, Exit), Complaint> {
        let Some(fleet) = self.fleet.take() else { return Ok((RunRecord::default(), Exit::Failed)) };
        let control = fleet.control(RunControl::default());
        let stop = control.stop_handle();
        let keeper = |_, _| RankKeeper::new(&fleet);
        let measured = self.measured_under(control, measure, keeper, course, rows);
        let mut complaint = None;
        let (record, failure) = match measured {
            Ok((_, MeasurementEnd::Ended(record), _)) => (Some(record), String::new()),
            Ok((_, MeasurementEnd::GivenUp { note, record }, _)) => {
                output::warn(&format!("fathom: {note}"));
                (record.map(|record| *record), note)
            }
            Err(error) => {
                let message = error.message.clone();
                complaint = Some(error);
                (None, message)
            }
        };
        let mut merged = RunRecord::default();
        let left = ranks::end(fleet, record.ok_or(failure), stop.reason(), complaint.is_some(), |record| {
            if let Some(path) = &self.report {
                super::report::write_report(path, &record, &self.form.style())?;
            }
            keep_and_print(&record, self.place.clone(), self.keeps, &self.form, shown::show)?;
            let exit = ranks::exit_of(&record);
            merged = record;
            Ok(exit)
        });
        complaint.map_or(Ok(()), Err)?;
        Ok((merged, left?))
    }

    /// As [`Measuring::measured`]; what was given up, which is said, has no result and counts as interrupted.
    ///
    /// # Errors
    /// It could not begin.
    pub fn measured_apart<T: Send + 'static, K: TestKeeper>(
        &self,
        measure: impl FnOnce(RunControl, &mut dyn StepObserver) -> Result<T, AssessError> + Send + 'static,
        keeper: impl FnOnce(Bar, Option<Arc<Hub>>) -> K,
        course: impl Course,
    ) -> Result<(K, Option<T>, bool), Complaint> {
        let (keeper, end, is_interrupted) = self.measured(measure, keeper, course, None)?;
        Ok(match end {
            MeasurementEnd::Ended(result) => (keeper, Some(result), is_interrupted),
            MeasurementEnd::GivenUp { note, .. } => {
                output::warn(&format!("fathom: {note}"));
                (keeper, None, true)
            }
        })
    }

    /// Runs `measure` on a thread of its own, kept by what `keeper` makes, which tells who can follow it, and shown by its `course` and its `rows`.
    /// Returns the keeper, how it ended, and whether a signal ended it.
    ///
    /// # Errors
    /// It could not begin.
    fn measured<T: Send + 'static, K: TestKeeper>(
        &self,
        measure: impl FnOnce(RunControl, &mut dyn StepObserver) -> Result<T, AssessError> + Send + 'static,
        keeper: impl FnOnce(Bar, Option<Arc<Hub>>) -> K,
        course: impl Course,
        rows: Option<RowPrinter>,
    ) -> Result<(K, MeasurementEnd<T>, bool), Complaint> {
        self.measured_under(RunControl::default(), measure, keeper, course, rows)
    }

    fn measured_under<T: Send + 'static, K: TestKeeper>(
        &self,
        control: RunControl,
        measure: impl FnOnce(RunControl, &mut dyn StepObserver) -> Result<T, AssessError> + Send + 'static,
        keeper: impl FnOnce(Bar, Option<Arc<Hub>>) -> K,
        course: impl Course,
        rows: Option<RowPrinter>,
    ) -> Result<(K, MeasurementEnd<T>, bool), Complaint> {
        let caught = signals::watch(control.stop_handle()).map_err(signals::unwatched)?;
        let units = self.form.style().units.unwrap_or_default();
        let next = if self.can_skip { NextKey::EndTest(control.clone()) } else { NextKey::Nothing };
        // In virtual time a run is over before somebody can follow it.
        let can_be_followed = self.keeps && !self.is_simulated && self.place.history.is_some();
        let run = LiveRun { steps: self.planned.clone(), next, units, can_be_followed };
        let live = LiveOutputs::open(&self.live, run)?;
        let keys = if live.has_screen() { None } else { keys::watch() };
        if keys.is_some() {
            output::warn("Press q or Ctrl-C to stop; what has been measured is kept.");
        }
        let display = RunDisplay::new(units);
        let (bar, left) = (display.bar.clone(), display.left_shown());
        caught.answer_status(bar.status());
        let handle = begin_measurement(control, measure)?;
        let mut keeper = keeper(bar.clone(), live.hub());
        let end = follow(
            handle,
            &mut keeper,
            &mut LiveObserver::new(RunProgress::new(course, rows, display), live.hub(), left),
        );
        bar.finish_and_clear();
        drop((keys, live));
        Ok((keeper, end?, caught.number().is_some()))
    }
}
