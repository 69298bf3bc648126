//! The head of a record: what was run, on what, under which conditions.

use fathom_record::{Activity, RunHeader};
use fathom_runner::Session;

use crate::conditions::enter_conditions;
use crate::settings::RunSettings;

/// What a command knows of its run before it begins.
pub(crate) struct Heading<'a> {
    /// The command with its settings.
    pub activity: Activity,
    /// The target by a name that means the same everywhere on this machine.
    pub target_name: String,
    /// What was said of it.
    pub said: &'a RunSettings,
    /// What all random choices derive from.
    pub seed: Option<u64>,
    /// Things a reader of the results should know.
    pub notes: &'a [String],
}

/// The header of a run that begins now. One on virtual time says nothing of this machine.
pub(crate) fn header(heading: &Heading<'_>, session: &Session) -> RunHeader {
    let mut header = RunHeader {
        command: heading.said.command.clone(),
        activity: heading.activity.clone(),
        target: heading.target_name.clone(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        labels: heading.said.labels.clone(),
        seed: heading.seed,
        notes: heading.notes.to_vec(),
        ..RunHeader::default()
    };
    if !session.is_simulated() {
        enter_conditions(&mut header, Some(&heading.said.target), session.clock_facts());
    }
    header
}
