//! The page: both tables, run by run, and what was run.

use std::fmt::Write as _;

use fathom_model::units::grouped;

use crate::cases::CASES;
use crate::data::{Figure, Published, Run};
use crate::figures::{Judged, Verdict};

const HEAD: &str = "\
# Published figures and the simulator

Five published articles measured cloud volumes, with fio, ioping and HD Tune. Every figure of theirs stands here: first those that
the models of the catalogue explain, beside what the same load gets of the simulated volume, then those that they do not, with the
reason. Made by `cargo xtask docs` from [published-figures.toml](published-figures.toml); a test makes it again and fails where a
figure has moved, and where one of the first table is more than 5 % off.

The loads ran through the whole program in virtual time: fio's options, the loop, the simulated volume. Whoever has fathom can
repeat each of them as it stands below.

";

const EXPLAINED: &str = "\
## What the models explain

`deviation` is simulated to published. A figure that is a bound is `kept`. Where a model was fitted to a figure of the
article itself there is nothing to prove, and that is said.

";

const NOT_EXPLAINED: &str = "\
## What the models do not explain

Where there is a simulated value it is more than 5 % off, and the reason says why.

";

/// What is to be known of some runs of the first table.
const REMARKS: &[(&str, &str)] = &[
    (
        "a0-aws-randrw",
        "50 GiB have a baseline of 150 IOPS; the three runs spent 55 % of the credit and saw the burst of 3,000 alone.",
    ),
    (
        "a0-aws-ioping",
        "The latency of the entry is the mean of this very run. 4,096 requests, a second apart, instead of ten.",
    ),
    (
        "a0-claims",
        "The baseline is what comes once the credit is spent, of which ten seconds of burst were left at the beginning.",
    ),
    ("a1-do-lat-read", "The latency of the entry is the mean of this very run."),
    (
        "a1-do-expectations",
        "The caps of the entries are those that the article states. A depth saturates where it brings all that depth 64 does. 4k at depth 2 does not; 256k at depth 1 does on the model \
         already, as the entry's latency does not grow with the block.",
    ),
    (
        "a4-tencent_cbs_ssd-1tib",
        "The latency of the entry follows from the IOPS of this very run, made by 8 jobs at depth 1.",
    ),
    (
        "a4-tencent_cbs_enhanced_ssd-1tib",
        "The latency of the entry is bounded by the IOPS of this very run, as above.",
    ),
];

/// What no single figure shows.
const BESIDES: &str = "\
Besides, the table of block sizes in *How to Benchmark DigitalOcean Volumes* holds to the digit (3,200 at 64k, 800 at 256k) where its
200 MB/s are 200 MiB/s. The run of the same article was held to 200 MB/s: 22,937 MiB in 120.16 s are 200.16 million bytes a
second. The entry's cap is that one, and so the model gives 4.6 % fewer in the last two rows.
";

pub fn render(published: &Published, judged: &[Judged]) -> String {
    let mut page = HEAD.to_owned();
    let explained = judged.iter().filter(|one| matches!(one.verdict, Verdict::Explained { .. })).count();
    let _ = writeln!(
        page,
        "{} figures: {explained} explained within 5 %, {} not.\n",
        judged.len(),
        judged.len() - explained
    );
    page.push_str(EXPLAINED);
    for run in &published.runs {
        let own: Vec<&Judged> = of(judged, run, true);
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
        let own: Vec<&Judged> = of(judged, run, false);
        if !own.is_empty() {
            heading(&mut page, published, run);
            unexplained_table(&mut page, &own);
        }
    }
    page.push_str(BESIDES);
    page
}

fn of<'a>(judged: &'a [Judged], run: &Run, explained: bool) -> Vec<&'a Judged> {
    let fits =
        |one: &&Judged| one.run == run.id && matches!(one.verdict, Verdict::Explained { .. }) == explained;
    judged.iter().filter(fits).collect()
}

fn heading(page: &mut String, published: &Published, run: &Run) {
    let article = &published.articles[run.article];
    let _ = writeln!(page, "**{}**, {}, {}", run.volume, run.tool, run.workload);
    let _ = writeln!(page, "(*{}*, {}; `{}`)\n", article.title, article.when, run.id);
}

