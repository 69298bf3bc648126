//! Values of the command's own options.

/// A report format of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// fio's text.
    Normal,
    /// A line of fields per entry.
    Terse,
    /// JSON.
    Json,
    /// JSON with the bins of every latency histogram.
    JsonPlus,
}

impl OutputFormat {
    /// fio's name of the format.
    pub const fn name(self) -> &'static str {
        match self {
            OutputFormat::Normal => "normal",
            OutputFormat::Terse => "terse",
            OutputFormat::Json => "json",
            OutputFormat::JsonPlus => "json+",
        }
    }
}

/// When progress is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eta {
    /// On a terminal.
    #[default]
    Auto,
    /// Everywhere.
    Always,
    /// Nowhere.
    Never,
}

/// What is reported of idle CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleProfile {
    /// The mean of all.
    System,
    /// Each of them too.
    PerCpu,
    /// The time of a piece of work alone.
    Calibrate,
}
