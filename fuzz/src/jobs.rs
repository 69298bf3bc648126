//! Checks of parsed jobs: a plan, its banner, and the equivalent command line.

use std::io;
use std::iter::Peekable;
use std::path::Path;
use std::str::Chars;
use std::sync::OnceLock;

use fathom_assess::engine_rows;
use fathom_model::RunPlan;
use fathom_options::{
    EngineRow, Invocation, MachineNumbers, OptionError, ParseEnvironment, PlanningHost, Section,
    command_help, engine_help, parse_command_line, show_command,
};

use crate::messages;

/// A machine, the same in every run.
const HOST: PlanningHost = PlanningHost { cpus: 4, entropy: 7 };
const MACHINE: MachineNumbers = MachineNumbers { cpus: 4, page_size: 4096, memory_mib: 1024 };

/// No-break blanks.
const WEB_PAGE_BLANKS: [char; 3] = ['\u{a0}', '\u{2007}', '\u{202f}'];

/// Whether `c` is a hyphen, a dash or a minus sign.
fn is_dash(c: char) -> bool {
    matches!(c, '-' | '\u{2010}'..='\u{2014}' | '\u{2212}')
}

fn engines() -> &'static [EngineRow] {
    static ROWS: OnceLock<Vec<EngineRow>> = OnceLock::new();
    ROWS.get_or_init(engine_rows)
}

/// Variables that job files find: a size, and one long enough that its repetition must be bounded.
fn variable(name: &str) -> Option<String> {
    match name {
        "SIZE" => Some("64k".to_owned()),
        "LONG" => Some("1".repeat(4096)),
        _ => None,
    }
}

/// Understands a command line whose job files are `read_file`'s, and follows it to the end.
pub(crate) fn check(args: &[String], read_file: &dyn Fn(&Path) -> io::Result<Vec<u8>>) {
    let environment =
        ParseEnvironment { engines: engines(), read_file, variable: &variable, machine: MACHINE };
    let Some(invocation) = sound(parse_command_line(args, &environment)) else { return };
    if invocation.command.only_prints() {
        return explain(&invocation);
    }
    let Some(plan) = sound(invocation.plan(&HOST)) else { return };
    fathom_report::fio::banner::render_plan(&plan, &mut fathom_report::TextWriter::new(&mut io::sink()))
        .expect("a sink takes everything");
    repeat(&invocation, &plan);
}

fn sound<T>(result: Result<T, OptionError>) -> Option<T> {
    result.inspect_err(|error| messages::check(error, error.hint().as_deref())).ok()
}

/// `--cmdhelp=…` and `--enghelp=…` print help, or report an unknown topic.
fn explain(invocation: &Invocation) {
    if let Some(topic) = &invocation.command.cmdhelp {
        let help = command_help(topic.as_deref());
        assert!(help.is_err() || help.is_ok_and(|text| !text.is_empty()));
    }
    if let Some(topic) = &invocation.command.enghelp {
        let help = engine_help(engines(), topic.as_deref(), true).unwrap_or_else(|refusal| refusal);
        assert!(!help.is_empty());
    }
}

/// The command line that is shown for jobs means the same jobs. `--parse-only` asks for none.
fn repeat(invocation: &Invocation, plan: &RunPlan) {
    if invocation.sections.is_empty() {
        return;
    }
    let text = show_command(invocation);
    // In one word of a command line such a blank separates two options; a job file and a word that is a value keep it.
    if text.split(WEB_PAGE_BLANKS).skip(1).any(|part| part.starts_with(is_dash)) {
        return;
    }
    let words = shell_words(&text);
    assert_eq!(words[0], "fio");
    let no_file = |_: &Path| -> io::Result<Vec<u8>> { panic!("{text}\nnames a job file") };
    let environment =
        ParseEnvironment { engines: engines(), read_file: &no_file, variable: &|_| None, machine: MACHINE };
    let mut again = match parse_command_line(&words[1..], &environment) {
        Ok(again) => again,
        Err(error) => panic!("{text}\nis shown, and refused: {error}"),
    };
    let names =
        |sections: &[Section]| sections.iter().map(|section| section.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&invocation.sections), names(&again.sections), "{text}");
    // The only option of the command that plans contain.
    again.command.aux_path.clone_from(&invocation.command.aux_path);
    let plan_again = again.plan(&HOST).expect("what was planned once");
    assert!(meaning(plan) == meaning(&plan_again), "{text}\nmeans something else:\n{plan:?}\n{plan_again:?}");
}

/// A plan without the words it was made from. The name that a job has in reports may differ from its section's, after which
/// its files are called; a command line has room for the latter alone.
fn meaning(plan: &RunPlan) -> RunPlan {
    let mut plan = plan.clone();
    plan.global_options.clear();
    for job in &mut plan.jobs {
        job.options.clear();
        job.name.clear();
    }
    plan
}

/// Splits a line into words as a POSIX shell does, for the quoting that fathom prints: `'…'`, backslashes, and `$'…'` with
/// octal escapes.
pub(crate) fn shell_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let (mut quoted, mut chars) = (false, line.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            '\\' if !quoted => word.get_or_insert_default().extend(chars.next()),
            '$' if !quoted && chars.next_if_eq(&'\'').is_some() => {
                word.get_or_insert_default().push_str(&unescaped(&mut chars));
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The text of a word in `$'…'`, up to its closing apostrophe.
fn unescaped(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut bytes = Vec::new();
    while let Some(c) = chars.next().filter(|&c| c != '\'') {
        if c != '\\' {
            bytes.extend(c.to_string().bytes());
            continue;
        }
        let digits: String = std::iter::from_fn(|| chars.next_if(|c| c.is_digit(8))).take(3).collect();
        match u8::from_str_radix(&digits, 8) {
            Ok(byte) => bytes.push(byte),
            Err(_) => bytes.extend(chars.next().into_iter().flat_map(|c| c.to_string().into_bytes())),
        }
    }
    String::from_utf8(bytes).expect("only whole characters are escaped")
}
