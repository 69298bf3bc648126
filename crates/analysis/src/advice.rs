//! Advice on a plan before it runs: what would make its figures mean something else than is wanted.
//!
//! Pure functions of the plan and of a few facts. Advice is for people: it changes nothing and never refuses a plan. Each
//! rule is a row of [`RULES`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fathom_model::plan::SizeSpec;
use fathom_model::{JobPlan, Nanos, Op, RunPlan, units};

/// What is known of the machine and the targets. What is unknown gives no advice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdviceFacts {
    /// Memory of the machine, bytes.
    pub memory: Option<u64>,
    /// The device under each path.
    pub devices: BTreeMap<PathBuf, AdviceDevice>,
}

/// A device under a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdviceDevice {
    /// The kernel's name.
    pub name: String,
    /// A volume behind a network, as clouds have them.
    pub is_network: bool,
    /// Bytes of its largest request.
    pub largest_request: Option<u64>,
}

/// A run of this length or longer averages out the bursts and the first seconds of a volume.
const LONG_RUN: Nanos = Nanos::from_secs(60);
/// Bytes that fast devices move within seconds.
const SOON_MOVED: u64 = 8 << 30;
/// A file of this size or less may be held by caches of a volume's servers.
const CACHED_FILE: u64 = 8 << 30;

/// Engines with one request in flight at a time.
const SYNCHRONOUS: [&str; 6] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"];
/// Engines that move no data of a device.
const WITHOUT_DEVICE: [&str; 4] = ["null", "sim", "falloc", "ftruncate"];

/// One job of a plan.
struct Subject<'a> {
    plan: &'a RunPlan,
    job: &'a JobPlan,
    facts: &'a AdviceFacts,
}

/// A rule: the advice on a job, if it is concerned.
type Rule = fn(&Subject<'_>) -> Option<String>;

/// All rules.
const RULES: &[Rule] = &[
    cached, synchronous_depth, short_on_a_volume, small_on_a_volume, latencies_not_recorded, ends_soon,
    split_requests, lockstep, no_ramp,
];

/// The advice on `plan`, in the order of its jobs; the same advice on several jobs is given for the first.
pub fn advice(plan: &RunPlan, facts: &AdviceFacts) -> Vec<String> {
    let mut given: Vec<(usize, String)> = Vec::new();
    for job in plan.jobs.iter().filter(|job| !WITHOUT_DEVICE.contains(&job.engine.name.as_str())) {
        let subject = Subject { plan, job, facts };
        for (rule, check) in RULES.iter().enumerate() {
            if let Some(text) = check(&subject).filter(|_| given.iter().all(|(known, _)| *known != rule)) {
                given.push((rule, format!("{}: {text}", job.name)));
            }
        }
    }
    given.into_iter().map(|(_, text)| text).collect()
}

impl Subject<'_> {
    fn paths(&self) -> impl Iterator<Item = &Path> {
        self.job.clones.iter().flat_map(|clone| &clone.paths).map(PathBuf::as_path)
    }

    fn devices(&self) -> impl Iterator<Item = &AdviceDevice> {
        self.paths().filter_map(|path| self.facts.devices.get(path))
    }

    /// Name of a network volume that it uses.
    fn volume(&self) -> Option<&str> {
        self.devices().find(|device| device.is_network).map(|device| device.name.as_str())
    }

    /// Bytes of the range of the job over all its files, if the plan tells.
    fn range(&self) -> Option<u64> {
        let io = &self.job.io;
        let clones = self.job.clones.len() as u64;
        let files = self.job.clones.first().map_or(1, |clone| clone.paths.len() as u64);
        let each = match (io.size, io.file_size) {
            (Some(SizeSpec::Bytes(bytes)), _) => bytes,
            (None, Some(bytes)) => bytes.saturating_mul(files),
            _ => return None,
        };
        let shares = self.job.clones.iter().skip(1).any(|clone| clone.paths == self.job.clones[0].paths);
        Some(if shares { each } else { each.saturating_mul(clones) })
    }

    fn runs_by_time(&self) -> bool {
        self.job.time.time_based && self.job.time.runtime.is_some()
    }

    fn ops(&self) -> impl Iterator<Item = Op> {
        let pattern = self.job.io.pattern;
        let all = [(Op::Read, pattern.reads()), (Op::Write, pattern.writes()), (Op::Trim, pattern.trims())];
        all.into_iter().filter(|(_, used)| *used).map(|(op, _)| op)
    }
}

