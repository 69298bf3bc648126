//! The loads of published runs on simulated volumes: the same options, the real loop, virtual time.

use std::collections::BTreeMap;

use fathom_options::{MachineNumbers, ParseEnvironment, parse_command_line};
use fathom_stats::{Latency, RunOutcome};
use fathom_volume::Limit;

use crate::{
    AssessError, BenchTarget, PlanTargets, SimulatedVolume, VolumeTypes, engine_rows, host_facts, session_for,
};

/// A load on a simulated volume.
#[derive(Debug)]
pub struct Case {
    /// The published run, and which of its loads.
    pub key: &'static str,
    /// The volume.
    pub volume: &'static str,
    /// The options of `fathom fio`.
    pub options: &'static str,
    /// Times that the published run was longer: counts and times are multiplied by it.
    pub scale: f64,
}

const GP2: &str = "sim:aws-gp2-2016?size=50GiB";
const DO: &str = "sim:do-volume-standard-2018-04";
const DO_HIGH_CPU: &str = "sim:do-volume-high-cpu-2018-04";
const IO1_E: &str = "sim:aws-io1-2012?size=100GiB&iops=1000";
const IO1_F: &str = "sim:aws-io1-2012?size=200GiB&iops=2000";
const LOCAL: &str = "sim:do-droplet-local-ssd-2016?size=60GiB";
const STANDARD: &str = "sim:aws-ebs-standard-2012?size=50GiB";
const AZURE: &str = "sim:azure-vhd-2012-measured?size=100GiB";
const AZURE_CACHED: &str = "sim:azure-vhd-2012-measured?size=100GiB&cache=ReadWrite";
const AZURE_LOCAL: &str = "sim:azure-temp-disk?size=140GiB";
const QING_FAST: &str = "sim:qingcloud-high-performance?size=100GiB";
const QING_LARGE: &str = "sim:qingcloud-capacity?size=100GiB";
const PREMIUM: &str = "sim:tencent-cbs-premium?size=1TiB";
const PREMIUM_3T: &str = "sim:tencent-cbs-premium?size=3TiB";
const SSD: &str = "sim:tencent-cbs-ssd?size=1TiB";
const ENHANCED: &str = "sim:tencent-cbs-enhanced-ssd?size=1TiB";

macro_rules! timed {
    ($options:literal, $seconds:literal) => {
        concat!("--name=test --ioengine=libaio --direct=1 ", $options, " --time_based --runtime=", $seconds)
    };
}

/// The load of two articles: fio on a file of 4 GiB, of which the last number is a part.
macro_rules! on_4_gib {
    ($pattern:literal, $part:literal) => {
        concat!(
            "--randrepeat=1 --ioengine=libaio --direct=1 --name=test --bs=4k --iodepth=64 --size=4g --readwrite=",
            $pattern,
            " --io_size=",
            $part
        )
    };
}

/// The file benchmark of HD Tune: the file is written first.
macro_rules! on_file {
    ($options:literal) => {
        concat!(
            "--name=fill --ioengine=libaio --direct=1 --rw=write --bs=1m --iodepth=4 --size=500m --name=test --stonewall ",
            "--ioengine=libaio --direct=1 --size=500m ",
            $options,
            " --time_based --runtime=10"
        )
    };
}

const PING: &str =
    "--name=ping --ioengine=libaio --direct=1 --rw=randread --bs=4k --iodepth=1 --thinktime=1s --io_size=16m";

const fn case(key: &'static str, volume: &'static str, options: &'static str, scale: f64) -> Case {
    Case { key, volume, options, scale }
}

