//! The kinds of findings: every id with its severities and its meaning.
//! [The reference](../../../docs/src/reference/findings.md) has the same table and the rule behind each.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Severity;
use crate::Severity::{Error, Info, Warning};

/// Declares the enum from one table, so that a kind cannot lack its name, severities or meaning.
macro_rules! finding_ids {
    ($($variant:ident, $name:literal, [$($severity:ident),+], $meaning:literal;)+) => {
        /// The kind of a finding.
        #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(from = "String", into = "String")]
        pub enum FindingId {
            $(#[doc = $meaning] $variant,)+
            /// An id that this version does not define, from the record of another version. It is shown as stored.
            /// [`FindingId::from`] makes it; never of a name that this version defines.
            Other(String),
        }

        impl FindingId {
            /// Every kind that this version defines, in the order of the documentation.
            pub const ALL: &[FindingId] = &[$(FindingId::$variant,)+];

            /// The name in JSON, tables and documentation.
            pub fn name(&self) -> &str {
                match self {
                    $(FindingId::$variant => $name,)+
                    FindingId::Other(name) => name,
                }
            }

            /// The severities that a finding of this kind may have; any where the kind is unknown.
            pub fn severities(&self) -> &'static [Severity] {
                match self {
                    $(FindingId::$variant => &[$($severity),+],)+
                    FindingId::Other(_) => &[Info, Warning, Error],
                }
            }

            /// What a finding of this kind says, in one line; nothing where the kind is unknown.
            pub fn meaning(&self) -> Option<&'static str> {
                match self {
                    $(FindingId::$variant => Some($meaning),)+
                    FindingId::Other(_) => None,
                }
            }
        }
    };
}

finding_ids! {
    IopsCap, "iops-cap", [Info], "An IOPS limit holds the rate.";
    BandwidthCap, "bandwidth-cap", [Info], "A bandwidth limit holds the rate.";
    UnknownLimit, "unknown-limit", [Info], "A limit holds the rate; whether it counts I/Os or bytes is unknown.";
    InstanceCap, "instance-cap", [Info], "A limit above the volume holds the rate: that of the instance, or one that several targets share.";
    ClientCpuBound, "client-cpu-bound", [Warning], "The CPU of the client limits the rate.";
    CgroupThrottled, "cgroup-throttled", [Warning], "A CPU quota of the control group paused the client.";
    CpuWait, "cpu-wait", [Warning], "Threads of the client waited for a CPU.";
    CpuSteal, "cpu-steal", [Warning], "The hypervisor gave CPU time of the client to other guests.";
    CpuCreditSuspected, "cpu-credit-suspected", [Warning], "The machine has probably exhausted its CPU credits.";
    RateNotSustained, "rate-not-sustained", [Warning], "The offered rate was not reached.";
    GeneratorLate, "generator-late", [Info], "The client issued I/Os later than scheduled.";
    Queueing, "queueing", [Info], "Latency at a limit is mostly queueing delay.";
    QueueTooShallow, "queue-too-shallow", [Info], "A higher queue depth reaches a higher rate.";
    NotSaturated, "not-saturated", [Info], "The highest queue depth tested does not saturate the target.";
    Knee, "knee", [Info], "The queue depth from which more depth adds latency but no throughput.";
    SmallBlockForBandwidth, "small-block-for-bandwidth", [Info],
        "Larger blocks reach a higher bandwidth for this sequential load.";
    CacheServed, "cache-served", [Warning], "A cache in the client served part of the I/O.";
    Buffered, "buffered", [Info], "I/O went through the page cache.";
    SmallWorkingSet, "small-working-set", [Info], "The working set fits into the cache of a drive or controller.";
    HostCache, "host-cache", [Info, Warning], "A cache outside the client served part of the I/O.";
    MemoryBacked, "memory-backed", [Warning], "The target keeps its data in memory: no storage device was measured.";
    FirstTouch, "first-touch", [Warning], "First access to a block is slower (initialization penalty).";
    ForeignIo, "foreign-io", [Warning], "Other processes issued I/O to the device during the test.";
    AsyncIsNot, "async-is-not", [Info, Warning], "I/O that should be asynchronous was executed synchronously.";
    Seeks, "seeks", [Info], "The disk moves its head for each random I/O.";
    Splitting, "splitting", [Info], "The kernel splits I/Os into smaller requests.";
    Alignment, "alignment", [Info, Warning], "I/O is not aligned to the physical block size of the device.";
    FlushCost, "flush-cost", [Info], "Syncs take at least half of the time of a durable write.";
    FlushSuspicious, "flush-suspicious", [Warning], "Syncs may not flush the volatile write cache.";
    BurstSuspected, "burst-suspected", [Warning], "The rate fell to a lower level: burst credits or a write cache are probably exhausted.";
    WriteCache, "write-cache", [Info, Warning], "A cache in the device takes in writes faster than the medium behind it.";
    BurstPossible, "burst-possible", [Info], "The rate equals the burst rate of a volume type: burst is not ruled out.";
    RuleDiffers, "rule-differs", [Warning], "No volume of the type that is named behaves like this one.";
    Contradiction, "contradiction", [Warning], "Figures or statements of a source cannot all be right.";
    NotSteady, "not-steady", [Warning], "The rate is not in steady state.";
    Pauses, "pauses", [Info, Warning], "Nothing completes for a moment, again and again.";
    Tail, "tail", [Info], "A few I/Os take far longer than the others.";
    Stalled, "stalled", [Warning, Error], "No I/O completed for two seconds or more.";
    RateFollowsTime, "rate-follows-time", [Warning], "The rate of a surface depends on the time of measurement.";
    RateFollowsPlace, "rate-follows-place", [Info], "The rate depends on the offset.";
    RateChanges, "rate-changes", [Info], "The rate of a surface changes; time and offset cannot be separated.";
    TransferAboveSaturated, "transfer-above-saturated", [Warning],
        "Single-request transfer exceeds the saturated rate: the volume serves short runs faster than long ones.";
    Unwritten, "unwritten", [Warning], "Blocks were never written, and may be answered without the medium.";
    Unreadable, "unreadable", [Error], "Blocks cannot be read.";
    SlowBlocks, "slow-blocks", [Info, Warning], "Single blocks are much slower than the median.";
    FleetIncomplete, "fleet-incomplete", [Error], "Hosts of a merged run are missing, or did not complete a test.";
    HostsApart, "hosts-apart", [Warning], "The hosts of a merged run did not measure at the same time.";
    HostOutlier, "host-outlier", [Warning], "The rate or latency of a host stands out from those of the other hosts.";
    Straggler, "straggler", [Warning], "A host was slower than the other hosts for a time.";
    HostStalled, "host-stalled", [Warning], "Hosts stalled: for a second or more none of their I/Os completed.";
    SharedLimit, "shared-limit", [Info], "Several hosts share a limit: their total is constant while their shares change.";
    Errors, "errors", [Error], "I/Os failed.";
    ShortRun, "short-run", [Info], "The test is too short to measure variation.";
    LowSample, "low-sample", [Info], "Too few samples for p99.";
}

