//! The schemas of the reference: the form of every document that a test here prints.
//!
//! A form only grows: a member keeps its name and its types as long as the number of its schema. Each document is checked when it is
//! printed. With `FATHOM_WRITE_DOCS` set, what is new is written into the schemas instead.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::{Map, Value, json};

/// Objects whose members are named by users, hosts or tests.
const MAPS: &[&str] = &["labels"];
/// Objects whose members depend on what they are about: the reference of findings has them.
const OPEN: &[&str] = &["evidence"];
/// Members, and schemas, whose form depends on the machine that runs the tests.
const OF_MACHINES: &[&str] = &["conditions", "devices", "cpu", "doctor-1.json", "monitor-1.json"];

/// What was seen at one place of the documents of a schema.
#[derive(Clone, Debug, Default, PartialEq)]
struct Form {
    types: BTreeSet<String>,
    members: BTreeMap<String, Form>,
    /// Members that every object had.
    required: BTreeSet<String>,
    items: Option<Box<Form>>,
}

impl Form {
    fn of(value: &Value, name: &str) -> Form {
        let mut form = Form { types: BTreeSet::from([type_of(value).to_owned()]), ..Form::default() };
        match value {
            Value::Object(_) if OPEN.contains(&name) => {}
            Value::Object(members) if MAPS.contains(&name) => {
                form.items = joined(members.values().map(|value| Form::of(value, "")));
            }
            Value::Object(members) => {
                form.members =
                    members.iter().map(|(name, value)| (name.clone(), Form::of(value, name))).collect();
                form.required = members.keys().cloned().collect();
            }
            Value::Array(items) => form.items = joined(items.iter().map(|item| Form::of(item, ""))),
            _ => {}
        }
        form
    }

    /// What was seen in either.
    fn join(&mut self, other: Form) {
        let object = "object".to_owned();
        if self.types.contains(&object) && other.types.contains(&object) {
            self.required.retain(|name| other.required.contains(name));
        } else {
            self.required.extend(other.required);
        }
        self.types.extend(other.types);
        for (name, form) in other.members {
            match self.members.get_mut(&name) {
                Some(known) => known.join(form),
                None => _ = self.members.insert(name, form),
            }
        }
        self.items =
            joined(self.items.take().map(|form| *form).into_iter().chain(other.items.map(|form| *form)));
    }

    /// As a JSON Schema; what was never more than null is left open.
    fn schema(&self, is_map: bool) -> Map<String, Value> {
        let mut schema = Map::new();
        let mut types = self.types.clone();
        if types.contains("number") {
            types.remove("integer");
            types.insert("null".to_owned());
        }
        let types: Vec<&String> = types.iter().collect();
        match types.as_slice() {
            [only] if *only == "null" => return schema,
            [only] => schema.insert("type".to_owned(), json!(only)),
            several => schema.insert("type".to_owned(), json!(several)),
        };
        if !self.members.is_empty() {
            let members = self.members.iter();
            let members = members.map(|(name, form)| {
                (name.clone(), Value::Object(form.schema(MAPS.contains(&name.as_str()))))
            });
            schema.insert("properties".to_owned(), Value::Object(members.collect()));
            schema.insert("required".to_owned(), json!(self.required));
        }
        if let Some(items) = &self.items {
            let place = if is_map { "additionalProperties" } else { "items" };
            schema.insert(place.to_owned(), Value::Object(items.schema(false)));
        }
        schema
    }

    /// The form that a schema was made of.
    fn from_schema(schema: &Value) -> Form {
        let mut form = Form::default();
        match &schema["type"] {
            Value::String(only) => _ = form.types.insert(only.clone()),
            Value::Array(several) => {
                form.types.extend(several.iter().filter_map(Value::as_str).map(str::to_owned));
            }
            _ => _ = form.types.insert("null".to_owned()),
        }
        if form.types.contains("number") {
            form.types.insert("integer".to_owned());
        }
        let members = schema["properties"].as_object().into_iter().flatten();
        form.members = members.map(|(name, schema)| (name.clone(), Form::from_schema(schema))).collect();
        let required = schema["required"].as_array().into_iter().flatten();
        form.required = required.filter_map(Value::as_str).map(str::to_owned).collect();
        let items = ["items", "additionalProperties"].into_iter().find_map(|place| schema.get(place));
        form.items = items.map(|items| Box::new(Form::from_schema(items)));
        form
    }

    /// Where `other` has what this has not, below `place`.
    fn growth(&self, other: &Form, place: &str) -> Vec<String> {
        // Any figure may be unknown, which is null.
        let is_known = |name: &String| {
            name == "null" || self.types.contains(name) || name == "integer" && self.types.contains("number")
        };
        let mut all: Vec<String> = other
            .types
            .iter()
            .filter(|name| !is_known(name))
            .map(|name| format!("{place} is {name}"))
            .collect();
        if self.types.contains("object") && other.types.contains("object") {
            all.extend(
                self.required.difference(&other.required).map(|name| format!("{place} has no {name}")),
            );
        }
        for (name, form) in &other.members {
            match self.members.get(name) {
                Some(_) if OF_MACHINES.contains(&name.as_str()) => {}
                Some(known) => all.extend(known.growth(form, &format!("{place}.{name}"))),
                None if self.types.contains("object") => all.push(format!("{place} has {name}")),
                None => {}
            }
        }
        if let (Some(known), Some(form)) = (&self.items, &other.items) {
            all.extend(known.growth(form, &format!("{place}[]")));
        } else if self.types.contains("array") && other.items.is_some() {
            all.push(format!("{place} is not empty"));
        }
        all
    }
}

