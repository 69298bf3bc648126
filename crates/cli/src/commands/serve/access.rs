//! Who is answered: the host that a request names and the site that it comes from ([`OwnNames`]), its token, and what it may change.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::{fs, io};

use fathom_assess::AssessError;
use fathom_history::RunId;
use fathom_report::html::site::FormValues;
use fathom_sys::files::TOKEN;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, HeaderMap, ORIGIN};
use hyper::{Method, StatusCode};
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest, Sha256};

use crate::exit::Complaint;
use crate::http::Request;
use crate::http::{FETCH_SITE, OwnNames, only, text};

/// Where a token is given.
pub const LOGIN: &str = "/login";
/// The first part of the paths of shared reports.
pub const SHARED: &str = "shared";
const FORM: &str = "application/x-www-form-urlencoded";

/// Decides about requests.
pub struct Access {
    token: Option<Token>,
    names: OwnNames,
    cookie: String,
    allow_write: bool,
}

/// Why a request is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// With this status, because of this.
    Status(StatusCode, &'static str),
    /// A token is needed.
    SignIn {
        /// One was given, and is wrong.
        is_wrong: bool,
        /// A browser came from another site, and may have a cookie that it sends to its own pages alone.
        from_elsewhere: bool,
    },
}

impl Access {
    /// Readers need `token`, where there is one, and reach the server by `names`, its own or an address, on `port`.
    pub fn new(token: Option<Token>, names: Vec<String>, port: u16, allow_write: bool) -> Access {
        let unknown = "This server is not known by that name. `fathom serve --host-name NAME` adds one.";
        let names = OwnNames::new(&names, unknown);
        // Servers on other ports of the host get the same cookies.
        Access { token, names, cookie: format!("fathom-{port}"), allow_write }
    }

    /// Whether `request` may be answered.
    ///
    /// # Errors
    /// It may not.
    pub fn admit(&self, request: &Request) -> Result<(), Refusal> {
        let head = &request.head;
        let refuse = |status, reason| Err(Refusal::Status(status, reason));
        if !matches!(head.method, Method::GET | Method::HEAD | Method::POST) {
            return refuse(StatusCode::METHOD_NOT_ALLOWED, "The methods are GET, HEAD and POST.");
        }
        let host = self.names.admit(head).map_err(|(status, reason)| Refusal::Status(status, reason))?;
        let is_post = head.method == Method::POST;
        let (has_bearer, is_login) = (self.has_bearer(&head.headers), head.uri.path() == LOGIN);
        if is_post && !has_bearer && !is_of_own_page(&head.headers, host) {
            return refuse(
                StatusCode::FORBIDDEN,
                "A change comes from a page of this server, or with a token.",
            );
        }
        let is_open = is_login || (!is_post && self.is_shared(head.uri.path()));
        if !is_open && !has_bearer && !self.has_cookie(&head.headers) {
            return Err(Refusal::SignIn {
                is_wrong: head.headers.contains_key(AUTHORIZATION),
                from_elsewhere: text(&head.headers, &FETCH_SITE)
                    .is_some_and(|site| site != "same-origin" && site != "none"),
            });
        }
        if is_post && !is_login && !self.allow_write {
            return refuse(
                StatusCode::FORBIDDEN,
                "This server is read-only. `fathom serve --allow-write` is not.",
            );
        }
        if is_post && text(&head.headers, &CONTENT_TYPE).is_none_or(|kind| !is_form(kind)) {
            return refuse(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "A form has the type application/x-www-form-urlencoded.",
            );
        }
        Ok(())
    }

