//! The present volume: its prediction beside what was observed, and how far to trust the model.

use fathom_analysis::advise::{AdvisedCandidate, AdvisedLoad};
use fathom_predict::{Prediction, PredictionSet};

use super::view::{break_text, latency_range, price_text};
use crate::view::{Block, Cell, Column, Row, Table, iops_text};

/// The model of the present volume serves at most this share less than was observed.
const SERVED: f64 = 0.03;

/// The prediction for the present beside what was observed.
pub(super) fn present(load: &AdvisedLoad, current: &AdvisedCandidate) -> Vec<Block> {
    let columns = [Column::left(""), Column::right("observed"), Column::right("predicted")];
    let set = &current.predicted;
    let total = |one: &Prediction| one.summary.total.clone();
    let lat = load.lat_ns.as_ref();
    let percentile = |value: Option<u64>| Cell::from(value.map(Cell::latency));
    let range = |figure: &dyn Fn(&Prediction) -> Option<f64>| latency_range(set.range(figure));
    let rows = [
        Row::new([
            "IOPS".into(),
            Cell::iops(load.iops),
            set.range(|one| Some(total(one)?.iops)).map(|range| Cell::iops(range.low)).into(),
        ]),
        Row::new([
            "mean latency".into(),
            load.mean_latency_ns.map(Cell::mean_latency).into(),
            range(&|one| total(one)?.lat_ns.mean),
        ]),
        Row::new([
            "p50".into(),
            percentile(lat.and_then(|lat| lat.p50)),
            range(&|one| total(one)?.lat_ns.p50.map(|ns| ns as f64)),
        ]),
        Row::new([
            "p99".into(),
            percentile(lat.and_then(|lat| lat.p99)),
            range(&|one| total(one)?.lat_ns.p99.map(|ns| ns as f64)),
        ]),
    ];
    let mut words = vec![format!("{}: {}.", current.target, price_text(current))];
    words.extend(current.breaks.as_ref().map(break_text));
    words.extend(trust(load, &current.predicted));
    vec![Block::Table(Table::new(columns, rows)), Block::Notes(words)]
}

/// Whether the prediction agrees with what was observed.
fn trust(load: &AdvisedLoad, predicted: &PredictionSet) -> Option<String> {
    let served = predicted.range(|one| Some(one.summary.total.as_ref()?.iops));
    if let Some(range) = served.filter(|range| range.high < load.iops * (1.0 - SERVED)) {
        return Some(format!(
            "The model serves {} of the {} IOPS that were observed: the volume is another one, its limits are higher, or its burst \
             credits differed. Check --current before you follow the advice.",
            iops_text(range.high),
            iops_text(load.iops)
        ));
    }
    let observed = load.mean_latency_ns?;
    let range = predicted.range(|one| one.summary.total.as_ref()?.lat_ns.mean)?;
    let words = if observed < range.low / 10.0 {
        "The model has queues that were not observed: the volume is another one, its limits are higher, or its burst credits differed. \
         Check --current before you follow the advice."
    } else if observed < range.low / 1.5 {
        "The model is slower than observed: its latency is that of the catalogue, not of this volume. Compare volumes by it."
    } else if observed > range.high * 1.5 {
        "The volume was slower than the model: something else limited it, such as the instance, or it is another one. The advice does not \
         cover that."
    } else {
        "The observed mean latency agrees with the prediction within a half."
    };
    Some(words.to_owned())
}

#[cfg(test)]
mod tests {
    use fathom_record::{LatencySummary, OpSummary, TestSummary};

    use super::*;

    #[test]
    fn a_prediction_that_disagrees_with_what_was_observed_is_not_to_be_trusted() {
        let check = |observed: (f64, Option<f64>), predicted: (f64, f64), expected: Option<&str>| {
            let load =
                AdvisedLoad { iops: observed.0, mean_latency_ns: observed.1, ..AdvisedLoad::default() };
            let lat_ns = LatencySummary { mean: Some(predicted.1), ..LatencySummary::default() };
            let total = Some(OpSummary { iops: predicted.0, lat_ns, ..OpSummary::default() });
            let summary = TestSummary { total, ..TestSummary::default() };
            let set = PredictionSet { all: vec![Prediction { summary, ..Prediction::default() }] };
            let words = trust(&load, &set).unwrap_or_default();
            assert!(words.starts_with(expected.unwrap_or("The observed")), "{words}");
            assert_eq!(words.is_empty(), expected == Some(""), "{words}");
        };
        let few = Some("The model serves 359 of the 375 IOPS that were observed");
        check((375.0, None), (359.0, 5e11), few);
        check((375.0, Some(1e6)), (359.0, 5e11), few);
        check((375.0, None), (374.0, 5e6), Some(""));
        check((375.0, Some(1e6)), (374.0, 1.2e6), None);
        check((375.0, Some(1e6)), (374.0, 5e7), Some("The model has queues"));
        check((375.0, Some(1e6)), (374.0, 2e6), Some("The model is slower"));
        check((375.0, Some(5e6)), (374.0, 1e6), Some("The volume was slower"));
    }
}
