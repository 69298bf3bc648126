//! Volumes of the catalogue, and what `identify` finds: their limits and buckets, and which type it is.

use fathom_analysis::estimate::Estimate;
use fathom_analysis::identified::prediction::{LastPhase, predictions};
use fathom_analysis::identified::{BucketUnit, EachWay, Figure, Identified};
use fathom_assess::identify::{IdentifyPlan, IdentifySettings, identify};
use fathom_assess::{RunSettings, candidates};
use fathom_catalog::{Catalog, SimulatedTarget};
use fathom_model::Nanos;
use fathom_volume::{Limit, LimitStage, VolumeModel};

/// What of a volume cannot be seen in the time that is given.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Open {
    Nothing,
    /// The limit on bytes: larger requests count as several.
    Bytes,
    /// A bucket that does not run dry in time.
    Bucket,
    /// The bucket of bytes: that of I/Os runs dry with it.
    BytesBucket,
    /// Both the limit on bytes and a bucket.
    BytesAndBucket,
    /// Its type, and what is its own: the machine in front has lower limits.
    Type,
    /// What a burst by the clock hides: no bucket is reported, and of rates what was reached.
    Clock,
}

const MINUTE: u64 = 60;
const HOUR: u64 = 3600;

/// What is identified, in how many seconds.
const VOLUMES: &[(&str, u64, Open)] = &[
    ("aws-gp2?size=50GiB", HOUR, Open::Nothing),
    ("aws-gp2?size=250GiB", HOUR, Open::Nothing),
    ("aws-gp2?size=500GiB", 10 * MINUTE, Open::Bucket),
    ("aws-gp2?size=1001GiB", 10 * MINUTE, Open::Nothing),
    ("aws-gp2-2016?size=100GiB", HOUR, Open::Nothing),
    ("aws-gp2-2018-12?size=16384GiB", 10 * MINUTE, Open::Nothing),
    ("aws-gp3?size=100GiB", 10 * MINUTE, Open::Nothing),
    ("aws-gp3?size=500GiB&iops=6000&bandwidth=500MiB", 10 * MINUTE, Open::Nothing),
    ("aws-gp3?size=100GiB&instance_iops=2000", 10 * MINUTE, Open::Type),
    ("aws-io1?size=256GiB&iops=3200", 10 * MINUTE, Open::Nothing),
    ("aws-io1-2012?size=400GiB&iops=1000&first_touch=1", 10 * MINUTE, Open::Nothing),
    ("aws-io2-block-express?size=4GiB&iops=1000", 10 * MINUTE, Open::Bytes),
    ("aws-st1?size=500GiB", 10 * MINUTE, Open::BytesAndBucket),
    ("aws-st1?size=500GiB", 2 * HOUR + 10 * MINUTE, Open::Bytes),
    ("aws-sc1?size=4096GiB", 10 * MINUTE, Open::BytesAndBucket),
    ("azure-vhd-preview-2012?size=32GiB", 10 * MINUTE, Open::Nothing),
    ("azure-standard-hdd?size=32767GiB", 10 * MINUTE, Open::Nothing),
    ("azure-standard-ssd?size=128GiB", HOUR, Open::Nothing),
    ("azure-standard-ssd?size=1024GiB", HOUR, Open::Nothing),
    ("azure-premium-ssd?size=64GiB", 2 * HOUR, Open::BytesBucket),
    ("azure-premium-ssd?size=1024GiB", 10 * MINUTE, Open::Nothing),
    ("azure-premium-ssd?size=8192GiB&on_demand=1", 2 * MINUTE, Open::Nothing),
    ("azure-premium-ssd-v2?size=100GiB", 10 * MINUTE, Open::Nothing),
    ("azure-ultra-disk?size=64GiB&iops=4000&bandwidth=300MB", 10 * MINUTE, Open::Nothing),
    ("do-volume-standard-2018-04?size=100GiB", 10 * MINUTE, Open::Nothing),
    ("do-volume-high-cpu-2018-04?size=1GiB", 10 * MINUTE, Open::Nothing),
    ("gcp-pd-standard?size=810GiB", 10 * MINUTE, Open::Nothing),
    ("gcp-pd-balanced?size=810GiB", 10 * MINUTE, Open::Nothing),
    ("gcp-pd-ssd?size=10GiB", 10 * MINUTE, Open::Nothing),
    ("gcp-hyperdisk-balanced?size=100GiB", 10 * MINUTE, Open::Nothing),
    ("gcp-pd-extreme?size=500GiB&iops=10000", 2 * MINUTE, Open::Nothing),
    ("gcp-hyperdisk-extreme?size=1000GiB&iops=20000", 2 * MINUTE, Open::Nothing),
    ("gcp-pd-standard?size=65536GiB", 2 * MINUTE, Open::Nothing),
    ("alibaba-essd-autopl?size=256GiB", 10 * MINUTE, Open::Nothing),
    ("alibaba-essd-pl0?size=40GiB", 10 * MINUTE, Open::Nothing),
    ("alibaba-essd-pl2?size=461GiB", 2 * MINUTE, Open::Nothing),
    ("alibaba-essd-pl3?size=1261GiB", 2 * MINUTE, Open::Nothing),
    ("tencent-cbs-ssd?size=20GiB", 10 * MINUTE, Open::Nothing),
    ("tencent-cbs-tremendous-ssd?size=20GiB", 10 * MINUTE, Open::Nothing),
    ("aws-instance-store-nvme?size=475GiB&tier=i3.large", 2 * MINUTE, Open::Nothing),
    ("aws-io1?size=16384GiB&iops=64000", 2 * MINUTE, Open::Nothing),
    ("aws-io2-block-express?size=400GiB&iops=4000&first_touch=1", 10 * MINUTE, Open::Bytes),
    ("azure-standard-hdd?size=512GiB", 10 * MINUTE, Open::Nothing),
    ("azure-standard-ssd?size=8192GiB", 10 * MINUTE, Open::Nothing),
    ("gcp-pd-ssd?size=1000GiB&instance_iops=15000&instance_bandwidth=240MiB", 2 * MINUTE, Open::Type),
    ("aws-gp2?size=100GiB&instance_iops=2000", HOUR, Open::Type),
    ("alibaba-cloud-efficiency?size=181GiB", 10 * MINUTE, Open::Nothing),
    ("alibaba-cloud-ssd?size=1GiB", 10 * MINUTE, Open::Nothing),
    ("alibaba-essd-pl1?size=20GiB", 10 * MINUTE, Open::Nothing),
    ("tencent-cbs-balanced-ssd?size=181GiB", 10 * MINUTE, Open::Nothing),
    ("tencent-cbs-enhanced-ssd?size=32000GiB", 2 * MINUTE, Open::Nothing),
    ("do-volume-standard?size=100GiB", HOUR, Open::Clock),
    ("do-volume-optimized?size=100GiB", HOUR, Open::Clock),
    ("do-volume-optimized?size=100GiB&seed=7", HOUR, Open::Clock),
    ("hetzner-volume?size=100GiB", HOUR, Open::Clock),
    ("linode-block-storage?size=100GiB", HOUR, Open::Clock),
    ("vultr-block-nvme?size=100GiB", HOUR, Open::Clock),
    ("vultr-block-hdd?size=100GiB", HOUR, Open::Clock),
    ("gcp-hyperdisk-throughput?size=2048GiB&bandwidth=180MiB", 10 * MINUTE, Open::Clock),
];

