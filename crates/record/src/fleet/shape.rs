//! Whether a record can be merged with those before it: what every host must have in common.

use std::collections::BTreeSet;
use std::fmt::Display;

use crate::{ActivityKind, JobRecord, Observed, RunRecord, TestRecord, TestStatus};

/// What a run did, as far as it must be the same on every host.
#[derive(Clone, Debug)]
pub(super) struct RunShape {
    pub(super) kind: ActivityKind,
    pub(super) suite: Option<String>,
    pub(super) version: String,
    pub(super) target_kind: String,
    tests: Vec<TestShape>,
}

#[derive(Clone, Debug)]
struct TestShape {
    id: String,
    is_complete: bool,
    jobs: Vec<JobShape>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct JobShape {
    name: String,
    traits: Vec<(&'static str, String)>,
}

/// A record that cannot be merged with those before it, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct MergeRefusal {
    reason: String,
    /// The remedy.
    pub hint: &'static str,
}

impl MergeRefusal {
    pub(super) fn new(reason: impl Into<String>, hint: &'static str) -> MergeRefusal {
        MergeRefusal { reason: reason.into(), hint }
    }

    /// Another command, suite or job than in the record of `source`.
    pub(super) fn job(subject: &str, [first, other]: [&str; 2], source: &str) -> MergeRefusal {
        let hint = "every host must run the same jobs; leave out the record, or merge it separately";
        MergeRefusal::new(format!("{subject}: {first} in {source}, {other} here"), hint)
    }
}

impl RunShape {
    pub(super) fn of(record: &RunRecord) -> RunShape {
        let header = &record.header;
        RunShape {
            kind: header.activity.kind(),
            suite: header.activity.suite().map(str::to_owned),
            version: header.tool_version.clone(),
            target_kind: header.conditions.target.kind.clone(),
            tests: record.tests.iter().map(TestShape::of).collect(),
        }
    }

    /// The first difference between the jobs of the tests that both have, where this is the shape of the record of `source`.
    pub(super) fn difference(&self, other: &RunShape, source: &str) -> Option<MergeRefusal> {
        self.tests.iter().find_map(|test| {
            let theirs = other.tests.iter().find(|theirs| theirs.id == test.id)?;
            test.difference(theirs, source)
        })
    }

    /// Takes in the tests that only another record has.
    pub(super) fn extend(&mut self, other: RunShape) {
        for test in other.tests {
            match self.tests.iter_mut().find(|known| known.id == test.id) {
                Some(known) if !known.is_complete => *known = test,
                Some(_) => {}
                None => self.tests.push(test),
            }
        }
    }
}

impl TestShape {
    fn of(test: &TestRecord) -> TestShape {
        let mut jobs: Vec<JobShape> = Vec::new();
        for job in &test.jobs {
            if !jobs.iter().any(|known| known.name == job.name) {
                jobs.push(JobShape::of(job));
            }
        }
        jobs.extend(observed(test));
        TestShape { id: test.id.clone(), is_complete: test.status == TestStatus::Complete, jobs }
    }

