//! The published runs on the simulated volumes: the same options, the real loop, virtual time.

use std::collections::BTreeMap;

use fathom_assess::{
    BenchTarget, PlanTargets, SimulatedVolume, VolumeTypes, engine_rows, host_facts, session_for,
};
use fathom_options::{MachineNumbers, ParseEnvironment, parse_command_line};
use fathom_stats::{Latency, RunOutcome};
use fathom_volume::Limit;

/// A load on a volume.
pub struct Case {
    /// The published run, and which of its loads.
    pub key: &'static str,
    pub volume: &'static str,
    pub options: &'static str,
    /// How many times as long the published run was: counts and times are multiplied by it.
    pub scale: f64,
}

const GP2: &str = "sim:aws-gp2-2016?size=50GiB";
const DO: &str = "sim:do-volume-standard-2018-04";
const DO_HIGH_CPU: &str = "sim:do-volume-high-cpu-2018-04";
const IO1_E: &str = "sim:aws-io1-2012?size=100GiB&iops=1000";
const IO1_F: &str = "sim:aws-io1-2012?size=200GiB&iops=2000";
const PREMIUM: &str = "sim:tencent-cbs-premium?size=1TiB";
const PREMIUM_3T: &str = "sim:tencent-cbs-premium?size=3TiB";
const SSD: &str = "sim:tencent-cbs-ssd?size=1TiB";
const ENHANCED: &str = "sim:tencent-cbs-enhanced-ssd?size=1TiB";

macro_rules! timed {
    ($options:literal, $seconds:literal) => {
        concat!("--name=test --ioengine=libaio --direct=1 ", $options, " --time_based --runtime=", $seconds)
    };
}

const fn case(key: &'static str, volume: &'static str, options: &'static str, scale: f64) -> Case {
    Case { key, volume, options, scale }
}

/// Every load. Article 0 ran `--gtod_reduce=1`, which keeps latencies from being recorded and changes nothing else; its files
/// of 4 GiB are cut to an eighth, as the rate does not change within. Runs of a fixed time are as long as their figures need.
pub const CASES: &[Case] = &[
    case(
        "a0-aws-randrw",
        GP2,
        "--randrepeat=1 --ioengine=libaio --direct=1 --name=test --bs=4k --iodepth=64 --size=4g --readwrite=randrw --rwmixread=75 --io_size=512m",
        8.0,
    ),
    case(
        "a0-aws-randread",
        GP2,
        "--randrepeat=1 --ioengine=libaio --direct=1 --name=test --bs=4k --iodepth=64 --size=4g --readwrite=randread --io_size=512m",
        8.0,
    ),
    case(
        "a0-aws-randwrite",
        GP2,
        "--randrepeat=1 --ioengine=libaio --direct=1 --name=test --bs=4k --iodepth=64 --size=4g --readwrite=randwrite --io_size=512m",
        8.0,
    ),
    case(
        "a0-aws-ioping",
        GP2,
        "--name=ping --ioengine=libaio --direct=1 --rw=randread --bs=4k --iodepth=1 --thinktime=1s --io_size=16m",
        1.0,
    ),
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
    case("a4-premium-1t:bw", PREMIUM, timed!("--rw=write --bs=128k --iodepth=1 --numjobs=8", 10), 1.0),
    case("a4-premium-1t:iops", PREMIUM, timed!("--rw=randread --bs=4k --iodepth=1 --numjobs=8", 6), 1.0),
    case("a4-ssd:bw", SSD, timed!("--rw=write --bs=128k --iodepth=1 --numjobs=8", 10), 1.0),
    case("a4-ssd:iops", SSD, timed!("--rw=randread --bs=4k --iodepth=1 --numjobs=8", 3), 1.0),
    case("a4-enhanced:bw", ENHANCED, timed!("--rw=write --bs=128k --iodepth=1 --numjobs=8", 10), 1.0),
    case("a4-enhanced:iops", ENHANCED, timed!("--rw=randread --bs=4k --iodepth=1 --numjobs=8", 3), 1.0),
];

