//! Whose end ends whom: `exitall`, `exitall_on_error` and `exit_what`.

use std::collections::BTreeMap;

use fathom_model::JobPlan;
use fathom_model::plan::ExitScope;

use crate::stop::{StopHandle, StopSignal};

/// What the end of a worker ends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExitRule {
    /// The end of the worker ends others.
    pub always: bool,
    /// Its failure does.
    pub on_error: bool,
    /// Which others.
    pub scope: ExitScope,
    /// Its reporting group.
    pub group: u32,
}

impl ExitRule {
    /// The rule of the workers of `job`.
    pub fn of(job: &JobPlan) -> ExitRule {
        let always = job.exit_all;
        ExitRule { always, on_error: job.end.exit_on_error, scope: job.end.exit_scope, group: job.group }
    }
}

/// The stop signals of a phase.
#[derive(Clone, Debug)]
pub(crate) struct Exits {
    run: StopHandle,
    phase: StopHandle,
    /// Ends the run after the phase.
    later: StopHandle,
    groups: BTreeMap<u32, StopHandle>,
}

impl Exits {
    /// The signals of a phase with these groups.
    pub fn new(run: StopHandle, later: StopHandle, groups: impl Iterator<Item = u32>) -> Exits {
        let phase = StopHandle::default();
        let mut parts = BTreeMap::new();
        groups.for_each(|group| _ = parts.entry(group).or_insert_with(|| phase.part()));
        Exits { run, phase, later, groups: parts }
    }

    /// The signal of the workers of `group`.
    pub fn signal(&self, group: u32) -> StopSignal {
        let phase = self.groups.get(&group).unwrap_or(&self.phase).clone();
        StopSignal { run: self.run.clone(), phase }
    }

    /// The signal of the whole phase.
    pub fn whole(&self) -> StopSignal {
        StopSignal { run: self.run.clone(), phase: self.phase.clone() }
    }

    /// Ends what the end of a worker ends; true if that is anything.
    pub fn ended(&self, rule: ExitRule, failed: bool) -> bool {
        let reason = match () {
            () if rule.on_error && failed => "exitall_on_error",
            () if rule.always => "exitall",
            () => return false,
        };
        match rule.scope {
            ExitScope::Group => self.signal(rule.group).phase.request(reason),
            ExitScope::Stonewall => self.phase.request(reason),
            ExitScope::All => {
                self.phase.request(reason);
                self.later.request(reason);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_ends_the_group_the_phase_or_the_run() {
        let check = |scope, on_error: bool, failed: bool, expected: [bool; 3]| {
            let (run, later) = (StopHandle::default(), StopHandle::default());
            let exits = Exits::new(run.clone(), later.clone(), [1, 1, 2].into_iter());
            let rule = ExitRule { always: !on_error, on_error, scope, group: 1 };
            let ends = exits.ended(rule, failed);
            assert_eq!(ends, expected != [false; 3]);
            let stopped = [exits.signal(1).is_set(), exits.signal(2).is_set(), later.is_requested()];
            assert_eq!(stopped, expected, "{scope:?} {failed}");
            assert!(!run.is_requested());
        };
        check(ExitScope::Group, false, false, [true, false, false]);
        check(ExitScope::Stonewall, false, true, [true, true, false]);
        check(ExitScope::All, false, false, [true, true, true]);
        check(ExitScope::All, true, false, [false; 3]);
        check(ExitScope::All, true, true, [true, true, true]);
    }
}
