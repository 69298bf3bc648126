//! What ioping prints for people, from 0.6 to 1.3.
//!
//! Up to 1.0 `completed in` is the wall time; later it is the time of the requests, and a line `generated` has the wall time.

use fathom_model::Op;
use fathom_record::import::{
    Figure, FigureNumber, FigurePlace, ImportedOp, MissingFigure, MissingReason, PacedLoad,
};

use crate::number::{self, Number, ReadResult, Reading};
use crate::report::{SourceReport, miss};
use crate::text::{SourceText, excerpt};

/// True for a line of ioping.
pub(crate) fn is_ioping_line(line: &str) -> bool {
    line.contains("ioping statistics")
        || is_count(line)
        || line.contains("min/avg/max/mdev")
        || (line.contains("request=") && line.contains("time="))
}

/// The lines before that of the latencies.
fn is_count(line: &str) -> bool {
    let is_completed = line.contains("requests completed in") || line.contains("request completed in");
    is_completed || (line.contains("generated ") && line.contains(" requests in "))
}

/// Reads the pings of a text, each an output of its own; each ends with the line of its latencies.
pub(crate) fn read(source: &SourceText) -> Vec<SourceReport> {
    let mut pings = Vec::new();
    let mut ping = PingReader::default();
    for (index, line) in source.as_str().lines().enumerate() {
        let line_number = index as u64 + 1;
        let is_next = (line.contains("ioping statistics") && ping.is_complete)
            || (line.contains("request=") && ping.has_statistics());
        if is_next {
            pings.push(std::mem::take(&mut ping).finish());
        }
        ping.take(line, line_number);
    }
    if ping.has_statistics() || !ping.figures.lat.requests.is_empty() {
        pings.push(ping.finish());
    }
    pings
}

/// A ping being read.
#[derive(Default)]
struct PingReader {
    figures: ImportedOp,
    paced: Option<PacedLoad>,
    /// The time of the line of results, whatever it is of.
    completed_ns: Option<Figure<u64>>,
    op: Option<Op>,
    block_size: Option<u64>,
    target: Option<String>,
    missing: Vec<MissingFigure>,
    /// Lines of the rates and of the latencies.
    places: Vec<FigurePlace>,
    is_complete: bool,
    /// Its first line.
    line: u64,
}

impl PingReader {
    fn has_statistics(&self) -> bool {
        self.is_complete || self.figures.ios.is_some()
    }

    fn take(&mut self, line: &str, number: u64) {
        if self.line == 0 && is_ioping_line(line) {
            self.line = number;
        }
        if line.contains("request=") {
            self.request(line, number);
        } else if let Some((head, _)) = line.split_once(" ioping statistics") {
            let target = head.trim_start_matches(['-', ' ']).split(" (").next().unwrap_or_default().trim();
            self.target = Some(target.to_owned()).filter(|target| !target.is_empty());
        } else if line.contains(" completed in") && is_count(line) {
            self.completed(line, number);
        } else if is_count(line) {
            self.generated(line, number);
        } else if let Some((_, values)) = line.split_once("min/avg/max/mdev") {
            self.latencies(values.trim_start_matches([' ', '=']), line, number);
        }
    }

    fn note(&mut self, line: &str, number: u64, figure: &str, reason: MissingReason) {
        let missing = MissingFigure { line: number, text: excerpt(line), figure: figure.to_owned(), reason };
        miss(&mut self.missing, missing);
    }

    fn keep<T: FigureNumber>(
        &mut self,
        read: ReadResult,
        place: (&str, u64),
        name: &str,
    ) -> Option<Figure<T>> {
        let (line, number) = place;
        read.and_then(Reading::figure).map_err(|reason| self.note(line, number, name, reason)).ok()
    }

