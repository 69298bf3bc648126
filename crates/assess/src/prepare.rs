//! `prepare`: brings a device or file into the state that a measurement needs, a stage after the other, and hands out each piece
//! as it ends, so that one that was killed can go on where it was.
//!
//! Every piece is a job like any other, so hung devices, failed requests and a stop are dealt with as everywhere.

mod plan;

use fathom_analysis::prepare::{CompletedPiece, NextPiece, next};
use fathom_model::Nanos;
use fathom_record::{
    Activity, PrepareActivity, PrepareStage, RunHeader, RunRecord, TestRecord, TestStatus, TestSummary,
};
use fathom_runner::{Session, WritePermit};
use fathom_sys::io::{FallocateMode, OpenFlags, fallocate, open_target};

pub use plan::PreparePlan;
pub use plan::{PrepareKind, PrepareTarget};
pub use plan::{PrepareSettings, PrepareWorkload};

use crate::AssessError;
use crate::control::{MeasurementEvent, MeasurementStep, StepObserver};
use crate::error::plain;
use crate::findings::findings_of;
use crate::measure::measure;
use crate::until_steady::{Rounds, until_steady};

/// Carries out `plan` on `session`, going on from the pieces of an earlier run.
///
/// # Errors
/// The file could not be made; nothing was done then.
pub fn prepare(
    plan: &PreparePlan,
    earlier: Vec<TestRecord>,
    session: &mut Session,
    observer: &mut dyn StepObserver,
) -> Result<RunRecord, AssessError> {
    session.set_permit(WritePermit::own(&plan.settings.run.destroy));
    make_file(plan, session)?;
    let mut record =
        RunRecord { status: TestStatus::Complete, header: header(plan, session), ..RunRecord::default() };
    observer.step(&MeasurementEvent::Begun(Box::new(record.header.clone())));
    let mut done = Vec::new();
    for test in earlier {
        // Rounds before a rest tell nothing of those after it.
        let Some(piece) = CompletedPiece::of(&test).filter(|done| plan.stages.contains(&done.piece.stage))
        else {
            continue;
        };
        observer.step(&MeasurementEvent::StepEnded(Box::new(test.clone())));
        done.push(piece);
        record.tests.push(test);
    }
    let mut workload_has_ended = false;
    loop {
        let test = match next(&plan.stages, plan.target.size, &done, workload_has_ended) {
            NextPiece::Done => break,
            NextPiece::Piece(piece) => {
                observer.step(&step(plan, piece.stage, piece.id()));
                let title = piece.stage.title().to_owned();
                measure(piece.id(), title, plan.job_options(&piece), session, observer)
            }
            NextPiece::Workload => {
                workload_has_ended = true;
                settle(plan, session, observer)
            }
        };
        observer.step(&MeasurementEvent::StepEnded(Box::new(test.clone())));
        done.extend(CompletedPiece::of(&test));
        record.header.job_text.push_str(&test.fio);
        record.header.job_text.push('\n');
        let status = test.status;
        record.tests.push(test);
        if let Some(reason) = session.stop_handle().reason() {
            record.header.interrupted = Some(reason);
            record.status = TestStatus::Incomplete;
            break;
        }
        if status != TestStatus::Complete {
            record.status = TestStatus::Failed;
            break;
        }
    }
    if record.status == TestStatus::Complete && record.tests.iter().any(has_errors) {
        record.status = TestStatus::Failed;
    }
    record.findings = findings_of(&record);
    Ok(record)
}

/// Result line of a piece of `stage`, or of all its rounds.
fn step(plan: &PreparePlan, stage: PrepareStage, id: String) -> MeasurementEvent {
    let number = plan.stages.iter().position(|known| *known == stage).unwrap_or(0) + 1;
    let (title, of) = (stage.title().to_owned(), Some(plan.stages.len()));
    MeasurementEvent::StepBegun(MeasurementStep { id, title, number, of, spent_ns: 0 })
}

fn has_errors(test: &TestRecord) -> bool {
    TestSummary::new(test).errors.iter().any(|error| error.count > 0)
}

/// Runs the workload until it is steady.
fn settle(plan: &PreparePlan, session: &Session, observer: &mut dyn StepObserver) -> TestRecord {
    let workload = plan.settings.precondition.clone().unwrap_or_default();
    let round =
        plan.rounds.and_then(|rounds| rounds.round).unwrap_or(Nanos(fathom_analysis::steady::ROUND_NS));
    let rounds = plan.rounds.unwrap_or(Rounds { round: Some(round), budget: round });
    let stage = PrepareStage::Workload;
    observer.step(&step(plan, stage, stage.id().to_owned()));
    until_steady(&rounds, session, |index, so_far| {
        observer.step(&MeasurementEvent::RoundBegun(index, Box::new(so_far.clone())));
        let options = plan.round_options(&workload, round, index);
        measure(stage.id().to_owned(), stage.title().to_owned(), options, session, observer)
    })
}

