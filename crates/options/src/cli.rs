//! fio's command line, parsed like `getopt_long_only`, and the job files that it names.
//!
//! `--opt=val`, `-opt=val`, `--opt val` and `-opt val` are equivalent; a flag takes a value only after `=`; names may
//! be shortened if unambiguous; `--name` starts a job. Files and variables are read through [`ParseEnvironment`].

use std::io;
use std::path::{Path, PathBuf};

use fathom_model::RunPlan;

use crate::command::{self, CommandOptions, CommandRow, OptionArity};
use crate::engines::{self, EngineRow};
use crate::error::OptionError;
use crate::jobfile;
use crate::pasted;
use crate::resolve::{self, MAX_WORKERS, PlanningHost};
use crate::section::{Draft, RawOptions, Section, Word, only_reads};
use crate::table;

/// Inputs of the grammar besides the command line.
pub struct ParseEnvironment<'a> {
    /// The available engines.
    pub engines: &'a [EngineRow],
    /// Reads a job file; `-` is standard input. It may refuse a file above [`crate::JOB_FILE_LIMIT`] with
    /// `FileTooLarge`.
    pub read_file: &'a dyn Fn(&Path) -> io::Result<Vec<u8>>,
    /// Returns an environment variable, for `${NAME}` in job files.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The values of `$ncpus`, `$pagesize` and `$mb_memory`.
    pub machine: MachineNumbers,
}

/// Properties of the machine that job files can use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineNumbers {
    /// CPUs online.
    pub cpus: u64,
    /// Bytes per page.
    pub page_size: u64,
    /// Memory in MiB.
    pub memory_mib: u64,
}

/// A parsed command line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Invocation {
    /// Options of the command itself.
    pub command: CommandOptions,
    /// The job files, in order.
    pub files: Vec<PathBuf>,
    /// Options for all jobs.
    pub global_options: RawOptions,
    /// The jobs, in order.
    pub sections: Vec<Section>,
    /// Notes for the user, in fio's words.
    pub messages: Vec<String>,
}

impl Invocation {
    /// The plan of the jobs on this machine.
    pub fn plan(&self, host: &PlanningHost) -> Result<RunPlan, OptionError> {
        let mut plan = resolve::resolve(&self.sections, host)?;
        if let Some(directory) = &self.command.aux_path {
            for verify in plan.jobs.iter_mut().filter_map(|job| job.io.verify.as_mut()) {
                verify.state_directory = Some(directory.clone());
            }
        }
        Ok(crate::rate::coalesced(RunPlan { global_options: resolve::merged(&self.global_options), ..plan }))
    }
}

/// Parses a command line without its program name. `--help` and similar options end the parsing, as in fio.
pub fn parse_command_line(args: &[String], env: &ParseEnvironment<'_>) -> Result<Invocation, OptionError> {
    let (args, messages) = pasted::meant(args, env.engines);
    let mut line = CommandLine {
        env,
        found: Invocation { messages, ..Invocation::default() },
        global: Draft::new(env.engines),
        global_names: Vec::new(),
        current: None,
        jobs: 0,
        inherited_bytes: 0,
        directory: None,
    };
    if !line.words(&args)? {
        return Ok(Invocation { command: line.found.command, ..Invocation::default() });
    }
    line.close_job();
    for index in 0..line.found.files.len() {
        line.job_file(index)?;
    }
    line.finish()
}

struct CommandLine<'a> {
    env: &'a ParseEnvironment<'a>,
    found: Invocation,
    global: Draft<'a>,
    /// Names given to the options for all jobs, with their places among these: fio reports them as options.
    global_names: Vec<(usize, String)>,
    current: Option<(String, Draft<'a>)>,
    /// Jobs so far, and bytes of the options that they inherited.
    jobs: u32,
    inherited_bytes: usize,
    /// Why the first of the job files that is a directory cannot be read.
    directory: Option<OptionError>,
}

/// Limit of the bytes of options that all jobs together inherit from the options for all jobs.
const MAX_INHERITED_BYTES: usize = 32 << 20;

/// The meaning of an option name.
#[derive(Clone, Copy)]
enum Meaning {
    Command(&'static CommandRow),
    RefusedCommand(&'static str, OptionArity, &'static str),
    Job { name: &'static str, optional: bool },
}

impl<'a> CommandLine<'a> {
    /// Parses the words one by one; false if one of them ends the parsing (`--help`).
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
            (OptionArity::Nothing, Some(_)) => Err(OptionError::unexpected_value(option)),
            (OptionArity::Nothing, None) | (OptionArity::MaybeValue(_), None) => Ok(None),
            (_, Some(text)) => Ok(Some(text.to_owned())),
            (OptionArity::Value(_), None) => rest
                .next()
                .map(|word| Some(word.clone()))
                .ok_or_else(|| OptionError::missing_value(&format!("--{option}"))),
        };
        match self.meaning(name, arg)? {
            Meaning::Command(row) => {
                let text = value(row.takes(), row.name)?;
                row.apply(&mut self.found.command, text.as_deref())?;
                Ok(!self.found.command.only_prints())
            }
            Meaning::RefusedCommand(name, takes, instead) => {
                value(takes, name)?;
                Err(OptionError::not_supported(&format!("--{name}"), instead))
            }
            Meaning::Job { name, optional } => {
                let takes = if optional { OptionArity::MaybeValue("") } else { OptionArity::Value("") };
                let text = value(takes, name)?;
                self.job_option(name, text.as_deref())?;
                Ok(true)
            }
        }
    }

