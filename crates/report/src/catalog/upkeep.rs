//! What `catalog check --stale` and `catalog diff` show. Pure.

use std::io::{self, Write};

use fathom_catalog::{CatalogChange, CatalogEntry};
use serde_json::{Value, json};

use crate::document::write;
use crate::view::{Block, Column, Table, View};

/// The types whose rules or prices are older than a day.
pub fn stale_view(types: &[&CatalogEntry], limit: &str) -> View {
    let mut view = View { data: data(types), ..View::default() };
    view.say("Stale", format!("rules or prices of {} are older than {limit}", counted(types.len(), "type")));
    let table = Table::of::<&CatalogEntry>(
        &[
            (Column::left("type"), &|entry| entry.id().into()),
            (Column::left("rules as of"), &|entry| entry.as_of().into()),
            (Column::left("price as of"), &|entry| price_date(entry).into()),
            (Column::left("source").dispensable(1), &|entry| {
                entry.sources().next().unwrap_or_default().into()
            }),
        ],
        types,
    );
    if !types.is_empty() {
        view.push("", [Block::Table(table)]);
    }
    view
}

fn price_date(entry: &CatalogEntry) -> Option<String> {
    entry.price().and_then(|price| price.as_of)
}

fn data(types: &[&CatalogEntry]) -> Table {
    Table::of_documents(
        &["type=id,provider,as_of,price_as_of,source"],
        types.iter().map(|entry| document(entry)),
    )
}

fn document(entry: &CatalogEntry) -> Value {
    json!({
        "id": entry.id(),
        "provider": entry.provider(),
        "as_of": entry.as_of(),
        "price_as_of": price_date(entry),
        "source": entry.sources().next(),
    })
}

/// Writes `fathom.catalog-stale/1`.
///
/// # Errors
/// Those of `out`.
pub fn stale_json(types: &[&CatalogEntry], limit: &str, out: &mut dyn Write) -> io::Result<()> {
    let types: Vec<Value> = types.iter().map(|entry| document(entry)).collect();
    write(&json!({ "schema": "fathom.catalog-stale/1", "before": limit, "types": types }), out)
}

/// What differs between two states of the catalogue.
pub fn changes_view(changes: &[CatalogChange]) -> View {
    let documents = changes.iter().map(change);
    let data = Table::of_documents(&["type=id,field,old,new"], documents);
    let mut view = View { data, ..View::default() };
    let types = changes.iter().map(|change| &change.id).collect::<std::collections::BTreeSet<_>>().len();
    view.say("Changed", format!("{} of {}", counted(changes.len(), "field"), counted(types, "type")));
    let table = Table::of::<CatalogChange>(
        &[
            (Column::left("type"), &|change| change.id.as_str().into()),
            (Column::left("field"), &|change| change.field.as_deref().unwrap_or("(the type)").into()),
            (Column::left("old"), &|change| change.old.as_deref().map(brief).into()),
            (Column::left("new"), &|change| change.new.as_deref().map(brief).into()),
        ],
        changes,
    );
    if !changes.is_empty() {
        view.push("", [Block::Table(table)]);
    }
    view
}

/// Characters of a value that a table has room for at 100 columns; data have all of it.
const MAX_VALUE: usize = 28;

fn brief(value: &str) -> String {
    match value.char_indices().nth(MAX_VALUE) {
        Some((end, _)) => format!("{}...", &value[..end]),
        None => value.to_owned(),
    }
}

fn counted(number: usize, name: &str) -> String {
    format!("{number} {name}{}", if number == 1 { "" } else { "s" })
}

fn change(change: &CatalogChange) -> Value {
    json!({ "id": change.id, "field": change.field, "old": change.old, "new": change.new })
}

/// Writes `fathom.catalog-diff/1`.
///
/// # Errors
/// Those of `out`.
pub fn changes_json(changes: &[CatalogChange], out: &mut dyn Write) -> io::Result<()> {
    let changes: Vec<Value> = changes.iter().map(change).collect();
    write(&json!({ "schema": "fathom.catalog-diff/1", "changes": changes }), out)
}
