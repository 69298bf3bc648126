//! `pages`: Chromium opens the pages of `fathom report` of runs on simulated volumes as phone, laptop and large screen show them, dark and
//! light, uses every chart by pointer and keyboard, and axe-core and the Nu HTML Checker look at them. A reader opens those of `fathom
//! serve`, which Playwright drives (`served.mjs`), and follows a run to its end.
//!
//! A page is tried in a frame, because the window of a headless Chromium is never narrower than 500 px. `probe.js` runs inside it
//! and `frame.js` around it. Pages and pictures are kept in `target/pages`.

use std::fmt;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use fathom_tests::{Ended, Need, Program, fathom, scratch};
use serde::Deserialize;
use serde_json::{Value, json};
use xtask::process::{now, output, target_directory};

use crate::driver::{Asked, Campaign, Case, CaseResult, Plan};

pub const CAMPAIGN: Campaign = Campaign {
    jobs: 2,
    ..Campaign::new(
        "pages",
        "Open the pages of reports in Chromium and use their charts, on six screens",
        plan,
    )
};

const CHROMIUM: &str = "chromium";
const JAVA: &str = "java";
const NODE: &str = "node";
const NPM: &str = "npm";
/// The programs with their Debian packages, and the checkers that npm's registry has.
const PROGRAMS: [(&str, &str); 5] =
    [(CHROMIUM, "chromium"), (JAVA, "default-jre-headless"), (NODE, "nodejs"), (NPM, "npm"), ("tar", "tar")];
const AXE: &str = "axe-core@4.14.1";
const VNU: &str = "vnu-jar@26.9.27";
const PLAYWRIGHT: &str = "playwright-core@1.64.1";
const PROBE: &str = include_str!("pages/probe.js");
const FRAME: &str = include_str!("pages/frame.js");
const SERVED: &str = include_str!("pages/served.mjs");
/// What every page has before its policy: the probe stands behind it.
const CHARSET: &str = "<meta charset=\"utf-8\">\n";
const WINDOW_HEIGHT: u64 = 900;
/// Chromium draws no picture that is much higher.
const MAX_HEIGHT: u64 = 9000;
/// What makes a frame run no script.
const NO_SCRIPTS: &str = " sandbox=\"allow-same-origin\"";
/// Time of the page, which passes at once where nothing is computed.
const VIRTUAL_MS: u32 = 20_000;
/// Longest time of a program: a run on virtual time by a binary without optimisation, a page, a reader of a server.
const LONGEST: Duration = Duration::from_secs(600);
const SCREENS: [Screen; 6] = [
    Screen { width: 390, dark: false },
    Screen { width: 390, dark: true },
    Screen { width: 1280, dark: false },
    Screen { width: 1280, dark: true },
    Screen { width: 2560, dark: false },
    Screen { width: 2560, dark: true },
];
/// What the history holds before a run is followed, and the command that makes that run.
const SERVED_RUNS: [&str; 3] = [
    "bench --quick --only=lat-read,rand-read sim:custom?iops=700&latency=500us&size=1GiB",
    "bench --quick --only=lat-read,rand-read sim:custom?iops=900&latency=500us&size=1GiB",
    "sweep sim:custom?iops=700&bandwidth=20MiB&latency=500us&parallelism=64&size=1GiB",
];
const FOLLOWED: &str =
    "fio --name=followed --ioengine=null --size=1g --rw=randread --rate_iops=1000 --time_based --runtime=20";

fn plan(asked: &Asked) -> anyhow::Result<Plan> {
    #[derive(Deserialize)]
    struct Subjects {
        page: Vec<Subject>,
    }
    let Subjects { page: subjects } = toml::from_str(include_str!("pages/subjects.toml"))?;
    let place = Arc::new(if asked.list { Place::default() } else { Place::prepared()? });
    let for_server = place.clone();
    let cases = subjects.into_iter().map(|subject| {
        let place = place.clone();
        Case::new(subject.name.clone(), move || place.try_report(&subject))
    });
    let served = Case::new("serve", move || for_server.try_served());
    Ok(Plan::new(cases.chain([served])))
}

