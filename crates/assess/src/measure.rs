//! One measurement: options in, the record of a test out. What goes wrong is its result.

use fathom_model::RunPlan;
use fathom_options::{OptionError, Section};
use fathom_record::{TestMeta, TestRecord, TestStatus, test_record};
use fathom_runner::{RunError, RunObserver, Session};

use crate::machine::{engine_rows, host_facts};
use crate::site::JobWords;
use crate::suite::section_of;

/// Runs the job that these options of fio describe.
pub(crate) fn measure(
    id: String,
    title: String,
    words: JobWords,
    session: &Session,
    observer: &mut dyn RunObserver,
) -> TestRecord {
    measure_together(id.clone(), title, &[(&id, words)], session, observer)
}

/// A job by its name and fio's options.
pub(crate) type NamedJob<'a> = (&'a str, JobWords);

/// Runs several jobs, one after the other, as one test. All but the first wait for the one
/// before.
pub(crate) fn measure_in_turn(
    id: String,
    title: String,
    jobs: &[NamedJob<'_>],
    session: &Session,
    observer: &mut dyn RunObserver,
) -> TestRecord {
    let mut jobs = jobs.to_vec();
    for (_, words) in jobs.iter_mut().skip(1) {
        words.push(("stonewall".to_owned(), String::new()));
    }
    measure_together(id, title, &jobs, session, observer)
}

/// Runs several jobs at once, as one test.
pub(crate) fn measure_together(
    id: String,
    title: String,
    jobs: &[NamedJob<'_>],
    session: &Session,
    observer: &mut dyn RunObserver,
) -> TestRecord {
    let engines = engine_rows();
    let section = |(name, words): &NamedJob<'_>| section_of(name, words, &engines);
    let sections: Result<Vec<Section>, OptionError> = jobs.iter().map(section).collect();
    let commands = sections.iter().flatten().map(Section::command_line);
    let fio = commands.reduce(|all, next| format!("{all}{}", next.strip_prefix("fio").unwrap_or(&next)));
    let plan = sections.and_then(|sections| fathom_options::resolve(&sections, &host_facts()));
    measure_plan(TestMeta { id, title, fio: fio.unwrap_or_default() }, plan, session, observer)
}

/// Runs a plan, if there is one.
pub(crate) fn measure_plan(
    meta: TestMeta,
    plan: Result<RunPlan, OptionError>,
    session: &Session,
    observer: &mut dyn RunObserver,
) -> TestRecord {
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => return TestRecord::failed(meta, with_hint(error.to_string(), error.hint())),
    };
    match session.run(&plan, observer) {
        Ok(outcome) => {
            let mut record = test_record(meta, &plan, outcome);
            // A reader of the table has no other place to learn the remedy from.
            if let Some(failure) = record.jobs.iter().find_map(|job| job.error.as_ref()) {
                record.reason = Some(with_hint(failure.message.clone(), failure.hint.clone()));
            }
            record
        }
        Err(RunError::Stopped { reason }) => TestRecord {
            status: TestStatus::Incomplete,
            interrupted: Some(reason.clone()),
            reason: Some(reason),
            ..TestRecord::skipped(meta, "")
        },
        Err(error) => TestRecord::failed(meta, with_hint(error.to_string(), error.hint())),
    }
}

fn with_hint(error: String, hint: Option<String>) -> String {
    match hint {
        Some(hint) => format!("{error} ({hint})"),
        None => error,
    }
}
