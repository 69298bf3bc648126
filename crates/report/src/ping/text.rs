//! The line of each request that `ping` shows. Pure.

use std::io;

use fathom_analysis::ping::{Note, PingSample, PingTarget, whole};
use fathom_record::RunRecord;

use super::{PingReport, closing, verdict};
use crate::{Style, TextWriter, formats, ioping, text_writer};

/// The report at the end: the verdict, ioping's statistics and what stands below them.
///
/// # Errors
/// Those of `out`.
pub fn render(record: &RunRecord, style: &Style, out: &mut TextWriter) -> io::Result<()> {
    let ping = PingReport::of(record).ping;
    writeln!(out)?;
    formats::text::render(&verdict(record), style, out)?;
    let statistics =
        |out: &mut TextWriter| ioping::statistics(&ping.how.target, &ping.how.operation, &whole(ping), out);
    match style.units {
        Some(system) => out.own_lines(&system.restate_rates(&text_writer::text(statistics)?))?,
        None => statistics(out)?,
    }
    writeln!(out)?;
    formats::text::render(&closing(record), style, out)
}

/// The line of one request, without its end: ioping's, then where it was answered.
pub fn line(place: &PingTarget, sample: &PingSample, note: Option<Note>, style: &Style) -> String {
    let asked = PingSample { result: i64::from(sample.size_bytes), ..*sample };
    if sample.result < 0 && note.is_none() {
        let line = ioping::line(place, &asked, None);
        let until = line.rfind(" time=").unwrap_or(line.len());
        return style.red(&format!("{} failed: {}", &line[..until], error(-sample.result as i32)));
    }
    let line = ioping::line(place, sample, None);
    let late = sample.response_ns.map(|ns| format!(" response={}", ioping::time(ns))).unwrap_or_default();
    let note = note.map(|note| format!(" ({})", note.words())).unwrap_or_default();
    let served = sample.served.map(|served| format!("  {}", style.dim(served.word()))).unwrap_or_default();
    format!("{line}{late}{note}{served}")
}

/// What the system calls an error, without its number.
pub fn error(errno: i32) -> String {
    let text = io::Error::from_raw_os_error(errno).to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// The remark where a request had no answer at the end.
pub fn stuck(thread: u32) -> String {
    format!("the last I/O never completed: thread {thread} stays in the kernel until the device responds")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_where_and_how_late() {
        let place = PingTarget {
            path: "f".to_owned(),
            fs_type: "xfs".to_owned(),
            device: "/dev/vdb".to_owned(),
            device_size_bytes: 1 << 30,
            ..PingTarget::default()
        };
        let sample = PingSample {
            request: 2,
            operation: fathom_model::Op::Read,
            offset_bytes: 0,
            size_bytes: 4096,
            result: 4096,
            lat_ns: 91_200,
            response_ns: Some(120_000),
            served: Some(fathom_analysis::ping::ServedBy::Device),
            elapsed_ns: 0,
        };
        let check = |sample: PingSample, note: Option<Note>, expected: &str| {
            let head = "4 KiB <<< f (xfs /dev/vdb 1 GiB): request=2 ";
            assert_eq!(line(&place, &sample, note, &Style::default()), format!("{head}{expected}"));
        };
        check(sample, Some(Note::Warmup), "time=91.2 us response=120 us (warmup)  device");
        check(PingSample { response_ns: None, served: None, ..sample }, None, "time=91.2 us");
        check(PingSample { result: -5, ..sample }, None, "failed: Input/output error");
    }

    #[test]
    fn errors_are_said_in_words() {
        assert_eq!(error(5), "Input/output error");
    }
}