fn cached(subject: &Subject<'_>) -> Option<String> {
    let (range, memory) = (subject.range()?, subject.facts.memory?);
    let io = &subject.job.io;
    if io.direct || io.pattern.trims() || range >= memory || subject.paths().next().is_none() {
        return None;
    }
    Some(format!(
        "{} of buffered I/O fit into the memory ({}), so that the page cache is measured and not the device: add direct=1",
        units::bytes(range),
        units::bytes(memory)
    ))
}

fn synchronous_depth(subject: &Subject<'_>) -> Option<String> {
    let (engine, depth) = (subject.job.engine.name.as_str(), subject.job.depth.iodepth);
    (depth > 1 && SYNCHRONOUS.contains(&engine)).then(|| {
        format!(
            "ioengine={engine} has one request in flight, whatever iodepth={depth} says: use io_uring or libaio, or numjobs={depth}"
        )
    })
}

fn short_on_a_volume(subject: &Subject<'_>) -> Option<String> {
    let volume = subject.volume()?;
    let runtime = subject.job.time.runtime.filter(|runtime| *runtime < LONG_RUN)?;
    Some(format!(
        "{volume} is a network volume, whose caps are enforced over seconds and whose credits last for minutes: {} s may show its \
         burst, so use runtime=60 or more",
        runtime.as_millis().div_ceil(1000)
    ))
}

fn small_on_a_volume(subject: &Subject<'_>) -> Option<String> {
    let (volume, range) = (subject.volume()?, subject.range()?);
    (subject.job.io.pattern.reads() && range <= CACHED_FILE).then(|| {
        format!(
            "reads of {} on {volume}, a network volume, may be served by caches behind it: use a larger size",
            units::bytes(range)
        )
    })
}

fn latencies_not_recorded(subject: &Subject<'_>) -> Option<String> {
    const WISHES: [&str; 5] =
        ["percentile_list", "clat_percentiles", "lat_percentiles", "write_lat_log", "write_hist_log"];
    let options = subject.job.options.iter().chain(&subject.plan.global_options);
    let wish = options.map(|(name, _)| name.as_str()).find(|name| WISHES.contains(name))?;
    let measure = &subject.job.measure;
    (!measure.clat && !measure.lat).then(|| {
        format!("{wish} asks for latencies, and gtod_reduce or disable_clat omits them: omit one of them")
    })
}

fn ends_soon(subject: &Subject<'_>) -> Option<String> {
    let job = subject.job;
    if subject.runs_by_time() || job.files.create_only || job.io.verify.is_some() {
        return None;
    }
    let moved = match job.io.io_size {
        Some(SizeSpec::Bytes(bytes)) => bytes.saturating_mul(job.clones.len() as u64),
        Some(SizeSpec::Percent(_)) => return None,
        None => subject.range()?,
    };
    let moved = moved.saturating_mul(u64::from(job.io.loops));
    (moved < SOON_MOVED && job.io.access.number_ios == 0).then(|| {
        format!(
            "it ends after {}, which a fast device moves within seconds: add time_based=1 and runtime=60, or a larger io_size",
            units::bytes(moved)
        )
    })
}

fn split_requests(subject: &Subject<'_>) -> Option<String> {
    let block = subject.ops().map(|op| subject.job.io.block_size[op].largest()).max()?;
    let (name, most) = subject
        .devices()
        .filter_map(|device| Some((device.name.as_str(), device.largest_request?)))
        .find(|&(_, most)| block > most)?;
    Some(format!(
        "blocks of {} are split into requests of at most {} on {name} (max_sectors_kb): IOPS and latencies are those of the whole \
         block, and the device counts more",
        units::bytes(block),
        units::bytes(most)
    ))
}

fn lockstep(subject: &Subject<'_>) -> Option<String> {
    let job = subject.job;
    if job.io.pattern.random || job.io.offset_increment != SizeSpec::Bytes(0) {
        return None;
    }
    let is_alike = |other: &JobPlan| {
        other.phase == job.phase && !other.io.pattern.random && other.io.offset == job.io.offset
    };
    let all = subject.plan.jobs.iter().filter(|other| is_alike(other)).flat_map(|other| &other.clones);
    let path = subject.paths().next()?;
    let users = all.filter(|clone| clone.paths.iter().any(|used| used == path)).count();
    (users > 1).then(|| {
        format!(
            "{users} workers go through {} in the same order from the same offset, so that caches and merging serve all but one: \
             use offset_increment, or a file for each",
            path.display()
        )
    })
}

fn no_ramp(subject: &Subject<'_>) -> Option<String> {
    let volume = subject.volume()?;
    (subject.runs_by_time() && subject.job.time.ramp == Nanos::ZERO).then(|| {
        format!(
            "{volume} may begin with burst credits or with blocks that were never read: add ramp_time, or compare the intervals \
             of the run"
        )
    })
}

