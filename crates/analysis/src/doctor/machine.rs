//! CPUs, clock and memory of the machine, and the permissions of the user.

use fathom_model::units;

use super::Judgement;
use super::facts::DoctorFacts;
use super::target::observed;
use crate::findings::client::{
    CPU_WAIT_REMEDY, MIN_SPAN_NS, QUOTA_REMEDY, STEAL_REMEDY, STOLEN, THROTTLED, stolen, withheld,
};
use crate::say::{count, percent};

/// Idle CPUs below which a busy thread waits for one.
const IDLE_CPUS: f64 = 0.9;
/// A quota below which one busy thread is throttled.
const MIN_QUOTA: f64 = 1.0;
/// A reading of the clock that takes longer changes latencies of some µs by percents, ns.
const SLOW_READING_NS: u64 = 250;
/// Pages swapped in a second from which on the machine is short of memory.
const SWAPPED_PAGES: f64 = 10.0;

pub(super) fn cpus(facts: &DoctorFacts) -> Judgement {
    let host = facts.header.host();
    let (online, allowed) = (host.cpus_online, host.cpus_allowed);
    if online == 0 && allowed == 0 {
        return Judgement::unknown("the number of CPUs is unknown.");
    }
    let usable = if allowed > 0 { allowed } else { online };
    let number = match usable {
        1 => "1 CPU".to_owned(),
        _ if usable < online => format!("{usable} of {online} CPUs"),
        _ => format!("{usable} CPUs"),
    };
    let throttled = withheld(&facts.host_load);
    match host.cgroup.cpu_limit {
        _ if throttled > THROTTLED => Judgement::problem(
            format!("{number}; the control group is throttled for {} of the time.", percent(throttled)),
            QUOTA_REMEDY,
        ),
        Some(limit) if limit < MIN_QUOTA => Judgement::problem(
            format!("{number}; the control group may use {limit:.2} CPUs, less than one busy thread."),
            QUOTA_REMEDY,
        ),
        Some(limit) if limit < f64::from(usable) => Judgement::note(
            format!(
                "{number}; the control group may use {}: several busy threads are throttled.",
                count(limit)
            ),
            QUOTA_REMEDY,
        ),
        _ => Judgement::ok(format!("{number}, no quota in force.")),
    }
}

pub(super) fn cpu_load(facts: &DoctorFacts) -> Judgement {
    let Some(load) = facts.host_load.first().filter(|load| load.end_ns > load.start_ns) else {
        return Judgement::unknown("the kernel does not report CPU times.");
    };
    let (counters, length) = (&load.counters, (load.end_ns - load.start_ns) as f64);
    let busy = counters.busy_ns as f64 / counters.cpu_ns.max(1) as f64;
    let idle = counters.cpu_ns.saturating_sub(counters.busy_ns + counters.steal_ns) as f64 / length;
    let used = format!(
        "{} of the CPU time is used: {} of {} CPUs idle.",
        percent(busy),
        count(idle),
        count(counters.cpu_ns as f64 / length)
    );
    match idle < IDLE_CPUS {
        true => Judgement::problem(used, CPU_WAIT_REMEDY),
        false => Judgement::ok(used),
    }
}

pub(super) fn cpu_steal(facts: &DoctorFacts) -> Judgement {
    if facts.host_load.is_empty() || facts.observed_ns < MIN_SPAN_NS {
        return Judgement::unknown("not observed for long enough.");
    }
    let share = stolen(&facts.host_load);
    let seen = format!("{} in {}.", percent(share), observed(facts));
    if share > STOLEN { Judgement::problem(seen, STEAL_REMEDY) } else { Judgement::ok(seen) }
}

