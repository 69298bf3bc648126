//! Every known input of the fuzz targets, as an ordinary test: what once was a finding, and what a campaign begins with.

use std::fs;
use std::path::{Path, PathBuf};

use fathom_fuzz::TARGETS;
use fathom_tests::fuzz_seeds;

fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The names in a directory, sorted.
fn names(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be read").path()).collect();
    paths.sort();
    paths
}

#[test]
fn earlier_findings_stay_fixed() {
    let targets = names(&directory("regressions"));
    assert!(!targets.is_empty());
    for inputs in targets {
        let name = inputs.file_name().expect("it has a name").to_string_lossy().into_owned();
        let check =
            TARGETS.iter().find(|(target, _)| *target == name).expect("regressions are of a target").1;
        for input in names(&inputs) {
            // A panic then names the input.
            eprintln!("{}", input.display());
            check(&fs::read(&input).expect("it can be read"));
        }
    }
}

#[test]
fn every_target_holds_on_its_seeds() {
    for (name, check) in TARGETS {
        let seeds = fuzz_seeds(name);
        assert!(!seeds.is_empty() && seeds.iter().all(|seed| !seed.is_empty()), "{name} has no seeds");
        for seed in &seeds {
            eprintln!("{name}: {}", String::from_utf8_lossy(&seed[..seed.len().min(200)]));
            check(seed);
        }
    }
}

#[test]
fn libfuzzer_has_an_entry_for_each_target() {
    let manifest = fs::read_to_string(directory("targets/Cargo.toml")).expect("it is in the checkout");
    for (name, _) in TARGETS {
        assert!(manifest.contains(&format!("\"fuzz_targets/{name}.rs\"")), "{name} is missing");
    }
    assert_eq!(manifest.matches("[[bin]]").count(), TARGETS.len());
}
