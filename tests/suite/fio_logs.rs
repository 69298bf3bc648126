//! The logs and terse lines of `fathom fio` compared with Debian's fio: files, columns, amounts, fields.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

use fathom_tests::{loading, measuring_capped, must_run, need, scratch};

use crate::ours::Ours;

/// Runs with logs of every request, whose amounts are fixed.
const EACH: &[&str] = &[
    "--name=a --size=1m --rw=randread --write_lat_log=x --write_bw_log=x --write_iops_log=x",
    "--name=a --size=1m --rw=write --ioengine=libaio --iodepth=4 --write_lat_log=x --log_offset=1 --log_prio=1",
    "--name=a --size=1m --rw=randrw --numjobs=2 --write_bw_log=x --write_lat_log=y --per_job_logs=0 --disable_lat=1",
    "--name=a --size=1m --rw=read --bs=64k --write_iops_log=x --name=b --stonewall --size=2m --write_bw_log=y",
    "--name=a --size=1m --rw=read --write_lat_log=x --disable_slat=1 --log_unix_epoch=1",
];

/// Runs with logs of windows, for two seconds.
const WINDOWS: &[&str] = &[
    "--write_lat_log=x --write_bw_log=x --write_iops_log=x --log_avg_msec=500",
    "--write_lat_log=x --write_bw_log=x --log_avg_msec=500 --log_offset=1 --log_prio=1 --log_max_value=1",
    "--write_hist_log=x --log_hist_msec=500 --log_hist_coarseness=3 --write_iops_log=x --log_avg_msec=250",
];

/// The fields of the lines of logs, by the names of the logs.
type Logs = BTreeMap<String, Vec<Vec<String>>>;

/// What a program wrote.
struct Written {
    logs: Logs,
    printed: String,
}

/// The logs in `directory`.
fn logs(directory: &Path) -> Logs {
    let entries = std::fs::read_dir(directory).expect("the scratch directory is ours");
    let paths = entries.map(|entry| entry.expect("it is listed").path());
    let logs = paths.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
    logs.map(|path| {
        let text = std::fs::read_to_string(&path).expect("a log is text");
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        (name, text.lines().map(|line| line.split(", ").map(str::to_owned).collect()).collect())
    })
    .collect()
}

/// What does not depend on time: columns after the value, of every line, in order.
fn fixed(logs: &Logs) -> BTreeMap<&str, Vec<Vec<String>>> {
    let columns = |lines: &Vec<Vec<String>>| {
        let mut rest: Vec<Vec<String>> = lines.iter().map(|line| line[2..].to_vec()).collect();
        // Requests in flight together may complete in another order.
        rest.sort();
        rest
    };
    logs.iter().map(|(name, lines)| (name.as_str(), columns(lines))).collect()
}

/// Runs ours and fio with these arguments.
fn both(arguments: &str) -> [Written; 2] {
    let ours = Ours::new();
    let mut own = ours.command();
    own.arg("fio");
    [own, Command::new("fio")].map(|mut command| {
        let directory = scratch();
        let arguments = arguments.split_whitespace();
        let output = command.current_dir(directory.path()).args(arguments).stdin(Stdio::null()).output();
        let output = output.expect("it was found");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Written {
            logs: logs(directory.path()),
            printed: String::from_utf8_lossy(&output.stdout).into_owned(),
        }
    })
}

#[test]
fn logs_of_requests_are_fios() {
    need!(tool "fio");
    let _loading = loading();
    for arguments in EACH {
        // Random offsets differ; with `randrw` so does the mix.
        let [our, fios] = both(arguments).map(|written| written.logs);
        let (our, fios) = (fixed(&our), fixed(&fios));
        if arguments.contains("rand") {
            let amounts = |logs: &BTreeMap<&str, Vec<Vec<String>>>| -> Vec<(String, usize, usize)> {
                let one = |(name, lines): (&&str, &Vec<Vec<String>>)| {
                    ((*name).to_owned(), lines.len(), lines.first().map_or(0, Vec::len))
                };
                logs.iter().map(one).collect()
            };
            assert_eq!(amounts(&our), amounts(&fios), "{arguments}");
        } else {
            assert_eq!(our, fios, "{arguments}");
        }
    }
}

#[test]
fn logs_of_windows_are_fios() {
    need!(tool "fio");
    // Both keep a rate, by the clock.
    let _capped = measuring_capped();
    for windows in WINDOWS {
        let arguments =
            format!("--name=a --ioengine=null --size=1g --rw=rw --rate_iops=400 --runtime=2 {windows}");
        let [our, fios] = both(&arguments).map(|written| written.logs);
        let names = |logs: &Logs| -> Vec<String> { logs.keys().cloned().collect() };
        assert_eq!(names(&our), names(&fios), "{arguments}");
        for (name, lines) in &our {
            let columns = |lines: &Vec<Vec<String>>| lines.first().map_or(0, Vec::len);
            assert_eq!(columns(lines), columns(&fios[name]), "{arguments}: {name}");
            // fio omits what is left at the end; a busy machine delays its windows.
            assert!(
                lines.len() >= fios[name].len() && lines.len() <= fios[name].len() + 6,
                "{name}: {lines:?}"
            );
            if name.contains("_iops") || name.contains("_bw") {
                let value = |line: &Vec<String>| line[1].parse::<f64>().expect("a number");
                let mean =
                    |lines: &Vec<Vec<String>>| lines.iter().map(value).sum::<f64>() / lines.len() as f64;
                let (our, fios) = (mean(lines), mean(&fios[name]));
                assert!((our / fios - 1.0).abs() < 0.5, "{name}: {our} and {fios}");
            }
        }
    }
}

