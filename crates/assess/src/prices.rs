//! Prices that the user imported: their file, and the price lists that they come from.
//!
//! The file is `fathom/prices.json` where programs keep their data. Every command that reads the catalogue reads it too.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use fathom_catalog::{Catalog, ImportedPrices, PriceList, PriceListChoice, read_price_list};
use fathom_sys::clock::unix_ms;
use fathom_sys::files::{CATALOGUE, Input, PathRefusal, TRACE, make_private_directories, replace_output};

use crate::AssessError;

/// The file of the prices.
const PRICES: Input = Input { noun: "price file", is_state: true, ..CATALOGUE };
/// A price list of a provider; that of all regions of AWS has several GB.
const PRICE_LIST: Input = Input { noun: "price list", ..TRACE };
/// Mode of the file: prices may be those of a contract.
const MODE: u32 = 0o600;

/// `$XDG_DATA_HOME/fathom/prices.json`, or the same under `~/.local/share`; `None` where `env` knows neither.
pub(crate) fn usual_path(env: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // Relative ones are to be ignored (XDG base directory specification).
    let absolute = |name| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")))?;
    Some(data.join("fathom/prices.json"))
}

/// The imported prices in the file at `path`; none where it does not exist.
pub(crate) fn prices_in(path: &Path) -> Result<ImportedPrices, AssessError> {
    let text = match PRICES.read_text(path) {
        Ok(text) => text,
        Err(error) if error.is_absence() => return Ok(ImportedPrices::default()),
        Err(error) => return Err(error.into()),
    };
    ImportedPrices::parse(&text).map_err(|problem| {
        let hint = "remove the file and import the price lists again";
        AssessError::usage(format!("{}: {problem}", path.display()), hint)
    })
}

/// The user's imported prices, and where they are.
#[derive(Clone, Debug)]
pub struct PriceStore {
    path: PathBuf,
    /// The prices.
    pub prices: ImportedPrices,
}

impl PriceStore {
    /// Reads the prices in the usual place.
    ///
    /// # Errors
    /// There is no such place, or the file cannot be read.
    pub fn open() -> Result<PriceStore, AssessError> {
        let path = usual_path(|name| std::env::var_os(name)).ok_or_else(|| {
            let hint = "set HOME or XDG_DATA_HOME to an absolute path";
            AssessError::usage("imported prices: there is no directory for them", hint)
        })?;
        let prices = prices_in(&path)?;
        Ok(PriceStore { path, prices })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the prices.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self) -> Result<(), AssessError> {
        let text = self.prices.text();
        let made = self.path.parent().map_or(Ok(()), make_private_directories);
        let written =
            made.and_then(|()| replace_output(&self.path, MODE, |out| out.write_all(text.as_bytes())));
        written.map_err(|error| {
            let hint = PathRefusal::of(&error)
                .map_or("make the directory writable, or set XDG_DATA_HOME", PathRefusal::hint);
            let cause = fathom_sys::io::describe(&error);
            AssessError::usage(format!("{}: cannot write it: {cause}", self.path.display()), hint)
        })
    }
}

/// Reads the price list at `path`; `region` chooses one of several, and `date` is that of a list without one, today by default.
///
/// # Errors
/// The file cannot be read, is no price list, or has no price of a volume in this region.
pub fn price_list(
    path: &Path,
    region: Option<&str>,
    date: Option<&str>,
    catalog: &Catalog,
) -> Result<PriceList, AssessError> {
    let (name, file) = PRICE_LIST.reader(path)?;
    let today = today();
    let choice = PriceListChoice { region, date: date.unwrap_or(&today), file: &name };
    read_price_list(file, choice, catalog).map_err(|error| {
        let line = if error.line == 0 { String::new() } else { format!(":{}", error.line) };
        AssessError::usage(format!("{name}{line}: {}", error.problem), error.hint)
    })
}

/// The date of today in UTC: `2026-11-23`.
pub fn today() -> String {
    day_of(|name| std::env::var_os(name))
}

/// The date on which the program runs, or that of SOURCE_DATE_EPOCH, which makes outputs reproducible (reproducible-builds.org).
pub(crate) fn day_of(env: impl Fn(&str) -> Option<OsString>) -> String {
    let named = env("SOURCE_DATE_EPOCH").and_then(|text| text.to_str()?.parse::<u64>().ok());
    date_of(named.filter(|seconds| *seconds < END).unwrap_or_else(|| unix_ms() / 1_000) / 86_400)
}

/// The year 10000, s: dates have four digits for the year.
const END: u64 = 253_402_300_800;

/// The date so many days after 1970-01-01, in the Gregorian calendar.
fn date_of(days: u64) -> String {
    // Years begin in March, so that leap days are their last; four centuries have 146,097 days.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        for (days, expected) in [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (19_723, "2024-01-01"),
            (20_780, "2026-11-23"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(date_of(days), expected, "{days}");
            let epoch = (days * 86_400 + 86_399).to_string();
            assert_eq!(day_of(|_| Some(OsString::from(&epoch))), expected);
        }
    }

    #[test]
    fn missing_files_are_no_prices_and_others_are_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("fathom/prices.json");
        assert!(prices_in(&path).unwrap().is_empty());
        let store = PriceStore { path: path.clone(), prices: ImportedPrices::default() };
        store.save().unwrap();
        assert!(prices_in(&path).unwrap().is_empty());
        std::fs::write(&path, "{").unwrap();
        assert!(prices_in(&path).unwrap_err().to_string().starts_with(&path.display().to_string()));
        let env = |name: &str| (name == "HOME").then(|| OsString::from("/home/me"));
        assert_eq!(usual_path(env), Some(PathBuf::from("/home/me/.local/share/fathom/prices.json")));
        assert_eq!(usual_path(|_| None), None);
    }
}
