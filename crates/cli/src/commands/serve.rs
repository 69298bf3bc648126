//! `fathom serve`: the history in a browser. Reads, and changes tags and notes where that is allowed; it measures nothing.
//!
//! To each run that goes on and that somebody follows there is one connection, whatever the number of readers: a thread makes a view of
//! its lines, at most twice a second, for all of them. The report of a run that has ended is made once.

mod access;
mod places;
mod reply;

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clap::Args;
use fathom_history::{Location, RunId};
use fathom_model::units::UnitSystem;
use fathom_report::Style;
use fathom_report::html::PageBody;
use fathom_report::html::site::{Site, run_path};
use fathom_report::live::FollowedRun;
use fathom_sys::clock::monotonic_ns;
use hyper::body::Bytes;

use super::run_arguments::location;
use crate::exit::{Complaint, Exit};
use crate::http::host_name;
use crate::http::{EventStream, Limits, Server, StreamPiece};
use crate::live::hub::connect;
use crate::{output, store};
use access::Access;
use access::Token;
use places::HistoryServer;

/// Readers have the CPUs after everything else: a measurement on this machine is not to feel them.
const NICE: i8 = 19;
const LIMITS: Limits =
    Limits { clients: 256, body_bytes: 16 << 10, stack_bytes: 2 << 20, nice: NICE, keeps_alive: true };

/// What `fathom serve` takes.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ServeArguments {
    /// Address and port to listen on; readers need a token unless it is a loopback address
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:9798")]
    listen: SocketAddr,
    /// Let readers tag, note and remove runs
    #[arg(long)]
    allow_write: bool,
    /// File with the token that readers need [default: none on loopback, else a random one is printed]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Name by which readers reach this server, besides localhost, the name of this host and IP addresses (repeatable)
    #[arg(long = "host-name", value_name = "NAME")]
    host_names: Vec<String>,
    /// Units: iec (MiB/s) or si (MB/s) [default: those of the expectations, else iec]
    #[arg(long, value_name = "UNITS")]
    units: Option<UnitSystem>,
    /// History to serve: a file, or postgres://... [default: FATHOM_HISTORY, else the user's own file]
    #[arg(long, value_name = "FILE|URI", value_parser = location)]
    history: Option<Location>,
}

const EXAMPLES: &str = "\
Serves until Ctrl-C. Never starts a measurement; its threads have the lowest priority (nice 19).

Examples:
  fathom serve                                 on http://127.0.0.1:9798/, for this machine alone
  fathom serve --listen 127.0.0.1:0            on a free port
  fathom serve --allow-write                   with tags, notes and removal
  fathom serve --listen 0.0.0.0:9798           for other machines, with a token that is printed
  fathom serve --listen 0.0.0.0:9798 --token-file ~/.fathom-token --host-name perf.example.org
  ssh -L 9798:127.0.0.1:9798 server fathom serve";

/// Serves the history until the program is ended.
///
/// # Errors
/// There is no history, no token, or the address cannot be had.
pub fn run(arguments: ServeArguments) -> Result<Exit, Complaint> {
    let history = store::existing(arguments.history)?;
    let history = history.absolute().map_err(|error| failed("cannot find the history", &error))?;
    let token = match &arguments.token_file {
        Some(path) => Some(Token::read(path)?),
        None if arguments.listen.ip().is_loopback() => None,
        None => Some(Token::random().map_err(|error| failed("cannot draw a token", &error))?),
    };
    let server = Server::listen(arguments.listen).map_err(|error| unavailable(arguments.listen, &error))?;
    let address = server.address().map_err(|error| unavailable(arguments.listen, &error))?;
    let is_own = arguments.token_file.is_some();
    let lines = announcement(&history, address, token.as_ref().filter(|_| !is_own), arguments.allow_write);
    let access = Access::new(token, arguments.host_names, address.port(), arguments.allow_write);
    let style = Style { show_fio: true, units: arguments.units, ..Style::local() };
    let site = Site { style, can_write: arguments.allow_write };
    let handler = Arc::new(HistoryServer::new(history, access, site));
    server.serve(handler, LIMITS).map_err(|error| failed("cannot start a thread", &error))?;
    output::print(|out| lines.iter().try_for_each(|line| writeln!(out, "{line}")))?;
    loop {
        // Nothing is lost by a signal, which ends the program.
        std::thread::park();
    }
}