#[cfg(test)]
mod tests {
    use fathom_model::plan::{ClonePlan, Mix, Pattern};

    use super::*;

    /// A job that gets no advice.
    fn job() -> JobPlan {
        let mut job = JobPlan { name: "j".to_owned(), ..JobPlan::default() };
        job.engine.name = "libaio".to_owned();
        job.clones = vec![ClonePlan { paths: vec!["f".into()], seed: 0, cpus: Vec::new() }];
        job.io.pattern = Pattern { mix: Mix::Read, random: true };
        job.io.block_size = fathom_model::PerOp::splat(4096.into());
        job.io.size = Some(SizeSpec::Bytes(64 << 30));
        job.io.direct = true;
        job.depth.iodepth = 8;
        (job.time.runtime, job.time.time_based) = (Some(Nanos::from_secs(60)), true);
        job.time.ramp = Nanos::from_secs(5);
        job
    }

    fn facts() -> AdviceFacts {
        let device =
            AdviceDevice { name: "vda".to_owned(), is_network: true, largest_request: Some(256 << 10) };
        AdviceFacts { memory: Some(16 << 30), devices: BTreeMap::from([("f".into(), device)]) }
    }

    fn given(jobs: Vec<JobPlan>, facts: &AdviceFacts) -> Vec<String> {
        advice(&RunPlan { jobs, ..RunPlan::default() }, facts)
    }

    /// A change of the good job, and words of the one piece of advice that it gives.
    type Change = (fn(&mut JobPlan), &'static str);

    const CHANGES: [Change; 8] = [
        (
            |job| {
                job.io.direct = false;
                job.io.size = Some(SizeSpec::Bytes(10 << 30));
            },
            "fit into the memory (16.0 GiB)",
        ),
        (|job| job.engine.name = "psync".to_owned(), "iodepth=8"),
        (|job| job.time.runtime = Some(Nanos::from_secs(10)), "10 s may show its burst"),
        (|job| job.io.size = Some(SizeSpec::Bytes(1 << 30)), "caches behind it"),
        (
            |job| {
                (job.measure.clat, job.measure.lat) = (false, false);
                job.options = vec![("percentile_list".to_owned(), "99".to_owned())];
            },
            "percentile_list asks for latencies",
        ),
        (
            |job| {
                (job.time.runtime, job.time.time_based) = (None, false);
                job.io.io_size = Some(SizeSpec::Bytes(1 << 30));
            },
            "ends after 1.0 GiB",
        ),
        (|job| job.io.block_size.read = (1_u64 << 20).into(), "at most 256 KiB on vda"),
        (|job| job.time.ramp = Nanos::ZERO, "add ramp_time"),
    ];

    #[test]
    fn each_rule_advises_on_what_it_concerns() {
        assert_eq!(given(vec![job()], &facts()), [""; 0]);
        for (change, words) in CHANGES {
            let mut changed = job();
            change(&mut changed);
            let found = given(vec![changed], &facts());
            assert!(found.len() == 1 && found[0].starts_with("j: ") && found[0].contains(words), "{found:?}");
        }
        let mut large = job();
        large.io.direct = false;
        assert_eq!(given(vec![large], &facts()), [""; 0], "larger than memory");
        let mut short = job();
        short.time.runtime = Some(Nanos::from_secs(10));
        assert_eq!(given(vec![short], &AdviceFacts::default()), [""; 0], "nothing is known of the device");
    }

    #[test]
    fn workers_in_lockstep() {
        let mut together = job();
        together.io.pattern.random = false;
        let alone = together.clone();
        together.clones.push(together.clones[0].clone());
        let found = given(vec![together.clone()], &facts());
        assert!(found.len() == 1 && found[0].contains("2 workers go through f"), "{found:?}");
        together.io.offset_increment = SizeSpec::Bytes(1 << 30);
        assert_eq!(given(vec![together], &facts()), [""; 0]);
        let jobs = vec![alone.clone(), JobPlan { name: "k".to_owned(), ..alone.clone() }];
        assert_eq!(given(jobs, &facts()).len(), 1, "two jobs, told once");
        let later = JobPlan { phase: 1, ..alone.clone() };
        assert_eq!(given(vec![alone, later], &facts()), [""; 0], "one after the other");
    }

    #[test]
    fn engines_without_a_device_get_none() {
        let mut null = job();
        null.engine.name = "null".to_owned();
        null.io.direct = false;
        assert_eq!(given(vec![null], &facts()), [""; 0]);
    }
}
