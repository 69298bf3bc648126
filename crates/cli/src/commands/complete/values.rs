//! Values that are looked up: volume types, suites and their tests, profiles, engines, and the runs, tags and names of the history.
//!
//! Which argument takes which is a table by the argument's name. Whatever cannot be read offers nothing.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use fathom_analysis::conclusions::Use;
use fathom_analysis::pattern::AccessPattern;
use fathom_analysis::surface::plan::VisitOrder;
use fathom_assess::surface::Content;
use fathom_assess::{PROFILES, SUITES, Suite, VolumeTypes, engine_rows};
use fathom_catalog::{Catalog, CatalogEntry, Published};
use fathom_history::{Filter, History, Location};
use fathom_model::units::UnitSystem;
use fathom_record::{ActivityKind, HistoryRow};
use fathom_report::compare::ChartKind;
use fathom_report::formats::Format;
use fathom_report::page::RunChart;

use super::{Candidate, Completion, Lookup, commands_of};
use crate::commands::report::ReportFormat;
use crate::store;

/// What a value names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// What is measured: a path or a simulated volume.
    Target,
    /// A suite, or the path of one.
    Suite,
    /// A workload profile.
    Profile,
    /// A test of a suite.
    Test,
    /// The beginning of a metric: a test.
    Metric,
    /// An I/O engine.
    Engine,
    /// A volume type with a model, or custom limits.
    VolumeType,
    /// Any volume type.
    TypeId,
    /// A provider of volume types.
    Provider,
    /// A kind of medium.
    Medium,
    /// A run of the history.
    Run,
    /// A tag of the history.
    Tag,
    /// A label of the history.
    Label,
    /// A host of the history.
    Host,
    /// A device of the history.
    Device,
    /// A target of the history.
    KeptTarget,
    /// A source of a comparison.
    Source,
    /// A command that keeps runs.
    Activity,
    /// A report format.
    Format,
    /// A system of units.
    Units,
    /// A format of `fathom report`.
    PageFormat,
    /// A chart.
    Chart,
    /// A chart of one run or of several.
    AnyChart,
    /// A pattern of accesses.
    Pattern,
    /// An order of positions.
    Order,
    /// The content of written blocks.
    Content,
    /// A command, or one below those that are named already.
    Command,
    /// A file.
    File,
}

/// Values by the first word of the command, empty for any, and the name of the argument. The first row that fits counts.
const VALUES: &[(&str, &str, ValueKind)] = &[
    ("history", "target", ValueKind::KeptTarget),
    ("", "target", ValueKind::Target),
    ("", "targets", ValueKind::Target),
    ("", "against", ValueKind::Source),
    ("", "sources", ValueKind::Source),
    ("", "suite", ValueKind::Suite),
    ("", "profile", ValueKind::Profile),
    ("", "profiles", ValueKind::Profile),
    ("", "only", ValueKind::Test),
    ("", "test", ValueKind::Test),
    ("", "metric", ValueKind::Metric),
    ("", "engine", ValueKind::Engine),
    ("fio", "ioengine", ValueKind::Engine),
    ("", "volumes", ValueKind::VolumeType),
    ("advise", "current", ValueKind::VolumeType),
    ("advise", "candidates", ValueKind::VolumeType),
    ("catalog", "id", ValueKind::TypeId),
    ("", "volume_type", ValueKind::TypeId),
    ("", "provider", ValueKind::Provider),
    ("catalog", "medium", ValueKind::Medium),
    ("history", "kind", ValueKind::Activity),
    ("history", "run", ValueKind::Run),
    ("history", "runs", ValueKind::Run),
    ("history", "a", ValueKind::Run),
    ("history", "b", ValueKind::Run),
    ("", "tag", ValueKind::Tag),
    ("", "tags", ValueKind::Tag),
    ("", "label", ValueKind::Label),
    ("", "labels", ValueKind::Label),
    ("history", "host", ValueKind::Host),
    ("history", "device", ValueKind::Device),
    ("report", "format", ValueKind::PageFormat),
    ("", "format", ValueKind::Format),
    ("", "units", ValueKind::Units),
    ("compare", "charts", ValueKind::Chart),
    ("report", "chart", ValueKind::AnyChart),
    ("fleet", "chart", ValueKind::File),
    ("fleet", "launcher", ValueKind::File),
    ("sweep", "rw", ValueKind::Pattern),
    ("surface", "order", ValueKind::Order),
    ("surface", "pattern", ValueKind::Content),
    ("man", "command", ValueKind::Command),
    ("", "history", ValueKind::File),
    ("ping", "catalog", ValueKind::File),
    ("ping", "destroy-data", ValueKind::File),
    ("fio", "filename", ValueKind::File),
    ("fio", "directory", ValueKind::File),
    ("fio", "output", ValueKind::File),
    ("fio", "read_iolog", ValueKind::File),
    ("fio", "write_iolog", ValueKind::File),
    ("fio", "destroy-data", ValueKind::File),
];

