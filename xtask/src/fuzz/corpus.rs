//! The initial corpus of a target: files of the repository, and a dictionary of their words.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::Places;

/// Files of the repository that are inputs of a target: directory and ending.
const FILES: &[(&str, &str, &str)] = &[
    ("catalogue", "crates/catalog/data", "toml"),
    ("import", "crates/import/tests/fixtures/articles", "txt"),
    ("import", "crates/import/tests/fixtures/outputs", "txt"),
    ("job_file", "profiles", "fio"),
    ("observed", "crates/observed/tests/fixtures", "csv"),
    ("observed", "crates/observed/tests/fixtures", "iolog"),
    ("observed", "crates/observed/tests/fixtures", "json"),
    ("observed", "crates/observed/tests/fixtures", "txt"),
    ("record", "crates/record/tests/fixtures", "json"),
    ("suite", "suites", "toml"),
];

/// Inputs as they are.
const TEXTS: &[(&str, &str)] = &[
    (
        "job_file",
        "[global]\nrw=randwrite\nbs=${SIZE}\n[a]\ninclude a\nsize=$mb_memory*1048576\n\n%%\nnumjobs=$ncpus\n",
    ),
    (
        "job_file",
        "[a]\nfilename=sim:custom?iops=100:b\nbssplit=4k/60:64k/,8k\nrate_iops=10,20\ncpus_allowed=0-2\n",
    ),
    (
        "command_line",
        "--name=a\n--rw=randrw\n--rwmixread=70\n--size=1g\n--bs=4k,8k\n--numjobs=2\n--runtime=5s\n",
    ),
    ("command_line", "jobs.fio\n--section=one\n--output-format=json,normal\n--eta=never\n"),
    ("command_line", "--cmdhelp=bs\n"),
    ("command_line", "--enghelp=libaio,userspace_reap\n"),
    (
        "sim_name",
        "sim:custom?iops=300&burst_iops=600&bucket_ios=900&bandwidth=1MiB&burst_bandwidth=2MiB&bucket_bytes=3MiB\
         &io_unit=16KiB&io_merge=1&size=1GiB&seed=1",
    ),
    (
        "sim_name",
        "sim:custom?shared=0&read_iops=10&write_bandwidth=1MB/s&read_latency=1ms&write_latency=2ms&latency_spread=1\
         &first_touch=5ms&stall=1s+2s&stall=9s+inf&parallelism=4&instance_iops=9&instance_bandwidth=1MiB",
    ),
    ("expectation", "rand-read.iops>=5000\nlat-read.lat_ns.p99<5ms+-2%\naws-gp3?size=100GiB&rested=1\n"),
    (
        "expectation",
        "source='a'\nwithin='10%'\ninstance='b'\n[[expectation]]\nexpect='rand-read.iops>=1000'\ntime='99.9%'\n\
         over='year'\nblock_size='16k'\ndepth_per_iops=0.005\n[[expectation]]\nexpect='seq-write.bytes_per_second>=1MB'\n\
         depth=4\nwithin='0%'\nclass='small'\n",
    ),
    (
        "trace",
        "fio version 3 iolog\n16 /t/f add\n104 /t/f open\n108 /t/f read 249856 4096\n446 /t/f write 512 1024\n\
         500 /t/f datasync 0 0\n600 /t/f trim 0 4096\n700 /t/f close\n",
    ),
    (
        "trace",
        "fio version 2 iolog\n/a add\n/a open\n/a read 0 512\n/a wait 250 0\n/a write 512 512\n/a sync\n",
    ),
    (
        "trace",
        "8,0 1 17 0.000000100 4711 Q R 8 + 8 [fio]\n8,0 1 18 0.5 4711 Q WS 16 + 1 [fio]\n8,0 1 19 0.7 1 D FN\n",
    ),
    (
        "iolog",
        "fio version 3 iolog\n0 /t/f add\n0 /t/g add\n5 /t/f open\n5 /t/f write 0 4096\n9 /t/g open\n9 /t/g read 512 512\n\
         12 /t/f sync 0 0\n13 /t/f datasync 0 0\n14 /t/f trim 0 4096\n15 /t/f close\n15 /t/g close\n",
    ),
    (
        "iolog",
        "fio version 2 iolog\n/a add\n/a open\n/a read 0 512\n/a wait 250 0\n/a write 512 512\n/a sync\n/a close\n",
    ),
    (
        "blktrace",
        "\u{7}tae\u{1}\0\0\0\u{9}\0\0\0\0\0\0\0\u{8}\0\0\0\0\0\0\0\0\u{10}\0\0\u{1}\0\u{1}\0\u{1}\0\0\0\u{10}\0\0\u{1}\0\0\0\0\
         \0\0\u{4}\0rest",
    ),
    ("mounts", "25 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,upperdir=/a\\040b\n"),
    ("mounts", "   8       0 sda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n"),
    ("verify_block", "\u{4}\0\0\0\0\0any data"),
    ("verify_block", "\u{9}\0\u{1}\0\0\u{1}any data"),
    ("signature", "\0\0\0\u{1}\0\0\0\0\u{38}\u{4}\0\0\u{2}S\u{6f}"),
    ("signature", "\0\0\0\u{1}\0\0\0\0\0\u{2}\0\0\u{8}EFI PART\0\0\0\0\u{10}LABELONE"),
];

