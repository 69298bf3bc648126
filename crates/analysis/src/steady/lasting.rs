//! Whether the rate of a row is one that lasts.

use fathom_record::TestRecord;
use fathom_record::stability::{Second, seconds};

use crate::steady::segments::fall;
use crate::steady::{FigureSpread, fifths, is_worst_so_far};

/// How long a rate lasts, as far as it was watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// It fell while it was measured: more than what lasts.
    Peak,
    /// Even for long enough.
    Sustained,
    /// Too short or too uneven to tell.
    Inconclusive,
}

impl Lasting {
    /// The word used in JSON and text.
    pub const fn name(self) -> &'static str {
        match self {
            Lasting::Peak => "peak",
            Lasting::Sustained => "sustained",
            Lasting::Inconclusive => "inconclusive",
        }
    }
}

/// Seconds of an even rate that make it one that lasts: rented volumes carry credit for a while at a higher one.
pub const SUSTAINED_SECONDS: u64 = 300;
/// Share of them that has to be seen: a run's first and last second are cut.
const SEEN: f64 = 0.98;

/// The label of a row.
pub fn lasting(test: &TestRecord) -> Lasting {
    let jobs: Vec<_> = test.jobs.iter().collect();
    let seconds = seconds(&jobs);
    let rates: Vec<f64> = seconds.iter().map(Second::iops).collect();
    let seen_ns: u64 = seconds.iter().map(|second| second.elapsed_ns).sum();
    let is_long = seen_ns as f64 >= SUSTAINED_SECONDS as f64 * 1e9 * SEEN;
    let settled = test.rounds.as_ref().filter(|rounds| rounds.steady);
    match () {
        // What was slower before may be so again.
        () if settled.is_some_and(|rounds| !is_worst_so_far(&rounds.values, rounds.tracked == "lat_ns")) => {
            Lasting::Inconclusive
        }
        () if settled.is_some() && is_long => Lasting::Sustained,
        () if fall(&rates).is_some() => Lasting::Peak,
        () if is_long && FigureSpread::of(&fifths(&rates)).is_steady() => Lasting::Sustained,
        () => Lasting::Inconclusive,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{TestLoad, record};
    use fathom_record::RoundsRecord;

    #[test]
    fn labels() {
        let check = |seconds: Vec<f64>, expected: Lasting| {
            let run = record(&[TestLoad { seconds, ..TestLoad::default() }]);
            assert_eq!(lasting(&run.tests[0]), expected);
        };
        check(vec![1.0; 12], Lasting::Inconclusive);
        check(vec![1.0; 290], Lasting::Inconclusive);
        check(vec![1.0; 300], Lasting::Sustained);
        check([vec![1.0; 20], vec![0.1; 400]].concat(), Lasting::Peak);
        check([vec![0.1; 20], vec![1.0; 400]].concat(), Lasting::Inconclusive);
        check([vec![1.0; 50], vec![0.5; 50]].concat().repeat(4), Lasting::Inconclusive);
        check(Vec::new(), Lasting::Inconclusive);
    }

    #[test]
    fn rounds_that_agree_last_unless_earlier_ones_were_slower() {
        let check = |seconds: usize, values: &[f64], steady: bool, expected: Lasting| {
            let mut run = record(&[TestLoad { seconds: vec![1.0; seconds], ..TestLoad::default() }]);
            let (tracked, values) = ("iops".to_owned(), values.to_vec());
            run.tests[0].rounds =
                Some(RoundsRecord { tracked, values, steady, counted: 5, ..RoundsRecord::default() });
            assert_eq!(lasting(&run.tests[0]), expected);
        };
        check(297, &[300.0; 5], true, Lasting::Sustained);
        check(297, &[3000.0, 1000.0, 300.0, 300.0, 300.0, 300.0, 300.0], true, Lasting::Sustained);
        check(297, &[200.0, 300.0, 300.0, 300.0, 300.0, 300.0], true, Lasting::Inconclusive);
        // Short rounds may agree and still be on credit.
        check(50, &[300.0; 5], true, Lasting::Inconclusive);
    }
}
