//! Text generated from the tables: usage, help on options and engines, and the compatibility page.

use std::fmt::Write as _;

use fathom_model::{OptionRow, OptionValueKind};

use crate::command::{self, OptionArity};
use crate::engines::{self, EngineRow};
use crate::job_options::JobOptions;
use crate::refused_engines::REFUSED_ENGINES;
use crate::table::{self, KnownOption, OPTION_TABLE, UNSUPPORTED, UnsupportedOption};

/// The output of `--help`.
pub fn usage() -> String {
    let mut out = "fio [options] [job options] <job file(s)>\n".to_owned();
    for row in command::ROWS {
        let left = format!("--{}{}", row.name, value_name(row.takes));
        put(&mut out, format_args!("  {left:<26}{}\n", row.doc));
    }
    out.push_str("\nJob options are listed by --cmdhelp, engines by --enghelp.\n");
    out
}

fn value_name(takes: OptionArity) -> String {
    match takes {
        OptionArity::Nothing => String::new(),
        OptionArity::Value(name) => format!("={name}"),
        OptionArity::MaybeValue(name) => format!("[={name}]"),
    }
}

/// Writing into a string cannot fail.
fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

/// The output of `--cmdhelp`: a list of all options (`None`), all in full (`all`), or one. For an unknown option, `Err`
/// contains the closest name, if any.
pub fn command_help(topic: Option<&str>) -> Result<String, Option<String>> {
    let mut out = String::new();
    match topic {
        None => {
            for (_, rows) in OPTION_TABLE {
                for row in *rows {
                    put(&mut out, format_args!("{:<27}: {}\n", row.name, row.doc));
                }
            }
        }
        Some("all") => {
            for (_, rows) in OPTION_TABLE {
                for row in *rows {
                    out.push_str(&in_full(row));
                    out.push('\n');
                }
            }
        }
        Some(name) => match table::find(name) {
            Some(KnownOption::Supported(row)) => out = in_full(row),
            Some(KnownOption::Unsupported(row)) => {
                put(&mut out, format_args!("{:>20}: fio's option, not supported yet\n", row.name));
                put(&mut out, format_args!("{:>20}: {}\n", "instead", row.instead));
            }
            None => return Err(table::nearest(name, table::names())),
        },
    }
    Ok(out)
}

/// An option of the command line in short, for manual pages and completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionSummary {
    /// Its name without dashes.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// What its value is called; empty where it takes none.
    pub value: &'static str,
    /// The values that it takes, where they are words.
    pub words: &'static [&'static str],
    /// The default, as typed; empty where there is none.
    pub default: &'static str,
}

/// The options of the command line that belong to no job.
pub fn command_summaries() -> impl Iterator<Item = OptionSummary> {
    command::ROWS.iter().map(|row| OptionSummary {
        name: row.name,
        doc: row.doc,
        value: match row.takes {
            OptionArity::Nothing => "",
            OptionArity::Value(name) | OptionArity::MaybeValue(name) => name,
        },
        words: &[],
        default: "",
    })
}

/// The supported options of jobs, by category.
pub fn job_summaries() -> impl Iterator<Item = (&'static str, impl Iterator<Item = OptionSummary>)> {
    let summary = |row: &'static OptionRow<JobOptions>| OptionSummary {
        name: row.name,
        doc: row.doc,
        value: kind_name(row.kind),
        words: match row.kind {
            OptionValueKind::Choice(words) => words,
            _ => &[],
        },
        default: row.default,
    };
    OPTION_TABLE.iter().map(move |(category, rows)| (*category, rows.iter().map(summary)))
}

fn in_full(row: &OptionRow<JobOptions>) -> String {
    in_detail(row.name, row.aliases, row.kind, row.default, row.doc)
}

