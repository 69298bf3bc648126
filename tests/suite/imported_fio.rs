//! The JSON, the terse lines and the text of one run of Debian's fio import to the same figures within their resolutions.

use std::collections::BTreeMap;
use std::process::Command;

use fathom_import::{detect, import_as};
use fathom_record::ImportFormat;
use fathom_record::import::Figure;
use fathom_tests::{loading, need, scratch};

/// Jobs: on the null engine where no file is named, else on a small file in memory.
const JOBS: &[&str] = &[
    "--rw=read --bs=4k",
    "--rw=write --bs=4k",
    "--rw=randread --bs=4k --iodepth=8",
    "--rw=randwrite --bs=4k --iodepth=32",
    "--rw=trim --bs=64k",
    "--rw=randtrim --bs=4k",
    "--rw=rw --bs=4k",
    "--rw=randrw --bs=4k --rwmixread=75",
    "--rw=randrw --bs=4k --rwmixread=10 --iodepth=64",
    "--rw=trimwrite --bs=4k",
    "--rw=randread --bs=512",
    "--rw=randread --bs=1m",
    "--rw=write --bs=128k --iodepth=4",
    "--rw=randrw --bs=4k,64k",
    "--rw=randread --bsrange=4k-64k",
    "--rw=randrw --bssplit=4k/60:64k/40",
    "--rw=randread --bs=4k --numjobs=2",
    "--rw=randread --bs=4k --numjobs=2 --group_reporting",
    "--rw=randrw --bs=4k --numjobs=4 --group_reporting",
    "--rw=randrw --bs=8k --numjobs=3",
    "--rw=randwrite --bs=4k --numjobs=2 --thread --group_reporting",
    "--rw=randread --bs=4k --rate_iops=500",
    "--rw=randread --bs=4k --rate_iops=4200",
    "--rw=randrw --bs=4k --rate_iops=300,200",
    "--rw=write --bs=64k --rate=10m",
    "--rw=randread --bs=4k --rate=1m",
    "--rw=randread --bs=16k --rate_iops=50 --numjobs=2 --group_reporting",
    "--rw=randread --bs=4k --rate_iops=2000 --iodepth=16",
    "--rw=read --bs=1m --rate_iops=20",
    "--rw=randrw --bs=4k --unified_rw_reporting=mixed",
    "--rw=randrw --bs=4k --rate_iops=1000 --unified_rw_reporting=mixed",
    "--rw=randread --bs=4k --percentile_list=50:99:99.9",
    "--rw=randread --bs=4k --clat_percentiles=0",
    "--rw=randread --bs=4k --disable_slat=1",
    "--rw=randread --bs=4k --description=twice",
    "--rw=randread --bs=4k --thinktime=500",
    "--rw=randread --bs=4k --thinktime=20000",
    "--rw=randwrite --bs=4k --thinktime=3000 --numjobs=2",
    "--rw=write --bs=4k --filename=f --ioengine=psync --fsync=1",
    "--rw=randwrite --bs=4k --filename=f --ioengine=psync --fdatasync=8",
    "--rw=randread --bs=4k --filename=f --ioengine=psync",
    "--rw=randread --bs=4k --filename=f --ioengine=libaio --iodepth=16",
    "--rw=randrw --bs=4k --filename=f --ioengine=libaio --iodepth=4",
    "--rw=write --bs=64k --filename=f --ioengine=psync --end_fsync=1",
    "--rw=read --bs=64k --filename=f --ioengine=sync",
    "--rw=randread --bs=4k --filename=f --ioengine=mmap",
    "--rw=randwrite --bs=4k --filename=f --ioengine=pvsync2 --rate_iops=800",
    "--rw=randrw --bs=4k --filename=f --ioengine=psync --rwmixread=30 --rate_iops=400,900",
];

/// Jobs whose amount ends them.
const AMOUNTS: &[&str] = &[
    "--rw=write --bs=4k --filename=f --ioengine=psync --verify=crc32c --size=2m",
    "--rw=randwrite --bs=4k --filename=f --ioengine=libaio --iodepth=8 --verify=md5 --size=2m",
    "--rw=randread --bs=4k --size=64m",
    "--rw=randrw --bs=4k --filename=f --ioengine=psync --size=4m --loops=3",
];

