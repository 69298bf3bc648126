use std::collections::BTreeMap;

use fathom_model::plan::Mix;
use fathom_model::{EngineOption, Nanos, OptionValueKind, PerOp};
use proptest::prelude::*;

use super::*;
use crate::command::{Eta, OutputFormat};
use crate::show::show_command;
use crate::value;

const fn engine_option(
    name: &'static str,
    kind: OptionValueKind,
    doc: &'static str,
    check: fn(&str) -> Result<(), String>,
) -> EngineOption {
    EngineOption { name, kind, default: "", doc, check }
}

const URING_OPTIONS: &[EngineOption] = &[
    engine_option("fixedbufs", OptionValueKind::Flag, "Register buffers.", |text| {
        value::boolean(text).map(drop)
    }),
    engine_option("hipri", OptionValueKind::Flag, "Poll.", |text| value::boolean(text).map(drop)),
    engine_option("sqthread_poll_cpu", OptionValueKind::Int, "CPU of the poller.", |text| {
        value::count(text, 0).map(drop)
    }),
];

/// A few engines, as the CLI describes them.
pub(crate) fn engines() -> &'static [EngineRow] {
    const fn row(name: &'static str, synchronous: bool) -> EngineRow {
        EngineRow { name, aliases: &[], doc: "An engine.", synchronous, options: &[] }
    }
    const ENGINES: &[EngineRow] = &[
        row("psync", true),
        EngineRow { aliases: &["vsync"], ..row("sync", true) },
        row("null", false),
        row("libaio", false),
        EngineRow { options: URING_OPTIONS, ..row("io_uring", false) },
    ];
    ENGINES
}

/// An environment whose files are `files` and whose only variable is DIR.
pub(crate) fn environment(files: &[(&str, &[u8])]) -> ParseEnvironment<'static> {
    let files: BTreeMap<PathBuf, Vec<u8>> =
        files.iter().map(|(name, text)| (PathBuf::from(name), text.to_vec())).collect();
    let read_file =
        move |path: &Path| files.get(path).cloned().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound));
    ParseEnvironment {
        engines: engines(),
        read_file: Box::leak(Box::new(read_file)),
        variable: &|name| (name == "DIR").then(|| "/data".to_owned()),
        machine: MachineNumbers { cpus: 4, page_size: 4096, memory_mib: 1024 },
    }
}

fn parse_with(files: &[(&str, &[u8])], args: &[&str]) -> Result<Invocation, OptionError> {
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    parse_command_line(&args, &environment(files))
}

fn parse(line: &str) -> Result<Invocation, OptionError> {
    parse_with(&[], &line.split_whitespace().collect::<Vec<_>>())
}

fn job(line: &str) -> Section {
    let mut found = parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    assert_eq!(found.sections.len(), 1, "{line}");
    found.sections.remove(0)
}

#[test]
fn all_four_spellings_of_an_option_are_equivalent() {
    for line in [
        "--name=a --bs=8k --iodepth=4",
        "-name=a -bs=8k -iodepth=4",
        "--name a --bs 8k --iodepth 4",
        "-name a -bs 8k -iodepth 4",
        "--nam=a --readw=read --blocksize=8k -iodepth=4",
        "--bs=8k --iodepth=4 --name=a",
        "--name=global --bs=8k --iodepth=4 --name=a",
    ] {
        let section = job(line);
        assert_eq!(section.name, "a", "{line}");
        assert_eq!(section.options.bs, PerOp::splat(Some(8192)), "{line}");
        assert_eq!(section.options.iodepth, Some(4), "{line}");
    }
}