    /// The cookie for a reader who gives the token in `values`; `None` for a wrong one, and where none is needed.
    pub fn sign_in(&self, values: &FormValues) -> Option<String> {
        let token = self.token.as_ref().filter(|token| token.is(values.get("token")))?;
        Some(format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie, token.session()))
    }

    /// Whether readers need a token.
    pub fn needs_token(&self) -> bool {
        self.token.is_some()
    }

    /// Where the report of `run` is for who has the link alone; `None` where nobody needs a token.
    pub fn shared_path(&self, run: RunId) -> Option<String> {
        Some(format!("/{SHARED}/{run}/{}", self.token.as_ref()?.seal(&shared_text(run))))
    }

    /// Whether `path` is [`Access::shared_path`] of a run.
    pub fn is_shared(&self, path: &str) -> bool {
        let mut parts = path.split('/').skip(1);
        let (Some(SHARED), Some(run), Some(seal), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return false;
        };
        let (Some(token), Ok(run)) = (&self.token, run.parse()) else { return false };
        token.is_seal(seal, &shared_text(run))
    }

    /// The token of a program; one that needs none has none.
    fn has_bearer(&self, headers: &HeaderMap) -> bool {
        let given = only(headers, &AUTHORIZATION).and_then(|text| text.split_once(' '));
        let given = given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let (Some(token), Some((_, given))) = (&self.token, given) else { return false };
        token.is(given.trim())
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return true };
        let cookies = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            cookies.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, value)| name == self.cookie && token.is_session(value))
    }
}

fn shared_text(run: RunId) -> String {
    format!("{SHARED} {run}")
}

fn is_form(content_type: &str) -> bool {
    content_type.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(FORM))
}

/// Whether a browser says that a page of this server sends it. Browsers always tell the origin of what they post.
fn is_of_own_page(headers: &HeaderMap, host: &str) -> bool {
    match only(headers, &ORIGIN) {
        Some(origin) => {
            let place = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            place.is_some_and(|place| place.eq_ignore_ascii_case(host))
        }
        None => !headers.contains_key(ORIGIN) && text(headers, &FETCH_SITE) == Some("same-origin"),
    }
}

/// Bytes of a random token.
const RANDOM_BYTES: usize = 24;
/// Fewest characters of a token that a user chose.
const SHORTEST: usize = 16;

/// A secret of the server and its readers. It is in no message.
pub struct Token(String);

impl Token {
    /// A token that nobody can guess.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn random() -> io::Result<Token> {
        let mut bytes = [0; RANDOM_BYTES];
        // The kernel gives so few at once, or none.
        let count = getrandom(&mut bytes, GetRandomFlags::empty())?;
        if count < bytes.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Token(hex(&bytes)))
    }

    /// The first line of the file at `path`.
    ///
    /// # Errors
    /// It cannot be read, others may read it, or it has no token.
    pub fn read(path: &Path) -> Result<Token, Complaint> {
        let text = TOKEN.read_text(path).map_err(AssessError::from)?;
        let name = path.display();
        // Whatever could be read has a mode.
        let mode = fs::metadata(path).map_or(0, |metadata| metadata.permissions().mode());
        if mode & 0o077 != 0 {
            let hint = format!("make it yours alone: chmod 600 '{name}'");
            return Err(Complaint::usage(format!("other users may read the token in {name}"), Some(hint)));
        }
        let token = text.lines().next().unwrap_or_default().trim();
        if token.len() < SHORTEST || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            let message = format!(
                "the first line of {name} has to be a token of {SHORTEST} or more visible ASCII characters"
            );
            let hint = format!("draw one: head -c 24 /dev/urandom | base64 > '{name}'");
            return Err(Complaint::usage(message, Some(hint)));
        }
        Ok(Token(token.to_owned()))
    }

    /// The token itself.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether `given` is the token. How long that takes depends on neither.
    pub fn is(&self, given: &str) -> bool {
        is_same(&self.0, given)
    }

    /// What a cookie has in its place: a browser keeps no token.
    pub fn session(&self) -> String {
        self.seal("session")
    }

    /// Whether `given` is [`Token::session`].
    pub fn is_session(&self, given: &str) -> bool {
        self.is_seal(given, "session")
    }

    /// What only who knows the token can make of `text`.
    pub fn seal(&self, text: &str) -> String {
        // Two rounds, so that no seal of a text is the beginning of that of a longer one.
        let inner = Sha256::digest(format!("fathom {} {text}", self.0));
        hex(&Sha256::digest(format!("fathom {} {}", self.0, hex(&inner))))
    }

    /// Whether `given` is [`Token::seal`] of `text`.
    pub fn is_seal(&self, given: &str, text: &str) -> bool {
        is_same(&self.seal(text), given)
    }
}

