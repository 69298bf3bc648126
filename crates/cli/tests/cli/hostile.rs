//! The program given text that orders a terminal about and breaks lines: on command lines, in files, and in what was kept.

use std::path::Path;

use fathom_model::text::is_hidden;
use serde_json::Value;

use crate::{Ended, run, scratch};

/// Sets the title of a terminal, turns the direction of text, and begins a line.
const HOSTILE: &str = "\x1b]0;x\x07\u{202e}\u{9b}2J\nforged";
const SHOWN: &str = r"\x1b]0;x\x07\u{202e}\u{9b}2J\x0aforged";

/// Fails where `ended` wrote anything that a terminal obeys, or a line of its own for what is in [`HOSTILE`].
#[track_caller]
fn clean(ended: &Ended) {
    for text in [&ended.stdout, &ended.stderr] {
        assert!(!text.chars().any(|c| c != '\n' && is_hidden(c)), "{text:?}");
        assert!(text.lines().all(|line| !line.trim_start().starts_with("forged")), "{text}");
    }
}

/// Runs `args`, which must be refused with `expected` on standard error.
#[track_caller]
fn refused(dir: &Path, args: &[&str], expected: &str) {
    let ended = run(dir, args);
    clean(&ended);
    assert!(matches!(ended.code, Some(1 | 2)), "{args:?}: {ended:?}");
    assert!(ended.stderr.contains(expected), "{args:?}: {}\nlacks\n{expected}", ended.stderr);
}

#[test]
fn command_lines_are_quoted_as_text() {
    let dir = scratch();
    let (option, value) = (format!("--{HOSTILE}"), format!("--label={HOSTILE}"));
    let unexpected = format!("error: unexpected argument '--{SHOWN}' found\n\n");
    refused(dir.path(), &[&option], &unexpected);
    refused(dir.path(), &["bench", &option], &unexpected);
    refused(dir.path(), &[HOSTILE], &format!("error: unrecognized subcommand '{SHOWN}'\n\n"));
    refused(dir.path(), &["bench", &value], SHOWN);
    refused(dir.path(), &["monitor", "--interval", HOSTILE], &format!("'{SHOWN}' is not a duration"));
    refused(dir.path(), &["bench", HOSTILE], &format!("error: {SHOWN}: no such file"));
    refused(dir.path(), &["bench", "--suite", HOSTILE, "."], &format!("unknown suite '{SHOWN}'\nhint: "));
    refused(dir.path(), &["bench", &format!("sim:{HOSTILE}")], &format!("unknown volume type '{SHOWN}'\n"));
    refused(dir.path(), &["catalog", "show", HOSTILE], &format!("unknown volume type '{SHOWN}'"));
    refused(dir.path(), &["history", "show", "--history", HOSTILE], SHOWN);
    refused(dir.path(), &["ping", &option], &format!("unrecognized option '--{SHOWN}'\n"));
    refused(dir.path(), &["ping", HOSTILE], SHOWN);
    refused(dir.path(), &["fio", &option], &format!("fio: unrecognized option '--{SHOWN}'\n"));
    refused(dir.path(), &["fio", "--name=a", &format!("--rw={HOSTILE}")], &format!("parsing rw={SHOWN}: "));
    refused(dir.path(), &["fio", &format!("--cmdhelp={HOSTILE}")], &format!("No such command: {SHOWN}\n"));
    refused(dir.path(), &["fio", HOSTILE], &format!("unable to open '{SHOWN}' job file\n"));
}

#[test]
fn lines_of_files_are_quoted_as_text() {
    let dir = scratch();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("a.fio", "[a]\n\trw=re\x1b[31mad\n");
    let place = "  --> a.fio:2:5\n  2 |  rw=re\\x1b[31mad\n    |     ^\n";
    refused(dir.path(), &["fio", "a.fio"], "failed parsing rw=re\\x1b[31mad: valid values");
    refused(dir.path(), &["fio", "a.fio"], place);
    refused(dir.path(), &["simulate", "--job", "a.fio", "sim:aws-gp3"], place);
    write("b.fio", "[a]\n\x1bc=\x07\n");
    refused(
        dir.path(),
        &["fio", "b.fio"],
        "Bad option <\\x1bc=\\x07>\n  --> b.fio:2:1\n  2 | \\x1bc=\\x07\n    | ^\n",
    );
    write("s.toml", "title = 'a\x1b'\n");
    refused(dir.path(), &["bench", "--suite", "s.toml", "."], "\n1 | title = 'a\\x1b'\n");
    // An escape of TOML's makes an end of line in a name that its error quotes.
    write("t.toml", "title = 'a'\n\"x\\n\\u001bforged\" = 1\n");
    refused(
        dir.path(),
        &["bench", "--suite", "t.toml", "."],
        "\nunknown field `x\\x0a\\x1bforged`, expected",
    );
    write("c.toml", "[volume.\"x\\nforged\\u001b\"]\n");
    refused(dir.path(), &["catalog", "check", "c.toml"], "c.toml");
    write("e.toml", "[[expectation]]\nexpect = \"a\\nforged\\u001b\"\n");
    refused(dir.path(), &["bench", "--expect-file", "e.toml", "."], "a\\x0aforged\\x1b");
}

