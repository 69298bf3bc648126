//! A rate that fell is not reported as burst credits where CPU steal or a limit with a schedule explains it.

use fathom_analysis::identified::{Confounder, Identified};
use fathom_analysis::identify::script::identified_of;
use fathom_assess::RunSettings;
use fathom_assess::identify::{IdentifyPlan, IdentifySettings, identify};
use fathom_model::Nanos;
use fathom_record::{HostCounters, HostInterval, RunRecord};

fn run(target: &str) -> (RunRecord, Identified) {
    let settings = IdentifySettings {
        run: RunSettings { target: target.into(), ..RunSettings::default() },
        budget: Some(Nanos::from_secs(300)),
        read_only: true,
        ..IdentifySettings::default()
    };
    let plan = IdentifyPlan::make(settings).unwrap();
    identify(&plan, &mut plan.site.session(), &mut ()).unwrap()
}

fn kinds(found: &Identified) -> Vec<Confounder> {
    found.confounders.iter().map(|one| one.id).collect()
}

/// So much of the CPU time withheld while requests came at a lower rate than `bound`, and before: stolen from the machine, or
/// waited for by the thread.
fn given_away(record: &RunRecord, bound: f64, (low, before): (f64, f64), is_stolen: bool) -> Identified {
    let mut record = record.clone();
    for test in &mut record.tests {
        let measured = &mut test.jobs[0].measured;
        let rate = measured.read.ios as f64 * 1e9 / measured.elapsed_ns().max(1) as f64;
        let share = if rate < bound { low } else { before };
        let cpu_ns = 2 * test.elapsed_ns;
        let (stolen, waited) = if is_stolen { (share, 0.0) } else { (0.0, share) };
        measured.cpu.run_queue_wait_ns = (measured.elapsed_ns() as f64 * waited) as u64;
        test.host_load = vec![HostInterval {
            host: 0,
            start_ns: 0,
            end_ns: test.elapsed_ns,
            counters: HostCounters {
                cpu_ns,
                steal_ns: (cpu_ns as f64 * stolen) as u64,
                ..HostCounters::default()
            },
        }];
    }
    identified_of(&record).unwrap()
}

#[test]
fn a_rate_that_fell_while_others_had_the_processors_is_no_credit() {
    let (record, found) = run("sim:custom?iops=200&burst_iops=1000&bucket_ios=32000&latency=100us");
    assert_eq!((found.bursts.len(), kinds(&found)), (1, Vec::new()));
    let check = |low, before, expected: &[Confounder]| {
        for is_stolen in [true, false] {
            // Below what requests without load are paced to, which is a quarter of the limit.
            let found = given_away(&record, 230.0, (low, before), is_stolen);
            assert_eq!(kinds(&found), expected, "{low} {before} {is_stolen}");
            assert_eq!(found.bursts.is_empty(), !expected.is_empty());
        }
    };
    check(0.4, 0.0, &[Confounder::CpuSteal]);
    // As much as before is no reason, and little is none either.
    check(0.4, 0.4, &[]);
    check(0.05, 0.0, &[]);
}

#[test]
fn a_rate_that_rises_again_by_itself_is_no_credit() {
    let (_, found) = run("sim:hetzner-volume?size=100GiB");
    assert!(found.bursts.is_empty(), "{:?}", found.bursts);
    let why = found.burst_why.unwrap();
    let is_named = found.confounders.iter().any(|one| one.id == Confounder::ByItself);
    assert!(is_named || why.contains("rose again without idling"), "{why}");
}
