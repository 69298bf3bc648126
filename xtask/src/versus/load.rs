//! The command lines. fathom and fio get the same words, but for the row that gives fio its best options.

/// The load of a run, as far as rows differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLoad {
    /// The I/O engine. The null engine gets no file.
    pub engine: &'static str,
    /// Requests in flight per job.
    pub depth: u32,
    /// Jobs; above one they are reported as a group.
    pub jobs: u32,
    /// Size of the range.
    pub size: &'static str,
    /// Which CPUs it may use.
    pub cpus: Cpus,
    /// It reads the device, not the page cache.
    pub direct: bool,
    /// What the job does.
    pub work: Work,
    /// What shows fathom's run meanwhile.
    pub shown: Shown,
}

/// What shows a run of fathom while it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Nothing.
    Nothing,
    /// The full-screen view, on a terminal of 200 columns and 50 rows.
    View,
    /// The lines to a file, and the metrics, read twice a second.
    Streams,
    /// A recording of every request of the device, which is a loop device in memory.
    Recorded,
}

impl Shown {
    /// The words for it.
    pub fn words(self) -> &'static [&'static str] {
        match self {
            Shown::Nothing | Shown::Recorded => &[],
            Shown::View => &["--tui", "--output=LOG.json"],
            Shown::Streams => &["--live=ndjson=LOG.ndjson", "--live=openmetrics=127.0.0.1:0"],
        }
    }
}

/// What a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Random reads of 4 KiB for the time of a run.
    RandomReads,
    /// The same, at offsets of which some are read more often.
    ZipfReads,
    /// The same, of two block sizes.
    SplitReads,
    /// The same, at a rate.
    RatedReads,
    /// The same, with each latency in a log.
    LoggedReads,
    /// The same, at the rate of a busy database.
    PacedReads,
    /// Writes the file in memory with checksums, then reads and checks all of it.
    Verified,
}

/// Stands for the prefix of written files in command lines.
pub const LOG: &str = "LOG";

impl Work {
    /// The words for it but for the time of a run.
    fn words(self) -> &'static [&'static str] {
        match self {
            Work::RandomReads => &["--rw=randread", "--bs=4k"],
            Work::ZipfReads => &["--rw=randread", "--bs=4k", "--random_distribution=zipf:1.1"],
            Work::SplitReads => &["--rw=randread", "--bssplit=4k/60:8k/40"],
            Work::RatedReads => &["--rw=randread", "--bs=4k", "--rate_iops=100000"],
            Work::PacedReads => &["--rw=randread", "--bs=4k", "--rate_iops=50000"],
            Work::LoggedReads => &["--rw=randread", "--bs=4k", "--write_lat_log=LOG"],
            Work::Verified => &["--rw=randwrite", "--bs=4k", "--verify=crc32c"],
        }
    }

    /// True where the job leaves its CPU on purpose.
    pub fn waits(self) -> bool {
        matches!(self, Work::RatedReads | Work::PacedReads)
    }
}

/// Which CPUs a run may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cpus {
    /// The last.
    One,
    /// The last two.
    Two,
    /// Whatever the machine has.
    All,
}

impl RunLoad {
    /// One pinned job on the file.
    pub const fn one(engine: &'static str, depth: u32) -> RunLoad {
        RunLoad {
            engine,
            depth,
            jobs: 1,
            size: "1g",
            cpus: Cpus::One,
            direct: false,
            work: Work::RandomReads,
            shown: Shown::Nothing,
        }
    }

    /// True where it reads the file.
    pub fn is_on_file(self) -> bool {
        self.engine != "null"
    }

    /// The words after `fathom fio` or `fio`, for `runtime` seconds on `file`, on a machine that has `cpus`.
    pub fn arguments(self, file: &str, runtime: u32, cpus: &[usize]) -> Vec<String> {
        let mut words = vec!["--name=q".to_owned()];
        if self.is_on_file() {
            words.push(format!("--filename={file}"));
        }
        words.push(format!("--size={}", self.size));
        words.extend(self.work.words().iter().map(|word| (*word).to_owned()));
        words.push(format!("--ioengine={}", self.engine));
        words.push(format!("--iodepth={}", self.depth));
        if self.is_on_file() {
            words.extend([format!("--direct={}", u8::from(self.direct)), "--invalidate=0".to_owned()]);
        }
        if self.jobs > 1 {
            words.extend([format!("--numjobs={}", self.jobs), "--group_reporting".to_owned()]);
        }
        if self.work != Work::Verified {
            words.extend([format!("--runtime={runtime}"), "--time_based".to_owned()]);
        }
        words.push("--output-format=json".to_owned());
        let last = |count: usize| {
            let named: Vec<String> =
                cpus[cpus.len().saturating_sub(count)..].iter().map(usize::to_string).collect();
            format!("--cpus_allowed={}", named.join(","))
        };
        words.extend(match self.cpus {
            Cpus::One => Some(last(1)),
            Cpus::Two => Some(last(2)),
            Cpus::All => None,
        });
        words
    }
}

/// The fastest options of fio's io_uring.
pub const BEST_OPTIONS: &[&str] = &[
    "--registerfiles",
    "--fixedbufs",
    "--iodepth_batch_submit=32",
    "--iodepth_batch_complete_min=1",
    "--iodepth_batch_complete_max=32",
    "--norandommap",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shows_a_run_writes_beside_the_logs() {
        for shown in [Shown::View, Shown::Streams] {
            let files = shown.words().iter().filter(|word| word.contains(LOG)).count();
            assert_eq!(files, 1, "{shown:?}");
        }
    }

    #[test]
    fn loads_are_built_from_their_options() {
        let check = |load: RunLoad, expected: &str| {
            assert_eq!(load.arguments("FILE", 3, &[0, 5, 7]).join(" "), expected, "{load:?}");
        };
        check(
            RunLoad::one("io_uring", 64),
            "--name=q --filename=FILE --size=1g --rw=randread --bs=4k --ioengine=io_uring --iodepth=64 \
             --direct=0 --invalidate=0 --runtime=3 --time_based --output-format=json --cpus_allowed=7",
        );
        check(
            RunLoad { size: "16t", cpus: Cpus::All, ..RunLoad::one("null", 1) },
            "--name=q --size=16t --rw=randread --bs=4k --ioengine=null --iodepth=1 \
             --runtime=3 --time_based --output-format=json",
        );
        check(
            RunLoad { size: "256m", work: Work::Verified, ..RunLoad::one("psync", 1) },
            "--name=q --filename=FILE --size=256m --rw=randwrite --bs=4k --verify=crc32c --ioengine=psync \
             --iodepth=1 --direct=0 --invalidate=0 --output-format=json --cpus_allowed=7",
        );
        check(
            RunLoad { jobs: 8, cpus: Cpus::Two, ..RunLoad::one("psync", 1) },
            "--name=q --filename=FILE --size=1g --rw=randread --bs=4k --ioengine=psync --iodepth=1 \
             --direct=0 --invalidate=0 --numjobs=8 --group_reporting --runtime=3 --time_based \
             --output-format=json --cpus_allowed=5,7",
        );
    }
}
