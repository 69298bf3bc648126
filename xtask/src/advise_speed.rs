//! `cargo xtask campaign advise-speed`: the time and memory that `fathom advise` takes for a recording of many requests on one type,
//! and for a week of sums over all types.
//!
//! The recording is drawn from a seed and has about 11 bytes a request. It has no name, so that nothing is left of it whatever happens.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Seek, Write};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};
use fathom_model::Op;
use fathom_observed::recording::{RecordingDetail, RecordingEnd, RecordingHeader, RequestBlock};
use fathom_observed::{ObservedRequest, RequestPoint};

use crate::process;
use crate::versus::resident::{Count, peak_mib};

/// Requests of a full campaign.
const USUAL_REQUESTS: u64 = 100_000_000;
/// The recording has so many I/Os per second.
const RATE: f64 = 12_000.0;
/// Bytes of the device.
const SIZE: u64 = 200 << 30;
/// Intervals of a week at five minutes.
const WEEK: u64 = 2_016;
/// What may be taken at most.
const MOST_TRACE_SECONDS: f64 = 20.0;
const MOST_WEEK_SECONDS: f64 = 5.0;
const MOST_MIB: f64 = 256.0;

/// What is asked for.
struct Settings {
    requests: u64,
    directory: PathBuf,
    program: Option<PathBuf>,
}

fn settings(arguments: &[&str]) -> anyhow::Result<Settings> {
    let directory = PathBuf::from("/var/tmp");
    let mut settings = Settings { requests: USUAL_REQUESTS, directory, program: None };
    for pair in arguments.chunks(2) {
        let value = pair.get(1).with_context(|| format!("{} needs a value", pair[0]))?;
        match pair[0] {
            "--requests" => settings.requests = value.parse().context("--requests is a whole number")?,
            "--directory" => settings.directory = PathBuf::from(value),
            "--program" => settings.program = Some(PathBuf::from(value)),
            other => bail!("{other} is not an argument; there are --requests, --directory and --program"),
        }
    }
    Ok(settings)
}

/// Runs the campaign.
pub fn campaign(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let settings = settings(arguments)?;
    let program = match &settings.program {
        Some(program) => program.clone(),
        None => {
            process::watch(Command::new("cargo").current_dir(root).args([
                "build",
                "--release",
                "--package",
                "fathom",
            ]))?;
            root.join("target/release/fathom")
        }
    };
    let unnamed =
        || tempfile::tempfile_in(&settings.directory).context("cannot make a file for the recording");
    let mut trace = unnamed()?;
    write_trace(&mut trace, settings.requests)?;
    let mut week = unnamed()?;
    week.write_all(week_of_sums().as_bytes())?;
    let mut failures = Vec::new();
    for (name, file, options, most_seconds) in [
        ("requests on one type", trace, &["--candidate", "aws-gp3"][..], MOST_TRACE_SECONDS),
        ("a week of sums, all types", week, &["--provider", "all"], MOST_WEEK_SECONDS),
    ] {
        let (seconds, mib) = advise(&program, file, options)?;
        println!("{name}: {seconds:.2} s of {most_seconds} s, {mib:.0} MiB of {MOST_MIB} MiB");
        if seconds > most_seconds || mib > MOST_MIB {
            failures.push(name);
        }
    }
    ensure!(failures.is_empty(), "more than allowed: {}", failures.join(", "));
    Ok(())
}

/// Seconds and MiB that advice on the load in `file` takes.
#[allow(clippy::disallowed_methods)] // A program is timed from outside.
fn advise(program: &Path, mut file: File, options: &[&str]) -> anyhow::Result<(f64, f64)> {
    file.rewind()?;
    let mut command = Command::new(program);
    command.args(["advise", "-", "--json", "--expect", "iops>1"]).args(options);
    let begin = Instant::now();
    let child = command.stdin(file).stdout(Stdio::null()).spawn();
    let mib = peak_mib(child.with_context(|| format!("cannot run {command:?}"))?, Count::Process)?;
    Ok((begin.elapsed().as_secs_f64(), mib))
}

