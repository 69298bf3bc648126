//! Histories that cannot be used: the run goes on without them.

use super::{Place, assert_refused, names_in};
use fathom_tests::{MIB, Mount, loading, must_run, need, run, scratch};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[test]
fn a_history_without_space_does_not_stop_the_run() {
    need!(root, tool "mount");
    let _loading = loading();
    let place = Place::new();
    let small = Mount::tmpfs(MIB);
    fs::write(small.join("taken"), vec![1; (1 << 20) - 8192]).expect("there is room");
    let history = format!("--history={}", small.join("history.db").display());
    let ended = run(&mut place.bench(place.target(), &[&history]));
    ended.assert_code(0).assert_shown(&["lat-read", "Kept in "]).assert_told(&["warning: ", "history.db"]);
    let kept = ended.stdout.lines().find_map(|line| line.strip_prefix("Kept in ")).expect("it says where");
    fs::remove_file(kept.trim_end_matches('.')).expect("the record is where it says");
}

/// The messages of `fathom` about an unusable history, for reading and for measuring; measuring continues.
fn unusable_history(history: &Path, parts: &[&str]) {
    let place = Place::new();
    let directory = history.parent().expect("a history is in a directory");
    let named = format!("--history={}", history.display());
    assert_refused(&run(place.command(&["history", "list"]).arg(&named)), 1, parts);
    assert_refused(&run(place.command(&["history", "show"]).arg(&named)), 1, parts);
    assert_refused(&run(place.command(&["history", "rm", "1"]).arg(&named)), 1, parts);
    let before = place.side_files(directory).len();
    let ended = run(&mut place.bench(place.target(), &[&named]));
    ended
        .assert_code(0)
        .assert_shown(&["lat-read", "Kept in "])
        .assert_told(&["warning: ", "hint: "])
        .assert_told(parts);
    assert_eq!(ended.stderr.lines().count(), 2, "{ended}");
    let side_files = place.side_files(directory);
    assert_eq!(side_files.len(), before + 1, "{ended}");
    let record: serde_json::Value = side_files
        .iter()
        .find(|path| ended.stdout.contains(&*path.to_string_lossy()))
        .and_then(|path| serde_json::from_str(&fs::read_to_string(path).ok()?).ok())
        .expect("the record is where it says");
    assert_eq!(record["tests"][0]["id"], "lat-read");
    // fio's front says so in its report.
    let words = ["--size=64k", "--rw=write", "--output-format=json"];
    let ended = run(place.fio(&words).env("FATHOM_HISTORY", history));
    assert_eq!(ended.assert_code(0).stderr, "");
    assert!(ended.document().to_string().contains("the record is kept in"), "{ended}");
    assert_eq!(names_in(place.target()), ["bad.0.0"]);
}

/// A history with one run in it.
fn history_in(directory: &Path) -> PathBuf {
    let (place, history) = (Place::new(), directory.join("history.db"));
    let named = format!("--history={}", history.display());
    run(&mut place.bench(place.target(), &[&named])).assert_code(0).assert_shown(&["Kept as run 1"]);
    history
}

#[test]
fn unusable_histories_do_not_stop_the_run() {
    need!(tool "sqlite3");
    let _loading = loading();
    let directory = scratch();
    let history = history_in(directory.path());
    let noise: Vec<u8> = (0..100_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("noise.db"), &noise).expect("it is ours");
    unusable_history(&path("noise.db"), &["noise.db", "is not a fathom history", "mv "]);
    assert_eq!(fs::read(path("noise.db")).expect("it is ours"), noise, "what is not ours is not written to");
    fs::copy(&history, path("newer.db")).expect("it is ours");
    must_run(Command::new("sqlite3").arg(path("newer.db")).arg("PRAGMA user_version=999"));
    unusable_history(&path("newer.db"), &["newer.db", "format 999", "newer"]);
    fs::copy(&history, path("cut.db")).expect("it is ours");
    File::options().write(true).open(path("cut.db")).and_then(|file| file.set_len(9000)).expect("it is ours");
    unusable_history(&path("cut.db"), &["cut.db", "damaged", "mv "]);
    must_run(
        Command::new("sqlite3")
            .arg(path("other.db"))
            .arg("CREATE TABLE addresses (name); INSERT INTO addresses VALUES (1)"),
    );
    unusable_history(&path("other.db"), &["other.db", "is the database of another program"]);
    fs::create_dir(path("directory.db")).expect("it is ours");
    unusable_history(&path("directory.db"), &["directory.db", "is a directory"]);
}

#[test]
fn a_locked_history_does_not_stop_the_run() {
    need!(tool "sqlite3");
    let _loading = loading();
    let directory = scratch();
    let history = history_in(directory.path());
    // sqlite3 holds the lock until its input ends.
    let mut holder = Command::new("sqlite3")
        .arg(&history)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it was found on the path");
    let mut input = holder.stdin.take().expect("it is a pipe");
    std::io::Write::write_all(&mut input, b"BEGIN EXCLUSIVE;\nSELECT 'locked';\n").expect("it reads");
    let mut line = String::new();
    let mut output = std::io::BufReader::new(holder.stdout.take().expect("it is a pipe"));
    std::io::BufRead::read_line(&mut output, &mut line).expect("it answers");
    assert_eq!(line, "locked\n");
    let place = Place::new();
    let named = format!("--history={}", history.display());
    // Reading does not wait.
    run(place.command(&["history", "list"]).arg(&named)).assert_code(0).assert_shown(&["complete"]);
    let ended = run(&mut place.bench(place.target(), &[&named]));
    ended.assert_code(0).assert_shown(&["lat-read", "Kept in "]);
    ended.assert_told(&["warning: ", "is locked by another process", "fuser"]);
    assert_eq!(place.side_files(directory.path()).len(), 1);
    let ended = run(place.command(&["history", "rm", "1"]).arg(&named));
    assert_refused(&ended, 1, &["is locked by another process", "fuser"]);
    drop(input);
    holder.wait().expect("it is our child");
    run(place.command(&["history", "rm", "1"]).arg(&named)).assert_code(0);
}

#[test]
fn a_history_beside_a_device_leaves_no_files() {
    need!(root);
    let _loading = loading();
    let place = Place::new();
    let before = names_in(Path::new("/dev")).iter().filter(|name| name.starts_with("fathom-")).count();
    let ended = run(&mut place.bench(place.target(), &["--history=/dev/null"]));
    ended.assert_code(0).assert_told(&["/dev/null", "not a regular file"]);
    if let Some(kept) = ended.stdout.lines().find_map(|line| line.strip_prefix("Kept in ")) {
        fs::remove_file(kept.trim_end_matches('.')).expect("the record is where it says");
    }
    let after = names_in(Path::new("/dev")).iter().filter(|name| name.starts_with("fathom-")).count();
    assert_eq!(after, before, "{ended}");
}
