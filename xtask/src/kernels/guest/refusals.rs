//! The guard: each use of a stack, each command that writes, and the bytes before and after.

use std::path::Path;

use anyhow::ensure;

use super::super::check_line::CheckKind;
use super::Reporter;
use super::commands::{fathom, shown};
use super::device::{bytes_of, clear, ensure_unchanged};
use super::stacks::{Stack, WriteAccess};
use super::uses::{Against, USES, UseCase};

/// Commands that write with the consent of the user, as words after `fathom`; `@` is the target. The first are fio's.
const CONSENTED: &[&str] = &[
    "fio --name=t --bs=4k --size=64k --rw=write --filename=@ --destroy-data=@",
    "fio --name=t --bs=4k --size=64k --rw=randrw --direct=1 --ioengine=io_uring --filename=@ --destroy-data=@",
    "fio --name=t --bs=4k --size=64k --rw=randtrim --filename=@ --destroy-data=@",
    "bench --no-history --only=rand-write --runtime=10ms --size=4m --destroy-data=@ @",
    "sweep --no-history --rw=randwrite --budget=10s --destroy-data=@ @",
    "surface --no-history --write --budget=10s --destroy-data=@ @",
    "identify --no-history --budget=30s --destroy-data=@ @",
    "prepare --no-history --fill --destroy-data=@ @",
    "prepare --no-history --trim --destroy-data=@ @",
    "ping -c 1 -WWW --destroy-data=@ @",
];

/// The beginnings of those that every use is tried with; all of them ask the guard in the same way.
const FEW: &[&str] =
    &["fio --name=t --bs=4k --size=64k --rw=write", "bench", "prepare --no-history --fill", "ping"];

/// The same without. fathom's own commands then look no further, so the first alone is tried on what is in use.
const NOT_CONSENTED: &[&str] = &[
    "fio --name=t --bs=4k --size=64k --rw=write --filename=@",
    "sweep --no-history --rw=randwrite --budget=10s @",
    "surface --no-history --write --budget=10s @",
    "prepare --no-history --fill @",
    "prepare --no-history --trim @",
    "ping -c 1 -WWW @",
];

/// Writes in zones of 4 MiB that are not conventional: from the write pointer on, and beyond it. Not in the same one: since
/// Linux 6.10 a zone whose write failed refuses others until the kernel has asked for its state.
const IN_ORDER: &str = "fio --name=t --bs=4k --size=64k --rw=write --direct=1 --offset=24m --filename=@";
const OUT_OF_ORDER: &str =
    "fio --name=t --bs=4k --size=64k --rw=write --direct=1 --offset=20488k --filename=@";

/// What a refusal to overwrite a free device names.
const CONSENT: &str = "--destroy-data";

/// Tries each command on each use.
pub fn check(stack: &Stack, reporter: &Reporter) {
    if stack.access == WriteAccess::Free {
        let result = clear(&stack.device);
        reporter.report(CheckKind::Write, "clearing the device", result);
        // A device without data is written by a job under fio's grammar; its own commands want to be told.
        let own: Vec<&str> = NOT_CONSENTED.iter().copied().filter(|words| !is_fio(words)).collect();
        refuse(reporter, "free", &own, &stack.device, CONSENT);
    }
    if stack.access == WriteAccess::HostManaged {
        refuse(reporter, "zones", &[OUT_OF_ORDER], &stack.device, "the device is host-managed zoned");
        write(reporter, "zones", IN_ORDER, &stack.device);
    }
    for case in USES.iter().filter(|case| (case.applies)(stack)) {
        match (case.arrange)(stack) {
            Err(error) => reporter.report(CheckKind::Refusal, case.name, Err(error)),
            Ok(arranged) => {
                for target in &arranged.targets {
                    try_all(reporter, case, target);
                }
            }
        }
    }
}

fn is_fio(words: &str) -> bool {
    words.starts_with("fio ")
}

fn try_all(reporter: &Reporter, case: &UseCase, target: &Path) {
    let consented = CONSENTED.iter().copied();
    let words: Vec<&str> = match case.against {
        Against::All if case.is_thorough => consented.chain([NOT_CONSENTED[0]]).collect(),
        Against::All => consented.filter(|words| FEW.iter().any(|few| words.starts_with(few))).collect(),
        Against::OwnCommands => consented.filter(|words| !is_fio(words)).collect(),
        Against::WithoutConsent => vec![NOT_CONSENTED[0]],
    };
    refuse(reporter, case.name, &words, target, case.says);
    if case.against == Against::WithoutConsent {
        write(reporter, case.name, CONSENTED[0], target);
    }
}

/// Each of `commands` is refused, for the reason that `says` is a part of.
fn refuse(reporter: &Reporter, case: &str, commands: &[&str], target: &Path, says: &str) {
    let before = match bytes_of(target) {
        Ok(before) => before,
        Err(error) => return reporter.report(CheckKind::Refusal, case, Err(error)),
    };
    for words in commands {
        let name = format!("{case}: {}", words.replace('@', &target.to_string_lossy()));
        reporter.report(CheckKind::Refusal, &name, is_refused(words, target, &before, says));
    }
}

fn is_refused(words: &str, target: &Path, before: &[u8], says: &str) -> anyhow::Result<()> {
    let ended = fathom(words, &target.to_string_lossy())?;
    ensure_unchanged(target, before)?;
    let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
    ensure!(
        ended.status.code().is_some_and(|code| code != 0 && code != 101),
        "not refused: {}",
        shown(&ended)
    );
    ensure!(stderr.contains(says), "its refusal does not say {says:?}: {}", shown(&ended));
    Ok(())
}

fn write(reporter: &Reporter, case: &str, words: &str, target: &Path) {
    let name = format!("{case}: {}", words.replace('@', &target.to_string_lossy()));
    let result = bytes_of(target).and_then(|before| {
        let ended = fathom(words, &target.to_string_lossy())?;
        ensure!(ended.status.success(), "{}", shown(&ended));
        ensure!(bytes_of(target)? != before, "no byte has changed");
        Ok(())
    });
    reporter.report(CheckKind::Write, &name, result);
}
