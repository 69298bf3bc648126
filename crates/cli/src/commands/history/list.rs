//! `fathom history list`: the runs, newest last.

use clap::Args;
use fathom_history::{Filter, History, Listing, Location, PATIENCE};
use fathom_record::HistoryRow;
use fathom_report::formats::Format;
use fathom_report::history;
use fathom_report::view::Block;

use super::filter::FilterArguments;
use crate::commands::format_arguments::FormatArguments;
use crate::exit::{Complaint, Exit};
use crate::store;

/// Runs that a text lists unless it is asked for more.
const USUAL: usize = 100;

/// What `fathom history list` takes.
#[derive(Args)]
pub struct ListArguments {
    #[command(flatten)]
    form: FormatArguments,
    /// List only the newest COUNT runs [default: 100 in text and Markdown, all in CSV and JSON]
    #[arg(long, value_name = "COUNT")]
    newest: Option<usize>,
    /// List all runs
    #[arg(long, conflicts_with = "newest")]
    all: bool,
    #[command(flatten)]
    filter: FilterArguments,
}

impl ListArguments {
    /// How many of the newest runs are listed.
    fn most(&self) -> Option<usize> {
        let is_for_people = matches!(self.form.format(), Format::Text | Format::Markdown);
        self.newest.or((is_for_people && !self.all).then_some(USUAL))
    }
}

/// Lists the runs.
///
/// # Errors
/// The history cannot be read.
pub fn run(list: &ListArguments, location: &Location) -> Result<Exit, Complaint> {
    // A user who never kept a run has an empty list, not an error.
    let Some(history) = History::open_if_there(location, PATIENCE)? else {
        return write(list, &[], &list.filter.none(&Listing::default()), false);
    };
    // One more tells whether there are older ones.
    let most = list.most();
    let listing = history.list(&list.filter.filter(most.map(|most| most.saturating_add(1))))?;
    store::tell_of_unreadable(&listing.unreadable);
    let none = match listing.rows.is_empty() {
        true => list.filter.none(&history.list(&Filter::default())?),
        false => String::new(),
    };
    let beyond = most.map_or(0, |most| listing.rows.len().saturating_sub(most));
    write(list, &listing.rows[beyond..], &none, beyond > 0 && list.newest.is_none())
}

fn write(list: &ListArguments, rows: &[HistoryRow], none: &str, is_cut: bool) -> Result<Exit, Complaint> {
    let rest = is_cut.then(|| format!("The newest {USUAL} runs; --all lists the older ones too."));
    list.form.print(
        || {
            let mut view = history::view(rows, none, &list.form.style());
            view.push("", [Block::Notes(rest.into_iter().collect())]);
            view
        },
        |out| history::render_json(rows, out),
    )?;
    Ok(Exit::Done)
}
