//! Whether two parsers agree, and the reasons of the compatibility page for which they need not.

use std::process::Output;

/// What a parser made of an input.
#[derive(Debug)]
pub struct Parsed {
    /// The exit status; `None` of a program that a signal ended.
    status: Option<i32>,
    messages: String,
}

/// Whether both agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Both accept the input.
    Accepted,
    /// Both refuse it.
    Refused,
    /// fathom refuses it for a reason on the compatibility page, or Debian's fio is too old for an option.
    Documented,
    /// They do not agree, or one of them crashed.
    Otherwise,
}

/// Parts of messages by which fathom refuses what fio accepts, in the order of the compatibility page.
const DOCUMENTED: &[&str] = &[
    "is not supported yet",
    // Values that fio reads in part, or as other numbers.
    "it must be 0 or 1",
    "must not be negative",
    "fractions are not supported",
    "is not a size suffix",
    "is not a time unit",
    "is not a number",
    "without the percent sign",
    "value out of range",
    "too large (max=",
    "exceeds the maximum of",
    "names no CPU",
    "valid values are",
    "use bsrange for a range",
    "is not a unit of time",
    "not loadable",
    "thinktime_spin above its thinktime",
    "which is not one of those before it",
    "has a zonesize and no zonemode",
    "zonemode=strided and no zonesize",
    "verify_only and no verify=",
    "has no pattern to check",
    "Unknown skip type",
    "is not a known error",
    "omit one of them",
    "is out of range",
    "ends before it begins",
    "a number is needed",
    "failed parsing opendir",
    "requires an argument",
    "a weight of a control group and no cgroup",
    "bs_is_seq_rand=1, and requests of both kinds",
    "has trim_percentage=",
    // What fio refuses when it prepares the job, and not with --parse-only.
    "rate and rate_iops are mutually exclusive",
];

/// Parts of messages by which Debian's fio refuses options that are newer.
const NEWER: &[&str] = &["Bad option <", "unrecognized option"];

impl Parsed {
    /// From the end of a program.
    pub fn of(output: &Output) -> Parsed {
        let text = [&output.stderr[..], &output.stdout[..]].concat();
        Parsed { status: output.status.code(), messages: String::from_utf8_lossy(&text).trim().to_owned() }
    }

    /// The exit status and the first lines of the messages.
    pub fn shown(&self) -> String {
        let lines: Vec<&str> = self.messages.lines().take(3).collect();
        let status = self.status.map_or_else(|| "killed".to_owned(), |status| status.to_string());
        format!("{status}: {}", lines.join(" / "))
    }
}

impl Verdict {
    /// Of the same input.
    pub fn of(ours: &Parsed, fios: &Parsed) -> Verdict {
        match (ours.status, fios.status) {
            (Some(0), Some(0)) => Verdict::Accepted,
            // A crash of fio refuses as well; of ours nothing does.
            (Some(1), status) if status != Some(0) => Verdict::Refused,
            (Some(0), Some(_)) if NEWER.iter().any(|part| fios.messages.contains(part)) => {
                Verdict::Documented
            }
            (Some(1), _) if DOCUMENTED.iter().any(|part| ours.messages.contains(part)) => Verdict::Documented,
            _ => Verdict::Otherwise,
        }
    }

    /// In the results.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Accepted => "accepted",
            Verdict::Refused => "refused",
            Verdict::Documented => "documented",
            Verdict::Otherwise => "otherwise",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_documented_reasons_excuse_a_refusal() {
        let parsed = |status, messages: &str| Parsed { status, messages: messages.to_owned() };
        let check = |ours, fios, expected| assert_eq!(Verdict::of(&ours, &fios), expected);
        check(parsed(Some(0), ""), parsed(Some(0), "note"), Verdict::Accepted);
        check(parsed(Some(1), "bad"), parsed(Some(1), "bad"), Verdict::Refused);
        check(parsed(Some(1), "bad"), parsed(None, ""), Verdict::Refused);
        check(parsed(Some(1), "bs=-1: it must not be negative"), parsed(Some(0), ""), Verdict::Documented);
        check(parsed(Some(1), "unknown option"), parsed(Some(0), ""), Verdict::Otherwise);
        check(parsed(Some(0), ""), parsed(Some(1), "bad"), Verdict::Otherwise);
        check(parsed(Some(0), ""), parsed(Some(1), "Bad option <ramp_size=1>"), Verdict::Documented);
        check(parsed(Some(101), "must not be negative"), parsed(Some(0), ""), Verdict::Otherwise);
        check(parsed(None, ""), parsed(None, ""), Verdict::Otherwise);
    }
}