/// The wrong results of one volume.
struct Amiss<'a> {
    volume: &'a str,
    found: Vec<String>,
}

impl Amiss<'_> {
    fn add(&mut self, what: impl Into<String>) {
        self.found.push(format!("{}: {}", self.volume, what.into()));
    }

    /// A figure that is to be within `tolerance` of what it is, in an interval that holds that; a bound where it cannot be seen.
    fn figure(&mut self, name: &str, figure: &Figure, (truth, is_open): (Option<f64>, bool), tolerance: f64) {
        let is_so = match (figure.estimate, truth) {
            (Some(Estimate::Known { value, low, high }), Some(truth)) => {
                (value / truth - 1.0).abs() <= tolerance && low <= truth && truth <= high
            }
            (Some(Estimate::Known { .. } | Estimate::AtMost(_)), None) => false,
            (Some(Estimate::AtLeast(low)), Some(truth)) => is_open && low <= truth * 1.01,
            (Some(Estimate::AtMost(high)), Some(truth)) => is_open && high >= truth * 0.99,
            (_, truth) => is_open || truth.is_none(),
        };
        if !is_so {
            self.add(format!("{name} is {truth:?}, found {figure:?}"));
        }
    }
}

fn peak(limit: Option<Limit>) -> Option<f64> {
    Some(limit?.peak()?.as_f64())
}

