//! Every command on simulated volumes: on virtual time every number is exact, so whole outputs are compared.

use std::path::Path;

use serde_json::Value;

use crate::{ended, files_in, run, scratch};

const GP2: &str = "sim:aws-gp2-2016?size=50GiB";
const CUSTOM: &str = "sim:custom?iops=700&bandwidth=20MiB&latency=500us&parallelism=64";

/// What `args` print; a new version of the program is no reason to change a golden file.
#[track_caller]
fn printed(args: &[&str]) -> String {
    let dir = scratch();
    let text = run(dir.path(), args).quietly().stdout;
    assert!(files_in(dir.path()).iter().all(|path| path.starts_with(dir.path().join("home"))));
    text.replace(concat!("fathom ", env!("CARGO_PKG_VERSION")), "fathom 0.0.0")
}

/// Compares what `args` print as text, Markdown and CSV.
#[track_caller]
fn check_forms(name: &str, args: &[&str]) {
    insta::assert_snapshot!(name, printed(args));
    for format in ["markdown", "csv"] {
        let printed = printed(&[args, &["--format", format]].concat());
        insta::assert_snapshot!(format!("{name}_{format}"), printed);
    }
}

fn document(args: &[&str]) -> Value {
    serde_json::from_str(&printed(args)).unwrap()
}

#[test]
fn bench_on_a_type_of_the_catalogue() {
    let only = "--only=lat-read,commit,rand-read,rand-mixed,seq-read";
    let args = ["bench", "--quick", "--no-history", "--show-fio", only, GP2];
    insta::assert_snapshot!("sim_bench", printed(&args));
}

#[test]
fn sweep_and_surface_of_limits_of_ones_own() {
    let sweep = ["sweep", "--no-history", "--budget=30s", CUSTOM];
    check_forms("sim_sweep", &sweep);
    let surface = ["surface", "--no-history", "--points=20", "--budget=10s", CUSTOM];
    check_forms("sim_surface", &surface);
}

#[test]
fn the_fio_command_of_a_row_is_taken_back() {
    let plan =
        printed(&["bench", "--quick", "--dry-run", "--show-fio", "--only=rand-read", "--runtime=2s", CUSTOM]);
    let line = plan.lines().find_map(|line| line.trim().strip_prefix("fio ")).unwrap();
    let script = format!("exec '{}' fio {line} --output-format=json", env!("CARGO_BIN_EXE_fathom"));
    let called = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    let document: Value = serde_json::from_str(&ended(called).quietly().stdout).unwrap();
    assert!(matches!(ios(&document)[..], [1_400..=1_471]), "{:?}", ios(&document));
}

#[test]
fn prepare_tells_how_long_it_takes() {
    let volume = "sim:custom?iops=3000&bandwidth=100MiB&first_touch=1&size=10GiB&latency=1ms";
    let args = ["prepare", "--no-history", "--trim", "--fill", "--touch", volume];
    insta::assert_snapshot!("sim_prepare", printed(&args));
    for format in ["markdown", "csv"] {
        let args = [&args[..], &["--format", format]].concat();
        insta::assert_snapshot!(format!("sim_prepare_{format}"), printed(&args));
    }
}

#[test]
fn fio_on_a_volume() {
    let job = ["--rw=randread", "--bs=4k", "--iodepth=64", "--runtime=60", "--time_based"];
    let filename = format!("--filename={GP2}");
    let mut args = vec!["fio", "--name=t", &filename, "--ioengine=libaio"];
    args.extend(job);
    insta::assert_snapshot!("sim_fio", printed(&args));
    // Without an engine it is that of simulated volumes, at the depth that was said.
    args.retain(|word| !word.starts_with("--ioengine"));
    args.push("--output-format=json");
    let unnamed = document(&args);
    let read = &unnamed["jobs"][0]["read"];
    assert_eq!((read["total_ios"].as_u64(), read["runtime"].as_u64()), (Some(180_064), Some(60_021)));
    assert_eq!(unnamed["disk_util"], Value::Null);
}

