//! `known-devices`: measures disks of which everything is known, with the command that a user would take, and judges what it says: each
//! statement is right, wrong or missing; findings without a cause are invented; intervals hold the truth or not.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{self, Child, Stdio};
use std::time::Duration;

use anyhow::ensure;
use fathom_tests::{
    BurstBucket, Direction, DiskModel, KnownDisk, Need, Program, RateLimit, RateUnit, RepeatableNoise,
    fathom, scratch,
};
use serde_json::{Value, json};
use xtask::process::now;

use crate::causes::{OF_HOST, OF_LOAD};
use crate::driver::{Campaign, Case, CaseResult, Plan, sum};

pub const CAMPAIGN: Campaign = Campaign {
    cases: MECHANISMS * 3,
    needs: &[Need::Root, Need::Path("/dev/fuse")],
    resumes: true,
    ..Campaign::new(
        "known-devices",
        "Measure disks with exact models and judge what is said of them",
        |asked| {
            let cases = asked.seeds().map(KnownCase::from_seed);
            let cases = cases.map(|case| Case::new(case.name.clone(), move || Ok(judged(&case))));
            Ok(Plan::new(cases).judged_by(verdict))
        },
    )
};

/// The same command again and again, on an idle machine and beside two busy processes: what it says does not change.
pub const REPEATS: Campaign = Campaign {
    needs: CAMPAIGN.needs,
    resumes: true,
    ..Campaign::new(
        "known-repeats",
        "Measure some disks with exact models again and again, idle and beside busy processes",
        |_| {
            let cases = REPEATED.map(KnownCase::from_seed);
            let cases = cases.map(|case| Case::new(case.name.clone(), move || Ok(repeated(&case))));
            Ok(Plan::new(cases))
        },
    )
};

const MECHANISMS: u64 = 20;
/// Disks that `--quick` measures again and again.
const REPEATED: [u64; 6] = [0, 1, 6, 10, 14, 19];
const TIMES: usize = 6;
const BUSY: usize = 2;
const LONGEST: Duration = Duration::from_secs(900);
/// The most that `--quick` may take, s.
const QUICK_S: f64 = 75.0;
/// Queue depth of the random tests.
const DEEP: f64 = 64.0;
/// A rate that is given without an interval is right within this share.
const WITHIN: f64 = 0.03;

const RIGHT: &str = "right";
const WRONG: &str = "wrong";
const UNKNOWN: &str = "unknown";
const FINDINGS: &str = "findings";
const INVENTED: &str = "invented";
const HELD: &str = "intervals that hold";
const OUTSIDE: &str = "intervals that do not";

/// The command that a user takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Command {
    Quick,
    Bench,
    /// So many seconds of random reads.
    Long(u64),
    Identify,
    Sweep,
}

