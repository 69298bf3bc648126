//! Trends over runs on a device whose cap changes, and what other programs read of exports.

use std::path::Path;

use fathom_tests::{
    Cap, LoopDevice, Throttle, fathom, fathom_under, loading, measuring_capped, must_run, need, run, scratch,
};
use serde_json::Value;

use crate::ours::{filename, steadily};

const MIB: u64 = 1 << 20;
/// Runs before the cap changes, and after it.
const RUNS: usize = 8;

/// One run of random reads, kept in the history of `home`.
fn keep(throttle: &Throttle, device: &Path, home: &Path) {
    let mut command = fathom_under(throttle, home);
    command.args([
        "fio",
        "--keep",
        "--name=rand-read",
        "--rw=randread",
        "--bs=4k",
        "--direct=1",
        "--iodepth=8",
    ]);
    command.args(["--ioengine=libaio", "--time_based", "--runtime=1"]).arg(filename(device));
    run(&mut command).assert_code(0);
}

fn trend(home: &Path) -> Value {
    let ended = run(fathom(home).args(["history", "trend", "fio.read.iops", "--by", "device", "--json"]));
    ended.assert_code(0);
    ended.document()["series"][0].clone()
}

#[test]
fn a_change_of_cap_is_found_within_two_runs_of_its_place() {
    need!(root, limits, tool "losetup", path "/dev/shm");
    let _capped = measuring_capped();
    let device = LoopDevice::in_memory(64 * MIB);
    steadily(|| {
        let home = scratch();
        let throttle = Throttle::new(device.path(), &Cap::iops(1000));
        for _ in 0..RUNS {
            keep(&throttle, device.path(), home.path());
        }
        throttle.set(&Cap::iops(800));
        for _ in 0..RUNS {
            keep(&throttle, device.path(), home.path());
        }
        let changed = trend(home.path());
        // Another is found by chance in one of twenty trends.
        let is_it = |change: &Value| {
            let place = change["first_after"].as_u64().unwrap_or(0);
            let ratio = change["ratio"]["value"].as_f64().unwrap_or(0.0);
            place.abs_diff(RUNS as u64 + 1) <= 2 && (0.77..0.83).contains(&ratio)
        };
        match changed["changes"].as_array().is_some_and(|changes| changes.iter().any(is_it)) {
            true => Ok(()),
            false => Err(format!("after the change: {changed:#}")),
        }
    });
}

/// Reads a table of figures by both readers, compares it with the CSV, and prints the rows and the rate of run 2.
const READ: &str = r#"
import sys, duckdb, pandas
table = pandas.read_parquet("figures.parquet")
text = pandas.read_csv("figures.csv", keep_default_na=False)
assert list(table.columns) == list(text.columns), table.columns
assert (table.values == text.values).all()
assert str(table["value"].dtype) == "float64" and str(table["run"].dtype) == "int64"
query = "SELECT value FROM 'figures.parquet' WHERE run = 2 AND test = 'rand-read' AND metric = 'read.iops'"
rows = duckdb.sql(query).fetchall()
assert duckdb.sql("SELECT count(*) FROM 'figures.parquet'").fetchall() == [(len(table),)]
assert table["tags"].unique().tolist() == ["a-ü\"b"], table["tags"].unique()
print(len(rows), round(rows[0][0]))
"#;

#[test]
fn duckdb_and_pandas_read_exported_figures() {
    need!(tool "pip3", tool "python3");
    let _loading = loading();
    let readers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/python-readers");
    if !readers.join("installed.txt").exists() {
        return fathom_tests::skip("needs the Python packages that cargo xtask test installs");
    }
    let home = scratch();
    for iops in ["100", "200"] {
        let mut command = fathom(home.path());
        command.args(["bench", "--quick", "--only=rand-read,lat-read", "--keep"]);
        run(command.arg(format!("sim:custom?iops={iops}"))).assert_code(0);
    }
    run(fathom(home.path()).args(["history", "tag", "a-ü\"b", "1", "2"])).assert_code(0);
    for format in ["parquet", "csv"] {
        let file = format!("figures.{format}");
        let args = ["history", "export", "--format", format, "-o", &file];
        run(fathom(home.path()).current_dir(home.path()).args(args)).assert_code(0);
    }
    let mut python = std::process::Command::new("python3");
    let shown = must_run(python.current_dir(home.path()).env("PYTHONPATH", readers).args(["-c", READ]));
    assert_eq!(shown, "1 200");
}
