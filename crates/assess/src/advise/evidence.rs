//! What is known of a load: the sums of the longest recording, its requests, and how bursty the finest recording shows it.

use fathom_analysis::advise::AdvisedLoad;
use fathom_analysis::criterion::Comparison;
use fathom_catalog::{LatencyNeed, VolumeNeed};
use fathom_model::Nanos;
use fathom_model::units::duration;
use fathom_observed::{LoadCourse, ObservedLoad};
use fathom_predict::load_profile::LoadProfile;
use fathom_predict::{LoadArrivals, LoadDemand, LoadPace, ReplayPace, Requirement};
use fathom_record::Metric;

use super::AdviseSettings;
use super::passes::{ObservedTrace, TraceRequests};
use crate::AssessError;
use crate::need::{StatedNeed, need};
use crate::observed_load::RepeatableLoad;

/// Ten times what any volume serves: a month of it can still be counted in bytes.
const MAX_IOPS: f64 = 1e8;
const MAX_BYTES_PER_SECOND: f64 = 1e12;
/// Requests of a recording that are kept in memory, 32 MiB of them: more are read anew for each pass.
const MAX_KEPT: usize = 1 << 20;
/// Parts of an interval that a finer recording shapes.
const PARTS: u64 = 60;
/// Size of I/Os where nothing says it, bytes.
const USUAL_BYTES: u64 = 4096;

/// What is known of a load.
pub(super) struct Evidence {
    /// For the report.
    pub(super) load: AdvisedLoad,
    /// Its sums.
    pub(super) demand: LoadDemand,
    /// Its requests, where each is known.
    pub(super) requests: TraceRequests,
    /// What they wait for.
    pub(super) arrivals: LoadArrivals,
    /// Shares of an interval, from a finer recording.
    pub(super) shape: Option<Vec<u64>>,
    /// The stated need, whose rates are what they are: nothing is hidden in its intervals.
    pub(super) need: Option<VolumeNeed>,
    /// Latencies as observed.
    pub(super) latencies: Vec<(Metric, f64)>,
    /// Stated requirements.
    pub(super) stated: Vec<Requirement>,
    /// Bytes to store, as far as they are known.
    pub(super) size_bytes: Option<u64>,
    /// What to know.
    pub(super) notes: Vec<String>,
}

impl Evidence {
    /// Reads the recordings, or the stated need.
    pub(super) fn read(settings: &AdviseSettings) -> Result<Evidence, AssessError> {
        if let Some(stated) = &settings.stated {
            let asked = need(stated)?;
            let iops = asked.need.iops * settings.growth;
            if iops > MAX_IOPS || iops * asked.need.load.mean_bytes() > MAX_BYTES_PER_SECOND {
                return Err(AssessError::usage(
                    "the load exceeds 100,000,000 IOPS or 1 TB/s, which no volume serves",
                    "use a lower rate or a smaller block size",
                ));
            }
            return Ok(Evidence::of_need(&asked, stated.size.or(settings.size)));
        }
        let mut loads: Vec<(String, RepeatableLoad)> = Vec::new();
        for path in &settings.files {
            let name = if path.as_os_str() == "-" {
                "standard input".to_owned()
            } else {
                path.display().to_string()
            };
            loads.push((name, RepeatableLoad::open(path, settings.device.as_deref(), MAX_KEPT)?));
        }
        let files: Vec<String> = loads.iter().map(|(name, _)| name.clone()).collect();
        let longest = (0..loads.len()).max_by_key(|index| (loads[*index].1.length_ns(), usize::MAX - index));
        let Some((name, load)) = longest.map(|index| loads.swap_remove(index)) else {
            let hint = "name a recording, or state needs with --iops or --bandwidth";
            return Err(AssessError::usage("no load given", hint));
        };
        let mut evidence = Evidence::of_trace(&name, ObservedTrace::of(load)?, settings.size)?;
        evidence.load.files = files;
        for (name, finer) in loads {
            evidence.shape_by(&name, finer)?;
        }
        evidence.note_arrivals();
        Ok(evidence)
    }

