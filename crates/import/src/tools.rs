//! Output of other programs for people: dd, sysbench, CrystalDiskMark and KDiskMark, HD Tune, the Phoronix Test Suite, iostat; and
//! the results that elbencho appends to a file.

mod dd;
mod disk_mark;
mod phoronix;
mod sysbench;

use std::collections::BTreeMap;

use crate::number::Number;
use crate::report::SourceReport;
use crate::table::{TableRow, report};
use crate::text::SourceText;

pub(crate) use dd::{is_count, is_result};

/// Each output of one of these programs in a text.
pub(crate) fn read(source: &SourceText) -> Vec<SourceReport> {
    let lines: Vec<&str> = source.as_str().split('\n').collect();
    let mut all = dd::read(&lines);
    for reader in [disk_mark::read, sysbench::read, hd_tune, phoronix::read, iostat, elbencho] {
        all.extend(reader(&lines));
    }
    all.into_iter().filter_map(Output::report).collect()
}

/// An output: the line it begins at, its program, and its figures.
struct Output {
    line: u64,
    tool: &'static str,
    rows: Vec<TableRow>,
    /// What the page says above it, where the program itself says it.
    heading: String,
    notes: Vec<String>,
}

impl Output {
    fn at(index: usize, tool: &'static str) -> Output {
        Output { line: index as u64 + 1, tool, rows: Vec::new(), heading: String::new(), notes: Vec::new() }
    }

    /// Adds a figure, at the index of its line.
    fn add(
        &mut self,
        index: usize,
        test: &str,
        metric: &str,
        (value, unit): (&str, &str),
        options: &[(&str, &str)],
    ) {
        let options = options.iter().filter(|(_, value)| !value.is_empty());
        let mut options: BTreeMap<String, String> =
            options.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        options.insert("tool".to_owned(), self.tool.to_owned());
        let (line, test, metric) = (index as u64 + 1, test.to_owned(), metric.to_owned());
        self.rows.push(TableRow {
            line,
            test,
            metric,
            value: value.to_owned(),
            unit: unit.to_owned(),
            options,
        });
    }

    fn report(self) -> Option<SourceReport> {
        let mut found = report(self.rows, &BTreeMap::new()).ok()?;
        found.notes.extend(self.notes);
        found.tests.iter_mut().for_each(|test| test.heading.clone_from(&self.heading));
        (!found.tests.is_empty()).then(|| found.at(self.line))
    }
}

/// A number at the beginning of a text, as it is printed, and what follows.
fn leading(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let end = text.find(|sign: char| !(sign.is_ascii_digit() || sign == '.')).unwrap_or(text.len());
    Number::parse(&text[..end])?;
    Some((text[..end].trim_end_matches('.'), text[end..].trim()))
}

/// A number with a point or a comma before its decimals, with a point, and what follows.
fn decimal(text: &str) -> Option<(String, &str)> {
    let text = text.trim_start();
    let is_digit = |sign: char| sign.is_ascii_digit();
    let whole = text.find(|sign: char| !is_digit(sign)).unwrap_or(text.len());
    let (digits, rest) = text.split_at(whole);
    let decimals =
        rest.strip_prefix(['.', ',']).filter(|rest| rest.starts_with(is_digit)).unwrap_or_default();
    let decimals = &decimals[..decimals.find(|sign: char| !is_digit(sign)).unwrap_or(decimals.len())];
    let (number, end) = match decimals.is_empty() {
        true => (digits.to_owned(), whole),
        false => (format!("{digits}.{decimals}"), whole + 1 + decimals.len()),
    };
    Number::parse(&number)?;
    Some((number, &text[end..]))
}

/// `Transfer Rate Minimum : 42.0 MB/sec`, as the program copies its result.
fn hd_tune(lines: &[&str]) -> Vec<Output> {
    const FIGURES: &[(&str, &str, &str, &str)] = &[
        ("transfer rate minimum", "transfer-rate", "read", " transfer rate minimum"),
        ("transfer rate maximum", "transfer-rate", "read", " transfer rate maximum"),
        ("transfer rate average", "transfer-rate", "read", " transfer rate average"),
        ("access time", "access-time", "randread", " access time"),
        ("burst rate", "burst-rate", "", " burst rate"),
    ];
    let mut all: Vec<Output> = Vec::new();
    let mut is_open = false;
    for (index, line) in lines.iter().enumerate() {
        let lower = line.trim().to_lowercase();
        if lower.starts_with("hd tune") {
            is_open = false;
        }
        let Some((name, value)) = lower.split_once(':') else { continue };
        let found = FIGURES.iter().find(|(known, ..)| *known == name.trim());
        let Some(&(_, test, rw, metric)) = found else { continue };
        let Some((value, unit)) = decimal(value) else { continue };
        let unit = match unit.trim().split(' ').next().unwrap_or_default() {
            "mb/sec" | "mb/s" => "MB/s",
            "ms" => "ms",
            _ => continue,
        };
        if !is_open {
            all.push(Output::at(index, "HD Tune"));
            is_open = true;
        }
        if let Some(output) = all.last_mut() {
            let options =
                [("rw", rw), ("iodepth", "1"), ("kb_base", if unit == "ms" { "" } else { "either" })];
            output.add(index, test, &format!("read{metric}"), (&value, unit), &options);
        }
    }
    all
}

