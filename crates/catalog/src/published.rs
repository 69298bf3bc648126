//! Published measurements of volumes, figure by figure, and how each compares with the model of its type.

mod sheet;

use std::collections::BTreeMap;
use std::sync::OnceLock;

pub use sheet::{PublishedSheet, UnknownPublished};

use fathom_model::units::grouped;
use serde::{Deserialize, Serialize};

use crate::catalog::Catalog;

/// All published figures.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The articles.
    #[serde(rename = "article")]
    pub articles: Vec<PublishedArticle>,
    /// The tests.
    #[serde(rename = "run")]
    pub runs: Vec<PublishedRun>,
}

/// An article.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedArticle {
    /// Its title.
    pub title: String,
    /// When it was written, and its language.
    pub when: String,
}

/// One test on one volume, or the statements of a text.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedRun {
    /// Its id.
    pub id: String,
    /// The types of the catalogue that it measured.
    pub types: Vec<String>,
    /// Its article, from 0.
    pub article: usize,
    /// The volume in the article's words.
    pub volume: String,
    /// The program and its version.
    pub tool: String,
    /// The load.
    pub workload: String,
    /// The volume that it is one test of; empty where its text speaks of several.
    #[serde(default)]
    pub source: String,
    /// The volume as a name of the catalogue; empty where it has none.
    #[serde(default)]
    pub named: String,
    /// fio's options of the test.
    #[serde(default)]
    pub load: BTreeMap<String, String>,
    /// Its figures.
    pub figures: Vec<PublishedFigure>,
}

/// One figure.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedFigure {
    /// Its name.
    #[serde(rename(deserialize = "m"))]
    pub metric: String,
    /// Its value.
    #[serde(rename(deserialize = "v"))]
    pub value: f64,
    /// Its unit.
    #[serde(rename(deserialize = "u"))]
    pub unit: String,
    /// `claimed` or `expected`; `None` = measured.
    #[serde(rename(deserialize = "k"))]
    pub kind: Option<String>,
    /// `approx`, `lower bound` or `upper bound`.
    #[serde(rename(deserialize = "q"))]
    pub qualifier: Option<String>,
    /// The measured figure that it speaks of, `run/metric`.
    #[serde(skip_serializing)]
    pub of: Option<String>,
    /// The test, where it is not that of the run.
    #[serde(rename(deserialize = "t"), skip_serializing)]
    pub test: Option<String>,
    /// Its name in tables, where it is not that of its program.
    #[serde(rename(deserialize = "a"), skip_serializing)]
    pub name: Option<String>,
    /// fio's options of that test.
    #[serde(rename(deserialize = "l"), skip_serializing)]
    pub load: Option<BTreeMap<String, String>>,
}

impl PublishedFigure {
    /// The figure with its unit, bound and kind: `over 7,000, claimed`.
    pub fn text(&self) -> String {
        let unit = match self.unit.as_str() {
            "1/s" | "1" => String::new(),
            "kB/s(10^3)" => " kB/s".to_owned(),
            unit => format!(" {unit}"),
        };
        let bound = match (self.qualifier.as_deref(), self.metric.as_str()) {
            (Some("approx"), _) => "about ",
            (Some("lower bound"), _) => "over ",
            (Some("upper bound"), _) => "below ",
            (_, metric) if metric.ends_with("lt") => "below ",
            (_, metric) if metric.ends_with("_gt") => "over ",
            _ => "",
        };
        let kind = self.kind.as_ref().map(|kind| format!(", {kind}")).unwrap_or_default();
        format!("{bound}{}{unit}{kind}", number_text(self.value))
    }
}

