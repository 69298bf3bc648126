//! The `KEY=VALUE` parameters of a simulated target: each is used once, and unused ones are refused.

use fathom_model::units::{parse_bytes, parse_capacity, parse_duration};
use fathom_volume::{Fault, FaultKind};

/// Longest duration of a parameter.
const HOUR_NS: u64 = 3_600_000_000_000;

/// The parameters that have not been used yet.
#[derive(Clone, Debug)]
pub(crate) struct UnusedParts<'a> {
    left: Vec<(&'a str, &'a str)>,
    /// All keys that were looked up, for the message about an unknown one.
    known: Vec<String>,
}

impl<'a> UnusedParts<'a> {
    /// Reads `KEY=VALUE&KEY=VALUE`.
    pub(crate) fn read(text: &'a str) -> Result<Self, String> {
        let mut left: Vec<(&str, &str)> = Vec::new();
        for part in text.split('&').filter(|part| !part.is_empty()) {
            let Some((key, value)) = part.split_once('=') else {
                return Err(format!("{part:?} is not KEY=VALUE"));
            };
            if key != "stall" && left.iter().any(|(other, _)| *other == key) {
                return Err(format!("{key} is given twice"));
            }
            left.push((key, value));
        }
        Ok(UnusedParts { left, known: Vec::new() })
    }

    /// The value of `key`, if given.
    pub(crate) fn text(&mut self, key: &str) -> Option<&'a str> {
        if !self.known.iter().any(|known| known == key) {
            self.known.push(key.to_owned());
        }
        let index = self.left.iter().position(|(given, _)| *given == key)?;
        Some(self.left.remove(index).1)
    }

    /// A whole number above 0.
    pub(crate) fn number(&mut self, key: &str) -> Result<Option<u64>, String> {
        self.parsed(key, "a whole number above 0", |text| text.parse().ok().filter(|number| *number > 0))
    }

    /// A number that may be 0.
    pub(crate) fn seed(&mut self, key: &str) -> Result<Option<u64>, String> {
        self.parsed(key, "a whole number", |text| text.parse().ok())
    }

    /// Bytes, above 0; `/s` may follow.
    pub(crate) fn bytes(&mut self, key: &str) -> Result<Option<u64>, String> {
        self.parsed(key, "a number of bytes above 0, as in 200MB or 50GiB", |text| {
            parse_bytes(text.strip_suffix("/s").unwrap_or(text)).ok().filter(|bytes| *bytes > 0)
        })
    }

    /// The size of a volume.
    pub(crate) fn capacity(&mut self, key: &str) -> Result<Option<u64>, String> {
        let Some(text) = self.text(key) else { return Ok(None) };
        match parse_capacity(text) {
            Ok(0) => Err(format!("{key}={text}: the size must be above 0")),
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) => Err(format!("{key}={text}: {error}")),
        }
    }

    /// A span of at most an hour, in ns.
    pub(crate) fn duration(&mut self, key: &str) -> Result<Option<u64>, String> {
        self.parsed(key, "a time of at most an hour, as in 500us or 2s", |text| {
            Some(parse_duration(text).ok()?.0).filter(|ns| *ns <= HOUR_NS)
        })
    }

    /// A share from 0 to 100 %.
    pub(crate) fn percent(&mut self, key: &str) -> Result<Option<u64>, String> {
        self.parsed(key, "a percentage from 0 to 100, as in 80%", |text| {
            text.strip_suffix('%').unwrap_or(text).parse().ok().filter(|percent| *percent <= 100)
        })
    }

    /// 0 or 1.
    pub(crate) fn switch(&mut self, key: &str) -> Result<Option<bool>, String> {
        self.parsed(key, "0 or 1", |text| match text {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        })
    }

    /// Every `stall=AT+LENGTH`, by start time.
    pub(crate) fn stalls(&mut self) -> Result<Vec<Fault>, String> {
        let mut faults = Vec::new();
        while let Some(text) = self.text("stall") {
            let fault = text.split_once('+').and_then(|(at, length)| {
                let length_ns = match length {
                    "inf" => u64::MAX,
                    length => parse_duration(length).ok()?.0,
                };
                Some(Fault { at_ns: parse_duration(at).ok()?.0, length_ns, kind: FaultKind::Stall })
            });
            let wanted = "is not AT+LENGTH, as in 30s+20s, or 30s+inf for a volume that stops responding";
            let fault = fault.ok_or_else(|| format!("stall={text} {wanted}"))?;
            if fault.length_ns == 0 {
                return Err(format!("stall={text} has no length"));
            }
            faults.push(fault);
        }
        faults.sort_by_key(|fault| fault.at_ns);
        let ends = |fault: &Fault| fault.at_ns.saturating_add(fault.length_ns);
        match faults.windows(2).any(|pair| pair[1].at_ns < ends(&pair[0])) {
            true => Err("two stalls overlap".to_owned()),
            false => Ok(faults),
        }
    }

    /// Refuses unknown parameters.
    pub(crate) fn finish(self) -> Result<(), String> {
        match self.left.first() {
            None => Ok(()),
            Some((key, _)) => Err(format!("unknown parameter {key}; use one of {}", self.known.join(", "))),
        }
    }

    fn parsed<T>(
        &mut self,
        key: &str,
        wanted: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let Some(text) = self.text(key) else { return Ok(None) };
        read(text).map(Some).ok_or_else(|| format!("{key}={text} is not {wanted}"))
    }
}
