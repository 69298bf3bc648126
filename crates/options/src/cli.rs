//! fio's command line, in the manner of `getopt_long_only`, and the job files it names.
//!
//! `--opt=val`, `-opt=val`, `--opt val` and `-opt val` are the same; a flag takes a value only after `=`; names may be
//! shortened where that is unambiguous; `--name` opens a job. Reads nothing by itself: see [`ParseEnvironment`].

use std::io;
use std::path::{Path, PathBuf};

use fathom_model::RunPlan;

use crate::command::{self, CommandOptions, CommandRow, OptionArity};
use crate::engines::{self, EngineRow};
use crate::error::OptionError;
use crate::job_options::ReadWriteOption;
use crate::jobfile;
use crate::resolve::{self, MAX_WORKERS, PlanningHost};
use crate::section::{Draft, RawOptions, Section, Word};
use crate::table;

/// What the grammar needs from outside.
pub struct ParseEnvironment<'a> {
    /// The engines that can be named.
    pub engines: &'a [EngineRow],
    /// Reads a job file, `-` being standard input; may refuse one above [`crate::JOB_FILE_LIMIT`] as `FileTooLarge`.
    pub read_file: &'a dyn Fn(&Path) -> io::Result<Vec<u8>>,
    /// Looks an environment variable up, for `${NAME}` in job files.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The numbers behind `$ncpus`, `$pagesize` and `$mb_memory`.
    pub machine: MachineNumbers,
}

/// Numbers of the machine that job files can name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineNumbers {
    /// CPUs online.
    pub cpus: u64,
    /// Bytes per page.
    pub page_size: u64,
    /// Memory in MiB.
    pub memory_mib: u64,
}

/// A command line, understood.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Invocation {
    /// What was said about the invocation itself.
    pub command: CommandOptions,
    /// The job files, in order.
    pub files: Vec<PathBuf>,
    /// What was said for all jobs.
    pub global_said: RawOptions,
    /// The jobs, in order.
    pub sections: Vec<Section>,
    /// Notes for the user, in fio's words.
    pub messages: Vec<String>,
}

impl Invocation {
    /// What the jobs mean on this machine.
    pub fn plan(&self, host: &PlanningHost) -> Result<RunPlan, OptionError> {
        let plan = resolve::resolve(&self.sections, host)?;
        Ok(RunPlan { global_said: resolve::merged(&self.global_said), ..plan })
    }
}

/// Understands a command line without its program name. `--help` and the like end it at once, as in fio.
pub fn parse_command_line(args: &[String], env: &ParseEnvironment<'_>) -> Result<Invocation, OptionError> {
    let mut line = CommandLine {
        env,
        found: Invocation::default(),
        global: Draft::new(env.engines),
        current: None,
        jobs: 0,
        taken_over: 0,
    };
    if !line.words(args)? {
        return Ok(Invocation { command: line.found.command, ..Invocation::default() });
    }
    line.close_job();
    line.drop_unwanted();
    for index in 0..line.found.files.len() {
        line.job_file(index)?;
    }
    line.finish()
}

struct CommandLine<'a> {
    env: &'a ParseEnvironment<'a>,
    found: Invocation,
    global: Draft<'a>,
    current: Option<(String, Draft<'a>)>,
    /// Jobs so far, and bytes of what was said for all of them, counted for each.
    jobs: u32,
    taken_over: usize,
}

/// Most bytes that jobs take over from what was said for all of them, all jobs together.
const MOST_TAKEN_OVER: usize = 32 << 20;

