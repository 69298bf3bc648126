//! Options that change nothing here, accepted with the reason.

use fathom_model::OptionValueKind::{Bool, Choice, Floats, Int, Size, Text};

use super::{JobOption, int, numbers, row, size, unused};
use crate::value;

const ZBD: &str = "It means something only with zonemode=zbd, which is refused.";
const PLACEMENT: &str = "It means something only with fdp=1 or dataplacement, which are refused.";
const MERGING: &str = "It means something only with merge_blktrace_file, which is refused.";

const CLOCKS: &[&str] = &["gettimeofday", "clock_gettime", "cpu"];
const MEMORY: &[&str] = &["malloc", "shm", "shmhuge", "mmap", "mmapshared", "mmaphuge"];
const FILE_TYPES: &[&str] = &["none", "file", "block", "char"];
const THINK_TIME_BLOCKS: &[&str] = &["complete", "issue"];

pub(super) const ROWS: &[JobOption] = &[
    unused("softrandommap", Bool)
        .default("0")
        .doc("A random map takes no memory here, so its allocation cannot fail."),
    unused("create_serialize", Bool).default("1").doc("Files are always laid out one after the other."),
    unused("create_fsync", Bool)
        .default("1")
        .doc("A layout always ends with a sync, which is not part of the measurement."),
    unused("error_dump", Bool)
        .default("0")
        .doc("Errors are always counted by their number, and the one that ends a job is printed."),
    unused("unique_filename", Bool)
        .default("1")
        .doc("It changes names only between a server and its clients, which do not exist here."),
    unused("clocksource", Choice(CLOCKS)).default("clock_gettime").doc(
        "The kernel's monotonic clock in ns is always used, which reads the processor's counter \
              without a system call.",
    ),
    unused("gtod_cpu", Int).doc("Reading the clock takes no system call, so no CPU is set aside for it."),
    unused("mem", Choice(MEMORY)).aliases(&["iomem"]).default("malloc").doc(
        "Buffers are always anonymous memory aligned for direct I/O, in huge pages where the kernel \
              has them.",
    ),
    size("iomem_align", 0..=4096, |_, _| {})
        .aliases(&["mem_align"])
        .doc("Buffers are always aligned to 4 KiB or more."),
    size("hugepage-size", 1..=u64::MAX, |_, _| {}).doc("The kernel chooses the size of huge pages."),
    unused("verify_async", Int).default("0").doc("The thread that reads a block also checks it."),
    row("verify_async_cpus", Text, |_, text| value::cpus(text).map(drop))
        .doc("The thread that reads a block also checks it."),
    unused("experimental_verify", Bool)
        .default("0")
        .doc("Blocks are found by repeating the order of the writes anyway."),
    int("log_entries", 1_024..=1_048_576, |_, _| {})
        .default("1024")
        .doc("Logs are written during the run, from buffers of a fixed size."),
    size("log_compression", 1_024..=512 << 20, |_, _| {}).doc("Logs do not stay in memory."),
    row("log_compression_cpus", Text, |_, text| value::cpus(text).map(drop))
        .doc("No thread compresses logs."),
    unused("filetype", Choice(FILE_TYPES))
        .default("none")
        .doc("The type of each target is read from the system."),
    unused("thinktime_blocks_type", Choice(THINK_TIME_BLOCKS)).default("complete").doc(
        "Requests are counted when they are issued, and a pause begins when all of them have \
              completed, so both are equal.",
    ),
    unused("write_barrier", Int).default("0").doc(
        "Linux has had no barrier writes since 2.6.37, and no engine of fio acts on the mark; use \
              fsync or sync=dsync.",
    ),
    unused("comm", Text).doc("Threads have the names of their jobs."),
    unused("zonecapacity", Size).doc(ZBD),
    unused("read_beyond_wp", Bool).doc(ZBD),
    // At most 4,096 open zones, as in fio.
    int("max_open_zones", 0..=4096, |_, _| {}).doc(ZBD),
    int("job_max_open_zones", 0..=4096, |_, _| {}).doc(ZBD),
    unused("ignore_zone_limits", Bool).doc(ZBD),
    row("zone_reset_threshold", Floats, |_, text| numbers(text, 1.0)).doc(ZBD),
    row("zone_reset_frequency", Floats, |_, text| numbers(text, 1.0)).doc(ZBD),
    unused("recover_zbd_write_error", Bool).doc(ZBD),
    unused("write_zone_remainder", Bool).doc(ZBD),
    unused("threads", Size).doc(
        "It belongs to fio's profile tiobench, and means nothing in a job: numjobs has the number of \
              threads.",
    ),
    unused("plid_select", Text).aliases(&["fdp_pli_select"]).doc(PLACEMENT),
    unused("plids", Text).aliases(&["fdp_pli"]).doc(PLACEMENT),
    unused("dp_scheme", Text).doc(PLACEMENT),
    unused("random_sequence_stride", Bool)
        .default("0")
        .doc("It means something only with random_distribution=sequence, which is refused."),
    unused("merge_blktrace_scalars", Floats).doc(MERGING),
    unused("merge_blktrace_iters", Floats).doc(MERGING),
];
