//! Divides a text at the words that begin fio's lines, wherever lines begin or end in the source.

use crate::text::{SourceText, excerpt};

/// What a part of the text is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SegmentKind {
    /// `NAME: (g=0): rw=...`.
    Load { name: String, group: u32 },
    /// `NAME: (groupid=0, jobs=1): ...`.
    Job { name: String },
    /// `read : io=...`: the operation, as printed.
    Op(&'static str),
    /// `slat (usec): ...`: the span, and the unit.
    Latency(&'static str, String),
    /// `clat percentiles (usec):`.
    Percentiles(&'static str, String),
    /// `bw (KB/s): ...`.
    BandwidthWindows(String),
    /// `iops        : ...`.
    IopsWindows,
    /// `cpu          : ...`.
    Cpu,
    /// `IO depths    : ...`.
    Depths,
    /// `issued rwts: ...`.
    Issued,
    /// `errors    : ...`.
    Errors,
    /// `latency   : target=0, ...`.
    Target,
    /// `fsync/fdatasync/sync_file_range:`.
    SyncHead,
    /// `Jobs: 1 (f=1): ...`.
    Progress,
    /// `Run status group 0 (all jobs):`.
    Group(u32),
    /// `READ: ...` of a group.
    GroupOp(&'static str),
    /// `vda: ios=...`.
    Disk { name: String, is_below: bool },
    /// Of no interest.
    Other,
}

impl SegmentKind {
    /// True for lines of results that nothing but fio prints.
    pub fn has_results(&self) -> bool {
        matches!(
            self,
            SegmentKind::Job { .. }
                | SegmentKind::Op(_)
                | SegmentKind::Percentiles(..)
                | SegmentKind::Depths
                | SegmentKind::GroupOp(_)
        )
    }

    /// True for lines that begin with the word for an operation.
    fn is_operation(&self) -> bool {
        matches!(self, SegmentKind::Op(_) | SegmentKind::GroupOp(_))
    }

    /// Goes on over empty lines.
    fn spans_blank_lines(&self) -> bool {
        matches!(self, SegmentKind::Percentiles(..))
    }
}

/// A part of the text.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub kind: SegmentKind,
    /// Line of its beginning, from 1.
    pub line: u64,
    /// That line, for people.
    pub text: String,
    /// What stands behind its first words.
    pub body: String,
}

impl Segment {
    /// The process of a job, and when it was reported: `1` and `Mon Jun 13 10:03:45 2016` of
    /// `(groupid=0, jobs=1): err= 0: pid=1: Mon Jun 13 10:03:45 2016`.
    pub fn process(&self) -> Option<(&str, &str)> {
        let (_, behind) = self.body.rsplit_once("pid=")?;
        let line = behind.lines().next().unwrap_or_default();
        let (pid, reported) = line.split_once(':').unwrap_or((line, ""));
        Some((pid.trim(), reported.trim()))
    }
}

/// How a line begins: words that may stand apart or not, perhaps a unit in parentheses, a colon.
struct Anchor {
    words: &'static [&'static str],
    /// What the parentheses must hold; `None` = there are none.
    has_unit: bool,
    kind: fn(String) -> SegmentKind,
}

const fn plain(words: &'static [&'static str], kind: fn(String) -> SegmentKind) -> Anchor {
    Anchor { words, has_unit: false, kind }
}

const fn unit(words: &'static [&'static str], kind: fn(String) -> SegmentKind) -> Anchor {
    Anchor { words, has_unit: true, kind }
}

