//! What a run says first: of the volume, and of what it was checked against.

mod identified;
mod surface;
mod volume;

use fathom_record::{Activity, RunRecord};

use crate::criterion::CriterionVerdict;
use crate::{Analysis, ping, sweep};
pub use identified::{BurstVerdict, IdentifiedVerdict, RateEachWay};
pub use surface::SurfaceVerdict;
pub use volume::{
    RateDirection, RateUnit, RateVerdict, SuitabilityVerdict, VolumeVerdict, doubt_reason, is_problem,
    problems,
};

/// Missed where one criterion is missed, else inconclusive where one is; `None` where nothing was to be checked.
pub fn verdict(record: &RunRecord) -> Option<CriterionVerdict> {
    let (is_checked, is_missed, is_inconclusive) = match &record.header.activity {
        Activity::Bench(_) => {
            let analysis = Analysis::of(record);
            let is_checked = !record.header.expectations.is_empty();
            (is_checked, analysis.is_missed(), analysis.is_inconclusive())
        }
        Activity::Sweep(asked) => {
            let sweep = sweep::assess(record);
            (asked.slo.is_some() || asked.reach.is_some(), sweep.is_missed(), sweep.is_inconclusive())
        }
        Activity::Ping(asked) => {
            let ping = record.tests.iter().find_map(|test| test.ping());
            let verdicts = ping.map(|ping| ping::verdicts(&record.header, ping)).unwrap_or_default();
            (
                !asked.slo.is_empty(),
                verdicts.iter().any(|one| one.verdict.is_missed()),
                verdicts.is_empty() || verdicts.iter().any(|one| one.verdict.is_inconclusive()),
            )
        }
        _ => return None,
    };
    is_checked.then(|| match (is_missed, is_inconclusive) {
        (true, _) => CriterionVerdict::Missed,
        (false, true) => CriterionVerdict::inconclusive("a criterion is inconclusive", None),
        (false, false) => CriterionVerdict::Met,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{TestLoad, record};
    use fathom_record::{ExpectationRecord, SweepActivity};

    #[test]
    fn the_worst_result_is_that_of_the_run() {
        let mut run = record(&[TestLoad::default()]);
        assert_eq!(verdict(&run), None);
        let expect = |value: f64| ExpectationRecord {
            test: "t".to_owned(),
            metric: "read.lat_ns.mean".to_owned(),
            is: "<".to_owned(),
            value,
            ..ExpectationRecord::default()
        };
        run.header.expectations = vec![expect(1e9)];
        assert_eq!(verdict(&run), Some(CriterionVerdict::Met));
        run.header.expectations.push(expect(1e3));
        assert_eq!(verdict(&run), Some(CriterionVerdict::Missed));
    }

    #[test]
    fn only_what_was_asked_for_is_checked() {
        let mut run = record(&[TestLoad::default()]);
        run.header.activity = Activity::Sweep(SweepActivity::default());
        assert_eq!(verdict(&run), None);
        run.header.activity = Activity::Monitor;
        assert_eq!(verdict(&run), None);
    }
}
