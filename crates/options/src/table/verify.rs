//! Options about the contents of writes and the check of what is read back.

use fathom_model::OptionValueKind::{Choice, Text};
use fathom_model::plan::VerifyMethod;

use super::{ANY, JobOption, flag, int, percent, row, set, size, switch};
use crate::job_options::DedupeOption;
use crate::{pattern, value};

const METHODS: &[&str] = &[
    "0", "md5", "crc64", "crc32", "crc32c-intel", "crc32c", "crc16", "crc7", "sha1", "sha256", "sha512",
    "sha3-224", "sha3-256", "sha3-384", "sha3-512", "xxhash", "meta", "pattern", "pattern_hdr", "null",
];

const DEDUPE_MODES: [(&str, DedupeOption); 2] =
    [("repeat", DedupeOption::Repeat), ("working_set", DedupeOption::WorkingSet)];

/// The least offset of a header, as in fio: its own length, which is exchanged with the start of the block.
const SHORTEST_HEADER: u64 = 40;

pub(super) const ROWS: &[JobOption] = &[
    row("verify", Choice(METHODS), |options, text| set(&mut options.verify.method, method(text)))
        .default("0")
        .doc("Write blocks with a header and a checksum, and check them when they are read back."),
    switch("do_verify", |options, on| options.verify.reads_back = Some(on))
        .default("1")
        .doc("Read back and check what a job with verify has written."),
    size("verify_interval", 80..=MAX, |options, number| options.verify.interval = Some(number as u32))
        .doc("Bytes between two headers of a block, if they divide it; without it a block has one header."),
    size("verify_offset", SHORTEST_HEADER..=MAX, |options, bytes| options.verify.offset = Some(bytes as u32))
        .doc("Position of the header in its block or interval."),
    row("verify_pattern", Text, |options, text| set(&mut options.verify.pattern, pattern::parse(text))).doc(
        "Data of blocks with verify: \"text\", 0xbytes, a number, %o for the block's offset, the \
              name of a file in single quotes, or several of these.",
    ),
    size("verify_pattern_interval", 0..=MAX, |options, bytes| {
        options.verify.pattern_interval = Some(bytes as u32)
    })
    .default("0")
    .doc(
        "Bytes after which verify_pattern begins anew, with the offset of that place; 0 = once per \
              block.",
    ),
    switch("verify_fatal", |options, on| options.verify.fatal = Some(on))
        .doc("End the job at the first bad header or checksum, whatever continue_on_error says."),
    switch("verify_dump", |options, on| options.verify.dump = Some(on)).doc(
        "Write bad blocks to FILE.OFFSET.received and what they should contain to \
              FILE.OFFSET.expected.",
    ),
    int("verify_backlog", ANY, |options, number| options.verify.backlog = Some(number))
        .doc("Read back and check blocks each time this many were written, and not only at the end."),
    int("verify_backlog_batch", ANY, |options, number| options.verify.backlog_batch = Some(number))
        .doc("Blocks to check at a time with verify_backlog; without it as many as were written."),
    flag("verify_only", |options, on| options.verify.only = Some(on))
        .doc("Write nothing, and check what an earlier run of the job has written."),
    switch("verify_header_seed", |options, on| options.verify.header_seed = Some(on)).default("1").doc(
        "Check by the seed in the header that a block has the data of its last write; with several \
              writers to one file only the checksum is checked, because each knows its own writes alone.",
    ),
    switch("verify_write_sequence", |options, on| options.verify.write_sequence = Some(on)).default("1").doc(
        "Check the order of writes, which the seed of the header tells: 0 has the effect of \
              verify_header_seed=0.",
    ),
    switch("verify_state_save", |options, on| options.verify.state_save = Some(on))
        .default("1")
        .doc("Save the number of completed writes in local-JOB-N-verify.state in the working directory."),
    switch("verify_state_load", |options, on| options.verify.state_load = Some(on)).doc(
        "With verify_only, or in a job that reads alone, check only the writes that the saved state \
              counts as complete.",
    ),
    percent("trim_percentage", |options, percent| options.verify.trim_percent = Some(percent))
        .default("0")
        .doc("Percentage of the blocks written with verify that are trimmed, in batches by trim_backlog."),
    int("trim_backlog", ANY, |options, number| options.verify.trim_backlog = Some(number))
        .doc("Writes between two batches of trims; 0 means no trims."),
    int("trim_backlog_batch", ANY, |options, number| options.verify.trim_batch = Some(number))
        .doc("Most trims of a batch; without it as many as trim_backlog."),
    switch("trim_verify_zero", |options, on| options.verify.trim_is_zero = Some(on))
        .default("1")
        .doc("Check that trimmed blocks read as zeroes; 0 does not check them."),
    row("buffer_pattern", Text, |options, text| set(&mut options.buffer_pattern, pattern::parse(text)))
        .doc("Data of writes, in the syntax of verify_pattern; with verify, only its compressible part."),
    percent("buffer_compress_percentage", |options, percent| options.compress_percent = Some(percent))
        .doc("Share of the data of writes that compresses to nothing."),
    size("buffer_compress_chunk", 0..=MAX, |options, number| options.compress_chunk = Some(number as u32))
        .default("512")
        .doc("Bytes of a chunk that has the share of buffer_compress_percentage."),
    percent("dedupe_percentage", |options, percent| options.dedupe_percent = Some(percent))
        .doc("Share of the writes that repeat the data of others."),
    row("dedupe_mode", Choice(&["repeat", "working_set"]), |options, text| {
        set(&mut options.dedupe_mode, value::choice(text, &DEDUPE_MODES))
    })
    .default("repeat")
    .doc("Repeat the write before, or a block of a working set."),
    percent("dedupe_working_set_percentage", |options, percent| options.dedupe_set_percent = Some(percent))
        .default("5")
        .doc("Size of the working set of dedupe_mode=working_set, in percent of the range of the job."),
    switch("dedupe_global", |options, on| options.dedupe_global = Some(on))
        .doc("Use the same working set in all jobs."),
];

/// Lengths have 32 bits.
const MAX: u64 = u32::MAX as u64 / 2;

/// The method of this name; `None` for 0.
fn method(text: &str) -> Result<Option<VerifyMethod>, String> {
    let word = text.trim();
    if word == "0" {
        return Ok(None);
    }
    value::choice(word, &VerifyMethod::NAMED)
        .map(Some)
        .map_err(|_| format!("valid values are {}", METHODS.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_method_has_a_word() {
        let named: Vec<&str> = VerifyMethod::NAMED.iter().map(|(name, _)| *name).collect();
        assert!(METHODS[1..].iter().all(|word| named.contains(word)) && METHODS.len() == named.len() + 1);
    }
}
