//! What scripts rely on under the name `fio`: streams, documents, codes, files left behind.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{ended, files_in, program, run, scratch};

const JOB: [&str; 5] = ["fio", "--name=a", "--filename=f", "--size=1m", "--rw=randrw"];

fn with<'a>(extra: &[&'a str]) -> Vec<&'a str> {
    JOB.iter().copied().chain(extra.iter().copied()).collect()
}

#[test]
fn text_goes_to_standard_output() {
    let dir = scratch();
    let first = run(dir.path(), &JOB).quietly().stdout;
    for part in [
        "a: (g=0): rw=randrw, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=psync, iodepth=1\n",
        "fio-3.42\nStarting 1 process\na: Laying out IO file (1 file / 1MiB)\n",
        "a: (groupid=0, jobs=1): err= 0: pid=",
        "Run status group 0 (all jobs):\n",
    ] {
        assert!(first.contains(part), "{part:?} is not in {first}");
    }
    let second = run(dir.path(), &JOB).quietly().stdout;
    assert!(!second.contains("Laying out"), "{second}");
}

#[test]
fn json_is_one_document_and_nothing_else() {
    let dir = scratch();
    for format in ["json", "json+"] {
        let ended = run(dir.path(), &with(&["--output-format", format])).quietly();
        let document: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(document["fio version"], "fio-3.42");
        let job = &document["jobs"][0];
        let ios = |op: &str| job[op]["total_ios"].as_u64().unwrap();
        assert_eq!((job["jobname"].as_str(), ios("read") + ios("write")), (Some("a"), 256));
        assert_eq!(job["read"]["clat_ns"]["bins"].is_object(), format == "json+");
    }
}

#[test]
fn output_goes_to_the_file_asked_for() {
    let dir = scratch();
    let ended = run(dir.path(), &with(&["--output=out", "--output-format=json"])).quietly();
    assert_eq!(ended.stdout, "");
    let text = std::fs::read_to_string(dir.path().join("out")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["jobs"][0]["error"], 0);
    let ended = run(dir.path(), &with(&["--output=out"])).quietly();
    assert_eq!(ended.stdout, "");
    assert!(std::fs::read_to_string(dir.path().join("out")).unwrap().starts_with("a: (g=0): rw=randrw"));
}

#[test]
fn several_formats_come_out_in_fios_order() {
    let dir = scratch();
    let text = run(dir.path(), &with(&["--output-format=normal,json"])).quietly().stdout;
    let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part:?} is not in {text}"));
    assert!(place("Starting 1 process") < place("{\n") && place("\n}\n") < place("Run status group 0"));
}

#[test]
fn a_run_that_cannot_begin_still_gives_a_document() {
    let dir = scratch();
    let ended = run(
        dir.path(),
        &["fio", "--name=a", "--filename=/dev/no/such/f", "--size=1m", "--output-format=json"],
    );
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("/dev/no/such/f"));
    assert_eq!(serde_json::from_str::<Value>(&ended.stdout).unwrap()["jobs"], Value::Array(Vec::new()));
}

#[test]
fn questions_are_answered_without_a_job() {
    let dir = scratch();
    let answer = |args: &[&str]| run(dir.path(), args).quietly().stdout;
    assert_eq!(answer(&["fio", "--version"]), "fio-3.42\n");
    assert!(answer(&["fio", "--help"]).contains("--output-format"));
    assert!(answer(&["fio", "--cmdhelp=iodepth"]).contains("iodepth"));
    assert!(answer(&["fio", "--cmdhelp"]).contains("ramp_time"));
    let engines = answer(&["fio", "--enghelp"]);
    for engine in ["io_uring", "libaio", "psync", "mmap", "null"] {
        assert!(engines.lines().any(|line| line.trim() == engine), "{engines}");
    }
    assert_eq!(answer(&with(&["--parse-only"])), "");
    let shown = answer(&with(&["--showcmd"]));
    assert_eq!(shown, "fio --name=a --filename=f --size=1m --rw=randrw\n");
    assert_eq!(files_in(dir.path()).len(), 0);
}

#[test]
fn directories_of_file_names_are_made_and_those_of_directory_are_not() {
    let dir = scratch();
    let fio = |more: &[&str]| run(dir.path(), &[&["fio", "--size=64k", "--rw=write"], more].concat());
    fio(&["--name=a", "--filename=b/c/d"]).quietly();
    fio(&["--name=e/f"]).quietly();
    fio(&["--name=null", "--ioengine=null", "--filename=g/h"]).quietly();
    let made = ["b", "b/c", "b/c/d", "e", "e/f.0.0"].map(|name| dir.path().join(name));
    assert_eq!(files_in(dir.path()), made);
    for (word, part) in
        [("--directory=g", "g: is not a directory"), ("--filename=/dev/no-such/a", "create /dev/no-such/a")]
    {
        let ended = fio(&["--name=a", word]);
        assert_eq!(ended.code, Some(1), "{}", ended.stdout);
        assert!(ended.stderr.contains(part), "{}", ended.stderr);
    }
    assert_eq!(files_in(dir.path()), made);
}

#[test]
fn states_of_verification_count_the_workers_of_all_jobs() {
    let dir = scratch();
    let jobs = ["--name=a", "--numjobs=2", "--name=b", "--rw=write", "--bs=8k"];
    let fio = |more: &[&str]| {
        let common = ["fio", "--verify=crc32c", "--size=64k", "--rw=write"];
        run(dir.path(), &[&common, more, &jobs].concat()).quietly()
    };
    fio(&[]);
    let files = files_in(dir.path()).into_iter();
    let states = files.filter(|path| path.extension().is_some_and(|ending| ending == "state"));
    let names = ["a-0", "a-1", "b-2"].map(|name| dir.path().join(format!("local-{name}-verify.state")));
    assert_eq!(states.collect::<Vec<_>>(), names);
    let again = fio(&["--verify_only", "--verify_state_load=1", "--output-format=json"]);
    let document: Value = serde_json::from_str(&again.stdout).unwrap();
    let reads = document["jobs"].as_array().unwrap().iter().map(|job| &job["read"]["total_ios"]);
    assert_eq!(reads.collect::<Vec<_>>(), [16, 16, 8]);
}

