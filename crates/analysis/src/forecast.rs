//! When the instance that a simulated volume is attached to, and not the volume, holds the rate of a load.

use fathom_model::units::duration;
use fathom_model::{Nanos, Op};
use fathom_record::forecast::{CompletedRequests, Forecast, ForecastSlice};
use fathom_record::{Finding, InstanceReach, RunRecord, TestRecord};

use crate::findings::instance_limit::{self, InstanceHold};
use crate::plateau::AGREE;
use crate::say::percent;

/// A finding for each limit of the instance that holds the rate of a load, with the time for which it does.
pub fn instance_findings(record: &RunRecord) -> Vec<Finding> {
    record.tests.iter().flat_map(of_test).collect()
}

fn of_test(test: &TestRecord) -> Vec<Finding> {
    let reach = test.published.as_ref().and_then(|published| published.instance.as_ref());
    let Some((forecast, reach)) = test.forecast().zip(reach) else { return Vec::new() };
    let whole = LoadShape::of(&counted(forecast));
    let held = |slice| Some((slice, hold(slice, reach, &whole)?));
    let all: Vec<(&ForecastSlice, InstanceHold<'_>)> = forecast.slices.iter().filter_map(held).collect();
    let holds: Vec<InstanceHold<'_>> = all.iter().map(|(_, hold)| *hold).collect();
    let of_limit = |alike: &Vec<usize>| {
        let ns = alike.iter().map(|place| all[*place].0.end_ns - all[*place].0.start_ns).sum();
        let mut found = instance_limit::finding(&alike.iter().map(|place| holds[*place]).collect::<Vec<_>>());
        let share = ns as f64 / forecast.elapsed_ns.max(1) as f64;
        let (held, whole) = (duration(Nanos(ns)), duration(Nanos(forecast.elapsed_ns)));
        found.claim += &format!(" This limit holds the rate for {held} of {whole} ({}).", percent(share));
        found.tests.push(test.id.clone());
        found.with("held_ns", ns).with("held_share", share)
    };
    instance_limit::alike(&holds).iter().map(of_limit).collect()
}

/// The limit that holds the rate of a slice, whose load is like the whole.
fn hold<'a>(slice: &ForecastSlice, reach: &'a InstanceReach, whole: &LoadShape) -> Option<InstanceHold<'a>> {
    let shape = LoadShape::of(&slice.counted);
    let iops = slice.iops();
    let depth = iops * slice.lat.summary().mean? / 1e9;
    let counts = depth >= instance_limit::QUEUE && shape.is_like(whole);
    InstanceHold::of(reach, iops, shape.mean_bytes).filter(|_| counts)
}

fn counted(forecast: &Forecast) -> CompletedRequests {
    let of = |op: Op| (forecast.ops[op].ios, forecast.ops[op].bytes);
    let all = Op::DATA.map(of);
    CompletedRequests { ios: all.map(|(ios, _)| ios), bytes: all.map(|(_, bytes)| bytes) }
}

/// What limits depend on.
struct LoadShape {
    read_share: f64,
    mean_bytes: f64,
}

impl LoadShape {
    fn of(counted: &CompletedRequests) -> LoadShape {
        let ios = counted.ios.iter().sum::<u64>().max(1) as f64;
        LoadShape {
            read_share: counted.ios[0] as f64 / ios,
            mean_bytes: counted.bytes.iter().sum::<u64>() as f64 / ios,
        }
    }

    fn is_like(&self, other: &LoadShape) -> bool {
        (self.read_share - other.read_share).abs() <= AGREE
            && (self.mean_bytes - other.mean_bytes).abs() <= other.mean_bytes * AGREE
    }
}