/// The values of the argument `name` of the command at `path`; `None` where the table has none.
pub fn value_kind(path: &[&str], name: &str) -> Option<ValueKind> {
    let is_of = |command: &str| command.is_empty() || path.first() == Some(&command);
    VALUES.iter().find(|(command, known, _)| is_of(command) && *known == name).map(|(.., kind)| *kind)
}

/// Runs offered at most: the newest.
const MAX_RUNS: usize = 50;
/// The prefix of a simulated volume.
const SIMULATED: &str = "sim:";
/// The prefix of published figures.
const PUBLISHED: &str = "published:";
/// Words that begin so are no paths.
const PREFIXES: [&str; 5] = [SIMULATED, PUBLISHED, "tag:", "host:", "label:"];

/// Where values come from: what is shipped, the user's own files, and the history that a command line names.
pub struct Sources<'a> {
    words: &'a [String],
}

impl<'a> Sources<'a> {
    /// Those that `words` name.
    pub fn new(words: &'a [String]) -> Sources<'a> {
        Sources { words }
    }

    /// The value of an option on the line, where it has one.
    fn named(&self, option: &str) -> Option<&str> {
        let mut words = self.words.iter().rev().skip(1).rev().map(String::as_str).peekable();
        while let Some(word) = words.next() {
            match word.strip_prefix(option) {
                Some("") => return words.peek().copied(),
                Some(rest) if rest.starts_with('=') => return Some(&rest[1..]),
                _ => {}
            }
        }
        None
    }

    /// The newest runs, newest first. A server is not asked: that may take longer than a key press.
    fn runs(&self) -> Vec<HistoryRow> {
        let location = store::location(self.named("--history").map(Location::new));
        let Some(location @ Location::File(_)) = location else { return Vec::new() };
        let filter = Filter { newest: Some(MAX_RUNS), ..Filter::default() };
        let listed = History::open_if_there(&location, Duration::ZERO)
            .and_then(|history| history.map(|history| history.list(&filter)).transpose());
        let mut rows = listed.ok().flatten().map(|listing| listing.rows).unwrap_or_default();
        rows.reverse();
        rows
    }

    fn entries(&self, take: impl FnMut(&CatalogEntry)) {
        let types = VolumeTypes::new(self.named("--catalog").map(PathBuf::from));
        types.catalogue().unwrap_or(Catalog::shipped()).entries().for_each(take);
    }

    fn modelled(&self, prefix: &str) -> Vec<Candidate> {
        let mut found = vec![Candidate::new(format!("{prefix}custom?"), "limits of your own")];
        self.entries(|entry| {
            if entry.unmodelled().is_none() {
                found.push(Candidate::new(format!("{prefix}{}", entry.id()), entry.type_name()));
            }
        });
        found
    }

    /// Simulated volumes, once somebody begins to write one.
    fn simulated(&self, begun: &str) -> Vec<Candidate> {
        match begun {
            "" => Vec::new(),
            _ if begun.starts_with(SIMULATED) => self.modelled(SIMULATED),
            _ if SIMULATED.starts_with(begun) => vec![Candidate::new(SIMULATED, "a simulated volume")],
            _ => Vec::new(),
        }
    }

    fn of_entries(&self, of: fn(&CatalogEntry) -> &str) -> Vec<Candidate> {
        let mut names = BTreeSet::new();
        self.entries(|entry| {
            names.insert(of(entry).to_owned());
        });
        plain(names)
    }

    /// The tests of the suite on the line, else of the standard one.
    fn tests(&self, end: &str) -> Vec<Candidate> {
        let name = self.named("--suite").unwrap_or(SUITES[0].0);
        let suite = Suite::load(name, &engine_rows());
        let tests = suite.map(|suite| suite.tests).unwrap_or_default();
        tests.into_iter().map(|test| Candidate::new(format!("{}{end}", test.id), test.title)).collect()
    }

    /// The commands below those between the first word and the last.
    fn commands(&self) -> Vec<Candidate> {
        let root = crate::commands::command();
        let named = self.words.get(1..self.words.len().max(2) - 1).unwrap_or_default();
        let found = named.iter().try_fold(&root, |command, word| command.find_subcommand(word));
        found.map(commands_of).unwrap_or_default()
    }

    fn run_names(&self) -> Vec<Candidate> {
        let rows = self.runs();
        let newest = (!rows.is_empty()).then(|| Candidate::new("last", "the newest run"));
        newest.into_iter().chain(rows.iter().map(run)).collect()
    }

    fn sources(&self, begun: &str) -> Vec<Candidate> {
        let rows = self.runs();
        let newest = (!rows.is_empty()).then(|| Candidate::new("last", "the newest run"));
        let tags = texts(&rows, |row| row.tags.clone());
        let mut found: Vec<Candidate> = newest.into_iter().chain(rows.iter().map(run)).collect();
        found.extend(tags.iter().map(|tag| Candidate::new(format!("tag:{tag}"), "runs with this tag")));
        found.extend(self.simulated(begun));
        if begun.starts_with(PUBLISHED) {
            let published = Published::shipped().runs.iter();
            found.extend(
                published.map(|run| Candidate::new(format!("{PUBLISHED}{}", run.id), run.volume.as_str())),
            );
        }
        found
    }
}

/// A run by its number.
fn run(row: &HistoryRow) -> Candidate {
    let day = row.started.split('T').next().unwrap_or_default();
    let help = [row.kind.name(), &row.target, day].join(" ");
    Candidate::new(row.id.to_string(), help.trim_end())
}

/// What `of` takes from the rows, each once.
fn texts(rows: &[HistoryRow], of: impl Fn(&HistoryRow) -> Vec<String>) -> BTreeSet<String> {
    rows.iter().flat_map(of).filter(|text| !text.is_empty()).collect()
}

/// Words that need no explanation.
fn plain(words: impl IntoIterator<Item = impl Into<String>>) -> Vec<Candidate> {
    words.into_iter().map(|word| Candidate::new(word, "")).collect()
}

fn profiles() -> Vec<Candidate> {
    let title = |name: &str| Use::named(name).map_or("", |one| one.title);
    PROFILES.iter().map(|(name, _)| Candidate::new(*name, title(name))).collect()
}

impl Lookup for Sources<'_> {
    fn values(&self, kind: ValueKind, begun: &str) -> Completion {
        let candidates = match kind {
            ValueKind::Target => self.simulated(begun),
            ValueKind::Source => self.sources(begun),
            ValueKind::Suite => plain(SUITES.iter().map(|(name, _)| *name)),
            ValueKind::Profile => profiles(),
            ValueKind::Test => self.tests(""),
            ValueKind::Metric => self.tests("."),
            ValueKind::Engine => {
                engine_rows().into_iter().map(|row| Candidate::new(row.name, row.doc)).collect()
            }
            ValueKind::VolumeType => self.modelled(""),
            ValueKind::TypeId => {
                let mut found = Vec::new();
                self.entries(|entry| found.push(Candidate::new(entry.id(), entry.type_name())));
                found
            }
            ValueKind::Provider => self.of_entries(CatalogEntry::provider),
            ValueKind::Medium => self.of_entries(CatalogEntry::media),
            ValueKind::Run => self.run_names(),
            ValueKind::Tag => plain(texts(&self.runs(), |row| row.tags.clone())),
            ValueKind::Label => plain(texts(&self.runs(), |row| {
                row.labels.iter().map(|(name, value)| format!("{name}={value}")).collect()
            })),
            ValueKind::Host => plain(texts(&self.runs(), |row| vec![row.hostname.clone()])),
            ValueKind::Device => plain(texts(&self.runs(), |row| vec![row.device.clone()])),
            ValueKind::KeptTarget => plain(texts(&self.runs(), |row| vec![row.target.clone()])),
            ValueKind::Activity => plain(ActivityKind::ALL.map(ActivityKind::name)),
            ValueKind::Format => plain(Format::ALL.map(Format::name)),
            ValueKind::Units => plain(UnitSystem::ALL.map(UnitSystem::name)),
            ValueKind::PageFormat => plain(ReportFormat::names()),
            ValueKind::Chart => plain(ChartKind::ALL.map(ChartKind::name)),
            ValueKind::AnyChart => {
                let names = RunChart::ALL.map(RunChart::name).into_iter();
                plain(names.chain(ChartKind::ALL.map(ChartKind::name)).collect::<BTreeSet<_>>())
            }
            ValueKind::Pattern => plain(AccessPattern::ALL.map(AccessPattern::name)),
            ValueKind::Order => plain(VisitOrder::ALL.map(VisitOrder::name)),
            ValueKind::Content => plain(Content::ALL.map(Content::name)),
            ValueKind::Command => self.commands(),
            ValueKind::File => Vec::new(),
        };
        let takes_paths =
            matches!(kind, ValueKind::Target | ValueKind::Source | ValueKind::Suite | ValueKind::File);
        let paths = takes_paths && !PREFIXES.iter().any(|prefix| begun.starts_with(prefix));
        Completion { candidates, paths }
    }
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;
    /// Every command with the words that lead to it.
    fn walk(path: &[&str], command: &Command, visit: &mut dyn FnMut(&[&str], &Command)) {
        visit(path, command);
        for one in command.get_subcommands() {
            walk(&[path, &[one.get_name()]].concat(), one, visit);
        }
    }