    fn difference(&self, other: &TestShape, source: &str) -> Option<MergeRefusal> {
        for job in &self.jobs {
            let Some(theirs) = other.jobs.iter().find(|theirs| theirs.name == job.name) else { continue };
            for ((name, first), (_, second)) in job.traits.iter().zip(&theirs.traits) {
                if first != second {
                    let subject = format!("{name} of job '{}' in test '{}'", job.name, self.id);
                    return Some(MergeRefusal::job(&subject, [first, second], source));
                }
            }
        }
        let names = |test: &TestShape| test.jobs.iter().map(|job| job.name.clone()).collect::<BTreeSet<_>>();
        // A run that ended early may lack jobs.
        (self.is_complete && other.is_complete && names(self) != names(other)).then(|| {
            let subject = format!("the jobs of test '{}'", self.id);
            let text = |test: &TestShape| {
                let names: Vec<&str> = test.jobs.iter().map(|job| job.name.as_str()).collect();
                if names.is_empty() { "none".to_owned() } else { names.join(", ") }
            };
            MergeRefusal::job(&subject, [&text(self), &text(other)], source)
        })
    }
}

impl JobShape {
    fn of(job: &JobRecord) -> JobShape {
        let blocks = |of: fathom_model::PerOp<u64>| of.read.max(of.write).max(of.trim);
        let (least, most) = (blocks(job.smallest_blocks()), blocks(job.largest_blocks()));
        let text = |value: &dyn Display| value.to_string();
        JobShape {
            name: job.name.clone(),
            traits: vec![
                ("rw", text(&job.rw())),
                ("bs", if least == most { text(&most) } else { format!("{least}-{most}") }),
                ("iodepth", text(&job.iodepth())),
                ("numjobs", text(&job.plan.numjobs)),
                ("ioengine", text(&job.engine())),
                ("direct", text(&u8::from(job.plan.io.direct))),
                ("stonewall phase", text(&job.phase)),
            ],
        }
    }
}

/// What a ping or another program did, as a job.
fn observed(test: &TestRecord) -> Option<JobShape> {
    let known = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
    let traits = match test.observed.as_ref()? {
        Observed::Ping(ping) => vec![
            ("operation", ping.how.operation.clone()),
            ("block size", ping.how.block_size_bytes.to_string()),
            ("interval", ping.how.interval_ns.to_string()),
            ("direct", u8::from(ping.how.direct).to_string()),
        ],
        Observed::Import(test) => {
            let load = &test.load;
            let block = |range: &crate::import::BlockRange| range.max;
            let blocks = load.block_size.iter().filter_map(|(_, range)| range.as_ref().map(block)).max();
            vec![
                ("rw", known(load.rw.clone())),
                ("bs", known(blocks.map(|bytes| bytes.to_string()))),
                ("iodepth", known(load.queue_depth.map(|depth| depth.to_string()))),
                ("numjobs", known(load.jobs.map(|jobs| jobs.to_string()))),
                ("direct", known(load.direct.map(|direct| u8::from(direct).to_string()))),
            ]
        }
        Observed::Forecast(_) | Observed::Monitor(_) => return None,
    };
    Some(JobShape { name: test.id.clone(), traits })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(jobs: &[(&str, u32)]) -> RunRecord {
        let job = |(name, depth): &(&str, u32)| {
            let mut job = JobRecord { name: (*name).to_owned(), ..JobRecord::default() };
            job.plan.depth.iodepth = *depth;
            job
        };
        let test = TestRecord {
            id: "t".to_owned(),
            status: TestStatus::Complete,
            jobs: jobs.iter().map(job).collect(),
            ..TestRecord::default()
        };
        RunRecord { tests: vec![test], ..RunRecord::default() }
    }

    #[test]
    fn the_first_difference_is_named() {
        let of = |jobs: &[(&str, u32)]| RunShape::of(&run(jobs));
        let first = of(&[("a", 4), ("b", 1)]);
        assert_eq!(first.difference(&of(&[("a", 4), ("b", 1)]), "x"), None);
        let named = |first: &RunShape, other: &RunShape| {
            first.difference(other, "x").map(|refusal| refusal.to_string()).unwrap_or_default()
        };
        assert_eq!(
            named(&first, &of(&[("a", 4), ("b", 8)])),
            "iodepth of job 'b' in test 't': 1 in x, 8 here"
        );
        assert_eq!(named(&first, &of(&[("a", 4)])), "the jobs of test 't': a, b in x, a here");
        assert_eq!(named(&of(&[("a", 4)]), &first), "the jobs of test 't': a in x, a, b here");
        // A run that died early may lack jobs.
        let mut died = run(&[("a", 4)]);
        died.tests[0].status = TestStatus::Incomplete;
        assert_eq!(first.difference(&RunShape::of(&died), "x"), None);
    }
}
