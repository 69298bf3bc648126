//! The output of `fathom fio` compared with Debian's fio for the same arguments: lines, keys, types and amounts.
//!
//! Numbers differ from run to run; their places must not. Where the version of fio that is spoken here prints other
//! words than Debian's, the difference is in a table below.

use std::process::{Command, Output};

use fathom_tests::{FioReport, loading, need, scratch};
use serde_json::Value;
use tempfile::TempDir;

use crate::ours::Ours;

/// A job file with shared options, two jobs, and a wall between them.
const JOB_FILE: &str = "[global]\nfilename=test\nsize=4m\nbs=4k\ndirect=1\nioengine=libaio\niodepth=8\n\n\
                        [first]\nrw=randwrite\n\n[second]\nstonewall\nrw=randread\n";

/// Commands whose amounts of I/O are fixed. `existing` is a file of 16 MiB, `jobs` is [`JOB_FILE`].
const FIXED: &[&str] = &[
    "-randrepeat=1 -ioengine=libaio -direct=1 -gtod_reduce=1 -name=test -filename=test -bs=4k -iodepth=64 -size=16M \
     -readwrite=randrw -rwmixread=75",
    "--name=bw-test --filename=existing --direct=1 --ioengine=libaio --rw=randwrite --bs=1m --iodepth=32",
    "--name=rand-r --filename=existing --direct=1 --ioengine=libaio --rw=randread --bs=4k --iodepth=128",
    "--name=rand-w --filename=existing --direct=1 --ioengine=libaio --rw=randwrite --bs=4k --iodepth=128",
    "--name=lat-read --filename=existing --direct=1 --ioengine=libaio --rw=randread --bs=4k --iodepth=1 --runtime=60",
    "--name=lat-write --filename=existing --direct=1 --ioengine=libaio --rw=randwrite --bs=4k --iodepth=1",
    "--name=seq-write --directory=. --direct=1 --ioengine=libaio --rw=write --bs=128k --numjobs=8 --size=1m \
     --refill_buffers --group_reporting --runtime=60",
    "--name=rand-read --directory=. --direct=1 --ioengine=libaio --rw=randread --bs=4k --numjobs=8 --size=1m \
     --group_reporting",
    "jobs",
    "--name=three --filename=existing --rw=read --bs=64k --direct=1 --numjobs=3 --size=4m",
    "--name=synced --filename=existing --rw=write --bs=4k --ioengine=psync --fsync=1 --size=512k",
    "--name=data --filename=existing --rw=randwrite --bs=4k --ioengine=psync --fdatasync=8 --size=512k",
    "--name=list --filename=existing --rw=randread --bs=4k --direct=1 --percentile_list=50:99:99.9",
    "--name=lat --filename=existing --rw=randread --bs=4k --direct=1 --lat_percentiles=1 --clat_percentiles=0",
    "--name=none --filename=existing --rw=randread --bs=4k --direct=1 --clat_percentiles=0",
    "--filename=existing --direct=1 --bs=16k --name=a --rw=read --thread --name=b --rw=randread --iodepth=4 \
     --ioengine=io_uring --stonewall",
    "--name=twice --filename=existing --rw=randread --bs=4k --direct=1 --loops=2 --size=2m --description=again",
    "--name=buffered --filename=existing --rw=write --bs=4k --end_fsync=1 --offset=1m --size=2m",
    "--name=part --filename=existing --rw=randread --bs=4k --direct=1 --io_size=1m --size=8m",
    "--name=tolerant --filename=existing --rw=read --bs=4k --direct=1 --continue_on_error=all --size=1m",
    "--name=mixed --filename=existing --rw=write --bs=4k --direct=1 --unified_rw_reporting=both --size=1m",
    "--name=figures --filename=existing --rw=read --bs=4k --direct=1 --significant_figures=6 --unit_base=1 --size=1m",
    "--name=no-disks --filename=existing --rw=read --bs=4k --direct=1 --disk_util=0 --size=1m",
];

/// Commands that end with their time, so that their bandwidth and IOPS lines are there and their amounts differ.
const TIMED: &[&str] = &[
    "--name=timed --filename=existing --rw=randrw --rwmixread=70 --bs=4k --direct=1 --ioengine=libaio --iodepth=16 \
     --time_based --runtime=2",
    "--name=ramped --filename=existing --rw=randread --bs=4k --direct=1 --ioengine=io_uring --iodepth=4 --time_based \
     --runtime=2 --ramp_time=1 --numjobs=2 --group_reporting",
];

/// Where 3.33 prints other words than 3.42.
const NEWER_WORDS: [(&str, &str); 3] = [
    ("; 0 zone resets", ""),
    ("fsync/fdatasync/sync_file_range:", "fsync/fdatasync/sync_file_range/syncfs:"),
    ("target=0, window=0,", "target=0.00ns, window=0.00ns,"),
];

/// A directory to run in, with what the commands name.
fn place() -> TempDir {
    let directory = scratch();
    std::fs::write(directory.path().join("jobs"), JOB_FILE).expect("the scratch directory is ours");
    let noise: Vec<u8> = (0..16 << 20).map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::write(directory.path().join("existing"), noise).expect("the scratch directory has room");
    directory
}

