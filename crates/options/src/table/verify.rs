//! Options about the contents of writes and the check of what is read back.

use fathom_model::plan::VerifyMethod;
use fathom_model::{OptionRow, OptionValueKind};

use super::set;
use crate::job_options::{DedupeOption, JobOptions};
use crate::{pattern, value};

const METHODS: &[&str] = &[
    "0",
    "md5",
    "crc64",
    "crc32",
    "crc32c-intel",
    "crc32c",
    "crc16",
    "crc7",
    "sha1",
    "sha256",
    "sha512",
    "sha3-224",
    "sha3-256",
    "sha3-384",
    "sha3-512",
    "xxhash",
    "meta",
    "pattern",
    "pattern_hdr",
    "null",
];

const DEDUPE_MODES: [(&str, DedupeOption); 2] =
    [("repeat", DedupeOption::Repeat), ("working_set", DedupeOption::WorkingSet)];

/// The least offset of a header, as in fio: its own length, which is exchanged with the start of the block.
const SHORTEST_HEADER: u64 = 40;

/// The rows of this category.
pub(super) const ROWS: &[OptionRow<JobOptions>] = &[
    OptionRow {
        name: "verify",
        aliases: &[],
        kind: OptionValueKind::Choice(METHODS),
        default: "0",
        doc: "Write blocks with a header and a checksum, and check them when they are read back.",
        apply: |options, text| set(&mut options.verify.method, method(text)),
    },
    OptionRow {
        name: "do_verify",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "1",
        doc: "Read back and check what a job with verify has written.",
        apply: |options, text| set(&mut options.verify.reads_back, value::boolean(text)),
    },
    OptionRow {
        name: "verify_interval",
        aliases: &[],
        kind: OptionValueKind::Size,
        default: "",
        doc: "Bytes between two headers of a block, if they divide it; without it a block has one header.",
        apply: |options, text| {
            set(&mut options.verify.interval, value::integer_in(text, 80, MOST).map(|bytes| bytes as u32))
        },
    },
    OptionRow {
        name: "verify_offset",
        aliases: &[],
        kind: OptionValueKind::Size,
        default: "",
        doc: "Position of the header in its block or interval.",
        apply: |options, text| {
            set(
                &mut options.verify.offset,
                value::integer_in(text, SHORTEST_HEADER, MOST).map(|bytes| bytes as u32),
            )
        },
    },
    OptionRow {
        name: "verify_pattern",
        aliases: &[],
        kind: OptionValueKind::Text,
        default: "",
        doc: "Data of blocks with verify: \"text\", 0xbytes, a number, %o for the block's offset, the name of a file in single quotes, or several of these.",
        apply: |options, text| set(&mut options.verify.pattern, pattern::parse(text)),
    },
    OptionRow {
        name: "verify_pattern_interval",
        aliases: &[],
        kind: OptionValueKind::Size,
        default: "0",
        doc: "Bytes after which verify_pattern begins anew, with the offset of that place; 0 = once per block.",
        apply: |options, text| {
            set(
                &mut options.verify.pattern_interval,
                value::integer_in(text, 0, MOST).map(|bytes| bytes as u32),
            )
        },
    },
    OptionRow {
        name: "verify_fatal",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "End the job at the first bad header or checksum, whatever continue_on_error says.",
        apply: |options, text| set(&mut options.verify.fatal, value::boolean(text)),
    },
    OptionRow {
        name: "verify_dump",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "Write bad blocks to FILE.OFFSET.received and what they should contain to FILE.OFFSET.expected.",
        apply: |options, text| set(&mut options.verify.dump, value::boolean(text)),
    },
    OptionRow {
        name: "verify_backlog",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "",
        doc: "Read back and check blocks each time this many were written, and not only at the end.",
        apply: |options, text| set(&mut options.verify.backlog, value::integer(text)),
    },
    OptionRow {
        name: "verify_backlog_batch",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "",
        doc: "Blocks to check at a time with verify_backlog; without it as many as were written.",
        apply: |options, text| set(&mut options.verify.backlog_batch, value::integer(text)),
    },
    OptionRow {
        name: "verify_only",
        aliases: &[],
        kind: OptionValueKind::Flag,
        default: "0",
        doc: "Write nothing, and check what an earlier run of the job has written.",
        apply: |options, text| set(&mut options.verify.only, value::boolean(text)),
    },
    OptionRow {
        name: "verify_header_seed",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "1",
        doc: "Check by the seed in the header that a block has the data of its last write; with several writers to one file only \
              the checksum is checked, because each knows its own writes alone.",
        apply: |options, text| set(&mut options.verify.header_seed, value::boolean(text)),
    },
    OptionRow {
        name: "verify_write_sequence",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "1",
        doc: "Check the order of writes, which the seed of the header tells: 0 has the effect of verify_header_seed=0.",
        apply: |options, text| set(&mut options.verify.write_sequence, value::boolean(text)),
    },
    OptionRow {
        name: "verify_state_save",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "1",
        doc: "Save the number of completed writes in local-JOB-N-verify.state in the working directory.",
        apply: |options, text| set(&mut options.verify.state_save, value::boolean(text)),
    },
    OptionRow {
        name: "verify_state_load",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "With verify_only, or in a job that reads alone, check only the writes that the saved state counts as complete.",
        apply: |options, text| set(&mut options.verify.state_load, value::boolean(text)),
    },
    OptionRow {
        name: "trim_percentage",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "0",
        doc: "Percentage of the blocks written with verify that are trimmed, in batches by trim_backlog.",
        apply: |options, text| set(&mut options.verify.trim_percent, value::percent(text)),
    },
    OptionRow {
        name: "trim_backlog",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "",
        doc: "Writes between two batches of trims; 0 means no trims.",
        apply: |options, text| set(&mut options.verify.trim_backlog, value::integer(text)),
    },
    OptionRow {
        name: "trim_backlog_batch",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "",
        doc: "Most trims of a batch; without it as many as trim_backlog.",
        apply: |options, text| set(&mut options.verify.trim_batch, value::integer(text)),
    },
    OptionRow {
        name: "trim_verify_zero",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "1",
        doc: "Check that trimmed blocks read as zeroes; 0 does not check them.",
        apply: |options, text| set(&mut options.verify.trim_is_zero, value::boolean(text)),
    },
    OptionRow {
        name: "buffer_pattern",
        aliases: &[],
        kind: OptionValueKind::Text,
        default: "",
        doc: "Data of writes, in the syntax of verify_pattern; with verify, only its compressible part.",
        apply: |options, text| set(&mut options.buffer_pattern, pattern::parse(text)),
    },
    OptionRow {
        name: "buffer_compress_percentage",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "",
        doc: "Share of the data of writes that compresses to nothing.",
        apply: |options, text| set(&mut options.compress_percent, value::percent(text)),
    },
    OptionRow {
        name: "buffer_compress_chunk",
        aliases: &[],
        kind: OptionValueKind::Size,
        default: "512",
        doc: "Bytes of a chunk that has the share of buffer_compress_percentage.",
        apply: |options, text| {
            set(&mut options.compress_chunk, value::integer_in(text, 0, MOST).map(|bytes| bytes as u32))
        },
    },
    OptionRow {
        name: "dedupe_percentage",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "",
        doc: "Share of the writes that repeat the data of others.",
        apply: |options, text| set(&mut options.dedupe_percent, value::percent(text)),
    },
    OptionRow {
        name: "dedupe_mode",
        aliases: &[],
        kind: OptionValueKind::Choice(&["repeat", "working_set"]),
        default: "repeat",
        doc: "Repeat the write before, or a block of a working set.",
        apply: |options, text| set(&mut options.dedupe_mode, value::choice(text, &DEDUPE_MODES)),
    },
    OptionRow {
        name: "dedupe_working_set_percentage",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "5",
        doc: "Size of the working set of dedupe_mode=working_set, in percent of the range of the job.",
        apply: |options, text| set(&mut options.dedupe_set_percent, value::percent(text)),
    },
    OptionRow {
        name: "dedupe_global",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "Use the same working set in all jobs.",
        apply: |options, text| set(&mut options.dedupe_global, value::boolean(text)),
    },
];

