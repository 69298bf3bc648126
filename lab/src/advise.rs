//! `advise-devices`: loads of known shape are recorded on a capped volume, `fathom advise` predicts what three others would give them,
//! and then they run on those.
//!
//! Volumes are files with exact limits behind a loop device ([`fathom_tests::KnownDisk`]), not the kernel's throttle: that delays
//! requests before the device that is recorded, and grants them in slices, while limits of volumes lie behind the device and are
//! smooth. The loop device is recorded. What a load gets is measured on the file, since a loop device holds 128 requests at most and
//! no latency includes the wait before it. Latencies of candidates are those of their data sheet: only `fathom advise` uses the
//! recording.

use std::fmt;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_tests::{
    BurstBucket, DiskModel, KnownDisk, Need, Program, RateLimit, RateUnit, RepeatableNoise, fathom, run,
    scratch, wait_for,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::driver::{Campaign, Case, CaseResult, Plan};

/// Each shape twice, one after the other: percentiles suffer from what else runs.
pub const DEVICES: Campaign = Campaign {
    cases: SHAPES * 2,
    needs: &[
        Need::Root,
        Need::Tool("losetup"),
        Need::Tool("chrt"),
        Need::Path("/dev/fuse"),
        Need::Path("/dev/loop-control"),
    ],
    resumes: true,
    ..Campaign::new("advise-devices", "Predict recorded loads and run them on capped volumes", |asked| {
        let cases = asked.seeds().map(AdviseCase::from_seed);
        Ok(Plan::new(cases.map(|case| Case::new(case.name.clone(), move || Ok(judged(&measured(&case)))))))
    })
};

/// How far a prediction may be from the truth.
const RATE: f64 = 0.03;
const MEDIAN: f64 = 0.10;
const TAIL: f64 = 0.20;
const EXHAUSTED: f64 = 0.05;
/// A range holds the truth, and spans less than this factor.
const SPAN: f64 = 3.0;
/// Length of a load that does not wait, s.
const LENGTH_S: f64 = 30.0;
const SHAPES: u64 = 10;
/// Credits of a bucket, in seconds of the mean rate.
const CREDIT_S: f64 = 3.6;
/// Size of a request, and of the volumes.
const BLOCK: u64 = 8192;
const SIZE: u64 = 1 << 30;
/// Share of reads.
const READS: f64 = 0.7;
/// Most requests of a burst: the loop device that is recorded holds 128.
const MAX_BURST: f64 = 100.0;
/// Pareto's exponent, and the smallest burst.
const PARETO: f64 = 1.4;
const MIN_BURST: f64 = 2.6;
/// An open load begins after this time: what the program itself reads of a device to be written, which is recorded too, is complete
/// by then on the slowest volume.
const LEAD_S: f64 = 3.0;
/// A run takes its length and what piles up.
const LONGEST: Duration = Duration::from_secs(400);
/// A recorder has begun after this time.
const PATIENCE: Duration = Duration::from_secs(20);

/// How requests arrive. Rates are means, requests per second.
#[derive(Clone, Copy, Debug, PartialEq)]
enum LoadShape {
    /// At equal distances.
    Constant(f64),
    /// Independent of each other.
    Poisson(f64),
    /// A day in [`LENGTH_S`]: independent requests, at 0.2 to 1.8 of the mean.
    Diurnal(f64),
    /// Every third of the time a batch for a fifth of it, at ten times the rate between.
    Batch(f64),
    /// Bursts of a heavy-tailed size (Pareto, exponent 1.4), independent of each other.
    Bursty(f64),
    /// Clients that make one request after the other, with a pause, ms.
    Clients(u32, f64),
    /// One client with so many requests in flight.
    Deep(u32),
    /// Clients with a pause, ms, beside independent requests of this rate.
    Mixed(u32, f64, f64),
}

/// One recording, and three volumes.
#[derive(Clone, Debug)]
struct AdviseCase {
    name: String,
    shape: LoadShape,
    /// Determines arrivals, offsets and operations.
    seed: u64,
    recorded_on: DiskModel,
    /// The volumes it is predicted for: one that serves it, one that delays its peaks, one with a burst bucket.
    others: [(&'static str, DiskModel); 3],
}

impl AdviseCase {
    fn from_seed(index: u64) -> AdviseCase {
        let mut noise = RepeatableNoise::seeded(index + 1);
        // The first numbers of neighbouring seeds are alike.
        (0..8).for_each(|_| _ = noise.even());
        let factor = if index < SHAPES { 1.0 } else { 0.8 + 0.5 * noise.even() };
        let clients = |count: f64| (count * factor).round() as u32;
        // The rate at which a volume delays the load, over the mean, is between the mean and the peak.
        let (name, shape, rate, delayed) = match index % SHAPES {
            0 => ("constant", LoadShape::Constant(700.0 * factor), 700.0, 0.94),
            1 => ("poisson", LoadShape::Poisson(650.0 * factor), 650.0, 1.2),
            2 => ("diurnal", LoadShape::Diurnal(600.0 * factor), 600.0, 1.4),
            3 => ("batch", LoadShape::Batch(500.0 * factor), 500.0, 1.5),
            4 => ("bursty", LoadShape::Bursty(500.0 * factor), 500.0, 1.3),
            5 => ("database", LoadShape::Clients(clients(8.0), 0.0), 1_000.0, 0.7),
            6 => ("think", LoadShape::Clients(clients(4.0), 2.0), 900.0, 0.6),
            7 => ("deep", LoadShape::Deep(clients(8.0)), 1_000.0, 0.7),
            8 => ("mixed", LoadShape::Mixed(clients(4.0), 2.0, 300.0 * factor), 1_200.0, 0.8),
            _ => ("alone", LoadShape::Clients(1, 1.5), 250.0, 0.8),
        };
        let name = format!("{index:02}-{name}");
        let others = volumes(rate * factor, delayed);
        AdviseCase { name, shape, seed: index + 100, recorded_on: volume(8_000.0, 2), others }
    }

    /// Whether the load ends with its requests, however long these take.
    fn is_closed(&self) -> bool {
        matches!(self.shape, LoadShape::Clients(..) | LoadShape::Deep(_))
    }

    /// How long after its run the load begins.
    fn lead_s(&self) -> f64 {
        if self.is_closed() { 0.0 } else { LEAD_S }
    }

    /// Requests of all clients of a closed load: those of about [`LENGTH_S`] on a volume of 4 ms.
    fn closed_requests(&self) -> u64 {
        let per_client = |pause_ms: f64| LENGTH_S * 1e3 / (4.0 + pause_ms);
        let requests = match self.shape {
            LoadShape::Clients(clients, pause_ms) => f64::from(clients) * per_client(pause_ms),
            LoadShape::Deep(depth) => f64::from(depth) * per_client(0.0),
            _ => 0.0,
        };
        requests as u64
    }
}

fn volume(iops: f64, latency_ms: u32) -> DiskModel {
    let latency = f64::from(latency_ms) * 1e-3;
    DiskModel {
        size: SIZE,
        read_latency: latency,
        write_latency: latency,
        limits: vec![RateLimit::iops(iops)],
        is_filled: false,
        ..DiskModel::default()
    }
}

/// Volumes for a mean rate, of which one delays the load at `delayed` times it.
fn volumes(rate: f64, delayed: f64) -> [(&'static str, DiskModel); 3] {
    let scaled = |share: f64| (rate * share).round();
    let bucket = BurstBucket {
        unit: RateUnit::Requests,
        burst: scaled(2.5),
        base: scaled(0.8),
        capacity: scaled(CREDIT_S),
        initial: scaled(CREDIT_S),
    };
    [
        ("served", volume(scaled(6.0), 5)),
        ("delayed", volume(scaled(delayed), 4)),
        ("bucket", DiskModel { limits: Vec::new(), buckets: vec![bucket], ..volume(1.0, 3) }),
    ]
}

/// The name of a volume that behaves so for `fathom advise`.
fn candidate_name(model: &DiskModel) -> String {
    let mut name = format!("sim:custom?latency={}us", (model.read_latency * 1e6).round());
    for limit in &model.limits {
        let _ = write!(name, "&iops={}", limit.per_second);
    }
    for bucket in &model.buckets {
        let BurstBucket { base, burst, capacity, .. } = bucket;
        let _ = write!(name, "&iops={base}&burst_iops={burst}&bucket_ios={capacity}");
    }
    name
}

/// When requests arrive, µs.
fn arrivals(shape: LoadShape, seed: u64) -> Vec<u64> {
    let mut noise = RepeatableNoise::seeded(seed);
    let (mut at_s, mut all) = (0.0, Vec::new());
    let mean_burst = mean_burst();
    while at_s < LENGTH_S {
        let requests = if let LoadShape::Bursty(_) = shape { burst(noise.even()) as usize } else { 1 };
        all.extend(std::iter::repeat_n((at_s * 1e6) as u64, requests));
        let rate = match shape {
            LoadShape::Diurnal(rate) => rate * (1.0 + 0.8 * (at_s / LENGTH_S * std::f64::consts::TAU).sin()),
            // The mean is 0.28 of the batch's rate.
            LoadShape::Batch(rate) if at_s % (LENGTH_S / 3.0) < LENGTH_S / 15.0 => rate / 0.28,
            LoadShape::Batch(rate) => rate / 2.8,
            LoadShape::Bursty(rate) => rate / mean_burst,
            LoadShape::Constant(rate) | LoadShape::Poisson(rate) | LoadShape::Mixed(_, _, rate) => rate,
            LoadShape::Clients(..) | LoadShape::Deep(_) => return Vec::new(),
        };
        at_s += match shape {
            LoadShape::Constant(_) => 1.0 / rate,
            _ => -(1.0 - noise.even()).ln() / rate,
        };
    }
    all
}

/// The size of a burst, for a number from 0 to 1.
fn burst(even: f64) -> f64 {
    (MIN_BURST * (1.0 - even).powf(-1.0 / PARETO)).min(MAX_BURST).floor()
}

fn mean_burst() -> f64 {
    const PARTS: u32 = 100_000;
    (0..PARTS).map(|part| burst((f64::from(part) + 0.5) / f64::from(PARTS))).sum::<f64>() / f64::from(PARTS)
}

/// The requests of an open load on `target`, as an iolog.
fn iolog(case: &AdviseCase, target: &str) -> String {
    let mut noise = RepeatableNoise::seeded(case.seed ^ 0x5eed);
    let mut text = format!("fio version 3 iolog\n0 {target} add\n0 {target} open\n");
    let mut last = 0;
    let lead_us = (LEAD_S * 1e6) as u64;
    for at_us in arrivals(case.shape, case.seed).into_iter().map(|at_us| lead_us + at_us) {
        let offset = (noise.even() * (SIZE / BLOCK) as f64) as u64 * BLOCK;
        let operation = if noise.even() < READS { "read" } else { "write" };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{at_us} {target} {operation} {offset} {BLOCK}");
        last = at_us;
    }
    text + &format!("{last} {target} close\n")
}

/// The words after `fathom fio` of a load on `target`; `log` is its iolog, and names of the latency logs begin with `latencies`.
fn arguments(case: &AdviseCase, target: &str, log: &str, latencies: &str) -> String {
    let common = format!("--direct=1 --output-format=json --eta=never --write_lat_log={latencies}");
    let random =
        format!("--rw=randrw --rwmixread=70 --norandommap --bs={BLOCK} --size={SIZE} --filename={target}");
    let clients = |clients: u32, pause_ms: f64| {
        let pause_us = pause_ms * 1e3;
        format!("{random} --ioengine=psync --group_reporting --numjobs={clients} --thinktime={pause_us}")
    };
    let requests = |clients: u32| format!("--number_ios={}", case.closed_requests() / u64::from(clients));
    // A replay may have more requests outstanding than any queue here.
    let replay = format!("--ioengine=libaio --iodepth=32768 --read_iolog={log}");
    match case.shape {
        LoadShape::Clients(count, pause_ms) => {
            format!("{common} --name=load {} {}", clients(count, pause_ms), requests(count))
        }
        LoadShape::Deep(depth) => {
            format!("{common} --name=load {random} --ioengine=libaio --iodepth={depth} {}", requests(1))
        }
        LoadShape::Mixed(count, pause_ms, _) => format!(
            "{common} --name=replay {replay} --name=clients --new_group {} --startdelay={LEAD_S} --time_based \
             --runtime={LENGTH_S}",
            clients(count, pause_ms)
        ),
        _ => format!("{common} --name=load {replay}"),
    }
}

/// What a load got of a volume.
#[derive(Clone, Debug, Default, PartialEq)]
struct RunFigures {
    ios: f64,
    /// From its first request to the end of its last one.
    seconds: f64,
    /// p50 and p99, ns.
    lat_ns: [f64; 2],
    /// By how much the disk was late, at the same percentiles, ns.
    late_ns: [f64; 2],
    /// When credits were exhausted, from the first request on.
    exhausted_s: Option<f64>,
}

/// A case with all its figures.
#[derive(Clone, Debug)]
struct MeasuredCase {
    is_closed: bool,
    /// What `fathom advise --json` prints.
    advice: Value,
    /// From the beginning of the recording to the first request.
    head_s: f64,
    /// Whether the recorder lost events.
    has_lost: bool,
    /// On the recorded volume.
    recorded: RunFigures,
    /// By volume: its name, its target, what the load got of it.
    truths: Vec<(&'static str, String, RunFigures)>,
}

/// Records the load of `case`, predicts it, and runs it on the other volumes.
fn measured(case: &AdviseCase) -> MeasuredCase {
    let home = scratch();
    let disk = KnownDisk::new(&case.recorded_on);
    let file = home.path().join("app.load");
    let (recorded, has_lost) = record(case, home.path(), &disk, &file);
    let mut command = fathom(home.path());
    command.args(["advise", "--json"]).arg(&file);
    command.args(case.others.iter().map(|(_, model)| format!("--candidate={}", candidate_name(model))));
    let advice = run(command.arg(format!("--current={}", candidate_name(&case.recorded_on)))).document();
    let converted = run(fathom(home.path()).args(["trace", "convert", "--file=/dev/null"]).arg(&file));
    let head_s = first_s(&converted.stdout, case.lead_s()).expect("the load was recorded");
    let truths = case.others.each_ref().map(|(name, model)| {
        disk.become_like(model);
        let mut figures = load(case, home.path(), disk.path());
        figures.exhausted_s = disk.exhausted_after().map(|after| after.as_secs_f64());
        figures.late_ns = [50, 99].map(|percent| disk.lateness(percent).as_nanos() as f64);
        (*name, candidate_name(model), figures)
    });
    MeasuredCase { is_closed: case.is_closed(), advice, head_s, has_lost, recorded, truths: truths.into() }
}

/// Runs the load while it is recorded; whether events were lost.
fn record(case: &AdviseCase, home: &Path, disk: &KnownDisk, file: &Path) -> (RunFigures, bool) {
    let device = disk.device();
    let mut command = fathom(home);
    command.args(["monitor", "--no-owners", "--record"]).arg(file).arg(device.name());
    let recorder = Program::start(&mut command);
    let has_begun = wait_for(PATIENCE, || recorder.stderr().contains("recording every I/O"));
    assert!(has_begun, "no request is recorded:\n{}", recorder.stderr());
    let figures = load(case, home, device.path());
    recorder.signal(Signal::INT);
    (figures, !recorder.finish().stderr.contains("no event lost"))
}

/// When the first request of the load begins in an iolog, not before `lead_s`: what is earlier or of another length is foreign.
fn first_s(iolog: &str, lead_s: f64) -> Option<f64> {
    let length = format!(" {BLOCK}");
    let requests = iolog.lines().filter(|line| line.ends_with(&length));
    let times = requests.filter_map(|line| line.split(' ').next()?.parse::<f64>().ok());
    times.map(|at_us| at_us / 1e6).find(|at_s| *at_s >= lead_s)
}

fn load(case: &AdviseCase, home: &Path, target: &Path) -> RunFigures {
    let target = target.display().to_string();
    let log = home.join("load.iolog");
    std::fs::write(&log, iolog(case, &target)).expect("the scratch directory is ours");
    // In a directory of its own: a run leaves a log for each client.
    let logs = tempfile::tempdir_in(home).expect("the scratch directory is ours");
    let latencies = logs.path().join("load").display().to_string();
    let words = arguments(case, &target, &log.display().to_string(), &latencies);
    let mut command = fathom(home);
    command.arg("fio").args(words.split(' ')).current_dir(home);
    let ended = Program::start(&mut command).finish_within(LONGEST);
    ended.assert_code(0);
    let files =
        std::fs::read_dir(logs.path()).expect("the directory is ours").flatten().map(|file| file.path());
    let is_completion = |file: &PathBuf| file.display().to_string().contains("_clat.");
    let log: String =
        files.filter(is_completion).filter_map(|file| std::fs::read_to_string(file).ok()).collect();
    figures(&ended.document(), &log, case.lead_s())
}

/// The figures in a document of `fathom fio`, whose load begins `lead_s` after the run, and in its log of latencies: percentiles of the
/// document end at 17 s, as fio's do.
fn figures(document: &Value, log: &str, lead_s: f64) -> RunFigures {
    let jobs = || document["jobs"].as_array().into_iter().flatten();
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    let mut latencies: Vec<u64> = log.lines().filter_map(latency_ns).collect();
    latencies.sort_unstable();
    let lat_ns = [50, 99].map(|percent| {
        let rank = (latencies.len() * percent).div_ceil(100).max(1);
        latencies.get(rank - 1).map_or(0.0, |latency| *latency as f64)
    });
    let of_each = |name: &str| -> Vec<f64> {
        jobs().flat_map(|job| ["read", "write"].map(|direction| number(&job[direction][name]))).collect()
    };
    RunFigures {
        ios: of_each("total_ios").iter().sum(),
        seconds: of_each("runtime").into_iter().fold(0.0, f64::max) / 1e3 - lead_s,
        lat_ns,
        ..RunFigures::default()
    }
}

/// The latency in a line of a log, `time ms, latency ns, direction, ...`.
fn latency_ns(line: &str) -> Option<u64> {
    line.split(", ").nth(1)?.parse().ok()
}

/// A prediction beside the truth, which is a range: what was measured, and that less the time by which the disk was late.
struct Figure {
    name: String,
    /// A figure, or the range in which it lies.
    predicted: Option<(f64, f64)>,
    truth: Option<(f64, f64)>,
    max_error: f64,
}

impl Figure {
    /// How far what is predicted is from the truth.
    fn error(&self) -> Option<f64> {
        let ((low, high), (least, most)) = (self.truth?, self.predicted?);
        let truth = (low.min(high), high);
        Some(if least > truth.1 { least / truth.1 } else { (most / truth.0).min(1.0) } - 1.0)
    }

    fn is_near(&self) -> bool {
        // An open end says that it may never happen.
        let is_narrow = self.predicted.is_some_and(|(low, high)| high < low * SPAN || high.is_infinite());
        is_narrow && self.error().is_some_and(|error| error.abs() <= self.max_error)
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let amount = |value: Option<f64>| match (value, self.name.as_str()) {
            (None, _) => "unknown".to_owned(),
            (Some(value), "exhausted") if value.is_infinite() => "never".to_owned(),
            (Some(value), "rate") => format!("{value:.1} IOPS"),
            (Some(value), "exhausted") => format!("{value:.2} s"),
            (Some(value), _) => format!("{:.3} ms", value / 1e6),
        };
        let error = self.error().map_or("unknown".to_owned(), |error| format!("{:+.1} %", error * 100.0));
        let truth = amount(self.truth.map(|truth| truth.1));
        let predicted = match self.predicted {
            Some((low, high)) if high > low * 1.1 => {
                format!("{} to {}", amount(Some(low)), amount(Some(high)))
            }
            predicted => amount(predicted.map(|(low, high)| low.midpoint(high))),
        };
        write!(out, "{:<10} {predicted:>12} predicted {truth:>12} measured {error:>9}", self.name)
    }
}

/// Each figure of a volume.
fn compared(case: &MeasuredCase, found: &Value, truth: &RunFigures) -> Vec<Figure> {
    let range = |found: &Value| Some((found["low"].as_f64()?, found["high"].as_f64()?));
    let figure = |name: &str, predicted, truth, max_error| Figure {
        name: name.to_owned(),
        predicted,
        truth,
        max_error,
    };
    let rate = recorded_rate(case, truth);
    let mut all = vec![figure("rate", range(&found["range"]["iops"]), Some((rate, rate)), RATE)];
    let percentiles = [("p50", MEDIAN), ("p99", TAIL)];
    for (((percentile, max_error), latency), late) in
        percentiles.into_iter().zip(truth.lat_ns).zip(truth.late_ns)
    {
        let predicted = range(&found["range"]["lat_ns"][percentile]);
        all.push(figure(percentile, predicted, Some((latency - late, latency)), max_error));
    }
    // Never is later than any time.
    let from_head = |ns: &Value| ns.as_f64().map_or(f64::INFINITY, |ns| ns / 1e9 - case.head_s);
    let of_range = &found["range"]["exhausted_ns"];
    let predicted = (from_head(&of_range["low"]), from_head(&of_range["high"]));
    let exhausted_s = truth.exhausted_s.unwrap_or(f64::INFINITY);
    if predicted.0.is_finite() || exhausted_s.is_finite() {
        all.push(figure("exhausted", Some(predicted), Some((exhausted_s, exhausted_s)), EXHAUSTED));
    }
    all
}

/// The rate of a run by the clock of the recording, which begins before the first request; that of an open load also ends after
/// the last one.
fn recorded_rate(case: &MeasuredCase, truth: &RunFigures) -> f64 {
    let length_s = case.advice["observed"]["length_ns"].as_f64().unwrap_or(0.0) / 1e9;
    let until_s = case.head_s + truth.seconds;
    truth.ios / if case.is_closed { until_s } else { until_s.max(length_s) }
}

/// Every figure in a line, and a fault for each that is not near enough.
fn judged(case: &MeasuredCase) -> CaseResult {
    let observed = &case.advice["observed"];
    let mut result = CaseResult::new(observed["pace"].as_str().unwrap_or("-"));
    for (name, target, truth) in &case.truths {
        let candidates = case.advice["candidates"].as_array().into_iter().flatten();
        let found = candidates.clone().find(|found| found["target"] == **target);
        for figure in compared(case, found.map_or(&Value::Null, |found| &found["predicted"]), truth) {
            let _ = write!(result.line, "\n    {name:<8} {figure}");
            let column = if figure.is_near() { "figures near the truth" } else { "figures outside" };
            result = result.count(column, 1);
            if !figure.is_near() {
                result =
                    result.faults([format!("{name}: {figure}: outside {:.0} %", figure.max_error * 100.0)]);
            }
        }
    }
    let recorded = &case.recorded;
    let current = &case.advice["current"]["predicted"];
    let lost = case.has_lost.then(|| "the recorder lost events".to_owned());
    result.faults(lost).facts(json!({"recorded": {"iops": recorded.ios / recorded.seconds,
        "lat_ns": recorded.lat_ns, "observed_ns": observed["lat_ns"],
        "predicted_ns": current["lat_ns"]}}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_different_and_always_the_same() {
        let cases: Vec<AdviseCase> = (0..SHAPES * 2).map(AdviseCase::from_seed).collect();
        for (index, case) in cases.iter().enumerate() {
            let is_other = |other: &AdviseCase| other.shape != case.shape || other.others != case.others;
            assert!(cases[..index].iter().all(|other| other.name != case.name && is_other(other)));
            assert_eq!(AdviseCase::from_seed(index as u64).shape, case.shape);
        }
    }

    #[test]
    fn volumes_have_names() {
        let [served, delayed, bucket] =
            volumes(1_000.0, 1.5).each_ref().map(|(_, model)| candidate_name(model));
        assert_eq!(served, "sim:custom?latency=5000us&iops=6000");
        assert_eq!(delayed, "sim:custom?latency=4000us&iops=1500");
        assert_eq!(bucket, "sim:custom?latency=3000us&iops=800&burst_iops=2500&bucket_ios=3600");
    }

    #[test]
    fn loads_have_their_mean_rate_and_their_shape() {
        for (index, rate, expected) in [
            (0, 700.0, 0.9..1.1),
            (1, 650.0, 1.0..1.3),
            (2, 600.0, 1.6..2.3),
            (3, 500.0, 3.0..4.2),
            (4, 500.0, 1.4..6.0),
            (8, 300.0, 1.0..1.4),
        ] {
            let case = AdviseCase::from_seed(index);
            let all = arrivals(case.shape, case.seed);
            let found = all.len() as f64 / LENGTH_S;
            assert!((found / rate - 1.0).abs() < 0.1, "{}: {found}, not {rate}", case.name);
            assert!(all.is_sorted());
            // The busiest second over the mean.
            let mut seconds = vec![0; LENGTH_S as usize];
            all.iter().for_each(|at_us| seconds[(at_us / 1_000_000) as usize] += 1);
            let peak = f64::from(*seconds.iter().max().unwrap()) / rate;
            assert!(expected.contains(&peak), "{}: {peak}", case.name);
        }
    }

    #[test]
    fn an_iolog_has_every_request() {
        let case = AdviseCase::from_seed(4);
        let text = iolog(&case, "/dev/loop9");
        let requests = text.lines().filter(|line| line.ends_with(" 8192")).count();
        assert_eq!(requests, arrivals(case.shape, case.seed).len());
        assert!(text.ends_with("close\n"));
        assert!(arguments(&AdviseCase::from_seed(5), "x", "", "").contains(" --numjobs=8 "));
        let iolog =
            "40000 /dev/null read 0 8192\n3100000 /dev/null read 0 4096\n3400000 /dev/null read 8 8192\n";
        assert_eq!((first_s(iolog, 3.0), first_s(iolog, 0.0)), (Some(3.4), Some(0.04)));
        assert_eq!(first_s("", 0.0), None);
    }

    #[test]
    fn figures_of_a_document() {
        let counted = |ios: u64, ms: u64| json!({"total_ios": ios, "runtime": ms});
        let document = json!({"jobs": [{"read": counted(150, 3000), "write": counted(1, 2999)}]});
        // Reads of 1 to 150 ns, and a write.
        let reads: String = (1..=150).rev().map(|ns| format!("{ns}, {ns}, 0, 8192, 0\n")).collect();
        let log = reads + "7, 20000000000, 1, 8192, 0\n";
        let lat_ns = [76.0, 150.0];
        let expected = RunFigures { ios: 151.0, seconds: 2.0, lat_ns, ..RunFigures::default() };
        assert_eq!(figures(&document, &log, 1.0), expected);
    }

    fn case(iops: f64, p99: [f64; 2], exhausted_ns: Option<f64>) -> MeasuredCase {
        let range = |low: f64, high: f64| json!({"low": low, "high": high});
        let predicted = json!({"range": {
            "iops": range(iops, iops),
            "lat_ns": {"p50": range(1e6, 1e6), "p99": range(p99[0], p99[1])},
            "exhausted_ns": exhausted_ns.map(|low| json!({"low": low, "high": Some(low).filter(|ns| *ns > 3e9)})),
        }});
        let (ios, seconds, exhausted_s) = (5_000.0, 9.0, Some(5.0));
        let truth = RunFigures { ios, seconds, lat_ns: [1e6, 4e6], late_ns: [0.0; 2], exhausted_s };
        MeasuredCase {
            is_closed: false,
            advice: json!({"observed": {"length_ns": 10e9, "pace": "open"},
                "candidates": [{"target": "sim:a", "predicted": predicted}]}),
            head_s: 0.5,
            has_lost: false,
            recorded: truth.clone(),
            truths: vec![("served", "sim:a".to_owned(), truth)],
        }
    }

    #[test]
    fn figures_have_to_be_near() {
        let check = |case: &MeasuredCase, expected: &[&str]| {
            let faults = judged(case).faults;
            assert_eq!(faults.len(), expected.len(), "{faults:?}");
            for (fault, name) in faults.iter().zip(expected) {
                assert!(fault.contains(name), "{fault}");
            }
        };
        check(&case(501.0, [4.7e6; 2], Some(5.6e9)), &[]);
        check(&case(520.0, [4.3e6; 2], Some(5.6e9)), &["served: rate"]);
        check(&case(500.0, [5.0e6; 2], None), &["p99", "exhausted"]);
        // From 2.5 s on, if ever.
        check(&case(500.0, [4e6; 2], Some(3e9)), &[]);
        check(&case(500.0, [2.0e6, 5.0e6], Some(5.5e9)), &[]);
        check(&case(500.0, [1.0e6, 5.0e6], Some(5.5e9)), &["p99"]);
        // The disk was late by a fifth.
        let mut late = case(500.0, [3.1e6; 2], Some(5.5e9));
        check(&late, &["p99"]);
        late.truths[0].2.late_ns = [0.0, 0.8e6];
        check(&late, &[]);
        check(&MeasuredCase { is_closed: true, ..case(5_000.0 / 9.5, [4e6; 2], Some(5.5e9)) }, &[]);
        check(&MeasuredCase { has_lost: true, ..case(500.0, [4e6; 2], Some(5.5e9)) }, &["lost events"]);
    }
}