#[test]
fn fio_shows_names_as_text_and_keeps_them_in_json() {
    let dir = scratch();
    let named = |name: &str, form: &str| {
        let (name, description) = (format!("--name={name}"), format!("--description={name}"));
        let output = format!("--output-format={form}");
        run(dir.path(), &["fio", &name, &description, "--ioengine=null", "--size=1m", &output]).quietly()
    };
    let (ended, plain) = (named(HOSTILE, "normal"), named("plain", "normal"));
    clean(&ended);
    assert!(ended.stdout.starts_with(&format!("{SHOWN}: (g=0): rw=read, ")), "{}", ended.stdout);
    assert!(ended.stdout.contains(&format!("\n  Description  : [{SHOWN}]\n")), "{}", ended.stdout);
    // Lines of percentiles come and go with the latencies.
    let heads = |text: &str| text.lines().filter(|line| !line.starts_with(' ')).count();
    assert_eq!(heads(&ended.stdout), heads(&plain.stdout));
    let ended = named(HOSTILE, "json");
    clean(&ended);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(document["jobs"][0]["jobname"], HOSTILE);
    // What can be printed is printed as it is, even where it looks like an escape of ours.
    assert!(named(r"\x1b[31m", "normal").stdout.starts_with(r"\x1b[31m: (g=0): "));
}

#[test]
fn a_shell_reads_one_word_of_a_command_that_is_shown() {
    let dir = scratch();
    let ended =
        run(dir.path(), &["fio", "--showcmd", "--name=a\n; forged '\\\x1b", "--ioengine=null", "--size=1m"]);
    clean(&ended);
    assert_eq!(ended.stdout, "fio --name=$'a\\012; forged \\'\\\\\\033' --ioengine=null --size=1m\n");
}

#[test]
fn what_was_kept_is_shown_as_text_and_exported_as_it_is() {
    let dir = scratch();
    let history = |args: &[&str]| {
        let ended = run(dir.path(), &[&["history"], args, &["--history", "h.db"]].concat()).quietly();
        clean(&ended);
        ended.stdout
    };
    for label in ["--label=\x1b[m\nforged=\x07\nforged", "--label=plain=label"] {
        let bench =
            ["bench", "--quick", "--only=lat-read", "--history=h.db", label, "sim:custom?iops=700&size=1GiB"];
        clean(&run(dir.path(), &bench).quietly());
    }
    let list = history(&["list"]);
    // A head, and a row with its verdict for each run.
    assert_eq!(list.lines().count(), 5, "{list}");
    assert!(list.contains(r"\x1b[m\x0aforged=\x07\x0aforged"), "{list}");
    history(&["show", "1", "--show-fio"]);
    let rows: Value = serde_json::from_str(&history(&["list", "--json"])).unwrap();
    assert!(
        rows.as_array().unwrap().iter().any(|row| row["labels"]["\x1b[m\nforged"] == "\x07\nforged"),
        "{rows:#}"
    );
    let record: Value = serde_json::from_str(&history(&["export", "1"])).unwrap();
    assert_eq!(record["header"]["labels"]["\x1b[m\nforged"], "\x07\nforged");
}

#[test]
fn a_catalogue_and_a_job_file_of_ones_own_are_shown_as_text() {
    let dir = scratch();
    // A shipped entry, whose texts are changed.
    let shipped = include_str!("../../../catalog/data/aws.toml");
    let start = shipped.find("[volume.aws-gp3]").unwrap();
    let end = shipped[start + 1..].find("\n[volume.").map_or(shipped.len(), |end| start + 1 + end);
    let mut entry = shipped[start..end].to_owned();
    for field in ["provider", "type_name", "api_name", "source", "price_region", "price_source"] {
        let (plain, hostile) =
            (format!("\n{field} = \""), format!("\n{field} = \"\\u001b]0;x\\u0007\\nforged"));
        assert!(entry.contains(&plain), "{field}");
        entry = entry.replacen(&plain, &hostile, 1);
    }
    std::fs::write(dir.path().join("own.toml"), entry).unwrap();
    let job = format!("{HOSTILE}.fio");
    std::fs::write(dir.path().join(&job), "[a]\nrw=randread\nruntime=1\ntime_based\n").unwrap();
    for args in [
        &["catalog", "check", "own.toml"][..],
        &["catalog", "list", "--catalog=own.toml"],
        &["catalog", "show", "--catalog=own.toml", "aws-gp3"],
        &["catalog", "fit", "--catalog=own.toml", "--iops=3000", "--size=100GiB"],
        &["simulate", "--catalog=own.toml", "--for=10s", "--job", &job, "sim:aws-gp3?size=100GiB"],
    ] {
        for json in [&[][..], &["--json"]] {
            if json.is_empty() || args[1] != "check" {
                clean(&run(dir.path(), &[args, json].concat()).quietly());
            }
        }
    }
}
