//! CrystalDiskMark from 3 on, and KDiskMark.

use super::{Output, leading};

/// The part of the output that a line stands in.
#[derive(Clone, Copy, PartialEq)]
enum Section {
    Read,
    Write,
    /// Reads and writes together, and the percentage of reads, where it is stated.
    Mix(Option<u8>),
    None,
}

/// A line of results before its colon, in small letters.
struct Load {
    is_random: bool,
    bs: String,
    depth: String,
    jobs: String,
}

/// `SEQ    1MiB (Q=  8, T= 1):  3558.018 MB/s [   3393.2 IOPS] <  2356.18 us>` below `[Read]`, or `Random Read 4KiB (Q= 32,T= 1) :`.
pub(super) fn read(lines: &[&str]) -> Vec<Output> {
    let mut all: Vec<Output> = Vec::new();
    let (mut section, mut is_open, mut tool) = (Section::None, false, "");
    for (index, line) in lines.iter().enumerate() {
        let lower = line.to_lowercase();
        if lower.contains("diskmark") {
            tool = if lower.contains("kdiskmark") { "KDiskMark" } else { "CrystalDiskMark" };
            (is_open, section) = (false, Section::None);
        }
        section = section_of(lower.trim()).unwrap_or(section);
        let Some((words, figures)) = lower.split_once(':') else { continue };
        let Some((rate, after)) = leading(figures).filter(|(_, after)| after.starts_with("mb/s")) else {
            continue;
        };
        let Some(load) = load_of(words, !tool.is_empty()) else { continue };
        let named = [("read", Section::Read), ("write", Section::Write)];
        let named = named.into_iter().find(|(word, _)| words.contains(word)).map(|(_, section)| section);
        let section = named.unwrap_or(section);
        if section == Section::None {
            continue;
        }
        if !is_open {
            all.push(Output::at(index, tool));
            is_open = true;
        }
        if let Some(output) = all.last_mut() {
            add(output, index, section, &load, (rate, after));
        }
    }
    all
}

/// The section that a line opens: `[Read]`, `[Mix] Read 70%/Write 30%`.
fn section_of(line: &str) -> Option<Section> {
    let (name, rest) = line.strip_prefix('[')?.split_once(']')?;
    let percent = || {
        let (_, behind) = rest.split_once("read")?;
        leading(behind)?.0.parse().ok().filter(|percent| *percent <= 100)
    };
    Some(match name.trim() {
        "read" => Section::Read,
        "write" => Section::Write,
        "mix" => Section::Mix(percent()),
        _ => Section::None,
    })
}

/// The load of `rnd    4kib (q= 32, t= 1)`; `sequential read` alone is one only in an output of these programs.
fn load_of(words: &str, is_known: bool) -> Option<Load> {
    let (name, queue) = words.rsplit_once('(').unwrap_or((words, ""));
    let number_after = |mark: char| {
        let rest = queue[queue.find(mark)? + 1..].trim_start_matches(['d', '=', ' ']);
        leading(rest).map(|(number, _)| number.to_owned())
    };
    let (depth, jobs) = (number_after('q'), number_after('t'));
    let is_random = name.contains("rnd") || name.contains("random");
    let is_sequential = name.contains("seq");
    let is_load = depth.is_some() || (is_known && (is_random || is_sequential));
    let one = || "1".to_owned();
    is_load.then(|| Load {
        is_random,
        bs: block_size(name),
        depth: depth.unwrap_or_else(one),
        jobs: jobs.unwrap_or_else(one),
    })
}

/// `4k` of `4kib`, `4 kib` and `4kb`.
fn block_size(name: &str) -> String {
    let found = name.find(|sign: char| sign.is_ascii_digit()).and_then(|at| leading(&name[at..]));
    let Some((size, unit)) = found else { return String::new() };
    let unit = unit.split(' ').next().unwrap_or_default();
    match unit.chars().next() {
        Some(prefix @ ('k' | 'm')) if matches!(&unit[1..], "ib" | "b") => format!("{size}{prefix}"),
        _ => String::new(),
    }
}