/// Numbers at which types end.
const EXTREMES: &[&str] = &[
    "0",
    "-1",
    "255",
    "65536",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "5e-324",
    "nan",
    "inf",
];

/// Words of a dictionary at most, each so long.
const MOST_WORDS: usize = 2_000;
const WORD: std::ops::RangeInclusive<usize> = 2..=40;

/// Writes the inputs that `target` begins with. Returns the directory.
pub fn write_seeds(places: &Places, target: &str) -> anyhow::Result<PathBuf> {
    let directory = places.build().join("seeds").join(target);
    if directory.exists() {
        std::fs::remove_dir_all(&directory)
            .with_context(|| format!("cannot clear {}", directory.display()))?;
    }
    std::fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
    for (index, seed) in seeds(&places.root, target)?.iter().enumerate() {
        let path = directory.join(format!("seed-{index:03}"));
        std::fs::write(&path, seed).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(directory)
}

/// Writes the words that `target` may meet. Returns the file.
pub fn write_dictionary(places: &Places, target: &str) -> anyhow::Result<PathBuf> {
    let mut words = BTreeSet::new();
    for seed in seeds(&places.root, target)? {
        words.extend(words_of(&String::from_utf8_lossy(&seed)));
    }
    let mut words: Vec<String> = words.into_iter().take(MOST_WORDS).collect();
    words.extend(EXTREMES.iter().map(|number| (*number).to_owned()));
    words.extend(option_words(target));
    let path = places.build().join(format!("{target}.dict"));
    let lines: String = words.iter().map(|word| format!("\"{}\"\n", escaped(word))).collect();
    std::fs::write(&path, lines).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

fn seeds(root: &Path, target: &str) -> anyhow::Result<Vec<Vec<u8>>> {
    let of_target = FILES.iter().filter(|(name, ..)| *name == target);
    let mut seeds = Vec::new();
    for (_, directory, ending) in of_target {
        seeds.extend(contents(&root.join(directory), Some(ending))?);
    }
    seeds.extend(contents(&root.join("fuzz/seeds").join(target), None)?);
    seeds.extend(TEXTS.iter().filter(|(name, _)| *name == target).map(|(_, text)| text.as_bytes().to_vec()));
    match target {
        "sim_name" => {
            let types = contents(&root.join("crates/catalog/data"), Some("toml"))?;
            seeds.extend(types.iter().flat_map(|text| names_of_types(&String::from_utf8_lossy(text))));
        }
        "job_file" => seeds.extend(fathom_tests::corpus().into_iter().map(|job| job.text.into_bytes())),
        "command_line" => {
            seeds.extend(fathom_tests::corpus().iter().map(|job| words_of_jobs(&job.text).into_bytes()));
        }
        _ => {}
    }
    Ok(seeds)
}

/// The files of a directory with that ending, by name; none if there is no such directory.
fn contents(directory: &Path, ending: Option<&str>) -> anyhow::Result<Vec<Vec<u8>>> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Ok(Vec::new()) };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| ending.is_none_or(|ending| path.extension().is_some_and(|end| end == ending)));
    paths.sort();
    let read =
        |path: &PathBuf| std::fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    paths.iter().map(read).collect()
}

