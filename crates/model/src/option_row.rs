//! What the grammar needs to know of options: the syntax of their values, and the private options of engines.

/// The syntax of an option's value, and whether the value is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionValueKind {
    /// A word or path.
    Text,
    /// An integer with an optional size suffix.
    Size,
    /// A size, or a percentage of the file.
    SizeOrPercent,
    /// A plain integer.
    Int,
    /// A duration whose plain number means seconds.
    Seconds,
    /// A duration whose plain number means microseconds.
    Micros,
    /// 0 or 1, required.
    Bool,
    /// Bare, or 0 or 1 after `=`.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Floating-point numbers separated by colons.
    Floats,
    /// The name of a log; without one it is that of the job.
    LogName,
}

impl OptionValueKind {
    /// True if the option may be given without a value.
    pub const fn value_is_optional(self) -> bool {
        matches!(self, OptionValueKind::Flag)
    }
}

/// A private option of an engine.
#[derive(Clone, Copy, Debug)]
pub struct EngineOption {
    /// fio's name.
    pub name: &'static str,
    pub kind: OptionValueKind,
    /// The default, as a user would type it; empty if the option has none.
    pub default: &'static str,
    /// One sentence for help and the compatibility page.
    pub doc: &'static str,
    /// Checks a value; the error says what is wrong with it.
    pub check: fn(&str) -> Result<(), String>,
}
