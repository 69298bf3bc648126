//! How much memory a run takes at most, watched from outside.

use std::process::Child;
use std::time::Duration;

use anyhow::{Context as _, ensure};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(10);
const MIB: f64 = 1048576.0;

/// How a program's memory is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// The peak that the kernel keeps for one process.
    Process,
    /// Resident memory of a process and its children; shared pages count once.
    Family,
}

/// Watches `child` to its end; MiB.
pub fn peak_mib(mut child: Child, count: Count) -> anyhow::Result<f64> {
    let id = child.id();
    let mut peak = 0_u64;
    let status = loop {
        match count {
            // It only grows, so the last reading is the maximum.
            Count::Process => peak = peak_bytes(id).unwrap_or(peak),
            Count::Family => peak = peak.max(family_bytes(id)),
        }
        if let Some(status) = child.try_wait().context("cannot wait for the program")? {
            break status;
        }
        std::thread::park_timeout(PAUSE);
    };
    ensure!(status.success() && peak > 0, "the program whose memory was watched ended with {status}");
    Ok(peak as f64 / MIB)
}

/// The peak of the resident memory of a process so far.
pub fn peak_bytes(process: u32) -> Option<u64> {
    line_bytes(&std::fs::read_to_string(format!("/proc/{process}/status")).ok()?, "VmHWM:")
}

/// Bytes of a process and all below it; those that end meanwhile count nothing.
fn family_bytes(process: u32) -> u64 {
    let own = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let children = children.unwrap_or_default();
    let below = children.split_whitespace().filter_map(|child| child.parse().ok()).map(family_bytes);
    line_bytes(&own, "Pss:").unwrap_or_default() + below.sum::<u64>()
}

/// A line of the form `NAME 12 kB`, in bytes.
pub fn line_bytes(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_found_by_their_whole_name() {
        let check = |text: &str, expected| assert_eq!(line_bytes(text, "Pss:"), expected, "{text}");
        check("Rss:  4 kB\nPss:     3 kB\nPss_Anon:  9 kB\n", Some(3072));
        check("Pss_Anon:  9 kB\n", None);
        check("Pss: much\n", None);
    }

    #[test]
    fn this_process_has_a_size() {
        assert!(peak_bytes(std::process::id()).is_some_and(|bytes| bytes > 0));
        assert!(family_bytes(std::process::id()) > 0);
    }
}
