//! What a process is started with, and what others do beside it: closed pipes, no environment, no working directory, another bench.

use super::{Place, SHORT, assert_refused, names_in};
use fathom_tests::{Ended, Program, loading, must_run, need, run, wait_for};
use std::process::Command;
use std::time::Duration;

/// Runs `script` in a shell with the program as `$0` and the target as `$1`.
fn in_shell(place: &Place, script: &str) -> Ended {
    let plain = place.command(&[]);
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(plain.get_program()).arg(place.target());
    command.env("HOME", place.home.path()).env_remove("FATHOM_HISTORY").env_remove("XDG_DATA_HOME");
    run(&mut command)
}

/// The lines of standard error but those on a stall: the disk that these tests share may make one.
fn without_stalls(stderr: &str) -> String {
    let is_stall = |line: &&str| line.contains("no I/O completed") || line.contains("complete again");
    stderr.lines().filter(|line| !is_stall(line)).map(|line| format!("{line}\n")).collect()
}

#[test]
fn closed_pipes_end_the_output_without_a_panic() {
    let _loading = loading();
    let place = Place::new();
    let bench = "bench --quick --runtime=100ms --size=16m --only=lat-read \"$1\"";
    let fio = "fio --name=t --directory=\"$1\" --size=1m --rw=write";
    for words in [bench, fio, "history list", "--help", "fio --cmdhelp=all"] {
        for script in [
            // The reader has seen enough; the writer has done its work.
            format!("{{ \"$0\" {words}; echo $? >&2; }} | head -n 1"),
            format!("{{ \"$0\" {words}; echo $? >&2; }} | :"),
            format!("\"$0\" {words} >&-; echo $? >&2"),
            format!("\"$0\" {words} >&- <&-; echo $? >&2"),
        ] {
            let ended = in_shell(&place, &script);
            assert_eq!(without_stalls(&ended.assert_code(0).stderr), "0\n", "{script}");
        }
        // What cannot be written is reported.
        let ended = in_shell(&place, &format!("\"$0\" {words} >/dev/full"));
        assert_refused(&ended, 1, &["standard output", "No space left on device"]);
        let ended = in_shell(&place, &format!("\"$0\" {words} >/dev/full 2>&1"));
        ended.assert_code(1);
    }
    let ended = in_shell(&place, &format!("\"$0\" {fio} --output=/dev/full"));
    assert_refused(&ended, 1, &["/dev/full", "No space left on device"]);
    let ended = in_shell(&place, &format!("\"$0\" {fio} --output=/nope/report"));
    assert_refused(&ended, 1, &["/nope/report", "--output=FILE"]);
    assert_eq!(names_in(place.target()), ["t.0.0"]);
}

#[test]
fn missing_environment_variables_are_handled() {
    let _loading = loading();
    let place = Place::new();
    let environments: [&[(&str, &str)]; 6] = [
        &[],
        &[("TERM", "dumb")],
        &[("HOME", "")],
        &[("HOME", "relative"), ("XDG_DATA_HOME", "relative")],
        &[("TZ", "No/Where"), ("LANG", "xx_YY"), ("COLUMNS", "0"), ("PATH", "")],
        &[("FATHOM_HISTORY", ""), ("FATHOM_DESTROY_DATA", ":::"), ("NO_COLOR", "")],
    ];
    for environment in environments {
        let mut bench = place.bench(place.target(), &[]);
        let ended = run(bench.env_clear().envs(environment.iter().copied()).current_dir(place.home.path()));
        ended.assert_code(0).assert_shown(&["lat-read"]);
        // Without a home no run can be stored, which is reported.
        assert!(!ended.stdout.contains("Kept"), "{ended}");
        ended.assert_told(&["warning: ", "not kept", "--history"]);
        assert_eq!(without_stalls(&ended.stderr).lines().count(), 2, "{ended}");
        let mut bench = place.bench(place.target(), &["--no-history"]);
        let ended = run(bench.env_clear().envs(environment.iter().copied()));
        assert_eq!(without_stalls(&ended.assert_code(0).stderr), "");
        let mut fio = place.fio(&["--size=64k", "--rw=write"]);
        let ended = run(fio.env_clear().envs(environment.iter().copied()));
        assert_eq!(ended.assert_code(0).stderr, "");
    }
    assert_eq!((names_in(place.target()), names_in(place.home.path())), (vec!["bad.0.0".to_owned()], vec![]));
}

#[test]
fn a_removed_working_directory_is_reported() {
    let _loading = loading();
    let place = Place::new();
    let script = "mkdir \"$1/gone\" && cd \"$1/gone\" && rmdir ../gone && exec \"$0\" ";
    let ended = in_shell(&place, &format!("{script} fio --name=t --size=1m --rw=write"));
    assert_refused(&ended, 1, &["t.0.0", "No such file or directory"]);
    let ended = in_shell(&place, &format!("{script} bench --quick"));
    assert_refused(&ended, 1, &["error: .", "No such file or directory", "hint: "]);
    let ended = in_shell(&place, &format!("{script} {} ..", SHORT.join(" ")));
    assert!(ended.status.code() == Some(1) || ended.status.success(), "{ended}");
}

#[test]
fn two_benches_share_a_directory_and_a_history() {
    need!(tool "sqlite3");
    let _loading = loading();
    let place = Place::new();
    let mut programs: Vec<Program> = (0..3)
        .map(|_| Program::start(&mut place.bench(place.target(), &["--only=lat-write,commit,rand-read"])))
        .collect();
    let have_ended = || programs.iter_mut().all(Program::has_ended);
    assert!(wait_for(Duration::from_secs(90), have_ended));
    for program in programs {
        let ended = program.finish();
        ended.assert_code(0).assert_shown(&["Kept as run "]);
        assert_eq!(without_stalls(&ended.stderr), "");
    }
    assert_eq!(names_in(place.target()), [""; 0]);
    let rows = run(&mut place.command(&["history", "list", "--json"])).document();
    let rows = rows.as_array().expect("a list");
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row["status"] == "complete"), "{rows:#?}");
    let history = place.home.path().join(".local/share/fathom/history.db");
    assert_eq!(must_run(Command::new("sqlite3").arg(history).arg("PRAGMA integrity_check")), "ok");
}