fn add(output: &mut Output, index: usize, section: Section, load: &Load, (rate, after): (&str, &str)) {
    let (word, direction, rw, percent) = match section {
        Section::Read => ("read", "read", "read", None),
        Section::Write => ("write", "write", "write", None),
        Section::Mix(percent) => ("mix", "total", "rw", percent),
        Section::None => return,
    };
    let order = if load.is_random { "rand" } else { "seq" };
    let rw = if load.is_random { format!("rand{rw}") } else { rw.to_owned() };
    let size = if load.bs.is_empty() { String::new() } else { format!("-{}", load.bs) };
    let test = format!("{order}-{word}{size}-q{}t{}", load.depth, load.jobs);
    let percent = percent.map(|percent| percent.to_string()).unwrap_or_default();
    let options = [
        ("rw", rw.as_str()),
        ("bs", load.bs.as_str()),
        ("iodepth", load.depth.as_str()),
        ("numjobs", load.jobs.as_str()),
        ("rwmixread", percent.as_str()),
        ("kb_base", "1000"),
    ];
    output.add(index, &test, &format!("{direction}.bytes_per_second"), (rate, "MB/s"), &options);
    let between = |open: char, close: char| {
        let (_, rest) = after.split_once(open)?;
        leading(rest.split_once(close)?.0)
    };
    if let Some((iops, _)) = between('[', ']') {
        output.add(index, &test, &format!("{direction}.iops"), (iops, "IOPS"), &options);
    }
    if let Some((mean, unit)) = between('<', '>') {
        output.add(index, &test, &format!("{direction}.lat_ns.mean"), (mean, unit), &options);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, names, read_op};

    #[test]
    fn two_generations() {
        let text = "CrystalDiskMark 8.0.4 x64\n* MB/s = 1,000,000 bytes/s\n[Read]\n  SEQ    1MiB (Q=  8, T= 1):  3558.018 MB/s [   3393.2 IOPS] <  2356.18 us>\n\
                      RND    4KiB (Q= 32, T= 1):   404.9 MB/s [ 98852.5 IOPS] <   323.30 us>\n[Write]\n  SEQ    1MiB (Q=  8, T= 1):  3000.0 MB/s [ 2861.0 IOPS] < 2790.0 us>\n";
        let all = found(text);
        assert_eq!(all.len(), 1);
        assert_eq!(names(&all[0]), ["seq-read-1m-q8t1", "rand-read-4k-q32t1", "seq-write-1m-q8t1"]);
        let read = read_op(&all[0], "rand-read-4k-q32t1");
        assert_eq!((read.iops.unwrap().value, read.bytes_per_second.unwrap().value), (98_852.5, 404.9e6));
        assert_eq!(read.lat.mean.unwrap().value, 323_300);
        let old = found("  Random Read 4KiB (Q= 32,T= 2) :   551.815 MB/s [134720.5 IOPS]\n");
        assert_eq!(old[0].tests[0].name, "rand-read-4k-q32t2");
    }

    #[test]
    fn reads_and_writes_together_are_a_test_of_their_own() {
        let text = "KDiskMark (3.1.4)\n[Write]\nRND    4KiB (Q=  1, T= 1):    150.0 MB/s [  36621.1 IOPS] <    27.10 us>\n\
                    [Mix] Read 70%/Write 30%\nRND    4KiB (Q=  1, T= 1):    75.0 MB/s [  18310.5 IOPS] <    53.10 us>\n\
                    [Demo]\nRND    4KiB (Q=  1, T= 1):    1.0 MB/s\n";
        let all = found(text);
        assert_eq!(names(&all[0]), ["rand-write-4k-q1t1", "rand-mix-4k-q1t1"]);
        let entry = |at: usize| all[0].tests[at].imported.entries[0].clone();
        let write = entry(0);
        assert_eq!(write.op(fathom_model::Op::Write).unwrap().iops.unwrap().value, 36_621.1);
        assert_eq!(entry(1).total.unwrap().iops.unwrap().value, 18_310.5);
        let load = &all[0].tests[1].imported.load;
        assert_eq!((load.rw.as_deref(), load.read_percent), (Some("randrw"), Some(70)));
    }

    #[test]
    fn block_sizes_with_a_blank_and_lines_without_a_depth() {
        let text = "KDiskMark (3.1.4)\n[Read]\nSequential   1 MiB (Q=  8, T= 1):  3456.789 MB/s\n  Random   4 KiB (Q=  1, T= 1):    65.430 MB/s\n";
        assert_eq!(names(&found(text)[0]), ["seq-read-1m-q8t1", "rand-read-4k-q1t1"]);
        let text = "CrystalDiskMark 5.2.1 x64\n   Sequential Read (Q= 32,T= 1) :   551.234 MB/s\n         Sequential Read (T= 1) :   520.500 MB/s\n";
        assert_eq!(names(&found(text)[0]), ["seq-read-q32t1", "seq-read-q1t1"]);
        let text = "CrystalDiskMark 3.0.1 x64\n   Sequential Read :   254.6 MB/s\n  Random Write 512KB :   100.9 MB/s\n Random Read 4KB (QD=32) : 30.1 MB/s [  7348.6 IOPS]\n";
        assert_eq!(names(&found(text)[0]), ["seq-read-q1t1", "rand-write-512k-q1t1", "rand-read-4k-q32t1"]);
        assert!(found("Sequential Read: 520 MB/s\n").is_empty());
    }
}
