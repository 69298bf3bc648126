//! Options about the targets: names, sizes, layout and removal.

use fathom_model::plan::{Fallocate, FileAdvice, FileLocking, WriteHint};
use fathom_model::{OptionRow, OptionValueKind};

use super::set;
use crate::job_options::JobOptions;
use crate::value;

const FALLOCATE: [(&str, Fallocate); 7] = [
    ("none", Fallocate::None),
    ("native", Fallocate::Native),
    ("posix", Fallocate::Posix),
    ("keep", Fallocate::Keep),
    ("truncate", Fallocate::Truncate),
    ("0", Fallocate::None),
    ("1", Fallocate::Posix),
];

const ADVICE: [(&str, FileAdvice); 6] = [
    ("0", FileAdvice::None),
    ("none", FileAdvice::None),
    ("1", FileAdvice::ByOffsets),
    ("random", FileAdvice::Random),
    ("sequential", FileAdvice::Sequential),
    ("noreuse", FileAdvice::NoReuse),
];

const WRITE_HINTS: [(&str, WriteHint); 5] = [
    ("none", WriteHint::None),
    ("short", WriteHint::Short),
    ("medium", WriteHint::Medium),
    ("long", WriteHint::Long),
    ("extreme", WriteHint::Extreme),
];

const LOCKS: [(&str, FileLocking); 3] = [
    ("none", FileLocking::None),
    ("exclusive", FileLocking::Exclusive),
    ("readwrite", FileLocking::ReadWrite),
];