    fn of_trace(name: &str, trace: ObservedTrace, size: Option<u64>) -> Result<Evidence, AssessError> {
        let ObservedTrace { load, profile, demand, arrivals, requests } = trace;
        let refused = |reason: &str, hint: &str| AssessError::usage(format!("{name}: {reason}"), hint);
        let demand = demand.ok_or_else(|| match &load.course {
            LoadCourse::Requests(trace) if !trace.has_times => refused(
                "its requests have no times",
                "record an iolog of version 3 or use blktrace; `fathom simulate --trace` replays it one request after the other",
            ),
            _ => refused("it has no numbers of I/Os over time", "use a recording that counts I/Os"),
        })?;
        let latencies = latencies(&profile);
        let mut observed = advised_load(&load, &profile, &demand);
        observed.pace = arrivals.pace;
        let mut notes = load.notes.clone();
        notes.extend(demand.notes.iter().map(|note| note.text()));
        let span = profile.span_bytes;
        if size.is_none() {
            notes.push(match span {
                Some(_) => {
                    "no --size given: volumes have at least the size of the range that the load touches"
                        .to_owned()
                }
                None => {
                    "no --size given: volumes have the size of the present one, or the smallest".to_owned()
                }
            });
        }
        Ok(Evidence {
            load: observed,
            demand,
            arrivals,
            requests,
            shape: None,
            need: None,
            latencies,
            stated: Vec::new(),
            size_bytes: size.or(span),
            notes,
        })
    }

    /// Takes the burstiness of a finer recording: the burstiest stretch of the length of an interval.
    fn shape_by(&mut self, name: &str, finer: RepeatableLoad) -> Result<(), AssessError> {
        let longest = self.demand.steps.iter().map(|step| step.length_ns).max().unwrap_or(1);
        let window = (longest / PARTS).max(1);
        let fine = match self.requests.is_empty() {
            true => ObservedTrace::of(finer)?.demand,
            false => None,
        };
        let resolution = fine.as_ref().and_then(|fine| fine.steps.iter().map(|step| step.length_ns).max());
        let is_finer = resolution.is_some_and(|resolution| resolution <= window);
        let Some(fine) = fine.filter(|_| is_finer) else {
            self.notes
                .push(format!("{name} is not used: it has no finer sums than {}", duration(Nanos(window))));
            return Ok(());
        };
        let shape = burstiest(&fine, window);
        self.shape = Some(shape);
        self.notes.push(format!(
            "within intervals the load is taken to be as bursty as the burstiest stretch of {name}, in parts of {}",
            duration(Nanos(window))
        ));
        Ok(())
    }

    /// The ways of arrival that are predicted.
    fn note_arrivals(&mut self) {
        let text = |pace: &ReplayPace| match pace {
            ReplayPace::Open => "at their times",
            ReplayPace::Closed => "after the request that each followed",
            ReplayPace::Beside(_) => "those of clients after their own, others at their times",
        };
        self.load.arrivals = match () {
            () if !self.requests.is_empty() => self.paces().iter().map(text).collect(),
            () if self.need.is_some() => vec!["evenly"],
            () if self.shape.is_some() => vec!["evenly", "evenly and in order", "as in the finer recording"],
            () => vec!["evenly", "evenly and in order", "at once"],
        };
    }

    /// What requests wait for, of which each is predicted.
    pub(super) fn paces(&self) -> Vec<ReplayPace> {
        match self.load.pace {
            LoadPace::Unknown if self.load.mean_latency_ns.is_none() => vec![ReplayPace::Open],
            _ => self.arrivals.readings(),
        }
    }

    fn of_need(stated: &StatedNeed, size: Option<u64>) -> Evidence {
        let need = &stated.need;
        let bytes = need.load.mean_bytes();
        let share = need.load.read_fraction;
        let demand = LoadDemand::stated(&need.load, need.iops, need.burst);
        let length_ns = demand.length_ns;
        let requirement = |asked: &LatencyNeed| {
            Metric::parse(&format!("lat_ns.{}", asked.statistic)).map(|metric| Requirement {
                metric,
                comparison: Comparison::Below,
                bound: asked.most_ns as f64,
            })
        };
        let load = AdvisedLoad {
            format: "stated".to_owned(),
            text: Some(stated.text.clone()),
            detail: "intervals",
            length_ns,
            observed_ns: length_ns,
            ops: demand.ops(),
            iops: demand.mean_iops(),
            peak_iops: demand.peak_iops(),
            bytes_per_second: Some(demand.mean_iops() * bytes),
            mean_bytes: Some(bytes),
            read_share: share,
            ..AdvisedLoad::default()
        };
        let mut evidence = Evidence {
            load,
            demand,
            requests: TraceRequests::none(),
            arrivals: LoadArrivals::default(),
            shape: None,
            need: Some(need.clone()),
            latencies: Vec::new(),
            stated: need.latency.iter().filter_map(requirement).collect(),
            size_bytes: size,
            notes: Vec::new(),
        };
        evidence.note_arrivals();
        evidence
    }