#[test]
fn a_job_file_and_standard_input_are_the_same() {
    let dir = scratch();
    let text = "[global]\nsize=256k\nfilename=f\n[one]\nrw=write\n[two]\nstonewall\nrw=read\n";
    std::fs::write(dir.path().join("jobs.fio"), text).unwrap();
    let names = |stdout: &str| -> Vec<String> {
        let document: Value = serde_json::from_str(stdout).unwrap();
        let jobs = document["jobs"].as_array().unwrap();
        jobs.iter().map(|job| format!("{} {}", job["jobname"].as_str().unwrap(), job["groupid"])).collect()
    };
    let expected = ["one 0", "two 1"];
    assert_eq!(
        names(&run(dir.path(), &["fio", "jobs.fio", "--output-format=json"]).quietly().stdout),
        expected
    );
    let only = run(dir.path(), &["fio", "--section=two", "jobs.fio", "--output-format=json"]).quietly();
    assert_eq!(names(&only.stdout), ["two 0"]);
    let mut child = program(dir.path())
        .args(["fio", "--output-format=json", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
    assert_eq!(names(&ended(child.wait_with_output().unwrap()).quietly().stdout), expected);
}

#[test]
fn called_fio_it_is_fio() {
    let dir = scratch();
    let link = dir.path().join("fio");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_fathom"), &link).unwrap();
    let output = Command::new(&link).arg("--version").output().unwrap();
    assert_eq!(ended(output).quietly().stdout, "fio-3.42\n");
    let output = Command::new(&link).args(&JOB[1..]).current_dir(dir.path()).output().unwrap();
    assert!(ended(output).quietly().stdout.contains("Run status group 0"));
}

#[test]
fn progress_is_shown_where_it_is_asked_for() {
    let dir = scratch();
    let timed = with(&["--time_based", "--runtime=1s", "--eta=always", "--eta-interval=250ms"]);
    let shown = run(dir.path(), &timed).quietly().stdout;
    assert!(shown.contains("\r") && shown.contains("Jobs: 1 (f=1): [m(1)]"), "{shown}");
    assert!(!run(dir.path(), &JOB).quietly().stdout.contains("Jobs: "));
    let json = with(&["--time_based", "--runtime=1s", "--eta=always", "--output-format=json"]);
    serde_json::from_str::<Value>(&run(dir.path(), &json).quietly().stdout).unwrap();
}

#[test]
fn failed_jobs_are_counted_in_the_exit_code() {
    let dir = scratch();
    let limited = |jobs: &str| {
        let mut command = Command::new("sh");
        // A file that may not grow fails its writes with EFBIG, and SIGXFSZ is ignored as a shell's child inherits it.
        let line = format!(
            "trap '' XFSZ; ulimit -f 64; exec {} fio --name=a --size=1m --rw=write --fallocate=none --numjobs={jobs}",
            env!("CARGO_BIN_EXE_fathom")
        );
        ended(command.args(["-c", &line]).current_dir(dir.path()).output().unwrap())
    };
    for jobs in ["1", "3"] {
        let ended = limited(jobs);
        assert_eq!(ended.code, jobs.parse().ok(), "{ended:?}");
        assert!(ended.stdout.contains("err=27"), "{}", ended.stdout);
        assert!(ended.stderr.contains("fio: io_u error on file a."), "{}", ended.stderr);
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let dir = scratch();
    let mut child =
        program(dir.path()).args(JOB).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn an_output_that_is_full_is_a_failure() {
    let dir = scratch();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = program(dir.path()).args(JOB).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("cannot write to standard output: No space left"), "{stderr}");
}

#[test]
fn nothing_is_kept_unless_asked() {
    let dir = scratch();
    run(dir.path(), &JOB).quietly();
    assert!(!dir.path().join("home").exists());
    run(dir.path(), &with(&["--keep"])).quietly();
    let listed = run(dir.path(), &["history", "list", "--json"]).quietly().stdout;
    let rows: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((rows[0]["kind"].as_str(), rows[0]["status"].as_str()), (Some("fio"), Some("complete")));
    let output = program(dir.path()).args(JOB).env("FATHOM_HISTORY", "mine.db").output().unwrap();
    ended(output).quietly();
    let listed = run(dir.path(), &["history", "list", "--json", "--history", "mine.db"]).quietly().stdout;
    assert_eq!(serde_json::from_str::<Value>(&listed).unwrap().as_array().unwrap().len(), 1);
}

#[test]
fn a_history_that_cannot_be_used_is_a_note_in_the_report() {
    let dir = scratch();
    std::fs::write(dir.path().join("junk.db"), "this is no database, and long enough to be none").unwrap();
    let output = program(dir.path()).args(JOB).env("FATHOM_HISTORY", "junk.db").output().unwrap();
    let silent = ended(output).quietly();
    assert!(!silent.stdout.contains("junk.db"), "a script reads fio's lines alone: {}", silent.stdout);
    let output =
        program(dir.path()).args(with(&["--advise"])).env("FATHOM_HISTORY", "junk.db").output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains("fathom notes:") && told.contains("junk.db"), "{told}");
    assert_eq!(std::fs::read(dir.path().join("junk.db")).unwrap()[..7], *b"this is");
}
