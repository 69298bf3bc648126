//! The powers that rates and amounts of bytes are shown in: of 1024 (IEC) or of 1000 (SI).
//!
//! Values are stored in bytes; a system is chosen where they are shown.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use super::grouped;

/// Powers of 1024 or of 1000.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnitSystem {
    /// KiB, MiB, GiB: powers of 1024.
    #[default]
    Iec,
    /// kB, MB, GB: powers of 1000.
    Si,
}

/// What stands between the ends of a range in a sentence.
const TO: &str = " to ";

/// Prefixes from the first power on: of the IEC, and of the SI.
const PREFIXES: [(&str, &str); 6] =
    [("Ki", "k"), ("Mi", "M"), ("Gi", "G"), ("Ti", "T"), ("Pi", "P"), ("Ei", "E")];

impl UnitSystem {
    /// Both.
    pub const ALL: [UnitSystem; 2] = [UnitSystem::Iec, UnitSystem::Si];

    /// The name as typed.
    pub const fn name(self) -> &'static str {
        match self {
            UnitSystem::Iec => "iec",
            UnitSystem::Si => "si",
        }
    }

    /// The system in which `bytes`, a figure that people wrote, is the shorter number: 209,715,200 is 200 MiB, 200,000,000 is
    /// 200 MB. SI where neither is shorter.
    pub fn of(bytes: f64) -> UnitSystem {
        // Digits behind the point of the number of KiB or kB, as far as a reader writes them.
        let digits = |base: f64| {
            (0..6).find(|digits| {
                let scaled = bytes / base * 10_f64.powi(*digits);
                (scaled - scaled.round()).abs() < 1e-9 * scaled.abs().max(1.0)
            })
        };
        let length = |mega: f64| digits(mega).map_or(6, |digits| digits);
        let (iec, si) = (length(UnitSystem::Iec.mega()), length(UnitSystem::Si.mega()));
        if iec < si { UnitSystem::Iec } else { UnitSystem::Si }
    }

    /// Bytes of a MiB or a MB.
    pub const fn mega(self) -> f64 {
        match self {
            UnitSystem::Iec => 1_048_576.0,
            UnitSystem::Si => 1_000_000.0,
        }
    }

    /// The unit of rates in tables: `MiB/s`, `MB/s`.
    pub const fn rate_unit(self) -> &'static str {
        match self {
            UnitSystem::Iec => "MiB/s",
            UnitSystem::Si => "MB/s",
        }
    }

    const fn base(self) -> f64 {
        match self {
            UnitSystem::Iec => 1024.0,
            UnitSystem::Si => 1000.0,
        }
    }

    const fn prefix(self, power: usize) -> &'static str {
        match self {
            UnitSystem::Iec => PREFIXES[power].0,
            UnitSystem::Si => PREFIXES[power].1,
        }
    }

    /// An amount of bytes: `512 B`, `4.0 KiB`, `1.5 GiB`; `4.1 kB`, `1.6 GB`.
    pub fn amount(self, count: u64) -> String {
        let base = self.base();
        if (count as f64) < base {
            return format!("{count} B");
        }
        let (mut value, mut power) = (count as f64 / base, 0);
        while value >= base - 0.05 && power + 1 < PREFIXES.len() {
            value /= base;
            power += 1;
        }
        let digits = usize::from(value < 100.0);
        format!("{value:.digits$} {}B", self.prefix(power))
    }

    /// `text` with its rates (`95.4-97.1 MiB/s`) in this system. Sizes stay as they are: those of I/Os are powers of two, and
    /// volumes are sold in the unit of their provider.
    pub fn restate_rates(self, text: &str) -> Cow<'_, str> {
        self.restate(text, true)
    }

    /// `text` with its rates and its amounts from a MiB or MB on in this system.
    pub fn restate_all(self, text: &str) -> Cow<'_, str> {
        self.restate(text, false)
    }

    fn restate(self, text: &str, only_rates: bool) -> Cow<'_, str> {
        let other = match self {
            UnitSystem::Iec => UnitSystem::Si,
            UnitSystem::Si => UnitSystem::Iec,
        };
        let mut out = String::new();
        let mut copied = 0;
        for (at, _) in text.match_indices(' ') {
            let behind = &text[at + 1..];
            let Some((power, length, is_rate)) = other.unit_at(behind) else { continue };
            if !is_rate && (only_rates || power == 0) {
                continue;
            }
            let from = start_of_range(&text[copied..at]) + copied;
            if from == at {
                continue;
            }
            out.push_str(&text[copied..from]);
            let factor = (other.base() / self.base()).powi(power as i32 + 1);
            out.push_str(&scaled_figures(&text[from..at], factor));
            out.push_str(&format!(" {}B{}", self.prefix(power), if is_rate { "/s" } else { "" }));
            copied = at + 1 + length;
        }
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        out.push_str(&text[copied..]);
        Cow::Owned(out)
    }

    /// The unit that `text` begins with: its power, its length, and whether it is a rate.
    fn unit_at(self, text: &str) -> Option<(usize, usize, bool)> {
        let power = (0..PREFIXES.len())
            .find(|&power| text.strip_prefix(self.prefix(power)).is_some_and(|rest| rest.starts_with('B')))?;
        let length = self.prefix(power).len() + 1;
        let rest = &text[length..];
        match rest.strip_prefix("/s") {
            Some(rest) if !rest.starts_with(char::is_alphanumeric) => Some((power, length + 2, true)),
            None if !rest.starts_with(|c: char| c.is_alphanumeric() || c == '/') => {
                Some((power, length, false))
            }
            _ => None,
        }
    }
}

