//! Which history a run goes to, and how its warnings reach the user.

use std::ffi::OsString;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use fathom_assess::{EarlierIdentification, TestKeeper, findings_of};
use fathom_history::{
    Error, Filter, History, HistoryPath, Kept, Location, PATIENCE, RunId, Sent, Store, Warning, default_path,
};
use fathom_record::{ActivityKind, RunHeader, RunRecord, TestRecord};
use fathom_report::formats::Format;
use fathom_report::{Style, TextWriter};
use fathom_sys::files::keep_history;

use crate::commands::format_arguments::FormatArguments;
use crate::commands::run_arguments::KeepArguments;
use crate::exit::{self, Complaint};
use crate::live::{Hub, OpenToFollowers};
use crate::output::{self, Bar};

/// The environment variable that names the history.
pub const VARIABLE: &str = "FATHOM_HISTORY";

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The history the user named: the flag, else the variable.
pub fn named(flag: Option<Location>) -> Option<Location> {
    flag.or_else(|| variable(VARIABLE).map(Location::new))
}

/// The history to use: the one named, else the user's own.
pub fn location(flag: Option<Location>) -> Option<Location> {
    let found = named(flag).or_else(|| default_path(variable).map(Location::File));
    // Whatever the command writes before it opens the history must leave that alone.
    found.as_ref().and_then(Location::file).into_iter().for_each(keep_history);
    found
}

/// The history to read.
///
/// # Errors
/// None was named, and this user has no home to keep one in.
pub fn existing(flag: Option<Location>) -> Result<Location, Complaint> {
    location(flag).ok_or_else(|| Complaint::usage(NO_PLACE, Some(NO_PLACE_HINT.to_owned())))
}

/// The message for a user without a home directory.
pub const NO_PLACE: &str = "cannot locate the history: HOME is not set";
const NO_PLACE_HINT: &str = "use --history, or set FATHOM_HISTORY or HOME";

/// Tells a user without a home that the run is going to be shown and then gone.
pub fn tell_of_no_place() {
    output::warn(&format!("warning: {NO_PLACE}; the run is not kept"));
    output::warn(&format!("hint: {NO_PLACE_HINT}"));
}

/// Where a run is kept; nowhere where `keep` says so.
pub fn place(flag: Option<Location>, keep: bool) -> HistoryPath {
    HistoryPath::new(keep.then(|| location(flag)).flatten())
}

/// The last run of `kind` on `target` that is kept, with its number; `None` where there is none.
///
/// # Errors
/// The history cannot be read.
pub fn last_run(
    place: &HistoryPath,
    kind: ActivityKind,
    target: &str,
) -> Result<Option<(RunId, RunRecord)>, Complaint> {
    let Some(location) = &place.history else { return Ok(None) };
    let Some(history) = History::open_if_there(location, PATIENCE)? else { return Ok(None) };
    let filter =
        Filter { target: Some(target.to_owned()), kind: Some(kind), newest: Some(1), ..Filter::default() };
    let mut listing = history.list(&filter)?;
    tell_of_unreadable(&listing.unreadable);
    let Some(row) = listing.rows.pop() else { return Ok(None) };
    let run = RunId(row.id as i64);
    Ok(Some((run, history.load(run)?)))
}

/// The run `id` of `history`. One that was killed has no findings, for they are stored at its end: its tests give them.
///
/// # Errors
/// It cannot be read.
pub fn load_run(history: &History, id: RunId) -> Result<RunRecord, Error> {
    let mut record = history.load(id)?;
    if record.lacks_end() && record.findings.is_empty() {
        record.findings = findings_of(&record);
    }
    Ok(record)
}

/// Most identifications that are looked at for the device of a run.
const MAX_IDENTIFICATIONS: usize = 8;

/// The latest identifications that are kept, the last one first; none where the history cannot be read at once.
pub fn identifications(place: &HistoryPath) -> Vec<EarlierIdentification> {
    let Some(location) = &place.history else { return Vec::new() };
    let Ok(history) = History::open_existing(location, Duration::ZERO) else { return Vec::new() };
    let newest = Some(MAX_IDENTIFICATIONS);
    let filter = Filter { kind: Some(ActivityKind::Identify), newest, ..Filter::default() };
    let Ok(listing) = history.list(&filter) else { return Vec::new() };
    let load = |id: u64| {
        let run = RunId(id as i64);
        EarlierIdentification::of(format!("identified by run {run}"), &history.load(run).ok()?)
    };
    listing.rows.iter().rev().filter_map(|row| load(row.id)).collect()
}

/// Tells the user that something could not be stored; the measurement goes on.
pub fn tell(warning: Option<Warning>) {
    let Some(warning) = warning else { return };
    output::warn(&format!("warning: {warning}"));
    if let Some(hint) = warning.hint() {
        output::warn(&format!("hint: {hint}"));
    }
}

/// Tells the user of earlier runs that were sent to the server, and of those that cannot be.
pub fn tell_of_sent(sent: &Sent) {
    for line in sent_lines(sent) {
        output::warn(&line);
    }
}

/// A line for each earlier run that was sent to the server, and for each that cannot be.
pub fn sent_lines(sent: &Sent) -> Vec<String> {
    let runs = sent.runs.iter().map(|(file, run)| {
        format!("fathom: sent the record in {} to the server as run {run}", file.display())
    });
    let errors = sent.errors.iter().map(|error| format!("warning: {}", exit::with_causes(error)));
    runs.chain(errors).collect()
}

