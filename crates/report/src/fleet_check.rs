//! What the checks before a run on many hosts show, as text and as the document `fathom.fleet-check/1`.

use std::io::{self, Write};

use fathom_analysis::doctor::CheckStatus;
use fathom_analysis::fleet_check::{
    FleetCheckFacts, FleetCheckResult, FleetHostFacts, HostFailure, stops_a_run,
};
use serde::Serialize;

use crate::document;
use crate::view::{Block, Cell, Column, KeyFigure, Row, Table, Tone, View};

/// The `schema` of the document.
pub const SCHEMA: &str = "fathom.fleet-check/1";

/// The results of the checks.
pub fn view(results: &[FleetCheckResult]) -> View {
    let columns = ["check", "status", "result", "remedy"].map(Column::left);
    let row = |result: &FleetCheckResult| -> Row {
        Row::new([
            Cell::from(result.id),
            result.status.name().into(),
            result.result.as_str().into(),
            result.remedy.as_deref().into(),
        ])
    };
    let mut view = View { data: Table::new(columns, results.iter().map(row)), ..View::default() };
    view.push("", [Block::note(summary(results))]);
    view.push("Checks", [Block::KeyFigures(results.iter().map(figure).collect())]);
    view
}

fn summary(results: &[FleetCheckResult]) -> String {
    let problems: Vec<&str> = results
        .iter()
        .filter(|result| result.status == CheckStatus::Problem)
        .map(|result| result.title)
        .collect();
    match problems.as_slice() {
        [] => "No problem found that would stop a run.".to_owned(),
        [one] => format!("1 problem would stop a run: {one}."),
        several => format!("{} problems would stop a run: {}.", several.len(), several.join(", ")),
    }
}

fn figure(result: &FleetCheckResult) -> KeyFigure {
    let said: Vec<&str> = std::iter::once(result.result.as_str()).chain(result.remedy.as_deref()).collect();
    let tone = if result.status == CheckStatus::Problem { Tone::Alarm } else { Tone::Normal };
    let text = format!("{}: {}", result.status.name(), said.join(" "));
    KeyFigure { tone, ..KeyFigure::new(result.title, text) }
}

#[derive(Serialize)]
struct FleetCheckDocument<'a> {
    schema: &'static str,
    /// Something would stop a run.
    has_problem: bool,
    checks: &'a [FleetCheckResult],
    launchers: &'a [fathom_analysis::fleet_check::LauncherFacts],
    here: &'a FleetHostFacts,
    hosts: Vec<HostDocument<'a>>,
}

#[derive(Serialize)]
struct HostDocument<'a> {
    host: &'a str,
    /// Null where the host did not answer.
    facts: Option<&'a FleetHostFacts>,
    failure: Option<&'a HostFailure>,
}

/// Writes the document, indented.
///
/// # Errors
/// Those of `out`.
pub fn render(facts: &FleetCheckFacts, checks: &[FleetCheckResult], out: &mut dyn Write) -> io::Result<()> {
    let document = FleetCheckDocument {
        schema: SCHEMA,
        has_problem: stops_a_run(checks),
        checks,
        launchers: &facts.launchers,
        here: &facts.here,
        hosts: facts.hosts.iter().map(|(name, answer)| host_document(name, answer)).collect(),
    };
    document::write(&document, out)
}

fn host_document<'a>(host: &'a str, answer: &'a Result<FleetHostFacts, HostFailure>) -> HostDocument<'a> {
    HostDocument { host, facts: answer.as_ref().ok(), failure: answer.as_ref().err() }
}

#[cfg(test)]
mod tests {
    use fathom_analysis::fleet_check::check_fleet;

    use super::*;
    use crate::Style;
    use crate::formats::Format;
    use crate::text_writer;

    #[test]
    fn every_format_has_every_check() {
        let failure = HostFailure { reason: "no answer in 5 s".to_owned(), remedy: "Try ssh.".to_owned() };
        let hosts = vec![("h1".to_owned(), Err(failure))];
        let facts = FleetCheckFacts { hosts, ..FleetCheckFacts::default() };
        let results = check_fleet(&facts);
        for format in Format::ALL {
            let text = text_writer::text(|out| {
                format.write(&Style::default(), out, || view(&results), |out| render(&facts, &results, out))
            })
            .unwrap();
            assert!(text.contains("no answer in 5 s"), "{format}: {text}");
            for result in &results {
                assert!(text.contains(result.id) || text.contains(result.title), "{format}: {}", result.id);
            }
        }
    }
}
