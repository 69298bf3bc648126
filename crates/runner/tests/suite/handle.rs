//! A run that is controlled through its handle, in virtual time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::channel;

use fathom_engine::sim::{BEGIN_NS, FixedLatency};
use fathom_model::plan::Mix;
use fathom_model::{Nanos, RunPlan};
use fathom_runner::{Progress, RunControl, RunError, RunEvent, RunHandle, RunState, Session};
use fathom_stats::RunOutcome;

use crate::plans::{job, timed};

const MODEL: FixedLatency = FixedLatency {
    read: Nanos::from_millis(1),
    write: Nanos::from_millis(1),
    flush: Nanos::from_millis(1),
    parallelism: 1,
};

type Handle = RunHandle<RunEvent, Result<RunOutcome, RunError>>;

/// A run of one phase for each of `seconds`.
fn begin(control: RunControl, seconds: &[u64]) -> Handle {
    let phase = |(phase, &seconds): (usize, &u64)| {
        let mut job = timed(job("read", Mix::Read, true, 1), seconds);
        job.phase = phase as u32;
        job
    };
    let plan = RunPlan { jobs: seconds.iter().enumerate().map(phase).collect(), ..RunPlan::default() };
    RunHandle::prepare(control, || Session::simulated(MODEL, 1 << 30), Arc::new(plan)).expect("a thread")
}

/// Receives events until the run has ended; returns also the number of snapshots.
fn finish(handle: &mut Handle) -> (RunOutcome, usize) {
    let mut snapshots = 0;
    loop {
        match handle.wait() {
            Progress::Ended(outcome) => return (outcome.expect("the plan fits"), snapshots),
            Progress::Event(RunEvent::Snapshot(_)) => snapshots += 1,
            Progress::Event(_) | Progress::Waiting => {}
            Progress::Stuck(state) => panic!("stuck in {state:?}"),
        }
    }
}

fn wait_until_ready(handle: &mut Handle, number: u64) -> u64 {
    loop {
        if let Some(phase) = handle.control().ready().filter(|phase| phase.number == number) {
            return phase.at_ns;
        }
        assert!(!matches!(handle.wait(), Progress::Ended(_) | Progress::Stuck(_)));
    }
}

#[test]
fn a_run_without_a_gate_ends_by_itself() {
    let mut handle = begin(RunControl::default(), &[2, 3]);
    let (outcome, snapshots) = finish(&mut handle);
    assert_eq!(outcome.workers.iter().map(|it| it.measured.read.ios).collect::<Vec<_>>(), [2000, 3000]);
    assert!(snapshots >= 10, "{snapshots} of 5 s");
    assert_eq!((outcome.interrupted, handle.stop_reason()), (None, None));
    assert!(handle.control().snapshot().is_some_and(|snapshot| snapshot.elapsed_ns >= 5_000_000_000));
}

#[test]
fn every_phase_waits_until_it_is_started() {
    const SECOND: u64 = 1_000_000_000;
    let mut handle = begin(RunControl::holding_phases(), &[2, 3]);
    let at_ns = wait_until_ready(&mut handle, 0);
    assert_eq!(
        (at_ns, handle.control().now_ns(), handle.control().snapshot()),
        (BEGIN_NS, Some(BEGIN_NS), None)
    );
    assert!(matches!(handle.control().state(), RunState::Ready(_)));
    assert!(handle.control().start_at(BEGIN_NS + 10 * SECOND));
    let at_ns = wait_until_ready(&mut handle, 1);
    assert_eq!(at_ns, BEGIN_NS + 12 * SECOND, "10 s of waiting and 2 s of running");
    // A time in the past means immediately.
    assert!(handle.control().start_at(0));
    let (outcome, _) = finish(&mut handle);
    let measured = |index: usize| &outcome.workers[index].measured;
    assert_eq!([0, 1].map(|index| measured(index).read.ios), [2000, 3000]);
    assert_eq!(measured(1).start_ns, measured(0).end_ns);
    assert!(!handle.control().start_at(0), "nothing is held");
}

#[test]
fn a_stop_ends_a_waiting_phase_and_keeps_earlier_ones() {
    let mut handle = begin(RunControl::holding_phases(), &[2, 3]);
    wait_until_ready(&mut handle, 0);
    assert!(handle.control().start_at(0));
    wait_until_ready(&mut handle, 1);
    handle.control().stop_handle().request("enough");
    let (outcome, _) = finish(&mut handle);
    assert_eq!(outcome.interrupted.as_deref(), Some("enough"));
    assert_eq!(outcome.workers.iter().map(|it| it.measured.read.ios).collect::<Vec<_>>(), [2000, 0]);
}

#[test]
fn a_phase_that_is_ended_leaves_the_later_ones() {
    // Longer than it can have run before it is ended.
    let mut handle = begin(RunControl::default(), &[10_000, 3]);
    while handle.control().snapshot().is_none() {
        assert!(!matches!(handle.wait(), Progress::Ended(_)));
    }
    assert!(handle.control().end_phase("next"));
    let (outcome, _) = finish(&mut handle);
    let ios = [0, 1].map(|index| outcome.workers[index].measured.read.ios);
    assert!(0 < ios[0] && ios[0] < 10_000_000, "{ios:?}");
    assert_eq!((ios[1], outcome.interrupted.as_deref()), (3000, Some("next")));
    assert_eq!(handle.stop_reason(), None, "the run itself was not stopped");
}

