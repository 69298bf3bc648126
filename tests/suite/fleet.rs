//! One measurement by the ranks of a job that a launcher started on several hosts: its report, and what becomes of it where a host
//! fails.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fathom_tests::{
    Cluster, Ended, FleetFailure, Launcher, PlantedFailure, Program, RankPhase, fathom, fathom_path,
    is_measuring, loading, run, scratch, wait_for,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Processes on each host.
const PER_HOST: usize = 2;
/// Processes of a job.
const RANKS: usize = 6;
/// The exit code of a job that ranks are missing from.
const MISSING: i32 = 75;
/// Longest wait for something that is to come.
const PATIENCE: Duration = Duration::from_secs(30);

/// `fathom fio` on all hosts: each rank reads a file of its own below `directory`, 64 KiB at a time.
fn job(cluster: &Cluster, launcher: Launcher, directory: &Path, options: &str) -> Command {
    let mut command = cluster.launch(launcher, cluster.hosts(), PER_HOST);
    command.env("HOME", directory).env_remove("XDG_DATA_HOME").env("NO_COLOR", "1");
    command.arg(fathom_path()).args(["fio", "--name=a", "--ioengine=sync", "--rw=read", "--bs=64k"]);
    command.arg("--size=4m").arg(format!("--directory={}", directory.display()));
    command.args(options.split_whitespace());
    command
}

#[test]
fn one_report_has_the_requests_of_all_ranks() {
    let _loading = loading();
    let Some(cluster) = Cluster::shared() else { return };
    let begun = Launcher::MEETING.map(|launcher| {
        let directory = scratch();
        let out =
            format!("--fleet --fleet-out={} --output-format=json+", directory.path().join("out").display());
        let options = format!("{out} --filename=data-${{fathom_RANK}}");
        (launcher, Program::start(&mut job(cluster, launcher, directory.path(), &options)), directory)
    });
    for (launcher, job, directory) in begun {
        let ended = job.finish();
        ended.assert_code(0);
        let document = ended.document();
        let fleet = &document["fathom"]["fleet"];
        assert_eq!(fleet["ranks"], RANKS, "{launcher:?}: {fleet}");
        assert_eq!(fleet["hosts"].as_array().map(Vec::len), Some(RANKS), "{launcher:?}: {fleet}");
        let read = &document["jobs"][0]["read"];
        // 4 MiB of each, 64 KiB at a time.
        assert_eq!(read["total_ios"], RANKS * 64, "{launcher:?}: {read}");
        let bins = read["clat_ns"]["bins"].as_object().expect("json+ has bins");
        let counted: u64 = bins.values().filter_map(Value::as_u64).sum();
        assert_eq!(counted, RANKS as u64 * 64, "{launcher:?}: {bins:?}");
        let mut names: Vec<String> = std::fs::read_dir(directory.path().join("out"))
            .expect("the ranks have made it")
            .filter_map(|file| file.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        let expected: Vec<String> = (0..RANKS).map(|rank| format!("rank-{rank:05}.json")).collect();
        assert_eq!(names, expected, "{launcher:?}");
    }
}

#[test]
fn without_the_option_launchers_start_independent_runs() {
    let _loading = loading();
    let Some(cluster) = Cluster::shared() else { return };
    for launcher in [Launcher::Srun, Launcher::SrunPmi2] {
        let directory = scratch();
        let ended = run(&mut job(cluster, launcher, directory.path(), "--filename=data --minimal"));
        ended.assert_code(0);
        assert_eq!(ended.stdout.lines().count(), RANKS, "{launcher:?}: {ended}");
    }
}

#[test]
fn ranks_that_cannot_meet_are_refused() {
    let _loading = loading();
    let Some(cluster) = Cluster::shared() else { return };
    let directory = scratch();
    let ended = run(&mut job(cluster, Launcher::Srun, directory.path(), "--fleet --filename=data"));
    assert!(!ended.status.success(), "{ended}");
    ended.assert_told(&["SLURM_STEP_NUM_TASKS says 6 processes", "srun --mpi=pmi2"]);
    assert_eq!(ended.stdout, "", "{ended}");
}

/// What happens to the ranks of a host while all measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    Killed,
    Stopped,
}

#[test]
fn a_host_that_fails_ends_the_job_and_the_other_records_are_kept() {
    let _loading = loading();
    let Some(cluster) = &Cluster::start() else { return };
    for trouble in [Trouble::Killed, Trouble::Stopped] {
        let begun = Launcher::MEETING.map(|launcher| {
            let directory = scratch();
            let out = directory.path().join("out");
            let options = format!(
                "--fleet --fleet-out={} --fleet-prepare=20s --fleet-grace=1s --time_based --runtime=8 --rate_iops=50 \
                 --filename=data-${{fathom_RANK}}",
                out.display()
            );
            (launcher, Program::start(&mut job(cluster, launcher, directory.path(), &options)), directory)
        });
        let all = begun.len() * RANKS;
        if !wait_for(PATIENCE, || measuring(cluster) == all) {
            let said = begun.map(|(launcher, job, _)| format!("{launcher:?}: {}", job.stderr()));
            panic!("{} of {all} ranks measure\n{}", measuring(cluster), said.join("\n"));
        }
        for rank in ranks_on(cluster, "h2") {
            let signal = if trouble == Trouble::Killed { Signal::KILL } else { Signal::STOP };
            let _ = kill_process(rank, signal);
        }
        for (launcher, job, directory) in begun {
            let ended = job.finish();
            check_failure(launcher, trouble, &ended);
            check_merge(launcher, directory.path());
        }
        for host in cluster.hosts() {
            assert!(wait_for(PATIENCE, || ranks_on(cluster, host).is_empty()), "{trouble:?}: left on {host}");
        }
    }
}