#[test]
fn a_published_command_line_is_parsed() {
    let section = job(
        "-randrepeat=1 -ioengine=libaio -direct=1 -gtod_reduce=1 -name=test -filename=test -bs=4k -iodepth=64 \
         -size=1G -readwrite=randrw -rwmixread=75",
    );
    // Options before -name apply to all jobs, so this job has them too.
    assert_eq!(section.options.ioengine.as_deref(), Some("libaio"));
    assert!(section.options.plan.io.direct);
    assert_eq!(section.options.rw.unwrap().mix, Mix::ReadWrite { read_percent: 50 });
    assert_eq!(section.options.rwmixread, Some(75));
    assert_eq!(section.raw_options[0], ("name".to_owned(), "test".to_owned()));
    assert!(section.raw_options.contains(&("rw".to_owned(), "randrw".to_owned())));
}

#[test]
fn flags_take_a_value_only_after_an_equals_sign() {
    assert!(job("--name=a --thread").options.plan.thread_wording);
    assert!(!job("--name=a --thread=0").options.plan.thread_wording);
    let found = parse_with(&[("1", b"")], &["--name=a", "--thread", "1"]).unwrap();
    assert_eq!(found.files, [PathBuf::from("1")]);
    assert_eq!(found.sections[0].raw_options[1], ("thread".to_owned(), String::new()));
    assert!(parse("--name=a --direct").unwrap_err().to_string().contains("requires an argument"));
    assert!(parse("--name=a --direct --name=b").is_err());
}

#[test]
fn jobs_inherit_earlier_options() {
    let found = parse("--bs=8k --name=a --bs=16k --name=b --name=global --iodepth=9 --name=c").unwrap();
    let sizes: Vec<_> = found.sections.iter().map(|section| section.options.bs.read).collect();
    assert_eq!(sizes, [Some(16384), Some(8192), Some(8192)]);
    assert_eq!(found.sections[1].options.iodepth, None);
    assert_eq!(found.sections[2].options.iodepth, Some(9));
    let names: Vec<&str> = found.global_options.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["bs", "name", "iodepth"]);
}

#[test]
fn job_files_follow_the_jobs_of_the_command_line() {
    let files: &[(&str, &[u8])] = &[
        ("f1", b"[global]\nbs=8k\nfilename=x\n[f1]\nioengine=null\nfilename=y\n"),
        ("f2", b"[f2]\n[f3]\nstonewall\n"),
    ];
    let found = parse_with(files, &["f1", "--bs=16k", "--filename=w", "--name=c", "f2"]).unwrap();
    let seen: Vec<_> = found
        .sections
        .iter()
        .map(|section| (section.name.as_str(), section.options.bs.read.unwrap(), section.starts_file))
        .collect();
    assert_eq!(seen, [("c", 16384, false), ("f1", 8192, false), ("f2", 16384, true), ("f3", 16384, false)]);
    let names: Vec<_> =
        found.sections.iter().map(|section| section.options.filename.clone().unwrap()).collect();
    assert_eq!(names, [["w"], ["y"], ["w"], ["w"]]);
    let plan = found.plan(&PlanningHost { cpus: 1, entropy: 0 }).unwrap();
    assert_eq!(plan.jobs.iter().map(|job| job.phase).collect::<Vec<_>>(), [0, 0, 1, 2]);
    assert!(plan.global_options.contains(&("bs".to_owned(), "8k".to_owned())));
}

#[test]
fn a_dash_is_standard_input_and_a_double_dash_ends_options() {
    let found = parse_with(&[("-", b"[a]\n"), ("--x", b"[b]\n")], &["-", "--", "--x"]).unwrap();
    assert_eq!(found.sections.len(), 2);
}

#[test]
fn sections_are_selected_by_name() {
    let files: &[(&str, &[u8])] = &[("f", b"[global]\nbs=1k\n[a]\n[b]\nname=given\n")];
    let found = parse_with(files, &["--name=c", "f", "--section=b"]).unwrap();
    let names: Vec<&str> = found.sections.iter().map(|section| section.name.as_str()).collect();
    assert_eq!(names, ["c", "b"]);
    assert_eq!(found.sections[1].options.bs.read, Some(1024));
    assert_eq!(parse("--name=c --section=x").unwrap().sections.len(), 1);
    assert!(parse_with(files, &["f", "--section=x"]).is_err_and(|error| error.is_no_jobs()));
    assert_eq!(parse("--bs=4k --parse-only").unwrap().sections, []);
    assert!(parse("--bs=no --parse-only").is_err());
    assert!(parse("--name=c --section=global").unwrap_err().to_string().contains("can't use global"));
}

