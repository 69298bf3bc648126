//! Options that change nothing here, accepted with the reason.

use fathom_model::{OptionRow, OptionValueKind};

use crate::job_options::JobOptions;
use crate::value;

/// A row whose value is 0 or 1.
const fn switch(name: &'static str, default: &'static str, doc: &'static str) -> OptionRow<JobOptions> {
    let kind = OptionValueKind::Bool;
    OptionRow { name, aliases: &[], kind, default, doc, apply: |_, text| value::boolean(text).map(drop) }
}

/// A row of an option that means something only beside another one, which is refused.
const fn beside(
    name: &'static str,
    aliases: &'static [&'static str],
    doc: &'static str,
) -> OptionRow<JobOptions> {
    let kind = OptionValueKind::Text;
    OptionRow { name, aliases, kind, default: "", doc, apply: |_, _| Ok(()) }
}

/// The same, with a value that is checked.
const fn checked(
    name: &'static str,
    aliases: &'static [&'static str],
    kind: OptionValueKind,
    doc: &'static str,
) -> OptionRow<JobOptions> {
    let apply: fn(&mut JobOptions, &str) -> Result<(), String> = match kind {
        OptionValueKind::Bool => |_, text| value::boolean(text).map(drop),
        OptionValueKind::Size => |_, text| value::integer(text).map(drop),
        OptionValueKind::Int => |_, text| value::count(text, 0).map(drop),
        OptionValueKind::Floats => |_, text| numbers(text, f64::MAX),
        _ => |_, _| Ok(()),
    };
    OptionRow { name, aliases, kind, default: "", doc, apply }
}

/// Numbers from 0 to `most`, separated by colons.
fn numbers(text: &str, most: f64) -> Result<(), String> {
    let is_one =
        |number: &str| number.trim().parse::<f64>().is_ok_and(|number| (0.0..=most).contains(&number));
    match text.split(':').find(|number| !is_one(number)) {
        None => Ok(()),
        Some(other) if most == f64::MAX => Err(format!("'{other}' is not a number")),
        Some(other) => Err(format!("value out of range: '{other}' is not a number from 0 to {most}")),
    }
}

/// A row whose value is a share of one.
const fn share(name: &'static str, doc: &'static str) -> OptionRow<JobOptions> {
    let kind = OptionValueKind::Floats;
    OptionRow { name, aliases: &[], kind, default: "", doc, apply: |_, text| numbers(text, 1.0) }
}

/// A row whose value is a number of open zones: 4,096 at most, as in fio.
const fn open_zones(name: &'static str) -> OptionRow<JobOptions> {
    let apply: fn(&mut JobOptions, &str) -> _ = |_, text| value::integer_in(text, 0, 4096).map(drop);
    OptionRow { name, aliases: &[], kind: OptionValueKind::Int, default: "", doc: ZBD, apply }
}

const ZBD: &str = "It means something only with zonemode=zbd, which is refused.";
const PLACEMENT: &str = "It means something only with fdp=1 or dataplacement, which are refused.";
const MERGING: &str = "It means something only with merge_blktrace_file, which is refused.";

const CLOCKS: &[&str] = &["gettimeofday", "clock_gettime", "cpu"];
const MEMORY: &[&str] = &["malloc", "shm", "shmhuge", "mmap", "mmapshared", "mmaphuge"];
const FILE_TYPES: &[&str] = &["none", "file", "block", "char"];
const THINK_TIME_BLOCKS: &[&str] = &["complete", "issue"];

fn one_of(words: &[&str], text: &str) -> Result<(), String> {
    if words.contains(&text.trim()) { Ok(()) } else { Err(format!("valid values are {}", words.join(", "))) }
}

