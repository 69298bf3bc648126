//! What a reader found in a source, and the record of it.

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
    /// The number of its group.
    pub group: u32,
    pub imported: ImportedTest,
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
        let names: Vec<(String, u32)> =
            self.tests.iter().map(|test| (test.name.clone(), test.group)).collect();
        let target = self.tests.iter().find_map(|test| {
            let disk = test.imported.disks.first().map(|disk| disk.name.clone());
            test.imported.load.target.clone().or(disk)
        });
        let activity = Activity::Import(ImportActivity { format, file: file.to_owned() });
        let header = RunHeader {
            command: ["fathom", "history", "import", file].map(str::to_owned).to_vec(),
            activity,
            target: target.unwrap_or_default(),
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_ms: self.started_unix_ms,
            notes: self.notes,
            ..RunHeader::default()
        };
        let mut record = RunRecord { header, status: TestStatus::Complete, ..RunRecord::default() };
        for mut test in self.tests {
            let beside = names.iter().filter(|(name, group)| *group == test.group && *name != test.name);
            test.imported.beside = beside.map(|(name, _)| name.clone()).collect();
            let test = test_record(test, self.started_unix_ms);
            if test.status == TestStatus::Failed {
                record.status = TestStatus::Failed;
            }
            record.push(test);
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
    let SourceTest { name, mut imported, .. } = test;
    for entry in &mut imported.entries {
        derive::fill(&imported.load, entry);
    }
    let error = imported.entries.iter().find_map(|entry| entry.error.filter(|&error| error != 0));
    let id = if name.trim().is_empty() { "test".to_owned() } else { name.clone() };
    let fio = load::command(&name, &imported.load.options);
    TestRecord {
        id,
        title: name,
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
