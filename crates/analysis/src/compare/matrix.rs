//! All figures of all sources: a row per figure, with the best and the worst of the sources that did the same work.

use fathom_record::import::FigureBound;
use serde::Serialize;

use super::cell::{CellState, FigureCell};
use super::figure::{Deltas, Figure};
use super::rows::{ComparedRow, RowFigure};

/// Shares that differ by less count as equal.
const SHARE_POINTS: f64 = 0.02;

/// A test of all sources.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MatrixTest {
    /// Its id.
    pub test: String,
    /// The same for people.
    pub title: String,
    /// What it did (`randread 4k QD 64`).
    pub work: String,
    /// Its figures.
    pub figures: Vec<MatrixFigure>,
    /// The fio command of each source's first run; empty where there is none.
    pub fio: Vec<String>,
}

/// A figure of all sources.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MatrixFigure {
    /// `read`, `write`, `trim` or `sync`; `None` for figures of the whole test.
    pub direction: Option<&'static str>,
    /// Its name.
    pub metric: String,
    /// Its value in each source.
    pub cells: Vec<FigureCell>,
    /// Places of the best sources, where some are better than others.
    pub best: Vec<usize>,
    /// Places of the worst; those that stalled are.
    pub worst: Vec<usize>,
    /// The figure itself.
    #[serde(skip)]
    pub figure: Figure,
}

/// The matrix, its tests in the order of `rows`.
pub fn matrix(rows: &[ComparedRow], base: usize, deltas: Deltas) -> Vec<MatrixTest> {
    let test = |row: &ComparedRow| MatrixTest {
        test: row.test.clone(),
        title: row.title.clone(),
        work: row.runs.iter().flatten().next().map(|run| run.work.text()).unwrap_or_default(),
        figures: row.figures().iter().map(|of| figure(row, base, of, deltas)).collect(),
        fio: row
            .runs
            .iter()
            .map(|runs| runs.first().map(|run| run.fio.clone()).unwrap_or_default())
            .collect(),
    };
    rows.iter().map(test).collect()
}

fn figure(row: &ComparedRow, base: usize, of: &RowFigure, deltas: Deltas) -> MatrixFigure {
    let RowFigure { figure: of_figure, cells } = of;
    // What did other work than the base is beside the point; where the base lacks the test, the first that has it counts.
    let first = if row.runs[base].is_empty() {
        row.runs.iter().position(|runs| !runs.is_empty())
    } else {
        Some(base)
    };
    let is_like = |source: usize| first.is_some_and(|first| row.is_comparable(first, source));
    let values: Vec<(usize, f64)> = (0..cells.len())
        .filter(|at| is_like(*at) && cells[*at].bound == FigureBound::Exact)
        .filter_map(|at| Some((at, cells[at].value?)))
        .collect();
    let resolution = cells.iter().map(|cell| cell.resolution).fold(0.0, f64::max);
    let threshold = of_figure.threshold(deltas);
    let least = values.iter().min_by(|one, other| one.1.total_cmp(&other.1)).copied().unwrap_or_default();
    let most = values.iter().max_by(|one, other| one.1.total_cmp(&other.1)).copied().unwrap_or_default();
    // Shares differ by points, everything else in proportion; a higher share of a published rate is a burst.
    let slack =
        |of: f64| if of_figure.is_share() { SHARE_POINTS } else { of * (threshold.delta + resolution) };
    let overlaps = |(one, _): (usize, f64), (other, _): (usize, f64)| cells[one].overlaps(&cells[other]);
    let differ = values.len() > 1
        && most.1 > least.1 + slack(least.1)
        && !overlaps(least, most)
        && *of_figure != Figure::PublishedShare;
    let near_most = |one: (usize, f64)| one.1 >= most.1 - slack(most.1) || overlaps(one, most);
    let near_least = |one: (usize, f64)| one.1 <= least.1 + slack(least.1) || overlaps(one, least);
    let places = |is_it: &dyn Fn((usize, f64)) -> bool| -> Vec<usize> {
        values.iter().filter(|one| differ && is_it(**one)).map(|(at, _)| *at).collect()
    };
    let (top, bottom) = (
        places(&|one| near_most(one) && !near_least(one)),
        places(&|one| near_least(one) && !near_most(one)),
    );
    let (best, mut worst) = if threshold.more_is_better { (top, bottom) } else { (bottom, top) };
    let stalled: Vec<usize> = (0..cells.len()).filter(|at| cells[*at].state == CellState::Stalled).collect();
    if !stalled.is_empty() {
        worst = stalled;
    }
    MatrixFigure {
        direction: of_figure.direction(),
        metric: of_figure.metric(),
        cells: cells.clone(),
        best,
        worst,
        figure: *of_figure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::rows::matched_rows;
    use crate::compare::source::ComparedSource;
    use crate::fixture::TestLoad;

    #[test]
    fn best_and_worst_are_shown_by_the_intervals_of_repeated_runs() {
        let marks = |rates: [&[f64]; 3]| {
            let sources = rates.map(|rates| ComparedSource::at_rates(rates, &TestLoad::default()));
            let tests = matrix(&matched_rows(&sources), 0, Deltas::default());
            let rate = tests[0].figures.iter().find(|figure| figure.metric == "iops").unwrap();
            (rate.best.clone(), rate.worst.clone())
        };
        assert_eq!(marks([&[1000.0], &[1100.0], &[2000.0]]), (vec![2], vec![0]));
        let (near, apart) = ([900.0, 1300.0, 1000.0], [1500.0, 1000.0, 1400.0]);
        assert_eq!(marks([&near, &apart, &[1100.0, 1120.0, 1110.0]]), (vec![], vec![]));
        let fast = [4000.0, 4010.0, 4005.0];
        assert_eq!(marks([&near, &apart, &fast]), (vec![2], vec![0, 1]));
    }
}
