//! Programs that drive a `fio` binary and read its reports and logs run unmodified with ours in its place.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fathom_tests::{FioReport, fathom, fathom_named, loading, must_run, need, scratch, skip};
use serde_json::Value;

/// Where the gate installs Python packages.
fn packages() -> Option<PathBuf> {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/python-readers");
    packages.join("fio_plot").exists().then_some(packages)
}

/// A module of Python with our binary in front of Debian's fio.
fn module(packages: &Path, directory: &Path, name: &str, arguments: &str) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("python3");
    command.current_dir(directory).env("PYTHONPATH", packages).env("MPLCONFIGDIR", directory);
    command.env("PATH", format!("{}:{path}", directory.join("bin").display()));
    command.args(["-m", name]).args(arguments.split_whitespace());
    command
}

/// Plots of fio-plot, each from other files: bars and lines of reports, lines of logs, histograms.
const PLOTS: [&str; 4] = [
    "-L -t iops -r randread -d 1 4 -n 1",
    "-l -r randread -d 1 4 -n 1",
    "-g -r randread -t bw iops lat -d 1 4 -n 1",
    "-H -r randread -d 4 -n 1",
];

#[test]
fn bench_fio_runs_and_fio_plot_draws() {
    need!(tool "pip3", tool "python3");
    let Some(packages) = packages() else {
        return skip("needs the Python packages that cargo xtask test installs");
    };
    let _loading = loading();
    let scratch = scratch();
    let directory = scratch.path();
    std::fs::create_dir(directory.join("bin")).expect("the scratch directory is ours");
    fathom_named(&directory.join("bin"), "fio");
    std::fs::write(directory.join("file"), vec![7; 8 << 20]).expect("there is room");
    let benchmark = "--target file --type file --size 8m --mode randread --iodepth 1 4 --numjobs 1 --time-based \
                     --runtime 4 --output out --quiet";
    must_run(&mut module(&packages, directory, "bench_fio", benchmark));
    let reports = directory.join("out/file/4k");
    for depth in [1, 4] {
        assert!(reports.join(format!("randread-{depth}-1.json")).exists(), "depth {depth}");
        let log = reports.join(format!("randread-iodepth-{depth}-numjobs-1_bw.1.log"));
        let text = std::fs::read_to_string(&log).expect("a log of every job");
        assert!(text.lines().count() >= 4, "{text}");
    }
    for (number, plot) in PLOTS.iter().enumerate() {
        let arguments =
            format!("-i {} -T title --source here {plot} -o plot-{number}.png", reports.display());
        must_run(&mut module(&packages, directory, "fio_plot", &arguments));
        let drawn = std::fs::metadata(directory.join(format!("plot-{number}.png")));
        assert!(drawn.is_ok_and(|file| file.len() > 10_000), "{plot}");
    }
}

/// Command lines as scripts and manuals of providers have them, on small files: sync latency of etcd, journals, volumes of clouds,
/// claims of Kubernetes, mixes of databases, and reports by terse fields.
const COMMAND_LINES: &[&str] = &[
    "--rw=write --ioengine=sync --fdatasync=1 --directory=. --size=110k --bs=2300 --name=wal --output-format=json",
    "--filename=f --direct=1 --sync=1 --rw=write --bs=4k --iodepth=1 --number_ios=50 --group_reporting --name=journal \
     --output-format=json",
    "--name=rw --ioengine=libaio --rw=randrw --rwmixread=50 --bs=4k --iodepth=64 --numjobs=2 --size=1M --gtod_reduce=1 --direct=1 \
     --filename=f --group_reporting --minimal",
    "--name=volume --filename=f --filesize=1M --time_based --ramp_time=500ms --runtime=500ms --ioengine=libaio --direct=1 \
     --randrepeat=0 --verify=0 --bs=64K --iodepth=8 --rw=write --iodepth_batch_submit=8 --iodepth_batch_complete_max=8 \
     --output-format=json",
    "--filename=f --direct=1 --rw=randread --bs=4k --ioengine=libaio --iodepth=256 --runtime=500ms --numjobs=4 --time_based \
     --group_reporting --name=iops --eta-newline=1 --readonly --output-format=json",
    "--randrepeat=0 --verify=0 --ioengine=libaio --direct=1 --gtod_reduce=1 --name=claim --filename=f --bs=4K --iodepth=16 --size=1M \
     --readwrite=randread --time_based --runtime=500ms --output-format=json",
    "--name=database --directory=. --nrfiles=4 --filesize=256k --rw=randrw --rwmixread=70 --bssplit=4k/10:8k/80:16k/10 \
     --ioengine=libaio --iodepth=8 --fsync=16 --output-format=json",
    "--name=global --filename=f --direct=1 --name=first --stonewall --rw=randread --blocksize=16k --iodepth=8 --size=100% \
     --name=second --stonewall --rw=randread --bs=4k --percentile_list=1:50:99.9 --output-format=json+",
    "--name=ours --filename=f --ioengine=io_uring --rw=randread --bs=4k --iodepth=8 --number_ios=500 --cmdprio_percentage=50 \
     --cmdprio_class=2 --cmdprio=1 --output-format=json+",
    "--name=saved --filename=f --rw=write --bs=64k --size=512k --verify=crc32c --aux-path=. --output-format=json",
    "--name=terse --filename=f --rw=rw --bs=64k --size=512k --minimal --terse-version=5",
    // fio also refuses to offload an engine that it cannot, but sometimes hangs while doing so.
    "--name=bad --filename=f --rw=read --size=1m --ioengine=nonexistent",
];

