//! A job under construction: options are added one by one and checked against the tables and the engine's rows.

use std::borrow::Cow;

use fathom_model::OptionValueKind;

use crate::engines::{self, EngineRow};
use crate::error::{JobFilePosition, OptionError};
use crate::job_options::{JobOptions, ReadWriteOption};
use crate::show;
use crate::table::{self, JobOption, KnownOption};
use crate::value;

/// Options in the order given: canonical names, values as typed; a bare flag has an empty value.
pub type RawOptions = Vec<(String, String)>;

/// The options of one job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Name of the section; `name=` may replace it in reports.
    pub name: String,
    /// Options given for this job alone.
    pub raw_options: RawOptions,
    /// Earlier options for all jobs.
    pub inherited: RawOptions,
    /// All its options, those of `[global]` included.
    pub options: JobOptions,
    /// The first job of a further job file, which waits for the files before.
    pub starts_file: bool,
}

impl Section {
    /// The job with the options in `pairs` of name (or alias) and value; flags take an empty value. Errors are those of
    /// a job file.
    pub fn from_pairs(
        name: &str,
        pairs: &[(&str, &str)],
        engines: &[EngineRow],
    ) -> Result<Section, OptionError> {
        let mut draft = Draft::new(engines);
        let mut words: Vec<Word<'_>> = Vec::new();
        for (name, value) in pairs {
            let value = Some(*value).filter(|value| !value.is_empty());
            words.push(Word { name, value, place: None });
        }
        draft.apply_all(&words)?;
        Ok(draft.finish(name))
    }

    /// The same job with further options, as [`Section::from_pairs`] takes them.
    ///
    /// # Errors
    /// Those of a job file.
    pub fn with_pairs(&self, pairs: &[(&str, &str)], engines: &[EngineRow]) -> Result<Section, OptionError> {
        let Section { name, raw_options, inherited, options, starts_file } = self.clone();
        let mut draft = Draft { engines, options, raw_options, inherited };
        let mut words: Vec<Word<'_>> = Vec::new();
        for (name, value) in pairs {
            words.push(Word { name, value: Some(*value).filter(|value| !value.is_empty()), place: None });
        }
        draft.apply_all(&words)?;
        Ok(Section { starts_file, ..draft.finish(&name) })
    }

    /// The equivalent fio command line, including the options inherited from `[global]`.
    pub fn command_line(&self) -> String {
        format!("fio {}", show::command_line(&self.all_options()))
    }

    /// The options of the job, including inherited ones.
    pub fn all_options(&self) -> RawOptions {
        let taken = self.inherited.iter().filter(|(name, _)| self.inherits(name));
        taken.cloned().chain(show::named(self)).collect()
    }

    /// True if the job inherits the option `name`. It does not inherit targets if it names its own, private options of
    /// another engine, and names.
    fn inherits(&self, name: &str) -> bool {
        let private = &self.options.engine_options;
        match name {
            // On a command line a name would start a job, and there a job has the name of its section.
            "name" => false,
            "filename" => !self.raw_options.iter().any(|(own, _)| own == name),
            _ => table::find(name).is_some() || private.iter().any(|(known, _)| known == name),
        }
    }
}

/// An option as written: its name, its value if any, and its position.
pub(crate) struct Word<'a> {
    pub(crate) name: &'a str,
    pub(crate) value: Option<&'a str>,
    pub(crate) place: Option<&'a JobFilePosition>,
}

impl Word<'_> {
    fn place(&self) -> Option<Box<JobFilePosition>> {
        self.place.map(|place| Box::new(place.clone()))
    }

    fn bad_value(&self, option: &str, reason: String) -> OptionError {
        OptionError::bad_value(option, self.value.unwrap_or_default(), &reason).at(self.place())
    }
}

