//! The full-screen view on a terminal: its keys, and the terminal as it was, however the run ends.

use std::io::Write;
use std::num::NonZero;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use fathom_tests::{LoopDevice, MIB, Program, fathom, fathom_path, loading, need, run, scratch, wait_for};
use rustix::process::{Pid, Signal, kill_process};

/// The alternate screen, and back.
const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";
/// The size of a terminal that tells none.
const ROWS: NonZero<u16> = NonZero::new(24).expect("not 0");
const COLUMNS: NonZero<u16> = NonZero::new(80).expect("not 0");
/// How long something may take that is seen at once on a machine at rest.
const PATIENCE: Duration = Duration::from_secs(60);

/// A view on a terminal of its own, which takes its keys from a pipe.
struct View {
    program: Program,
    keys: ChildStdin,
    /// Holds the pipe open.
    _source: Child,
}

impl View {
    /// Runs `fathom` with `arguments` on a terminal.
    fn of(home: &Path, arguments: &str) -> View {
        View::of_line(home, &format!("{} {arguments}", fathom_path().display()))
    }

    /// Runs `line` on a terminal.
    fn of_line(home: &Path, line: &str) -> View {
        let mut source =
            Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("cat runs");
        let keys = source.stdin.take().expect("it is piped");
        let mut terminal = Command::new("script");
        terminal.args(["-q", "-e", "-f", "-c", line, "/dev/null"]).current_dir(home);
        terminal.env("HOME", home).env("TERM", "xterm").env("LANG", "C.UTF-8").env_remove("FATHOM_HISTORY");
        terminal.stdin(source.stdout.take().expect("it is piped"));
        View { program: Program::start(&mut terminal), keys, _source: source }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("somebody reads the keys");
    }

    /// Waits until the terminal shows `text`.
    #[track_caller]
    fn await_shown(&mut self, text: &str) {
        self.await_screen(text, |screen| screen.contains(text));
    }

    /// Waits until the terminal shows what `is_there` asks for, which `what` describes.
    #[track_caller]
    fn await_screen(&mut self, what: &str, is_there: impl Fn(&str) -> bool) {
        let shows = wait_for(PATIENCE, || self.program.has_ended() || is_there(&self.screen()));
        assert!(shows && !self.program.has_ended(), "{what:?} is not on\n{}", self.screen());
    }

    /// The screen as somebody before it sees it: the view writes only the cells that change.
    fn screen(&self) -> String {
        let mut terminal = vt100::Parser::new(ROWS, COLUMNS, 0);
        terminal.process(self.program.stdout().as_bytes());
        terminal.screen().contents()
    }
}

/// What the terminal shows after the view: the report. The view entered and left once.
#[track_caller]
fn after_the_view(shown: &str) -> &str {
    let (_, view) = shown.split_once(ENTER).unwrap_or_else(|| panic!("no view in {shown:?}"));
    let (view, after) =
        view.split_once(LEAVE).unwrap_or_else(|| panic!("the view was not left in {shown:?}"));
    assert!(!after.contains(ENTER) && !after.contains(LEAVE), "{after:?}");
    assert!(
        view.ends_with("\x1b[0m\x1b[?25h"),
        "colours and cursor are back: {:?}",
        &view[view.len() - 40..]
    );
    after
}

const BENCH: &str = "bench --tui --buffered --size 16m --only rand-read,rand-write,lat-read --runtime 200 .";

#[test]
fn a_key_ends_a_test_and_another_the_run() {
    need!(tool "script");
    let _loading = loading();
    let home = scratch();
    let mut view = View::of(home.path(), BENCH);
    view.await_shown("Test 1 of 3: lat-read");
    view.await_shown("measuring, ");
    view.press("n");
    view.await_shown("rand-read");
    view.await_shown("~ lat-read");
    view.press("?");
    view.await_shown("stop; what has been measured is kept");
    view.press("?q");
    let ended = view.program.finish();
    let report = after_the_view(&ended.stdout);
    assert!(report.contains("incomplete: ended early by key: next test"), "{report}");
    assert!(report.contains("Kept as run 1."), "{report}");
    let stored = run(fathom(home.path()).args(["history", "show", "--json"])).document();
    let statuses: Vec<&str> = stored["tests"]
        .as_array()
        .expect("tests")
        .iter()
        .filter_map(|test| test["status"].as_str())
        .collect();
    assert_eq!(statuses, ["incomplete"; 2]);
}

#[test]
fn a_ping_has_its_figures_and_prints_its_report_after_the_view() {
    need!(tool "script");
    let _loading = loading();
    let home = scratch();
    let mut view = View::of(home.path(), "ping --tui --buffered -i 20ms .");
    view.await_shown("Reads of 4.0 KiB");
    view.await_shown("answered,");
    view.await_shown("missed");
    view.await_shown("measuring, ");
    view.press("q");
    let ended = view.program.finish();
    let report = after_the_view(&ended.stdout);
    assert!(report.contains("requests completed") && !report.contains("request=1 "), "{report}");
}

#[test]
fn a_monitor_shows_one_device_after_the_other() {
    need!(root, tool "losetup", tool "script");
    let _loading = loading();
    let home = scratch();
    let devices = [LoopDevice::new(16 * MIB), LoopDevice::new(16 * MIB)];
    let names = devices.each_ref().map(|device| device.path().display().to_string());
    let line = format!("monitor --tui -i 200ms {} --live ndjson=lines {}", names[0], names[1]);
    let mut view = View::of(home.path(), &line);
    let kernel = names.each_ref().map(|name| name.trim_start_matches("/dev/").to_owned());
    view.await_shown(&format!(": {}", kernel[0]));
    view.press("n");
    // The mark moves to the second line of the devices.
    view.await_shown(&format!("▶ {}", kernel[1]));
    view.press("q");
    let ended = view.program.finish();
    let means = after_the_view(&ended.stdout);
    assert!(kernel.iter().all(|name| means.contains(name.as_str())), "{means}");
    let lines = std::fs::read_to_string(home.path().join("lines")).expect("they were written");
    let parse = |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("an object");
    let lines: Vec<serde_json::Value> = lines.lines().map(parse).collect();
    let types: Vec<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
    assert_eq!((types[0], types[types.len() - 1]), ("begin", "end"));
    let snapshot = lines.iter().find(|line| line["type"] == "snapshot").expect("an interval");
    assert_eq!(snapshot["intervals"][1]["device"]["name"], kernel[1].as_str());
}

#[test]
fn signals_leave_the_terminal_as_it_was() {
    need!(tool "script");
    let _loading = loading();
    for signal in [Signal::TERM, Signal::INT, Signal::QUIT] {
        let home = scratch();
        // The shell's own number becomes that of fathom.
        let shell = format!("sh -c 'echo $$ > pid; exec {} {BENCH}'", fathom_path().display());
        let mut view = View::of_line(home.path(), &shell);
        view.await_shown("measuring, ");
        let pid = std::fs::read_to_string(home.path().join("pid")).expect("it was written");
        let pid = pid.trim().parse().ok().and_then(Pid::from_raw).expect("it is a number");
        kill_process(pid, signal).expect("it runs");
        let ended = view.program.finish();
        after_the_view(&ended.stdout);
    }
}
