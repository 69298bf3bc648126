//! The engines that keep several I/Os in flight, and their limits.

use fathom_model::units;

use super::Judgement;
use super::facts::{DoctorFacts, LockedMemory, Refusal};

/// Registered buffers of the usual tests fit into this.
const ENOUGH_LOCKED: u64 = 8 << 20;
/// Share of libaio's requests from which on new jobs may find none.
const NEARLY_ALL: f64 = 0.9;

/// What to do where the kernel or a container forbids io_uring.
const ALLOW_IO_URING: &str =
    "Allow io_uring_setup in the seccomp profile of the container, or use Linux 5.6 or later.";
const ENABLE_IO_URING: &str = "Run `sysctl kernel.io_uring_disabled=0` as root.";
const ALLOW_LIBAIO: &str =
    "Raise fs.aio-max-nr (`sysctl fs.aio-max-nr=1048576`), or allow io_setup in the container.";

pub(super) fn io_uring(facts: &DoctorFacts) -> Judgement {
    let refusal = match &facts.io_uring {
        None => return Judgement::unknown("not tested."),
        Some(Ok(())) => return Judgement::ok("available."),
        Some(Err(refusal)) => refusal,
    };
    let disabled = facts.header.host().other.get("io_uring_disabled").filter(|value| *value != "0");
    let remedy = if disabled.is_some() { ENABLE_IO_URING } else { ALLOW_IO_URING };
    let why = match disabled {
        Some(value) => format!("not available (kernel.io_uring_disabled is {value})"),
        None => format!("not available ({})", refusal.reason),
    };
    match &facts.libaio {
        Some(Ok(())) => Judgement::note(format!("{why}: tests use libaio instead."), remedy),
        _ => Judgement::problem(
            format!("{why}, and neither is libaio: queue depths above 1 cannot be measured."),
            remedy,
        ),
    }
}

pub(super) fn libaio(facts: &DoctorFacts) -> Judgement {
    let share = |(reserved, most): (u64, u64)| reserved as f64 / most.max(1) as f64;
    match (&facts.libaio, facts.aio_requests) {
        (None, _) => Judgement::unknown("not tested."),
        (Some(Ok(())), Some((reserved, most))) if share((reserved, most)) >= NEARLY_ALL => Judgement::note(
            format!(
                "available, but {} of {} requests of the machine are reserved.",
                units::grouped(reserved),
                units::grouped(most)
            ),
            ALLOW_LIBAIO,
        ),
        (Some(Ok(())), _) => Judgement::ok("available."),
        (Some(Err(Refusal { reason, .. })), _) => match &facts.io_uring {
            Some(Ok(())) => Judgement::note(
                format!("not available ({reason}): jobs with ioengine=libaio fail."),
                ALLOW_LIBAIO,
            ),
            _ => Judgement::problem(format!("not available ({reason})."), ALLOW_LIBAIO),
        },
    }
}

pub(super) fn locked_memory(facts: &DoctorFacts) -> Judgement {
    match facts.locked_memory {
        None => Judgement::unknown("the limit is unknown."),
        Some(LockedMemory::Unlimited) => Judgement::ok("no limit for this user."),
        Some(LockedMemory::Bytes(bytes)) if bytes >= ENOUGH_LOCKED => {
            Judgement::ok(format!("{} may be registered.", units::bytes(bytes)))
        }
        Some(LockedMemory::Bytes(bytes)) => Judgement::note(
            format!("{} may be registered: larger tests use unregistered buffers.", units::bytes(bytes)),
            "Raise RLIMIT_MEMLOCK (`ulimit -l unlimited`), or run as root.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::CheckStatus::{self, Note, Ok as Good, Problem, Unknown};
    use super::super::facts::fixture::{good, refused};
    use super::*;

    type Probe = Option<Result<(), Refusal>>;

    #[test]
    fn one_of_both_engines_is_enough() {
        let check = |uring: Probe, aio: Probe, expected: (CheckStatus, CheckStatus)| {
            let facts = DoctorFacts { io_uring: uring.clone(), libaio: aio.clone(), ..good() };
            assert_eq!((io_uring(&facts).status, libaio(&facts).status), expected, "{uring:?} {aio:?}");
        };
        let ok = || Some(Ok(()));
        check(ok(), ok(), (Good, Good));
        check(refused("permission denied"), ok(), (Note, Good));
        check(ok(), refused("function not implemented"), (Good, Note));
        check(refused("a"), refused("b"), (Problem, Problem));
        check(None, None, (Unknown, Unknown));
    }

    #[test]
    fn the_switch_of_the_kernel_is_named_where_it_is_the_reason() {
        let mut facts = DoctorFacts { io_uring: refused("operation not permitted"), ..good() };
        let judged = io_uring(&facts);
        assert!(judged.result.contains("operation not permitted"), "{}", judged.result);
        assert_eq!(judged.remedy.as_deref(), Some(ALLOW_IO_URING));
        facts.header.hosts[0].other.insert("io_uring_disabled".to_owned(), "2".to_owned());
        let judged = io_uring(&facts);
        assert!(judged.result.contains("kernel.io_uring_disabled is 2"), "{}", judged.result);
        assert_eq!(judged.remedy.as_deref(), Some(ENABLE_IO_URING));
    }

    #[test]
    fn few_requests_that_are_left_are_noted() {
        let status =
            |reserved| libaio(&DoctorFacts { aio_requests: Some((reserved, 1000)), ..good() }).status;
        assert_eq!([status(0), status(899), status(900), status(1000)], [Good, Good, Note, Note]);
    }

    #[test]
    fn small_limits_of_locked_memory_are_noted() {
        let status = |limit| locked_memory(&DoctorFacts { locked_memory: limit, ..good() }).status;
        assert_eq!(status(Some(LockedMemory::Bytes(8 << 20))), Good);
        assert_eq!(status(Some(LockedMemory::Bytes(32 << 10))), Note);
        assert_eq!(status(None), Unknown);
    }
}
