//! A job being said: options go in one by one and are checked against the tables and the engine's own rows.

use crate::engines::{self, EngineRow};
use crate::error::{JobFilePosition, OptionError};
use crate::job_options::JobOptions;
use crate::show;
use crate::table::{self, KnownOption};

/// What was said, in order: canonical names and the values as typed; a bare flag has an empty value.
pub type RawOptions = Vec<(String, String)>;

/// One job as said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Name of the section; `name=` may replace it in reports.
    pub name: String,
    /// What was said about this job alone.
    pub said: RawOptions,
    /// What had been said for all jobs before.
    pub inherited: RawOptions,
    /// All that was said about it, defaults of `[global]` included.
    pub options: JobOptions,
    /// The first job of a further job file, which waits for the files before.
    pub starts_file: bool,
}

impl Section {
    /// The job described by `pairs` of name (or alias) and value; flags take an empty value. Fails as a job file does.
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

    /// The fio command line that says the same, with what the job took over from `[global]`.
    pub fn command_line(&self) -> String {
        format!("fio {}", show::command_line(&self.in_full()))
    }

    /// What was said for the job, with what it took over.
    pub(crate) fn in_full(&self) -> RawOptions {
        let taken = self.inherited.iter().filter(|(name, _)| self.takes_over(name));
        taken.cloned().chain(show::named(self)).collect()
    }

    /// False for what the job put aside: targets where it names its own, private options of another engine; and for a name.
    fn takes_over(&self, name: &str) -> bool {
        let private = &self.options.engine_options;
        match name {
            // On a command line it would begin a job, and a job is called after its section there.
            "name" => false,
            "filename" => !self.said.iter().any(|(own, _)| own == name),
            _ => table::find(name).is_some() || private.iter().any(|(known, _)| known == name),
        }
    }
}

/// An option as written: its name, its value if it has one, and where it stands.
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
        OptionError::BadValue {
            option: option.to_owned(),
            value: self.value.unwrap_or_default().to_owned(),
            reason,
            place: self.place(),
        }
    }
}

