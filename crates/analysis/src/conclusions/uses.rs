//! The uses that volumes are bought for: the load of each, and what it needs of a volume.
//!
//! The only definition of a use. Verdicts, `bench --profile`, `catalog fit --profile` and the documentation all read it; the
//! job files in `profiles` issue the same load, which a test checks.

use fathom_model::units;
use serde::Serialize;

use crate::say::{count, mebibytes};

/// What a use needs of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct UseNeed {
    /// The rate.
    #[serde(flatten)]
    pub rate: NeededRate,
    /// The most that the 99th percentile of each operation may take, ns: of reads, of writes, of syncs.
    pub p99_ns: Option<u64>,
}

impl UseNeed {
    /// `1,000 IOPS at p99 <= 5.00 ms`.
    pub fn text(&self) -> String {
        let rate = self.rate.text();
        match self.p99_ns {
            Some(ns) => format!("{rate} at p99 <= {}", units::latency(ns)),
            None => rate,
        }
    }
}

/// A rate of all operations together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub enum NeededRate {
    /// I/Os per second.
    #[serde(rename = "iops")]
    Iops(f64),
    /// Bytes per second.
    #[serde(rename = "bytes_per_second")]
    Bytes(f64),
}

impl NeededRate {
    /// `1,000 IOPS`, `113 MiB/s`.
    pub fn text(&self) -> String {
        match self {
            NeededRate::Iops(iops) => format!("{} IOPS", count(*iops)),
            NeededRate::Bytes(bytes) => mebibytes(*bytes),
        }
    }
}

/// One use: its load, its needs, and where they come from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Use {
    /// The name of its profile.
    pub name: &'static str,
    /// The same for people.
    pub title: &'static str,
    /// Percent of its I/Os that are reads.
    pub read_percent: u8,
    /// In order, not random.
    pub sequential: bool,
    /// A sync follows each write.
    pub synced: bool,
    /// The next I/O is issued when the previous one is complete.
    pub serial: bool,
    /// Block sizes with the percentage of I/Os that have each.
    pub blocks: &'static [(u64, u8)],
    /// Most bytes outstanding at once, where no latency is needed.
    pub in_flight_bytes: Option<u64>,
    /// How long it lasts at a time, hours.
    pub hours: u32,
    /// What serves an ordinary installation.
    pub full: UseNeed,
    /// What serves a small installation.
    pub small: UseNeed,
    /// The origin of the load and of the thresholds.
    pub source: &'static str,
}

impl Use {
    /// The use of this name.
    pub fn named(name: &str) -> Option<&'static Use> {
        USES.iter().find(|one| one.name == name)
    }

    /// Mean block size, bytes.
    pub fn mean_block(&self) -> f64 {
        self.blocks.iter().map(|&(bytes, percent)| bytes as f64 * f64::from(percent) / 100.0).sum()
    }

    /// I/Os per second of this need.
    pub fn iops(&self, need: &UseNeed) -> f64 {
        match need.rate {
            NeededRate::Iops(iops) => iops,
            NeededRate::Bytes(bytes) => bytes / self.mean_block(),
        }
    }
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const ALWAYS: u32 = 24;
/// A network of one gigabit carries 118 MB/s; a third of it is the rate of a drive for archives.
const GIGABIT: (NeededRate, NeededRate) = (NeededRate::Bytes(118e6), NeededRate::Bytes(40e6));

const fn need(rate: NeededRate, p99_ms: u64) -> UseNeed {
    UseNeed { rate, p99_ns: Some(p99_ms * 1_000_000) }
}

const fn iops(iops: f64, p99_ms: u64) -> UseNeed {
    need(NeededRate::Iops(iops), p99_ms)
}

const fn bandwidth(rate: NeededRate) -> UseNeed {
    UseNeed { rate, p99_ns: None }
}

/// Random I/O without syncs, of any depth that the latency allows.
const RANDOM: Use = Use {
    name: "",
    title: "",
    read_percent: 100,
    sequential: false,
    synced: false,
    serial: false,
    blocks: &[(4 * KIB, 100)],
    in_flight_bytes: None,
    hours: ALWAYS,
    full: iops(500.0, 20),
    small: iops(100.0, 50),
    source: "",
};

