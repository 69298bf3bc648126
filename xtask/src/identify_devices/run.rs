//! One device of the campaign: made, capped, disturbed and identified.

use std::process::{Child, Stdio};
use std::time::Duration;

use fathom_tests::{LoopDevice, Need, Program, Throttle, fathom_under, scratch};
use serde_json::Value;

use super::case::{DeviceCase, Disturbance};

const SIZE: u64 = 64 << 20;
/// Time for one direction; that of both is twice as long.
const BUDGET_S: u64 = 180;
/// How often a limit is set anew, and how long a neighbour is there and away.
const STEP: Duration = Duration::from_millis(500);
const PERIOD_S: f64 = 60.0;
/// A run keeps its budget but for the requests in flight at its end.
const AFTER: Duration = Duration::from_secs(60);

/// What the campaign needs of the machine.
pub const NEEDS: &[Need] =
    &[Need::Root, Need::BlockLimits, Need::Tool("losetup"), Need::Tool("fio"), Need::Path("/dev/shm")];

/// What `fathom identify --json` prints of the device of `case`.
pub fn identify(case: &DeviceCase) -> Value {
    let (device, home) = (LoopDevice::in_memory(SIZE), scratch());
    let throttle = Throttle::new(device.path(), &case.cap);
    let budget_s = BUDGET_S * if case.writes() { 2 } else { 1 };
    let mut command = fathom_under(&throttle, home.path());
    command.args(["identify", "--json", "--no-history", &format!("--budget={budget_s}s")]);
    if case.writes() {
        command.arg(format!("--destroy-data={}", device.path().display()));
    }
    let mut program = Program::start(command.arg(device.path()));
    let began = crate::gate::now();
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
    let scaled = |share: f64| {
        let mut cap = case.cap;
        cap.read_iops = cap.read_iops.map(|iops| ((iops as f64 * share) as u64).max(1));
        cap
    };
    let is_on = ((seconds / PERIOD_S) as u64).is_multiple_of(2);
    match case.disturbance {
        Disturbance::None => {}
        Disturbance::Decay(a_minute) => throttle.set(&scaled((1.0 - a_minute).powf(seconds / 60.0))),
        Disturbance::HiddenNeighbour => throttle.set(&scaled(if is_on { 0.5 } else { 1.0 })),
        Disturbance::OtherProcess(iops) if is_on && other.is_none() => {
            let mut fio = throttle.command("fio");
            fio.args(["--name=other", "--direct=1", "--ioengine=libaio", "--rw=randread", "--bs=4k"]);
            fio.args(["--iodepth=8", "--time_based", "--runtime=600"]);
            fio.arg(format!("--rate_iops={iops}")).arg(format!("--filename={}", device.path().display()));
            *other = fio.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok();
        }
        Disturbance::OtherProcess(_) if !is_on => end(other),
        Disturbance::OtherProcess(_) => {}
    }
}

fn end(other: &mut Option<Child>) {
    if let Some(mut child) = other.take() {
        child.kill().ok();
        child.wait().ok();
    }
}
