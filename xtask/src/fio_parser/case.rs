//! The inputs: options of the table with values that fit them and values that do not.

use fathom_options::{OPTION_TABLE, OptionValueKind, UNSUPPORTED};
use fathom_tests::RepeatableNoise;

/// An input for both parsers.
#[derive(Clone, Debug)]
pub struct ParserCase {
    /// Its number and options.
    pub name: String,
    /// It is a job file; else a command line.
    pub is_job_file: bool,
    options: Vec<(&'static str, Option<String>)>,
}

/// Values for an option of any kind.
const ANY: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "4k",
    "1m",
    "3.5",
    "abc",
    "50%",
    "1:2",
    "1,2",
    "10s",
    "0x10",
    "4kb",
    "4kib",
    "1-4",
    "true",
    "99999999999999999999",
    "1g",
    "none",
    "all",
    "100",
    "101",
    "18446744073709551615",
    "4096",
];

/// Values that text options take, and some that they nearly take.
const TEXTS: &[(&str, &[&str])] = &[
    ("bsrange", &["4k-16k", "1k-4k,8k-16k", "16k-4k", "4k-4k", "4k-16k,,1k-2k", "512-4k:1k-8k", "-4k"]),
    ("bssplit", &["4k/50:8k/50", "4k/60:8k/", "4k/100,8k/100", "4k/120", "4k/:8k/:16k/", "4k", "4k/-1"]),
    (
        "random_distribution",
        &[
            "random",
            "zipf:1.1",
            "zipf",
            "zipf:0",
            "pareto:0.2",
            "pareto:2",
            "normal:10",
            "zoned:50/50:50/50",
            "zoned:60/10:40/80",
            "zoned_abs:50/1m:50/1m",
            "zipf:1.2:0.5",
            "zipf:1.2:2",
            "other:1",
        ],
    ),
    (
        "file_service_type",
        &["random", "roundrobin:4", "sequential", "zipf:1.2", "pareto:0.3", "normal", "gauss", "other"],
    ),
    (
        "ioengine",
        &[
            "psync",
            "libaio",
            "io_uring",
            "sync",
            "mmap",
            "null",
            "pvsync2",
            "posixaio",
            "other",
            "external:/x.so",
        ],
    ),
    (
        "verify_pattern",
        &["0xff", "\"abc\"", "0xdeadbeef", "123", "'x'", "0xfg", "%o", "0xff\"a\"12%o", "\"a"],
    ),
    ("buffer_pattern", &["0xff", "\"abc\"", "0xdeadbeef", "123", "0xfg", "\"a\"0x00-1"]),
    ("ignore_error", &["EIO", "EIO,ENOSPC", "EIO:ENOSPC", ",EILSEQ", "ENOSUCH", "5", ":"]),
    ("fadvise_hint", &["0", "1", "random", "sequential", "other"]),
    ("cpus_allowed", &["0", "0,1", "0-1", "1-0", "0-", "a"]),
    ("wait_for", &["other", "q"]),
    ("directory", &[".", "/", "/missing"]),
    ("filename_format", &["$jobname.$jobnum", "x", "$filenum"]),
    (
        "rw",
        &[
            "read",
            "write",
            "randread:8",
            "rw",
            "randrw",
            "trim",
            "randtrim",
            "trimwrite",
            "read:4k",
            "write:-8k",
            "readwrite",
            "randtrimwrite",
            "reed",
            "read:x",
            "randread:0",
        ],
    ),
    ("percentile_list", &["50:99", "99.9", "0", "101", "50:50", "a"]),
    ("rate", &["1m", "1m,2m", "1m,,2m", ",1m", "0", "4k,x"]),
    ("rate_iops", &["100", "100,200", ",50", "0"]),
    ("size", &["1m", "50%", "100%", "0", "4k", "101%"]),
    (
        "verify",
        &["crc32c", "md5", "sha3-512", "pattern", "meta", "null", "0", "other", "xxhash", "crc32c-intel"],
    ),
];

/// Options that name what need not exist, or that act while they are parsed.
const LEFT_OUT: &[&str] = &["name", "filename", "include", "description", "comm"];