#[test]
fn a_directory_among_job_files_has_no_jobs() {
    let read_file = |path: &Path| match path.to_str() {
        Some("f") => Ok(b"[a]\nsize=4k\n".to_vec()),
        _ => Err(std::io::Error::new(std::io::ErrorKind::IsADirectory, "it is a directory")),
    };
    let env = ParseEnvironment { read_file: &read_file, ..environment(&[]) };
    let parsed = |words: &[&str]| {
        parse_command_line(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), &env)
    };
    let found = parsed(&["f", "d"]).unwrap();
    assert_eq!(
        (found.sections.len(), &found.messages[..]),
        (1, &["note: d is a directory and has no jobs".to_owned()][..])
    );
    assert!(parsed(&["d"]).unwrap_err().to_string().contains("unable to open 'd'"));
}

#[test]
fn a_name_for_all_jobs_of_a_file_renames_none() {
    let files: &[(&str, &[u8])] = &[("f", b"[global]\nname=all\nsize=4k\n[a]\n[b]\nname=given\n")];
    let found = parse_with(files, &["f"]).unwrap();
    let names: Vec<Option<&str>> =
        found.sections.iter().map(|section| section.options.name.as_deref()).collect();
    assert_eq!(names, [None, Some("given")]);
}

#[test]
fn private_options_are_known_after_their_engine() {
    let section = job("--name=a --ioengine=io_uring --fixedbufs --sqthread_poll_cpu 3");
    let expected = [("fixedbufs", "1"), ("sqthread_poll_cpu", "3")];
    let options = &section.options.engine_options;
    assert!(options.iter().map(|(name, value)| (name.as_str(), value.as_str())).eq(expected));
    assert!(
        job("--name=a --ioengine=io_uring --fixedbufs --ioengine=libaio").options.engine_options.is_empty()
    );
    assert_eq!(job("--name=a --ioengine=vsync").options.ioengine.as_deref(), Some("sync"));
    let files: &[(&str, &[u8])] = &[("f", b"[a]\nfixedbufs\nioengine=io_uring\n")];
    assert_eq!(parse_with(files, &["f"]).unwrap().sections[0].options.engine_options.len(), 1);
}

