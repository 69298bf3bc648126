//! One metric of a test over the stored runs.
//!
//! Metrics are stored with their test: the table `metrics` has the values of its summary, under the names of
//! [`Metric`]. They are joined with the columns of the runs here: two scans of indices take a fraction of the time of a
//! search for each run.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use fathom_analysis::criterion::Metric;
use fathom_analysis::trend::{TrendPoint, TrendRow};

use crate::database::{MORE, Row, Transaction};
use crate::error::Failure;
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
    run: RunId,
    dated_unix_ms: u64,
    started_unix_ms: u64,
    target: Arc<str>,
    /// Index of its group.
    key: usize,
}

/// Texts that occur again and again, each once.
#[derive(Default)]
struct SharedTexts {
    texts: Vec<Arc<str>>,
    indices: HashMap<Arc<str>, usize>,
}

impl SharedTexts {
    fn index(&mut self, text: &str) -> usize {
        if let Some(&known) = self.indices.get(text) {
            return known;
        }
        let new: Arc<str> = text.into();
        self.texts.push(new.clone());
        self.indices.insert(new, self.texts.len() - 1);
        self.texts.len() - 1
    }
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
        self.read("read a trend", |transaction| {
            let mut texts = SharedTexts::default();
            let runs = run_facts(transaction, &query.by, &mut texts)?;
            let name = query.metric.to_string();
            let (sql, values) = match &query.test {
                Some(test) => (VALUES_OF_TEST, vec![name.as_str().into(), test.as_str().into()]),
                None => (VALUES, vec![name.as_str().into()]),
            };
            // The values of each test are in the order of the runs, as the facts are, so one pass joins them.
            let mut tests: Vec<(Arc<str>, Vec<Vec<TrendPoint>>)> = Vec::new();
            let mut rest = runs.iter().peekable();
            transaction.scan(sql, &values, |row| {
                let run = row.run(0);
                let (Some(id), Some(value)) = (row.text(1), row.real(2)) else { return MORE };
                if tests.last().is_none_or(|(test, _)| **test != *id) {
                    tests.push((id.into(), vec![Vec::new(); texts.texts.len()]));
                    rest = runs.iter().peekable();
                }
                while rest.next_if(|facts| facts.run < run).is_some() {}
                let facts = rest.next_if(|facts| facts.run == run && is_admitted(run));
                if let (Some(facts), Some((_, groups))) = (facts, tests.last_mut()) {
                    groups[facts.key].push(facts.point(value));
                }
                MORE
            })?;
            tests.sort_by(|one, other| one.0.cmp(&other.0));
            Ok(tests.into_iter().flat_map(|(test, groups)| rows_of(&test, groups, &texts.texts)).collect())
        })
    }
}

/// The facts of every run that has a group, by number.
fn run_facts(
    transaction: &Transaction<'_>,
    by: &RunKey,
    texts: &mut SharedTexts,
) -> Result<Vec<RunFacts>, Failure> {
    let select = format!(
        "SELECT id, started_unix_ms, stored_unix_ms, target, {} FROM runs INDEXED BY runs_listed
         WHERE target IS NOT NULL ORDER BY id",
        by.column()
    );
    let mut runs = Vec::new();
    transaction.scan(&select, &[], |row| {
        let (Some(target), Some(key)) = (row.text(3), row.text(4).and_then(|text| by.group(text))) else {
            return MORE;
        };
        let started_unix_ms = time_of(row, 1);
        let target = texts.index(target);
        runs.push(RunFacts {
            run: row.run(0),
            dated_unix_ms: if started_unix_ms > 0 { started_unix_ms } else { time_of(row, 2) },
            started_unix_ms,
            target: texts.texts[target].clone(),
            key: texts.index(&key),
        });
        MORE
    })?;
    Ok(runs)
}

/// The rows of a test from the points of each group, by group and time.
fn rows_of(test: &Arc<str>, groups: Vec<Vec<TrendPoint>>, names: &[Arc<str>]) -> Vec<TrendRow> {
    let mut groups: Vec<(&Arc<str>, Vec<TrendPoint>)> =
        names.iter().zip(groups).filter(|(_, points)| !points.is_empty()).collect();
    groups.sort_by(|one, other| one.0.cmp(other.0));
    let rows = groups.into_iter().flat_map(|(key, mut points)| {
        points.sort_by_key(|point| (point.dated_unix_ms, point.run));
        let row = |point| TrendRow { test: test.clone(), key: key.clone(), point };
        points.into_iter().map(row).collect::<Vec<TrendRow>>()
    });
    rows.collect()
}

fn time_of(row: &Row<'_>, index: usize) -> u64 {
    row.int(index).and_then(|ms| u64::try_from(ms).ok()).unwrap_or(0)
}

impl RunFacts {
    fn point(&self, value: f64) -> TrendPoint {
        TrendPoint {
            run: u64::try_from(self.run.0).unwrap_or_default(),
            dated_unix_ms: self.dated_unix_ms,
            started_unix_ms: self.started_unix_ms,
            target: self.target.clone(),
            value,
        }
    }
}

#[cfg(test)]
mod tests {
    use fathom_record::{HostRecord, RunHeader};

    use super::*;
    use crate::columns::insert_run;
    use crate::{Location, PATIENCE};

    const RUNS: i64 = 2_000;
    const METRICS: i64 = 50;

    /// A history of runs on two targets, whose figures are their numbers.
    fn filled() -> (tempfile::TempDir, History) {
        let directory = tempfile::tempdir().unwrap();
        let mut history = History::open(&Location::new(directory.path().join("h.db")), PATIENCE).unwrap();
        history
            .write("fill it", |transaction| {
                let figure = "INSERT INTO metrics VALUES (?1, 'rand-read', ?2, ?3)";
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
                        let name = format!("other-{metric}");
                        let values = [number.into(), name.as_str().into(), Some(1.0).into()];
                        transaction.execute(figure, &values)?;
                    }
                    let values = [number.into(), "read.iops".into(), Some(number as f64).into()];
                    transaction.execute(figure, &values)?;
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
            let values = vec!["x".into(); sql.matches('?').count()];
            let mut steps = Vec::new();
            let explained = history.read("explain", |transaction| {
                transaction.each(&format!("EXPLAIN QUERY PLAN {sql}"), &values, |row| {
                    steps.extend(row.text(3).map(str::to_owned));
                    MORE
                })
            });
            explained.unwrap();
            steps
        };
        let values = plan(VALUES_OF_TEST);
        assert_eq!(values, ["SEARCH metrics USING PRIMARY KEY (metric=? AND test=?)"]);
        let all = plan(VALUES);
        assert_eq!(all, ["SEARCH metrics USING PRIMARY KEY (metric=?)"]);
        let listed =
            plan("SELECT id, target FROM runs INDEXED BY runs_listed WHERE target IS NOT NULL ORDER BY id");
        assert_eq!(listed, ["SCAN runs USING COVERING INDEX runs_listed"]);
    }
}
