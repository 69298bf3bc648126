//! One metric of a test over the stored runs.
//!
//! Metrics are stored with their test: the table `metrics` has the values of its summary, under the names of
//! [`Metric`]. Runs stored before the table existed have none.

use fathom_analysis::criterion::Metric;
use fathom_record::{TestRecord, TestSummary};
use rusqlite::{Transaction, params};

use crate::{Error, History, RunId};

/// A metric of one test in one run.
#[derive(Clone, Debug, PartialEq)]
pub struct TrendPoint {
    /// The run.
    pub run: RunId,
    /// Start of the run, ms since the epoch; 0 for simulated runs.
    pub started_unix_ms: u64,
    /// The target of the run as the user named it.
    pub target: String,
    /// Id of the test.
    pub test: String,
    /// IOPS, bytes per second or ns.
    pub value: f64,
}

const TREND: &str = "SELECT metrics.run_id, json_extract(runs.header, '$.started_unix_ms'),
        json_extract(runs.header, '$.target'), metrics.test, metrics.value
    FROM metrics JOIN runs ON runs.id = metrics.run_id
    WHERE metrics.metric = ?1 AND (?2 IS NULL OR metrics.test = ?2)
        AND (?3 IS NULL OR json_extract(runs.header, '$.target') = ?3)
    ORDER BY metrics.test, metrics.run_id";

impl History {
    /// `metric`, with its direction, in every run that has it, by test and then oldest first; only of `test` and
    /// `target` if given.
    ///
    /// # Errors
    /// Those of the database.
    pub fn trend(
        &self,
        metric: Metric,
        test: Option<&str>,
        target: Option<&str>,
    ) -> Result<Vec<TrendPoint>, Error> {
        let read = || {
            let mut statement = self.connection.prepare(TREND)?;
            let rows = statement.query_map(params![metric.to_string(), test, target], |row| {
                let started: Option<i64> = row.get(1)?;
                Ok(TrendPoint {
                    run: RunId(row.get(0)?),
                    started_unix_ms: started.and_then(|ms| u64::try_from(ms).ok()).unwrap_or(0),
                    target: row.get::<_, Option<String>>(2)?.unwrap_or_default(),
                    test: row.get(3)?,
                    value: row.get(4)?,
                })
            })?;
            rows.collect::<rusqlite::Result<Vec<TrendPoint>>>()
        };
        read().map_err(|error| self.failed("read a trend", error))
    }
}

/// Stores the metrics of `test`. For a repeated test, the last values apply.
pub(crate) fn insert_metrics(
    transaction: &Transaction<'_>,
    run: RunId,
    test: &TestRecord,
) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(
        "INSERT OR REPLACE INTO metrics (run_id, test, metric, value) VALUES (?1, ?2, ?3, ?4)",
    )?;
    for (metric, value) in Metric::all_of(&TestSummary::new(test)) {
        insert.execute(params![run.0, test.id, metric.to_string(), value])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PATIENCE;

    const RUNS: i64 = 2_000;
    const METRICS: i64 = 50;

    #[test]
    fn a_trend_over_100_000_figures_is_one_search_of_the_index() {
        let directory = tempfile::tempdir().unwrap();
        let mut history = History::open(&directory.path().join("h.db"), PATIENCE).unwrap();
        history
            .write("fill it", |transaction| {
                let mut run = transaction.prepare("INSERT INTO runs (schema, header) VALUES ('', ?1)")?;
                let mut figure =
                    transaction.prepare("INSERT INTO metrics VALUES (?1, 'rand-read', ?2, ?3)")?;
                for number in 1..=RUNS {
                    let target = if number % 2 == 0 { "/even" } else { "/odd" };
                    run.execute([format!(r#"{{"target":"{target}","started_unix_ms":{number}000}}"#)])?;
                    for metric in 0..METRICS - 1 {
                        figure.execute(params![number, format!("other-{metric}"), 1.0])?;
                    }
                    figure.execute(params![number, "read.iops", number as f64])?;
                }
                Ok(())
            })
            .unwrap();
        let metric = Metric::parse("read.iops").unwrap();
        let trend = history.trend(metric, Some("rand-read"), Some("/even")).unwrap();
        assert_eq!(trend.len() as i64, RUNS / 2);
        let last = trend.last().unwrap();
        assert_eq!((last.run, last.started_unix_ms, last.value), (RunId(RUNS), 2_000_000, 2_000.0));
        let mut plan = history.connection.prepare(&format!("EXPLAIN QUERY PLAN {TREND}")).unwrap();
        let steps: Vec<String> = plan
            .query_map(params!["read.iops", "", ""], |row| row.get(3))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert!(steps[0].starts_with("SEARCH metrics USING PRIMARY KEY (metric=?"), "{steps:?}");
        assert!(steps.iter().all(|step| !step.starts_with("SCAN")), "{steps:?}");
    }
}
