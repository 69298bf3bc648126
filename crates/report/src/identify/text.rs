//! What `identify` ends with in a terminal: the limits, the burst in words, what the volume probably is, what workloads get from
//! it, and what could not be seen and why.

use std::io;

use fathom_analysis::identified::candidate::{Candidate, LIKELY};
use fathom_analysis::identified::prediction::Prediction;
use fathom_analysis::identified::{Figure, Identified};
use fathom_model::Nanos;
use fathom_model::units::{bytes, duration, grouped};
use fathom_record::{Activity, RunRecord};
use serde::Serialize;

use crate::bench::table::{self as bench_table, INDENT};
use crate::columns::{self, Align, Columns, capital, pad, wrap};
use crate::identify::words::{FigureScale, burst, confounder, size, unseen};
use crate::{Style, TextWriter};

/// All that there is to tell of a volume.
#[derive(Serialize)]
pub struct IdentifyReport<'a> {
    /// The run.
    #[serde(skip)]
    pub record: &'a RunRecord,
    /// What was found.
    #[serde(flatten)]
    pub found: &'a Identified,
    /// The nearest types, the nearest first.
    pub candidates: &'a [Candidate],
    /// What workloads get.
    pub predictions: &'a [Prediction],
}

/// Most types that are shown.
const MOST_TYPES: usize = 4;

/// Writes everything.
///
/// # Errors
/// Those of `out`.
pub fn render(report: &IdentifyReport<'_>, style: &Style, out: &mut TextWriter) -> io::Result<()> {
    let page = IdentifyPage { style, width: style.width.max(40), report };
    bench_table::header(report.record, style, page.width, out)?;
    if report.record.tests.iter().all(|test| test.jobs.is_empty()) {
        writeln!(out, "  Nothing was measured.")?;
        return page.notes(out);
    }
    page.limits(out)?;
    page.burst(out)?;
    page.first_touch(out)?;
    page.candidates(out)?;
    page.predictions(out)?;
    page.unseen(out)?;
    page.notes(out)
}

struct IdentifyPage<'a> {
    style: &'a Style,
    width: usize,
    report: &'a IdentifyReport<'a>,
}

