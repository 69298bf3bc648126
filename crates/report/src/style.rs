//! How a report is to look where that is not the record's business.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::LazyLock;

use fathom_model::units::UnitSystem;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Width, colours, time zone and extras of a report.
#[derive(Clone, Debug)]
pub struct Style {
    /// Columns to keep within.
    pub width: usize,
    /// Use ANSI colours.
    pub colour: bool,
    /// Plots may use characters beyond ASCII.
    pub unicode: bool,
    /// Print everything, else what fits a screen.
    pub is_full: bool,
    /// Print the exact fio command of each test.
    pub show_fio: bool,
    /// The zone that times are shown in.
    pub time_zone: TimeZone,
    /// Units of rates and amounts of bytes, where they were asked for.
    pub units: Option<UnitSystem>,
    /// Number under which the run is kept in the history.
    pub run_id: Option<u64>,
}

impl Default for Style {
    /// 80 columns, plain, UTC.
    fn default() -> Self {
        Style {
            width: 80,
            colour: false,
            unicode: true,
            is_full: false,
            show_fio: false,
            time_zone: TimeZone::UTC,
            units: None,
            run_id: None,
        }
    }
}

impl Style {
    /// The default in the system's own time zone.
    pub fn local() -> Self {
        Style { time_zone: TimeZone::system(), ..Style::default() }
    }

    /// `unix_ms` in this zone in the form of `format` (strftime).
    pub fn time(&self, unix_ms: u64, format: &str) -> String {
        let timestamp = i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let zoned = timestamp.unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(self.time_zone.clone());
        zoned.strftime(format).to_string()
    }

    /// The hour of the day of `unix_ms` in this zone: `14:00`.
    pub fn hour(&self, unix_ms: u64) -> String {
        self.time(unix_ms, "%H:00")
    }

    /// `text` in bold where colours are asked for.
    pub(crate) fn bold(&self, text: &str) -> String {
        self.paint("1", text)
    }

    /// `text` dimmed where colours are asked for.
    pub(crate) fn dim(&self, text: &str) -> String {
        self.paint("2", text)
    }

    /// `text` in red where colours are asked for.
    pub(crate) fn red(&self, text: &str) -> String {
        self.paint("31", text)
    }

    /// `text` on a ground as strong as `share` (0 to 1): a colour, or one of `shades` before it. One character wider
    /// than `text` either way.
    pub(crate) fn shade(&self, share: f64, text: &str, shades: [&str; 5]) -> String {
        let level = (share.clamp(0.0, 1.0) * 4.999) as usize;
        // From the ground colour to a full blue in steps that white text can be read on.
        const GROUNDS: [&str; 5] = ["48;5;235", "48;5;17", "48;5;18", "48;5;19", "48;5;20"];
        if self.colour {
            return self.paint(&format!("97;{}", GROUNDS[level]), &format!(" {text}"));
        }
        format!("{}{text}", shades[level])
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour && !text.is_empty() {
            format!("{mark}{code}m{text}{mark}0m", mark = mark())
        } else {
            text.to_owned()
        }
    }
}

/// What stands before a colour until [`TextWriter`](crate::TextWriter) makes it a sequence of the terminal. It is drawn anew by each process,
/// so text that others wrote cannot hold it, and a colour of theirs is not taken for one of ours.
pub(crate) fn mark() -> &'static str {
    static MARK: LazyLock<String> =
        LazyLock::new(|| format!("\u{fdd0}{:016x}", RandomState::new().build_hasher().finish()));
    &MARK
}
