//! What the bare loops share: their arguments, their offsets, and what the kernel charges them.
//!
//! Nothing of fathom's measuring core may be used here: these loops are what it is held against.

#![allow(clippy::disallowed_methods)] // The loops' clock is read once in thousands of requests and is in no record.
#![allow(clippy::print_stdout)] // Their result is a line of JSON for whoever started them.

use std::error::Error;
use std::fs::File;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

/// Bytes per request.
pub const BLOCK: usize = 4096;
/// Requests between two looks at the clock.
const STRETCH: u64 = 4096;

/// What is asked of a loop.
pub struct Task {
    /// What is read.
    pub file: File,
    /// Whole blocks in it, at least one.
    pub blocks: u64,
    /// Most requests in flight, and how many are handed over at once, where it was said.
    pub depth: Option<u32>,
    pub batch: Option<u32>,
    seconds: f64,
}

impl Task {
    /// Reads `[FILE] [--depth=N] [--batch=N] [--seconds=S] [--cpu=N]`; pins the thread where a CPU is named. Without a file
    /// a small temporary one is read, so that `cargo bench` has something to show.
    pub fn from_arguments() -> Result<Task, Box<dyn Error>> {
        let (mut file, mut depth, mut batch, mut seconds) = (None, None, None, 1.0);
        for argument in std::env::args().skip(1) {
            match argument.split_once('=') {
                Some(("--depth", value)) => depth = Some(value.parse()?),
                Some(("--batch", value)) => batch = Some(value.parse()?),
                Some(("--seconds", value)) => seconds = value.parse()?,
                Some(("--cpu", value)) => fathom_sys::affinity::pin_current_thread(&[value.parse()?])?,
                // What cargo says to every bench target.
                None if argument == "--bench" => {}
                None if !argument.starts_with("--") => file = Some(File::open(&argument)?),
                _ => return Err(format!("unknown argument {argument}").into()),
            }
        }
        let file = file.map_or_else(small_file, Ok)?;
        let blocks = file.metadata()?.len() / BLOCK as u64;
        if blocks == 0 {
            return Err("the file is shorter than a block".into());
        }
        Ok(Task { file, blocks, depth, batch, seconds })
    }

    /// Calls `turn` until the time is over and prints what that came to. A turn answers how many requests it made and
    /// may make a stretch of them.
    pub fn run<E: Error + 'static>(
        &self,
        mut turn: impl FnMut() -> Result<u64, E>,
    ) -> Result<(), Box<dyn Error>> {
        let limit = Duration::from_secs_f64(self.seconds);
        let (user_before, system_before) = thread_times()?;
        let started = Instant::now();
        let mut ios = 0;
        while started.elapsed() < limit {
            let until = ios + STRETCH;
            while ios < until {
                ios += turn()?;
            }
        }
        let wall = started.elapsed();
        let (user, system) = thread_times()?;
        println!(
            "{{\"ios\":{ios},\"user_ns\":{},\"system_ns\":{},\"wall_ns\":{}}}",
            (user - user_before).as_nanos(),
            (system - system_before).as_nanos(),
            wall.as_nanos()
        );
        Ok(())
    }
}

/// Draws blocks of a range: the cheapest generator that a page cache cannot foresee.
pub struct Draws {
    state: u64,
    blocks: u64,
}

impl Draws {
    /// Draws below `blocks`.
    pub fn new(blocks: u64) -> Self {
        Draws { state: 88_172_645_463_325_252, blocks }
    }

    /// The next offset, in bytes.
    #[inline(always)]
    pub fn next_offset(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let block = (u128::from(self.state) * u128::from(self.blocks)) >> 64;
        block as u64 * BLOCK as u64
    }
}

/// A file of 64 MiB without a name, in the page cache as it has just been written.
fn small_file() -> Result<File, Box<dyn Error>> {
    let mut file = tempfile::tempfile_in("/var/tmp")?;
    std::io::copy(&mut std::io::Read::take(std::io::repeat(0x5a), 64 << 20), &mut file)?;
    Ok(file)
}

/// User and system time of this thread.
fn thread_times() -> std::io::Result<(Duration, Duration)> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills the one structure it is given.
    if unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: it was filled, and is made of integers in any case.
    let usage = unsafe { usage.assume_init() };
    let shown = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    Ok((shown(usage.ru_utime), shown(usage.ru_stime)))
}