/// Sequential writes one after another, a sync after each.
const LOG: Use = Use { read_percent: 0, sequential: true, synced: true, serial: true, ..RANDOM };

/// Large sequential I/O; the page cache keeps 32 MiB outstanding.
const STREAM: Use = Use {
    sequential: true,
    blocks: &[(MIB, 100)],
    in_flight_bytes: Some(32 * MIB),
    full: bandwidth(GIGABIT.0),
    small: bandwidth(GIGABIT.1),
    ..RANDOM
};

/// Every use, in the order in which they are reported.
pub const USES: &[Use] = &[
    Use {
        name: "oltp",
        title: "OLTP",
        read_percent: 67,
        blocks: &[(4 * KIB, 20), (8 * KIB, 60), (16 * KIB, 20)],
        full: iops(1000.0, 5),
        small: iops(200.0, 20),
        source: "read share and block sizes: storage vendors' descriptions of OLTP; shares of the sizes and thresholds: \
                 fathom, a transaction waits for several I/Os, and a user for a transaction",
        ..RANDOM
    },
    Use {
        name: "postgresql",
        title: "PostgreSQL",
        read_percent: 90,
        synced: true,
        blocks: &[(8 * KIB, 100)],
        full: iops(1000.0, 5),
        small: iops(200.0, 20),
        source: "pages of 8k: PostgreSQL manual, block_size; a commit waits for fdatasync: the same, wal_sync_method on \
                 Linux; thresholds: fathom, as OLTP, with one commit per nine page reads",
        ..RANDOM
    },
    Use {
        name: "mysql",
        title: "MySQL",
        read_percent: 90,
        synced: true,
        blocks: &[(16 * KIB, 100)],
        full: iops(1000.0, 5),
        small: iops(200.0, 20),
        source: "pages of 16k: MySQL manual, innodb_page_size; a commit waits for its sync: the same, \
                 innodb_flush_log_at_trx_commit; thresholds: fathom, as OLTP, with one commit per nine page reads",
        ..RANDOM
    },
    Use {
        name: "database-log",
        title: "database log",
        blocks: &[(4 * KIB, 60), (8 * KIB, 30), (16 * KIB, 10)],
        full: iops(500.0, 2),
        small: iops(100.0, 10),
        source: "fathom: records of one to four pages of 4k, fdatasync after each as PostgreSQL and InnoDB do on Linux; \
                 500 commits per second one after another, or 100",
        ..LOG
    },
    Use {
        name: "etcd",
        title: "etcd",
        full: iops(50.0, 10),
        small: iops(20.0, 50),
        source: "p99 of fdatasync below 10 ms and 50 sequential IOPS: etcd documentation, metrics and hardware \
                 (https://etcd.io/docs/current/op-guide/hardware); records of 2,300 bytes: IBM, \"Using Fio to Tell \
                 Whether Your Storage is Fast Enough for Etcd\" (2019); 50 ms: half of the default heartbeat interval",
        ..LOG
    },
    Use {
        name: "kafka",
        title: "Kafka",
        blocks: &[(16 * KIB, 100)],
        full: iops(50.0, 50),
        small: iops(10.0, 200),
        source: "batches of 16k: Kafka documentation, batch.size; log flush p99 below 50 ms on SSDs, above 200 ms \
                 abnormal: Netdata, \"Kafka LogFlushRateAndTimeMs high\"; rates: fathom",
        ..LOG
    },
    Use {
        name: "elasticsearch",
        title: "Elasticsearch",
        read_percent: 70,
        blocks: &[(4 * KIB, 60), (16 * KIB, 20), (64 * KIB, 20)],
        full: iops(1000.0, 10),
        small: iops(200.0, 50),
        source: "random reads of searches beside writes of indexing and merging, on SSDs: Elastic, \"Tune for search \
                 speed\" and \"Tune for indexing speed\"; shares and thresholds: fathom",
        ..RANDOM
    },
    Use {
        name: "web-server",
        title: "web server",
        blocks: &[
            (4 * KIB, 68),
            (8 * KIB, 15),
            (16 * KIB, 2),
            (32 * KIB, 6),
            (64 * KIB, 7),
            (128 * KIB, 1),
            (512 * KIB, 1),
        ],
        source: "the web server pattern of Iometer (512/22:1k/15:2k/8:4k/23:8k/15:16k/2:32k/6:64k/7:128k/1:512k/1), sizes \
                 below 4k counted as 4k for devices with blocks of 4k; thresholds: fathom, a page of a few files",
        ..RANDOM
    },
    Use {
        name: "file-server",
        title: "file server",
        read_percent: 80,
        blocks: &[(4 * KIB, 80), (8 * KIB, 2), (16 * KIB, 4), (32 * KIB, 4), (64 * KIB, 10)],
        source: "the file server pattern of Iometer (512/10:1k/5:2k/5:4k/60:8k/2:16k/4:32k/4:64k/10, 80 % reads), sizes \
                 below 4k counted as 4k for devices with blocks of 4k; thresholds: fathom",
        ..RANDOM
    },
    Use {
        name: "workstation",
        title: "workstation",
        read_percent: 80,
        blocks: &[(8 * KIB, 100)],
        full: iops(300.0, 20),
        source: "the workstation pattern of Iometer (8k, 80 % reads, 80 % random), all of it random here; thresholds: fathom",
        ..RANDOM
    },
    Use {
        name: "virtual-machines",
        title: "VM images",
        read_percent: 60,
        blocks: &[(4 * KIB, 45), (8 * KIB, 30), (16 * KIB, 8), (32 * KIB, 5), (64 * KIB, 10), (256 * KIB, 2)],
        full: iops(500.0, 50),
        small: iops(100.0, 100),
        source: "fathom, after published size counts of virtualised storage (most I/Os of 4k and 8k, most bytes in 64k \
                 and 256k): a dozen guests, whose page faults and logs share the volume",
        ..RANDOM
    },
    Use {
        name: "streaming-read",
        title: "streaming read",
        source: "large contiguous reads: storage vendors' tables; 118 MB/s fill a network of one gigabit, a third of it \
                 is the rate of a drive for archives",
        ..STREAM
    },
    Use {
        name: "streaming-write",
        title: "streaming write",
        read_percent: 0,
        hours: 1,
        source: "large contiguous writes: storage vendors' tables; 118 MB/s arrive over a network of one gigabit, a \
                 third of it is the rate of a drive for archives",
        ..STREAM
    },
    Use {
        name: "video",
        title: "media",
        hours: 8,
        in_flight_bytes: None,
        full: need(NeededRate::Bytes(220e6), 200),
        small: need(NeededRate::Bytes(110e6), 500),
        source: "eight streams of 27.5 MB/s (220 Mbit/s, Apple ProRes White Paper: ProRes 422 HQ at 1080p30), or four; \
                 a player buffers several 100 ms",
        ..STREAM
    },
    Use {
        name: "backup",
        title: "backup",
        read_percent: 50,
        hours: 1,
        source: "fathom: one backup is written while another is read back, over a network of one gigabit; a third of it \
                 is the rate of a drive for archives",
        ..STREAM
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../../docs/src/reference/suites-and-profiles.md");

    #[test]
    fn the_page_states_the_needs_of_every_use() {
        for one in USES {
            let begin = format!("| {} | `{}` | ", one.title, one.name);
            let end = format!(" | {} | {} |", one.full.text(), one.small.text());
            let is_row = |line: &str| line.starts_with(&begin) && line.ends_with(&end);
            assert!(PAGE.lines().any(is_row), "suites-and-profiles.md lacks: {begin}...{end}");
        }
    }

    #[test]
    fn definitions_are_complete() {
        for one in USES {
            let name = one.name;
            assert_eq!(one.blocks.iter().map(|(_, percent)| u32::from(*percent)).sum::<u32>(), 100, "{name}");
            assert!(!one.source.is_empty() && !one.title.is_empty() && one.read_percent <= 100, "{name}");
            assert!(one.iops(&one.full) > one.iops(&one.small), "{name}");
            assert!(one.full.p99_ns <= one.small.p99_ns, "{name}");
            // A rate without a latency needs a depth, or no test could disprove it.
            assert_eq!(one.full.p99_ns.is_none(), one.in_flight_bytes.is_some(), "{name}");
            assert_eq!(Use::named(name).map(|found| found.title), Some(one.title));
        }
    }
}
