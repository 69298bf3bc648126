//! Whole outputs on virtual time, where every number is exact: from a command line to its text, JSON and table.

use fathom_analysis::Analysis;
use fathom_assess::{BenchPlan, BenchSettings, BenchTarget, Effort, RunSettings, engine_rows};
use fathom_engine::sim::FixedLatency;
use fathom_model::Nanos;
use fathom_options::{MachineNumbers, ParseEnvironment, PlanningHost, parse_command_line};
use fathom_record::{RunRecord, TestMeta, test_record};
use fathom_report::{
    Style, TextWriter, bench::json as bench_json, bench::view as bench_view, fio::json as fio_json,
    fio::normal as fio_normal, formats::text as format_text, text_writer,
};
use fathom_runner::Session;

/// 2 ms per read, 3 ms per write, 5 ms per flush, eight at a time: 4,000 reads per second at depth 8 and above.
const DEVICE: FixedLatency = FixedLatency {
    read: Nanos::from_millis(2),
    write: Nanos::from_millis(3),
    flush: Nanos::from_millis(5),
    parallelism: 8,
};
const DEVICE_SIZE: u64 = 1 << 30;

/// What a fio command line amounts to on the device above.
fn fio(line: &str) -> RunRecord {
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let environment = ParseEnvironment {
        engines: &engine_rows(),
        read_file: &|_| Err(std::io::ErrorKind::NotFound.into()),
        variable: &|_| None,
        machine: MachineNumbers { cpus: 1, page_size: 4096, memory_mib: 1024 },
    };
    let invocation = parse_command_line(&words, &environment).unwrap();
    let plan = invocation.plan(&PlanningHost { cpus: 1, entropy: 1 }).unwrap();
    let outcome = Session::simulated(DEVICE, DEVICE_SIZE).run(&plan, &mut ()).unwrap();
    let meta = TestMeta { id: "fio".to_owned(), title: "fio".to_owned(), fio: format!("fio {line}") };
    RunRecord { tests: vec![test_record(meta, &plan, outcome)], ..RunRecord::default() }
}

fn bench(suite: &str, only: &[&str]) -> RunRecord {
    let settings = BenchSettings {
        run: RunSettings { target: "sim".into(), seed: Some(1), ..RunSettings::default() },
        suite: suite.to_owned(),
        effort: Effort::Quick,
        runtime: Some(Nanos::from_secs(4)),
        only: only.iter().map(|id| (*id).to_owned()).collect(),
        ..BenchSettings::default()
    };
    let plan = BenchPlan::on(vec![BenchTarget::simulated("simulated", DEVICE.model(DEVICE_SIZE))], settings)
        .unwrap();
    let mut record =
        fathom_assess::run(&plan, &mut Session::simulated(DEVICE, DEVICE_SIZE), &mut ()).unwrap();
    // A new version of the program is no reason to change a golden file.
    record.header.tool_version = "0.0.0".to_owned();
    record
}

fn text(
    record: &RunRecord,
    render: impl FnOnce(&RunRecord, &Style, &mut TextWriter) -> std::io::Result<()>,
) -> String {
    let style = Style { width: 100, show_fio: true, ..Style::default() };
    text_writer::text(|out| render(record, &style, out)).unwrap()
}

fn json(
    record: &RunRecord,
    render: fn(&RunRecord, &Style, &mut dyn std::io::Write) -> std::io::Result<()>,
) -> String {
    text(record, |record, style, out| render(record, style, &mut out.json()))
}

const MIXED: &str = "--name=mixed --filename=t --size=64m --rw=randrw --rwmixread=75 --bs=4k --iodepth=16 \
                     --ioengine=libaio --direct=1 --runtime=2 --time_based";
const STAGES: &str = "--size=8m --filename=t --ioengine=libaio --direct=1 --name=log --rw=write --bs=4k --fdatasync=1 \
                      --io_size=1m --name=scan --stonewall --rw=read --bs=64k --iodepth=4 --numjobs=2 --group_reporting";

#[test]
fn fio_text() {
    insta::assert_snapshot!("mixed_text", text(&fio(MIXED), fio_normal::render));
    insta::assert_snapshot!("stages_text", text(&fio(STAGES), fio_normal::render));
}

#[test]
fn fio_documents() {
    insta::assert_snapshot!("mixed_json", json(&fio(MIXED), fio_json::render));
    insta::assert_snapshot!("stages_json", json(&fio(STAGES), fio_json::render));
}

fn table(record: &RunRecord, style: &Style, out: &mut TextWriter) -> std::io::Result<()> {
    format_text::render(&bench_view(&Analysis::of(record), style.show_fio), style, out)
}

#[test]
fn bench_tables() {
    let standard = bench("standard", &["lat-read", "commit", "rand-read", "rand-mixed", "rand-read-jobs"]);
    insta::assert_snapshot!("bench_table", text(&standard, table));
    let judged = bench("digitalocean-volumes", &["rand-r", "rand-w", "lat-read"]);
    insta::assert_snapshot!("judged_table", text(&judged, table));
}

#[test]
fn bench_document() {
    insta::assert_snapshot!(
        "bench_json",
        json(&bench("standard", &["commit"]), |record, style, out| {
            bench_json::render(&Analysis::of(record), style, out)
        })
    );
}

#[test]
fn the_same_seed_gives_the_same_record() {
    assert_eq!(fio(MIXED).to_json(), fio(MIXED).to_json());
    let once = || bench("standard", &["rand-mixed"]).to_json();
    assert_eq!(once(), once());
}
