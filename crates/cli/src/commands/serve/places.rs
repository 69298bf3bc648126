//! The places of the server: which page a request asks for, and what is on it.
//!
//! A place names a run by its number, which is looked up in the history. No part of a request becomes a path of a file.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::{Args, Parser};
use fathom_analysis::compare::source::MAX_SOURCES;
use fathom_history::{Filter, History, Listing, Location, PATIENCE, RunId};
use fathom_record::TestStatus;
use fathom_report::history::trend::view as trend_view;
use fathom_report::html::PageBody;
use fathom_report::html::site::{FormValues, RunList, ServedRun, Site, TrendPage, query_escaped, run_path};
use hyper::{Method, StatusCode};

use super::access::{Access, LOGIN, Refusal, SHARED};
use super::reply::{Failure, Reply};
use super::{Follows, LastEvent, ReportCache, RunEvents, ended};
use crate::commands::compare::sources;
use crate::commands::history::filter::FilterArguments;
use crate::commands::history::trend::{self, TrendArguments};
use crate::commands::report::{file_of, page_of};
use crate::http::{Answer, Handler, Request};
use crate::live::hub::{connect, running};

/// Runs on a page of the list.
const ON_A_PAGE: usize = 100;

/// Answers requests about one history.
pub struct HistoryServer {
    /// The history.
    pub history: Location,
    access: Access,
    site: Site,
    reports: ReportCache,
    follows: Arc<Follows>,
    /// Held by whoever makes a page: however many readers there are, they take one CPU at most.
    work: Mutex<()>,
}

impl Handler for HistoryServer {
    fn answer(&self, request: &Request) -> Answer {
        let reply = match self.access.admit(request) {
            Ok(()) => self.reply(request),
            Err(Refusal::Status(status, reason)) => Err(Failure::new(status, reason)),
            Err(Refusal::SignIn { is_wrong, from_elsewhere }) => {
                Ok(self.ask_for_token(request, is_wrong, from_elsewhere))
            }
        };
        reply.unwrap_or_else(|failure| self.failure(&failure)).answer()
    }
}

impl HistoryServer {
    /// Answers about `history`, to whom `access` admits.
    pub fn new(history: Location, access: Access, site: Site) -> HistoryServer {
        HistoryServer {
            history,
            access,
            site,
            reports: ReportCache::default(),
            follows: Arc::default(),
            work: Mutex::default(),
        }
    }

    fn failure(&self, failure: &Failure) -> Reply {
        let paragraphs: Vec<&str> =
            std::iter::once(failure.message.as_str()).chain(failure.hint.as_deref()).collect();
        let title = failure.status.canonical_reason().unwrap_or("Error");
        Reply::Page(failure.status, self.site.message(title, &paragraphs))
    }

    fn ask_for_token(&self, request: &Request, is_wrong: bool, from_elsewhere: bool) -> Reply {
        let place = request.head.uri.path_and_query().map_or("/", |place| place.as_str());
        if from_elsewhere {
            return Reply::Page(StatusCode::UNAUTHORIZED, self.site.forward(place));
        }
        let error = is_wrong.then_some("The token is wrong.");
        Reply::Page(StatusCode::UNAUTHORIZED, self.site.sign_in(place, error))
    }

    fn reply(&self, request: &Request) -> Result<Reply, Failure> {
        let uri = &request.head.uri;
        let values = form_values(uri.query().unwrap_or_default());
        let places: Vec<&str> = uri.path().trim_start_matches('/').split('/').collect();
        let is_post = request.head.method == Method::POST;
        if uri.path() == LOGIN {
            let values = if is_post { form_values(&String::from_utf8_lossy(&request.body)) } else { values };
            return self.sign_in(is_post, &values);
        }
        if is_post {
            let ["runs", run, action] = places[..] else { return Err(Failure::no_page()) };
            let _work = self.work();
            return self.change(number(run)?, action, &form_values(&String::from_utf8_lossy(&request.body)));
        }
        match places[..] {
            // Following takes no CPU worth waiting for, and lasts.
            ["runs", run, "events"] => self.events(number(run)?),
            ["favicon.ico"] => Ok(Reply::Nothing),
            _ => {
                let _work = self.work();
                self.page(&places, &values)
            }
        }
    }