fn in_detail(name: &str, aliases: &[&str], kind: OptionValueKind, default: &str, doc: &str) -> String {
    let mut out = String::new();
    put(&mut out, format_args!("{name:>20}: {doc}\n"));
    for alias in aliases {
        put(&mut out, format_args!("{:>20}: {alias}\n", "alias"));
    }
    put(&mut out, format_args!("{:>20}: {}\n", "type", kind_name(kind)));
    let default = if default.is_empty() { "no default" } else { default };
    put(&mut out, format_args!("{:>20}: {default}\n", "default"));
    if let OptionValueKind::Choice(words) = kind {
        put(&mut out, format_args!("{:>20}: {}\n", "valid values", words.join(", ")));
    }
    out
}

fn kind_name(kind: OptionValueKind) -> &'static str {
    match kind {
        OptionValueKind::Text => "text",
        OptionValueKind::Size => "size (4096, 4k, 1m)",
        OptionValueKind::SizeOrPercent => "size or percentage (1g, 50%)",
        OptionValueKind::Int => "integer",
        OptionValueKind::Seconds => "time, plain number in seconds (30, 500ms, 5m)",
        OptionValueKind::Micros => "time, plain number in microseconds (100, 5ms)",
        OptionValueKind::Bool => "0 or 1",
        OptionValueKind::Flag => "flag, or 0 or 1 after =",
        OptionValueKind::Choice(_) => "one of the valid values",
        OptionValueKind::Floats => "numbers separated by colons (50:99:99.9)",
        OptionValueKind::LogName => "name; the name of the job if it is empty",
    }
}

/// `option: doc` of a job or command option, for error hints.
pub(crate) fn one_line(option: &str) -> Option<String> {
    if let Some(KnownOption::Supported(row)) = table::find(option) {
        return Some(format!("{}: {} It takes: {}.", row.name, row.doc, kind_name(row.kind)));
    }
    let row = command::ROWS.iter().find(|row| row.name == option)?;
    Some(format!("--{}{}: {}", row.name, value_name(row.takes), row.doc))
}

/// The output of `--enghelp`: the engines (`None`), the options of `ENGINE`, or one as `ENGINE,OPTION`; `Err` names the
/// unknown engine or option, or an engine without options. In the list scripts look for lines that are the name of an
/// engine, as fio prints them; with `described`, for people, each has its description.
pub fn engine_help(engines: &[EngineRow], topic: Option<&str>, described: bool) -> Result<String, String> {
    let mut out = String::new();
    let Some(topic) = topic else {
        out.push_str("Available IO engines:\n");
        for engine in engines {
            let doc = if described { engine.doc } else { "" };
            put(&mut out, format_args!("{:8}{}\n", "", format!("{:<16}{doc}", engine.name).trim_end()));
        }
        return Ok(out);
    };
    let (name, option) = match topic.split_once(',') {
        Some((name, option)) => (name, Some(option)),
        None => (topic, None),
    };
    let engine = engines::find(engines, name).ok_or_else(|| format!("IO engine {name} not found"))?;
    if engine.options.is_empty() {
        return Err(format!("IO engine {name} has no options"));
    }
    match option {
        None => {
            for option in &engine.options {
                put(&mut out, format_args!("{:<24}: {}\n", option.name, option.doc));
            }
        }
        Some(wanted) => {
            let option = engines::find_option(engine, wanted)
                .ok_or_else(|| format!("{name} has no option {wanted}"))?;
            out = in_detail(option.name, option.aliases, option.kind, option.default, option.doc);
        }
    }
    Ok(out)
}

const PAGE_HEAD: &str = "\
# Compatibility with fio

<!-- Generated from the option tables; to renew it: cargo xtask docs -->

`fathom fio`, or the binary under the name `fio`, reads fio's command line and job files, with these differences:

- Dashes, quotes and blanks that a web page or a word processor has replaced (`–name=a`, `“4k”`, a no-break space between
  two options) are read as they were meant, with a note (fio takes them literally).
- Blanks are stripped on both sides of `=` (fio keeps those after it, so that `bs = 8k` means 8 bytes there).
- `sec` and `min` are units of time; other unknown units and fractions (`1m30s`, `0.5`, `1.5m`), to which fio silently
  gives another meaning, are refused.
- Whole numbers may be written as fractions (`1048576.0`), as programs that calculate with fractions do. Percentiles may be
  separated by commas, of which fio takes the first alone.
