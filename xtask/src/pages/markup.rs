//! The Nu HTML Checker's word on a page.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};
use fathom_tests::Program;
use serde_json::Value;

use super::tools::{Checkers, JAVA};

const LONGEST: Duration = Duration::from_secs(120);

/// The errors of `page`.
pub fn faults(checkers: &Checkers, page: &Path) -> anyhow::Result<Vec<String>> {
    let mut command = Command::new(JAVA);
    command
        .arg("-jar")
        .arg(&checkers.vnu)
        .args(["--format", "json", "--stdout", "--exit-zero-always"])
        .arg(page);
    let ended = Program::start(&mut command).finish_within(LONGEST);
    if !ended.status.success() {
        bail!("the HTML checker failed:\n{}", ended.stderr);
    }
    errors(&ended.stdout)
}

/// Its messages other than information, such as that it computes no hash of a policy.
fn errors(document: &str) -> anyhow::Result<Vec<String>> {
    let document: Value = serde_json::from_str(document).context("the HTML checker's result is no JSON")?;
    let messages = document["messages"].as_array().context("the HTML checker's result has no messages")?;
    let errors = messages.iter().filter(|message| message["type"] != "info");
    Ok(errors
        .map(|error| {
            format!("HTML: {} in line {}", error["message"].as_str().unwrap_or_default(), error["lastLine"])
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn information_is_no_error() {
        let document = r#"{"messages":[{"type":"info","message":"hash","lastLine":6},
            {"type":"error","message":"Stray end tag","lastLine":9}]}"#;
        assert_eq!(errors(document).unwrap(), ["HTML: Stray end tag in line 9"]);
        assert!(errors("").is_err() && errors("{}").is_err());
    }
}
