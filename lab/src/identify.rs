//! `identify-devices`: identifies capped devices whose limits are known and counts how many intervals hold them, and whether buckets
//! were invented where a rate decays or another process takes a share.
//!
//! The devices are loop devices in memory under the kernel's throttle: reads and writes have separate limits.

use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::ensure;
use fathom_tests::{Cap, LoopDevice, Need, Program, RepeatableNoise, Throttle, fathom_under, scratch};
use serde_json::Value;
use xtask::process::now;

use crate::driver::{Campaign, Case, CaseResult, Plan, sum};

/// 120 devices are more than a hundred limits; each is capped far below what the machine can do.
pub const CAMPAIGN: Campaign = Campaign {
    cases: 120,
    jobs: 4,
    needs: &[Need::Root, Need::BlockLimits, Need::Tool("losetup"), Need::Tool("fio"), Need::Path("/dev/shm")],
    resumes: true,
    ..Campaign::new(
        "identify-devices",
        "Identify capped devices and compare the intervals with their limits",
        |asked| {
            let cases = asked.seeds().map(DeviceCase::from_seed);
            let cases =
                cases.map(|case| Case::new(case.name.clone(), move || Ok(judged(&case, &identified(&case)))));
            Ok(Plan::new(cases).judged_by(|results| enough_held(sum(results, HELD), sum(results, OUTSIDE))))
        },
    )
};

const SIZE: u64 = 64 << 20;
/// Time for one direction; that of both is twice as long.
const BUDGET_S: u64 = 180;
/// How often a limit is set anew, and how long a neighbour is there and away.
const STEP: Duration = Duration::from_millis(500);
const PERIOD_S: f64 = 60.0;
/// A run keeps its budget but for the requests in flight at its end.
const AFTER: Duration = Duration::from_secs(60);
const HELD: &str = "intervals that hold the limit";
/// Both count as wrong intervals: of steady limits, and values of limits that changed.
const OUTSIDE: &str = "wrong intervals";

/// What happens to a device while it is identified.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Disturbance {
    None,
    /// Its limit falls by this share a minute.
    Decay(f64),
    /// Another process reads this many requests a second, 60 s on and 60 s off.
    OtherProcess(u64),
    /// Half of its limit is gone every other minute, and no counter shows why.
    HiddenNeighbour,
}

/// One device.
#[derive(Clone, Debug)]
struct DeviceCase {
    /// Unique, with its numbers.
    name: String,
    cap: Cap,
    disturbance: Disturbance,
}

impl DeviceCase {
    fn from_seed(index: u64) -> DeviceCase {
        let state = index.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678_9abc_def1);
        let mut noise = RepeatableNoise::new(state);
        // Small numbers as often as large ones.
        let mut around = |least: f64, most: f64| (least * (most / least).powf(noise.even())).round() as u64;
        let (iops, other) = (around(80.0, 3000.0), around(80.0, 3000.0));
        let (bytes, other_bytes) = (around(4e6, 9e7), around(4e6, 9e7));
        let quick = iops.max(500);
        // Both limits of one direction meet at some KiB.
        let above = bytes.max(iops * 6_000);
        let cap =
            |read_iops, write_iops, read_bps, write_bps| Cap { read_iops, write_iops, read_bps, write_bps };
        let calm = Disturbance::None;
        let (name, cap, disturbance) = match index % 10 {
            0 => ("read-iops", cap(Some(iops), None, None, None), calm),
            1 => ("write-iops", cap(None, Some(iops), None, None), calm),
            2 => ("read-bytes", cap(None, None, Some(bytes), None), calm),
            3 => ("both-iops", cap(Some(iops), Some(other), None, None), calm),
            4 => ("read-both", cap(Some(iops), None, Some(above), None), calm),
            5 => ("both-bytes", cap(None, None, Some(bytes), Some(other_bytes)), calm),
            6 => {
                ("decay", cap(Some(quick), None, None, None), Disturbance::Decay(0.05 + 0.25 * noise.even()))
            }
            7 => ("process", cap(Some(quick), None, None, None), Disturbance::OtherProcess(quick / 2)),
            8 => ("neighbour", cap(Some(quick), None, None, None), Disturbance::HiddenNeighbour),
            _ => ("write-both", cap(None, Some(iops), None, Some(above)), calm),
        };
        DeviceCase { name: format!("{index:03}-{name}-{iops}-{bytes}"), cap, disturbance }
    }

    /// Each limit, by the member of the document that tells it.
    fn limits(&self) -> Vec<(&'static str, f64)> {
        let Cap { read_iops, write_iops, read_bps, write_bps } = self.cap;
        let all = [
            ("/iops/read", read_iops),
            ("/iops/write", write_iops),
            ("/bytes_per_second/read", read_bps),
            ("/bytes_per_second/write", write_bps),
        ];
        all.into_iter().filter_map(|(path, limit)| Some((path, limit? as f64))).collect()
    }

    fn writes(&self) -> bool {
        self.cap.write_iops.is_some() || self.cap.write_bps.is_some()
    }
}

/// What `fathom identify --json` prints of the device of `case`.
fn identified(case: &DeviceCase) -> Value {
    let (device, home) = (LoopDevice::in_memory(SIZE), scratch());
    let throttle = Throttle::new(device.path(), &case.cap);
    let budget_s = BUDGET_S * if case.writes() { 2 } else { 1 };
    let mut command = fathom_under(&throttle, home.path());
    command.args(["identify", "--json", "--no-history", &format!("--budget={budget_s}s")]);
    if case.writes() {
        command.arg(format!("--destroy-data={}", device.path().display()));
    }
    let mut program = Program::start(command.arg(device.path()));
    let began = now();
    let mut other = None;
    while !program.has_ended() && began.elapsed() < Duration::from_secs(budget_s) + AFTER {
        std::thread::park_timeout(STEP);
        disturb(case, &throttle, &device, began.elapsed().as_secs_f64(), &mut other);
    }
    end(&mut other);
    program.finish_within(AFTER).document()
}

