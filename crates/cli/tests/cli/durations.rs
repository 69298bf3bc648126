//! How long rates last, by the published rules of simulated volumes.

use serde_json::Value;

use crate::{run, scratch};

/// The document of a short bench of random reads.
fn bench(target: &str, extra: &[&str]) -> Value {
    let dir = scratch();
    let base = ["bench", "--suite", "database-disk", "--json", "--seed", "1"];
    let ran = run(dir.path(), &[&base, extra, &[target]].concat());
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"))
}

#[test]
fn a_burst_is_never_called_sustained() {
    for (target, extra, label, sustained, seconds) in [
        (
            "sim:aws-gp2-2016?size=50GiB",
            &["--runtime", "10s", "--only", "randread,randwrite"][..],
            "burst",
            150.0,
            Some(1895),
        ),
        (
            "sim:aws-gp2-2016?size=50GiB",
            &["--runtime", "1m", "--only", "randread"],
            "burst",
            150.0,
            Some(1895),
        ),
        (
            "sim:custom?iops=15&burst_iops=300&bucket_ios=5400000&latency=500us",
            &["--until-steady", "--only", "randread"],
            "burst",
            15.0,
            Some(18_947),
        ),
        (
            "sim:aws-gp2-2016?size=334GiB",
            &["--runtime", "10s", "--only", "randread,randwrite"],
            "burst",
            1002.0,
            Some(2703),
        ),
        (
            "sim:aws-gp2-2016?size=1000GiB",
            &["--runtime", "10s", "--only", "randread,randwrite"],
            "sustained",
            3000.0,
            None,
        ),
        (
            "sim:aws-gp3?size=50GiB",
            &["--runtime", "10s", "--only", "randread,randwrite"],
            "sustained",
            3000.0,
            None,
        ),
        (
            "sim:do-volume-standard?size=100GiB",
            &["--runtime", "10s", "--only", "randread,randwrite"],
            "burst",
            5000.0,
            Some(60),
        ),
    ] {
        let document = bench(target, extra);
        let tests = document["tests"].as_array().unwrap();
        let random: Vec<&Value> = tests
            .iter()
            .filter(|test| ["randread", "randwrite"].iter().any(|id| test["id"] == *id))
            .collect();
        assert!(!random.is_empty(), "{document:#}");
        for test in random {
            let duration = &test["rate_duration"];
            assert_eq!(duration["label"], label, "{target} {extra:?}: {duration:#}");
            assert_eq!(duration["sustained_iops"].as_f64(), Some(sustained), "{target}: {duration:#}");
            let lasts = duration["lasts_ns"].as_u64().map(|ns| (ns as f64 / 1e9).round() as u64);
            assert_eq!(lasts, seconds, "{target}: {duration:#}");
        }
    }
}

#[test]
fn bursts_by_the_clock_are_explained_by_their_rule() {
    let target = "sim:do-volume-standard?size=100GiB";
    let document = bench(target, &["--runtime", "5m", "--only", "randread"]);
    let findings = document["findings"].as_array().unwrap();
    let found = findings.iter().find(|found| found["id"] == "burst-suspected");
    let claim = found.unwrap_or_else(|| panic!("{document:#}"))["claim"].as_str().unwrap();
    assert!(claim.starts_with("IOPS changed between 7,500 and 5,000 by the published rule of"), "{claim}");
    assert!(findings.iter().all(|found| found["id"] != "not-steady"), "{document:#}");
}

#[test]
fn a_log_that_waits_for_syncs_is_not_merged() {
    let dir = scratch();
    let ran = run(dir.path(), &["bench", "--json", "--seed", "1", "sim:aws-gp2-2016?size=50GiB"]);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    let commit = document["tests"].as_array().unwrap().iter().find(|test| test["id"] == "commit").unwrap();
    let duration = &commit["rate_duration"];
    assert_eq!(duration["sustained_iops"].as_f64(), Some(150.0), "{duration:#}");
    assert_eq!(duration["label"], "burst", "{duration:#}");
    let uses = document["conclusions"].as_array().unwrap();
    let etcd = uses.iter().find(|entry| entry["id"] == "etcd").unwrap();
    assert_eq!(etcd["sustained_iops"].as_f64(), Some(150.0), "{etcd:#}");
}

#[test]
fn the_rate_of_a_burst_that_ended_is_that_before_its_end() {
    let volume = "sim:custom?iops=15&burst_iops=300&bucket_ios=540000&latency=500us";
    let document = bench(volume, &["--runtime", "40m", "--only", "randread"]);
    let rate = &document["verdict"]["rates"][0];
    assert!((rate["measured"].as_f64().unwrap() - 300.0).abs() < 3.0, "{rate}");
    assert_eq!((rate["sustained"].as_f64(), rate["lasting"].as_str()), (Some(15.0), Some("burst")), "{rate}");
}
