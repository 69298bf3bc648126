//! One metric of a test over the stored runs.
//!
//! Metrics are stored with their test: the table `metrics` has the values of its summary, under the names of
//! [`Metric`]. They are joined with the columns of the runs here: two scans of indices take a fraction of the time of a
//! search for each run.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use fathom_analysis::criterion::Metric;
use fathom_analysis::trend::{TrendPoint, TrendRow};
use rusqlite::{Row, params};

use crate::{Error, Filter, History, RunId};

/// What runs are grouped by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RunKey {
    /// The target as the user named it.
    #[default]
    Target,
    /// The device, by a name that stays the same.
    Device,
    /// The host.
    Host,
    /// The type of the volume.
    VolumeType,
    /// The value of this label.
    Label(String),
}

impl RunKey {
    /// The name in JSON and on the command line.
    pub fn name(&self) -> String {
        match self {
            RunKey::Target => "target".to_owned(),
            RunKey::Device => "device".to_owned(),
            RunKey::Host => "host".to_owned(),
            RunKey::VolumeType => "type".to_owned(),
            RunKey::Label(name) => format!("label:{name}"),
        }
    }

    const fn column(&self) -> &'static str {
        match self {
            RunKey::Target => "target",
            RunKey::Device => "device",
            RunKey::Host => "hostname",
            RunKey::VolumeType => "volume_type",
            RunKey::Label(_) => "labels",
        }
    }

    /// The group of a run whose column has `text`; `None` where it belongs to none.
    fn group<'a>(&self, text: &'a str) -> Option<std::borrow::Cow<'a, str>> {
        match self {
            RunKey::Label(name) => {
                let labels: HashMap<String, String> = serde_json::from_str(text).ok()?;
                labels.get(name).cloned().map(Into::into)
            }
            _ => Some(text.into()),
        }
    }
}

/// Which values a trend has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrendQuery {
    /// The metric, with its direction.
    pub metric: Metric,
    /// Only of this test.
    pub test: Option<String>,
    /// What its runs are grouped by; runs without it are left out.
    pub by: RunKey,
    /// Only of these runs.
    pub filter: Filter,
}

/// What a trend needs of a run.
struct RunFacts {
    dated_unix_ms: u64,
    started_unix_ms: u64,
    target: Arc<str>,
    key: Arc<str>,
}

const VALUES: &str = "SELECT run_id, test, value FROM metrics WHERE metric = ?1 ORDER BY test, run_id";
const VALUES_OF_TEST: &str =
    "SELECT run_id, test, value FROM metrics WHERE metric = ?1 AND test = ?2 ORDER BY run_id";

impl History {
    /// The values of `query`, oldest first within each test and group; a simulated run counts when it was stored.
    ///
    /// # Errors
    /// Those of the database.
    pub fn trend(&self, query: &TrendQuery) -> Result<Vec<TrendRow>, Error> {
        let is_filtered = query.filter != Filter::default();
        let admitted = is_filtered.then(|| self.list(&query.filter)).transpose()?;
        let admitted: Option<HashSet<RunId>> =
            admitted.map(|listing| listing.rows.iter().map(|row| RunId(row.id as i64)).collect());
        let is_admitted = |run: RunId| admitted.as_ref().is_none_or(|runs| runs.contains(&run));
        let read = || -> rusqlite::Result<Vec<TrendRow>> {
            let runs = self.run_facts(&query.by)?;
            let name = query.metric.to_string();
            let mut statement =
                self.connection.prepare(if query.test.is_some() { VALUES_OF_TEST } else { VALUES })?;
            let mut found = match &query.test {
                Some(test) => statement.query(params![name, test])?,
                None => statement.query(params![name])?,
            };
            let mut rows = Vec::new();
            let mut test: Arc<str> = "".into();
            while let Some(row) = found.next()? {
                let run = RunId(row.get(0)?);
                let Some(facts) = runs.get(&run).filter(|_| is_admitted(run)) else { continue };
                let id = row.get_ref(1)?.as_str()?;
                if *test != *id {
                    test = id.into();
                }
                rows.push(facts.row(run, &test, row.get(2)?));
            }
            // Names are shared, so most comparisons need not read them.
            let by_name = |one: &Arc<str>, other: &Arc<str>| match Arc::ptr_eq(one, other) {
                true => Ordering::Equal,
                false => one.cmp(other),
            };
            let place = |row: &TrendRow| (row.point.dated_unix_ms, row.point.run);
            rows.sort_by(|one, other| {
                let by_series = by_name(&one.test, &other.test).then_with(|| by_name(&one.key, &other.key));
                by_series.then_with(|| place(one).cmp(&place(other)))
            });
            Ok(rows)
        };
        read().map_err(|error| self.failed("read a trend", error))
    }

    fn run_facts(&self, by: &RunKey) -> rusqlite::Result<HashMap<RunId, RunFacts>> {
        let mut statement = self.connection.prepare(&format!(
            "SELECT id, started_unix_ms, stored_unix_ms, target, {} FROM runs INDEXED BY runs_listed
             WHERE target IS NOT NULL",
            by.column()
        ))?;
        let mut found = statement.query([])?;
        let mut runs = HashMap::new();
        let mut known: HashSet<Arc<str>> = HashSet::new();
        let mut shared = |text: &str| match known.get(text) {
            Some(known) => known.clone(),
            None => {
                let new: Arc<str> = text.into();
                known.insert(new.clone());
                new
            }
        };
        while let Some(row) = found.next()? {
            let time = |index: usize| time_of(row, index);
            let started_unix_ms = time(1);
            let dated_unix_ms = if started_unix_ms > 0 { started_unix_ms } else { time(2) };
            let Some(key) = row.get_ref(4)?.as_str_or_null()?.and_then(|text| by.group(text)) else {
                continue;
            };
            let facts = RunFacts {
                dated_unix_ms,
                started_unix_ms,
                target: shared(row.get_ref(3)?.as_str()?),
                key: shared(&key),
            };
            runs.insert(RunId(row.get(0)?), facts);
        }
        Ok(runs)
    }
}

