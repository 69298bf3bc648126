//! Command lines and job files that scripts have for fio, and what they expect of them.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::{ended, program, run, scratch};

/// The jobs of the document of a run that ends well.
fn jobs(directory: &Path, arguments: &str) -> Vec<Value> {
    let arguments = format!("fio --output-format=json {arguments}");
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let document: Value = serde_json::from_str(&run(directory, &arguments).quietly().stdout).expect("JSON");
    document["jobs"].as_array().expect("a list").clone()
}

fn ios(job: &Value) -> [u64; 2] {
    ["read", "write"].map(|op| job[op]["total_ios"].as_u64().expect("a number"))
}

#[test]
fn a_job_reads_the_file_that_an_earlier_one_makes() {
    let write = "--name=w --filename=f --rw=write --size=1m";
    for (read, expected) in [
        ("--name=r --stonewall --filename=f --rw=read", 256),
        ("--name=r --wait_for=w --filename=f --rw=randread --bs=8k", 128),
        ("--name=r --stonewall --filename=f --rw=read --size=50%", 128),
        ("--name=r --stonewall --filename=f --rw=read --offset=512k", 128),
    ] {
        let dir = scratch();
        let both: Vec<[u64; 2]> = jobs(dir.path(), &format!("{write} {read}")).iter().map(ios).collect();
        assert_eq!(both, [[0, 256], [expected, 0]], "{read}");
    }
    let dir = scratch();
    let alone = ended(program(dir.path()).args("fio --name=r --filename=f".split(' ')).output().unwrap());
    assert!(alone.code == Some(1) && alone.stderr.contains("you need to specify size="), "{}", alone.stderr);
}

#[test]
fn sections_keep_their_names() {
    let dir = scratch();
    let file = "[global]\nname=all\nioengine=null\nsize=64k\n[s1]\n[s2]\nwait_for=s1\n";
    std::fs::write(dir.path().join("jobs"), file).unwrap();
    std::fs::create_dir(dir.path().join("directory")).unwrap();
    let found = jobs(dir.path(), "jobs directory");
    let names: Vec<&str> = found.iter().filter_map(|job| job["jobname"].as_str()).collect();
    assert_eq!(names, ["s1", "s2"]);
}

#[test]
fn the_number_of_the_command_line_may_be_written_as_a_fraction() {
    let dir = scratch();
    let found = jobs(dir.path(), "--name=a --ioengine=null --size=1048576.0 --bs=4096.0 --rw=read");
    assert_eq!(ios(&found[0]), [256, 0]);
}

#[test]
fn pseudo_devices_have_the_size_of_the_job_and_a_note() {
    let dir = scratch();
    for (options, expected) in [
        ("--filename=/dev/zero --rw=read --size=1m", [256, 0]),
        ("--filename=/dev/zero --rw=randread --size=1m --ioengine=io_uring --iodepth=4", [256, 0]),
        ("--filename=/dev/null --rw=write --filesize=64k --loops=2", [0, 32]),
        ("--filename=/dev/null:/dev/zero --rw=randwrite --size=1m --unlink=1", [0, 256]),
    ] {
        let arguments = format!("fio --output-format=json --name=a {options}");
        let arguments: Vec<&str> = arguments.split_whitespace().collect();
        let ended = run(dir.path(), &arguments).quietly();
        let document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
        assert_eq!(ios(&document["jobs"][0]), expected, "{options}");
        let note = document["fathom"]["notes"][0].as_str().unwrap_or_default();
        assert!(note.contains("no storage is behind it"), "{options}: {document:#}");
    }
    let full = "fio --name=a --filename=/dev/full --rw=write --size=64k";
    let full = ended(program(dir.path()).args(full.split(' ')).output().unwrap());
    assert!(full.code == Some(1) && full.stderr.contains("No space left on device"), "{}", full.stderr);
    let no_size = "fio --name=a --filename=/dev/zero --rw=read";
    let no_size = ended(program(dir.path()).args(no_size.split(' ')).output().unwrap());
    assert!(no_size.code == Some(1) && no_size.stderr.contains("you need to specify size="));
}

#[test]
fn jobs_with_a_runtime_read_back_each_pass() {
    let dir = scratch();
    for engine in ["psync", "io_uring --iodepth=8"] {
        let found = jobs(
            dir.path(),
            &format!(
                "--name=v --filename=v --size=64k --rw=randwrite --verify=crc32c --time_based --runtime=1 --ioengine={engine}"
            ),
        );
        let [reads, writes] = ios(&found[0]);
        assert!(reads >= 16 && reads <= writes && writes - reads <= 16, "{engine}: {reads} of {writes}");
    }
}

