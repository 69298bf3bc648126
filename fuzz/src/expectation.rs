//! Expectations: those of a file, and those of `--expect`.

use std::sync::OnceLock;

use fathom_assess::{BenchPlan, BenchSettings, ExpectationSettings, SUITES, Suite, engine_rows};
use fathom_record::{ExpectationRecord, RunRecord};

use crate::{messages, rendering, suite};

/// The record was measured by the suite of the expectations.
const RECORD: &str = include_str!("../seeds/record/bench.json");
/// Most lines of one input that are taken as `--expect`.
const MAX_LINES: usize = 4;

/// Reads the text as a file, and its first lines as `--expect`; checks a record against the expectations.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut expectations = match plan().expectations_in("fuzz.toml", text) {
        Ok(expectations) => expectations,
        Err(error) => {
            messages::check(&error, error.hint.as_deref());
            Vec::new()
        }
    };
    for line in text.lines().filter(|line| !line.is_empty()).take(MAX_LINES) {
        let given = ExpectationSettings { lines: vec![line.to_owned()], ..ExpectationSettings::default() };
        match BenchPlan::of_suite(standard().clone(), vec![suite::target()], settings(given)) {
            Ok(plan) => expectations.extend(plan.expectations),
            Err(error) => messages::check(&error, error.hint.as_deref()),
        }
    }
    if !expectations.is_empty() {
        judge(expectations);
    }
}

/// The tests that the record holds, and no others.
fn settings(expectations: ExpectationSettings) -> BenchSettings {
    let only = ["rand-read", "lat-read"].map(str::to_owned).to_vec();
    BenchSettings { expectations, only, ..suite::settings() }
}

fn standard() -> &'static Suite {
    static SUITE: OnceLock<Suite> = OnceLock::new();
    SUITE.get_or_init(|| {
        let (name, text) = SUITES[0];
        Suite::parse(name, text, &engine_rows()).expect("the shipped suite is one")
    })
}

fn plan() -> &'static BenchPlan {
    static PLAN: OnceLock<BenchPlan> = OnceLock::new();
    PLAN.get_or_init(|| {
        BenchPlan::of_suite(
            standard().clone(),
            vec![suite::target()],
            settings(ExpectationSettings::default()),
        )
        .expect("the shipped suite has a plan")
    })
}

fn judge(expectations: Vec<ExpectationRecord>) {
    static RUN: OnceLock<RunRecord> = OnceLock::new();
    let run = RUN.get_or_init(|| RunRecord::from_json(RECORD).expect("the seed is a record"));
    let mut run = run.clone();
    run.header.expectations = expectations;
    rendering::check_expectations(&run);
}