#[test]
fn terse_lines_have_fios_fields() {
    need!(tool "fio");
    let _loading = loading();
    for version in 2..=5 {
        for job in [
            "--rw=randrw --size=1m",
            "--rw=write --size=1m --description=words --continue_on_error=all",
            "--rw=randread --size=1m --percentile_list=50:99.9 --unified_rw_reporting=mixed",
            "--rw=read --size=1m --lat_percentiles=1 --clat_percentiles=0 --disk_util=0",
        ] {
            let arguments = format!("--name=a {job} --minimal --terse-version={version}");
            let [our, fios] = both(&arguments).map(|written| written.printed);
            let named = |text: &str| -> Vec<String> {
                let fields = text.lines().flat_map(|line| line.split(';'));
                fields.map(|field| field.split_once('=').map_or("", |(name, _)| name).to_owned()).collect()
            };
            assert_eq!(named(&our), named(&fios), "{arguments}:\n{our}\n{fios}");
            let amounts = |text: &str| -> Vec<String> {
                let from = if version == 2 { 1 } else { 2 };
                text.split(';').skip(from).take(3).map(str::to_owned).collect()
            };
            assert_eq!(amounts(&our), amounts(&fios), "{arguments}");
        }
    }
}

#[test]
fn compressed_logs_are_printed_as_they_were() {
    let _loading = loading();
    let (ours, directory) = (Ours::new(), scratch());
    let run = |arguments: &str| {
        let mut command = ours.command();
        command.current_dir(directory.path()).arg("fio").args(arguments.split_whitespace());
        must_run(&mut command)
    };
    let job = "--name=a --ioengine=null --filesize=64m --bs=4k --rw=write --write_bw_log=x --log_offset=1";
    run(&format!("{job} --log_store_compressed=1"));
    let compressed = std::fs::read(directory.path().join("x_bw.1.log.fz")).expect("it was written");
    let text = run("--inflate-log=x_bw.1.log.fz");
    assert!(compressed.len() * 2 < text.len(), "{} of {} bytes", compressed.len(), text.len());
    let offsets: Vec<u64> = text
        .lines()
        .map(|line| line.split(", ").nth(4).expect("five columns").parse().expect("an offset"))
        .collect();
    assert_eq!(offsets, (0..16384).map(|block| block * 4096).collect::<Vec<u64>>());
    std::fs::write(directory.path().join("x_bw.1.log.fz"), &compressed[..compressed.len() / 2])
        .expect("it is ours");
    for (name, reason) in
        [("x_bw.1.log.fz", "x_bw.1.log.fz"), ("none", "none"), ("/dev/zero", "not a regular file")]
    {
        let mut command = ours.command();
        command.current_dir(directory.path()).args(["fio", &format!("--inflate-log={name}")]);
        let refused = command.output().expect("it runs");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(refused.status.code() == Some(1) && said.contains(reason), "{name}: {said}");
    }
}

#[test]
fn debug_shows_each_request_and_leaves_documents_alone() {
    let _loading = loading();
    let (ours, directory) = (Ours::new(), scratch());
    let run = |arguments: &str| {
        let job = "--debug=io,random --name=a --filename=file --size=64k --rw=randread --bs=4k";
        let mut command = ours.command();
        command.current_dir(directory.path()).arg("fio").args(job.split(' '));
        command.args(arguments.split_whitespace()).output().expect("it runs")
    };
    let text = String::from_utf8(run("").stdout).expect("it is text");
    let offsets: BTreeSet<u64> = text
        .lines()
        .filter_map(|line| line.strip_prefix("io ")?.split_once("queue: off=0x")?.1.split_once(','))
        .map(|(offset, rest)| {
            assert_eq!(rest, "len=0x1000,ddir=0,file=file");
            u64::from_str_radix(offset, 16).expect("hexadecimal")
        })
        .collect();
    assert_eq!(offsets, (0..16).map(|block| block * 4096).collect::<BTreeSet<u64>>());
    assert!(text.contains("FIO_RAND_NR_OFFS=1") && text.contains(" rand_seeds[0]="), "{text}");
    let document = run("--output-format=json");
    serde_json::from_slice::<serde_json::Value>(&document.stdout).expect("one document");
    let traced = String::from_utf8_lossy(&document.stderr).lines().filter(|l| l.contains("queue:")).count();
    assert_eq!(traced, 16);
}
