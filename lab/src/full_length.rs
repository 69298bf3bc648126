//! Campaigns that run tests of the gate at full length: the gate draws a few cases or takes a part, and a variable asks for more.

use xtask::process::run_tests;

use crate::driver::{Asked, Campaign, Case, CaseResult, Plan};

/// Words for `cargo test`.
type TestWords = &'static [&'static str];

/// How often the intervals of `bench --precision` and of comparisons hold the truth, and how often verdicts are right: on series of
/// seconds, on series of runs, and through the whole loop on simulated volumes.
pub const COMPARISONS: Campaign = Campaign {
    cases: 1000,
    ..Campaign::new(
        "comparisons",
        "Verdicts on pairs of volumes and intervals of precise tests, over many tries",
        |asked| {
            let tests: &[TestWords] = &[
                &["-p", "fathom-record", "--lib", "precision"],
                &["-p", "fathom-analysis", "--lib", "compare::ratio"],
                &["-p", "fathom-assess", "--test", "suite", "comparisons::"],
            ];
            Ok(plan(tests, "FATHOM_TRIES", asked.cases.to_string()))
        },
    )
};

/// Whether two runs of one simulated volume contradict each other.
pub const CONTRADICTIONS: Campaign = Campaign {
    cases: 300,
    ..Campaign::new(
        "contradictions",
        "Compare verdicts of runs on simulated volumes drawn at random",
        |asked| {
            let tests: &[TestWords] = &[&["-p", "fathom-assess", "--test", "suite", "contradictions::"]];
            Ok(plan(tests, "FATHOM_VOLUMES", seeds(asked)))
        },
    )
};

/// Whether the truth lies in the range that sums leave, in virtual time.
pub const ADVISE_SUMS: Campaign = Campaign {
    cases: 300,
    ..Campaign::new("advise-sums", "Check the ranges that sums leave, in virtual time", |asked| {
        let tests: &[TestWords] = &[&["-p", "fathom-predict", "--lib", "replay::sums_tests"]];
        Ok(plan(tests, "FATHOM_LOADS", asked.cases.to_string()))
    })
};

pub const LONG_TESTS: Campaign =
    Campaign::new("long-tests", "Run tests of which the gate runs a part at full length", |_| {
        let tests: &[TestWords] = &[
            &["-p", "fathom-assess", "--test", "suite", "identified::"],
            &["-p", "fathom-assess", "--test", "suite", "catalogued::"],
            &["-p", "fathom-tests", "--test", "suite", "against::"],
            &["-p", "fathom-tests", "--test", "suite", "guard_race::"],
            &["-p", "fathom-tests", "--test", "suite", "identify::"],
            &["-p", "fathom-tests", "--test", "suite", "stopped::"],
            &["-p", "fathom-tests", "--test", "suite", "verify::"],
        ];
        Ok(plan(tests, "FATHOM_LONG_TESTS", "1".to_owned()))
    });

fn seeds(asked: &Asked) -> String {
    let seeds = asked.seeds();
    format!("{}..{}", seeds.start, seeds.end)
}

fn plan(tests: &'static [TestWords], variable: &'static str, value: String) -> Plan {
    Plan::new(tests.iter().map(|words| {
        let value = value.clone();
        Case::new(words.join(" "), move || {
            let failed = run_tests(words, (variable, &value)).err();
            let line = format!("{variable}={value}");
            Ok(CaseResult::new(line).faults(failed.map(|error| format!("{error:#}"))))
        })
    }))
}
