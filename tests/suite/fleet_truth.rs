//! What the report of many ranks says, compared with what is known otherwise: the logs of all ranks, the limit of the disk that
//! their hosts share, and that of the control group of one host.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fathom_record::{Histogram, RunRecord, latency_bin_midpoint};
use fathom_tests::{
    Cap, Cluster, Ended, Launcher, LoopDevice, MIB, NbdDisk, Program, Throttle, fathom, fathom_path, loading,
    measuring_capped, need, noted, run, scratch, test_name,
};
use serde_json::{Value, json};

use crate::findings::{found, number};
use crate::ours::{filename, steadily, within};

/// Processes on each host where all their samples are compared, and in all.
const PER_HOST: usize = 2;
const RANKS: usize = 6;
/// I/Os of each.
const IOS: usize = 1024;
const NS_PER_MS: u64 = 1_000_000;

/// The limit of the disk that hosts share: a number of blocks per second.
const BLOCK_BYTES: u64 = 32 << 10;
const DISK_IOPS: u64 = 256;
/// The limit of the control group of one host, far below a third of that.
const GROUP_IOPS: u64 = 40;

/// Completes the command of a launcher by `fathom fio --fleet` with `words`; records go to `out` in the same directory.
fn measure(mut command: Command, home: &Path, words: &str) -> Command {
    command.env("HOME", home).env_remove("XDG_DATA_HOME").env("NO_COLOR", "1");
    command.arg(fathom_path()).args(["fio", "--fleet"]);
    command.arg(format!("--fleet-out={}", out(home).display()));
    command.args(words.split_whitespace());
    command
}

fn out(home: &Path) -> PathBuf {
    home.join("out")
}

/// What `fathom merge` makes of the records of all ranks: its report, and the merged record.
fn merged(home: &Path) -> (Ended, String) {
    let file = home.join("merged.json");
    let ended = run(fathom(home).args(["merge", "--no-history", "-o"]).arg(&file).arg(out(home)));
    ended.assert_code(0);
    (ended, fs::read_to_string(file).expect("it was written"))
}

