//! Which threads are clients: a thread that makes its next request when one of its own completes is one, whatever others do.

use fathom_observed::ObservedRequest;

use crate::pace::{LoadPace, PaceCounter};
use crate::replay::ReplayPace;

/// Numbers of threads.
const NUMBERS: usize = 256;

/// A set of threads, by their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadSet {
    bits: [u64; NUMBERS / 64],
}

impl ThreadSet {
    /// Whether it has this thread.
    #[inline]
    pub fn contains(&self, thread: u8) -> bool {
        self.bits[usize::from(thread) / 64] >> (thread % 64) & 1 == 1
    }

    fn insert(&mut self, thread: u8) {
        self.bits[usize::from(thread) / 64] |= 1 << (thread % 64);
    }

    fn is_empty(&self) -> bool {
        *self == ThreadSet::default()
    }
}

/// What the requests of a load wait for, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadArrivals {
    /// All together.
    pub pace: LoadPace,
    /// The threads that are clients, where others are not.
    clients: ThreadSet,
    /// What the requests of those others wait for.
    others: LoadPace,
}

impl LoadArrivals {
    /// The ways in which requests are replayed: where both readings remain, each gives a prediction.
    pub fn readings(&self) -> Vec<ReplayPace> {
        let by_themselves = match self.clients.is_empty() {
            true => ReplayPace::Open,
            false => ReplayPace::Beside(self.clients),
        };
        match (self.pace, self.others) {
            (LoadPace::Open, _) | (LoadPace::Split, LoadPace::Open) => vec![by_themselves],
            (LoadPace::Closed, _) => vec![ReplayPace::Closed],
            _ => vec![by_themselves, ReplayPace::Closed],
        }
    }
}

/// Infers what requests wait for. Where some threads are clients and some are not, this takes a second look at all requests.
#[derive(Debug, Default)]
pub struct ArrivalCounter {
    /// The first look: all requests, then those of each thread.
    all: PaceCounter,
    threads: Vec<Option<Box<PaceCounter>>>,
    /// All threads are clients.
    is_closed: bool,
    /// The second one: the clients, and the requests of the others.
    clients: ThreadSet,
    others: PaceCounter,
}

impl ArrivalCounter {
    /// Looks at the next requests.
    pub fn take_all(&mut self, requests: &[ObservedRequest]) {
        for request in requests {
            if !self.clients.is_empty() {
                if !self.clients.contains(request.thread) {
                    self.others.push(request);
                }
                continue;
            }
            self.all.push(request);
            if request.thread > 0 {
                let place = usize::from(request.thread);
                if self.threads.len() <= place {
                    self.threads.resize_with(place + 1, || None);
                }
                self.threads[place].get_or_insert_default().push(request);
            }
        }
    }

    /// Whether it has to look at all requests once more, and is ready for it.
    pub fn looks_again(&mut self) -> bool {
        if !self.clients.is_empty() {
            return false;
        }
        let (mut requests, mut outstanding) = (0, 0.0);
        for (thread, counter) in (0..=u8::MAX).zip(&self.threads) {
            if let Some(counter) = counter.as_ref().filter(|counter| counter.pace() == LoadPace::Closed) {
                self.clients.insert(thread);
                requests += counter.requests();
                outstanding += counter.most_outstanding();
            }
        }
        let are_all = requests * (FEW + 1) >= self.all.requests() * FEW;
        // All together wait for one another, and no more are outstanding than clients have: other threads hand their requests on.
        let are_handed_on = self.all.pace() == LoadPace::Closed && self.all.most_outstanding() <= outstanding;
        if self.clients.is_empty() || !are_all && !are_handed_on {
            return !self.clients.is_empty();
        }
        (self.is_closed, self.clients) = (true, ThreadSet::default());
        false
    }

    /// What was inferred.
    pub fn arrivals(&self) -> LoadArrivals {
        let (clients, others) = (self.clients, self.others.pace());
        let pace = match clients.is_empty() {
            true if self.is_closed => LoadPace::Closed,
            true => self.all.pace(),
            false if others == LoadPace::Closed => LoadPace::Closed,
            false => LoadPace::Split,
        };
        LoadArrivals { pace, clients, others }
    }
}

/// One request of another thread among so many of clients changes nothing.
const FEW: u64 = 1_000;