/// Compares digests of both, and all of them.
fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (Sha256::digest(one), Sha256::digest(other));
    one.iter().zip(other.iter()).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::http::request::Builder;

    fn request(method: &str, path: &str, headers: &[(&str, &str)]) -> Request {
        let builder =
            headers.iter().fold(Builder::new().method(method).uri(path), |builder, (name, value)| {
                builder.header(*name, *value)
            });
        Request { head: builder.body(()).unwrap().into_parts().0, body: Vec::new() }
    }

    fn status(access: &Access, method: &str, headers: &[(&str, &str)]) -> u16 {
        match access.admit(&request(method, "/", headers)) {
            Ok(()) => 200,
            Err(Refusal::Status(status, _)) => status.as_u16(),
            Err(Refusal::SignIn { .. }) => 401,
        }
    }

    const OWN: (&str, &str) = ("host", "localhost:9798");
    const FORM_TYPE: (&str, &str) = ("content-type", "application/x-www-form-urlencoded; charset=utf-8");

    #[test]
    fn only_names_of_this_server_are_its_own() {
        let access = Access::new(None, vec!["Perf.Example.org".to_owned()], 9798, false);
        for host in [
            "localhost", "LOCALHOST.:1", "127.0.0.1:9798", "[::1]:9798", "[::1]", "192.0.2.7",
            "perf.example.org:80",
        ] {
            assert_eq!(status(&access, "GET", &[("host", host)]), 200, "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "[localhost]", "::1:x"]
        {
            assert_eq!(status(&access, "GET", &[("host", host)]), 421, "{host}");
        }
        assert_eq!(status(&access, "GET", &[]), 400);
        assert_eq!(status(&access, "GET", &[OWN, ("host", "localhost")]), 400);
        let absolute = request("GET", "http://evil.example/", &[OWN]);
        assert!(access.admit(&absolute).is_err());
        assert_eq!(status(&access, "PUT", &[OWN]), 405);
    }

    #[test]
    fn other_sites_may_only_link_here() {
        let access = Access::new(None, Vec::new(), 9798, true);
        let from = |site, mode, destination| {
            let headers =
                [OWN, ("sec-fetch-site", site), ("sec-fetch-mode", mode), ("sec-fetch-dest", destination)];
            status(&access, "GET", &headers)
        };
        assert_eq!(from("cross-site", "navigate", "document"), 200);
        assert_eq!(from("same-origin", "cors", "empty"), 200);
        assert_eq!(from("none", "navigate", "document"), 200);
        assert_eq!(from("cross-site", "no-cors", "image"), 403);
        assert_eq!(from("same-site", "cors", "empty"), 403);
        assert_eq!(from("cross-site", "navigate", "iframe"), 403);
    }

    #[test]
    fn changes_come_from_own_pages() {
        let access = Access::new(None, Vec::new(), 9798, true);
        let post = |headers: &[(&str, &str)]| status(&access, "POST", &[&[OWN, FORM_TYPE], headers].concat());
        assert_eq!(post(&[("origin", "http://localhost:9798")]), 200);
        assert_eq!(post(&[("origin", "https://localhost:9798")]), 200);
        assert_eq!(post(&[("sec-fetch-site", "same-origin")]), 200);
        for origin in ["http://localhost:80", "http://evil.example", "null", "localhost:9798", ""] {
            assert_eq!(post(&[("origin", origin)]), 403, "{origin}");
        }
        assert_eq!(post(&[]), 403);
        assert_eq!(post(&[("origin", "null"), ("sec-fetch-site", "same-origin")]), 403);
        let link = [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ];
        assert_eq!(post(&link), 403);
        let own = ("origin", "http://localhost:9798");
        assert_eq!(status(&access, "POST", &[OWN, own, ("content-type", "text/plain")]), 415);
        assert_eq!(status(&access, "POST", &[OWN, own]), 415);
        let read_only = Access::new(None, Vec::new(), 9798, false);
        assert_eq!(status(&read_only, "POST", &[OWN, FORM_TYPE, own]), 403);
    }

    #[test]
    fn a_token_is_given_as_a_header_or_kept_in_a_cookie() {
        let token = Token::random().unwrap();
        let (text, session) = (token.text().to_owned(), token.session());
        let access = Access::new(Some(token), Vec::new(), 9798, true);
        let get = |name: &str, value: &str| status(&access, "GET", &[OWN, (name, value)]);
        assert_eq!(status(&access, "GET", &[OWN]), 401);
        assert_eq!(get("authorization", &format!("Bearer {text}")), 200);
        assert_eq!(get("authorization", &format!("bearer  {text}")), 200);
        for wrong in ["Bearer", "Bearer ", "Bearer wrong", "Basic abc", &text, &format!("Bearer {session}")] {
            assert_eq!(get("authorization", wrong), 401, "{wrong}");
        }
        assert_eq!(get("cookie", &format!("a=b; fathom-9798={session}; c=d")), 200);
        for wrong in
            [format!("fathom-9798={text}"), format!("fathom-9799={session}"), "fathom-9798=".to_owned()]
        {
            assert_eq!(get("cookie", &wrong), 401, "{wrong}");
        }
        let bearer = format!("Bearer {text}");
        let post = [OWN, FORM_TYPE, ("authorization", bearer.as_str())];
        assert_eq!(status(&access, "POST", &post), 200, "a program has no page");
        let values = |token: &str| FormValues(vec![("token".to_owned(), token.to_owned())]);
        let cookie = access.sign_in(&values(&text)).unwrap();
        assert_eq!(cookie, format!("fathom-9798={session}; Path=/; HttpOnly; SameSite=Strict"));
        assert_eq!(access.sign_in(&values("wrong")), None);
        let shared = access.shared_path(RunId(7)).unwrap();
        assert!(access.admit(&request("GET", &shared, &[OWN])).is_ok());
        for other in [shared.replace("/7/", "/8/"), format!("{shared}/"), shared.replace("shared", "runs")] {
            assert!(access.admit(&request("GET", &other, &[OWN])).is_err(), "{other}");
        }
        assert!(access.admit(&request("POST", &shared, &[OWN, FORM_TYPE])).is_err());
        assert!(access.admit(&request("GET", LOGIN, &[OWN])).is_ok());
        assert!(access.admit(&request("GET", "/login/", &[OWN])).is_err());
    }

    #[test]
    fn tokens_are_long_and_compared_whole() {
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert_eq!(one.text().len(), 2 * RANDOM_BYTES);
        assert_ne!(one.text(), other.text());
        assert!(one.is(one.text()) && !one.is(other.text()) && !one.is("") && !one.is(&one.text()[1..]));
        assert!(one.is_seal(&one.seal("a"), "a") && !one.is_seal(&one.seal("a"), "b"));
        assert!(!one.is_seal(&other.seal("a"), "a"));
        assert!(one.is_session(&one.session()) && !one.is_session(one.text()) && !one.is(&one.session()));
    }

    #[test]
    fn files_have_a_token_that_others_cannot_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let check = |text: &str, mode: u32, part: &str| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            match Token::read(&path) {
                Ok(token) => assert_eq!(token.text(), part),
                Err(complaint) => assert!(complaint.message.contains(part), "{}", complaint.message),
            }
        };
        check("0123456789abcdef\nmore\n", 0o600, "0123456789abcdef");
        check("0123456789abcdef", 0o640, "other users may read the token");
        check("0123456789abcde\n", 0o600, "has to be a token of 16");
        check("0123456789 abcdef\n", 0o600, "has to be a token");
        check("", 0o400, "has to be a token");
        fs::remove_file(&path).unwrap();
        assert!(Token::read(&path).is_err());
    }
}
