//! Promises about modelled volumes, of which the truth is known: each verdict, and each reason for none.

use std::path::Path;

use fathom_analysis::criterion::CriterionVerdict;
use fathom_analysis::promise::{Judged, is_broken, judge};
use fathom_assess::{BenchPlan, BenchSettings, Effort, Expecting, RunSettings, run};
use fathom_model::Nanos;
use fathom_record::RunRecord;

/// A bench of `only` for `seconds` on the volume `target`.
fn bench(target: &str, (only, seconds): (&str, u64), expecting: Expecting) -> Result<RunRecord, String> {
    let settings = BenchSettings {
        run: RunSettings { target: target.into(), ..RunSettings::default() },
        suite: "standard".to_owned(),
        effort: Effort::Quick,
        runtime: Some(Nanos::from_secs(seconds)),
        only: only.split(',').map(str::to_owned).collect(),
        expecting,
        ..BenchSettings::default()
    };
    let plan = BenchPlan::make(settings).map_err(|error| {
        assert!(error.is_usage() && error.hint().is_some(), "{error}");
        error.to_string()
    })?;
    let mut session = plan.session();
    Ok(run(&plan, &mut session, &mut ()).expect("a modelled volume is always there"))
}

fn said(lines: &[&str]) -> Expecting {
    Expecting { said: lines.iter().map(|line| (*line).to_owned()).collect(), ..Expecting::default() }
}

fn judged(target: &str, tests: (&str, u64), line: &str) -> Vec<Judged> {
    judge(&bench(target, tests, said(&[line])).unwrap_or_else(|error| panic!("{error}")))
}

/// The verdict on one line, and a part of the reason.
fn check(target: &str, tests: (&str, u64), line: &str, expected: (CriterionVerdict, &str)) {
    let all = judged(target, tests, line);
    let [one] = all.as_slice() else { panic!("{all:?}") };
    let why = one.why.clone().unwrap_or_default();
    assert!(one.verdict == expected.0 && why.contains(expected.1), "{target} {line}: {one:?}");
}

const FIVE: &str = "sim:custom?iops=5000&bandwidth=200MB&latency=500us";

#[test]
fn rates_are_judged_against_the_cap() {
    use CriterionVerdict::{Inconclusive, Met, Missed};
    let deep = ("rand-read", 4);
    check(FIVE, deep, "rand-read.iops>=5000", (Met, ""));
    check(FIVE, deep, "rand-read.iops>=5200", (Met, ""));
    check(FIVE, deep, "rand-read.iops>=5300", (Missed, "below"));
    check(FIVE, deep, "rand-read.iops>=5100+-1%", (Missed, "2.0 % below"));
    check(FIVE, deep, "rand-read.read.iops<=5000", (Met, ""));
    check(FIVE, deep, "rand-read.lat_ns.p99<20ms", (Met, ""));
    check(FIVE, deep, "rand-read.lat_ns.p99<10ms", (Missed, "above"));
    check(FIVE, ("bw-write", 4), "bw-write.bytes_per_second>=200MB", (Met, ""));
    check(FIVE, ("bw-write", 4), "bw-write.bytes_per_second>=200MiB+-2%", (Missed, "4.6 % below"));
    check(FIVE, ("rand-mixed", 4), "rand-mixed.iops>=5000", (Met, ""));
    check(FIVE, ("rand-mixed", 4), "rand-mixed.write.iops>=1500", (Missed, "below"));
    check(FIVE, ("commit", 4), "commit.sync.lat_ns.mean<1s", (Met, ""));
    check(FIVE, ("rand-read", 2), "rand-read.iops>=9000", (Inconclusive, "too short"));
}

#[test]
fn what_a_test_cannot_show_is_not_judged() {
    use CriterionVerdict::Inconclusive;
    check(
        FIVE,
        ("lat-read", 4),
        "lat-read.iops>=5000",
        (Inconclusive, "requests under way, and this test had 1"),
    );
    check(FIVE, ("rand-read", 4), "rand-read.bytes_per_second>=200MB", (Inconclusive, "measure requests"));
    check(
        FIVE,
        ("lat-read", 4),
        "lat-read.lat_ns.p9999<1s",
        (Inconclusive, "carry no p99.99: it takes 100,000"),
    );
    let behind = "sim:custom?iops=5000&instance_iops=3000";
    let promised = "custom?iops=5000&instance_iops=3000";
    check(behind, ("rand-read", 4), promised, (Inconclusive, "the machine lets 3,000 a second through"));
    // It is the machine's limit, whoever knows of it.
    let (held, why) = (Inconclusive, "the machine lets 3,000 a second through");
    check(behind, ("rand-read", 4), "custom?iops=5000", (held, why));
    check(behind, ("rand-read", 4), "rand-read.iops>=5000", (held, why));
    check(
        behind,
        ("rand-read", 4),
        "rand-read.bytes_per_second>=20MB",
        (Inconclusive, "the machine lets 12.3 MB/s"),
    );
    // Its rate goes up and down by half, and the promise lies at the mean.
    let restless = "sim:custom?iops=1000&stall=2s+1s&stall=5s+2s&stall=11s+1s&stall=16s+2s";
    check(restless, ("rand-read", 20), "rand-read.iops>=750+-0%", (Inconclusive, "too close to call"));
}