fn run(mut command: Command, arguments: &str, directory: &TempDir, formats: &str) -> Output {
    command.arg(format!("--output-format={formats}")).arg("--eta=never").current_dir(directory.path());
    let output = command.args(arguments.split_whitespace()).output().expect("it was found");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments}: {} {said}", output.status);
    output
}

fn own(ours: &Ours, arguments: &str, directory: &TempDir, formats: &str) -> Output {
    let mut command = ours.command();
    command.arg("fio");
    let output = run(command, arguments, directory, formats);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments}: stderr");
    output
}

/// `line` with N for every number and its unit, and without the padding before it.
fn shape(line: &str) -> String {
    let mut shape = String::new();
    let mut rest = line.chars().peekable();
    while let Some(character) = rest.next() {
        let follows_a_word =
            shape.chars().next_back().is_some_and(|last| last.is_alphabetic() || last == '_');
        if !character.is_ascii_digit() || follows_a_word {
            shape.push(character);
            continue;
        }
        while rest.next_if(|next| next.is_ascii_digit() || *next == '.').is_some() {}
        while rest.next_if(char::is_ascii_alphabetic).is_some() {}
        let without_padding = shape.trim_end_matches(' ');
        if without_padding.ends_with(['=', '[']) {
            shape.truncate(without_padding.len());
        }
        shape.push('N');
    }
    for unit in ["nsec", "usec", "msec", "  KiB/s", "KiB/s", "  MiB/s", "MiB/s"] {
        shape = shape.replace(&format!("({unit})"), "(U)");
    }
    shape.replace("N/s", "N")
}

/// The shapes of a report's lines; what depends on the values only (which row of a table a number falls in) is one.
fn shapes(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    // A file that is only written needs no content beforehand: fio prints a line about its layout, fathom does not.
    for line in text.lines().filter(|line| !line.contains(": Laying out IO file")) {
        let line = NEWER_WORDS.iter().fold(line.to_owned(), |line, (old, new)| line.replace(old, new));
        let shape = if line.starts_with("     |") {
            // Percentiles: how many stand in a row depends on their width.
            let labels = line.match_indices("th=[").count();
            let before =
                lines.last().and_then(|last| last.strip_prefix("percentiles: ")?.parse::<usize>().ok());
            let Some(before) = before else {
                lines.push(format!("percentiles: {labels}"));
                continue;
            };
            lines.pop();
            format!("percentiles: {}", before + labels)
        } else if line.starts_with("  lat (") {
            "  lat (U): ...".to_owned()
        } else if let Some((before, _)) = line.split_once(": pid=") {
            shape(&format!("{before}: pid=DATE"))
        } else if let Some((before, after)) = line.split_once("sectors=") {
            shape(&format!("{before}{}", after.split_once(", ").expect("more follows").1))
        } else {
            shape(&line)
        };
        if lines.last() != Some(&shape) || !shape.starts_with("  lat (U)") {
            lines.push(shape);
        }
    }
    lines
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "str",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "int",
        other => panic!("fio prints no {other}"),
    }
}

/// Every path of a document with the kind of its value; items of a list by number, so that their count is compared too.
fn paths(value: &Value, prefix: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            map.iter().for_each(|(key, value)| paths(value, &format!("{prefix}/{key}"), found));
        }
        Value::Array(items) => {
            items
                .iter()
                .zip(0..)
                .for_each(|(item, number)| paths(item, &format!("{prefix}/{number}"), found));
        }
        leaf => found.push(format!("{prefix} | {}", kind(leaf))),
    }
}

/// The options of each job that have a value; some of those that are only named are missing in 3.33.
fn options(document: &Value) -> Vec<Value> {
    let jobs = document["jobs"].as_array().expect("jobs");
    let mut options: Vec<Value> = jobs.iter().map(|job| job["job options"].clone()).collect();
    for options in &mut options {
        options.as_object_mut().expect("options have names").retain(|_, value| value != "");
    }
    options
}

/// The amounts of each job: requests and bytes of each operation, and syncs.
fn amounts(document: &Value, arguments: &str) -> Vec<String> {
    let is_mixed = arguments.contains("randrw");
    let jobs = document["jobs"].as_array().expect("jobs");
    jobs.iter()
        .map(|job| {
            let count = |op: &str, key: &str| job[op][key].as_u64().expect("fio counts integers");
            let ops = ["read", "write", "trim"].map(|op| (count(op, "total_ios"), count(op, "io_bytes")));
            // Which of a mix come as reads is each program's own choice.
            let ops = if is_mixed {
                vec![ops.iter().fold((0, 0), |sum, op| (sum.0 + op.0, sum.1 + op.1))]
            } else {
                ops.to_vec()
            };
            let syncs = &job["sync"]["lat_ns"]["N"];
            let (name, group, error) = (&job["jobname"], &job["groupid"], &job["error"]);
            format!("{name} group {group} error {error} {ops:?} {syncs} syncs")
        })
        .collect()
}

