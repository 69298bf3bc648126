//! Texts of published articles, as their pages show them: every figure in its unit, and what the pages have lost.

use std::path::Path;

use fathom_import::import;
use fathom_record::RunRecord;
use fathom_record::import::FigureOrigin;

/// Every figure of a record, one a line.
fn listed(record: &RunRecord) -> String {
    let mut lines = Vec::new();
    for test in &record.tests {
        let imported = test.imported().expect("an imported test");
        let load = &imported.load;
        lines.push(format!("{}: {} {:?}", test.id, imported.tool, imported.tool_version));
        lines.push(format!(
            "  {:?} bs {:?}/{:?} QD {:?} jobs {:?} {:?} target {:?}",
            load.rw.as_deref().unwrap_or("?"),
            load.block_size.read.map(|range| range.max),
            load.block_size.write.map(|range| range.max),
            load.queue_depth,
            load.jobs,
            load.engine.as_deref().unwrap_or("?"),
            load.target.as_deref().unwrap_or("?"),
        ));
        for found in imported.figures() {
            let mark = if found.figure.origin == FigureOrigin::Derived { " derived" } else { "" };
            lines.push(format!(
                "  {} = {} ±{}{mark}",
                found.name, found.figure.value, found.figure.resolution
            ));
        }
        for missing in &imported.missing {
            let (line, figure, state) = (missing.line, &missing.figure, missing.reason.text());
            lines.push(format!("  line {line}: {figure} {state}: {}", missing.text));
        }
    }
    lines.join("\n")
}

/// Imports every text of a directory, and shows its figures.
fn check(directory: &str, count: usize) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(directory);
    let entries = std::fs::read_dir(directory).expect("the fixtures are in the repository");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a readable directory").path()).collect();
    paths.sort();
    assert_eq!(paths.len(), count);
    for path in paths {
        let name = path.file_stem().expect("a file").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("a readable file");
        let record = import(&text, &name).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(RunRecord::from_json(&record.to_json()).expect("a record"), record, "{name}");
        insta::assert_snapshot!(name, listed(&record));
    }
}

#[test]
fn every_figure_of_the_articles_is_read_in_its_unit() {
    check("articles", 18);
}

#[test]
fn every_figure_of_stored_outputs_is_read_in_its_unit() {
    check("outputs", 8);
}