/// What is true of a disk.
#[derive(Clone, Debug, PartialEq)]
enum Truth {
    /// One of these findings is due.
    Finds(&'static [&'static str]),
    /// The rate of a test, IOPS.
    Rate(&'static str, f64),
    /// A figure of `identify` or `sweep`, by its place in the document.
    Figure(&'static str, f64),
    /// A use is served, or not in full.
    Serves(&'static str, bool),
}

#[derive(Clone, Debug)]
struct KnownCase {
    name: String,
    model: DiskModel,
    command: Command,
    truths: Vec<Truth>,
    /// Findings that may be there as well.
    allowed: &'static [&'static str],
}

impl KnownCase {
    /// The `index`th disk: always the same.
    #[expect(clippy::too_many_lines, reason = "a table, a row a mechanism")]
    fn from_seed(index: u64) -> KnownCase {
        let mut noise = RepeatableNoise::seeded(index + 1);
        for _ in 0..8 {
            noise.bits();
        }
        let mut around = |least: f64, most: f64| {
            let drawn = least * (most / least).powf(noise.even());
            // Odd values with three digits.
            let scale = 10_f64.powf(drawn.log10().floor() - 2.0);
            (drawn / scale).round() * scale
        };
        let base = DiskModel {
            read_latency: around(150e-6, 900e-6),
            write_latency: around(150e-6, 900e-6),
            // No cache of a drive holds it.
            size: 2 << 30,
            ..DiskModel::default()
        };
        let with = |limits: Vec<RateLimit>| DiskModel { limits, ..base.clone() };
        let iops = around(150.0, 4000.0);
        let bytes = around(3e6, 9e7);
        let round = index / MECHANISMS;
        let by_round = |commands: [Command; 3]| commands[(round % 3) as usize];
        let usual = by_round([Command::Quick, Command::Identify, Command::Sweep]);
        let capped: &[&str] = &["iops-cap", "unknown-limit"];
        let caps: &[&str] = &["iops-cap", "bandwidth-cap", "unknown-limit"];
        let unsteady: &[&str] = &["not-steady", "burst-suspected", "pauses", "neighbour"];
        let none: &[&str] = &[];
        let (name, model, command, truths, allowed) = match index % MECHANISMS {
            0 => (
                "iops",
                with(vec![RateLimit::iops(iops)]),
                usual,
                limit_truths(usual, Some(iops), None),
                capped,
            ),
            1 => (
                "bytes",
                with(vec![RateLimit::bytes(bytes)]),
                usual,
                limit_truths(usual, None, Some(bytes)),
                caps,
            ),
            2 => {
                let bytes = bytes.max(iops * 12_000.0);
                let model = with(vec![RateLimit::iops(iops), RateLimit::bytes(bytes)]);
                ("both", model, usual, limit_truths(usual, Some(iops), Some(bytes)), caps)
            }
            3 => {
                let writes = around(150.0, 4000.0);
                let limits = vec![
                    RateLimit::iops(iops).of(Direction::Reads),
                    RateLimit::iops(writes).of(Direction::Writes),
                ];
                let mut truths = limit_truths(usual, Some(iops), None);
                if usual == Command::Quick {
                    truths.push(Truth::Rate("rand-write", writes));
                }
                ("apart", with(limits), usual, truths, capped)
            }
            4 => {
                let limit = RateLimit { unit: RateUnit::Units(16384.0), ..RateLimit::iops(iops) };
                let command = by_round([Command::Bench, Command::Sweep, Command::Identify]);
                ("units", with(vec![limit]), command, limit_truths(command, Some(iops), None), capped)
            }
            5 => {
                let (base_iops, burst) = (around(80.0, 400.0), around(1500.0, 4000.0));
                let capacity = (burst - base_iops) * around(6.0, 25.0);
                let bucket = BurstBucket {
                    unit: RateUnit::Requests,
                    burst,
                    base: base_iops,
                    capacity,
                    initial: capacity,
                };
                let model = DiskModel { buckets: vec![bucket], ..base };
                let command = by_round([Command::Identify, Command::Bench, Command::Long(60)]);
                let truths = match command {
                    Command::Identify => vec![
                        Truth::Figure("/bursts/0/baseline_rate", base_iops),
                        Truth::Figure("/bursts/0/burst_rate", burst),
                        Truth::Figure("/bursts/0/capacity", capacity),
                    ],
                    Command::Long(_) => vec![Truth::Finds(&["burst-suspected"])],
                    _ => vec![Truth::Finds(&["burst-suspected", "rate-fell"]), Truth::Serves("oltp", false)],
                };
                (
                    "bucket",
                    model,
                    command,
                    truths,
                    &["iops-cap", "not-steady", "burst-suspected", "rate-fell"][..],
                )
            }
            6 => {
                let pause = around(0.03, 0.2);
                let model = DiskModel { pauses: Some((1.0, pause)), ..base };
                let command = by_round([Command::Quick, Command::Bench, Command::Long(30)]);
                let mut truths = vec![Truth::Finds(&["pauses"])];
                if !matches!(command, Command::Long(_)) {
                    truths.push(Truth::Serves("etcd", false));
                }
                ("pauses", model, command, truths, unsteady)
            }
            7 => {
                let (period, share) = (around(2.5, 6.0), around(0.3, 0.7));
                let model = DiskModel {
                    neighbour: Some((period, period / 2.0, share)),
                    ..with(vec![RateLimit::iops(iops)])
                };
                let command = by_round([Command::Long(30), Command::Long(12), Command::Long(60)]);
                (
                    "neighbour",
                    model,
                    command,
                    vec![Truth::Finds(&["not-steady", "neighbour"])],
                    &["not-steady", "neighbour"][..],
                )
            }
            8 => {
                let model = DiskModel { decay: around(0.08, 0.3), ..with(vec![RateLimit::iops(iops)]) };
                ("decay", model, Command::Long(60), vec![Truth::Finds(&["not-steady"])], unsteady)
            }
            9 => {
                let model = DiskModel {
                    step: Some((around(8.0, 25.0), around(0.3, 0.8))),
                    ..with(vec![RateLimit::iops(iops)])
                };
                let allowed = &["not-steady", "burst-suspected", "rate-fell"][..];
                ("step", model, Command::Long(40), vec![Truth::Finds(allowed)], allowed)
            }
            10 => {
                let model = DiskModel { tail: Some((0.002, around(0.03, 0.1))), ..base };
                (
                    "tail",
                    model,
                    by_round([Command::Quick, Command::Bench, Command::Long(20)]),
                    vec![Truth::Finds(&["tail"])],
                    &["tail"][..],
                )
            }
            11 => {
                let servers = around(2.0, 12.0).round();
                let model = DiskModel {
                    servers: Some(servers as usize),
                    write_latency: base.read_latency,
                    ..base.clone()
                };
                let (command, rate) =
                    (by_round([Command::Quick, Command::Bench, Command::Sweep]), servers / base.read_latency);
                let truth = match command {
                    Command::Sweep => Truth::Figure("/limits/read/iops", rate),
                    _ => Truth::Rate("rand-read", rate),
                };
                ("servers", model, command, vec![truth], none)
            }
            12 => {
                let grid = around(0.05, 0.2);
                let model = DiskModel { grid, ..with(vec![RateLimit::iops(iops)]) };
                let reached = DEEP / grid;
                // A queue that the grid empties shows no limit.
                let truths = match usual {
                    Command::Quick | Command::Bench if reached < iops * (1.0 + WITHIN) => {
                        vec![Truth::Rate("rand-read", reached.min(iops))]
                    }
                    _ => limit_truths(usual, Some(iops), None),
                };
                ("grid", model, usual, truths, capped)
            }
            13 => {
                let model = DiskModel { alignment: Some((8192, around(1e-3, 4e-3))), ..base };
                ("alignment", model, Command::Bench, vec![Truth::Finds(&["alignment"])], &["alignment"][..])
            }
            14 => {
                let model = DiskModel { head: Some((around(4e-3, 9e-3), around(8e7, 2e8))), ..base };
                let command = by_round([Command::Quick, Command::Bench, Command::Sweep]);
                let truths = match command {
                    Command::Sweep => vec![],
                    _ => vec![Truth::Finds(&["seeks"]), Truth::Serves("oltp", false)],
                };
                ("disk-head", model, command, truths, &["seeks"][..])
            }
            15 => {
                let limit = RateLimit { at_end: Some(bytes / 2.5), ..RateLimit::bytes(bytes) };
                (
                    "slow-end",
                    with(vec![limit]),
                    by_round([Command::Quick, Command::Bench, Command::Quick]),
                    vec![Truth::Finds(&["rate-follows-place"])],
                    &["bandwidth-cap", "unknown-limit"][..],
                )
            }
            16 => {
                let model = DiskModel { write_cache: Some((around(5e7, 3e8), around(5e6, 4e7))), ..base };
                let allowed =
                    &["write-cache", "burst-suspected", "not-steady", "iops-cap", "bandwidth-cap"][..];
                (
                    "write-cache",
                    model,
                    by_round([Command::Bench, Command::Quick, Command::Bench]),
                    vec![Truth::Finds(&["write-cache", "burst-suspected"])],
                    allowed,
                )
            }
            17 => {
                let model = DiskModel { write_cache: Some((2e9, around(5e6, 4e7))), lies: true, ..base };
                (
                    "lying-flush",
                    model,
                    Command::Bench,
                    vec![Truth::Finds(&["flush-suspicious"])],
                    // It fills as well.
                    &["write-cache", "burst-suspected", "not-steady", "bandwidth-cap"][..],
                )
            }
            18 => {
                let model = DiskModel { first_touch: around(2e-3, 9e-3), ..base };
                (
                    "first-touch",
                    model,
                    Command::Identify,
                    vec![Truth::Finds(&["first-touch"])],
                    &["first-touch"][..],
                )
            }
            _ => (
                "plain",
                DiskModel { servers: Some(64), ..base },
                by_round([Command::Quick, Command::Bench, Command::Identify]),
                vec![],
                none,
            ),
        };
        KnownCase { name: format!("{index:02}-{name}"), model, command, truths, allowed }
    }
}

/// What follows from limits on requests and bytes, reads and writes together.
fn limit_truths(command: Command, iops: Option<f64>, bytes: Option<f64>) -> Vec<Truth> {
    match command {
        Command::Identify | Command::Sweep => {
            let places = match command {
                Command::Sweep => ["/limits/read/iops", "/limits/read/bytes_per_second"],
                _ => ["/iops/read", "/bytes_per_second/read"],
            };
            let figures = places.into_iter().zip([iops, bytes]);
            figures.into_iter().filter_map(|(place, truth)| Some(Truth::Figure(place, truth?))).collect()
        }
        _ => {
            let reached = iops.or(bytes.map(|bytes| bytes / 4096.0)).unwrap_or_default();
            let finding: &[&str] = if iops.is_some() { &["iops-cap"] } else { &["bandwidth-cap"] };
            let mut truths = vec![Truth::Rate("rand-read", reached), Truth::Finds(finding)];
            if reached < 280.0 {
                truths.push(Truth::Serves("oltp", false));
            }
            truths
        }
    }
}

/// The document that the command prints, and how long it took, s.
fn measured(case: &KnownCase) -> (Value, f64) {
    let (disk, home) = (KnownDisk::new(&case.model), scratch());
    let mut command = fathom(home.path());
    let destroy = format!("--destroy-data={}", disk.path().display());
    match case.command {
        Command::Quick => command.args(["bench", "--quick", &destroy]),
        Command::Bench => command.args(["bench", &destroy]),
        Command::Long(seconds) => {
            command.args(["bench", "--only=rand-read", &format!("--runtime={seconds}s")])
        }
        Command::Identify => command.args(["identify", "--budget=120s"]),
        Command::Sweep => command.args(["sweep", "--budget=60s"]),
    };
    disk.begin_again();
    let began = now();
    let document = Program::start(command.args(["--json", "--no-history"]).arg(disk.path()))
        .finish_within(LONGEST)
        .document();
    (document, began.elapsed().as_secs_f64())
}

/// What a statement is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    Right,
    Unknown,
    Wrong,
}

