//! `fathom bench --profile list`: the access patterns of the program, their needs, and their sources.

use std::io;

use fathom_analysis::criterion::Metric;
use fathom_assess::{Expectation, UseProfile, engine_rows, profiles};
use fathom_report::{TextWriter, document};
use serde::Serialize;

use crate::exit::Complaint;
use crate::output;

#[derive(Serialize)]
struct ProfileListDocument<'a> {
    schema: &'static str,
    profiles: &'a [UseProfile],
}

/// Prints all profiles.
pub(super) fn print(json: bool) -> Result<(), Complaint> {
    let all = profiles(&["all".to_owned()], &engine_rows())?;
    let document = ProfileListDocument { schema: "fathom.profiles/1", profiles: &all };
    output::print(|out| match json {
        true => document::write(&document, &mut out.json()),
        false => text(&all, out),
    })?;
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
