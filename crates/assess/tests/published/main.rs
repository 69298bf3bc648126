//! What was published of volumes and what their models give: `docs/published-figures.md` is made here, and held to the
//! figures.
//!
//! Every figure of `docs/published-figures.toml` stands in one of the page's two tables: beside what the same load gets of
//! the simulated volume, within 5 %, or among those that the model cannot explain, each with the reason.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cases;
mod data;
mod figures;
mod page;
mod reasons;

use std::path::PathBuf;
use std::sync::OnceLock;

use data::Published;
use figures::{Judged, Verdict, judge};

/// Set by `cargo xtask docs`: the page is written instead of compared.
const WRITE: &str = "FATHOM_WRITE_DOCS";

fn docs(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// Everything is simulated once.
fn all() -> &'static (Published, Vec<Judged>) {
    static ALL: OnceLock<(Published, Vec<Judged>)> = OnceLock::new();
    ALL.get_or_init(|| {
        let published = Published::read(&std::fs::read_to_string(docs("published-figures.toml")).unwrap());
        let judged = judge(&published, &cases::run_all());
        (published, judged)
    })
}

#[test]
fn the_page_is_what_the_simulator_gives_today() {
    let (published, judged) = all();
    let page = page::render(published, judged);
    let path = docs("published-figures.md");
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(path, page).unwrap();
        return;
    }
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    let line = stored.lines().zip(page.lines()).take_while(|(stored, page)| stored == page).count() + 1;
    assert!(stored == page, "docs/published-figures.md differs from line {line} on: run `cargo xtask docs`");
}

#[test]
fn every_figure_stands_in_one_of_the_tables_and_those_not_explained_have_a_reason() {
    let (published, judged) = all();
    let mut ids: Vec<String> =
        judged.iter().map(|one| format!("{}/{}", one.run, one.figure.metric)).collect();
    assert_eq!(ids.len(), 679);
    assert_eq!(ids.len(), published.runs.iter().map(|run| run.figures.len()).sum::<usize>());
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 679, "no figure has the name of another");
    for one in judged {
        match &one.verdict {
            Verdict::Explained { deviation, .. } => {
                assert!(
                    deviation.is_none_or(|share| share.abs() <= 0.05),
                    "{}/{}",
                    one.run,
                    one.figure.metric
                );
            }
            Verdict::Not { why, .. } => {
                assert!(!why.is_empty(), "{}/{} has no reason", one.run, one.figure.metric);
            }
        }
    }
    let text = page::render(published, judged);
    for one in judged {
        assert!(text.contains(&format!("`{}`", one.figure.metric)), "{}", one.figure.metric);
    }
}

#[test]
fn what_the_models_are_for_is_explained() {
    let (_, judged) = all();
    let explained = |run: &str, metric: &str| {
        let found = judged.iter().find(|one| one.run == run && one.figure.metric == metric);
        let found = found.unwrap_or_else(|| panic!("there is no {run}/{metric}"));
        assert!(matches!(found.verdict, Verdict::Explained { .. }), "{run}/{metric}: {:?}", found.verdict);
    };
    for (run, metrics) in [
        ("a0-aws-randrw", &["read.iops", "write.iops", "read.bw", "read.runtime"][..]),
        ("a0-aws-randread", &["read.iops", "read.bw", "read.runtime"]),
        ("a0-aws-randwrite", &["write.iops", "write.bw", "write.runtime"]),
        ("a0-aws-ioping", &["latency.avg", "iops", "bw"]),
        ("a0-claims", &["aws.gp2_50gib.baseline", "aws.gp2.burst", "aws.gp2.max", "aws.gp2.max_at_gib"]),
        ("a1-do-bw-test", &["write.bw", "write.iops", "lat.avg", "clat.p50.00"]),
        ("a1-do-lat-read", &["read.iops", "lat.avg"]),
        ("a1-do-expectations", &["bw_test.standard", "rand_r.standard.iops", "rand_w.standard.iops"]),
        ("a1-do-expectations", &["saturation_qd.4k", "saturation_qd.256k"]),
        ("a1-do-crossover", &["bs4k.iops", "bs16k.iops", "bs32k.iops", "bs64k.iops", "bs256k.iops"]),
        ("a1-do-crossover", &["bs4k.bw", "bs16k.bw", "bs32k.bw", "bs64k.bw", "bs256k.bw"]),
        ("a2-aws-E-file", &["rand4k_read_iops", "rand4k_qd32_read_iops", "rand4k_qd32_write_iops"]),
        ("a2-aws-F-file", &["rand4k_read_iops", "rand4k_qd32_read_iops", "rand4k_qd32_write_iops"]),
        ("a4-tencent_cbs_ssd-1tib", &["max.bw", "max.iops"]),
        ("a4-tencent_cbs_enhanced_ssd-1tib", &["max.bw", "max.iops"]),
    ] {
        metrics.iter().for_each(|metric| explained(run, metric));
    }
}
