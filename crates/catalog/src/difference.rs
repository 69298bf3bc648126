//! What differs between two states of the catalogue, field by field as they are written.

use toml::{Table, Value};

use crate::catalog::FILES;

/// A field that differs. A type that one side lacks has no field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogChange {
    /// The type.
    pub id: String,
    /// The field, `facts.NAME` for a fact.
    pub field: Option<String>,
    /// Its value before, as in TOML.
    pub old: Option<String>,
    /// And after.
    pub new: Option<String>,
}

/// Volume types as they are written, by their ids.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WrittenTypes(Table);

impl WrittenTypes {
    /// Of a valid catalogue file; of another none.
    pub fn parse(text: &str) -> WrittenTypes {
        let mut table: Table = toml::from_str(text).unwrap_or_default();
        match table.remove("volume") {
            Some(Value::Table(types)) => WrittenTypes(types),
            _ => WrittenTypes::default(),
        }
    }

    /// The built-in ones.
    pub fn shipped() -> WrittenTypes {
        WrittenTypes(FILES.iter().flat_map(|(_, text)| WrittenTypes::parse(text).0).collect())
    }

    /// Only those of `ids`.
    pub fn only<'a>(&self, ids: impl IntoIterator<Item = &'a str>) -> WrittenTypes {
        let named = |id: &str| Some((id.to_owned(), self.0.get(id)?.clone()));
        WrittenTypes(ids.into_iter().filter_map(named).collect())
    }

    /// Their ids.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// One of them under another id.
    pub fn renamed(&self, id: &str, name: &str) -> WrittenTypes {
        WrittenTypes(self.0.get(id).map(|entry| (name.to_owned(), entry.clone())).into_iter().collect())
    }

    /// What is other in `new`, by type and field.
    pub fn changes(&self, new: &WrittenTypes) -> Vec<CatalogChange> {
        let mut ids: Vec<&String> = self.0.keys().chain(new.0.keys()).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut all = Vec::new();
        for id in ids {
            let [old, new] = [self, new].map(|types| types.0.get(id).and_then(Value::as_table));
            let (Some(old), Some(new)) = (old, new) else {
                let name = |table: Option<&Table>| {
                    table.map(|table| table.get("type_name").and_then(Value::as_str).unwrap_or(id).to_owned())
                };
                all.push(CatalogChange { id: id.clone(), field: None, old: name(old), new: name(new) });
                continue;
            };
            differences(id, "", old, new, &mut all);
        }
        all
    }
}

fn differences(id: &str, place: &str, old: &Table, new: &Table, out: &mut Vec<CatalogChange>) {
    let mut fields: Vec<&String> = old.keys().chain(new.keys()).collect();
    fields.sort_unstable();
    fields.dedup();
    for field in fields {
        match [old, new].map(|table| table.get(field)) {
            [Some(Value::Table(old)), Some(Value::Table(new))] => {
                differences(id, &format!("{place}{field}."), old, new, out);
            }
            [old, new] if !is_same(old, new) => out.push(CatalogChange {
                id: id.to_owned(),
                field: Some(format!("{place}{field}")),
                old: old.map(written),
                new: new.map(written),
            }),
            _ => {}
        }
    }
}

/// 3000 and 3000.0 are one number.
fn is_same(one: Option<&Value>, other: Option<&Value>) -> bool {
    let number = |value: &Value| value.as_float().or(value.as_integer().map(|whole| whole as f64));
    match (one, other) {
        (Some(one), Some(other)) => {
            one == other || number(one).is_some_and(|value| number(other) == Some(value))
        }
        (one, other) => one.is_none() && other.is_none(),
    }
}

fn written(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_differ_are_listed() {
        let old = WrittenTypes::parse(
            "[volume.a]\niops_max = 3000\nnotes = \"x\"\n[volume.a.facts]\nb = 1\n[volume.c]\ntype_name = \"C\"\n",
        );
        let new = WrittenTypes::parse(
            "[volume.a]\niops_max = 80000\nsize_max_gib = 64.0\nnotes = \"x\"\n[volume.a.facts]\nb = 1.0\n",
        );
        let found: Vec<_> = old
            .changes(&new)
            .into_iter()
            .map(|change| (change.id, change.field.unwrap_or_default(), change.old, change.new))
            .collect();
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            found,
            [
                ("a".to_owned(), "iops_max".to_owned(), text("3000"), text("80000")),
                ("a".to_owned(), "size_max_gib".to_owned(), None, text("64.0")),
                ("c".to_owned(), String::new(), text("C"), None),
            ]
        );
        assert!(old.changes(&old).is_empty());
        let shipped = WrittenTypes::shipped();
        assert!(shipped.ids().count() > 100);
        let [one, other] = ["aws-gp2", "aws-gp3"].map(|id| shipped.renamed(id, "x"));
        assert!(one.changes(&other).iter().any(|change| change.field.as_deref() == Some("iops_model")));
    }
}