/// The table of `iostat -x` or `iostat -d`: each device of each report, in order; the first report counts from the start of the machine.
fn iostat(lines: &[&str]) -> Vec<Output> {
    let mut all: Vec<Output> = Vec::new();
    let mut head: Option<Vec<&str>> = None;
    let mut number = 0;
    for (index, line) in lines.iter().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first().is_some_and(|word| word.trim_end_matches(':') == "Device") && words.contains(&"r/s")
        {
            head = Some(words);
            number += 1;
            all.push(Output::at(index, "iostat"));
            continue;
        }
        let Some(names) = &head else { continue };
        if words.len() != names.len() {
            head = None;
            continue;
        }
        let Some(output) = all.last_mut() else { continue };
        let test = format!("{} report {number}", words[0]);
        for (name, value) in names.iter().zip(&words) {
            let (metric, unit) = match *name {
                "r/s" => ("read.iops", "IOPS"),
                "w/s" => ("write.iops", "IOPS"),
                "rkB/s" => ("read.bytes_per_second", "KiB/s"),
                "wkB/s" => ("write.bytes_per_second", "KiB/s"),
                "rMB/s" => ("read.bytes_per_second", "MiB/s"),
                "wMB/s" => ("write.bytes_per_second", "MiB/s"),
                "r_await" => ("read.lat_ns.mean", "ms"),
                "w_await" => ("write.lat_ns.mean", "ms"),
                _ => continue,
            };
            let value = value.replace(',', ".");
            if !value.trim_matches(['0', '.']).is_empty()
                && leading(&value).is_some_and(|(_, rest)| rest.is_empty())
            {
                output.add(index, &test, metric, (&value, unit), &[]);
            }
        }
    }
    all.retain(|output| !output.rows.is_empty());
    all
}

/// The rows of `elbencho --csvfile` below their head, a phase each: its figures when the last thread ended.
fn elbencho(lines: &[&str]) -> Vec<Output> {
    let mut all: Vec<Output> = Vec::new();
    let mut head: Vec<String> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if line.starts_with("ISO date,") {
            head = fields(line);
            all.push(Output::at(index, "elbencho"));
            continue;
        }
        let row = if head.is_empty() { Vec::new() } else { fields(line) };
        let Some(output) = all.last_mut().filter(|_| !row.is_empty() && row.len() == head.len()) else {
            head.clear();
            continue;
        };
        let value =
            |name: &str| head.iter().position(|one| one == name).map_or("", |place| row[place].trim());
        let direction = match value("operation") {
            "READ" => "read",
            "WRITE" => "write",
            _ => continue,
        };
        let is_random = value("random") == "1";
        let rw = if is_random { format!("rand{direction}") } else { direction.to_owned() };
        let count = |name: &str| value(name).parse::<u64>().ok();
        let jobs = count("threads").map(|threads| (threads * count("hosts").unwrap_or(1).max(1)).to_string());
        let options = [
            ("rw", rw.as_str()),
            ("bs", value("block size")),
            ("iodepth", value("IO depth")),
            ("numjobs", jobs.as_deref().unwrap_or_default()),
            ("direct", value("direct IO")),
        ];
        let label = value("label");
        let test = if label.is_empty() { rw.clone() } else { format!("{label} {rw}") };
        for (name, metric, unit) in [
            ("IOPS [last]", "iops", "IOPS"),
            ("MiB/s [last]", "bytes_per_second", "MiB/s"),
            ("IO lat us [avg]", "lat_ns.mean", "us"),
            ("IO lat us [max]", "lat_ns.max", "us"),
        ] {
            if leading(value(name)).is_some_and(|(_, rest)| rest.is_empty()) {
                output.add(index, &test, &format!("{direction}.{metric}"), (value(name), unit), &options);
            }
        }
    }
    all.retain(|output| !output.rows.is_empty());
    all
}