#[test]
fn a_depth_below_what_is_asked_for_excuses() {
    let promised = "aws-io1-2012?size=100GiB&iops=1000";
    let target = "sim:aws-io1-2012?size=100GiB&iops=600";
    let shallow =
        judged("sim:aws-io1-2012?size=100GiB&iops=1000&parallelism=1&latency=2ms", ("lat-read", 4), promised);
    assert!(
        shallow[0].why.as_ref().is_some_and(|why| why.contains("takes 5 requests under way")),
        "{shallow:?}"
    );
    let deep = judged(target, ("rand-read", 4), promised);
    assert_eq!(deep[0].verdict, CriterionVerdict::Missed, "{deep:?}");
    let other = judged(target, ("rand-read", 4), "aws-io1-2012?size=100GiB&iops=500");
    assert_eq!(other[0].verdict, CriterionVerdict::Met, "{other:?}");
}

#[test]
fn types_of_the_catalogue_promise_what_they_give() {
    let verdicts = |target: &str, promised: &str, seconds: u64| -> Vec<CriterionVerdict> {
        judged(target, ("rand-read", seconds), promised).iter().map(|one| one.verdict).collect()
    };
    use CriterionVerdict::{Inconclusive, Met, Missed};
    let gp2 = "sim:aws-gp2-2016?size=50GiB";
    // 150 always, for 99 % of the time, and 3,000 while there is credit.
    assert_eq!(verdicts(gp2, "aws-gp2-2016?size=50GiB", 110), [Met, Met, Met]);
    assert_eq!(verdicts("sim:custom?iops=150", "aws-gp2-2016?size=50GiB", 110), [Met, Met, Inconclusive]);
    assert_eq!(verdicts("sim:custom?iops=150", "aws-gp2-2016?size=50GiB&rested=1", 110), [Met, Met, Missed]);
    assert_eq!(
        verdicts("sim:custom?iops=100", "aws-gp2-2016?size=50GiB&rested=1", 110),
        [Missed, Missed, Missed]
    );
    // Beyond the 21 s that the bucket lasts the burst is not promised.
    let small = "custom?iops=150&burst_iops=3000&bucket_ios=60000";
    assert_eq!(verdicts(&format!("sim:{small}"), &format!("{small}&rested=1"), 60), [Met, Met]);
    // Half of it was there, as it happens.
    let half = small.replace("60000", "30000");
    assert_eq!(verdicts(&format!("sim:{half}"), &format!("{small}&rested=1"), 60)[0], Met);
    assert_eq!(verdicts("sim:aws-gp3?size=100GiB", "aws-gp3?size=100GiB&iops=6000", 4), [Missed, Missed]);
}

#[test]
fn a_share_of_the_time_takes_its_time() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let told = |target: &str, seconds: u64, rest: &str| {
        let text =
            format!("[[promise]]\nexpect = 'rand-read.iops>=200'\nwithin = '10%'\ntime = '99.9%'\n{rest}");
        std::fs::write(file.path(), text).unwrap();
        let expecting = Expecting { files: vec![file.path().to_owned()], ..Expecting::default() };
        let record = bench(target, ("rand-read", seconds), expecting).unwrap();
        let one = judge(&record).remove(0);
        (one.verdict, one.why.unwrap_or_default())
    };
    let (even, stalls) = ("sim:custom?iops=200", "sim:custom?iops=200&stall=100s+20s");
    let (verdict, why) = told(even, 1005, "");
    assert!(verdict == CriterionVerdict::Met && why.contains("of a year"), "{why}");
    let (verdict, why) = told(even, 60, "");
    assert!(verdict == CriterionVerdict::Inconclusive && why.contains("takes 1,000 s"), "{why}");
    assert_eq!(told(stalls, 1005, "").0, CriterionVerdict::Missed);
    let (verdict, why) = told(stalls, 1005, "over = 'year'");
    assert!(verdict == CriterionVerdict::Inconclusive && why.contains("a year may hold 8 h 46 min"), "{why}");
}

