//! `--fleet` from the outside: several processes under a launcher that speaks PMI-1, on simulated volumes.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use serde_json::Value;

use crate::{Ended, ended, program, run, scratch};

const VOLUME: &str = "sim:custom?size=1GiB&iops=1000";

/// What the ranks of a job share in their launcher.
#[derive(Default)]
struct Launcher {
    state: Mutex<LauncherState>,
    changed: Condvar,
}

#[derive(Default)]
struct LauncherState {
    space: BTreeMap<String, String>,
    waiting: usize,
    round: usize,
    aborts: Vec<String>,
}

impl Launcher {
    /// Serves one rank until it leaves.
    fn serve(self: &Arc<Self>, stream: UnixStream, ranks: usize) {
        let mut out = stream.try_clone().unwrap();
        for line in BufReader::new(stream).lines() {
            let Ok(line) = line else { break };
            let words: BTreeMap<&str, &str> =
                line.split(' ').filter_map(|word| word.split_once('=')).collect();
            let answer = match words["cmd"] {
                "init" => "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0".to_owned(),
                "get_maxes" => "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024".to_owned(),
                "get_my_kvsname" => "cmd=my_kvsname kvsname=kvs_1".to_owned(),
                "put" => {
                    let (key, value) = (words["key"].to_owned(), words["value"].to_owned());
                    self.state.lock().unwrap().space.insert(key, value);
                    "cmd=put_result rc=0 msg=success".to_owned()
                }
                "get" => match self.state.lock().unwrap().space.get(words["key"]) {
                    Some(value) => format!("cmd=get_result rc=0 msg=success value={value}"),
                    None => "cmd=get_result rc=-1 msg=key_not_found".to_owned(),
                },
                "barrier_in" => {
                    // A rank that waits in vain may still have something to say.
                    let (launcher, mut out) = (self.clone(), out.try_clone().unwrap());
                    thread::spawn(move || {
                        launcher.fence(ranks);
                        let _ = out.write_all(b"cmd=barrier_out\n");
                    });
                    continue;
                }
                "finalize" => "cmd=finalize_ack".to_owned(),
                _ => {
                    self.state.lock().unwrap().aborts.push(line.clone());
                    continue;
                }
            };
            let _ = out.write_all(format!("{answer}\n").as_bytes());
        }
    }

    fn fence(&self, ranks: usize) {
        let mut state = self.state.lock().unwrap();
        let round = state.round;
        state.waiting += 1;
        if state.waiting == ranks {
            (state.waiting, state.round) = (0, round + 1);
            self.changed.notify_all();
        }
        let limit = std::time::Duration::from_secs(120);
        let waited = self.changed.wait_timeout_while(state, limit, |state| state.round == round);
        drop(waited.unwrap());
    }
}

/// A rank, and what serves it until it ends.
struct Rank {
    child: Child,
    served: thread::JoinHandle<()>,
}

impl Rank {
    fn ended(self) -> Ended {
        let ended = ended(self.child.wait_with_output().unwrap());
        self.served.join().unwrap();
        ended
    }
}

/// Starts one rank.
fn start(dir: &Path, launcher: &Arc<Launcher>, rank: usize, ranks: usize, args: &[&str]) -> Rank {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let fathom = program(dir);
    // The launcher's socket comes as descriptor 9.
    let mut command = Command::new("sh");
    command.args(["-c", "exec 9<&0 </dev/null; exec \"$@\"", "sh"]).arg(fathom.get_program()).args(args);
    command.current_dir(dir).env_clear();
    for (name, value) in fathom.get_envs() {
        value.into_iter().for_each(|value| {
            command.env(name, value);
        });
    }
    command.env("PMI_FD", "9").env("PMI_RANK", rank.to_string()).env("PMI_SIZE", ranks.to_string());
    command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let launcher = launcher.clone();
    // The child alone has its end of the socket, so that its death closes it.
    drop(command);
    let served = thread::spawn(move || launcher.serve(ours, ranks));
    Rank { child, served }
}

/// Runs a job of `ranks` ranks, with these words and those of each rank.
fn launch(
    dir: &Path,
    ranks: usize,
    args: &[&str],
    own: impl Fn(usize) -> Vec<String>,
) -> (Vec<Ended>, Vec<String>) {
    let launcher = Arc::new(Launcher::default());
    let children: Vec<Rank> = (0..ranks)
        .map(|rank| {
            let own = own(rank);
            let args: Vec<&str> = args.iter().copied().chain(own.iter().map(String::as_str)).collect();
            start(dir, &launcher, rank, ranks, &args)
        })
        .collect();
    let ended = children.into_iter().map(Rank::ended).collect();
    let aborts = launcher.state.lock().unwrap().aborts.clone();
    (ended, aborts)
}

