//! The head of a record: what was run, on what, under which conditions.

use fathom_record::{Activity, RunHeader};
use fathom_runner::Session;

use crate::conditions::enter_conditions;
use crate::settings::RunSettings;

/// The header of a run that begins now, on a target by a name that means the same everywhere on this machine. One in virtual time
/// has no facts about this machine.
pub(crate) fn header(
    activity: Activity,
    target_name: &str,
    settings: &RunSettings,
    seed: u64,
    notes: &[String],
    session: &Session,
) -> RunHeader {
    let mut header = RunHeader {
        command: settings.command.clone(),
        activity,
        target: target_name.to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        labels: settings.labels.clone(),
        scheduled: settings.scheduled.clone(),
        seed: Some(seed),
        notes: notes.to_vec(),
        ..RunHeader::default()
    };
    if !session.is_simulated() {
        enter_conditions(&mut header, Some(&settings.target), session.clock_facts());
    }
    header
}