/// The rows of this category.
pub(super) const ROWS: &[OptionRow<JobOptions>] = &[
    OptionRow {
        name: "name",
        aliases: &[],
        kind: OptionValueKind::Text,
        default: "",
        doc: "Name of the job; on the command line it also starts a new job.",
        apply: |options, text| set(&mut options.name, word(text)),
    },
    OptionRow {
        name: "description",
        aliases: &[],
        kind: OptionValueKind::Text,
        default: "",
        doc: "Free text shown with the result.",
        apply: |options, text| set(&mut options.description, Ok(text.to_owned())),
    },
    OptionRow {
        name: "filename",
        aliases: &[],
        kind: OptionValueKind::Text,
        default: "",
        doc: "Files or devices to use, separated by colons (a colon in a name is written \\:), shared by all clones; sim:ID?size=50GiB is a simulated volume.",
        apply: filename,
    },
    OptionRow {
        name: "opendir",
        aliases: &[],
        kind: OptionValueKind::Text,
        default: "",
        doc: "Use all regular files in this directory and those below it, in the order of their names.",
        apply: |options, text| {
            options.opendir.push(word(text)?);
            Ok(())
        },
    },
    OptionRow {
        name: "directory",
        aliases: &[],
        kind: OptionValueKind::Text,
        default: "",
        doc: "Directory put before the file names; of several, separated by colons, clone i uses the i-th.",
        apply: |options, text| set(&mut options.directory, value::names(text)),
    },
    OptionRow {
        name: "filename_format",
        aliases: &[],
        kind: OptionValueKind::Text,
        default: "$jobname.$jobnum.$filenum",
        doc: "Template of file names without filename, with $jobname, $jobnum and $filenum.",
        apply: |options, text| set(&mut options.filename_format, word(text)),
    },
    OptionRow {
        name: "nrfiles",
        aliases: &["nr_files"],
        kind: OptionValueKind::Int,
        default: "1",
        doc: "Files per job, which share its size evenly.",
        apply: |options, text| set(&mut options.nrfiles, value::count(text, 1)),
    },
    OptionRow {
        name: "size",
        aliases: &[],
        kind: OptionValueKind::SizeOrPercent,
        default: "",
        doc: "Bytes of the target to use, over all files of the job, or a percentage of it.",
        apply: |options, text| set(&mut options.size, value::size_or_percent(text)),
    },
    OptionRow {
        name: "filesize",
        aliases: &[],
        kind: OptionValueKind::Text,
        default: "",
        doc: "Size of each file, or a range such as 64k-1m that each is drawn from; size then limits what a pass moves.",
        apply: |options, text| set(&mut options.filesize, file_size(text)),
    },
    OptionRow {
        name: "offset",
        aliases: &["fileoffset"],
        kind: OptionValueKind::SizeOrPercent,
        default: "0",
        doc: "Start of the range to use in the target.",
        apply: |options, text| set(&mut options.offset, value::offset(text)),
    },
    OptionRow {
        name: "offset_increment",
        aliases: &[],
        kind: OptionValueKind::SizeOrPercent,
        default: "0",
        doc: "Added to offset once for each clone before this one.",
        apply: |options, text| set(&mut options.offset_increment, value::offset(text)),
    },
    OptionRow {
        name: "fallocate",
        aliases: &[],
        kind: OptionValueKind::Choice(&["none", "native", "posix", "keep", "truncate", "0", "1"]),
        default: "native",
        doc: "Method of preallocation in file layout.",
        apply: |options, text| set(&mut options.fallocate, value::choice(text, &FALLOCATE)),
    },
    OptionRow {
        name: "overwrite",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "Lay out files also before a job that only writes.",
        apply: |options, text| set(&mut options.overwrite, value::boolean(text)),
    },
    OptionRow {
        name: "create_only",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "Lay out files and issue no I/O.",
        apply: |options, text| set(&mut options.create_only, value::boolean(text)),
    },
    OptionRow {
        name: "allow_file_create",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "1",
        doc: "Whether missing files may be created.",
        apply: |options, text| set(&mut options.allow_file_create, value::boolean(text)),
    },
    OptionRow {
        name: "allow_mounted_write",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "Write to a device or file although it is in use (mounted, swap, held by another device).",
        apply: |options, text| set(&mut options.allow_mounted_write, value::boolean(text)),
    },
    OptionRow {
        name: "unlink",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "Remove the files at the end.",
        apply: |options, text| set(&mut options.unlink, value::boolean(text)),
    },
    OptionRow {
        name: "unlink_each_loop",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "Remove the files between two loops; refused with loops or time_based, because the files stay open.",
        apply: |options, text| set(&mut options.unlink_each_loop, value::boolean(text)),
    },
    OptionRow {
        name: "lockfile",
        aliases: &[],
        kind: OptionValueKind::Choice(&["none", "exclusive", "readwrite"]),
        default: "none",
        doc: "Lock the file of each request while it is in flight: alone, or reads together.",
        apply: |options, text| value::choice(text, &LOCKS).map(|lock| options.usage.locking = lock),
    },
    OptionRow {
        name: "create_on_open",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "Lay out no files, but create them empty and let writes extend them.",
        apply: |options, text| value::boolean(text).map(|given| options.usage.create_on_open = given),
    },
    OptionRow {
        name: "file_append",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "Begin at the end of the file.",
        apply: |options, text| value::boolean(text).map(|given| options.usage.append = given),
    },
    OptionRow {
        name: "fill_device",
        aliases: &["fill_fs"],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "Write until the file system is full, which ends the job without an error.",
        apply: |options, text| value::boolean(text).map(|given| options.usage.fill_device = given),
    },
    OptionRow {
        name: "pre_read",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "Read the used range into the page cache before the start, instead of dropping it from there.",
        apply: |options, text| value::boolean(text).map(|given| options.usage.pre_read = given),
    },
    OptionRow {
        name: "fsync_on_close",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "Call fsync on every file when it is closed, after the measurement.",
        apply: |options, text| value::boolean(text).map(|given| options.usage.fsync_on_close = given),
    },
    OptionRow {
        name: "end_syncfs",
        aliases: &[],
        kind: OptionValueKind::Bool,
        default: "0",
        doc: "Sync the file systems of the files (syncfs) after the measurement.",
        apply: |options, text| value::boolean(text).map(|given| options.usage.end_syncfs = given),
    },
    OptionRow {
        name: "fadvise_hint",
        aliases: &[],
        kind: OptionValueKind::Choice(&["0", "none", "1", "random", "sequential", "noreuse"]),
        default: "1",
        doc: "What posix_fadvise(2) tells the kernel about each file: 1 means the order of the offsets, 0 nothing.",
        apply: |options, text| value::choice(text, &ADVICE).map(|advice| options.usage.advice = advice),
    },
    OptionRow {
        name: "write_hint",
        aliases: &[],
        kind: OptionValueKind::Choice(&["none", "short", "medium", "long", "extreme"]),
        default: "",
        doc: "Life time of written data, as a hint to the device (F_SET_RW_HINT).",
        apply: |options, text| {
            value::choice(text, &WRITE_HINTS).map(|hint| options.usage.write_hint = Some(hint))
        },
    },
    OptionRow {
        name: "offset_align",
        aliases: &[],
        kind: OptionValueKind::Size,
        default: "0",
        doc: "An offset in percent is rounded up to a multiple of this, or at 0 of the smallest block.",
        apply: |options, text| {
            value::integer_in(text, 0, i64::MAX as u64).map(|bytes| options.offset_align = bytes)
        },
    },
];