pub(super) fn cpu_governor(facts: &DoctorFacts) -> Judgement {
    let is_slow = |governor: &&String| *governor != "performance";
    let Some(governor) = facts.governors.iter().find(is_slow) else {
        return match facts.governors.first() {
            Some(governor) => Judgement::ok(format!("{governor}.")),
            None => Judgement::unknown("the kernel reports none, as in most virtual machines."),
        };
    };
    let remedy = "Run `cpupower frequency-set -g performance` as root while measuring.";
    let driver = facts.frequency_driver.as_deref().unwrap_or("an unknown driver");
    // With hardware-managed states `powersave` still follows the load; elsewhere it means the lowest frequency.
    let is_managed = driver.contains("pstate");
    match governor.as_str() {
        "powersave" if !is_managed => {
            Judgement::problem(format!("powersave ({driver}): CPUs run at their lowest frequency."), remedy)
        }
        name => Judgement::note(
            format!("{name} ({driver}): latencies at low queue depths include slower CPUs."),
            remedy,
        ),
    }
}

pub(super) fn clock(facts: &DoctorFacts) -> Judgement {
    let host = facts.header.host();
    let Some(reading) = facts.clock_reading_ns else { return Judgement::unknown("not tested.") };
    let source = if host.clocksource.is_empty() { "unknown" } else { &host.clocksource };
    let takes = format!("a reading takes {}", units::latency(reading));
    let remedy = "Use the clock source tsc or kvm-clock (/sys/devices/system/clocksource/clocksource0), or a machine with an \
                  invariant TSC.";
    if reading >= SLOW_READING_NS {
        return Judgement::problem(
            format!("clock source {source}: {takes}, which latencies include."),
            remedy,
        );
    }
    match host.clock.as_str() {
        "tsc" => Judgement::ok(format!("invariant TSC: {takes}.")),
        _ => Judgement::ok(format!("no invariant TSC; clock source {source}: {takes}.")),
    }
}

pub(super) fn swap(facts: &DoctorFacts) -> Judgement {
    let Some(swap) = facts.swap else { return Judgement::unknown("the kernel lists no swap.") };
    let seconds = facts.observed_ns.max(1) as f64 / 1e9;
    match swap.pages {
        Some(pages) if pages as f64 / seconds >= SWAPPED_PAGES => Judgement::problem(
            format!("{} pages were swapped in {}.", units::grouped(pages), observed(facts)),
            "Stop what uses the memory, or run `swapoff -a` as root.",
        ),
        _ if swap.total_bytes == 0 => Judgement::ok("none."),
        None => Judgement::unknown("the kernel does not count swapped pages."),
        Some(_) => Judgement::ok(format!(
            "{} of {} in use, none of it moved in {}.",
            units::bytes(swap.used_bytes),
            units::bytes(swap.total_bytes),
            observed(facts)
        )),
    }
}

pub(super) fn privileges(facts: &DoctorFacts) -> Judgement {
    match facts.is_root {
        true => Judgement::ok("root."),
        false => Judgement::note(
            "an ordinary user: files and directories can be measured; block devices need read access.",
            "Run as root to measure block devices, to drop caches and to trace.",
        ),
    }
}

