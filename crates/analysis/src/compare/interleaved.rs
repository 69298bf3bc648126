//! The verdicts on two sources that were measured in turns: one for each rate of each test, with the blocks it rests on.

use serde::Serialize;

use super::figure::{Deltas, ratio_text};
use super::pairs::Pair;
use super::ratio::{RatioVerdict, verdict};
use super::source::ComparedSource;

/// Numbers of blocks after which a test of two targets may end. Each look at the verdicts widens the intervals; the last one tells
/// volumes 5 % apart whose rate varies by 7 % from second to second.
pub const LOOKS: [u32; 5] = [6, 12, 24, 48, 96];

/// Two sources of which at least one was measured until its verdicts were clear.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Interleaved {
    /// Numbers of blocks after which a test could end.
    pub looks: Vec<u32>,
    /// The verdicts on the rates.
    pub verdicts: Vec<BlockVerdict>,
}

/// The verdict on a rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlockVerdict {
    /// The test.
    pub test: String,
    /// `read`, `write` or `trim`.
    pub direction: Option<&'static str>,
    /// The verdict on the other source, compared with the base; `None` where the rates cannot be compared.
    pub verdict: Option<RatioVerdict>,
    /// Blocks that it rests on.
    pub blocks: u32,
    /// How many more would probably decide.
    pub more_blocks: Option<u32>,
    /// The verdict in words.
    pub text: String,
}

/// The verdicts of a comparison; `None` where no source was measured in turns, or there are more than two.
pub fn interleaved(sources: &[ComparedSource], pairs: &[Pair]) -> Option<Interleaved> {
    let mut places = sources
        .iter()
        .flat_map(|source| &source.runs)
        .filter_map(|run| run.record.header.interleaved.as_ref());
    let looks = places.next()?.looks.clone();
    let rates = || pairs.iter().filter(|pair| pair.figure.is_rate());
    let several = |test: &str| rates().filter(|pair| pair.test == test).count() > 1;
    let of = |pair: &Pair| BlockVerdict {
        test: pair.test.clone(),
        direction: pair.direction,
        verdict: pair.verdict,
        blocks: pair.runs_a.max(pair.runs_b),
        more_blocks: pair.more_runs,
        text: text(pair, several(&pair.test)),
    };
    (sources.len() == 2).then(|| Interleaved { looks, verdicts: rates().map(of).collect() })
}

/// `rand-read: B is better, 1.05 times the IOPS of A (95 % interval 1.04 to 1.06; 6 blocks).`
fn text(pair: &Pair, has_several: bool) -> String {
    let test = match pair.direction.filter(|_| has_several) {
        Some(direction) => format!("{} ({direction})", pair.test),
        None => pair.test.clone(),
    };
    let (a, b) = (pair.source_a, pair.source_b);
    let (Some(ratio), Some(verdict)) = (pair.ratio, pair.verdict) else {
        let reason = pair.reason.clone().unwrap_or_else(|| "a source has no usable run".to_owned());
        return format!("{test}: inconclusive: {reason}.");
    };
    let blocks = match pair.runs_a.max(pair.runs_b) {
        1 => "1 block".to_owned(),
        blocks => format!("{blocks} blocks"),
    };
    let interval = match (pair.low, pair.high) {
        (Some(low), Some(high)) => format!("95 % interval {} to {}; {blocks}", precise(low), precise(high)),
        _ => blocks,
    };
    let times = format!("{} times the IOPS of {a} ({interval})", ratio_text(ratio));
    match verdict {
        RatioVerdict::Better => format!("{test}: {b} is better, {times}."),
        RatioVerdict::Worse => format!("{test}: {b} is worse, {times}."),
        RatioVerdict::Equivalent => format!("{test}: {b} is equivalent, {times}."),
        RatioVerdict::Single => format!("{test}: no verdict on a single run: {b} has {times}."),
        RatioVerdict::Inconclusive => {
            let why = match (&pair.reason, pair.more_runs) {
                (Some(reason), _) => format!("; {reason}"),
                (None, Some(1)) => "; about 1 more block would decide".to_owned(),
                (None, Some(more)) => format!("; about {more} more blocks would decide"),
                (None, None) => "; more blocks would hardly decide".to_owned(),
            };
            format!("{test}: inconclusive, {b} has {times}{why}.")
        }
    }
}