fn explained_table(page: &mut String, own: &[&Judged]) {
    page.push_str("| figure | published | simulated | deviation |\n|---|--:|--:|--:|\n");
    for one in own {
        let Verdict::Explained { simulated, deviation } = one.verdict else { continue };
        let deviation = deviation.map_or("kept".to_owned(), |share| format!("{:+.1} %", share * 100.0));
        let deviation = if deviation == "-0.0 %" { "+0.0 %" } else { &deviation };
        let (metric, published) = (&one.figure.metric, value_of(&one.figure));
        let _ = writeln!(page, "| `{metric}` | {published} | {} | {deviation} |", number(simulated));
    }
    page.push('\n');
}

/// Figures of one reason in a row each, where they have been simulated, else all in one.
fn unexplained_table(page: &mut String, own: &[&Judged]) {
    page.push_str("| figures | simulated | why |\n|---|--:|---|\n");
    let mut reasons: Vec<&str> = Vec::new();
    for one in own {
        let Verdict::Not { why, .. } = one.verdict else { continue };
        if !reasons.contains(&why) {
            reasons.push(why);
        }
    }
    for reason in reasons {
        let mut plain: Vec<String> = Vec::new();
        for one in own {
            let Verdict::Not { simulated, why } = one.verdict else { continue };
            let published = format!("`{}` {}", one.figure.metric, value_of(&one.figure));
            match simulated {
                _ if why != reason => {}
                Some(value) => {
                    let _ = writeln!(page, "| {published} | {} | {why} |", number(value));
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
fn commands(page: &mut String, run: &Run) {
    let keys: &[&str] = match run.id.as_str() {
        "a0-claims" => &["a0-claims:max"],
        "a1-do-expectations" => &["a1-do:rand-r", "a1-do:4k-d4", "a1-do:256k-d2", "a1-do:high-cpu-bw"],
        "a1-do-crossover" => &["a1-do:bs64k"],
        "a2-aws-E-file" => &["a2-aws-E-file:read-d32"],
        "a2-aws-F-file" => &["a2-aws-F-file:read-d32"],
        "a4-tencent_cbs_ssd-1tib" => &["a4-ssd:bw", "a4-ssd:iops"],
        "a4-tencent_cbs_enhanced_ssd-1tib" => &["a4-enhanced:bw", "a4-enhanced:iops"],
        id => &[id],
    };
    for case in CASES.iter().filter(|case| keys.contains(&case.key)) {
        let times = match case.scale {
            1.0 => String::new(),
            scale => format!("    # counts and times are multiplied by {scale}\n"),
        };
        let _ = writeln!(page, "{times}    fathom fio {} --filename='{}'", case.options, case.volume);
    }
    page.push('\n');
}

fn value_of(figure: &Figure) -> String {
    let unit = match figure.unit.as_str() {
        "1/s" | "1" => String::new(),
        "kB/s(10^3)" => " kB/s".to_owned(),
        unit => format!(" {unit}"),
    };
    let bound = match (figure.qualifier.as_deref(), figure.metric.as_str()) {
        (Some("approx"), _) => "about ",
        (Some("lower bound"), _) => "over ",
        (Some("upper bound"), _) => "below ",
        (_, metric) if metric.ends_with("lt") => "below ",
        (_, metric) if metric.ends_with("_gt") => "over ",
        _ => "",
    };
    let kind = figure.kind.as_ref().map(|kind| format!(", {kind}")).unwrap_or_default();
    format!("{bound}{}{unit}{kind}", number(figure.value))
}

/// Four digits or more, and no decimals that tell nothing.
fn number(value: f64) -> String {
    if value == 0.0 || value.abs() >= 1_000.0 || value.fract() == 0.0 && value.abs() >= 1.0 {
        return grouped(value.round() as u64);
    }
    let decimals = if value >= 100.0 {
        1
    } else if value >= 1.0 {
        2
    } else {
        3
    };
    let text = format!("{value:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
