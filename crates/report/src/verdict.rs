//! The first lines of a report on a volume: what it sustains, what limits it, which uses it suits, what spoils the figures, and
//! what to do next.

use fathom_analysis::conclusions::Use;
use fathom_analysis::pattern::block_name;
use fathom_analysis::steady::rate_duration::{DurationBasis, Lasting};
use fathom_analysis::verdict::{
    RateDirection, RateUnit, RateVerdict, SuitabilityVerdict, VolumeVerdict, doubt_reason,
};
use fathom_model::Nanos;
use fathom_model::units::{self, duration};
use fathom_record::{Finding, FindingId, RunRecord};

use crate::run_view;
use crate::view::{View, decimal, iops_text};

/// Labels of lines that a page shows in another form.
pub(crate) const SUITS: &str = "Suits";
pub(crate) const NOT_FOR: &str = "Not for";
pub(crate) const UNDECIDED: &str = "Undecided";
pub(crate) const NEXT: &str = "Next";
/// Uses that one list names.
const MAX_USES: usize = 5;
/// Kinds of problems that are shown, a line each.
const MAX_PROBLEMS: usize = 4;

/// Puts the verdict of `record` first.
pub(crate) fn push(verdict: &VolumeVerdict, record: &RunRecord, view: &mut View) {
    view.warn("Stopped", run_view::interruption(record));
    push_rates(&verdict.rates, view);
    // The rules look at one host and its device; of several the findings say which limit they share.
    let is_of_one_host = record.header.fleet.is_none();
    view.say("Limited by", limit(&verdict.rates, record).filter(|_| is_of_one_host));
    match (verdict.asked.as_slice(), suitability(&verdict.suitability)) {
        ([], uses) => uses.into_iter().for_each(|(label, text)| view.say(label, text)),
        (asked, _) => asked.iter().for_each(|(title, text)| view.say(*title, text.clone())),
    }
    push_problems(record, view);
    view.say(NEXT, verdict.next.clone());
}

/// The uses that a volume suits, or those that it does not where it suits none, with their label.
pub(crate) fn suitability(all: &SuitabilityVerdict) -> Option<(&'static str, String)> {
    let SuitabilityVerdict { suitable, in_bursts, marginal, unsuitable, open, .. } = all;
    match [suitable, in_bursts, marginal].iter().all(|names| names.is_empty()) {
        true if unsuitable.is_empty() => (!open.is_empty()).then(|| (UNDECIDED, named(open))),
        true => Some((NOT_FOR, named(unsuitable))),
        false => Some((SUITS, uses(all))),
    }
}

/// What is held indefinitely with the burst before it; what was reached where the former is unknown.
fn push_rates(rates: &[RateVerdict], view: &mut View) {
    if rates.is_empty() {
        return;
    }
    let is_sustained = rates.iter().all(|rate| rate.held().is_some());
    let value =
        |rate: &RateVerdict| if is_sustained { rate.held().unwrap_or(rate.measured) } else { rate.measured };
    let figures = directed(rates, |rate| rate_text(rate.unit, value(rate)));
    let doubts = rates.iter().filter_map(|rate| doubt_reason(rate.doubt.as_ref()?));
    let doubt = doubts.into_iter().next().map(|reason| format!("; in doubt: {reason}")).unwrap_or_default();
    match is_sustained {
        true => view.say("Sustains", format!("{figures} ({}){doubt}", basis(rates))),
        false => {
            let longest = rates.iter().map(|rate| rate.measured_ns).max().unwrap_or_default();
            let open = rates.iter().any(|rate| rate.lasting == Lasting::Inconclusive);
            let measured = match open {
                true => format!(" (measured for {}; burst not ruled out)", duration(Nanos(longest))),
                false => String::new(),
            };
            view.say("Reaches", format!("{figures}{measured}{doubt}"));
        }
    }
    let bursts: Vec<RateVerdict> =
        rates.iter().filter(|rate| rate.lasting == Lasting::Burst).cloned().collect();
    if !bursts.is_empty() {
        let is_full = |rate: &&RateVerdict| rate.basis == Some(DurationBasis::PublishedRule);
        let from =
            if bursts.iter().filter(is_full).count() == bursts.len() { ", from full credits" } else { "" };
        view.say("Burst", format!("{}{from}", directed(&bursts, |rate| burst_text(rate, is_sustained))));
    }
}