/// The words of a report, which may be divided into lines anywhere.
fn unwrapped(report: &str) -> String {
    report.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Counts by the middles of bins, ns.
type Bins = BTreeMap<u64, u64>;

/// The middle of fio's bin for a latency: an octave has 64 bins, from 128 ns on wider than 1 ns.
fn middle_of_bin(ns: u64) -> u64 {
    let shift = ns.max(1).ilog2().saturating_sub(6);
    (ns >> shift << shift) + (1 << shift) / 2
}

fn in_bins(samples: &[u64]) -> Bins {
    let mut bins = Bins::new();
    samples.iter().for_each(|ns| *bins.entry(middle_of_bin(*ns)).or_default() += 1);
    bins
}

fn of_histogram(histogram: &Histogram) -> Bins {
    histogram.sparse().map(|(bin, count)| (latency_bin_midpoint(bin), count)).collect()
}

fn of_document(bins: &Value) -> Bins {
    let bins = bins.as_object().expect("json+ has bins").iter();
    bins.map(|(ns, count)| (ns.parse().expect("ns"), count.as_u64().expect("a count"))).collect()
}

/// All samples of a kind of latency and of an operation, by its number in logs, that the ranks have logged.
fn logged(home: &Path, kind: &str, op: usize) -> Vec<u64> {
    let of_rank = |rank: usize| -> Vec<u64> {
        let path = home.join(format!("log-{rank}_{kind}.1.log"));
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        // Time, value, operation, block size, offset, priority.
        let lines = text.lines().map(|line| line.split(", ").collect::<Vec<_>>());
        let of_op = lines.filter(|fields| fields[2] == op.to_string());
        of_op.map(|fields| fields[1].parse().expect("a latency in ns")).collect()
    };
    (0..RANKS).flat_map(of_rank).collect()
}

/// From the first start of a rank to the last, by the record of each.
fn spread_of_starts(out: &Path) -> u64 {
    let start = |rank: usize| {
        let text = fs::read_to_string(out.join(format!("rank-{rank:05}.json"))).expect("its record");
        let record = RunRecord::from_json(&text).expect("a record");
        let test = &record.tests[0];
        let own = test.jobs.iter().map(|job| job.measured.start_ns).min().expect("a job");
        test.started_unix_ms * NS_PER_MS + own
    };
    let starts: Vec<u64> = (0..RANKS).map(start).collect();
    starts.iter().max().expect("ranks") - starts.iter().min().expect("ranks")
}

#[test]
fn the_merged_histogram_has_every_sample_of_every_rank() {
    let _loading = loading();
    let Some(cluster) = Cluster::shared() else { return };
    let begun = Launcher::MEETING.map(|launcher| {
        let home = scratch();
        let at = home.path().display().to_string();
        let words = format!(
            "--name=a --ioengine=libaio --iodepth=4 --rw=randrw --bs=4k --size=4m --directory={at} \
             --filename=data-${{fathom_RANK}} --write_lat_log={at}/log-${{fathom_RANK}} --output-format=json+"
        );
        let command = cluster.launch(launcher, cluster.hosts(), PER_HOST);
        (launcher, Program::start(&mut measure(command, home.path(), &words)), home)
    });
    for (launcher, job, home) in begun {
        let ended = job.finish();
        ended.assert_code(0);
        let document = ended.document();
        let (report, record) = merged(home.path());
        let record = RunRecord::from_json(&record).expect("a record");
        let counted = check_samples(launcher, home.path(), &document["jobs"][0], &record);
        assert_eq!(counted, RANKS * IOS, "{launcher:?}");
        let spread = spread_of_starts(&out(home.path()));
        assert_eq!(document["fathom"]["fleet"]["start_spread_ns"], spread, "{launcher:?}");
        let printed = format!("Start spread {} ms", spread / NS_PER_MS);
        let report = unwrapped(&report.stdout);
        assert!(report.contains(&printed), "{launcher:?}: no \"{printed}\" in {report}");
        let spread_ms = spread as f64 / NS_PER_MS as f64;
        noted(&test_name(), &format!("{launcher:?}: {RANKS} ranks started within {spread_ms:.1} ms"));
    }
}

/// Compares the report of rank 0 and the merge of the records with all samples of the logs; returns their number.
fn check_samples(launcher: Launcher, home: &Path, reported: &Value, record: &RunRecord) -> usize {
    let [job] = record.tests[0].jobs.as_slice() else { panic!("{launcher:?}: one job of all ranks") };
    let mut counted = 0;
    for (op, name) in ["read", "write"].into_iter().enumerate() {
        let outcome = job.measured.ops()[op];
        for (kind, latency) in [("clat", &outcome.clat), ("lat", &outcome.lat)] {
            let (samples, moments) = (logged(home, kind, op), &latency.moments);
            let what = format!("{launcher:?}: {kind} of {name}");
            assert_eq!(of_histogram(&latency.histogram), in_bins(&samples), "{what}");
            let sum: u128 = samples.iter().copied().map(u128::from).sum();
            assert_eq!((moments.count, moments.sum), (samples.len() as u64, sum), "{what}");
            let ends = (samples.iter().min().copied(), samples.iter().max().copied());
            assert_eq!((Some(moments.min), Some(moments.max)), ends, "{what}");
        }
        let samples = logged(home, "clat", op);
        let bins = of_document(&reported[name]["clat_ns"]["bins"]);
        assert_eq!(bins, in_bins(&samples), "{launcher:?}: the report of rank 0 on {name}");
        counted += samples.len();
    }
    counted
}

/// A disk in memory with a limit on its bandwidth, as a block device, which control groups can limit further.
struct LimitedDisk {
    device: LoopDevice,
    /// Behind the device, which lies on it.
    _disk: NbdDisk,
}

impl LimitedDisk {
    fn new() -> LimitedDisk {
        // nbdkit counts bits; what is not used for half a second is lost.
        let rate = format!("rate={}", DISK_IOPS * BLOCK_BYTES * 8);
        let disk = NbdDisk::new(64 * MIB, &["rate"], &[&rate, "burstiness=0.5"]);
        LimitedDisk { device: LoopDevice::over(&disk.path()), _disk: disk }
    }

    /// Direct reads of all hosts, one at a time each, for a time in seconds after one in which unused allowance is spent.
    fn words(&self, runtime: u32) -> String {
        format!(
            "--name=shared {} --size=64m --ioengine=psync --direct=1 --rw=randread --bs={BLOCK_BYTES} \
             --randseed=${{fathom_RANK}} --time_based --ramp_time=1 --runtime={runtime}",
            filename(self.device.path())
        )
    }
}

/// The rates of a test in the document of rank 0, bytes per second: of all, and of each rank.
fn rates(fleet: &Value) -> (f64, Vec<f64>) {
    let test = &fleet["tests"][0];
    let rate = |of: &Value| of["bytes_per_second"].as_f64().unwrap_or_else(|| panic!("no rate: {fleet:#}"));
    let hosts = test["hosts"].as_array().expect("each rank is listed");
    (rate(test), hosts.iter().map(rate).collect())
}

/// The first host reads all the time. The others pause now and then, and it takes what they leave.
#[test]
fn the_limit_of_a_disk_that_hosts_share_is_named() {
    need!(root, tool "losetup", tool "nbdkit", tool "nbdfuse", tool "fusermount3", path "/dev/fuse");
    let _capped = measuring_capped();
    let Some(cluster) = Cluster::shared() else { return };
    let disk = LimitedDisk::new();
    steadily(|| {
        let home = scratch();
        let pauses = "--thinktime=${fathom_RANK}00ms --thinktime_blocks=47 --output-format=json";
        let words = format!("{} {pauses}", disk.words(22));
        let command = cluster.launch(Launcher::Mpiexec, cluster.hosts(), 1);
        let ended = run(&mut measure(command, home.path(), &words));
        ended.assert_code(0);
        let document = ended.document();
        let fleet = &document["fathom"]["fleet"];
        let (total, shares) = rates(fleet);
        within("the total", total, (DISK_IOPS * BLOCK_BYTES) as f64, 1.0)?;
        within("the sum of the shares", shares.iter().sum(), total, 2.0)?;
        let limit = found(fleet, "shared-limit")?;
        within("the limit", number(limit, "iops"), DISK_IOPS as f64, 1.0)?;
        let report = unwrapped(&merged(home.path()).0.stdout);
        let claim = limit["claim"].as_str().expect("a claim");
        assert!(report.contains(claim), "not in the report: {claim}\n{report}");
        for host in cluster.hosts() {
            assert!(report.contains(&format!(" {host} ")), "no row of {host}: {report}");
        }
        Ok(())
    });
}

#[test]
fn a_host_with_a_limit_of_its_own_is_a_straggler_by_that_limit() {
    need!(root, limits, tool "losetup", tool "nbdkit", tool "nbdfuse", tool "fusermount3", path "/dev/fuse");
    let _capped = measuring_capped();
    let Some(cluster) = Cluster::shared() else { return };
    let disk = LimitedDisk::new();
    let cap = Cap { read_iops: Some(GROUP_IOPS), ..Cap::default() };
    let throttle = Throttle::new(disk.device.path(), &cap);
    steadily(|| {
        let home = scratch();
        let mut command = cluster.launch(Launcher::SrunPmi2, cluster.hosts(), 1);
        // The ranks of one host enter the group before they become the program.
        command.args(["sh", "-c", "test \"$(hostname)\" != h2 || echo $$ > \"$0\"; exec \"$@\""]);
        command.arg(throttle.members());
        let words = format!("{} --output-format=json", disk.words(12));
        let ended = run(&mut measure(command, home.path(), &words));
        ended.assert_code(0);
        let document = ended.document();
        let fleet = &document["fathom"]["fleet"];
        let (_, shares) = rates(fleet);
        within("the host in the group", shares[1], (GROUP_IOPS * BLOCK_BYTES) as f64, 3.0)?;
        let stragglers = &found(fleet, "straggler")?["evidence"]["stragglers"];
        let names: Vec<&str> =
            stragglers.as_array().into_iter().flatten().filter_map(|one| one["host"].as_str()).collect();
        assert_eq!((names.as_slice(), &stragglers[0]["throughout"]), (&["h2"][..], &Value::Bool(true)));
        let own = found(fleet, "iops-cap")?;
        assert_eq!(
            (&own["evidence"]["hosts"], number(own, "group_limit_iops")),
            (&json!(["h2"]), GROUP_IOPS as f64)
        );
        let report = unwrapped(&merged(home.path()).0.stdout);
        for part in ["1 of 3 hosts was slower than the others: h2 (throughout", "1 of 3 hosts (h2): "] {
            assert!(report.contains(part), "\"{part}\" is not in the report: {report}");
        }
        Ok(())
    });
}
