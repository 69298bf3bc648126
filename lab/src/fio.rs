//! Campaigns beside Debian's fio. `fio-corpus` runs every job file of the corpus under both and reports where exit status, jobs, errors,
//! amounts, files or keys of the document differ. `fio-parser` draws job files and command lines from the option table, which both
//! parse (`--parse-only`): they accept or refuse the same, but for the reasons on the compatibility page.

use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use fathom_options::{OPTION_TABLE, OptionValueKind, UNSUPPORTED};
use fathom_tests::{Need, RepeatableNoise, corpus, fathom, loading, scratch};

use crate::driver::{Campaign, Case, CaseResult, Plan};

pub const CORPUS: Campaign = Campaign {
    needs: &[Need::Tool("fio")],
    turn: Some(loading),
    ..Campaign::new("fio-corpus", "Run the corpus of job files beside fio", |_| {
        Ok(Plan::new(corpus().into_iter().map(|job| {
            Case::new(format!("{}/{}", job.part, job.name), move || {
                let home = scratch();
                let mut ours = fathom(home.path());
                ours.arg("fio");
                Ok(CaseResult::new("run by both").faults(job.differences(ours, Command::new("fio"))))
            })
        })))
    })
};

/// Inputs are independent of one another, so any number of them is a campaign.
pub const PARSER: Campaign = Campaign {
    cases: 10_000,
    jobs: 2,
    needs: &[Need::Tool("fio")],
    resumes: true,
    ..Campaign::new("fio-parser", "Parse drawn job files and command lines beside fio", |asked| {
        let data: Arc<ParserData> = Arc::new(toml::from_str(include_str!("fio_parser.toml"))?);
        Ok(Plan::new(asked.seeds().map(|index| {
            let (case, data) = (ParserCase::from_seed(&data, index), data.clone());
            Case::new(case.name.clone(), move || Ok(parsed_by_both(&data, &case)))
        })))
    })
};

/// What cases are drawn from and judged by (`fio_parser.toml`).
#[derive(serde::Deserialize)]
struct ParserData {
    /// Values for an option of any kind.
    any: Vec<String>,
    /// Parts of messages by which fathom refuses what fio accepts.
    documented: Vec<String>,
    /// Parts of messages by which Debian's fio refuses options that are newer.
    newer: Vec<String>,
    /// Options that name what need not exist, or that act while they are parsed.
    left_out: Vec<String>,
    /// Values that text options take, and some that they nearly take.
    texts: std::collections::BTreeMap<String, Vec<String>>,
}

/// An input for both parsers.
#[derive(Clone, Debug)]
struct ParserCase {
    /// Its number and options.
    name: String,
    /// It is a job file; else a command line.
    is_job_file: bool,
    options: Vec<String>,
}

impl ParserCase {
    /// The `index`th: always the same. Every fourth has one option with any value.
    fn from_seed(data: &ParserData, index: u64) -> ParserCase {
        let mut noise = RepeatableNoise::seeded(index + 1);
        let mut below = move |count: usize| ((noise.even() * count as f64) as usize).min(count - 1);
        let rows = OPTION_TABLE.iter().flat_map(|(_, rows)| rows.iter().map(|row| (row.name, row.kind)));
        let names: Vec<(&'static str, OptionValueKind)> = rows
            .chain(UNSUPPORTED.iter().map(|row| (row.name, OptionValueKind::Text)))
            .filter(|(name, _)| !data.left_out.iter().any(|left_out| left_out == name))
            .collect();
        let is_single = index.is_multiple_of(4);
        let count = if is_single { 1 } else { 2 + below(4) };
        let mut options = Vec::new();
        for _ in 0..count {
            let (name, kind) = names[below(names.len())];
            let value = match is_single {
                // Any value, or none.
                true => data.any.get(below(data.any.len() + 1)).cloned(),
                false => {
                    let fitting = fitting(data, name, kind);
                    Some(fitting[below(fitting.len())].to_owned())
                }
            };
            options.push(value.map_or_else(|| name.to_owned(), |value| format!("{name}={value}")));
        }
        let is_job_file = below(2) == 0;
        ParserCase { name: format!("{index}: {}", options.join(" ")), is_job_file, options }
    }

    fn job_file(&self) -> String {
        format!("[q]\nfilename=data\nsize=1m\n{}\n", self.options.join("\n"))
    }

    fn command_line(&self) -> Vec<String> {
        let options = self.options.iter().map(|option| format!("--{option}"));
        ["--name=q", "--filename=data", "--size=1m"].map(str::to_owned).into_iter().chain(options).collect()
    }
}

/// Values that most options of this kind take.
fn fitting<'a>(data: &'a ParserData, name: &str, kind: OptionValueKind) -> Vec<&'a str> {
    if let Some(texts) = data.texts.get(name) {
        return texts.iter().map(String::as_str).collect();
    }
    let values: &[&str] = match kind {
        OptionValueKind::Size | OptionValueKind::SizeOrPercent => &["4k", "64k", "1m", "512", "8k"],
        OptionValueKind::Int => &["1", "2", "4", "8", "10"],
        OptionValueKind::Seconds => &["1", "5", "10s", "1m"],
        OptionValueKind::Micros => &["100", "5ms", "1s"],
        OptionValueKind::Bool | OptionValueKind::Flag => &["0", "1"],
        OptionValueKind::Choice(words) => words,
        OptionValueKind::Floats => &["50", "50:99"],
        OptionValueKind::Text | OptionValueKind::LogName => &["x", "1", "4k"],
    };
    values.to_vec()
}