/// Command lines, the start of the error, and a part of the hint.
const REFUSED: &[(&str, &str, Option<&str>)] = &[
    ("--name=a --bogus=1", "fio: unrecognized option '--bogus=1'", None),
    ("--name=a --iodpeth=4", "fio: unrecognized option '--iodpeth=4'", Some("Did you mean iodepth?")),
    (
        "--name=a --iodep=4",
        "fio: option '--iodep=4' is ambiguous; possibilities: '--iodepth'",
        Some("in full"),
    ),
    ("--name=a --direct", "fio: option '--direct' requires an argument", Some("=VALUE")),
    ("--version=3", "fio: option '--version' doesn't allow an argument", Some("alone")),
    (
        "--name=a --iodepth=0",
        "fio: failed parsing iodepth=0: min value out of range: 0 (1 min)",
        Some("iodepth:"),
    ),
    ("--name=a --numjobs=0", "fio: failed parsing numjobs=0: min value", Some("Clones")),
    ("--name=a --bs=0", "fio: failed parsing bs=0: min value", Some("Bytes per request")),
    ("--name=a --rw=foo", "fio: failed parsing rw=foo: valid values are read, write", Some("rw")),
    ("--name=a --size=101%", "fio: failed parsing size=101%: max value", Some("size")),
    ("--name=a --rw=randread:x", "fio: failed parsing rw=randread:x: 'x' is not a number", Some("rw")),
    ("--name=a --fdp=1", "fio's option fdp is not supported yet", None),
    (
        "--name=a --ioengine=rbd",
        "fio: engine rbd not loadable: fio's engine rbd is not supported: it accesses Ceph through a library",
        Some("map an image with rbd map"),
    ),
    ("--name=a --ioengine=libaoi", "fio: engine libaoi not loadable", Some("Did you mean libaio?")),
    (
        "--fixedbufs --name=a --ioengine=io_uring",
        "fio: unrecognized option '--fixedbufs'",
        Some("--ioengine=io_uring"),
    ),
    (
        "--name=a --ioengine=libaio --md_per_io_size=1",
        "fio's option md_per_io_size is not supported",
        Some("--enghelp=ENGINE"),
    ),
    (
        "--name=a --output-format=xml",
        "fio: failed parsing output-format=xml: invalid output format xml",
        None,
    ),
    ("--name=a --client=h", "fio's option --client is not supported", Some("--fleet")),
    (
        "--name=a --readonly --rw=write",
        "fio: job <a> has write or trim bit set, but fio is in read-only",
        None,
    ),
    (
        "--name=a --rw=write --readonly",
        "fio: job <a> has write or trim bit set, but fio is in read-only",
        None,
    ),
    ("nofile.fio", "fio: unable to open 'nofile.fio' job file", Some("check the path")),
    ("--bs=4k", "No job(s) defined", Some("--name")),
    ("", "No job(s) defined", Some("--name")),
    ("--name=", "fio: failed parsing name=", Some("name")),
    ("--=4 --name=a", "fio: unrecognized option '--=4'", None),
];

#[test]
fn errors_have_fios_wording_and_a_remedy() {
    for (line, message, hint) in REFUSED {
        let error = parse(line).expect_err(line);
        assert!(error.to_string().starts_with(message), "{line}: {error}");
        if let Some(hint) = hint {
            let found = error.hint().unwrap_or_default();
            assert!(found.contains(hint), "{line}: {found}");
        }
    }
}

#[test]
fn errors_in_job_files_show_the_position() {
    for (text, message, hint) in [
        (
            "[a]\niodpeth=3\n",
            "Bad option <iodpeth=3>\n  --> f:2:1\n  2 | iodpeth=3\n    | ^",
            "Did you mean iodepth?",
        ),
        ("[a]\n\x1bx=3", "Bad option <\x1bx=3>\n  --> f:2:1\n  2 | \\x1bx=3", ""),
        ("[a]\nbs=1.5m", "fio: failed parsing bs=1.5m: fractions", "bs"),
        ("[a]\ndirect", "fio: option 'direct' requires an argument\n  --> f:2:1", "direct=VALUE"),
        ("[a]\nsprandom=1", "fio's option sprandom is not supported yet\n  --> f:2:10", "fathom prepare"),
        (
            "[a]\nfixedbufs\nioengine=null",
            "Bad option <fixedbufs>\n  --> f:2:1",
            "belongs to ioengine=io_uring",
        ),
        (
            "[a]\nruntime=5 parsecs",
            "fio: failed parsing runtime=5 parsecs: 'parsecs' is not a unit",
            "runtime",
        ),
    ] {
        let error = parse_with(&[("f", text.as_bytes())], &["f"]).expect_err(text);
        assert!(error.to_string().starts_with(message), "{text}: {error}");
        assert!(error.hint().unwrap_or_default().contains(hint), "{text}: {:?}", error.hint());
    }
}

#[test]
fn unsupported_options_with_inert_values_are_accepted() {
    let section = job("--name=a --verify=0 --sprandom=0 --random_distribution=random");
    assert_eq!(section.raw_options.len(), 4);
    assert!(parse("--name=a --sprandom=1").is_err());
}

