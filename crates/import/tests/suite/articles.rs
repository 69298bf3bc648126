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

/// The texts, and the runs whose figures were taken from them by hand.
const RUNS: [(&str, &str); 18] = [
    ("aws-gp2-50g-randread.fio-2.1.3", "a0-aws-randread"),
    ("aws-gp2-50g-randrw.fio-2.1.3", "a0-aws-randrw"),
    ("aws-gp2-50g-randwrite.fio-2.1.3", "a0-aws-randwrite"),
    ("aws-gp2-50g.ioping", "a0-aws-ioping"),
    ("digitalocean-ssd-randread.fio-1.59", "a0-do-randread"),
    ("digitalocean-ssd-randrw.fio-1.59", "a0-do-randrw"),
    ("digitalocean-ssd-randwrite.fio-1.59", "a0-do-randwrite"),
    ("digitalocean-ssd.ioping", "a0-do-ioping"),
    ("digitalocean-volume-bw-test.fio-2", "a1-do-bw-test"),
    ("digitalocean-volume-lat-read.fio-2", "a1-do-lat-read"),
    ("qingcloud-capacity-randread.fio-2.2.10", "a3-cap-randread"),
    ("qingcloud-capacity-randrw.fio-2.2.10", "a3-cap-randrw"),
    ("qingcloud-capacity-randwrite.fio-2.2.10", "a3-cap-randwrite"),
    ("qingcloud-capacity.ioping", "a3-cap-ioping"),
    ("qingcloud-high-performance-randread.fio-2.2.10", "a3-perf-randread"),
    ("qingcloud-high-performance-randrw.fio-2.2.10", "a3-perf-randrw"),
    ("qingcloud-high-performance-randwrite.fio-2.2.10", "a3-perf-randwrite"),
    ("qingcloud-high-performance.ioping", "a3-perf-ioping"),
];

/// The name that a published figure has here, without its operation where it has none there.
fn own_name(metric: &str) -> String {
    let parts: Vec<&str> = metric.split('.').collect();
    let field = |name: &str| match name {
        "avg" => "mean".to_owned(),
        "stdev" | "mdev" => "stddev".to_owned(),
        "bw" | "aggrb" => "bytes_per_second".to_owned(),
        "minb" => "min_bytes_per_second".to_owned(),
        "maxb" => "max_bytes_per_second".to_owned(),
        "mint" => "min_runtime_ns".to_owned(),
        "maxt" => "max_runtime_ns".to_owned(),
        "io" => "bytes".to_owned(),
        "runtime" => "runtime_ns".to_owned(),
        "merge" => "merges".to_owned(),
        "ticks" => "ticks_ms".to_owned(),
        "usr" => "user_percent".to_owned(),
        "sys" => "system_percent".to_owned(),
        "ctx" => "context_switches".to_owned(),
        "majf" => "major_faults".to_owned(),
        "minf" => "minor_faults".to_owned(),
        other => other.to_owned(),
    };
    match parts.as_slice() {
        ["last_status", op, what] => format!("{op}.last_{}", field(what)),
        ["issued", op] => format!("{op}.ios"),
        ["disk", "in_queue"] => ".in_queue_ms".to_owned(),
        ["disk", "util"] => ".util_percent".to_owned(),
        ["disk", what, op] => format!(".{op}.{}", field(what)),
        ["request", number, "latency"] => format!(".lat_ns.request_{number}"),
        ["latency", what] => format!(".lat_ns.{}", field(what)),
        ["lat_bucket_ms", below] => format!("latency_below.{below}000000_percent"),
        ["bw_samples", "per"] => ".bandwidth_windows.group_percent".to_owned(),
        ["bw_samples", what] => format!(".bandwidth_windows.{}_bytes_per_second", field(what)),
        ["wall"] => "paced.wall_ns".to_owned(),
        [span @ ("slat" | "clat" | "lat"), what @ ..] => {
            let what = what.join(".");
            let percentile = what.strip_prefix('p').and_then(|percent| percent.parse::<f64>().ok());
            format!(".{span}_ns.{}", percentile.map_or_else(|| field(&what), |percent| format!("p{percent}")))
        }
        [only] => format!("read.{}", field(only)),
        [group @ .., last] => format!("{}.{}", group.join("."), field(last)),
        [] => String::new(),
    }
}

/// The value of a published figure in the unit of our name.
fn own_value(name: &str, value: f64, unit: &str) -> f64 {
    let scale = match unit {
        "KiB/s" | "KiB" => 1024.0,
        "MiB/s" | "MiB" => 1_048_576.0,
        "kB/s(10^3)" => 1e3,
        "us" => 1e3,
        "ms" if !name.ends_with("_ms") => 1e6,
        _ => 1.0,
    };
    value * scale
}

#[test]
fn figures_are_those_that_were_taken_by_hand() {
    let published = fathom_catalog::Published::shipped();
    let mut checked = 0;
    for (file, id) in RUNS {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/articles").join(format!("{file}.txt"));
        let record = import(&std::fs::read_to_string(path).unwrap(), file).unwrap();
        let figures = record.tests[0].imported().unwrap().figures();
        let run = published.runs.iter().find(|run| run.id == id).unwrap();
        // What an author claims or expects is not in the text.
        for figure in run.figures.iter().filter(|figure| figure.kind.is_none() && figure.value != 0.0) {
            let name = own_name(&figure.metric);
            let found: Vec<_> = figures.iter().filter(|found| found.name.ends_with(&name)).collect();
            let expected = own_value(&name, figure.value, &figure.unit);
            let is_found = found.iter().any(|found| {
                // Where the page has lost a figure, the hand rounded what follows from others.
                let rounded =
                    if found.figure.origin == FigureOrigin::Derived { 0.005 * expected } else { 0.0 };
                (found.figure.value - expected).abs()
                    <= found.figure.resolution.max(1e-9 * expected) + rounded
            });
            assert!(is_found, "{id}: {} = {expected}, found {found:?}", figure.metric);
            checked += 1;
        }
    }
    assert!(checked > 400, "{checked}");
}