/// A job under construction. Without engines, engine names are not checked.
#[derive(Clone)]
pub(crate) struct Draft<'a> {
    engines: &'a [EngineRow],
    pub(crate) options: JobOptions,
    pub(crate) raw_options: RawOptions,
    inherited: RawOptions,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(engines: &'a [EngineRow]) -> Self {
        Draft {
            engines,
            options: JobOptions::default(),
            raw_options: RawOptions::new(),
            inherited: RawOptions::new(),
        }
    }

    /// A new job that inherits this one's options.
    pub(crate) fn child(&self) -> Self {
        let inherited = [self.inherited.as_slice(), self.raw_options.as_slice()].concat();
        Draft {
            engines: self.engines,
            options: self.options.inherited(),
            raw_options: RawOptions::new(),
            inherited,
        }
    }

    /// Approximate bytes that a job inherits from it.
    pub(crate) fn bytes(&self) -> usize {
        const EACH: usize = 64;
        self.inherited
            .iter()
            .chain(&self.raw_options)
            .map(|(name, value)| name.len() + value.len() + EACH)
            .sum()
    }

    pub(crate) fn finish(self, name: &str) -> Section {
        let Draft { options, raw_options, inherited, .. } = self;
        Section { name: name.to_owned(), raw_options, inherited, options, starts_file: false }
    }

    /// The engine of the job: the one given, or fio's default.
    pub(crate) fn engine(&self) -> Option<&'a EngineRow> {
        engines::find(self.engines, self.options.ioengine.as_deref().unwrap_or("psync"))
    }

    /// Applies the words of a section; first those that give others their meaning: the base of sizes, and the engine,
    /// whose private options may precede it.
    pub(crate) fn apply_all(&mut self, words: &[Word<'_>]) -> Result<(), OptionError> {
        let mut sorted: Vec<&Word<'_>> = words.iter().collect();
        sorted.sort_by_key(|word| match word.name {
            "kb_base" => 0,
            "ioengine" => 1,
            _ => 2,
        });
        sorted.into_iter().try_for_each(|word| self.apply(word))
    }

    /// The value of `row` in the units of the default base.
    fn in_base<'t>(&self, row: &JobOption, text: &'t str) -> Cow<'t, str> {
        let is_size = matches!(row.kind, OptionValueKind::Size | OptionValueKind::SizeOrPercent);
        match self.options.plan.measure.figures.decimal && (is_size || row.name == "bssplit") {
            true => Cow::Owned(value::in_default_base(text)),
            false => Cow::Borrowed(text),
        }
    }

    /// Applies one word, by its full name or an alias.
    pub(crate) fn apply(&mut self, word: &Word<'_>) -> Result<(), OptionError> {
        match table::find(word.name) {
            Some(KnownOption::Supported(row)) => {
                let typed = given(word, row.name, row.kind)?;
                let text = self.in_base(row, typed);
                let before = self.options.ioengine.clone();
                row.apply(&mut self.options, &text).map_err(|reason| word.bad_value(row.name, reason))?;
                if row.name == "ioengine" {
                    self.choose_engine(before, word)?;
                }
                self.raw_options.push((row.name.to_owned(), word.value.unwrap_or_default().to_owned()));
                Ok(())
            }
            Some(KnownOption::Unsupported(row)) => {
                let kind = if row.flag { OptionValueKind::Flag } else { OptionValueKind::Text };
                let text = given(word, row.name, kind)?;
                if !row.inert.contains(&text) {
                    return Err(OptionError::not_supported(row.name, row.instead).at(word.place()));
                }
                self.raw_options.push((row.name.to_owned(), word.value.unwrap_or_default().to_owned()));
                Ok(())
            }
            None => self.apply_private(word),
        }
    }

    /// Private options belong to one engine, so they are dropped when another is chosen.
    fn choose_engine(&mut self, before: Option<String>, word: &Word<'_>) -> Result<(), OptionError> {
        let typed = self.options.ioengine.clone().unwrap_or_default();
        if self.engines.is_empty() {
            return Ok(());
        }
        let Some(engine) = engines::find(self.engines, &typed) else {
            let (reason, remedy) = engines::why_missing(self.engines, &typed);
            return Err(OptionError::engine(&typed, &reason, remedy).at(word.place()));
        };
        if before.as_deref() != Some(engine.name) {
            self.options.engine_options.clear();
        }
        self.options.ioengine = Some(engine.name.to_owned());
        Ok(())
    }

    fn apply_private(&mut self, word: &Word<'_>) -> Result<(), OptionError> {
        let Some(option) = self.engine().and_then(|engine| engines::find_option(engine, word.name)) else {
            return Err(self.unknown(word));
        };
        let text = given(word, option.name, option.kind)?;
        (option.check)(text).map_err(|reason| word.bad_value(option.name, reason))?;
        self.options.engine_options.retain(|(name, _)| name != option.name);
        self.options.engine_options.push((option.name.to_owned(), text.to_owned()));
        self.raw_options.push((option.name.to_owned(), word.value.unwrap_or_default().to_owned()));
        Ok(())
    }

    /// The error for an unknown word: it belongs to another engine, is an unsupported option of fio, or does not exist.
    fn unknown(&self, word: &Word<'_>) -> OptionError {
        let engine = self.options.ioengine.as_deref().unwrap_or("psync");
        let owner = self.engines.iter().find(|row| engines::find_option(row, word.name).is_some());
        if let Some(owner) = owner {
            let remedy =
                format!("{} belongs to ioengine={}, and this job has {engine}", word.name, owner.name);
            return OptionError::bad_option(&as_written(word), Some(remedy))
                .at(word.place().map(at_the_name));
        }
        if engines::FIO_ENGINE_OPTIONS.contains(&word.name) {
            return OptionError::not_supported(word.name, &engines::instead_of(engine)).at(word.place());
        }
        let private = self.engine().into_iter().flat_map(engines::option_names);
        let nearest = table::nearest(word.name, table::names().chain(private));
        let remedy = nearest.map(|name| format!("Did you mean {name}?"));
        OptionError::bad_option(&as_written(word), remedy).at(word.place().map(at_the_name))
    }
}

