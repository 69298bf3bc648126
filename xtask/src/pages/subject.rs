//! The pages that are tried, and the runs they are made of.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use fathom_tests::{Program, fathom};

/// The longest that a run on virtual time takes, by a binary without optimisation too.
const LONGEST: Duration = Duration::from_secs(300);
const VOLUME: &str = "sim:custom?iops=700&bandwidth=20MiB&latency=500us&parallelism=64&size=1GiB";
const GP2: &str = "sim:aws-gp2-2016?size=50GiB";
const GP3: &str = "sim:aws-gp3?size=100GiB";
/// A host of a merged run: its rank, and its limit.
const fn host(rank: &'static str, volume: &'static str) -> [&'static str; 7] {
    ["bench", "--quick", "--only=lat-read,rand-read", "--label", rank, "--label=ranks=5", volume]
}
/// A name that is markup, a terminal's command, a reversal of text and a spreadsheet's formula.
const HOSTILE: &str = "--name=<script>alert(1)</script>\"><img src=x onerror=alert(2)>\u{1b}[31m\u{202e}=1+1";

/// One page.
pub struct Subject {
    pub name: &'static str,
    /// The commands that measure or merge, each kept in the history.
    runs: &'static [&'static [&'static str]],
    /// The runs of the report, by the names of `fathom report`.
    selection: &'static [&'static str],
    /// A text that the page shows as it is; empty for none.
    pub text: &'static str,
}

const fn page(name: &'static str, runs: &'static [&'static [&'static str]]) -> Subject {
    Subject { name, runs, selection: &["last"], text: "" }
}

/// The pages.
pub const SUBJECTS: &[Subject] = &[
    page("bench", &[&["bench", "--quick", GP2]]),
    page("sweep", &[&["sweep", VOLUME]]),
    page("identify", &[&["identify", "--budget=5m", VOLUME]]),
    page("surface", &[&["surface", "--points=200", VOLUME]]),
    page("ping", &[&["ping", "-i", "1s", "-w", "24h", "-q", VOLUME]]),
    page("simulate", &[&["simulate", "--profile=oltp", "--for=2h", "aws-gp2-2016?size=50GiB"]]),
    Subject {
        name: "compare",
        runs: &[
            &["bench", "--quick", "--only=lat-read,rand-read,seq-read", GP2],
            &["bench", "--quick", "--only=lat-read,rand-read,seq-read", GP3],
            &["bench", "--quick", "--only=lat-read,rand-read,seq-read", VOLUME],
        ],
        selection: &["last~2", "last~1", "last"],
        text: "",
    },
    page(
        "fleet",
        &[
            &host("rank=0", "sim:custom?iops=700&latency=500us&size=1GiB"),
            &host("rank=1", "sim:custom?iops=710&latency=500us&size=1GiB"),
            &host("rank=2", "sim:custom?iops=705&latency=500us&size=1GiB"),
            &host("rank=3", "sim:custom?iops=300&latency=500us&size=1GiB"),
            &host("rank=4", "sim:custom?iops=695&latency=500us&size=1GiB"),
            &["merge", "last~4", "last~3", "last~2", "last~1", "last"],
        ],
    ),
    Subject {
        name: "hostile",
        runs: &[&[
            "fio",
            HOSTILE,
            "--ioengine=null",
            "--size=1g",
            "--rw=randread",
            "--time_based",
            "--runtime=2",
        ]],
        selection: &["last"],
        text: "<script>alert(1)</script>",
    },
];

/// Measures, and writes the page into `directory`. The history is below `home`.
pub fn make(subject: &Subject, home: &Path, directory: &Path) -> anyhow::Result<PathBuf> {
    let own = home.join(subject.name);
    std::fs::create_dir_all(&own).context("cannot make a directory of the scratch history")?;
    for arguments in subject.runs {
        run(&own, &[*arguments, &["--keep"]].concat())?;
    }
    let page = directory.join(format!("{}.html", subject.name));
    let path = page.to_str().context("the target directory has a name of UTF-8")?;
    run(&own, &[&["report"], subject.selection, &["-o", path]].concat())?;
    Ok(page)
}

fn run(home: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let ended = Program::start(fathom(home).current_dir(home).args(arguments)).finish_within(LONGEST);
    ensure!(ended.status.success(), "fathom {} failed:\n{}", arguments.join(" "), ended.stderr);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_files() {
        for (index, subject) in SUBJECTS.iter().enumerate() {
            assert!(SUBJECTS[..index].iter().all(|other| other.name != subject.name));
            assert!(subject.name.bytes().all(|byte| byte.is_ascii_lowercase()));
        }
    }
}