    fn page(&self, places: &[&str], values: &FormValues) -> Result<Reply, Failure> {
        match *places {
            [""] => self.runs(values),
            ["trend"] => self.trend(values),
            ["compare"] => self.comparison(values),
            ["compare.html"] => self.file(&runs_of(values)?, "html"),
            ["runs", "last"] => {
                let run = self.newest()?;
                Ok(Reply::See(run_path(run), None))
            }
            [SHARED, run, seal] => self.shared(number(run)?, seal),
            ["runs", run] => self.run(number(run)?),
            ["runs", run, "follow"] => self.follow(number(run)?),
            ["runs", run, "remove"] if self.site.can_write => {
                let row = self.opened()?.row(number(run)?)?;
                let run = ServedRun { row: &row, is_running: false, shared: None };
                Ok(Reply::page(self.site.removal(&run)))
            }
            ["runs", run, file] => match file.strip_prefix("report.") {
                Some(ending) => self.file(&[number(run)?], ending),
                None => Err(Failure::no_page()),
            },
            _ => Err(Failure::no_page()),
        }
    }

    fn work(&self) -> MutexGuard<'_, ()> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn opened(&self) -> Result<History, Failure> {
        Ok(History::open_existing(&self.history, PATIENCE)?)
    }

    /// The same, if it has `runs`: a report that is kept may be of one that was removed.
    fn opened_with(&self, runs: &[RunId]) -> Result<History, Failure> {
        let history = self.opened()?;
        runs.iter().try_for_each(|run| history.header(*run).map(drop))?;
        Ok(history)
    }

    /// Whether `run` goes on on this machine.
    pub fn goes_on(&self, run: RunId) -> bool {
        connect(&self.history, run).is_ok()
    }

    fn sign_in(&self, is_post: bool, values: &FormValues) -> Result<Reply, Failure> {
        let next = Some(values.get("next")).filter(|next| is_own_place(next)).unwrap_or("/").to_owned();
        if !self.access.needs_token() {
            return Ok(Reply::See(next, None));
        }
        match self.access.sign_in(values) {
            Some(cookie) if is_post => Ok(Reply::See(next, Some(cookie))),
            Some(cookie) => Ok(Reply::SignedIn(self.site.forward(&next), cookie)),
            None => {
                let error = (!values.get("token").is_empty()).then_some("The token is wrong.");
                Ok(Reply::Page(StatusCode::UNAUTHORIZED, self.site.sign_in(&next, error)))
            }
        }
    }

    fn newest(&self) -> Result<u64, Failure> {
        let listing = self.opened()?.list(&Filter { newest: Some(1), ..Filter::default() })?;
        let none = || Failure::new(StatusCode::NOT_FOUND, "No runs are stored.");
        listing.rows.last().map(|row| row.id).ok_or_else(none)
    }

    fn runs(&self, values: &FormValues) -> Result<Reply, Failure> {
        let page: usize = values.get("page").parse().unwrap_or(0).min(100_000);
        let history = History::open_if_there(&self.history, PATIENCE)?;
        // One more tells whether there are older ones.
        let most = Some((page + 1) * ON_A_PAGE + 1);
        let (mut listing, mut none, mut error) = (Listing::default(), "No runs are stored.".to_owned(), None);
        match (filter(values), history) {
            (Ok(filter), Some(history)) => {
                listing = history.list(&filter.filter(most))?;
                if listing.rows.is_empty() {
                    none = filter.none(&history.list(&Filter::default())?);
                }
            }
            (Err(refusal), _) => (none, error) = ("No run is listed.".to_owned(), Some(refusal)),
            (Ok(_), None) => {}
        }
        if !listing.unreadable.is_empty() {
            let count = listing.unreadable.len();
            error = Some(format!("{count} of the runs cannot be read: `fathom history list` names them."));
        }
        let has_older = listing.rows.len() > (page + 1) * ON_A_PAGE;
        let rows: Vec<_> = listing.rows.into_iter().rev().skip(page * ON_A_PAGE).take(ON_A_PAGE).collect();
        let running: BTreeSet<u64> =
            running(&self.history).iter().filter_map(|run| u64::try_from(run.0).ok()).collect();
        let list = RunList {
            rows: &rows,
            none: &none,
            running: &running,
            values,
            error: error.as_deref(),
            older: has_older.then(|| list_path(values, page + 1)),
            newer: (page > 0).then(|| list_path(values, page - 1)),
        };
        Ok(Reply::page(self.site.runs(&list)))
    }

    fn run(&self, run: RunId) -> Result<Reply, Failure> {
        let history = self.opened()?;
        let row = history.row(run)?;
        let body = self.body(&history, &[run])?;
        let shared = self.access.shared_path(run);
        let run = ServedRun { row: &row, is_running: self.goes_on(run), shared: shared.as_deref() };
        Ok(Reply::page(self.site.run(&body, &run)))
    }

    /// The report of `run` for who has the link to it; who can read everything is led to the whole page.
    fn shared(&self, run: RunId, seal: &str) -> Result<Reply, Failure> {
        let history = self.opened()?;
        let row = history.row(run)?;
        match self.access.is_shared(&format!("/{SHARED}/{run}/{seal}")) {
            true => Ok(Reply::page(self.site.shared(&*self.body(&history, &[run])?))),
            false => Ok(Reply::See(run_path(row.id), None)),
        }
    }

    /// The sections of the report of `runs`.
    fn body(&self, history: &History, runs: &[RunId]) -> Result<Arc<PageBody>, Failure> {
        if let Some(body) = self.reports.get(runs) {
            return Ok(body);
        }
        let sources = sources::of_runs(history, runs)?;
        let body = Arc::new(self.site.body(&page_of(&sources)?));
        // A run that was killed stays incomplete, and one that goes on changes.
        let mut records = sources.iter().flat_map(|source| &source.runs).map(|run| &run.record);
        if records.all(|record| record.status != TestStatus::Incomplete) {
            self.reports.keep(runs.to_vec(), body.clone());
        }
        Ok(body)
    }

    fn comparison(&self, values: &FormValues) -> Result<Reply, Failure> {
        let runs = runs_of(values)?;
        if let [run] = runs[..] {
            return self.run(run);
        }
        let body = self.body(&self.opened_with(&runs)?, &runs)?;
        let numbers: Vec<u64> = runs.iter().filter_map(|run| u64::try_from(run.0).ok()).collect();
        Ok(Reply::page(self.site.comparison(&body, &numbers)))
    }

    fn file(&self, runs: &[RunId], ending: &str) -> Result<Reply, Failure> {
        let content_type = match ending {
            "html" => "text/html; charset=utf-8",
            "md" => "text/markdown; charset=utf-8",
            "csv" => "text/csv; charset=utf-8",
            "json" => "application/json",
            "jsonl" => "application/x-ndjson",
            "txt" => "text/plain; charset=utf-8",
            _ => return Err(Failure::no_page()),
        };
        let sources = sources::of_runs(&self.opened_with(runs)?, runs)?;
        let content = file_of(&sources, ending, &self.site.style)?.ok_or_else(Failure::no_page)?;
        let numbers: Vec<String> = runs.iter().map(RunId::to_string).collect();
        Ok(Reply::File(format!("run-{}.{ending}", numbers.join("-")), content_type, content))
    }

    fn trend(&self, values: &FormValues) -> Result<Reply, Failure> {
        let (mut error, mut body) = (None, None);
        match trend(values) {
            Ok(None) => {}
            Ok(Some(arguments)) => {
                let (report, none) = trend::report(&arguments, &self.history, &self.site.style)?;
                body = Some(self.site.body(&trend_view(&report, &none, &self.site.style)));
            }
            Err(refusal) => error = Some(refusal),
        }
        let page = TrendPage { values, error: error.as_deref(), body: body.as_ref() };
        Ok(Reply::page(self.site.trend(&page)))
    }

    fn follow(&self, run: RunId) -> Result<Reply, Failure> {
        let row = self.opened()?.row(run)?;
        Ok(match self.goes_on(run) {
            true => Reply::page(self.site.follow(row.id)),
            false => Reply::See(run_path(row.id), None),
        })
    }

    fn events(&self, run: RunId) -> Result<Reply, Failure> {
        match self.follows.read(&self.history, run, &self.site) {
            Ok(reader) => Ok(Reply::Events(Box::new(RunEvents::new(reader)))),
            // It ended meanwhile.
            Err(_) => {
                self.opened()?.header(run)?;
                Ok(Reply::Events(Box::new(LastEvent(Some(ended(run))))))
            }
        }
    }
}

