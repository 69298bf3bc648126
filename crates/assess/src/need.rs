//! From the stated needs of a use to the required properties of a volume. Pure.

use fathom_analysis::conclusions::{NeededRate, Use};
use fathom_analysis::criterion::{LatencyObjective, Statistic};
use fathom_catalog::{LatencyNeed, VolumeNeed};
use fathom_model::Nanos;
use fathom_model::plan::Pattern;
use fathom_model::units::{UnitSystem, bytes, duration, grouped};
use fathom_predict::{OfferedLoad, RecurringBurst};

use crate::AssessError;
use crate::machine::engine_rows;
use crate::profile::{UseProfile, profiles};

/// The stated needs of a use; omitted ones are not required.
#[derive(Clone, Debug, Default)]
pub struct NeedSettings {
    /// Bytes to be kept.
    pub size: Option<u64>,
    /// I/Os a second.
    pub iops: Option<u64>,
    /// Bytes a second, at the same time.
    pub bytes_per_second: Option<u64>,
    /// Bytes of a request.
    pub block: Option<u64>,
    /// fio's name of a pattern: `randread`, `write`, `randrw`, ...
    pub rw: Option<String>,
    /// Percent of reads in a mix.
    pub read_percent: Option<u8>,
    /// What a request may take.
    pub latency: Vec<LatencyObjective>,
    /// The need lasts so long in each period.
    pub burst: Option<(Nanos, Nanos)>,
    /// I/Os a second in between.
    pub baseline_iops: Option<u64>,
    /// Data must outlive the instance.
    pub persistent: bool,
    /// The instance that the volume is attached to.
    pub instance: Option<String>,
    /// An access pattern for the needs that are not stated.
    pub profile: Option<String>,
}

/// A need and its description.
#[derive(Clone, Debug)]
pub struct StatedNeed {
    /// What a volume is compared with.
    pub need: VolumeNeed,
    /// The same for people, in whole sentences.
    pub text: String,
}

/// Default block sizes: for needs in I/Os, and for needs in bytes alone.
const SMALL: u64 = 4096;
const LARGE: u64 = 1 << 20;
const P99_PER_MILLION: u32 = 990_000;
/// The least that a request moves.
const LEAST: f64 = 512.0;

/// Reads the stated need.
///
/// # Errors
/// It contradicts itself, or there is no profile of that name.
pub fn need(settings: &NeedSettings) -> Result<StatedNeed, AssessError> {
    let mut named = match &settings.profile {
        Some(name) => profiles(std::slice::from_ref(name), &engine_rows())?,
        None => Vec::new(),
    };
    if named.len() > 1 {
        return Err(refuse("only one profile can be used", "see `fathom bench --profile list`"));
    }
    let profile = named.pop();
    let asked = profile.as_ref().map(|profile| ProfileNeed::of(profile.purpose)).unwrap_or_default();
    let iops = settings.iops.map(|iops| iops as f64).or(asked.iops);
    let rate = settings.bytes_per_second.map(|rate| rate as f64).or(asked.bytes_per_second);
    if iops.is_none()
        && rate.is_none()
        && settings.size.is_none()
        && settings.latency.is_empty()
        && profile.is_none()
    {
        return Err(refuse("no requirement given", "use --iops, --bandwidth, --size, --expect or --profile"));
    }
    let load = load(settings, &asked, iops, rate)?;
    let mean = load.mean_bytes();
    let by_bytes = rate.map(|rate| rate / mean);
    let requests = iops.unwrap_or(0.0).max(by_bytes.unwrap_or(0.0));
    let between = settings.baseline_iops.map_or(0.0, |iops| iops as f64);
    if between > requests {
        return Err(refuse(
            "the baseline exceeds the burst rate",
            "use --baseline-iops for the rate between bursts",
        ));
    }
    let burst = settings.burst.map(|(length, every)| RecurringBurst {
        length_ns: length.0,
        period_ns: every.0,
        iops_between: between,
    });
    if settings.baseline_iops.is_some() && burst.is_none() {
        return Err(refuse(
            "--baseline-iops needs --burst",
            "give the duration of the burst: --burst 30m/day",
        ));
    }
    let mut latency = asked.latency.clone();
    if !settings.latency.is_empty() {
        latency = settings.latency.iter().map(|slo| of_slo(slo, &load)).collect();
    }
    let need = VolumeNeed {
        size_bytes: settings.size.unwrap_or(1 << 30),
        iops: requests,
        in_ios: iops.is_some(),
        in_bytes: rate.is_some(),
        burst,
        besides: Vec::new(),
        latency,
        persistent: settings.persistent,
        instance: settings.instance.clone(),
        load,
    };
    let text = words(&need, iops, rate, profile.as_ref(), &asked.notes);
    Ok(StatedNeed { need, text })
}