/// Keeps the tests of a run in the history. Warnings go to standard error.
pub struct HistoryKeeper {
    place: HistoryPath,
    bar: Option<Bar>,
    /// Where they are kept, once the run has begun.
    pub store: Store,
    /// The state of the run, for those who follow it.
    pub hub: Option<Arc<Hub>>,
    open: Option<OpenToFollowers>,
    /// Warnings for the report of a run whose standard error a script expects to be empty; elsewhere the user is told of them.
    pub notes: Option<Vec<String>>,
}

impl HistoryKeeper {
    /// Keeps them in `place`; warnings do not disturb `bar`.
    pub fn new(place: HistoryPath, bar: Option<Bar>) -> HistoryKeeper {
        HistoryKeeper { place, bar, store: Store::None, hub: None, open: None, notes: None }
    }

    /// The same for a run whose state is in `hub`: others can follow it as long as it is not finished.
    pub fn followed(self, hub: Option<Arc<Hub>>) -> HistoryKeeper {
        HistoryKeeper { hub, ..self }
    }

    /// Keeps them where `arguments` ask for it; the user is warned where there is no place for it.
    pub fn asked_for(arguments: &KeepArguments, bar: Option<Bar>) -> HistoryKeeper {
        let keeps = arguments.is_asked_for();
        let place = arguments.place(keeps);
        if keeps && place.history.is_none() {
            tell_of_no_place();
        }
        HistoryKeeper::new(place, bar)
    }

    /// True where there is no place to keep a run in.
    pub const fn is_nowhere(&self) -> bool {
        self.place.history.is_none()
    }

    /// Begins to keep a run that has ended, with all its tests.
    #[must_use]
    pub fn keep_whole(mut self, record: &RunRecord) -> HistoryKeeper {
        self.begin(&record.header);
        record.tests.iter().for_each(|test| self.append(test));
        self
    }

    fn say(&mut self, warning: Option<Warning>) {
        if let (Some(notes), Some(warning)) = (&mut self.notes, &warning) {
            notes.push(warning.to_string());
            if !output::stderr_is_seen() {
                return;
            }
        }
        match &self.bar {
            Some(bar) if warning.is_some() => bar.suspend(|| tell(warning)),
            _ => tell(warning),
        }
    }

    /// Ends the run; says where it is kept.
    pub fn finish(&mut self, record: &RunRecord) -> Kept {
        let warning = self.store.finish(record.status, &record.header, &record.findings);
        // Who follows it finds it whole.
        self.open = None;
        self.say(warning);
        let sent = self.store.send_unsent(&self.place);
        match (&mut self.notes, &self.bar) {
            (Some(notes), _) => notes.extend(sent_lines(&sent)),
            (None, Some(bar)) => bar.suspend(|| tell_of_sent(&sent)),
            (None, None) => tell_of_sent(&sent),
        }
        self.store.kept()
    }

    /// Ends the run, prints its report with `show` and, in text, where the run is kept.
    ///
    /// # Errors
    /// Standard output cannot be written to.
    pub fn finish_and_print(
        &mut self,
        record: &RunRecord,
        form: &FormatArguments,
        show: impl FnOnce(&RunRecord, &Style, Format, &mut TextWriter) -> io::Result<()>,
    ) -> io::Result<Kept> {
        let kept = self.finish(record);
        let (format, style) = (form.format(), Style { run_id: run_id(&kept), ..form.style() });
        output::print(|out| {
            show(record, &style, format, out)?;
            if format == Format::Text { write_kept(&kept, out) } else { Ok(()) }
        })?;
        Ok(kept)
    }
}

impl TestKeeper for HistoryKeeper {
    fn begin(&mut self, header: &RunHeader) {
        let (store, warning) = Store::begin(&self.place, header);
        self.store = store;
        self.open = self.hub.as_ref().and_then(|hub| hub.open_to_followers(&self.place, &self.store.kept()));
        self.say(warning);
    }

    fn append(&mut self, test: &TestRecord) {
        let warning = self.store.append(test);
        self.say(warning);
    }
}

/// Tells the user of runs that are passed over.
pub fn tell_of_unreadable(errors: &[Error]) {
    for error in errors {
        output::warn(&format!("warning: {}", exit::with_causes(error)));
    }
    if !errors.is_empty() {
        output::warn("hint: `fathom history rm NUMBER` removes an unusable run");
    }
}

/// The number of a run in the history; `None` where it is not in one.
pub fn run_id(kept: &Kept) -> Option<u64> {
    match kept {
        Kept::Run(run) => u64::try_from(run.0).ok(),
        Kept::File(_) | Kept::Nowhere => None,
    }
}

/// Says below a report where the run is kept.
///
/// # Errors
/// Those of `out`.
pub fn write_kept(kept: &Kept, out: &mut TextWriter) -> io::Result<()> {
    if !matches!(kept, Kept::Nowhere) {
        writeln!(out)?;
    }
    match kept {
        Kept::Run(run) => writeln!(
            out,
            "Kept as run {run}. Details: fathom report {run} --full; page: fathom report {run} -o run.html"
        ),
        Kept::File(path) => writeln!(out, "Kept in {}.", path.display()),
        Kept::Nowhere => Ok(()),
    }
}
