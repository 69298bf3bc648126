//! Whether a volume serves the use whose access pattern was run on it: by the needs of the use, not by what disks deliver.
//!
//! A need is a pair of criteria for one metric: what serves the use, and what serves a small installation of it. The worst
//! need decides.

use fathom_record::{NeedRecord, TestRecord, TestStatus};

use super::{Conclusion, Suitability};
use crate::criterion::{Metric, MetricDirection, MetricKind};

/// The class of a need that, met, serves the use.
pub const YES: &str = "yes";
/// The class of a need that, met, serves a small installation.
pub const MARGINAL: &str = "marginal";

/// The conclusion of a test about its use; nothing where it has none, or did not complete.
pub(super) fn of_profile(test: &TestRecord) -> Option<Conclusion> {
    if test.purpose.is_empty() || test.status != TestStatus::Complete {
        return None;
    }
    let wanted = test.needs.iter().filter(|need| need.class == YES);
    let needs: Vec<(&NeedRecord, Suitability)> =
        wanted.map(|need| (need, suitability(need, &test.needs))).collect();
    let verdict = needs.iter().map(|(_, verdict)| *verdict).max_by_key(|verdict| badness(*verdict))?;
    let parts: Vec<String> = needs.iter().map(|(need, verdict)| text(need, *verdict)).collect();
    Some(Conclusion {
        purpose: test.purpose.clone(),
        verdict,
        reason: parts.join(", "),
        tests: vec![test.id.clone()],
    })
}

fn suitability(wanted: &NeedRecord, all: &[NeedRecord]) -> Suitability {
    let marginal = all.iter().find(|other| other.class == MARGINAL && other.metric == wanted.metric);
    match (wanted.met, marginal.and_then(|other| other.met)) {
        (Some(true), _) => Suitability::Yes,
        (Some(false), Some(true)) => Suitability::Marginal,
        (Some(false), _) => Suitability::No,
        (None, _) => Suitability::Inconclusive,
    }
}

/// One need that is missed decides, even where others are unknown.
fn badness(verdict: Suitability) -> u8 {
    match verdict {
        Suitability::Yes => 0,
        Suitability::Marginal => 1,
        Suitability::Inconclusive => 2,
        Suitability::No => 3,
    }
}

/// `p99 21.0 ms (needs <= 5.00 ms)`, `4,900 IOPS`.
fn text(need: &NeedRecord, verdict: Suitability) -> String {
    let metric = need.metric.split_once('.').and_then(|(_, metric)| Metric::parse(metric));
    let Some(Metric { direction, kind }) = metric else { return need.metric.clone() };
    let needed = format!("needs {} {}", need.is, kind.figure(need.value));
    let name = match kind {
        MetricKind::Latency(_, statistic) if direction == Some(MetricDirection::Sync) => {
            format!("commit {} ", statistic.label())
        }
        MetricKind::Latency(_, statistic) => format!("{} ", statistic.label()),
        MetricKind::Iops | MetricKind::BytesPerSecond => String::new(),
    };
    match (need.observed, verdict) {
        (None, _) => format!("{}: not measured ({needed})", kind.label()),
        (Some(observed), Suitability::Yes) => format!("{name}{}", kind.quantity_beside(observed, need.value)),
        (Some(observed), _) => format!("{name}{} ({needed})", kind.quantity_beside(observed, need.value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(metric: &str, (is, yes, marginal): (&str, f64, f64), observed: Option<f64>) -> Vec<NeedRecord> {
        let one = |class: &str, value: f64| NeedRecord {
            class: class.to_owned(),
            metric: format!("oltp.{metric}"),
            is: is.to_owned(),
            value,
            tolerance_percent: 0.0,
            observed,
            met: observed.map(|observed| if is == "<=" { observed <= value } else { observed >= value }),
        };
        vec![one(YES, yes), one(MARGINAL, marginal)]
    }

    fn conclusion_text(p99: Option<f64>, iops: f64) -> String {
        let mut expected = need("total.lat_ns.p99", ("<=", 5e6, 20e6), p99);
        expected.extend(need("total.iops", (">=", 1000.0, 200.0), Some(iops)));
        let test = TestRecord {
            id: "oltp".to_owned(),
            purpose: "OLTP".to_owned(),
            status: TestStatus::Complete,
            needs: expected,
            ..TestRecord::default()
        };
        let conclusion = of_profile(&test).unwrap();
        format!("{}: {}, {}", conclusion.purpose, conclusion.verdict.name(), conclusion.reason)
    }

    #[test]
    fn the_worst_need_decides() {
        assert_eq!(conclusion_text(Some(1e6), 4900.0), "OLTP: yes, p99 1.00 ms, 4,900 IOPS");
        assert_eq!(
            conclusion_text(Some(1e6), 300.0),
            "OLTP: marginal, p99 1.00 ms, 300 IOPS (needs >= 1,000)"
        );
        assert_eq!(
            conclusion_text(Some(21e6), 4900.0),
            "OLTP: no, p99 21.0 ms (needs <= 5.00 ms), 4,900 IOPS"
        );
        assert_eq!(
            conclusion_text(None, 4900.0),
            "OLTP: inconclusive, lat p99: not measured (needs <= 5.00 ms), 4,900 IOPS"
        );
        assert!(conclusion_text(None, 100.0).starts_with("OLTP: no, "));
    }

    #[test]
    fn only_complete_profiles_have_a_conclusion() {
        assert_eq!(of_profile(&TestRecord { status: TestStatus::Complete, ..TestRecord::default() }), None);
        let failed =
            TestRecord { purpose: "OLTP".to_owned(), status: TestStatus::Failed, ..TestRecord::default() };
        assert_eq!(of_profile(&failed), None);
    }
}
