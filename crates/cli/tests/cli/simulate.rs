//! `fathom simulate`: time is virtual, so every number of its outputs is exact.

use crate::{run, scratch};

/// 300 a second for 20 s, then 100.
const BURSTS: &str = "custom?iops=100&burst_iops=300&bucket_ios=4000&latency=1ms&size=1GiB";

#[test]
fn volumes_stand_side_by_side() {
    let dir = scratch();
    let job = "[web]\nioengine=libaio\nrw=randrw\nrwmixread=70\niodepth=4\nsize=256m\nfilename=/data/db\n";
    std::fs::write(dir.path().join("web.fio"), job).unwrap();
    let args =
        ["simulate", BURSTS, "do-volume-standard", "aws-gp3?size=100GiB", "--job", "web.fio", "--for", "1m"];
    let ended = run(dir.path(), &args).quietly();
    insta::assert_snapshot!("simulate_text", ended.stdout);
}

#[test]
fn the_document_has_the_course_of_the_credit() {
    let dir = scratch();
    let args = ["simulate", BURSTS, "--profile", "database-log", "--for", "10s", "--json"];
    let ended = run(dir.path(), &args).quietly();
    let document = ended.stdout.replace(env!("CARGO_PKG_VERSION"), "0.0.0");
    insta::assert_snapshot!("simulate_json", document);
    assert_eq!(run(dir.path(), &args).quietly().stdout, ended.stdout, "the same is predicted each time");
}

#[test]
fn a_trace_is_replayed_at_its_own_pace() {
    let dir = scratch();
    // 200 a second for 3 s, where 100 are served once the credit of a second is spent.
    let line = |index: u64| format!("{} /data/db read {} 4096\n", index * 5_000, index * 4096);
    let trace = "fio version 3 iolog\n0 /data/db add\n0 /data/db open\n".to_owned()
        + &(0..600).map(line).collect::<String>();
    std::fs::write(dir.path().join("app.iolog"), trace).unwrap();
    let volume = "custom?iops=100&burst_iops=300&bucket_ios=100&latency=1ms&size=1GiB";
    let ended = run(dir.path(), &["simulate", volume, "--trace", "app.iolog"]).quietly();
    insta::assert_snapshot!("simulate_trace", ended.stdout);
    for format in ["markdown", "csv"] {
        let args = ["simulate", volume, "--trace", "app.iolog", "--format", format];
        let ended = run(dir.path(), &args).quietly();
        insta::assert_snapshot!(format!("simulate_{format}"), ended.stdout);
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_the_reason() {
    let dir = scratch();
    std::fs::write(dir.path().join("bad.fio"), "[a]\nrw=raed\n").unwrap();
    std::fs::write(dir.path().join("large.fio"), "[a]\nrw=read\nbs=2g\n").unwrap();
    std::fs::write(dir.path().join("bad.iolog"), "fio version 3 iolog\n5 /x raed 0 1\n").unwrap();
    for (args, parts) in [
        (
            &["aws-gp9", "--profile", "oltp"][..],
            &["unknown volume type 'aws-gp9'", "hint: did you mean aws-gp2"][..],
        ),
        (&["tencent-cbs-basic", "--profile", "oltp"], &["publishes no rule"]),
        (&["aws-io1?size=100GiB", "--profile", "oltp"], &["its IOPS must be chosen"]),
        (&["custom?iosp=5", "--profile", "oltp"], &["unknown parameter iosp"]),
        (&["aws-gp2", "--profile", "olpt"], &["unknown profile 'olpt'", "use one of oltp"]),
        (&["aws-gp2", "--job", "none.fio"], &["cannot read the job file none.fio: No such file"]),
        (&["aws-gp2", "--job", "bad.fio"], &["raed"]),
        (&["custom?iops=5&size=1GiB", "--job", "large.fio"], &["sim:custom?iops=5&size=1GiB: ", "hint: "]),
        (&["aws-gp2", "--trace", "none"], &["cannot read the trace none: No such file"]),
        (&["aws-gp2", "--trace", "bad.fio"], &["bad.fio:1: it is neither", "--write_iolog"]),
        (&["aws-gp2", "--trace", "bad.iolog"], &["bad.iolog:2: unknown action 'raed'"]),
        (&["aws-gp2"], &["--job <FILE>|--profile <NAME>|--trace <FILE>"]),
        (&["--profile", "oltp"], &["<VOLUME>"]),
        (&["aws-gp2", "--profile", "oltp", "--for", "0"], &["the shortest time is 1 s"]),
        (&["aws-gp2", "--profile", "oltp", "--trace", "x"], &["cannot be used with"]),
    ] {
        let mut line = vec!["simulate"];
        line.extend(args);
        let ended = run(dir.path(), &line);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{args:?}: {}", ended.stderr);
        for part in parts {
            assert!(ended.stderr.contains(part), "{args:?} lacks {part:?}: {}", ended.stderr);
        }
    }
}

#[test]
fn a_volume_that_fails_is_a_failed_run_with_what_there_is() {
    let dir = scratch();
    let volume = "custom?iops=100&latency=1ms&size=1GiB&stall=3s+inf";
    let ended = run(dir.path(), &["simulate", volume, "--profile", "oltp", "--for", "10s"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("\n  failed  "), "{}", ended.stdout);
}

#[test]
fn a_stall_is_no_rate_of_0() {
    let dir = scratch();
    let volume = "custom?iops=100&latency=1ms&size=1GiB&stall=20s+30s";
    let ended = run(dir.path(), &["simulate", volume, "--profile", "oltp", "--for", "1m"]).quietly();
    insta::assert_snapshot!("simulate_stalled", ended.stdout);
}
