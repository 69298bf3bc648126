use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};

use super::connection::MAX_MESSAGE;
use super::*;
use crate::clock::monotonic_ns;
use fake_launcher::{FakeLauncher, Version};

mod fake_launcher;

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(50);
const BOTH: [Version; 2] = [Version::One, Version::Two];

fn connect(
    version: Version,
    inherited: Inherited,
    limit: Duration,
) -> Result<Box<dyn ProcessManager>, ProcessManagerError> {
    Ok(match version {
        Version::One => Box::new(Pmi::connect_1(inherited, limit)?),
        Version::Two => Box::new(Pmi::connect_2(inherited, Some("7.0".to_owned()), limit)?),
    })
}

/// The socket of rank 1 of 2, on which these bytes come whatever is asked, and then the end; and the other end of it.
fn scripted(answers: &[u8]) -> (Inherited, UnixStream) {
    let (stream, mut theirs) = UnixStream::pair().unwrap();
    theirs.write_all(answers).unwrap();
    theirs.shutdown(Shutdown::Write).unwrap();
    (Inherited { stream, rank: 1, size: 2 }, theirs)
}

/// The message of the error at connecting to a launcher that answers so.
fn refusal(version: Version, answers: &str) -> String {
    let (inherited, _launcher) = scripted(answers.as_bytes());
    connect(version, inherited, LONG).map(drop).unwrap_err().to_string()
}

#[test]
fn ranks_exchange_values_behind_a_fence() {
    for version in BOTH {
        let launcher = FakeLauncher::new(version, 4);
        let start = |rank: u32| {
            let (inherited, _) = launcher.start(rank);
            thread::spawn(move || {
                let mut manager = connect(version, inherited, LONG).unwrap();
                assert_eq!((manager.place().rank, manager.place().size), (rank, 4));
                manager.put(&format!("host-{rank}"), &format!("h{rank}=="), LONG).unwrap();
                manager.fence(LONG).unwrap();
                let found = (0..4).map(|other| manager.get(other, &format!("host-{other}"), LONG).unwrap());
                let found: Vec<String> = found.collect();
                let missing = manager.get(4, "host-4", LONG).unwrap_err();
                assert_eq!(missing.to_string(), "rank 4 put no value 'host-4'");
                manager.finish(LONG).unwrap();
                found
            })
        };
        let ranks: Vec<JoinHandle<Vec<String>>> = (0..4).map(start).collect();
        for rank in ranks {
            assert_eq!(rank.join().unwrap(), ["h0==", "h1==", "h2==", "h3=="], "{version:?}");
        }
    }
}

#[test]
fn a_fence_ends_at_its_limit_and_then_only_abort_is_sent() {
    let aborts = [
        (Version::One, "cmd=abort exitcode=75"),
        (Version::Two, "cmd=abort;isworld=TRUE;msg=rank 1 is missing, h1;"),
    ];
    for (version, abort) in aborts {
        let launcher = FakeLauncher::new(version, 2);
        let (inherited, served) = launcher.start(0);
        let mut manager = connect(version, inherited, LONG).unwrap();
        let late = manager.fence(SHORT).unwrap_err();
        assert_eq!(late.to_string(), "the launcher did not answer 'fence' within 50ms");
        assert!(late.hint().unwrap().contains("a rank has died"));
        // The other rank comes too late; the answer that follows is not taken for that of another request.
        launcher.enter_barrier();
        let next = manager.get(0, "key", LONG).unwrap_err();
        assert!(matches!(next, ProcessManagerError::Deadline { asked: "get", .. }), "{next}");
        manager.abort(75, "rank 1 is missing; h1");
        drop(manager);
        assert_eq!(served.join().unwrap(), abort);
    }
}

fn let_pass(time: Duration) {
    let ends_ns = monotonic_ns() + time.as_nanos() as u64;
    while monotonic_ns() < ends_ns {
        thread::yield_now();
    }
}

/// A launcher that takes more than half of the limit for each answer.
fn answer_slowly(launcher: UnixStream, version: Version, limit: Duration) {
    let answers: &[&str] = match version {
        Version::One => &[
            "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
            "cmd=maxes keylen_max=64 vallen_max=32\n",
            "cmd=my_kvsname kvsname=kvs_1\n",
        ],
        Version::Two => &[
            "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n",
            "30    cmd=fullinit-response;rc=0;;;;;",
        ],
    };
    let mut launcher = BufReader::new(launcher);
    for answer in answers {
        let asked = launcher.fill_buf().map_or(0, <[u8]>::len);
        launcher.consume(asked);
        let_pass(limit * 6 / 10);
        let _ = launcher.get_mut().write_all(answer.as_bytes());
    }
}

