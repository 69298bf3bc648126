//! Expectations of simulated volumes, whose limits are known: each verdict, and each reason for an inconclusive one.

use std::path::Path;

use fathom_analysis::Analysis;
use fathom_analysis::expectation::ExpectationResult;
use fathom_assess::{BenchPlan, BenchSettings, Effort, ExpectationSettings, RunSettings, run};
use fathom_model::Nanos;
use fathom_record::RunRecord;

/// A bench of `only` for `seconds` on the volume `target`.
fn bench(
    target: &str,
    (only, seconds): (&str, u64),
    expectations: ExpectationSettings,
) -> Result<RunRecord, String> {
    let settings = BenchSettings {
        run: RunSettings { target: target.into(), ..RunSettings::default() },
        suite: "standard".to_owned(),
        effort: Effort::Quick,
        runtime: Some(Nanos::from_secs(seconds)),
        only: only.split(',').map(str::to_owned).collect(),
        expectations,
        ..BenchSettings::default()
    };
    let plan = BenchPlan::make(settings).map_err(|error| {
        assert!(error.kind == fathom_assess::ErrorKind::Usage && error.hint.is_some(), "{error}");
        error.to_string()
    })?;
    let mut session = plan.session();
    Ok(run(&plan, &mut session, &mut ()).expect("a simulated volume is always there"))
}

fn judge(record: &RunRecord) -> Vec<ExpectationResult> {
    Analysis::of(record).expectations().to_vec()
}

fn of_lines(lines: &[&str]) -> ExpectationSettings {
    ExpectationSettings {
        lines: lines.iter().map(|line| (*line).to_owned()).collect(),
        ..ExpectationSettings::default()
    }
}

fn judged(target: &str, tests: (&str, u64), line: &str) -> Vec<ExpectationResult> {
    judge(&bench(target, tests, of_lines(&[line])).unwrap_or_else(|error| panic!("{error}")))
}

fn because(result: &ExpectationResult) -> String {
    let reason = result.verdict.reason().map(|(reason, _)| reason);
    reason.or(result.lasting.as_deref()).or(result.basis.as_deref()).unwrap_or_default().to_owned()
}

/// The verdict on one line, and a part of the reason.
fn check(target: &str, tests: (&str, u64), line: &str, expected: (&str, &str)) {
    let all = judged(target, tests, line);
    let [one] = all.as_slice() else { panic!("{all:?}") };
    let why = because(one);
    assert!(one.verdict.name() == expected.0 && why.contains(expected.1), "{target} {line}: {one:?}");
}

const FIVE: &str = "sim:custom?iops=5000&bandwidth=200MB&latency=500us";

#[test]
fn rates_are_judged_against_the_cap() {
    let deep = ("rand-read", 4);
    check(FIVE, deep, "rand-read.iops>=5000", ("met", ""));
    check(FIVE, deep, "rand-read.iops>=5050", ("met", ""));
    // Four seconds leave a slice of a limiter, 2.5 %, at either side.
    check(FIVE, deep, "rand-read.iops>=5200", ("inconclusive", "too close"));
    check(FIVE, deep, "rand-read.iops>=5450", ("missed", "below"));
    check(FIVE, deep, "rand-read.iops>=5300+-1%", ("missed", "5.7 % below"));
    check(FIVE, deep, "rand-read.read.iops<=5000", ("met", ""));
    check(FIVE, deep, "rand-read.lat_ns.p99<20ms", ("met", ""));
    check(FIVE, deep, "rand-read.lat_ns.p99<10ms", ("missed", "above"));
    check(FIVE, ("bw-write", 4), "bw-write.bytes_per_second>=200MB", ("met", ""));
    check(FIVE, ("bw-write", 4), "bw-write.bytes_per_second>=200MiB+-1%", ("missed", "4.6 % below"));
    check(FIVE, ("rand-mixed", 4), "rand-mixed.iops>=5000", ("met", ""));
    check(FIVE, ("rand-mixed", 4), "rand-mixed.write.iops>=1500", ("missed", "below"));
    check(FIVE, ("commit", 4), "commit.sync.lat_ns.mean<1s", ("met", ""));
    check(FIVE, ("rand-read", 2), "rand-read.iops>=9000", ("inconclusive", "too short"));
}

