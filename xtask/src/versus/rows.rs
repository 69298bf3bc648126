//! The rows of the comparison with fio, and their goals. This is the only list of rows.

use super::load::{Cpus, RunLoad, Shown, Work};
use super::sample::SampleFigure;
use super::statistics::Goal;

/// One line of the table.
#[derive(Debug)]
pub struct TableRow {
    /// Its name for `--rows`.
    pub name: &'static str,
    /// The measured figure, for the table.
    pub what: &'static str,
    /// How figures are shown.
    pub unit: FigureUnit,
    /// The goal.
    pub goal: Goal,
    /// The measurement.
    pub measure: RowMeasure,
    /// Stands in the README too.
    pub headline: bool,
}

/// How a row is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowMeasure {
    /// Two runs per round, and a figure of each. Rows of one pair share its runs.
    Pair(ComparedPair, SampleFigure),
    /// Four runs per round: the rate of many jobs on two CPUs over twice that of one job pinned to one, of both tools.
    Scaling(RunLoad),
    /// The largest resident size.
    Resident(RunLoad),
    /// By how much the largest resident size grows from a range of 1 GiB to the load's.
    ResidentGrowth(RunLoad),
    /// From the start of the program to its first read of the file.
    Start(RunLoad),
    /// The slowest size of the bench of the next offset.
    NextOffset,
}

/// The programs that a row compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComparedPair {
    /// fathom's load.
    pub load: RunLoad,
    /// The program to compare with.
    pub against: Against,
}

/// The programs to compare fathom with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// fio with the same words.
    Fio,
    /// fio with its best options.
    FioAtBest,
    /// The bare ring.
    BareRing,
    /// The bare loop over pread.
    BarePread,
    /// fathom with nothing that shows or records its run.
    Unshown,
}

/// The unit of a row's figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureUnit {
    /// Millions (of requests per second of CPU time).
    Million,
    /// ns.
    Nanoseconds,
    /// ms.
    Milliseconds,
    /// MiB.
    Mebibytes,
    /// A share of one.
    Share,
}

const URING: RunLoad = RunLoad::one("io_uring", 64);
const PSYNC: RunLoad = RunLoad::one("psync", 1);

const fn compared(load: RunLoad, against: Against, figure: SampleFigure) -> RowMeasure {
    RowMeasure::Pair(ComparedPair { load, against }, figure)
}

const fn many(jobs: u32, load: RunLoad) -> RowMeasure {
    RowMeasure::Scaling(RunLoad { jobs, cpus: Cpus::Two, ..load })
}

/// The CPU time of both programs for jobs with options that take time for each request.
const fn with(work: Work, load: RunLoad) -> RowMeasure {
    compared(RunLoad { work, ..load }, Against::Fio, SampleFigure::ProcessTime)
}

/// A run whose device is recorded, compared with one whose is not. Its job waits for the device.
const fn recorded(work: Work, load: RunLoad, figure: SampleFigure) -> RowMeasure {
    let load = RunLoad { work, size: "256m", direct: true, shown: Shown::Recorded, ..load };
    compared(load, Against::Unshown, figure)
}

/// The CPU time of the job of a run that is `shown`, compared with that of one that is not.
const fn shown(shown: Shown) -> RowMeasure {
    compared(RunLoad { shown, ..URING }, Against::Unshown, SampleFigure::JobTime)
}

const fn row(name: &'static str, what: &'static str, goal: Goal, measure: RowMeasure) -> TableRow {
    let unit = match measure {
        RowMeasure::Pair(_, SampleFigure::PerCpuSecond | SampleFigure::PerSecond) => FigureUnit::Million,
        RowMeasure::Pair(_, SampleFigure::OutsideJob) | RowMeasure::Start(_) => FigureUnit::Milliseconds,
        RowMeasure::Pair(
            _,
            SampleFigure::UserTime
            | SampleFigure::JobTime
            | SampleFigure::ProcessTime
            | SampleFigure::OutsideLatency
            | SampleFigure::BeyondDevice,
        )
        | RowMeasure::NextOffset => FigureUnit::Nanoseconds,
        RowMeasure::Scaling(_) => FigureUnit::Share,
        RowMeasure::Resident(_) | RowMeasure::ResidentGrowth(_) => FigureUnit::Mebibytes,
    };
    TableRow { name, what, unit, goal, measure, headline: false }
}

const fn headline(row: TableRow) -> TableRow {
    TableRow { headline: true, ..row }
}