/// A page of a report (`subjects.toml`).
#[derive(Deserialize)]
struct Subject {
    name: String,
    runs: Vec<Vec<String>>,
    #[serde(default)]
    selection: Vec<String>,
    #[serde(default)]
    text: String,
}

impl Subject {
    /// Measures, and writes the page into `directory`.
    fn make(&self, directory: &Path) -> anyhow::Result<PathBuf> {
        let home = scratch();
        for words in &self.runs {
            run_fathom(home.path(), words.iter().map(String::as_str).chain(["--keep"]))?;
        }
        let page = directory.join(format!("{}.html", self.name));
        let path = page.to_str().context("the target directory has a name of UTF-8")?;
        let last = ["last".to_owned()];
        let selection = if self.selection.is_empty() { &last[..] } else { &self.selection };
        let words = ["report"].into_iter().chain(selection.iter().map(String::as_str));
        run_fathom(home.path(), words.chain(["-o", path]))?;
        Ok(page)
    }
}

fn run_fathom<'a>(home: &Path, words: impl Iterator<Item = &'a str>) -> anyhow::Result<()> {
    let ended = Program::start(fathom(home).current_dir(home).args(words)).finish_within(LONGEST);
    ensure!(ended.status.success(), "{ended}");
    Ok(())
}

/// Where pages and pictures are kept, and what looks at them.
#[derive(Default)]
struct Place {
    directory: PathBuf,
    axe: PathBuf,
    vnu: PathBuf,
    playwright: PathBuf,
}

impl Place {
    /// Fails with the packages of programs that are missing, and fetches the checkers that are not there yet.
    fn prepared() -> anyhow::Result<Place> {
        let missing = missing(|name| fathom_tests::missing(&[Need::Tool(name)]).is_some());
        if let Some(message) = missing {
            bail!("{message}");
        }
        let directory = target_directory().join("pages");
        let unpacked = |package| unpack(&directory.join("checkers"), package);
        let (axe, vnu) = (unpacked(AXE)?.join("axe.min.js"), unpacked(VNU)?.join("build/dist/vnu.jar"));
        for file in [&axe, &vnu] {
            ensure!(file.exists(), "{} is not in its package", file.display());
        }
        let playwright = unpacked(PLAYWRIGHT)?;
        Ok(Place { directory, axe, vnu, playwright })
    }

    fn try_report(&self, subject: &Subject) -> anyhow::Result<CaseResult> {
        let page = subject.make(&self.directory)?;
        let text = fs::read_to_string(&page).with_context(|| format!("cannot read {}", page.display()))?;
        let mut faults = self.markup_faults(&page)?;
        let scratch = tempfile::tempdir().context("cannot make a directory")?;
        let browser = Browser { place: self, name: &subject.name, scratch };
        let mut charts = 0;
        let mut add = |screen: &Screen, seen: &Seen| {
            charts = charts.max(seen.charts);
            faults.extend(seen.faults.iter().map(|fault| format!("{screen}: {fault}")));
        };
        for screen in &SCREENS {
            let seen = browser.probe(&text, screen, &subject.text)?;
            browser.keep(&page, screen, seen.height, "", &format!("{}-{}", screen.width, screen.scheme()))?;
            add(screen, &seen);
        }
        for screen in SCREENS.iter().filter(|screen| !screen.dark) {
            let seen = browser.without_scripts(&page, screen)?;
            ensure!(seen.charts > 0 || !seen.faults.is_empty(), "the page has no chart without scripts");
            add(screen, &seen);
        }
        Ok(CaseResult::new(format!("{} KiB, {charts} charts", text.len() / 1024)).faults(faults))
    }

