//! Why a record could not be read.

/// A record that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Not JSON, or a field of the wrong type.
    #[error("the record is not valid JSON of the expected form")]
    Malformed(#[source] serde_json::Error),
    /// A number is larger than any run can reach.
    #[error("the record has a number that cannot have been measured")]
    Implausible(#[source] serde_json::Error),
    /// A part lacks a field that every writer fills.
    #[error("the record is damaged: {place} has no '{field}'")]
    Damaged {
        /// The part (`tests[2]`).
        place: String,
        /// The name of the field.
        field: &'static str,
    },
    /// A JSON document, but not a run record.
    #[error("{}", not_a_record(found))]
    NotARecord {
        /// The `schema` it bears, empty where it has none.
        found: String,
    },
    /// Written before the format was released.
    #[error("this record has version {found}, which only development versions of fathom wrote")]
    Older {
        /// Its version.
        found: u32,
    },
    /// Written by a newer program.
    #[error("this record has version {found}, and this program reads versions up to {known}")]
    Newer {
        /// Its version.
        found: u32,
        /// The newest version this build reads.
        known: u32,
    },
}

impl RecordError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            RecordError::Malformed(_) | RecordError::Implausible(_) | RecordError::Damaged { .. } => {
                Some("was the file cut short, or edited?")
            }
            RecordError::NotARecord { .. } => Some("`fathom history export` writes run records"),
            RecordError::Older { .. } => Some("run the command again: its plan was stored in another form"),
            RecordError::Newer { .. } => Some("use the fathom version that wrote it, or a newer one"),
        }
    }
}

fn not_a_record(found: &str) -> String {
    if found.is_empty() {
        "this JSON document has no schema, so it is not a run record".to_owned()
    } else {
        format!("'{found}' is not the schema of a run record")
    }
}