#[test]
fn ping_takes_no_real_time_and_prints_what_it_prints_on_a_device() {
    insta::assert_snapshot!("sim_ping", printed(&["ping", "-c", "6", GP2]));
    for format in ["markdown", "csv"] {
        let args = ["ping", "-c", "6", "--expect", "p50<1ms,max<1us", "--format", format, GP2];
        insta::assert_snapshot!(format!("sim_ping_{format}"), run(scratch().path(), &args).stdout);
    }
    insta::assert_snapshot!("sim_ping_json", printed(&["ping", "-c", "3", "-W", "--json", CUSTOM]));
    let hour =
        document(&["ping", "-w", "1h", "--schedule", "fixed", "-q", "--json", "sim:custom?latency=3ms"]);
    assert_eq!(
        (hour["requests"].as_u64(), hour["response_ns"]["max"].as_u64()),
        (Some(3_600), Some(3_000_000))
    );
    let dir = scratch();
    let ioping = dir.path().join("ioping");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_fathom"), &ioping).unwrap();
    let mut command = std::process::Command::new(ioping);
    let called = ended(command.args(["-c", "3", "-B", CUSTOM]).output().unwrap()).quietly();
    assert_eq!(called.stdout, "2 1000000 2000 8192000 500000 500000 500000 0 3 2000500000\n");
    let stalled = run(dir.path(), &["ping", "-c", "4", "sim:custom?latency=1ms&stall=2s+20s"]);
    assert_eq!(stalled.code, Some(0), "{stalled:?}");
    assert!(stalled.stdout.contains("request=3 time=20.0 s"), "{}", stalled.stdout);
    for part in ["stalled: a request has had no answer for 20.0 s\n", "answered after 20.0 s\n"] {
        assert!(stalled.stderr.contains(part), "{}", stalled.stderr);
    }
    let silent = run(dir.path(), &["ping", "-c", "4", "sim:custom?latency=1ms&stall=2s+inf"]);
    assert!(silent.code == Some(0) && silent.stdout.contains("1, longest 10.0 s"), "{silent:?}");
}

/// Requests of each job.
fn ios(document: &Value) -> Vec<u64> {
    let jobs = document["jobs"].as_array().unwrap();
    let of =
        |job: &Value| ["read", "write"].iter().map(|op| job[op]["total_ios"].as_u64().unwrap()).sum::<u64>();
    jobs.iter().map(of).collect()
}

#[test]
fn jobs_share_a_volume_and_volumes_are_apart() {
    let fio = |words: &[&str]| {
        let mut args = vec!["fio", "--rw=randread", "--bs=4k", "--runtime=10", "--time_based"];
        args.push("--output-format=json");
        args.extend(words);
        ios(&document(&args))
    };
    let volume = "--filename=sim:custom?iops=3000&latency=500us";
    let named = ["--name=a", "--iodepth=1", "--name=b", "--iodepth=4", "--name=c", "--iodepth=16"];
    let mut shared = vec![volume];
    shared.extend(named);
    // So many a second in ten of them, what limits hold over 10 ms, and what is in flight at the end.
    let together: u64 = fio(&shared).iter().sum();
    assert!((30_000..=30_030 + 21).contains(&together), "{together}");
    let clones = fio(&[volume, "--name=a", "--numjobs=3", "--iodepth=8", "--group_reporting"]);
    assert!(matches!(clones[..], [30_000..=30_054]), "{clones:?}");
    let apart = fio(&[
        "--iodepth=8",
        "--name=a",
        "--filename=sim:custom?iops=1000",
        "--name=b",
        "--filename=sim:custom?iops=2000",
    ]);
    assert!(matches!(apart[..], [10_000..=10_018, 20_000..=20_028]), "{apart:?}");
    // One job on two volumes.
    let both = "--filename=sim:custom?iops=1000&latency=1ms:sim:custom?iops=2000&latency=1ms";
    let both = fio(&["--iodepth=64", "--name=a", both]);
    assert!((19_000..=21_000).contains(&both[0]), "{both:?}");
}

#[test]
fn any_engine_may_be_named_and_sizes_and_offsets_are_kept() {
    let fio = |words: &[&str]| {
        let volume = "--filename=sim:custom?iops=100000&size=64MiB";
        let args = [&["fio", "--name=t", "--output-format=json", volume], words].concat();
        ios(&document(&args))[0]
    };
    for engine in ["io_uring", "libaio", "psync", "sync", "pvsync2", "mmap", "null", "sim"] {
        assert_eq!(fio(&["--ioengine", engine, "--rw=write", "--fsync=4"]), 16_384, "{engine}");
    }
    assert_eq!(fio(&["--rw=randread", "--bs=1m"]), 64);
    assert_eq!(fio(&["--rw=read", "--bs=1m", "--offset=16m"]), 48);
    assert_eq!(fio(&["--rw=read", "--bs=1m", "--size=50%"]), 32);
    assert_eq!(fio(&["--rw=read", "--bs=1m", "--directory=/nowhere", "--direct=1", "--unlink=1"]), 64);
}

