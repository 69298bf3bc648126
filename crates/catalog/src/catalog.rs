//! The built-in entries, and those of a user's file.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use thiserror::Error;

use crate::check::problem;
use crate::entry::CatalogEntry;
use crate::imported_prices::ImportedPrices;
use crate::misread;
use crate::target::CUSTOM;
use crate::wire::File;

/// The built-in files: name and text.
pub(crate) const FILES: &[(&str, &str)] = &[
    ("alibaba.toml", include_str!("../data/alibaba.toml")),
    ("aws.toml", include_str!("../data/aws.toml")),
    ("azure.toml", include_str!("../data/azure.toml")),
    ("baidu.toml", include_str!("../data/baidu.toml")),
    ("ctyun.toml", include_str!("../data/ctyun.toml")),
    ("digitalocean.toml", include_str!("../data/digitalocean.toml")),
    ("gcp.toml", include_str!("../data/gcp.toml")),
    ("huawei.toml", include_str!("../data/huawei.toml")),
    ("ibm.toml", include_str!("../data/ibm.toml")),
    ("oci.toml", include_str!("../data/oci.toml")),
    ("otc.toml", include_str!("../data/otc.toml")),
    ("others.toml", include_str!("../data/others.toml")),
    ("qingcloud.toml", include_str!("../data/qingcloud.toml")),
    ("tencent.toml", include_str!("../data/tencent.toml")),
    ("yandex.toml", include_str!("../data/yandex.toml")),
];

/// Most ids suggested for an unknown one.
const MAX_NEAR: usize = 4;
/// Longest word that is compared with the ids; longer ones cannot be misspelt ids, and take too long.
const LONGEST_COMPARED: usize = 256;

/// Volume types by their ids.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalog {
    entries: BTreeMap<String, CatalogEntry>,
}

/// An invalid catalogue file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}:{line}: {reason}")]
pub struct CatalogError {
    /// Its name.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The field, if the error concerns one.
    pub field: Option<String>,
    /// The reason, with the entry and the field.
    pub reason: String,
}

impl CatalogError {
    /// The remedy.
    pub fn hint(&self) -> Option<&str> {
        Some("`fathom catalog show ID` shows the fields of a built-in entry")
    }
}