impl IdentifyPage<'_> {
    fn title(&self, title: &str, out: &mut TextWriter) -> io::Result<()> {
        writeln!(out, "{}", self.style.bold(title))
    }

    fn paragraph(&self, text: &str, out: &mut TextWriter) -> io::Result<()> {
        wrap(text, self.width, INDENT, INDENT + 2).iter().try_for_each(|line| writeln!(out, "{line}"))
    }

    fn columns(&self, columns: Columns, dispensable: &[&str], out: &mut TextWriter) -> io::Result<()> {
        columns.write(self.style, INDENT, self.width, dispensable, out)
    }

    fn limits(&self, out: &mut TextWriter) -> io::Result<()> {
        let found = self.report.found;
        self.title("Limits", out)?;
        let mut rows = Vec::new();
        for (name, each, scale) in [
            ("IOPS", &found.iops, FigureScale::Count),
            ("bandwidth", &found.bytes_per_second, FigureScale::Bandwidth),
            ("latency at rest", &found.lat_ns, FigureScale::Latency),
        ] {
            for (direction, figure) in [("read", &each.read), ("write", &each.write)] {
                if let Some(figure) = figure.as_ref().filter(|figure| figure.estimate.is_some()) {
                    rows.push(row(&format!("{direction} {name}"), figure, scale));
                }
            }
        }
        for (name, figure, scale) in [
            ("block size where both meet", &found.crossover_block_size_bytes, FigureScale::Size),
            ("one I/O is up to", &found.io_unit_bytes, FigureScale::ExactSize),
            ("served at once", &found.parallelism, FigureScale::Count),
        ] {
            // How many are served at once at the least is no limit of theirs.
            if figure.value().is_some() || figure.estimate.is_some() && scale != FigureScale::Count {
                rows.push(row(name, figure, scale));
            }
        }
        if rows.is_empty() {
            self.paragraph("None could be seen.", out)?;
            return writeln!(out);
        }
        let align = vec![Align::Left, Align::Right, Align::Left, Align::Right];
        self.columns(Columns { head: vec!["", "value", "between", "±%"], align, rows }, &["±%"], out)?;
        let both = |each: &fathom_analysis::identified::EachWay| each.read.is_some() && each.write.is_some();
        match found.shares_limits {
            Some(true) => self.paragraph("Reads and writes share these limits.", out)?,
            Some(false) => self.paragraph("Reads and writes have limits of their own.", out)?,
            None if both(&found.iops) => {
                let why = found.shares_limits_why.as_deref().unwrap_or("it was not looked at");
                self.paragraph(&format!("Whether reads and writes share these limits is open: {why}."), out)?;
            }
            None => {}
        }
        writeln!(out)
    }

    fn burst(&self, out: &mut TextWriter) -> io::Result<()> {
        let found = self.report.found;
        if found.bursts.is_empty() && found.burst_why.is_none() && found.confounders.is_empty() {
            return Ok(());
        }
        self.title("Burst", out)?;
        for line in found.bursts.iter().flat_map(burst) {
            self.paragraph(&line, out)?;
        }
        let is_unwatched =
            found.bursts.is_empty() && found.longest_peak_ns.is_none() && found.confounders.is_empty();
        match &found.burst_why {
            _ if is_unwatched => self.paragraph("Not looked for: it was over before.", out)?,
            Some(why) if found.bursts.is_empty() => self.paragraph(&format!("None seen: {why}."), out)?,
            Some(why) => self.paragraph(&format!("{}.", capital(why)), out)?,
            None => {}
        }
        for confounding in &found.confounders {
            self.paragraph(&confounder(confounding), out)?;
        }
        writeln!(out)
    }

    fn first_touch(&self, out: &mut TextWriter) -> io::Result<()> {
        let found = self.report.found;
        if let Some(cost) = &found.first_touch {
            self.title("First access", out)?;
            let mut text = format!(
                "A place that was never read takes {} at first and {} afterwards",
                FigureScale::Latency.figure(&cost.first_ns),
                FigureScale::Latency.figure(&cost.again_ns)
            );
            if let Some(share) = cost.rate_fraction.value() {
                text.push_str(&format!("; the rate is {:.0} % of that of later accesses", share * 100.0));
            }
            self.paragraph(&format!("{text}. `fathom prepare --touch` reads every place once."), out)?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn candidates(&self, out: &mut TextWriter) -> io::Result<()> {
        let all = self.report.candidates;
        let Some(first) = all.first() else { return Ok(()) };
        let is_likely = first.distance <= LIKELY;
        self.title(if is_likely { "What it may be" } else { "What comes nearest, and is not near" }, out)?;
        let shown = all.iter().filter(|candidate| !is_likely || candidate.distance <= LIKELY * 1.5);
        let row = |candidate: &Candidate| {
            let mut name = format!("{} {}", candidate.provider, candidate.type_name);
            if candidate.lifecycle != "current" {
                name.push_str(&format!(" ({})", candidate.lifecycle));
            }
            vec![candidate.id.clone(), size(candidate), format!("{:.2}", candidate.distance), name]
        };
        let rows = shown.take(MOST_TYPES).map(row).collect();
        let align = vec![Align::Left, Align::Left, Align::Right, Align::Left];
        let head = vec!["type", "size", "distance", "name"];
        self.columns(Columns { head, align, rows }, &["name"], out)?;
        writeln!(out)
    }

    fn predictions(&self, out: &mut TextWriter) -> io::Result<()> {
        let mut lines: Vec<(String, &str)> = Vec::new();
        let all = self.report.predictions;
        for (index, prediction) in all.iter().enumerate() {
            // A write that gets what the read before it gets is told with it.
            let before = index.checked_sub(1).and_then(|before| all.get(before));
            let is_alike = before.is_some_and(|read| read.is_like(prediction));
            match lines.last_mut() {
                Some(line) if is_alike => line.0.push_str(" or writes"),
                _ => lines.push((prediction.title.clone(), &prediction.text)),
            }
        }
        if lines.is_empty() {
            return Ok(());
        }
        self.title("What to expect at full speed", out)?;
        let wide = lines.iter().map(|(what, _)| columns::width(what)).max().unwrap_or(0) + 2;
        for (what, text) in lines {
            let rest = INDENT + wide;
            for (index, line) in wrap(text, self.width, rest, rest).iter().enumerate() {
                let label = if index == 0 { what.as_str() } else { "" };
                writeln!(out, "{:INDENT$}{}{}", "", pad(label, wide), line.trim_start_matches(' '))?;
            }
        }
        writeln!(out)
    }

    fn unseen(&self, out: &mut TextWriter) -> io::Result<()> {
        let unseen = unseen(self.report.found);
        if unseen.is_empty() {
            return Ok(());
        }
        self.title("What could not be seen", out)?;
        for line in unseen {
            self.paragraph(&line, out)?;
        }
        writeln!(out)
    }

    fn notes(&self, out: &mut TextWriter) -> io::Result<()> {
        let IdentifyReport { record, found, .. } = self.report;
        let spent = found.spent;
        let mut took = format!("Took {}", duration(Nanos(spent.time_ns)));
        if let Activity::Identify(allowed) = &record.header.activity {
            took.push_str(&format!(" of {} at most", duration(Nanos(allowed.budget_ns))));
        }
        took.push_str(&format!(", {} I/Os, {} read", grouped(spent.ios), bytes(spent.read_bytes)));
        if spent.written_bytes > 0 {
            took.push_str(&format!(", {} written", bytes(spent.written_bytes)));
        }
        let mut notes = vec![format!("{took}.")];
        notes.extend(record.header.notes.iter().cloned());
        for alike in record.findings.chunk_by(|one, next| one.id == next.id) {
            let (first, others) = (&alike[0], alike.len() - 1);
            let others = if others > 0 { format!(" ({others} more alike)") } else { String::new() };
            notes.push(format!("{}: {}{others}", first.id, first.claim));
        }
        notes.extend(record.header.interrupted.iter().map(|why| format!("it was broken off: {why}")));
        notes.iter().try_for_each(|note| self.paragraph(note, out))
    }
}

fn row(name: &str, figure: &Figure, scale: FigureScale) -> Vec<String> {
    let (value, between, sure) = scale.cells(figure);
    vec![name.to_owned(), value, between, sure]
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_analysis::estimate::Estimate;
    use fathom_analysis::identified::candidate::SizeImplied;
    use fathom_analysis::identified::prediction::predictions;
    use fathom_analysis::identified::{BucketScope, BucketUnit, Budget, Burst, EachWay, Spent};
    use fathom_record::{IdentifyActivity, JobRecord, TestRecord};

    use crate::identify::json as identify_json;

    fn about(value: f64) -> Figure {
        Figure::known(value, value * 0.995, value * 1.005)
    }

    fn both(figure: Figure) -> EachWay {
        EachWay { read: Some(figure.clone()), write: Some(figure) }
    }

    /// A gp2 of 50 GiB as it would be found.
    fn found() -> Identified {
        let burst = Burst {
            unit: BucketUnit::Ios,
            scope: BucketScope::Both,
            burst_rate: about(3000.0),
            baseline_rate: about(150.0),
            capacity: about(5.4e6),
            refill_rate: about(150.0),
            seconds_to_empty: about(1894.7),
            seconds_to_refill: about(36_000.0),
        };
        Identified {
            iops: both(about(3000.0)),
            bytes_per_second: both(about(134_217_728.0)),
            shares_limits: Some(true),
            crossover_block_size_bytes: about(134_217_728.0 / 3000.0),
            io_unit_bytes: Figure::bound(Estimate::AtLeast(89_088.0), "bytes limit larger requests before"),
            lat_ns: both(about(500_000.0)),
            bursts: vec![burst],
            first_touch_why: Some("first accesses took no longer than second ones".to_owned()),
            budget: Some(Budget { time_ns: 2_400_000_000_000, ios: 8_000_000, bytes: 100 << 30 }),
            spent: Spent {
                time_ns: 2_300_000_000_000,
                ios: 5_812_345,
                read_bytes: 30 << 30,
                written_bytes: 9 << 30,
            },
            ..Identified::default()
        }
    }

    fn rendered(found: &Identified, json: bool) -> String {
        let mut record = RunRecord::default();
        record.header.target = "sim:aws-gp2?size=50GiB".to_owned();
        record.header.activity = Activity::Identify(IdentifyActivity {
            budget_ns: 2_400_000_000_000,
            budget_ios: 8_000_000,
            budget_bytes: 100 << 30,
            ..IdentifyActivity::default()
        });
        let jobs = vec![JobRecord::default()];
        record.tests = vec![TestRecord { id: "p1".to_owned(), jobs, ..TestRecord::default() }];
        let size = SizeImplied {
            bytes: 50 << 30,
            low_bytes: 50 << 30,
            high_bytes: 50 << 30,
            is_target_size: Some(true),
        };
        let candidate = |id: &str, distance: f64, lifecycle: &str| Candidate {
            id: id.to_owned(),
            provider: "AWS".to_owned(),
            type_name: "EBS General Purpose SSD gp2".to_owned(),
            lifecycle: lifecycle.to_owned(),
            distance,
            size: Some(size),
            ..Candidate::default()
        };
        let candidates =
            [candidate("aws-gp2", 0.003, "current"), candidate("aws-gp2-2016", 0.08, "historical")];
        let predictions = predictions(found);
        let report =
            IdentifyReport { record: &record, found, candidates: &candidates, predictions: &predictions };
        let mut out = Vec::new();
        if json {
            identify_json::render(&report, &Style::default(), &mut out).unwrap();
        } else {
            render(&report, &Style::default(), &mut TextWriter::new(&mut out)).unwrap();
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_page_and_a_document() {
        insta::assert_snapshot!("identify_page", rendered(&found(), false));
        insta::assert_snapshot!("identify_document", rendered(&found(), true));
    }

    #[test]
    fn nothing_found_is_a_page_as_well() {
        insta::assert_snapshot!("identify_nothing", rendered(&Identified::default(), false));
    }
}