/// The share of the last 10 s in which some task waited for a CPU, as the kernel tells (PSI).
fn cpu_pressure() -> String {
    let text = fs::read_to_string("/proc/pressure/cpu").unwrap_or_default();
    text.split_whitespace().nth(1).unwrap_or("avg10=unknown").replace("avg10=", "")
}

fn judged(case: &KnownCase) -> CaseResult {
    let (document, took_s) = measured(case);
    let pressure = cpu_pressure();
    let mut result = judge(case, &document);
    if case.command == Command::Quick && took_s > QUICK_S {
        result = result.faults([format!("--quick took {took_s:.0} s")]);
    }
    result.line = format!("{} ({took_s:.0} s, CPU pressure {pressure} %)", result.line);
    result
}

/// Measures it so often idle, and as often beside busy processes: no use is both served and not, and no finding is invented.
fn repeated(case: &KnownCase) -> CaseResult {
    let mut verdicts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut result = CaseResult::default();
    let mut pressures = Vec::new();
    for busy in [0, BUSY] {
        let mut loops: Vec<Child> = (0..busy).map(|_| busy_loop()).collect();
        for time in 0..TIMES {
            let (document, _) = measured(case);
            pressures.push(cpu_pressure());
            for one in document["conclusions"].as_array().into_iter().flatten() {
                let [id, verdict] =
                    ["id", "verdict"].map(|name| one[name].as_str().unwrap_or("-").to_owned());
                verdicts.entry(id).or_default().insert(verdict);
            }
            let invented = invented(case, &finding_ids(&document)).join(", ");
            let beside = if busy > 0 { "busy" } else { "idle" };
            let fault = (!invented.is_empty()).then(|| format!("{beside}, time {time}: invented {invented}"));
            result = result.count("runs", 1).faults(fault);
        }
        for child in &mut loops {
            // It ends only so.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
    let flips = verdicts.iter().filter(|(_, said)| ["yes", "no"].iter().all(|one| said.contains(*one)));
    let flips: Vec<String> = flips.map(|(id, said)| format!("{id}: {said:?}")).collect();
    result.line = format!("CPU pressure {} %", pressures.join(", "));
    result.faults(flips).facts(json!(verdicts))
}

fn busy_loop() -> Child {
    let mut busy = process::Command::new("sh");
    busy.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
    busy.spawn().unwrap_or_else(|error| panic!("cannot run {busy:?}: {error}"))
}

fn finding_ids(document: &Value) -> BTreeSet<&str> {
    let findings = ["findings", "confounders"].iter().filter_map(|name| document[*name].as_array());
    let ids = findings.flatten().filter_map(|one| one["id"].as_str());
    ids.chain(document["first_touch"].is_object().then_some("first-touch")).collect()
}

/// Findings without a cause.
fn invented<'a>(case: &KnownCase, ids: &BTreeSet<&'a str>) -> Vec<&'a str> {
    let due = case.truths.iter().flat_map(|truth| if let Truth::Finds(ids) = truth { *ids } else { &[] });
    let known: BTreeSet<&str> = due.chain(OF_LOAD).chain(OF_HOST).chain(case.allowed).copied().collect();
    ids.difference(&known).copied().collect()
}