/// Requests of several sizes, passes beyond the first, and a runtime that ends one.
#[test]
fn good_data_of_any_number_of_passes_is_verified() {
    let split = "--bssplit=4k/50:8k/50";
    let deep = "--rw=randrw --bsrange=4k-16k --ioengine=io_uring --iodepth=16";
    for runs in [
        vec![format!("--io_size=1m --rw=randrw {split}")],
        vec![format!("--io_size=1m --rw=rw {split}")],
        vec![format!("--io_size=1m {deep}")],
        vec![format!("--rw=randwrite {split} --loops=2 --do_verify=0"), format!("--rw=randread {split}")],
        vec![
            "--rw=randwrite --percentage_random=50 --loops=3".to_owned(),
            "--rw=randread --percentage_random=50".to_owned(),
        ],
        vec![
            format!("--rw=randwrite {split} --time_based --runtime=200ms"),
            format!("--rw=randread {split}"),
        ],
        // The runtime ends the second pass in its middle.
        vec![
            "--rw=write --bs=16k --time_based --runtime=700ms --rate_iops=,40".to_owned(),
            "--rw=write --bs=16k --verify_only".to_owned(),
            "--rw=write --bs=16k --verify_only --time_based --runtime=100ms".to_owned(),
        ],
    ] {
        let dir = scratch();
        for run in &runs {
            let job = format!("--name=a --filename=v --size=256k --verify=crc32c {run}");
            let [reads, writes] = ios(&jobs(dir.path(), &job)[0]);
            assert!(reads > 0 || run.contains("do_verify=0") && writes > 0, "{run}");
        }
    }
}

/// The rate of a read-back is not that of the job.
#[test]
fn least_rates_are_those_of_writes_and_not_of_the_read_back() {
    let dir = scratch();
    let job = |iops, more: &str| {
        let volume = format!("sim:custom?iops={iops}&latency=1ms&size=1g");
        let job = "--size=2m --bs=4k --rw=write --verify=crc32c --rate_min=100k";
        let line = format!("fio --output-format=json --name=a --filename={volume} {job} {more}");
        ended(program(dir.path()).args(line.split_whitespace()).output().unwrap())
    };
    for more in ["", "--time_based --runtime=30"] {
        let held = job(100, more);
        assert_eq!(held.code, Some(0), "{}", held.stdout);
    }
    let failed = job(20, "");
    assert!(
        failed.code == Some(1) && failed.stdout.contains("rate_min=102400B/s not met"),
        "{}",
        failed.stdout
    );
}

#[test]
fn a_later_job_reads_back_what_a_saved_state_counts() {
    let dir = scratch();
    let job = "--name=a --filename=v --size=256k --verify=crc32c";
    jobs(dir.path(), &format!("{job} --rw=randwrite --do_verify=0 --number_ios=30"));
    let found = jobs(dir.path(), &format!("{job} --rw=randread --verify_state_load=1"));
    assert_eq!(ios(&found[0]), [30, 0]);
    for more in ["--loops=2", "--time_based --runtime=1"] {
        let found = jobs(dir.path(), &format!("{job} --rw=randread --verify_state_load=1 {more}"));
        assert_eq!(ios(&found[0]), [30, 0], "{more}");
    }
    let mixed = format!("fio {job} --rw=randread --verify_state_load=1 --bssplit=4k/50:8k/50");
    let refused = ended(program(dir.path()).args(mixed.split(' ')).output().unwrap());
    assert!(refused.code == Some(1) && refused.stderr.contains("one size"), "{}", refused.stderr);
}

#[test]
fn read_only_runs_make_and_extend_no_file() {
    let dir = scratch();
    std::fs::write(dir.path().join("short"), vec![1; 4096]).unwrap();
    for name in ["none", "short"] {
        let arguments = format!("fio --name=a --filename={name} --size=64k --rw=read --readonly");
        let refused = ended(program(dir.path()).args(arguments.split(' ')).output().unwrap());
        assert!(refused.code == Some(1) && refused.stderr.contains("--readonly"), "{}", refused.stderr);
    }
    assert!(!dir.path().join("none").exists());
    assert_eq!(std::fs::metadata(dir.path().join("short")).unwrap().len(), 4096);
}

/// A shell starts background jobs with SIGINT ignored, and scripts end fio by it all the same.
#[test]
fn sigint_ends_a_job_in_the_background_of_a_script() {
    let dir = scratch();
    let fio = program(dir.path());
    let script = format!(
        "{} fio --name=a --ioengine=null --size=1m --time_based --runtime=600 --rate_iops=100 --eta=always --eta-newline=1 >out & \
         for i in $(seq 600); do grep -q eta out && break; sleep 0.1; done; kill -INT $!; wait $!",
        fio.get_program().display()
    );
    let mut shell = Command::new("sh");
    shell.current_dir(dir.path()).args(["-c", &script]);
    for (name, value) in fio.get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    let ended = shell.output().unwrap();
    assert_eq!(ended.status.code(), Some(128), "{}", String::from_utf8_lossy(&ended.stderr));
    let text = std::fs::read_to_string(dir.path().join("out")).unwrap();
    assert!(text.contains("fio: terminating on signal 2") && text.contains("read: IOPS="), "{text}");
}
