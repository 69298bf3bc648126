//! Chromium without a window: it runs the probe in a copy of a page, takes screenshots, and opens the page without scripts.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use fathom_tests::{Ended, Program};
use serde_json::{Value, json};

use super::tools::{CHROMIUM, Checkers};

const PROBE: &str = include_str!("probe.js");
const FRAME: &str = include_str!("frame.js");
/// What every page has before its policy: the probe stands behind it.
const CHARSET: &str = "<meta charset=\"utf-8\">\n";
const WINDOW_HEIGHT: u64 = 900;
/// Chromium draws no picture that is much higher.
const MOST_HEIGHT: u64 = 9000;
/// What makes a frame run no script.
const NO_SCRIPTS: &str = " sandbox=\"allow-same-origin\"";
/// Time of the page, which passes at once where nothing is computed.
const VIRTUAL_MS: u32 = 20_000;
const LONGEST: Duration = Duration::from_secs(300);

/// A screen that a page is opened on.
pub struct Screen {
    pub width: u64,
    pub dark: bool,
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

/// What was seen of a page on a screen.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    pub charts: u64,
    /// Height of the page, px.
    pub height: u64,
    pub faults: Vec<String>,
}

/// Opens one page, again and again.
pub struct Browser<'a> {
    directory: &'a Path,
    name: &'a str,
    axe: String,
    /// Frames, copies and the browser's profile.
    scratch: tempfile::TempDir,
}

impl<'a> Browser<'a> {
    pub fn new(directory: &'a Path, name: &'a str, checkers: &Checkers) -> anyhow::Result<Browser<'a>> {
        let axe = fs::read_to_string(&checkers.axe).context("cannot read axe-core")?;
        Ok(Browser { directory, name, axe, scratch: tempfile::tempdir().context("cannot make a directory")? })
    }

    /// Uses the page `text` on `screen`; `shown` is a text that it has to show.
    pub fn probe(&self, text: &str, screen: &Screen, shown: &str) -> anyhow::Result<Seen> {
        let asked = json!({ "width": screen.width, "dark": screen.dark, "text": shown });
        let asked = format!("window.probed = {};", asked.to_string().replace('<', "\\u003c"));
        let scripts = [asked.as_str(), &self.axe, PROBE]
            .map(|script| format!("<script data-probe=\"\">{script}</script>\n"));
        ensure!(text.contains(CHARSET), "the page does not name its encoding");
        let copy = text.replacen(CHARSET, &format!("{CHARSET}{}", scripts.concat()), 1);
        let path = self.write("probed.html", &copy)?;
        let frame = self.frame(&path, screen, WINDOW_HEIGHT, "")?;
        let ended = self.chromium(screen, WINDOW_HEIGHT, &["--dump-dom".to_owned()], &frame);
        let mut seen = outcome(&ended.stdout).with_context(|| format!("{screen}:\n{}", ended.stderr))?;
        seen.faults.extend(console(&ended.stderr).map(|line| format!("console: {line}")));
        Ok(seen)
    }

    /// Looks at the page as it is where no script runs. Chromium says on the console that it runs none.
    pub fn without_scripts(&self, page: &Path, screen: &Screen) -> anyhow::Result<Seen> {
        let frame = self.frame(page, screen, WINDOW_HEIGHT, NO_SCRIPTS)?;
        let ended = self.chromium(screen, WINDOW_HEIGHT, &["--dump-dom".to_owned()], &frame);
        let seen = outcome(&ended.stdout).with_context(|| format!("{screen}:\n{}", ended.stderr))?;
        self.keep(page, screen, seen.height, NO_SCRIPTS, &format!("{}-no-scripts", screen.width))?;
        Ok(seen)
    }

    /// Keeps a picture of the page, whose height is known.
    pub fn screenshot(&self, page: &Path, screen: &Screen, height: u64) -> anyhow::Result<()> {
        self.keep(page, screen, height, "", &format!("{}-{}", screen.width, screen.scheme()))
    }

    fn keep(&self, page: &Path, screen: &Screen, height: u64, frame: &str, name: &str) -> anyhow::Result<()> {
        let height = height.clamp(WINDOW_HEIGHT, MOST_HEIGHT);
        let frame = self.frame(page, screen, height, frame)?;
        let picture = self.directory.join(format!("{}-{name}.png", self.name));
        // One of an earlier campaign is none of this one.
        fs::remove_file(&picture).ok();
        self.chromium(screen, height, &[format!("--screenshot={}", picture.display())], &frame);
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

    fn chromium(&self, screen: &Screen, height: u64, action: &[String], frame: &Path) -> Ended {
        let mut command = Command::new(CHROMIUM);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]);
        // The frame and the page in it are files of different directories.
        command.args(["--allow-file-access-from-files", "--enable-logging=stderr"]);
        command.args(["--disable-background-networking", "--disable-component-update", "--no-first-run"]);
        command.arg(format!("--user-data-dir={}", self.scratch.path().join("profile").display()));
        command.arg(format!("--blink-settings=preferredColorScheme={}", u8::from(!screen.dark)));
        command.arg(format!("--window-size={},{height}", screen.width));
        command.arg(format!("--virtual-time-budget={VIRTUAL_MS}"));
        command.args(action).arg(format!("file://{}", frame.display()));
        Program::start(&mut command).finish_within(LONGEST)
    }
}

/// What the frame wrote into its document.
fn outcome(document: &str) -> anyhow::Result<Seen> {
    let text = document
        .split_once("<pre id=\"outcome\" hidden=\"\">")
        .and_then(|(_, rest)| rest.split_once("</pre>"));
    let (text, _) = text.context("the page posted no result")?;
    let result: Value = serde_json::from_str(text).context("the result of the page is no JSON")?;
    let faults = result["faults"].as_array().context("the result of the page has no faults")?;
    Ok(Seen {
        charts: result["charts"].as_u64().unwrap_or(0),
        height: result["height"].as_u64().unwrap_or(0),
        faults: faults.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
    })
}

/// The messages of a page among those of the browser.
fn console(log: &str) -> impl Iterator<Item = &str> {
    log.lines().filter_map(|line| Some(line.split_once(":CONSOLE:")?.1))
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
        for wrong in [
            "",
            "<pre id=\"outcome\" hidden=\"\"></pre>",
            "<pre id=\"outcome\" hidden=\"\">{\"charts\":3}</pre>",
        ] {
            assert!(outcome(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn messages_of_the_browser_are_not_those_of_the_page() {
        let log =
            "[1:2:ERROR:dbus/bus.cc:405] Failed\n[1:1:INFO:CONSOLE:3] \"Uncaught Error: x\", source: a (3)\n";
        assert_eq!(console(log).collect::<Vec<_>>(), ["3] \"Uncaught Error: x\", source: a (3)"]);
    }
}
