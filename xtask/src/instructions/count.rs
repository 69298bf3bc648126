//! Counting: each case runs under callgrind with N and with 2N operations, and what N more cost is divided by N.
//!
//! So start-up, the preparation of a case and its end do not count; but as start-up varies by some hundred instructions, a
//! count may differ by 0.01 from run to run. It says nothing of caches or of branches that are guessed wrong.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, bail};

use super::build::BenchCase;

const VALGRIND: &str = "valgrind";
/// Keeps the C library to the copying and clearing that every x86-64 has; elsewhere it says nothing.
const SAME_ON_EVERY_CPU: (&str, &str) = ("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-AVX2,-SSSE3,-ERMS,-FSRM");

/// Why nothing can be counted on this machine; `None` where it can.
pub fn missing() -> Option<String> {
    let mut probe = Command::new(VALGRIND);
    let there = probe.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    (!there.is_ok_and(|status| status.success()))
        .then(|| format!("{VALGRIND} is missing (as root on Debian: apt-get install {VALGRIND})"))
}

/// Instructions per operation of every case, by name, to two decimals as they are stored. Leaves callgrind's account of
/// the longer run of each in `directory` as `CRATE-CASE.out`.
pub fn all(cases: &[BenchCase], directory: &Path) -> anyhow::Result<BTreeMap<String, f64>> {
    std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(cases.len());
    let (next, counts) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let count = per_operation(case, directory).map(|count| (case.name.clone(), count));
                    counts.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(count);
                }
            });
        }
    });
    counts.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()).into_iter().collect()
}

fn per_operation(case: &BenchCase, directory: &Path) -> anyhow::Result<f64> {
    // The longer run last, so that its account is the one that stays.
    let once = total(case, case.operations, directory)?;
    let twice = total(case, case.operations * 2, directory)?;
    let more = twice.checked_sub(once).filter(|&more| more > 0).with_context(|| {
        format!("{}: {once} instructions for N operations and {twice} for 2N: it does nothing", case.name)
    })?;
    Ok((more as f64 * 100.0 / case.operations as f64).round() / 100.0)
}

/// All instructions of one run of a case.
fn total(case: &BenchCase, operations: u64, directory: &Path) -> anyhow::Result<u64> {
    let account = directory.join(format!("{}.out", case.name.replace('/', "-")));
    let mut command = Command::new(VALGRIND);
    command.current_dir(directory).stdin(Stdio::null());
    // Neither options for valgrind or the C library, nor the length of the environment, may move a count.
    command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path))).envs([SAME_ON_EVERY_CPU]);
    command.args(["--tool=callgrind", "--vgdb=no", "--quiet"]);
    command.arg(format!("--callgrind-out-file={}", account.display()));
    command.arg(&case.program).args([&case.argument, &operations.to_string()]);
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} fails under {VALGRIND} ({}):\n{}", case.name, output.status, said.trim());
    }
    let text =
        std::fs::read_to_string(&account).with_context(|| format!("cannot read {}", account.display()))?;
    sum_of(&text).with_context(|| format!("{} has no total", account.display()))
}

/// The total in callgrind's account.
fn sum_of(account: &str) -> Option<u64> {
    account.lines().find_map(|line| line.strip_prefix("totals: "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_parsed_from_callgrind_output() {
        let check = |account: &str, expected| assert_eq!(sum_of(account), expected, "{account:?}");
        check("version: 1\nevents: Ir\n\nfn=(1) main\n3 5\n\ntotals: 104699464\n", Some(104_699_464));
        check("version: 1\nevents: Ir\n", None);
        check("totals: 12 13\n", None);
        check("", None);
    }
}
