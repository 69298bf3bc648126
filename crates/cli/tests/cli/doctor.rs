//! `fathom doctor`: every check in every format, exit codes, and that nothing is left behind.

use serde_json::Value;

use crate::{files_in, run, scratch};

/// The document of `doctor` on the directory, and how it ended.
fn document(dir: &std::path::Path) -> (Value, Option<i32>) {
    let ended = run(dir, &["doctor", "--json"]);
    assert_eq!(ended.stderr, "", "{ended:?}");
    (serde_json::from_str(&ended.stdout).unwrap(), ended.code)
}

#[test]
fn every_check_has_a_result_and_the_exit_code_follows_them() {
    let dir = scratch();
    let (found, code) = document(dir.path());
    assert_eq!(found["schema"], "fathom.doctor/1");
    assert_eq!(found["conditions"]["target"]["kind"], "directory");
    let checks = found["checks"].as_array().unwrap();
    assert!(checks.len() >= 15, "{checks:?}");
    for check in checks {
        assert!(["ok", "note", "problem", "unknown"].contains(&check["status"].as_str().unwrap()), "{check}");
        assert!(check["matters"].as_str().unwrap().ends_with('.'), "{check}");
        let needs_remedy = ["note", "problem"].contains(&check["status"].as_str().unwrap());
        assert!(!needs_remedy || check["remedy"].is_string(), "{check}");
    }
    let has_problem = checks.iter().any(|check| check["status"] == "problem");
    assert_eq!(found["has_problem"], has_problem);
    assert_eq!(code, Some(if has_problem { 3 } else { 0 }));
    assert!(found["observed_ns"].as_u64().unwrap() >= 1_000_000_000);
    assert!(files_in(dir.path()).is_empty());
}

#[test]
fn a_target_in_memory_is_a_problem_in_text_as_well() {
    let dir = scratch();
    let ended = run(dir.path(), &["doctor", "/dev/shm"]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.stdout.contains("problem: tmpfs keeps files in memory."), "{ended:?}");
    assert!(ended.stdout.lines().all(|line| line.chars().count() <= 120), "{}", ended.stdout);
    for format in ["markdown", "csv", "jsonl"] {
        let ended = run(dir.path(), &["doctor", "/dev/shm", "--format", format]);
        assert!(
            ended.stdout.contains("Background I/O") || ended.stdout.contains("background-io"),
            "{ended:?}"
        );
    }
}

#[test]
fn what_cannot_be_examined_is_refused_with_a_hint() {
    let dir = scratch();
    for (target, code, part) in [
        ("nowhere", 1, "no such file or directory"),
        ("sim:aws-gp2?size=50GiB", 2, "no condition of this machine affects a simulated volume"),
    ] {
        let ended = run(dir.path(), &["doctor", target]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(code), ""), "{ended:?}");
        assert!(ended.stderr.contains(part) && ended.stderr.contains("hint: "), "{ended:?}");
    }
    let ended = run(dir.path(), &["doctor", "/dev/null"]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.stdout.contains("problem: is neither a directory"), "{ended:?}");
}
