//! The findings on a record of several hosts: who is missing, who stands out, what they share, and what their own records found.

use fathom_model::text::listed;
use fathom_model::units;
use fathom_record::{Finding, FindingId, FleetRecord, HostFinding, RunRecord, TestStatus};

use super::{
    FleetAssessment, FleetTestAssessment, HostMetric, HostStall, Outlier, SharedLimitVerdict, Straggler,
    assess, rank_ranges,
};
use crate::findings::samples;
use crate::rows::rows;
use crate::say::{count, finding, mebibytes, percent, seconds};

/// Hosts that are named in one claim.
const MAX_NAMED: usize = 5;
/// Share of the I/Os outside the common time from which on the total says too little of the hosts.
const MAX_OUTSIDE: f64 = 0.1;

/// Everything that a record of several hosts tells.
pub(crate) fn findings(record: &RunRecord) -> Vec<Finding> {
    let (Some(fleet), Some(assessment)) = (&record.header.fleet, assess(record)) else { return Vec::new() };
    let mut found: Vec<Finding> = incomplete(fleet, &assessment).into_iter().collect();
    found.extend(assessment.tests.iter().filter_map(failed));
    // Their errors are named with the hosts; those of all together are counted here.
    found.extend(rows(record).iter().flat_map(samples::findings));
    for test in &assessment.tests {
        found.extend(apart(test, &assessment));
        found.extend(outliers(test));
        found.extend(stragglers(test));
        found.extend(stalled(test));
        found.extend(shared_limit(test));
    }
    found.extend(fleet.host_findings.iter().map(|one| of_hosts(one, &assessment)));
    found
}

/// Ranks without a record, and records that cannot be read.
fn incomplete(fleet: &FleetRecord, assessment: &FleetAssessment) -> Option<Finding> {
    if fleet.is_complete() {
        return None;
    }
    let expected = fleet.expected();
    let what = if fleet.ranks.is_some() { "ranks" } else { "records" };
    let mut claim = format!("{} of {expected} {what} were merged", assessment.merged);
    if !assessment.missing.is_empty() {
        claim += &format!("; missing: {}", rank_ranges(&assessment.missing, MAX_NAMED));
    }
    if !assessment.unreadable.is_empty() {
        let sources = assessment.unreadable.iter().map(|unreadable| unreadable.source.clone());
        claim += &format!("; unreadable: {}", named(sources.collect()));
    }
    let remedy = "The totals lack these hosts. Add their records, and merge again.";
    let found = finding(FindingId::FleetIncomplete, [], claim + ".", remedy);
    Some(
        found
            .with("merged", assessment.merged)
            .with("expected", expected)
            .with("missing_ranks", assessment.missing.clone())
            .with_all("unreadable", &assessment.unreadable),
    )
}

/// Hosts on which a test did not come to its end.
fn failed(test: &FleetTestAssessment) -> Option<Finding> {
    let ended = |host: &&super::HostResult| {
        matches!(host.outcome.status, TestStatus::Failed | TestStatus::Incomplete)
    };
    let failed: Vec<_> = test.hosts.iter().filter(ended).collect();
    if failed.is_empty() {
        return None;
    }
    let texts = failed.iter().map(|host| match &host.outcome.reason {
        Some(reason) => format!("{} ({}: {reason})", host.host, host.outcome.status.name()),
        None => format!("{} ({})", host.host, host.outcome.status.name()),
    });
    let claim = format!(
        "the test did not complete on {} of {} hosts: {}.",
        failed.len(),
        test.hosts.len(),
        named(texts.collect())
    );
    let remedy = "Their I/Os count in the totals, their rates in no comparison of hosts.";
    let hosts: Vec<&str> = failed.iter().map(|host| host.host.as_str()).collect();
    let found = finding(FindingId::FleetIncomplete, [], claim, remedy);
    Some(of_test(found, test).with("hosts", hosts))
}