fn parsed_by_both(data: &ParserData, case: &ParserCase) -> CaseResult {
    let home = scratch();
    let mut ours = fathom(home.path());
    ours.arg("fio");
    let parsed = |mut program: Command| {
        let place = scratch();
        program.arg("--parse-only").current_dir(place.path()).stdin(Stdio::null());
        if case.is_job_file {
            std::fs::write(place.path().join("job"), case.job_file()).expect("a job file can be written");
            program.arg("job");
        } else {
            program.args(case.command_line());
        }
        Parsed::from_output(&program.output().expect("both programs can be run"))
    };
    let (ours, fios) = (parsed(ours), parsed(Command::new("fio")));
    let verdict = verdict(data, &ours, &fios);
    let differs = verdict.is_none();
    let verdict = verdict.unwrap_or("parsed otherwise");
    let fault = differs.then(|| format!("\n  fathom: {}\n  fio: {}", ours.shown(), fios.shown()));
    CaseResult::new(verdict).count(verdict, 1).faults(fault)
}

/// What a parser made of an input.
#[derive(Debug)]
struct Parsed {
    /// The exit status; `None` of a program that a signal ended.
    status: Option<i32>,
    messages: String,
}

impl Parsed {
    fn from_output(output: &Output) -> Parsed {
        let text = [&output.stderr[..], &output.stdout[..]].concat();
        Parsed { status: output.status.code(), messages: String::from_utf8_lossy(&text).trim().to_owned() }
    }

    /// The exit status and the first lines of the messages.
    fn shown(&self) -> String {
        let lines: Vec<&str> = self.messages.lines().take(3).collect();
        let status = self.status.map_or_else(|| "killed".to_owned(), |status| status.to_string());
        format!("{status}: {}", lines.join(" / "))
    }

    fn has_one_of(&self, parts: &[String]) -> bool {
        parts.iter().any(|part| self.messages.contains(part))
    }
}

/// How both agree; `None` if they do not, or one of them crashed.
fn verdict(data: &ParserData, ours: &Parsed, fios: &Parsed) -> Option<&'static str> {
    match (ours.status, fios.status) {
        (Some(0), Some(0)) => Some("accepted by both"),
        // A crash of fio refuses as well; of ours nothing does.
        (Some(1), status) if status != Some(0) => Some("refused by both"),
        (Some(0), Some(_)) if fios.has_one_of(&data.newer) => Some("newer than Debian's fio"),
        (Some(1), _) if ours.has_one_of(&data.documented) => Some("refused for a documented reason"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> ParserData {
        toml::from_str(include_str!("fio_parser.toml")).unwrap()
    }

    #[test]
    fn cases_are_always_the_same_and_name_their_options() {
        let data = data();
        for index in 0..200 {
            let (case, again) = (ParserCase::from_seed(&data, index), ParserCase::from_seed(&data, index));
            assert_eq!((&case.name, case.is_job_file), (&again.name, again.is_job_file));
            assert_eq!(case.options.len() == 1, index % 4 == 0, "{case:?}");
            assert_eq!(case.command_line().len(), 3 + case.options.len());
            assert!(case.job_file().lines().count() == 3 + case.options.len());
        }
    }

    #[test]
    fn parsers_agree_or_have_a_documented_reason() {
        let parsed = |status, messages: &str| Parsed { status, messages: messages.to_owned() };
        let check = |ours: Parsed, fios: Parsed, expected: Option<&str>| {
            assert_eq!(verdict(&data(), &ours, &fios), expected, "{ours:?} {fios:?}");
        };
        check(parsed(Some(0), ""), parsed(Some(0), ""), Some("accepted by both"));
        check(parsed(Some(1), "x"), parsed(None, ""), Some("refused by both"));
        check(parsed(Some(0), ""), parsed(Some(1), "Bad option <x>"), Some("newer than Debian's fio"));
        let reason = "rate=-1: must not be negative";
        check(parsed(Some(1), reason), parsed(Some(0), ""), Some("refused for a documented reason"));
        check(parsed(Some(1), "x"), parsed(Some(0), ""), None);
        check(parsed(None, ""), parsed(Some(1), ""), None);
    }
}
