//! The page: the count of each verdict, the conclusions of the articles, and every figure, run by run.

use std::fmt::Write as _;

use fathom_assess::published::cases;
use fathom_catalog::{ComparedFigure, FigureVerdict, Published, PublishedRun};

use super::conclusions::CONCLUSIONS;

const HEAD: &str = "\
# Published figures and the simulator

Five published articles measured cloud volumes, with fio, ioping and HD Tune. Every figure of theirs is listed here beside what the
same load gets of the simulated volume, or with the reason why the model does not explain it. `fathom catalog published` prints the
same comparison. Made by `cargo xtask docs` from [published.toml](../../../crates/catalog/data/published.toml); a test makes it again and
fails if a figure has changed.

The loads ran through the whole program in virtual time: fio's options, the loop, the simulated volume. With fathom installed, each
of them can be repeated as printed below.

";

const VERDICTS: &str = "\
A figure is *by rule* if the published rules of the type give it within 5 %, and *by load* if the load alone determines it (what a run
of fixed size transfers, what it does not do). Where no rule was published, a model *as measured* is built from other measurements of
the type; it is counted apart. A figure that a model was fitted to, or another figure of the same measurement, is an *input* and
explains nothing.

";

const FIGURES: &str = "\
## Explained figures and inputs

`deviation` is simulated to published; `met` stands for a bound.

";

const NOT_EXPLAINED: &str = "\
## Figures that are not explained

If there is a simulated value, it is more than 5 % off.

";

/// Remarks on some runs.
const REMARKS: &[(&str, &str)] = &[
    (
        "a0-aws-randrw",
        "50 GiB have a baseline of 150 IOPS; the three runs spent 55 % of the burst credits and measured the burst rate of 3,000 alone.",
    ),
    ("a0-aws-ioping", "4,096 requests, a second apart, instead of ten."),
    (
        "a0-claims",
        "The baseline is the rate after the burst credits, of which ten seconds were left at the beginning.",
    ),
    (
        "a1-do-expectations",
        "The limits of the entries are those that the article states. A depth saturates if it reaches the rate of depth 64. 4k at depth 2 does not; 256k at depth 1 does on the model \
         already, as the entry's latency does not grow with the block.",
    ),
    ("a4-tencent_cbs_ssd-1tib", "8 jobs at depth 1 made the run; its latency was derived from its IOPS."),
];

/// A remark on several figures.
const BESIDES: &str = "\
The table of block sizes in *How to Benchmark DigitalOcean Volumes* is exact (3,200 at 64k, 800 at 256k) if its 200 MB/s are 200
MiB/s. The run of the same article was limited to 200 MB/s: 22,937 MiB in 120.16 s are 200.16 million bytes per second. The entry has
this limit, and so the model gives 4.6 % less in the last two rows.
";

pub fn render(published: &Published, compared: &[ComparedFigure]) -> String {
    let mut page = HEAD.to_owned();
    counts(&mut page, compared);
    page.push_str(VERDICTS);
    conclusions(&mut page);
    page.push_str(FIGURES);
    for run in &published.runs {
        let own = of(compared, run, |verdict| verdict != FigureVerdict::Unexplained);
        if !own.is_empty() {
            heading(&mut page, published, run);
            explained_table(&mut page, &own);
            commands(&mut page, run);
            if let Some((_, remark)) = REMARKS.iter().find(|(id, _)| *id == run.id) {
                let _ = writeln!(page, "{remark}\n");
            }
        }
    }
    page.push_str(NOT_EXPLAINED);
    for run in &published.runs {
        let own = of(compared, run, |verdict| verdict == FigureVerdict::Unexplained);
        if !own.is_empty() {
            heading(&mut page, published, run);
            unexplained_table(&mut page, &own);
        }
    }
    page.push_str(BESIDES);
    page
}