/// The unit that each random request costs a whole of.
fn whole_unit(stage: &LimitStage) -> Option<f64> {
    stage.accounting.unit_bytes.filter(|_| stage.accounting.whole_units).map(f64::from)
}

/// The highest rates of one direction: requests, bytes.
fn highest(model: &VolumeModel, own: &[LimitStage]) -> (Option<f64>, Option<f64>) {
    let least = |of: &dyn Fn(&LimitStage) -> Option<f64>| {
        model.shared.iter().chain(own).filter_map(of).min_by(f64::total_cmp)
    };
    let requests = |stage: &LimitStage| {
        let by_unit = whole_unit(stage).and_then(|unit| Some(peak(stage.bytes)? / unit));
        [peak(stage.ios), by_unit].into_iter().flatten().min_by(f64::total_cmp)
    };
    (least(&requests), least(&|stage| peak(stage.bytes)))
}

fn limits(amiss: &mut Amiss<'_>, model: &VolumeModel, found: &Identified, open: Open) {
    let (by_clock, is_open) =
        (open == Open::Clock, matches!(open, Open::Bytes | Open::BytesAndBucket | Open::Clock));
    let EachWay { read: read_iops, write: write_iops } = &found.iops;
    let EachWay { read: read_bytes, write: write_bytes } = &found.bytes_per_second;
    for (name, own, iops, bytes) in
        [("read", &model.reads, read_iops, read_bytes), ("write", &model.writes, write_iops, write_bytes)]
    {
        let (true_iops, true_bytes) = highest(model, own);
        amiss.figure(&format!("{name} IOPS"), iops.as_ref().unwrap(), (true_iops, by_clock), 0.03);
        amiss.figure(&format!("{name} bytes"), bytes.as_ref().unwrap(), (true_bytes, is_open), 0.03);
    }
    let is_shared = match (model.shared.is_empty(), model.reads.is_empty() && model.writes.is_empty()) {
        (false, true) => Some(true),
        (true, false) => Some(false),
        // Requests are counted together, and bytes apart.
        _ => None,
    };
    let is_reported = !by_clock || found.shares_limits.is_some();
    if open != Open::Type && is_reported && found.shares_limits != is_shared {
        amiss.add(format!("shared: {:?} ({:?})", found.shares_limits, found.shares_limits_why));
    }
    if found.first_touch.is_some() != model.first_touch.is_some() {
        amiss.add(format!("first touch: {:?} ({:?})", found.first_touch, found.first_touch_why));
    }
}

/// A bucket as random requests see it: what it counts, its baseline and what it holds.
fn buckets_of(model: &VolumeModel) -> Vec<(BucketUnit, f64, f64)> {
    let stages = model.shared.iter().chain(&model.reads).chain(&model.writes);
    let credit = |limit: Option<Limit>| match limit? {
        Limit::Credit { base, capacity, .. } => Some((base.as_f64(), capacity as f64)),
        _ => None,
    };
    let of_stage = |stage: &LimitStage| {
        let ios = credit(stage.ios).map(|(base, capacity)| (BucketUnit::Ios, base, capacity));
        let bytes = credit(stage.bytes).map(|(base, capacity)| match whole_unit(stage) {
            Some(unit) => (BucketUnit::Ios, base / unit, capacity / unit),
            None => (BucketUnit::Bytes, base, capacity),
        });
        [ios, bytes]
    };
    stages.flat_map(of_stage).flatten().collect()
}

