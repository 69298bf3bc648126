//! What a result lacks of what the source of its suite recommends.

use fathom_model::Nanos;
use fathom_model::units::{UnitSystem, duration};
use fathom_record::{Activity, BenchActivity, Recommendation, TestStatus};
use serde::Serialize;

use crate::{Analysis, RecordRow};

/// Ranges are whole multiples of a MiB, and a run ends within this share of its time.
const SIZE_SLACK: u64 = 1 << 20;
const TIME_SLACK: f64 = 0.02;

/// A recommendation, and how far a result follows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FollowedRecommendation {
    /// What is recommended.
    #[serde(flatten)]
    pub recommended: Recommendation,
    /// True where nothing is lacking.
    pub is_followed: bool,
    /// Bytes of the test file or range, where they are fewer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smaller_size_bytes: Option<u64>,
    /// The tests that were measured for less time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shorter_tests: Vec<ShorterTest>,
}

/// A test that was measured for less time than is recommended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShorterTest {
    /// Its id.
    pub test: String,
    /// Measured time, ns.
    pub measured_ns: u64,
}

/// How far a run follows what the source of its suite recommends; `None` where it recommends nothing.
pub fn followed(analysis: &Analysis<'_>) -> Option<FollowedRecommendation> {
    let record = analysis.record;
    let Activity::Bench(BenchActivity { recommended: Some(recommended), .. }) = record.header.activity else {
        return None;
    };
    let size = record.header.size_bytes;
    let is_smaller = size.saturating_add(SIZE_SLACK) <= recommended.size_bytes;
    let is_measured =
        |row: &&RecordRow<'_>| matches!(row.test.status, TestStatus::Complete | TestStatus::Incomplete);
    let measured = analysis
        .tests()
        .iter()
        .filter(is_measured)
        .map(|row| ShorterTest { test: row.test.id.clone(), measured_ns: row.summary.measured_ns });
    let least_ns = (recommended.runtime_ns as f64 * (1.0 - TIME_SLACK)) as u64;
    let shorter_tests: Vec<ShorterTest> = measured.filter(|test| test.measured_ns < least_ns).collect();
    Some(FollowedRecommendation {
        recommended,
        is_followed: !is_smaller && shorter_tests.is_empty(),
        smaller_size_bytes: is_smaller.then_some(size),
        shorter_tests,
    })
}

impl FollowedRecommendation {
    /// `60 s per test and 20.0 GB are recommended: rand-r ran for 27 s; the test file or range has 4.3 GB.`; `None` where nothing
    /// is lacking.
    pub fn shortfall(&self) -> Option<String> {
        let system = UnitSystem::of(self.recommended.size_bytes as f64);
        let mut lacks = Vec::new();
        if let Some(shortest) = self.shorter_tests.iter().map(|test| test.measured_ns).min() {
            let longest = self.shorter_tests.iter().map(|test| test.measured_ns).max().unwrap_or(shortest);
            let (shortest, longest) = (duration(Nanos(shortest)), duration(Nanos(longest)));
            let span = if shortest == longest { shortest } else { format!("{shortest} to {longest}") };
            let ids: Vec<&str> = self.shorter_tests.iter().map(|test| test.test.as_str()).collect();
            lacks.push(format!("{} ran for {span}", ids.join(", ")));
        }
        if let Some(size) = self.smaller_size_bytes {
            lacks.push(format!("the test file or range has {}", system.amount(size)));
        }
        (!lacks.is_empty()).then(|| {
            format!(
                "The suite recommends {} per test and {}: {}.",
                duration(Nanos(self.recommended.runtime_ns)),
                system.amount(self.recommended.size_bytes),
                lacks.join("; ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{TestLoad, record};

    fn result(seconds: &[usize], size_bytes: u64) -> FollowedRecommendation {
        let loads: Vec<TestLoad> = seconds
            .iter()
            .map(|&long| TestLoad { seconds: vec![1.0; long], ..TestLoad::default() })
            .collect();
        let mut run = record(&loads);
        let recommended = Some(Recommendation { runtime_ns: 60_000_000_000, size_bytes: 20_000_000_000 });
        run.header.activity = Activity::Bench(BenchActivity { suite: None, recommended });
        run.header.size_bytes = size_bytes;
        for (index, test) in run.tests.iter_mut().enumerate() {
            test.id = format!("t{index}");
        }
        followed(&Analysis::of(&run)).unwrap()
    }

    #[test]
    fn a_result_as_recommended_lacks_nothing() {
        let found = result(&[60, 61], 20_000_000_000 / SIZE_SLACK * SIZE_SLACK);
        assert_eq!((found.is_followed, found.shortfall()), (true, None));
    }

    #[test]
    fn what_is_lacking_is_named() {
        let found = result(&[27, 60, 12], 4 << 30);
        let shorter: Vec<&str> = found.shorter_tests.iter().map(|test| test.test.as_str()).collect();
        assert_eq!((found.is_followed, shorter), (false, vec!["t0", "t2"]));
        assert_eq!(
            found.shortfall().as_deref(),
            Some(
                "The suite recommends 1 min per test and 20.0 GB: t0, t2 ran for 12 s to 27 s; the test file or range has 4.3 GB."
            )
        );
        assert!(
            result(&[60], 4 << 30)
                .shortfall()
                .unwrap()
                .ends_with("20.0 GB: the test file or range has 4.3 GB.")
        );
    }

    #[test]
    fn a_suite_without_a_recommendation_says_nothing() {
        assert_eq!(followed(&Analysis::of(&record(&[TestLoad::default()]))), None);
    }
}
