//! What `doctor` shows: the checks of a machine and a target with their results. Pure.

pub mod json;

use fathom_analysis::doctor::{CheckGroup, CheckResult, CheckStatus};
use fathom_record::{RunHeader, RunRecord};

use serde_json::json;

use crate::run_view;
use crate::view::{Block, KeyFigure, Table, Tone, View};

/// The results of the checks under the conditions in `header`. With `explains` the reason of every check is shown, not only of
/// those that have something to say.
pub fn view(header: &RunHeader, results: &[CheckResult], explains: bool) -> View {
    let record = RunRecord { header: header.clone(), ..RunRecord::default() };
    let mut view = View { data: data(results), ..run_view::of_run(&record) };
    view.push("", [Block::note(summary(results))]);
    for group in CheckGroup::ALL {
        let of_group = results.iter().filter(|result| result.group == group);
        let figures = of_group.map(|result| figure(result, explains)).collect();
        view.push(group.title(), [Block::KeyFigures(figures)]);
    }
    view
}

/// The problems by name, or that there are none, and the count of the other results.
fn summary(results: &[CheckResult]) -> String {
    let of = |status| results.iter().filter(move |result| result.status == status);
    let found = problems(of(CheckStatus::Problem).map(|result| result.title), "would distort results");
    let notes = if of(CheckStatus::Note).count() == 1 { "note" } else { "notes" };
    let others = [(CheckStatus::Ok, "ok"), (CheckStatus::Note, notes), (CheckStatus::Unknown, "unknown")];
    let counted = others.into_iter().filter(|(status, _)| of(*status).next().is_some());
    let counts: Vec<String> =
        counted.map(|(status, word)| format!("{} {word}", of(status).count())).collect();
    format!("{found}. Of {} checks: {}.", results.len(), counts.join(", "))
}

fn figure(result: &CheckResult, explains: bool) -> KeyFigure {
    let is_said = explains || matches!(result.status, CheckStatus::Problem | CheckStatus::Note);
    let matters = is_said.then_some(result.matters);
    let said = [Some(result.result.as_str()), matters, result.remedy.as_deref()];
    checked(result.title, result.status, said)
}

/// The problems by name, of which each `would` do something.
pub(crate) fn problems<'a>(titles: impl Iterator<Item = &'a str>, would: &str) -> String {
    match titles.collect::<Vec<_>>().as_slice() {
        [] => format!("No problem found that {would}"),
        [one] => format!("1 problem {would}: {one}"),
        several => format!("{} problems {would}: {}", several.len(), several.join(", ")),
    }
}

/// A check with its status and what is said of it.
pub(crate) fn checked<'a>(
    title: &str,
    status: CheckStatus,
    said: impl IntoIterator<Item = Option<&'a str>>,
) -> KeyFigure {
    let said: Vec<&str> = said.into_iter().flatten().collect();
    let tone = if status == CheckStatus::Problem { Tone::Alarm } else { Tone::Normal };
    KeyFigure { tone, ..KeyFigure::new(title, format!("{}: {}", status.name(), said.join(" "))) }
}

/// A row for each check.
fn data(results: &[CheckResult]) -> Table {
    let columns = "check=id,group,status,result,matters,remedy,finding";
    Table::of_documents(&[columns], results.iter().map(|result| json!(result)))
}

#[cfg(test)]
mod tests {
    use fathom_analysis::doctor::{DoctorFacts, examine};
    use fathom_record::{Conditions, HostRecord, TargetRecord};

    use super::*;
    use crate::Style;
    use crate::formats::{Format, text};
    use crate::text_writer;

    fn header() -> RunHeader {
        let target = TargetRecord { path: "/mnt/data".to_owned(), ..TargetRecord::default() };
        let host = HostRecord { kernel: "6.8.0".to_owned(), cpus_online: 2, ..HostRecord::default() };
        RunHeader {
            target: "/mnt/data".to_owned(),
            tool_version: "0.1.0".to_owned(),
            hosts: vec![host],
            conditions: Conditions { target },
            ..RunHeader::default()
        }
    }

    fn results(is_slow: bool) -> Vec<CheckResult> {
        let clock_reading_ns = Some(if is_slow { 900 } else { 20 });
        examine(&DoctorFacts { header: header(), clock_reading_ns, is_root: true, ..DoctorFacts::default() })
    }

    fn shown(results: &[CheckResult], explains: bool) -> String {
        text_writer::text(|out| text::render(&view(&header(), results, explains), &Style::default(), out))
            .unwrap()
    }

    #[test]
    fn problems_are_named_first_and_explained() {
        let text = shown(&results(true), false);
        assert!(text.contains("1 problem would distort results: Clock. "), "{text}");
        assert!(text.contains("problem: clock source unknown: a reading takes 900 ns"), "{text}");
        assert!(text.contains("costs CPU time"), "the reason is given: {text}");
        let text = shown(&results(false), false);
        assert!(text.contains("No problem found that would distort results. "), "{text}");
        assert!(!text.contains("costs CPU time."), "{text}");
        assert!(shown(&results(false), true).contains("costs CPU time."));
    }

    #[test]
    fn every_format_has_every_check() {
        let results = results(true);
        for format in Format::ALL {
            let written = text_writer::text(|out| {
                format.write(
                    &Style::default(),
                    out,
                    || view(&header(), &results, false),
                    |out| json::render(&header(), 1_050_000_000, &results, out),
                )
            })
            .unwrap()
            .replace('\\', "");
            for result in &results {
                assert!(
                    written.contains(result.id) || written.contains(result.title),
                    "{format}: {}",
                    result.id
                );
            }
        }
    }
}
