//! The stored counts: one TOML file, a table for each crate, two decimals, written in one form only.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};

use super::build::Compiler;

const HEAD: &str = "\
# Instructions per operation, counted by `cargo xtask instructions`. The gate fails where one is off by more than 3 %.
# Renewed by `cargo xtask instructions --write`, in the commit that changes the code and says why.
";

/// Counts, and their compiler and machine.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredCounts {
    /// The compiler.
    pub compiler: Compiler,
    /// Instructions per operation by `CRATE/CASE`.
    pub counts: BTreeMap<String, f64>,
}

impl StoredCounts {
    /// Reads the file at `path`; `None` if it does not exist.
    pub fn read(path: &Path) -> anyhow::Result<Option<Self>> {
        match std::fs::read_to_string(path) {
            Ok(text) => {
                Self::parse(&text).map(Some).with_context(|| format!("cannot use {}", path.display()))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let mut words = BTreeMap::new();
        let mut counts = BTreeMap::new();
        for (key, value) in text.parse::<toml::Table>()? {
            match value {
                toml::Value::String(word) => _ = words.insert(key, word),
                toml::Value::Table(cases) => {
                    for (case, count) in cases {
                        let name = format!("{key}/{case}");
                        let count = count.as_float().filter(|count| count.is_finite() && *count > 0.0);
                        let count =
                            count.with_context(|| format!("{name} is no number above 0 with decimals"))?;
                        counts.insert(name, count);
                    }
                }
                other => bail!("{key} = {other} is neither a word nor a table"),
            }
        }
        let mut take = |key: &str| words.remove(key).with_context(|| format!("{key} is not there"));
        let compiler = Compiler { rustc: take("rustc")?, host: take("host")? };
        Ok(StoredCounts { compiler, counts })
    }

    /// The file.
    pub fn text(&self) -> String {
        let mut text =
            format!("{HEAD}rustc = \"{}\"\nhost = \"{}\"\n", self.compiler.rustc, self.compiler.host);
        let mut table = "";
        for (name, count) in &self.counts {
            let (crate_name, case) = name.split_once('/').unwrap_or(("", name));
            if crate_name != table {
                _ = write!(text, "\n[{crate_name}]\n");
                table = crate_name;
            }
            _ = writeln!(text, "{case} = {count:.2}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_counts_are_read_back() {
        let compiler = Compiler { rustc: "1.95.0 (abc)".into(), host: "x86_64-unknown-linux-gnu".into() };
        let counts = [("stats/latency", 21.0), ("runner/randread-depth-1", 214.25), ("runner/a", 0.5)];
        let counts = counts.map(|(name, count)| (name.to_owned(), count)).into();
        let stored = StoredCounts { compiler, counts };
        let text = stored.text();
        assert!(
            text.ends_with("\n[runner]\na = 0.50\nrandread-depth-1 = 214.25\n\n[stats]\nlatency = 21.00\n"),
            "{text}"
        );
        assert_eq!(StoredCounts::parse(&text).expect("it is ours"), stored);
    }

    #[test]
    fn invalid_files_are_refused_with_the_reason() {
        let check = |text: &str, expected: &str| {
            let error = StoredCounts::parse(text).expect_err(expected).to_string();
            assert!(error.contains(expected), "'{error}' does not say '{expected}'");
        };
        let head = "rustc = \"1\"\nhost = \"x\"\n";
        check("host = \"x\"\n", "rustc is not there");
        check("rustc = \"1\"\n", "host is not there");
        check(&format!("{head}[stats]\nlatency = \"21\"\n"), "stats/latency is no number");
        check(&format!("{head}[stats]\nlatency = -1.0\n"), "stats/latency is no number");
        check(&format!("{head}[stats]\nlatency = nan\n"), "stats/latency is no number");
        check(&format!("{head}latency = 21.0\n"), "latency = 21.0 is neither");
        check("rustc = ", "TOML");
    }
}