    /// Bytes of an I/O on average, as far as known.
    pub(super) fn mean_bytes(&self) -> f64 {
        self.demand.mean_bytes().unwrap_or(USUAL_BYTES as f64)
    }
}

/// The latencies that the source has: of requests the mean and the 99th percentile, of intervals the mean.
fn latencies(profile: &LoadProfile) -> Vec<(Metric, f64)> {
    let mut found = Vec::new();
    for operation in profile.operations.iter().filter(|of| ["read", "write"].contains(&of.operation)) {
        let name = operation.operation;
        let mut add = |statistic: &str, value: Option<f64>| {
            let metric = Metric::parse(&format!("{name}.lat_ns.{statistic}"));
            found.extend(metric.zip(value.filter(|value| *value > 0.0)));
        };
        add("mean", operation.mean_latency_ns);
        let p99 = operation.lat_ns.as_ref().and_then(|lat| lat.p99);
        add("p99", p99.map(|ns| ns as f64));
    }
    found
}

fn has_flushes(profile: &LoadProfile) -> bool {
    profile.operations.iter().any(|operation| operation.operation == "sync" && operation.ops != Some(0))
}

/// The mean latency of what is predicted: reads, writes and trims, but no flushes.
fn mean_latency_ns(profile: &LoadProfile) -> Option<f64> {
    let of = |name: &str| profile.operations.iter().find(|operation| operation.operation == name);
    if !has_flushes(profile) {
        return of("total")?.mean_latency_ns;
    }
    let (mut sum, mut count) = (0.0, 0.0);
    for operation in ["read", "write", "trim"].into_iter().filter_map(of) {
        let ops = operation.ops? as f64;
        if ops > 0.0 {
            sum += operation.mean_latency_ns? * ops;
            count += ops;
        }
    }
    (count > 0.0).then(|| sum / count)
}

fn advised_load(load: &ObservedLoad, profile: &LoadProfile, demand: &LoadDemand) -> AdvisedLoad {
    let total = profile.operations.iter().find(|operation| operation.operation == "total");
    AdvisedLoad {
        files: Vec::new(),
        format: load.format.name().to_owned(),
        device: load.device.clone(),
        text: None,
        detail: match load.course {
            LoadCourse::Requests(_) => "requests",
            LoadCourse::Intervals(_) => "intervals",
        },
        started_unix_ns: load.started_unix_ns,
        length_ns: profile.length_ns,
        observed_ns: profile.observed_ns,
        resolution_ns: profile.resolution_ns,
        ops: demand.ops(),
        iops: demand.mean_iops(),
        peak_iops: demand.peak_iops(),
        bytes_per_second: demand.mean_bytes().map(|bytes| bytes * demand.mean_iops()),
        mean_bytes: demand.mean_bytes(),
        read_share: demand.read_share(),
        mean_latency_ns: mean_latency_ns(profile),
        // Percentiles of all operations together would be those of flushes too.
        lat_ns: total.filter(|_| !has_flushes(profile)).and_then(|total| total.lat_ns.clone()),
        pace: LoadPace::Unknown,
        arrivals: Vec::new(),
        limit_reached_share: profile.limit_reached_share,
    }
}

/// The I/Os of windows in the stretch of [`PARTS`] of them with the highest peak over its mean; a shorter recording is repeated.
fn burstiest(fine: &LoadDemand, window: u64) -> Vec<u64> {
    let count = (fine.length_ns / window).max(1) as usize;
    let mut windows = vec![0_u64; count];
    for step in &fine.steps {
        // An incomplete window at the end says nothing of its rate.
        if let Some(sum) = windows.get_mut((step.start_ns / window) as usize) {
            *sum += step.ops();
        }
    }
    let parts = PARTS as usize;
    if count < parts {
        return windows.iter().copied().cycle().take(parts).collect();
    }
    let burstiness = |stretch: &[u64]| {
        let sum: u64 = stretch.iter().sum();
        stretch.iter().copied().max().unwrap_or(0) as f64 / sum.max(1) as f64
    };
    let busy = windows.windows(parts).filter(|stretch| stretch.iter().any(|ops| *ops > 0));
    let most = busy.max_by(|one, other| burstiness(one).total_cmp(&burstiness(other)));
    most.map_or_else(|| vec![1; parts], <[u64]>::to_vec)
}

