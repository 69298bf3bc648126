//! The replay of recorded requests: what it excludes.

use fathom_model::plan::{IoPlan, ReplayPlan};

use crate::error::OptionError;
use crate::resolve::refused;
use crate::section::Section;

/// The replay of a job; `None` if it names no recording.
pub(crate) fn plan(section: &Section, io: &IoPlan) -> Result<Option<ReplayPlan>, OptionError> {
    let options = &section.options;
    if options.replay.logs.is_empty() {
        return Ok(None);
    }
    let has_rate = options.rate.iter().chain(options.rate_iops.iter()).any(|(_, rate)| rate.unwrap_or(0) > 0);
    let excluded = match () {
        () if io.verify.is_some() => Some(("verify", "the data of a recording is not known")),
        () if has_rate => Some(("a rate", "a recording has its own times; use replay_time_scale")),
        () if io.serialize_overlap => Some(("serialize_overlap", "a recording has its own order")),
        () => None,
    };
    match excluded {
        Some((what, why)) => {
            Err(refused(section, format!("has read_iolog and {what}"), format!("omit one of them: {why}")))
        }
        None => Ok(Some(options.replay.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::{PlanningHost, resolve};

    fn planned(pairs: &[(&str, &str)]) -> Result<Option<ReplayPlan>, String> {
        let section = Section::from_pairs("job", pairs, &[]).unwrap();
        let plan = resolve(&[section], &PlanningHost::default()).map_err(|error| error.to_string())?;
        Ok(plan.jobs[0].replay.clone())
    }

    #[test]
    fn options_of_a_replay_mean_nothing_without_one() {
        assert_eq!(planned(&[("replay_no_stall", "1"), ("replay_scale", "2")]), Ok(None));
        let replay = planned(&[("read_iolog", "a:b"), ("replay_no_stall", "1")]).unwrap().unwrap();
        assert_eq!((replay.logs.len(), replay.no_stall, replay.scale), (2, true, 1));
    }

    #[test]
    fn a_replay_has_its_own_times_order_and_data() {
        for pair in [("rate", "1m"), ("rate_iops", "5"), ("serialize_overlap", "1"), ("verify", "crc32c")] {
            let error = planned(&[("read_iolog", "a"), ("rw", "write"), pair]).unwrap_err();
            assert!(error.contains("has read_iolog and"), "{pair:?}: {error}");
        }
    }
}