/// Every load. Article 0 ran `--gtod_reduce=1`, which keeps latencies from being recorded and changes nothing else; its files
/// of 4 GiB are cut to an eighth, as the rate does not change within. Runs of a fixed time are as long as their figures need.
pub const CASES: &[Case] = &[
    case("a0-aws-randrw", GP2, on_4_gib!("randrw --rwmixread=75", "512m"), 8.0),
    case("a0-aws-randread", GP2, on_4_gib!("randread", "512m"), 8.0),
    case("a0-aws-randwrite", GP2, on_4_gib!("randwrite", "512m"), 8.0),
    case("a0-aws-ioping", GP2, PING, 1.0),
    case("a0-do-randrw", LOCAL, on_4_gib!("randrw --rwmixread=75", "512m"), 8.0),
    case("a0-do-randread", LOCAL, on_4_gib!("randread", "512m"), 8.0),
    case("a0-do-randwrite", LOCAL, on_4_gib!("randwrite", "512m"), 8.0),
    case("a0-do-ioping", LOCAL, PING, 1.0),
    case("a3-perf-randrw", QING_FAST, on_4_gib!("randrw --rwmixread=75", "512m"), 8.0),
    case("a3-perf-randread", QING_FAST, on_4_gib!("randread", "512m"), 8.0),
    case("a3-perf-randwrite", QING_FAST, on_4_gib!("randwrite", "512m"), 8.0),
    case("a3-perf-ioping", QING_FAST, PING, 1.0),
    case("a3-cap-randrw", QING_LARGE, on_4_gib!("randrw --rwmixread=75", "512m"), 8.0),
    case("a3-cap-randread", QING_LARGE, on_4_gib!("randread", "512m"), 8.0),
    case("a3-cap-randwrite", QING_LARGE, on_4_gib!("randwrite", "512m"), 8.0),
    case("a3-cap-ioping", QING_LARGE, PING, 1.0),
    case(
        "a0-claims:max",
        "sim:aws-gp2-2016?size=3334GiB",
        timed!("--rw=randread --bs=4k --iodepth=64", 4),
        1.0,
    ),
    case("a1-do-bw-test", DO, timed!("--rw=randwrite --bs=1m --iodepth=32", 120), 1.0),
    case("a1-do-lat-read", DO, timed!("--rw=randread --bs=4k --iodepth=1", 30), 4.0),
    case("a1-do:high-cpu-bw", DO_HIGH_CPU, timed!("--rw=randwrite --bs=1m --iodepth=32", 30), 1.0),
    case("a1-do:rand-r", DO, timed!("--rw=randread --bs=4k --iodepth=128", 6), 1.0),
    case("a1-do:rand-w", DO, timed!("--rw=randwrite --bs=4k --iodepth=128", 6), 1.0),
    case("a1-do:high-cpu-r", DO_HIGH_CPU, timed!("--rw=randread --bs=4k --iodepth=128", 6), 1.0),
    case("a1-do:high-cpu-w", DO_HIGH_CPU, timed!("--rw=randwrite --bs=4k --iodepth=128", 6), 1.0),
    case("a1-do:lat-write", DO, timed!("--rw=randwrite --bs=4k --iodepth=1", 6), 1.0),
    case("a1-do:4k-d1", DO, timed!("--rw=randread --bs=4k --iodepth=1", 6), 1.0),
    case("a1-do:4k-d2", DO, timed!("--rw=randread --bs=4k --iodepth=2", 6), 1.0),
    case("a1-do:4k-d4", DO, timed!("--rw=randread --bs=4k --iodepth=4", 6), 1.0),
    case("a1-do:256k-d1", DO, timed!("--rw=randread --bs=256k --iodepth=1", 6), 1.0),
    case("a1-do:256k-d2", DO, timed!("--rw=randread --bs=256k --iodepth=2", 6), 1.0),
    case("a1-do:bs4k", DO, timed!("--rw=randread --bs=4k --iodepth=64", 6), 1.0),
    case("a1-do:bs16k", DO, timed!("--rw=randread --bs=16k --iodepth=64", 6), 1.0),
    case("a1-do:bs32k", DO, timed!("--rw=randread --bs=32k --iodepth=64", 6), 1.0),
    case("a1-do:bs64k", DO, timed!("--rw=randread --bs=64k --iodepth=64", 6), 1.0),
    case("a1-do:bs256k", DO, timed!("--rw=randread --bs=256k --iodepth=64", 12), 1.0),
    case("a2-aws-E-file:read-d1", IO1_E, timed!("--rw=randread --bs=4k --iodepth=1", 10), 1.0),
    case("a2-aws-E-file:write-d1", IO1_E, timed!("--rw=randwrite --bs=4k --iodepth=1", 10), 1.0),
    case("a2-aws-E-file:read-d32", IO1_E, timed!("--rw=randread --bs=4k --iodepth=32", 10), 1.0),
    case("a2-aws-E-file:write-d32", IO1_E, timed!("--rw=randwrite --bs=4k --iodepth=32", 10), 1.0),
    case("a2-aws-E-file:seq-read", IO1_E, timed!("--rw=read --bs=1m --iodepth=1", 10), 1.0),
    case("a2-aws-E-file:seq-write", IO1_E, timed!("--rw=write --bs=1m --iodepth=1", 10), 1.0),
    case("a2-aws-F-file:read-d1", IO1_F, timed!("--rw=randread --bs=4k --iodepth=1", 10), 1.0),
    case("a2-aws-F-file:write-d1", IO1_F, timed!("--rw=randwrite --bs=4k --iodepth=1", 10), 1.0),
    case("a2-aws-F-file:read-d32", IO1_F, timed!("--rw=randread --bs=4k --iodepth=32", 10), 1.0),
    case("a2-aws-F-file:write-d32", IO1_F, timed!("--rw=randwrite --bs=4k --iodepth=32", 10), 1.0),
    case("a2-aws-F-file:seq-read", IO1_F, timed!("--rw=read --bs=1m --iodepth=1", 10), 1.0),
    case("a2-aws-F-file:seq-write", IO1_F, timed!("--rw=write --bs=1m --iodepth=1", 10), 1.0),
    case("a2-aws-C-benchmark:access", STANDARD, timed!("--rw=randread --bs=512 --iodepth=1", 5), 1.0),
    case("a2-aws-C-benchmark:transfer", STANDARD, timed!("--rw=read --bs=64k --iodepth=1", 5), 1.0),
    case("a2-aws-C-file:read-d1", STANDARD, on_file!("--rw=randread --bs=4k --iodepth=1"), 1.0),
    case("a2-aws-C-file:write-d1", STANDARD, on_file!("--rw=randwrite --bs=4k --iodepth=1"), 1.0),
    case("a2-aws-C-file:read-d32", STANDARD, on_file!("--rw=randread --bs=4k --iodepth=32"), 1.0),
    case("a2-aws-C-file:write-d32", STANDARD, on_file!("--rw=randwrite --bs=4k --iodepth=32"), 1.0),
    case("a2-aws-C-file:seq-read", STANDARD, on_file!("--rw=read --bs=1m --iodepth=1"), 1.0),
    case("a2-aws-C-file:seq-write", STANDARD, on_file!("--rw=write --bs=1m --iodepth=1"), 1.0),
    case("a2-aws-D-benchmark:access", STANDARD, timed!("--rw=randread --bs=512 --iodepth=1", 5), 1.0),
    case("a2-aws-D-benchmark:transfer", STANDARD, timed!("--rw=read --bs=64k --iodepth=1", 5), 1.0),
    case("a2-aws-D-file:read-d1", STANDARD, on_file!("--rw=randread --bs=4k --iodepth=1"), 1.0),
    case("a2-aws-D-file:write-d1", STANDARD, on_file!("--rw=randwrite --bs=4k --iodepth=1"), 1.0),
    case("a2-aws-D-file:read-d32", STANDARD, on_file!("--rw=randread --bs=4k --iodepth=32"), 1.0),
    case("a2-aws-D-file:write-d32", STANDARD, on_file!("--rw=randwrite --bs=4k --iodepth=32"), 1.0),
    case("a2-aws-D-file:seq-read", STANDARD, on_file!("--rw=read --bs=1m --iodepth=1"), 1.0),
    case("a2-aws-D-file:seq-write", STANDARD, on_file!("--rw=write --bs=1m --iodepth=1"), 1.0),
    case("a2-azure-D-benchmark:access", AZURE_LOCAL, timed!("--rw=randread --bs=512 --iodepth=1", 5), 1.0),
    case("a2-azure-D-benchmark:transfer", AZURE_LOCAL, timed!("--rw=read --bs=64k --iodepth=1", 5), 1.0),
    case("a2-azure-D-file:read-d1", AZURE_LOCAL, on_file!("--rw=randread --bs=4k --iodepth=1"), 1.0),
    case("a2-azure-D-file:write-d1", AZURE_LOCAL, on_file!("--rw=randwrite --bs=4k --iodepth=1"), 1.0),
    case("a2-azure-D-file:read-d32", AZURE_LOCAL, on_file!("--rw=randread --bs=4k --iodepth=32"), 1.0),
    case("a2-azure-D-file:write-d32", AZURE_LOCAL, on_file!("--rw=randwrite --bs=4k --iodepth=32"), 1.0),
    case("a2-azure-D-file:seq-read", AZURE_LOCAL, on_file!("--rw=read --bs=1m --iodepth=1"), 1.0),
    case("a2-azure-D-file:seq-write", AZURE_LOCAL, on_file!("--rw=write --bs=1m --iodepth=1"), 1.0),
    case("a2-azure-E-benchmark:access", AZURE, timed!("--rw=randread --bs=512 --iodepth=1", 5), 1.0),
    case("a2-azure-E-benchmark:transfer", AZURE, timed!("--rw=read --bs=64k --iodepth=1", 5), 1.0),
    case("a2-azure-E-file:read-d1", AZURE, on_file!("--rw=randread --bs=4k --iodepth=1"), 1.0),
    case("a2-azure-E-file:write-d1", AZURE, on_file!("--rw=randwrite --bs=4k --iodepth=1"), 1.0),
    case("a2-azure-E-file:read-d32", AZURE, on_file!("--rw=randread --bs=4k --iodepth=32"), 1.0),
    case("a2-azure-E-file:write-d32", AZURE, on_file!("--rw=randwrite --bs=4k --iodepth=32"), 1.0),
    case("a2-azure-E-file:seq-read", AZURE, on_file!("--rw=read --bs=1m --iodepth=1"), 1.0),
    case("a2-azure-E-file:seq-write", AZURE, on_file!("--rw=write --bs=1m --iodepth=1"), 1.0),
    case("a2-azure-F-benchmark:access", AZURE_CACHED, timed!("--rw=randread --bs=512 --iodepth=1", 5), 1.0),
    case("a2-azure-F-benchmark:transfer", AZURE_CACHED, timed!("--rw=read --bs=64k --iodepth=1", 5), 1.0),
    case("a2-azure-F-file:read-d1", AZURE_CACHED, on_file!("--rw=randread --bs=4k --iodepth=1"), 1.0),
    case("a2-azure-F-file:write-d1", AZURE_CACHED, on_file!("--rw=randwrite --bs=4k --iodepth=1"), 1.0),
    case("a2-azure-F-file:read-d32", AZURE_CACHED, on_file!("--rw=randread --bs=4k --iodepth=32"), 1.0),
    case("a2-azure-F-file:write-d32", AZURE_CACHED, on_file!("--rw=randwrite --bs=4k --iodepth=32"), 1.0),
    case("a2-azure-F-file:seq-read", AZURE_CACHED, on_file!("--rw=read --bs=1m --iodepth=1"), 1.0),
    case("a2-azure-F-file:seq-write", AZURE_CACHED, on_file!("--rw=write --bs=1m --iodepth=1"), 1.0),
    case(
        "a4-premium-3t-seqwrite",
        PREMIUM_3T,
        timed!("--rw=write --bs=128k --iodepth=1 --numjobs=8", 10),
        1.0,
    ),
    case(
        "a4-premium-3t-randread",
        PREMIUM_3T,
        timed!("--rw=randread --bs=4k --iodepth=1 --numjobs=8", 6),
        1.0,
    ),
    case(
        "a4-tencent_cbs_premium-1tib:bw",
        PREMIUM,
        timed!("--rw=write --bs=128k --iodepth=1 --numjobs=8", 10),
        1.0,
    ),
    case(
        "a4-tencent_cbs_premium-1tib:iops",
        PREMIUM,
        timed!("--rw=randread --bs=4k --iodepth=1 --numjobs=8", 6),
        1.0,
    ),
    case("a4-tencent_cbs_ssd-1tib:bw", SSD, timed!("--rw=write --bs=128k --iodepth=1 --numjobs=8", 10), 1.0),
    case(
        "a4-tencent_cbs_ssd-1tib:iops",
        SSD,
        timed!("--rw=randread --bs=4k --iodepth=1 --numjobs=8", 3),
        1.0,
    ),
    case(
        "a4-tencent_cbs_enhanced_ssd-1tib:bw",
        ENHANCED,
        timed!("--rw=write --bs=128k --iodepth=1 --numjobs=8", 10),
        1.0,
    ),
    case(
        "a4-tencent_cbs_enhanced_ssd-1tib:iops",
        ENHANCED,
        timed!("--rw=randread --bs=4k --iodepth=1 --numjobs=8", 3),
        1.0,
    ),
];

