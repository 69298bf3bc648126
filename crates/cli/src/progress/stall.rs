//! Says that nothing completes, while it lasts.

use fathom_model::Nanos;
use fathom_model::units::duration;
use fathom_report::live::STALLED_FROM_NS;
use fathom_stats::Snapshot;

/// Notes for standard error: when a stall begins, each time it has doubled, and its end.
#[derive(Debug, Default)]
pub struct StallNote {
    /// The length of the stall that goes on, as it was last seen; 0 where none does.
    seen_ns: u64,
    /// The next note is due at this length.
    next_ns: u64,
    /// Time of the last snapshot since the start of its run, ns.
    elapsed_ns: u64,
}

impl StallNote {
    /// What there is to say of `snapshot`.
    pub fn line(&mut self, snapshot: &Snapshot) -> Option<String> {
        if snapshot.elapsed_ns < self.elapsed_ns {
            // Another run: the stall of the one before did not end in it.
            *self = StallNote::default();
        }
        self.elapsed_ns = snapshot.elapsed_ns;
        let (was, now) = (self.seen_ns, snapshot.stalled_ns);
        self.seen_ns = if now >= STALLED_FROM_NS { now } else { 0 };
        if self.seen_ns == 0 || now < was {
            self.next_ns = STALLED_FROM_NS;
        }
        if self.seen_ns == 0 {
            // A worker that was given up is not stalled any more either, and nothing has completed.
            let completes = snapshot.clat_mean_ns.is_some();
            // It went on for a while after it was last seen.
            let after = length(was + STALLED_FROM_NS / 2);
            return (was > 0 && completes).then(|| format!("fathom: I/Os complete again after {after}"));
        }
        (now >= self.next_ns).then(|| {
            self.next_ns = now * 2;
            format!("fathom: {}", describe(snapshot))
        })
    }
}

/// `no I/O completed for 7 s, 4 in flight`
pub fn describe(snapshot: &Snapshot) -> String {
    let (length, in_flight) = (length(snapshot.stalled_ns), snapshot.stalled_in_flight);
    format!("no I/O completed for {length}, {in_flight} in flight")
}

/// In whole seconds, which is as often as anybody looks.
fn length(ns: u64) -> String {
    duration(Nanos(ns - ns % STALLED_FROM_NS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_told_of_as_it_grows_and_when_it_is_over() {
        let mut note = StallNote::default();
        let mut reported = Vec::new();
        for half_seconds in [0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 0, 0, 2, 0] {
            let stalled_ns = half_seconds * 500_000_000;
            let clat_mean_ns = (half_seconds < 2).then_some(1_000_000);
            reported.extend(note.line(&Snapshot {
                stalled_ns,
                stalled_in_flight: 4,
                clat_mean_ns,
                ..Snapshot::default()
            }));
        }
        let expected = [
            "fathom: no I/O completed for 1 s, 4 in flight",
            "fathom: no I/O completed for 2 s, 4 in flight",
            "fathom: no I/O completed for 4 s, 4 in flight",
            "fathom: I/Os complete again after 4 s",
            "fathom: no I/O completed for 1 s, 4 in flight",
            "fathom: I/Os complete again after 1 s",
        ];
        assert_eq!(reported, expected);
    }

    #[test]
    fn a_device_that_is_given_up_does_not_complete_again() {
        let stalled = Snapshot { elapsed_ns: 9, stalled_ns: 2_000_000_000, ..Snapshot::default() };
        let given_up = Snapshot { elapsed_ns: 10, ..Snapshot::default() };
        let next_run = Snapshot { elapsed_ns: 1, clat_mean_ns: Some(1), ..Snapshot::default() };
        let mut note = StallNote::default();
        assert!(note.line(&stalled).is_some());
        assert_eq!(note.line(&given_up), None);
        assert!(note.line(&Snapshot { elapsed_ns: 11, ..stalled }).is_some());
        assert_eq!(note.line(&next_run), None);
    }

    #[test]
    fn whole_seconds() {
        let snapshot = Snapshot { stalled_ns: 7_400_000_000, stalled_in_flight: 1, ..Snapshot::default() };
        assert_eq!(describe(&snapshot), "no I/O completed for 7 s, 1 in flight");
    }
}
