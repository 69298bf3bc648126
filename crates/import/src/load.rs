//! The load of a test from fio's options as they were given. An option that cannot be read stays in the list of options alone.

use std::collections::BTreeMap;

use fathom_model::plan::Pattern;
use fathom_model::{Nanos, Op, PerOp};
use fathom_options::value;
use fathom_record::import::{BlockRange, ImportedLoad};

/// Options that make writes durable.
const SYNC_OPTIONS: [&str; 5] = ["fsync", "fdatasync", "sync", "end_fsync", "fsync_on_close"];

type Options = BTreeMap<String, String>;

/// The load that these options describe.
pub(crate) fn of_options(options: Options) -> ImportedLoad {
    let get = |names: &[&str]| names.iter().find_map(|name| options.get(*name)).map(String::as_str);
    let number = |names: &[&str]| get(names).and_then(|text| integer(text, &options));
    let rw = get(&["rw", "readwrite"]).and_then(pattern_name);
    let is_mixed =
        rw.as_deref().and_then(Pattern::named).is_some_and(|pattern| pattern.reads() && pattern.writes());
    let percent = |name: &str| get(&[name]).and_then(|text| value::percent(text).ok());
    let read_percent = percent("rwmixread").or_else(|| Some(100 - percent("rwmixwrite")?));
    let sync = |name: &&str| {
        let given = options.get(*name)?;
        let is_off = matches!(given.as_str(), "0" | "none");
        let text = if given.is_empty() { (*name).to_owned() } else { format!("{name}={given}") };
        (!is_off).then_some(text)
    };
    ImportedLoad {
        // Without the option a mixed pattern reads and writes as much.
        read_percent: if is_mixed { read_percent.or(Some(50)) } else { None },
        rw,
        block_size: block_sizes(&options),
        queue_depth: number(&["iodepth"]).or(Some(1)).and_then(|depth| u32::try_from(depth).ok()),
        jobs: number(&["numjobs"]).or(Some(1)).and_then(|jobs| u32::try_from(jobs).ok()),
        direct: direct(&options),
        sync: SYNC_OPTIONS.iter().filter_map(sync).collect(),
        engine: get(&["ioengine"]).map(str::to_owned),
        rate_iops: per_op(get(&["rate_iops"]), |text| integer(text, &options)),
        rate_bytes_per_second: per_op(get(&["rate"]), |text| integer(text, &options)),
        size_bytes: number(&["size", "filesize", "io_size"]),
        runtime_ns: get(&["runtime", "timeout"])
            .and_then(|text| value::seconds(text).ok())
            .map(|Nanos(ns)| ns),
        target: get(&["filename", "directory"]).map(str::to_owned),
        options,
    }
}

/// The pattern's name, without the count that fio allows behind it (`randread:8`).
pub(crate) fn pattern_name(text: &str) -> Option<String> {
    let name = text.split(':').next()?;
    let name = match name {
        "readwrite" => "rw",
        name => name,
    };
    Some(Pattern::named(name)?.name().to_owned())
}

/// A number of fio's; under `kb_base=1000` its suffixes mean the other powers.
fn integer(text: &str, options: &Options) -> Option<u64> {
    let is_decimal = options.get("kb_base").is_some_and(|base| base == "1000");
    if !is_decimal {
        return value::integer(text).ok();
    }
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let suffix = text[digits.len()..].to_ascii_lowercase();
    let prefix = suffix.get(..1).unwrap_or_default();
    let text = match &suffix {
        suffix if suffix.is_empty() || suffix == "b" => text.to_owned(),
        suffix if suffix.ends_with("ib") => format!("{digits}{prefix}"),
        _ => format!("{digits}{prefix}ib"),
    };
    value::integer(&text).ok()
}

fn direct(options: &Options) -> Option<bool> {
    if let Some(text) = options.get("direct") {
        return if text.is_empty() { Some(true) } else { value::boolean(text).ok() };
    }
    // `buffered` is the opposite, and neither means the page cache.
    let buffered = options.get("buffered").map(|text| text.is_empty() || value::boolean(text) == Ok(true));
    Some(buffered.is_some_and(|buffered| !buffered))
}

