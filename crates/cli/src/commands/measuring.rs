//! The frame of the commands that run tests: says what will be done, runs it on its session with signals watched for and each
//! test kept as it ends, shows what came out, and tells how it ended. What is run and how it looks, each command says.

use std::io;
use std::sync::Arc;

use fathom_assess::AssessError;
use fathom_history::{HistoryPath, Store};
use fathom_record::{RunRecord, TestStatus};
use fathom_report::formats::Format;
use fathom_report::{Style, TextWriter};
use fathom_runner::Session;

use super::run_arguments::RunArguments;
use crate::exit::{Complaint, Exit};
use crate::rescue::{self, Rescue};
use crate::run_display::RunDisplay;
use crate::{output, signals, store};

/// How a run is shown and where it is kept.
pub struct Measuring {
    /// Where it is kept.
    pub place: HistoryPath,
    keeps: bool,
    format: Format,
    /// The command line that goes on with it where it did not come to its end.
    pub going_on: Option<String>,
}

impl Measuring {
    /// As `arguments` say.
    pub fn new(arguments: &RunArguments) -> Measuring {
        let (place, keeps) = (arguments.place(), arguments.keeps());
        Measuring { place, keeps, format: arguments.form.format(), going_on: None }
    }

    /// Says what is going to be done by `plan`, where people read it, and warns where it cannot be kept.
    ///
    /// # Errors
    /// Standard output cannot be written to.
    pub fn announce(&self, plan: impl FnOnce(&mut TextWriter) -> io::Result<()>) -> io::Result<()> {
        if self.format == Format::Text {
            output::print(plan)?;
        }
        if self.keeps && self.place.history.is_none() {
            store::tell_of_no_place();
        }
        Ok(())
    }

    /// Runs `measure` on `session` and shows its record by `show`, in the format asked for; that happens on another
    /// thread, and ends the program, where this one is stuck in a request to the target.
    ///
    /// # Errors
    /// It could not begin, or not be shown.
    pub fn run(
        self,
        mut session: Session,
        measure: impl FnOnce(&mut Session, &mut RunDisplay) -> Result<RunRecord, AssessError>,
        show: impl Fn(&RunRecord, &Style, Format, &mut TextWriter) -> io::Result<()> + Send + Sync + 'static,
    ) -> Result<(RunRecord, Exit), Complaint> {
        let stop = session.stop_handle();
        let caught = signals::watch(stop.clone(), Exit::Interrupted).map_err(signals::unwatched)?;
        let rescue = Rescue::new();
        let mut display = RunDisplay::new(self.place, rescue.clone());
        caught.answer_status(display.bar.status());
        let (format, going_on) = (self.format, self.going_on);
        let report = Arc::new(move |record: &RunRecord, mut store: Store| {
            store::tell(store.finish(record.status, &record.header, &record.findings));
            let kept = store.kept();
            let style = Style { run_id: store::run_id(&kept), ..output::style() };
            output::print(|out| {
                show(record, &style, format, out)?;
                if format != Format::Text {
                    return Ok(());
                }
                store::write_kept(&kept, out)?;
                let can_go_on = style.run_id.is_some() && record.status != TestStatus::Complete;
                going_on
                    .iter()
                    .filter(|_| can_go_on)
                    .try_for_each(|line| writeln!(out.verbatim(), "To go on: {line}"))
            })
        });
        let report_of_another = Arc::clone(&report);
        let _watch = rescue.watch(stop, move |record, store| {
            rescue::end(record, Exit::Interrupted, |record| report_of_another(record, store));
        })?;
        let ran = measure(&mut session, &mut display);
        let store = display.finish();
        let record = ran?;
        report(&record, store)?;
        let exit = match record.status {
            _ if caught.number().is_some() => Exit::Interrupted,
            TestStatus::Failed | TestStatus::Incomplete => Exit::Failed,
            TestStatus::Complete | TestStatus::Skipped => Exit::Done,
        };
        Ok((record, exit))
    }
}
