//! The pages of `fathom serve`: a reader opens them in Chromium, which Playwright drives (`served.mjs`), and follows a run to its end.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use fathom_tests::{Program, fathom};
use serde_json::{Value, json};

use super::browser::Screen;
use super::markup;
use super::tools::{CHROMIUM, Checkers, NODE};

/// The name of these pages for `--only`.
pub const NAME: &str = "serve";
const SCRIPT: &str = include_str!("served.mjs");
const LONGEST: Duration = Duration::from_secs(600);
/// What the history holds before a run is followed.
const RUNS: [&[&str]; 3] = [
    &["bench", "--quick", "--only=lat-read,rand-read", "sim:custom?iops=700&latency=500us&size=1GiB"],
    &["bench", "--quick", "--only=lat-read,rand-read", "sim:custom?iops=900&latency=500us&size=1GiB"],
    &["sweep", "sim:custom?iops=700&bandwidth=20MiB&latency=500us&parallelism=64&size=1GiB"],
];
/// The number of the run that is followed, and the command that makes it.
const RUNNING: usize = RUNS.len() + 1;
const FOLLOWED: [&str; 8] = [
    "fio",
    "--name=followed",
    "--ioengine=null",
    "--size=1g",
    "--rw=randread",
    "--rate_iops=1000",
    "--time_based",
    "--runtime=20",
];

/// A page, as the script saw it on some or all screens.
#[derive(Debug, PartialEq, Eq)]
pub struct ServedPage {
    pub name: String,
    pub charts: u64,
    pub screens: usize,
    pub faults: Vec<String>,
}

/// Serves a history and tries its pages, which are kept in `directory`.
pub fn try_all(directory: &Path, checkers: &Checkers, screens: &[Screen]) -> anyhow::Result<Vec<ServedPage>> {
    let home = fathom_tests::scratch();
    for arguments in RUNS {
        let mut command = fathom(home.path());
        let ended = Program::start(command.args(arguments).arg("--keep")).finish_within(LONGEST);
        ensure!(ended.status.success(), "fathom {} failed:\n{}", arguments.join(" "), ended.stderr);
    }
    let server = Server::start(home.path())?;
    let run = Program::start(fathom(home.path()).args(FOLLOWED).arg("--keep"));
    server.wait_for(&format!("/runs/{RUNNING}/follow"))?;
    let mut pages = server.read(directory, checkers, screens)?;
    ensure!(run.finish_within(LONGEST).status.success(), "the run that was followed failed");
    for page in &mut pages {
        let kept = directory.join(format!("served-{}.html", page.name));
        if kept.exists() {
            page.faults.extend(markup::faults(checkers, &kept)?);
        }
    }
    Ok(pages)
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
        let said = BufReader::new(child.stdout.take().context("the server has no output")?);
        let mut server = Server { child, address: String::new() };
        let mut lines = said.lines().map_while(Result::ok);
        let link = lines.find_map(|line| Some(line.strip_prefix("Open http://")?.to_owned()));
        let link = link.context("the server names no address")?;
        link.split('/').next().unwrap_or_default().clone_into(&mut server.address);
        Ok(server)
    }

    /// Waits until `place` exists: a run that begins has a number as soon as it is kept.
    fn wait_for(&self, place: &str) -> anyhow::Result<()> {
        let began = crate::gate::now();
        while !self.has(place)? {
            ensure!(began.elapsed() < LONGEST, "{place} did not appear");
            std::thread::park_timeout(Duration::from_millis(100));
        }
        Ok(())
    }

    fn has(&self, place: &str) -> anyhow::Result<bool> {
        use std::io::{Read as _, Write as _};
        let mut client = TcpStream::connect(&self.address).context("the server does not answer")?;
        write!(client, "GET {place} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address)?;
        let mut reply = Vec::new();
        client.read_to_end(&mut reply)?;
        Ok(reply.starts_with(b"HTTP/1.1 200"))
    }

    fn read(
        &self,
        directory: &Path,
        checkers: &Checkers,
        screens: &[Screen],
    ) -> anyhow::Result<Vec<ServedPage>> {
        let script = directory.join("served.mjs");
        fs::write(&script, SCRIPT).with_context(|| format!("cannot write {}", script.display()))?;
        let screens: Vec<_> =
            screens.iter().map(|screen| json!({"width": screen.width, "dark": screen.dark})).collect();
        let asked = json!({
            "playwright": checkers.playwright, "chromium": CHROMIUM, "axe": checkers.axe,
            "address": self.address, "directory": directory, "screens": screens, "running": RUNNING,
            "places": {
                "runs": "/", "search": "/?text=custom&kind=bench", "report": "/runs/3", "last": "/runs/last",
                "compare": "/compare?run=1&run=2", "trend": "/trend?metric=rand-read.p99",
                "remove": "/runs/1/remove", "missing": "/runs/999",
            },
        });
        let ended =
            Program::start(Command::new(NODE).arg(&script).arg(asked.to_string())).finish_within(LONGEST);
        ensure!(ended.status.success(), "the reader failed:\n{}", ended.stderr);
        pages(&ended.stdout).context("the reader's result is not what it is to be")
    }
}

/// What the script wrote.
fn pages(document: &str) -> Option<Vec<ServedPage>> {
    let document: Value = serde_json::from_str(document).ok()?;
    let page = |page: &Value| {
        let faults = page["faults"].as_array()?.iter().filter_map(Value::as_str).map(str::to_owned);
        let name = page["name"].as_str()?.to_owned();
        let screens = usize::try_from(page["screens"].as_u64()?).ok()?;
        Some(ServedPage { name, charts: page["charts"].as_u64()?, screens, faults: faults.collect() })
    };
    document.as_array()?.iter().map(page).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reader_tells_of_every_page() {
        let told =
            pages(r#"[{"name": "runs", "charts": 0, "screens": 2, "faults": ["390 px dark: x"]}]"#).unwrap();
        let faults = vec!["390 px dark: x".to_owned()];
        assert_eq!(told, [ServedPage { name: "runs".to_owned(), charts: 0, screens: 2, faults }]);
        assert!(pages("[]").unwrap().is_empty());
        assert!(pages("").is_none() && pages(r#"[{"name": "runs"}]"#).is_none());
    }
}