/// The number of a run.
fn number(text: &str) -> Result<RunId, Failure> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number).ok_or_else(Failure::no_page)
}

/// The runs that a form selects, the oldest first.
fn runs_of(values: &FormValues) -> Result<Vec<RunId>, Failure> {
    let runs: BTreeSet<RunId> = values.all("run").map(number).collect::<Result<_, _>>()?;
    let refuse = |message: String| Err(Failure::new(StatusCode::BAD_REQUEST, message));
    match runs.len() {
        0 => refuse("Select the runs to compare.".to_owned()),
        count if count > MAX_SOURCES => refuse(format!("No more than {MAX_SOURCES} runs can be compared.")),
        _ => Ok(runs.into_iter().collect()),
    }
}

/// The list as it was searched for, from another page on.
fn list_path(values: &FormValues, page: usize) -> String {
    let others = values.0.iter().filter(|(name, value)| name != "page" && !value.is_empty());
    let query: String =
        others.map(|(name, value)| format!("{}={}&", query_escaped(name), query_escaped(value))).collect();
    format!("/?{query}page={page}")
}

/// Whether a link leads to this server: a path, and no address of another.
fn is_own_place(next: &str) -> bool {
    let mut rest = next.chars();
    rest.next() == Some('/')
        && !matches!(rest.next(), Some('/' | '\\'))
        && !next.chars().any(char::is_control)
}

