//! `fathom bench --profile list`: the access patterns of the program, their needs, and their sources.

use std::io;

use fathom_analysis::criterion::Metric;
use fathom_assess::{Expectation, UseProfile, engine_rows, profiles};
use fathom_report::{TextWriter, document};
use serde::Serialize;

use crate::exit::Complaint;
use crate::output;

#[derive(Serialize)]
struct ProfileListDocument {
    schema: &'static str,
    profiles: Vec<ProfileDocument>,
}

#[derive(Serialize)]
struct ProfileDocument {
    name: &'static str,
    purpose: String,
    description: String,
    source: String,
    writes: bool,
    options: Vec<(String, String)>,
    needs: Vec<ProfileNeedDocument>,
}

/// What serves the use, and what serves a small installation, in the unit of the metric.
#[derive(Serialize)]
struct ProfileNeedDocument {
    metric: String,
    is: &'static str,
    yes: f64,
    marginal: f64,
}

/// Prints all profiles.
pub(super) fn print(json: bool) -> Result<(), Complaint> {
    let all = profiles(&["all".to_owned()], &engine_rows())?;
    output::print(|out| if json { document(all, out) } else { text(&all, out) })?;
    Ok(())
}

fn text(all: &[UseProfile], out: &mut TextWriter) -> io::Result<()> {
    for (index, profile) in all.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        output::paragraph(&format!("{}: {}", profile.name, profile.description), out)?;
        let needs: Vec<String> = profile.test.expected.chunks(2).map(need).collect();
        output::paragraph(&format!("    needs {}", needs.join(", and ")), out)?;
        output::paragraph(&format!("    source: {}", profile.source), out)?;
    }
    Ok(())
}

/// `total.lat_ns.p99 <= 5.00 ms (marginal 20.0 ms)`.
fn need(pair: &[Expectation]) -> String {
    let shown = |need: &Expectation| {
        Metric::parse(&need.metric).map(|metric| metric.kind.figure(need.value)).unwrap_or_default()
    };
    let marginal = pair.get(1).map(|marginal| format!(" (marginal {})", shown(marginal)));
    let sign = pair[0].is.sign();
    format!("{} {sign} {}{}", pair[0].metric, shown(&pair[0]), marginal.unwrap_or_default())
}

fn document(all: Vec<UseProfile>, out: &mut TextWriter) -> io::Result<()> {
    let of_profile = |profile: UseProfile| ProfileDocument {
        name: profile.name,
        purpose: profile.test.title.clone(),
        description: profile.description,
        source: profile.source,
        writes: profile.test.writes,
        needs: profile
            .test
            .expected
            .chunks_exact(2)
            .map(|pair| ProfileNeedDocument {
                metric: pair[0].metric.clone(),
                is: pair[0].is.sign(),
                yes: pair[0].value,
                marginal: pair[1].value,
            })
            .collect(),
        options: profile.test.options,
    };
    let document = ProfileListDocument {
        schema: "fathom.profiles/1",
        profiles: all.into_iter().map(of_profile).collect(),
    };
    document::write(&document, &mut out.json())
}