/// A number with at least four digits or as few decimals as it needs.
fn number_text(value: f64) -> String {
    if value == 0.0 || value.abs() >= 1_000.0 || value.fract() == 0.0 && value.abs() >= 1.0 {
        return grouped(value.round() as u64);
    }
    let decimals = match value.abs() {
        100.0.. => 1,
        1.0.. => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl ComparedFigure {
    /// The model's figure as text; empty if it has none.
    pub fn simulated_text(&self) -> String {
        self.simulated.map(number_text).unwrap_or_default()
    }

    /// The deviation as text: `+0.5 %`, `met` for a bound, empty if the figure is not explained.
    pub fn deviation_text(&self) -> String {
        match (self.verdict, self.deviation) {
            (FigureVerdict::Unexplained, _) => String::new(),
            (_, None) => "met".to_owned(),
            (_, Some(share)) => {
                let text = format!("{:+.1} %", share * 100.0);
                if text == "-0.0 %" { "+0.0 %".to_owned() } else { text }
            }
        }
    }
}

impl Published {
    /// The figures that fathom ships, parsed once.
    pub fn shipped() -> &'static Published {
        static SHIPPED: OnceLock<Published> = OnceLock::new();
        // A test parses them.
        SHIPPED.get_or_init(|| toml::from_str(TEXT).unwrap_or_default())
    }

    /// The article of a run.
    pub fn article_of(&self, run: &PublishedRun) -> Option<&PublishedArticle> {
        self.articles.get(run.article)
    }
}

const TEXT: &str = include_str!("../data/published.toml");

/// A published figure beside that of the model.
#[derive(Clone, Debug, Serialize)]
pub struct ComparedFigure {
    /// The run.
    pub run: String,
    /// The figure.
    #[serde(flatten)]
    pub figure: PublishedFigure,
    /// The same quantity of the model under the same load; `None` if the model has no such quantity.
    pub simulated: Option<f64>,
    /// The relative difference of the model's from the published one; `None` for a bound.
    pub deviation: Option<f64>,
    /// The comparison.
    pub verdict: FigureVerdict,
    /// The reason, if the figure is not explained.
    pub why: Option<&'static str>,
}

/// How a model relates to a published figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureVerdict {
    /// Within 5 % by the published rules of the type.
    Rule,
    /// Within 5 %, and given by the load itself: what it transfers, and for how long.
    Load,
    /// Within 5 % by a model that is built from other measurements of the type.
    AsMeasured,
    /// The model was fitted to this figure, or to another of the same measurement: it explains nothing.
    Input,
    /// Not within 5 %, or not modelled.
    Unexplained,
}

impl FigureVerdict {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            FigureVerdict::Rule => "by rule",
            FigureVerdict::Load => "by load",
            FigureVerdict::AsMeasured => "as measured",
            FigureVerdict::Input => "input",
            FigureVerdict::Unexplained => "not explained",
        }
    }
}

impl Catalog {
    /// The published figures that models of any type were fitted to, `run/metric`.
    pub fn fitted_figures(&self) -> impl Iterator<Item = &str> {
        self.entries().flat_map(|entry| entry.fitted_figures())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_figure_belongs_to_a_type_and_every_fitted_figure_exists() {
        let published: Published = toml::from_str(TEXT).unwrap();
        let catalog = Catalog::shipped();
        let mut figures = BTreeSet::new();
        for run in &published.runs {
            assert!(published.article_of(run).is_some() && !run.types.is_empty(), "{}", run.id);
            assert!(run.types.iter().all(|id| catalog.get(id).is_some()), "{}: {:?}", run.id, run.types);
            figures.extend(run.figures.iter().map(|figure| format!("{}/{}", run.id, figure.metric)));
        }
        assert_eq!(figures.len(), 679);
        let stated =
            published.runs.iter().flat_map(|run| &run.figures).filter_map(|figure| figure.of.as_ref());
        for of in stated.filter(|of| !of.ends_with("/total.iops")) {
            assert!(figures.contains(of), "{of}");
        }
        let fitted: Vec<&str> = catalog.fitted_figures().collect();
        assert!(fitted.len() > 30, "{fitted:?}");
        for name in fitted {
            assert!(figures.contains(name), "{name}");
        }
    }
}