/// Lengths have 32 bits.
const MOST: u64 = u32::MAX as u64 / 2;

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
    fn values() {
        let check = |pair: (&str, &str), field: fn(&JobOptions) -> bool| {
            assert!(field(&JobOptions::from_pairs(&[pair]).unwrap()), "{pair:?}");
        };
        check(("verify", "crc32c-intel"), |o| o.verify.method == Some(Some(VerifyMethod::Crc32c)));
        check(("verify", "0"), |o| o.verify.method == Some(None));
        check(("verify_interval", "1k"), |o| o.verify.interval == Some(1024));
        check(("verify_pattern", "0x11"), |o| o.verify.pattern.as_ref().unwrap().bytes == [0x11]);
        check(("verify_only", ""), |o| o.verify.only == Some(true));
        check(("verify_backlog", "1k"), |o| o.verify.backlog == Some(1024));
        check(("verify_async", "4"), |o| *o == JobOptions::default());
        check(("buffer_compress_percentage", "50"), |o| o.compress_percent == Some(50));
        check(("dedupe_mode", "working_set"), |o| o.dedupe_mode == Some(DedupeOption::WorkingSet));
        for bad in [
            ("verify", "sha2"),
            ("verify_interval", "79"),
            ("verify_pattern", "x"),
            ("buffer_compress_percentage", "101"),
            ("dedupe_mode", "x"),
            ("verify_async", "x"),
        ] {
            assert!(JobOptions::from_pairs(&[bad]).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn each_method_has_a_word() {
        let named: Vec<&str> = VerifyMethod::NAMED.iter().map(|(name, _)| *name).collect();
        assert!(METHODS[1..].iter().all(|word| named.contains(word)) && METHODS.len() == named.len() + 1);
    }
}