/// The rows of this category.
pub(super) const ROWS: &[OptionRow<JobOptions>] = &[
    switch("softrandommap", "0", "A random map takes no memory here, so its allocation cannot fail."),
    switch("create_serialize", "1", "Files are always laid out one after the other."),
    switch("create_fsync", "1", "A layout always ends with a sync, which is not part of the measurement."),
    switch(
        "error_dump",
        "0",
        "Errors are always counted by their number, and the one that ends a job is printed.",
    ),
    switch(
        "unique_filename",
        "1",
        "It changes names only between a server and its clients, which do not exist here.",
    ),
    OptionRow {
        name: "clocksource",
        aliases: &[],
        kind: OptionValueKind::Choice(CLOCKS),
        default: "clock_gettime",
        doc: "The kernel's monotonic clock in ns is always used, which reads the processor's counter without a system call.",
        apply: |_, text| one_of(CLOCKS, text),
    },
    OptionRow {
        name: "gtod_cpu",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "",
        doc: "Reading the clock takes no system call, so no CPU is set aside for it.",
        apply: |_, text| value::count(text, 0).map(drop),
    },
    OptionRow {
        name: "mem",
        aliases: &["iomem"],
        kind: OptionValueKind::Choice(MEMORY),
        default: "malloc",
        doc: "Buffers are always anonymous memory aligned for direct I/O, in huge pages where the kernel has them.",
        apply: |_, text| one_of(MEMORY, text),
    },
    OptionRow {
        name: "iomem_align",
        aliases: &["mem_align"],
        kind: OptionValueKind::Size,
        default: "",
        doc: "Buffers are always aligned to 4 KiB or more.",
        apply: |_, text| value::integer_in(text, 0, 4096).map(drop),
    },
    OptionRow {
        name: "hugepage-size",
        aliases: &[],
        kind: OptionValueKind::Size,
        default: "",
        doc: "The kernel chooses the size of huge pages.",
        apply: |_, text| value::integer_in(text, 1, u64::MAX).map(drop),
    },
    OptionRow {
        name: "verify_async",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "0",
        doc: "The thread that reads a block also checks it.",
        apply: |_, text| value::count(text, 0).map(drop),
    },
    OptionRow {
        name: "verify_async_cpus",
        aliases: &[],
        kind: OptionValueKind::Text,
        default: "",
        doc: "The thread that reads a block also checks it.",
        apply: |_, text| value::cpus(text).map(drop),
    },
    switch("experimental_verify", "0", "Blocks are found by repeating the order of the writes anyway."),
    OptionRow {
        name: "log_entries",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "1024",
        doc: "Logs are written during the run, from buffers of a fixed size.",
        apply: |_, text| value::integer_in(text, 1_024, 1_048_576).map(drop),
    },
    OptionRow {
        name: "log_compression",
        aliases: &[],
        kind: OptionValueKind::Size,
        default: "",
        doc: "Logs do not stay in memory.",
        apply: |_, text| value::integer_in(text, 1_024, 512 << 20).map(drop),
    },
    OptionRow {
        name: "log_compression_cpus",
        aliases: &[],
        kind: OptionValueKind::Text,
        default: "",
        doc: "No thread compresses logs.",
        apply: |_, text| value::cpus(text).map(drop),
    },
    OptionRow {
        name: "filetype",
        aliases: &[],
        kind: OptionValueKind::Choice(FILE_TYPES),
        default: "none",
        doc: "The type of each target is read from the system.",
        apply: |_, text| one_of(FILE_TYPES, text),
    },
    OptionRow {
        name: "thinktime_blocks_type",
        aliases: &[],
        kind: OptionValueKind::Choice(THINK_TIME_BLOCKS),
        default: "complete",
        doc: "Requests are counted when they are issued, and a pause begins when all of them have completed, so both are equal.",
        apply: |_, text| one_of(THINK_TIME_BLOCKS, text),
    },
    OptionRow {
        name: "write_barrier",
        aliases: &[],
        kind: OptionValueKind::Int,
        default: "0",
        doc: "Linux has had no barrier writes since 2.6.37, and no engine of fio acts on the mark; use fsync or sync=dsync.",
        apply: |_, text| value::count(text, 0).map(drop),
    },
    OptionRow {
        name: "comm",
        aliases: &[],
        kind: OptionValueKind::Text,
        default: "",
        doc: "Threads have the names of their jobs.",
        apply: |_, _| Ok(()),
    },
    checked("zonecapacity", &[], OptionValueKind::Size, ZBD),
    checked("read_beyond_wp", &[], OptionValueKind::Bool, ZBD),
    open_zones("max_open_zones"),
    open_zones("job_max_open_zones"),
    checked("ignore_zone_limits", &[], OptionValueKind::Bool, ZBD),
    share("zone_reset_threshold", ZBD),
    share("zone_reset_frequency", ZBD),
    checked("recover_zbd_write_error", &[], OptionValueKind::Bool, ZBD),
    checked("write_zone_remainder", &[], OptionValueKind::Bool, ZBD),
    checked(
        "threads",
        &[],
        OptionValueKind::Size,
        "It belongs to fio's profile tiobench, and means nothing in a job: numjobs has the number of threads.",
    ),
    beside("plid_select", &["fdp_pli_select"], PLACEMENT),
    beside("plids", &["fdp_pli"], PLACEMENT),
    beside("dp_scheme", &[], PLACEMENT),
    switch(
        "random_sequence_stride",
        "0",
        "It means something only with random_distribution=sequence, which is refused.",
    ),
    checked("merge_blktrace_scalars", &[], OptionValueKind::Floats, MERGING),
    checked("merge_blktrace_iters", &[], OptionValueKind::Floats, MERGING),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_values_have_the_bounds_of_fio() {
        let row = |name| ROWS.iter().find(|row| row.name == name).unwrap();
        let check = |name, text, is_taken| {
            let applied = (row(name).apply)(&mut JobOptions::default(), text);
            assert_eq!(applied.is_ok(), is_taken, "{name}={text}");
        };
        check("max_open_zones", "4096", true);
        check("max_open_zones", "4097", false);
        check("job_max_open_zones", "1m", false);
        check("zonecapacity", "9223372036854775807", true);
        check("zonecapacity", "9223372036854775808", false);
    }
}