/// Every row, in the order in which they are measured and shown.
pub const ROWS: &[TableRow] = &[
    headline(row(
        "uring",
        "io_uring, depth 64: I/Os per CPU-second",
        Goal::RatioAtLeast(1.85),
        compared(URING, Against::Fio, SampleFigure::PerCpuSecond),
    )),
    row(
        "user-time",
        "io_uring, depth 64: user time per I/O",
        Goal::AtMost(25.0),
        compared(URING, Against::Fio, SampleFigure::UserTime),
    ),
    row(
        "beside-job",
        "io_uring, depth 64: CPU time of the process outside of its job (start, observer, report)",
        Goal::Unset,
        compared(URING, Against::Fio, SampleFigure::OutsideJob),
    ),
    headline(row(
        "uring-best",
        "io_uring, depth 64, fio with its best options: I/Os per CPU-second",
        Goal::RatioAtLeast(1.15),
        compared(URING, Against::FioAtBest, SampleFigure::PerCpuSecond),
    )),
    headline(row(
        "uring-bare",
        "io_uring, depth 64, compared with a bare ring that measures nothing: I/Os per CPU-second",
        Goal::RatioAtLeast(0.97),
        compared(URING, Against::BareRing, SampleFigure::PerCpuSecond),
    )),
    headline(row(
        "libaio",
        "libaio, depth 64: I/Os per CPU-second",
        Goal::RatioAtLeast(1.9),
        compared(RunLoad::one("libaio", 64), Against::Fio, SampleFigure::PerCpuSecond),
    )),
    headline(row(
        "psync",
        "psync: I/Os per CPU-second",
        Goal::RatioAtLeast(1.35),
        compared(PSYNC, Against::Fio, SampleFigure::PerCpuSecond),
    )),
    row(
        "outside-psync",
        "psync: time per I/O outside its latency",
        Goal::Below,
        compared(PSYNC, Against::Fio, SampleFigure::OutsideLatency),
    ),
    row(
        "psync-bare",
        "psync compared with a bare pread loop: I/Os per CPU-second",
        Goal::Unset,
        compared(PSYNC, Against::BarePread, SampleFigure::PerCpuSecond),
    ),
    headline(row(
        "pvsync2",
        "pvsync2: I/Os per CPU-second",
        Goal::RatioAtLeast(1.35),
        compared(RunLoad::one("pvsync2", 1), Against::Fio, SampleFigure::PerCpuSecond),
    )),
    row(
        "outside-uring",
        "io_uring, depth 1: time per I/O outside its latency",
        Goal::Below,
        compared(RunLoad::one("io_uring", 1), Against::Fio, SampleFigure::OutsideLatency),
    ),
    row(
        "beyond-device",
        "libaio, depth 16, direct I/O: mean latency beyond the kernel's own of the device",
        Goal::Below,
        compared(
            RunLoad { direct: true, ..RunLoad::one("libaio", 16) },
            Against::Fio,
            SampleFigure::BeyondDevice,
        ),
    ),
    headline(row(
        "null-64",
        "null engine, depth 64: I/Os per CPU-second",
        Goal::RatioAtLeast(10.0),
        compared(RunLoad::one("null", 64), Against::Fio, SampleFigure::PerCpuSecond),
    )),
    headline(row(
        "null-1",
        "null engine, depth 1: I/Os per CPU-second",
        Goal::RatioAtLeast(3.0),
        compared(RunLoad::one("null", 1), Against::Fio, SampleFigure::PerCpuSecond),
    )),
    row(
        "zipf",
        "io_uring, depth 64, random_distribution=zipf:1.1: CPU time of the process per I/O",
        Goal::RatioAtMost(0.75),
        with(Work::ZipfReads, URING),
    ),
    row(
        "bssplit",
        "io_uring, depth 64, bssplit=4k/60:8k/40: CPU time of the process per I/O",
        Goal::RatioAtMost(0.75),
        with(Work::SplitReads, URING),
    ),
    row(
        "rate-iops",
        "io_uring, depth 64, rate_iops=100000: CPU time of the process per I/O",
        Goal::RatioAtMost(0.75),
        with(Work::RatedReads, URING),
    ),
    row(
        "lat-log",
        "io_uring, depth 64, write_lat_log: CPU time of the process per I/O",
        Goal::RatioAtMost(0.75),
        with(Work::LoggedReads, URING),
    ),
    row(
        "verify",
        "psync, verify=crc32c, written and read back: CPU time of the process per I/O",
        Goal::RatioAtMost(0.75),
        with(Work::Verified, RunLoad { size: "512m", ..PSYNC }),
    ),
    row(
        "tui",
        "io_uring, depth 64, with --tui, compared with fathom without: CPU time of the job per I/O",
        Goal::RatioAtMost(1.01),
        shown(Shown::View),
    ),
    row(
        "live",
        "io_uring, depth 64, with --live ndjson and --live openmetrics, compared with fathom without: CPU time of the job per I/O",
        Goal::RatioAtMost(1.01),
        shown(Shown::Streams),
    ),
    row(
        "record",
        "libaio, depth 4, on a loop device in memory, as fast as it answers, with monitor --record, compared with fathom without: \
         I/Os per second",
        Goal::RatioAtLeast(0.98),
        recorded(Work::RandomReads, RunLoad::one("libaio", 4), SampleFigure::PerSecond),
    ),
    row(
        "record-50k",
        "the same at rate_iops=50000, depth 64: I/Os per second",
        Goal::RatioAtLeast(0.98),
        recorded(Work::PacedReads, RunLoad::one("libaio", 64), SampleFigure::PerSecond),
    ),
    row(
        "record-cpu",
        "the same: CPU time of the job per I/O",
        Goal::Unset,
        recorded(Work::PacedReads, RunLoad::one("libaio", 64), SampleFigure::JobTime),
    ),
    row(
        "next-offset",
        "next offset of the random map, slowest size",
        Goal::AtMost(10.0),
        RowMeasure::NextOffset,
    ),
    row(
        "jobs-8-psync",
        "psync, 8 jobs on 2 CPUs over twice one pinned job",
        Goal::AtLeast(0.95),
        many(8, PSYNC),
    ),
    row(
        "jobs-64-psync",
        "psync, 64 jobs on 2 CPUs over twice one pinned job",
        Goal::AtLeast(0.95),
        many(64, PSYNC),
    ),
    row(
        "jobs-8-uring",
        "io_uring, depth 64, 8 jobs on 2 CPUs over twice one pinned job",
        Goal::AtLeast(0.95),
        many(8, URING),
    ),
    row(
        "jobs-64-uring",
        "io_uring, depth 64, 64 jobs on 2 CPUs over twice one pinned job",
        Goal::AtLeast(0.95),
        many(64, URING),
    ),
    headline(row(
        "memory-64",
        "resident memory: io_uring, 1 job, depth 64",
        Goal::AtMost(12.0),
        RowMeasure::Resident(URING),
    )),
    row(
        "memory-256",
        "resident memory: io_uring, 256 jobs, depth 1",
        Goal::AtMost(200.0),
        RowMeasure::Resident(RunLoad { jobs: 256, cpus: Cpus::All, ..RunLoad::one("io_uring", 1) }),
    ),
    headline(row(
        "memory-16t",
        "resident memory that random order over 16 TiB adds to that over 1 GiB",
        Goal::AtMost(1.0),
        RowMeasure::ResidentGrowth(RunLoad { size: "16t", ..RunLoad::one("null", 1) }),
    )),
    headline(row("start-psync", "start to first I/O: psync", Goal::AtMost(10.0), RowMeasure::Start(PSYNC))),
    row("start-uring", "start to first I/O: io_uring", Goal::AtMost(10.0), RowMeasure::Start(URING)),
];

