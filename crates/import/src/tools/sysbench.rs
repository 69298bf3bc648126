//! `sysbench fileio`, 0.4 to 1.0.

use super::{Output, leading};

/// A run of the program: what it said that it does, and what it measured.
struct Run {
    line: usize,
    version: String,
    rw: &'static str,
    bs: String,
    threads: String,
    direct: &'static str,
    is_synchronous: bool,
    read_percent: String,
    /// Line, metric, value and unit.
    figures: Vec<(usize, &'static str, String, &'static str)>,
    has_rate: bool,
    has_syncs: bool,
}

/// Each run that has rates of files: other tests of the program have none.
pub(super) fn read(lines: &[&str]) -> Vec<Output> {
    let mut runs: Vec<Run> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let line = line.trim();
        if index + 1 == lines.len() && is_cut(line) {
            break;
        }
        let version = version(line);
        let begins = runs.last().is_none_or(|run| run.has_rate && line.starts_with("reads/s:"));
        if version.is_some() || begins {
            runs.push(Run::at(index, version.unwrap_or_default()));
        }
        if let Some(run) = runs.last_mut() {
            run.describe(line);
            run.measure(index, line);
        }
    }
    runs.into_iter().filter(|run| run.has_rate).map(Run::output).collect()
}

/// True of a line without an end that ends within a number, which the program prints with two decimals.
fn is_cut(line: &str) -> bool {
    let number = line.rsplit([' ', ':']).next().unwrap_or_default();
    let decimals = number.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    number.ends_with(|sign: char| sign.is_ascii_digit() || sign == '.') && decimals < 2
}

/// `1.0.20` of `sysbench 1.0.20 (using ...)`, `0.4.12` of `sysbench 0.4.12:  multi-threaded ...`.
fn version(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("sysbench ")?;
    let version = rest.split([' ', ':']).next()?.trim_start_matches('v');
    version.starts_with(|sign: char| sign.is_ascii_digit()).then_some(version)
}

/// The pattern of `random r/w`, of `sequential write (creation)`.
fn pattern(test: &str) -> &'static str {
    let has = |words: &[&str]| words.iter().any(|word| test.contains(word));
    match (has(&["random"]), has(&["r/w", "read/write"]), has(&["write"])) {
        (true, true, _) => "randrw",
        (false, true, _) => "rw",
        (true, false, true) => "randwrite",
        (false, false, true) => "write",
        (true, false, false) => "randread",
        (false, false, false) => "read",
    }
}

/// Units of sizes: 0.4 writes powers of 1,024 as `Mb`.
fn binary(unit: &str) -> Option<&'static str> {
    Some(match unit.trim_end_matches("/sec") {
        "b" | "B" => "B",
        "Kb" | "KiB" => "KiB",
        "Mb" | "MiB" => "MiB",
        "Gb" | "GiB" => "GiB",
        _ => return None,
    })
}

impl Run {
    fn at(line: usize, version: &str) -> Run {
        Run {
            line,
            version: version.to_owned(),
            rw: "",
            bs: String::new(),
            threads: String::new(),
            direct: "",
            is_synchronous: false,
            read_percent: String::new(),
            figures: Vec::new(),
            has_rate: false,
            has_syncs: false,
        }
    }

    /// Takes a line of its settings.
    fn describe(&mut self, line: &str) {
        if let Some(number) = line.strip_prefix("Number of threads: ") {
            self.threads = leading(number).map_or(String::new(), |(number, _)| number.to_owned());
        } else if let Some((size, unit)) = line.strip_prefix("Block size ").and_then(leading) {
            let prefix = binary(unit).map(|unit| unit.trim_end_matches(['i', 'B']).to_lowercase());
            self.bs = prefix.map_or(String::new(), |prefix| format!("{size}{prefix}"));
        } else if let Some(test) = line.strip_prefix("Doing ").and_then(|test| test.strip_suffix(" test")) {
            self.rw = pattern(test);
        } else if let Some(flags) = line.strip_prefix("Extra file open flags: ") {
            self.direct = if flags.contains("direct") || flags == "16384" { "1" } else { "0" };
        } else if let Some((ratio, "")) =
            line.strip_prefix("Read/Write ratio for combined random IO test: ").and_then(leading)
        {
            let ratio: f64 = ratio.parse().unwrap_or_default();
            self.read_percent = format!("{:.0}", 100.0 * ratio / (1.0 + ratio));
        } else if line == "Using synchronous I/O mode" {
            self.is_synchronous = true;
        }
    }