    /// Serves a history and tries its pages.
    fn try_served(&self) -> anyhow::Result<CaseResult> {
        let home = scratch();
        for words in SERVED_RUNS {
            run_fathom(home.path(), words.split(' ').chain(["--keep"]))?;
        }
        let server = Server::start(home.path())?;
        let run = Program::start(fathom(home.path()).args(FOLLOWED.split(' ')).arg("--keep"));
        let running = SERVED_RUNS.len() + 1;
        server.wait_for(&format!("/runs/{running}/follow"))?;
        let script = self.directory.join("served.mjs");
        fs::write(&script, SERVED).with_context(|| format!("cannot write {}", script.display()))?;
        let asked = json!({
            "playwright": self.playwright, "chromium": CHROMIUM, "axe": self.axe, "address": server.address,
            "directory": self.directory, "running": running,
            "screens": SCREENS.map(|screen| json!({"width": screen.width, "dark": screen.dark})),
            "places": {
                "runs": "/", "search": "/?text=custom&kind=bench", "report": "/runs/3", "last": "/runs/last",
                "compare": "/compare?run=1&run=2", "trend": "/trend?metric=rand-read.p99",
                "remove": "/runs/1/remove", "missing": "/runs/999",
            },
        });
        let mut reader = Command::new(NODE);
        let ended = Program::start(reader.arg(&script).arg(asked.to_string())).finish_within(LONGEST);
        ensure!(ended.status.success(), "the reader failed:\n{}", ended.stderr);
        ensure!(run.finish_within(LONGEST).status.success(), "the run that was followed failed");
        let mut result = CaseResult::default();
        let pages: Vec<ServedPage> = serde_json::from_str(&ended.stdout).context("the reader's result")?;
        for ServedPage { name, charts, screens, mut faults } in pages {
            let kept = self.directory.join(format!("served-{name}.html"));
            if kept.exists() {
                faults.extend(self.markup_faults(&kept)?);
            }
            result.line += &format!("\n    {name:<10} {charts:>3} charts, on {screens} screens");
            result = result.faults(faults.into_iter().map(|fault| format!("{name}: {fault}")));
        }
        Ok(result)
    }

    /// The Nu HTML Checker's errors in `page`.
    fn markup_faults(&self, page: &Path) -> anyhow::Result<Vec<String>> {
        let mut java = Command::new(JAVA);
        java.arg("-jar")
            .arg(&self.vnu)
            .args(["--format", "json", "--stdout", "--exit-zero-always"])
            .arg(page);
        let ended = Program::start(&mut java).finish_within(LONGEST);
        ensure!(ended.status.success(), "the HTML checker failed:\n{}", ended.stderr);
        markup_errors(&ended.stdout)
    }
}

fn missing(is_absent: impl Fn(&'static str) -> bool) -> Option<String> {
    let missing = || PROGRAMS.iter().filter(|(program, _)| is_absent(program));
    let programs = missing().map(|(program, _)| *program).collect::<Vec<_>>().join(" ");
    let packages = missing().map(|(_, package)| *package).collect::<Vec<_>>().join(" ");
    (!programs.is_empty()).then(|| format!("missing: {programs} (on Debian: apt-get install {packages})"))
}

/// The directory of an npm package, whose scripts are not run.
fn unpack(directory: &Path, package: &str) -> anyhow::Result<PathBuf> {
    let place = directory.join(package);
    let unpacked = place.join("package");
    if unpacked.exists() {
        return Ok(unpacked);
    }
    fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
    let mut npm = Command::new(NPM);
    let archive = output(npm.args(["pack", "--silent", "--ignore-scripts", package]).current_dir(&place))?;
    let archive = archive.lines().last().context("npm names no archive")?.to_owned();
    output(Command::new("tar").args(["--extract", "--file", &archive]).current_dir(&place))?;
    Ok(unpacked)
}

/// The checker's messages other than information, such as that it computes no hash of a policy.
fn markup_errors(document: &str) -> anyhow::Result<Vec<String>> {
    let document: Value = serde_json::from_str(document).context("the HTML checker's result is no JSON")?;
    let messages = document["messages"].as_array().context("the HTML checker's result has no messages")?;
    let errors = messages.iter().filter(|message| message["type"] != "info");
    let text = |error: &Value| error["message"].as_str().unwrap_or_default().to_owned();
    Ok(errors.map(|error| format!("HTML: {} in line {}", text(error), error["lastLine"])).collect())
}

/// A screen that a page is opened on.
struct Screen {
    width: u64,
    dark: bool,
}

impl Screen {
    fn scheme(&self) -> &'static str {
        if self.dark { "dark" } else { "light" }
    }
}

impl fmt::Display for Screen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} px {}", self.width, self.scheme())
    }
}