fn judge(case: &KnownCase, document: &Value) -> CaseResult {
    let ids = finding_ids(document);
    let invented = invented(case, &ids);
    let mut worst = Worth::Right;
    let mut said = Vec::new();
    let mut result = CaseResult::default().count(FINDINGS, ids.len()).count(INVENTED, invented.len());
    for truth in &case.truths {
        let (worth, text, held) = worth(truth, document, &ids);
        if let Some(is_held) = held {
            result = result.count(if is_held { HELD } else { OUTSIDE }, 1);
        }
        worst = worst.max(worth);
        said.push(text);
    }
    let column = match worst {
        Worth::Right => RIGHT,
        Worth::Unknown => UNKNOWN,
        Worth::Wrong => WRONG,
    };
    result.line = format!("{column}: {}; {ids:?}", said.join(", "));
    result.count(column, 1).facts(json!({"worth": column, "findings": ids, "invented": invented}))
}

/// What a statement is worth, as text, and whether its interval holds the truth, if it has one.
fn worth(truth: &Truth, document: &Value, ids: &BTreeSet<&str>) -> (Worth, String, Option<bool>) {
    match truth {
        Truth::Finds(due) => match due.iter().find(|id| ids.contains(**id)) {
            Some(id) => (Worth::Right, (*id).to_owned(), None),
            None => (Worth::Unknown, format!("no {}", due[0]), None),
        },
        Truth::Rate(test, rate) => {
            let mut tests = document["tests"].as_array().into_iter().flatten();
            let Some(found) = tests.rfind(|one| one["id"] == *test) else {
                return (Worth::Unknown, format!("no {test}"), None);
            };
            let iops = found["total"]["iops"].as_f64().unwrap_or(f64::NAN);
            let half = found["stability"]["mean_ci95_fraction"].as_f64();
            let off = (iops / rate - 1.0).abs();
            let worth = if off <= half.unwrap_or(0.0).max(WITHIN) { Worth::Right } else { Worth::Wrong };
            (worth, format!("{test} {iops:.0} of {rate:.0}"), half.map(|half| off <= half))
        }
        Truth::Figure(place, value) => {
            let figure = document.pointer(place).unwrap_or(&Value::Null);
            let [low, found, high] = ["low", "value", "high"].map(|name| figure[name].as_f64());
            let text = format!(
                "{place} {} of {value:.0}",
                found.map_or("-".to_owned(), |found| format!("{found:.0}"))
            );
            match (found, low, high) {
                (Some(_), Some(low), Some(high)) => {
                    let holds = (low..=high).contains(value);
                    (if holds { Worth::Right } else { Worth::Wrong }, text, Some(holds))
                }
                (Some(found), ..) => {
                    let is_right = (found / value - 1.0).abs() <= WITHIN;
                    (if is_right { Worth::Right } else { Worth::Wrong }, text, None)
                }
                (None, Some(low), _) if low > *value => (Worth::Wrong, text, Some(false)),
                _ => (Worth::Unknown, text, None),
            }
        }
        Truth::Serves(id, serves) => {
            let conclusions = document["conclusions"].as_array().into_iter().flatten();
            let found = conclusions
                .filter(|one| one["id"] == *id)
                .find_map(|one| one["verdict"].as_str())
                .unwrap_or("none");
            let worth = match (found, serves) {
                ("yes", true) | ("no" | "marginal", false) => Worth::Right,
                ("yes", false) | ("no", true) => Worth::Wrong,
                _ => Worth::Unknown,
            };
            (worth, format!("{id} {found}"), None)
        }
    }
}

