//! `fathom surface`: the transfer rate over a whole volume, place by place; access time, burst rate, file benchmark, scan.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use clap::Args;
use fathom_analysis::surface::plan::{SurfaceParts, VisitOrder};
use fathom_assess::is_simulated;
use fathom_assess::surface::{BLOCK, Content, DEPTH, SurfacePlan, SurfaceSettings, surface};
use fathom_model::Nanos;
use fathom_model::units::{bytes, duration, parse_bytes, parse_capacity};
use fathom_record::RunRecord;
use fathom_report::TextWriter;
use fathom_report::surface::ROWS;

use super::measuring::Measuring;
use super::run_arguments::RunArguments;
use super::shown;
use super::words::{one_of, time_for};
use crate::exit::{Complaint, Exit};
use crate::progress::RowPrinter;
use crate::progress::StepCourse;
use crate::{output, store};

/// What `fathom surface` takes.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct SurfaceArguments {
    /// Directory, file, block device or simulated volume (sim:ID?size=50GiB)
    target: PathBuf,
    /// Run only these parts [default: all; file only in a directory]
    #[arg(long, value_delimiter = ',', value_parser = ["transfer", "saturated", "access", "burst", "file"], value_name = "PART,...")]
    only: Vec<String>,
    /// Read every block once and list unreadable sectors and slow blocks
    #[arg(long, conflicts_with_all = ["only", "write", "points", "bs", "order", "iodepth", "budget", "pattern"])]
    scan: bool,
    /// Write instead of read (requires --destroy-data on a device or file)
    #[arg(long)]
    write: bool,
    /// Number of positions [default: 200, or fewer to suit size and time]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000), value_name = "COUNT")]
    points: Option<u32>,
    /// Block size of the transfer part: 512 to 8m [default: 64k]
    #[arg(long, value_parser = block, value_name = "SIZE")]
    bs: Option<u64>,
    /// Order of the positions: random, ascending or descending
    ///
    /// A random order separates effects of time from those of position.
    #[arg(long, value_parser = order, default_value = "random", value_name = "ORDER")]
    order: VisitOrder,
    /// Queue depth of the saturated and file parts
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=4096), default_value_t = DEPTH, value_name = "DEPTH")]
    iodepth: u32,
    /// Time limit: 90, 3m, 1h [default: 1m, with the file benchmark 2m]
    #[arg(long, value_parser = time_for("a surface", 2), value_name = "TIME")]
    budget: Option<Nanos>,
    /// Size of the test file, or of the range to use: 512m, 10g, 200MB
    #[arg(long, value_parser = parse_capacity)]
    size: Option<u64>,
    /// Data pattern of the file benchmark: random, zero or mixed
    #[arg(long, value_parser = content, default_value = "random", value_name = "PATTERN")]
    pattern: Content,
    /// Allow writes to this device or file: destroys its data
    ///
    /// It must be the target.
    #[arg(long, value_name = "DEVICE")]
    destroy_data: Option<PathBuf>,
    #[command(flatten)]
    run: RunArguments,
}

const EXAMPLES: &str = "\
Examples:
  fathom surface /dev/nvme1n1                  200 positions across the volume in about a minute; writes nothing
  fathom surface /mnt/data                     a test file in the directory, and the file benchmark
  fathom surface --order ascending --bs 1m --budget 5m /dev/sdb
  fathom surface --size 100g --only transfer,access /dev/sdb
  fathom surface --scan /dev/sdb               every block once: unreadable sectors, slow blocks
  fathom surface --write --destroy-data=/dev/nvme1n1 /dev/nvme1n1";

fn block(text: &str) -> Result<u64, String> {
    match parse_bytes(text) {
        Ok(size) if !(512..=8 << 20).contains(&size) => Err("choose 512 to 8m".to_owned()),
        Ok(size) => Ok(size),
        Err(error) => Err(error.to_string()),
    }
}

fn order(text: &str) -> Result<VisitOrder, String> {
    one_of(&VisitOrder::ALL, VisitOrder::name, text)
}

fn content(text: &str) -> Result<Content, String> {
    one_of(&Content::ALL, Content::name, text)
}