/// What was seen of a page on a screen; the height is that of the page, px.
#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Seen {
    charts: u64,
    height: u64,
    faults: Vec<String>,
}

/// A page, as the reader of a server saw it on some or all screens.
#[derive(Debug, PartialEq, Eq, Deserialize)]
struct ServedPage {
    name: String,
    charts: u64,
    screens: usize,
    faults: Vec<String>,
}

/// Chromium without a window, for one page.
struct Browser<'a> {
    place: &'a Place,
    name: &'a str,
    /// Frames, copies and the browser's profile.
    scratch: tempfile::TempDir,
}

impl Browser<'_> {
    /// Uses the page `text` on `screen`; `shown` is a text that it has to show.
    fn probe(&self, text: &str, screen: &Screen, shown: &str) -> anyhow::Result<Seen> {
        let asked = json!({ "width": screen.width, "dark": screen.dark, "text": shown });
        let asked = format!("window.probed = {};", asked.to_string().replace('<', "\\u003c"));
        let axe = fs::read_to_string(&self.place.axe).context("cannot read axe-core")?;
        let scripts = [asked.as_str(), &axe, PROBE]
            .map(|script| format!("<script data-probe=\"\">{script}</script>\n"));
        ensure!(text.contains(CHARSET), "the page does not name its encoding");
        let copy = text.replacen(CHARSET, &format!("{CHARSET}{}", scripts.concat()), 1);
        let (mut seen, log) = self.look_at(&self.write("probed.html", &copy)?, screen, "")?;
        seen.faults.extend(console(&log).map(|line| format!("console: {line}")));
        Ok(seen)
    }

    /// Looks at the page as it is where no script runs. Chromium says on the console that it runs none.
    fn without_scripts(&self, page: &Path, screen: &Screen) -> anyhow::Result<Seen> {
        let (seen, _) = self.look_at(page, screen, NO_SCRIPTS)?;
        self.keep(page, screen, seen.height, NO_SCRIPTS, &format!("{}-no-scripts", screen.width))?;
        Ok(seen)
    }

    fn look_at(&self, page: &Path, screen: &Screen, frame: &str) -> anyhow::Result<(Seen, String)> {
        let frame = self.frame(page, screen, WINDOW_HEIGHT, frame)?;
        let ended = self.chromium(screen, WINDOW_HEIGHT, "--dump-dom", &frame);
        let seen = outcome(&ended.stdout).with_context(|| format!("{screen}:\n{}", ended.stderr))?;
        Ok((seen, ended.stderr))
    }

    /// Keeps a picture of the page, whose height is known.
    fn keep(&self, page: &Path, screen: &Screen, height: u64, frame: &str, name: &str) -> anyhow::Result<()> {
        let height = height.clamp(WINDOW_HEIGHT, MAX_HEIGHT);
        let frame = self.frame(page, screen, height, frame)?;
        let picture = self.place.directory.join(format!("{}-{name}.png", self.name));
        // One of an earlier campaign is none of this one.
        fs::remove_file(&picture).ok();
        self.chromium(screen, height, &format!("--screenshot={}", picture.display()), &frame);
        ensure!(picture.exists(), "chromium wrote no {}", picture.display());
        Ok(())
    }

    fn write(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.scratch.path().join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    fn frame(&self, page: &Path, screen: &Screen, height: u64, more: &str) -> anyhow::Result<PathBuf> {
        let (width, page) = (screen.width, page.display());
        let style = format!(
            "body {{ margin: 0 }} iframe {{ border: 0; display: block; width: {width}px; height: {height}px }}"
        );
        let text = format!(
            "<!doctype html>\n<html style=\"color-scheme: light dark\"><head>{CHARSET}<style>{style}</style></head>\n\
             <body><iframe src=\"file://{page}\"{more}></iframe><script>{FRAME}</script></body></html>\n"
        );
        self.write("frame.html", &text)
    }

    fn chromium(&self, screen: &Screen, height: u64, action: &str, frame: &Path) -> Ended {
        let mut command = Command::new(CHROMIUM);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]);
        // The frame and the page in it are files of different directories.
        command.args(["--allow-file-access-from-files", "--enable-logging=stderr"]);
        command.args(["--disable-background-networking", "--disable-component-update", "--no-first-run"]);
        command.arg(format!("--user-data-dir={}", self.scratch.path().join("profile").display()));
        command.arg(format!("--blink-settings=preferredColorScheme={}", u8::from(!screen.dark)));
        command.arg(format!("--window-size={},{height}", screen.width));
        command.arg(format!("--virtual-time-budget={VIRTUAL_MS}"));
        command.arg(action).arg(format!("file://{}", frame.display()));
        Program::start(&mut command).finish_within(LONGEST)
    }
}

