//! What fio prints before anything runs: the jobs, its version, how many workers start, which files are laid out.

use std::io;

use fathom_model::plan::FigureForm;
use fathom_model::{Op, RunPlan};
use fathom_record::RunRecord;

use crate::TextWriter;
use crate::fio::number::Figures;
use crate::fio::report::FIO_VERSION;

/// One job as the banner shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct BannerJob<'a> {
    name: &'a str,
    group: u32,
    rw: &'a str,
    /// Bytes of the smallest and the largest request: read, write, trim.
    block_sizes: [(u64, u64); 3],
    engine: &'a str,
    iodepth: u32,
    workers: usize,
    thread_wording: bool,
    form: FigureForm,
}

/// Writes the banner of a plan that is about to run.
///
/// # Errors
/// Those of `out`.
pub fn render_plan(plan: &RunPlan, out: &mut TextWriter) -> io::Result<()> {
    let jobs: Vec<BannerJob> = plan
        .jobs
        .iter()
        .map(|job| BannerJob {
            name: &job.name,
            group: job.group,
            rw: job.io.pattern.name(),
            block_sizes: Op::DATA
                .map(|op| (job.io.block_size[op].smallest(), job.io.block_size[op].largest())),
            engine: &job.engine.name,
            iodepth: job.depth.iodepth,
            workers: job.clones.len(),
            thread_wording: job.thread_wording,
            form: job.measure.figures,
        })
        .collect();
    write_banner(&jobs, out)
}

/// Writes the banner of a run that is over, from its record.
///
/// # Errors
/// Those of `out`.
pub fn render(record: &RunRecord, out: &mut TextWriter) -> io::Result<()> {
    let mut jobs: Vec<BannerJob> = Vec::new();
    for test in &record.tests {
        let mut before = None;
        for worker in &test.jobs {
            if before == Some(worker.job) {
                continue;
            }
            before = Some(worker.job);
            let of_job = test.jobs.iter().filter(|other| other.job == worker.job);
            let ran: usize =
                of_job.map(|job| job.workers.as_ref().map_or(1, |sums| sums.workers as usize)).sum();
            let (least, most) = (worker.smallest_blocks(), worker.largest_blocks());
            jobs.push(BannerJob {
                name: &worker.name,
                group: worker.group,
                rw: worker.rw(),
                block_sizes: [(least.read, most.read), (least.write, most.write), (least.trim, most.trim)],
                engine: worker.engine(),
                iodepth: worker.iodepth(),
                workers: ran.max(worker.plan.numjobs as usize),
                thread_wording: worker.thread_wording,
                form: worker.plan.measure.figures,
            });
        }
    }
    write_banner(&jobs, out)
}

/// The line about files that are laid out, without a line end: `files` of them, `total_bytes` together.
pub fn layout_line(job: &str, files: usize, total_bytes: u64) -> String {
    let size = total_bytes >> 20;
    match files {
        1 => format!("{job}: Laying out IO file (1 file / {size}MiB)"),
        _ => format!("{job}: Laying out IO files ({files} files / total {size}MiB)"),
    }
}

fn write_banner(jobs: &[BannerJob], out: &mut TextWriter) -> io::Result<()> {
    let out = &mut out.verbatim();
    for job in jobs {
        let [family, _] = job.form.families();
        let size = |bytes| job.form.bytes(bytes, family);
        let [read, write, trim] =
            job.block_sizes.map(|(least, most)| format!("{}-{}", size(least), size(most)));
        writeln!(
            out,
            "{}: (g={}): rw={}, bs=(R) {read}, (W) {write}, (T) {trim}, ioengine={}, iodepth={}",
            job.name, job.group, job.rw, job.engine, job.iodepth
        )?;
        if job.workers > 1 {
            writeln!(out, "...")?;
        }
    }
    writeln!(out, "{FIO_VERSION}")?;
    let count = |thread: bool| -> usize {
        jobs.iter().filter(|job| job.thread_wording == thread).map(|job| job.workers).sum()
    };
    let started: Vec<String> = [(count(true), "thread", "s"), (count(false), "process", "es")]
        .into_iter()
        .filter(|&(count, ..)| count > 0)
        .map(|(count, word, plural)| format!("{count} {word}{}", if count == 1 { "" } else { plural }))
        .collect();
    if started.is_empty() { Ok(()) } else { writeln!(out, "Starting {}", started.join(" and ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: &str, workers: usize, thread_wording: bool) -> BannerJob<'_> {
        BannerJob {
            name,
            group: 0,
            rw: "randread",
            block_sizes: [(3, 3), (4096, 65_528), (512, 512)],
            engine: "psync",
            iodepth: 1,
            workers,
            thread_wording,
            form: FigureForm::default(),
        }
    }

    fn check(jobs: &[BannerJob], expected: &str) {
        let mut out = Vec::new();
        write_banner(jobs, &mut TextWriter::new(&mut out)).expect("writing to memory");
        assert_eq!(String::from_utf8(out).expect("text"), expected);
    }

    #[test]
    fn banners() {
        let line = "rw=randread, bs=(R) 3B-3B, (W) 4096B-64.0KiB, (T) 512B-512B, ioengine=psync, iodepth=1";
        check(&[job("a", 1, false)], &format!("a: (g=0): {line}\nfio-3.42\nStarting 1 process\n"));
        check(&[job("a", 3, false)], &format!("a: (g=0): {line}\n...\nfio-3.42\nStarting 3 processes\n"));
        check(
            &[job("a", 2, false), job("b", 1, true)],
            &format!(
                "a: (g=0): {line}\n...\nb: (g=0): {line}\nfio-3.42\nStarting 1 thread and 2 processes\n"
            ),
        );
    }

    #[test]
    fn layout_lines() {
        assert_eq!(layout_line("a", 1, 64 << 20), "a: Laying out IO file (1 file / 64MiB)");
        assert_eq!(layout_line("a", 4, 64 << 20), "a: Laying out IO files (4 files / total 64MiB)");
    }
}
