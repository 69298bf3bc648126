//! A run while it goes on, for people and programs: the full-screen view, the JSON lines and the OpenMetrics endpoint.
//!
//! All of them read one state, which the events of the run change on the thread that follows it. None of them holds that thread
//! up, and the run's own threads know nothing of them.

mod full_screen;
pub mod hub;
mod view;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use clap::Args;
use fathom_assess::{MeasurementEvent, MeasurementStep, StepObserver, findings_of};
use fathom_model::Nanos;
use fathom_model::units::UnitSystem;
use fathom_record::{RunHeader, RunRecord, TestRecord, TestStatus};
use fathom_report::live::json::LiveLine;
use fathom_report::live::{LiveStage, LiveState, LiveTest};
use fathom_runner::{LayoutProgress, RunControl, RunEvent, RunObserver};
use fathom_stats::{RunOutcome, Snapshot};
use fathom_sys::files::{PathRefusal, create_output};

use crate::exit::Complaint;
use crate::output;
use crate::output::diversion::{self, Standard};
use full_screen::{FullScreen, ViewSource};
pub use full_screen::{restore, restore_soon};
use hub::Endpoint;
use hub::LineStream;
pub use hub::{Hub, OpenToFollowers};
use view::NextWords;

/// Niceness of the threads that draw, write and answer: below that of the workers.
pub const NICE: i8 = 10;

/// What shows a run; the terminal and the streams are as they were once it is dropped.
#[derive(Default)]
pub struct LiveOutputs {
    hub: Option<Arc<Hub>>,
    screen: Option<FullScreen>,
    /// Standard error has lines of JSON alone.
    has_stderr: bool,
}

/// What the key `n` of a view does.
#[derive(Clone, Default)]
pub enum NextKey {
    /// There is no such key.
    #[default]
    Nothing,
    /// Ends the running test of this control, and goes on with the next.
    EndTest(RunControl),
    /// Shows the next device.
    ShowDevice,
}

impl NextKey {
    /// What a view says of it.
    const fn words(&self) -> Option<NextWords> {
        match self {
            NextKey::Nothing => None,
            NextKey::EndTest(_) => Some(view::END_TEST),
            NextKey::ShowDevice => Some(view::SHOW_DEVICE),
        }
    }
}

/// A run that is to be shown.
pub struct LiveRun {
    /// The steps that are planned, by id and title, as far as they are known.
    pub steps: Vec<(String, String)>,
    /// What the key for the next does.
    pub next: NextKey,
    /// Units of rates and amounts.
    pub units: UnitSystem,
    /// It is kept in a history, where other processes find it, and lasts.
    pub can_be_followed: bool,
}

impl LiveOutputs {
    /// Opens what `arguments` ask for; nothing where they ask for nothing.
    ///
    /// # Errors
    /// A file, an address or the terminal cannot be had.
    pub fn open(arguments: &LiveArguments, run: LiveRun) -> Result<LiveOutputs, Complaint> {
        if !arguments.is_asked_for() {
            let hub = run.can_be_followed.then(|| Arc::new(Hub::for_followers(LiveState::new(run.steps))));
            return Ok(LiveOutputs { hub, screen: None, has_stderr: false });
        }
        let has_stderr = arguments.streams.contains(&LiveStream::Lines(None));
        check_terminal(arguments.tui, has_stderr)?;
        let mut streams = Vec::new();
        let mut endpoints = Vec::new();
        for stream in &arguments.streams {
            match stream {
                LiveStream::Lines(path) => streams.push(open_lines(path.as_deref())?),
                LiveStream::Metrics { address, host_names } => {
                    let refused = |error| unavailable(&address.to_string(), &error);
                    let endpoint = Endpoint::listen(*address, host_names).map_err(refused)?;
                    endpoints.push((endpoint.address().map_err(refused)?, endpoint));
                }
            }
        }
        let LiveRun { steps, next, units, can_be_followed: _ } = run;
        let hub = Arc::new(Hub::new(LiveState::new(steps), streams));
        let mut outputs = LiveOutputs { hub: Some(hub.clone()), screen: None, has_stderr };
        if has_stderr {
            let told = hub.clone();
            diversion::divert(move |stream, bytes| stream == Standard::Error && tell(&told, bytes));
        }
        for (address, endpoint) in endpoints {
            endpoint.serve(hub.clone()).map_err(|error| no_thread(&error))?;
            output::warn(&format!("Live metrics: http://{address}/metrics"));
        }
        if arguments.tui {
            let screen = FullScreen::open(ViewSource { hub, next, units });
            outputs.screen = Some(screen.map_err(|error| no_thread(&error))?);
        }
        Ok(outputs)
    }