- Out-of-range values that fio accepts (negative sizes, percentages above 100, `numjobs=0`, percentiles above 100 or
  more than 20 of them, invalid CPU lists, switches other than 0 and 1) are refused, as is text after a number (`4x`, `1:2`),
  which fio ignores, and an option without the value that it needs.
- Options that contradict one another or lack their partner are refused: a `thinktime_spin` above its `thinktime`, a `wait_for` that
  names no earlier job, a `cgroup_weight` without `cgroup`, `verify=pattern` without a pattern, `verify_only` without `verify`,
  `zonesize` without `zonemode` or the reverse, `rate_min` with `rate_iops_min`, `dedupe_percentage` with `verify`, `read_iolog` with
  `verify` or a rate, `bs_is_seq_rand` in a job whose requests are random in part (`percentage_random`, `rw=randread:8`).
- Names that mean nothing are refused where they are given: an `opendir` that does not exist, an unknown error in `ignore_error`, an
  unknown operation in `replay_skip`, an exponent of 0 in `random_distribution=zipf`.
- A job that cannot be prepared (no size, a block that direct I/O cannot have, a missing file with `allow_file_create=0`) is refused
  with its reason before any job starts, without a report; fio runs the others and reports an error for this one.
- `filesize` with a `size` in percent lays out whole files; fio lays out the part that is used. A job with `verify_only` leaves no
  state of verification behind; fio writes one.
- `$ncpus`, `$pagesize` and `$mb_memory` need no `bc`; a value that is not an expression is not evaluated.
- `--showcmd` prints jobs of the command line too, and puts the engine before its private options.
- An `include` of a file that cannot be read or has a section is refused; fio reports it and runs the jobs without.
- A section line needs its `]` and a name; a job file that is binary or larger than 1 MiB is refused.
- Of the character devices, `/dev/null`, `/dev/zero`, `/dev/full`, `/dev/random` and `/dev/urandom` are used like devices without a size; others are
  refused.
- A name in `/dev` that does not exist is refused; fio creates a file there, in memory.
- `directory` applies wherever it stands; on fio's command line it does not apply to a `filename` before it.
- A block device that is written to is claimed for the run (`O_EXCL`): a second process that writes to it is refused unless
  `allow_mounted_write=1` is set; fio runs both.
- Without `iodepth_batch`, random requests are submitted in batches of an eighth of the depth, at most eight requests and
  at most 32 KiB; sequential ones are submitted one by one, as in fio, so that the kernel does not merge them. If requests
  complete during their submission (the page cache, memory), batches grow to 32 requests and 128 KiB; buffered requests of libaio are submitted by two. All available
  completions are taken unless `iodepth_batch_complete_max` is given. `iodepth_batch=1` and
  `iodepth_batch_complete_max=1` give fio's behaviour.
- The shares of a `bssplit` must add up to 100 and its sizes be multiples of the smallest (fio gives the rest to the
  smallest size and rounds sizes down). The shares are exact in every 100 requests. With a random map a pass covers the
  range once in requests of the given sizes, smaller ones than drawn at its end; fio cuts requests to the gaps between
  earlier ones, which changes the shares. Under `rate` the
  requests are evenly spaced, not their bytes.
- Zipf and pareto frequencies are exact (fio approximates zipf: its third block is 17 % too frequent at a theta of 1.1), and no
  two frequent blocks share one place. `normal` is a normal distribution around the middle of the range or `:CENTER`, with its
  deviation in percent of the range; fio 3.33 scatters it over the range and hardly heeds the deviation.
- With a distribution, `percentage_random` below 100, `blockalign` or strided zones, offsets are drawn independently; with
  `percentage_random` and strided zones fio keeps its random map. A request of `rw=randread:N` after the end of the range is at a
  random offset, as in fio.
- A pass of `bsrange` covers the range once with a random map; fio cuts requests to the gaps between earlier ones. Sizes of
  `bs_unaligned` are drawn without a map.