#[test]
fn all_answers_at_joining_share_one_limit() {
    let limit = Duration::from_millis(500);
    for version in BOTH {
        let (stream, theirs) = UnixStream::pair().unwrap();
        let served = thread::spawn(move || answer_slowly(theirs, version, limit));
        let late = connect(version, Inherited { stream, rank: 1, size: 2 }, limit).map(drop).unwrap_err();
        assert!(matches!(late, ProcessManagerError::Deadline { limit: told, .. } if told == limit), "{late}");
        served.join().unwrap();
    }
}

#[test]
fn an_answer_that_never_ends_is_given_up_at_its_limit() {
    for version in BOTH {
        let (stream, mut theirs) = UnixStream::pair().unwrap();
        let trickle = move || {
            while theirs.write_all(b" ").is_ok() {
                let_pass(Duration::from_millis(1));
            }
        };
        let served = thread::spawn(trickle);
        let inherited = Inherited { stream, rank: 1, size: 2 };
        let late = connect(version, inherited, SHORT).map(drop).unwrap_err();
        assert!(matches!(late, ProcessManagerError::Deadline { asked: "init", .. }), "{late}");
        served.join().unwrap();
    }
}

#[test]
fn texts_that_a_launcher_would_cut_are_refused() {
    for (version, key, value) in [(Version::One, 63, 31), (Version::Two, 63, 1023)] {
        let launcher = FakeLauncher::new(version, 1);
        let mut manager = connect(version, launcher.start(0).0, LONG).unwrap();
        assert_eq!(manager.place().limits, TextLimits { key, value });
        for text in ["a b", "", "line\n", "a;b", "\u{e4}", "\0", &"x".repeat(value + 1)] {
            let refused = manager.put("key", text, LONG).unwrap_err();
            assert!(matches!(refused, ProcessManagerError::Text { what: "value", .. }), "{text}");
        }
        let longest = "x".repeat(value);
        manager.put("key", &longest, LONG).unwrap();
        assert_eq!(manager.get(0, "key", LONG).unwrap(), longest);
        let refused = manager.get(0, &"k".repeat(key + 1), LONG).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "a key of 64 bytes cannot be put: it is longer than the launcher takes"
        );
    }
}

#[test]
fn answers_of_another_kind_are_named() {
    let check = |version, answers: &str, expected: &str| {
        let refusal = refusal(version, answers);
        assert!(refusal.contains(expected), "{answers:?}: {refusal}");
    };
    for version in BOTH {
        check(version, "", "closed the connection");
        check(version, "cmd=response_to_init pmi_ver", "closed the connection");
        check(version, "hello\n", "answered 'init' with ''");
        check(version, "cmd=response_to_init rc=-1\n", "rc=-1");
        check(version, "cmd=response_to_init pmi_version=9 rc=0\n", "pmi_version=9");
        check(version, &"x".repeat(MAX_MESSAGE + 1), "a line of more than 65536 bytes");
    }
    let one = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";
    check(Version::One, &format!("{one}cmd=maxes keylen_max=x vallen_max=8\n"), "keylen_max=x");
    check(Version::One, &format!("{one}cmd=maxes keylen_max=0 vallen_max=8\n"), "keylen_max=0");
    check(
        Version::One,
        &format!("{one}cmd=maxes keylen_max=64 vallen_max=8\ncmd=my_kvsname\n"),
        "get_my_kvsname",
    );
    let two = "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n";
    check(Version::Two, &format!("{two}abc   cmd=x;"), "a message of length 'abc   '");
    check(Version::Two, &format!("{two}999999cmd=x;"), "a message of length '999999'");
    check(Version::Two, &format!("{two}-1    cmd=x;"), "a message of length '-1    '");
    check(Version::Two, &format!("{two}60    cmd=fullinit-resp"), "closed the connection");
    check(Version::Two, &format!("{two}0     "), "answered 'fullinit' with ''");
    check(Version::Two, &format!("{two}29    cmd=fullinit-response;rc=3;xxx"), "rc=3");
    check(Version::Two, &format!("{two}36    cmd=fullinit-response;rc=0;rank=0;xxx"), "rank=0");
}

#[test]
fn any_bytes_from_a_launcher_are_an_error_and_no_panic() {
    let answers = [
        "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\ncmd=maxes keylen_max=64 vallen_max=8\ncmd=my_kvsname kvsname=k\n",
        "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n42    cmd=fullinit-response;rc=0;rank=1;size=2;;",
    ];
    // Numbers of a linear congruence, the same each time.
    let mut state = 1_u32;
    let mut random = |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % below
    };
    for _ in 0..3_000 {
        let which = random(2);
        let mut bytes = answers[which].as_bytes().to_vec();
        for _ in 0..=random(3) {
            let place = random(bytes.len());
            match random(3) {
                0 => bytes[place] = random(256) as u8,
                1 => bytes.truncate(place.max(1)),
                _ => bytes.insert(place, b"0;= \n9"[random(6)]),
            }
        }
        let (inherited, _launcher) = scripted(&bytes);
        if let Ok(mut manager) = connect(BOTH[which], inherited, LONG) {
            assert!(manager.fence(LONG).is_err());
        }
    }
}