/// Makes the file where there is none, and reserves its space, so that it does not run out half way. It gets its length as it is
/// filled: one that is left half done must not look whole.
fn make_file(plan: &PreparePlan, session: &mut Session) -> Result<(), AssessError> {
    let PrepareTarget { kind: PrepareKind::NewFile, file, size, .. } = &plan.target else { return Ok(()) };
    let flags = OpenFlags { write: true, create: true, exclusive: true, ..OpenFlags::default() };
    let fail = |what: &str, error: std::io::Error, hint: &str| {
        let reason = format!("cannot be {what}: {}", plain(&error));
        AssessError::target(&plan.settings.run.target, reason, hint)
    };
    let made = open_target(file, flags)
        .map_err(|error| fail("made", error, "choose a directory that this user can write to"))?;
    match fallocate(&made, FallocateMode::KeepSize, 0, *size) {
        Ok(()) => {}
        // Not every file system can reserve.
        Err(error) if matches!(error.raw_os_error(), Some(95 | 38 | 22)) => {}
        Err(error) => {
            let _ = std::fs::remove_file(file);
            return Err(fail("preallocated", error, "choose a smaller --size, or free some space"));
        }
    }
    // Each piece is written to this file, whatever its name comes to mean.
    session.hold(file.clone(), made).map_err(|error| fail("inspected", error, "check the file system"))
}

fn header(plan: &PreparePlan, session: &Session) -> RunHeader {
    let activity = Activity::Prepare(PrepareActivity { stages: plan.stages.clone() });
    let (name, settings) = (plan.target_name(), &plan.settings.run);
    let header = crate::conditions::header(activity, &name, settings, &[], plan.seed, &plan.notes, session);
    RunHeader { size_bytes: plan.target.size, ..header }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::RunSettings;
    use fathom_analysis::prepare::results;
    use fathom_engine::sim::FixedLatency;

    const MIB: u64 = 1 << 20;

    fn target(size: u64) -> PrepareTarget {
        PrepareTarget {
            kind: PrepareKind::Simulated,
            file: "simulated".into(),
            size,
            capacity: size,
            may_write: true,
            unit: 512,
            sparse: false,
            filesystem: None,
            volume: None,
        }
    }

    fn settings() -> PrepareSettings {
        PrepareSettings {
            run: RunSettings { seed: Some(1), ..RunSettings::default() },
            trim: true,
            precondition: Some(PrepareWorkload::default()),
            touch: true,
            round: Some(Nanos::from_secs(2)),
            ..PrepareSettings::default()
        }
    }

    fn prepared(earlier: Vec<TestRecord>, size: u64) -> RunRecord {
        let plan = PreparePlan::on(target(size), settings()).unwrap();
        let millis = Nanos::from_millis(1);
        let model = FixedLatency { read: millis, write: millis, flush: millis, parallelism: 8 };
        prepare(&plan, earlier, &mut Session::simulated(model, size), &mut ()).unwrap()
    }

    #[test]
    fn every_stage_covers_all_of_the_target_and_the_workload_settles() {
        let size = 200 * MIB + 512;
        let record = prepared(Vec::new(), size);
        assert_eq!(record.status, TestStatus::Complete);
        let ids: Vec<&str> = record.tests.iter().map(|test| test.id.as_str()).collect();
        assert_eq!(
            ids,
            [
                "trim-0",
                "trim-67108864",
                "trim-201326592",
                "precondition-1-0",
                "precondition-1-67108864",
                "precondition-1-209715200",
                "precondition-2-0",
                "precondition-2-67108864",
                "precondition-2-209715200",
                "precondition-workload",
                "touch-0",
                "touch-67108864",
                "touch-209715200",
            ]
        );
        assert_eq!(results(&record).len(), 5);
        for result in results(&record) {
            assert!(result.complete, "{result:?}");
            if result.stage != PrepareStage::Workload {
                assert_eq!((result.covered_bytes, result.moved_bytes), (Some(size), size), "{result:?}");
            }
        }
        let rounds = record.tests[9].rounds.clone().unwrap();
        assert_eq!((rounds.values.len(), rounds.steady), (5, true));
        assert_eq!(record.findings, []);
    }

    #[test]
    fn what_was_done_before_is_not_done_again_but_the_rounds_are() {
        let size = 200 * MIB;
        let mut earlier = prepared(Vec::new(), size).tests;
        earlier.retain(|test| !test.id.starts_with("touch"));
        let record = prepared(earlier.clone(), size);
        let again: Vec<&str> =
            record.tests.iter().filter(|test| !earlier.contains(test)).map(|test| test.id.as_str()).collect();
        let settled = record.tests.iter().filter(|test| test.id == "precondition-workload").count();
        assert!(
            again.iter().all(|id| id.starts_with("touch") || *id == "precondition-workload"),
            "{again:?}"
        );
        assert_eq!((again.contains(&"touch-0"), settled), (true, 1));
        earlier[0].status = TestStatus::Incomplete;
        let ids: Vec<String> = prepared(earlier, size).tests.iter().map(|test| test.id.clone()).collect();
        assert!(ids.contains(&"trim-0".to_owned()), "{ids:?}");
    }
}
