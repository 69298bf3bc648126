//! The fault schedule of a volume: stalls, errors and slow periods at fixed times.

use crate::rng::VolumeRng;

/// One fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Start, ns since the volume's beginning.
    pub at_ns: u64,
    /// Length, ns; [`u64::MAX`] = without end.
    pub length_ns: u64,
    /// The kind.
    pub kind: FaultKind,
}

/// Kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The volume stalls: no request begins, and requests in service end later by the length of the stall. Burst
    /// credits accrue meanwhile.
    Stall,
    /// Requests that begin during the fault fail.
    Error {
        /// Failed requests per million.
        per_million: u32,
        /// Their errno.
        errno: i32,
    },
    /// Requests that begin during the fault take longer.
    Slow {
        /// Their latency, in percent of the normal latency.
        percent: u32,
    },
}

impl Fault {
    pub(crate) fn end_ns(&self) -> u64 {
        self.at_ns.saturating_add(self.length_ns)
    }

    fn holds(&self, at: u64) -> bool {
        self.at_ns <= at && at < self.end_ns()
    }
}

/// The first invalid fault of a schedule: `(index, field, reason)`.
pub(crate) fn invalid_fault(faults: &[Fault]) -> Option<(usize, &'static str, String)> {
    let mut stalled_until = 0;
    for (index, fault) in faults.iter().enumerate() {
        let follows = index == 0 || faults[index - 1].at_ns <= fault.at_ns;
        let problem = match fault.kind {
            _ if !follows => Some(("at_ns", "is before the start of the previous fault")),
            _ if fault.length_ns == 0 => Some(("length_ns", "is 0")),
            FaultKind::Stall if fault.at_ns < stalled_until => Some(("at_ns", "overlaps another stall")),
            FaultKind::Error { per_million: 0 | 1_000_001.., .. } => {
                Some(("per_million", "must be between 1 and a million"))
            }
            FaultKind::Error { errno: ..=0, .. } => Some(("errno", "must be above 0")),
            FaultKind::Slow { percent: 0 } => Some(("percent", "is 0")),
            _ => None,
        };
        if let Some((field, reason)) = problem {
            return Some((index, field, reason.to_owned()));
        }
        if fault.kind == FaultKind::Stall {
            stalled_until = fault.end_ns();
        }
    }
    None
}

/// The current and future faults.
#[derive(Clone, Debug)]
pub(crate) struct FaultSchedule {
    faults: Vec<Fault>,
    /// Start of the first fault.
    begins: u64,
    /// End of the first fault.
    first_end: u64,
    rng: VolumeRng,
}

impl FaultSchedule {
    pub(crate) fn new(faults: &[Fault], rng: VolumeRng) -> Self {
        let mut schedule = FaultSchedule { faults: faults.to_vec(), begins: 0, first_end: 0, rng };
        schedule.look_ahead();
        schedule
    }

    /// Drops the faults that have ended at `now`; later calls must not refer to earlier times.
    #[inline(always)]
    pub(crate) fn advance(&mut self, now: u64) {
        if now >= self.first_end {
            self.faults.retain(|fault| fault.end_ns() > now);
            self.look_ahead();
        }
    }

    /// `at`, or the end of the stall that contains it.
    #[inline(always)]
    pub(crate) fn resumed(&self, at: u64) -> u64 {
        if at < self.begins {
            return at;
        }
        self.stalls().fold(at, |at, stall| if stall.holds(at) { stall.end_ns() } else { at })
    }

    /// The end of a request that begins at `begin` and takes `latency`.
    #[inline(always)]
    pub(crate) fn end(&self, begin: u64, latency: u64) -> u64 {
        let end = begin.saturating_add(latency);
        if end < self.begins {
            return end;
        }
        let slow = self.faults.iter().filter(|fault| fault.holds(begin)).fold(latency, |latency, fault| {
            let FaultKind::Slow { percent } = fault.kind else { return latency };
            u64::try_from(u128::from(latency) * u128::from(percent) / 100).unwrap_or(u64::MAX)
        });
        self.stalls().fold(begin.saturating_add(slow), |end, stall| {
            let is_hit = begin <= stall.at_ns && stall.at_ns < end;
            if is_hit { end.saturating_add(stall.length_ns) } else { end }
        })
    }