/// A job that is still being said. No engines = they are not known here, and none is checked.
#[derive(Clone)]
pub(crate) struct Draft<'a> {
    engines: &'a [EngineRow],
    pub(crate) options: JobOptions,
    pub(crate) said: RawOptions,
    inherited: RawOptions,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(engines: &'a [EngineRow]) -> Self {
        Draft {
            engines,
            options: JobOptions::default(),
            said: RawOptions::new(),
            inherited: RawOptions::new(),
        }
    }

    /// A job for which this one's options are the defaults.
    pub(crate) fn child(&self) -> Self {
        let inherited = [self.inherited.as_slice(), self.said.as_slice()].concat();
        Draft { engines: self.engines, options: self.options.inherited(), said: RawOptions::new(), inherited }
    }

    /// About the bytes that a job takes over from it.
    pub(crate) fn bytes(&self) -> usize {
        const EACH: usize = 64;
        self.inherited.iter().chain(&self.said).map(|(name, value)| name.len() + value.len() + EACH).sum()
    }

    pub(crate) fn finish(self, name: &str) -> Section {
        let Draft { options, said, inherited, .. } = self;
        Section { name: name.to_owned(), said, inherited, options, starts_file: false }
    }

    /// The engine in force: the one said, or fio's default.
    pub(crate) fn engine(&self) -> Option<&'a EngineRow> {
        engines::find(self.engines, self.options.ioengine.as_deref().unwrap_or("psync"))
    }

    /// Applies the words of a section; the engine first, so that its private options may stand before it.
    pub(crate) fn apply_all(&mut self, words: &[Word<'_>]) -> Result<(), OptionError> {
        for first in [true, false] {
            for word in words.iter().filter(|word| (word.name == "ioengine") == first) {
                self.apply(word)?;
            }
        }
        Ok(())
    }

    /// Applies one word, by its full name or an alias.
    pub(crate) fn apply(&mut self, word: &Word<'_>) -> Result<(), OptionError> {
        match table::find(word.name) {
            Some(KnownOption::Supported(row)) => {
                let text = given(word, row.name, row.kind.value_is_optional())?;
                let before = self.options.ioengine.clone();
                (row.apply)(&mut self.options, text).map_err(|reason| word.bad_value(row.name, reason))?;
                if row.name == "ioengine" {
                    self.choose_engine(before, word)?;
                }
                self.said.push((row.name.to_owned(), word.value.unwrap_or_default().to_owned()));
                Ok(())
            }
            Some(KnownOption::Unsupported(row)) => {
                let text = given(word, row.name, row.flag)?;
                if !row.inert.contains(&text) {
                    return Err(OptionError::NotSupported {
                        option: row.name.to_owned(),
                        instead: row.instead.to_owned(),
                        place: word.place(),
                    });
                }
                self.said.push((row.name.to_owned(), word.value.unwrap_or_default().to_owned()));
                Ok(())
            }
            None => self.apply_private(word),
        }
    }

    /// Private options belong to one engine, so they go when another is chosen.
    fn choose_engine(&mut self, before: Option<String>, word: &Word<'_>) -> Result<(), OptionError> {
        let typed = self.options.ioengine.clone().unwrap_or_default();
        if self.engines.is_empty() {
            return Ok(());
        }
        let Some(engine) = engines::find(self.engines, &typed) else {
            let (reason, remedy) = engines::why_missing(self.engines, &typed);
            return Err(OptionError::Engine { engine: typed, reason, remedy, place: word.place() });
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
        let text = given(word, option.name, option.kind.value_is_optional())?;
        option.check(text).map_err(|reason| word.bad_value(option.name, reason))?;
        self.options.engine_options.retain(|(name, _)| name != option.name);
        self.options.engine_options.push((option.name.to_owned(), text.to_owned()));
        self.said.push((option.name.to_owned(), word.value.unwrap_or_default().to_owned()));
        Ok(())
    }

    /// Why a word is no option: it belongs to another engine, is fio's but not ours, or is nobody's.
    fn unknown(&self, word: &Word<'_>) -> OptionError {
        let engine = self.options.ioengine.as_deref().unwrap_or("psync");
        let owner = self.engines.iter().find(|row| engines::find_option(row, word.name).is_some());
        if let Some(owner) = owner {
            let remedy =
                format!("{} belongs to ioengine={}, and this job has {engine}", word.name, owner.name);
            return OptionError::BadOption {
                text: as_written(word),
                remedy: Some(remedy),
                place: word.place().map(at_the_name),
            };
        }
        if engines::FIO_ENGINE_OPTIONS.contains(&word.name) {
            return OptionError::NotSupported {
                option: word.name.to_owned(),
                instead: format!("omit it, or see --enghelp={engine} for what the engine takes"),
                place: word.place(),
            };
        }
        let private = self.engine().into_iter().flat_map(engines::option_names);
        let nearest = table::nearest(word.name, table::names().chain(private));
        let remedy = nearest.map(|name| format!("Did you mean {name}?"));
        OptionError::BadOption { text: as_written(word), remedy, place: word.place().map(at_the_name) }
    }
}

/// The text a row is applied to: a bare flag means 1, anything else needs a value.
fn given<'w>(word: &Word<'w>, option: &str, optional: bool) -> Result<&'w str, OptionError> {
    match word.value {
        Some(text) => Ok(text),
        None if optional => Ok("1"),
        None => Err(OptionError::MissingValue { option: option.to_owned(), place: word.place() }),
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

/// An option that is unknown is wrong in its name, not in its value.
fn at_the_name(mut place: Box<JobFilePosition>) -> Box<JobFilePosition> {
    place.column = place.text.chars().take_while(|c| c.is_whitespace()).count() + 1;
    place
}
