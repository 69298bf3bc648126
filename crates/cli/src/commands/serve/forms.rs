//! What forms and queries say, read by the options of the commands that do the same.

use clap::{Args, Parser};
use fathom_report::html::site::FormValues;

use super::super::history::filter::FilterArguments;
use super::super::history::trend::TrendArguments;

/// Most names and values of one form.
const MAX_VALUES: usize = 256;
/// Fields of a search, which are named as the options of `fathom history list`.
const FILTERS: [&str; 12] =
    ["target", "kind", "status", "label", "tag", "host", "device", "type", "test", "since", "until", "text"];

/// Reads `a=b&c=d` with escapes.
pub fn values(text: &str) -> FormValues {
    let pairs = text.split('&').filter(|pair| !pair.is_empty()).take(MAX_VALUES);
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(name), decoded(value))
    };
    FormValues(pairs.map(pair).collect())
}

/// A text without its escapes; what is no escape stays as it is.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = match (first, tail) {
            (b'%', [high, low, ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                digit(high).zip(digit(low)).map(|(high, low)| (high * 16 + low) as u8)
            }
            _ => None,
        };
        bytes.push(escaped.unwrap_or(if *first == b'+' { b' ' } else { *first }));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Options without a program.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct OptionLine<T: Args> {
    #[command(flatten)]
    options: T,
}

/// The filter that `values` describe.
///
/// # Errors
/// One of them makes no sense; the message says which.
pub fn filter(values: &FormValues) -> Result<FilterArguments, String> {
    parsed(filter_words(values))
}

/// The trend that `values` ask for; `None` where they name no metric.
///
/// # Errors
/// One of them makes no sense; the message says which.
pub fn trend(values: &FormValues) -> Result<Option<TrendArguments>, String> {
    let metric = values.get("metric");
    if metric.is_empty() {
        return Ok(None);
    }
    let mut words = filter_words(values);
    words.extend(values.all("by").map(|key| format!("--by={key}")));
    words.extend(["--".to_owned(), metric.to_owned()]);
    parsed(words).map(Some)
}

fn filter_words(values: &FormValues) -> Vec<String> {
    let of = |name: &'static str| values.all(name).map(move |value| format!("--{name}={value}"));
    FILTERS.into_iter().flat_map(of).collect()
}

fn parsed<T: Args>(words: Vec<String>) -> Result<T, String> {
    OptionLine::<T>::try_parse_from(words).map(|line| line.options).map_err(|error| {
        let text = error.to_string();
        let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        // A form has no options: what follows says what is wrong with the value.
        message.split_once(">': ").map_or(message, |(_, reason)| reason).to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_with_their_escapes() {
        let check = |text: &str, expected: &[(&str, &str)]| {
            let expected: Vec<(String, String)> =
                expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            assert_eq!(values(text).0, expected, "{text}");
        };
        check("a=b+c&d=%C3%BC%2F&&e", &[("a", "b c"), ("d", "ü/"), ("e", "")]);
        check("a=100%&b=%zz&c=%4", &[("a", "100%"), ("b", "%zz"), ("c", "%4")]);
        check("a=b=c&a=d", &[("a", "b=c"), ("a", "d")]);
        check("", &[]);
        check("a=%ff%00", &[("a", "\u{fffd}\0")]);
        assert_eq!(values(&"a=b&".repeat(2 * MAX_VALUES)).0.len(), MAX_VALUES);
    }

    #[test]
    fn searches_are_those_of_the_command_line() {
        let found = filter(&values("text=--help&kind=bench&label=a%3Db&since=2026-11-01&other=x")).unwrap();
        let words = ["--kind bench", "--since 2026-11-01", "--text --help", "--label a=b"];
        assert_eq!(found.words(), words);
        assert!(filter(&values("kind=nothing")).err().unwrap().contains("no command 'nothing' keeps runs"));
        assert!(filter(&values("since=yesterday")).err().unwrap().contains("is no time"));
        assert!(trend(&values("by=host")).unwrap().is_none());
        assert!(trend(&values("metric=rand-read.p99&by=host")).unwrap().is_some());
        assert!(trend(&values("metric=speed")).is_err() && trend(&values("metric=p99&by=moon")).is_err());
        assert!(trend(&values("metric=--json")).is_err(), "it is no option");
    }
}
