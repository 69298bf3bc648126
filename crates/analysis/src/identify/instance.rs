//! Limits of a known instance among those that were identified: they are in front of the volume's own.

use fathom_record::{Finding, RunRecord};

use super::script::identified_of;
use crate::findings::instance_limit::{self, InstanceHold};
use crate::identified::EachWay;
use crate::rows::{RecordRow, RowKind, rows};
use crate::say::on_rows;

/// A finding for each limit of the instance that was identified as one of the volume.
pub fn findings(record: &RunRecord) -> Vec<Finding> {
    let has_instance = |row: &RecordRow<'_>| {
        row.test.published.as_ref().is_some_and(|published| published.instance.is_some())
    };
    let rows: Vec<RecordRow<'_>> = rows(record).into_iter().filter(has_instance).collect();
    let Some(found) = (if rows.is_empty() { None } else { identified_of(record) }) else {
        return Vec::new();
    };
    let all: Vec<(&RecordRow<'_>, InstanceHold<'_>)> =
        held(&rows, &found.iops, false).chain(held(&rows, &found.bytes_per_second, true)).collect();
    let holds: Vec<InstanceHold<'_>> = all.iter().map(|(_, hold)| *hold).collect();
    let of_limit = |alike: &Vec<usize>| {
        let alike_holds: Vec<InstanceHold<'_>> = alike.iter().map(|place| holds[*place]).collect();
        on_rows(instance_limit::finding(&alike_holds), alike.iter().map(|place| all[*place].0))
    };
    instance_limit::alike(&holds).iter().map(of_limit).collect()
}

/// The figures that are limits of the instance, each with the measurement that came nearest to it: of the smallest I/Os for IOPS, of
/// the largest for bytes.
fn held<'r, 'a>(
    rows: &'r [RecordRow<'a>],
    figures: &EachWay,
    is_bandwidth: bool,
) -> impl Iterator<Item = (&'r RecordRow<'a>, InstanceHold<'r>)> {
    let hold = move |(kind, figure): (RowKind, Option<f64>)| {
        let of_kind = rows.iter().filter(|row| row.kind() == Some(kind));
        let sized = of_kind.filter_map(|row| Some((row, row.block_bytes()?)));
        let order = |bytes: u64| if is_bandwidth { u64::MAX - bytes } else { bytes };
        let figure = figure?;
        let iops_of = |bytes: u64| if is_bandwidth { figure / bytes as f64 } else { figure };
        let (row, bytes) = sized.min_by(|(one, one_bytes), (other, other_bytes)| {
            let apart = |row: &RecordRow<'_>, bytes: u64| (row.iops() - iops_of(bytes)).abs();
            order(*one_bytes)
                .cmp(&order(*other_bytes))
                .then(apart(one, *one_bytes).total_cmp(&apart(other, *other_bytes)))
        })?;
        let iops = iops_of(bytes);
        let reach = row.test.published.as_ref()?.instance.as_ref()?;
        InstanceHold::of(reach, iops, bytes as f64)
            .filter(|hold| hold.is_bandwidth == is_bandwidth)
            .map(|hold| (row, hold))
    };
    let value = |writes: bool| figures.of(writes).and_then(|figure| figure.value());
    [(RowKind::Read, value(false)), (RowKind::Write, value(true))].into_iter().filter_map(hold)
}
