//! The job file of `monitor --to-job`: what was seen as comments, then jobs that fio and fathom both take. Pure.

use std::fmt::Write as _;

use fathom_analysis::monitor::MonitorInterval;
use fathom_analysis::monitor::job::{ReplayJobs, ReplaySection, job, short};
use fathom_model::Nanos;
use fathom_model::Op;
use fathom_model::text::shown;
use fathom_model::units::{bytes, duration};

/// A rate below this is given in bytes: whole requests per second would be too coarse.
const FINE_IOPS: f64 = 1000.0;

/// The text of the file, in which no name of a device makes a line of its own; `None` where the device did nothing.
pub fn render(seen: &MonitorInterval) -> Option<String> {
    let job = job(seen);
    if job.sections.is_empty() {
        return None;
    }
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = comments(seen, &job, &mut text);
    let seconds = (seen.elapsed_ns as f64 / 1e9).round().max(1.0);
    let _ = write!(
        text,
        "\n[global]\nfilename=${{TARGET}}\ndirect=1\nioengine=libaio\ntime_based=1\nruntime={seconds}\ngroup_reporting=1\n"
    );
    for section in &job.sections {
        let _ = section_text(section, &mut text);
    }
    Some(text)
}

fn comments(seen: &MonitorInterval, job: &ReplayJobs, text: &mut String) -> std::fmt::Result {
    let device = &seen.device;
    writeln!(
        text,
        "; The load of {} as `fathom monitor` saw it for {}.",
        shown(&device.path),
        duration(Nanos(seen.elapsed_ns))
    )?;
    let seconds = seen.elapsed_ns as f64 / 1e9;
    for (op, iops, mean) in &job.rates {
        writeln!(text, "; {op}: {iops:.1} per second of {} on average", bytes(mean.round() as u64))?;
    }
    let flush = &seen.activity.flush;
    if flush.ios > 0 {
        writeln!(text, "; flush: {:.1} per second", flush.ios as f64 / seconds)?;
    }
    if let Some(load) = &seen.load {
        for (op, load) in load.ops.iter().filter(|(op, _)| !op.is_sync()) {
            if let Some(share) = load.sequential_share() {
                writeln!(text, "; {op}: {:.0} % of the requests go on where another ended", share * 100.0)?;
            }
        }
        if load.lost > 0 {
            writeln!(
                text,
                "; {} events came too fast to be seen; the rates are whole all the same",
                load.lost
            )?;
        }
    }
    if !job.is_exact {
        writeln!(
            text,
            "; Requests were not traced: sizes keep the mean of those measured, and random order is a guess."
        )?;
    }
    if job.left_out >= 0.0005 {
        writeln!(text, "; Left out, being rare: {:.1} % of the requests.", job.left_out * 100.0)?;
    }
    writeln!(text, ";\n; To run it, name the file or device in the environment:")?;
    writeln!(text, ";   TARGET=/path/to/file fathom fio THIS_FILE")?;
    if job.sections.iter().any(|section| section.op != Op::Read) {
        writeln!(text, "; It overwrites the data of TARGET.")?;
    }
    Ok(())
}

fn section_text(section: &ReplaySection, text: &mut String) -> std::fmt::Result {
    let pattern = match (section.random, section.op) {
        (true, op) => format!("rand{op}"),
        (false, op) => op.to_string(),
    };
    writeln!(text, "\n[{}]\nrw={pattern}\n{}\niodepth={}", section.name, sizes(section), section.depth)?;
    // fio reckons a rate in requests by the smallest of several sizes.
    if section.iops >= FINE_IOPS && section.sizes.len() == 1 {
        writeln!(text, "rate_iops={}", section.iops.round())?;
    } else {
        writeln!(text, "rate={}", (section.iops * section.mean_bytes()).round().max(1.0))?;
    }
    if let Some((offset, size)) = section.range {
        writeln!(text, "offset={}\nsize={}", short(offset), short(size))?;
    }
    if let Some(writes) = section.fdatasync {
        writeln!(text, "fdatasync={writes}")?;
    }
    Ok(())
}

/// `bs=4k`, or `bssplit=4k/70:16k/30`.
fn sizes(section: &ReplaySection) -> String {
    if let [(size, _)] = section.sizes.as_slice() {
        return format!("bs={}", short(*size));
    }
    let shares: Vec<String> =
        section.sizes.iter().map(|&(size, percent)| format!("{}/{percent}", short(size))).collect();
    format!("bssplit={}", shares.join(":"))
}

#[cfg(test)]
mod tests {
    use fathom_analysis::monitor::WatchedDevice;
    use fathom_analysis::monitor::load::LoadWatch;

    use super::*;

    #[test]
    fn a_file_says_what_was_seen_and_how_to_do_it_again() {
        let mut watch = LoadWatch::default();
        let mut seen = MonitorInterval {
            elapsed_ns: 4_000_000_000,
            device: WatchedDevice { path: "/dev/sdb".into(), ..WatchedDevice::default() },
            ..MonitorInterval::default()
        };
        for n in 0..2000 {
            let (op, at, size) = match n % 10 {
                0..2 => (Op::Read, n * 514_229 % 262_144 * 4096, 16_384),
                9 => (Op::Write, n / 10 * 65_536, 65_536),
                _ => (Op::Read, n * 514_229 % 262_144 * 4096, 4096),
            };
            watch.issued(op, at, size, n);
            watch.completed(op, at, n);
            seen.activity.ops[op].ios += 1;
            seen.activity.ops[op].bytes += size;
        }
        seen.load = Some(watch.take());
        let text = render(&seen).unwrap();
        assert!(text.starts_with("; The load of /dev/sdb as `fathom monitor` saw it for 4 s.\n"), "{text}");
        for part in [
            "; read: 450.0 per second of 6.7 KiB on average\n",
            "; It overwrites the data of TARGET.\n",
            "filename=${TARGET}\n",
            "runtime=4\n",
            "[reads]\nrw=randread\nbssplit=4k/78:16k/22\niodepth=1\nrate=3059712\noffset=0\nsize=",
            "[writes]\nrw=write\nbs=64k\niodepth=1\nrate=3276800\noffset=0\nsize=12800k\n",
        ] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
        seen.device =
            WatchedDevice { path: "/dev/x\nfilename=/dev/sda\r".into(), ..WatchedDevice::default() };
        let text = render(&seen).unwrap();
        assert!(text.starts_with("; The load of /dev/x\\x0afilename=/dev/sda\\x0d as `fathom"), "{text}");
        assert_eq!(render(&MonitorInterval { elapsed_ns: 1, ..MonitorInterval::default() }), None);
    }
}
