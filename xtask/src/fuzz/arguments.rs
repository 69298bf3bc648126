//! The arguments of a fuzzing campaign.

use anyhow::{Context as _, bail};

/// The parsed arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FuzzArguments {
    /// How long each target runs.
    pub seconds: u64,
    /// Number of concurrent targets, at least 1.
    pub jobs: usize,
    /// This target alone.
    pub only: Option<String>,
}

impl FuzzArguments {
    /// Reads the arguments.
    pub fn parse(arguments: &[&str]) -> anyhow::Result<FuzzArguments> {
        let mut asked = FuzzArguments { seconds: 30 * 60, jobs: 2, only: None };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let value = words.next().with_context(|| format!("{word} needs a value"))?;
            let number = || value.parse::<u64>().ok().filter(|number| (1..=100_000).contains(number));
            match *word {
                "--minutes" => {
                    asked.seconds = 60 * number().context("--minutes is a whole number above 0")?;
                }
                "--jobs" => asked.jobs = number().context("--jobs is a whole number above 0")? as usize,
                "--only" => asked.only = Some((*value).to_owned()),
                _ => bail!("{word} is not an argument; there are --minutes, --jobs and --only"),
            }
        }
        Ok(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_parsed_or_refused() {
        let asked = |seconds, jobs, only: Option<&str>| FuzzArguments {
            seconds,
            jobs,
            only: only.map(str::to_owned),
        };
        let parsed = |arguments: &[&str]| FuzzArguments::parse(arguments).map_err(|error| error.to_string());
        assert_eq!(parsed(&[]), Ok(asked(1800, 2, None)));
        let all = ["--minutes", "5", "--jobs", "1", "--only", "record"];
        assert_eq!(parsed(&all), Ok(asked(300, 1, Some("record"))));
        assert_eq!(parsed(&["--minutes"]), Err("--minutes needs a value".to_owned()));
        assert_eq!(parsed(&["--minutes", "0"]), Err("--minutes is a whole number above 0".to_owned()));
        assert!(parsed(&["--hours", "1"]).is_err());
    }
}