/// Numbers from a seed: splitmix64.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Between 0 and 1, without both.
    fn share(&mut self) -> f64 {
        ((self.next() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    }

    /// Exponential, with this mean.
    fn exponential(&mut self, mean: f64) -> f64 {
        -self.share().ln() * mean
    }
}

/// Random reads and writes at random times, and sequential ones between them.
fn write_trace(file: &mut File, requests: u64) -> anyhow::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, file);
    out.write_all(&header().block())?;
    let (mut draws, mut block) = (Draws(17), RequestBlock::default());
    let (mut at, mut sequential) = (0.0, 0_u64);
    for _ in 0..requests {
        at += draws.exponential(1e9 / RATE);
        let op = if draws.share() < 0.7 { Op::Read } else { Op::Write };
        let bytes = if draws.share() < 0.9 { 4_096 } else { 65_536 };
        let offset = match draws.share() < 0.2 {
            true => sequential,
            false => {
                draws.next() % (SIZE / 65_536) * 65_536
                    + draws.next() % 16 * 4_096 * u64::from(bytes == 4_096)
            }
        };
        sequential = (offset + u64::from(bytes)) % (SIZE - 65_536);
        let latency = 150_000.0 + draws.exponential(350_000.0);
        block.push(&ObservedRequest {
            at_ns: at as u64,
            offset,
            latency_ns: NonZeroU64::new(latency as u64),
            bytes,
            file: 0,
            op,
        });
        if block.bytes() >= RequestBlock::ENOUGH_BYTES {
            out.write_all(&block.take(at as u64, 0, 0))?;
        }
    }
    out.write_all(&block.take(at as u64, 0, 0))?;
    out.write_all(&RecordingEnd { end_ns: at as u64, ..RecordingEnd::default() }.block())?;
    out.flush().context("cannot write the recording")
}

fn header() -> RecordingHeader {
    RecordingHeader {
        detail: RecordingDetail::Requests,
        point: RequestPoint::Driver,
        device: "drawn".to_owned(),
        size_bytes: SIZE,
        sector_bytes: 512,
        host: "drawn".to_owned(),
        started_unix_ns: 1_790_000_000_000_000_000,
        file: 1,
        from_ns: 0,
        tool_version: "0".to_owned(),
        notes: Vec::new(),
    }
}

/// A week of CloudWatch's sums with days and nights, and bursts.
fn week_of_sums() -> String {
    let mut text = "Timestamp,VolumeReadOps,VolumeReadBytes,VolumeWriteOps,VolumeWriteBytes,VolumeTotalReadTime,VolumeTotalWriteTime\n"
        .to_owned();
    let mut draws = Draws(5);
    for index in 0..WEEK {
        let (day, minute) = (1 + index / 288, index % 288 * 5);
        let daily = 1.0 + 0.8 * ((minute as f64 / 1440.0 - 0.35) * std::f64::consts::TAU).sin();
        let burst = if draws.share() < 0.03 { 6.0 } else { 1.0 };
        let reads = (150_000.0 * daily * burst * (0.7 + 0.6 * draws.share())) as u64;
        let writes = reads / 3;
        // Writing to a text does not fail.
        let _ = writeln!(
            text,
            "2026-11-{day:02}T{:02}:{:02}:00Z,{reads},{},{writes},{},{},{}",
            minute / 60,
            minute % 60,
            reads * 16_384,
            writes * 8_192,
            reads as f64 * 0.8e-3,
            writes as f64 * 1.1e-3,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use fathom_observed::recording::read_recording;
    use fathom_observed::{LoadSource, read_text};

    use super::*;

    #[test]
    fn arguments_name_the_number_of_requests() {
        assert_eq!(settings(&[]).unwrap().requests, USUAL_REQUESTS);
        assert_eq!(settings(&["--requests", "1000"]).unwrap().requests, 1_000);
        for wrong in [&["--requests"][..], &["--requests", "x"], &["--seed", "1"]] {
            assert!(settings(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_drawn_loads_are_read_as_they_are() {
        let mut file = tempfile::tempfile().unwrap();
        write_trace(&mut file, 20_000).unwrap();
        file.rewind().unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        assert!((9..13).contains(&(bytes.len() / 20_000)), "{} bytes", bytes.len());
        let LoadSource::Stream(requests) = read_recording(&bytes[..], None).unwrap() else { panic!() };
        assert_eq!(requests.filter(|request| request.is_ok()).count(), 20_000);
        assert!(read_text(&week_of_sums(), None).unwrap().gaps.is_empty());
    }
}