- `bs=4k-8k`, which fio reads as reads of 4 KiB and writes of 8 KiB, is refused, as is a single size in `bsrange` (write `4k-4k`).
- All files stay open; `openfiles` limits those in use at a time, in fio's order.
- `fill_device=1` does not count the request that found the file system full; `exec_prerun` and `exec_postrun` write to
  `JOB.prerun.txt` and `JOB.postrun.txt` in the current directory, as in fio, and their exit status means nothing. A signal ends
  them, and the command of `trigger`, with all that they have started; fio waits for them.
- A `trigger-file` that was there before the run does not end it unless it is touched, and is never removed; fio removes it at the start.
- An error that `ignore_error` names is counted and does not fail the job; fio 3.33 also reports its number as that of the job.
- A job with `stats=0` is left out of all reports, also if it is the only one; the JSON document of fio 3.33 has an entry without
  a name then.
- `--idle-prof` reads the idle time of the CPUs from the kernel, which counts in ticks of 10 ms, instead of running threads that
  compete with the jobs.
- A rate that fell for good while it was measured is named in a line on standard error, unless the document is JSON: the mean that
  fio prints is the rate of neither part.
- Advice on the jobs, such as buffered I/O that fits into the memory, goes to standard error if a terminal shows both streams, or
  with `--advise`; never to the streams of a script.
- The zones of `zoned_abs` that are beyond the range are cut to it, with a note; a size of 0 is one block, and none is the rest.
- A file that the user of `uid` must not open ends the job before its first request, as in fio. Threads act as that user, not the
  process; files are laid out and removed by the user of the process. `ioscheduler` is set before the start and stays, as in fio;
  a scheduler that the device does not have is refused and nothing is run.
- `cgroup_weight` is written to `blkio.weight` or `blkio.bfq.weight`, or with version 2 to `io.bfq.weight` or `io.weight`; fio 3.33
  knows the first alone. All jobs have the same group with version 2, whose groups have processes and not threads.
- `lockfile` uses flock(2), so that it holds between processes too. A request in flight holds the lock: with `exclusive` there is one
  at a time, whatever the depth.
- The first period of `thinktime_iotime` counts from the start of the job, as in fio's manual; fio 3.33 extends it by
  `thinktime`.
- `latency_target` doubles the queue depth until a window misses the target, then halves the gap; fio's steps differ. The report is
  that of one more window at the depth found, without the search, which is its ramp; a job that ends before has the whole search
  in its report. A latency that depth 1 does not keep leaves the job at depth 1, as in fio. Without `latency_window` a window has
  100 ms.
- Samples of `steadystate` are taken at half seconds, from the start of the measured part; a slope counts in either direction.
- `flow` holds a job back once it is about 32 requests of the flow ahead of its weight, and at least 20 us at a time; a job
  that starts later does not catch up.
- `ramp_size` is checked every millisecond. `rate_min` and `rate_iops_min` are checked for the operations that a job issues, after
  two seconds, as in fio; together with a lower `rate` they are refused, also by `--parse-only`.
- A job whose `rate` or `rate_iops` is 50,000 requests per second or more with `rate_process=linear` is woken once for the requests
  that are due within 20 us of each other: each is issued by itself, up to 20 us late and never early, unless the job is awake when
  it is due. The rate and latencies are the same; response times and the delay of the client, which count from the due time, include it. Below
  that rate, with `rate_process=poisson` and in fathom's own commands there is a wake-up for each request.
- Logs are written while the jobs run, from buffers of a fixed size, and begin empty; fio writes them at the end. Where a log has a
  window (`log_avg_msec`), rates are those of whole windows, without lines for windows in which nothing was moved; a last piece
  shorter than half a window counts for the window before it, so that rates times lengths add up to the report (fio omits the last
  piece). Histograms are logged at the end too. With `per_job_logs=0` the lines of the clones alternate. Without
  `log_avg_msec` the bandwidth of a request is in units of 1000 bytes, as in fio.