/// The number of ranks that measure.
fn measuring(cluster: &Cluster) -> usize {
    let of_host =
        |host: &&str| ranks_on(cluster, host).into_iter().filter(|rank| is_measuring(*rank)).count();
    cluster.hosts().iter().map(of_host).sum()
}

fn ranks_on(cluster: &Cluster, host: &str) -> Vec<Pid> {
    cluster.processes(host, fathom_path())
}

/// The code is that of the launcher, and the ranks of the host are named where the launcher leaves rank 0 the time.
fn check_failure(launcher: Launcher, trouble: Trouble, ended: &Ended) {
    let is_failure = |code: i32| match launcher {
        // hydra fails over processes that end while it ends others, with one code or another.
        Launcher::Mpiexec => code != 0,
        _ => [MISSING, 137].contains(&code),
    };
    assert!(ended.status.code().is_some_and(is_failure), "{launcher:?}, {trouble:?}: {ended}");
    let are_left_alone =
        launcher == Launcher::SrunPmi2 || (launcher, trouble) == (Launcher::Mpiexec, Trouble::Stopped);
    if are_left_alone {
        ended.assert_told(&["4 of 6 ranks; missing: rank 2 on h2 (", "rank 3 on h2 ("]);
    }
}

/// A merge of fewer records than ranks is never a success.
fn check_merge(launcher: Launcher, directory: &Path) {
    let out = directory.join("out");
    let is_record = |rank: usize| out.join(format!("rank-{rank:05}.json")).exists();
    let kept = (0..RANKS).filter(|rank| is_record(*rank)).count();
    let merged = run(fathom(directory).args(["merge", "--no-history"]).arg(&out));
    match merged.status.code() {
        Some(0) => assert_eq!(kept, RANKS, "{launcher:?}: {merged}"),
        // Processes that are killed before their first partial record leave none.
        Some(2) => assert_eq!(kept, 0, "{launcher:?}: {merged}"),
        code => assert_eq!(code, Some(MISSING), "{launcher:?}: {merged}"),
    }
}

/// Plants each of these failures in a job of its own; the repeat decides which rank it is.
fn check_failures(cluster: &Cluster, planted: &[(Launcher, FleetFailure, usize)]) {
    for &(launcher, failure, repeat) in planted {
        let outcome = PlantedFailure { launcher, failure, repeat }.run(cluster);
        let violations = outcome.violations();
        assert!(violations.is_empty(), "{:?}: {violations:?}\n{}", outcome.planted, outcome.printed());
        assert!(cluster.settles(), "{:?}: the cluster is not as before\n{}", outcome.planted, cluster.log());
    }
}

#[test]
fn a_rank_that_is_killed_in_any_phase_ends_the_job() {
    let _loading = loading();
    let Some(cluster) = &Cluster::start() else { return };
    let killed = |phase, launcher, repeat| (launcher, FleetFailure::Killed(phase), repeat);
    check_failures(
        cluster,
        &[
            killed(RankPhase::Join, Launcher::Mpiexec, 3),
            killed(RankPhase::Prepare, Launcher::SrunPmi2, 4),
            killed(RankPhase::Start, Launcher::SrunPmi2, 2),
            killed(RankPhase::Measuring, Launcher::SrunPmi2, 6),
            killed(RankPhase::Collect, Launcher::Mpiexec, 1),
        ],
    );
}

#[test]
fn a_rank_that_hangs_or_cannot_be_reached_is_named() {
    let _loading = loading();
    let Some(cluster) = &Cluster::start() else { return };
    let measuring =
        RankPhase::ALL.iter().position(|phase| *phase == RankPhase::Measuring).unwrap_or_default();
    check_failures(
        cluster,
        &[
            (Launcher::SrunPmi2, FleetFailure::Stopped, measuring),
            (Launcher::Mpiexec, FleetFailure::CableCut, measuring),
        ],
    );
}

#[test]
fn records_without_room_are_counted_and_other_versions_are_refused() {
    let _loading = loading();
    let Some(cluster) = &Cluster::start() else { return };
    check_failures(
        cluster,
        &[
            (Launcher::Mpiexec, FleetFailure::FullDisk, 0),
            (Launcher::SrunPmi2, FleetFailure::FullDisk, 4),
            (Launcher::Mpirun, FleetFailure::OtherVersion, 3),
        ],
    );
}