    /// Takes a line of its results.
    fn measure(&mut self, index: usize, line: &str) {
        if line.starts_with("Operations performed:") {
            self.operations(index, line);
        } else if line.starts_with("Read ") && line.contains("Total transferred") {
            self.transferred(index, line);
        } else if let Some((rate, "Requests/sec executed")) = leading(line) {
            self.add(index, "total.iops", rate, "IOPS");
        } else if let Some((name, value)) = line.split_once(':') {
            self.named(index, name.trim(), value.trim());
        }
    }

    fn named(&mut self, index: usize, name: &str, value: &str) {
        let (metric, unit) = match name {
            "reads/s" => ("read.iops", "IOPS"),
            "writes/s" => ("write.iops", "IOPS"),
            "fsyncs/s" => ("sync.iops", "IOPS"),
            "read, MiB/s" => ("read.bytes_per_second", "MiB/s"),
            "written, MiB/s" => ("write.bytes_per_second", "MiB/s"),
            "total time" => ("total runtime", "s"),
            "min" => ("total.lat_ns.min", "ms"),
            "avg" => ("total.lat_ns.mean", "ms"),
            "max" => ("total.lat_ns.max", "ms"),
            "95th percentile" => ("total.lat_ns.p95", "ms"),
            name if name.starts_with("approx.") && name.ends_with("95 percentile") => {
                ("total.lat_ns.p95", "ms")
            }
            _ => return,
        };
        let Some((value, printed)) = leading(value) else { return };
        // Rates and the latencies of 1.0 have their units in their names.
        let is_right = match metric {
            "total runtime" => printed == "s",
            _ if unit == "ms" => matches!(printed, "" | "ms"),
            _ => printed.is_empty(),
        };
        if is_right {
            self.add(index, metric, value, unit);
        }
    }

    /// `Operations performed:  6000 Read, 4000 Write, 12800 Other = 22800 Total`.
    fn operations(&mut self, index: usize, line: &str) {
        let counts = line.split_once(':').map_or("", |(_, counts)| counts);
        for (count, name) in counts.split([',', '=']).filter_map(leading) {
            match name.to_lowercase().as_str() {
                "read" | "reads" => self.add(index, "read ios", count, ""),
                "write" | "writes" => self.add(index, "write ios", count, ""),
                "other" => self.has_syncs |= count != "0",
                _ => {}
            }
        }
    }

    /// `Read 93.75Mb  Written 62.5Mb  Total transferred 156.25Mb  (2.6041Mb/sec)`.
    fn transferred(&mut self, index: usize, line: &str) {
        for (word, metric) in [("Read ", "read bytes"), ("Written ", "write bytes")] {
            let amount = line.split_once(word).and_then(|(_, behind)| leading(behind));
            let Some((amount, rest)) = amount else { continue };
            if let Some(unit) = binary(rest.split(' ').next().unwrap_or_default()) {
                self.add(index, metric, amount, unit);
            }
        }
        let rate = line.split_once('(').and_then(|(_, rate)| leading(rate.strip_suffix(')')?));
        let Some((rate, unit)) = rate else { return };
        let unit = match binary(unit) {
            Some("B") => "B/s",
            Some("KiB") => "KiB/s",
            Some("MiB") => "MiB/s",
            Some("GiB") => "GiB/s",
            _ => return,
        };
        self.add(index, "total.bytes_per_second", rate, unit);
    }

    /// Adds a figure; operations that were not done are left out.
    fn add(&mut self, index: usize, metric: &'static str, value: &str, unit: &'static str) {
        if value.trim_matches(['0', '.']).is_empty() {
            return;
        }
        self.has_rate |= metric.ends_with("iops") || metric.ends_with("bytes_per_second");
        self.has_syncs |= metric == "sync.iops";
        self.figures.push((index, metric, value.to_owned(), unit));
    }

    fn output(self) -> Output {
        // A run without its banner begins at its first figure.
        let first = self.figures.first().map_or(self.line, |(index, ..)| *index);
        let begin = if self.version.is_empty() { first } else { self.line };
        let mut output = Output::at(begin, "sysbench");
        let options = [
            ("tool_version", self.version.as_str()),
            ("rw", self.rw),
            ("bs", self.bs.as_str()),
            ("numjobs", self.threads.as_str()),
            ("iodepth", if self.is_synchronous { "1" } else { "" }),
            ("direct", self.direct),
            ("rwmixread", if self.rw == "randrw" { self.read_percent.as_str() } else { "" }),
        ];
        for (index, metric, value, unit) in &self.figures {
            output.add(*index, "fileio", metric, (value, unit), &options);
        }
        let has_latency = self.figures.iter().any(|(_, metric, ..)| metric.contains("lat_ns"));
        if self.has_syncs && has_latency {
            output.notes.push(format!(
                "line {}: the latencies of sysbench are of all its requests, those of fsync() among them",
                begin + 1
            ));
        }
        output
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, read_op};