- An iolog begins empty and is of one worker: further clones, and further jobs with the same name of a log, write to FILE.N (fio
  appends all of them to one file, which cannot be replayed). `read_iolog` reads the log whole before the job starts; a line without
  a meaning is refused with its number (fio skips it). Waits of version 2 are in microseconds, as in fio's manual; fio 3.33 takes
  them as milliseconds. Files that are read are laid out first, all files stay open, and a request to a file that the log has not
  opened is refused. Names are those of the log, whatever `directory` says. A replay ignores sizes, loops, orders of offsets and
  `write_iolog`, as in fio; with a rate, `verify` or `serialize_overlap` it is refused.
- `filecreate`, `filestat`, `filedelete` and their kin for directories have one request per file; fio counts `size` / `bs` requests, of
  which the first to each file does something. Requests of `filecreate` include close(2). `dirstat` and `dirdelete` make the
  directories that do not exist.
- `--status-interval` prints at each interval, where bandwidth and IOPS samples are those of half seconds; `--bandwidth-log` does not need
  `--eta`.
- `cmdprio_percentage` and `cmdprio_bssplit` choose requests by other random numbers than fio. The order of the shares of one size is
  that given; a class or level of `cmdprio_bssplit` above its range is refused (fio cuts it). Simulated volumes have no
  priorities.
- A request that fails is not among the I/Os of the report (`total_ios`, IOPS); fio counts it. A read past the end of a file fails the
  job with every engine; fio's asynchronous engines count it as an I/O of 0 bytes.
- With `time_based` a job with `verify` reads back what each pass has written, with every engine; fio does so with asynchronous ones.
- `number_ios` does not count the reads of a `verify_backlog`.
- A rate is refused with `rw=trimwrite`, whose trims and writes alternate.
- A pass with skips (`rw=read:4k`) counts from the start of the range; backwards, fio begins elsewhere if `offset` is not 0.
- `rw=trim` on a regular file punches holes; fio reports an error.
- `io_submit_mode=offload` has a thread for each request of `iodepth` and reports the queue depth of these threads; fio reports a depth
  of 1, and version 3.33 may hang. Completion latencies include the wake-up of the thread, which fio counts in the total latency
  alone. It changes nothing with libaio, posixaio and null; other engines than these and psync, sync, vsync, pvsync and pvsync2 are refused
  (fio refuses io_uring).
- `verify` reads and writes headers of the form of fio 3.33, so that data can be verified by either program; fio 3.41 has
  another form and refuses theirs, as fathom refuses its.
- `trim_percentage` needs `verify`, `trim_backlog` and a job that writes, else it is refused; fio then trims nothing. Trims go to files
  too, as holes. fio 3.33 aborts at the first trim.
- The random numbers of a seed are repeatable, but differ from fio's for the same seed.

Each option of fio is in one of three states: supported; accepted without effect, for the reason given; or refused by name,
with the closest alternative. A refused option is accepted with the values that change nothing, as listed. An unknown option
is refused with the closest name.
";