/// What an option name stands for.
#[derive(Clone, Copy)]
enum Meaning {
    Command(&'static CommandRow),
    RefusedCommand(&'static str, OptionArity, &'static str),
    Job { name: &'static str, optional: bool },
}

impl<'a> CommandLine<'a> {
    /// Takes the words one by one; false where one of them ends the line (`--help`).
    fn words(&mut self, args: &[String]) -> Result<bool, OptionError> {
        let mut args = args.iter();
        let mut only_files = false;
        while let Some(arg) = args.next() {
            if only_files || arg == "-" || !arg.starts_with('-') {
                self.found.files.push(PathBuf::from(arg));
            } else if arg == "--" {
                only_files = true;
            } else if !self.option(arg, &mut args)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn option(&mut self, arg: &str, rest: &mut std::slice::Iter<'_, String>) -> Result<bool, OptionError> {
        let body = arg.strip_prefix("--").or_else(|| arg.strip_prefix('-')).unwrap_or(arg);
        let (name, inline) = match body.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (body, None),
        };
        let mut value = |takes: OptionArity, option: &str| match (takes, inline) {
            (OptionArity::Nothing, Some(_)) => {
                Err(OptionError::UnexpectedValue { option: option.to_owned() })
            }
            (OptionArity::Nothing, None) | (OptionArity::MaybeValue(_), None) => Ok(None),
            (_, Some(text)) => Ok(Some(text.to_owned())),
            (OptionArity::Value(_), None) => rest
                .next()
                .map(|word| Some(word.clone()))
                .ok_or_else(|| OptionError::MissingValue { option: format!("--{option}"), place: None }),
        };
        match self.meaning(name, arg)? {
            Meaning::Command(row) => {
                let text = value(row.takes, row.name)?;
                self.command(row, text.as_deref())?;
                Ok(!self.found.command.only_prints())
            }
            Meaning::RefusedCommand(name, takes, instead) => {
                value(takes, name)?;
                let option = format!("--{name}");
                Err(OptionError::NotSupported { option, instead: instead.to_owned(), place: None })
            }
            Meaning::Job { name, optional } => {
                let takes = if optional { OptionArity::MaybeValue("") } else { OptionArity::Value("") };
                let text = value(takes, name)?;
                self.job_option(name, text.as_deref())?;
                Ok(true)
            }
        }
    }

    fn command(&mut self, row: &CommandRow, text: Option<&str>) -> Result<(), OptionError> {
        (row.apply)(&mut self.found.command, text).map_err(|reason| OptionError::BadValue {
            option: row.name.to_owned(),
            value: text.unwrap_or_default().to_owned(),
            reason,
            place: None,
        })
    }

    fn job_option(&mut self, name: &str, value: Option<&str>) -> Result<(), OptionError> {
        let word = Word { name, value, place: None };
        if name != "name" {
            return self.draft().apply(&word);
        }
        self.close_job();
        let section = value.unwrap_or_default();
        if section.starts_with("global") {
            return Ok(());
        }
        self.count_job(self.global.bytes(), section)?;
        let mut draft = self.global.child();
        draft.apply(&word)?;
        self.current = Some((section.to_owned(), draft));
        Ok(())
    }

    /// Refuses a job too many before anything is copied for it.
    fn count_job(&mut self, takes_over: usize, name: &str) -> Result<(), OptionError> {
        self.jobs += 1;
        self.taken_over = self.taken_over.saturating_add(takes_over);
        let refused = |problem: String, remedy: &str| {
            Err(OptionError::Job { job: name.to_owned(), problem, remedy: remedy.to_owned() })
        };
        if self.jobs > MAX_WORKERS {
            return refused(
                format!("is one too many: maximum number of jobs ({MAX_WORKERS}) reached"),
                "describe fewer jobs, or clone one with numjobs=",
            );
        }
        if self.taken_over > MOST_TAKEN_OVER {
            let most = MOST_TAKEN_OVER >> 20;
            return refused(
                format!(
                    "takes over the options of [global], with the jobs before more than {most} MiB of them"
                ),
                "describe fewer jobs, or say less in [global]",
            );
        }
        Ok(())
    }

    fn draft(&mut self) -> &mut Draft<'a> {
        match &mut self.current {
            Some((_, draft)) => draft,
            None => &mut self.global,
        }
    }

    fn close_job(&mut self) {
        if let Some((name, draft)) = self.current.take() {
            self.found.sections.push(draft.finish(&name));
        }
    }

    /// What `name` stands for: an exact name, or the only one it begins.
    fn meaning(&mut self, name: &str, arg: &str) -> Result<Meaning, OptionError> {
        let engine = self.draft().engine();
        let private: Vec<&'static str> = match engine {
            Some(engine) => engines::option_names(engine).collect(),
            None => Vec::new(),
        };
        let exact = |name: &str| -> Option<Meaning> {
            if let Some(row) = command::ROWS.iter().find(|row| row.name == name) {
                return Some(Meaning::Command(row));
            }
            let refused = command::UNSUPPORTED.iter().find(|(refused, _, _)| *refused == name);
            if let Some((refused, takes, instead)) = refused {
                return Some(Meaning::RefusedCommand(refused, *takes, instead));
            }
            if let Some(known) = table::find(name) {
                return Some(Meaning::Job { name: known.name(), optional: known.value_is_optional() });
            }
            let option = engines::find_option(engine?, name)?;
            Some(Meaning::Job { name: option.name, optional: option.kind.value_is_optional() })
        };
        // One-letter forms that getopt_long_only gives fio.
        let name = match name {
            "v" => "version",
            "h" => "help",
            name => name,
        };
        if let Some(meaning) = exact(name) {
            return Ok(meaning);
        }
        let commands = command::ROWS.iter().filter(|row| !row.ours).map(|row| row.name);
        let refused = command::UNSUPPORTED.iter().map(|(name, _, _)| *name);
        let known: Vec<&str> = commands.chain(refused).chain(table::names()).chain(private).collect();
        let fits: Vec<&str> =
            known.iter().copied().filter(|known| !name.is_empty() && known.starts_with(name)).collect();
        match fits.as_slice() {
            [only] => exact(only).ok_or_else(|| self.unrecognized(arg, name, &known)),
            [] => Err(self.unrecognized(arg, name, &known)),
            _ => Err(OptionError::Ambiguous {
                word: arg.to_owned(),
                candidates: fits.iter().map(|name| (*name).to_owned()).collect(),
            }),
        }
    }

    /// Private options of an engine are known only behind its `--ioengine`, so that is said where it is the reason.
    fn unrecognized(&self, arg: &str, name: &str, known: &[&str]) -> OptionError {
        let has_option = |engine: &&EngineRow| engines::find_option(engine, name).is_some();
        if let Some(engine) = self.env.engines.iter().find(has_option) {
            let remedy = format!("--{name} must come after --ioengine={} of the same job", engine.name);
            return OptionError::Unrecognized { word: arg.to_owned(), remedy: Some(remedy) };
        }
        if engines::FIO_ENGINE_OPTIONS.contains(&name) {
            let instead = "see --enghelp=ENGINE for what an engine takes".to_owned();
            return OptionError::NotSupported { option: name.to_owned(), instead, place: None };
        }
        let nearest = table::nearest(name, known.iter().copied());
        let remedy = nearest.map(|name| format!("Did you mean {name}?"));
        OptionError::Unrecognized { word: arg.to_owned(), remedy }
    }

    /// Adds the jobs of a file. Its `[global]` holds for this file only; what the command line said holds for all.
    fn job_file(&mut self, index: usize) -> Result<(), OptionError> {
        let raw = jobfile::parse(&self.found.files[index], self.env)?;
        let mut global = self.global.child();
        let mut starts_file = index > 0;
        for section in &raw {
            let words: Vec<Word<'_>> = section
                .lines
                .iter()
                .map(|line| Word { name: &line.key, value: line.value.as_deref(), place: Some(&line.place) })
                .collect();
            if section.name.starts_with("global") {
                global.apply_all(&words)?;
                continue;
            }
            if self.wanted(&section.name) {
                self.count_job(global.bytes(), &section.name)?;
            }
            let mut draft = global.child();
            draft.apply_all(&words)?;
            if self.wanted(&section.name) {
                let starts_file = std::mem::take(&mut starts_file);
                self.found.sections.push(Section { starts_file, ..draft.finish(&section.name) });
            }
        }
        self.found.global_said.extend(global.said);
        Ok(())
    }

    /// `--section` may stand behind the jobs of the command line.
    fn drop_unwanted(&mut self) {
        let sections = std::mem::take(&mut self.found.sections);
        self.found.sections = sections.into_iter().filter(|section| self.wanted(&section.name)).collect();
    }

    fn wanted(&self, name: &str) -> bool {
        let sections = &self.found.command.sections;
        sections.is_empty() || sections.iter().any(|section| section == name)
    }

    fn finish(self) -> Result<Invocation, OptionError> {
        let mut found = self.found;
        found.global_said.splice(0..0, self.global.said);
        if found.sections.is_empty() {
            return Err(OptionError::NoJobs);
        }
        if found.command.readonly {
            found.sections.iter().try_for_each(only_reads)?;
        }
        found.messages = found.sections.iter().flat_map(|section| notes(section, self.env.engines)).collect();
        Ok(found)
    }
}

fn only_reads(section: &Section) -> Result<(), OptionError> {
    match section.options.rw {
        Some(ReadWriteOption { mix, .. }) if mix != fathom_model::plan::Mix::Read => Err(OptionError::Job {
            job: section.name.clone(),
            problem: "has write or trim bit set, but fio is in read-only mode".to_owned(),
            remedy: "leave out --readonly, or use rw=read or rw=randread".to_owned(),
        }),
        _ => Ok(()),
    }
}

/// What fio tells the user about a job that it runs all the same.
fn notes(section: &Section, engines: &[EngineRow]) -> Vec<String> {
    let options = &section.options;
    let mut notes = Vec::new();
    if options.time_based == Some(true) && options.runtime.unwrap_or_default().0 == 0 {
        notes.push("fio: time_based requires a runtime/timeout setting".to_owned());
    }
    let engine = engines::find(engines, resolve::engine_name(options));
    if options.iodepth.unwrap_or(1) > 1 && engine.is_some_and(|engine| engine.synchronous) {
        notes.push(
            "note: both iodepth >= 1 and synchronous I/O engine are selected, queue depth will be capped at 1"
                .to_owned(),
        );
    }
    notes
}

#[cfg(test)]
#[path = "cli_tests.rs"]
pub(crate) mod tests;
