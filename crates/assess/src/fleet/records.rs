//! The report of rank 0: the records of all ranks, merged as `fathom merge` does, and who is missing.

use fathom_model::text::listed;
use fathom_record::{FleetMerger, MergeRules, RunRecord};
use fathom_sys::clock::{RealClock, monotonic_ns};

use super::directory::RecordDirectory;
use super::hello::FleetPlace;
use super::meeting::RankState;
use crate::findings::findings_of;

/// What ranks that are ready wait for.
pub(super) const FIRST_START: &str = "all ranks to prepare";
pub(super) const NEXT_START: &str = "the start of the next phase";
/// Ranks that are named in one sentence.
const MAX_NAMED: usize = 16;
/// How often the records of ranks that still write them are looked for.
const LOOK_NS: u64 = 100_000_000;

/// A rank without a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingRank {
    /// The rank.
    pub rank: u32,
    /// Its host, as far as it is known.
    pub host: String,
    /// How far it came, or why its record is missing.
    pub reason: String,
}

/// What rank 0 has of all ranks.
#[derive(Debug, Default)]
pub struct FleetReport {
    /// The merged record; `None` where no rank has one.
    pub record: Option<RunRecord>,
    /// Ranks without a record, in order.
    pub missing: Vec<MissingRank>,
    /// What else there is to say.
    pub notes: Vec<String>,
}

impl FleetReport {
    /// "61 of 64 ranks; missing: h3 rank 3 (…)"; `None` where none is missing.
    pub fn missing_line(&self, ranks: u32) -> Option<String> {
        if self.missing.is_empty() {
            return None;
        }
        let there = ranks as usize - self.missing.len();
        let name = |missing: &MissingRank| {
            let MissingRank { rank, host, reason } = missing;
            let host = if host.is_empty() { String::new() } else { format!(" on {host}") };
            format!("rank {rank}{host} ({reason})")
        };
        let names: Vec<String> = self.missing.iter().map(name).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Some(format!("{there} of {ranks} ranks; missing: {}", listed(&names, MAX_NAMED)))
    }
}

/// Reads the record of a rank.
pub(super) fn parse(text: &[u8]) -> Result<RunRecord, String> {
    let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
    RunRecord::from_json(text).map_err(|error| error.to_string())
}

/// The report of all ranks; `own` is the record of rank 0 where it has one, `record` gets those of others.
pub(super) fn collect(
    place: &FleetPlace,
    own: Option<RunRecord>,
    mut record: impl FnMut(u32) -> Result<RunRecord, String>,
) -> FleetReport {
    let mut own = own;
    let of_rank = |rank| match rank {
        0 => own.take().ok_or_else(|| "it ended without a record".to_owned()),
        _ => record(rank),
    };
    merged(place, of_rank)
}

/// The report of what can be found where the ranks do not meet any more: the records that are in the directory by `until_ns` of the
/// monotonic clock.
pub(super) fn found(
    place: &FleetPlace,
    directory: Option<&RecordDirectory>,
    own: Option<RunRecord>,
    until_ns: u64,
) -> FleetReport {
    let mut own = own;
    let meeting = directory.and_then(|directory| directory.mark_of(0)).map_or(0, |mark| mark.meeting);
    let of_rank = |rank: u32| {
        if let Some(own) = own.take_if(|_| rank == 0) {
            return Ok(own);
        }
        let Some(directory) = directory else {
            return Err("unknown: add --fleet-out with a directory that all hosts share".to_owned());
        };
        let mark = directory.mark_of(rank);
        // A rank that has come as far as this one writes its record now.
        let is_there = mark.as_ref().is_some_and(|mark| mark.meeting >= meeting);
        while is_there && !directory.record(rank).exists() && monotonic_ns() < until_ns {
            let clock = RealClock::start();
            clock.sleep_until(clock.now() + LOOK_NS, std::time::Duration::from_nanos(LOOK_NS), || true);
        }
        directory.read_record(rank).map_err(|error| match mark {
            Some(_) if directory.record(rank).exists() => error,
            Some(mark) if is_there => format!("it waited for {}, without a record", mark.phase),
            Some(mark) => {
                let partial = directory.partial(rank);
                let kept =
                    if partial.exists() { format!("; see {}", partial.display()) } else { String::new() };
                // Rank 0 has left that meeting, so this rank had come to it.
                match mark.phase.as_str() {
                    FIRST_START | NEXT_START => format!("it began to measure and did not come back{kept}"),
                    phase => format!("last seen waiting for {phase}{kept}"),
                }
            }
            None => "its record is not in the directory of rank 0".to_owned(),
        })
    };
    merged(place, of_rank)
}

fn merged(place: &FleetPlace, mut of_rank: impl FnMut(u32) -> Result<RunRecord, String>) -> FleetReport {
    let rules =
        MergeRules { ranks: Some(place.ranks), records: place.ranks as usize, ..MergeRules::default() };
    let mut merger = FleetMerger::new(rules);
    let mut report = FleetReport::default();
    for rank in 0..place.ranks {
        let source = format!("rank-{rank:05}.json");
        let merged = of_rank(rank).and_then(|record| {
            merger.add(&source, record).map_err(|refusal| format!("cannot be merged: {refusal}"))
        });
        if let Err(reason) = merged {
            report.missing.push(MissingRank { rank, host: place.host_of(rank).to_owned(), reason });
        }
    }
    report.record = merger.finish();
    if let Some(record) = &mut report.record {
        record.findings = findings_of(record);
        // What rank 0 was told to merge is its own; the record says what it is.
        record.header.fleet.iter_mut().for_each(|fleet| {
            fleet.missing = report.missing.iter().map(|missing| missing.rank).collect();
        });
    }
    report
}

/// What ranks told beside their records.
pub(super) fn notes_of(place: &FleetPlace, states: &[RankState]) -> Vec<String> {
    let of_rank = |(rank, state): (usize, &RankState)| match state {
        RankState::Ended { note: Some(note), .. } => Some(format!("{}: {note}", place.name_of(rank as u32))),
        _ => None,
    };
    states.iter().enumerate().filter_map(of_rank).collect()
}
