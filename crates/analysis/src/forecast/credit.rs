//! A volume's credit over time: what is left, when it was first used up, and for how long in sum.

use fathom_volume::{Limit, Standing, VolumeModel};

/// What a credit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreditUnit {
    /// I/Os, as the provider counts them.
    Ios,
    /// Bytes.
    Bytes,
}

/// One credit and its course. A window that bursts and rests is one as well: its credit is the burst that is left.
#[derive(Clone, Debug, PartialEq)]
pub struct CreditCourse {
    /// Which limit: `volume`, or with its direction, `volume reads`.
    pub of: String,
    /// What it counts.
    pub unit: CreditUnit,
    /// The most that is kept, tokens; `None` for a window.
    pub capacity: Option<u64>,
    /// The rate it lets a load have, a second; `None` = no limit.
    pub burst: Option<f64>,
    /// The rate without it.
    pub base: f64,
    /// The least that was left.
    pub least: u64,
    /// What was left at the end.
    pub left: u64,
    /// When it was first used up, ns since the load began; `None` = never.
    pub first_dry_ns: Option<u64>,
    /// For how long it was used up, ns.
    pub dry_ns: u64,
    /// It was used up when it was looked at last.
    pub is_dry: bool,
}

/// With less than what the baseline brings in half a second, or than a hundredth of what is kept, the volume gives its
/// baseline and no more.
const DRY_SECONDS: f64 = 0.5;
const DRY_SHARE: f64 = 0.01;

impl CreditCourse {
    /// Takes note of what is left at the end of a span; returns for how much of it the credit counts as used up.
    pub(crate) fn sample(&mut self, (from, to): (u64, u64), left: u64) -> u64 {
        self.least = self.least.min(left);
        self.left = left;
        let enough =
            self.capacity.map_or(0.0, |capacity| (self.base * DRY_SECONDS).min(capacity as f64 * DRY_SHARE));
        let was_dry = std::mem::replace(&mut self.is_dry, left as f64 <= enough);
        if !self.is_dry {
            return 0;
        }
        self.first_dry_ns.get_or_insert(to);
        // It was found so at the end of the span; since when in it is not known.
        let dry_ns = if was_dry { to - from } else { 0 };
        self.dry_ns += dry_ns;
        dry_ns
    }

    /// The credit as a share of the most that is kept.
    pub fn share(&self, left: u64) -> Option<f64> {
        self.capacity.map(|capacity| left as f64 / capacity as f64)
    }
}

/// The credits of a volume, in the order of its limits. Nothing has been taken of them.
pub fn credits(model: &VolumeModel) -> Vec<CreditCourse> {
    let stages = [("", &model.shared), (" reads", &model.reads), (" writes", &model.writes)];
    let mut found = Vec::new();
    for (direction, stage) in
        stages.into_iter().flat_map(|(word, all)| all.iter().map(move |one| (word, one)))
    {
        for (unit, limit) in [(CreditUnit::Ios, stage.ios), (CreditUnit::Bytes, stage.bytes)] {
            let (base, burst, capacity) = match limit {
                Some(Limit::Credit { base, burst, capacity, .. }) => (base, burst, Some(capacity)),
                Some(Limit::Window { base, burst, .. }) => (base, Some(burst), None),
                Some(Limit::Rate(_) | Limit::OnDemand { .. }) | None => continue,
            };
            found.push(CreditCourse {
                of: format!("{}{direction}", stage.name),
                unit,
                capacity,
                burst: burst.map(|burst| burst.as_f64()),
                base: base.as_f64(),
                least: u64::MAX,
                left: u64::MAX,
                first_dry_ns: None,
                dry_ns: 0,
                is_dry: false,
            });
        }
    }
    found
}

/// What is left of a credit, where a limit has one: tokens; of a window the ns of burst, 0 while it rests.
pub fn left(standing: Standing, now_ns: u64) -> Option<u64> {
    match standing {
        Standing::Credit { left, .. } => Some(left),
        Standing::Burst { until_ns } => Some(until_ns.saturating_sub(now_ns).max(1)),
        Standing::Rest { .. } => Some(0),
        Standing::Ready => Some(u64::MAX),
        Standing::Steady => None,
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
            credits(&model).into_iter().map(|one| (one.of, one.unit, one.capacity, one.burst)).collect();
        assert_eq!(
            found,
            [
                ("volume".to_owned(), CreditUnit::Ios, Some(5_400_000), Some(3000.0)),
                ("volume writes".to_owned(), CreditUnit::Bytes, None, Some(7.0))
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
            assert_eq!(course.sample(span, left), expected, "{left}");
        }
        assert_eq!((course.first_dry_ns, course.dry_ns, course.least, course.left), (Some(10), 5, 0, 10));
        assert_eq!(course.share(500), Some(0.5));
    }

    #[test]
    fn what_is_left_of_windows_is_time() {
        for (standing, expected) in [
            (Standing::Steady, None),
            (Standing::Credit { left: 7, capacity: 9 }, Some(7)),
            (Standing::Burst { until_ns: 100 }, Some(60)),
            (Standing::Rest { until_ns: 100 }, Some(0)),
            (Standing::Ready, Some(u64::MAX)),
        ] {
            assert_eq!(left(standing, 40), expected, "{standing:?}");
        }
    }
}