/// The fields of a line of CSV; empty if it cannot be parsed.
fn fields(line: &str) -> Vec<String> {
    let reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line.as_bytes());
    let row = reader.into_records().next().and_then(Result::ok);
    row.map_or(Vec::new(), |row| row.iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use fathom_record::import::ImportedOp;

    use super::*;

    pub(super) fn found(text: &str) -> Vec<SourceReport> {
        read(&SourceText::new(text))
    }

    pub(super) fn names(report: &SourceReport) -> Vec<&str> {
        report.tests.iter().map(|test| test.name.as_str()).collect()
    }

    pub(super) fn read_op(report: &SourceReport, name: &str) -> ImportedOp {
        let test = report.tests.iter().find(|test| test.name == name).unwrap_or_else(|| panic!("{report:?}"));
        test.imported.entries[0].op(fathom_model::Op::Read).unwrap().clone()
    }

    #[test]
    fn dd_with_its_command_line() {
        let text = "$ dd if=/dev/zero of=test bs=64k count=16k conv=fdatasync\n16384+0 records in\n16384+0 records out\n\
                    1073741824 bytes (1.1 GB, 1.0 GiB) copied, 5.11 s, 210 MB/s\n";
        let all = found(text);
        let test = &all[0].tests[0];
        assert_eq!((test.imported.load.rw.as_deref(), all[0].line()), (Some("write"), 4));
        let write = test.imported.entries[0].op(fathom_model::Op::Write).unwrap();
        assert_eq!(write.bytes.unwrap().value, 1 << 30);
        assert_eq!(write.bytes_per_second.unwrap().value, 210e6);
        assert_eq!(test.imported.load.sync, ["end_fsync=1"]);
        // It pads blocks, and flushes nothing.
        let padded = found(&text.replace("conv=fdatasync", "conv=sync"));
        assert!(padded[0].tests[0].imported.load.sync.is_empty());
        assert!(found("He copied, 5 times, the bytes\n").is_empty());
    }

    #[test]
    fn hd_tune_phoronix_and_iostat() {
        let tune = "HD Tune Pro: disk Benchmark\nTransfer Rate Minimum : 42.0 MB/sec\nTransfer Rate Average : 50.9 MB/sec\nAccess Time : 6.62 ms\nCPU Usage : -1.0%\n";
        let all = found(tune);
        assert_eq!(
            all[0].tests.iter().map(|test| test.name.as_str()).collect::<Vec<_>>(),
            ["transfer-rate", "access-time"]
        );
        let commas = found("Transfer Rate Average : 445,6 MB/s\nAccess Time           : 0,067 ms\n");
        let rate = read_op(&commas[0], "transfer-rate").bytes_per_second.unwrap();
        assert_eq!(rate.value, 445.6 * 1_048_576.0);
        assert_eq!(read_op(&commas[0], "access-time").lat.mean.unwrap().value, 67_000);
        let phoronix = "Flexible IO Tester 3.35:\n    pts/fio-2.0.0 [Type: Random Read - Engine: Linux AIO - Direct: Yes - Block Size: 4KB - Disk Target: Default]\n\
                        \n    Type: Random Read\n        12\n\n    Average: 98600 IOPS\n    Deviation: 0.5%\n";
        let all = found(phoronix);
        assert_eq!(read_op(&all[0], "randread-4k").iops.unwrap().value, 98_600.0);
        let iostat = "Device            r/s     rkB/s   r_await     w/s\nsda            10.00    400.00      0.50    0.00\nsdb            0.00 0.00 0.00 0.00\n\n\
                      Device            r/s     rkB/s   r_await     w/s\nsda            2000.00    8000.00      0.42    0.00\n";
        let all = found(iostat);
        assert_eq!(all.len(), 2);
        let read = read_op(&all[1], "sda report 2");
        assert_eq!((read.iops.unwrap().value, read.lat.mean.unwrap().value), (2000.0, 420_000));
    }
    #[test]
    fn phases_of_elbencho() {
        let text = "ISO date,label,hosts,threads,block size,direct IO,random,IO depth,operation,IOPS [first],IOPS [last],\
                    MiB/s [first],MiB/s [last],IO lat us [avg],command\n\
                    2026-01-02T03:04:05+0000,,2,4,4096,1,1,16,WRITE,9000,8800,35,34,14540,\"elbencho -w, -t 4\"\n\
                    2026-01-02T03:05:05+0000,,2,4,4096,1,1,16,RMFILES,,,,,,elbencho\n\
                    2026-01-02T03:06:05+0000,big,1,1,1048576,1,0,1,READ,500,500,500,500,2000,elbencho\n";
        let all = found(text);
        let names: Vec<&str> = all[0].tests.iter().map(|test| test.name.as_str()).collect();
        assert_eq!((names, all[0].line()), (vec!["randwrite", "big read"], 1));
        let write = &all[0].tests[0].imported;
        let figures = write.entries[0].op(fathom_model::Op::Write).unwrap();
        assert_eq!((figures.iops.unwrap().value, figures.lat.mean.unwrap().value), (8_800.0, 14_540_000));
        assert_eq!((write.load.queue_depth, write.load.jobs), (Some(16), Some(8)));
        let read = read_op(&all[0], "big read");
        assert_eq!(read.bytes_per_second.unwrap().value, 500.0 * 1_048_576.0);
        assert!(found("ISO date,label\n1,2,3\n").is_empty());
    }
}
