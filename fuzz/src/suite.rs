//! A suite of tests.

use std::path::Path;

use fathom_assess::{BenchPlan, BenchSettings, BenchTarget, Effort, Suite, VolumeTypes, engine_rows};

use crate::{jobs, messages};

/// The volume that suites are planned for.
pub(crate) const VOLUME: &str = "sim:custom?iops=3000&bandwidth=100MiB&latency=500us&size=2GiB";

/// Reads the suite, plans it at every length, and understands the command lines that it shows for its tests.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let suite = match Suite::parse("fuzz.toml", text, &engine_rows()) {
        Ok(suite) => suite,
        Err(error) => return messages::check(&error, error.hint.as_deref()),
    };
    for effort in [Effort::Quick, Effort::Default, Effort::Thorough] {
        let settings = BenchSettings { effort, ..settings() };
        match BenchPlan::of_suite(suite.clone(), vec![target()], settings) {
            Ok(plan) => check_plan(&plan),
            Err(error) => messages::check(&error, error.hint.as_deref()),
        }
    }
}

/// The request: everything on one volume, with a seed so that it is repeatable.
pub(crate) fn settings() -> BenchSettings {
    let mut settings = BenchSettings::default();
    settings.run.target = VOLUME.into();
    settings.run.seed = Some(7);
    settings
}

pub(crate) fn target() -> BenchTarget {
    BenchTarget::inspect(Path::new(VOLUME), &[], &VolumeTypes::default()).expect("the volume is one")
}

fn check_plan(plan: &BenchPlan) {
    for test in &plan.tests {
        let words = jobs::shell_words(&plan.fio_command(test, plan.size));
        assert!(words.len() > 1, "{}: no command line", test.id);
        jobs::check(&words[1..], &|path| panic!("{} is no job file", path.display()));
    }
}
