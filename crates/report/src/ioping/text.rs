//! ioping's own text: a line per request, the closing statistics, and the raw line. Pure; the forms are those of ioping 1.3,
//! for programs that read them.

use std::io;

use fathom_analysis::ping::{Note, PingSample, PingTarget, PingWindow};
use fathom_model::Op;
use jiff::Timestamp;

use crate::{Style, TextWriter};

/// A number with the largest unit that it reaches: two digits behind the point below ten, else one; none where it comes
/// out even.
fn scaled(value: u64, units: &[(u64, &str)]) -> String {
    let &(scale, unit) = units.iter().find(|(scale, _)| value >= *scale).unwrap_or(&(1, ""));
    let digits = match value / scale {
        _ if value.is_multiple_of(scale) => 0,
        0..10 => 2,
        _ => 1,
    };
    let number = format!("{:.digits$}", value as f64 / scale as f64);
    if unit.is_empty() { number } else { format!("{number} {unit}") }
}

/// `7.85 us`, `339.0 us`, `4.00 s`.
pub fn time(ns: u64) -> String {
    const UNITS: [(u64, &str); 6] = [
        (3_600_000_000_000, "hour"),
        (60_000_000_000, "min"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
        (1, "ns"),
    ];
    if ns == 0 { "0 ns".to_owned() } else { scaled(ns, &UNITS) }
}

/// `4 KiB`, `73.2 MiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 7] = [
        (1 << 60, "EiB"),
        (1 << 50, "PiB"),
        (1 << 40, "TiB"),
        (1 << 30, "GiB"),
        (1 << 20, "MiB"),
        (1 << 10, "KiB"),
        (1, "B"),
    ];
    if bytes == 0 { "0 B".to_owned() } else { scaled(bytes, &UNITS) }
}

