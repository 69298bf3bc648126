//! The options that every command that runs tests takes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use fathom_assess::RunSettings;
use fathom_history::{HistoryPath, Location, is_tag, without_password};

use super::catalog::CatalogArguments;
use super::format_arguments::FormatArguments;
use crate::live::LiveArguments;
use crate::store;

/// Where a run is kept, and under which labels.
#[derive(Args, Clone, Debug, Default)]
pub struct KeepArguments {
    /// Label of the run (repeatable); provider and instance override detection, type=aws-gp2 names the volume type
    /// in the catalogue
    #[arg(long = "label", value_parser = label, value_name = "NAME=VALUE")]
    pub labels: Vec<(String, String)>,
    /// Tag of the run (repeatable), by which `compare tag:NAME` and `history list --tag NAME` find it
    #[arg(long = "tag", value_parser = tag, value_name = "NAME")]
    pub tags: Vec<String>,
    /// History to keep the run in: a file, or postgres://... [default: FATHOM_HISTORY, else the user's own file]
    #[arg(long, value_name = "FILE|URI", value_parser = location)]
    pub history: Option<Location>,
    /// Keep the run, simulated or not; --history and FATHOM_HISTORY imply it
    #[arg(long)]
    pub keep: bool,
}

impl KeepArguments {
    /// True where the user asks for it.
    pub fn is_asked_for(&self) -> bool {
        self.keep || store::named(self.history.clone()).is_some()
    }

    /// Where the run is kept, if it `is_kept`.
    pub fn place(&self, is_kept: bool) -> HistoryPath {
        HistoryPath { tags: self.tags.clone(), ..store::place(self.history.clone(), is_kept) }
    }

    /// The labels of the run.
    pub fn labels(&self) -> BTreeMap<String, String> {
        self.labels.iter().cloned().collect()
    }
}

/// The options of commands that run tests.
#[derive(Args)]
pub struct RunArguments {
    #[command(flatten, next_help_heading = "Output")]
    pub form: FormatArguments,
    #[command(flatten, next_help_heading = "History")]
    keeping: KeepArguments,
    /// Do not keep the run [default: measured runs are kept, simulated ones are not]
    #[arg(long, help_heading = "History", conflicts_with_all = ["history", "keep"])]
    no_history: bool,
    /// Write the report to a file as well; its ending chooses the format
    ///
    /// .html is a page with charts, .md Markdown, .json the document. `fathom report` writes them of any past run.
    #[arg(short = 'o', long = "output", alias = "report", help_heading = "Output", value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Use the page cache, for file systems without direct I/O
    #[arg(long, help_heading = "I/O")]
    buffered: bool,
    /// I/O engine: io_uring, libaio, psync, ... [default: io_uring]
    #[arg(long, help_heading = "I/O")]
    engine: Option<String>,
    /// Seed of all random choices, to repeat a run exactly
    #[arg(long, help_heading = "I/O", value_name = "NUMBER")]
    seed: Option<u64>,
    #[command(flatten, next_help_heading = "Live views")]
    pub live: LiveArguments,
    #[command(flatten, next_help_heading = "Catalogue")]
    pub catalog: CatalogArguments,
}

impl RunArguments {
    /// What is asked for on `target` by this command line.
    pub fn settings(
        self,
        target: PathBuf,
        size: Option<u64>,
        destroy: impl IntoIterator<Item = PathBuf>,
        command: &[OsString],
    ) -> RunSettings {
        RunSettings {
            target,
            size,
            engine: self.engine,
            buffered: self.buffered,
            destroy: destroy.into_iter().collect(),
            seed: self.seed,
            labels: self.keeping.labels(),
            earlier: Vec::new(),
            scheduled: None,
            types: self.catalog.types(),
            command: words(command),
        }
    }

    /// Where the run is kept.
    pub fn place(&self, is_simulated: bool) -> HistoryPath {
        self.keeping.place(self.keeps(is_simulated))
    }

    /// True where the run is to be kept.
    pub fn keeps(&self, is_simulated: bool) -> bool {
        !self.no_history && (self.keeping.is_asked_for() || !is_simulated)
    }
}

/// A command line for the record, beginning with the name that everybody knows the program by.
pub fn words(command: &[OsString]) -> Vec<String> {
    let given = command.iter().skip(1).map(|word| without_password(&word.to_string_lossy()).into_owned());
    std::iter::once("fathom".to_owned()).chain(given).collect()
}

/// The history that an argument names.
pub fn location(text: &str) -> Result<Location, std::convert::Infallible> {
    Ok(Location::new(text))
}

/// Reads a tag.
pub fn tag(text: &str) -> Result<String, String> {
    if is_tag(text) {
        Ok(text.to_owned())
    } else {
        Err("a tag cannot be a number or contain , ~ :".to_owned())
    }
}

/// Reads `NAME=VALUE`.
pub fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("write NAME=VALUE".to_owned()),
    }
}