/// One value for each operation of `R,W,T`.
fn per_op<T: Copy>(text: Option<&str>, read: impl Fn(&str) -> Option<T>) -> PerOp<Option<T>> {
    let Some(Ok(entries)) = text.map(value::per_operation) else { return PerOp::default() };
    let [reads, writes, trims] = entries.map(|entry| entry.and_then(&read));
    PerOp { read: reads, write: writes, trim: trims }
}

fn block_sizes(options: &Options) -> PerOp<Option<BlockRange>> {
    let one = |text: &str| integer(text, options).map(|size| BlockRange { min: size, max: size });
    let range = |text: &str| {
        let (min, max) = text.split_once('-')?;
        Some(BlockRange { min: integer(min, options)?, max: integer(max, options)? })
    };
    if let Some(text) = options.get("bsrange").or_else(|| options.get("blocksize_range")) {
        return per_op(Some(text), range);
    }
    if let Some(text) = options.get("bssplit") {
        return per_op(Some(text), |text| split(text, options));
    }
    match options.get("bs").or_else(|| options.get("blocksize")) {
        Some(text) => per_op(Some(text), one),
        // What fio takes where nothing is given.
        None => PerOp::splat(Some(BlockRange { min: 4096, max: 4096 })),
    }
}

/// Smallest and largest size of `4k/50:64k/50`.
fn split(text: &str, options: &Options) -> Option<BlockRange> {
    let sizes: Option<Vec<u64>> =
        text.split(':').map(|part| integer(part.split('/').next()?, options)).collect();
    let sizes = sizes?;
    Some(BlockRange { min: *sizes.iter().min()?, max: *sizes.iter().max()? })
}

/// The fio command of these options, for people to run it again.
pub(crate) fn command(name: &str, options: &Options) -> String {
    if options.is_empty() {
        return String::new();
    }
    let mut words = vec!["fio".to_owned(), word("name", name)];
    let given = options.iter().filter(|(option, _)| *option != "name");
    words.extend(given.map(|(option, value)| word(option, value)));
    words.join(" ")
}

fn word(option: &str, value: &str) -> String {
    if value.is_empty() {
        return format!("--{option}");
    }
    let text = format!("--{option}={value}");
    let is_plain = |c: char| c.is_alphanumeric() || "-_=./:,%+@".contains(c);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// The size of every request of an operation; `None` where they differ, or it is not known.
pub(crate) fn only_block_size(load: &ImportedLoad, op: Op) -> Option<u64> {
    load.block_size[op].filter(|range| range.min == range.max).map(|range| range.max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(options: &[(&str, &str)]) -> ImportedLoad {
        of_options(options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn options_become_a_load() {
        let load = load(&[
            ("rw", "randrw"),
            ("rwmixwrite", "30"),
            ("bs", "4k,64k"),
            ("iodepth", "32"),
            ("direct", "1"),
            ("fsync", "1"),
            ("rate_iops", "500,"),
            ("runtime", "2m"),
            ("size", "50%"),
        ]);
        assert_eq!((load.rw.as_deref(), load.read_percent), (Some("randrw"), Some(70)));
        assert_eq!(load.block_size.write, Some(BlockRange { min: 65_536, max: 65_536 }));
        assert_eq!((load.queue_depth, load.jobs, load.direct), (Some(32), Some(1), Some(true)));
        assert_eq!((load.sync.as_slice(), load.rate_iops.read), (&["fsync=1".to_owned()][..], Some(500)));
        assert_eq!(
            (load.rate_iops.write, load.runtime_ns, load.size_bytes),
            (None, Some(120_000_000_000), None)
        );
    }

    #[test]
    fn kb_base_swaps_the_suffixes() {
        let size = |base: &str, bs: &str| {
            load(&[("kb_base", base), ("bs", bs)]).block_size.read.map(|range| range.max)
        };
        assert_eq!(
            (size("1024", "4k"), size("1000", "4k"), size("1000", "4kib")),
            (Some(4096), Some(4000), Some(4096))
        );
        assert_eq!(size("1000", "512"), Some(512));
    }

    #[test]
    fn a_command_is_quoted_for_a_shell() {
        let options: Options = [("name", "a"), ("filename", "/mnt/my disk"), ("time_based", "")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        assert_eq!(command("a b", &options), "fio '--name=a b' '--filename=/mnt/my disk' --time_based");
    }
}