fn run(mut program: Command, line: &str) -> Output {
    let directory = scratch();
    std::fs::write(directory.path().join("f"), vec![7; 1 << 20]).expect("there is room");
    program.args(line.split_whitespace()).current_dir(directory.path());
    program.output().expect("it can be run")
}

/// Paths of a document with their types; the values of histograms are one.
fn typed_paths(value: &Value, prefix: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let is_bin = prefix.ends_with("/bins");
                typed_paths(value, &format!("{prefix}/{}", if is_bin { "*" } else { key }), found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| typed_paths(item, &format!("{prefix}/*"), found)),
        Value::Number(number) => {
            let kind = if number.is_f64() { "float" } else { "integer" };
            found.insert(format!("{prefix} {kind}"));
        }
        _ => _ = found.insert(prefix.to_owned()),
    }
}

#[test]
fn command_lines_of_scripts_have_fios_exit_status_and_fields() {
    need!(tool "fio");
    let _loading = loading();
    let home = scratch();
    for line in COMMAND_LINES {
        let mut program = fathom(home.path());
        program.arg("fio");
        let (ours, fios) = (run(program, line), run(Command::new("fio"), line));
        assert_eq!(
            ours.status.code(),
            fios.status.code(),
            "{line}: {}",
            String::from_utf8_lossy(&ours.stderr)
        );
        if line.contains("json") {
            let paths = |output: &Output| {
                let mut found = BTreeSet::new();
                typed_paths(&FioReport::read(output).document, "", &mut found);
                found
            };
            let (ours, fios) = (paths(&ours), paths(&fios));
            let missing: Vec<&String> = fios.difference(&ours).collect();
            assert!(missing.is_empty(), "{line}: {missing:?}");
        } else if line.contains("--minimal") {
            // Fields of disks depend on the directory.
            let fields = |output: &Output| String::from_utf8_lossy(&output.stdout).matches(';').count();
            assert_eq!(fields(&ours), fields(&fios), "{line}");
        }
    }
}

#[test]
fn tools_of_debians_package_read_our_reports_and_logs() {
    need!(tool "fio_jsonplus_clat2csv", tool "fio2gnuplot", tool "genfio", tool "python3");
    // Debian's package does not depend on the module six, which its tools import.
    let Some(packages) = packages() else {
        return skip("needs the Python packages that cargo xtask test installs");
    };
    let _loading = loading();
    let (home, scratch) = (scratch(), scratch());
    let directory = scratch.path();
    let mut program = fathom(home.path());
    program.arg("fio").current_dir(directory);
    let line = "--name=a --filename=f --size=4m --rw=randrw --rate_iops=400 --time_based --runtime=2 --output-format=json+ \
                --output=report.json --write_bw_log=a --log_avg_msec=500";
    must_run(program.args(line.split_whitespace()));
    let tool = |name: &str| {
        let mut command = Command::new(name);
        command.current_dir(directory).env("PYTHONPATH", &packages);
        command
    };
    must_run(tool("fio_jsonplus_clat2csv").args(["report.json", "out.csv"]));
    let table = std::fs::read_to_string(directory.join("out_job0.csv")).expect("a table of each job");
    assert!(table.lines().count() > 10 && table.contains("read_clat_ns_count"), "{table}");
    must_run(tool("fio2gnuplot").args(["-p", "*_bw.1.log"]));
    let means = std::fs::read_to_string(directory.join("_bw.1.average"));
    assert!(means.is_ok_and(|means| !means.trim().is_empty()));
    must_run(tool("genfio").args("-d sda -r 5 -b 4k -m randread".split(' ')));
    let generated = std::fs::read_dir(directory).expect("the scratch directory is ours").flatten();
    let jobs: Vec<_> = generated
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|it| it == "fio"))
        .collect();
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    must_run(fathom(home.path()).args(["fio", "--parse-only"]).args(&jobs).current_dir(directory));
}
