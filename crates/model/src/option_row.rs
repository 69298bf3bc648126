//! The row of an option: everything that the parser, the help and the compatibility page need.

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

/// A row of an option table. `T` is the type that stores the value.
pub struct OptionRow<T: 'static> {
    /// fio's canonical name.
    pub name: &'static str,
    /// Other names for the same option.
    pub aliases: &'static [&'static str],
    /// Syntax of its value.
    pub kind: OptionValueKind,
    /// The default, as a user would type it; empty if the option has none.
    pub default: &'static str,
    /// One sentence for help and the compatibility page.
    pub doc: &'static str,
    /// Writes the parsed text into `T`; the error says what is wrong with the value.
    pub apply: fn(&mut T, &str) -> Result<(), String>,
}
