//! `--tui` and `--live`: what shows a run while it goes on.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;

/// Where the endpoint listens unless told otherwise.
const ENDPOINT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9797);

/// The options of commands that show a run while it goes on.
#[derive(Args, Clone, Debug, Default)]
pub struct LiveArguments {
    /// Show a full-screen view while it runs; press ? for its keys
    #[arg(long)]
    pub tui: bool,
    /// Stream live figures: ndjson[=FILE] to standard error or a file, openmetrics[=ADDR:PORT] over HTTP [default
    /// address: 127.0.0.1:9797] (repeatable)
    #[arg(long = "live", value_name = "STREAM", value_parser = LiveStream::parse)]
    pub streams: Vec<LiveStream>,
}

impl LiveArguments {
    /// True where anything is to be shown.
    pub fn is_asked_for(&self) -> bool {
        self.tui || !self.streams.is_empty()
    }
}

/// One stream of live figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveStream {
    /// A JSON object per line, to a file or to standard error.
    Lines(Option<PathBuf>),
    /// OpenMetrics text over HTTP.
    Metrics(SocketAddr),
}

impl LiveStream {
    /// Reads `ndjson[=FILE]` or `openmetrics[=ADDR:PORT]`.
    ///
    /// # Errors
    /// It is neither.
    pub fn parse(text: &str) -> Result<LiveStream, String> {
        let (kind, value) = text.split_once('=').map_or((text, None), |(kind, value)| (kind, Some(value)));
        match (kind, value) {
            ("ndjson", None) => Ok(LiveStream::Lines(None)),
            ("ndjson", Some("")) => Err("name a file after ndjson=, or write ndjson".to_owned()),
            ("ndjson", Some(path)) => Ok(LiveStream::Lines(Some(PathBuf::from(path)))),
            ("openmetrics", None) => Ok(LiveStream::Metrics(ENDPOINT)),
            ("openmetrics", Some(address)) => address.parse().map(LiveStream::Metrics).map_err(|_| {
                format!("'{address}' is not an address and a port, such as {ENDPOINT} or [::1]:9797")
            }),
            _ => Err("use ndjson, ndjson=FILE, openmetrics or openmetrics=ADDR:PORT".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams() {
        let check = |text: &str, expected: Option<LiveStream>| {
            assert_eq!(LiveStream::parse(text).ok(), expected, "{text}");
        };
        let at = |address: &str| Some(LiveStream::Metrics(address.parse().unwrap()));
        check("ndjson", Some(LiveStream::Lines(None)));
        check("ndjson=a=b.ndjson", Some(LiveStream::Lines(Some("a=b.ndjson".into()))));
        check("openmetrics", at("127.0.0.1:9797"));
        check("openmetrics=0.0.0.0:80", at("0.0.0.0:80"));
        check("openmetrics=[::1]:0", at("[::1]:0"));
        for text in ["", "json", "ndjson=", "openmetrics=", "openmetrics=9797", "openmetrics=host:1"] {
            check(text, None);
        }
    }
}
