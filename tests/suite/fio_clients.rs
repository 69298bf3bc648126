//! Programs that drive a `fio` binary and read its reports and logs run unmodified with ours in its place.

use std::path::{Path, PathBuf};
use std::process::Command;

use fathom_tests::{fathom_named, loading, must_run, need, scratch, skip};

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
