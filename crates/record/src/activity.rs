//! Which command a record was made by.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de::Error};

/// The command that made a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Activity {
    /// `bench`, with a suite or a profile.
    #[default]
    Bench,
    /// `fio`.
    Fio,
    /// `identify`.
    Identify,
    /// `prepare`.
    Prepare,
    /// `surface`.
    Surface,
    /// `sweep`.
    Sweep,
}

impl Activity {
    /// All of them.
    const ALL: [Activity; 6] = [
        Activity::Bench,
        Activity::Fio,
        Activity::Identify,
        Activity::Prepare,
        Activity::Surface,
        Activity::Sweep,
    ];

    /// The word used in JSON, tables and commands.
    pub const fn name(self) -> &'static str {
        match self {
            Activity::Bench => "bench",
            Activity::Fio => "fio",
            Activity::Identify => "identify",
            Activity::Prepare => "prepare",
            Activity::Surface => "surface",
            Activity::Sweep => "sweep",
        }
    }

    /// The activity of this name.
    pub fn named(name: &str) -> Option<Activity> {
        Activity::ALL.into_iter().find(|activity| activity.name() == name)
    }
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Activity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Activity::named(&name).ok_or_else(|| {
            D::Error::custom(format_args!(
                "unknown activity '{name}': a newer version of fathom has probably written this record"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activities_are_read_by_the_names_they_are_written_with() {
        for activity in Activity::ALL {
            let text = serde_json::to_string(&activity).unwrap();
            assert_eq!(text, format!("\"{activity}\""));
            assert_eq!(serde_json::from_str::<Activity>(&text).unwrap(), activity);
        }
        let error = serde_json::from_str::<Activity>("\"ping\"").unwrap_err().to_string();
        assert!(error.starts_with("unknown activity 'ping': a newer version of fathom"), "{error}");
    }
}
