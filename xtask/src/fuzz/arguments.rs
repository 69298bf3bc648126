//! The arguments of a fuzzing campaign.

use anyhow::{Context as _, bail};

/// The parsed arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FuzzArguments {
    /// How long each target runs, with the time of earlier calls.
    pub seconds: u64,
    /// Number of concurrent targets, at least 1.
    pub jobs: usize,
    /// These targets alone; all if none is named.
    pub only: Vec<String>,
    /// Count no time of earlier calls.
    pub fresh: bool,
}

impl FuzzArguments {
    /// Reads the arguments.
    pub fn parse(arguments: &[&str]) -> anyhow::Result<FuzzArguments> {
        let mut asked = FuzzArguments { seconds: 30 * 60, jobs: 2, only: Vec::new(), fresh: false };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} needs a value"));
            let mut number = || -> anyhow::Result<u64> {
                let number = value()?.parse::<u64>().ok().filter(|number| (1..=100_000).contains(number));
                number.with_context(|| format!("{word} is a whole number above 0"))
            };
            match *word {
                "--minutes" => asked.seconds = 60 * number()?,
                "--jobs" => asked.jobs = number()? as usize,
                "--only" => asked.only.extend(value()?.split(',').map(str::to_owned)),
                "--fresh" => asked.fresh = true,
                _ => bail!("{word} is not an argument; there are --minutes, --jobs, --only and --fresh"),
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
        let asked = |seconds, jobs, only: &[&str], fresh| FuzzArguments {
            seconds,
            jobs,
            only: only.iter().map(|name| (*name).to_owned()).collect(),
            fresh,
        };
        let parsed = |arguments: &[&str]| FuzzArguments::parse(arguments).map_err(|error| error.to_string());
        assert_eq!(parsed(&[]), Ok(asked(1800, 2, &[], false)));
        let all = ["--minutes", "5", "--fresh", "--jobs", "1", "--only", "record,suite", "--only", "trace"];
        assert_eq!(parsed(&all), Ok(asked(300, 1, &["record", "suite", "trace"], true)));
        assert_eq!(parsed(&["--minutes"]), Err("--minutes needs a value".to_owned()));
        assert_eq!(parsed(&["--minutes", "0"]), Err("--minutes is a whole number above 0".to_owned()));
        assert!(parsed(&["--hours", "1"]).is_err());
    }
}