/// Measures a surface.
///
/// # Errors
/// It could not begin.
pub fn run(arguments: SurfaceArguments, command: &[OsString]) -> Result<Exit, Complaint> {
    let measuring = Measuring::new(&arguments.run, is_simulated(&arguments.target));
    let mut plan = SurfacePlan::make(settings(arguments, command))?;
    plan.settings.run.earlier = store::identifications(&measuring.place);
    measuring.announce(|out| plan_text(&plan, out))?;
    // Of a scan it is not known how long it takes.
    let budget = (!plan.settings.scan).then_some(plan.settings.budget);
    let layout_time = plan.site.layout_time;
    // A scan is one measurement in many parts.
    let is_simulated = plan.site.target.is_simulated();
    let rows =
        budget.map(|_| RowPrinter::new(ROWS, RunRecord::default(), &measuring.form).silent_if(is_simulated));
    let printed = rows.clone();
    let (_, exit) = measuring.run(
        move |control, observer| surface(&plan, &mut plan.site.session().controlled(control), observer),
        StepCourse::new(layout_time, budget, rows.clone()),
        rows,
        move |record, style, format, out| {
            let is_printed = printed.as_ref().is_some_and(|rows| rows.has_all(record));
            if is_printed { Ok(()) } else { shown::show(record, style, format, out) }
        },
    )?;
    Ok(exit)
}

fn settings(arguments: SurfaceArguments, command: &[OsString]) -> SurfaceSettings {
    let has = |part: &str| arguments.only.iter().any(|only| only == part);
    let parts = (!arguments.only.is_empty()).then(|| SurfaceParts {
        transfer: has("transfer"),
        saturated: has("saturated"),
        access: has("access"),
        burst: has("burst"),
        file: has("file"),
    });
    let has_file = parts.map_or(arguments.target.is_dir(), |parts| parts.file);
    let otherwise = Nanos::from_secs(if has_file { 120 } else { 60 });
    SurfaceSettings {
        run: arguments.run.settings(arguments.target, arguments.size, arguments.destroy_data, command),
        parts,
        scan: arguments.scan,
        writes: arguments.write,
        points: arguments.points,
        block: arguments.bs.unwrap_or(BLOCK),
        order: arguments.order,
        depth: arguments.iodepth,
        budget: arguments.budget.unwrap_or(otherwise),
        content: arguments.pattern,
    }
}

/// What is going to be done and what it costs.
fn plan_text(plan: &SurfacePlan, out: &mut TextWriter) -> io::Result<()> {
    let settings = &plan.settings;
    let (name, size) = (&plan.site.name, bytes(plan.site.size));
    if settings.scan {
        let what = format!("Scan of {name}: all of {size} once, one block of 1 MiB at a time.");
        output::paragraph(&what, out)?;
    } else {
        let places = plan.visits(settings.budget.0).len();
        let parts = [
            (plan.parts.transfer, format!("{places} positions in {} order", settings.order.name())),
            (plan.parts.access, "access time".to_owned()),
            (plan.parts.burst, "burst rate".to_owned()),
            (plan.parts.saturated, format!("queue depth {}", settings.depth)),
            (plan.parts.file, "file benchmark".to_owned()),
        ];
        let parts: Vec<String> = parts.into_iter().filter(|(is, _)| *is).map(|(_, part)| part).collect();
        let budget = format!("{}{}", duration(settings.budget), plan.site.target.time_note());
        output::paragraph(&format!("Surface of {name}, {size}: {}; about {budget}.", parts.join(", ")), out)?;
    }
    output::paragraph(&plan.traffic().text(plan.site.test_file()), out)?;
    output::notes(&plan.site.notes, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_understood() {
        for (text, expected) in
            [("64k", Some(65_536)), ("512", Some(512)), ("8m", Some(8 << 20)), ("9m", None), ("1", None)]
        {
            assert_eq!(block(text).ok(), expected, "{text}");
        }
        assert_eq!((order("ascending"), order("up").is_err()), (Ok(VisitOrder::Ascending), true));
        assert_eq!((content("mixed"), content("ones").is_err()), (Ok(Content::Mixed), true));
    }
}
