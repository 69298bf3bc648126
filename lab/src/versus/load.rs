//! The command lines. fathom and fio get the same words, but for the row that gives fio its best options.

use serde::Deserialize;

/// The load of a run, as far as rows differ.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunLoad {
    /// The I/O engine. The null engine gets no file.
    pub engine: String,
    /// Requests in flight per job.
    pub depth: u32,
    /// Jobs; above one they are reported as a group.
    pub jobs: u32,
    /// Size of the range.
    pub size: String,
    /// So many of the last CPUs; 0 for whatever the machine has.
    pub cpus: usize,
    /// It reads the device, not the page cache.
    pub direct: bool,
    /// The words for what the job does.
    pub work: String,
    /// What shows fathom's run meanwhile.
    pub shown: Shown,
}

/// What shows a run of fathom while it goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    #[default]
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

/// Stands for the prefix of written files in command lines.
pub const LOG: &str = "LOG";

/// The fastest options of fio's io_uring.
pub const BEST_OPTIONS: &str = "--registerfiles --fixedbufs --iodepth_batch_submit=32 \
    --iodepth_batch_complete_min=1 --iodepth_batch_complete_max=32 --norandommap";

impl Default for RunLoad {
    fn default() -> Self {
        RunLoad {
            engine: "psync".to_owned(),
            depth: 1,
            jobs: 1,
            size: "1g".to_owned(),
            cpus: 1,
            direct: false,
            work: "--rw=randread --bs=4k".to_owned(),
            shown: Shown::Nothing,
        }
    }
}

impl RunLoad {
    /// True if it reads or writes a file.
    pub fn is_on_file(&self) -> bool {
        self.engine != "null"
    }

    pub fn is_recorded(&self) -> bool {
        self.shown == Shown::Recorded
    }

    /// Writes the file in memory with checksums, then reads and checks all of it: that takes as long as it takes.
    pub fn is_verified(&self) -> bool {
        self.work.contains("--verify=")
    }

    /// True if the job leaves its CPU on purpose.
    pub fn waits(&self) -> bool {
        self.direct || self.work.contains("--rate_iops=")
    }

    /// The words after `fathom fio` or `fio`, for `runtime` seconds on `file`, on a machine that has `cpus`.
    pub fn arguments(&self, file: &str, runtime: u32, cpus: &[usize]) -> String {
        let RunLoad { engine, depth, jobs, size, work, .. } = self;
        let mut words = "--name=q".to_owned();
        if self.is_on_file() {
            words += &format!(" --filename={file}");
        }
        words += &format!(" --size={size} {work} --ioengine={engine} --iodepth={depth}");
        if self.is_on_file() {
            words += &format!(" --direct={} --invalidate=0", u8::from(self.direct));
        }
        if *jobs > 1 {
            words += &format!(" --numjobs={jobs} --group_reporting");
        }
        if !self.is_verified() {
            words += &format!(" --runtime={runtime} --time_based");
        }
        words += " --output-format=json";
        if self.cpus > 0 {
            let last = cpus[cpus.len().saturating_sub(self.cpus)..].iter().map(usize::to_string);
            words += &format!(" --cpus_allowed={}", last.collect::<Vec<_>>().join(","));
        }
        words
    }
}

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
        let check = |load: &str, expected: &str| {
            let load: RunLoad = toml::from_str(load).unwrap();
            assert_eq!(load.arguments("FILE", 3, &[0, 5, 7]), expected, "{load:?}");
        };
        check(
            "engine = 'io_uring'\ndepth = 64",
            "--name=q --filename=FILE --size=1g --rw=randread --bs=4k --ioengine=io_uring --iodepth=64 \
             --direct=0 --invalidate=0 --runtime=3 --time_based --output-format=json --cpus_allowed=7",
        );
        check(
            "engine = 'null'\nsize = '16t'\ncpus = 0",
            "--name=q --size=16t --rw=randread --bs=4k --ioengine=null --iodepth=1 \
             --runtime=3 --time_based --output-format=json",
        );
        check(
            "size = '256m'\nwork = '--rw=randwrite --bs=4k --verify=crc32c'",
            "--name=q --filename=FILE --size=256m --rw=randwrite --bs=4k --verify=crc32c --ioengine=psync \
             --iodepth=1 --direct=0 --invalidate=0 --output-format=json --cpus_allowed=7",
        );
        check(
            "jobs = 8\ncpus = 2",
            "--name=q --filename=FILE --size=1g --rw=randread --bs=4k --ioengine=psync --iodepth=1 \
             --direct=0 --invalidate=0 --numjobs=8 --group_reporting --runtime=3 --time_based \
             --output-format=json --cpus_allowed=5,7",
        );
    }
}
