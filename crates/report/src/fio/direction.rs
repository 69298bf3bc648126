//! The directions of an entry as its job wants them reported: read, write and trim, all of them as one, or both.

use std::borrow::Cow;

use fathom_model::Op;
use fathom_model::plan::UnifiedReporting;
use fathom_record::{EntryOp, OpOutcome, ReportEntry, Windows};

use crate::fio::report::{GroupFigures, GroupOp};

/// One direction of an entry.
pub(crate) struct Direction<'a> {
    pub name: &'static str,
    pub counted: Cow<'a, OpOutcome>,
    pub of: EntryOp,
    /// The same direction of the entry's group.
    pub group: GroupOp,
}

/// The directions of `entry` in fio's order.
pub(crate) fn directions<'a>(entry: &'a ReportEntry, group: &GroupFigures) -> Vec<Direction<'a>> {
    let unified = entry.job.plan.measure.unified;
    let mut directions: Vec<Direction<'a>> = Vec::new();
    if unified != UnifiedReporting::Mixed {
        directions.extend(Op::DATA.into_iter().map(|op| Direction {
            name: op.name(),
            counted: Cow::Borrowed(entry.job.measured.op(op)),
            of: *entry.op(op),
            group: group.ops[op as usize],
        }));
    }
    if unified != UnifiedReporting::None {
        directions.push(mixed(entry, group.mixed));
    }
    directions
}

/// All operations of `entry` as one.
fn mixed<'a>(entry: &'a ReportEntry, group: GroupOp) -> Direction<'a> {
    let (mut counted, mut of) = (OpOutcome::default(), EntryOp::default());
    for op in Op::DATA {
        counted.merge(entry.job.measured.op(op));
        let one = entry.op(op);
        of.runtime_ms = of.runtime_ms.max(one.runtime_ms);
        add(&mut of.bandwidth, &one.bandwidth);
        add(&mut of.iops, &one.iops);
    }
    Direction { name: "mixed", counted: Cow::Owned(counted), of, group }
}

/// As fio merges the windows of several workers.
fn add(sum: &mut Windows, other: &Windows) {
    sum.samples += other.samples;
    sum.min += other.min;
    sum.max += other.max;
    sum.mean += other.mean;
    sum.squares += other.squares;
}
