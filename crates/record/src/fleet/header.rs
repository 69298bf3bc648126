//! The head of a merged record: what all have in common, which ranks are missing, and how well their clocks agree.

use std::collections::BTreeSet;

use fathom_model::text::listed;

use super::{ClockAgreement, FleetMember, FleetRecord, LaunchRecord, RankNumbers};
use crate::{HostRecord, RunHeader, RunRecord};

/// Labels that name the rank of a record and the ranks of its job, where no launcher does.
const RANK_LABEL: &str = "rank";
const RANKS_LABEL: &str = "ranks";
/// What stands for the launcher then.
const LABELLED: &str = "label";
/// Notes that are kept of all records.
const MAX_NOTES: usize = 40;
/// Hosts that are named in one sentence.
const MAX_NAMED: usize = 5;
/// Ranks that are expected where nobody tells how many there are; a greater number is no place among them.
const MAX_UNTOLD: u32 = 1 << 16;

/// The place of a record in its job: as its launcher told, else as its labels say.
pub(super) fn launch(header: &RunHeader) -> Option<LaunchRecord> {
    let number = |name: &str| header.labels.get(name)?.parse::<u32>().ok();
    let labelled = || {
        let launcher = LABELLED.to_owned();
        let (rank, ranks) = (number(RANK_LABEL)?, number(RANKS_LABEL));
        Some(LaunchRecord { launcher, rank, ranks, ..LaunchRecord::default() })
    };
    header.launch.clone().or_else(labelled)
}

/// True where labels say the rank, which people count from 0 or from 1.
pub(super) fn is_labelled(launch: &LaunchRecord) -> bool {
    launch.launcher == LABELLED
}

/// The numbers of ranks that labels say: from 1 on where none is 0 and either the last is there as well, or nobody says how many they
/// are; else from 0 on.
pub(super) fn labelled_numbers(fleet: &FleetRecord) -> RankNumbers {
    let ranks = || fleet.members.iter().filter_map(|member| member.rank);
    let is_from_one = !ranks().any(|rank| rank == 0)
        && fleet.ranks.map_or_else(|| ranks().any(|rank| rank == 1), |last| ranks().any(|rank| rank == last));
    RankNumbers { first: u32::from(is_from_one), ..RankNumbers::default() }
}

/// The entry of one record.
pub(super) fn member(source: &str, record: &RunRecord) -> FleetMember {
    let header = &record.header;
    FleetMember {
        rank: launch(header).map(|launch| launch.rank),
        source: source.to_owned(),
        target: header.target.clone(),
        device: header.device_identity(),
        started_unix_ms: header.started_unix_ms,
        status: record.status,
    }
}

/// The head of the first record, without what only it has.
pub(super) fn begin(mut header: RunHeader) -> RunHeader {
    for label in [RANK_LABEL, RANKS_LABEL] {
        header.labels.remove(label);
    }
    RunHeader {
        hosts: Vec::new(),
        tags: Vec::new(),
        interleaved: None,
        scheduled: None,
        launch: None,
        // What is expected of a volume is not what many hosts reach together.
        expectations: Vec::new(),
        ..header
    }
}

/// Takes in the head of another record.
pub(super) fn join(mine: &mut RunHeader, other: RunHeader) {
    mine.started_unix_ms = match (mine.started_unix_ms, other.started_unix_ms) {
        (0, start) | (start, 0) => start,
        (one, two) => one.min(two),
    };
    mine.labels.retain(|name, value| other.labels.get(name) == Some(value));
    mine.seed = mine.seed.filter(|seed| other.seed == Some(*seed));
    if mine.size_bytes != other.size_bytes {
        mine.size_bytes = 0;
    }
    if mine.tool_version != other.tool_version {
        mine.tool_version = format!("{} and {}", mine.tool_version, other.tool_version);
    }
    add_missing(&mut mine.notes, other.notes);
    mine.interrupted = mine.interrupted.take().or(other.interrupted);
}

/// Adds the notes that are not there yet.
pub(super) fn add_missing(notes: &mut Vec<String>, others: Vec<String>) {
    for note in others {
        if notes.len() < MAX_NOTES && !notes.contains(&note) {
            notes.push(note);
        }
    }
}

/// Ranks of the job without a record. Where nobody tells how many there are, those up to the greatest.
pub(super) fn missing(fleet: &FleetRecord, numbers: RankNumbers) -> Vec<u32> {
    let present: BTreeSet<u32> = fleet.members.iter().filter_map(|member| member.rank).collect();
    let all_have_ranks = present.len() == fleet.members.len();
    let RankNumbers { first, step } = numbers;
    if !all_have_ranks || step == 0 {
        return Vec::new();
    }
    let untold = || {
        let greatest = present.last().filter(|rank| (first..MAX_UNTOLD).contains(rank));
        greatest.map_or(0, |rank| (rank - first) / step + 1)
    };
    let ranks = fleet.ranks.unwrap_or_else(untold);
    let rank = |place: u32| first.saturating_add(place.saturating_mul(step));
    (0..ranks).map(rank).filter(|rank| !present.contains(rank)).collect()
}

