//! Processes that launchers of parallel jobs start on several hosts meet through the interface of their launcher.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fathom_tests::{Cluster, Ended, Launcher, Program, loading, run, scratch, wait_for};
use rustix::process::Pid;
use serde_json::Value;

/// The rank.
const RANK: &str = env!("CARGO_BIN_EXE_fathom-test-rank");
/// Longest wait for something that is to come.
const PATIENCE: Duration = Duration::from_secs(30);
/// Processes on each host.
const PER_HOST: usize = 2;

/// The command that starts [`PER_HOST`] ranks on each host, which write into `directory`.
fn job(cluster: &Cluster, launcher: Launcher, directory: &Path, options: &[&str]) -> Command {
    let mut command = cluster.launch(launcher, cluster.hosts(), PER_HOST);
    command.arg(RANK).arg(directory).args(options);
    command
}

/// The files that the ranks have written, by name.
fn written(directory: &Path) -> Vec<(String, Value)> {
    let files = std::fs::read_dir(directory).expect("own directory").flatten();
    let mut written: Vec<(String, Value)> = files
        .map(|file| {
            let text = std::fs::read_to_string(file.path()).expect("own file");
            let value = serde_json::from_str(&text).unwrap_or_default();
            (file.file_name().to_string_lossy().into_owned(), value)
        })
        .collect();
    written.retain(|(name, _)| name != "late");
    written.sort_by(|one, other| one.0.cmp(&other.0));
    written
}

const fn interface(launcher: Launcher) -> Option<&'static str> {
    match launcher {
        Launcher::Mpiexec => Some("PMI-1"),
        Launcher::SrunPmi2 => Some("PMI-2"),
        Launcher::SrunPmix | Launcher::Mpirun => Some("PMIx"),
        Launcher::Srun => None,
    }
}

#[test]
fn ranks_of_three_hosts_meet_under_each_launcher() {
    let _loading = loading();
    let Some(cluster) = Cluster::shared() else { return };
    let hosts = cluster.hosts();
    for launcher in Launcher::MEETING {
        let directory = scratch();
        let ended = run(&mut job(cluster, launcher, directory.path(), &["late=3"]));
        ended.assert_code(0);
        let written = written(directory.path());
        assert_eq!(written.len(), hosts.len() * PER_HOST, "{launcher:?}: {written:?}\n{ended}");
        for (number, (name, seen)) in written.iter().enumerate() {
            assert_eq!(*name, format!("rank-{number}"), "{launcher:?}");
            assert_eq!(seen["interface"].as_str(), interface(launcher), "{seen}");
            assert_eq!(
                (seen["rank"].as_u64(), seen["size"].as_u64()),
                (Some(number as u64), Some(6)),
                "{seen}"
            );
            let others: Vec<&str> =
                seen["hosts"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
            let expected: Vec<&str> = hosts.iter().flat_map(|host| [*host; PER_HOST]).collect();
            assert_eq!(others, expected, "{launcher:?}: {seen}");
            assert_eq!(seen["are_whole"], true, "{launcher:?}: the longest values are cut: {seen}");
            assert_eq!(seen["is_missing"], true, "{launcher:?}: {seen}");
        }
        // Hosts share a clock here: nobody leaves the barrier before the last one, which is late, has entered it.
        let times =
            |name: &str| written.iter().filter_map(|(_, seen)| seen[name].as_u64()).collect::<Vec<_>>();
        let (last_entered, first_left) =
            (times("entered_ns").into_iter().max(), times("left_ns").into_iter().min());
        assert!(last_entered <= first_left, "{launcher:?}: {last_entered:?} > {first_left:?}");
    }
}

#[test]
fn a_rank_that_dies_before_the_barrier_ends_the_job_at_its_limit() {
    let _loading = loading();
    let Some(cluster) = Cluster::shared() else { return };
    for launcher in Launcher::MEETING {
        let directory = scratch();
        let ended = run(&mut job(cluster, launcher, directory.path(), &["dead=2", "limit=1500"]));
        check_death(launcher, &ended, &written(directory.path()));
    }
}

fn ranks_on(cluster: &Cluster, host: &str) -> Vec<Pid> {
    cluster.processes(host, Path::new(RANK))
}

#[test]
fn ranks_end_where_a_host_cannot_be_reached() {
    let _loading = loading();
    let Some(cluster) = &Cluster::start() else { return };
    let begun = Launcher::MEETING.map(|launcher| {
        let directory = scratch();
        let options = ["late=2", "lateness=3000", "limit=1500"];
        let job = Program::start(&mut job(cluster, launcher, directory.path(), &options));
        (launcher, directory, job)
    });
    for (launcher, directory, _) in &begun {
        let is_waiting = wait_for(PATIENCE, || directory.path().join("late").exists());
        assert!(is_waiting, "{launcher:?}: the ranks have not met");
    }
    cluster.cut("h2");
    let [jobs @ .., (_, _directory, _mpirun)] = begun;
    for (launcher, _directory, job) in jobs {
        let ended = job.finish();
        assert!(!ended.status.success(), "{launcher:?}: {ended}");
    }
    // Open MPI's launcher waits for the host until TCP gives up; its ranks do not.
    for host in cluster.hosts() {
        assert!(wait_for(PATIENCE, || ranks_on(cluster, host).is_empty()), "ranks are left on {host}");
    }
}

fn check_death(launcher: Launcher, ended: &Ended, written: &[(String, Value)]) {
    assert!(!ended.status.success(), "{launcher:?}: {ended}");
    let errors: Vec<&str> = written.iter().filter_map(|(_, seen)| seen["error"].as_str()).collect();
    let are_all = |expected: &str| !errors.is_empty() && errors.iter().all(|error| error.contains(expected));
    let late = "did not answer 'fence' within 1.5s";
    match launcher {
        // Some versions of hydra fail when a process ends that others of its host outlive: with 255, or by a signal if they write to
        // the connection that is gone.
        Launcher::Mpiexec => {
            let code = ended.status.code();
            assert!(code != Some(75) || are_all(late), "{errors:?}\n{ended}");
            assert!(matches!(code, None | Some(75 | 255)), "{ended}");
        }
        // Slurm kills the processes of an aborted job where they have not ended before, and reports that.
        Launcher::SrunPmi2 => {
            assert!(are_all(late), "{errors:?}\n{ended}");
            assert!(matches!(ended.status.code(), Some(75 | 137)), "{ended}");
        }
        // With PMIx, the launcher notices by itself; the others may pass the barrier before it ends them.
        Launcher::SrunPmix | Launcher::Mpirun | Launcher::Srun => {}
    }
}

#[test]
fn processes_without_an_interface_are_told_how_many_they_are() {
    let _loading = loading();
    let Some(cluster) = Cluster::shared() else { return };
    let directory = scratch();
    run(&mut job(cluster, Launcher::Srun, directory.path(), &[])).assert_code(0);
    let written = written(directory.path());
    assert_eq!(written.len(), cluster.hosts().len() * PER_HOST, "{written:?}");
    for (name, seen) in written {
        assert!(name.starts_with("alone-") && seen["promised"] == "SLURM_STEP_NUM_TASKS=6", "{name}: {seen}");
    }
}