/// What a load got: read, write and trim together or apart.
pub struct Measured {
    pub ios: [f64; 3],
    pub bytes: [f64; 3],
    pub lat: [Latency; 3],
    pub seconds: f64,
    pub scale: f64,
}

impl Measured {
    fn of(outcome: &RunOutcome, scale: f64) -> Measured {
        let mut measured =
            Measured { ios: [0.0; 3], bytes: [0.0; 3], lat: Default::default(), seconds: 0.0, scale };
        for worker in &outcome.workers {
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

    pub fn iops(&self) -> f64 {
        self.ios.iter().sum::<f64>() / self.seconds
    }

    pub fn bytes_per_second(&self) -> f64 {
        self.bytes.iter().sum::<f64>() / self.seconds
    }

    /// All latencies, ns.
    pub fn all_lat(&self) -> Latency {
        let mut all = Latency::default();
        self.lat.iter().for_each(|lat| all.merge(lat));
        all
    }
}

/// What all loads got, and what only the models tell.
pub struct Results {
    measured: BTreeMap<&'static str, Measured>,
    /// IOPS of gp2 of 50 GiB once the credit of ten seconds of burst is spent.
    pub after_the_bucket: f64,
    /// The smallest gp2 in GiB whose baseline is its highest.
    pub gp2_max_at_gib: f64,
}

impl Results {
    pub fn of(&self, key: &str) -> &Measured {
        self.measured.get(key).unwrap_or_else(|| panic!("there is no case {key}"))
    }
}

pub fn run_all() -> Results {
    Results {
        measured: CASES.iter().map(|case| (case.key, run(case))).collect(),
        after_the_bucket: after_the_bucket(),
        gp2_max_at_gib: gp2_max_at_gib(),
    }
}

fn outcome_of(volume: &str, options: &str, on: Option<&BenchTarget>) -> RunOutcome {
    let mut words: Vec<String> = options.split(' ').map(str::to_owned).collect();
    words.push(format!("--filename={volume}"));
    let environment = ParseEnvironment {
        engines: &engine_rows(),
        read_file: &|_| Err(std::io::ErrorKind::NotFound.into()),
        variable: &|_| None,
        machine: MachineNumbers::default(),
    };
    let plan = parse_command_line(&words, &environment).unwrap().plan(&host_facts()).unwrap();
    let session = match on {
        Some(target) => session_for([target]),
        None => PlanTargets::of(&plan, &VolumeTypes::default()).unwrap().session(),
    };
    session.run(&plan, &mut ()).unwrap()
}

fn run(case: &Case) -> Measured {
    Measured::of(&outcome_of(case.volume, case.options, None), case.scale)
}

/// Ten seconds of burst are left in the bucket; what comes in the last thirty of sixty.
fn after_the_bucket() -> f64 {
    let mut volume = SimulatedVolume::named(GP2.as_ref(), &VolumeTypes::default()).unwrap();
    let Some(Limit::Credit { initial, .. }) = &mut volume.model.shared[0].ios else {
        panic!("gp2 has credit")
    };
    *initial = 28_500;
    let options = timed!("--rw=randread --bs=4k --iodepth=64", 60);
    let outcome = outcome_of(GP2, options, Some(&BenchTarget::Simulated(Box::new(volume))));
    let late = outcome.workers[0].measured.series.iter();
    let (ios, ns) = late
        .filter(|interval| (30_000_000_000..60_000_000_000).contains(&interval.start_ns))
        .fold((0, 0), |(ios, ns), one| (ios + one.read.ios, ns + one.end_ns - one.start_ns));
    ios as f64 * 1e9 / ns as f64
}

fn gp2_max_at_gib() -> f64 {
    let baseline = |gib: u64| {
        let volume = SimulatedVolume::named(
            format!("sim:aws-gp2-2016?size={gib}GiB").as_ref(),
            &VolumeTypes::default(),
        )
        .unwrap();
        volume.model.shared[0].ios.map_or(0.0, |limit| limit.baseline().as_f64())
    };
    let most = baseline(16_384);
    (3_000..4_000).find(|gib| baseline(*gib) >= most).unwrap_or(0) as f64
}