impl ParserCase {
    /// The `index`th: always the same. Every fourth has one option with any value.
    pub fn of(index: u64) -> ParserCase {
        let mut draw = Draw(RepeatableNoise::seeded(index + 1));
        let names: Vec<(&'static str, OptionValueKind)> = OPTION_TABLE
            .iter()
            .flat_map(|(_, rows)| rows.iter().map(|row| (row.name, row.kind)))
            .chain(UNSUPPORTED.iter().map(|row| (row.name, OptionValueKind::Text)))
            .filter(|(name, _)| !LEFT_OUT.contains(name))
            .collect();
        let single = index.is_multiple_of(4);
        let count = if single { 1 } else { 2 + draw.below(4) };
        let options: Vec<(&'static str, Option<String>)> = (0..count)
            .map(|_| {
                let (name, kind) = *draw.of(&names);
                (name, if single { draw.any() } else { draw.fitting(name, kind) })
            })
            .collect();
        let words: Vec<String> =
            options.iter().map(|(name, value)| written(name, value.as_deref())).collect();
        ParserCase { name: format!("{index}: {}", words.join(" ")), is_job_file: draw.below(2) == 0, options }
    }

    /// The job file.
    pub fn job_file(&self) -> String {
        let lines: Vec<String> =
            self.options.iter().map(|(name, value)| written(name, value.as_deref())).collect();
        format!("[q]\nfilename=data\nsize=1m\n{}\n", lines.join("\n"))
    }

    /// The words of the command line.
    pub fn command_line(&self) -> Vec<String> {
        let options =
            self.options.iter().map(|(name, value)| format!("--{}", written(name, value.as_deref())));
        ["--name=q", "--filename=data", "--size=1m"].map(str::to_owned).into_iter().chain(options).collect()
    }
}

fn written(name: &str, value: Option<&str>) -> String {
    value.map_or_else(|| name.to_owned(), |value| format!("{name}={value}"))
}

/// Choices that look random and are always the same.
struct Draw(RepeatableNoise);

impl Draw {
    fn below(&mut self, count: usize) -> usize {
        ((self.0.even() * count as f64) as usize).min(count - 1)
    }

    fn of<'a, T>(&mut self, values: &'a [T]) -> &'a T {
        &values[self.below(values.len())]
    }

    /// Any value, or none.
    fn any(&mut self) -> Option<String> {
        let place = self.below(ANY.len() + 1);
        ANY.get(place).map(|value| (*value).to_owned())
    }

    /// A value that most options of this kind take.
    fn fitting(&mut self, name: &str, kind: OptionValueKind) -> Option<String> {
        if let Some((_, texts)) = TEXTS.iter().find(|(option, _)| *option == name) {
            return Some((*self.of(texts)).to_owned());
        }
        let values: &[&str] = match kind {
            OptionValueKind::Size | OptionValueKind::SizeOrPercent => &["4k", "64k", "1m", "512", "8k"],
            OptionValueKind::Int => &["1", "2", "4", "8", "10"],
            OptionValueKind::Seconds => &["1", "5", "10s", "1m"],
            OptionValueKind::Micros => &["100", "5ms", "1s"],
            OptionValueKind::Bool | OptionValueKind::Flag => &["0", "1"],
            OptionValueKind::Choice(words) => words,
            OptionValueKind::Floats => &["50", "50:99"],
            OptionValueKind::Text | OptionValueKind::LogName => &["x", "1", "4k"],
        };
        Some((*self.of(values)).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_always_the_same_and_cover_the_table() {
        let cases: Vec<ParserCase> = (0..10_000).map(ParserCase::of).collect();
        assert_eq!(cases[77].name, ParserCase::of(77).name);
        let is_drawn =
            |name: &str| cases.iter().any(|case| case.options.iter().any(|(drawn, _)| *drawn == name));
        for row in OPTION_TABLE.iter().flat_map(|(_, rows)| rows.iter()) {
            assert!(is_drawn(row.name) || LEFT_OUT.contains(&row.name), "{}", row.name);
        }
        assert!(cases.iter().any(|case| case.is_job_file) && cases.iter().any(|case| !case.is_job_file));
        let case = ParserCase { name: String::new(), is_job_file: true, options: vec![("direct", None)] };
        assert_eq!(case.job_file(), "[q]\nfilename=data\nsize=1m\ndirect\n");
        assert_eq!(case.command_line().last().map(String::as_str), Some("--direct"));
    }
}