fn buckets(amiss: &mut Amiss<'_>, model: &VolumeModel, found: &Identified, open: Open) {
    let mut left = found.bursts.clone();
    for (unit, base, capacity) in buckets_of(model) {
        let is_open = match open {
            Open::Bucket | Open::BytesAndBucket | Open::Type => true,
            Open::BytesBucket => unit == BucketUnit::Bytes,
            _ => false,
        };
        match left.iter().position(|burst| burst.unit == unit) {
            Some(index) => {
                let burst = left.swap_remove(index);
                amiss.figure("baseline", &burst.baseline_rate, (Some(base), false), 0.05);
                amiss.figure("capacity", &burst.capacity, (Some(capacity), false), 0.05);
                amiss.figure("refill", &burst.refill_rate, (Some(base), false), 0.05);
            }
            None if is_open => {}
            None => {
                amiss.add(format!("no bucket of {unit:?}: {:?} {:?}", found.burst_why, found.confounders))
            }
        }
    }
    left.iter().for_each(|burst| amiss.add(format!("there is no bucket: {burst:?}")));
    if open == Open::Bucket {
        let predicted = predictions(found);
        let is_cautious = predicted
            .iter()
            .all(|one| matches!(one.last_phase, LastPhase::AtLeastSeconds(seconds) if seconds < 600.0));
        if predicted.is_empty() || !is_cautious {
            amiss.add(format!("predicted beyond the measurement: {predicted:?}"));
        }
    }
}

/// The wrong results of identifying one volume.
fn amiss_of((volume, seconds, open): (&str, u64, Open)) -> Vec<String> {
    let name = format!("sim:{volume}");
    let catalog = Catalog::shipped();
    let target = SimulatedTarget::parse(catalog, &name).unwrap();
    let settings = IdentifySettings {
        run: RunSettings { target: name.into(), ..RunSettings::default() },
        budget: Some(Nanos::from_secs(seconds)),
        ..IdentifySettings::default()
    };
    let plan = IdentifyPlan::make(settings).unwrap();
    let (_, found) = identify(&plan, &mut plan.site.session(), &mut ()).unwrap();
    let mut amiss = Amiss { volume, found: Vec::new() };
    limits(&mut amiss, &target.model, &found, open);
    buckets(&mut amiss, &target.model, &found, open);
    let near = candidates(catalog, &found, Some(target.model.size_bytes));
    let own = near.iter().find(|candidate| candidate.id == target.id);
    // What has to be chosen of a type may be included in another.
    let is_nearest = |distance: f64| distance <= near[0].distance + 0.0101;
    let is_own = own.is_some_and(|own| {
        let is_size = own.size.is_none_or(|size| size.is_target_size == Some(true));
        is_size && is_nearest(own.distance)
    });
    if !matches!(open, Open::Type | Open::Clock) && !is_own {
        amiss.add(format!("nearest is {:?}, its own {own:?}", near.first()));
    }
    amiss.found
}

#[test]
fn truth_of_volumes_of_the_catalogue() {
    let names = std::env::var("VOLUMES").ok();
    let is_selected = |volume: &str| match &names {
        Some(names) => names.split(',').any(|name| volume.contains(name)),
        None => true,
    };
    // Without optimisation all of them would take minutes.
    let every = match std::env::var_os("FATHOM_LONG_TESTS") {
        Some(_) => 1,
        None if cfg!(debug_assertions) => 16,
        None => 2,
    };
    let volumes: Vec<(&str, u64, Open)> =
        VOLUMES.iter().filter(|one| is_selected(one.0)).step_by(every).copied().collect();
    let half = |part: usize| {
        let volumes: Vec<_> = volumes.iter().skip(part).step_by(2).copied().collect();
        std::thread::spawn(move || volumes.into_iter().flat_map(amiss_of).collect::<Vec<_>>())
    };
    let amiss: Vec<String> = [half(0), half(1)].into_iter().flat_map(|half| half.join().unwrap()).collect();
    assert!(!volumes.is_empty());
    assert!(amiss.is_empty(), "{}", amiss.join("\n"));
}
