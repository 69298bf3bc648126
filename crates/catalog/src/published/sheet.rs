//! The published figures of one volume as a table of test, metric, value and unit, with the load of each test: the form in which
//! figures of other programs are imported.

use std::collections::{BTreeMap, BTreeSet};

use super::{Published, PublishedFigure, PublishedRun};

/// The published figures of a volume.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PublishedSheet {
    /// The figures as CSV.
    pub table: String,
    /// The volume in the words of the article.
    pub volume: String,
    /// The volume as a name of the catalogue; empty where it has none.
    pub named: String,
    /// Where the figures are from, and what to know of them.
    pub notes: Vec<String>,
}

/// A name that no published volume has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPublished {
    /// What is wrong with it.
    pub message: String,
    /// Names to use.
    pub hint: String,
}

/// A figure of a test under a name that tables have.
struct SheetRow<'a> {
    test: &'a str,
    metric: String,
    load: &'a BTreeMap<String, String>,
    run: &'a PublishedRun,
    figure: &'a PublishedFigure,
}

/// Columns of a table before those of the load.
const HEAD: [&str; 8] = ["test", "metric", "value", "unit", "kind", "tool", "tool_version", "kb_base"];

impl Published {
    /// The figures of the volume `id`: a source, one of its tests, or a type of which one volume was measured.
    ///
    /// # Errors
    /// There is no such volume, or the name fits several.
    pub fn sheet(&self, id: &str) -> Result<PublishedSheet, UnknownPublished> {
        let runs = self.runs_named(id)?;
        let first = runs[0];
        let stated: Vec<(&PublishedRun, &PublishedFigure)> = self
            .runs
            .iter()
            .flat_map(|run| run.figures.iter().map(move |figure| (run, figure)))
            .filter(|(_, figure)| figure.of.is_some())
            .collect();
        let mut rows: Vec<(SheetRow<'_>, bool)> = Vec::new();
        for run in &runs {
            rows.extend(run.figures.iter().filter_map(|figure| Some((of_run(run, figure)?, false))));
            for (statement, figure) in &stated {
                let of = figure.of.as_deref().and_then(|of| of.split_once('/'));
                let Some((_, metric)) = of.filter(|(about, _)| *about == run.id) else { continue };
                let metric = match metric.starts_with("total.") {
                    true => Some(metric.to_owned()),
                    false => fio_metric(run, metric),
                };
                let Some(metric) = metric else { continue };
                rows.push((
                    SheetRow { test: test_name(run), metric, load: &run.load, run: statement, figure },
                    true,
                ));
            }
        }
        let mut notes: Vec<String> = Vec::new();
        let is_expected = rows.iter().all(|(row, _)| row.figure.kind.as_deref() == Some("expected"));
        if is_expected {
            notes.push("these figures were expected, not measured".to_owned());
        }
        if rows.iter().any(|(row, _)| kb_base(&row.figure.unit) == "either") {
            notes.push("KB and MB are read as powers of 1,024: the source does not state their base, and by powers of 1,000 \
                        they are 2.3 % and 4.6 % less".to_owned());
        }
        if rows.iter().any(|(_, is_statement)| *is_statement) {
            notes.push("statements of the text stand beside the outputs that they speak of".to_owned());
        }
        notes.extend(
            self.article_of(first)
                .map(|article| format!("published in \"{}\" ({})", article.title, article.when)),
        );
        Ok(PublishedSheet {
            table: csv(&rows),
            volume: first.volume.clone(),
            named: first.named.clone(),
            notes,
        })
    }

    /// The runs of one volume.
    fn runs_named(&self, id: &str) -> Result<Vec<&PublishedRun>, UnknownPublished> {
        if let Some(run) = self.runs.iter().find(|run| run.id == id && !run.source.is_empty()) {
            return Ok(vec![run]);
        }
        let with_source = || self.runs.iter().filter(|run| !run.source.is_empty());
        let of_source: Vec<&PublishedRun> = with_source().filter(|run| run.source == id).collect();
        if !of_source.is_empty() {
            return Ok(of_source);
        }
        let is_of_type = |run: &&PublishedRun| {
            run.types.iter().any(|known| known == id)
                && run.figures.iter().any(|figure| figure.kind.is_none())
        };
        let of_type: Vec<&PublishedRun> = with_source().filter(is_of_type).collect();
        let sources = |runs: &[&'_ PublishedRun]| {
            let names: BTreeSet<String> = runs.iter().map(|run| run.source.clone()).collect();
            names.into_iter().collect::<Vec<_>>()
        };
        let names = sources(&of_type);
        match names.len() {
            0 => Err(UnknownPublished {
                message: format!("no figures are published under '{id}'"),
                hint: format!("use one of {}", sources(&with_source().collect::<Vec<_>>()).join(", ")),
            }),
            1 => Ok(of_type),
            _ => Err(UnknownPublished {
                message: format!("'{id}' names several published volumes"),
                hint: format!("use one of {}", names.join(", ")),
            }),
        }
    }
}

/// The test of a run, named without its volume.
fn test_name(run: &PublishedRun) -> &str {
    let rest = run.id.strip_prefix(&run.source).map(|rest| rest.trim_start_matches('-'));
    rest.filter(|rest| !rest.is_empty()).unwrap_or(&run.id)
}

/// The row of a figure of its own run; `None` of those that tables have no name for, and of statements on others.
fn of_run<'a>(run: &'a PublishedRun, figure: &'a PublishedFigure) -> Option<SheetRow<'a>> {
    static NONE: BTreeMap<String, String> = BTreeMap::new();
    if figure.of.is_some() {
        return None;
    }
    if let (Some(test), Some(metric)) = (&figure.test, &figure.name) {
        let load = figure.load.as_ref().unwrap_or(&NONE);
        return Some(SheetRow { test, metric: metric.clone(), load, run, figure });
    }
    let metric = fio_metric(run, &figure.metric)?;
    Some(SheetRow { test: test_name(run), metric, load: &run.load, run, figure })
}

/// The name in tables of a figure of fio or ioping.
fn fio_metric(run: &PublishedRun, name: &str) -> Option<String> {
    let is_write = run.load.get("rw").is_some_and(|rw| rw.ends_with("write"));
    let op = if is_write { "write" } else { "read" };
    let parts: Vec<&str> = name.splitn(3, '.').collect();
    let statistic = |word: &str| match word {
        "avg" => Some("mean".to_owned()),
        "min" | "max" => Some(word.to_owned()),
        _ => {
            let percent: f64 = word.strip_prefix('p')?.parse().ok()?;
            Some(format!("p{percent}"))
        }
    };
    match parts.as_slice() {
        ["read" | "write", "bw"] => Some(format!("{}.bytes_per_second", parts[0])),
        ["read" | "write", "io"] => Some(format!("{}.bytes", parts[0])),
        ["read" | "write", "iops" | "runtime"] => Some(name.to_owned()),
        ["read" | "write", "latency"] => Some(format!("{}.lat_ns.mean", parts[0])),
        ["issued", op @ ("read" | "write")] => Some(format!("{op}.ios")),
        ["cpu", "usr"] => Some("cpu.user_percent".to_owned()),
        ["cpu", "sys"] => Some("cpu.system_percent".to_owned()),
        ["latency", word] => Some(format!("{op}.lat_ns.{}", statistic(word)?)),
        [span @ ("slat" | "clat" | "lat"), ..] => {
            let word = name.split_once('.')?.1;
            Some(format!("{op}.{span}_ns.{}", statistic(word)?))
        }
        ["bw_samples", word @ ("min" | "max")] => Some(format!("{op}.bandwidth_windows.{word}")),
        ["iops"] => Some(format!("{op}.iops")),
        ["bw"] => Some(format!("{op}.bytes_per_second")),
        _ => None,
    }
}

/// What the letters of a unit mean: `either` where the source does not say.
fn kb_base(unit: &str) -> &'static str {
    if matches!(unit, "MB/s" | "KB/s") { "either" } else { "" }
}

