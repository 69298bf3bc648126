//! `advise-speed`: the time and memory that `fathom advise` takes for a recording of many requests on one type, and for a week of sums
//! over all types.
//!
//! The recording is drawn from a seed and has about 11 bytes a request. It has no name, so that nothing is left of it whatever happens.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Seek, Write};
use std::num::NonZeroU64;
use std::process::{Command, Stdio};

use anyhow::Context as _;
use fathom_model::Op;
use fathom_observed::recording::{RecordingDetail, RecordingEnd, RecordingHeader, RequestBlock};
use fathom_observed::{ObservedRequest, RequestPoint};
use xtask::process::now;

use crate::driver::{Campaign, Case, CaseResult, Plan};
use crate::versus::resident::{Count, peak_mib};

pub const CAMPAIGN: Campaign = Campaign {
    options: &[
        ("requests", Some("100000000"), "Requests of the recording"),
        ("directory", Some("/var/tmp"), "Directory of the recording"),
    ],
    ..Campaign::new("advise-speed", "Time and memory of fathom advise on long loads", |asked| {
        let (requests, directory) = (asked.number("requests")?, asked.text("directory").to_owned());
        let unnamed = move || tempfile::tempfile_in(&directory).context("cannot make a file for the load");
        let again = unnamed.clone();
        let requests = Case::new("requests on one type", move || {
            let mut file = unnamed()?;
            write_trace(&mut file, requests)?;
            advise(file, &["--candidate", "aws-gp3"], MAX_TRACE_SECONDS)
        });
        let sums = Case::new("a week of sums, all types", move || {
            let mut file = again()?;
            file.write_all(week_of_sums().as_bytes())?;
            advise(file, &["--provider", "all"], MAX_WEEK_SECONDS)
        });
        Ok(Plan::new([requests, sums]))
    })
};

/// I/Os per second of the recording.
const RATE: f64 = 12_000.0;
/// Bytes of the device.
const SIZE: u64 = 200 << 30;
/// Intervals of a week at five minutes.
const WEEK: u64 = 2_016;
/// What may be taken at most.
const MAX_TRACE_SECONDS: f64 = 20.0;
const MAX_WEEK_SECONDS: f64 = 5.0;
const MAX_MIB: f64 = 256.0;

/// Seconds and MiB that advice on the load in `file` takes.
fn advise(mut file: File, options: &[&str], max_seconds: f64) -> anyhow::Result<CaseResult> {
    file.rewind()?;
    let mut command = Command::new(fathom_tests::fathom_path());
    command.args(["advise", "-", "--json", "--expect", "iops>1"]).args(options);
    let begin = now();
    let child = command.stdin(file).stdout(Stdio::null()).spawn();
    let mib = peak_mib(child.with_context(|| format!("cannot run {command:?}"))?, Count::Process)?;
    let seconds = begin.elapsed().as_secs_f64();
    let line = format!("{seconds:.2} s of {max_seconds} s, {mib:.0} MiB of {MAX_MIB} MiB");
    let is_more = seconds > max_seconds || mib > MAX_MIB;
    Ok(CaseResult::new(line).faults(is_more.then(|| "more than allowed".to_owned())))
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
        let latency_ns = NonZeroU64::new((150_000.0 + draws.exponential(350_000.0)) as u64);
        block.push(&ObservedRequest { at_ns: at as u64, offset, latency_ns, bytes, file: 0, thread: 0, op });
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
        let (hour, minute) = (minute / 60, minute % 60);
        let (read_bytes, write_bytes) = (reads * 16_384, writes * 8_192);
        let (read_s, write_s) = (reads as f64 * 0.8e-3, writes as f64 * 1.1e-3);
        // Writing to a text does not fail.
        let _ = writeln!(
            text,
            "2026-11-{day:02}T{hour:02}:{minute:02}:00Z,{reads},{read_bytes},{writes},{write_bytes},{read_s},{write_s}"
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