/// `3,000 IOPS for 31 min 35 s`, with what remains where no other line says it.
fn burst_text(rate: &RateVerdict, is_said: bool) -> String {
    let text = rate_text(rate.unit, rate.measured);
    let lasts = match (rate.lasts_ns, rate.basis) {
        (Some(ns), Some(DurationBasis::ObservedFall)) => {
            format!("{text} for {} as observed", duration(Nanos(ns)))
        }
        (Some(ns), _) => format!("{text} for {}", duration(Nanos(ns))),
        (None, _) => format!("{text}, billed"),
    };
    match rate.sustained.filter(|_| !is_said) {
        Some(left) => format!("{lasts}, then {}", rate_text(rate.unit, left)),
        None => lasts,
    }
}

/// The evidence for what is sustained.
fn basis(rates: &[RateVerdict]) -> String {
    let published = rates.iter().find(|rate| rate.basis == Some(DurationBasis::PublishedRule));
    if let Some(rate) = published {
        return match rate.volume.as_deref().map(type_name) {
            Some("custom") | None => "by its own rule".to_owned(),
            Some(name) => format!("published rule, {name}"),
        };
    }
    match rates.iter().any(|rate| rate.basis == Some(DurationBasis::ObservedFall)) {
        true => "steady after a fall".to_owned(),
        false => {
            let shortest = rates.iter().map(|rate| rate.measured_ns).min().unwrap_or_default();
            format!("steady for {}", duration(Nanos(shortest)))
        }
    }
}

/// `aws-gp2` of `sim:aws-gp2?size=50GiB`.
fn type_name(volume: &str) -> &str {
    let name = volume.strip_prefix("sim:").unwrap_or(volume);
    name.split_once('?').map_or(name, |(name, _)| name)
}

/// Each rate in words: those of both directions, then those of reads, then those of writes.
fn directed(rates: &[RateVerdict], text: impl Fn(&RateVerdict) -> String) -> String {
    let directions = [
        (RateDirection::ReadAndWrite, ""),
        (RateDirection::Read, "reads "),
        (RateDirection::Write, "writes "),
    ];
    let parts = directions.into_iter().filter_map(|(direction, head)| {
        let texts: Vec<String> = rates.iter().filter(|rate| rate.direction == direction).map(&text).collect();
        (!texts.is_empty()).then(|| format!("{head}{}", texts.join(", ")))
    });
    parts.collect::<Vec<_>>().join("; ")
}

fn rate_text(unit: RateUnit, rate: f64) -> String {
    match unit {
        RateUnit::Iops => format!("{} IOPS", iops_text(rate)),
        RateUnit::BytesPerSecond => match rate / f64::from(1 << 20) {
            mebibytes if mebibytes >= 99.95 => format!("{} MiB/s", iops_text(mebibytes)),
            mebibytes => format!("{} MiB/s", decimal(mebibytes)),
        },
    }
}

/// What limits the rates, and from which queue depth on.
fn limit(rates: &[RateVerdict], record: &RunRecord) -> Option<String> {
    let of = |unit: RateUnit| rates.iter().find(move |rate| rate.unit == unit && rate.limit.is_some());
    let (iops, bytes) = (of(RateUnit::Iops), of(RateUnit::BytesPerSecond));
    if rates.iter().any(|rate| rate.limit == Some(FindingId::ClientCpuBound)) {
        return Some("the CPU of this host".to_owned());
    }
    let is_above = |rate: &&RateVerdict| rate.limit == Some(FindingId::InstanceCap);
    let is_unknown = |rate: &&RateVerdict| rate.limit == Some(FindingId::UnknownLimit);
    let is_volumes = |rate: &&RateVerdict| !is_above(rate) && !is_unknown(rate);
    let at = |rate: &RateVerdict| {
        let block = block_name(rate.block_size_bytes);
        match rate.queue_depth_enough {
            Some(depth) => format!("{block}, from QD {depth:.0} on"),
            None => block,
        }
    };
    let own = [
        ("an IOPS limit", iops, FindingId::IopsCap, "group_limit_iops"),
        ("a bandwidth limit", bytes, FindingId::BandwidthCap, "group_limit_bytes_per_second"),
    ];
    let own = own.map(|(what, rate, id, set)| {
        let rate = rate.filter(is_volumes)?;
        let is_set = |found: &&Finding| {
            let is_limit = found.id == id && found.tests.contains(&rate.test);
            is_limit && found.evidence.get(set).is_some_and(|value| !value.is_null())
        };
        let owner =
            if record.findings.iter().any(|found| is_set(&found)) { " of the control group" } else { "" };
        Some(format!("{what}{owner} ({})", at(rate)))
    });
    let above = [iops, bytes].map(|rate| rate.filter(is_above));
    Some(match (own, above) {
        ([None, None], [None, None]) => match iops.or(bytes) {
            Some(rate) => format!("a limit of I/Os or of bytes ({})", at(rate)),
            None => {
                let deepest = rates.iter().map(|rate| rate.queue_depth).fold(0.0, f64::max);
                return (deepest >= 1.5).then(|| format!("unknown: no limit was seen up to QD {deepest:.0}"));
            }
        },
        ([None, None], _) => limit_above(record),
        ([Some(ios), None], [_, Some(_)]) => format!("{ios}, in bandwidth by {}", limit_above(record)),
        ([None, Some(bytes)], [Some(_), _]) => format!("{bytes}, in IOPS by {}", limit_above(record)),
        (own, _) => {
            let after = after_bursts(rates, record);
            let own = own.into_iter().flatten().collect::<Vec<_>>().join(" and ");
            format!("{own}{}", after.map(|after| format!("; after bursts {after}")).unwrap_or_default())
        }
    })
}

