//! Standard output and error on another way while something else has the terminal or the stream: a full-screen view, or a stream
//! of JSON lines on standard error.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standard {
    Output,
    Error,
}

/// Takes what is written to a standard stream; false leaves it to the stream.
type Taker = Box<dyn FnMut(Standard, &[u8]) -> bool + Send>;

static TAKER: Mutex<Option<Taker>> = Mutex::new(None);
/// Whether there is one, to be asked without waiting for it.
static IS_ACTIVE: AtomicBool = AtomicBool::new(false);

/// From now on `taker` is offered what is written.
pub fn divert(taker: impl FnMut(Standard, &[u8]) -> bool + Send + 'static) {
    *lock() = Some(Box::new(taker));
    IS_ACTIVE.store(true, Ordering::Release);
}

/// The streams are as they were.
pub fn end() {
    IS_ACTIVE.store(false, Ordering::Release);
    // Where a taker has panicked it cannot be had, and is not asked any more either.
    if let Ok(mut taker) = TAKER.try_lock() {
        taker.take();
    }
}

/// Whether writes are offered to a taker.
pub fn is_active() -> bool {
    IS_ACTIVE.load(Ordering::Acquire)
}

/// Offers `bytes`; false where they belong to the stream.
pub fn takes(stream: Standard, bytes: &[u8]) -> bool {
    is_active() && lock().as_mut().is_some_and(|taker| taker(stream, bytes))
}

fn lock() -> MutexGuard<'static, Option<Taker>> {
    TAKER.lock().unwrap_or_else(PoisonError::into_inner)
}