#[test]
fn command_options_may_have_any_position() {
    let found =
        parse("--output=o --name=a --output-format=json,normal --eta=never --eta-newline=2 --max-jobs=9")
            .unwrap();
    assert_eq!(found.command.output, Some(PathBuf::from("o")));
    assert_eq!(found.command.formats, [OutputFormat::Json, OutputFormat::Normal]);
    assert_eq!(found.command.eta, Eta::Never);
    assert_eq!(found.command.eta_newline, Some(Nanos::from_secs(2)));
    assert!(parse("--name=a --destroy-d=/dev/x").is_err(), "our own names are not shortened");
    assert!(parse("--name=a --destroy-data=/dev/x").is_ok());
}

#[test]
fn help_and_version_need_no_job_and_end_parsing() {
    for line in ["--help", "-h", "--version", "-v", "--cmdhelp", "--cmdhelp=bs", "--enghelp=null --bogus"] {
        assert!(parse(line).unwrap().command.only_prints(), "{line}");
    }
    assert_eq!(parse("--cmdhelp=bs").unwrap().command.cmdhelp, Some(Some("bs".to_owned())));
}

#[test]
fn notes_have_fios_wording() {
    let notes = |line| parse(line).unwrap().messages;
    assert_eq!(notes("--name=a --time_based"), ["fio: time_based requires a runtime/timeout setting"]);
    assert_eq!(notes("--name=a --time_based --runtime=1"), [""; 0]);
    assert_eq!(notes("--name=a --iodepth=4").len(), 1);
    assert_eq!(notes("--name=a --iodepth=4 --ioengine=null").len(), 0);
}

#[test]
fn a_printed_command_gives_the_same_plan() {
    let files: &[(&str, &[u8])] = &[(
        "f",
        b"[global]\nrw=randread\nbs=4k,,16k\n[a b]\nfixedbufs\nioengine=io_uring\nsize=1m\ndescription=it's\n[b]\nstonewall\n",
    )];
    let found = parse_with(files, &["f"]).unwrap();
    let shown = show_command(&found);
    assert_eq!(
        shown,
        "fio --rw=randread --bs=4k,,16k --name='a b' --ioengine=io_uring --fixedbufs --size=1m \
         --description='it'\\''s' --name=b --stonewall"
    );
    let again = parse_with(
        &[],
        &[
            "--rw=randread", "--bs=4k,,16k", "--name=a b", "--ioengine=io_uring", "--fixedbufs", "--size=1m",
            "--description=it's", "--name=b", "--stonewall",
        ],
    )
    .unwrap();
    for (first, second) in found.sections.iter().zip(&again.sections) {
        let named = |options: &crate::JobOptions| crate::JobOptions { name: None, ..options.clone() };
        assert_eq!(named(&first.options), named(&second.options));
    }
}

#[test]
fn a_printed_command_only_reads_where_the_first_did() {
    let words = ["--read_iolog=log", "--name=a", "--readonly"];
    let found = parse_with(&[], &words).unwrap();
    let shown = show_command(&found);
    assert_eq!(shown, "fio --readonly --read_iolog=log --name=a");
    let again = parse_with(&[], &shown.split(' ').skip(1).collect::<Vec<_>>()).unwrap();
    assert_eq!(again.sections[0].options, found.sections[0].options);
}

#[test]
fn a_printed_command_repeats_options_that_differ_between_files() {
    let files: &[(&str, &[u8])] = &[
        (
            "f1",
            b"[global]\nbs=8k\nfilename=x\nioengine=io_uring\nhipri\n[a]\nfilename=y\n[b]\nioengine=null\n",
        ),
        ("f2", b"[c]\n"),
    ];
    let shown = show_command(&parse_with(files, &["f1", "f2"]).unwrap());
    let expected = "fio --name=a --ioengine=io_uring --bs=8k --hipri --filename=y \
         --name=b --ioengine=io_uring --ioengine=null --bs=8k --filename=x --name=c --stonewall";
    assert_eq!(shown, expected);
}

