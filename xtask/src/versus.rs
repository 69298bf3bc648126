//! fathom compared with fio: builds, runs every row in alternation with Debian's fio, and writes the results into the
//! pages that quote it. It measures and reports; a goal that is not met is shown and fails nothing.

mod data_file;
mod first_read;
mod host;
mod lab;
mod load;
mod measure;
mod options;
mod pages;
mod programs;
mod recording;
pub mod resident;
mod rows;
mod sample;
mod shown_run;
mod statistics;

use std::path::Path;

use anyhow::{Context as _, bail};
use fathom_tests::{LoopDevice, Need};
use rustix::thread::{CpuSet, sched_getaffinity};

use data_file::DataFile;
use host::Host;
use lab::Lab;
use measure::{Bench, MeasuredRow};
use options::Options;
use pages::{MarkedPage, RowLine};
use programs::Programs;
use rows::TableRow;

/// Where the tables stand: the full one, and the short one.
const PAGES: [&str; 2] = ["docs/versus-fio.md", "README.md"];

/// Size of the device that is recorded.
const DEVICE_BYTES: u64 = 256 << 20;

/// Measures what `arguments` ask for on the workspace at `root`.
pub fn run(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    if matches!(arguments, ["--help" | "-h" | "help"]) {
        println!("{}", options::USAGE);
        return Ok(());
    }
    let options = Options::parse(arguments)?;
    let pages = if options.write {
        Some((MarkedPage::read(root, PAGES[0])?, MarkedPage::read(root, PAGES[1])?))
    } else {
        None
    };
    if !options.directory.is_dir() {
        bail!("{} is not a directory", options.directory.display());
    }
    println!("building, and making a file of 1 GiB in {} ...", options.directory.display());
    // The harness makes devices for those only who have asked for the machine.
    let _alone = fathom_tests::measuring_alone();
    let programs = Programs::prepare(root, options.rows.iter().any(|row| row.measure.has_bench()))?;
    let cpus = allowed_cpus()?;
    let host = Host::look(root, &programs, cpus.len())?;
    let lab = Lab {
        programs,
        file: DataFile::create(&options.directory)?,
        in_memory: DataFile::create(Path::new("/dev/shm"))?,
        device: device_for(&options.rows),
        logs: tempfile::tempdir().context("cannot make a directory for logs")?,
        seconds: options.seconds,
        cpus,
    };
    let about = format!(
        "Measured {}; {} rounds of {} s, {} of the start, {} of memory.",
        host.shown(),
        options.rounds,
        options.seconds,
        options.start_rounds,
        options.rounds.min(measure::MEMORY_ROUNDS)
    );
    println!("{about}\n\n{}", pages::terminal_head());
    let results = measure_all(&options, &lab)?;
    let lines: Vec<RowLine<'_>> = results.iter().map(|(row, measured)| RowLine { row, measured }).collect();
    println!("\n{}", verdict(&lines));
    if let Some((full, short)) = pages {
        full.write(&pages::full(&about, &lines))?;
        short.write(&pages::short(&about, &lines))?;
        println!("wrote {}", PAGES.join(" and "));
    }
    Ok(())
}

/// A device in memory, where a row records one and this machine can make one.
fn device_for(rows: &[&TableRow]) -> Option<LoopDevice> {
    let is_recorded = rows.iter().any(|row| row.measure.is_recorded());
    let needs = [Need::Root, Need::Tool("losetup"), Need::Path("/dev/shm")];
    (is_recorded && fathom_tests::missing(&needs).is_none()).then(|| LoopDevice::in_memory(DEVICE_BYTES))
}

/// Measures row by row. One that fails does not keep the others from being shown, but the pages from being written.
fn measure_all(options: &Options, lab: &Lab) -> anyhow::Result<Vec<(&'static TableRow, MeasuredRow)>> {
    let mut bench = Bench::new(lab, options.rounds, options.start_rounds);
    let mut results = Vec::new();
    let mut failed = Vec::new();
    for row in &options.rows {
        let measured = match bench.measure(row) {
            Ok(measured) => measured,
            Err(error) => {
                println!("{:<14} failed: {error:#}", row.name);
                failed.push(row.name);
                continue;
            }
        };
        let line = RowLine { row, measured: &measured };
        println!("{}", pages::terminal_line(&line));
        if options.verbose {
            print!("{}", pages::rounds(&line));
        }
        if let Some(remark) = &measured.remark {
            println!("    {remark}");
        }
        results.push((*row, measured));
    }
    if !failed.is_empty() {
        bail!("not measured: {}; no page was written", failed.join(", "));
    }
    Ok(results)
}

/// How many goals are met, which are not, and how many rows are to be measured again on a quieter machine.
fn verdict(lines: &[RowLine<'_>]) -> String {
    let wanted = lines.iter().filter(|line| line.is_met().is_some());
    let missed: Vec<&str> =
        lines.iter().filter(|line| line.is_met() == Some(false)).map(|line| line.row.name).collect();
    let wanted = wanted.count();
    let named = if missed.is_empty() { String::new() } else { format!("; not {}", missed.join(", ")) };
    let disturbed = match lines.iter().filter(|line| line.measured.is_disturbed).count() {
        0 => String::new(),
        n => format!("; rows disturbed: {n}"),
    };
    format!("{} of {wanted} goals met{named}{disturbed}", wanted - missed.len())
}

/// The CPUs that we may use, ascending.
fn allowed_cpus() -> anyhow::Result<Vec<usize>> {
    let set = sched_getaffinity(None).context("cannot ask which CPUs may be used")?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use statistics::Round;

    #[test]
    fn the_verdict_names_what_was_missed() {
        let measured = |ours, theirs| MeasuredRow {
            rounds: vec![Round { ours, theirs: Some(theirs) }],
            ..MeasuredRow::default()
        };
        let (good, bad, none) = (measured(2.0, 1.0), measured(1.0, 1.0), MeasuredRow::default());
        let line = |name, measured| RowLine { row: rows::find(name).unwrap(), measured };
        let check = |lines: &[RowLine<'_>], expected: &str| assert_eq!(verdict(lines), expected);
        check(&[line("uring", &good), line("psync", &good), line("psync-bare", &bad)], "2 of 2 goals met");
        check(&[line("uring", &good), line("psync", &bad)], "1 of 2 goals met; not psync");
        let disturbed = MeasuredRow { is_disturbed: true, ..good.clone() };
        check(
            &[line("uring", &disturbed), line("psync", &bad)],
            "1 of 2 goals met; not psync; rows disturbed: 1",
        );
        check(&[line("uring", &good), line("jobs-8-psync", &none)], "1 of 1 goals met");
    }
}
