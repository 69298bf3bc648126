//! Hosts that stand out from the others.
//!
//! From 15 hosts on by the generalized extreme Studentized deviate test (Rosner, Technometrics 25, 1983), which finds several
//! outliers that would hide one another; the handbook of NIST (1.3.5.17.3) gives 15 as the number from which its critical values
//! hold. From 5 on by the modified z-score (Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993), which rests on
//! medians. Their limit of 3.5 is for many values: of 5 alike it makes an outlier in one sample of five. So the limit depends on
//! the number of hosts, and 5 of 100 samples of normal values exceed it. Fewer hosts do not show what is usual.

use fathom_record::confidence::student;
use fathom_stats::sample::{mean, median, variance};
use serde::Serialize;

use super::{EQUIVALENT_LATENCY, EQUIVALENT_RATE, HostResult};

/// Fewest hosts for either test.
const MIN_HOSTS: usize = 5;
const MIN_FOR_DEVIATES: usize = 15;
/// Most outliers that are looked for, as a share of the hosts, and in number.
const MAX_SHARE: usize = 4;
const MAX_OUTLIERS: usize = 200;
/// The modified z-score that the greatest of 5 to 14 normal values exceeds in 5 of 100 samples, by simulation. Of an odd number one
/// value is the median itself, which makes the median deviation small.
const MODIFIED_Z: [f64; MIN_FOR_DEVIATES - MIN_HOSTS] = [7.6, 5.7, 5.6, 5.3, 4.9, 4.5, 4.7, 4.4, 4.5, 4.2];
/// The limit for values of which more than half are equal, as those of alike hosts are not.
const MEAN_Z: f64 = 3.5;
/// Standard deviation of a normal distribution over its median absolute deviation, and over its mean absolute deviation.
const PER_MEDIAN_DEVIATION: f64 = 1.482_6;
const PER_MEAN_DEVIATION: f64 = 1.253_314;

/// What hosts are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum HostMetric {
    /// I/Os per second.
    #[serde(rename = "iops")]
    Iops,
    /// 99th percentile of latency.
    #[serde(rename = "lat_ns.p99")]
    P99,
}

/// How outliers were looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutlierTest {
    /// Generalized extreme Studentized deviates, at 5 %.
    GeneralizedEsd,
    /// The modified z-score.
    ModifiedZScore,
    /// Too few hosts.
    None,
}

/// The hosts of a test that stand out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outliers {
    /// How they were looked for, by the metric that most hosts have.
    pub test: OutlierTest,
    /// Why they were not looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Slow ones before quick ones of each metric, the farthest first.
    pub hosts: Vec<Outlier>,
}

/// A host that stands out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outlier {
    /// The host.
    pub host: String,
    /// By which metric.
    pub metric: HostMetric,
    /// Its value.
    pub value: f64,
    /// The median of all hosts.
    pub median: f64,
    /// Its value as a share of the median.
    pub ratio: f64,
    /// The statistic of the test.
    pub statistic: f64,
    /// The value of the statistic from which on a host is an outlier.
    pub critical: f64,
}

impl HostMetric {
    /// Both, in the order of reports.
    pub const ALL: [HostMetric; 2] = [HostMetric::Iops, HostMetric::P99];

    const fn equivalent(self) -> f64 {
        match self {
            HostMetric::Iops => EQUIVALENT_RATE,
            HostMetric::P99 => EQUIVALENT_LATENCY,
        }
    }
}

impl Outlier {
    /// A lower rate or a higher latency.
    pub fn is_worse(&self) -> bool {
        match self.metric {
            HostMetric::Iops => self.ratio < 1.0,
            HostMetric::P99 => self.ratio > 1.0,
        }
    }
}

