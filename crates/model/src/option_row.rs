//! One option = one row: everything the parser, the help and the compatibility page need to know about it.

/// How the value of an option is written, and whether one must be given.
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
    /// 0 or 1, always given.
    Bool,
    /// Bare, or 0 or 1 after `=`.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Floating-point numbers separated by colons.
    Floats,
}

impl OptionValueKind {
    /// True where the option may stand without a value.
    pub const fn value_is_optional(self) -> bool {
        matches!(self, OptionValueKind::Flag)
    }
}

/// A row of an option table. `T` is what the option is written into.
pub struct OptionRow<T: 'static> {
    /// fio's canonical name.
    pub name: &'static str,
    /// Other names for the same option.
    pub aliases: &'static [&'static str],
    /// How its value is written.
    pub kind: OptionValueKind,
    /// The value in force where the option is not given, as a user would type it; empty where there is none.
    pub default: &'static str,
    /// One sentence for help and the compatibility page.
    pub doc: &'static str,
    /// Writes the parsed text into `T`; the error says what is wrong with the value.
    pub apply: fn(&mut T, &str) -> Result<(), String>,
}