/// How far apart the wall clocks of these hosts can be: the two largest errors together.
pub(super) fn agreement(hosts: &[HostRecord], is_simulated: bool) -> ClockAgreement {
    let unknown = |reason: String| ClockAgreement { error_ns: None, reason: Some(reason) };
    if is_simulated {
        return unknown("simulated runs have no wall clock; they are taken to begin together".to_owned());
    }
    let first_boot = hosts.first().map_or("", |host| host.boot_id.as_str());
    if !first_boot.is_empty() && hosts.iter().all(|host| host.boot_id == first_boot) {
        let reason = Some("all records are of one boot of one machine".to_owned());
        return ClockAgreement { error_ns: Some(0), reason };
    }
    let without: Vec<&str> =
        hosts.iter().filter(|host| host.clock_state.is_none()).map(|host| host.hostname.as_str()).collect();
    if !without.is_empty() {
        return unknown(format!(
            "{} of {} records have no clock state ({})",
            without.len(),
            hosts.len(),
            listed(&without, MAX_NAMED)
        ));
    }
    let free: Vec<&str> = hosts
        .iter()
        .filter(|host| host.clock_state.is_some_and(|state| !state.synchronized))
        .map(|host| host.hostname.as_str())
        .collect();
    if !free.is_empty() {
        let clocks = if free.len() == 1 { "the clock" } else { "the clocks" };
        let verb = if free.len() == 1 { "is" } else { "are" };
        return unknown(format!("{clocks} of {} {verb} not synchronized", listed(&free, MAX_NAMED)));
    }
    let mut errors: Vec<u64> =
        hosts.iter().filter_map(|host| host.clock_state).map(|state| state.max_error_ns).collect();
    errors.sort_unstable_by(|one, other| other.cmp(one));
    let worst = errors.iter().take(2).fold(0_u64, |sum, error| sum.saturating_add(*error));
    ClockAgreement { error_ns: Some(worst), reason: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClockState;

    fn host(name: &str, state: Option<(bool, u64)>) -> HostRecord {
        let clock_state = state.map(|(synchronized, max_error_ns)| ClockState {
            synchronized,
            max_error_ns,
            ..ClockState::default()
        });
        HostRecord {
            hostname: name.to_owned(),
            boot_id: name.to_owned(),
            clock_state,
            ..HostRecord::default()
        }
    }

    #[test]
    fn the_two_worst_clocks_bound_the_difference() {
        let good = [("a", 5), ("b", 9), ("c", 1)].map(|(name, error)| host(name, Some((true, error))));
        assert_eq!(agreement(&good, false).error_ns, Some(14));
        let reason = |hosts: &[HostRecord]| agreement(hosts, false).reason.unwrap_or_default();
        assert_eq!(
            reason(&[host("a", Some((true, 1))), host("b", None)]),
            "1 of 2 records have no clock state (b)"
        );
        let free = [host("a", Some((false, 1))), host("b", Some((true, 1)))];
        assert_eq!(reason(&free), "the clock of a is not synchronized");
        let one = [host("a", None), host("a", None)];
        assert_eq!(agreement(&one, false).error_ns, Some(0));
        assert_eq!(agreement(&one, true).error_ns, None);
    }

    #[test]
    fn missing_ranks_are_known_where_all_records_have_one() {
        let member = |rank| FleetMember { rank, ..FleetMember::default() };
        let fleet = |ranks, members: &[Option<u32>]| FleetRecord {
            ranks,
            members: members.iter().map(|rank| member(*rank)).collect(),
            ..FleetRecord::default()
        };
        let missing = |fleet: &FleetRecord| missing(fleet, RankNumbers::default());
        assert_eq!(missing(&fleet(Some(5), &[Some(0), Some(3)])), [1, 2, 4]);
        assert_eq!(missing(&fleet(Some(5), &[Some(0), None])), [] as [u32; 0]);
        assert_eq!(missing(&fleet(None, &[Some(0), Some(3)])), [1, 2]);
        assert_eq!(missing(&fleet(None, &[Some(0), None])), [] as [u32; 0]);
        assert_eq!(missing(&fleet(None, &[Some(0), Some(20_261_123)])), [] as [u32; 0]);
    }

    #[test]
    fn labels_count_from_zero_or_from_one() {
        let missing = |ranks, members: &[u32]| {
            let members = members
                .iter()
                .map(|rank| FleetMember { rank: Some(*rank), ..FleetMember::default() })
                .collect();
            let fleet = FleetRecord { ranks, members, ..FleetRecord::default() };
            missing(&fleet, labelled_numbers(&fleet))
        };
        assert_eq!(missing(None, &[1, 2, 4]), [3]);
        assert_eq!(missing(None, &[0, 1, 3]), [2]);
        assert_eq!(missing(Some(4), &[1, 2, 4]), [3]);
        assert_eq!(missing(Some(4), &[1, 2, 3, 4]), [] as [u32; 0]);
        // Without the last it may be either; launchers count from 0.
        assert_eq!(missing(Some(4), &[1, 2, 3]), [0]);
        assert_eq!(missing(None, &[2, 3]), [0, 1]);
    }

    #[test]
    fn missing_ranks_have_the_numbers_of_their_launcher() {
        let member = |rank: &u32| FleetMember { rank: Some(*rank), ..FleetMember::default() };
        let fleet = |ranks, members: &[u32]| FleetRecord {
            ranks,
            members: members.iter().map(member).collect(),
            ..FleetRecord::default()
        };
        let every_other = RankNumbers { first: 10, step: 2 };
        assert_eq!(missing(&fleet(Some(4), &[10, 14]), every_other), [12, 16]);
        assert_eq!(missing(&fleet(None, &[1, 5]), RankNumbers::UNKNOWN), [] as [u32; 0]);
    }
}