impl Outliers {
    /// The outliers among hosts that completed a test.
    pub(super) fn of(hosts: &[&HostResult]) -> Outliers {
        let with = |metric: HostMetric| hosts.iter().filter(|host| host.value(metric).is_some()).count();
        let count = HostMetric::ALL.map(with).into_iter().max().unwrap_or(0);
        let test = match count {
            MIN_FOR_DEVIATES.. => OutlierTest::GeneralizedEsd,
            MIN_HOSTS.. => OutlierTest::ModifiedZScore,
            _ => OutlierTest::None,
        };
        let known = match hosts.len() {
            all if all == count => format!("{all} complete hosts"),
            all => format!("{count} of {all} complete hosts have figures"),
        };
        let reason = (test == OutlierTest::None).then(|| format!("{known}; the test needs {MIN_HOSTS}"));
        let mut found = Vec::new();
        for metric in HostMetric::ALL {
            let known: Vec<(&HostResult, f64)> =
                hosts.iter().filter_map(|host| Some((*host, host.value(metric)?))).collect();
            let mut of_metric = outliers(metric, &known);
            of_metric.sort_by(|one, other| {
                let key = |outlier: &Outlier| (!outlier.is_worse(), -outlier.ratio.ln().abs());
                key(one).partial_cmp(&key(other)).unwrap_or(std::cmp::Ordering::Equal)
            });
            found.extend(of_metric);
        }
        Outliers { test, reason, hosts: found }
    }
}

fn outliers(metric: HostMetric, hosts: &[(&HostResult, f64)]) -> Vec<Outlier> {
    let values: Vec<f64> = hosts.iter().map(|(_, value)| value.max(f64::MIN_POSITIVE)).collect();
    let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let found = match hosts.len() {
        MIN_FOR_DEVIATES.. => extreme_deviates(&logarithms),
        MIN_HOSTS.. => modified_z_scores(&logarithms),
        _ => Vec::new(),
    };
    let middle = median(&values).unwrap_or(0.0);
    let outlier = |(place, statistic, critical): (usize, f64, f64)| Outlier {
        host: hosts[place].0.host.clone(),
        metric,
        value: values[place],
        median: middle,
        ratio: values[place] / middle,
        statistic,
        critical,
    };
    let counts = |outlier: &Outlier| (outlier.ratio - 1.0).abs() > metric.equivalent();
    found.into_iter().map(outlier).filter(counts).collect()
}

/// Places of outliers with their statistic and its critical value.
fn extreme_deviates(values: &[f64]) -> Vec<(usize, f64, f64)> {
    let count = values.len();
    let most = (count / MAX_SHARE).min(MAX_OUTLIERS);
    let mut left: Vec<usize> = (0..count).collect();
    let mut candidates = Vec::new();
    let mut outliers = 0;
    for number in 1..=most {
        let kept: Vec<f64> = left.iter().map(|&place| values[place]).collect();
        let (center, deviation) = (mean(&kept), variance(&kept).sqrt());
        if deviation <= f64::EPSILON * center.abs().max(1.0) {
            break;
        }
        let off = |place: &usize| (values[*place] - center).abs();
        let Some(at) = (0..left.len()).max_by(|&one, &other| off(&left[one]).total_cmp(&off(&left[other])))
        else {
            break;
        };
        let statistic = off(&left[at]) / deviation;
        let critical = critical_deviate(count, number);
        candidates.push((left.swap_remove(at), statistic, critical));
        if statistic > critical {
            outliers = number;
        }
    }
    candidates.truncate(outliers);
    candidates
}

/// The critical value of the deviate of number `number`, at 5 %.
fn critical_deviate(count: usize, number: usize) -> f64 {
    let left = (count - number) as f64;
    let t = student((count - number + 1) as u32, left - 1.0);
    left * t / ((left - 1.0 + t * t) * (left + 1.0)).sqrt()
}

fn modified_z_scores(values: &[f64]) -> Vec<(usize, f64, f64)> {
    let center = median(values).unwrap_or(0.0);
    let off: Vec<f64> = values.iter().map(|value| (value - center).abs()).collect();
    // More than half of the values may be equal.
    let (deviation, critical) = match median(&off).unwrap_or(0.0) {
        0.0 => (PER_MEAN_DEVIATION * mean(&off), MEAN_Z),
        middle => (PER_MEDIAN_DEVIATION * middle, critical_z(values.len())),
    };
    if deviation <= 0.0 {
        return Vec::new();
    }
    let scores = off.iter().map(|off| off / deviation).enumerate();
    scores.filter(|(_, score)| *score > critical).map(|(place, score)| (place, score, critical)).collect()
}

