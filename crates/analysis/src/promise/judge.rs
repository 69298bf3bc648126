//! One promise: what was measured of it, within what that lies, and whether its conditions let it be judged.

use fathom_record::{PromiseRecord, RunRecord, TestStatus};

use super::conditions::{self, PromiseCase};
use super::interval::{self, ConfidenceInterval, LEAST_SECONDS};
use super::words::{figure, percentile, span};
use super::{Judged, burst, share};
use crate::criterion::CriterionVerdict;
use crate::criterion::{Comparison, Metric, MetricKind, Statistic};
use crate::rows::RecordRow;
use crate::say::{percent, seconds};

/// Runs longer than this are not advised: who wants to know that much will find out.
const LONGEST_ADVICE_S: f64 = 7200.0;

pub(super) fn judge_one(record: &RunRecord, rows: &[RecordRow<'_>], promise: &PromiseRecord) -> Judged {
    let refused = |why: String, remedy: Option<String>| Judged {
        promise: promise.clone(),
        measured: None,
        interval: None,
        verdict: CriterionVerdict::Inconclusive,
        why: Some(why),
        remedy,
        seconds: 0,
    };
    if let Some(why) = &promise.cannot {
        return refused(why.clone(), None);
    }
    let (Some(quantity), Some(comparison)) = (Metric::parse(&promise.metric), Comparison::of(&promise.is))
    else {
        return refused(format!("{} {} is not known to this version", promise.metric, promise.is), None);
    };
    let Some(row) = rows.iter().find(|row| row.test.id == promise.test) else {
        return refused("the test did not run".to_owned(), None);
    };
    if row.test.status != TestStatus::Complete {
        let reason = row.test.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        return refused(format!("the test is {}{reason}", row.test.status.name()), None);
    }
    let direction = quantity.direction_in(&row.summary);
    let case = PromiseCase { record, rows, row, promise, quantity, direction, comparison };
    let judged = of_case(&case, refused);
    let watched: f64 = row.seconds.iter().map(|second| second.elapsed_ns as f64 / 1e9).sum();
    Judged { seconds: watched.round() as u64, ..judged }
}

fn of_case(case: &PromiseCase<'_>, refused: impl Fn(String, Option<String>) -> Judged) -> Judged {
    let PromiseCase { row, promise, quantity, direction, .. } = *case;
    let Some(measured) = quantity.of(&row.summary) else {
        let (why, remedy) = unmeasured(case);
        return refused(why, remedy);
    };
    // Of a share of the time the rate says nothing: that share is what is measured of it.
    let told = promise.share.is_none().then_some(measured);
    let seen = |why: Option<String>, remedy: Option<String>| Judged {
        measured: told,
        ..refused(why.unwrap_or_default(), remedy)
    };
    if let Some(why) = conditions::elsewhere(case) {
        return seen(Some(why.why), why.remedy);
    }
    if row.seconds.len() < LEAST_SECONDS {
        let why =
            format!("{} are too short to tell how much the figure varies", seconds(row.summary.measured_ns));
        return seen(Some(why), Some("--runtime makes it longer".to_owned()));
    }
    if let Some(credit) = promise.conditions.credit {
        return burst::judge(case, credit, seen(None, None));
    }
    if let Some(promised) = promise.share {
        return of_share(case, promised, seen(None, None));
    }
    let Some(interval) = interval::around(&row.test, quantity, direction, measured) else {
        return seen(Some("too little ran to tell how much the figure varies".to_owned()), None);
    };
    against(case, interval, seen(None, None))
}

/// Holds an interval against the promise, and the conditions against both.
pub(super) fn against(case: &PromiseCase<'_>, interval: ConfidenceInterval, judged: Judged) -> Judged {
    let PromiseCase { promise, comparison, quantity, .. } = *case;
    let bound = comparison.bound(promise.value, promise.tolerance_percent);
    let (worst, best) = match comparison.wants_more() {
        true => (interval.low, interval.high),
        false => (interval.high, interval.low),
    };
    let judged = Judged { interval: Some(interval), ..judged };
    if comparison.holds(worst, bound) {
        return match conditions::flatters(case) {
            Some(doubt) => Judged { why: Some(doubt.why), remedy: doubt.remedy, ..judged },
            None => Judged { verdict: CriterionVerdict::Met, why: None, ..judged },
        };
    }
    if let Some(excuse) = conditions::excuses(case, bound) {
        return Judged { why: Some(excuse.why), remedy: excuse.remedy, ..judged };
    }
    let measure = quantity.kind;
    let seen = judged.measured.unwrap_or(f64::midpoint(interval.low, interval.high));
    let within = span(measure, interval.low, interval.high).unwrap_or_else(|| figure(measure, seen));
    if !comparison.holds(best, bound) {
        let off = percent((seen / promise.value - 1.0).abs());
        let side = if comparison.wants_more() { "below" } else { "above" };
        let why = format!("{within} at 95 % confidence, {off} {side} what was promised");
        return Judged { verdict: CriterionVerdict::Missed, why: Some(why), ..judged };
    }
    let remedy = longer(case, interval, bound);
    let why =
        format!("too close to call: {within} at 95 % confidence, where {} would do", figure(measure, bound));
    Judged { why: Some(why), remedy: Some(remedy), ..judged }
}

/// How long a run would tell: intervals shrink with the root of the time.
fn longer(case: &PromiseCase<'_>, interval: ConfidenceInterval, bound: f64) -> String {
    let value = (interval.low + interval.high) / 2.0;
    let (half, off) = ((interval.high - interval.low) / 2.0, (value - bound).abs());
    let now = case.row.summary.measured_ns as f64 / 1e9;
    let needed = now * (half / off.max(f64::MIN_POSITIVE)).powi(2) * 1.5;
    match needed.is_finite() && needed <= LONGEST_ADVICE_S {
        true => format!("a longer run would tell: --runtime {}", (needed.max(now * 2.0).ceil() as u64)),
        false => "a longer run may tell (--runtime); so near to the bound it may take very long".to_owned(),
    }
}

fn of_share(case: &PromiseCase<'_>, promised: fathom_record::ShareRecord, judged: Judged) -> Judged {
    let PromiseCase { row, promise, quantity, direction, comparison, .. } = *case;
    let bound = comparison.bound(promise.value, promise.tolerance_percent);
    let rates = interval::timed_rates(&row.test, quantity.kind, direction);
    // What is longer than a second stands for as many as it is long.
    let good = rates.iter().flat_map(|&(rate, seconds)| {
        std::iter::repeat_n(comparison.holds(rate, bound), seconds.round().max(1.0) as usize)
    });
    let good: Vec<bool> = good.collect();
    let share::Share { measured, interval, verdict, why, remedy } = share::of(&good, promised);
    let judged = Judged { measured, interval, verdict, why: Some(why), remedy, ..judged };
    let doubt = match verdict {
        CriterionVerdict::Met => conditions::flatters(case),
        CriterionVerdict::Missed => conditions::excuses(case, bound),
        CriterionVerdict::Inconclusive => None,
    };
    match doubt {
        Some(doubt) => Judged {
            verdict: CriterionVerdict::Inconclusive,
            why: Some(doubt.why),
            remedy: doubt.remedy,
            ..judged
        },
        None => judged,
    }
}

/// Why there is no figure.
fn unmeasured(case: &PromiseCase<'_>) -> (String, Option<String>) {
    let PromiseCase { row, quantity, direction, .. } = *case;
    let MetricKind::Latency(_, Statistic::Percentile(per_million)) = quantity.kind else {
        return (format!("the test has no {} of {}", super::quantity_name(quantity), direction.name()), None);
    };
    let ios = match direction {
        crate::criterion::MetricDirection::Read => row.summary.read.as_ref().map(|op| op.ios),
        crate::criterion::MetricDirection::Write => row.summary.write.as_ref().map(|op| op.ios),
        crate::criterion::MetricDirection::Trim => row.summary.trim.as_ref().map(|op| op.ios),
        crate::criterion::MetricDirection::Total => row.summary.total.as_ref().map(|op| op.ios),
        crate::criterion::MetricDirection::Sync => row.summary.sync.as_ref().map(|sync| sync.ios),
    };
    let needed = 10 * 1_000_000 / u64::from(1_000_000 - per_million.min(999_999));
    let name = percentile(per_million);
    let grouped = fathom_model::units::grouped;
    let why = format!("{} requests carry no {name}: it takes {}", grouped(ios.unwrap_or(0)), grouped(needed));
    (why, Some("--runtime makes it longer".to_owned()))
}

#[cfg(test)]
mod tests {
    use fathom_model::Nanos;
    use fathom_record::{CreditRecord, Finding, PromiseConditions, PromiseRecord, RunRecord, ShareRecord};

    use crate::fixture::{TestLoad, plan, record};
    use crate::promise::{CriterionVerdict, Judged, is_broken, judge};

    fn promise(metric: &str, is: &str, value: f64, tolerance_percent: f64) -> PromiseRecord {
        PromiseRecord {
            test: "t".to_owned(),
            metric: metric.to_owned(),
            is: is.to_owned(),
            value,
            tolerance_percent,
            ..PromiseRecord::default()
        }
    }

    /// Where many are under way most of the time is waiting, but for the first.
    fn begin_without_queue(run: &mut RunRecord) {
        for job in run.tests.iter_mut().flat_map(|test| &mut test.jobs).filter(|job| job.iodepth > 8) {
            job.measured.read.lat.moments.min = 100_000;
        }
    }

    fn judged(run: &mut RunRecord, promise: PromiseRecord) -> Judged {
        begin_without_queue(run);
        run.header.promises = vec![promise];
        judge(run).remove(0)
    }

    /// The verdict on a promise of a run at depth 64, and a part of the reason.
    fn check(run: &mut RunRecord, promise: PromiseRecord, expected: CriterionVerdict, why: &str) {
        let judged = judged(run, promise);
        assert_eq!(judged.verdict, expected, "{judged:?}");
        assert!(judged.why.as_deref().unwrap_or_default().contains(why), "{judged:?}\nand not {why}");
    }

    fn deep(iops: f64) -> TestLoad {
        TestLoad { depth: 64, iops, ..TestLoad::default() }
    }

    #[test]
    fn three_verdicts_on_a_rate() {
        use CriterionVerdict::{Inconclusive, Met, Missed};
        for (metric, is, value, tolerance, expected) in [
            ("iops", ">=", 5000.0, 5.0, Met),
            ("read.iops", ">=", 5000.0, 0.0, Met),
            ("iops", ">=", 5200.0, 5.0, Met),
            ("iops", ">=", 5300.0, 5.0, Missed),
            ("iops", ">", 5000.0, 0.0, Missed),
            ("iops", ">", 5000.0, 1.0, Met),
            ("iops", "<=", 4900.0, 5.0, Met),
            ("iops", "<=", 4700.0, 5.0, Missed),
            ("bytes_per_second", ">=", 20.48e6, 0.0, Met),
            ("lat_ns.mean", "<", 13e6, 0.0, Met),
            ("lat_ns.mean", "<", 12e6, 5.0, Missed),
            ("lat_ns.p99", "<", 13e6, 0.0, Met),
            ("lat_ns.p99", "<=", 10e6, 5.0, Missed),
            ("lat_ns.max", "<", 13e6, 0.0, Met),
            ("write.iops", ">=", 1.0, 5.0, Inconclusive),
            ("sync.iops", ">=", 1.0, 5.0, Inconclusive),
        ] {
            let judged = judged(&mut record(&[deep(5000.0)]), promise(metric, is, value, tolerance));
            assert_eq!(judged.verdict, expected, "{metric} {is} {value}: {judged:?}");
        }
    }

    #[test]
    fn verdicts_do_not_depend_on_the_unit_of_things() {
        let seconds: Vec<f64> = (0..20).map(|second| [0.97, 1.0, 1.02, 0.99, 1.02][second * 3 % 5]).collect();
        for promised in [0.9, 0.99, 1.0, 1.02, 1.1] {
            let verdict = |scale: f64| {
                let run = &mut record(&[TestLoad { seconds: seconds.clone(), ..deep(1000.0 * scale) }]);
                judged(run, promise("iops", ">=", 1000.0 * scale * promised, 1.0)).verdict
            };
            let all: Vec<CriterionVerdict> = [1.0, 3.0, 100.0].map(verdict).to_vec();
            assert!(all.iter().all(|one| *one == all[0]), "{promised}: {all:?}");
        }
    }

    #[test]
    fn what_straddles_the_bound_is_too_close() {
        let restless = TestLoad { seconds: [0.8, 1.2, 1.1, 0.9].repeat(5), ..deep(1000.0) };
        let run = &mut record(std::slice::from_ref(&restless));
        check(run, promise("iops", ">=", 1000.0, 0.0), CriterionVerdict::Inconclusive, "too close to call");
        assert!(judge(run)[0].remedy.as_deref().is_some_and(|remedy| remedy.contains("--runtime")));
        check(run, promise("iops", ">=", 800.0, 0.0), CriterionVerdict::Met, "");
        check(run, promise("iops", ">=", 1300.0, 0.0), CriterionVerdict::Missed, "23 % below");
        // Each second was enough, whatever their mean.
        let fallen = TestLoad { seconds: [vec![3.0; 10], vec![1.0; 20]].concat(), ..deep(1000.0) };
        check(&mut record(&[fallen]), promise("iops", ">=", 1000.0, 0.0), CriterionVerdict::Met, "");
    }

    #[test]
    fn a_shortfall_is_judged_where_nothing_else_explains_it() {
        let wanted = || promise("iops", ">=", 5000.0, 5.0);
        check(&mut record(&[deep(1000.0)]), wanted(), CriterionVerdict::Missed, "80 % below");
        check(
            &mut record(&[TestLoad { seconds: vec![1.0; 2], ..deep(1000.0) }]),
            wanted(),
            CriterionVerdict::Inconclusive,
            "too short",
        );
        // 1 ms each: five have to be under way, and two were.
        let shallow = TestLoad { depth: 2, iops: 2000.0, ..TestLoad::default() };
        check(
            &mut record(std::slice::from_ref(&shallow)),
            wanted(),
            CriterionVerdict::Inconclusive,
            "takes 5 requests under way, and this test had 2",
        );
        let alone = TestLoad { id: "alone", iops: 8000.0, ..TestLoad::default() };
        check(
            &mut record(&[TestLoad { iops: 2000.0, ..shallow }, alone]),
            wanted(),
            CriterionVerdict::Inconclusive,
            "under way",
        );
        let mut paced = record(&[deep(1000.0)]);
        plan(&mut paced, |plan| plan.time.think_time.pause = Nanos(1000));
        check(&mut paced, wanted(), CriterionVerdict::Inconclusive, "holds itself back");
        let mut run = record(&[deep(1000.0)]);
        run.header.labels.insert("instance_iops".to_owned(), "3000".to_owned());
        check(&mut run, wanted(), CriterionVerdict::Inconclusive, "3,000 a second through");
        // What was reached needs no excuse.
        check(&mut run, promise("iops", ">=", 1000.0, 5.0), CriterionVerdict::Met, "");
        check(&mut RunRecord::default(), wanted(), CriterionVerdict::Inconclusive, "did not run");
        check(
            &mut record(&[deep(1000.0)]),
            PromiseRecord { cannot: Some("no rule".to_owned()), ..wanted() },
            CriterionVerdict::Inconclusive,
            "no rule",
        );
    }

    #[test]
    fn conditions_of_the_promise_itself() {
        let with = |metric: &str, value: f64, conditions: PromiseConditions| PromiseRecord {
            conditions,
            ..promise(metric, ">=", value, 5.0)
        };
        let blocks =
            |bytes: u64| PromiseConditions { block_size_bytes: Some(bytes), ..PromiseConditions::default() };
        let large = || record(&[TestLoad { bs: 32 << 10, ..deep(500.0) }]);
        check(
            &mut large(),
            with("iops", 1000.0, blocks(16 << 10)),
            CriterionVerdict::Inconclusive,
            "up to 16k, and these are of 32k",
        );
        check(&mut large(), with("iops", 1000.0, blocks(32 << 10)), CriterionVerdict::Missed, "50 %");
        check(
            &mut large(),
            with("bytes_per_second", 200e6, blocks(1 << 20)),
            CriterionVerdict::Inconclusive,
            "1m and more",
        );
        check(
            &mut large(),
            with("bytes_per_second", 200e6, PromiseConditions::default()),
            CriterionVerdict::Inconclusive,
            "measure requests",
        );
        check(
            &mut large(),
            with("bytes_per_second", 200e6, blocks(32 << 10)),
            CriterionVerdict::Missed,
            "below",
        );
        let depth = PromiseConditions { depth: Some(100.0), ..PromiseConditions::default() };
        check(
            &mut large(),
            with("iops", 1000.0, depth),
            CriterionVerdict::Inconclusive,
            "takes 100 requests under way",
        );
        let instance =
            || PromiseConditions { instance: Some("m1.large".to_owned()), ..PromiseConditions::default() };
        check(&mut large(), with("iops", 400.0, instance()), CriterionVerdict::Inconclusive, "is not known");
        for (label, verdict) in
            [("m1.large", CriterionVerdict::Met), ("m1.small", CriterionVerdict::Inconclusive)]
        {
            let mut run = large();
            run.header.labels.insert("instance".to_owned(), label.to_owned());
            check(&mut run, with("iops", 400.0, instance()), verdict, "");
        }
        let limit = PromiseConditions { instance_limit: Some(400.0), ..PromiseConditions::default() };
        check(
            &mut large(),
            with("iops", 1000.0, limit),
            CriterionVerdict::Inconclusive,
            "the machine lets 400 a second through",
        );
        // 31.25 MB/s are fewer requests of 32 KiB than were promised.
        for (label, value, found) in [
            ("instance_bandwidth", "31.25MB", "the machine lets 954 a second through"),
            ("instance_iops", "60", "the machine lets 60 a second through"),
            ("instance_bandwidth", "2GB", ""),
        ] {
            let mut run = large();
            run.header.labels.insert(label.to_owned(), value.to_owned());
            let expected =
                if found.is_empty() { CriterionVerdict::Missed } else { CriterionVerdict::Inconclusive };
            check(&mut run, with("iops", 1200.0, PromiseConditions::default()), expected, found);
        }
    }

    #[test]
    fn findings_count_against_the_verdict_that_they_would_spoil() {
        let check = |id: &str, value: f64, expected: CriterionVerdict| {
            let mut run = record(&[deep(1000.0)]);
            run.findings =
                vec![Finding { id: id.to_owned().into(), tests: vec!["t".to_owned()], ..Finding::default() }];
            check(
                &mut run,
                promise("iops", ">=", value, 5.0),
                expected,
                if expected == CriterionVerdict::Inconclusive { id } else { "" },
            );
            // Of another test it says nothing.
            run.findings[0].tests = vec!["other".to_owned()];
            assert_ne!(judge(&run)[0].verdict, CriterionVerdict::Inconclusive);
        };
        for id in ["cache-served", "small-working-set", "host-cache"] {
            check(id, 500.0, CriterionVerdict::Inconclusive);
            check(id, 5000.0, CriterionVerdict::Missed);
        }
        for id in
            ["client-cpu-bound", "cpu-steal", "cgroup-throttled", "foreign-io", "first-touch", "instance-cap"]
        {
            check(id, 500.0, CriterionVerdict::Met);
            check(id, 5000.0, CriterionVerdict::Inconclusive);
        }
        check("buffered", 500.0, CriterionVerdict::Inconclusive);
        check("buffered", 5000.0, CriterionVerdict::Inconclusive);
        check("queueing", 5000.0, CriterionVerdict::Missed);
    }

    #[test]
    fn a_share_of_the_time_is_counted_in_seconds() {
        let share = |fraction: f64, period_ns: Option<u64>| PromiseRecord {
            share: Some(ShareRecord { fraction, period_ns }),
            ..promise("iops", ">=", 1000.0, 10.0)
        };
        let run = |missed: usize, seconds: usize| {
            let rates = (0..seconds).map(|second| if second < missed { 0.5 } else { 0.95 });
            record(&[TestLoad { seconds: rates.collect(), ..deep(1000.0) }])
        };
        check(&mut run(0, 100), share(0.99, None), CriterionVerdict::Met, "100 of 100 seconds");
        check(&mut run(20, 100), share(0.99, None), CriterionVerdict::Missed, "80 of 100 seconds");
        check(&mut run(0, 100), share(0.999, None), CriterionVerdict::Inconclusive, "takes 1,000 s");
        check(
            &mut run(20, 100),
            share(0.99, Some(crate::promise::share::YEAR_NS)),
            CriterionVerdict::Inconclusive,
            "of a year",
        );
        assert_eq!(judge(&run(0, 100)).len(), 0);
        // A promise of a share that is not judged has no rate for its figure.
        let elsewhere =
            PromiseConditions { instance: Some("m1.large".to_owned()), ..PromiseConditions::default() };
        let unjudged = judged(&mut run(0, 100), PromiseRecord { conditions: elsewhere, ..share(0.99, None) });
        assert_eq!((unjudged.verdict, unjudged.measured), (CriterionVerdict::Inconclusive, None));
    }

    #[test]
    fn a_burst_is_judged_while_its_credit_lasts() {
        let of = |full: f64, is_rested: bool| PromiseRecord {
            conditions: PromiseConditions {
                credit: Some(CreditRecord {
                    base: 100.0,
                    burst: 1000.0,
                    full,
                    is_rested,
                    ..CreditRecord::default()
                }),
                ..PromiseConditions::default()
            },
            ..promise("iops", ">=", 1000.0, 5.0)
        };
        let run = |high: usize, low: usize| {
            record(&[TestLoad { seconds: [vec![1.0; high], vec![0.1; low]].concat(), ..deep(1000.0) }])
        };
        check(&mut run(20, 0), of(9_000.0, false), CriterionVerdict::Met, "");
        check(&mut run(10, 20), of(9_000.0, false), CriterionVerdict::Inconclusive, "not known");
        check(&mut run(10, 20), of(9_000.0, true), CriterionVerdict::Met, "");
        check(&mut run(1, 29), of(9_000.0, true), CriterionVerdict::Missed, "below");
        check(&mut run(0, 30), of(1_000.0, true), CriterionVerdict::Inconclusive, "spent before");
        // What the test before it used is gone: 900 of the credit a second.
        let before = TestLoad { id: "before", seconds: vec![1.0; 8], ..deep(1000.0) };
        let mut both = run(0, 30);
        both.tests.insert(0, record(&[before]).tests.remove(0));
        check(&mut both, of(9_000.0, true), CriterionVerdict::Inconclusive, "spent before");
        check(&mut both, of(27_000.0, true), CriterionVerdict::Missed, "below");
    }

    #[test]
    fn classes_are_alternatives() {
        let run = |promises: &[(&str, f64)]| {
            let mut run = record(&[deep(5000.0)]);
            let of = |&(class, value): &(&str, f64)| PromiseRecord {
                class: class.to_owned(),
                ..promise("iops", ">=", value, 2.0)
            };
            begin_without_queue(&mut run);
            run.header.promises = promises.iter().map(of).collect();
            is_broken(&run)
        };
        for (promises, broken) in [
            (&[][..], false),
            (&[("", 5000.0)], false),
            (&[("", 6000.0)], true),
            (&[("standard", 5000.0), ("high-cpu", 6000.0)], false),
            (&[("standard", 5500.0), ("high-cpu", 6000.0)], true),
            (&[("high-cpu", 6000.0)], true),
            (&[("standard", 5000.0), ("high-cpu", 6000.0), ("", 6000.0)], true),
        ] {
            assert_eq!(run(promises), broken, "{promises:?}");
        }
    }
}
