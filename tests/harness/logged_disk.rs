//! A disk of known delay that writes down when each request arrived and when it was answered.
//!
//! nbdkit's log and delay filters before its memory disk, mounted as a file by nbdfuse over many connections: one
//! connection alone takes no new request while it waits for an answer.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::nbd::{LIMIT, unmount};
use crate::shell::{scratch, try_run};
use crate::wait::wait_for;
use crate::witness::Span;

/// Taken in turn by the requests; the first must be free again when its turn comes back.
const CONNECTIONS: u32 = 64;
const DAY_NS: u64 = 86_400_000_000_000;

/// A file backed by nbdkit; unmounted and the server ended on drop.
///
/// Use it with direct I/O. At most ten requests reach the server at a time; others wait in the kernel.
#[derive(Debug)]
pub struct LoggedDisk {
    server: Child,
    mount: Child,
    directory: TempDir,
}

impl LoggedDisk {
    /// Requests served in parallel: the largest number of threads that libfuse gives nbdfuse.
    pub const WIDTH: usize = 10;

    /// A memory disk of `size` bytes that answers `delay` after a request has come.
    pub fn new(size: u64, delay: Duration) -> Self {
        let directory = scratch();
        let within = |name: &str| directory.path().join(name);
        std::fs::create_dir(within("disk")).expect("the scratch directory is new and ours");
        let said = File::create(within("said")).expect("the scratch directory is new and ours");
        let also = said.try_clone().expect("a file can be written to twice");
        let delay = delay.as_millis();
        let mut nbdkit = Command::new("nbdkit");
        nbdkit.args(["--foreground", "--threads=4", "--filter=log", "--filter=delay", "--unix"]);
        nbdkit.arg(within("socket")).arg("memory").arg(format!("size={size}"));
        nbdkit.args([format!("rdelay={delay}ms"), format!("wdelay={delay}ms")]);
        nbdkit.arg(format!("logfile={}", within("log").display())).env("TZ", "UTC");
        let mut server = start(&mut nbdkit, said);
        let is_up = wait_for(LIMIT, || ended(&mut server) || within("socket").exists());
        let mut nbdfuse = Command::new("nbdfuse");
        nbdfuse.arg(format!("--connections={CONNECTIONS}")).arg(within("disk/file"));
        nbdfuse.arg(format!("nbd+unix:///?socket={}", within("socket").display()));
        let mount = start(&mut nbdfuse, also);
        let mut disk = LoggedDisk { server, mount, directory };
        let is_up = is_up && wait_for(LIMIT, || disk.has_ended() || disk.path().exists());
        assert!(
            is_up && !disk.has_ended(),
            "{nbdkit:?} or {nbdfuse:?} did not come up:\n{}",
            disk.text("said")
        );
        disk
    }

    /// The file that is the disk.
    pub fn path(&self) -> PathBuf {
        self.directory.path().join("disk/file")
    }

    /// Every read and write that was answered so far, in the order of the answers, by the server's clock to the µs.
    pub fn requests(&self) -> Vec<Span> {
        spans(&self.text("log"))
    }

    fn has_ended(&mut self) -> bool {
        ended(&mut self.server) || ended(&mut self.mount)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.directory.path().join(name)).unwrap_or_default()
    }
}

impl Drop for LoggedDisk {
    fn drop(&mut self) {
        let mount_point = self.directory.path().join("disk");
        wait_for(Duration::from_secs(5), || unmount(&mount_point));
        if !wait_for(LIMIT, || ended(&mut self.mount)) {
            self.mount.kill().ok();
            self.mount.wait().ok();
            try_run(Command::new("umount").arg("--lazy").arg(&mount_point));
        }
        self.server.kill().ok();
        self.server.wait().ok();
    }
}

fn start(command: &mut Command, said: File) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
    command.spawn().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"))
}

fn ended(child: &mut Child) -> bool {
    !matches!(child.try_wait(), Ok(None))
}

/// From each `Read` or `Write` line to the `...Read` or `...Write` line of the same connection and id.
fn spans(log: &str) -> Vec<Span> {
    let mut waiting = HashMap::new();
    let mut spans = Vec::new();
    let (mut day_ns, mut last_ns) = (0, 0);
    for line in log.lines() {
        let mut words = line.split(' ').skip(1);
        let Some(time_ns) = words.next().and_then(time_of_day_ns) else { continue };
        if time_ns + DAY_NS / 2 < last_ns {
            day_ns += DAY_NS;
        }
        last_ns = time_ns;
        let (Some(connection), Some(what), Some(id)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        match what {
            "Read" | "Write" => {
                waiting.insert((connection, id), day_ns + time_ns);
            }
            "...Read" | "...Write" => {
                let start_ns = waiting.remove(&(connection, id)).expect("an answer follows its request");
                spans.push(Span { start_ns, end_ns: day_ns + time_ns });
            }
            _ => {}
        }
    }
    spans
}

/// `HH:MM:SS.UUUUUU`.
fn time_of_day_ns(text: &str) -> Option<u64> {
    let (clock, micros) = text.split_once('.')?;
    let seconds = clock.split(':').try_fold(0, |sum, part| Some(sum * 60 + part.parse::<u64>().ok()?))?;
    Some(seconds * 1_000_000_000 + micros.parse::<u64>().ok()? * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_are_matched_to_requests() {
        let log = "\
2026-11-20 23:59:59.000001 Ready thread_model=3
2026-11-20 23:59:59.000002 connection=1 Connect export=\"\" tls=0 size=0x1000000
2026-11-20 23:59:59.100000 connection=1 Read id=1 offset=0xf7000 count=0x1000 ...
2026-11-20 23:59:59.200000 connection=2 Write id=1 offset=0x0 count=0x1000 ...
2026-11-20 23:59:59.300000 connection=2 ...Write id=1 return=0
2026-11-21 00:00:00.000000 connection=1 ...Read id=1 return=0
2026-11-21 00:00:00.000007 connection=1 Read id=2 offset=0x0 count=0x1000 ...
";
        let took: Vec<u64> = spans(log).iter().map(|span| span.end_ns - span.start_ns).collect();
        assert_eq!(took, [100_000_000, 900_000_000]);
    }
}
