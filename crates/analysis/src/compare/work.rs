//! What a test did, as far as it is known: what decides whether two tests may be compared.

use std::collections::BTreeSet;

use fathom_model::plan::{IoPlan, Mix, OpenSync, TimePlan};
use fathom_model::{Nanos, PerOp, units};
use fathom_record::import::ImportedLoad;
use fathom_record::{JobRecord, TestRecord};
use serde::Serialize;

use crate::say::{block, count};

/// The load of a test. A field is `None` where it is unknown; texts are those that reports show.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Work {
    /// fio's word for the operation, with the share of reads of a mix (`randrw 75/25`).
    pub operation: Option<String>,
    /// Bytes per request (`4k`, `4k-64k`).
    pub block_size: Option<String>,
    /// Requests that each job keeps in flight.
    pub iodepth: Option<u32>,
    /// Jobs.
    pub jobs: Option<u32>,
    /// `direct` or `buffered`.
    pub cache_mode: Option<String>,
    /// How writes are made durable (`fdatasync every 1 write`), else `none`.
    pub sync: Option<String>,
    /// The rate and the pauses that the jobs keep to, else `none`.
    pub rate: Option<String>,
}

/// One part of a load by its name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkPart {
    /// Its name in differences.
    pub name: &'static str,
    /// Its value; `None` = unknown.
    pub value: Option<String>,
}

impl Work {
    /// The load of `test`, as far as its jobs or its ping say.
    pub fn of(test: &TestRecord) -> Work {
        if let Some(ping) = test.ping() {
            let how = &ping.how;
            return Work {
                operation: Some(format!("ping {}", how.operation)),
                block_size: Some(block(how.block_size_bytes)),
                iodepth: Some(1),
                jobs: Some(1),
                cache_mode: Some(cache_mode(how.direct)),
                sync: Some(if how.flushed { "flush after each request" } else { "none" }.to_owned()),
                rate: Some(format!("every {}", units::latency(how.interval_ns))),
            };
        }
        if let Some(imported) = test.imported() {
            return Work::of_load(&imported.load);
        }
        let jobs = &test.jobs;
        let Some(first) = jobs.first() else { return Work::default() };
        let all = |of: &dyn Fn(&JobRecord) -> String| {
            let values: BTreeSet<String> = jobs.iter().map(of).collect();
            Some(values.into_iter().collect::<Vec<_>>().join(" + "))
        };
        Work {
            operation: all(&|job| operation(&job.plan.io)),
            block_size: all(&|job| block_size(job)),
            iodepth: jobs.iter().all(|job| job.iodepth() == first.iodepth()).then(|| first.iodepth()),
            jobs: Some(workers_of_a_host(test)),
            cache_mode: all(&|job| cache_mode(job.plan.io.direct)),
            sync: all(&|job| sync(&job.plan.io)),
            rate: all(&|job| rate(&job.plan.time)),
        }
    }

    /// The load of another program, as far as its output says.
    fn of_load(load: &ImportedLoad) -> Work {
        let operation = load.rw.as_ref().map(|rw| match load.read_percent {
            Some(reads) if rw.contains("rw") => format!("{rw} {reads}/{}", 100 - reads.min(100)),
            _ => rw.clone(),
        });
        let mut sizes: Vec<String> = load
            .block_size
            .iter()
            .filter_map(|(_, range)| Some(sizes(range.as_ref()?.min, range.as_ref()?.max)))
            .collect();
        sizes.dedup();
        let rates = |of: &PerOp<Option<u64>>, unit: &str| -> Vec<String> {
            of.iter()
                .filter_map(|(op, rate)| Some(format!("{} {} {unit}", op.name(), count((*rate)? as f64))))
                .collect()
        };
        let rate = [rates(&load.rate_iops, "IOPS"), rates(&load.rate_bytes_per_second, "B/s")].concat();
        Work {
            operation,
            block_size: (!sizes.is_empty()).then(|| sizes.join("/")),
            iodepth: load.queue_depth,
            jobs: load.jobs,
            cache_mode: load.direct.map(cache_mode),
            // The output of a program shows no option that was left out.
            sync: (!load.sync.is_empty()).then(|| load.sync.join(", ")),
            rate: (!rate.is_empty()).then(|| rate.join(", ")),
        }
    }

    /// Its parts, in the order in which reports list them.
    pub fn parts(&self) -> [WorkPart; 7] {
        let number = |number: Option<u32>| number.map(|number| number.to_string());
        [
            ("operation", self.operation.clone()),
            ("block size", self.block_size.clone()),
            ("queue depth", number(self.iodepth)),
            ("jobs", number(self.jobs)),
            ("cache mode", self.cache_mode.clone()),
            ("sync", self.sync.clone()),
            ("rate", self.rate.clone()),
        ]
        .map(|(name, value)| WorkPart { name, value })
    }

    /// True where both are known to do the same operation.
    pub fn has_operation_of(&self, other: &Work) -> bool {
        self.operation == other.operation
    }