/// What a load measured: reads, writes and trims apart.
#[derive(Clone)]
pub(super) struct Measured {
    pub(super) ios: [f64; 3],
    pub(super) bytes: [f64; 3],
    pub(super) lat: [Latency; 3],
    pub(super) seconds: f64,
    pub(super) scale: f64,
}

impl Measured {
    fn of(outcome: &RunOutcome, case: &Case) -> Measured {
        let mut measured = Measured {
            ios: [0.0; 3],
            bytes: [0.0; 3],
            lat: Default::default(),
            seconds: 0.0,
            scale: case.scale,
        };
        // The first worker of a file benchmark writes the file.
        let filling = usize::from(case.options.starts_with("--name=fill"));
        for worker in outcome.workers.iter().skip(filling) {
            let phase = &worker.measured;
            measured.seconds = measured.seconds.max((phase.end_ns - phase.start_ns) as f64 / 1e9);
            for (index, op) in phase.ops().into_iter().enumerate() {
                measured.ios[index] += op.ios as f64;
                measured.bytes[index] += op.bytes as f64;
                measured.lat[index].merge(&op.lat);
            }
        }
        measured
    }

    pub(super) fn iops(&self) -> f64 {
        self.ios.iter().sum::<f64>() / self.seconds
    }

    pub(super) fn bytes_per_second(&self) -> f64 {
        self.bytes.iter().sum::<f64>() / self.seconds
    }