#[test]
fn snapshots_have_what_their_tick_measured() {
    let mut handle = begin(RunControl::default(), &[3]);
    let (mut ios, mut bins, mut spans_ns, mut sums_ns) = (0, 0, 0, 0);
    let outcome = loop {
        match handle.wait() {
            Progress::Ended(outcome) => break outcome.expect("the plan fits"),
            Progress::Event(RunEvent::Snapshot(snapshot)) => {
                ios += snapshot.ios[0];
                bins += snapshot.clat_bins.iter().map(|(_, count)| count).sum::<u64>();
                (spans_ns, sums_ns) = (spans_ns + snapshot.tick_ns, sums_ns + snapshot.clat_sum_ns);
                assert!(snapshot.ramp_clat_bins.is_empty() && snapshot.devices.is_empty());
            }
            _ => {}
        }
    };
    let read = &outcome.workers[0].measured.read;
    assert_eq!((ios, bins, spans_ns), (read.ios, read.ios, outcome.elapsed_ns));
    assert_eq!(u128::from(sums_ns), read.clat.moments.sum);
}

#[test]
fn a_stop_while_running_gives_the_partial_result() {
    // More snapshots than the queue can contain, so it cannot have ended before it is stopped.
    let mut handle = begin(RunControl::default(), &[10_000]);
    while handle.control().snapshot().is_none() {
        assert!(!matches!(handle.wait(), Progress::Ended(_)));
    }
    assert_eq!(
        handle.control().snapshot().map(|snapshot| (snapshot.running, snapshot.workers)),
        Some((1, 1))
    );
    handle.ask_for_outcome();
    let so_far = loop {
        if let Progress::Event(RunEvent::OutcomeSoFar(outcome)) = handle.wait() {
            break outcome;
        }
    };
    handle.control().stop_handle().request("enough");
    let (outcome, _) = finish(&mut handle);
    let ios = |outcome: &RunOutcome| outcome.workers[0].measured.read.ios;
    assert!(0 < ios(&so_far) && ios(&so_far) <= ios(&outcome) && ios(&outcome) < 10_000_000);
    assert_eq!(outcome.interrupted.as_deref(), Some("enough"));
}

#[test]
fn two_runs_in_one_process_are_independent() {
    let mut handles = [2, 10_000].map(|seconds| begin(RunControl::holding_phases(), &[seconds]));
    for handle in &mut handles {
        wait_until_ready(handle, 0);
    }
    let [short, long] = &mut handles;
    assert!(short.control().start_at(0));
    assert_eq!(finish(short).0.workers[0].measured.read.ios, 2000);
    assert!(
        long.control().ready().is_some()
            && long.stop_reason().is_none()
            && long.control().snapshot().is_none()
    );
    long.control().stop_handle().request("enough");
    let (outcome, _) = finish(long);
    assert_eq!((outcome.workers[0].measured.read.ios, short.stop_reason()), (0, None));
}

#[test]
fn a_thread_that_does_not_respond_is_abandoned_after_a_stop() {
    let (release, released) = channel::<()>();
    let mut handle: Handle = RunHandle::begin(RunControl::default(), move |events| {
        let interim = RunOutcome { elapsed_ns: 7, ..RunOutcome::default() };
        events.tell(RunEvent::OutcomeSoFar(Box::new(interim)));
        let _ = released.recv();
        Ok(RunOutcome::default())
    })
    .expect("a thread");
    handle.control().stop_handle().request("signal 2");
    let mut told = Vec::new();
    let state = loop {
        match handle.wait() {
            Progress::Event(RunEvent::OutcomeSoFar(outcome)) => told.push(outcome.elapsed_ns),
            Progress::Event(_) | Progress::Waiting => {}
            Progress::Stuck(state) => break state,
            Progress::Ended(_) => panic!("it cannot have ended"),
        }
    };
    assert_eq!((state, told), (RunState::Preparing, vec![7]));
    drop(release);
}

#[test]
fn a_run_beside_a_session_is_stuck_where_a_request_exceeds_its_patience() {
    let session = Session::real();
    let (release, released) = channel::<()>();
    let mut handle: RunHandle<(), ()> =
        RunHandle::beside(&session, Nanos::from_millis(1), move |_, _| _ = released.recv())
            .expect("a thread");
    let state = loop {
        match handle.wait() {
            Progress::Stuck(state) => break state,
            Progress::Ended(()) => panic!("it cannot have ended"),
            Progress::Event(()) | Progress::Waiting => {}
        }
    };
    drop((handle, release));
    assert_eq!((state, session.stop_handle().is_requested()), (RunState::Preparing, false));
}

#[test]
fn a_run_beside_a_session_stops_with_it() {
    let session = Session::real();
    session.stop_handle().request("signal 2");
    let own_stop = |own: &Session, _: &mut _| own.stop_handle().is_requested();
    let mut handle: RunHandle<(), bool> =
        RunHandle::beside(&session, Nanos::from_secs(60), own_stop).expect("a thread");
    let is_stopped = loop {
        if let Progress::Ended(is_stopped) = handle.wait() {
            break is_stopped;
        }
    };
    assert!(is_stopped);
}

#[test]
fn a_panic_of_the_run_is_resumed_in_the_controlling_thread() {
    let mut handle: Handle = RunHandle::begin(RunControl::default(), |_| panic!("a bug")).expect("a thread");
    let panic = catch_unwind(AssertUnwindSafe(|| while !matches!(handle.wait(), Progress::Ended(_)) {}));
    assert_eq!(panic.expect_err("the run panicked").downcast_ref(), Some(&"a bug"));
}
