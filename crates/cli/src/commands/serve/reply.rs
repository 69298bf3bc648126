//! Replies, and the headers that every answer has.

use fathom_history::{Error, ErrorKind, History, PATIENCE, RunId};
use fathom_report::html::site::{FormValues, SitePage, run_path};
use fathom_sys::clock::unix_ms;
use hyper::StatusCode;
use hyper::header::{
    CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, LOCATION, REFERRER_POLICY,
    SET_COOKIE, X_FRAME_OPTIONS,
};

use super::places::HistoryServer;
use crate::exit::{Complaint, Exit, with_causes};
use crate::http::{Answer, EventStream};

const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
/// For what is no page.
const NO_PAGE: &str = "default-src 'none'; frame-ancestors 'none'; sandbox";

/// What a place answers.
pub enum Reply {
    /// A page.
    Page(StatusCode, SitePage),
    /// A page, and a cookie.
    SignedIn(SitePage, String),
    /// The answer is at another place of this server.
    See(String, Option<String>),
    /// A file to keep: its name, type and content.
    File(String, &'static str, Vec<u8>),
    /// News of a run.
    Events(Box<dyn EventStream>),
    /// Nothing.
    Nothing,
}

impl Reply {
    /// A page that is as it should be.
    pub fn page(page: SitePage) -> Reply {
        Reply::Page(StatusCode::OK, page)
    }

    /// As it is sent.
    pub fn answer(self) -> Answer {
        let answer = match self {
            Reply::Page(status, page) => self::page(status, page),
            Reply::SignedIn(page, cookie) => with_cookie(self::page(StatusCode::OK, page), Some(cookie)),
            Reply::See(place, cookie) => {
                let answer = Answer::refusal(StatusCode::SEE_OTHER).with(LOCATION, value(&place));
                with_cookie(answer, cookie)
            }
            Reply::File(name, content_type, content) => {
                let disposition = format!("attachment; filename=\"{name}\"");
                Answer::whole(StatusCode::OK, content_type, content)
                    .with(CONTENT_DISPOSITION, value(&disposition))
            }
            Reply::Events(stream) => Answer::events(stream),
            Reply::Nothing => Answer::whole(StatusCode::NO_CONTENT, "text/plain; charset=utf-8", Vec::new()),
        };
        answer
            .with_default(CONTENT_SECURITY_POLICY, HeaderValue::from_static(NO_PAGE))
            .with(REFERRER_POLICY, HeaderValue::from_static("same-origin"))
            .with(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"))
            .with(RESOURCE_POLICY, HeaderValue::from_static("same-origin"))
    }
}

fn page(status: StatusCode, page: SitePage) -> Answer {
    let SitePage { html, policy } = page;
    Answer::whole(status, "text/html; charset=utf-8", html).with(CONTENT_SECURITY_POLICY, value(&policy))
}

fn with_cookie(answer: Answer, cookie: Option<String>) -> Answer {
    match cookie {
        Some(cookie) => answer.with(SET_COOKIE, value(&cookie)),
        None => answer,
    }
}

/// A header that is ours but for what was escaped; one that is not valid leads to the first page.
fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static("/"))
}

/// Why a place has no answer.
#[derive(Debug)]
pub struct Failure {
    /// The status of the answer.
    pub status: StatusCode,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Failure {
    /// A failure without a hint.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Failure {
        Failure { status, message: message.into(), hint: None }
    }

    /// There is no such page.
    pub fn no_page() -> Failure {
        Failure::new(StatusCode::NOT_FOUND, "There is no such page.")
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let status = match error.kind {
            ErrorKind::UnknownRun | ErrorKind::Missing => StatusCode::NOT_FOUND,
            ErrorKind::BadText => StatusCode::BAD_REQUEST,
            ErrorKind::Locked | ErrorKind::Unreachable => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Failure { status, message: with_causes(&error), hint: error.hint() }
    }
}

impl From<Complaint> for Failure {
    fn from(complaint: Complaint) -> Failure {
        let status = match complaint.exit {
            Exit::Usage => StatusCode::BAD_REQUEST,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Failure { status, message: complaint.message, hint: complaint.hint }
    }
}

impl HistoryServer {
    /// Does to `run` what a form asks for.
    ///
    /// # Errors
    /// There is no such run or action, or the history cannot be changed.
    pub fn change(&self, run: RunId, action: &str, values: &FormValues) -> Result<Reply, Failure> {
        let mut history = History::open_existing(&self.history, PATIENCE)?;
        match action {
            "tag" => history.tag(run, values.get("tag"))?,
            "untag" => drop(history.untag(run, values.get("tag"))?),
            "note" => history.add_note(run, values.get("text"), unix_ms())?,
            "remove-notes" => drop(history.remove_notes(run)?),
            "remove" if self.goes_on(run) => {
                let message = "The run is not over: stop it first.";
                return Err(Failure::new(StatusCode::CONFLICT, message));
            }
            "remove" => {
                history.remove(&[run])?;
                return Ok(Reply::See("/".to_owned(), None));
            }
            _ => return Err(Failure::no_page()),
        }
        Ok(Reply::See(run_path(u64::try_from(run.0).unwrap_or_default()), None))
    }
}