/// The limit above the volume that holds its rates; the instance where its limits are known.
fn limit_above(record: &RunRecord) -> String {
    let found = record.findings.iter().filter(|found| found.id == FindingId::InstanceCap);
    let instance = found.filter_map(|found| found.evidence.get("instance")?.as_str()).next();
    instance.map_or("a limit above the volume, such as that of the instance".to_owned(), instance_name)
}

/// The instance, where what remains of its rates after bursts is its own.
fn after_bursts(rates: &[RateVerdict], record: &RunRecord) -> Option<String> {
    rates.iter().find_map(|rate| {
        let test = record.tests.iter().find(|test| test.id == rate.test)?;
        Some(instance_name(&test.published.as_ref()?.sustained_by_instance()?.instance))
    })
}

fn instance_name(name: &str) -> String {
    match name {
        "" => "the instance, not the volume".to_owned(),
        name => format!("the instance {name}, not the volume"),
    }
}

/// The uses in their lists.
fn uses(all: &SuitabilityVerdict) -> String {
    let lists = [
        ("", &all.suitable),
        ("during bursts only: ", &all.in_bursts),
        ("marginal: ", &all.marginal),
        ("not: ", &all.unsuitable),
        ("undecided without --profile NAME: ", &all.open),
    ];
    let lists = lists.into_iter().filter(|(_, names)| !names.is_empty());
    let parts: Vec<String> = lists.map(|(head, names)| format!("{head}{}", named(names))).collect();
    parts.join("; ")
}

fn named(names: &[&str]) -> String {
    let title = |name: &&str| Use::named(name).map_or(*name, |one| one.title).to_owned();
    let titles: Vec<String> = names.iter().map(title).collect();
    match titles.len() {
        count if count > MAX_USES + 1 => {
            format!("{} and {} more", titles[..MAX_USES].join(", "), count - MAX_USES)
        }
        _ => titles.join(", "),
    }
}

/// What spoils the figures, a line for each kind.
pub(crate) fn push_problems(record: &RunRecord, view: &mut View) {
    let problems: Vec<&Finding> = fathom_analysis::verdict::problems(record).collect();
    let kinds: Vec<&[&Finding]> = problems.chunk_by(|one, next| one.id == next.id).collect();
    for alike in kinds.iter().take(MAX_PROBLEMS) {
        let more = match alike.len() {
            1 => String::new(),
            count => format!(" (and {} more)", units::grouped(count as u64 - 1)),
        };
        view.warn(alike[0].id.name(), format!("{}{more}", claim(alike[0])));
    }
    let hidden = kinds.len().saturating_sub(MAX_PROBLEMS);
    view.warn("", (hidden > 0).then(|| format!("{hidden} more kinds of problems; --full shows them")));
}

/// What a claim says first, with the tests it is about: two by name, more of them by their number.
fn claim(finding: &Finding) -> String {
    let claim = match finding.claim.split_once(". ") {
        Some((first, _)) => format!("{first}."),
        None => finding.claim.clone(),
    };
    match finding.tests.as_slice() {
        [] => claim,
        [first, second, rest @ ..] if !rest.is_empty() => {
            format!("{first}, {second} and {} more: {claim}", rest.len())
        }
        tests => format!("{}: {claim}", tests.join(", ")),
    }
}