const ANCHORS: &[Anchor] = &[
    plain(&["read"], |_| SegmentKind::Op("read")),
    plain(&["write"], |_| SegmentKind::Op("write")),
    plain(&["trim"], |_| SegmentKind::Op("trim")),
    plain(&["mixed"], |_| SegmentKind::Op("total")),
    unit(&["slat", "percentiles"], |unit| SegmentKind::Percentiles("slat", unit)),
    unit(&["clat", "percentiles"], |unit| SegmentKind::Percentiles("clat", unit)),
    unit(&["lat", "percentiles"], |unit| SegmentKind::Percentiles("lat", unit)),
    unit(&["sync", "percentiles"], |unit| SegmentKind::Percentiles("sync", unit)),
    unit(&["slat"], |unit| SegmentKind::Latency("slat", unit)),
    unit(&["clat"], |unit| SegmentKind::Latency("clat", unit)),
    unit(&["lat"], |unit| SegmentKind::Latency("lat", unit)),
    unit(&["sync"], |unit| SegmentKind::Latency("sync", unit)),
    unit(&["bw"], SegmentKind::BandwidthWindows),
    plain(&["iops"], |_| SegmentKind::IopsWindows),
    plain(&["cpu"], |_| SegmentKind::Cpu),
    plain(&["IO", "depths"], |_| SegmentKind::Depths),
    plain(&["submit"], |_| SegmentKind::Other),
    plain(&["complete"], |_| SegmentKind::Other),
    plain(&["issued", "rwts"], |_| SegmentKind::Issued),
    plain(&["issued", "r/w/d"], |_| SegmentKind::Issued),
    plain(&["issued", "rwt"], |_| SegmentKind::Issued),
    plain(&["issued"], |_| SegmentKind::Issued),
    plain(&["errors"], |_| SegmentKind::Errors),
    plain(&["latency"], |_| SegmentKind::Target),
    plain(&["steadystate"], |_| SegmentKind::Other),
    plain(&["fsync/fdatasync/sync_file_range/syncfs"], |_| SegmentKind::SyncHead),
    plain(&["fsync/fdatasync/sync_file_range"], |_| SegmentKind::SyncHead),
    plain(&["Jobs"], |_| SegmentKind::Progress),
    plain(&["READ"], |_| SegmentKind::GroupOp("read")),
    plain(&["WRITE"], |_| SegmentKind::GroupOp("write")),
    plain(&["TRIM"], |_| SegmentKind::GroupOp("trim")),
    plain(&["MIXED"], |_| SegmentKind::GroupOp("total")),
    unit(&["Disk", "stats"], |_| SegmentKind::Other),
];

/// Where a segment begins, and where its body does.
struct Start {
    at: usize,
    body: usize,
    kind: SegmentKind,
}

/// The segments of a text; what stands before the first is left out.
pub(super) fn segments(source: &SourceText) -> Vec<Segment> {
    let text = source.as_str();
    let starts = starts(text);
    let mut segments = Vec::with_capacity(starts.len());
    for (index, start) in starts.iter().enumerate() {
        let end = starts.get(index + 1).map_or(text.len(), |next| next.at).max(start.body);
        let mut body = &text[start.body..end];
        if !start.kind.spans_blank_lines() {
            body = until_blank_line(body);
        }
        segments.push(Segment {
            kind: start.kind.clone(),
            line: source.line_of(start.at),
            text: excerpt(source.line_at(start.at)),
            body: body.to_owned(),
        });
    }
    segments
}

fn until_blank_line(body: &str) -> &str {
    let mut end = 0;
    for line in body.split_inclusive('\n') {
        if line.trim().is_empty() && !body[..end].trim().is_empty() {
            break;
        }
        end += line.len();
    }
    &body[..end]
}

/// True where a text has a line of results that nothing but fio prints.
pub(super) fn has_results(text: &str) -> bool {
    let mut starts = Vec::new();
    text.lines().any(|line| {
        starts.clear();
        in_line(line, 0, &mut starts);
        starts.iter().any(|start: &Start| {
            // The words for operations begin lines of any list; fio's have fields.
            let has_fields = !start.kind.is_operation() || has_field(&line[start.body..]);
            start.kind.has_results() && has_fields
        })
    })
}

fn starts(text: &str) -> Vec<Start> {
    let mut starts: Vec<Start> = Vec::new();
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        in_line(line, offset, &mut starts);
        offset += line.len();
    }
    starts
}

/// The starts in a line, which may be several.
fn in_line(line: &str, offset: usize, starts: &mut Vec<Start>) {
    // Each has a colon.
    let Some(end) = line.rfind(':') else { return };
    let (has_jobs, has_disks) = (line.contains("(g"), line.contains("ios="));
    let is_blank = |c: char| c.is_whitespace() || c == '|';
    let mut at = 0;
    while at < end {
        // A start begins a word.
        at += line[at..].len() - line[at..].trim_start_matches(is_blank).len();
        if at >= end {
            return;
        }
        let job = || has_jobs.then(|| job_at(line, at)).flatten();
        let disk = || has_disks.then(|| disk_at(line, at)).flatten();
        let known = || known_at(&line[at..]).filter(|(length, kind)| !is_of_list(kind, &line[at + length..]));
        if let Some((length, kind)) = job().or_else(known).or_else(disk) {
            starts.push(Start { at: offset + at, body: offset + at + length, kind });
            at += length;
        }
        // The body may begin within a word.
        at += line[at..].find(is_blank).unwrap_or(line.len() - at);
    }
}

/// True of `read: 520 MB/s`, a figure of a plain list: fio's figures are fields.
fn is_of_list(kind: &SegmentKind, behind: &str) -> bool {
    let has_digit = behind.contains(|sign: char| sign.is_ascii_digit());
    kind.is_operation() && has_digit && !has_field(behind)
}

/// Fields of the lines of operations.
const FIELDS: &[&str] =
    &["io=", "iops=", "bw=", "aggrb=", "minb=", "maxb=", "mint=", "maxt=", "run=", "runt="];