/// The figures of all tests in one format, by test, entry and name.
type Figures = BTreeMap<String, Figure<f64>>;

/// The figures of `text` read as `format`.
fn figures(format: ImportFormat, text: &str) -> Figures {
    let record = import_as(format, text, "fio").unwrap_or_else(|error| panic!("{format:?}: {error}\n{text}"));
    let mut figures = Figures::new();
    for test in &record.tests {
        let imported = test.imported().expect("an imported test");
        // fio prints a negative share where a rate overflows.
        let missing = imported.missing.iter().find(|missing| !missing.text.contains("per=-"));
        assert_eq!(missing, None, "{format:?}\n{text}");
        for found in imported.figures() {
            figures.insert(format!("{} {:?} {}", test.id, found.entry, found.name), found.figure);
        }
    }
    figures
}

/// Names of figures that every format has.
fn is_essential(name: &str) -> bool {
    ["iops", "bytes_per_second", "bytes", "runtime_ns", "clat_ns.mean"]
        .iter()
        .any(|end| name.ends_with(&format!(".{end}")))
        && !["group.", "windows", "last_"].iter().any(|other| name.contains(other))
}

/// Figures that a format counts in another way.
fn is_other(name: &str) -> bool {
    // Terse has no classes below 1 us: its first holds them all.
    name.contains("latency_below.2000_") || name.ends_with("group_percent")
}

/// The differences between the figures of JSON and those of another format.
fn differences(exact: &Figures, other: &Figures) -> Vec<String> {
    let mut found = Vec::new();
    for (figure, value) in exact.iter().filter(|(figure, _)| !is_other(figure)) {
        match other.get(figure) {
            Some(read) if !value.agrees_with(*read) => found.push(format!("{figure}: {value:?}, {read:?}")),
            None if is_essential(figure) => found.push(format!("{figure} is missing")),
            _ => {}
        }
    }
    let more = other.keys().filter(|figure| is_essential(figure) && !exact.contains_key(*figure));
    found.extend(more.map(|figure| format!("{figure} is not in JSON")));
    found
}

/// Runs `job` under fio; the differences between its formats.
fn differences_of(index: usize, job: &str) -> Vec<String> {
    let directory = scratch();
    let mut command = Command::new("fio");
    command.current_dir(directory.path()).args(["--output-format=normal,terse,json", "--eta=never"]);
    let terse = 2 + index % 4;
    command.arg(format!("--terse-version={terse}"));
    command.args(["--name=job", "--size=16m"]);
    if !job.contains("--ioengine") {
        command.arg("--ioengine=null");
    }
    let output = command.args(job.split_whitespace()).output().expect("fio was found");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{job}: {text}");
    assert_eq!(detect(&text), Some(ImportFormat::FioJson), "{job}");
    let exact = figures(ImportFormat::FioJson, &text);
    assert!(exact.keys().any(|figure| is_essential(figure)), "{job}");
    let mut all = Vec::new();
    for format in [ImportFormat::FioTerse, ImportFormat::FioText] {
        let mut found = differences(&exact, &figures(format, &text));
        // Version 3 has no trims.
        found.retain(|difference| {
            format != ImportFormat::FioTerse || terse != 3 || !difference.contains("trim.")
        });
        all.extend(found.into_iter().map(|difference| format!("{job}: {}: {difference}", format.title())));
    }
    all
}

#[test]
fn three_formats_of_one_run_import_to_the_same_figures() {
    const AT_A_TIME: usize = 4;
    let _turn = loading();
    need!(tool "fio");
    let timed = JOBS.iter().map(|job| format!("{job} --time_based --runtime=400ms"));
    let jobs: Vec<String> = timed.chain(AMOUNTS.iter().map(|job| (*job).to_owned())).collect();
    let jobs = &jobs;
    let all: Vec<String> = std::thread::scope(|scope| {
        let run = |first| {
            scope.spawn(move || {
                let own = jobs.iter().enumerate().skip(first).step_by(AT_A_TIME);
                own.flat_map(|(index, job)| differences_of(index, job)).collect::<Vec<_>>()
            })
        };
        let running: Vec<_> = (0..AT_A_TIME).map(run).collect();
        running.into_iter().flat_map(|run| run.join().expect("fio ran")).collect()
    });
    assert!(all.is_empty(), "{}", all.join("\n"));
}
