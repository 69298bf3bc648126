//! Promises: those of a file, and those of `--expect`.

use std::sync::OnceLock;

use fathom_assess::{BenchPlan, BenchSettings, Expecting, SUITES, Suite, engine_rows};
use fathom_record::{PromiseRecord, RunRecord};

use crate::{messages, rendering, suite};

/// What the record holds was measured by the suite that the promises are about.
const RECORD: &str = include_str!("../seeds/record/bench.json");
/// Most lines of one input that are taken as `--expect`.
const MOST_LINES: usize = 4;

/// Takes the text for a file, and its first lines for words of a command line; judges a record by what they promise.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut promises = match plan().promises_in("fuzz.toml", text) {
        Ok(promises) => promises,
        Err(error) => {
            messages::check(&error, error.hint().as_deref());
            Vec::new()
        }
    };
    for line in text.lines().filter(|line| !line.is_empty()).take(MOST_LINES) {
        let expecting = Expecting { said: vec![line.to_owned()], ..Expecting::default() };
        match BenchPlan::of_suite(standard().clone(), suite::target(), settings(expecting)) {
            Ok(plan) => promises.extend(plan.promises),
            Err(error) => messages::check(&error, error.hint().as_deref()),
        }
    }
    if !promises.is_empty() {
        judge(promises);
    }
}

/// The tests that the record holds, and no others.
fn settings(expecting: Expecting) -> BenchSettings {
    let only = ["rand-read", "lat-read"].map(str::to_owned).to_vec();
    BenchSettings { expecting, only, ..suite::settings() }
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
        BenchPlan::of_suite(standard().clone(), suite::target(), settings(Expecting::default()))
            .expect("the shipped suite has a plan")
    })
}

fn judge(promises: Vec<PromiseRecord>) {
    static RUN: OnceLock<RunRecord> = OnceLock::new();
    let run = RUN.get_or_init(|| RunRecord::from_json(RECORD).expect("the seed is a record"));
    let mut run = run.clone();
    run.header.promises = promises;
    rendering::check_promises(&run);
}