/// What the frame wrote into its document.
fn outcome(document: &str) -> anyhow::Result<Seen> {
    let text = document.split_once("<pre id=\"outcome\" hidden=\"\">");
    let text = text.and_then(|(_, rest)| rest.split_once("</pre>")).context("the page posted no result")?.0;
    serde_json::from_str(text).context("the result of the page is not what it is to be")
}

/// The messages of a page among those of the browser.
fn console(log: &str) -> impl Iterator<Item = &str> {
    log.lines().filter_map(|line| Some(line.split_once(":CONSOLE:")?.1))
}

/// A server, which ends when this is dropped.
struct Server {
    child: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Server {
    fn start(home: &Path) -> anyhow::Result<Server> {
        let mut command = fathom(home);
        command.args(["serve", "--listen=127.0.0.1:0", "--allow-write"]).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start the server")?;
        let out = BufReader::new(child.stdout.take().context("the server has no output")?);
        let mut server = Server { child, address: String::new() };
        let mut lines = out.lines().map_while(Result::ok);
        let link = lines.find_map(|line| Some(line.strip_prefix("Open http://")?.to_owned()));
        let link = link.context("the server names no address")?;
        link.split('/').next().unwrap_or_default().clone_into(&mut server.address);
        Ok(server)
    }

    /// Waits until `place` exists: a run that begins has a number as soon as it is kept.
    fn wait_for(&self, place: &str) -> anyhow::Result<()> {
        let began = now();
        loop {
            let mut client = TcpStream::connect(&self.address).context("the server does not answer")?;
            write!(client, "GET {place} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address)?;
            let mut reply = Vec::new();
            client.read_to_end(&mut reply)?;
            if reply.starts_with(b"HTTP/1.1 200") {
                return Ok(());
            }
            ensure!(began.elapsed() < LONGEST, "{place} did not appear");
            std::thread::park_timeout(Duration::from_millis(100));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_is_taken_out_of_the_dump() {
        let document = "<html><body><pre id=\"outcome\" hidden=\"\">{\"charts\":3,\"height\":900,\"faults\":\
            [\"c1: \\u003cb\\u003e\"]}</pre></body></html>";
        let expected = Seen { charts: 3, height: 900, faults: vec!["c1: <b>".to_owned()] };
        assert_eq!(outcome(document).unwrap(), expected);
        let empty = "<pre id=\"outcome\" hidden=\"\"></pre>";
        for wrong in ["", empty, "<pre id=\"outcome\" hidden=\"\">{\"charts\":3}</pre>"] {
            assert!(outcome(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn messages_of_the_browser_are_not_those_of_the_page() {
        let log =
            "[1:2:ERROR:dbus/bus.cc:405] Failed\n[1:1:INFO:CONSOLE:3] \"Uncaught Error: x\", source: a (3)\n";
        assert_eq!(console(log).collect::<Vec<_>>(), ["3] \"Uncaught Error: x\", source: a (3)"]);
    }

    #[test]
    fn information_is_no_error() {
        let document = r#"{"messages":[{"type":"info","message":"hash","lastLine":6},
            {"type":"error","message":"Stray end tag","lastLine":9}]}"#;
        assert_eq!(markup_errors(document).unwrap(), ["HTML: Stray end tag in line 9"]);
        assert!(markup_errors("").is_err() && markup_errors("{}").is_err());
    }

    #[test]
    fn missing_programs_are_named_with_their_packages() {
        assert_eq!(missing(|_| false), None);
        assert_eq!(
            missing(|name| name == JAVA || name == NPM).unwrap(),
            "missing: java npm (on Debian: apt-get install default-jre-headless npm)"
        );
    }
}
