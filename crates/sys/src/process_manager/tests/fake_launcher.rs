//! A launcher for tests: it serves its end of socket pairs, in version 1 or 2 of the interface.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Barrier, Mutex};
use std::thread::{self, JoinHandle};

use super::super::connection::Inherited;
use super::super::pmi::Words;

/// The interface of a launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
}

/// What the ranks of a job share in their launcher.
pub(super) struct FakeLauncher {
    version: Version,
    space: Mutex<BTreeMap<String, String>>,
    barrier: Barrier,
    size: u32,
}

impl FakeLauncher {
    pub(super) fn new(version: Version, size: u32) -> Arc<FakeLauncher> {
        let barrier = Barrier::new(size as usize);
        Arc::new(FakeLauncher { version, space: Mutex::default(), barrier, size })
    }

    /// The socket of a rank. The thread returns the last request when the rank has left.
    pub(super) fn start(self: &Arc<Self>, rank: u32) -> (Inherited, JoinHandle<String>) {
        let (stream, theirs) = UnixStream::pair().unwrap();
        let launcher = Arc::clone(self);
        let served = thread::spawn(move || launcher.serve(theirs, rank));
        (Inherited { stream, rank, size: self.size }, served)
    }

    /// Waits in the barrier as one more rank.
    pub(super) fn enter_barrier(&self) {
        self.barrier.wait();
    }

    fn serve(&self, stream: UnixStream, rank: u32) -> String {
        let mut out = stream.try_clone().unwrap();
        let mut input = BufReader::new(stream);
        let mut last = String::new();
        let mut is_greeted = false;
        while let Some(request) = self.request(&mut input, is_greeted) {
            let asked = match is_greeted && self.version == Version::Two {
                true => Words::between_semicolons(&request),
                false => Words::between_blanks(&request),
            };
            if let Some(answer) = self.answer(&asked, rank) {
                let answer = match is_greeted && self.version == Version::Two {
                    true => format!("{:6}{answer}", answer.len()),
                    false => format!("{answer}\n"),
                };
                // In two pieces, as a socket may deliver them. A rank that does not wait any longer may still have a request.
                let (one, other) = answer.split_at(answer.len() / 2);
                let _ = out.write_all(one.as_bytes()).and_then(|()| out.write_all(other.as_bytes()));
            }
            last = request;
            is_greeted = true;
        }
        last
    }

    fn request(&self, input: &mut BufReader<UnixStream>, is_greeted: bool) -> Option<String> {
        if is_greeted && self.version == Version::Two {
            let mut length = [0; 6];
            input.read_exact(&mut length).ok()?;
            let length: usize = String::from_utf8_lossy(&length).trim().parse().unwrap();
            let mut body = vec![0; length];
            input.read_exact(&mut body).ok()?;
            return Some(String::from_utf8(body).unwrap());
        }
        let mut line = String::new();
        let count = input.read_line(&mut line).ok()?;
        (count > 0).then(|| line.trim_end_matches('\n').to_owned())
    }

    fn answer(&self, asked: &Words, rank: u32) -> Option<String> {
        let word = |name: &str| asked.get(name).unwrap_or_default().to_owned();
        let put = || self.space.lock().unwrap().insert(word("key"), word("value"));
        let found = || self.space.lock().unwrap().get(&word("key")).cloned();
        let rank_and_size = |size: u32| format!("rank={rank};size={size};");
        Some(match word("cmd").as_str() {
            "init" => {
                let version = word("pmi_version");
                assert_eq!(version, if self.version == Version::One { "1" } else { "2" });
                format!("cmd=response_to_init pmi_version={version} pmi_subversion=1 rc=0")
            }
            "get_maxes" => "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=32".to_owned(),
            "get_my_kvsname" => "cmd=my_kvsname kvsname=kvs_1".to_owned(),
            "put" => {
                assert_eq!(word("kvsname"), "kvs_1");
                put();
                "cmd=put_result rc=0 msg=success".to_owned()
            }
            "get" => match found() {
                Some(value) => format!("cmd=get_result rc=0 msg=success value={value}"),
                None => "cmd=get_result rc=-1 msg=key_not_found value=unknown".to_owned(),
            },
            "barrier_in" => {
                self.barrier.wait();
                "cmd=barrier_out".to_owned()
            }
            "finalize" if self.version == Version::One => "cmd=finalize_ack".to_owned(),
            "fullinit" => {
                assert_eq!((word("pmijobid"), word("pmirank")), ("7.0".to_owned(), rank.to_string()));
                format!("cmd=fullinit-response;rc=0;{}", rank_and_size(self.size))
            }
            "kvs-put" => {
                put();
                "cmd=kvs-put-response;rc=0;".to_owned()
            }
            "kvs-get" => match found() {
                Some(value) => format!("cmd=kvs-get-response;rc=0;found=TRUE;value={value};"),
                None => "cmd=kvs-get-response;rc=0;found=FALSE;".to_owned(),
            },
            "kvs-fence" => {
                self.barrier.wait();
                "cmd=kvs-fence-response;rc=0;".to_owned()
            }
            "finalize" => "cmd=finalize-response;rc=0;".to_owned(),
            _ => return None,
        })
    }
}
