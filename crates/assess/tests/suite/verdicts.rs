//! Volumes of the catalogue against figures that a separate calculation gave from the published rules (`verdicts/oracle.csv`): the
//! sustained rate, the burst, its duration and its refill, by load.

use fathom_analysis::RecordRow;
use fathom_analysis::steady::rate_duration::Lasting;
use fathom_assess::{BenchPlan, BenchSettings, RunSettings, run};
use fathom_model::Nanos;
use fathom_record::{RunRecord, TestSummary};

const ORACLE: &str = include_str!("../verdicts/oracle.csv");
/// Relative difference that rounding leaves.
const NEAR: f64 = 0.005;

/// One line of the oracle.
struct Expected<'a> {
    target: String,
    test: &'a str,
    sustained: f64,
    /// Burst rate, its duration and its refill, s.
    burst: Option<[f64; 3]>,
}

fn oracle() -> Vec<Expected<'static>> {
    let parse = |line: &'static str| {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |field: usize| fields[field].parse::<f64>().ok();
        Expected {
            target: format!("sim:{}?{}", fields[0], fields[1]),
            test: fields[2],
            sustained: number(3).unwrap(),
            burst: number(4).map(|burst| [burst, number(5).unwrap(), number(6).unwrap()]),
        }
    };
    ORACLE.lines().skip(1).map(parse).collect()
}

fn measured(target: &str) -> RunRecord {
    let settings = BenchSettings {
        run: RunSettings { target: target.into(), seed: Some(1), ..RunSettings::default() },
        suite: "standard".to_owned(),
        runtime: Some(Nanos::from_millis(500)),
        only: ["rand-read", "rand-write", "seq-read"].map(str::to_owned).to_vec(),
        ..BenchSettings::default()
    };
    let plan = BenchPlan::make(settings).unwrap();
    run(&plan, &mut plan.session(), &mut ()).unwrap()
}

/// Limits are whole I/Os and bytes a second.
fn is_near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= expected * NEAR || found == expected.floor()
}

#[test]
fn rates_last_as_the_published_rules_say() {
    let mut last: Option<(String, RunRecord)> = None;
    let mut volumes = 0;
    for expected in oracle() {
        let record = match last.take() {
            Some((target, record)) if target == expected.target => record,
            _ => {
                volumes += 1;
                measured(&expected.target)
            }
        };
        check(&expected, &record);
        last = Some((expected.target, record));
    }
    assert!(volumes > 120, "{volumes}");
}

fn check(expected: &Expected<'_>, record: &RunRecord) {
    let test = record.tests.iter().find(|test| test.id == expected.test).unwrap();
    let iops = TestSummary::new(test).total.unwrap().iops;
    let found = RecordRow::of(test).duration().clone();
    let context = || format!("{} {} at {iops}: {found:?}", expected.target, expected.test);
    assert!(found.sustained_iops.is_some_and(|found| is_near(found, expected.sustained)), "{}", context());
    let seconds = |ns: Option<u64>| ns.unwrap_or_default() as f64 / 1e9;
    match expected.burst {
        // At a queue depth of 64 the latency of some volumes keeps the rate below their limit.
        Some([burst, lasts, refill]) if iops > expected.sustained * 1.02 => {
            assert_eq!(found.label, Lasting::Burst, "{}", context());
            let is_full_rate = is_near(iops, burst);
            assert!(!is_full_rate || is_near(seconds(found.lasts_ns), lasts), "{}", context());
            assert!(is_near(seconds(found.refill_ns), refill), "{}", context());
        }
        _ => assert_eq!(found.label, Lasting::Sustained, "{}", context()),
    }
}