    #[test]
    fn every_row_of_the_table_serves_an_argument() {
        let mut used = vec![false; VALUES.len()];
        let mut note = |path: &[&str], name: &str| {
            let is_of = |command: &str| command.is_empty() || path.first() == Some(&command);
            let row = VALUES.iter().position(|(command, known, _)| is_of(command) && *known == name);
            if let Some(row) = row {
                used[row] = true;
            }
        };
        walk(&[], &crate::commands::command(), &mut |path, command| {
            command.get_arguments().for_each(|arg| note(path, arg.get_id().as_str()));
        });
        let unused: Vec<_> = VALUES.iter().zip(used).filter(|(_, used)| !used).map(|(row, _)| row).collect();
        assert!(unused.is_empty(), "no argument is called so: {unused:?}");
    }

    #[test]
    fn what_is_shipped_completes_with_its_meaning() {
        let words: Vec<String> = ["bench", "--suite", "cloud-disk", "--only", ""].map(str::to_owned).into();
        let sources = Sources::new(&words);
        let values = |kind, begun: &str| sources.values(kind, begun).candidates;
        let has = |found: &[Candidate], value: &str| {
            found.iter().any(|one| one.value == value && !one.help.is_empty())
        };
        assert!(has(&values(ValueKind::Target, "sim:aws"), "sim:aws-gp3"));
        assert!(values(ValueKind::Target, "").is_empty());
        assert_eq!(values(ValueKind::Target, "si")[0].value, "sim:");
        assert!(has(&values(ValueKind::VolumeType, ""), "aws-gp2"));
        assert!(has(&values(ValueKind::Engine, ""), "io_uring"));
        assert!(has(&values(ValueKind::Profile, ""), "oltp"));
        let tests = Suite::load("cloud-disk", &engine_rows()).unwrap().tests;
        let ids: Vec<&str> = tests.iter().map(|test| test.id.as_str()).collect();
        let found = values(ValueKind::Test, "");
        assert_eq!(found.iter().map(|one| one.value.as_str()).collect::<Vec<_>>(), ids);
    }

    #[test]
    fn options_of_the_line_are_found_in_both_forms() {
        let check = |line: &str, expected: Option<&str>| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(Sources::new(&words).named("--suite"), expected, "{line}");
        };
        check("bench --suite a ", Some("a"));
        check("bench --suite=a ", Some("a"));
        check("bench --suites=a ", None);
        check("bench --suite", None);
    }
}