fn counts(page: &mut String, compared: &[ComparedFigure]) {
    let count = |verdict: FigureVerdict| compared.iter().filter(|one| one.verdict == verdict).count();
    let (rule, load) = (count(FigureVerdict::Rule), count(FigureVerdict::Load));
    let _ = writeln!(
        page,
        "{} figures: {} explained within 5 %, {rule} by published rules and {load} by the load alone; {} more as measured; {} \
         inputs; {} not explained.\n",
        compared.len(),
        rule + load,
        count(FigureVerdict::AsMeasured),
        count(FigureVerdict::Input),
        count(FigureVerdict::Unexplained),
    );
}

fn conclusions(page: &mut String) {
    page.push_str("## Conclusions of the articles\n\n| article | its conclusion | fathom's | evidence |\n|---|---|---|---|\n");
    for one in CONCLUSIONS {
        let evidence: Vec<String> = one.evidence.iter().map(|name| format!("`{name}`")).collect();
        let _ =
            writeln!(page, "| {} | {} | {} | {} |", one.article, one.theirs, one.ours, evidence.join(", "));
    }
    page.push('\n');
}

fn of<'a>(
    compared: &'a [ComparedFigure],
    run: &PublishedRun,
    is_wanted: impl Fn(FigureVerdict) -> bool,
) -> Vec<&'a ComparedFigure> {
    compared.iter().filter(|one| one.run == run.id && is_wanted(one.verdict)).collect()
}

fn heading(page: &mut String, published: &Published, run: &PublishedRun) {
    let article = published.article_of(run).unwrap();
    let _ = writeln!(page, "**{}**, {}, {}", run.volume, run.tool, run.workload);
    let _ = writeln!(page, "(*{}*, {}; `{}`)\n", article.title, article.when, run.id);
}

fn explained_table(page: &mut String, own: &[&ComparedFigure]) {
    page.push_str("| figure | published | simulated | deviation | |\n|---|--:|--:|--:|---|\n");
    for one in own {
        let cells =
            [one.figure.text(), one.simulated_text(), one.deviation_text(), one.verdict.name().to_owned()];
        let _ = writeln!(page, "| `{}` | {} |", one.figure.metric, cells.join(" | "));
    }
    page.push('\n');
}

/// Figures of one reason in a row each if they have been simulated, else all in one.
fn unexplained_table(page: &mut String, own: &[&ComparedFigure]) {
    page.push_str("| figures | simulated | why |\n|---|--:|---|\n");
    let mut reasons: Vec<&str> = Vec::new();
    for why in own.iter().filter_map(|one| one.why) {
        if !reasons.contains(&why) {
            reasons.push(why);
        }
    }
    for reason in reasons {
        let mut plain: Vec<String> = Vec::new();
        for one in own.iter().filter(|one| one.why == Some(reason)) {
            let published = format!("`{}` {}", one.figure.metric, one.figure.text());
            match one.simulated {
                Some(_) => {
                    let _ = writeln!(page, "| {published} | {} | {reason} |", one.simulated_text());
                }
                None => plain.push(published),
            }
        }
        if !plain.is_empty() {
            let _ = writeln!(page, "| {} | | {reason} |", plain.join(", "));
        }
    }
    page.push('\n');
}

/// The loads that the figures of a run come from.
fn commands(page: &mut String, run: &PublishedRun) {
    let key = match run.id.as_str() {
        "a1-do-expectations" | "a1-do-crossover" => "a1-do:",
        id => id,
    };
    let is_own = |known: &str| {
        known == key
            || known.strip_prefix(key).is_some_and(|rest| key.ends_with(':') || rest.starts_with(':'))
    };
    for case in cases().iter().filter(|case| is_own(&case.key)) {
        let times = match case.scale {
            1.0 => String::new(),
            scale => format!("    # counts and times are multiplied by {scale}\n"),
        };
        let _ = writeln!(page, "{times}    fathom fio {} --filename='{}'", case.options, case.volume);
    }
    page.push('\n');
}
