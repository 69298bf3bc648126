//! What a reader found in a source, and the record of it.

use std::collections::BTreeMap;

use fathom_record::import::{ImportedEntry, ImportedGroup, ImportedTest, MissingFigure};
use fathom_record::{
    Activity, ImportActivity, ImportFormat, Observed, RunHeader, RunRecord, TestRecord, TestStatus,
};

use crate::{ImportError, derive, load};

/// The tests of a source.
#[derive(Debug, Default)]
pub(crate) struct SourceReport {
    pub tests: Vec<SourceTest>,
    pub notes: Vec<String>,
    /// Start of the run, ms since the epoch; 0 where the source does not say.
    pub started_unix_ms: u64,
}

/// One test.
#[derive(Debug, Default)]
pub(crate) struct SourceTest {
    pub name: String,
    /// What the page says above it, where the name does not tell it from other tests.
    pub heading: String,
    /// The number of its group.
    pub group: u32,
    /// Nothing ran together with it: it is a row of a table.
    pub is_row: bool,
    /// The number of its output, of several in one text.
    pub output: u32,
    /// The first line of that output, where it is known.
    pub line: u64,
    /// Start of the output, where that is not the run's.
    pub started_unix_ms: u64,
    pub imported: ImportedTest,
}

impl SourceTest {
    /// Tests of the same output and group ran together.
    fn ran_with(&self) -> (u32, u32) {
        (self.output, self.group)
    }
}

impl SourceReport {
    /// The test of this name and group, a new one where there is none.
    pub fn test(&mut self, name: &str, group: u32) -> &mut SourceTest {
        let found = self.tests.iter().position(|test| test.name == name && test.group == group);
        let index = found.unwrap_or_else(|| {
            self.tests.push(SourceTest { name: name.to_owned(), group, ..SourceTest::default() });
            self.tests.len() - 1
        });
        &mut self.tests[index]
    }

    /// As an output that begins at a line.
    pub fn at(mut self, line: u64) -> SourceReport {
        self.tests.iter_mut().for_each(|test| test.line = line);
        self
    }

    /// The line that it begins at.
    pub fn line(&self) -> u64 {
        self.tests.first().map_or(0, |test| test.line)
    }

    /// Adds the tests of another output.
    pub fn append(&mut self, other: SourceReport) {
        let output = self.tests.last().map_or(0, |test| test.output + 1);
        let started_unix_ms = other.started_unix_ms;
        self.tests.extend(other.tests.into_iter().map(|test| SourceTest { output, started_unix_ms, ..test }));
        self.notes.extend(other.notes);
        let known = [self.started_unix_ms, started_unix_ms].into_iter().filter(|&ms| ms > 0);
        self.started_unix_ms = known.min().unwrap_or(0);
    }

    /// Gives the figures of a group to its tests.
    pub fn set_group(&mut self, figures: &ImportedGroup) {
        for test in self.tests.iter_mut().filter(|test| test.group == figures.id) {
            test.imported.group = Some(figures.clone());
        }
    }

    /// The record.
    ///
    /// # Errors
    /// No test has a figure.
    pub fn record(mut self, format: ImportFormat, file: &str) -> Result<RunRecord, ImportError> {
        self.tests.retain(|test| {
            !test.imported.missing.is_empty()
                || !test.imported.stated.is_empty()
                || test.imported.entries.iter().any(|entry| entry.error.is_some() || *entry != named(entry))
        });
        if self.tests.is_empty() {
            return Err(ImportError::new(
                1,
                format!("the {} has no figure", format.title()),
                "import the whole output of the program, with the lines of its results",
            ));
        }
        let mut groups: BTreeMap<(u32, u32), Vec<String>> = BTreeMap::new();
        for test in self.tests.iter().filter(|test| !test.is_row) {
            groups.entry(test.ran_with()).or_default().push(test.name.clone());
        }
        let mut targets: Vec<String> = Vec::new();
        for SourceTest { imported, .. } in &self.tests {
            let disk = imported.disks.first().map(|disk| disk.name.clone());
            let target = imported.load.target.clone().or(disk);
            targets.extend(target.filter(|target| !targets.contains(target)));
        }
        let activity = Activity::Import(ImportActivity { format, file: file.to_owned() });
        let header = RunHeader {
            command: ["fathom", "history", "import", file].map(str::to_owned).to_vec(),
            activity,
            target: targets.join(","),
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_ms: self.started_unix_ms,
            notes: self.notes,
            ..RunHeader::default()
        };
        let mut record = RunRecord { header, status: TestStatus::Complete, ..RunRecord::default() };
        let started_unix_ms = self.started_unix_ms;
        let tests = self.tests.into_iter().map(|mut test| {
            if !test.is_row {
                let beside = groups[&test.ran_with()].iter().filter(|name| **name != test.name);
                test.imported.beside = beside.cloned().collect();
            }
            let own = test.started_unix_ms;
            test_record(test, if own > 0 { own } else { started_unix_ms })
        });
        record.extend(tests);
        for test in &mut record.tests {
            // All but the first test of a name have a number.
            if !test.title.is_empty() {
                test.title.clone_from(&test.id);
            }
            if test.status == TestStatus::Failed {
                record.status = TestStatus::Failed;
            }
        }
        Ok(record)
    }
}

/// What is left of an entry without figures.
fn named(entry: &ImportedEntry) -> ImportedEntry {
    ImportedEntry {
        name: entry.name.clone(),
        jobs: entry.jobs,
        description: entry.description.clone(),
        reported: entry.reported.clone(),
        ..ImportedEntry::default()
    }
}

fn test_record(test: SourceTest, started_unix_ms: u64) -> TestRecord {
    let SourceTest { name, heading, mut imported, .. } = test;
    for entry in &mut imported.entries {
        derive::fill(&imported.load, entry);
    }
    let error = imported.entries.iter().find_map(|entry| entry.error.filter(|&error| error != 0));
    let fio = load::command(&name, &imported.load.options);
    let title = if heading.is_empty() { name } else { heading };
    let id = if title.trim().is_empty() { "test".to_owned() } else { title.clone() };
    TestRecord {
        id,
        title,
        status: if error.is_some() { TestStatus::Failed } else { TestStatus::Complete },
        reason: error.map(|error| format!("{} reported error {error}", tool(&imported))),
        fio,
        started_unix_ms,
        elapsed_ns: imported.runtime_ns(),
        observed: Some(Observed::Import(Box::new(imported))),
        ..TestRecord::default()
    }
}

fn tool(imported: &ImportedTest) -> &str {
    if imported.tool.is_empty() { "the program" } else { &imported.tool }
}

/// Adds a figure that is missing, once.
pub(crate) fn miss(missing: &mut Vec<MissingFigure>, figure: MissingFigure) {
    if !missing.contains(&figure) {
        missing.push(figure);
    }
}
