//! Survives a mapped page that the file cannot deliver.
//!
//! The kernel reports such a page by SIGBUS at the instruction that touches it. The handler puts an empty page in its
//! place, so that the copy can end, and notes the fault; the request then fails with EIO and the mapping is restored.
//! Faults outside a guarded copy are passed to the previous handler.

use std::io;
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence};

/// The copy in progress of a thread. Read by the handler, on the same thread.
struct Guarded {
    start: AtomicUsize,
    end: AtomicUsize,
    faulted: AtomicBool,
}

thread_local! {
    static GUARDED: Guarded =
        const { Guarded { start: AtomicUsize::new(0), end: AtomicUsize::new(0), faulted: AtomicBool::new(false) } };
}

/// The previous handler, and the page size; set once before any guard is created.
static INSTALLED: OnceLock<Result<(libc::sigaction, usize), i32>> = OnceLock::new();

/// Sets the handler up; later calls only repeat the first answer.
pub(super) fn install() -> io::Result<()> {
    let installed = INSTALLED.get_or_init(|| {
        let mut action: libc::sigaction = zeroed_action();
        let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = on_fault;
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
        let mut previous = zeroed_action();
        // SAFETY: both structures outlive the call, and the handler calls only what a handler may.
        match unsafe { libc::sigaction(libc::SIGBUS, &raw const action, &raw mut previous) } {
            0 => Ok((previous, rustix::param::page_size())),
            _ => Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL)),
        }
    });
    installed.as_ref().map(|_| ()).map_err(|errno| io::Error::from_raw_os_error(*errno))
}

/// Bytes of a page.
pub(super) fn page_size() -> usize {
    match INSTALLED.get() {
        Some(Ok((_, page))) => *page,
        _ => rustix::param::page_size(),
    }
}

fn zeroed_action() -> libc::sigaction {
    // SAFETY: a sigaction of zeroes is the default action with an empty mask.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// Marks a range as being copied by this thread, until dropped.
pub(super) struct Guard;

impl Guard {
    #[inline(always)]
    pub fn over(start: usize, len: usize) -> Guard {
        GUARDED.with(|guarded| {
            guarded.faulted.store(false, Ordering::Relaxed);
            guarded.start.store(start, Ordering::Relaxed);
            guarded.end.store(start + len, Ordering::Relaxed);
        });
        compiler_fence(Ordering::SeqCst);
        Guard
    }

    /// Whether a page of the range could not be had.
    #[inline(always)]
    pub fn faulted(&self) -> bool {
        compiler_fence(Ordering::SeqCst);
        GUARDED.with(|guarded| guarded.faulted.load(Ordering::Relaxed))
    }
}

impl Drop for Guard {
    #[inline(always)]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        GUARDED.with(|guarded| guarded.end.store(0, Ordering::Relaxed));
    }
}

extern "C" fn on_fault(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel gives the handler a valid siginfo, and SIGBUS fills the address.
    let address = unsafe { (*info).si_addr() }.addr();
    if GUARDED.with(|guarded| stand_in(guarded, address)) {
        return;
    }
    let Some(Ok((previous, _))) = INSTALLED.get() else { return };
    if previous.sa_flags & libc::SA_SIGINFO != 0 {
        let handler: *const () = std::ptr::with_exposed_provenance(previous.sa_sigaction);
        // SAFETY: with SA_SIGINFO, the installed handler has this form.
        let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
            unsafe { std::mem::transmute(handler) };
        handler(signal, info, context);
    } else {
        // SAFETY: restores the previous action; the fault then occurs again and has its previous effect.
        unsafe { libc::sigaction(libc::SIGBUS, previous, std::ptr::null_mut()) };
    }
}

/// Maps an empty page at the fault; false if the fault is not in a guarded copy.
fn stand_in(guarded: &Guarded, address: usize) -> bool {
    let Some(Ok((_, page))) = INSTALLED.get() else { return false };
    let (start, end) = (guarded.start.load(Ordering::Relaxed), guarded.end.load(Ordering::Relaxed));
    if address < start || address >= end {
        return false;
    }
    let place = std::ptr::with_exposed_provenance_mut(address / page * page);
    let (access, kind) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED);
    // SAFETY: the page is part of a mapping that this thread is copying and that no reference points into.
    let mapped = unsafe { libc::mmap(place, *page, access, kind, -1, 0) };
    guarded.faulted.store(true, Ordering::Relaxed);
    mapped != libc::MAP_FAILED
}
