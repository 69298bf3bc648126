//! Runs of `bench` on simulated volumes, and parts of them.

use fathom_assess::{BenchPlan, BenchSettings, Effort, RunSettings, run};
use fathom_model::Nanos;
use fathom_record::RunRecord;

/// The effort of a run, and the measured time of each test where it is not that of the suite.
pub type RunLength = (Effort, Option<Nanos>);

/// What a run measures.
#[derive(Clone, Copy)]
pub enum BenchTests<'a> {
    /// These tests of the standard suite; all where none is named.
    Suite(&'a [&'a str]),
    /// The profiles of these uses.
    Profiles(&'a [&'a str]),
}

/// A run on a volume.
pub fn bench(target: &str, tests: BenchTests<'_>, (effort, runtime): RunLength) -> RunRecord {
    let (suite, only, profiles): (&str, &[&str], &[&str]) = match tests {
        BenchTests::Suite(only) => ("standard", only, &[]),
        BenchTests::Profiles(profiles) => ("", &[], profiles),
    };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let settings = BenchSettings {
        run: RunSettings { target: target.into(), seed: Some(7), ..RunSettings::default() },
        suite: suite.to_owned(),
        profiles: names(profiles),
        only: names(only),
        effort,
        runtime,
        ..BenchSettings::default()
    };
    let plan = BenchPlan::make(settings).unwrap();
    run(&plan, &mut plan.session(), &mut ()).unwrap()
}

/// A run of only these tests of `record`, by their places.
pub fn part(record: &RunRecord, keep: &dyn Fn(usize, &str) -> bool) -> RunRecord {
    let mut part = record.clone();
    let mut at = 0;
    part.tests.retain(|test| {
        at += 1;
        keep(at - 1, &test.id)
    });
    part.findings = fathom_analysis::Analysis::of(&part).findings();
    part
}
