//! Completions as real shells ask for them, and manual pages as real formatters read them.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use fathom_tests::need;

use crate::{files_in, history_args, run, run_with_history, scratch};

/// What a shell prints for `script`, with the program on its search path.
fn shell(dir: &Path, name: &str, options: &[&str], script: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_fathom")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let file = dir.join("script");
    std::fs::write(&file, script).unwrap();
    let mut command = Command::new(name);
    command
        .args(options)
        .arg(&file)
        .current_dir(dir)
        .env_clear()
        .env("PATH", path)
        .env("HOME", dir.join("home"));
    let output = command.env("TERM", "dumb").stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(text(&output.stderr), "", "{name}: {}", text(&output.stdout));
    text(&output.stdout)
}

/// A directory whose history has a tagged run.
fn with_a_run() -> tempfile::TempDir {
    let dir = scratch();
    let args =
        ["bench", "--only", "lat-read", "--runtime", "1", "--tag", "before", "sim:aws-gp3?size=100GiB"];
    run_with_history(dir.path(), &args).quietly();
    dir
}

/// The candidates that the program itself names for a line, without their meanings.
fn candidates(dir: &Path, words: &[&str]) -> Vec<String> {
    let ended = run(dir, &[&["__complete"], words].concat()).quietly();
    ended.stdout.lines().skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn runs_tags_tests_and_types_complete() {
    let dir = with_a_run();
    let history = history_args(dir.path())[0];
    let check = |words: &[&str], expected: &[&str]| {
        let words = [&["history", history], words].concat();
        assert_eq!(candidates(dir.path(), &words), expected, "{words:?}");
    };
    check(&["show", ""], &["last", "1"]);
    check(&["tag", "b"], &["before"]);
    check(&["list", "--tag", ""], &["before"]);
    check(&["list", "--target", "sim:"], &["sim:aws-gp3?size=100GiB"]);
    check(&["list", "--kind", "s"], &["simulate", "surface", "sweep"]);
    assert_eq!(candidates(dir.path(), &["compare", history, "tag:"]), ["tag:before"]);
    assert_eq!(candidates(dir.path(), &["bench", "--only", "rand-r"]), ["rand-read", "rand-read-jobs"]);
    assert_eq!(candidates(dir.path(), &["catalog", "show", "aws-gp3"]), ["aws-gp3", "aws-gp3-2023"]);
    assert_eq!(candidates(dir.path(), &["man", "history", "t"]), ["trend", "tag"]);
    assert_eq!(candidates(dir.path(), &["nonsense", "x"]), [""; 0]);
    assert_eq!(candidates(dir.path(), &[]), [""; 0]);
    assert_eq!(files_in(dir.path()).len(), 1, "completing makes no file: {:?}", files_in(dir.path()));
}

#[test]
fn bash_completes() {
    need!(tool "bash");
    let dir = with_a_run();
    std::fs::write(dir.path().join("jobs.fio"), "").unwrap();
    // As readline calls the function: words are split at = and :, and the last is what it replaces.
    let script = "source <(fathom completions bash)
compopt() { :; }
try() {
    COMP_LINE=$1 COMP_POINT=${#1}; shift
    COMP_WORDS=(\"${@:1:$#-1}\") COMP_CWORD=$(($# - 2))
    _fathom fathom \"${@:$#}\"
    echo \"$COMP_LINE|${COMPREPLY[*]}\"
}
try 'fathom doc' fathom doc doc
try 'fathom bench --suite=clo' fathom bench --suite = clo clo
try 'fathom bench --suite clo' fathom bench --suite clo clo
try 'fathom bench sim:aws-gp3' fathom bench sim : aws-gp3 aws-gp3
try \"fathom bench 'sim:aws-gp3\" fathom bench \"'sim:aws-gp3\" sim:aws-gp3
try 'fathom history --history=h.db show l' fathom history --history = h.db show l l
try 'fathom compare --history h.db tag:' fathom compare --history h.db tag : ''
try 'fathom fio jo' fathom fio jo jo
try 'fathom history --history=h.db list --target ' fathom history --history = h.db list --target '' ''
";
    let expected = "fathom doc|doctor
fathom bench --suite=clo|cloud-disk
fathom bench --suite clo|cloud-disk
fathom bench sim:aws-gp3|aws-gp3 aws-gp3-2023
fathom bench 'sim:aws-gp3|sim:aws-gp3 sim:aws-gp3-2023
fathom history --history=h.db show l|last
fathom compare --history h.db tag:|before
fathom fio jo|jobs.fio
fathom history --history=h.db list --target |sim:aws-gp3\\?size=100GiB
";
    assert_eq!(shell(dir.path(), "bash", &["--norc"], script), expected);
}

#[test]
fn fish_completes() {
    need!(tool "fish");
    let dir = with_a_run();
    let script = "source (fathom completions fish | psub)
for line in 'fathom doc' 'fathom bench --suite=cloud' 'fathom bench sim:aws-gp3' 'fathom history --history h.db show l'
    complete -C $line
end
";
    let expected = "doctor\tCheck this machine for what would distort results
--suite=cloud-disk
sim:aws-gp3\tEBS General Purpose SSD
sim:aws-gp3-2023\tEBS General Purpose SSD
last\tthe newest run
";
    assert_eq!(shell(dir.path(), "fish", &["--no-config"], script), expected);
}

#[test]
fn zsh_completes() {
    need!(tool "zsh");
    let dir = scratch();
    // The builtins that need the line editor are replaced by ones that print what they are given.
    let script = "compdef() { :; }
compadd() { print -r -- \"add $#: ${@[1,-6]}|${words_found[*]}|${shown[*]}\"; }
compset() { :; }
_files() { print files; }
source <(fathom completions zsh)
try() { words=(\"$@\"); CURRENT=$#; PREFIX=${@[-1]}; _fathom; }
try fathom doc
try fathom bench --suite=cloud
try fathom bench sim:aws-gp3
try fathom prepare --precond
";
    let expected = "add 6: -l|doctor|doctor  -- Check this machine for what would distort results
add 6: -l|--suite=cloud-disk|--suite=cloud-disk
files
add 6: -l|sim:aws-gp3 sim:aws-gp3-2023|sim:aws-gp3  -- EBS General Purpose SSD sim:aws-gp3-2023  -- EBS General Purpose SSD
add 8: -l -S |--precondition=|--precondition=  -- Write every block twice";
    let found = shell(dir.path(), "zsh", &["-f"], script);
    assert!(found.starts_with(expected), "{found}");
}

#[test]
fn manual_pages_are_read_without_complaint() {
    let dir = scratch();
    let pages = dir.path().join("man1");
    std::fs::create_dir(&pages).unwrap();
    let said = run(dir.path(), &["man", "--dir", "man1"]).quietly().stdout;
    let files = files_in(&pages);
    assert_eq!(said, format!("Wrote {} pages to man1.\n", files.len()));
    let bench = run(dir.path(), &["man", "bench"]).quietly().stdout;
    assert_eq!(bench, std::fs::read_to_string(pages.join("fathom-bench.1")).unwrap());
    for (args, part) in [
        (&["man", "fly"][..], "unknown command 'fly'"),
        (&["man", "--dir", "nowhere"], "nowhere is not a directory"),
        (&["man", "--dir", "man1", "bench"], "cannot be used with"),
    ] {
        let ended = run(dir.path(), args);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(part), "{ended:?}");
    }
    need!(tool "mandoc");
    for file in files {
        // Pages have no date, so that they are the same however often they are made.
        let output = Command::new("mandoc").args(["-Tlint", "-W", "warning"]).arg(&file).output().unwrap();
        let complaints = String::from_utf8_lossy(&output.stdout).into_owned();
        let others: Vec<&str> = complaints.lines().filter(|line| !line.contains("missing date")).collect();
        assert!(others.is_empty(), "{others:?}");
    }
}

#[test]
fn manual_pages_show_text_that_roff_would_obey() {
    need!(tool "mandoc");
    let dir = scratch();
    let page = run(dir.path(), &["man", "simulate"]).quietly().stdout;
    let mut mandoc = Command::new("mandoc")
        .args(["-Tutf8", "-O", "width=200"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    mandoc.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let shown = String::from_utf8(mandoc.wait_with_output().unwrap().stdout).unwrap();
    assert!(shown.contains("fathom simulate 'aws-gp2-2016?size=50GiB' --profile oltp --for 24h"), "{shown}");
}