/// True of a text with one of these fields, as pages and translations may have changed it.
fn has_field(text: &str) -> bool {
    let text: String = text.chars().filter(|sign| !sign.is_whitespace()).collect();
    let text = text.to_ascii_lowercase();
    FIELDS.iter().any(|field| text.contains(field))
}

/// One of the known beginnings, with its length.
fn known_at(rest: &str) -> Option<(usize, SegmentKind)> {
    if let Some(behind) = rest.strip_prefix("Run status group") {
        let number = behind.trim_start();
        let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        let length = rest.len() - number.len() + digits;
        let colon = rest[length..].find([':', '\n']).map_or(rest.len(), |at| length + at);
        return Some((colon, SegmentKind::Group(number[..digits].parse().unwrap_or(0))));
    }
    ANCHORS.iter().find_map(|anchor| {
        let mut left = rest;
        for word in anchor.words {
            left = left.trim_start_matches([' ', '\t']).strip_prefix(word)?;
        }
        left = left.trim_start_matches([' ', '\t']);
        let mut unit = String::new();
        if anchor.has_unit {
            let (inside, behind) = left.strip_prefix('(')?.split_once(')')?;
            unit = inside.trim().to_owned();
            left = behind.trim_start_matches([' ', '\t']);
        }
        let left = left.strip_prefix(':')?;
        // A job may have any of these names.
        let is_job = left.trim_start().starts_with("(g");
        (!is_job && unit.len() <= 20).then(|| (rest.len() - left.len(), (anchor.kind)(unit)))
    })
}

/// Bytes of the longest name of a job, and of what follows it.
const MAX_NAME: usize = 200;
const MARK_AND_GROUP: usize = 40;

/// `NAME: (groupid=` and `NAME: (g=`: the name is all that stands before it on its line, or the last word behind other parts.
fn job_at(line: &str, at: usize) -> Option<(usize, SegmentKind)> {
    let rest = &line[at..];
    let rest = &rest[..rest.floor_char_boundary(MAX_NAME + MARK_AND_GROUP)];
    let (mark, is_load) = match (rest.find("(groupid="), rest.find("(g=")) {
        (Some(mark), None) => (mark, false),
        (Some(mark), Some(other)) if mark < other => (mark, false),
        (_, Some(mark)) => (mark, true),
        (None, None) => return None,
    };
    let name = rest[..mark].trim_end();
    let name = name.strip_suffix(':').unwrap_or(name);
    // Where the line has other parts before it, its own begins later.
    let is_own = !name.contains(['=', '%']) && !name.contains(": ") && !name.ends_with(':');
    if !is_own || name.is_empty() || name.len() > MAX_NAME {
        return None;
    }
    let name = name.trim().to_owned();
    let group = rest[mark..].trim_start_matches("(g=").split(')').next().and_then(|id| id.parse().ok());
    let kind = match is_load {
        true => SegmentKind::Load { name, group: group.unwrap_or(0) },
        false => SegmentKind::Job { name },
    };
    Some((mark, kind))
}

/// `vda: ios=`.
fn disk_at(line: &str, at: usize) -> Option<(usize, SegmentKind)> {
    let rest = &line[at..];
    let end = rest.find(|c: char| c.is_whitespace() || c == ':')?;
    let behind = rest[end..].trim_start().strip_prefix(':')?;
    behind.trim_start().starts_with("ios=").then(|| {
        // Devices below another one are indented further.
        let is_below = line[..at].trim().is_empty() && at >= 4;
        (rest.len() - behind.len(), SegmentKind::Disk { name: rest[..end].to_owned(), is_below })
    })
}

/// The first version of fio in a line of its own: `fio-2.1.3`, `fio 1.59`.
pub(super) fn version(text: &str) -> Option<String> {
    versions(text).next().map(str::to_owned)
}

/// The version that all such lines have.
pub(super) fn only_version(text: &str) -> Option<String> {
    let first = versions(text).next()?;
    versions(text).all(|version| version == first).then(|| first.to_owned())
}

fn versions(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let version = line.trim().strip_prefix("fio")?.strip_prefix(['-', ' '])?;
        let is_version = version.starts_with(|c: char| c.is_ascii_digit())
            && version.chars().all(|c| c.is_ascii_alphanumeric() || ".-".contains(c));
        is_version.then_some(version)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_plain_list_are_left_alone() {
        assert!(!has_results("Model: X\nSeq read: 520 MB/s\nSeq write: 480 MB/s (QD=32)\nRandom\nread:\n"));
        assert!(has_results("  read: IOPS=6842, BW=26.7MiB/s\n"));
        let text = "  read: IOPS=6842, BW=26.7MiB/s\nSeq write: 480 MB/s\n";
        assert_eq!(segments(&SourceText::new(text)).len(), 1);
    }
}
