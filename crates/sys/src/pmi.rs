//! The process-manager interface, version 1: how the processes of a parallel job that a launcher started meet.
//!
//! MPICH's `mpiexec` (hydra), alone and inside batch systems, gives each process a socket (`PMI_FD`) with its rank and the number of
//! ranks. On it go lines of words `name=value`: the process asks, the launcher answers. It keeps a space of keys and values that every
//! process sees once all have entered a fence. Values have no blanks and a length that the launcher sets; encoding and division of
//! longer ones belong to the caller. A process that dies never enters the fence, so every wait has a deadline; what to do then is
//! the caller's decision, and [`Pmi1::abort`] ends the whole job.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::clock::monotonic_ns;

/// Longest line of a launcher that is read, bytes.
const MOST_LINE: usize = 64 << 10;

/// A process's connection to the launcher of its job.
#[derive(Debug)]
pub struct Pmi1 {
    stream: UnixStream,
    /// What was read behind the last line.
    left: Vec<u8>,
    rank: u32,
    size: u32,
    space: String,
    limits: Pmi1Limits,
}

/// Longest texts that the launcher takes, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pmi1Limits {
    /// Of a key.
    pub key: usize,
    /// Of a value.
    pub value: usize,
}

/// Why the launcher could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum PmiError {
    /// A variable of the launcher is missing or wrong.
    #[error("the environment has no valid {0}")]
    Environment(&'static str),
    /// The socket failed.
    #[error("the connection to the launcher failed")]
    Connection(#[source] io::Error),
    /// The launcher closed the socket.
    #[error("the launcher closed the connection")]
    Closed,
    /// No answer came in time.
    #[error("the launcher did not answer {0} in time")]
    Deadline(&'static str),
    /// Another answer than the one that was expected.
    #[error("the launcher answered {asked} by '{answer}'")]
    Answer {
        /// What was asked.
        asked: &'static str,
        /// The line.
        answer: String,
    },
    /// A key or value that the launcher does not take.
    #[error("the launcher takes no {what} of {length} bytes, or with blanks")]
    Text {
        /// Key or value.
        what: &'static str,
        /// Its length.
        length: usize,
    },
}

/// The words of a line.
type Words = BTreeMap<String, String>;

impl Pmi1 {
    /// Takes the socket that the launcher left to this process; `None` where none started it. `variable` looks up the environment.
    ///
    /// # Errors
    /// The variables are wrong; the launcher does not answer within `limit`, or speaks another version.
    pub fn from_environment(
        variable: impl Fn(&str) -> Option<String>,
        limit: Duration,
    ) -> Result<Option<Pmi1>, PmiError> {
        let Some(descriptor) = variable("PMI_FD") else { return Ok(None) };
        let number = |name: &'static str| -> Result<u32, PmiError> {
            variable(name).and_then(|text| text.parse().ok()).ok_or(PmiError::Environment(name))
        };
        let (rank, size) = (number("PMI_RANK")?, number("PMI_SIZE")?);
        let descriptor: i32 = descriptor.parse().map_err(|_| PmiError::Environment("PMI_FD"))?;
        // SAFETY: fcntl reads the flags of a descriptor, or fails for a number that is not open.
        let is_open = unsafe { libc::fcntl(descriptor, libc::F_GETFD) } >= 0;
        if !is_open || descriptor <= libc::STDERR_FILENO {
            return Err(PmiError::Environment("PMI_FD"));
        }
        // SAFETY: the descriptor is open, and the launcher left it to this process, which takes it once.
        let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Pmi1::connect(UnixStream::from(socket), rank, size, limit).map(Some)
    }

    /// Greets the launcher behind `stream`.
    ///
    /// # Errors
    /// It does not answer within `limit`, or speaks another version.
    pub fn connect(stream: UnixStream, rank: u32, size: u32, limit: Duration) -> Result<Pmi1, PmiError> {
        let limits = Pmi1Limits { key: 0, value: 0 };
        let mut pmi = Pmi1 { stream, left: Vec::new(), rank, size, space: String::new(), limits };
        let greeting = pmi.ask("cmd=init pmi_version=1 pmi_subversion=1", "init", limit)?;
        expect(&greeting, "init", "response_to_init")?;
        if greeting.get("pmi_version").map(String::as_str) != Some("1") {
            return Err(unexpected("init", &greeting));
        }
        let maxes = pmi.ask("cmd=get_maxes", "get_maxes", limit)?;
        expect(&maxes, "get_maxes", "maxes")?;
        let most = |name: &str| maxes.get(name).and_then(|text| text.parse().ok()).unwrap_or(0);
        pmi.limits = Pmi1Limits { key: most("keylen_max"), value: most("vallen_max") };
        let space = pmi.ask("cmd=get_my_kvsname", "get_my_kvsname", limit)?;
        expect(&space, "get_my_kvsname", "my_kvsname")?;
        pmi.space = space.get("kvsname").cloned().unwrap_or_default();
        Ok(pmi)
    }

    /// Number of this process, from 0.
    pub const fn rank(&self) -> u32 {
        self.rank
    }

    /// Processes of the job.
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// What the launcher takes.
    pub const fn limits(&self) -> Pmi1Limits {
        self.limits
    }

    /// Makes a value known to all processes once they have entered a fence.
    ///
    /// # Errors
    /// The launcher does not take it, or does not answer within `limit`.
    pub fn put(&mut self, key: &str, value: &str, limit: Duration) -> Result<(), PmiError> {
        check("key", key, self.limits.key)?;
        check("value", value, self.limits.value)?;
        let line = format!("cmd=put kvsname={} key={key} value={value}", self.space);
        let answer = self.ask(&line, "put", limit)?;
        expect(&answer, "put", "put_result")
    }

    /// The value of a key that a process has put before the last fence; `None` where none has.
    ///
    /// # Errors
    /// The launcher does not answer within `limit`.
    pub fn get(&mut self, key: &str, limit: Duration) -> Result<Option<String>, PmiError> {
        check("key", key, self.limits.key)?;
        let line = format!("cmd=get kvsname={} key={key}", self.space);
        let mut answer = self.ask(&line, "get", limit)?;
        match expect(&answer, "get", "get_result") {
            Ok(()) => Ok(answer.remove("value")),
            // Launchers have different numbers for a key that is not there.
            Err(_) if answer.get("cmd").map(String::as_str) == Some("get_result") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits until every process of the job has come here.
    ///
    /// # Errors
    /// One has not come within `limit`; the launcher does not say which.
    pub fn fence(&mut self, limit: Duration) -> Result<(), PmiError> {
        let answer = self.ask("cmd=barrier_in", "barrier", limit)?;
        expect(&answer, "barrier", "barrier_out")
    }

    /// Leaves the job.
    ///
    /// # Errors
    /// The launcher does not answer within `limit`.
    pub fn finalize(mut self, limit: Duration) -> Result<(), PmiError> {
        let answer = self.ask("cmd=finalize", "finalize", limit)?;
        expect(&answer, "finalize", "finalize_ack")
    }

    /// Asks the launcher to end all processes of the job with this exit code. The caller has to end itself.
    ///
    /// # Errors
    /// The launcher cannot be asked.
    pub fn abort(mut self, code: u8) -> Result<(), PmiError> {
        writeln!(self.stream, "cmd=abort exitcode={code}").map_err(PmiError::Connection)
    }

    fn ask(&mut self, line: &str, asked: &'static str, limit: Duration) -> Result<Words, PmiError> {
        let deadline = monotonic_ns().saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
        self.stream.write_all(format!("{line}\n").as_bytes()).map_err(PmiError::Connection)?;
        let answer = self.line(asked, deadline)?;
        Ok(words(&answer))
    }

    /// The next line, without its end.
    fn line(&mut self, asked: &'static str, deadline: u64) -> Result<String, PmiError> {
        loop {
            if let Some(end) = self.left.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.left.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            if self.left.len() > MOST_LINE {
                let answer = format!("a line of more than {MOST_LINE} bytes");
                return Err(PmiError::Answer { asked, answer });
            }
            let left = Duration::from_nanos(deadline.saturating_sub(monotonic_ns()));
            if left.is_zero() {
                return Err(PmiError::Deadline(asked));
            }
            self.stream.set_read_timeout(Some(left)).map_err(PmiError::Connection)?;
            let mut buffer = [0; 4096];
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(PmiError::Closed),
                Ok(count) => self.left.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Err(PmiError::Deadline(asked));
                }
                Err(error) => return Err(PmiError::Connection(error)),
            }
        }
    }
}

fn words(line: &str) -> Words {
    let pair = |word: &str| word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    line.split_whitespace().filter_map(pair).collect()
}

/// Refuses another answer than `command`, and one that tells of a failure.
fn expect(answer: &Words, asked: &'static str, command: &str) -> Result<(), PmiError> {
    let is_command = answer.get("cmd").map(String::as_str) == Some(command);
    let is_done = answer.get("rc").is_none_or(|code| code == "0");
    if is_command && is_done { Ok(()) } else { Err(unexpected(asked, answer)) }
}

fn unexpected(asked: &'static str, answer: &Words) -> PmiError {
    let words: Vec<String> = answer.iter().map(|(name, value)| format!("{name}={value}")).collect();
    PmiError::Answer { asked, answer: words.join(" ") }
}

fn check(what: &'static str, text: &str, most: usize) -> Result<(), PmiError> {
    // The limit counts a byte that ends the text in C.
    let fits = text.len() < most && !text.is_empty() && !text.contains(|c: char| c.is_whitespace());
    if fits { Ok(()) } else { Err(PmiError::Text { what, length: text.len() }) }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::sync::{Arc, Barrier, Mutex};
    use std::thread::{self, JoinHandle};

    use super::*;

    const LONG: Duration = Duration::from_secs(20);
    const SHORT: Duration = Duration::from_millis(50);

    /// What the ranks of a job share in their launcher.
    struct Manager {
        space: Mutex<BTreeMap<String, String>>,
        barrier: Barrier,
    }

    impl Manager {
        fn new(ranks: usize) -> Arc<Manager> {
            Arc::new(Manager { space: Mutex::default(), barrier: Barrier::new(ranks) })
        }

        /// Serves one process until it leaves; returns the line that it sent last.
        fn serve(self: Arc<Self>, stream: UnixStream) -> JoinHandle<String> {
            thread::spawn(move || {
                let mut out = stream.try_clone().unwrap();
                let mut last = String::new();
                for line in BufReader::new(stream).lines() {
                    let Ok(line) = line else { break };
                    last.clone_from(&line);
                    let Some(answer) = self.answer(&words(&line)) else { continue };
                    // In two pieces, as a socket may deliver them.
                    let (one, other) = answer.split_at(answer.len() / 2);
                    // A process that does not wait any longer may still have something to say.
                    let _ = out.write_all(one.as_bytes()).and_then(|()| out.write_all(other.as_bytes()));
                }
                last
            })
        }

        fn answer(&self, asked: &Words) -> Option<String> {
            let word = |name: &str| asked.get(name).cloned().unwrap_or_default();
            Some(match word("cmd").as_str() {
                "init" => "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n".to_owned(),
                "get_maxes" => "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=32\n".to_owned(),
                "get_my_kvsname" => "cmd=my_kvsname kvsname=kvs_1\n".to_owned(),
                "put" => {
                    assert_eq!(word("kvsname"), "kvs_1");
                    self.space.lock().unwrap().insert(word("key"), word("value"));
                    "cmd=put_result rc=0 msg=success\n".to_owned()
                }
                "get" => match self.space.lock().unwrap().get(&word("key")) {
                    Some(value) => format!("cmd=get_result rc=0 msg=success value={value}\n"),
                    None => "cmd=get_result rc=-1 msg=key_not_found value=unknown\n".to_owned(),
                },
                "barrier_in" => {
                    self.barrier.wait();
                    "cmd=barrier_out\n".to_owned()
                }
                "finalize" => "cmd=finalize_ack\n".to_owned(),
                _ => return None,
            })
        }
    }

    /// A process whose launcher answers these lines, whatever it is asked.
    fn scripted(answers: &'static [&'static str]) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().unwrap();
        thread::spawn(move || {
            let mut out = theirs.try_clone().unwrap();
            let asked = BufReader::new(theirs).lines().map_while(Result::ok);
            for (_, answer) in asked.zip(answers) {
                if out.write_all(answer.as_bytes()).is_err() {
                    break;
                }
            }
        });
        ours
    }

    #[test]
    fn ranks_exchange_values_behind_a_fence() {
        let manager = Manager::new(4);
        let ranks: Vec<JoinHandle<Vec<Option<String>>>> = (0..4)
            .map(|rank| {
                let (ours, theirs) = UnixStream::pair().unwrap();
                manager.clone().serve(theirs);
                thread::spawn(move || {
                    let mut pmi = Pmi1::connect(ours, rank, 4, LONG).unwrap();
                    assert_eq!((pmi.rank(), pmi.size(), pmi.limits().value), (rank, 4, 32));
                    pmi.put(&format!("host-{rank}"), &format!("h{rank}"), LONG).unwrap();
                    pmi.fence(LONG).unwrap();
                    let found =
                        (0..5).map(|other| pmi.get(&format!("host-{other}"), LONG).unwrap()).collect();
                    pmi.finalize(LONG).unwrap();
                    found
                })
            })
            .collect();
        for rank in ranks {
            let found: Vec<Option<String>> = rank.join().unwrap();
            let expected = ["h0", "h1", "h2", "h3"].map(|host| Some(host.to_owned()));
            assert_eq!(found, [&expected[..], &[None]].concat());
        }
    }

    #[test]
    fn a_fence_ends_at_its_deadline_and_the_job_can_be_aborted() {
        let manager = Manager::new(2);
        let (ours, theirs) = UnixStream::pair().unwrap();
        let served = manager.clone().serve(theirs);
        let mut pmi = Pmi1::connect(ours, 0, 2, LONG).unwrap();
        let error = pmi.fence(SHORT).unwrap_err();
        assert_eq!(error.to_string(), "the launcher did not answer barrier in time");
        pmi.abort(75).unwrap();
        // The other rank comes too late.
        manager.barrier.wait();
        assert_eq!(served.join().unwrap(), "cmd=abort exitcode=75");
    }

    #[test]
    fn texts_that_a_launcher_would_cut_are_refused() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        Manager::new(1).serve(theirs);
        let mut pmi = Pmi1::connect(ours, 0, 1, LONG).unwrap();
        for value in ["a b", "", "line\n", &"x".repeat(32)] {
            assert!(
                matches!(pmi.put("key", value, LONG), Err(PmiError::Text { what: "value", .. })),
                "{value}"
            );
        }
        pmi.put("key", &"x".repeat(31), LONG).unwrap();
        assert!(matches!(pmi.get(&"k".repeat(64), LONG), Err(PmiError::Text { what: "key", .. })));
    }

    #[test]
    fn launchers_that_speak_otherwise_are_named() {
        let message = |answers: &'static [&'static str]| {
            Pmi1::connect(scripted(answers), 0, 1, SHORT).unwrap_err().to_string()
        };
        assert_eq!(
            message(&["cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n"]),
            "the launcher answered init by 'cmd=response_to_init pmi_subversion=0 pmi_version=2 rc=0'"
        );
        assert!(message(&["cmd=response_to_init rc=-1\n"]).contains("rc=-1"));
        assert!(message(&["hello\n"]).starts_with("the launcher answered init"));
        let closed = message(&[]);
        assert!(closed.contains("in time") || closed.contains("closed"), "{closed}");
    }

    #[test]
    fn the_environment_says_whether_there_is_a_launcher() {
        let found = |set: &[(&str, &str)]| {
            let variable = |name: &str| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            Pmi1::from_environment(variable, SHORT)
                .map(|pmi| pmi.is_some())
                .map_err(|error| error.to_string())
        };
        assert_eq!(found(&[]), Ok(false));
        let missing = Err("the environment has no valid PMI_SIZE".to_owned());
        assert_eq!(found(&[("PMI_FD", "99"), ("PMI_RANK", "0")]), missing);
        let closed = Err("the environment has no valid PMI_FD".to_owned());
        for descriptor in ["-1", "1", "x", "1048570"] {
            assert_eq!(found(&[("PMI_FD", descriptor), ("PMI_RANK", "0"), ("PMI_SIZE", "2")]), closed);
        }
    }
}
