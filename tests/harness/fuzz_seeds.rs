//! The inputs that fuzz targets begin with: files of the repository, and texts that reach what those do not.

use std::fs;
use std::path::{Path, PathBuf};

use crate::corpus;

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

/// The inputs that `target` begins with.
///
/// # Panics
/// When a file of the repository cannot be read, or a row of the tables is of a directory without such files.
pub fn fuzz_seeds(target: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut seeds = Vec::new();
    for (_, directory, ending) in FILES.iter().filter(|(name, ..)| *name == target) {
        let found = contents(&root.join(directory), Some(ending));
        assert!(!found.is_empty(), "{directory} has no file that ends in {ending}");
        seeds.extend(found);
    }
    seeds.extend(contents(&root.join("fuzz/seeds").join(target), None));
    seeds.extend(TEXTS.iter().filter(|(name, _)| *name == target).map(|(_, text)| text.as_bytes().to_vec()));
    match target {
        "sim_name" => {
            let types = contents(&root.join("crates/catalog/data"), Some("toml"));
            seeds.extend(types.iter().flat_map(|text| names_of_types(&String::from_utf8_lossy(text))));
        }
        "job_file" => seeds.extend(corpus().into_iter().map(|job| job.text.into_bytes())),
        "command_line" => seeds.extend(corpus().iter().map(|job| words_of_jobs(&job.text).into_bytes())),
        _ => {}
    }
    seeds
}

/// The files of a directory with that ending, by name; none if there is no such directory.
fn contents(directory: &Path, ending: Option<&str>) -> Vec<Vec<u8>> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| ending.is_none_or(|ending| path.extension().is_some_and(|end| end == ending)));
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("files of the repository can be read")).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_made_of_job_files_and_catalogues() {
        assert_eq!(words_of_jobs("[global]\nbs=4k\n; c\n[a]\nthread\n"), "--bs=4k\n--name=a\n--thread\n");
        let types = names_of_types("[volume.a-b]\n[volume.a-b.facts]\nsize = 1\n");
        assert_eq!(types, [b"sim:a-b?size=100GiB".to_vec()]);
    }
}
