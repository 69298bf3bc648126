//! Our renderers, given the values of real fio runs, print what fio printed.

use fathom_report::fio::json::{self as fio_json, Bins};
use fathom_report::{Style, TextWriter, fio::normal as fio_normal};
use serde_json::Value;

use crate::support::{Fixture, NEWER_KEYS, TEXT_DIFFERENCES, fixtures};

/// Where fio names the place in its source, we name none: the text before `, error=` is dropped on both sides.
fn without_source_place(line: &str) -> String {
    match (line.find(" (file:"), line.find(", func=")) {
        (Some(start), Some(end)) => format!("{} ({}", &line[..start], &line[end + 2..]),
        _ => line.to_owned(),
    }
}

/// Drops `sectors=…, ` of the disk lines, which 3.33 does not print.
fn without_sectors(line: &str) -> String {
    match line.find("sectors=") {
        Some(start) => {
            let rest = &line[start..];
            let end = rest.find(", ").expect("more follows") + 2;
            format!("{}{}", &line[..start], &rest[end..])
        }
        None => line.to_owned(),
    }
}

fn expected_text(fixture: &Fixture) -> Vec<String> {
    let mut text = fixture.text.clone();
    for (old, new) in TEXT_DIFFERENCES {
        text = text.replace(old, new);
    }
    text.lines().map(without_source_place).collect()
}

/// fio keeps a running mean, so a mean of exactly 3537.125 may come out a hair larger and print as 3537.13, where the
/// exact sum gives 3537.12. True where such an average is all that differs.
fn differs_by_a_tie(ours: &str, theirs: &str) -> bool {
    let split = |line: &str| {
        let (before, rest) = line.split_once("avg=")?;
        let (average, after) = rest.split_once(',')?;
        Some((before.to_owned(), average.trim().parse::<f64>().ok()?, after.to_owned()))
    };
    match (split(ours), split(theirs)) {
        (Some(ours), Some(theirs)) => {
            (&ours.0, &ours.2) == (&theirs.0, &theirs.2) && (ours.1 - theirs.1).abs() < 0.010_001
        }
        _ => false,
    }
}

#[test]
fn text_is_what_fio_printed() {
    for fixture in fixtures() {
        let mut out = Vec::new();
        fio_normal::render_report(&fixture.report, &Style::default(), &mut TextWriter::new(&mut out))
            .expect("writing to memory");
        let out = String::from_utf8(out).expect("text");
        let ours: Vec<String> =
            out.lines().map(|line| without_sectors(&without_source_place(line))).collect();
        for (index, (ours, theirs)) in ours.iter().zip(&expected_text(&fixture)).enumerate() {
            if !differs_by_a_tie(ours, theirs) {
                assert_eq!(ours, theirs, "{}: line {}", fixture.name, index + 1);
            }
        }
        assert_eq!(ours.len(), expected_text(&fixture).len(), "{}", fixture.name);
    }
}

/// A line of JSON without indentation and comma, its key and value apart.
fn key_and_value(line: &str) -> (&str, &str) {
    let line = line.trim_end_matches(',');
    line.split_once(" : ").unwrap_or((line, ""))
}

/// Floats may differ by what the six printed decimals of mean and deviation cannot tell.
fn same_value(ours: &str, theirs: &str) -> bool {
    match (ours.contains('.'), ours.parse::<f64>(), theirs.parse::<f64>()) {
        (true, Ok(a), Ok(b)) => theirs.contains('.') && (a - b).abs() <= 1e-5 + b.abs() * 1e-6,
        _ => ours == theirs,
    }
}

/// Values that 3.33 computes otherwise, or that are the point of time and the program's own.
const OTHER_VALUES: [&str; 3] = ["\"fio version\"", "\"eta\"", "\"time\""];

#[test]
fn json_is_what_fio_printed() {
    for fixture in fixtures() {
        let mut out = Vec::new();
        fio_json::render_report(&fixture.report, Bins::With, &Style::default(), &mut out)
            .expect("writing to memory");
        let out = String::from_utf8(out).expect("text");
        let newer =
            |line: &&str| !NEWER_KEYS.iter().any(|key| line.trim().starts_with(&format!("\"{key}\"")));
        let ours: Vec<&str> = out.lines().filter(newer).collect();
        let theirs: Vec<&str> = fixture.json.lines().collect();
        for (index, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            let ((our_key, our_value), (their_key, their_value)) =
                (key_and_value(ours), key_and_value(theirs));
            let place = format!("{}: line {}: {ours} | {theirs}", fixture.name, index + 1);
            assert_eq!(our_key, their_key, "{place}");
            if !OTHER_VALUES.contains(&our_key.trim()) {
                assert!(same_value(our_value, their_value), "{place}");
            }
        }
        assert_eq!(ours.len(), theirs.len(), "{}", fixture.name);
    }
}

/// Every key path with the type of its value; the keys of percentiles, bins and options are values, not keys.
fn paths(value: &Value, prefix: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) if ["percentile", "bins", "options"].iter().any(|end| prefix.ends_with(end)) => {
            found.extend(map.values().map(|value| format!("{prefix}.<key> | {}", kind(value))));
        }
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            let dot = if prefix.is_empty() { "" } else { "." };
            paths(value, &format!("{prefix}{dot}{key}"), found);
        }),
        Value::Array(items) => items.iter().for_each(|item| paths(item, &format!("{prefix}[]"), found)),
        leaf => found.push(format!("{prefix} | {}", kind(leaf))),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "str",
        Value::Number(number) if number.is_f64() => "float",
        Value::Number(_) => "int",
        other => panic!("fio prints no {other}"),
    }
}

/// The keys that fio 3.42 prints for everything measured here; `fio-3.42-keys.txt` names them with their types.
#[test]
fn every_key_of_3_42_is_there_with_its_type() {
    let mut ours = Vec::new();
    for fixture in fixtures() {
        let mut out = Vec::new();
        fio_json::render_report(&fixture.report, Bins::With, &Style::default(), &mut out)
            .expect("writing to memory");
        let document: Value = serde_json::from_slice(&out).expect("our JSON is JSON");
        paths(&document, "", &mut ours);
    }
    for expected in include_str!("../fixtures/fio-3.42-keys.txt").lines() {
        assert!(ours.iter().any(|path| path == expected), "missing: {expected}");
    }
}