#[test]
fn the_environment_tells_which_interface_there_is() {
    let found = |set: &[(&str, &str)]| {
        let variable =
            |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let joined = join(&variable, LONG).map_err(|error| error.to_string());
        joined.map(|manager| {
            manager.map(|manager| {
                let JobPlace { interface, rank, size, .. } = manager.place();
                (interface, rank, size)
            })
        })
    };
    let invalid = |name: &str| Err(format!("the launcher's environment has no valid {name}"));
    assert_eq!(found(&[]), Ok(None));
    assert_eq!(found(&[("PMI_RANK", "0"), ("PMI_SIZE", "2"), ("SLURM_PROCID", "0")]), Ok(None));
    // Open until the end: another test could open a socket under its number.
    let null = File::open("/dev/null").unwrap();
    let file = null.as_raw_fd().to_string();
    for descriptor in ["-1", "1", "x", "1048570", &file] {
        assert_eq!(found(&[("PMI_FD", descriptor), ("PMI_RANK", "0"), ("PMI_SIZE", "2")]), invalid("PMI_FD"));
        // The socket of an outer launcher is not open in the processes of an inner one.
        assert_eq!(found(&[("PMI_FD", descriptor), ("PMIX_RANK", "0")]), Ok(None));
    }

    let (inherited, _) = FakeLauncher::new(Version::One, 2).start(1);
    let descriptor = inherited.stream.as_raw_fd().to_string();
    let socket = ("PMI_FD", descriptor.as_str());
    assert_eq!(found(&[socket]), invalid("PMI_RANK"));
    assert_eq!(found(&[socket, ("PMI_RANK", "1"), ("PMI_SIZE", "x")]), invalid("PMI_SIZE"));
    assert_eq!(found(&[socket, ("PMI_RANK", "2"), ("PMI_SIZE", "2")]), invalid("PMI_SIZE"));
    let place = [socket, ("PMI_RANK", "1"), ("PMI_SIZE", "2")];
    assert_eq!(found(&place), Ok(Some(("PMI-1", 1, 2))));

    let (inherited, _) = FakeLauncher::new(Version::Two, 2).start(1);
    let descriptor = inherited.stream.as_raw_fd().to_string();
    let socket = ("PMI_FD", descriptor.as_str());
    let place = [socket, ("PMI_RANK", "1"), ("PMI_SIZE", "2"), ("PMI_JOBID", "7.0")];
    assert_eq!(found(&place), Ok(Some(("PMI-2", 1, 2))));

    // A hydra inside of Slurm.
    let (inherited, _) = FakeLauncher::new(Version::One, 2).start(0);
    let descriptor = inherited.stream.as_raw_fd().to_string();
    let outer = [("PMI_JOBID", "7.0"), ("PMIX_RANK", "0"), ("PMIX_NAMESPACE", "slurm.pmix.7.0")];
    let inner =
        [("PMI_FD", descriptor.as_str()), ("PMI_RANK", "0"), ("PMI_SIZE", "2"), ("MPI_LOCALNRANKS", "1")];
    assert_eq!(found(&[&outer[..], &inner].concat()), Ok(Some(("PMI-1", 0, 2))));
}

#[test]
fn the_largest_size_of_a_launcher_is_promised() {
    let check = |set: &[(&str, &str)], expected| {
        let variable =
            |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        assert_eq!(promised_size(&variable), expected, "{set:?}");
    };
    check(&[], None);
    check(&[("PMI_SIZE", "x")], None);
    check(&[("SLURM_NTASKS", "64")], Some(("SLURM_NTASKS", 64)));
    check(&[("OMPI_COMM_WORLD_SIZE", "6"), ("PMI_SIZE", "1")], Some(("OMPI_COMM_WORLD_SIZE", 6)));
    // `srun -n 4 mpiexec -n 1`: four jobs of one process each.
    check(&[("PMI_SIZE", "1"), ("SLURM_STEP_NUM_TASKS", "4")], Some(("SLURM_STEP_NUM_TASKS", 4)));
    // `mpiexec -n 1` and `srun -n 1` in an allocation for more are meant so.
    check(&[("PMI_SIZE", "1"), ("SLURM_NTASKS", "64")], Some(("PMI_SIZE", 1)));
    check(&[("SLURM_STEP_NUM_TASKS", "1"), ("SLURM_NTASKS", "64")], Some(("SLURM_STEP_NUM_TASKS", 1)));
}