#[test]
fn tests_that_cannot_decide_are_inconclusive() {
    check(FIVE, ("lat-read", 4), "lat-read.iops>=5000", ("inconclusive", "; this test had 1"));
    check(FIVE, ("rand-read", 4), "rand-read.bytes_per_second>=200MB", ("inconclusive", "measure IOPS"));
    check(FIVE, ("lat-read", 4), "lat-read.lat_ns.p9999<1s", ("inconclusive", "too few samples for p99.99"));
    let behind = "sim:custom?iops=5000&instance_iops=3000";
    let published = "custom?iops=5000&instance_iops=3000";
    check(
        behind,
        ("rand-read", 4),
        published,
        ("inconclusive", "the limit of this machine is lower: 3,000 IOPS"),
    );
    // The limit of the machine counts wherever it is known from.
    let (verdict, reason) = ("inconclusive", "the limit of this machine is lower: 3,000 IOPS");
    check(behind, ("rand-read", 4), "custom?iops=5000", (verdict, reason));
    check(behind, ("rand-read", 4), "rand-read.iops>=5000", (verdict, reason));
    check(
        behind,
        ("rand-read", 4),
        "rand-read.bytes_per_second>=20MB",
        ("inconclusive", "the limit of this machine is lower: 12.3 MB/s"),
    );
    // The rate varies by half, and the expectation equals the mean.
    let restless = "sim:custom?iops=1000&stall=2s+1s&stall=5s+2s&stall=11s+1s&stall=16s+2s";
    check(restless, ("rand-read", 20), "rand-read.iops>=750+-0%", ("inconclusive", "too close to call"));
}

#[test]
fn a_queue_depth_below_the_required_one_is_inconclusive() {
    let published = "aws-io1-2012?size=100GiB&iops=1000";
    let target = "sim:aws-io1-2012?size=100GiB&iops=600";
    let shallow = judged(
        "sim:aws-io1-2012?size=100GiB&iops=1000&parallelism=1&latency=2ms",
        ("lat-read", 4),
        published,
    );
    assert!(because(&shallow[0]).contains("needs queue depth 5"), "{shallow:?}");
    let deep = judged(target, ("rand-read", 4), published);
    assert_eq!(deep[0].verdict.name(), "missed", "{deep:?}");
    let other = judged(target, ("rand-read", 4), "aws-io1-2012?size=100GiB&iops=500");
    assert_eq!(other[0].verdict.name(), "met", "{other:?}");
}

#[test]
fn simulated_volume_types_meet_their_published_specification() {
    let verdicts = |target: &str, published: &str, seconds: u64| -> Vec<&str> {
        judged(target, ("rand-read", seconds), published).iter().map(|one| one.verdict.name()).collect()
    };
    let gp2 = "sim:aws-gp2-2016?size=50GiB";
    // What gp3 promises always, gp2 has as long as its burst credits remain.
    // Its share of the time cannot be told from 10 s.
    assert_eq!(verdicts(gp2, "aws-gp3?size=50GiB", 10), ["missed", "inconclusive"]);
    let then = "burst for 31 min 35 s from full credits, then 150 IOPS (sim:aws-gp2-2016?size=50GiB)";
    check(gp2, ("rand-read", 10), "rand-read.iops>=3000", ("met", then));
    // 150 always, for 99 % of the time, and 3,000 while burst credits remain.
    assert_eq!(verdicts(gp2, "aws-gp2-2016?size=50GiB", 110), ["met", "met", "met"]);
    assert_eq!(
        verdicts("sim:custom?iops=150", "aws-gp2-2016?size=50GiB", 110),
        ["met", "met", "inconclusive"]
    );
    assert_eq!(
        verdicts("sim:custom?iops=150", "aws-gp2-2016?size=50GiB&rested=1", 110),
        ["met", "met", "missed"]
    );
    assert_eq!(
        verdicts("sim:custom?iops=100", "aws-gp2-2016?size=50GiB&rested=1", 110),
        ["missed", "missed", "missed"]
    );
    // After the 21 s that the bucket lasts, the burst rate does not apply.
    let small = "custom?iops=150&burst_iops=3000&bucket_ios=60000";
    assert_eq!(verdicts(&format!("sim:{small}"), &format!("{small}&rested=1"), 60), ["met", "met"]);
    // The bucket holds half as many.
    let half = small.replace("60000", "30000");
    assert_eq!(verdicts(&format!("sim:{half}"), &format!("{small}&rested=1"), 60)[0], "met");
    assert_eq!(verdicts("sim:aws-gp3?size=100GiB", "aws-gp3?size=100GiB&iops=6000", 4), ["missed", "missed"]);
}