    /// All latencies, ns.
    pub(super) fn all_lat(&self) -> Latency {
        let mut all = Latency::default();
        self.lat.iter().for_each(|lat| all.merge(lat));
        all
    }
}

/// What the loads measured, each simulated when it is first asked for.
#[derive(Default)]
pub(super) struct Results {
    measured: BTreeMap<&'static str, Measured>,
}

impl Results {
    /// What the load `key` measured; `None` if there is no such load.
    pub(super) fn of(&mut self, key: &str) -> Result<Option<Measured>, AssessError> {
        if let Some(known) = self.measured.get(key) {
            return Ok(Some(known.clone()));
        }
        let Some(case) = CASES.iter().find(|case| case.key == key) else { return Ok(None) };
        let measured = Measured::of(&outcome_of(case.volume, case.options, None)?, case);
        self.measured.insert(case.key, measured.clone());
        Ok(Some(measured))
    }
}

fn outcome_of(volume: &str, options: &str, on: Option<&BenchTarget>) -> Result<RunOutcome, AssessError> {
    let mut words: Vec<String> = Vec::new();
    for word in options.split(' ') {
        words.push(word.to_owned());
        if word.starts_with("--name=") {
            words.push(format!("--filename={volume}"));
        }
    }
    let environment = ParseEnvironment {
        engines: &engine_rows(),
        read_file: &|_| Err(std::io::ErrorKind::NotFound.into()),
        variable: &|_| None,
        machine: MachineNumbers::default(),
    };
    let parsed = parse_command_line(&words, &environment).map_err(AssessError::Options)?;
    let plan = parsed.plan(&host_facts()).map_err(AssessError::Options)?;
    let session = match on {
        Some(target) => session_for([target]),
        None => PlanTargets::of(&plan, &VolumeTypes::default())?.session(),
    };
    session.run(&plan, &mut ()).map_err(AssessError::Run)
}