    /// The state that they show; `None` where nothing was asked for, and nobody can follow the run.
    pub fn hub(&self) -> Option<Arc<Hub>> {
        self.hub.clone()
    }

    /// Whether the terminal belongs to a view.
    pub fn has_screen(&self) -> bool {
        self.screen.is_some()
    }
}

impl Drop for LiveOutputs {
    fn drop(&mut self) {
        self.screen = None;
        if let Some(hub) = &self.hub {
            hub.change(Some(LiveLine::Ended), |state| state.enter(fathom_report::live::LiveStage::Ended));
            if self.has_stderr {
                diversion::end();
            }
            hub.finish();
        }
    }
}

/// Sends the lines of a message for people.
fn tell(hub: &Hub, bytes: &[u8]) -> bool {
    for line in String::from_utf8_lossy(bytes).lines() {
        hub.change(Some(LiveLine::Message(line)), |state| state.add_message(line));
    }
    true
}

/// A view needs the terminal for itself.
fn check_terminal(wants_screen: bool, has_stderr: bool) -> Result<(), Complaint> {
    if !wants_screen {
        return Ok(());
    }
    if has_stderr {
        let hint = "write the lines to a file: --live ndjson=FILE".to_owned();
        return Err(Complaint::usage("--tui and --live ndjson both use standard error", Some(hint)));
    }
    match full_screen::obstacle() {
        None => Ok(()),
        Some(obstacle) => {
            let hint = "omit --tui, or use --live ndjson or --live openmetrics".to_owned();
            Err(Complaint::usage(format!("--tui needs a terminal: {obstacle}"), Some(hint)))
        }
    }
}

/// A view and lines of JSON on standard output would share the terminal.
///
/// # Errors
/// They do.
pub fn check_beside_lines(arguments: &LiveArguments) -> Result<(), Complaint> {
    if arguments.tui && output::stdout_is_seen() {
        let hint = "redirect standard output: > FILE".to_owned();
        return Err(Complaint::usage("--tui and lines of JSON both need the terminal", Some(hint)));
    }
    Ok(())
}

fn open_lines(path: Option<&Path>) -> Result<LineStream, Complaint> {
    let file = match path {
        Some(path) => create_output(path).map_err(|error| {
            let hint = PathRefusal::of(&error).map(PathRefusal::hint);
            let hint = hint.unwrap_or("name a file in an existing directory, or a FIFO with a reader");
            let message = format!("cannot write {}: {}", path.display(), output::plain(&error));
            Complaint::usage(message, Some(hint.to_owned()))
        })?,
        None => output::stderr_file().map_err(|error| no_thread(&error))?,
    };
    LineStream::to(file).map_err(|error| no_thread(&error))
}

fn unavailable(address: &str, error: &io::Error) -> Complaint {
    let message = format!("cannot listen on {address}: {}", output::plain(error));
    let hint = "choose another address of this machine, or port 0: --live openmetrics=127.0.0.1:0";
    Complaint::usage(message, Some(hint.to_owned()))
}

fn no_thread(error: &io::Error) -> Complaint {
    let hint = "raise the number of processes (ulimit -u) and of open files (ulimit -n)".to_owned();
    Complaint::failed(format!("cannot show the run: {}", output::plain(error)), Some(hint))
}

/// Where the endpoint listens unless told otherwise.
const ENDPOINT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9797);

/// The options of commands that show a run while it goes on.
#[derive(Args, Clone, Debug, Default)]
pub struct LiveArguments {
    /// Show a full-screen view while it runs; press ? for its keys
    #[arg(long)]
    pub tui: bool,
    /// Stream live figures: ndjson[=FILE] to standard error or a file, openmetrics[=ADDR:PORT[,NAME...]] over HTTP,
    /// which clients reach by address, by the name of this host or by NAME [default address: 127.0.0.1:9797] (repeatable)
    #[arg(long = "live", value_name = "STREAM", value_parser = LiveStream::parse)]
    pub streams: Vec<LiveStream>,
}

impl LiveArguments {
    /// True where anything is to be shown.
    pub fn is_asked_for(&self) -> bool {
        self.tui || !self.streams.is_empty()
    }
}