impl From<String> for FindingId {
    fn from(name: String) -> FindingId {
        let known = FindingId::ALL.iter().find(|id| id.name() == name);
        known.cloned().unwrap_or(FindingId::Other(name))
    }
}

impl From<FindingId> for String {
    fn from(id: FindingId) -> String {
        match id {
            FindingId::Other(name) => name,
            known => known.name().to_owned(),
        }
    }
}

/// A missing id is read as an empty one.
impl Default for FindingId {
    fn default() -> FindingId {
        FindingId::Other(String::new())
    }
}

impl fmt::Display for FindingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../docs/src/reference/findings.md");

    #[test]
    fn the_table_of_the_documentation_is_that_of_the_enum() {
        let mut table = "| id | severity | meaning |\n|---|---|---|\n".to_owned();
        for id in FindingId::ALL {
            let severities: Vec<&str> = id.severities().iter().map(|severity| severity.name()).collect();
            let meaning = id.meaning().unwrap();
            table += &format!("| `{id}` | {} | {meaning} |\n", severities.join(", "));
            assert!(PAGE.contains(&format!("**`{id}`**")), "findings.md has no rule for {id}");
        }
        let stored: String = PAGE
            .lines()
            .filter(|line| line.starts_with('|'))
            .fold(String::new(), |all, line| all + line + "\n");
        assert!(stored.starts_with(&table), "the first table of findings.md should be:\n{table}");
    }

    #[test]
    fn names_are_unique_and_survive_json() {
        for (index, id) in FindingId::ALL.iter().enumerate() {
            assert!(FindingId::ALL[..index].iter().all(|other| other.name() != id.name()), "{id}");
            let json = serde_json::to_string(id).unwrap();
            assert_eq!(json, format!("\"{id}\""));
            assert_eq!(&serde_json::from_str::<FindingId>(&json).unwrap(), id);
        }
    }

    #[test]
    fn an_id_of_a_newer_version_is_kept() {
        let id: FindingId = serde_json::from_str("\"tail-latency\"").unwrap();
        assert_eq!((id.clone(), id.name()), (FindingId::Other("tail-latency".to_owned()), "tail-latency"));
        assert_eq!(serde_json::to_string(&id).unwrap(), "\"tail-latency\"");
    }
}