/// The critical value of the modified z-score of so many values, at 5 %.
fn critical_z(count: usize) -> f64 {
    MODIFIED_Z[count.saturating_sub(MIN_HOSTS).min(MODIFIED_Z.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rosner's own example, as the handbook of NIST prints it: three outliers of 54 values, with these critical values.
    #[test]
    fn rosners_example_has_three_outliers() {
        let values = [
            -0.25, 0.68, 0.94, 1.15, 1.20, 1.26, 1.26, 1.34, 1.38, 1.43, 1.49, 1.49, 1.55, 1.56, 1.58, 1.65,
            1.69, 1.70, 1.76, 1.77, 1.81, 1.91, 1.94, 1.96, 1.99, 2.06, 2.09, 2.10, 2.14, 2.15, 2.23, 2.24,
            2.26, 2.35, 2.37, 2.40, 2.47, 2.54, 2.62, 2.64, 2.90, 2.92, 2.92, 2.93, 3.21, 3.26, 3.30, 3.59,
            3.68, 4.30, 4.64, 5.34, 5.42, 6.01,
        ];
        let found = extreme_deviates(&values);
        let places: Vec<usize> = found.iter().map(|(place, ..)| *place).collect();
        assert_eq!(places, [53, 52, 51]);
        for ((_, statistic, critical), (expected, limit)) in
            found.iter().zip([(3.118, 3.158), (2.942, 3.151), (3.179, 3.143)])
        {
            assert!((statistic - expected).abs() < 2e-3 && (critical - limit).abs() < 2e-3);
        }
    }

    #[test]
    fn equal_values_have_no_outliers_and_one_that_differs_is_one() {
        assert!(extreme_deviates(&[2.0; 20]).is_empty() && modified_z_scores(&[2.0; 7]).is_empty());
        let mut values = [2.0; 9];
        values[4] = 5.0;
        assert_eq!(modified_z_scores(&values).iter().map(|found| found.0).collect::<Vec<_>>(), [4]);
    }

    /// Normal values, always the same.
    fn normal_values() -> impl FnMut() -> f64 {
        let mut state = 7_u64;
        let mut uniform = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        move || (0..12).map(|_| uniform()).sum::<f64>() - 6.0
    }

    /// Of few normal values, too, the modified z-score finds an outlier in 5 of 100 samples.
    #[test]
    fn few_normal_values_rarely_have_an_outlier() {
        const SAMPLES: usize = 4000;
        let mut normal = normal_values();
        for count in MIN_HOSTS..MIN_FOR_DEVIATES {
            let samples = (0..SAMPLES).map(|_| (0..count).map(|_| normal()).collect::<Vec<f64>>());
            let found = samples.filter(|values| !modified_z_scores(values).is_empty()).count();
            let fraction = found as f64 / SAMPLES as f64;
            assert!((0.035..0.062).contains(&fraction), "{count}: {fraction}");
        }
    }

    /// What is not known of all hosts is tested by those of which it is.
    #[test]
    fn the_test_is_named_by_the_hosts_that_have_a_value() {
        let host = |iops: f64| HostResult {
            host: String::new(),
            rank: None,
            outcome: fathom_record::HostOutcome { iops, ..Default::default() },
        };
        let hosts: Vec<HostResult> =
            (0..20).map(|place| host(if place < 8 { 1000.0 } else { 0.0 })).collect();
        let test = |count: usize| Outliers::of(&hosts.iter().skip(8 - count).collect::<Vec<_>>());
        assert_eq!(test(8).test, OutlierTest::ModifiedZScore);
        assert_eq!(test(4).test, OutlierTest::None);
        assert_eq!(test(4).reason.as_deref(), Some("4 of 16 complete hosts have figures; the test needs 5"));
    }

    /// Of normal values the whole test finds an outlier in 5 of 100 samples.
    #[test]
    fn normal_values_rarely_have_an_outlier() {
        let mut normal = normal_values();
        let samples = (0..300).map(|_| (0..30).map(|_| normal()).collect::<Vec<f64>>());
        let found = samples.filter(|values| !extreme_deviates(values).is_empty()).count();
        assert!(found <= 27, "{found}");
    }
}