/// An end of an interval, with a digit more than a ratio near 1.
fn precise(ratio: f64) -> String {
    if (0.5..2.0).contains(&ratio) { format!("{ratio:.3}") } else { ratio_text(ratio) }
}

/// True where no further block can change the verdict on a rate of `test`, or none is possible: the whole interval of each is on one
/// side of the differences that count, or the rates cannot be compared.
pub fn is_settled(pairs: &[Pair], test: &str, deltas: Deltas) -> bool {
    let mut rates = pairs.iter().filter(|pair| pair.test == test && pair.figure.is_rate());
    rates.all(|pair| match (pair.low, pair.high) {
        // A doubt about the figures stays, however many blocks there are.
        (Some(low), Some(high)) => {
            verdict(low, high, pair.figure.threshold(deltas)) != RatioVerdict::Inconclusive && !pair.drifts
        }
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::pairs::pairs;
    use crate::compare::rows::matched_rows;
    use crate::fixture::TestLoad;
    use fathom_record::InterleavedRecord;

    fn source(rates: &[f64]) -> ComparedSource {
        let mut source = ComparedSource::at_rates(rates, &TestLoad::default());
        for (run, block) in source.runs.iter_mut().zip(0..) {
            let place = InterleavedRecord { comparison: 7, block, looks: vec![2, 4, 8] };
            run.record.header.interleaved = Some(place);
        }
        source
    }

    fn of(a: &[f64], b: &[f64]) -> (BlockVerdict, bool) {
        let sources = [source(a), source(b)];
        let pairs = pairs(&matched_rows(&sources), 0, Deltas::default());
        let found = interleaved(&sources, &pairs).unwrap();
        assert_eq!(found.looks, [2, 4, 8]);
        (found.verdicts[0].clone(), is_settled(&pairs, "t", Deltas::default()))
    }

    #[test]
    fn a_verdict_has_its_blocks_and_its_words() {
        let (found, settled) = of(&[1000.0, 900.0, 1100.0], &[1100.0, 990.0, 1210.0]);
        assert_eq!((found.verdict, found.blocks, settled), (Some(RatioVerdict::Better), 3, true));
        assert_eq!(
            found.text,
            "t: B is better, 1.10 times the IOPS of A (95 % interval 1.100 to 1.100; 3 blocks)."
        );
        let (found, settled) = of(&[1000.0, 1000.0, 1000.0], &[1050.0, 955.0, 1000.0]);
        assert_eq!((found.verdict, settled), (Some(RatioVerdict::Inconclusive), false));
        assert!(found.text.starts_with("t: inconclusive, B has 1.00 times the IOPS of A"), "{}", found.text);
        assert!(found.more_blocks.is_some() && found.text.contains("more blocks would decide"));
    }

    #[test]
    fn looks_widen_the_interval_and_blocks_pair_the_runs() {
        let sources = [source(&[1000.0, 500.0, 1010.0]), source(&[1101.0, 550.0, 1110.0])];
        let all = pairs(&matched_rows(&sources), 0, Deltas::default());
        let with = all.iter().find(|pair| pair.figure.is_rate()).unwrap().clone();
        let mut bare = sources;
        for run in bare.iter_mut().flat_map(|source| &mut source.runs) {
            run.record.header.interleaved.as_mut().unwrap().looks = vec![3];
        }
        let all = pairs(&matched_rows(&bare), 0, Deltas::default());
        let without = all.iter().find(|pair| pair.figure.is_rate()).unwrap();
        let width = |pair: &Pair| pair.high.unwrap() - pair.low.unwrap();
        assert!(width(&with) > 1.5 * width(without), "{with:?} {without:?}");
        assert!(width(&with) < 0.05, "unpaired, the runs differ by half");
    }
}
