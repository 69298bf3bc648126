//! Reads YAML, and checks documents against the fields that their kinds have. For the tests of the templates.

use saphyr_parser::{Event, Parser, ScalarStyle};

/// A node of a document.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    /// Text, and whether it stood without quotes.
    Scalar(String, bool),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

/// The documents of a text.
pub(super) fn documents(text: &str) -> Vec<Node> {
    let mut found = Vec::new();
    let mut events = Parser::new_from_str(text).map(|event| event.unwrap().0);
    while let Some(event) = events.next() {
        if let Event::DocumentStart(_) = event {
            let first = events.next().unwrap();
            found.push(node(first, &mut events));
        }
    }
    found
}

fn node<'a>(event: Event<'a>, events: &mut impl Iterator<Item = Event<'a>>) -> Node {
    match event {
        Event::Scalar(text, style, ..) => Node::Scalar(text.into_owned(), style == ScalarStyle::Plain),
        Event::SequenceStart(..) => {
            let mut items = Vec::new();
            loop {
                match events.next().unwrap() {
                    Event::SequenceEnd => return Node::List(items),
                    event => items.push(node(event, events)),
                }
            }
        }
        Event::MappingStart(..) => {
            let mut entries = Vec::new();
            loop {
                let key = match events.next().unwrap() {
                    Event::MappingEnd => return Node::Map(entries),
                    Event::Scalar(text, ..) => text.into_owned(),
                    other => panic!("a key that is no text: {other:?}"),
                };
                assert!(entries.iter().all(|(known, _)| *known != key), "{key} is there twice");
                let first = events.next().unwrap();
                let value = node(first, events);
                entries.push((key, value));
            }
        }
        other => panic!("unexpected {other:?}"),
    }
}

impl Node {
    /// What stands at a path of keys; numbers are places in lists.
    pub(super) fn at(&self, path: &str) -> &Node {
        path.split('.').fold(self, |node, key| match node {
            Node::Map(entries) => {
                let found = entries.iter().find(|(known, _)| known == key);
                &found.unwrap_or_else(|| panic!("no {key} of {path}")).1
            }
            Node::List(items) => &items[key.parse::<usize>().unwrap()],
            Node::Scalar(..) => panic!("nothing below {key} of {path}"),
        })
    }

    /// The text of a scalar.
    pub(super) fn text(&self) -> &str {
        match self {
            Node::Scalar(text, _) => text,
            other => panic!("{other:?} is no text"),
        }
    }

    /// The texts of a list.
    pub(super) fn texts(&self) -> Vec<&str> {
        match self {
            Node::List(items) => items.iter().map(Node::text).collect(),
            other => panic!("{other:?} is no list"),
        }
    }
}

/// What a field holds: `int`, `text`, `bool`, `map` of any texts, `one of a|b`, or fields of its own. A field that must be there
/// begins with `!`, a list with `[]`.
pub(super) struct Schema(pub(super) &'static [(&'static str, &'static str, &'static [&'static Schema])]);

/// What of `node` the schema does not know or allow.
pub(super) fn mistakes(node: &Node, schema: &Schema) -> Vec<String> {
    let mut found = Vec::new();
    check(node, schema, "", &mut found);
    found
}

fn check(node: &Node, schema: &Schema, path: &str, found: &mut Vec<String>) {
    let Node::Map(entries) = node else {
        found.push(format!("{path}: no fields"));
        return;
    };
    for (name, ..) in schema.0.iter().filter(|(name, ..)| name.starts_with('!')) {
        let name = &name[1..];
        if entries.iter().all(|(known, _)| known != name) {
            found.push(format!("{path}.{name} is missing"));
        }
    }
    for (key, value) in entries {
        let path = format!("{path}.{key}");
        match schema.0.iter().find(|(name, ..)| name.trim_start_matches('!') == key) {
            Some((_, kind, below)) => check_value(value, kind, below, &path, found),
            None => found.push(format!("{path} is unknown")),
        }
    }
}

fn check_value(value: &Node, kind: &str, below: &[&Schema], path: &str, found: &mut Vec<String>) {
    if let Some(kind) = kind.strip_prefix("[]") {
        let Node::List(items) = value else {
            found.push(format!("{path} is no list"));
            return;
        };
        for (place, item) in items.iter().enumerate() {
            check_value(item, kind, below, &format!("{path}[{place}]"), found);
        }
        return;
    }
    let is_other =
        |text: &str| ["true", "false", "null", "yes", "no"].contains(&text) || text.parse::<f64>().is_ok();
    let is_good = match (kind, value) {
        ("int", Node::Scalar(text, true)) => text.parse::<i64>().is_ok(),
        ("bool", Node::Scalar(text, true)) => ["true", "false"].contains(&text.as_str()),
        ("text", Node::Scalar(text, is_plain)) => !*is_plain || !is_other(text),
        ("quantity", Node::Scalar(..)) => true,
        ("map", Node::Map(entries)) => {
            entries
                .iter()
                .for_each(|(key, value)| check_value(value, "text", &[], &format!("{path}.{key}"), found));
            true
        }
        ("fields", node) => {
            check(node, below[0], path, found);
            true
        }
        (kind, Node::Scalar(text, _)) => {
            kind.strip_prefix("one of ").is_some_and(|names| names.split('|').any(|name| name == text))
        }
        _ => false,
    };
    if !is_good {
        found.push(format!("{path} is no {kind}: {value:?}"));
    }
}