fn words() -> impl Strategy<Value = String> {
    let names: Vec<&'static str> = table::names().chain(command::ROWS.iter().map(|row| row.name)).collect();
    let value = prop_oneof!["[0-9]{1,25}[a-zA-Z%]{0,3}", "[ -~]{0,12}", ".{0,6}", Just("rand".to_owned())];
    prop_oneof![
        (prop::sample::select(names), value.clone(), "--?", "=?")
            .prop_map(|(name, value, dashes, equals)| format!("{dashes}{name}{equals}{value}")),
        value,
        "-{0,3}[a-z_]{0,12}=?[0-9a-z]{0,5}",
    ]
}

proptest! {
    #[test]
    fn no_command_line_panics(args in prop::collection::vec(words(), 0..12), file in prop::collection::vec(any::<u8>(), 0..200)) {
        let files: &[(&str, &[u8])] = &[("-", &file)];
        let mut line = vec!["--name=a".to_owned()];
        line.extend(args);
        match parse_command_line(&line, &environment(files)) {
            Ok(found) => {
                let _ = show_command(&found);
                if let Err(error) = found.plan(&PlanningHost { cpus: 2, entropy: 0 }) {
                    prop_assert!(!error.to_string().is_empty());
                }
            }
            Err(error) => {
                prop_assert!(!error.to_string().is_empty());
                let _ = error.hint();
            }
        }
    }

    #[test]
    fn no_bytes_panic_the_job_file_parser(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = parse_with(&[("f", &bytes)], &["f"]).map_err(|error| (error.to_string(), error.hint()));
    }

    #[test]
    fn no_text_panics_the_job_file_parser(lines in prop::collection::vec("(\\[[a-z\\]]{0,3}\\]?|[a-z_]{0,9} ?=? ?[$-~]{0,12}|[ -~é]{0,20}|include f|[a-z]{2}=\\$ncpus[-+*/()0-9]{0,9})", 0..20)) {
        let text = lines.join("\n");
        let _ = parse_with(&[("f", text.as_bytes())], &["f"]).map_err(|error| (error.to_string(), error.hint()));
    }
}

#[test]
fn jobs_and_inherited_options_are_bounded() {
    let check = |text: String, expected: Result<usize, &str>| {
        let parsed = parse_with(&[("jobs", text.as_bytes())], &["jobs"]);
        let parsed = parsed.map(|found| found.sections.len()).map_err(|error| error.to_string());
        match (&parsed, expected) {
            (Ok(jobs), Ok(expected)) => assert_eq!(*jobs, expected),
            (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
            _ => panic!("{parsed:?}, expected {expected:?}"),
        }
    };
    let jobs = |count: usize| "[a]\n".repeat(count);
    let global = |lines: usize| "[global]\n".to_owned() + &"rw=read\n".repeat(lines);
    check(global(50) + &jobs(4_096), Ok(4_096));
    check(jobs(4_097), Err("job <a> exceeds the limit: maximum number of jobs (4096) reached"));
    check(global(20_000) + &jobs(10), Ok(10));
    check(global(20_000) + &jobs(4_096), Err("more than 32 MiB in all jobs so far"));
    // Options for all jobs are collected once, not copied for each addition: copying would take minutes.
    check("[global]\nrw=read\n".repeat(40_000) + &jobs(1), Ok(1));
    let words: Vec<String> = (0..4_097).map(|job| format!("--name=j{job}")).collect();
    let error = parse_with(&[], &words.iter().map(String::as_str).collect::<Vec<_>>()).unwrap_err();
    assert!(error.to_string().contains("job <j4096> exceeds the limit"), "{error}");
}

#[test]
fn a_printed_command_omits_a_name_for_all_jobs() {
    let check = |text: &str, expected: &str| {
        let found = parse_with(&[("jobs", text.as_bytes())], &["jobs"]).unwrap();
        assert_eq!(crate::show_command(&found), expected, "{text}");
    };
    check("[global]\nname=x\nbs=8k\n[a]\n[b]\n", "fio --bs=8k --name=a --name=b");
    check("[a]\n[global]\nname=x\nbs=8k\n[b]\n", "fio --name=a --name=b --bs=8k");
}