fn word(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("it must not be empty".to_owned()) } else { Ok(text.to_owned()) }
}

/// Names add up within a section, but replace those given for all jobs.
fn filename(options: &mut JobOptions, text: &str) -> Result<(), String> {
    let names = value::names(text)?;
    if names.iter().any(|name| name == "-") {
        return Err(
            "standard input and output are not supported as targets: name a file or device".to_owned()
        );
    }
    if std::mem::take(&mut options.filename_is_inherited) {
        options.filename = None;
    }
    options.filename.get_or_insert_default().extend(names);
    Ok(())
}

fn file_size(text: &str) -> Result<(u64, u64), String> {
    let size = |text: &str| value::integer_in(text, 1, u64::MAX);
    match text.split_once('-').filter(|(least, _)| !least.trim().is_empty()) {
        None => size(text).map(|size| (size, size)),
        Some((least, most)) => {
            let (one, other) = (size(least)?, size(most)?);
            // Either end may come first, as in fio.
            Ok((one.min(other), one.max(other)))
        }
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::plan::SizeSpec;

    use super::*;

    #[test]
    fn file_names_add_up_within_a_section_only() {
        let mut global = JobOptions::from_pairs(&[("filename", "a:b"), ("filename", "c")]).unwrap();
        assert_eq!(global.filename.as_deref().unwrap(), ["a", "b", "c"]);
        global = global.inherited();
        filename(&mut global, "d").unwrap();
        filename(&mut global, "e").unwrap();
        assert_eq!(global.filename.unwrap(), ["d", "e"]);
    }

    #[test]
    fn values() {
        let check = |pair, field: fn(&JobOptions) -> bool| {
            assert!(field(&JobOptions::from_pairs(&[pair]).unwrap()), "{pair:?}");
        };
        check(("name", "x"), |o| o.name.as_deref() == Some("x"));
        check(("description", "a b"), |o| o.description.as_deref() == Some("a b"));
        check(("directory", "a:b"), |o| o.directory.as_ref().unwrap().len() == 2);
        check(("filename_format", "f.$filenum"), |o| o.filename_format.as_deref() == Some("f.$filenum"));
        check(("nr_files", "4"), |o| o.nrfiles == Some(4));
        check(("size", "50%"), |o| o.size == Some(SizeSpec::Percent(50)));
        check(("filesize", "1m"), |o| o.filesize == Some((1 << 20, 1 << 20)));
        check(("filesize", "2m-1m"), |o| o.filesize == Some((1 << 20, 2 << 20)));
        check(("fileoffset", "4k"), |o| o.offset == Some(SizeSpec::Bytes(4096)));
        check(("offset_increment", "0%"), |o| o.offset_increment == Some(SizeSpec::Bytes(0)));
        check(("fallocate", "1"), |o| o.fallocate == Some(Fallocate::Posix));
        check(("overwrite", "1"), |o| o.overwrite == Some(true));
        check(("create_only", "1"), |o| o.create_only == Some(true));
        check(("allow_file_create", "0"), |o| o.allow_file_create == Some(false));
        check(("allow_mounted_write", "1"), |o| o.allow_mounted_write == Some(true));
        check(("unlink", "1"), |o| o.unlink == Some(true));
        for bad in [
            ("name", ""),
            ("filename", ":"),
            ("filename", "-"),
            ("filesize", "1m-"),
            ("filesize", "0-1m"),
            ("filesize", "0"),
            ("nrfiles", "0"),
            ("size", "200%"),
            ("size", "9223372036854775808"),
            ("offset", "18446744073709551615"),
            ("offset_align", "18446744073709551615"),
            ("overwrite", "yes"),
        ] {
            assert!(JobOptions::from_pairs(&[bad]).is_err(), "{bad:?}");
        }
    }
}
