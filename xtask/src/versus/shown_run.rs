//! Runs of fathom that something shows meanwhile: a view on a terminal, or streams with readers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::load::Shown;

/// The metrics are read this often.
const EVERY: Duration = Duration::from_millis(500);
/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// The message before the address of the metrics.
const ADDRESS: &str = "Live metrics: http://";

/// Runs `command`, which is to be `shown`, to its end; with a view, its document is what it wrote into `document`.
pub fn output(mut command: Command, shown: Shown, document: &Path) -> anyhow::Result<Output> {
    match shown {
        Shown::Nothing | Shown::Recorded => {
            command.output().with_context(|| format!("cannot run {command:?}"))
        }
        Shown::View => on_a_terminal(&command, document),
        Shown::Streams => with_readers(command),
    }
}

/// On a terminal that `script` makes; nobody looks at it.
fn on_a_terminal(command: &Command, document: &Path) -> anyhow::Result<Output> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words.map(|word| quoted(&word.to_string_lossy())).collect();
    let line = format!("stty cols 200 rows 50; exec {}", words.join(" "));
    let mut terminal = Command::new("script");
    terminal.args(["-q", "-e", "-f", "-c", &line, "/dev/null"]).env("TERM", "xterm").current_dir("/");
    terminal.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = terminal.spawn().context("cannot run script, of the package bsdutils")?;
    // Its end would end the terminal.
    let keys = child.stdin.take();
    let mut output = child.wait_with_output().context("cannot wait for script")?;
    drop(keys);
    if output.status.success() {
        output.stdout = std::fs::read(document)
            .with_context(|| format!("a run with a view wrote no {}", document.display()))?;
    }
    Ok(output)
}

/// With a client that reads the metrics twice a second; the lines go to a file.
fn with_readers(mut command: Command) -> anyhow::Result<Output> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child: Child = command.spawn().with_context(|| format!("cannot run {command:?}"))?;
    let mut messages = BufReader::new(child.stderr.take().context("its messages are piped")?);
    let mut first = String::new();
    messages.read_line(&mut first).context("cannot read what fathom says")?;
    let address = first.trim().strip_prefix(ADDRESS).and_then(|rest| rest.split('/').next());
    let Some(address) = address.map(str::to_owned) else {
        bail!("fathom names no address of its metrics: {first}");
    };
    let (end, has_ended) = channel::<()>();
    let reader = std::thread::spawn(move || {
        let mut answers = 0u32;
        while has_ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
            answers += u32::from(read_metrics(&address).is_ok_and(|text| text.ends_with("# EOF\n")));
        }
        answers
    });
    let output = child.wait_with_output().context("cannot wait for fathom")?;
    drop(end);
    let answers = reader.join().unwrap_or_default();
    if output.status.success() && answers == 0 {
        bail!("the metrics of a run were never answered: it is shorter than {} ms", EVERY.as_millis());
    }
    Ok(output)
}

fn read_metrics(address: &str) -> std::io::Result<String> {
    let mut client = TcpStream::connect(address)?;
    client.set_read_timeout(Some(PATIENCE))?;
    client.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let mut text = String::new();
    client.read_to_string(&mut text)?;
    Ok(text)
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_reach_the_program_on_the_terminal() {
        assert_eq!(quoted("--name=a b"), "'--name=a b'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