    const NEW: &str = "sysbench 1.0.20 (using system LuaJIT 2.1.0)\n\nNumber of threads: 4\n\nExtra file open flags: directio\n\
        Block size 16KiB\nRead/Write ratio for combined random IO test: 1.50\nUsing synchronous I/O mode\nDoing random read test\n\n\
        File operations:\n    reads/s:                      5123.45\n    writes/s:                     0.00\n    fsyncs/s:   0.00\n\n\
        Throughput:\n    read, MiB/s:                  80.05\n    written, MiB/s:               0.00\n\n\
        General statistics:\n    total time:                          60.0021s\n    total number of events:              307420\n\n\
        Latency (ms):\n         min:                                    0.01\n         avg:                                    0.78\n\
        \x20        max:                                   25.30\n         95th percentile:                        1.96\n";

    const OLD: &str = "sysbench 0.4.12:  multi-threaded system evaluation benchmark\n\nNumber of threads: 1\nBlock size 16Kb\n\
        Read/Write ratio for combined random IO test: 1.50\nUsing synchronous I/O mode\nDoing random r/w test\n\
        Operations performed:  6000 Read, 4000 Write, 12800 Other = 22800 Total\n\
        Read 93.75Mb  Written 62.5Mb  Total transferred 156.25Mb  (2.6041Mb/sec)\n  166.66 Requests/sec executed\n\n\
        Test execution summary:\n    total time:                          60.0013s\n    per-request statistics:\n\
        \x20        min:                                  0.01ms\n         avg:                                  4.02ms\n\
        \x20        max:                                180.22ms\n         approx.  95 percentile:              12.30ms\n";

    #[test]
    fn load_rates_and_latencies_of_1_0() {
        let all = found(NEW);
        let (test, read) = (&all[0].tests[0].imported, read_op(&all[0], "fileio"));
        let load = &test.load;
        assert_eq!((load.rw.as_deref(), load.jobs, load.queue_depth), (Some("randread"), Some(4), Some(1)));
        assert_eq!((load.block_size.read.unwrap().max, load.direct), (16_384, Some(true)));
        assert_eq!((read.iops.unwrap().value, read.runtime_ns.unwrap().value), (5123.45, 60_002_100_000));
        assert_eq!((read.lat.min.unwrap().value, read.lat.mean.unwrap().value), (10_000, 780_000));
        assert_eq!(read.lat.max.unwrap().value, 25_300_000);
        assert_eq!(read.lat.percentiles[0].ns.value, 1_960_000);
        assert_eq!((test.tool.as_str(), test.tool_version.as_str()), ("sysbench", "1.0.20"));
        assert!(all[0].notes.is_empty());
    }

    #[test]
    fn load_rates_and_latencies_of_0_4() {
        let all = found(&format!("{OLD}\n{NEW}"));
        assert_eq!(all.len(), 2);
        let test = &all[0].tests[0].imported;
        assert_eq!((test.load.rw.as_deref(), test.load.read_percent), (Some("randrw"), Some(60)));
        assert_eq!(test.load.block_size.write.unwrap().max, 16_384);
        let entry = &test.entries[0];
        let total = entry.total.as_ref().unwrap();
        assert_eq!(total.iops.unwrap().value, 166.66);
        assert_eq!(total.bytes_per_second.unwrap().value, 2.6041 * 1_048_576.0);
        assert_eq!((total.lat.mean.unwrap().value, total.lat.max.unwrap().value), (4_020_000, 180_220_000));
        assert_eq!(entry.op(fathom_model::Op::Read).unwrap().ios.unwrap().value, 6000);
        assert_eq!(all[0].notes.len(), 1);
    }

    #[test]
    fn rates_alone_and_other_tests_of_the_program() {
        let text = "File operations:\n    reads/s:                      2086.40\n    writes/s:                     0.00\n\
                    Throughput:\n    read, MiB/s:                  32.60\n";
        let read = read_op(&found(text)[0], "fileio");
        let rates = (read.iops.unwrap().value, read.bytes_per_second.unwrap().value);
        assert_eq!(rates, (2086.4, 32.6 * 1_048_576.0));
        // The end of a text may cut a number.
        let cut = &text[..text.len() - 2];
        assert!(read_op(&found(cut)[0], "fileio").bytes_per_second.is_none());
        assert!(found("sysbench 1.0.20\nNumber of threads: 1\nLatency (ms):\n  avg:   1.10\n").is_empty());
    }
}
