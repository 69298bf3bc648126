//! Files that a user names for output: what lies there already is not harmed, and pipes go on working.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;

use crate::{ended, program, run, scratch};

const JOB: &[&str] = &["fio", "--name=a", "--filename=sim:custom?iops=100&size=1m", "--size=1m", "--rw=read"];

#[test]
fn fio_output_goes_to_pipes_and_devices_that_keep_nothing() {
    let dir = scratch();
    for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let output = format!("--output={name}");
        let ended = run(dir.path(), &[JOB, &[&output]].concat()).quietly();
        assert!(ended.stdout.starts_with("a: (g=0): rw=read"), "{name}: {}", ended.stdout);
    }
    run(dir.path(), &[JOB, &["--output=/dev/null"]].concat()).quietly();
    // As a shell passes on the pipe of `>(command)`.
    let mut shell = Command::new("sh");
    let line = r#"{ "$@" --output=/dev/fd/3 3>&1 >/dev/null; } | cat"#;
    shell.arg("-c").arg(line).arg("sh").arg(program(dir.path()).get_program()).args(JOB);
    let ended = ended(shell.current_dir(dir.path()).env("HOME", dir.path()).output().unwrap()).quietly();
    assert!(ended.stdout.starts_with("a: (g=0): rw=read"), "{}", ended.stdout);
}

#[test]
fn output_follows_no_link_in_a_directory_that_others_may_write_to() {
    let dir = scratch();
    let shared = dir.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o777)).unwrap();
    fs::write(dir.path().join("victim"), "precious").unwrap();
    symlink(dir.path().join("victim"), shared.join("out")).unwrap();
    let words = "the symbolic link 'out' lies where other users may make one";

    let refused = run(dir.path(), &[JOB, &["--output=shared/out"]].concat());
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains(words) && refused.stderr.contains("name the file itself"), "{refused:?}");

    let refused = run(dir.path(), &["monitor", "--count", "1", "--to-job", "shared/out"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains(words), "{refused:?}");

    let refused = run(dir.path(), &["history", "list", "--history", "shared/out"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains(words), "{refused:?}");

    // A run goes on, and its record goes beside the user's own history.
    let bench = ["bench", "sim:custom?iops=100", "--quick", "--only=rand-read", "--history", "shared/out"];
    let kept = run(dir.path(), &bench);
    assert_eq!(kept.code, Some(0), "{kept:?}");
    assert!(kept.stderr.contains(words) && kept.stderr.contains("the record is kept in"), "{kept:?}");
    assert_eq!(fs::read_to_string(dir.path().join("victim")).unwrap(), "precious");
}

#[test]
fn the_history_is_for_its_user_alone() {
    let dir = scratch();
    run(dir.path(), &["bench", "sim:custom?iops=100", "--quick", "--only=rand-read", "--keep"]).quietly();
    let place = dir.path().join("home/.local/share/fathom");
    assert_eq!(fs::metadata(&place).unwrap().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(place.join("history.db")).unwrap().mode() & 0o777, 0o600);
}