#[test]
fn credit_is_spent_by_one_test_and_gone_for_the_next() {
    // 2,700 above the baseline in a second: the first test spends all of it.
    let volume = "sim:custom?iops=300&burst_iops=3000&bucket_ios=10000&latency=100us";
    let bench = document(&[
        "bench",
        "--quick",
        "--runtime=4s",
        "--no-history",
        "--json",
        "--only=rand-read,rand-write",
        volume,
    ]);
    let tests = bench["tests"].as_array().unwrap();
    let rate = |index: usize| tests[index]["total"]["iops"].as_f64().unwrap();
    assert!(rate(0) > 2_000.0 && (290.0..320.0).contains(&rate(1)), "{} {}", rate(0), rate(1));
}

#[test]
fn the_same_seed_gives_the_same_document() {
    for command in [
        &["bench", "--quick", "--only=rand-mixed,commit"][..],
        &["sweep", "--budget=10s"],
        &["surface", "--points=10", "--budget=5s"],
    ] {
        let mut args = command.to_vec();
        args.extend(["--no-history", "--json", GP2]);
        assert_eq!(printed(&args), printed(&args), "{command:?}");
    }
    let ping = ["ping", "-c", "20", "-i", "0", "--json", GP2];
    assert_eq!(printed(&ping), printed(&ping));
    let fio = ["fio", "--name=t", "--filename=sim:custom?iops=500&latency_spread=1&latency=1ms&seed=3"];
    let fio = [&fio[..], &["--size=4m", "--rw=randrw", "--output-format=json+"]].concat();
    assert_eq!(printed(&fio), printed(&fio));
}

#[test]
fn the_history_keeps_the_target_as_typed() {
    let dir = scratch();
    let bench = ["bench", "--quick", "--only=rand-read", GP2];
    assert!(!run(dir.path(), &bench).quietly().stdout.contains("Kept as run"));
    let bench = [&bench[..], &["--keep"]].concat();
    assert!(run(dir.path(), &bench).quietly().stdout.contains("Kept as run 1."));
    let fio = ["fio", "--keep", "--name=t", "--filename=sim:custom?iops=100", "--size=1m"];
    run(dir.path(), &fio).quietly();
    let list = run(dir.path(), &["history", "list", "--json"]).quietly().stdout;
    let list: Value = serde_json::from_str(&list).unwrap();
    let mut targets: Vec<&str> =
        list.as_array().unwrap().iter().map(|row| row["target"].as_str().unwrap()).collect();
    targets.sort_unstable();
    assert_eq!(targets, [GP2, "sim:custom?iops=100"]);
    for (run_id, text) in [("1", "a simulated volume ("), ("2", "ioengine=sim")] {
        let shown = run(dir.path(), &["history", "show", "--full", run_id]).quietly().stdout;
        assert!(shown.contains(text), "{shown}");
    }
}

#[test]
fn the_instance_that_limits_is_named() {
    let limited_by = |volume: &str| {
        let text = printed(&["bench", "--quick", volume]);
        text.lines().find_map(|line| Some(line.trim().strip_prefix("Limited by")?.trim().to_owned())).unwrap()
    };
    let on = |instance: &str| {
        limited_by(&format!("sim:aws-gp3?size=500GiB&iops=16000&bandwidth=1000MiB&instance={instance}"))
    };
    assert!(on("m6i.large").contains("after bursts the instance m6i.large"), "{}", on("m6i.large"));
    assert!(on("m5.8xlarge").contains("in bandwidth by the instance m5.8xlarge"), "{}", on("m5.8xlarge"));
}

#[test]
fn two_volumes_by_themselves_and_together() {
    let bench = document(&[
        "bench", "--quick", "--no-history", "--json", "--only=rand-read", "sim:custom?iops=1000",
        "sim:custom?iops=500",
    ]);
    let tests = bench["tests"].as_array().unwrap();
    let rates: Vec<f64> = tests.iter().map(|test| test["total"]["iops"].as_f64().unwrap().round()).collect();
    assert!(matches!(rates[..], [990.0..=1010.0, 495.0..=505.0, 1470.0..=1515.0]), "{rates:?}");
}