/// What is said at the start; `token` is one that nobody knows yet.
fn announcement(
    history: &Location,
    address: SocketAddr,
    token: Option<&Token>,
    can_write: bool,
) -> Vec<String> {
    let host = match address.ip() {
        ip if ip.is_unspecified() => host_name(),
        _ => None,
    };
    let place = host.map_or(address.to_string(), |name| format!("{name}:{}", address.port()));
    let mut lines = vec![format!("Serving {history}; Ctrl-C ends it.")];
    match token {
        None => lines.push(format!("Open http://{place}/")),
        Some(token) => {
            lines.push(format!("Open http://{place}/login?token={}", token.text()));
            lines.push(format!("Token: {}", token.text()));
        }
    }
    if !address.ip().is_loopback() {
        lines.push("Connections are not encrypted: use a network you trust, or a proxy with TLS.".to_owned());
    }
    if can_write {
        lines.push("Readers may tag, note and remove runs.".to_owned());
    }
    lines
}

fn unavailable(address: SocketAddr, error: &io::Error) -> Complaint {
    let hint = "choose another port, or 0 for a free one: --listen 127.0.0.1:0";
    Complaint::usage(format!("cannot listen on {address}: {}", output::plain(error)), Some(hint.to_owned()))
}

fn failed(what: &str, error: &io::Error) -> Complaint {
    Complaint::failed(format!("{what}: {}", output::plain(error)), None)
}

/// Least time between two views.
const APART_NS: u64 = 500_000_000;
/// A run is asked for lines at most this long before it is seen whether somebody still follows it.
const WAIT: Duration = Duration::from_secs(1);
/// A run that nobody follows any more is left after this time.
const LINGER_NS: u64 = 5_000_000_000;
/// Longest line of a run.
const LINE_BYTES: usize = 4 << 20;
const STACK_BYTES: usize = 1 << 20;

/// The runs that are followed.
#[derive(Default)]
pub struct Follows(Mutex<BTreeMap<RunId, Arc<Follow>>>);

/// A run that is followed.
#[derive(Default)]
pub struct Follow {
    news: Mutex<News>,
    readers: AtomicUsize,
}

/// The latest of a run.
#[derive(Clone, Default)]
pub struct News {
    /// Changes with each event; 0 before the first.
    pub version: u64,
    /// The latest event.
    pub event: Bytes,
    /// None follows.
    pub has_ended: bool,
}

/// One who follows a run; counts itself out.
pub struct Reader(Arc<Follow>);