fn refuse(reason: &str, hint: &str) -> AssessError {
    AssessError::usage(reason, hint)
}

/// What a profile asks for.
#[derive(Clone, Debug, Default)]
struct ProfileNeed {
    load: Option<OfferedLoad>,
    iops: Option<f64>,
    bytes_per_second: Option<f64>,
    latency: Vec<LatencyNeed>,
    notes: Vec<String>,
}

impl ProfileNeed {
    fn of(purpose: &Use) -> ProfileNeed {
        let share = |&(block, percent): &(u64, u8)| (block as f64, f64::from(percent) / 100.0);
        let (of_reads, of_writes) = (purpose.read_percent > 0, purpose.read_percent < 100);
        let latency = purpose.full.p99_ns.map(|most_ns| LatencyNeed {
            statistic: Statistic::Percentile(P99_PER_MILLION).name(),
            per_million: Some(P99_PER_MILLION),
            most_ns,
            of_reads,
            of_writes,
        });
        let note =
            "Providers do not publish flush latencies: the limit is compared with the write latency alone.";
        let (iops, bytes_per_second) = match purpose.full.rate {
            NeededRate::Iops(iops) => (Some(iops), None),
            NeededRate::Bytes(bytes) => (None, Some(bytes)),
        };
        ProfileNeed {
            load: Some(OfferedLoad {
                blocks: purpose.blocks.iter().map(share).collect(),
                sequential: purpose.sequential,
                synced_after: purpose.synced.then_some(1),
                read_fraction: Some(f64::from(purpose.read_percent) / 100.0),
            }),
            iops,
            bytes_per_second,
            latency: latency.into_iter().collect(),
            notes: purpose.synced.then(|| note.to_owned()).into_iter().collect(),
        }
    }
}

fn of_slo(slo: &LatencyObjective, load: &OfferedLoad) -> LatencyNeed {
    LatencyNeed {
        statistic: slo.statistic().name(),
        per_million: slo.statistic().per_million(),
        most_ns: slo.limit_ns() as u64,
        of_reads: load.read_fraction != Some(0.0),
        of_writes: load.read_fraction != Some(1.0),
    }
}