/// Hosts that measured at different times.
fn apart(test: &FleetTestAssessment, assessment: &FleetAssessment) -> Option<Finding> {
    // The intervals of a ping are its own; nothing of it is a rate of several hosts.
    let is_timed = test.hosts.iter().any(|host| !host.outcome.course.is_empty());
    let has_rates = test.hosts.iter().any(|host| host.outcome.iops > 0.0);
    let spread = units::duration(fathom_model::Nanos(test.start_spread_ns));
    let claim = if test.iops.is_none() && test.hosts.len() > 1 && has_rates {
        if test.start_spread_ns == 0 {
            return None;
        }
        let where_none = if test.window_ns == 0 { "" } else { " in every phase" };
        format!(
            "the hosts have no measured time in common{where_none} (starts spread over {spread}): there is no \
             rate of all."
        )
    } else if is_timed && test.outside_fraction > MAX_OUTSIDE {
        format!(
            "{} of the I/Os lie outside the {} that all hosts have in common (starts spread over {spread}).",
            percent(test.outside_fraction),
            seconds(test.window_ns),
        )
    } else {
        return None;
    };
    let remedy = "Start all hosts together, with the same --runtime, and keep their clocks synchronized.";
    let found = finding(FindingId::HostsApart, [], claim, remedy);
    let found = of_test(found, test)
        .with("start_spread_ns", test.start_spread_ns)
        .with("window_ns", test.window_ns)
        .with("outside_fraction", test.outside_fraction);
    Some(match assessment.clock.error_ns {
        Some(error_ns) => found.with("clock_error_ns", error_ns),
        None => found,
    })
}

fn outliers(test: &FleetTestAssessment) -> Vec<Finding> {
    let of_metric = |metric: HostMetric| {
        let found: Vec<&Outlier> =
            test.outliers.hosts.iter().filter(|outlier| outlier.metric == metric).collect();
        let first = found.first()?;
        let (name, value): (&str, fn(f64) -> String) = match metric {
            HostMetric::Iops => ("IOPS", count),
            HostMetric::P99 => ("p99 latency", |ns| units::latency(ns as u64)),
        };
        let texts =
            found.iter().map(|outlier| format!("{} ({})", outlier.host, value(outlier.value))).collect();
        let claim = format!(
            "{} of {} hosts stand out by {name} from the median of {}: {}.",
            found.len(),
            test.hosts.len(),
            value(first.median),
            named(texts)
        );
        let remedy = "Compare their records with one of the others: `fathom compare`.";
        let result = finding(FindingId::HostOutlier, [], claim, remedy);
        let outliers: Vec<Outlier> = found.into_iter().cloned().collect();
        Some(of_test(result, test).with_all("outliers", &outliers))
    };
    HostMetric::ALL.into_iter().filter_map(of_metric).collect()
}

fn stragglers(test: &FleetTestAssessment) -> Option<Finding> {
    let found = &test.stragglers.hosts;
    if found.is_empty() {
        return None;
    }
    let text = |straggler: &Straggler| {
        let when = if straggler.throughout {
            "throughout".to_owned()
        } else {
            format!("{} to {}", seconds(straggler.from_ns), seconds(straggler.to_ns))
        };
        let (own, others) = (count(straggler.iops), count(straggler.median_iops));
        format!("{} ({when}: {own} IOPS, median {others})", straggler.host)
    };
    let verb = if found.len() == 1 { "was" } else { "were" };
    let claim = format!(
        "{} of {} hosts {verb} slower than the others: {}.",
        found.len(),
        test.hosts.len(),
        named(found.iter().map(text).collect())
    );
    let remedy =
        "Look at the findings on these hosts: a limit of their own, their CPU, or their path to the storage.";
    let result = finding(FindingId::Straggler, [], claim, remedy);
    Some(of_test(result, test).with_all("stragglers", found))
}