/// The compatibility page, in Markdown.
pub fn compatibility_page() -> String {
    let mut out = PAGE_HEAD.to_owned();
    out.push_str("\n## Supported job options\n");
    for (title, rows) in OPTION_TABLE.iter().filter(|(title, _)| *title != table::HARMLESS) {
        put(&mut out, format_args!("\n### {title}\n\n"));
        out.push_str("| option | value | default | meaning |\n|---|---|---|---|\n");
        for row in *rows {
            let aliases: String = row.aliases.iter().map(|alias| format!(", `{alias}`")).collect();
            let default = if row.default.is_empty() { String::new() } else { format!("`{}`", row.default) };
            let value = value_of(row);
            put(&mut out, format_args!("| `{}`{aliases} | {value} | {default} | {} |\n", row.name, row.doc));
        }
    }
    put(&mut out, format_args!("\n## {}\n\n| option | value | reason |\n|---|---|---|\n", table::HARMLESS));
    let harmless = OPTION_TABLE.iter().filter(|(title, _)| *title == table::HARMLESS);
    for row in harmless.flat_map(|(_, rows)| rows.iter()) {
        let aliases: String = row.aliases.iter().map(|alias| format!(", `{alias}`")).collect();
        put(&mut out, format_args!("| `{}`{aliases} | {} | {} |\n", row.name, value_of(row), row.doc));
    }
    out.push_str("\n## Options of the command\n\n| option | meaning |\n|---|---|\n");
    for row in command::ROWS {
        let note = if row.ours { " Not in fio." } else { "" };
        let value = value_name(row.takes);
        put(&mut out, format_args!("| `--{}{value}` | {}{note} |\n", row.name, row.doc));
    }
    let inert: Vec<String> =
        command::ROWS.iter().filter(|row| row.inert).map(|row| format!("`--{}`", row.name)).collect();
    put(&mut out, format_args!("\nAccepted without effect: {}.\n", inert.join(", ")));
    out.push_str("\n## Not supported\n\n### Options of the command\n\n| option | instead |\n|---|---|\n");
    for (name, _, instead) in command::UNSUPPORTED {
        put(&mut out, format_args!("| `--{name}` | {instead} |\n"));
    }
    out.push_str("\n### Job options\n\n| option | accepted where it is | instead |\n|---|---|---|\n");
    UNSUPPORTED.iter().for_each(|row| out.push_str(&unsupported_line(row)));
    out.push_str("\n### Engines\n\n| engine | reason | instead |\n|---|---|---|\n");
    for row in REFUSED_ENGINES {
        let names: Vec<String> = row.names.iter().map(|name| format!("`{name}`")).collect();
        put(&mut out, format_args!("| {} | it {} | {} |\n", names.join(", "), row.does, row.instead));
    }
    out
}

fn value_of(row: &OptionRow<JobOptions>) -> String {
    match row.kind {
        OptionValueKind::Choice(words) => words.join(", "),
        kind => kind_name(kind).to_owned(),
    }
}

fn unsupported_line(row: &UnsupportedOption) -> String {
    let aliases: String = row.aliases.iter().map(|alias| format!(", `{alias}`")).collect();
    let inert: Vec<String> = row.inert.iter().map(|value| format!("`{value}`")).collect();
    format!("| `{}`{aliases} | {} | {} |\n", row.name, inert.join(", "), row.instead)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_page_equals_the_generated_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fio-compat.md");
        if std::env::var_os("FATHOM_BLESS").is_some() {
            std::fs::write(path, compatibility_page()).unwrap();
        }
        let stored = std::fs::read_to_string(path).unwrap();
        assert!(stored == compatibility_page(), "renew it: cargo xtask docs");
    }

    #[test]
    fn help_on_options() {
        let text = command_help(Some("readwrite")).unwrap();
        assert!(text.contains("rw: Operations, and sequential"), "{text}");
        assert!(text.contains("valid values: read, write"), "{text}");
        assert!(command_help(Some("block_error_percentiles")).unwrap().contains("not supported yet"));
        assert_eq!(command_help(Some("iodpeth")), Err(Some("iodepth".to_owned())));
        assert_eq!(command_help(Some("zzzzzzzzz")), Err(None));
        let names = OPTION_TABLE.iter().map(|(_, rows)| rows.len()).sum::<usize>();
        assert_eq!(command_help(None).unwrap().lines().count(), names);
        assert!(command_help(Some("all")).unwrap().contains("type: 0 or 1"));
    }

    #[test]
    fn help_on_engines() {
        let engines = crate::cli::tests::engines();
        assert!(engine_help(engines, None, true).unwrap().contains("        io_uring        An engine.\n"));
        assert!(engine_help(engines, None, false).unwrap().contains("\n        io_uring\n"));
        assert!(engine_help(engines, Some("io_uring"), true).unwrap().contains("fixedbufs"));
        assert!(engine_help(engines, Some("io_uring,hipri"), true).unwrap().contains("flag"));
        assert!(engine_help(engines, Some("bogus"), true).unwrap_err().contains("IO engine bogus not found"));
        for topic in ["psync", "psync,hipri"] {
            assert_eq!(
                engine_help(engines, Some(topic), true),
                Err("IO engine psync has no options".to_owned())
            );
        }
        assert!(usage().lines().count() > command::ROWS.len());
    }
}