fn load(
    settings: &NeedSettings,
    asked: &ProfileNeed,
    iops: Option<f64>,
    rate: Option<f64>,
) -> Result<OfferedLoad, AssessError> {
    let only_bytes = iops.is_none() && rate.is_some();
    let usual = match &asked.load {
        Some(load) => load.clone(),
        None => OfferedLoad::of(if only_bytes { LARGE } else { SMALL } as f64, only_bytes),
    };
    if settings.read_percent.is_some() && settings.rw.as_ref().is_some_and(|rw| !rw.ends_with("rw")) {
        let reason = "--rwmixread needs a mixed pattern";
        return Err(refuse(reason, "use --rw rw or --rw randrw, or omit --rwmixread"));
    }
    let (is_sequential, reads) = match &settings.rw {
        Some(rw) => {
            let pattern = Pattern::named(&rw.replace("readwrite", "rw")).filter(|pattern| !pattern.trims());
            let pattern = pattern.ok_or_else(|| {
                let reason = format!("unknown pattern {rw}");
                refuse(&reason, "use one of randread, randwrite, randrw, read, write, rw")
            })?;
            let share = settings.read_percent.map(|percent| f64::from(percent) / 100.0);
            let reads = match (pattern.reads(), pattern.writes()) {
                (true, true) => share,
                (is_read, _) => Some(f64::from(u8::from(is_read))),
            };
            (!pattern.random, reads)
        }
        None => (
            usual.sequential,
            settings.read_percent.map(|percent| f64::from(percent) / 100.0).or(usual.read_fraction),
        ),
    };
    let blocks = match (settings.block, iops, rate) {
        (Some(_), Some(_), Some(_)) if asked.load.is_none() => {
            let hint = "omit --bs: IOPS and bandwidth determine it";
            return Err(refuse("the block size is given twice", hint));
        }
        (Some(block), ..) => vec![(block as f64, 1.0)],
        (None, Some(iops), Some(rate)) if asked.load.is_none() && iops > 0.0 => vec![(rate / iops, 1.0)],
        _ => usual.blocks,
    };
    let load = OfferedLoad {
        blocks,
        sequential: is_sequential,
        synced_after: usual.synced_after,
        read_fraction: reads,
    };
    if load.blocks.iter().any(|(block, _)| *block < LEAST) {
        let reason = format!("a block size of {:.0} bytes is below the minimum of 512", load.mean_bytes());
        return Err(refuse(&reason, "use fewer IOPS or a higher bandwidth"));
    }
    Ok(load)
}

