//! Runs that go on: one connection to each that somebody follows, whatever the number of readers.
//!
//! The run sends lines to a thread here, which makes a view of them, at most twice a second, for all readers together.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fathom_history::{Location, RunId};
use fathom_report::html::site::{Site, run_path};
use fathom_report::live::FollowedRun;
use fathom_sys::clock::monotonic_ns;
use hyper::body::Bytes;

use super::events::event;
use crate::live::run_socket::connect;

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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use fathom_report::Style;

    use super::*;
    use crate::live::run_socket::listen;

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
}
