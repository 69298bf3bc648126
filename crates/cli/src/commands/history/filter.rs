//! Which runs a command of `history` is about, and what it says where there are none.

use clap::Args;
use fathom_history::{Filter, Listing};
use fathom_model::units::parse_duration;
use fathom_record::{ActivityKind, TestStatus};
use fathom_sys::clock::unix_ms;
use jiff::tz::TimeZone;

use crate::commands::words::date_in;

/// The runs that are meant.
#[derive(Args)]
pub struct FilterArguments {
    /// Only runs of this target, as named on the command line
    #[arg(long)]
    target: Option<String>,
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
    /// Only runs of this host
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Only runs on this device: its serial number, host:path, or a part of either
    #[arg(long, value_name = "TEXT")]
    device: Option<String>,
    /// Only runs on volumes of this type (label type=)
    #[arg(long = "type", value_name = "ID")]
    volume_type: Option<String>,
    /// Only runs with this test, by its id
    #[arg(long, value_name = "ID")]
    test: Option<String>,
    /// Only runs since this date (2026-11-01, 2026-11-01T14:00) or this time ago (7d)
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<Moment>,
    /// Only runs before this date or time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<Moment>,
    /// Only runs with this text in a note, tag, label, target, device, host or command
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
}

/// A point in time as it was written.
#[derive(Clone, Debug, PartialEq)]
struct Moment {
    text: String,
    unix_ms: u64,
}

/// Targets that are named where none matches.
const NAMED_TARGETS: usize = 5;

fn activity(name: &str) -> Result<ActivityKind, String> {
    ActivityKind::named(name).ok_or_else(|| format!("no command '{name}' keeps runs"))
}

fn moment(text: &str) -> Result<Moment, String> {
    moment_in(text, &TimeZone::system(), unix_ms())
}

/// Reads a date or a time in `zone`, or how long before `now_ms` it is.
fn moment_in(text: &str, zone: &TimeZone, now_ms: u64) -> Result<Moment, String> {
    let at = |unix_ms: u64| Moment { text: text.to_owned(), unix_ms };
    if let Ok(ago) = parse_duration(text) {
        return Ok(at(now_ms.saturating_sub(ago.as_millis())));
    }
    let error = || format!("cannot read the time '{text}': write 2026-11-01, 2026-11-01T14:00 or 7d");
    date_in(text, zone).map(at).ok_or_else(error)
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
            host: self.host.clone(),
            device: self.device.clone(),
            volume_type: self.volume_type.clone(),
            test: self.test.clone(),
            since_unix_ms: self.since.as_ref().map(|since| since.unix_ms),
            until_unix_ms: self.until.as_ref().map(|until| until.unix_ms),
            text: self.text.clone(),
            newest,
        }
    }

    /// The filters as they were given.
    pub fn words(&self) -> Vec<String> {
        let text =
            |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("--{name} {value}"));
        let moment = |name: &str, value: &Option<Moment>| {
            value.as_ref().map(|moment| format!("--{name} {}", moment.text))
        };
        let words = [
            text("target", &self.target),
            self.kind.map(|kind| format!("--kind {}", kind.name())),
            text("status", &self.status),
            text("tag", &self.tag),
            text("host", &self.host),
            text("device", &self.device),
            text("type", &self.volume_type),
            text("test", &self.test),
            moment("since", &self.since),
            moment("until", &self.until),
            text("text", &self.text),
        ];
        let labels = self.labels.iter().map(|label| format!("--label {label}"));
        words.into_iter().flatten().chain(labels).collect()
    }

    /// What there is to say where no run of `all` matches: which filters were given, and what there is instead.
    pub fn none(&self, all: &Listing) -> String {
        let words = self.words();
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
    use clap::Parser;
    use fathom_record::HistoryRow;

    #[derive(Parser)]
    struct Line {
        #[command(flatten, next_help_heading = "Filters")]
        filter: FilterArguments,
    }

    fn asked(words: &[&str]) -> FilterArguments {
        Line::parse_from(std::iter::once("list").chain(words.iter().copied())).filter
    }

    #[test]
    fn a_filter_without_hits_is_named_with_what_there_is() {
        let row = |target: &str| HistoryRow { target: target.to_owned(), ..HistoryRow::default() };
        let all = Listing { rows: vec![row("/a"), row("/b"), row("/a")], ..Listing::default() };
        assert_eq!(
            asked(&["--target", "/c", "--status", "failed"]).none(&all),
            "No run matches --target /c --status failed; the history has 3 runs (of /a, /b)."
        );
        assert_eq!(asked(&["--target", "/c"]).none(&Listing::default()), "No runs are stored.");
        assert_eq!(asked(&[]).none(&all), "No run matches.");
        assert_eq!(
            asked(&["--since", "7d", "--text", "x", "--label", "a=b"]).none(&all),
            "No run matches --since 7d --text x --label a=b; the history has 3 runs."
        );
    }

    #[test]
    fn times_are_dates_or_durations() {
        const NOW_MS: u64 = 1_790_000_000_000;
        let of = |text: &str| moment_in(text, &TimeZone::UTC, NOW_MS).ok().map(|moment| moment.unix_ms);
        assert_eq!(of("7d"), Some(NOW_MS - 7 * 86_400_000));
        assert_eq!(of("2026-09-21"), Some(1_789_948_800_000));
        assert_eq!(of("2026-09-21T14:13:20"), Some(NOW_MS));
        assert_eq!(of("2026-09-21 14:00"), Some(1_789_999_200_000));
        assert_eq!((of("yesterday"), of("1960-01-01")), (None, None));
    }
}
