//! What is compared: the runs of each source, and what is known of its volume beyond them.

use std::collections::BTreeMap;

use fathom_record::RunRecord;
use serde::Serialize;

/// Where the figures of a source come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// Measured.
    #[default]
    Measured,
    /// A model of the catalogue, on virtual time.
    Simulated,
    /// Figures that another program printed, or that somebody wrote down.
    Imported,
    /// Figures of an article.
    Published,
}

impl SourceKind {
    /// The word in JSON and text.
    pub const fn name(self) -> &'static str {
        match self {
            SourceKind::Measured => "measured",
            SourceKind::Simulated => "simulated",
            SourceKind::Imported => "imported",
            SourceKind::Published => "published",
        }
    }
}

/// One side of a comparison.
#[derive(Clone, Debug, Default)]
pub struct ComparedSource {
    /// As the user named it.
    pub name: String,
    /// Where its figures come from.
    pub kind: SourceKind,
    /// Its runs: repetitions of one another.
    pub runs: Vec<SourceRun>,
    /// What is known of its volume.
    pub volume: VolumeFacts,
}

/// A run of a source.
#[derive(Clone, Debug, Default)]
pub struct SourceRun {
    /// Where it was read from (`run 17`, `before.json`).
    pub origin: String,
    /// The run.
    pub record: RunRecord,
}

/// What is known of a volume, from the catalogue or from the user.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct VolumeFacts {
    /// Its type with its parameters (`aws-gp2?size=50GiB`).
    pub volume_type: Option<String>,
    /// Its size, bytes.
    pub size_bytes: Option<u64>,
    /// It outlives its instance; `None` where that is unknown.
    pub persistent: Option<bool>,
    /// `local` or `network`, where that is known.
    pub location: Option<&'static str>,
    /// `IOPS` or `bandwidth`: what limits the sustained rate of each test by the published rules, by the id of the test.
    pub limits: BTreeMap<String, &'static str>,
    /// What a month costs.
    pub price: Option<VolumePrice>,
}

/// A monthly price.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct VolumePrice {
    /// Per month, without what is not known.
    pub per_month: f64,
    /// The currency's code.
    pub currency: String,
    /// Who says so.
    pub source: String,
    /// When, where that is known.
    pub as_of: Option<String>,
    /// It was more than 12 months old when it was looked up.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_stale: bool,
    /// Parts of the bill that are not included: their price is unknown, or depends on use.
    pub excluded: Vec<String>,
}

/// Most sources of a comparison.
pub const MAX_SOURCES: usize = 50;

/// The letters that name the sources, in their order: A to Z, AA to AX.
pub const LABELS: [&str; MAX_SOURCES] = [
    "A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M", "N", "O", "P", "Q", "R", "S", "T", "U",
    "V", "W", "X", "Y", "Z", "AA", "AB", "AC", "AD", "AE", "AF", "AG", "AH", "AI", "AJ", "AK", "AL", "AM",
    "AN", "AO", "AP", "AQ", "AR", "AS", "AT", "AU", "AV", "AW", "AX",
];
