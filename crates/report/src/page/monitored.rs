//! The course of a monitored device, as its kernel counted it.

use fathom_model::Op;
use fathom_record::monitor::{MonitorInterval, MonitoredDevice};

use super::axes::plot;
use crate::axis_text::{MIB, latency_text, rate_text, time_axis};
use crate::view::{Axis, Plot, PlotForm, PlotPoint, PlotSeries};

/// The plots of a device.
pub(super) fn plots(device: &MonitoredDevice) -> Vec<Plot> {
    let mut begun = 0;
    let mut spans = Vec::with_capacity(device.intervals.len());
    for interval in &device.intervals {
        spans.push((begun, interval));
        begun += interval.elapsed_ns;
    }
    let time = || time_axis(0, begun);
    let each = |of: &dyn Fn(&MonitorInterval, Op) -> Option<f64>| -> Vec<PlotSeries> {
        let used = Op::DATA.into_iter().filter(|op| device.means.activity.ops[*op].ios > 0);
        let point = |op: Op, (from, interval): &(u64, &MonitorInterval)| {
            let (from, to) = (*from as f64, (*from + interval.elapsed_ns) as f64);
            Some(PlotPoint { from, to, y: of(interval, op)?, interval: None })
        };
        let points = |op: Op| spans.iter().filter_map(|span| point(op, span)).collect();
        used.map(|op| PlotSeries { name: op.name().to_owned(), points: points(op) }).collect()
    };
    let iops = each(&|interval, op| interval.per_second(interval.activity.ops[op].ios));
    let rate = each(&|interval, op| Some(interval.per_second(interval.activity.ops[op].bytes)? / MIB));
    let latency = each(&|interval, op| interval.activity.ops[op].await_ns().filter(|ns| *ns > 0.0));
    let plots = [
        plot("IOPS over time", PlotForm::Steps, time(), Axis::linear("IOPS", rate_text), iops),
        plot("Bandwidth over time", PlotForm::Steps, time(), Axis::linear("MiB/s", rate_text), rate),
        plot(
            "Mean latency over time",
            PlotForm::Steps,
            time(),
            Axis::logarithmic("latency", latency_text),
            latency,
        ),
    ];
    plots
        .into_iter()
        .flatten()
        .filter(|plot| plot.series.iter().any(|series| series.points.len() > 1))
        .collect()
}