/// A volume of each type in a catalogue file.
fn names_of_types(catalogue: &str) -> Vec<Vec<u8>> {
    let id = |line: &str| Some(line.strip_prefix("[volume.")?.strip_suffix(']')?.to_owned());
    let ids = catalogue.lines().filter_map(id).filter(|id| !id.contains('.'));
    ids.map(|id| format!("sim:{id}?size=100GiB").into_bytes()).collect()
}

/// The words of a command line for the jobs of a job file, one a line.
fn words_of_jobs(job_file: &str) -> String {
    let word = |line: &str| match line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some("global") => None,
        Some(name) => Some(format!("--name={name}\n")),
        None if line.is_empty() || line.starts_with([';', '#']) => None,
        None => Some(format!("--{line}\n")),
    };
    job_file.lines().filter_map(word).collect()
}

fn words_of(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !"_-.".contains(c));
    let is_word = |word: &&str| WORD.contains(&word.len()) && !word.starts_with(|c: char| c.is_ascii_digit());
    words.filter(is_word).map(str::to_owned)
}

/// The names of fio's options and the words that they take, as `target` writes them.
fn option_words(target: &str) -> Vec<String> {
    let dashes = match target {
        "job_file" => "",
        "command_line" => "--",
        _ => return Vec::new(),
    };
    let mut words = Vec::new();
    for row in fathom_options::OPTION_TABLE.iter().flat_map(|(_, rows)| *rows) {
        words.push(format!("{dashes}{}=", row.name));
        if let fathom_options::OptionValueKind::Choice(choices) = row.kind {
            words.extend(choices.iter().map(|choice| format!("{dashes}{}={choice}", row.name)));
        }
    }
    words.extend(fathom_options::UNSUPPORTED.iter().map(|option| format!("{dashes}{}", option.name)));
    words
}

/// A word in libFuzzer's syntax: special bytes in hexadecimal.
fn escaped(word: &str) -> String {
    let byte = |byte: u8| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(byte)),
        0x20..=0x7e => char::from(byte).to_string(),
        _ => format!("\\x{byte:02X}"),
    };
    word.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_seeds() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for target in super::super::build::targets(root).unwrap() {
            let seeds = seeds(root, &target).unwrap();
            assert!(!seeds.is_empty() && seeds.iter().all(|seed| !seed.is_empty()), "{target}");
        }
        let names = FILES.iter().map(|(name, ..)| name).chain(TEXTS.iter().map(|(name, _)| name));
        let targets = super::super::build::targets(root).unwrap();
        names.for_each(|name| assert!(targets.iter().any(|target| target == name), "{name} is no target"));
    }

    #[test]
    fn dictionaries_have_words_of_seeds_and_options() {
        assert_eq!(words_of("[a]\niops = 5000 # x_y").collect::<Vec<_>>(), ["iops", "x_y"]);
        let words = option_words("command_line");
        assert!(
            ["--rw=", "--rw=randread", "--verify="].iter().all(|word| words.iter().any(|has| has == word))
        );
        assert!(option_words("trace").is_empty());
        assert_eq!(escaped("a\"b\\\nµ"), "a\\\"b\\\\\\x0A\\xC2\\xB5");
        assert_eq!(words_of_jobs("[global]\nbs=4k\n; c\n[a]\nthread\n"), "--bs=4k\n--name=a\n--thread\n");
        let types = names_of_types("[volume.a-b]\n[volume.a-b.facts]\nsize = 1\n");
        assert_eq!(types, [b"sim:a-b?size=100GiB".to_vec()]);
    }
}
