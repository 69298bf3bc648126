//! From the start of a program to its first read of the file, as reported by the kernel.

use std::mem::MaybeUninit;
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use rustix::process::{Pid, Signal, kill_process};

use super::lab::{Lab, Subject, now};
use super::load::RunLoad;

/// Longer than any program takes to start.
const LIMIT: Duration = Duration::from_secs(30);
/// Interval between two checks whether it has ended.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Starts `subject` and answers the ms until it reads; then ends it.
pub fn start_ms(lab: &Lab, subject: Subject, load: RunLoad) -> anyhow::Result<f64> {
    let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
    let watch = inotify::init(flags).context("cannot watch files")?;
    inotify::add_watch(&watch, lab.file.path.as_str(), inotify::WatchFlags::ACCESS)
        .context("cannot watch the file")?;
    let started = now();
    let mut child = lab.start(subject, load)?;
    let first = loop {
        let mut watched = [PollFd::new(&watch, PollFlags::IN)];
        match poll(&mut watched, Some(&LOOK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => break Some(now()),
            Err(error) => return Err(error).context("cannot wait for the first read"),
        }
        let has_ended = child.try_wait().context("cannot wait for the program")?.is_some();
        if has_ended || now() - started > LIMIT {
            break None;
        }
    };
    end(&mut child)?;
    let mut space = [MaybeUninit::uninit(); 512];
    let event = inotify::Reader::new(&watch, &mut space).next().map(|event| event.events());
    answer(started, first.filter(|_| event.is_ok_and(|event| event.contains(inotify::ReadFlags::ACCESS))))
        .with_context(|| lab.shown(subject, load))
}

/// Asks a program to end, where it has not, and waits for it. fio then ends its jobs itself.
fn end(child: &mut Child) -> anyhow::Result<()> {
    if child.try_wait().context("cannot wait for the program")?.is_none()
        && let Some(process) = Pid::from_raw(child.id() as i32)
    {
        kill_process(process, Signal::TERM).context("cannot end the program")?;
        child.wait().context("cannot wait for the program")?;
    }
    Ok(())
}

fn answer(started: Instant, first: Option<Instant>) -> anyhow::Result<f64> {
    let Some(first) = first else { bail!("the program has not read the file") };
    Ok((first - started).as_secs_f64() * 1e3)
}