pub(super) fn tracing(facts: &DoctorFacts) -> Judgement {
    match &facts.tracing {
        None => Judgement::unknown("not tested."),
        Some(Ok(())) => Judgement::ok("available."),
        Some(Err(refusal)) => {
            let remedy = refusal.hint.as_deref().unwrap_or("use a kernel with block tracepoints");
            Judgement::note(format!("not available: {}.", refusal.reason), format!("To trace, {remedy}."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::CheckStatus::{Note, Ok as Good, Problem, Unknown};
    use super::super::facts::SwapActivity;
    use super::super::facts::fixture::{good, refused};
    use super::*;
    use crate::fixture::SECOND_NS;

    #[test]
    fn quotas_are_judged_by_what_a_busy_thread_needs() {
        let check = |limit: Option<f64>, throttled_ns: u64, expected| {
            let mut facts = good();
            facts.header.hosts[0].cgroup.cpu_limit = limit;
            facts.host_load[0].counters.throttled_ns = throttled_ns;
            let judged = cpus(&facts);
            assert_eq!(judged.status, expected, "{limit:?} {throttled_ns}: {}", judged.result);
        };
        check(None, 0, Good);
        check(Some(4.0), 0, Good);
        check(Some(2.0), 0, Note);
        check(Some(0.5), 0, Problem);
        check(Some(4.0), SECOND_NS / 100, Good);
        check(Some(4.0), SECOND_NS / 50, Problem);
        let mut facts = good();
        (facts.header.hosts[0].cpus_online, facts.header.hosts[0].cpus_allowed) = (0, 0);
        assert_eq!(cpus(&facts).status, Unknown);
    }

    #[test]
    fn one_idle_cpu_is_enough() {
        let check = |cpus: u64, busy: f64, expected| {
            let mut facts = good();
            let counters = &mut facts.host_load[0].counters;
            counters.cpu_ns = cpus * SECOND_NS;
            counters.busy_ns = (cpus as f64 * busy * 1e9) as u64;
            let judged = cpu_load(&facts);
            assert_eq!(judged.status, expected, "{cpus} {busy}: {}", judged.result);
        };
        check(1, 0.05, Good);
        check(1, 0.2, Problem);
        check(2, 0.5, Good);
        check(2, 0.6, Problem);
        check(8, 0.85, Good);
        check(8, 1.0, Problem);
        assert_eq!(cpu_load(&DoctorFacts { host_load: Vec::new(), ..good() }).status, Unknown);
    }

    #[test]
    fn steal_is_judged_as_in_a_run() {
        let check = |share: f64, observed_ns: u64, expected| {
            let mut facts = DoctorFacts { observed_ns, ..good() };
            facts.host_load[0].counters.steal_ns = (4e9 * share) as u64;
            assert_eq!(cpu_steal(&facts).status, expected, "{share}");
        };
        check(0.0, SECOND_NS, Good);
        check(0.019, SECOND_NS, Good);
        check(0.03, SECOND_NS, Problem);
        check(0.03, SECOND_NS / 2, Unknown);
    }

    #[test]
    fn governors_that_save_power_are_noted_and_the_lowest_frequency_is_a_problem() {
        let check = |governors: &[&str], driver: &str, expected| {
            let facts = DoctorFacts {
                governors: governors.iter().map(|name| (*name).to_owned()).collect(),
                frequency_driver: Some(driver.to_owned()),
                ..good()
            };
            assert_eq!(cpu_governor(&facts).status, expected, "{governors:?} {driver}");
        };
        check(&["performance"], "acpi-cpufreq", Good);
        check(&["powersave"], "intel_pstate", Note);
        check(&["powersave"], "acpi-cpufreq", Problem);
        check(&["performance", "schedutil"], "acpi-cpufreq", Note);
        check(&[], "", Unknown);
    }

    #[test]
    fn slow_clocks_are_a_problem() {
        let check = |clock: &str, reading: Option<u64>, expected| {
            let mut facts = DoctorFacts { clock_reading_ns: reading, ..good() };
            facts.header.hosts[0].clock = clock.to_owned();
            assert_eq!(super::clock(&facts).status, expected, "{clock} {reading:?}");
        };
        check("tsc", Some(12), Good);
        check("clock_monotonic", Some(40), Good);
        check("clock_monotonic", Some(900), Problem);
        check("tsc", None, Unknown);
    }

    #[test]
    fn swapping_is_a_problem_and_swap_in_use_is_not() {
        let check = |total_bytes, pages, expected| {
            let swap = Some(SwapActivity { total_bytes, used_bytes: total_bytes / 2, pages });
            assert_eq!(
                super::swap(&DoctorFacts { swap, ..good() }).status,
                expected,
                "{total_bytes} {pages:?}"
            );
        };
        check(0, None, Good);
        check(1 << 30, Some(0), Good);
        check(1 << 30, Some(9), Good);
        check(1 << 30, Some(10), Problem);
        check(1 << 30, None, Unknown);
        assert_eq!(super::swap(&DoctorFacts { swap: None, ..good() }).status, Unknown);
    }

    #[test]
    fn what_a_user_may_not_do_is_noted() {
        assert_eq!(privileges(&DoctorFacts { is_root: false, ..good() }).status, Note);
        let judged = tracing(&DoctorFacts { tracing: refused("permission denied"), ..good() });
        assert_eq!((judged.status, judged.result.as_str()), (Note, "not available: permission denied."));
        assert_eq!(tracing(&DoctorFacts { tracing: None, ..good() }).status, Unknown);
    }
}