#[cfg(test)]
mod tests {
    use fathom_model::Op;
    use fathom_observed::{
        GapReason, LoadClock, LoadFormat, LoadGap, ObservedInterval, ObservedRequest, RequestPoint,
        RequestTrace,
    };

    use super::super::passes::close_gaps;
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn load(course: LoadCourse, gaps: &[(u64, u64)]) -> ObservedLoad {
        let gap = |&(start, length): &(u64, u64)| LoadGap {
            start_ns: start * SECOND_NS,
            length_ns: length * SECOND_NS,
            reason: GapReason::Missing,
        };
        ObservedLoad {
            format: LoadFormat::Blkparse,
            device: "8:0".to_owned(),
            started_unix_ns: None,
            clock: LoadClock::Relative,
            length_ns: 100 * SECOND_NS,
            course,
            gaps: gaps.iter().map(gap).collect(),
            notes: Vec::new(),
        }
    }

    fn requests(seconds: &[u64]) -> LoadCourse {
        let request = |&at: &u64| ObservedRequest {
            at_ns: at * SECOND_NS,
            offset: 0,
            latency_ns: std::num::NonZeroU64::new(1_000),
            bytes: 4096,
            file: 0,
            thread: 0,
            op: Op::Read,
        };
        LoadCourse::Requests(RequestTrace {
            files: Vec::new(),
            requests: seconds.iter().map(request).collect(),
            has_times: true,
            point: RequestPoint::Driver,
        })
    }

    fn evidence(load: ObservedLoad) -> Evidence {
        Evidence::of_trace("recorded", ObservedTrace::of_whole(load), None).unwrap()
    }

    #[test]
    fn the_observed_latency_is_that_of_what_is_predicted() {
        let LoadCourse::Requests(mut trace) = requests(&[1, 2, 3, 4]) else { return };
        for request in &mut trace.requests[2..] {
            (request.op, request.latency_ns) = (Op::Sync, std::num::NonZeroU64::new(9_000));
        }
        let seen = |trace| evidence(load(LoadCourse::Requests(trace), &[])).load;
        let with = seen(trace.clone());
        assert_eq!((with.mean_latency_ns, with.lat_ns.is_some()), (Some(1_000.0), false));
        trace.requests.truncate(2);
        let without = seen(trace);
        assert_eq!((without.mean_latency_ns, without.lat_ns.is_some()), (Some(1_000.0), true));
    }

    #[test]
    fn stretches_without_data_neither_pass_nor_count() {
        let gaps = [(10, 30), (60, 20)];
        let recorded = load(requests(&[0, 9, 10, 25, 40, 59, 80, 99]), &gaps);
        let evidence = evidence(recorded);
        let TraceRequests::Kept(requests) = &evidence.requests else { panic!("they are few") };
        let times: Vec<u64> = requests.iter().map(|one| one.at_ns / SECOND_NS).collect();
        assert_eq!(times, [0, 9, 10, 10, 10, 29, 30, 49]);
        assert_eq!(evidence.demand.length_ns, 50 * SECOND_NS);
        assert!((evidence.load.iops - 8.0 / 50.0).abs() < 1e-9, "{}", evidence.load.iops);
        assert_eq!((evidence.load.length_ns, evidence.load.observed_ns), (100 * SECOND_NS, 50 * SECOND_NS));
        assert!(evidence.notes.iter().any(|note| note.starts_with("stretches without data are left out")));
        // Intervals begin when they say, and those of a fold skip the time between.
        let interval =
            ObservedInterval { start_ns: 40 * SECOND_NS, length_ns: 1, ..ObservedInterval::default() };
        let mut sums = load(LoadCourse::Intervals(vec![interval]), &gaps);
        let before = sums.clone();
        close_gaps(&mut sums);
        assert_eq!(sums, before);
    }
}