fn stalled(test: &FleetTestAssessment) -> Option<Finding> {
    let stalls = &test.stalls;
    let mut hosts: Vec<&str> = stalls.iter().map(|stall| stall.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    if hosts.is_empty() {
        return None;
    }
    let text = |stall: &HostStall| {
        format!("{} at {} for {}", stall.host, seconds(stall.start_ns), seconds(stall.length_ns))
    };
    let mut claim = format!(
        "{} of {} hosts stalled: {}",
        hosts.len(),
        test.hosts.len(),
        named(stalls.iter().map(text).collect())
    );
    let together = most_at_once(stalls);
    if together > 1 {
        claim += &format!("; {together} of them at the same time");
    }
    let remedy =
        "Stalls at the same time have one cause: the storage or its network. Others lie with the host.";
    let result = finding(FindingId::HostStalled, [], claim + ".", remedy);
    Some(of_test(result, test).with("hosts", hosts).with("most_at_once", together).with_all("stalls", stalls))
}

/// Most hosts that stalled at one time.
fn most_at_once(stalls: &[HostStall]) -> usize {
    let at = |time: u64| {
        let is_then = |stall: &&HostStall| {
            stall.start_ns <= time && time < stall.start_ns.saturating_add(stall.length_ns)
        };
        let mut hosts: Vec<&str> = stalls.iter().filter(is_then).map(|stall| stall.host.as_str()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts.len()
    };
    // Most are stalled when one begins to be; of very many stalls the first show it.
    stalls.iter().take(MAX_LOOKED_AT).map(|stall| at(stall.start_ns)).max().unwrap_or(0)
}

/// Stalls whose beginnings are looked at.
const MAX_LOOKED_AT: usize = 1000;

fn shared_limit(test: &FleetTestAssessment) -> Option<Finding> {
    let limit = &test.shared_limit;
    let iops = limit.iops.filter(|_| limit.verdict == SharedLimitVerdict::Shown)?;
    let rate = match (test.iops, test.bytes_per_second) {
        (Some(all), Some(bytes)) if all > 0.0 => format!(", {}", mebibytes(bytes / all * iops)),
        _ => String::new(),
    };
    let claim = format!("the hosts share a limit of {} IOPS{rate}: {}", count(iops), limit.reason);
    let remedy = "More hosts do not raise the total; a higher limit does.";
    let found = finding(FindingId::SharedLimit, [], claim, remedy);
    let found = of_test(found, test).with("iops", iops);
    let number = |found: Finding, name: &str, value: Option<f64>| match value {
        Some(value) => found.with(name, value),
        None => found,
    };
    Some(number(number(found, "total_cv", limit.total_cv), "share_cv", limit.share_cv))
}

/// A finding that the records of hosts have themselves.
fn of_hosts(found: &HostFinding, assessment: &FleetAssessment) -> Finding {
    let names = found.hosts.iter().filter_map(|&host| assessment.hosts.get(host as usize));
    let names: Vec<String> = names.map(|host| host.host.clone()).collect();
    let all = assessment.hosts.len();
    let who = match names.len() {
        count if count == all => format!("all {all} hosts"),
        count => format!("{count} of {all} hosts ({})", named(names.clone())),
    };
    let first = if names.len() > 1 { ", for example" } else { "" };
    let claim = format!("{who}{first}: {}", found.finding.claim);
    Finding { claim, ..found.finding.clone() }.with("hosts", names)
}

fn of_test(mut found: Finding, test: &FleetTestAssessment) -> Finding {
    found.tests.push(test.id.clone());
    found
}

fn named(names: Vec<String>) -> String {
    listed(&names, MAX_NAMED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_at_the_same_time_are_counted_by_host() {
        let stall =
            |host: &str, start_ns, length_ns| HostStall { host: host.to_owned(), start_ns, length_ns };
        let stalls = [stall("a", 0, 10), stall("b", 5, 10), stall("b", 6, 1), stall("c", 15, 1)];
        assert_eq!(most_at_once(&stalls), 2);
        assert_eq!(most_at_once(&[]), 0);
    }
}
