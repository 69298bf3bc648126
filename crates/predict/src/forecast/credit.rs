//! A volume's credit over time: what is left, when it was first exhausted, and for how long in sum.

use fathom_model::LimitUnit;
use fathom_record::forecast::CreditCourse;
use fathom_volume::{Limit, LimitState, VolumeModel};

/// With less than what the baseline brings in half a second, or than a hundredth of what is kept, the volume gives its
/// baseline and no more.
const EXHAUSTED_SECONDS: f64 = 0.5;
const EXHAUSTED_SHARE: f64 = 0.01;

/// Takes note of what is left of `credit` at the end of a span; returns for how much of it the credit counts as exhausted.
pub(super) fn sample(credit: &mut CreditCourse, (from, to): (u64, u64), left: u64) -> u64 {
    credit.left = credit.capacity.map(|_| left);
    credit.least = credit.capacity.map(|_| credit.least.map_or(left, |least| least.min(left)));
    let enough = credit.capacity.map_or(0.0, |capacity| {
        (credit.baseline_rate * EXHAUSTED_SECONDS).min(capacity as f64 * EXHAUSTED_SHARE)
    });
    let was_exhausted = std::mem::replace(&mut credit.is_exhausted, left as f64 <= enough);
    if !credit.is_exhausted {
        return 0;
    }
    credit.first_exhausted_ns.get_or_insert(to);
    // It was found so at the end of the span; since when in it is not known.
    let exhausted_ns = if was_exhausted { to - from } else { 0 };
    credit.exhausted_ns += exhausted_ns;
    exhausted_ns
}

/// The credits of a volume, in the order of its limits. Nothing has been taken of them.
pub fn credits(model: &VolumeModel) -> Vec<CreditCourse> {
    let stages = [("", &model.shared), (" reads", &model.reads), (" writes", &model.writes)];
    let mut found = Vec::new();
    for (direction, stage) in
        stages.into_iter().flat_map(|(word, all)| all.iter().map(move |one| (word, one)))
    {
        for (unit, limit) in [(LimitUnit::Ios, stage.ios), (LimitUnit::Bytes, stage.bytes)] {
            let (base, burst, capacity) = match limit {
                Some(Limit::Credit { base, burst, capacity, .. }) => (base, burst, Some(capacity)),
                Some(Limit::Window { base, burst, .. }) => (base, Some(burst), None),
                Some(Limit::Rate(_) | Limit::OnDemand { .. }) | None => continue,
            };
            found.push(CreditCourse {
                of: format!("{}{direction}", stage.name),
                unit,
                capacity,
                burst_rate: burst.map(|burst| burst.as_f64()),
                baseline_rate: base.as_f64(),
                ..CreditCourse::default()
            });
        }
    }
    found
}

/// What is left of a credit, where a limit has one: tokens; of a window the ns of burst, 0 while it rests.
pub(super) fn left(state: LimitState, now_ns: u64) -> Option<u64> {
    match state {
        LimitState::Credit { left, .. } => Some(left),
        LimitState::Burst { until_ns } => Some(until_ns.saturating_sub(now_ns).max(1)),
        LimitState::Rest { .. } => Some(0),
        LimitState::Ready => Some(u64::MAX),
        LimitState::Steady => None,
    }
}

#[cfg(test)]
mod tests {
    use fathom_volume::{LimitStage, TokenRate};

    use super::*;

    #[test]
    fn credits_of_a_volume_are_found_in_the_order_of_its_limits() {
        let rate = |tokens| TokenRate::per_second(tokens).unwrap();
        let credit =
            Limit::Credit { base: rate(150), burst: Some(rate(3000)), capacity: 5_400_000, initial: 0 };
        let window = Limit::Window { base: rate(5), burst: rate(7), burst_ns: 9, rest_ns: 9 };
        let stage =
            |ios, bytes| LimitStage { name: "volume".to_owned(), ios, bytes, ..LimitStage::default() };
        let model = VolumeModel {
            shared: vec![stage(Some(credit), Some(Limit::Rate(rate(9))))],
            writes: vec![stage(None, Some(window))],
            ..VolumeModel::unlimited(1 << 30)
        };
        let found: Vec<_> =
            credits(&model).into_iter().map(|one| (one.of, one.unit, one.capacity, one.burst_rate)).collect();
        assert_eq!(
            found,
            [
                ("volume".to_owned(), LimitUnit::Ios, Some(5_400_000), Some(3000.0)),
                ("volume writes".to_owned(), LimitUnit::Bytes, None, Some(7.0))
            ]
        );
    }

    #[test]
    fn a_credit_is_used_up_while_only_the_baseline_is_left() {
        let limit = Limit::Credit {
            base: TokenRate::per_second(150).unwrap(),
            burst: None,
            capacity: 1000,
            initial: 1000,
        };
        let stage = LimitStage { ios: Some(limit), ..LimitStage::default() };
        let model = VolumeModel { shared: vec![stage], ..VolumeModel::unlimited(1 << 30) };
        let mut course = credits(&model).remove(0);
        for (span, left, expected) in
            [((0, 5), 900, 0), ((5, 10), 10, 0), ((10, 15), 0, 5), ((15, 20), 11, 0), ((20, 25), 10, 0)]
        {
            assert_eq!(sample(&mut course, span, left), expected, "{left}");
        }
        assert_eq!((course.first_exhausted_ns, course.exhausted_ns), (Some(10), 5));
        assert_eq!((course.least, course.left, course.share(Some(500))), (Some(0), Some(10), Some(0.5)));
    }

    #[test]
    fn what_is_left_of_windows_is_time() {
        for (state, expected) in [
            (LimitState::Steady, None),
            (LimitState::Credit { left: 7, capacity: 9 }, Some(7)),
            (LimitState::Burst { until_ns: 100 }, Some(60)),
            (LimitState::Rest { until_ns: 100 }, Some(0)),
            (LimitState::Ready, Some(u64::MAX)),
        ] {
            assert_eq!(left(state, 40), expected, "{state:?}");
        }
    }
}