    /// The error of a request that begins at `begin`, if it fails.
    #[inline(always)]
    pub(crate) fn failure(&mut self, begin: u64) -> Option<i32> {
        if begin < self.begins {
            return None;
        }
        let rng = &mut self.rng;
        self.faults.iter().filter(|fault| fault.holds(begin)).find_map(|fault| match fault.kind {
            FaultKind::Error { per_million, errno } => {
                (rng.below(1_000_000) < u64::from(per_million)).then_some(errno)
            }
            _ => None,
        })
    }

    fn stalls(&self) -> impl Iterator<Item = &Fault> {
        self.faults.iter().filter(|fault| fault.kind == FaultKind::Stall)
    }

    fn look_ahead(&mut self) {
        self.begins = self.faults.iter().map(|fault| fault.at_ns).min().unwrap_or(u64::MAX);
        self.first_end = self.faults.iter().map(Fault::end_ns).min().unwrap_or(u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(at_ns: u64, length_ns: u64, kind: FaultKind) -> Fault {
        Fault { at_ns, length_ns, kind }
    }

    #[test]
    fn stalls_delay_new_requests_and_those_in_service() {
        let faults = [fault(100, 50, FaultKind::Stall), fault(200, u64::MAX, FaultKind::Stall)];
        let mut schedule = FaultSchedule::new(&faults, VolumeRng::stream(0, 0));
        for (at, expected) in [(0, 0), (99, 99), (100, 150), (149, 150), (150, 150), (200, u64::MAX)] {
            assert_eq!(schedule.resumed(at), expected, "begins at {at}");
        }
        for (begin, latency, expected) in [
            (0, 99, 99),
            (0, 100, 100),
            (0, 101, 151),
            (90, 20, 160),
            (150, 50, 200),
            (150, 51, u64::MAX),
            (90, 120, u64::MAX),
        ] {
            assert_eq!(schedule.end(begin, latency), expected, "{begin} for {latency}");
        }
        schedule.advance(150);
        assert_eq!((schedule.faults.len(), schedule.resumed(150)), (1, 150));
    }

    #[test]
    fn slowness_and_errors_apply_at_the_start_of_a_request() {
        let error = FaultKind::Error { per_million: 1_000_000, errno: 5 };
        let faults = [fault(10, 10, FaultKind::Slow { percent: 300 }), fault(15, 10, error)];
        let mut schedule = FaultSchedule::new(&faults, VolumeRng::stream(0, 0));
        for (begin, end, errno) in
            [(9, 13, None), (10, 22, None), (15, 27, Some(5)), (20, 24, Some(5)), (25, 29, None)]
        {
            assert_eq!((schedule.end(begin, 4), schedule.failure(begin)), (end, errno), "{begin}");
        }
    }

    #[test]
    fn the_error_rate_is_as_configured() {
        let error = FaultKind::Error { per_million: 250_000, errno: 5 };
        let mut schedule = FaultSchedule::new(&[fault(0, 1, error)], VolumeRng::stream(7, 0));
        let failed = (0..100_000).filter(|_| schedule.failure(0).is_some()).count();
        assert!((24_500..25_500).contains(&failed), "{failed}");
    }

    #[test]
    fn invalid_schedules_are_refused() {
        let error = |per_million, errno| FaultKind::Error { per_million, errno };
        for (faults, expected) in [
            (vec![], None),
            (vec![fault(0, 5, FaultKind::Stall), fault(5, 5, FaultKind::Stall)], None),
            (vec![fault(0, 5, FaultKind::Stall), fault(4, 5, FaultKind::Stall)], Some((1, "at_ns"))),
            (vec![fault(9, 5, FaultKind::Stall), fault(4, 1, FaultKind::Stall)], Some((1, "at_ns"))),
            (vec![fault(0, 0, FaultKind::Stall)], Some((0, "length_ns"))),
            (vec![fault(0, 1, error(0, 5))], Some((0, "per_million"))),
            (vec![fault(0, 1, error(1_000_001, 5))], Some((0, "per_million"))),
            (vec![fault(0, 1, error(1, 0))], Some((0, "errno"))),
            (vec![fault(0, 1, FaultKind::Slow { percent: 0 })], Some((0, "percent"))),
        ] {
            assert_eq!(
                invalid_fault(&faults).map(|(index, field, _)| (index, field)),
                expected,
                "{faults:?}"
            );
        }
    }
}
