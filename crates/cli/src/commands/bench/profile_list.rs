//! `fathom bench --profile list`: the access patterns of the program, their needs, and their sources.

use std::io;

use fathom_assess::{UseProfile, engine_rows, profiles};
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
    for (index, UseProfile { description, purpose, .. }) in all.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        output::paragraph(&format!("{}: {description}", purpose.name), out)?;
        let (full, small) = (purpose.full.text(), purpose.small.text());
        output::paragraph(&format!("    needs {full} (marginal: {small}) for {} h", purpose.hours), out)?;
        output::paragraph(&format!("    source: {}", purpose.source), out)?;
    }
    Ok(())
}