#[test]
fn a_share_of_the_time_needs_a_long_run() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let checked = |target: &str, seconds: u64, rest: &str| {
        let text = format!(
            "[[expectation]]\nexpect = 'rand-read.iops>=200'\nwithin = '10%'\ntime = '99.9%'\n{rest}"
        );
        std::fs::write(file.path(), text).unwrap();
        let expectations =
            ExpectationSettings { files: vec![file.path().to_owned()], ..ExpectationSettings::default() };
        let record = bench(target, ("rand-read", seconds), expectations).unwrap();
        let one = judge(&record).remove(0);
        (one.verdict.name(), because(&one))
    };
    let (even, stalls) = ("sim:custom?iops=200", "sim:custom?iops=200&stall=100s+20s");
    let (verdict, why) = checked(even, 1005, "");
    assert!(verdict == "met" && why.contains("of a year"), "{why}");
    let (verdict, why) = checked(even, 60, "");
    assert!(verdict == "inconclusive" && why.contains("needs 1,000 s"), "{why}");
    assert_eq!(checked(stalls, 1005, "").0, "missed");
    let (verdict, why) = checked(stalls, 1005, "over = 'year'");
    assert!(verdict == "inconclusive" && why.contains("a year allows 8 h 46 min"), "{why}");
}

#[test]
fn invalid_expectations_are_refused_with_the_alternatives() {
    let refused = |line: &str, part: &str| {
        let error = bench(FIVE, ("rand-read,lat-read", 4), of_lines(&[line])).unwrap_err();
        assert!(error.starts_with(line.split('?').next().unwrap()) && error.contains(part), "{error}");
    };
    refused("rand-raed.iops>=1", "there is no test 'rand-raed'");
    refused("bw-write.iops>=1", "is not part of this run");
    refused("rand-read.write.iops>=1", "has no write");
    refused("rand-read.ipos>=1", "is not a metric: use iops");
    refused("rand-read.lat_ns.p99<5", "has no unit");
    refused("rand-read.iops=5000", "neither a comparison nor a volume type");
    refused("aws-gp9?size=1GiB", "unknown volume type 'aws-gp9'");
    refused("aws-gp3?rested=2", "rested must be 0 or 1");
    refused("aws-gp3?size=0", "size");
    let missing =
        ExpectationSettings { files: vec!["/no/such/file".into()], ..ExpectationSettings::default() };
    let error = bench(FIVE, ("rand-read", 4), missing).unwrap_err();
    assert!(error.contains("cannot read the expectation file /no/such/file"), "{error}");
    let labels = [("instance_iops".to_owned(), "many".to_owned())].into();
    let settings = BenchSettings {
        run: RunSettings { target: FIVE.into(), labels, ..RunSettings::default() },
        suite: "standard".to_owned(),
        expectations: of_lines(&["rand-read.iops>=1"]),
        ..BenchSettings::default()
    };
    let error = BenchPlan::make(settings).err().map(|error| error.to_string());
    assert_eq!(error.as_deref(), Some("--label instance_iops: 'many' is not a number of IOPS: write 5000"));
    let class = ExpectationSettings { class: Some("gold".to_owned()), ..ExpectationSettings::default() };
    assert!(
        bench(FIVE, ("rand-read", 4), class).unwrap_err().contains("gold: no expectation has this class")
    );
}