/// `1.05 M`, `18.7 k`, `537`.
pub fn count(number: u64) -> String {
    const UNITS: [(u64, &str); 4] =
        [(1_000_000_000_000, "T"), (1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")];
    scaled(number, &UNITS)
}

/// `count` per second over `ns`.
fn per_second(count: u64, ns: u128) -> f64 {
    if ns == 0 { 0.0 } else { count as f64 * 1e9 / ns as f64 }
}

/// What stands in brackets behind the path: `ext4 /dev/vda 252.0 GiB`.
pub(crate) fn target(target: &PingTarget) -> String {
    if target.is_block_device {
        return format!("{} (block device {})", target.path, size(target.device_size_bytes));
    }
    if target.is_char_device {
        return format!("{} (character device 0 B)", target.path);
    }
    format!("{} ({} {} {})", target.path, target.fs_type, target.device, size(target.device_size_bytes))
}

/// The time `unix_us` in the form of `format` (strftime); the format itself where it makes no sense.
pub fn stamp(unix_us: u64, format: &str, style: &Style) -> String {
    let at = i64::try_from(unix_us).ok().and_then(|us| Timestamp::from_microsecond(us).ok());
    let zoned = at.unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(style.time_zone.clone());
    jiff::fmt::strtime::format(format, &zoned).unwrap_or_else(|_| format.to_owned())
}

/// The line of one request, without its end.
pub fn line(place: &PingTarget, sample: &PingSample, note: Option<Note>) -> String {
    let arrow = if sample.operation == Op::Write { ">>>" } else { "<<<" };
    let note = note.map(|note| format!(" ({})", note.words())).unwrap_or_default();
    format!(
        "{} {arrow} {}: request={} time={}{note}",
        size(u64::try_from(sample.result).unwrap_or(0)),
        target(place),
        sample.request,
        time(sample.lat_ns)
    )
}

/// The closing block.
///
/// # Errors
/// Those of `out`.
pub fn statistics(
    place: &PingTarget,
    operation: &str,
    whole: &PingWindow,
    out: &mut TextWriter,
) -> io::Result<()> {
    let out = &mut out.verbatim();
    let moments = &whole.lat_ns;
    let verb = match operation {
        "read" => " read",
        "write" => " written",
        _ => "",
    };
    writeln!(out)?;
    writeln!(out, "--- {} ioping statistics ---", target(place))?;
    writeln!(
        out,
        "{} requests completed in {}, {}{verb}, {} iops, {}/s",
        count(moments.count),
        time(moments.sum as u64),
        size(whole.load.counted_bytes),
        count(per_second(moments.count, moments.sum) as u64),
        size(per_second(whole.load.counted_bytes, moments.sum) as u64)
    )?;
    let odd = [(whole.load.too_fast, "too fast"), (whole.load.too_slow, "too slow")];
    let odd = odd.iter().filter(|(number, _)| *number > 0);
    let odd: String = odd.map(|(number, words)| format!("{} {words}, ", count(*number))).collect();
    let wall = u128::from(whole.load.wall_ns());
    writeln!(
        out,
        "{odd}generated {} requests in {}, {}, {} iops, {}/s",
        count(whole.load.answered),
        time(whole.load.wall_ns()),
        size(whole.load.answered_bytes),
        count(per_second(whole.load.answered, wall) as u64),
        size(per_second(whole.load.answered_bytes, wall) as u64)
    )?;
    writeln!(
        out,
        "min/avg/max/mdev = {} / {} / {} / {}",
        time(moments.min),
        time(moments.mean().round() as u64),
        time(moments.max),
        time(whole.deviation_ns().round() as u64)
    )
}

/// The raw line of a window, without its end: ten whole numbers, ns and bytes.
pub fn raw(window: &PingWindow) -> String {
    let moments = &window.lat_ns;
    format!(
        "{} {} {:.0} {:.0} {} {:.0} {} {:.0} {} {}",
        moments.count,
        moments.sum,
        per_second(moments.count, moments.sum),
        per_second(window.load.counted_bytes, moments.sum),
        moments.min,
        moments.mean(),
        moments.max,
        window.deviation_ns(),
        window.load.answered,
        window.load.wall_ns()
    )
}

#[cfg(test)]
mod tests {
    use fathom_analysis::ping::PingLoad;

    use super::*;

    fn place() -> PingTarget {
        PingTarget {
            path: ".".to_owned(),
            fs_type: "ext4".to_owned(),
            device: "/dev/vda".to_owned(),
            device_size_bytes: 252 << 30,
            is_block_device: false,
            is_char_device: false,
        }
    }

    fn window(times: &[u64], all: u64, wall: u64) -> PingWindow {
        let load =
            PingLoad { answered: all, answered_bytes: all * 4096, end_ns: wall, ..PingLoad::default() };
        let mut window = PingWindow { load, ..PingWindow::default() };
        for &ns in times {
            window.lat_ns.record(ns);
            window.load.counted_bytes += 4096;
        }
        window
    }

    #[test]
    fn numbers() {
        for (ns, expected) in [
            (0, "0 ns"),
            (537, "537 ns"),
            (1_000, "1 us"),
            (7_850, "7.85 us"),
            (65_800, "65.8 us"),
            (339_012, "339.0 us"),
            (4_000_123_000, "4.00 s"),
        ] {
            assert_eq!(time(ns), expected);
        }
        for (bytes, expected) in [
            (0, "0 B"),
            (512, "512 B"),
            (4096, "4 KiB"),
            (5_119, "5.00 KiB"),
            (16_384, "16 KiB"),
            (521_876_275, "497.7 MiB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
        for (number, expected) in
            [(0, "0"), (537, "537"), (1_000, "1 k"), (18_700, "18.7 k"), (1_053_000, "1.05 M")]
        {
            assert_eq!(count(number), expected);
        }
    }

    #[test]
    fn stamps() {
        let style = Style::default();
        for (format, expected) in
            [("%b %d %T", "Nov 20 22:25:36"), ("%s", "1795213536"), ("%H:%M", "22:25"), ("%!", "%!")]
        {
            assert_eq!(stamp(1_795_213_536_000_001, format, &style), expected);
        }
    }

    #[test]
    fn lines() {
        let sample = PingSample {
            request: 2,
            operation: Op::Read,
            offset_bytes: 0,
            size_bytes: 4096,
            result: 4096,
            lat_ns: 339_012,
            response_ns: None,
            served: None,
            elapsed_ns: 0,
        };
        assert_eq!(
            line(&place(), &sample, None),
            "4 KiB <<< . (ext4 /dev/vda 252 GiB): request=2 time=339.0 us"
        );
        let write = PingSample { operation: Op::Write, request: 1, ..sample };
        assert_eq!(
            line(&place(), &write, Some(Note::Warmup)),
            "4 KiB >>> . (ext4 /dev/vda 252 GiB): request=1 time=339.0 us (warmup)"
        );
    }

    #[test]
    fn the_closing_block() {
        let mut out = Vec::new();
        let whole = window(&[230_000, 402_000, 316_000, 316_000], 5, 4_000_401_000);
        statistics(&place(), "read", &whole, &mut TextWriter::new(&mut out)).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "\n--- . (ext4 /dev/vda 252 GiB) ioping statistics ---\n\
             4 requests completed in 1.26 ms, 16 KiB read, 3.16 k iops, 12.4 MiB/s\n\
             generated 5 requests in 4.00 s, 20 KiB, 1 iops, 5.00 KiB/s\n\
             min/avg/max/mdev = 230 us / 316 us / 402 us / 60.8 us\n"
        );
        let mut out = Vec::new();
        let mut none = window(&[], 5, 1_000_000_000);
        none.load.too_slow = 4;
        statistics(&place(), "mixed", &none, &mut TextWriter::new(&mut out)).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.contains("0 requests completed in 0 ns, 0 B, 0 iops, 0 B/s\n4 too slow, generated 5"),
            "{text}"
        );
        assert!(text.ends_with("min/avg/max/mdev = 0 ns / 0 ns / 0 ns / 0 ns\n"), "{text}");
    }

    #[test]
    fn raw_lines() {
        assert_eq!(
            raw(&window(&[2_734, 3_416, 3_485], 4, 150_114_314)),
            "3 9635 311365 1275350285 2734 3212 3485 339 4 150114314"
        );
        assert_eq!(raw(&window(&[], 0, 7)), "0 0 0 0 0 0 0 0 0 7");
    }
}
