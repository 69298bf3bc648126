//! Which runs a command of `history` is about, and what it says where there are none.

use clap::Args;
use fathom_history::{Filter, Listing};
use fathom_record::{ActivityKind, TestStatus};

/// The runs that are meant.
#[derive(Args)]
pub struct FilterArguments {
    /// Only runs of this target, as named on the command line
    #[arg(long)]
    pub target: Option<String>,
    /// Only runs of this command
    #[arg(long, value_name = "COMMAND", value_parser = activity)]
    kind: Option<ActivityKind>,
    /// Only runs with this status
    #[arg(long, value_parser = ["complete", "incomplete", "failed"])]
    status: Option<String>,
    /// Only runs with this label; a name alone means any value (repeatable)
    #[arg(long = "label", value_name = "NAME[=VALUE]")]
    labels: Vec<String>,
    /// Only runs with this tag
    #[arg(long)]
    tag: Option<String>,
}

/// Targets that are named where none matches.
const NAMED_TARGETS: usize = 5;

fn activity(name: &str) -> Result<ActivityKind, String> {
    ActivityKind::named(name).ok_or_else(|| format!("no command '{name}' keeps runs"))
}

impl FilterArguments {
    /// As the history takes it; the newest `newest` of them.
    pub fn filter(&self, newest: Option<usize>) -> Filter {
        let status = self.status.as_deref().and_then(|word| {
            [TestStatus::Complete, TestStatus::Incomplete, TestStatus::Failed]
                .into_iter()
                .find(|status| status.name() == word)
        });
        let label = |label: &String| match label.split_once('=') {
            Some((name, value)) => (name.trim().to_owned(), Some(value.trim().to_owned())),
            None => (label.trim().to_owned(), None),
        };
        Filter {
            status,
            target: self.target.clone(),
            kind: self.kind,
            labels: self.labels.iter().map(label).collect(),
            tag: self.tag.clone(),
            newest,
        }
    }

    /// What there is to say where no run of `all` matches: which filters were given, and what there is instead.
    pub fn none(&self, all: &Listing) -> String {
        let words = [
            self.target.as_ref().map(|target| format!("--target {target}")),
            self.kind.map(|kind| format!("--kind {}", kind.name())),
            self.status.as_ref().map(|status| format!("--status {status}")),
            self.tag.as_ref().map(|tag| format!("--tag {tag}")),
        ];
        let labels = self.labels.iter().map(|label| format!("--label {label}"));
        let words: Vec<String> = words.into_iter().flatten().chain(labels).collect();
        match (all.rows.len(), words.is_empty()) {
            (0, _) => "No runs are stored.".to_owned(),
            (_, true) => "No run matches.".to_owned(),
            (stored, false) => {
                let runs = if stored == 1 { "1 run".to_owned() } else { format!("{stored} runs") };
                format!("No run matches {}; the history has {runs}{}.", words.join(" "), self.targets(all))
            }
        }
    }

    /// The targets of the newest runs, where a target was asked for.
    fn targets(&self, all: &Listing) -> String {
        let mut named: Vec<&str> = Vec::new();
        for row in all.rows.iter().rev() {
            if !named.contains(&row.target.as_str()) {
                named.push(&row.target);
            }
        }
        let more = if named.len() > NAMED_TARGETS { ", ..." } else { "" };
        named.truncate(NAMED_TARGETS);
        match self.target {
            Some(_) => format!(" (of {}{more})", named.join(", ")),
            None => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_record::HistoryRow;

    fn asked(target: Option<&str>, status: Option<&str>) -> FilterArguments {
        FilterArguments {
            target: target.map(str::to_owned),
            kind: None,
            status: status.map(str::to_owned),
            labels: Vec::new(),
            tag: None,
        }
    }

    #[test]
    fn a_filter_without_hits_is_named_with_what_there_is() {
        let row = |target: &str| HistoryRow { target: target.to_owned(), ..HistoryRow::default() };
        let all = Listing { rows: vec![row("/a"), row("/b"), row("/a")], ..Listing::default() };
        assert_eq!(
            asked(Some("/c"), Some("failed")).none(&all),
            "No run matches --target /c --status failed; the history has 3 runs (of /a, /b)."
        );
        assert_eq!(asked(Some("/c"), None).none(&Listing::default()), "No runs are stored.");
        assert_eq!(asked(None, None).none(&all), "No run matches.");
    }
}