/// 95 of 100 right and none wrong, at most one finding of 100 invented, and 94 of 100 intervals hold.
fn verdict(results: &[CaseResult]) -> anyhow::Result<()> {
    let [right, wrong, unknown] = [RIGHT, WRONG, UNKNOWN].map(|column| sum(results, column));
    let [findings, invented, held, outside] =
        [FINDINGS, INVENTED, HELD, OUTSIDE].map(|column| sum(results, column));
    ensure!(wrong == 0, "{wrong} statements are wrong");
    ensure!(right * 100 >= 95 * (right + unknown), "only {right} of {} are right", right + unknown);
    ensure!(invented * 100 <= findings, "{invented} of {findings} findings are invented");
    ensure!(
        held * 100 >= 94 * (held + outside),
        "only {held} of {} intervals hold the truth",
        held + outside
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_different_and_always_the_same() {
        let all: Vec<KnownCase> = (0..3 * MECHANISMS).map(KnownCase::from_seed).collect();
        let names: BTreeSet<&str> = all.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names.len() as u64, 3 * MECHANISMS);
        for (index, case) in (0..).zip(&all) {
            assert_eq!(case.model, KnownCase::from_seed(index).model);
        }
        assert_ne!(all[0].model.limits, all[MECHANISMS as usize].model.limits);
    }

    #[test]
    fn statements_are_right_wrong_or_missing() {
        let document = json!({
            "findings": [{"id": "iops-cap"}, {"id": "stalled"}],
            "tests": [{"id": "rand-read", "total": {"iops": 1010.0}, "stability": {"mean_ci95_fraction": 0.005}}],
            "conclusions": [{"id": "oltp", "verdict": "yes"}],
            "iops": {"read": {"low": 990, "value": 1000, "high": 1010}, "write": {"low": 1200}},
        });
        let check = |truths: Vec<Truth>, column: &str, invented: u64| {
            let allowed = &["iops-cap"][..];
            let case = KnownCase {
                name: String::new(),
                model: DiskModel::default(),
                command: Command::Quick,
                truths,
                allowed,
            };
            let results = [judge(&case, &document)];
            assert_eq!((sum(&results, column), sum(&results, INVENTED)), (1, invented), "{results:?}");
        };
        check(vec![Truth::Finds(&["iops-cap"]), Truth::Rate("rand-read", 1000.0)], RIGHT, 1);
        check(vec![Truth::Finds(&["stalled"])], RIGHT, 0);
        check(vec![Truth::Finds(&["pauses"])], UNKNOWN, 1);
        check(vec![Truth::Rate("rand-read", 1100.0)], WRONG, 1);
        check(vec![Truth::Figure("/iops/read", 1005.0)], RIGHT, 1);
        check(vec![Truth::Figure("/iops/read", 1020.0)], WRONG, 1);
        check(vec![Truth::Figure("/iops/write", 1100.0)], WRONG, 1);
        check(vec![Truth::Serves("oltp", false)], WRONG, 1);
        check(vec![Truth::Serves("etcd", false)], UNKNOWN, 1);
    }
}