/// The row called `name`.
pub fn find(name: &str) -> Option<&'static TableRow> {
    ROWS.iter().find(|row| row.name == name)
}

impl Against {
    /// The table's addition to the figure if it is not plain fio's.
    pub fn remark(self) -> Option<&'static str> {
        match self {
            Against::Fio => None,
            Against::FioAtBest => Some("best options"),
            Against::BareRing => Some("bare ring"),
            Against::BarePread => Some("bare pread"),
            Against::Unshown => Some("without"),
        }
    }
}

impl RowMeasure {
    /// Whether it runs a bare loop or a bench.
    pub fn has_bench(&self) -> bool {
        match self {
            RowMeasure::Pair(pair, _) => matches!(pair.against, Against::BareRing | Against::BarePread),
            RowMeasure::NextOffset => true,
            _ => false,
        }
    }

    /// Whether it records a device.
    pub fn is_recorded(&self) -> bool {
        matches!(self, RowMeasure::Pair(pair, _) if pair.load.shown == Shown::Recorded)
    }
}

impl TableRow {
    /// The table's addition to the other program's figure.
    pub fn remark(&self) -> Option<&'static str> {
        match self.measure {
            RowMeasure::Pair(pair, _) => pair.against.remark(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_names_are_unique() {
        for (index, row) in ROWS.iter().enumerate() {
            assert!(ROWS[..index].iter().all(|earlier| earlier.name != row.name), "{}", row.name);
            assert!(row.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
            assert_eq!(find(row.name).map(|found| found.what), Some(row.what));
        }
        assert!(find("no such row").is_none());
    }

    #[test]
    fn rows_that_share_a_pair_stand_together() {
        let pairs: Vec<Option<ComparedPair>> = ROWS
            .iter()
            .map(|row| match row.measure {
                RowMeasure::Pair(pair, _) => Some(pair),
                _ => None,
            })
            .collect();
        for (index, pair) in pairs.iter().enumerate().filter(|(_, pair)| pair.is_some()) {
            let last = pairs.iter().rposition(|other| other == pair).unwrap();
            assert!(pairs[index..=last].iter().all(|between| between == pair), "{}", ROWS[index].name);
        }
    }
}
