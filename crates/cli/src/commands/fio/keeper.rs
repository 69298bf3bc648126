//! Keeping a run under the name of fio: only where that was asked for, and without a word on standard error.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fathom_assess::conditions;
use fathom_history::{Store, Warning};
use fathom_model::RunPlan;
use fathom_options::{CommandOptions, Invocation, show_command};
use fathom_record::{Activity, RunHeader, RunRecord};
use fathom_runner::Session;

use crate::{output, store};

/// Keeps the run in the history where that was asked for.
pub struct Keeper {
    store: Store,
    /// What the record says of the run as a whole.
    pub header: RunHeader,
    notes: Vec<String>,
}

impl Keeper {
    /// Enters the run, where `--keep` or the variable says so.
    pub fn begin(
        command: &CommandOptions,
        words: &[String],
        invocation: &Invocation,
        plan: &RunPlan,
        session: &Session,
    ) -> Keeper {
        let mut header = RunHeader { activity: Activity::Fio, ..RunHeader::default() };
        let keep = command.keep || store::named(None).is_some();
        if !keep {
            return Keeper { store: Store::None, header, notes: Vec::new() };
        }
        let mut targets: Vec<&PathBuf> =
            plan.jobs.iter().flat_map(|job| &job.clones).flat_map(|clone| &clone.paths).collect();
        targets.dedup();
        let names: Vec<String> = targets.iter().map(|path| path.display().to_string()).collect();
        header.command =
            ["fathom", "fio"].map(str::to_owned).into_iter().chain(words.iter().cloned()).collect();
        header.target = names.join(",");
        header.tool_version = env!("CARGO_PKG_VERSION").to_owned();
        header.job_text = show_command(invocation);
        // On virtual time nothing is said of this machine and its time.
        if !session.is_simulated() {
            header.started_unix_ms = fathom_sys::clock::unix_ms();
            header.started_monotonic_ns = fathom_sys::clock::monotonic_ns();
        }
        if let Some(first) = targets.first().filter(|_| !session.is_simulated()) {
            header.conditions = conditions(first, session.clock_facts(), &BTreeMap::new());
            header.boot_id = header.conditions.host.boot_id.clone();
        }
        let place = store::place(None, true);
        let (store, warning) = Store::begin(&place, &header);
        let mut keeper = Keeper { store, header, notes: Vec::new() };
        if place.history.is_none() {
            keeper.notes.push(format!("{}; the run is not kept", store::NO_PLACE));
        }
        keeper.note(warning);
        keeper
    }

    /// Stores what ran and what it tells; what could not be stored goes to `notes`.
    pub fn finish(&mut self, ran: &RunRecord, notes: &mut Vec<String>) {
        for test in &ran.tests {
            let warning = self.store.append(test);
            self.note(warning);
            self.header.interrupted = test.interrupted.clone();
        }
        let header = self.header.clone();
        let warning = self.store.finish(ran.status, &header, &ran.findings);
        self.note(warning);
        notes.append(&mut self.notes);
    }

    /// A script expects an empty standard error: the warning goes into the report, and there only where it is seen.
    fn note(&mut self, warning: Option<Warning>) {
        let Some(warning) = warning else { return };
        self.notes.push(warning.to_string());
        if output::stderr_is_seen() {
            store::tell(Some(warning));
        }
    }
}