    fn job_option(&mut self, name: &str, value: Option<&str>) -> Result<(), OptionError> {
        let word = Word { name, value, place: None };
        if name != "name" {
            return self.draft().apply(&word);
        }
        self.close_job();
        let section = value.unwrap_or_default();
        if section.starts_with("global") {
            let place = self.global.raw_options.len() + self.global_names.len();
            self.global_names.push((place, section.to_owned()));
            return Ok(());
        }
        self.count_job(self.global.bytes(), section)?;
        let mut draft = self.global.child();
        draft.apply(&word)?;
        self.current = Some((section.to_owned(), draft));
        Ok(())
    }

    /// Refuses an excess job before its options are copied.
    fn count_job(&mut self, inherited_bytes: usize, name: &str) -> Result<(), OptionError> {
        self.jobs += 1;
        self.inherited_bytes = self.inherited_bytes.saturating_add(inherited_bytes);
        let refused = |problem: String, remedy: &str| Err(OptionError::job(name, &problem, remedy));
        if self.jobs > MAX_WORKERS {
            return refused(
                format!("exceeds the limit: maximum number of jobs ({MAX_WORKERS}) reached"),
                "define fewer jobs, or clone one with numjobs=",
            );
        }
        if self.inherited_bytes > MAX_INHERITED_BYTES {
            let most = MAX_INHERITED_BYTES >> 20;
            return refused(
                format!("inherits the options of [global]: more than {most} MiB in all jobs so far"),
                "define fewer jobs, or fewer options in [global]",
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

    /// The meaning of `name`: an exact name, or an unambiguous prefix.
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
            _ => Err(OptionError::ambiguous(arg, &fits)),
        }
    }

    /// Private options of an engine are known only after its `--ioengine`; the error says so if that is the cause.
    fn unrecognized(&self, arg: &str, name: &str, known: &[&str]) -> OptionError {
        let has_option = |engine: &&EngineRow| engines::find_option(engine, name).is_some();
        if let Some(engine) = self.env.engines.iter().find(has_option) {
            let remedy = format!("--{name} must come after --ioengine={} of the same job", engine.name);
            return OptionError::unrecognized(arg, Some(remedy));
        }
        if engines::FIO_ENGINE_OPTIONS.contains(&name) {
            return OptionError::not_supported(name, &engines::instead_of("ENGINE"));
        }
        let nearest = table::nearest(name, known.iter().copied());
        let remedy = nearest.map(|name| format!("Did you mean {name}?"));
        OptionError::unrecognized(arg, remedy)
    }

    /// Adds the jobs of a file. Its `[global]` applies to this file only; options of the command line apply to all.
    fn job_file(&mut self, index: usize) -> Result<(), OptionError> {
        let raw = match jobfile::parse(&self.found.files[index], self.env) {
            // As in fio, a directory among the job files has no jobs; one alone is a mistake.
            Err(error) => {
                let Some(file) = error.directory() else { return Err(error) };
                self.found.messages.push(format!("note: {file} is a directory and has no jobs"));
                self.directory.get_or_insert(error);
                return Ok(());
            }
            Ok(parsed) => parsed,
        };
        let mut global = self.global.child();
        let mut starts_file = index > 0;
        self.found.messages.extend(raw.notes);
        for section in &raw.sections {
            let words: Vec<Word<'_>> = section
                .lines
                .iter()
                .map(|line| Word { name: &line.key, value: line.value.as_deref(), place: Some(&line.place) })
                .collect();
            if section.name.starts_with("global") {
                global.apply_all(&words)?;
                continue;
            }
            if self.is_selected(&section.name) {
                self.count_job(global.bytes(), &section.name)?;
            }
            let mut draft = global.child();
            draft.apply_all(&words)?;
            if self.is_selected(&section.name) {
                let starts_file = std::mem::take(&mut starts_file);
                self.found.sections.push(Section { starts_file, ..draft.finish(&section.name) });
            }
        }
        self.found.global_options.extend(global.raw_options);
        Ok(())
    }

    /// As in fio, `--section` selects among the jobs of job files alone.
    fn is_selected(&self, name: &str) -> bool {
        let sections = &self.found.command.sections;
        sections.is_empty() || sections.iter().any(|section| section == name)
    }

    fn finish(self) -> Result<Invocation, OptionError> {
        let mut found = self.found;
        let mut global_options = self.global.raw_options;
        for (place, name) in self.global_names {
            global_options.insert(place, ("name".to_owned(), name));
        }
        found.global_options.splice(0..0, global_options);
        // As in fio, options alone can be checked.
        if found.sections.is_empty() && !found.command.parse_only {
            return Err(self.directory.unwrap_or_else(OptionError::no_jobs));
        }
        if found.command.readonly {
            found.sections.iter().try_for_each(only_reads)?;
            // As in fio, a replay leaves out what is not read.
            for section in &mut found.sections {
                let [_, write, trim, _] = &mut section.options.replay.skip;
                (*write, *trim) = (true, true);
            }
        }
        let of_jobs = found.sections.iter().flat_map(|section| notes(section, self.env.engines));
        found.messages.extend(of_jobs);
        Ok(found)
    }
}

/// fio's notes about a job that it runs nevertheless.
fn notes(section: &Section, engines: &[EngineRow]) -> Vec<String> {
    let options = &section.options;
    let mut notes = Vec::new();
    if options.plan.time.time_based && options.plan.time.runtime.is_none() {
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
