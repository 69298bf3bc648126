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

/// A class of what `--debug` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DebugClass {
    /// The states of the workers.
    Process,
    /// The files of the jobs, and their layout.
    File,
    /// Every issued request.
    Io,
    /// The seeds of the workers.
    Random,
    /// The options of the jobs.
    Parse,
    /// One of fio's classes of which nothing is shown.
    Untraced(&'static str),
}

impl DebugClass {
    /// fio's classes, in its order.
    pub(crate) const ALL: [DebugClass; 20] = [
        DebugClass::Process,
        DebugClass::File,
        DebugClass::Io,
        DebugClass::Untraced("mem"),
        DebugClass::Untraced("blktrace"),
        DebugClass::Untraced("verify"),
        DebugClass::Random,
        DebugClass::Parse,
        DebugClass::Untraced("diskutil"),
        DebugClass::Untraced("job"),
        DebugClass::Untraced("mutex"),
        DebugClass::Untraced("profile"),
        DebugClass::Untraced("time"),
        DebugClass::Untraced("net"),
        DebugClass::Untraced("rate"),
        DebugClass::Untraced("compress"),
        DebugClass::Untraced("steadystate"),
        DebugClass::Untraced("helperthread"),
        DebugClass::Untraced("zbd"),
        DebugClass::Untraced("sprandom"),
    ];

    /// fio's name of the class.
    pub const fn name(self) -> &'static str {
        match self {
            DebugClass::Process => "process",
            DebugClass::File => "file",
            DebugClass::Io => "io",
            DebugClass::Random => "random",
            DebugClass::Parse => "parse",
            DebugClass::Untraced(name) => name,
        }
    }

    /// False for a class of which nothing is shown.
    pub const fn is_traced(self) -> bool {
        !matches!(self, DebugClass::Untraced(_))
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
