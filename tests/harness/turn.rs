//! Turns: which tests run concurrently, and which wait.
//!
//! There are three kinds of turn, and a test asks for one of them before it makes or starts anything. Tests of one kind
//! run concurrently, as many as the kind permits, and later tests of the kind join them; then the kind of the
//! longest-waiting test follows. Each test requests one turn, so every turn ends.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::told::{test_name, took};

/// The requirements of a test on the machine while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Alone,
    Capped,
    Loading,
}

impl Kind {
    /// Most concurrent tests of the kind.
    const fn at_most(self) -> usize {
        match self {
            Kind::Alone => 1,
            // Each takes a few percent of one processor; more of them would wake later than their devices answer.
            Kind::Capped => 7,
            // Most wait for a device or for a second to pass.
            Kind::Loading => 7,
        }
    }
}

/// Where a test enters the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    First,
    Last,
}

/// Held by a test whose numbers depend on the disk or the processors that all tests share, or that changes or counts
/// something of the whole machine (a kernel's switch, its traces): it runs by itself. A test that failed while holding it
/// does not fail the others.
pub fn measuring_alone() -> Turn {
    Turn::of(Kind::Alone, Place::Last)
}

/// For a test that measures its own device, in memory and capped far below the limits of the machine (a throttled
/// [`LoopDevice::in_memory`](crate::LoopDevice::in_memory), an [`NbdDisk`](crate::NbdDisk) with delays of ms), and
/// asserts nothing that its neighbours' few requests could move: no time of a processor, no latency to less than a ms,
/// no counter of the whole machine. It runs only with others of its kind.
pub fn measuring_capped() -> Turn {
    Turn::of(Kind::Capped, Place::Last)
}

/// As [`measuring_capped`], before all others of its kind: for the longest, which would else keep the rest waiting for it.
pub fn measuring_capped_first() -> Turn {
    Turn::of(Kind::Capped, Place::First)
}

/// For a test that asserts no number that depends on the load of the machine: it may load the machine, and runs with
/// others of its like only.
pub fn loading() -> Turn {
    Turn::of(Kind::Loading, Place::Last)
}

/// A test's turn; over on drop. It stays in the thread that asked for it.
#[derive(Debug)]
#[must_use = "the turn is over as soon as it is dropped"]
pub struct Turn {
    kind: Kind,
    began: Instant,
    _of_this_thread: PhantomData<*const ()>,
}

thread_local! {
    static HELD: Cell<bool> = const { Cell::new(false) };
}

impl Turn {
    fn of(kind: Kind, place: Place) -> Self {
        assert!(!HELD.replace(true), "a test that asks for a second turn would wait for itself");
        TURNS.wait(kind, place);
        Turn { kind, began: now(), _of_this_thread: PhantomData }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        HELD.set(false);
        TURNS.end(self.kind);
        took(&test_name(), self.began.elapsed());
    }
}

/// The time, for how long a test has its turn: for the developer.
#[allow(clippy::disallowed_methods, reason = "no session runs here")]
fn now() -> Instant {
    Instant::now()
}

/// Fails the test that runs without having asked for its turn, which would disturb others unseen.
pub(crate) fn must_have_come() {
    // A thread that a test started has no name, and goes by the turn of its test.
    let is_test = std::thread::current().name().is_some();
    assert!(!is_test || HELD.get(), "a test asks for its turn before it makes or starts anything");
}

static TURNS: Turns = Turns { queue: Mutex::new(Queue::new()), moved: Condvar::new() };

/// The queue, and those that wait in it.
struct Turns {
    queue: Mutex<Queue>,
    moved: Condvar,
}

