//! Where one output ends and the next begins, of several in one text.

use std::ops::Range;

use super::segment::{Segment, SegmentKind};

/// Jobs that fio reports together are printed within this time, s; each line has the time of its own.
const TOGETHER_S: u64 = 2;

/// Outputs by their segments.
pub(super) fn divide(segments: &[Segment]) -> Vec<Range<usize>> {
    let mut outputs = Vec::new();
    let (mut begin, mut output) = (0, OutputSoFar::default());
    for (at, segment) in segments.iter().enumerate() {
        if output.is_over_before(segment) {
            outputs.push(begin..at);
            (begin, output) = (at, OutputSoFar::default());
        }
        output.take(segment);
    }
    if output.has_results {
        outputs.push(begin..segments.len());
    }
    outputs
}

/// The processes of an output, by which states of one run are known; empty where they are not printed.
pub(super) fn processes(segments: &[Segment]) -> Vec<(String, String)> {
    let of = |segment: &Segment| {
        let SegmentKind::Job { name } = &segment.kind else { return None };
        let (pid, _) = segment.process()?;
        Some((name.clone(), pid.to_owned()))
    };
    segments.iter().filter_map(of).collect()
}

/// What an output has had, in the order in which fio prints: loads, progress, jobs, groups, disks.
#[derive(Default)]
struct OutputSoFar {
    has_results: bool,
    /// A line that stands behind all jobs.
    has_end: bool,
    /// Names of jobs, and when they were reported.
    jobs: Vec<(String, Option<u64>)>,
    /// Operations of the present job.
    ops: Vec<&'static str>,
    groups: Vec<u32>,
    /// Operations of the present group.
    group_ops: Vec<&'static str>,
}

impl OutputSoFar {
    fn is_over_before(&self, next: &Segment) -> bool {
        match &next.kind {
            SegmentKind::Load { .. } => self.has_results,
            SegmentKind::Job { name } => self.has_end || self.is_reported_again(name, second_of_day(next)),
            SegmentKind::Op(op) => self.has_end || self.ops.contains(op),
            SegmentKind::Group(id) => self.groups.contains(id),
            SegmentKind::GroupOp(op) => self.group_ops.contains(op),
            SegmentKind::Disk { .. } | SegmentKind::Other => false,
            _ => self.has_end,
        }
    }

    /// Clones of one job have one name, and are reported together.
    fn is_reported_again(&self, name: &str, at: Option<u64>) -> bool {
        self.jobs.iter().any(|(job, reported)| {
            let apart = reported.zip(at).map(|(reported, at)| reported.abs_diff(at));
            job == name && apart.is_some_and(|apart| apart > TOGETHER_S)
        })
    }

    fn take(&mut self, segment: &Segment) {
        self.has_results |= segment.kind.has_results();
        match &segment.kind {
            SegmentKind::Job { name } => {
                self.jobs.push((name.clone(), second_of_day(segment)));
                self.ops.clear();
            }
            SegmentKind::Op(op) => self.ops.push(op),
            SegmentKind::Group(id) => {
                self.has_end = true;
                self.groups.push(*id);
                self.group_ops.clear();
            }
            SegmentKind::GroupOp(op) => {
                self.has_end = true;
                self.group_ops.push(op);
            }
            SegmentKind::Disk { .. } => self.has_end = true,
            _ => {}
        }
    }
}

/// `10:03:45` of `pid=1: Mon Jun 13 10:03:45 2016`.
fn second_of_day(job: &Segment) -> Option<u64> {
    let (_, reported) = job.process()?;
    let time = reported.split_whitespace().find(|word| word.split(':').count() == 3)?;
    time.split(':').try_fold(0, |sum, part| Some(sum * 60 + part.parse::<u64>().ok()?))
}
