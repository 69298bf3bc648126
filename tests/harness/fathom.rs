//! The program under test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::Throttle;
use crate::shell::must_run;

/// The `fathom` binary: the one `FATHOM_BIN` names, else built once per test run with optimisation, as users run it.
pub fn fathom_path() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match std::env::var_os("FATHOM_BIN") {
        Some(path) => PathBuf::from(path),
        None => build(&["--release", "--package=fathom", "--all-features"], "fathom"),
    })
}

/// The program that joins a job as a rank of another version does: in the directory that `FATHOM_TEST_PROGRAMS` names, else
/// built once.
pub(crate) fn other_version_path() -> &'static Path {
    const NAME: &str = "fathom-test-other-version";
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match std::env::var_os("FATHOM_TEST_PROGRAMS") {
        Some(directory) => Path::new(&directory).join(NAME),
        None => build(&["--package=fathom-tests", &format!("--example={NAME}")], NAME),
    })
}

/// A command that runs `fathom` with `home` as the user's home: its history and settings go there.
pub fn fathom(home: &Path) -> Command {
    at_home(Command::new(fathom_path()), home)
}

/// As [`fathom`], inside `throttle`'s group.
pub fn fathom_under(throttle: &Throttle, home: &Path) -> Command {
    at_home(throttle.command(fathom_path()), home)
}

/// The binary under another name (`fio`, `ioping`) in `directory`, as a link.
pub fn fathom_named(directory: &Path, name: &str) -> PathBuf {
    let link = directory.join(name);
    std::os::unix::fs::symlink(fathom_path(), &link)
        .unwrap_or_else(|error| panic!("cannot link {}: {error}", link.display()));
    link
}

fn at_home(mut command: Command, home: &Path) -> Command {
    command.env("HOME", home).env_remove("XDG_DATA_HOME").env("NO_COLOR", "1");
    command.env_remove("FATHOM_HISTORY").env_remove("FATHOM_DESTROY_DATA");
    command
}

/// The text of a suite for `bench --suite`, all of whose profiles have one `runtime`; of each test its id, and its lines beside the title.
pub fn suite(runtime: &str, tests: &[(&str, &str)]) -> String {
    let profile =
        |name| format!("[profile.{name}]\nruntime = \"{runtime}\"\nramp = \"0s\"\nsize = \"16MiB\"\n");
    let test = |(id, lines): &(&str, &str)| format!("[[test]]\nid = \"{id}\"\ntitle = \"{id}\"\n{lines}\n");
    format!(
        "title = \"Tests\"\ndescription = \"Tests of known lengths.\"\nsource = \"fathom\"\n[options]\n\
         ioengine = \"io_uring\"\ndirect = 1\n{}{}",
        ["quick", "default", "thorough"].map(profile).concat(),
        tests.iter().map(test).collect::<String>()
    )
}

/// Builds a program of the workspace.
fn build(which: &[&str], name: &str) -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    let mut command = Command::new(cargo);
    command.arg("build").args(which);
    let messages = must_run(command.args(["--quiet", "--message-format=json", "--manifest-path", manifest]));
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .expect("cargo names the executable it built")
}