impl Reader {
    /// The latest of the run.
    pub fn news(&self) -> News {
        self.0.news().clone()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.readers.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Follow {
    fn news(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, event: Bytes, has_ended: bool) {
        let mut news = self.news();
        *news = News { version: news.version + 1, event, has_ended };
    }
}

impl Follows {
    /// Follows `run`, with all others who do.
    ///
    /// # Errors
    /// It does not go on, or is not of this user.
    pub fn read(self: &Arc<Self>, history: &Location, run: RunId, site: &Site) -> io::Result<Reader> {
        let mut follows = self.follows();
        let known = follows.get(&run).filter(|follow| !follow.news().has_ended).cloned();
        let follow = match known {
            Some(follow) => follow,
            None => {
                let stream = connect(history, run)?;
                stream.set_read_timeout(Some(WAIT))?;
                let follow = Arc::new(Follow::default());
                let (all, followed, site) = (self.clone(), follow.clone(), site.clone());
                let read = move || {
                    take_lines(stream, &followed, &site);
                    all.end(run, &followed);
                };
                std::thread::Builder::new().name("follow".to_owned()).stack_size(STACK_BYTES).spawn(read)?;
                follows.insert(run, follow.clone());
                follow
            }
        };
        follow.readers.fetch_add(1, Ordering::AcqRel);
        Ok(Reader(follow))
    }

    fn follows(&self) -> MutexGuard<'_, BTreeMap<RunId, Arc<Follow>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whoever comes later begins anew.
    fn end(&self, run: RunId, follow: &Arc<Follow>) {
        let mut follows = self.follows();
        if follows.get(&run).is_some_and(|known| Arc::ptr_eq(known, follow)) {
            follows.remove(&run);
        }
        follow.publish(ended(run), true);
    }
}

/// The last event of `run`: where its report is.
pub fn ended(run: RunId) -> Bytes {
    event("end", &run_path(u64::try_from(run.0).unwrap_or_default()))
}

/// Takes the lines of a run to their end, or until nobody follows it any more.
fn take_lines(stream: UnixStream, follow: &Follow, site: &Site) {
    let mut lines = BufReader::new(stream);
    let (mut run, mut line) = (FollowedRun::default(), Vec::new());
    let (mut is_new, mut published_ns, mut read_ns) = (false, 0, monotonic_ns());
    while line.len() < LINE_BYTES {
        let is_whole = match lines.read_until(b'\n', &mut line) {
            Ok(0) => return,
            Ok(_) => line.ends_with(b"\n"),
            Err(error) if is_wait(&error) => false,
            Err(_) => return,
        };
        if is_whole {
            is_new |= run.take(&String::from_utf8_lossy(&line));
            line.clear();
        }
        let now = monotonic_ns();
        if follow.readers.load(Ordering::Acquire) > 0 {
            read_ns = now;
        } else if now - read_ns > LINGER_NS {
            return;
        }
        // What has been sent already is newer.
        let has_more = lines.buffer().contains(&b'\n');
        if is_new && !has_more && now - published_ns >= APART_NS {
            follow.publish(event("view", &site.live_sections(&run.view())), false);
            (is_new, published_ns) = (false, now);
        }
    }
}

fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// After so long without news, a comment shows whether the reader is still there.
const QUIET_NS: u64 = 15_000_000_000;

/// An event of this name, whose text may have several lines.
pub fn event(name: &str, text: &str) -> Bytes {
    let lines: String = text.lines().map(|line| format!("data: {line}\n")).collect();
    format!("event: {name}\n{lines}\n").into()
}

/// The news of a run; a reader who is slow gets the latest.
pub struct RunEvents {
    reader: Reader,
    /// The version that was sent last.
    sent: u64,
    sent_ns: u64,
    has_ended: bool,
}

impl RunEvents {
    /// All news from now on.
    pub fn new(reader: Reader) -> RunEvents {
        RunEvents { reader, sent: 0, sent_ns: monotonic_ns(), has_ended: false }
    }
}

impl EventStream for RunEvents {
    fn next(&mut self) -> StreamPiece {
        if self.has_ended {
            return StreamPiece::End;
        }
        let (news, now) = (self.reader.news(), monotonic_ns());
        if news.version != self.sent {
            (self.sent, self.sent_ns, self.has_ended) = (news.version, now, news.has_ended);
            return StreamPiece::Bytes(news.event);
        }
        if now - self.sent_ns >= QUIET_NS {
            self.sent_ns = now;
            return StreamPiece::Bytes(Bytes::from_static(b":\n\n"));
        }
        StreamPiece::Nothing
    }
}

/// One event, and no other.
pub struct LastEvent(pub Option<Bytes>);

impl EventStream for LastEvent {
    fn next(&mut self) -> StreamPiece {
        self.0.take().map_or(StreamPiece::End, StreamPiece::Bytes)
    }
}

/// Reports that are kept.
const MOST: usize = 16;

/// Reports by their runs; several are compared.
#[derive(Default)]
pub struct ReportCache(Mutex<VecDeque<(Vec<RunId>, Arc<PageBody>)>>);

impl ReportCache {
    /// The report of `runs`, if it is known.
    pub fn get(&self, runs: &[RunId]) -> Option<Arc<PageBody>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = known.iter().position(|(of, _)| of == runs)?;
        let entry = known.remove(place)?;
        let body = entry.1.clone();
        known.push_front(entry);
        Some(body)
    }

    /// Keeps the report of `runs`, in place of the one that was not asked for the longest.
    pub fn keep(&self, runs: Vec<RunId>, body: Arc<PageBody>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(of, _)| *of != runs);
        known.push_front((runs, body));
        known.truncate(MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::hub::listen;
    use fathom_report::Style;
    use std::io::Write;

    #[test]
    fn a_token_is_printed_only_where_nobody_knows_it() {
        let (history, token) = (Location::new("/h.db"), Token::random().unwrap());
        let address = "192.0.2.1:80".parse().unwrap();
        let lines = announcement(&history, address, Some(&token), false).join("\n");
        assert!(lines.contains(&format!("http://192.0.2.1:80/login?token={}", token.text())), "{lines}");
        let lines = announcement(&history, "127.0.0.1:9798".parse().unwrap(), None, true);
        assert_eq!(lines[1], "Open http://127.0.0.1:9798/");
        assert_eq!(lines.len(), 3);
    }

    fn wait_for(reader: &Reader, wanted: impl Fn(&News) -> bool) -> News {
        loop {
            let news = reader.news();
            if wanted(&news) {
                return news;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn all_readers_share_one_connection_to_the_end_of_the_run() {
        let history = Location::new(format!("/no/such/follow/{}/h.db", std::process::id()));
        let (follows, site) =
            (Arc::new(Follows::default()), Site { style: Style::default(), can_write: false });
        let run = RunId(5);
        assert!(follows.read(&history, run, &site).is_err(), "it does not go on");
        let listener = listen(&history, run).unwrap();
        let one = follows.read(&history, run, &site).unwrap();
        let other = follows.read(&history, run, &site).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        assert!(listener.accept().is_err(), "there is one connection");
        stream.write_all(b"{\"type\":\"state\",\"stage\":\"measuring\"}\nno line\n").unwrap();
        for reader in [&one, &other] {
            let news = wait_for(reader, |news| news.version > 0);
            let text = String::from_utf8_lossy(&news.event).into_owned();
            assert!(text.starts_with("event: view\ndata: ") && text.contains("measuring"), "{text}");
        }
        drop((stream, listener));
        let last = wait_for(&one, |news| news.has_ended);
        assert_eq!(last.event, "event: end\ndata: /runs/5\n\n");
        assert!(follows.follows().is_empty());
    }

    #[test]
    fn events_have_their_text_in_lines() {
        assert_eq!(event("view", "a\nb: c\n"), "event: view\ndata: a\ndata: b: c\n\n");
        let mut last = LastEvent(Some(event("end", "/")));
        assert!(matches!(last.next(), StreamPiece::Bytes(_)) && matches!(last.next(), StreamPiece::End));
    }

    #[test]
    fn reports_that_are_asked_for_stay() {
        let (cache, body) = (ReportCache::default(), Arc::new(PageBody::default()));
        for run in 0..MOST as i64 {
            cache.keep(vec![RunId(run)], body.clone());
        }
        assert!(cache.get(&[RunId(0)]).is_some() && cache.get(&[RunId(0), RunId(1)]).is_none());
        cache.keep(vec![RunId(99)], body);
        assert!(cache.get(&[RunId(0)]).is_some() && cache.get(&[RunId(1)]).is_none());
    }
}