/// IOPS of gp2 of 50 GiB after its burst credits: ten seconds of burst are left, and the last thirty of sixty count.
pub(super) fn after_the_burst() -> Result<f64, AssessError> {
    let mut volume = SimulatedVolume::named(GP2.as_ref(), &VolumeTypes::default())?;
    if let Some(Limit::Credit { initial, .. }) =
        volume.model.shared.first_mut().and_then(|stage| stage.ios.as_mut())
    {
        *initial = 28_500;
    }
    let options = timed!("--rw=randread --bs=4k --iodepth=64", 60);
    let outcome = outcome_of(GP2, options, Some(&BenchTarget::Simulated(Box::new(volume))))?;
    let late = outcome.workers.iter().flat_map(|worker| worker.measured.series.iter());
    let (ios, ns) = late
        .filter(|interval| (30_000_000_000..60_000_000_000).contains(&interval.start_ns))
        .fold((0, 0), |(ios, ns), one| (ios + one.read.ios, ns + one.end_ns - one.start_ns));
    Ok(ios as f64 * 1e9 / ns as f64)
}

/// The smallest gp2 in GiB whose baseline is the highest of the type.
pub(super) fn gp2_max_at_gib() -> Result<f64, AssessError> {
    let baseline = |gib: u64| -> Result<f64, AssessError> {
        let name = format!("sim:aws-gp2-2016?size={gib}GiB");
        let volume = SimulatedVolume::named(name.as_ref(), &VolumeTypes::default())?;
        let limit = volume.model.shared.first().and_then(|stage| stage.ios);
        Ok(limit.map_or(0.0, |limit| limit.baseline().as_f64()))
    };
    let most = baseline(16_384)?;
    for gib in 3_000..4_000 {
        if baseline(gib)? >= most {
            return Ok(gib as f64);
        }
    }
    Ok(0.0)
}
