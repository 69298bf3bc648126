//! Options about recording requests and replaying them.

use std::path::PathBuf;

use fathom_model::OptionValueKind::{Size, Text};

use super::{ANY, JobOption, int, row, set, switch};
use crate::job_options::JobOptions;
use crate::value;

/// The names of operations that can be left out, in the order of the plan.
const SKIPPED: [&str; 4] = ["read", "write", "trim", "sync"];

pub(super) const ROWS: &[JobOption] = &[
    row("write_iolog", Text, |options, text| match text.trim() {
        "" => Err("the name of a file is needed".to_owned()),
        name => set(&mut options.plan.measure.logs.issued, Ok(name.to_owned())),
    })
    .doc(
        "Record the issued requests in this file as an iolog of version 3; further clones and jobs \
              of the same name write FILE.N.",
    ),
    row("read_iolog", Text, logs).doc(
        "Replay this iolog (version 2 or 3, - is standard input) or recording of blktrace once; \
              clones use the files of a : list in turn.",
    ),
    switch("read_iolog_chunked", |_, _| {}).doc(
        "The log is read whole before the job starts in either case, so that reading it does not \
              delay requests.",
    ),
    switch("replay_no_stall", |options, no_stall| options.replay.no_stall = no_stall)
        .doc("Replay without the recorded times, in order and as fast as the queue depth permits."),
    row("replay_redirect", Text, |options, text| match text.trim() {
        "" => Err("the name of a file or device is needed".to_owned()),
        name => set(&mut options.replay.redirect, Ok(PathBuf::from(name))),
    })
    .doc("Replay all requests on this file or device, whatever the recording names."),
    row("replay_align", Size, |options, text| match value::integer(text)? {
        align if align <= 1 << 40 && (align == 0 || align.is_power_of_two()) => {
            options.replay.align = align.max(1);
            Ok(())
        }
        _ => Err("a power of two up to 1t is needed".to_owned()),
    })
    .doc("Round offsets of the recording down to multiples of this power of two."),
    int("replay_scale", ANY, |options, scale| options.replay.scale = scale.max(1))
        .default("1")
        .doc("Divide offsets of the recording by this, for a smaller device."),
    int("replay_time_scale", 1..=u32::MAX as u64, |options, scale| options.replay.time_scale = scale)
        .default("100")
        .doc("Speed of the replay in percent; 200 halves the recorded times."),
    row("replay_skip", Text, skip)
        .doc("Leave out these operations of the recording, a list of read, write, trim and sync."),
];

/// A list of files, in which `\:` is a colon.
fn logs(options: &mut JobOptions, text: &str) -> Result<(), String> {
    const ESCAPED: &str = "\u{0}";
    let text = text.trim().replace("\\:", ESCAPED);
    let logs: Vec<PathBuf> = text.split(':').map(|name| PathBuf::from(name.replace(ESCAPED, ":"))).collect();
    if logs.iter().any(|log| log.as_os_str().is_empty()) {
        return Err("the name of a file is needed".to_owned());
    }
    options.replay.logs = logs;
    Ok(())
}

fn skip(options: &mut JobOptions, text: &str) -> Result<(), String> {
    let mut skip = [false; 4];
    for word in text.split(',') {
        match SKIPPED.iter().position(|name| *name == word.trim()) {
            Some(index) => skip[index] = true,
            None => return Err(format!("Unknown skip type: {word}; use {}", SKIPPED.join(", "))),
        }
    }
    options.replay.skip = skip;
    Ok(())
}