    /// `4 KiB <<< . (ext4 /dev/vda 252.0 GiB): request=2 time=339.0 us`, `4096 bytes from . (...): request=1 time=0.2 ms`.
    fn request(&mut self, line: &str, number: u64) {
        let direction = [("<<<", Op::Read), (" from ", Op::Read), (">>>", Op::Write), (" to ", Op::Write)];
        let found = direction.iter().find(|(sign, _)| line.contains(sign));
        if let Some((sign, op)) = found {
            self.op = Some(*op);
            let (size, behind) = line.split_once(sign).unwrap_or((line, ""));
            let size = bytes(size).ok().map(|read| read.value.round() as u64);
            self.block_size = self.block_size.or(size.filter(|&size| size > 0 && size < 1 << 40));
            let target = behind.split(" (").next().unwrap_or_default().trim();
            self.target = self.target.take().or(Some(target.to_owned()).filter(|target| !target.is_empty()));
        }
        let counts = !["warmup", "too fast", "too slow", "EAGAIN"].iter().any(|notice| line.contains(notice));
        let time = line.split_once("time=").map(|(_, time)| time.split('(').next().unwrap_or(time).trim());
        let read = time.filter(|time| !time.is_empty()).ok_or(MissingReason::Lost).and_then(time_of);
        let request = self.keep(read, (line, number), "time of a request");
        self.figures.lat.requests.extend(request.filter(|_| counts));
    }

    /// `10 requests completed in 9.01 s, 16 KiB read, 1.23 k iops, 4.79 MiB/s`.
    fn completed(&mut self, line: &str, number: u64) {
        let place = (line, number);
        self.places.push(FigurePlace { figures: String::new(), line: number, text: excerpt(line) });
        self.figures.ios = self.keep(leading_count(line), place, "requests");
        self.figures.lat.samples = self.figures.ios;
        let (_, rest) = line.split_once(" completed in").unwrap_or(("", line));
        let mut parts = rest.split(',').map(str::trim);
        self.completed_ns = self.keep(parts.next().map_or(Err(MissingReason::Lost), time_of), place, "time");
        let parts: Vec<&str> = parts.collect();
        if let Some(part) = parts.iter().find(|part| part.ends_with("read") || part.ends_with("written")) {
            let (amount, op) = match part.strip_suffix("read") {
                Some(amount) => (amount, Op::Read),
                None => (part.trim_end_matches("written"), Op::Write),
            };
            self.op = self.op.or(Some(op));
            self.figures.bytes = self.keep(bytes(amount), place, "bytes");
        }
        self.figures.iops = self.keep(part_with(&parts, "iops").and_then(rate), place, "IOPS");
        self.figures.bytes_per_second =
            self.keep(part_with(&parts, "/s").and_then(bytes), place, "bandwidth");
    }

    /// `4 too slow, generated 5 requests in 4.00 s, 20 KiB, 1 iops, 5.00 KiB/s`.
    fn generated(&mut self, line: &str, number: u64) {
        let place = (line, number);
        let (before, rest) = line.split_once("generated ").unwrap_or(("", line));
        let before: Vec<&str> = before.split(',').map(str::trim).collect();
        let excluded = |word: &str| {
            let part = before.iter().find(|part| part.ends_with(word))?;
            leading_count(part).and_then(Reading::figure).ok()
        };
        let (too_fast, too_slow) = (excluded("too fast"), excluded("too slow"));
        let (_, behind) = rest.split_once(" in ").unwrap_or(("", rest));
        let parts: Vec<&str> = behind.split(',').map(str::trim).collect();
        let amount = parts.get(1).filter(|part| !part.ends_with("iops")).copied();
        self.paced = Some(PacedLoad {
            ios: self.keep(leading_count(rest), place, "generated requests"),
            wall_ns: self.keep(
                parts.first().map_or(Err(MissingReason::Lost), |time| time_of(time)),
                place,
                "wall time",
            ),
            bytes: self.keep(amount.ok_or(MissingReason::Lost).and_then(bytes), place, "generated bytes"),
            iops: self.keep(part_with(&parts, "iops").and_then(rate), place, "generated IOPS"),
            bytes_per_second: self.keep(
                part_with(&parts, "/s").and_then(bytes),
                place,
                "generated bandwidth",
            ),
            too_fast,
            too_slow,
        });
    }