#[track_caller]
fn refused(dir: &Path, args: &[&str], code: i32, parts: &[&str]) {
    let ended = run(dir, args);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(code), ""), "{args:?}: {ended:?}");
    for part in parts.iter().chain(&["\n"]) {
        assert!(ended.stderr.contains(part), "{args:?} lacks {part:?}: {}", ended.stderr);
    }
    assert!(!ended.stderr.contains("internal error"), "{}", ended.stderr);
}

#[test]
fn what_cannot_be_simulated_is_refused_with_the_reason() {
    let dir = scratch();
    for (target, parts) in [
        ("sim:aws-gp9", &["unknown volume type 'aws-gp9'", "did you mean aws-gp2, aws-gp3?"][..]),
        ("sim:", &["no volume type given", "hint: use sim:ID"]),
        ("sim:custom?iosp=5", &["unknown parameter iosp; use one of size"]),
        ("sim:custom?iops=0", &["iops=0 is not a whole number above 0"]),
        ("sim:custom?iops=5&iops=6", &["iops is given twice"]),
        ("sim:aws-gp2-2016?size=50TiB", &["not available with 51200 GiB"]),
        ("sim:custom?iops=5&size=1MiB", &["has 1.0 MiB", "at least 16 MiB"]),
        ("sim:custom?stall=5", &["stall=5 is not AT+LENGTH"]),
    ] {
        for command in ["bench", "sweep", "surface"] {
            refused(dir.path(), &[command, "--no-history", target], 2, parts);
        }
        let filename = format!("--filename={target}");
        if !parts[0].contains("1.0 MiB") {
            refused(dir.path(), &["fio", "--name=t", &filename], 1, &parts[..1]);
        }
    }
    refused(dir.path(), &["monitor", "sim:custom"], 2, &["is a simulated volume", "hint: "]);
    for command in ["prepare", "sweep"] {
        refused(dir.path(), &[command, "--resume", "sim:custom"], 2, &["anew with each command"]);
    }
    refused(
        dir.path(),
        &["ping", "-c", "1", "sim:aws-gp9"],
        2,
        &["unknown volume type 'aws-gp9'", "aws-gp2"],
    );
    refused(dir.path(), &["ping", "sim:custom?iops=5"], 2, &["would never end", "-c 10"]);
    refused(dir.path(), &["ping", "-c1", "-S1g", "sim:custom?size=16MiB"], 1, &["target is too small"]);
    for command in ["bench", "sweep", "surface", "prepare"] {
        refused(dir.path(), &[command, "--buffered", "sim:custom"], 2, &["has no page cache", "hint: "]);
    }
    let mixed = ["bench", "--no-history", "sim:custom?iops=5", "."];
    refused(dir.path(), &mixed, 2, &["sim:custom?iops=5: is simulated, and . is not", "hint: "]);
    let other = ["bench", "--no-history", "--destroy-data=/dev/x", "sim:custom?iops=5"];
    refused(dir.path(), &other, 1, &["is not the target named by --destroy-data=/dev/x"]);
    refused(
        dir.path(),
        &["bench", "--no-history", "--engine=sim", "."],
        2,
        &["only serves simulated volumes"],
    );
    refused(dir.path(), &["fio", "--name=t", "--filename=sim:custom:f"], 1, &["is simulated, and f is not"]);
    let engine = ["fio", "--name=t", "--ioengine=sim", "--size=1m"];
    refused(dir.path(), &engine, 1, &["job 't': ioengine=sim", "needs a simulated volume", "filename=sim:"]);
    let backlog = ["fio", "--name=t", "--filename=sim:custom", "--rw=write", "--fdp=1"];
    refused(dir.path(), &backlog, 1, &["fdp is not supported"]);
    assert_eq!(files_in(dir.path()), [] as [&Path; 0]);
}

#[test]
fn a_ping_reports_an_offered_rate_that_the_volume_does_not_sustain() {
    let dir = scratch();
    let ping = |interval: &str| {
        let volume = "sim:custom?iops=750&latency=500us&size=1GiB";
        run(dir.path(), &["ping", "-q", "--schedule=fixed", "-i", interval, "-w", "4s", volume])
            .quietly()
            .stdout
    };
    let overloaded = ping("800us");
    assert!(overloaded.contains("not sustained: 1,250 IOPS offered, 75"), "{overloaded}");
    assert!(!ping("2ms").contains("not sustained"), "{}", ping("2ms"));
}