#[test]
fn what_makes_no_sense_is_refused_and_says_what_there_is() {
    let refused = |line: &str, part: &str| {
        let error = bench(FIVE, ("rand-read,lat-read", 4), said(&[line])).unwrap_err();
        assert!(error.starts_with(line.split('?').next().unwrap()) && error.contains(part), "{error}");
    };
    refused("rand-raed.iops>=1", "there is no test 'rand-raed'");
    refused("bw-write.iops>=1", "is not among those that run");
    refused("rand-read.write.iops>=1", "has no write");
    refused("rand-read.ipos>=1", "is no metric: use iops");
    refused("rand-read.lat_ns.p99<5", "has no unit");
    refused("rand-read.iops=5000", "neither a comparison nor a type");
    refused("aws-gp9?size=1GiB", "there is no type aws-gp9");
    refused("aws-gp3?rested=2", "rested is 0 or 1");
    refused("aws-gp3?size=0", "size");
    let missing = Expecting { files: vec!["/no/such/file".into()], ..Expecting::default() };
    let error = bench(FIVE, ("rand-read", 4), missing).unwrap_err();
    assert!(error.contains("cannot read the expectation file /no/such/file"), "{error}");
    let labels = [("instance_iops".to_owned(), "many".to_owned())].into();
    let settings = BenchSettings {
        run: RunSettings { target: FIVE.into(), labels, ..RunSettings::default() },
        suite: "standard".to_owned(),
        expecting: said(&["rand-read.iops>=1"]),
        ..BenchSettings::default()
    };
    let error = BenchPlan::make(settings).err().map(|error| error.to_string());
    assert_eq!(error.as_deref(), Some("--label instance_iops: 'many' is not a number of IOPS: write 5000"));
    let class = Expecting { class: Some("gold".to_owned()), ..Expecting::default() };
    assert!(bench(FIVE, ("rand-read", 4), class).unwrap_err().contains("gold: is no class"));
}

#[test]
fn the_published_suite_is_judged_by_class() {
    let outcome = |target: &str, class: Option<&str>| {
        let settings = BenchSettings {
            run: RunSettings { target: Path::new(target).to_owned(), ..RunSettings::default() },
            suite: "digitalocean-volumes".to_owned(),
            effort: Effort::Quick,
            expecting: Expecting { class: class.map(str::to_owned), ..Expecting::default() },
            ..BenchSettings::default()
        };
        let plan = BenchPlan::make(settings).unwrap();
        let record = run(&plan, &mut plan.session(), &mut ()).unwrap();
        let judged = judge(&record);
        assert!(judged.iter().all(|one| one.verdict != CriterionVerdict::Inconclusive), "{judged:?}");
        (judged.len(), is_broken(&record))
    };
    let (standard, fast) = ("sim:do-volume-standard-2018-04", "sim:do-volume-high-cpu-2018-04");
    assert_eq!(outcome(standard, None), (10, false));
    assert_eq!(outcome(standard, Some("standard")), (5, false));
    assert_eq!(outcome(standard, Some("high-cpu")), (5, true));
    assert_eq!(outcome(fast, Some("high-cpu")), (5, false));
    assert_eq!(outcome("sim:custom?iops=4000", None), (10, true));
}

#[test]
fn no_type_of_the_catalogue_breaks_its_own_promises() {
    let mut judged_types = 0;
    for entry in fathom_catalog::Catalog::shipped().entries() {
        let id = entry.id();
        // What has to be chosen is chosen; what is not published promises nothing.
        let chosen = ["", "?iops=1000", "?tier=1x", "?size=2TiB&iops=1000"].map(|rest| format!("{id}{rest}"));
        let parsed = |text: &&String| {
            fathom_catalog::SimulatedTarget::parse(fathom_catalog::Catalog::shipped(), text).is_ok()
        };
        let Some(text) = chosen.iter().find(parsed) else { continue };
        let tests = ("lat-read,rand-read,seq-read,bw-write", 4);
        let promised = format!("{text}{}rested=1", if text.contains('?') { "&" } else { "?" });
        let record = bench(&format!("sim:{text}"), tests, said(&[&promised]))
            .unwrap_or_else(|error| panic!("{error}"));
        let judged = judge(&record);
        let broken: Vec<&Judged> =
            judged.iter().filter(|one| one.verdict == CriterionVerdict::Missed).collect();
        assert!(broken.is_empty(), "{text}: {broken:#?}");
        judged_types += usize::from(judged.iter().any(|one| one.verdict == CriterionVerdict::Met));
    }
    assert!(judged_types >= 30, "{judged_types}");
}

#[test]
fn verdicts_follow_the_cap_whatever_it_is() {
    for (cap, depth_ns) in [(211, 0), (1_003, 100_000), (4_999, 500_000), (17_001, 200_000)] {
        let target = format!("sim:custom?iops={cap}&latency={}ns", depth_ns.max(1_000));
        // What is promised as a share of the cap, with a tolerance of 5 %: 1/0.95 is where it turns.
        let shares = [0.5, 0.9, 1.0, 1.04, 1.07, 1.2, 2.0];
        let lines = shares.map(|share| format!("rand-read.iops>={:.3}", f64::from(cap) * share));
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let record = bench(&target, ("rand-read", 8), said(&lines)).unwrap_or_else(|error| panic!("{error}"));
        let verdicts: Vec<CriterionVerdict> = judge(&record).iter().map(|one| one.verdict).collect();
        let expected: Vec<CriterionVerdict> = shares
            .iter()
            .map(|&share| if share < 1.05 { CriterionVerdict::Met } else { CriterionVerdict::Missed })
            .collect();
        assert_eq!(verdicts, expected, "{target}");
    }
}
