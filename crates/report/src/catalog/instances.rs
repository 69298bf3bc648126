//! What `catalog list --instances` and `catalog show INSTANCE` show: the limits of instances on their volumes. Pure.

use std::io::{self, Write};

use fathom_catalog::{Instance, InstanceBurst, InstanceList, InstanceRates, Instances};
use serde_json::{Value, json};

use crate::document::{object, write};
use crate::view::{Block, Cell, Column, Table, View};

/// A row for each instance; `is_one` where a single one is shown, with its sources.
pub fn view(instances: &[&Instance], is_one: bool) -> View {
    let mut view = View { data: data(instances), ..View::default() };
    view.push("", [Block::Table(table(instances))]);
    if instances.is_empty() {
        view.push("", [Block::note("No instance matches.")]);
    }
    let legend = "Limits of an instance on all its block volumes together. Rates beside a burst are the baseline; burst credits last 30 min \
                  at the maximum, where the rule is published.";
    view.push("", [Block::note(legend)]);
    if is_one {
        let mut notes: Vec<String> = Vec::new();
        for note in instances.iter().flat_map(|instance| sources(instance)) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        view.push("Sources", [Block::Notes(notes)]);
    }
    view
}

fn list_of(instance: &Instance) -> &'static InstanceList {
    Instances::shipped().list_of(instance)
}

fn table(instances: &[&Instance]) -> Table {
    let base = |rates: Option<InstanceRates>, cell: fn(f64) -> Cell| -> Cell {
        rates.map(|rates| cell(rates.baseline as f64)).into()
    };
    let burst = |rates: Option<InstanceRates>, cell: fn(f64) -> Cell| -> Cell {
        let above = rates.filter(|rates| rates.maximum > rates.baseline);
        above.map(|rates| cell(rates.maximum as f64)).into()
    };
    let iops = |rate: f64| Cell::count(rate as u64);
    Table::of::<&Instance>(
        &[
            (Column::left("instance"), &|instance| instance.id.as_str().into()),
            (Column::left("volumes").dispensable(1), &|instance| types_text(list_of(instance)).into()),
            (Column::right("vCPUs").dispensable(2), &|instance| instance.vcpus.map(Cell::count).into()),
            (Column::right("IOPS"), &|instance| base(instance.iops, iops)),
            (Column::right("burst IOPS"), &|instance| burst(instance.iops, iops)),
            (Column::right("MiB/s"), &|instance| base(instance.bytes_per_second, Cell::mebibytes)),
            (Column::right("burst MiB/s"), &|instance| burst(instance.bytes_per_second, Cell::mebibytes)),
            (Column::left("as of").dispensable(0), &|instance| list_of(instance).as_of.as_str().into()),
        ],
        instances,
    )
}

/// The volume types that a list holds for: `aws-*`.
fn types_text(list: &InstanceList) -> String {
    let whole = |begin: &String| if begin.ends_with('-') { format!("{begin}*") } else { begin.clone() };
    list.types().iter().map(whole).collect::<Vec<_>>().join(", ")
}

/// Where the figures come from, in sentences.
fn sources(instance: &Instance) -> Vec<String> {
    let list = list_of(instance);
    let mut notes = vec![format!("Limits ({}): {}, as of {}.", list.confidence, list.source, list.as_of)];
    if instance.has_burst() {
        notes.push(match (&list.burst_source, list.burst) {
            (Some(source), InstanceBurst::Credits) => format!("Burst rule: {source}."),
            _ => "The burst rule is not published: simulations omit the burst.".to_owned(),
        });
    }
    notes.extend(list.note.as_ref().map(|note| format!("{note}.")));
    if let Some(count) = instance.most_volumes {
        notes.push(format!("At most {count} volumes can be attached."));
    }
    notes
}

fn data(instances: &[&Instance]) -> Table {
    const COLUMNS: &str = "\
        instance=id,provider,volume_types,vcpus,most_volumes,baseline_iops,maximum_iops,\
        baseline_bytes_per_second,maximum_bytes_per_second,as_of";
    let row = |instance: &&Instance| {
        let types = list_of(instance).types().join(" ");
        object([document(instance), json!({ "volume_types": types })])
    };
    Table::of_documents(&[COLUMNS], instances.iter().map(row))
}

/// `volume_types` are beginnings of the ids of the types that the limits are of.
fn document(instance: &Instance) -> Value {
    let list = list_of(instance);
    let (baseline, maximum) = (|rates: InstanceRates| rates.baseline, |rates: InstanceRates| rates.maximum);
    json!({
        "id": instance.id,
        "provider": list.provider,
        "volume_types": list.types(),
        "vcpus": instance.vcpus,
        "most_volumes": instance.most_volumes,
        "baseline_iops": instance.iops.map(baseline),
        "maximum_iops": instance.iops.map(maximum),
        "baseline_bytes_per_second": instance.bytes_per_second.map(baseline),
        "maximum_bytes_per_second": instance.bytes_per_second.map(maximum),
        "has_burst_rule": instance.has_burst() && list.burst == InstanceBurst::Credits,
        "as_of": list.as_of,
        "confidence": list.confidence,
        "source": list.source,
        "burst_source": list.burst_source,
    })
}

/// Writes the document of `instances`: `fathom.catalog-instances/1`.
///
/// # Errors
/// Those of `out`.
pub fn json(instances: &[&Instance], out: &mut dyn Write) -> io::Result<()> {
    let instances: Vec<Value> = instances.iter().map(|instance| document(instance)).collect();
    write(&json!({ "schema": "fathom.catalog-instances/1", "instances": instances }), out)
}