/// Most names and values of one form.
const MAX_VALUES: usize = 256;
/// Fields of a search, which are named as the options of `fathom history list`.
const FILTERS: [&str; 12] =
    ["target", "kind", "status", "label", "tag", "host", "device", "type", "test", "since", "until", "text"];

/// Reads `a=b&c=d` with escapes.
pub fn form_values(text: &str) -> FormValues {
    let pairs = text.split('&').filter(|pair| !pair.is_empty()).take(MAX_VALUES);
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(name), decoded(value))
    };
    FormValues(pairs.map(pair).collect())
}

/// A text without its escapes; what is no escape stays as it is.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = match (first, tail) {
            (b'%', [high, low, ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                digit(high).zip(digit(low)).map(|(high, low)| (high * 16 + low) as u8)
            }
            _ => None,
        };
        bytes.push(escaped.unwrap_or(if *first == b'+' { b' ' } else { *first }));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Options without a program.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct OptionLine<T: Args> {
    #[command(flatten)]
    options: T,
}

/// The filter that `values` describe.
///
/// # Errors
/// One of them makes no sense; the message says which.
pub fn filter(values: &FormValues) -> Result<FilterArguments, String> {
    parsed(filter_words(values))
}

/// The trend that `values` ask for; `None` where they name no metric.
///
/// # Errors
/// One of them makes no sense; the message says which.
pub fn trend(values: &FormValues) -> Result<Option<TrendArguments>, String> {
    let metric = values.get("metric");
    if metric.is_empty() {
        return Ok(None);
    }
    let mut words = filter_words(values);
    words.extend(values.all("by").map(|key| format!("--by={key}")));
    words.extend(["--".to_owned(), metric.to_owned()]);
    parsed(words).map(Some)
}

