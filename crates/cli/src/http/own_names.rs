//! The names by which clients may reach a server, so that no page of another site can read it or change anything through a browser.
//!
//! Such a page can make a browser send requests here. It cannot read the answers, unless it reaches the server under a name of its own
//! (DNS rebinding), which would make the answers its own.

use std::net::{IpAddr, SocketAddr};

use hyper::header::{HOST, HeaderMap, HeaderName};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};

pub const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const FETCH_DESTINATION: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// The name of this machine, where it has one.
pub fn host_name() -> Option<String> {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    (!name.is_empty() && name != "(none)").then_some(name)
}

/// The names of a server.
pub struct OwnNames {
    /// In lower case.
    names: Vec<String>,
    /// Says how a name is added.
    unknown: &'static str,
}

impl OwnNames {
    /// `names`, those of this machine, and every address. `unknown` refuses a request that names another host.
    pub fn new(names: &[String], unknown: &'static str) -> OwnNames {
        let own = host_name().into_iter().chain(["localhost".to_owned()]);
        let names = names.iter().cloned().chain(own).map(|name| name.to_ascii_lowercase()).collect();
        OwnNames { names, unknown }
    }

    /// The host that a request names, if that is this server and no page of another site asks.
    ///
    /// # Errors
    /// The request is to be refused with this status, because of this.
    pub fn admit<'a>(&self, head: &'a Parts) -> Result<&'a str, (StatusCode, &'static str)> {
        let Some(host) = only(&head.headers, &HOST).filter(|_| head.uri.authority().is_none()) else {
            return Err((StatusCode::BAD_REQUEST, "A request names its host once, in the header Host."));
        };
        if !self.is_ours(host) {
            return Err((StatusCode::MISDIRECTED_REQUEST, self.unknown));
        }
        if is_cross_site(&head.headers, head.method == Method::POST) {
            return Err((StatusCode::FORBIDDEN, "The request comes from another site."));
        }
        Ok(host)
    }

    /// A name that others give to a server of their own, which they then point here, is not ours; an address is always.
    fn is_ours(&self, host: &str) -> bool {
        let is_address = host.parse::<SocketAddr>().is_ok()
            || host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
        let name = host.split(':').next().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
        is_address || self.names.contains(&name)
    }
}

/// The value of a header as text.
pub fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The value of a header that is there once.
pub fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).into_iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// Whether a browser says that a page of another site asks for it. A reader may follow a link from there, to read.
fn is_cross_site(headers: &HeaderMap, is_post: bool) -> bool {
    let Some(site) = text(headers, &FETCH_SITE) else { return false };
    let is_own = matches!(site, "same-origin" | "none");
    let is_link = text(headers, &FETCH_MODE) == Some("navigate")
        && text(headers, &FETCH_DESTINATION) == Some("document")
        && !is_post;
    !is_own && !is_link
}