#[test]
fn the_published_suite_is_judged_by_class() {
    let outcome = |target: &str, class: Option<&str>| {
        let settings = BenchSettings {
            run: RunSettings { target: Path::new(target).to_owned(), ..RunSettings::default() },
            suite: "digitalocean-volumes".to_owned(),
            effort: Effort::Quick,
            expectations: ExpectationSettings {
                class: class.map(str::to_owned),
                ..ExpectationSettings::default()
            },
            ..BenchSettings::default()
        };
        let plan = BenchPlan::make(settings).unwrap();
        let record = run(&plan, &mut plan.session(), &mut ()).unwrap();
        let judged = judge(&record);
        assert!(judged.iter().all(|one| one.verdict.name() != "inconclusive"), "{judged:?}");
        (judged.len(), Analysis::of(&record).is_missed())
    };
    let (standard, fast) = ("sim:do-volume-standard-2018-04", "sim:do-volume-high-cpu-2018-04");
    assert_eq!(outcome(standard, None), (10, false));
    assert_eq!(outcome(standard, Some("standard")), (5, false));
    assert_eq!(outcome(standard, Some("high-cpu")), (5, true));
    assert_eq!(outcome(fast, Some("high-cpu")), (5, false));
    assert_eq!(outcome("sim:custom?iops=4000", None), (10, true));
}

#[test]
fn no_volume_type_misses_its_own_published_specification() {
    let mut judged_types = 0;
    for entry in fathom_catalog::Catalog::shipped().entries() {
        if entry.is_as_measured() {
            continue;
        }
        let id = entry.id();
        // Parameters that a type needs are given.
        let chosen = ["", "?iops=1000", "?tier=1x", "?size=2TiB&iops=1000"].map(|rest| format!("{id}{rest}"));
        let parsed = |text: &&String| {
            fathom_catalog::SimulatedTarget::parse(fathom_catalog::Catalog::shipped(), text).is_ok()
        };
        let Some(text) = chosen.iter().find(parsed) else { continue };
        let tests = ("lat-read,rand-read,seq-read,bw-write", 4);
        let published = format!("{text}{}rested=1", if text.contains('?') { "&" } else { "?" });
        let record = bench(&format!("sim:{text}"), tests, of_lines(&[&published]))
            .unwrap_or_else(|error| panic!("{error}"));
        let judged = judge(&record);
        let missed: Vec<&ExpectationResult> =
            judged.iter().filter(|one| one.verdict.name() == "missed").collect();
        assert!(missed.is_empty(), "{text}: {missed:#?}");
        judged_types += usize::from(judged.iter().any(|one| one.verdict.name() == "met"));
    }
    assert!(judged_types >= 30, "{judged_types}");
}

#[test]
fn verdicts_follow_the_cap_whatever_it_is() {
    for (cap, depth_ns) in [(211, 0), (1_003, 100_000), (4_999, 500_000), (17_001, 200_000)] {
        let target = format!("sim:custom?iops={cap}&latency={}ns", depth_ns.max(1_000));
        // Shares of the limit; with a tolerance of 5 % the verdict changes at 1/0.95.
        let shares = [0.5, 0.9, 1.0, 1.03, 1.08, 1.2, 2.0];
        let lines = shares.map(|share| format!("rand-read.iops>={:.3}", f64::from(cap) * share));
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let record =
            bench(&target, ("rand-read", 8), of_lines(&lines)).unwrap_or_else(|error| panic!("{error}"));
        let verdicts: Vec<&str> = judge(&record).iter().map(|one| one.verdict.name()).collect();
        let expected: Vec<&str> =
            shares.iter().map(|&share| if share < 1.05 { "met" } else { "missed" }).collect();
        assert_eq!(verdicts, expected, "{target}");
    }
}

#[test]
fn a_type_that_is_known_as_measured_alone_publishes_no_expectation() {
    let tests = ("rand-read", 4);
    let refused = bench("sim:qingcloud-capacity", tests, of_lines(&["qingcloud-capacity"])).unwrap_err();
    assert!(refused.to_string().contains("known as measured alone"), "{refused}");
}