fn time_of(row: &Row<'_>, index: usize) -> u64 {
    row.get::<_, Option<i64>>(index).ok().flatten().and_then(|ms| u64::try_from(ms).ok()).unwrap_or(0)
}

impl RunFacts {
    fn row(&self, run: RunId, test: &Arc<str>, value: f64) -> TrendRow {
        let point = TrendPoint {
            run: u64::try_from(run.0).unwrap_or_default(),
            dated_unix_ms: self.dated_unix_ms,
            started_unix_ms: self.started_unix_ms,
            target: self.target.clone(),
            value,
        };
        TrendRow { test: test.clone(), key: self.key.clone(), point }
    }
}

#[cfg(test)]
mod tests {
    use fathom_record::{HostRecord, RunHeader};

    use super::*;
    use crate::PATIENCE;
    use crate::columns::insert_run;

    const RUNS: i64 = 2_000;
    const METRICS: i64 = 50;

    /// A history of runs on two targets, whose figures are their numbers.
    fn filled() -> (tempfile::TempDir, History) {
        let directory = tempfile::tempdir().unwrap();
        let mut history = History::open(&directory.path().join("h.db"), PATIENCE).unwrap();
        history
            .write("fill it", |transaction| {
                let mut figure =
                    transaction.prepare("INSERT INTO metrics VALUES (?1, 'rand-read', ?2, ?3)")?;
                for number in 1..=RUNS {
                    let target = if number % 2 == 0 { "/even" } else { "/odd" };
                    let mut header = RunHeader {
                        target: target.to_owned(),
                        started_unix_ms: number as u64 * 1000,
                        ..RunHeader::default()
                    };
                    header.hosts = vec![HostRecord { hostname: "web1".to_owned(), ..HostRecord::default() }];
                    header.labels.insert("slot".to_owned(), (number % 4).to_string());
                    insert_run(transaction, &header)?;
                    for metric in 0..METRICS - 1 {
                        figure.execute(params![number, format!("other-{metric}"), 1.0])?;
                    }
                    figure.execute(params![number, "read.iops", number as f64])?;
                }
                Ok(())
            })
            .unwrap();
        (directory, history)
    }

    fn query(by: RunKey, filter: Filter) -> TrendQuery {
        let metric = Metric::parse("read.iops").unwrap();
        TrendQuery { metric, test: Some("rand-read".to_owned()), by, filter }
    }

    #[test]
    fn values_are_grouped_and_ordered_by_time() {
        let (_directory, history) = filled();
        let check = |by: RunKey, filter: Filter, expected: &[(&str, i64)]| {
            let rows = history.trend(&query(by, filter)).unwrap();
            let mut groups: Vec<(&str, i64)> = Vec::new();
            for row in &rows {
                match groups.last_mut() {
                    Some((key, count)) if **key == *row.key => *count += 1,
                    _ => groups.push((&row.key, 1)),
                }
            }
            assert_eq!(groups, expected);
            let ordered = rows.windows(2).all(|pair| {
                pair[0].key != pair[1].key || pair[0].point.dated_unix_ms < pair[1].point.dated_unix_ms
            });
            assert!(ordered);
        };
        check(RunKey::Target, Filter::default(), &[("/even", RUNS / 2), ("/odd", RUNS / 2)]);
        check(RunKey::Host, Filter::default(), &[("web1", RUNS)]);
        check(RunKey::Device, Filter::default(), &[("web1:/even", RUNS / 2), ("web1:/odd", RUNS / 2)]);
        check(RunKey::VolumeType, Filter::default(), &[]);
        let labels: Vec<(&str, i64)> = ["0", "1", "2", "3"].map(|slot| (slot, RUNS / 4)).to_vec();
        check(RunKey::Label("slot".to_owned()), Filter::default(), &labels);
        let since = Filter { since_unix_ms: Some(1_001_000), ..Filter::default() };
        check(RunKey::Host, since, &[("web1", 1_000)]);
    }

    #[test]
    fn a_trend_reads_indices_only() {
        let (_directory, history) = filled();
        let plan = |sql: &str| -> Vec<String> {
            let mut plan = history.connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let count = plan.parameter_count();
            let values = rusqlite::params_from_iter((0..count).map(|_| "x"));
            plan.query_map(values, |row| row.get(3)).unwrap().map(Result::unwrap).collect()
        };
        let values = plan(VALUES_OF_TEST);
        assert_eq!(values, ["SEARCH metrics USING PRIMARY KEY (metric=? AND test=?)"]);
        let all = plan(VALUES);
        assert_eq!(all, ["SEARCH metrics USING PRIMARY KEY (metric=?)"]);
        let listed = plan("SELECT id, target FROM runs INDEXED BY runs_listed");
        assert_eq!(listed, ["SCAN runs USING COVERING INDEX runs_listed"]);
    }
}