impl Catalog {
    /// The built-in entries, parsed once.
    pub fn shipped() -> &'static Catalog {
        static SHIPPED: OnceLock<Catalog> = OnceLock::new();
        SHIPPED.get_or_init(|| {
            // A test checks all of them.
            let parsed = FILES.iter().filter_map(|(file, text)| Catalog::read(file, text).ok());
            parsed.fold(Catalog::default(), Catalog::with)
        })
    }

    /// Parses a file; one invalid entry refuses the whole file.
    pub fn parse(file: &str, text: &str) -> Result<Catalog, CatalogError> {
        let catalog = Catalog::read(file, text)?;
        let raw: toml::Table = toml::from_str(text).unwrap_or_default();
        let none = toml::Table::new();
        for entry in catalog.entries() {
            let id = entry.id();
            let table = raw.get("volume").and_then(|all| all.get(id)?.as_table()).unwrap_or(&none);
            let (field, reason) = match (unnameable(id), problem(entry, table)) {
                (None, None) => continue,
                (Some(reason), _) => (None, reason),
                (None, Some((field, reason))) => (Some(field), format!("{field} {reason}")),
            };
            return Err(CatalogError {
                file: file.to_owned(),
                line: line_of(text, id, field.unwrap_or_default()),
                field: field.map(str::to_owned),
                reason: format!("{id}: {reason}"),
            });
        }
        Ok(catalog)
    }

    fn read(file: &str, text: &str) -> Result<Catalog, CatalogError> {
        let parsed: File = toml::from_str(text).map_err(|error| {
            misread::refusal(file, text, error.message(), error.span().map_or(0, |span| span.start))
        })?;
        let entries = parsed.volume.into_iter().map(|(id, wire)| (id.clone(), CatalogEntry::new(id, wire)));
        Ok(Catalog { entries: entries.collect() })
    }

    /// The union; for an id in both, the entry of `other` applies.
    pub fn with(mut self, other: Catalog) -> Catalog {
        self.entries.extend(other.entries);
        self
    }

    /// The same with imported prices, which take precedence.
    pub fn with_prices(mut self, prices: &ImportedPrices) -> Catalog {
        for (id, price) in prices.iter() {
            if let Some(entry) = self.entries.get_mut(id) {
                entry.imported_price = Some(price.clone());
            }
        }
        self
    }

    /// The same on a day (`2026-11-23`): prices that are more than 12 months old by then are marked.
    pub fn on_day(mut self, today: &str) -> Catalog {
        let today: Arc<str> = today.into();
        self.entries.values_mut().for_each(|entry| entry.today = Some(Arc::clone(&today)));
        self
    }

    /// The entry of that id.
    pub fn get(&self, id: &str) -> Option<&CatalogEntry> {
        self.entries.get(id)
    }

    /// Suggestions for the unknown id `word`, the closest first: ids that contain it, or else ids with a similar
    /// spelling.
    pub fn nearest(&self, word: &str) -> Vec<&str> {
        if word.len() > LONGEST_COMPARED {
            return Vec::new();
        }
        let word = word.to_ascii_lowercase();
        let limit = word.chars().count().div_ceil(3).min(4);
        let distance = |id: &str| strsim::osa_distance(&word, id);
        let mut near: Vec<&str> = self.entries.keys().map(String::as_str).collect();
        let parts = near.iter().filter(|id| word.len() > 1 && id.contains(&word)).count();
        let least = near.iter().map(|id| distance(id)).min().unwrap_or(0);
        near.retain(|id| if parts > 0 { id.contains(&word) } else { distance(id) <= limit.min(least + 1) });
        near.sort_by_key(|id| (distance(id), *id));
        near.truncate(MAX_NEAR);
        near
    }

    /// All entries in the order of their ids.
    pub fn entries(&self) -> impl Iterator<Item = &CatalogEntry> {
        self.entries.values()
    }
}

/// The reason why no command can name a type with this id, if any.
fn unnameable(id: &str) -> Option<String> {
    let is_fit = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '_');
    match id {
        CUSTOM => Some(format!("sim:{CUSTOM} is reserved for custom limits: use another id")),
        id if id.is_empty() || !id.chars().all(is_fit) => {
            Some("an id consists of letters, digits, '-' and '_'".to_owned())
        }
        _ => None,
    }
}

