//! Keeping a run under the name of fio: only where that was asked for, and without a word on standard error.

use std::path::PathBuf;
use std::sync::Arc;

use fathom_assess::enter_conditions;
use fathom_history::{HistoryPath, Store, Warning, without_password};
use fathom_model::RunPlan;
use fathom_options::{CommandOptions, Invocation, show_command};
use fathom_record::{Activity, RunHeader, RunRecord};
use fathom_runner::Session;

use crate::live::{Hub, OpenToFollowers};
use crate::{output, store};

/// Keeps the run in the history where that was asked for.
pub struct Keeper {
    is_asked_for: bool,
    /// The run is that of a rank: its record goes to rank 0, and not to the history.
    is_of_rank: bool,
    place: HistoryPath,
    store: Store,
    /// What the record says of the run as a whole.
    pub header: RunHeader,
    notes: Vec<String>,
    /// The state of the run, for those who follow it.
    pub hub: Option<Arc<Hub>>,
    open: Option<OpenToFollowers>,
}

impl Keeper {
    /// Keeps the run where `--keep` or the variable says so; that of a rank is not kept, but has a record all the same.
    pub fn new(
        command: &CommandOptions,
        words: &[String],
        invocation: &Invocation,
        plan: &RunPlan,
        notes: &[String],
        is_of_rank: bool,
    ) -> Keeper {
        let is_asked_for = is_of_rank || command.keep || store::named(None).is_some();
        let mut header = RunHeader { activity: Activity::Fio, notes: notes.to_vec(), ..RunHeader::default() };
        if is_asked_for {
            let names: Vec<String> = targets(plan).iter().map(|path| path.display().to_string()).collect();
            let words = words.iter().map(|word| without_password(word).into_owned());
            header.command = ["fathom", "fio"].map(str::to_owned).into_iter().chain(words).collect();
            header.target = names.join(",");
            header.tool_version = env!("CARGO_PKG_VERSION").to_owned();
            header.job_text = show_command(invocation);
        }
        Keeper {
            is_asked_for,
            is_of_rank,
            place: store::place(None, is_asked_for && !is_of_rank),
            store: Store::None,
            header,
            notes: Vec::new(),
            hub: None,
            open: None,
        }
    }

    /// The header to begin with, where the run is kept.
    pub fn kept_header(&self) -> Option<&RunHeader> {
        Some(&self.header).filter(|_| self.is_asked_for)
    }

    /// True where the run goes to the history.
    pub fn is_kept(&self) -> bool {
        self.is_asked_for && !self.is_of_rank
    }

    /// Enters the run.
    pub fn begin(&mut self, header: RunHeader) {
        self.header = header;
        if self.is_of_rank {
            return;
        }
        let (store, warning) = Store::begin(&self.place, &self.header);
        self.store = store;
        self.open = self.hub.as_ref().and_then(|hub| hub.open_to_followers(&self.place, &self.store.kept()));
        if self.place.history.is_none() {
            self.notes.push(format!("{}; the run is not kept", store::NO_PLACE));
        }
        self.note(warning);
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
        self.open = None;
        self.note(warning);
        self.notes.extend(store::sent_lines(&self.store.send_unsent(&self.place)));
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

/// The targets of `plan`, one after the other.
pub fn targets(plan: &RunPlan) -> Vec<&PathBuf> {
    let mut targets: Vec<&PathBuf> =
        plan.jobs.iter().flat_map(|job| &job.clones).flat_map(|clone| &clone.paths).collect();
    targets.dedup();
    targets
}

/// `header` with the time and the conditions under which `plan` is run on `session`; it looks at the target.
pub fn with_conditions(mut header: RunHeader, plan: &RunPlan, session: &Session) -> RunHeader {
    // A run on virtual time has no facts of this machine and its clock.
    if session.is_simulated() {
        return header;
    }
    let first = targets(plan).first().map(|path| path.as_path());
    enter_conditions(&mut header, first, session.clock_facts());
    header
}
