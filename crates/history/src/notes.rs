//! What the user says about stored runs: tags, by which they are found, and notes.

use crate::database::MORE;
use crate::error::ErrorKind;
use crate::{Error, History, RunId};

pub(crate) const ADD_TAG: &str = "INSERT INTO tags (run_id, tag) VALUES (?1, ?2) ON CONFLICT DO NOTHING";

/// Whether `text` can name runs: it is not blank, no number, and has no character with a meaning in the names of runs.
pub fn is_tag(text: &str) -> bool {
    let has_meaning = |letter: char| letter.is_control() || matches!(letter, ',' | '~' | ':');
    !text.trim().is_empty() && !text.contains(has_meaning) && text.parse::<RunId>().is_err()
}

impl History {
    /// Adds a tag to a run; several runs may have the same tag.
    ///
    /// # Errors
    /// Those of the database; [`ErrorKind::UnknownRun`]; [`ErrorKind::BadText`] for one that is not [`is_tag`].
    pub fn tag(&mut self, run: RunId, tag: &str) -> Result<(), Error> {
        if !is_tag(tag) {
            let hint = "use a word that is not a number, without , ~ and :";
            return Err(Error::new(ErrorKind::BadText, format!("cannot name a run `{tag}`"), hint));
        }
        self.write_run(run, "tag a run", |transaction| {
            transaction.execute(ADD_TAG, &[run.0.into(), tag.into()]).map(drop)
        })
    }

    /// Removes a tag from a run; returns whether the run had it.
    ///
    /// # Errors
    /// Those of the database; [`ErrorKind::UnknownRun`].
    pub fn untag(&mut self, run: RunId, tag: &str) -> Result<bool, Error> {
        self.write_run(run, "untag a run", |transaction| {
            let delete = "DELETE FROM tags WHERE run_id = ?1 AND tag = ?2";
            transaction.execute(delete, &[run.0.into(), tag.into()])
        })
        .map(|removed| removed > 0)
    }

    /// The tags of a run, sorted.
    ///
    /// # Errors
    /// Those of the database.
    pub fn tags(&self, run: RunId) -> Result<Vec<String>, Error> {
        let select = "SELECT tag FROM tags WHERE run_id = ?1 ORDER BY tag";
        self.texts_of(run, "read the tags of a run", select)
    }

    fn texts_of(&self, run: RunId, action: &'static str, select: &str) -> Result<Vec<String>, Error> {
        self.read(action, |transaction| {
            let mut texts = Vec::new();
            transaction.each(select, &[run.0.into()], |row| {
                texts.extend(row.text(0).map(str::to_owned));
                MORE
            })?;
            Ok(texts)
        })
    }

    /// Adds a note to a run, written at `unix_ms`.
    ///
    /// # Errors
    /// Those of the database; [`ErrorKind::UnknownRun`]; [`ErrorKind::BadText`] for one without a visible character.
    pub fn add_note(&mut self, run: RunId, text: &str, unix_ms: u64) -> Result<(), Error> {
        let text = text.trim();
        if text.is_empty() {
            let hint = "write what is to be remembered of the run";
            return Err(Error::new(ErrorKind::BadText, "the note is empty", hint));
        }
        let written = i64::try_from(unix_ms).unwrap_or(i64::MAX);
        self.write_run(run, "add a note", |transaction| {
            let insert = "INSERT INTO notes (run_id, written_unix_ms, text) VALUES (?1, ?2, ?3)";
            transaction.execute(insert, &[run.0.into(), written.into(), text.into()]).map(drop)
        })
    }

    /// Removes all notes of a run; returns their number.
    ///
    /// # Errors
    /// Those of the database; [`ErrorKind::UnknownRun`].
    pub fn remove_notes(&mut self, run: RunId) -> Result<usize, Error> {
        self.write_run(run, "remove notes", |transaction| {
            transaction.execute("DELETE FROM notes WHERE run_id = ?1", &[run.0.into()])
        })
    }

    /// The notes of a run, oldest first.
    ///
    /// # Errors
    /// Those of the database.
    pub fn notes(&self, run: RunId) -> Result<Vec<String>, Error> {
        let select = "SELECT text FROM notes WHERE run_id = ?1 ORDER BY rowid";
        self.texts_of(run, "read the notes of a run", select)
    }
}
