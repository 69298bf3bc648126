//! Options about the targets: names, sizes, layout and removal.

use fathom_model::OptionValueKind::{Choice, SizeOrPercent, Text};
use fathom_model::plan::{Fallocate, FileAdvice, FileLocking, WriteHint};

use super::{ANY, JobOption, count, row, set, size, switch, unless_zero};
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

pub(super) const ROWS: &[JobOption] = &[
    row("name", Text, |options, text| set(&mut options.name, word(text)))
        .doc("Name of the job; on the command line it also starts a new job."),
    row("description", Text, |options, text| set(&mut options.plan.description, Ok(text.to_owned())))
        .doc("Free text shown with the result."),
    row("filename", Text, filename).doc(
        "Files or devices to use, separated by colons (a colon in a name is written \\:), shared by \
              all clones; sim:ID?size=50GiB is a simulated volume.",
    ),
    row("opendir", Text, |options, text| word(text).map(|name| options.opendir.push(name)))
        .doc("Use all regular files in this directory and those below it, in the order of their names."),
    row("directory", Text, |options, text| set(&mut options.directory, value::names(text)))
        .doc("Directory put before the file names; of several, separated by colons, clone i uses the i-th."),
    row("filename_format", Text, |options, text| set(&mut options.filename_format, word(text)))
        .default("$jobname.$jobnum.$filenum")
        .doc("Template of file names without filename, with $jobname, $jobnum and $filenum."),
    count("nrfiles", 1, |options, count| options.nrfiles = Some(count))
        .aliases(&["nr_files"])
        .default("1")
        .doc("Files per job, which share its size evenly."),
    row("size", SizeOrPercent, |options, text| {
        value::size_or_percent(text).map(|size| options.plan.io.size = unless_zero(size))
    })
    .doc("Bytes of the target to use, over all files of the job, or a percentage of it."),
    row("filesize", Text, |options, text| {
        file_size(text).map(|(least, most)| {
            (options.plan.io.file_size, options.plan.io.file_size_most) =
                (Some(least), Some(most).filter(|most| *most > least))
        })
    })
    .doc(
        "Size of each file, or a range such as 64k-1m that each is drawn from; size then limits what \
              a pass moves.",
    ),
    row("offset", SizeOrPercent, |options, text| {
        value::offset(text).map(|value| options.plan.io.offset = value)
    })
    .aliases(&["fileoffset"])
    .default("0")
    .doc("Start of the range to use in the target."),
    row("offset_increment", SizeOrPercent, |options, text| {
        value::offset(text).map(|value| options.plan.io.offset_increment = value)
    })
    .default("0")
    .doc("Added to offset once for each clone before this one."),
    row("fallocate", Choice(&["none", "native", "posix", "keep", "truncate", "0", "1"]), |options, text| {
        value::choice(text, &FALLOCATE).map(|value| options.plan.files.fallocate = value)
    })
    .default("native")
    .doc("Method of preallocation in file layout."),
    switch("overwrite", |options, on| options.plan.files.overwrite = on)
        .doc("Lay out files also before a job that only writes."),
    switch("create_only", |options, on| options.plan.files.create_only = on)
        .doc("Lay out files and issue no I/O."),
    switch("allow_file_create", |options, on| options.plan.files.allow_create = on)
        .default("1")
        .doc("Whether missing files may be created."),
    switch("allow_mounted_write", |options, on| options.plan.files.allow_mounted_write = on)
        .doc("Write to a device or file although it is in use (mounted, swap, held by another device)."),
    switch("unlink", |options, on| options.plan.files.unlink = on).doc("Remove the files at the end."),
    switch("unlink_each_loop", |options, on| options.unlink_each_loop = Some(on)).doc(
        "Remove the files between two loops; refused with loops or time_based, because the files \
              stay open.",
    ),
    row("lockfile", Choice(&["none", "exclusive", "readwrite"]), |options, text| {
        value::choice(text, &LOCKS).map(|lock| options.plan.files.usage.locking = lock)
    })
    .default("none")
    .doc("Lock the file of each request while it is in flight: alone, or reads together."),
    switch("create_on_open", |options, given| options.plan.files.usage.create_on_open = given)
        .doc("Lay out no files, but create them empty and let writes extend them."),
    switch("file_append", |options, given| options.plan.files.usage.append = given)
        .doc("Begin at the end of the file."),
    switch("fill_device", |options, given| options.plan.files.usage.fill_device = given)
        .aliases(&["fill_fs"])
        .doc("Write until the file system is full, which ends the job without an error."),
    switch("pre_read", |options, given| options.plan.files.usage.pre_read = given)
        .doc("Read the used range into the page cache before the start, instead of dropping it from there."),
    switch("fsync_on_close", |options, given| options.plan.files.usage.fsync_on_close = given)
        .doc("Call fsync on every file when it is closed, after the measurement."),
    switch("end_syncfs", |options, given| options.plan.files.usage.end_syncfs = given)
        .doc("Sync the file systems of the files (syncfs) after the measurement."),
    row("fadvise_hint", Choice(&["0", "none", "1", "random", "sequential", "noreuse"]), |options, text| {
        value::choice(text, &ADVICE).map(|advice| options.plan.files.usage.advice = advice)
    })
    .default("1")
    .doc(
        "Advice to the kernel about each file by posix_fadvise(2): 1 is the order of the offsets, 0 \
              none.",
    ),
    row("write_hint", Choice(&["none", "short", "medium", "long", "extreme"]), |options, text| {
        value::choice(text, &WRITE_HINTS).map(|hint| options.plan.files.usage.write_hint = Some(hint))
    })
    .doc("Life time of written data, as a hint to the device (F_SET_RW_HINT)."),
    size("offset_align", ANY, |options, bytes| options.plan.io.offset_align = bytes)
        .default("0")
        .doc("An offset in percent is rounded up to a multiple of this, or at 0 of the smallest block."),
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
}