fn joined(forms: impl Iterator<Item = Form>) -> Option<Box<Form>> {
    let whole = forms.reduce(|mut whole, form| {
        whole.join(form);
        whole
    });
    whole.map(Box::new)
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/reference/schemas")
}

/// The file of a schema: that of `fathom.bench/1` is `bench-1.json`. Each kind of line of a stream has its own. The form of records
/// is ours.
fn file_of(document: &Value) -> Option<PathBuf> {
    let name = document["schema"].as_str()?.strip_prefix("fathom.")?;
    let (name, number) = name.split_once('/')?;
    let kind = ["event", "type"].into_iter().find_map(|member| document[member].as_str());
    let kind = kind.map(|kind| format!("-{}", kind.replace('_', "-"))).unwrap_or_default();
    Some(directory().join(format!("{name}{kind}-{number}.json"))).filter(|_| name != "record")
}

/// A value as text, in which what fits a line stays in one.
fn printed(value: &Value, indent: usize, out: &mut String) {
    let whole = value.to_string();
    let Some(members) = value.as_object().filter(|_| indent + whole.len() > 110) else {
        return out.push_str(&whole);
    };
    out.push('{');
    for (index, (name, value)) in members.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        *out += &format!("{comma}\n{:indent$}{}: ", "", json!(name), indent = indent + 1);
        printed(value, indent + 1, out);
    }
    *out += &format!("\n{:indent$}}}", "");
}

/// Fails if something is printed that no schema has, or writes it into its schema.
pub fn check(text: &str) {
    static WRITING: Mutex<()> = Mutex::new(());
    if !text.contains("\"schema\"") {
        return;
    }
    let documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    for document in documents.map_while(Result::ok) {
        let Some(file) = file_of(&document) else { continue };
        let writes = std::env::var_os("FATHOM_WRITE_DOCS").is_some();
        let guard = writes.then(|| WRITING.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
        let stored = std::fs::read_to_string(&file).ok();
        let known = stored.map(|text| Form::from_schema(&serde_json::from_str(&text).unwrap()));
        let form = Form::of(&document, "");
        let growth =
            known.as_ref().map_or_else(|| vec!["no schema".to_owned()], |known| known.growth(&form, ""));
        let is_of_machine = file.file_name().is_some_and(|name| OF_MACHINES.iter().any(|of| name == *of));
        if writes || !growth.is_empty() && !is_of_machine {
            assert!(writes, "{}: {growth:?}: run `cargo xtask docs`", file.display());
            let whole = joined(known.into_iter().chain([form])).unwrap();
            let title = &document["schema"];
            let head = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title});
            let mut schema = head.as_object().cloned().unwrap();
            schema.extend(whole.schema(false));
            std::fs::create_dir_all(directory()).unwrap();
            let mut text = String::new();
            printed(&Value::Object(schema), 0, &mut text);
            std::fs::write(&file, text + "\n").unwrap();
        }
        drop(guard);
    }
}

#[test]
fn a_form_grows_by_what_is_new() {
    let of = |text: &str| Form::of(&serde_json::from_str(text).unwrap(), "");
    let again = |form: &Form| Form::from_schema(&Value::Object(form.schema(false)));
    let mut form = of(r#"{"a": 1, "b": null, "c": [], "labels": {"x": "y"}}"#);
    assert_eq!(form.growth(&of(r#"{"a": 2, "b": null, "c": [], "labels": {"z": "y"}}"#), ""), [""; 0]);
    let new = of(r#"{"a": 1.5, "c": [{"d": 1}], "e": "", "labels": {"x": 1}}"#);
    let growth = ["", ".a is number", ".c is not empty", " has e", ".labels[] is integer", " has no b"];
    let found = again(&form).growth(&new, "");
    assert_eq!(found.len(), 5, "{found:?}");
    assert!(found.iter().all(|found| growth.contains(&found.as_str())), "{found:?}");
    form.join(new);
    let schema = Value::Object(form.schema(false));
    assert_eq!(schema["properties"]["a"], json!({"type": ["null", "number"]}));
    assert_eq!(schema["properties"]["b"], json!({}));
    assert_eq!(schema["properties"]["c"]["items"]["required"], json!(["d"]));
    assert_eq!(
        schema["properties"]["labels"]["additionalProperties"],
        json!({"type": ["integer", "string"]})
    );
    assert_eq!(schema["required"], json!(["a", "c", "labels"]));
    assert_eq!(again(&form).growth(&form, ""), [""; 0]);
}

/// Documents of which no other test looks at the members.
#[test]
fn plans_and_lists_have_a_schema() {
    let dir = crate::scratch();
    let volume = "sim:aws-gp3?size=10GiB";
    for args in [
        &["bench", "--profile=list"][..],
        &["bench", "--quick", "--only=lat-read", volume],
        &["prepare", "--dry-run", volume],
        &["catalog", "check", "--stale=90d"],
        &["catalog", "diff", "aws-gp2-2016", "aws-gp2"],
        &["history", "rm", "--newest=0", "--dry-run"],
    ] {
        let printed = crate::run(dir.path(), &[args, &["--json"]].concat()).succeeded();
        assert!(printed.stdout.contains("\"schema\""), "{printed:?}");
    }
}

#[test]
fn the_reference_leads_to_every_schema() {
    let page = std::fs::read_to_string(directory().with_file_name("json-documents.md")).unwrap();
    let mut files = 0;
    for entry in std::fs::read_dir(directory()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(page.contains(&format!("(schemas/{name})")), "{name}");
        files += 1;
    }
    assert!(files > 20);
}