impl Turns {
    fn wait(&self, kind: Kind, place: Place) {
        let mut queue = self.locked();
        let ticket = queue.ask(kind, place);
        while !queue.is_let_in(ticket) {
            queue = self.moved.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn end(&self, kind: Kind) {
        self.locked().end(kind);
        self.moved.notify_all();
    }

    fn locked(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who runs and who waits.
#[derive(Debug)]
struct Queue {
    /// Those that run; all of one kind.
    running: Vec<Kind>,
    /// Those that wait, in the order in which they asked but for those that asked to be first.
    waiting: Vec<(u64, Kind)>,
    next_ticket: u64,
}

impl Queue {
    const fn new() -> Self {
        Queue { running: Vec::new(), waiting: Vec::new(), next_ticket: 0 }
    }

    /// Requests a turn; the ticket later shows whether it has begun.
    fn ask(&mut self, kind: Kind, place: Place) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let index = if place == Place::First { 0 } else { self.waiting.len() };
        self.waiting.insert(index, (ticket, kind));
        self.let_in();
        ticket
    }

    fn is_let_in(&self, ticket: u64) -> bool {
        self.waiting.iter().all(|&(waiting, _)| waiting != ticket)
    }

    fn end(&mut self, kind: Kind) {
        assert_eq!(self.running.pop(), Some(kind), "only who runs can end");
        self.let_in();
    }

    /// Admits tests that may run with the current ones; after the last of a kind, the kind of the longest-waiting test.
    fn let_in(&mut self) {
        while let Some(kind) = self.running.first().copied().or(self.waiting.first().map(|&(_, kind)| kind)) {
            let next = self.waiting.iter().position(|&(_, waiting)| waiting == kind);
            match next.filter(|_| self.running.len() < kind.at_most()) {
                Some(index) => self.running.push(self.waiting.remove(index).1),
                None => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays `script`, where `a`, `c` and `l` ask for a turn of their kind, `C` for the first one, and `.` ends one of the running kind; says who
    /// ran after each step.
    fn played(script: &str) -> Vec<String> {
        let mut queue = Queue::new();
        let word = |queue: &Queue| {
            let letter = |kind: &Kind| match kind {
                Kind::Alone => 'a',
                Kind::Capped => 'c',
                Kind::Loading => 'l',
            };
            queue.running.iter().map(letter).collect()
        };
        let step = |asked| {
            match asked {
                'a' => drop(queue.ask(Kind::Alone, Place::Last)),
                'c' => drop(queue.ask(Kind::Capped, Place::Last)),
                'C' => drop(queue.ask(Kind::Capped, Place::First)),
                'l' => drop(queue.ask(Kind::Loading, Place::Last)),
                _ => queue.end(queue.running[0]),
            }
            word(&queue)
        };
        script.chars().map(step).collect()
    }

    #[test]
    fn kinds_of_turns_never_overlap() {
        let check = |script, expected: &[&str]| assert_eq!(played(script), expected, "{script}");
        check("aa..", &["a", "a", "a", ""]);
        check("cccccccc.", &["c", "cc", "ccc", "cccc", "ccccc", "cccccc", "ccccccc", "ccccccc", "ccccccc"]);
        let loading: Vec<String> = [1, 2, 3, 4, 5, 6, 7, 7, 7].map(|count| "l".repeat(count)).into();
        assert_eq!(played("llllllll."), loading);
        // Who comes later joins its kind, past one that waits for another.
        check("cac..", &["c", "c", "cc", "c", "a"]);
        // One that asks to be first passes those that wait.
        check("lacC....", &["l", "l", "l", "l", "cc", "c", "a", ""]);
        // The longest-waiting test decides the next kind.
        check("alclc....", &["a", "a", "a", "a", "a", "ll", "l", "cc", "c"]);
    }

    #[test]
    fn every_test_gets_its_turn() {
        // Every order of seven tests: each is let in, never with another kind, never too many.
        for order in 0..3_usize.pow(7) {
            let kinds: Vec<Kind> = (0..7)
                .map(|place| [Kind::Alone, Kind::Capped, Kind::Loading][order / 3_usize.pow(place) % 3])
                .collect();
            let mut queue = Queue::new();
            let tickets: Vec<u64> = kinds.iter().map(|&kind| queue.ask(kind, Place::Last)).collect();
            for _ in &kinds {
                let kind = *queue.running.first().expect("somebody runs as long as somebody waits");
                assert!(
                    queue.running.iter().all(|&other| other == kind) && queue.running.len() <= kind.at_most()
                );
                queue.end(kind);
            }
            assert!(tickets.iter().all(|&ticket| queue.is_let_in(ticket)) && queue.running.is_empty());
        }
    }

    #[test]
    fn waiting_tests_are_woken() {
        let turns = Turns { queue: Mutex::new(Queue::new()), moved: Condvar::new() };
        let ran = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for kind in [Kind::Alone, Kind::Loading, Kind::Capped].repeat(20) {
                let (turns, ran) = (&turns, &ran);
                scope.spawn(move || {
                    turns.wait(kind, Place::Last);
                    ran.lock().expect("nobody failed").push(kind);
                    turns.end(kind);
                });
            }
        });
        assert_eq!(ran.into_inner().expect("nobody failed").len(), 60);
    }

    #[test]
    fn a_second_turn_is_refused_and_failed_tests_release_theirs() {
        let second = std::panic::catch_unwind(|| {
            let _first = loading();
            let _second = loading();
        });
        assert!(second.is_err());
        let _third = measuring_alone();
    }
}