/// The line of `field` in an entry, or the first line of the entry.
fn line_of(text: &str, id: &str, field: &str) -> usize {
    let mut lines = text.lines().enumerate();
    let is_header = |line: &str| {
        let name = line.trim().strip_prefix("[volume.").and_then(|rest| rest.split_once(']'));
        name.is_some_and(|(name, _)| name.trim_matches(['"', '\'']) == id)
    };
    let Some((header, _)) = lines.find(|(_, line)| is_header(line)) else { return 1 };
    let body = lines.take_while(|(_, line)| !line.trim_start().starts_with('['));
    let names = |line: &str| line.split_once('=').is_some_and(|(name, _)| name.trim() == field);
    body.into_iter().find(|(_, line)| names(line)).map_or(header, |(index, _)| index) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = include_str!("../tests/mine.toml");

    #[test]
    fn all_built_in_files_are_valid() {
        for (file, text) in FILES {
            if let Err(error) = Catalog::parse(file, text) {
                panic!("{error}");
            }
        }
        assert_eq!(Catalog::shipped().entries().count(), 126);
    }

    #[test]
    fn user_entries_extend_or_replace_built_in_ones() {
        let mine = Catalog::parse("mine.toml", GOOD).unwrap();
        let both = Catalog::shipped().clone().with(mine);
        assert_eq!(both.entries().count(), 127);
        let own = Catalog::parse("mine.toml", &GOOD.replace("volume.mine", "volume.aws-gp3")).unwrap();
        let both = Catalog::shipped().clone().with(own);
        assert_eq!(both.get("aws-gp3").map(CatalogEntry::provider), Some("Me"));
    }

    #[test]
    fn misspelt_ids_get_suggestions() {
        let check = |word: &str, expected: &[&str]| {
            assert_eq!(Catalog::shipped().nearest(word), expected, "{word}");
        };
        check("aws-gp9", &["aws-gp2", "aws-gp3"]);
        check("AWS-IO1", &["aws-io1", "aws-io1-2012", "aws-io1-2018"]);
        check("gp2", &["aws-gp2", "aws-gp2-2016", "aws-gp2-2018-12"]);
        check("aws-pg2", &["aws-gp2", "aws-gp3"]);
        check("nothing-like-it", &[]);
        check("", &[]);
        // The comparison of this one would take minutes.
        check(&"a".repeat(1 << 22), &[]);
    }

    /// Checks the error after one line of the file is replaced.
    fn check(from: &str, to: &str, expected: &str) {
        assert!(GOOD.contains(from), "{from}");
        let error = Catalog::parse("mine.toml", &GOOD.replace(from, to)).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with(expected), "{text}\ninstead of\n{expected}");
    }

    #[test]
    fn invalid_files_are_refused_by_line_and_field() {
        check("iops_max = 5000", "iops_max = -1", "mine.toml:12: mine: iops_max -1 is below 0");
        check("iops_max = 5000", "iops_max = nan", "mine.toml:12: mine: iops_max NaN is not a number");
        let unknown = "mine.toml:12: mine: unknown field iops_mx; did you mean iops_max?";
        check("iops_max = 5000", "iops_mx = 5000", unknown);
        check("iops_max = 5000", "rotations = 5000", "mine.toml:12: mine: unknown field rotations");
        let text = "mine.toml:12: mine: iops_max: invalid type: string \"many\", expected a number";
        check("iops_max = 5000", "iops_max = \"many\"", text);
        check("\"fixed\"", "\"magic\"", "mine.toml:11: mine: iops_model: unknown variant `magic`");
        check("as_of = \"2026-11\"\n", "", "mine.toml:2: mine: as_of is missing");
        check(
            "volume.mine",
            "volume.custom",
            "mine.toml:2: custom: sim:custom is reserved for custom limits",
        );
        check("volume.mine", "volume.\"my box\"", "mine.toml:2: my box: an id consists of letters");
        let currency = "burst_model = \"none\"\nprice_per_gib_month = 0.1\nprice_currency = \"euro\"";
        check(
            "burst_model = \"none\"",
            currency,
            "mine.toml:17: mine: price_currency \"euro\" is not a currency",
        );
        check("iops_max = 5000", "iops_max = ", "mine.toml:12: mine: ");
        check("iops_max = 5000\n", "", "mine.toml:2: mine: iops_max is missing");
        check("iops_max = 5000", "iops_max = 0", "mine.toml:12: mine: iops_max is 0");
        let empty = "source = \"\"";
        check("source = \"https://example.com/volumes\"", empty, "mine.toml:7: mine: source is empty");
        check("as_of = \"2026-11\"", "as_of = \"lately\"", "mine.toml:8: mine: as_of");
        check("throughput_unit = \"MB/s\"\n", "", "mine.toml:2: mine: throughput_unit is missing");
        check("media = \"ssd\"", "media = \"glass\"", "mine.toml:5: mine: media");
        check(
            "burst_model = \"none\"",
            "burst_model = \"timed_window\"",
            "mine.toml:2: mine: burst_iops is missing",
        );
        let slow = "burst_model = \"timed_window\"\nburst_iops = 4000\nburst_duration_s = 60";
        check("burst_model = \"none\"", slow, "mine.toml:16: mine: burst_iops");
        let priced = "burst_model = \"none\"\nprice_per_gib_month = 0.1";
        check("burst_model = \"none\"", priced, "mine.toml:2: mine: price_currency is missing");
        let remembered = "burst_model = \"none\"\nprice_per_gib_month = 0.1\nprice_currency = \"USD\"\nprice_confidence = \"from_memory\"";
        check("burst_model = \"none\"", remembered, "mine.toml:18: mine: price_confidence");
    }
}