/// The value with its sign: a bound, an estimate, or a hang that was printed as 0.
fn value_text(row: &SheetRow<'_>) -> String {
    let figure = row.figure;
    if figure.value == 0.0 && row.metric.ends_with(".iops") {
        return "stalled".to_owned();
    }
    let sign = match (figure.qualifier.as_deref(), figure.metric.as_str()) {
        (Some("approx"), _) => "~",
        (Some("upper bound"), _) => "<",
        (Some("lower bound"), _) => ">",
        (_, metric) if metric.ends_with(".lt") => "<",
        (_, metric) if metric.ends_with("_gt") => ">",
        // A text rounds what it states.
        _ if figure.of.is_some() => "~",
        _ => "",
    };
    format!("{sign}{}", figure.value)
}

fn csv(rows: &[(SheetRow<'_>, bool)]) -> String {
    let mut options: Vec<&str> =
        rows.iter().flat_map(|(row, _)| row.load.keys().map(String::as_str)).collect();
    options.sort_unstable();
    options.dedup();
    let mut text = [HEAD.to_vec(), options.clone()].concat().join(",") + "\n";
    for (row, is_statement) in rows {
        // A count of I/Os that were not done is no figure.
        if row.figure.value == 0.0 && row.metric.ends_with(".ios") {
            continue;
        }
        let kind = row.figure.kind.as_deref().filter(|_| *is_statement).unwrap_or_default();
        let tool = if *is_statement { "" } else { row.run.tool.as_str() };
        let (tool, version) = match tool.split_once(' ') {
            Some((tool, version)) if version.starts_with(|c: char| c.is_ascii_digit()) => (tool, version),
            _ => (tool, ""),
        };
        let unit = if row.figure.unit == "1" { "" } else { &row.figure.unit };
        let value = value_text(row);
        let head = [row.test, &row.metric, &value, unit, kind, tool, version, kb_base(&row.figure.unit)];
        let of_load = options.iter().map(|option| row.load.get(*option).map_or("", String::as_str));
        let cells: Vec<&str> = head.into_iter().chain(of_load).collect();
        text.push_str(&cells.join(","));
        text.push('\n');
    }
    text
}
