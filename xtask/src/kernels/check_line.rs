//! The lines in which the guest reports its checks to the host.

use std::fmt;

/// The last line of a guest that came to its end.
pub const END: &str = "fathom-kernels: end";
const BEGIN: &str = "fathom-kernels: check";

/// The kind of a check: a column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckKind {
    /// A command ran on a free device, and its figures are plausible.
    Command,
    /// A write was refused, for the expected reason, and no byte of the device changed.
    Refusal,
    /// A write that is permitted changed the device.
    Write,
}

const KINDS: [(CheckKind, &str); 3] =
    [(CheckKind::Command, "command"), (CheckKind::Refusal, "refusal"), (CheckKind::Write, "write")];

/// One check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckLine {
    /// The stack of devices.
    pub stack: String,
    /// Its kind.
    pub kind: CheckKind,
    /// The case and the command.
    pub name: String,
    /// Why it failed, on one line.
    pub failure: Option<String>,
}

impl fmt::Display for CheckLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = KINDS.iter().find(|(kind, _)| *kind == self.kind).map_or("", |(_, word)| word);
        let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let failure = self.failure.as_deref().map(one_line).unwrap_or_default();
        write!(f, "{BEGIN}\t{}\t{kind}\t{}\t{failure}", self.stack, one_line(&self.name))
    }
}

impl CheckLine {
    /// The check on a line of the guest; `None` if the line is something else.
    pub fn parsed(line: &str) -> Option<CheckLine> {
        let fields: Vec<&str> = line.trim_end_matches(['\r', '\n']).split('\t').collect();
        let [BEGIN, stack, kind, name, failure] = fields[..] else { return None };
        Some(CheckLine {
            stack: stack.to_owned(),
            kind: KINDS.iter().find(|(_, word)| *word == kind)?.0,
            name: name.to_owned(),
            failure: (!failure.is_empty()).then(|| failure.to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_survive_the_serial_port() {
        for (kind, failure) in [
            (CheckKind::Command, None),
            (CheckKind::Refusal, Some("bytes changed")),
            (CheckKind::Write, None),
        ] {
            let line = CheckLine {
                stack: "nvme".to_owned(),
                kind,
                name: "mounted: fio --rw=write".to_owned(),
                failure: failure.map(str::to_owned),
            };
            assert_eq!(CheckLine::parsed(&format!("{line}\r\n")), Some(line));
        }
        assert_eq!(CheckLine::parsed("[    1.0] nvme nvme0: 2/0/0 queues"), None);
        assert_eq!(CheckLine::parsed(END), None);
    }
}
