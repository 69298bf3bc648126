//! The options that every command that runs tests takes.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use fathom_assess::RunSettings;
use fathom_history::HistoryPath;

use super::catalog_arguments::CatalogArguments;
use super::format_arguments::FormatArguments;
use crate::store;

/// What is said of a run, whatever it measures.
#[derive(Args)]
pub struct RunArguments {
    #[command(flatten)]
    pub form: FormatArguments,
    /// Label of the run (repeatable); provider and instance override detection, type=aws-gp2 names the volume type
    /// in the catalogue
    #[arg(long = "label", value_parser = label, value_name = "NAME=VALUE")]
    labels: Vec<(String, String)>,
    /// History file to keep the run in [default: FATHOM_HISTORY, else the user's own]
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// Do not keep the run
    #[arg(long, conflicts_with = "history")]
    no_history: bool,
    /// Keep a simulated run too: without it, --history or FATHOM_HISTORY, only measured runs are kept
    #[arg(long, conflicts_with = "no_history")]
    keep: bool,
    /// Use the page cache, for file systems without direct I/O
    #[arg(long)]
    buffered: bool,
    /// I/O engine: io_uring, libaio, psync, ... [default: io_uring]
    #[arg(long)]
    engine: Option<String>,
    /// Seed of all random choices, to repeat a run exactly
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    #[command(flatten)]
    pub catalog: CatalogArguments,
}

impl RunArguments {
    /// What is asked for on `target` by this command line.
    pub fn settings(
        self,
        target: PathBuf,
        size: Option<u64>,
        destroy: Vec<PathBuf>,
        command: &[OsString],
    ) -> RunSettings {
        RunSettings {
            target,
            size,
            engine: self.engine,
            buffered: self.buffered,
            destroy,
            seed: self.seed,
            labels: self.labels.into_iter().collect(),
            types: self.catalog.types(),
            command: words(command),
        }
    }

    /// Where the run is kept.
    pub fn place(&self, is_simulated: bool) -> HistoryPath {
        store::place(self.history.clone(), self.keeps(is_simulated))
    }

    /// True where the run is to be kept.
    pub fn keeps(&self, is_simulated: bool) -> bool {
        let is_asked_for = self.keep || store::named(self.history.clone()).is_some();
        !self.no_history && (is_asked_for || !is_simulated)
    }
}

/// A command line for the record, beginning with the name that everybody knows the program by.
fn words(command: &[OsString]) -> Vec<String> {
    let said = command.iter().skip(1).map(|word| word.to_string_lossy().into_owned());
    std::iter::once("fathom".to_owned()).chain(said).collect()
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("write NAME=VALUE".to_owned()),
    }
}