/// `5,000 IOPS and 200 MiB/s at once …`.
fn words(
    need: &VolumeNeed,
    iops: Option<f64>,
    rate: Option<f64>,
    profile: Option<&UseProfile>,
    notes: &[String],
) -> String {
    let load = &need.load;
    let rates = [
        iops.map(|iops| format!("{} IOPS", grouped(iops as u64))),
        rate.map(|rate| format!("{}/s", UnitSystem::of(rate).amount(rate.round() as u64))),
    ];
    let rates: Vec<String> = rates.into_iter().flatten().collect();
    let order = if load.sequential { "sequential" } else { "random" };
    let mix = match load.read_fraction {
        None => "any mix of reads and writes".to_owned(),
        Some(1.0) => "all reads".to_owned(),
        Some(0.0) => "all writes".to_owned(),
        Some(share) => format!("{:.0} % reads", share * 100.0),
    };
    let average = if load.blocks.len() > 1 { " on average" } else { "" };
    let requests = format!("{} I/Os{average}, {order}, {mix}", bytes(load.mean_bytes().round() as u64));
    let when = match need.burst {
        None => String::new(),
        Some(burst) => {
            let between = match burst.iops_between {
                0.0 => "nothing".to_owned(),
                rate => format!("{} IOPS", grouped(rate as u64)),
            };
            let (length, every) = (duration(Nanos(burst.length_ns)), duration(Nanos(burst.period_ns)));
            format!(", for {length} of each {every}, then {between}")
        }
    };
    let limits: Vec<String> = need
        .latency
        .iter()
        .map(|asked| format!("{} below {}", asked.statistic, fathom_model::units::latency(asked.most_ns)))
        .collect();
    let what = if rates.is_empty() { "no rate".to_owned() } else { rates.join(" and ") };
    let mut text = profile.map(|profile| format!("For {}: ", profile.purpose.name)).unwrap_or_default();
    text += &format!("{what} ({requests}){when}; {} kept", bytes(need.size_bytes));
    if !limits.is_empty() {
        text += &format!("; {}", limits.join(", "));
    }
    if let Some(instance) = &need.instance {
        text += &format!("; on {instance}");
    }
    text += ".";
    for note in notes {
        text += &format!(" {note}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PROFILES;

    fn given(settings: NeedSettings) -> VolumeNeed {
        need(&settings).unwrap().need
    }

    #[test]
    fn rates_tell_how_large_requests_are() {
        let mib = 1u64 << 20;
        for (iops, rate, block, expected) in [
            (Some(5000), Some(200 * mib), None, (5000.0, 41_943.04, false)),
            (Some(5000), None, None, (5000.0, 4096.0, false)),
            (Some(5000), None, Some(16_384), (5000.0, 16_384.0, false)),
            (None, Some(200 * mib), None, (200.0, 1_048_576.0, true)),
            (None, Some(200 * mib), Some(65_536), (3200.0, 65_536.0, true)),
        ] {
            let found =
                given(NeedSettings { iops, bytes_per_second: rate, block, ..NeedSettings::default() });
            assert_eq!((found.iops, found.load.mean_bytes(), found.load.sequential), expected);
            assert_eq!(
                (found.in_ios, found.in_bytes, found.load.read_fraction),
                (iops.is_some(), rate.is_some(), None)
            );
        }
    }

    #[test]
    fn every_profile_is_a_need() {
        for (name, _) in PROFILES {
            let settings = NeedSettings { profile: Some((*name).to_owned()), ..NeedSettings::default() };
            let given = need(&settings).unwrap();
            let shares: f64 = given.need.load.blocks.iter().map(|(_, share)| share).sum();
            assert!((shares - 1.0).abs() < 1e-9, "{name}");
            assert!(given.need.iops > 0.0 || !given.need.latency.is_empty(), "{name}");
            assert!(given.text.contains(name) && given.need.load.read_fraction.is_some(), "{}", given.text);
        }
        let oltp = given(NeedSettings { profile: Some("oltp".to_owned()), ..NeedSettings::default() });
        // 4k/20:8k/60:16k/20 is 8.8 KiB on average; two reads for every write; p99 below 5 ms.
        assert_eq!(
            (oltp.iops, oltp.load.mean_bytes(), oltp.load.read_fraction),
            (1000.0, 9011.2, Some(0.67))
        );
        assert_eq!((oltp.latency[0].per_million, oltp.latency[0].most_ns), (Some(990_000), 5_000_000));
        let video = given(NeedSettings { profile: Some("video".to_owned()), ..NeedSettings::default() });
        assert_eq!((video.iops * video.load.mean_bytes(), video.load.sequential), (220e6, true));
        let more =
            NeedSettings { iops: Some(4000), profile: Some("oltp".to_owned()), ..NeedSettings::default() };
        assert_eq!(given(more).iops, 4000.0);
        let log = need(&NeedSettings { profile: Some("database-log".to_owned()), ..NeedSettings::default() });
        assert!(log.unwrap().text.contains("flush"));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let check = |settings: NeedSettings, expected: &str| {
            let error = need(&settings).unwrap_err();
            assert!(error.to_string().contains(expected) && error.hint.is_some(), "{error}");
            assert!(error.kind == crate::ErrorKind::Usage);
        };
        let some = || NeedSettings { iops: Some(100), ..NeedSettings::default() };
        check(NeedSettings::default(), "no requirement");
        check(NeedSettings { bytes_per_second: Some(1000), ..some() }, "below the minimum of 512");
        check(NeedSettings { bytes_per_second: Some(1 << 30), block: Some(4096), ..some() }, "given twice");
        check(NeedSettings { baseline_iops: Some(10), ..some() }, "needs --burst");
        let day = (Nanos::from_secs(60), Nanos::from_secs(86_400));
        check(
            NeedSettings { baseline_iops: Some(101), burst: Some(day), ..some() },
            "exceeds the burst rate",
        );
        let mixed = NeedSettings { rw: Some("randread".to_owned()), read_percent: Some(50), ..some() };
        check(mixed, "needs a mixed pattern");
        check(NeedSettings { profile: Some("all".to_owned()), ..some() }, "only one profile");
        check(NeedSettings { rw: Some("raed".to_owned()), ..some() }, "unknown pattern raed");
        check(NeedSettings { profile: Some("oltpp".to_owned()), ..some() }, "unknown profile 'oltpp'");
    }
}