fn alike(_rank: usize) -> Vec<String> {
    Vec::new()
}

const FIO: [&str; 8] =
    ["fio", "--fleet", "--name=a", "--rw=randread", "--filename", VOLUME, "--time_based", "--runtime=10"];

#[test]
fn rank_0_reports_on_all_and_the_others_print_nothing() {
    let dir = scratch();
    let args = [&FIO[..], &["--output-format=json", "--fleet-out=out"]].concat();
    let (ended, aborts) = launch(dir.path(), 3, &args, alike);
    for rank in &ended {
        assert_eq!((rank.code, rank.stderr.as_str()), (Some(0), ""), "{rank:?}");
    }
    assert!(ended[1..].iter().all(|rank| rank.stdout.is_empty()), "{ended:?}");
    let report: Value = serde_json::from_str(&ended[0].stdout).unwrap();
    let fleet = &report["fathom"]["fleet"];
    assert_eq!((fleet["ranks"].as_u64(), fleet["merged"].as_u64()), (Some(3), Some(3)), "{fleet}");
    let iops = report["jobs"][0]["read"]["iops"].as_f64().unwrap();
    assert!((iops - 3000.0).abs() < 30.0, "{iops}");
    assert!(aborts.is_empty(), "{aborts:?}");
    // The files make the same report.
    let files: Vec<String> = std::fs::read_dir(dir.path().join("out"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(files.len(), 3, "{files:?}");
    let merged = run(dir.path(), &["merge", "out", "--json", "--no-history"]);
    let merged: Value = serde_json::from_str(&merged.stdout).unwrap();
    assert_eq!(merged["jobs"][0]["read"]["total_ios"], report["jobs"][0]["read"]["total_ios"]);
    // They are of an earlier job for the next one.
    let (ended, _) = launch(dir.path(), 2, &args, alike);
    assert!(ended.iter().all(|rank| rank.code == Some(1)), "{ended:?}");
    assert!(ended[0].stderr.contains("is there already, of an earlier job"), "{ended:?}");
    assert_eq!(ended[1].stderr, "");
}

#[test]
fn job_files_are_those_of_rank_0_with_the_place_of_each_rank() {
    let dir = scratch();
    let job = format!(
        "[global]\nfilename={VOLUME}\nrw=randread\nruntime=2\ntime_based\n[a]\ndescription=r${{fathom_RANK}}of${{fathom_RANKS}}\n[b]\nstonewall\n"
    );
    std::fs::write(dir.path().join("job.fio"), job).unwrap();
    let plan = "[[role]]\nname = 'w'\nranks = '1'\noptions = { rw = 'randwrite' }\n[[role]]\nname = 'r'\njobs = ['b']\n";
    std::fs::write(dir.path().join("roles.toml"), plan).unwrap();
    let args = ["fio", "--fleet", "--fleet-plan=roles.toml", "--output-format=json", "job.fio"];
    let (ended, _) = launch(dir.path(), 2, &args, alike);
    let report: Value = serde_json::from_str(&ended[0].stdout).unwrap_or_else(|_| panic!("{ended:?}"));
    let names: Vec<&str> =
        report["jobs"].as_array().unwrap().iter().filter_map(|job| job["jobname"].as_str()).collect();
    assert!(names.contains(&"w/a") && names.contains(&"w/b") && names.contains(&"r/b"), "{names:?}");
    assert!(ended[0].stdout.contains("r1of2"), "{}", ended[0].stdout);
    assert_eq!(ended[0].code, Some(0), "{ended:?}");
}

#[test]
fn a_bench_and_a_sweep_are_one_measurement_of_all_ranks() {
    let dir = scratch();
    let bench = [
        "bench", "--fleet", "--seed=1", "--only=rand-read", "--runtime=5s", "--json", "--no-history", VOLUME,
    ];
    let (ended, _) = launch(dir.path(), 2, &bench, alike);
    let report: Value = serde_json::from_str(&ended[0].stdout).unwrap_or_else(|_| panic!("{ended:?}"));
    assert_eq!(report["schema"], "fathom.fleet/1");
    assert_eq!((ended[0].code, ended[1].code, ended[1].stdout.as_str()), (Some(0), Some(0), ""));
    let sweep = ["sweep", "--fleet", "--seed=1", "--bs=4k", "--iodepth=1-8", "--no-history", VOLUME];
    let (ended, _) = launch(dir.path(), 2, &sweep, alike);
    assert_eq!(ended[0].code, Some(0), "{ended:?}");
    // Twice the limit of one volume.
    assert!(ended[0].stdout.contains("2 hosts") && ended[0].stdout.contains("2,000"), "{}", ended[0].stdout);
    let ping = ["ping", "--fleet", "-c", "5", "-i", "1s", VOLUME];
    let (ended, _) = launch(dir.path(), 2, &ping, alike);
    assert_eq!((ended[0].code, ended[1].stdout.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended[0].stdout.contains("2 hosts"), "{}", ended[0].stdout);
}

#[test]
fn a_rank_that_cannot_begin_ends_the_job_with_its_reason() {
    let dir = scratch();
    std::fs::write(dir.path().join("there.0"), vec![0; 1 << 20]).unwrap();
    let args = [
        "fio",
        "--fleet",
        "--name=a",
        "--rw=read",
        "--allow_file_create=0",
        "--filename=there.${fathom_RANK}",
        "--size=1m",
    ];
    let (ended, aborts) = launch(dir.path(), 2, &args, alike);
    assert!(ended.iter().all(|rank| rank.code == Some(1)), "{ended:?}");
    assert!(ended[0].stderr.contains("no rank has measured: rank 1 on "), "{ended:?}");
    assert!(ended[1].stderr.contains("there.1") && aborts.is_empty(), "{ended:?} {aborts:?}");
}

#[test]
fn a_page_that_cannot_be_written_is_refused_before_anything_is_prepared() {
    let dir = scratch();
    let words = |page| ["bench", "--fleet", "--fleet-out=out", "--no-history", "--report", page, VOLUME];
    // No rank joins for a page of another format.
    let (ended, aborts) = launch(dir.path(), 2, &words("page.xyz"), alike);
    for rank in &ended {
        assert_eq!(rank.code, Some(2), "{ended:?}");
        assert!(rank.stderr.contains("unsupported output format: .xyz"), "{ended:?}");
    }
    let (left, more) = launch(dir.path(), 2, &words("nowhere/page.html"), alike);
    assert!(left.iter().all(|rank| rank.code == Some(1)), "{left:?}");
    assert!(left[0].stderr.contains("error: rank 0 on ") && left[0].stderr.contains("nowhere"), "{left:?}");
    assert_eq!((left[1].stderr.as_str(), left[1].stdout.as_str()), ("", ""));
    assert!(aborts.is_empty() && more.is_empty() && !dir.path().join("out").exists());
    let sweep = ["sweep", "--fleet", "--iodepth=1", "--bs=4k", "--no-history", "--report=page.html", VOLUME];
    let (ended, _) = launch(dir.path(), 2, &sweep, alike);
    assert!(ended.iter().all(|rank| rank.code == Some(0)), "{ended:?}");
    assert!(dir.path().join("page.html").exists());
}

#[test]
fn ranks_that_are_missing_are_named_and_the_job_ends() {
    let dir = scratch();
    let args = [&FIO[..], &["--fleet-join=1", "--fleet-out=out"]].concat();
    let launcher = Arc::new(Launcher::default());
    let alone = start(dir.path(), &launcher, 0, 2, &args);
    let ended_alone = alone.ended();
    assert_eq!(ended_alone.code, Some(75), "{ended_alone:?}");
    assert!(ended_alone.stderr.contains("all ranks to join"), "{ended_alone:?}");
    assert_eq!(launcher.state.lock().unwrap().aborts, ["cmd=abort exitcode=75"]);
}

#[test]
fn words_that_differ_and_missing_launchers_are_refused() {
    let dir = scratch();
    let (ended, _) = launch(dir.path(), 2, &FIO, |rank| vec![format!("--iodepth={}", rank + 1)]);
    assert!(ended[0].stderr.contains("was started with another command line than rank 0"), "{ended:?}");
    let check = |args: &[&str], code: i32, expected: &str| {
        let ended = run(dir.path(), args);
        assert_eq!(ended.code, Some(code), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(expected), "{args:?}: {ended:?}");
    };
    check(&FIO, 1, "none started this process");
    check(&["bench", "--fleet", VOLUME], 2, "none started this process");
    check(&["sweep", "--fleet", VOLUME], 2, "hint: start it with srun");
    check(&["ping", "--fleet", "-c", "1", VOLUME], 2, "none started this process");
    check(&["ping", "--fleet", VOLUME], 2, "--fleet needs an end");
    check(&["bench", "--fleet", "--until-steady", VOLUME], 2, "--until-steady cannot be used with --fleet");
    check(&["bench", "--fleet-out=x", VOLUME], 2, "--fleet");
    check(&["fio", "--fleet-out=x", "--name=a", "--filename", VOLUME], 1, "given without it");
    check(&["fio", "--fleet", "--cmdhelp=rw"], 0, "");
}