    /// `0.2/0.3/0.6/0.1 ms`, or each with its unit: `294 us / 365 us / 710 us / 116 us`.
    fn latencies(&mut self, values: &str, line: &str, number: u64) {
        self.is_complete = true;
        self.places.push(FigurePlace { figures: "lat_ns.".to_owned(), line: number, text: excerpt(line) });
        let parts: Vec<&str> = values.split('/').map(str::trim).collect();
        let common = parts.last().and_then(|part| Number::parse(part)).map_or("", |number| number.unit);
        // One unit behind the last is that of all; otherwise each has its own.
        let is_common =
            parts.iter().rev().skip(1).all(|part| Number::parse(part).is_some_and(|of| of.unit.is_empty()));
        let mut one = |index: usize, name: &str| {
            let part = parts.get(index).copied().filter(|part| !part.is_empty());
            let read = part.ok_or(MissingReason::Lost).and_then(|part| match is_common && index < 3 {
                true => time_of(&format!("{part} {common}")),
                false => time_of(part),
            });
            self.keep(read, (line, number), name)
        };
        let (min, mean) = (one(0, "lat min"), one(1, "lat mean"));
        let (max, stddev) = (one(2, "lat max"), one(3, "lat stddev"));
        let lat = &mut self.figures.lat;
        (lat.min, lat.mean, lat.max, lat.stddev) = (min, mean, max, stddev);
    }

    fn finish(mut self) -> SourceReport {
        match &mut self.paced {
            Some(_) => self.figures.runtime_ns = self.completed_ns,
            None => {
                self.paced =
                    self.completed_ns.map(|wall| PacedLoad { wall_ns: Some(wall), ..PacedLoad::default() })
            }
        }
        let load = super::load(self.block_size, self.op, self.target);
        let mut test = super::test(load, self.op, self.figures, self.paced);
        test.imported.missing = self.missing;
        let op = self.op.map_or("total", Op::name);
        test.imported.places = self.places;
        for place in &mut test.imported.places {
            place.figures.insert_str(0, &format!("{op}."));
        }
        SourceReport { tests: vec![test], ..SourceReport::default() }.at(self.line)
    }
}

/// The first part that ends so, without the end where it is a word.
fn part_with<'a>(parts: &[&'a str], end: &str) -> Result<&'a str, MissingReason> {
    let part = parts.iter().find(|part| part.ends_with(end)).ok_or(MissingReason::Lost)?;
    Ok(if end == "/s" { part } else { part.trim_end_matches(end).trim() })
}

fn leading_count(text: &str) -> ReadResult {
    let words: Vec<&str> = text.split_whitespace().take(2).collect();
    let has_prefix = words.get(1).is_some_and(|word| ["k", "M", "G"].contains(word));
    let text =
        if has_prefix { words.join(" ") } else { words.first().copied().unwrap_or_default().to_owned() };
    number::count(&text, number::UnitStyle::Modern)
}

/// `1.23 k`, `3318`.
fn rate(text: &str) -> ReadResult {
    number::iops(text, number::UnitStyle::Modern)
}

/// A time with its unit; whole numbers are rounded, or what is left of division.
fn time_of(text: &str) -> ReadResult {
    number::time(text)
}

/// An amount, or a rate: every unit is a power of 1,024, also `mb/s`.
fn bytes(text: &str) -> ReadResult {
    let number = Number::parse(text).ok_or(MissingReason::Unreadable)?;
    let unit = number.unit.to_ascii_lowercase();
    let unit = unit.strip_suffix("/s").unwrap_or(&unit).trim();
    let unit = match unit {
        "b" | "byte" | "bytes" => "B".to_owned(),
        "" => return Err(MissingReason::UnknownUnit),
        other => {
            format!("{}iB", other[..other.chars().next().map_or(0, char::len_utf8)].to_ascii_uppercase())
        }
    };
    number::bytes_in(number, &unit, number::UnitStyle::Modern)
}