/// One stream of live figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveStream {
    /// A JSON object per line, to a file or to standard error.
    Lines(Option<PathBuf>),
    /// OpenMetrics text over HTTP.
    Metrics {
        /// Where it listens.
        address: SocketAddr,
        /// Names by which clients reach it, besides those of this machine.
        host_names: Vec<String>,
    },
}

impl LiveStream {
    /// Reads `ndjson[=FILE]` or `openmetrics[=ADDR:PORT[,NAME...]]`.
    ///
    /// # Errors
    /// It is neither.
    pub fn parse(text: &str) -> Result<LiveStream, String> {
        let (kind, value) = text.split_once('=').map_or((text, None), |(kind, value)| (kind, Some(value)));
        match (kind, value) {
            ("ndjson", None) => Ok(LiveStream::Lines(None)),
            ("ndjson", Some("")) => Err("name a file after ndjson=, or write ndjson".to_owned()),
            ("ndjson", Some(path)) => Ok(LiveStream::Lines(Some(PathBuf::from(path)))),
            ("openmetrics", None) => Ok(LiveStream::Metrics { address: ENDPOINT, host_names: Vec::new() }),
            ("openmetrics", Some(value)) => {
                let mut parts = value.split(',');
                let address = parts.next().unwrap_or_default();
                let address = address.parse().map_err(|_| {
                    format!("'{address}' is not an address and a port, such as {ENDPOINT} or [::1]:9797")
                })?;
                let host_names: Vec<String> = parts.map(str::to_owned).collect();
                match host_names.iter().any(String::is_empty) {
                    true => Err("name a host after each comma".to_owned()),
                    false => Ok(LiveStream::Metrics { address, host_names }),
                }
            }
            _ => Err("use ndjson, ndjson=FILE, openmetrics or openmetrics=ADDR:PORT".to_owned()),
        }
    }
}

/// A run of one test that is shown while it goes on.
pub struct SingleTest {
    observer: LiveObserver<()>,
    left: TimeLeftCell,
    outputs: LiveOutputs,
}

impl SingleTest {
    /// Shown by `outputs`.
    pub fn new(outputs: LiveOutputs) -> SingleTest {
        let left = TimeLeftCell::default();
        SingleTest { observer: LiveObserver::new((), outputs.hub(), left.clone()), left, outputs }
    }

    /// The run begins, and its test.
    pub fn begin(&mut self, header: &RunHeader, id: &str, title: String) {
        self.observer.step(&MeasurementEvent::Begun(Box::new(header.clone())));
        let id = id.to_owned();
        let step = MeasurementStep { id, title, number: 1, of: Some(1), spent_ns: 0 };
        self.observer.step(&MeasurementEvent::StepBegun(step));
    }

    /// True where a view has the terminal.
    pub fn has_screen(&self) -> bool {
        self.outputs.has_screen()
    }

    /// The state of the run, where somebody may read it.
    pub fn hub(&self) -> Option<Arc<Hub>> {
        self.outputs.hub()
    }

    /// The run goes on.
    pub fn take(&mut self, event: &RunEvent) {
        if let RunEvent::Snapshot(snapshot) = event {
            self.left.set(snapshot.remaining_ns.map(Nanos));
        }
        event.tell(&mut self.observer);
    }

    /// Changes what is shown, and tells the streams.
    pub fn change(&self, line: Option<LiveLine<'_>>, change: impl FnOnce(&mut LiveState)) {
        if let Some(hub) = self.outputs.hub() {
            hub.change(line, change);
        }
    }

    /// The run has ended; the terminal is as it was.
    pub fn end(mut self, test: &TestRecord) {
        self.observer.step(&MeasurementEvent::StepEnded(Box::new(test.clone())));
    }
}

/// Time left as the command's own progress estimates it; `None` before it can.
pub type TimeLeftCell = Rc<Cell<Option<Nanos>>>;

/// Tells the command's own progress, and the hub where there is one.
pub struct LiveObserver<O> {
    progress: O,
    hub: Option<Arc<Hub>>,
    left: TimeLeftCell,
    /// The tests so far of each run that is measured in turns.
    records: BTreeMap<usize, RunRecord>,
    lane: usize,
}

