//! Comparisons of volumes, like for like: pure functions of the records of each, and of what is known of their volumes.
//!
//! Rows match by test, else by what was done; all differences in conditions are listed; tests that did different work get no
//! verdict.

pub mod cell;
mod conclusion;
pub mod contradictions;
pub mod curves;
pub mod differences;
pub mod explain;
pub mod figure;
pub mod gate;
pub mod interleaved;
pub mod matrix;
pub mod pairs;
pub mod ranking;
pub mod ratio;
pub mod rows;
pub mod source;
pub mod surfaces;
pub mod volumes;
pub mod work;

use serde::Serialize;

pub use conclusion::{ComparisonVerdict, USES};
use conclusion::{Evidence, MAX_SENTENCES, verdict};
use contradictions::{Contradiction, contradictions};
use curves::{Curves, curves};
use differences::{Difference, differences};
use explain::{CellExplanation, explain};
use figure::Deltas;
use gate::{FailCondition, GateResult};
use interleaved::{Interleaved, interleaved};
use matrix::{MatrixTest, matrix};
use pairs::{Pair, pairs};
use ranking::{Ranked, ranking};
use rows::matched_rows;
use source::ComparedSource;
pub use surfaces::is_place;
use surfaces::{SurfaceSummary, surface_sentence, surface_summaries};
use volumes::{UseRow, VolumeSummary, use_rows, volumes};

/// What a comparison is asked for.
#[derive(Clone, Debug, Default)]
pub struct CompareSettings {
    /// Place of the source that the others are compared with.
    pub base: usize,
    /// Smallest differences that count.
    pub deltas: Deltas,
    /// Only these tests; empty = all.
    pub only: Vec<String>,
    /// Conditions under which it fails.
    pub conditions: Vec<FailCondition>,
    /// Addresses of cells that are to be explained.
    pub explain: Vec<String>,
}

/// The result of a comparison.
#[derive(Clone, Debug, Default, Serialize)]
pub struct VolumeComparison {
    /// The sources.
    pub sources: Vec<VolumeSummary>,
    /// Place of the source that the others are compared with.
    #[serde(skip)]
    pub base: usize,
    /// Smallest differences that count.
    pub deltas: Deltas,
    /// Differences in conditions.
    pub differences: Vec<Difference>,
    /// All figures of all sources.
    pub tests: Vec<MatrixTest>,
    /// The surfaces of the sources that have one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub surfaces: Vec<SurfaceSummary>,
    /// Each source beside the base.
    pub pairs: Vec<Pair>,
    /// The verdicts where the sources were measured in turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interleaved: Option<Interleaved>,
    /// The uses, where benches are compared.
    pub uses: Vec<UseRow>,
    /// The order of the sources.
    pub ranking: Vec<Ranked>,
    /// Figures that cannot all be right.
    pub contradictions: Vec<Contradiction>,
    /// The results of the conditions.
    pub conditions: Vec<GateResult>,
    /// What it says first; it stands at the head of the document.
    #[serde(skip)]
    pub verdict: ComparisonVerdict,
    /// The same as sentences, five at most.
    pub conclusion: Vec<String>,
    /// The curves, for charts.
    #[serde(skip)]
    pub curves: Curves,
    /// The cells that were to be explained.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub explanations: Vec<CellExplanation>,
}

impl VolumeComparison {
    /// True where a condition under which the comparison fails holds.
    pub fn is_failed(&self) -> bool {
        self.conditions.iter().any(|one| one.verdict == gate::GateVerdict::Failed)
    }

    /// True where a condition is inconclusive.
    pub fn is_inconclusive(&self) -> bool {
        self.conditions.iter().any(|one| one.verdict == gate::GateVerdict::Inconclusive)
    }
}

/// Compares `sources`.
///
/// # Errors
/// A condition names a test that no source has, or a cell is to be explained that there is not.
pub fn compare(sources: &[ComparedSource], settings: &CompareSettings) -> Result<VolumeComparison, String> {
    let CompareSettings { base, deltas, only, conditions, explain: cells } = settings;
    let mut rows = matched_rows(sources);
    rows.retain(|row| only.is_empty() || only.contains(&row.test));
    let pairs = pairs(&rows, *base, *deltas);
    let curves = curves(sources, &rows);
    let mut found = VolumeComparison {
        sources: volumes(sources, &rows),
        base: *base,
        deltas: *deltas,
        differences: differences(sources, &rows),
        tests: matrix(&rows, *base, *deltas),
        surfaces: surface_summaries(sources, &curves.surfaces),
        interleaved: interleaved(sources, &pairs),
        uses: use_rows(sources),
        ranking: ranking(sources, &rows, *base, deltas.rate),
        contradictions: contradictions(&rows),
        verdict: ComparisonVerdict::default(),
        conclusion: Vec::new(),
        explanations: cells
            .iter()
            .map(|cell| explain(cell, sources, &rows, &pairs))
            .collect::<Result<_, _>>()?,
        conditions: gate::check(conditions, &rows, *base)?,
        curves,
        pairs,
    };
    let verdict = verdict(&Evidence { sources, rows: &rows, found: &found });
    let mut sentences: Vec<String> = verdict.sentences().cloned().collect();
    sentences.extend(surface_sentence(&found.surfaces).filter(|_| sentences.len() < MAX_SENTENCES));
    (found.verdict, found.conclusion) = (verdict, sentences);
    Ok(found)
}