/// The value for a row: a bare flag means 1, a bare log has no name, and other options need a value.
fn given<'w>(word: &Word<'w>, option: &str, kind: OptionValueKind) -> Result<&'w str, OptionError> {
    match (word.value, kind) {
        (Some(text), _) => Ok(text),
        (None, OptionValueKind::Flag) => Ok("1"),
        (None, OptionValueKind::LogName) => Ok(""),
        (None, _) => Err(OptionError::missing_value(option).at(word.place())),
    }
}

fn as_written(word: &Word<'_>) -> String {
    match word.value {
        Some(value) => format!("{}={value}", word.name),
        None => word.name.to_owned(),
    }
}

/// Applies one pair outside any section, where no engines are known.
pub(crate) fn apply_pair(options: &mut JobOptions, name: &str, value: &str) -> Result<(), OptionError> {
    let mut draft = Draft { options: std::mem::take(options), ..Draft::new(&[]) };
    let value = Some(value).filter(|value| !value.is_empty());
    draft.apply(&Word { name, value, place: None })?;
    *options = draft.options;
    Ok(())
}

/// The position of the name, because an unknown option is wrong in its name, not its value.
fn at_the_name(mut place: Box<JobFilePosition>) -> Box<JobFilePosition> {
    place.column = place.text.chars().take_while(|c| c.is_whitespace()).count() + 1;
    place
}

/// Refuses a job that changes data or names, for `--readonly`.
pub(crate) fn only_reads(section: &Section) -> Result<(), OptionError> {
    let refused = |problem, remedy: &str| OptionError::job(&section.name, problem, remedy);
    let engine = section.options.ioengine.as_deref().unwrap_or_default();
    match section.options.rw {
        Some(ReadWriteOption { mix, .. }) if mix != fathom_model::plan::Mix::Read => Err(refused(
            "has write or trim bit set, but fio is in read-only mode",
            "omit --readonly, or use rw=read or rw=randread",
        )),
        _ if engines::changes_names(engine) => Err(refused(
            "has an engine that makes or removes files, but fio is in read-only mode",
            "omit --readonly, or use another engine",
        )),
        _ => Ok(()),
    }
}