/// The text and the document of a run that printed both: the document stands between the banner and the results.
fn split(output: &Output) -> (String, Value) {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let (banner, rest) = stdout.split_once("\n{\n").unwrap_or_else(|| panic!("no document in {stdout}"));
    let (document, results) = rest.split_once("\n}\n").unwrap_or_else(|| panic!("no end in {stdout}"));
    let document = serde_json::from_str(&format!("{{{document}}}")).expect("it is JSON");
    (format!("{banner}\n{results}"), document)
}

/// The lines of the two texts have the same shapes.
fn check_text(arguments: &str, our: &str, fios: &str) {
    // A fixed amount takes as long as it takes: whether that gives a window of half a second is the disk's doing.
    let has_windows = |line: &String| line.starts_with("   bw (U)") || line.starts_with("   iops ");
    let shapes = |text: &str| {
        let mut lines = shapes(text);
        lines.retain(|line| TIMED.contains(&arguments) || !has_windows(line));
        lines
    };
    // Our own notes come last, such as one of others' I/O where the disk is busy.
    let our = our.split("\nfathom notes:\n").next().unwrap_or(our);
    let both = format!("{arguments}:\nOURS\n{our}\nFIO\n{fios}");
    for (index, (our_shape, fios_shape)) in shapes(our).into_iter().zip(shapes(fios)).enumerate() {
        assert_eq!(our_shape, fios_shape, "line {} of {both}", index + 1);
    }
    assert_eq!(shapes(our).len(), shapes(fios).len(), "{both}");
}

/// Ours has every key of fio's, with a value of the same type.
fn check_keys(arguments: &str, our: &Value, fios: &Value) {
    let [our_paths, mut fios_paths] = [our, fios].map(|document| {
        let mut found = Vec::new();
        paths(document, "", &mut found);
        found
    });
    let has_bins = |paths: &[String]| paths.iter().any(|path| path.contains("/bins/"));
    assert_eq!(has_bins(&our_paths), has_bins(&fios_paths), "{arguments}: bins");
    // The set of bins depends on the measurement.
    fios_paths.retain(|path| !path.contains("/bins/") && !our_paths.contains(path));
    assert_eq!(fios_paths, Vec::<String>::new(), "{arguments}: missing or of another type");
}

#[test]
fn every_command_prints_the_same_as_fio() {
    need!(tool "fio");
    let _loading = loading();
    let (ours, our_place, fios_place) = (Ours::new(), place(), place());
    for arguments in FIXED.iter().chain(TIMED) {
        let (our_text, our) = split(&own(&ours, arguments, &our_place, "normal,json"));
        let (fios_text, fios) = split(&run(Command::new("fio"), arguments, &fios_place, "normal,json"));
        check_text(arguments, &our_text, &fios_text);
        check_keys(arguments, &our, &fios);
        assert_eq!(options(&our), options(&fios), "{arguments}");
        assert_eq!(our["global options"], fios["global options"], "{arguments}");
        if FIXED.contains(arguments) {
            assert_eq!(amounts(&our, arguments), amounts(&fios, arguments), "{arguments}");
        }
    }
}

#[test]
fn the_document_with_bins_has_fios_keys() {
    need!(tool "fio");
    let _loading = loading();
    let (ours, our_place, fios_place) = (Ours::new(), place(), place());
    for arguments in [FIXED[8], FIXED[10], FIXED[13]] {
        let our = own(&ours, arguments, &our_place, "json+").stdout;
        let our: Value = serde_json::from_slice(&our).expect("one document and nothing else");
        let fios = FioReport::read(&run(Command::new("fio"), arguments, &fios_place, "json+"));
        check_keys(arguments, &our, &fios.document);
    }
}

#[test]
fn stdout_is_one_document_and_nothing_else() {
    let _loading = loading();
    let (ours, directory) = (Ours::new(), place());
    for arguments in [FIXED[0], FIXED[6], FIXED[8], FIXED[15]] {
        let output = own(&ours, arguments, &directory, "json");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!("{arguments}: {error}: {}", String::from_utf8_lossy(&output.stdout))
        });
        assert!(document["jobs"].is_array());
    }
}

#[test]
fn an_output_file_gets_the_report_and_stdout_stays_empty() {
    let _loading = loading();
    let (ours, directory) = (Ours::new(), place());
    for arguments in [FIXED[0], FIXED[8]] {
        let with_file = format!("{arguments} --output=report");
        let output = own(&ours, &with_file, &directory, "json");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{arguments}");
        let report = std::fs::read(directory.path().join("report")).expect("the report is in its file");
        let document: Value = serde_json::from_slice(&report).expect("one document and nothing else");
        assert!(document["jobs"].is_array());
        let text = own(&ours, &with_file, &directory, "normal");
        assert_eq!(String::from_utf8_lossy(&text.stdout), "", "{arguments}");
        let report = std::fs::read_to_string(directory.path().join("report")).expect("it was written anew");
        assert!(report.contains("Run status group 0 (all jobs):"), "{report}");
    }
}
