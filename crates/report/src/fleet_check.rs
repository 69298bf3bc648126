//! What the checks before a run on many hosts show, as text and as the document `fathom.fleet-check/1`.

use std::io::{self, Write};

use fathom_analysis::doctor::CheckStatus;
use fathom_analysis::fleet_check::{FleetCheckFacts, FleetCheckResult, stops_a_run};
use serde_json::{Value, json};

use crate::doctor::{checked, problems};
use crate::document;
use crate::view::{Block, Cell, Column, Row, Table, View};

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
    let stopping = results.iter().filter(|result| result.status == CheckStatus::Problem);
    let found = problems(stopping.map(|result| result.title), "would stop a run");
    view.push("", [Block::note(format!("{found}."))]);
    let figure = |result: &FleetCheckResult| {
        let said = [Some(result.result.as_str()), result.remedy.as_deref()];
        checked(result.title, result.status, said)
    };
    view.push("Checks", [Block::KeyFigures(results.iter().map(figure).collect())]);
    view
}

/// Writes the document, indented; the facts of a host that did not answer are null.
///
/// # Errors
/// Those of `out`.
pub fn render(facts: &FleetCheckFacts, checks: &[FleetCheckResult], out: &mut dyn Write) -> io::Result<()> {
    let hosts = facts.hosts.iter().map(|(host, answer)| {
        json!({ "host": host, "facts": answer.as_ref().ok(), "failure": answer.as_ref().err() })
    });
    let document = json!({
        "schema": SCHEMA,
        "has_problem": stops_a_run(checks),
        "checks": checks,
        "launchers": facts.launchers,
        "here": facts.here,
        "hosts": hosts.collect::<Vec<Value>>(),
    });
    document::write(&document, out)
}

#[cfg(test)]
mod tests {
    use fathom_analysis::fleet_check::{HostFailure, check_fleet};

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
