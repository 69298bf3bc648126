//! CPU time per simulated request, through the whole loop.
//!
//! Prints a line per case: ns of the thread's CPU time per request, the minimum and the median of several runs.
//! Arguments name the cases; `--runs=N` and `--requests=N` set the amount. Use `cargo bench -p fathom-runner --bench
//! simulated`.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout)] // The result goes to standard output.

#[path = "../tests/suite/plans.rs"]
mod plans;
mod volumes;

use fathom_model::plan::Mix;
use fathom_model::{JobPlan, Nanos, Rate};
use fathom_sys::thread::usage_of_this_thread;
use fathom_volume::{VolumeLatency, VolumeModel};

/// A workload on a volume.
struct Case {
    name: &'static str,
    model: fn() -> VolumeModel,
    jobs: usize,
    depth: u32,
    change: fn(&mut JobPlan),
}

const fn case(name: &'static str, model: fn() -> VolumeModel, jobs: usize, depth: u32) -> Case {
    Case { name, model, jobs, depth, change: |_| {} }
}

const CASES: &[Case] = &[
    case("cap-depth-1", volumes::cap, 1, 1),
    case("cap-depth-32", volumes::cap, 1, 32),
    case("cap-depth-256", volumes::cap, 1, 256),
    case("cap-jobs-3", volumes::cap, 3, 32),
    case("cap-jobs-8", volumes::cap, 8, 32),
    case("gp2-depth-1", volumes::gp2, 1, 1),
    case("gp2-depth-32", volumes::gp2, 1, 32),
    case("gp2-depth-256", volumes::gp2, 1, 256),
    case("gp2-jobs-3", volumes::gp2, 3, 32),
    case("gp2-jobs-8", volumes::gp2, 8, 32),
    case("latency-depth-1", wide, 1, 1),
    case("latency-depth-32", wide, 1, 32),
    case("latency-depth-256", wide, 1, 256),
    case("latency-depth-4096", wide, 1, 4096),
    case("servers-depth-32", narrow, 1, 32),
    Case { change: mixed, ..case("cap-mixed", volumes::cap, 1, 32) },
    Case { change: mixed, ..case("latency-mixed", wide, 1, 32) },
    Case { change: paced, ..case("cap-at-a-rate", volumes::cap, 1, 32) },
    Case { change: resting, ..case("cap-with-rests", volumes::cap, 1, 32) },
];

/// Latency, without other limits.
fn wide() -> VolumeModel {
    let (read_latency, write_latency) = (VolumeLatency::around(500_000), VolumeLatency::around(500_000));
    VolumeModel { read_latency, write_latency, ..VolumeModel::unlimited(50 << 30) }
}

/// Parallelism 16.
fn narrow() -> VolumeModel {
    VolumeModel { parallelism: Some(16), ..wide() }
}

fn mixed(job: &mut JobPlan) {
    job.io.pattern.mix = Mix::ReadWrite { read_percent: 70 };
}

fn paced(job: &mut JobPlan) {
    job.time.rate.rates.read = Rate::iops(50_000);
}

/// A pause of ten seconds after every 1,000 requests.
fn resting(job: &mut JobPlan) {
    (job.time.think_time.pause, job.time.think_time.blocks) = (Nanos::from_secs(10), Some(1000));
}

fn main() {
    let value = |key: &str| {
        std::env::args().find_map(|argument| argument.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
    };
    let (runs, requests) = (value("--runs").unwrap_or(5), value("--requests").unwrap_or(2_000_000));
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    for case in CASES.iter().filter(|case| wanted.is_empty() || wanted.iter().any(|name| name == case.name)) {
        let mut ns: Vec<f64> = (0..runs.max(1)).map(|_| ns_per_request(case, requests)).collect();
        ns.sort_by(f64::total_cmp);
        println!("{:20} {:7.1} {:7.1}", case.name, ns[0], ns[ns.len() / 2]);
    }
}

fn ns_per_request(case: &Case, requests: u64) -> f64 {
    let mut job = volumes::job(case.depth, requests / case.jobs as u64);
    (case.change)(&mut job);
    let before = usage_of_this_thread();
    let done = volumes::run(&(case.model)(), &job, case.jobs);
    let after = usage_of_this_thread();
    (after.user_ns + after.system_ns - before.user_ns - before.system_ns) as f64 / done as f64
}