    /// True where nothing that is known of both differs, and enough is known: operation, block size and depth.
    pub fn is_like(&self, other: &Work) -> bool {
        let is_known =
            |work: &Work| work.operation.is_some() && work.block_size.is_some() && work.iodepth.is_some();
        is_known(self) && is_known(other) && !self.differs_from(other)
    }

    /// True where something that is known of both differs.
    pub fn differs_from(&self, other: &Work) -> bool {
        let differ = |(one, other): (WorkPart, WorkPart)| {
            one.value.zip(other.value).is_some_and(|(one, other)| one != other)
        };
        self.parts().into_iter().zip(other.parts()).any(differ)
    }

    /// The load in a word or two: `randread 4k QD 64`.
    pub fn text(&self) -> String {
        let depth = self.iodepth.map(|depth| format!("QD {depth}"));
        let jobs = self.jobs.filter(|jobs| *jobs > 1).map(|jobs| format!("{jobs} jobs"));
        let parts = [self.operation.clone(), self.block_size.clone(), depth, jobs];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

fn operation(io: &IoPlan) -> String {
    match io.pattern.mix {
        Mix::ReadWrite { read_percent } => {
            format!("{} {read_percent}/{}", io.pattern.name(), 100 - read_percent.min(100))
        }
        _ => io.pattern.name().to_owned(),
    }
}

fn block_size(job: &JobRecord) -> String {
    let pattern = job.plan.io.pattern;
    let (least, most) = (job.smallest_blocks(), job.largest_blocks());
    let used = [
        (pattern.reads(), sizes(least.read, most.read)),
        (pattern.writes(), sizes(least.write, most.write)),
        (pattern.trims(), sizes(least.trim, most.trim)),
    ];
    let mut each: Vec<String> =
        used.into_iter().filter(|(is_used, _)| *is_used).map(|(_, size)| size).collect();
    each.dedup();
    each.join("/")
}

fn sizes(least: u64, most: u64) -> String {
    if least == most { block(most) } else { format!("{}-{}", block(least), block(most)) }
}

fn cache_mode(direct: bool) -> String {
    if direct { "direct" } else { "buffered" }.to_owned()
}

fn sync(io: &IoPlan) -> String {
    let every = |call: &str, writes: u32| {
        (writes > 0).then(|| match writes {
            1 => format!("{call} after each write"),
            writes => format!("{call} after {writes} writes"),
        })
    };
    let open = match io.open_sync {
        OpenSync::None => None,
        OpenSync::Sync => Some("O_SYNC".to_owned()),
        OpenSync::Dsync => Some("O_DSYNC".to_owned()),
    };
    let parts = [open, every("fsync", io.fsync_every), every("fdatasync", io.fdatasync_every)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

fn rate(time: &TimePlan) -> String {
    let rates = time.rate.rates.iter().filter_map(|(op, rate)| {
        let iops = 1e9 / (*rate)?.mean_gap_ns();
        Some(format!("{} {} IOPS", op.name(), count(iops)))
    });
    let pause = time.think_time.pause;
    let pause = (pause > Nanos::ZERO).then(|| format!("pauses of {}", units::latency(pause.0)));
    let parts: Vec<String> = rates.chain(pause).collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

/// Workers of a test; of several hosts those of each, of which some may have failed.
fn workers_of_a_host(test: &TestRecord) -> u32 {
    let workers: u32 = test.jobs.iter().map(|job| job.workers.as_ref().map_or(1, |sums| sums.workers)).sum();
    let hosts = test.fleet.as_ref().map_or(1, |fleet| fleet.measured().count().max(1) as u32);
    workers.div_ceil(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, TestLoad, record};

    #[test]
    fn a_load_is_known_by_its_jobs() {
        let mut run = record(&[TestLoad { rw: "randrw", depth: 16, jobs: 2, ..TestLoad::default() }]);
        fixture::plan(&mut run, |plan| plan.io.fdatasync_every = 1);
        let work = Work::of(&run.tests[0]);
        let values = work.parts().map(|part| part.value.unwrap());
        let expected = ["randrw 50/50", "4k", "16", "2", "direct", "fdatasync after each write", "none"];
        assert_eq!(values, expected);
        assert_eq!(work.text(), "randrw 50/50 4k QD 16 2 jobs");
    }

    #[test]
    fn loads_are_alike_where_all_that_is_known_of_both_is_equal() {
        let of = |load: TestLoad| Work::of(&record(&[load]).tests[0]);
        let one = of(TestLoad::default());
        assert!(one.is_like(&one));
        let partly = Work { cache_mode: None, sync: None, ..one.clone() };
        assert!(one.is_like(&partly) && !one.differs_from(&partly));
        let unknown = Work { iodepth: None, ..one.clone() };
        assert!(!one.is_like(&unknown) && !one.differs_from(&unknown));
        let deep = of(TestLoad { depth: 2, ..TestLoad::default() });
        assert!(one.differs_from(&deep) && one.has_operation_of(&deep) && !one.is_like(&deep));
    }
}