/// Where the figure or range begins that `text` ends with: `95.4-97.1` in `limited to 95.4-97.1`, `95 to 97` in `(95 to 97`.
fn start_of_range(text: &str) -> usize {
    let last = start_of_figure(text);
    let Some(before) = text[..last].strip_suffix(TO).filter(|_| last < text.len()) else { return last };
    let first = start_of_figure(before);
    if first < before.len() { first } else { last }
}

/// Where the figure begins that `text` ends with; its end where there is none.
fn start_of_figure(text: &str) -> usize {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '-');
    let start = text.char_indices().rev().take_while(|(_, c)| is_part(*c)).last();
    let Some((start, _)) = start else { return text.len() };
    // A figure begins with a digit, and is no part of a word.
    let start = start + text[start..].find(|c: char| c.is_ascii_digit()).unwrap_or(text.len() - start);
    let before = text[..start].chars().next_back();
    if before.is_some_and(char::is_alphabetic) { text.len() } else { start }
}

/// The figures of a range, each times `factor`.
fn scaled_figures(range: &str, factor: f64) -> String {
    let scaled = |figure: &str| match figure.replace(',', "").parse::<f64>() {
        Ok(value) => decimal(value * factor),
        Err(_) => figure.to_owned(),
    };
    let separator = if range.contains(TO) { TO } else { "-" };
    range.split(separator).map(scaled).collect::<Vec<_>>().join(separator)
}

/// Whole from 1000 on, with one decimal below where it is not 0, and with three below a tenth.
fn decimal(value: f64) -> String {
    match value {
        999.95.. => grouped(value.round() as u64),
        0.0005..0.1 => format!("{value:.3}"),
        _ => {
            let text = format!("{value:.1}");
            text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
        }
    }
}

impl fmt::Display for UnitSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for UnitSystem {
    type Err = String;

    fn from_str(text: &str) -> Result<UnitSystem, String> {
        UnitSystem::ALL
            .into_iter()
            .find(|system| system.name() == text.to_ascii_lowercase())
            .ok_or_else(|| format!("unknown units '{text}': use iec (MiB, GiB) or si (MB, GB)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_figure_shows_its_system() {
        for (bytes, expected) in [
            (200e6, UnitSystem::Si),
            (209_715_200.0, UnitSystem::Iec),
            (137_363_456.0, UnitSystem::Iec),
            (62.5e6, UnitSystem::Si),
            (65_536.0, UnitSystem::Iec),
            (199_123_457.0, UnitSystem::Si),
            (2e9, UnitSystem::Si),
            (1_073_741_824.0, UnitSystem::Iec),
        ] {
            assert_eq!(UnitSystem::of(bytes), expected, "{bytes}");
        }
    }

    #[test]
    fn amounts_of_both_systems() {
        for (count, iec, si) in [
            (0, "0 B", "0 B"),
            (999, "999 B", "999 B"),
            (4096, "4.0 KiB", "4.1 kB"),
            (50 << 30, "50.0 GiB", "53.7 GB"),
            (200 << 20, "200 MiB", "210 MB"),
            (999_960_000, "954 MiB", "1.0 GB"),
        ] {
            assert_eq!(
                (UnitSystem::Iec.amount(count), UnitSystem::Si.amount(count)),
                (iec.into(), si.into())
            );
        }
    }

    #[test]
    fn rates_in_a_sentence_are_restated() {
        let si = |text: &str| UnitSystem::Si.restate_rates(text).into_owned();
        for (text, expected) in [
            ("limited to 128 MiB/s; the rest", "limited to 134.2 MB/s; the rest"),
            ("95.4-97.1 MiB/s", "100-101.8 MB/s"),
            ("limited to 95.4 to 97.1 MiB/s", "limited to 100 to 101.8 MB/s"),
            ("grew to 100 MiB/s", "grew to 104.9 MB/s"),
            ("1,024 MiB/s.", "1,074 MB/s."),
            ("3 KiB/s and 2 GiB/s", "3.1 kB/s and 2.1 GB/s"),
            ("64 KiB blocks of a 50 GiB volume", "64 KiB blocks of a 50 GiB volume"),
            ("no figure MiB/s", "no figure MiB/s"),
            ("a 5x MiB/s", "a 5x MiB/s"),
            ("size=50GiB", "size=50GiB"),
        ] {
            assert_eq!(si(text), expected, "{text}");
        }
        assert_eq!(UnitSystem::Iec.restate_rates(">= 200 MB/s"), ">= 190.7 MiB/s");
        assert_eq!(UnitSystem::Iec.restate_rates("128 MiB/s"), "128 MiB/s");
        assert_eq!(UnitSystem::Si.restate_all("4.0 GiB used"), "4.3 GB used");
        assert_eq!(UnitSystem::Si.restate_all("4 KiB blocks"), "4 KiB blocks");
    }

    #[test]
    fn names() {
        assert_eq!("SI".parse(), Ok(UnitSystem::Si));
        assert!("metric".parse::<UnitSystem>().is_err());
    }
}
