//! Published figures beside those of the models: `docs/src/reference/published-figures.md` is made here and checked.

mod conclusions;
mod page;

use std::path::PathBuf;
use std::sync::OnceLock;

use fathom_assess::published::{compare, runs_of};
use fathom_catalog::{ComparedFigure, FigureVerdict, Published};

/// Set by `cargo xtask docs`: the page is written instead of compared.
const WRITE: &str = "FATHOM_WRITE_DOCS";

/// Everything is simulated once.
fn all() -> &'static [ComparedFigure] {
    static ALL: OnceLock<Vec<ComparedFigure>> = OnceLock::new();
    ALL.get_or_init(|| compare(&runs_of(None)).unwrap())
}

fn find(name: &str) -> &'static ComparedFigure {
    let (run, metric) = name.split_once('/').unwrap();
    let found = all().iter().find(|one| one.run == run && one.figure.metric == metric);
    found.unwrap_or_else(|| panic!("there is no {name}"))
}

#[test]
fn the_page_is_what_the_simulator_gives() {
    let page = page::render(Published::shipped(), all());
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/reference/published-figures.md");
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(path, page).unwrap();
        return;
    }
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    let line = stored.lines().zip(page.lines()).take_while(|(stored, page)| stored == page).count() + 1;
    assert!(stored == page, "published-figures.md differs from line {line} on: run `cargo xtask docs`");
}

#[test]
fn every_figure_has_a_verdict_and_those_not_explained_have_a_reason() {
    assert_eq!(all().len(), 679);
    for one in all() {
        let name = format!("{}/{}", one.run, one.figure.metric);
        match one.verdict {
            FigureVerdict::Unexplained => {
                assert!(one.why.is_some_and(|why| !why.is_empty()), "{name} has no reason")
            }
            _ => assert!(one.deviation.is_none_or(|share| share.abs() <= 0.05), "{name}"),
        }
    }
    let text = page::render(Published::shipped(), all());
    assert!(all().iter().all(|one| text.contains(&format!("`{}`", one.figure.metric))));
}

#[test]
fn figures_that_a_model_was_fitted_to_explain_nothing() {
    for name in fathom_catalog::Catalog::shipped().fitted_figures() {
        let verdict = find(name).verdict;
        assert!(matches!(verdict, FigureVerdict::Input | FigureVerdict::Unexplained), "{name}: {verdict:?}");
    }
    // Nor do other figures of the same measurement, or statements that repeat it.
    for name in [
        "a0-aws-ioping/iops",
        "a3-perf-randread/read.bw",
        "a3-claims/cap.randwrite.iops",
        "a0-claims/aws.latency",
    ] {
        assert_eq!(find(name).verdict, FigureVerdict::Input, "{name}");
    }
}

#[test]
fn conclusions_rest_on_published_figures() {
    for one in conclusions::CONCLUSIONS {
        assert!(!one.evidence.is_empty());
        one.evidence.iter().for_each(|name| {
            find(name);
        });
    }
}

#[test]
fn published_rules_explain_what_they_are_for() {
    for (run, metrics) in [
        ("a0-aws-randrw", &["read.iops", "write.iops", "read.bw", "read.runtime"][..]),
        ("a0-aws-randread", &["read.iops", "read.bw", "read.runtime"]),
        ("a0-aws-randwrite", &["write.iops", "write.bw", "write.runtime"]),
        ("a0-claims", &["aws.gp2_50gib.baseline", "aws.gp2.burst", "aws.gp2.max", "aws.gp2.max_at_gib"]),
        ("a1-do-bw-test", &["write.bw", "write.iops", "lat.avg", "clat.p50.00"]),
        ("a1-do-expectations", &["bw_test.standard", "rand_r.standard.iops", "rand_w.standard.iops"]),
        ("a1-do-expectations", &["saturation_qd.4k", "saturation_qd.256k"]),
        ("a1-do-crossover", &["bs4k.iops", "bs16k.iops", "bs32k.iops", "bs64k.iops", "bs256k.iops"]),
        ("a1-do-crossover", &["bs4k.bw", "bs16k.bw", "bs32k.bw", "bs64k.bw", "bs256k.bw"]),
        ("a2-aws-E-file", &["rand4k_read_iops", "rand4k_qd32_read_iops", "rand4k_qd32_write_iops"]),
        ("a2-aws-F-file", &["rand4k_qd32_read_iops", "rand4k_qd32_write_iops"]),
    ] {
        for metric in metrics {
            assert_eq!(find(&format!("{run}/{metric}")).verdict, FigureVerdict::Rule, "{run}/{metric}");
        }
    }
    for name in [
        "a4-premium-3t-randread/read.iops",
        "a2-aws-C-file/seq_read",
        "a2-azure-F-file/rand4k_qd32_write_iops",
    ] {
        assert_eq!(find(name).verdict, FigureVerdict::AsMeasured, "{name}");
    }
}