fn disturb(
    case: &DeviceCase,
    throttle: &Throttle,
    device: &LoopDevice,
    seconds: f64,
    other: &mut Option<Child>,
) {
    let scale = |share: f64| {
        let mut cap = case.cap;
        cap.read_iops = cap.read_iops.map(|iops| ((iops as f64 * share) as u64).max(1));
        throttle.set(&cap);
    };
    let is_on = ((seconds / PERIOD_S) as u64).is_multiple_of(2);
    match case.disturbance {
        Disturbance::None => {}
        Disturbance::Decay(a_minute) => scale((1.0 - a_minute).powf(seconds / 60.0)),
        Disturbance::HiddenNeighbour => scale(if is_on { 0.5 } else { 1.0 }),
        Disturbance::OtherProcess(iops) if is_on && other.is_none() => {
            *other = Some(neighbour(throttle, device, iops));
        }
        Disturbance::OtherProcess(_) if !is_on => end(other),
        Disturbance::OtherProcess(_) => {}
    }
}

/// Another process that reads `iops` blocks of 4 KiB a second of `device`, under the same throttle.
pub fn neighbour(throttle: &Throttle, device: &LoopDevice, iops: u64) -> Child {
    let mut fio = throttle.command("fio");
    fio.args(["--name=other", "--direct=1", "--ioengine=libaio", "--rw=randread", "--bs=4k", "--iodepth=8"]);
    fio.args(["--time_based", "--runtime=600", &format!("--rate_iops={iops}")]);
    fio.arg(format!("--filename={}", device.path().display()));
    let silent = fio.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    silent.spawn().unwrap_or_else(|error| panic!("cannot run {silent:?}: {error}"))
}

fn end(other: &mut Option<Child>) {
    if let Some(mut child) = other.take() {
        child.kill().ok();
        child.wait().ok();
    }
}

/// `/iops/read 717 (710 to 727) of 719: held`, and a fault for what was invented.
fn judged(case: &DeviceCase, document: &Value) -> CaseResult {
    let mut result = CaseResult::default().count(HELD, 0).count(OUTSIDE, 0);
    let mut limits = Vec::new();
    for (path, truth) in case.limits() {
        let figure = document.pointer(path).unwrap_or(&Value::Null);
        let [low, value, high] = ["low", "value", "high"].map(|name| figure[name].as_f64());
        let verdict = match (value, low, high) {
            (Some(_), Some(low), Some(high)) if low <= truth && truth <= high => "held",
            (Some(_), ..) => "outside",
            (None, Some(low), _) if low > truth => "outside",
            (None, Some(_), _) => "a bound",
            _ => "unknown",
        };
        result = match verdict {
            "held" => result.count(HELD, 1),
            "outside" => result.count(OUTSIDE, 1),
            _ if case.disturbance == Disturbance::None => result.count("steady limits without a value", 1),
            _ => result,
        };
        let [low, value, high] =
            [low, value, high].map(|number| number.map_or("-".to_owned(), |number| format!("{number:.0}")));
        limits.push(format!("{path} {value} ({low} to {high}) of {truth:.0}: {verdict}"));
    }
    let has_bursts = document["bursts"].as_array().is_some_and(|bursts| !bursts.is_empty());
    let bucket = has_bursts.then(|| "a bucket was invented".to_owned());
    let touch = (!document["first_touch"].is_null()).then(|| "a first-touch penalty was invented".to_owned());
    let confounders: Vec<&str> = document["confounders"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| one["id"].as_str())
        .collect();
    result.line = format!("{}; {confounders:?}", limits.join(", "));
    result.faults(bucket).faults(touch)
}

fn enough_held(held: u64, outside: u64) -> anyhow::Result<()> {
    ensure!(held * 10 >= (held + outside) * 9, "fewer than 90 % of the intervals hold their limits");
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cases_are_different_and_always_the_same() {
        let names: std::collections::BTreeSet<String> =
            (0..300).map(|index| DeviceCase::from_seed(index).name).collect();
        assert_eq!(names.len(), 300);
        for index in 0..300 {
            let (case, again) = (DeviceCase::from_seed(index), DeviceCase::from_seed(index));
            assert_eq!((&case.name, case.cap, case.disturbance), (&again.name, again.cap, again.disturbance));
            assert!(case.limits().iter().all(|(_, limit)| *limit >= 80.0), "{case:?}");
        }
    }

    #[test]
    fn intervals_hold_or_not_and_nothing_is_invented() {
        let case = DeviceCase {
            name: "a".to_owned(),
            cap: Cap { read_iops: Some(700), write_iops: Some(300), ..Cap::default() },
            disturbance: Disturbance::None,
        };
        let document = json!({
            "iops": {"read": {"low": 690, "value": 701, "high": 712}, "write": {"low": 301, "why": "short"}},
            "bursts": [], "confounders": [{"id": "foreign-io"}],
        });
        let result = judged(&case, &document);
        let counts = (sum(std::slice::from_ref(&result), HELD), sum(std::slice::from_ref(&result), OUTSIDE));
        assert_eq!((counts, result.faults.len()), ((1, 1), 0));
        assert!(
            result
                .line
                .starts_with("/iops/read 701 (690 to 712) of 700: held, /iops/write - (301 to -) of 300")
        );
        let invented = judged(&case, &json!({"bursts": [1], "first_touch": {}}));
        assert_eq!(invented.faults.len(), 2);
        assert!(enough_held(9, 1).is_ok() && enough_held(8, 1).is_err());
    }
}
