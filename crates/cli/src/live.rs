//! A run while it goes on, for people and programs: the full-screen view, the JSON lines and the OpenMetrics endpoint.
//!
//! All of them read one state, which the events of the run change on the thread that follows it. None of them holds that thread
//! up, and the run's own threads know nothing of them.

pub mod arguments;
mod endpoint;
mod followers;
mod full_screen;
mod hub;
mod lines;
pub mod observer;
pub mod run_socket;
pub mod single;
mod view;

use std::io;
use std::path::Path;
use std::sync::Arc;

use fathom_model::units::UnitSystem;
use fathom_report::live::LiveState;
use fathom_report::live::json::LiveLine;
use fathom_runner::RunControl;
use fathom_sys::files::{PathRefusal, create_output};

use crate::exit::Complaint;
use crate::output;
use crate::output::diversion::{self, Standard};
use arguments::{LiveArguments, LiveStream};
use endpoint::Endpoint;
use full_screen::{FullScreen, ViewSource};
pub use full_screen::{restore, restore_soon};
pub use hub::{Hub, OpenToFollowers};
use lines::LineStream;
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
