//! Job options that choose offsets, sizes, files and the course of a job: deterministic runs have the counts, bytes, errors and
//! exit status of Debian's fio.

use std::path::Path;
use std::process::{Command, Stdio};

use fathom_tests::{FioReport, fathom, loading, need, scratch};

/// Options of a job of 1 MiB in one directory, run by both programs.
const SAME: &[&str] = &[
    "--rw=randwrite --bs=4k --ba=16k",
    "--rw=randread --bs=4k --number_ios=7",
    "--rw=randread --bs=4k --number_ios=7 --loops=2",
    "--rw=randwrite --bs=4k --number_ios=700 --io_size=3m",
    "--rw=write --bs=4k --number_ios=5 --fsync=1",
    "--rw=randread --bs=4k --random_distribution=zipf:1.1",
    "--rw=randread --bs=4k --random_distribution=zipf:1.2:0.25",
    "--rw=randread --bs=4k --random_distribution=pareto:0.2 --io_size=3m",
    "--rw=randwrite --bs=4k --random_distribution=normal:10",
    "--rw=randread --bs=4k --random_distribution=zoned:60/10:40/90",
    "--rw=randread --bs=4k --random_distribution=zoned_abs:60/256k:40/512k",
    "--rw=randread --bs=4k --random_distribution=zipf:1.0",
    "--rw=randread --bs=4k --random_distribution=pareto:1.5",
    "--rw=randread --bs=4k --random_distribution=normal:100",
    "--rw=randread --bs=4k --random_distribution=zoned:60/10:30/90",
    "--rw=randrw --bs=4k --random_distribution=zipf:0.8 --rwmixread=100",
    "--rw=read --bs=4k --random_distribution=zipf:1.2",
    "--rw=randread --bs=4k --percentage_random=30",
    "--rw=randread --bs=4k --percentage_random=101",
    "--rw=randread --bs=4k --random_generator=lfsr",
    "--rw=randread --bs=4k --random_generator=lfsr --norandommap",
    "--rw=randread --bs=4k --random_generator=tausworthe64",
    "--rw=randread --bs=4k --random_generator=other",
    "--rw=randread --bs=4k --softrandommap=1",
    "--rw=randread:8 --bs=4k",
    "--rw=randwrite:8 --bs=4k --rw_sequencer=identical",
    "--rw=randwrite:8 --bs=4k --rw_sequencer=other",
    "--rw=read:4k --bs=4k",
    "--rw=write:-8k --bs=4k",
    "--rw=read:x --bs=4k",
    "--rw=read --bs=4k --nrfiles=4 --file_service_type=sequential",
    "--rw=read --bs=4k --nrfiles=4 --file_service_type=roundrobin:3",
    "--rw=randread --bs=4k --nrfiles=4 --file_service_type=random:4",
    "--rw=randwrite --bs=4k --nrfiles=4 --file_service_type=zipf:1.2",
    "--rw=randwrite --bs=4k --nrfiles=4 --file_service_type=other",
    "--rw=write --bs=4k --nrfiles=4 --openfiles=2",
    "--rw=read --bs=4k --zonemode=strided --zonesize=64k --zonerange=128k --zoneskip=64k",
    "--rw=randread --bs=4k --zonemode=strided --zonesize=64k --zoneskip=64k",
    "--rw=read --bs=4k --zonesize=64k",
    "--rw=read --bs=4k --zonemode=strided",
    "--rw=write --bs=16k,4k --bs_is_seq_rand=1",
    "--rw=write --bs=4k --fsync_on_close=1",
    "--rw=write --bs=4k --create_on_open=1",
    "--rw=write --bs=4k --create_fsync=0 --create_serialize=0",
    "--rw=read --bs=4k --pre_read=1",
    "--rw=read --bs=4k --fadvise_hint=0",
    "--rw=read --bs=4k --fadvise_hint=random",
    "--rw=read --bs=4k --fadvise_hint=other",
    "--rw=read --bs=64k --offset=33% --filesize=1m",
    "--rw=read --bs=4k --offset=33% --offset_align=64k --filesize=1m",
    "--rw=read --bs=4k --nice=5 --prio=3",
    "--rw=read --bs=4k --nice=20",
    "--rw=read --bs=4k --prioclass=2 --prio=7",
    "--rw=read --bs=4k --prioclass=3",
    "--rw=read --bs=4k --prio=8",
    "--rw=read --bs=4k --cpumask=1",
    "--rw=read --bs=4k --max_latency=100s",
    "--rw=read --bs=4k --max_latency=1us",
    "--rw=read --bs=4k --clocksource=cpu --mem=mmap",
    "--rw=read --bs=4k --clocksource=other",
    "--rw=read --bs=4k --exitall_on_error --exit_what=all",
    "--rw=read --bs=4k --exit_what=other",
    "--rw=read --bs=4k --wait_for=nobody",
    "--rw=read --bs=4k --wait_for=a",
    "--rw=write --bs=4k --ioengine=posixaio --iodepth=8",
    "--rw=randread --bs=4k --ioengine=vsync",
    "--rw=write --bs=4k --ioengine=falloc",
    "--rw=write --bs=4k --ioengine=ftruncate",
];

/// As [`SAME`], but only the bytes are equal: fio draws other sizes.
const SAME_BYTES: &[&str] =
    &["--rw=read --bsrange=4k-16k", "--rw=randread --bsrange=4k-16k", "--rw=write --bsrange=4k-16k"];

/// The exit status, and of each job the error and the numbers of requests, or of bytes.
fn ran(mut program: Command, options: &str, fields: &[&str]) -> (Option<i32>, Vec<u64>) {
    let place = scratch();
    program.args(["--name=a", "--size=1m", "--ioengine=psync"]).args(options.split(' '));
    program.arg("--output-format=json").current_dir(place.path()).stdin(Stdio::null());
    let output = program.output().expect("both programs can be run");
    let status = output.status.code();
    if !String::from_utf8_lossy(&output.stdout).contains("{\n") {
        return (status, Vec::new());
    }
    let report = FioReport::read(&output);
    (status, fields.iter().map(|field| report.job(field).as_u64().expect("a number")).collect())
}

fn check(home: &Path, options: &str, fields: &[&str]) -> Option<String> {
    let mut ours = fathom(home);
    ours.arg("fio");
    let (ours, fios) = (ran(ours, options, fields), ran(Command::new("fio"), options, fields));
    (ours != fios).then(|| format!("{options}: {ours:?}, fio {fios:?}"))
}

#[test]
fn deterministic_jobs_have_fios_counts_and_exit_status() {
    need!(tool "fio");
    let _loading = loading();
    let home = scratch();
    let counts = [
        "/error",
        "/read/total_ios",
        "/read/io_bytes",
        "/write/total_ios",
        "/write/io_bytes",
        "/sync/total_ios",
    ];
    let bytes = ["/error", "/read/io_bytes", "/write/io_bytes"];
    let mut differences: Vec<String> =
        SAME.iter().filter_map(|options| check(home.path(), options, &counts)).collect();
    differences.extend(SAME_BYTES.iter().filter_map(|options| check(home.path(), options, &bytes)));
    assert!(differences.is_empty(), "{differences:#?}");
}
