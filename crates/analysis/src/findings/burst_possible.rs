//! Rates that are the burst of one volume type and sustained by another: which types they are, and what would decide.

use fathom_model::{Nanos, units};
use fathom_record::{Finding, FindingId, RateMatch};

use crate::findings::Words;
use crate::rows::RecordRow;
use crate::say::{count, finding};
use crate::steady::rate_duration::Lasting;

/// Rates closer than this are one plateau.
const SAME: f64 = 0.02;
/// A plateau is exceeded by less than this share.
const PLATEAU: f64 = 0.05;
/// Requests in flight from which on a rate may be that of a limit.
const QUEUE: f64 = 1.5;
/// Most types of each kind that a claim names; the evidence has all.
const MAX_NAMED: usize = 5;

/// One finding for each rate that a bucket of the catalogue would explain.
pub(crate) fn findings(rows: &[RecordRow<'_>], words: Words) -> Vec<Finding> {
    let mut plateaus: Vec<Vec<&RecordRow<'_>>> = Vec::new();
    for row in rows.iter().filter(|row| is_undecided(row) && is_plateau(row, rows)) {
        let is_same = |other: &RecordRow<'_>| {
            (other.iops() - row.iops()).abs() <= SAME * row.iops() && ids(other).eq(ids(row))
        };
        match plateaus.iter_mut().find(|plateau| is_same(plateau[0])) {
            Some(plateau) => plateau.push(row),
            None => plateaus.push(vec![row]),
        }
    }
    plateaus.into_iter().map(|plateau| plateau_finding(&plateau, words)).collect()
}

/// True of the highest rate for the block size and order, where requests queue: a lower one is limited by the queue depth of
/// its test.
fn is_plateau(row: &RecordRow<'_>, rows: &[RecordRow<'_>]) -> bool {
    let is_alike = |other: &&RecordRow<'_>| {
        other.block_bytes() == row.block_bytes() && other.is_random() == row.is_random()
    };
    row.mean_queue_depth() >= QUEUE
        && rows.iter().filter(is_alike).all(|other| other.iops() <= row.iops() * (1.0 + PLATEAU))
}

fn is_undecided(row: &RecordRow<'_>) -> bool {
    !row.is_paced()
        && matches(row).iter().any(|one| one.burst.is_some())
        && row.duration().label == Lasting::Inconclusive
}

fn matches<'a>(row: &'a RecordRow<'_>) -> &'a [RateMatch] {
    row.test.published.as_ref().map_or(&[], |published| &published.matches)
}

fn ids<'a>(row: &'a RecordRow<'_>) -> impl Iterator<Item = &'a str> {
    matches(row).iter().map(|one| one.id.as_str())
}

fn plateau_finding(rows: &[&RecordRow<'_>], words: Words) -> Finding {
    let all = matches(rows[0]);
    let bursts: Vec<String> = all.iter().filter_map(burst_text).collect();
    let sustained: Vec<&str> =
        all.iter().filter(|one| one.burst.is_none()).map(|one| one.id.as_str()).collect();
    let mut claim = format!(
        "{} IOPS may be a burst rate: {}.",
        count(rows[0].iops()),
        named(&bursts.iter().map(String::as_str).collect::<Vec<_>>(), "; ")
    );
    if !sustained.is_empty() {
        claim += &format!(" Types that sustain it: {}.", named(&sustained, ", "));
    }
    let longest = all.iter().filter_map(|one| one.burst?.lasts_ns).max().unwrap_or_default();
    let longer = match words {
        Words::Own => "measure for longer (`--runtime`)",
        Words::Fio => "measure for longer (`runtime`)",
        Words::Sweep => "measure for longer (`fathom bench --runtime`)",
    };
    let remedy = format!(
        "Name the volume type (`--label type=ID`), find its burst bucket with `fathom identify`, or {longer} than \
         {}.",
        units::duration(Nanos(longest))
    );
    finding(FindingId::BurstPossible, rows.iter().copied(), claim, remedy)
        .with("iops", rows[0].iops())
        .with_all("types", all)
}

/// `aws-gp2 with 50.0 GiB reaches it for 31 min 35 s, then 150 IOPS`.
fn burst_text(one: &RateMatch) -> Option<String> {
    let lasts = units::duration(Nanos(one.burst?.lasts_ns?));
    let size = units::bytes(one.size_bytes);
    Some(format!("{} with {size} reaches it for {lasts}, then {} IOPS", one.id, count(one.sustained_iops)))
}

fn named(names: &[&str], separator: &str) -> String {
    let shown = names.len().min(MAX_NAMED);
    let more = names.len() - shown;
    let text = names[..shown].join(separator);
    if more > 0 { format!("{text}{separator}and {more} more") } else { text }
}

#[cfg(test)]
mod tests {
    use fathom_record::{BurstRate, PublishedRates, RunRecord};

    use super::*;
    use crate::fixture::{TestLoad, record};
    use crate::rows::rows;

    fn run(matches: &[RateMatch]) -> RunRecord {
        let load = |id: &'static str| TestLoad { id, depth: 32, iops: 3000.0, ..TestLoad::default() };
        let mut run = record(&[load("rand-read"), load("rand-write")]);
        for test in &mut run.tests {
            let matches = matches.to_vec();
            test.published =
                Some(PublishedRates { matches, longest_burst_ns: Some(u64::MAX), ..Default::default() });
        }
        run
    }

    fn gp2() -> RateMatch {
        let burst = BurstRate { iops: 3000.0, lasts_ns: Some(1_895_000_000_000), refill_ns: None };
        RateMatch {
            id: "aws-gp2".to_owned(),
            size_bytes: 50 << 30,
            sustained_iops: 150.0,
            burst: Some(burst),
        }
    }

    fn gp3() -> RateMatch {
        RateMatch { id: "aws-gp3".to_owned(), burst: None, sustained_iops: 3000.0, ..gp2() }
    }

    #[test]
    fn types_of_a_plateau_are_named_with_what_would_decide() {
        let run = run(&[gp2(), gp3()]);
        let found = findings(&rows(&run), Words::Own);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].tests, ["rand-read", "rand-write"]);
        assert_eq!(
            found[0].claim,
            "3,000 IOPS may be a burst rate: aws-gp2 with 50.0 GiB reaches it for 31 min 35 s, then 150 IOPS. Types that sustain it: aws-gp3."
        );
        assert!(found[0].remedy.as_ref().unwrap().ends_with("than 31 min 35 s."));
        assert_eq!(found[0].evidence["types"][0]["id"], "aws-gp2");
    }

    #[test]
    fn a_rate_that_no_bucket_gives_has_no_finding() {
        assert_eq!(findings(&rows(&run(&[gp3()])), Words::Own), []);
        assert_eq!(findings(&rows(&run(&[])), Words::Own), []);
        let fell = TestLoad { seconds: [vec![1.0; 20], vec![0.1; 100]].concat(), ..TestLoad::default() };
        let mut run = record(&[fell]);
        run.tests[0].published = Some(PublishedRates { matches: vec![gp2()], ..Default::default() });
        assert_eq!(findings(&rows(&run), Words::Own), []);
    }
}
