//! The log files of a job, in which every request or every window has a line.

use crate::Nanos;

/// Which logs a job writes, and how. A log without a name is not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPlan {
    /// Name of the bandwidth log; an empty name means that of the job.
    pub bandwidth: Option<String>,
    /// Name of the IOPS log.
    pub iops: Option<String>,
    /// Name of the three latency logs.
    pub latency: Option<String>,
    /// Name of the log of completion latency histograms.
    pub histogram: Option<String>,
    /// Name of the log of issued requests, which can be replayed.
    pub issued: Option<String>,
    /// Issued requests are shown.
    pub shows_issued: bool,
    /// Length of a window; 0 = a line per request.
    pub window: Nanos,
    /// Windows of the bandwidth log, if they are shorter: their rates are averaged.
    pub bandwidth_window: Nanos,
    /// The same for the IOPS log.
    pub iops_window: Nanos,
    /// The values of a window that are logged.
    pub values: WindowValues,
    /// Time between two histograms; 0 = one at the end.
    pub histogram_window: Nanos,
    /// Each column of a histogram has this many bins, as a power of two.
    pub histogram_coarseness: u8,
    /// A column with the offset.
    pub offset: bool,
    /// The priority in full instead of whether it is high.
    pub priority: bool,
    /// A column with the time of issue.
    pub issue_time: bool,
    /// All workers of a name share one file.
    pub shared: bool,
    /// The files are compressed.
    pub compressed: bool,
    /// Times are those of this clock instead of the time since the job's start.
    pub clock: Option<u32>,
}

impl Default for LogPlan {
    fn default() -> Self {
        let sample = Nanos::from_millis(500);
        LogPlan {
            bandwidth: None,
            iops: None,
            latency: None,
            histogram: None,
            issued: None,
            shows_issued: false,
            window: Nanos::ZERO,
            bandwidth_window: sample,
            iops_window: sample,
            values: WindowValues::Mean,
            histogram_window: Nanos::ZERO,
            histogram_coarseness: 0,
            offset: false,
            priority: false,
            issue_time: false,
            shared: false,
            compressed: false,
            clock: None,
        }
    }
}

/// The values of a window that are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WindowValues {
    /// The mean.
    #[default]
    Mean,
    /// The greatest.
    Greatest,
    /// Both, in two columns.
    Both,
}

impl LogPlan {
    /// True if any log is written.
    pub fn is_any(&self) -> bool {
        self.follows_issued() || self.logs_completions()
    }

    /// True if issued requests are logged or shown.
    pub fn follows_issued(&self) -> bool {
        self.issued.is_some() || self.shows_issued
    }

    /// True if any log has completed requests.
    pub fn logs_completions(&self) -> bool {
        [&self.bandwidth, &self.iops, &self.latency, &self.histogram].iter().any(|name| name.is_some())
    }
}
