//! The published figures as data.

use serde::Deserialize;

/// All of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    #[serde(rename = "article")]
    pub articles: Vec<Article>,
    #[serde(rename = "run")]
    pub runs: Vec<Run>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Article {
    pub title: String,
    pub when: String,
}

/// One test on one volume, or what a text says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    pub id: String,
    pub article: usize,
    pub volume: String,
    pub tool: String,
    pub workload: String,
    pub figures: Vec<Figure>,
}

/// One figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    #[serde(rename = "m")]
    pub metric: String,
    #[serde(rename = "v")]
    pub value: f64,
    #[serde(rename = "u")]
    pub unit: String,
    /// `claimed` or `expected`; `None` = measured.
    #[serde(rename = "k")]
    pub kind: Option<String>,
    /// `approx`, `lower bound` or `upper bound`.
    #[serde(rename = "q")]
    pub qualifier: Option<String>,
}

impl Published {
    pub fn read(text: &str) -> Published {
        toml::from_str(text).unwrap()
    }
}