impl<O> LiveObserver<O> {
    /// Tells `progress`, which estimates the time left in `left`, and `hub`.
    pub fn new(progress: O, hub: Option<Arc<Hub>>, left: TimeLeftCell) -> LiveObserver<O> {
        LiveObserver { progress, hub, left, records: BTreeMap::new(), lane: 0 }
    }

    /// What the tests so far tell.
    fn find(&self, hub: &Hub) {
        let findings: Vec<_> = self.records.values().flat_map(findings_of).collect();
        let known = hub.state().findings.clone();
        hub.change(None, |state| state.set_findings(findings.clone()));
        for finding in findings.iter().filter(|finding| !known.contains(finding)) {
            hub.change(Some(LiveLine::Finding(finding)), |_| {});
        }
    }
}

impl<O: RunObserver> RunObserver for LiveObserver<O> {
    fn layout(&mut self, progress: &LayoutProgress) {
        self.progress.layout(progress);
        if let Some(hub) = &self.hub {
            hub.change(Some(LiveLine::Layout), |state| {
                state.lay_out(progress.done_bytes, progress.total_bytes);
                state.time_left = self.left.get();
            });
        }
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        self.progress.snapshot(snapshot);
        if let Some(hub) = &self.hub {
            hub.change(Some(LiveLine::Snapshot), |state| {
                state.tick(snapshot);
                state.time_left = self.left.get();
            });
        }
    }

    fn wants_outcome_so_far(&mut self) -> bool {
        self.progress.wants_outcome_so_far()
    }

    fn next_outcome_ns(&self) -> Option<u64> {
        self.progress.next_outcome_ns()
    }

    fn takes_due_outcome(&mut self, elapsed_ns: u64) -> bool {
        self.progress.takes_due_outcome(elapsed_ns)
    }

    fn outcome_so_far(&mut self, outcome: &RunOutcome) {
        self.progress.outcome_so_far(outcome);
    }

    fn ends_phase(&mut self) -> bool {
        self.progress.ends_phase()
    }
}

impl<O: StepObserver> StepObserver for LiveObserver<O> {
    fn step(&mut self, event: &MeasurementEvent) {
        self.progress.step(event);
        if let MeasurementEvent::Lane(lane) = event {
            self.lane = *lane;
        }
        let Some(hub) = self.hub.clone() else { return };
        match event {
            MeasurementEvent::Begun(header) => {
                if hub.wants_findings {
                    let (status, header) = (TestStatus::Complete, (**header).clone());
                    self.records.insert(self.lane, RunRecord { status, header, ..RunRecord::default() });
                }
                hub.change(Some(LiveLine::Begun), |state| state.begin(header));
            }
            MeasurementEvent::StepBegun(step) => {
                let MeasurementStep { id, title, number, of, .. } = step.clone();
                let test = LiveTest { id, title, number, of };
                hub.change(Some(LiveLine::TestBegun), |state| state.begin_test(test));
            }
            MeasurementEvent::Waiting(_) => hub.change(None, |state| state.enter(LiveStage::Waiting)),
            MeasurementEvent::StepEnded(test) => {
                hub.change(None, |state| state.end_test(test));
                hub.change(Some(LiveLine::TestEnded(test)), |_| {});
                if let Some(record) = self.records.get_mut(&self.lane) {
                    record.tests.push((**test).clone());
                    self.find(&hub);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams() {
        let check = |text: &str, expected: Option<LiveStream>| {
            assert_eq!(LiveStream::parse(text).ok(), expected, "{text}");
        };
        let named = |address: &str, names: &[&str]| {
            let host_names = names.iter().map(|&name| name.to_owned()).collect();
            Some(LiveStream::Metrics { address: address.parse().unwrap(), host_names })
        };
        let at = |address: &str| named(address, &[]);
        check("ndjson", Some(LiveStream::Lines(None)));
        check("ndjson=a=b.ndjson", Some(LiveStream::Lines(Some("a=b.ndjson".into()))));
        check("openmetrics", at("127.0.0.1:9797"));
        check("openmetrics=0.0.0.0:80", at("0.0.0.0:80"));
        check("openmetrics=[::1]:0", at("[::1]:0"));
        check("openmetrics=0.0.0.0:80,a.example,b", named("0.0.0.0:80", &["a.example", "b"]));
        for text in [
            "", "json", "ndjson=", "openmetrics=", "openmetrics=9797", "openmetrics=host:1",
            "openmetrics=[::1]:0,",
        ] {
            check(text, None);
        }
    }
}