fn filter_words(values: &FormValues) -> Vec<String> {
    let of = |name: &'static str| values.all(name).map(move |value| format!("--{name}={value}"));
    FILTERS.into_iter().flat_map(of).collect()
}

fn parsed<T: Args>(words: Vec<String>) -> Result<T, String> {
    OptionLine::<T>::try_parse_from(words).map(|line| line.options).map_err(|error| {
        let text = error.to_string();
        let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        // A form has no options: what follows says what is wrong with the value.
        message.split_once(">': ").map_or(message, |(_, reason)| reason).to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_numbers_and_nothing_else() {
        for (text, expected) in [("7", Some(7)), ("007", Some(7))] {
            assert_eq!(number(text).ok(), expected.map(RunId), "{text}");
        }
        for text in ["", "-1", "+7", "7 ", "..", "%2e%2e", "7/../8", "last", "99999999999999999999", "٣"] {
            assert!(number(text).is_err(), "{text}");
        }
        let of =
            |query: &str| runs_of(&form_values(query)).map(|runs| runs.iter().map(|run| run.0).collect());
        assert_eq!(of("run=9&run=3&run=9").ok(), Some(vec![3, 9]));
        assert!(of("").is_err() && of("run=..%2fetc").is_err());
        let many: String = (1..=MAX_SOURCES + 1).map(|run| format!("run={run}&")).collect();
        assert!(of(&many).is_err());
    }

    #[test]
    fn a_sign_in_leads_to_this_server() {
        for (next, expected) in [
            ("/", true),
            ("/runs/7?a=b", true),
            ("", false),
            ("runs", false),
            ("//evil.example", false),
            ("/\\evil.example", false),
            ("https://evil.example", false),
            ("/a\r\nb", false),
        ] {
            assert_eq!(is_own_place(next), expected, "{next}");
        }
    }

    #[test]
    fn pages_of_a_list_keep_its_search() {
        let values = form_values("text=a+b%26c&page=4&host=");
        assert_eq!(list_path(&values, 2), "/?text=a%20b%26c&page=2");
    }

    #[test]
    fn values_are_read_with_their_escapes() {
        let check = |text: &str, expected: &[(&str, &str)]| {
            let expected: Vec<(String, String)> =
                expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            assert_eq!(form_values(text).0, expected, "{text}");
        };
        check("a=b+c&d=%C3%BC%2F&&e", &[("a", "b c"), ("d", "ü/"), ("e", "")]);
        check("a=100%&b=%zz&c=%4", &[("a", "100%"), ("b", "%zz"), ("c", "%4")]);
        check("a=b=c&a=d", &[("a", "b=c"), ("a", "d")]);
        check("", &[]);
        check("a=%ff%00", &[("a", "\u{fffd}\0")]);
        assert_eq!(form_values(&"a=b&".repeat(2 * MAX_VALUES)).0.len(), MAX_VALUES);
    }

    #[test]
    fn searches_are_those_of_the_command_line() {
        let found =
            filter(&form_values("text=--help&kind=bench&label=a%3Db&since=2026-11-01&other=x")).unwrap();
        let words = ["--kind bench", "--since 2026-11-01", "--text --help", "--label a=b"];
        assert_eq!(found.words(), words);
        assert!(
            filter(&form_values("kind=nothing")).err().unwrap().contains("no command 'nothing' keeps runs")
        );
        assert!(filter(&form_values("since=yesterday")).err().unwrap().contains("cannot read the time"));
        assert!(trend(&form_values("by=host")).unwrap().is_none());
        assert!(trend(&form_values("metric=rand-read.p99&by=host")).unwrap().is_some());
        assert!(
            trend(&form_values("metric=speed")).is_err()
                && trend(&form_values("metric=p99&by=moon")).is_err()
        );
        assert!(trend(&form_values("metric=--json")).is_err(), "it is no option");
    }
}
