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
    /// Stream live figures: ndjson[=FILE] to standard error or a file, openmetrics[=ADDR:PORT[,NAME...]] over HTTP,
    /// which clients reach by address, by the name of this host or by NAME [default address: 127.0.0.1:9797] (repeatable)
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
    Metrics {
        /// Where it listens.
        address: SocketAddr,
        /// Names by which clients reach it, besides those of this machine.
        host_names: Vec<String>,
    },
}

impl LiveStream {
    /// Reads `ndjson[=FILE]` or `openmetrics[=ADDR:PORT[,NAME...]]`.
    ///
    /// # Errors
    /// It is neither.
    pub fn parse(text: &str) -> Result<LiveStream, String> {
        let (kind, value) = text.split_once('=').map_or((text, None), |(kind, value)| (kind, Some(value)));
        match (kind, value) {
            ("ndjson", None) => Ok(LiveStream::Lines(None)),
            ("ndjson", Some("")) => Err("name a file after ndjson=, or write ndjson".to_owned()),
            ("ndjson", Some(path)) => Ok(LiveStream::Lines(Some(PathBuf::from(path)))),
            ("openmetrics", None) => Ok(LiveStream::Metrics { address: ENDPOINT, host_names: Vec::new() }),
            ("openmetrics", Some(value)) => {
                let mut parts = value.split(',');
                let address = parts.next().unwrap_or_default();
                let address = address.parse().map_err(|_| {
                    format!("'{address}' is not an address and a port, such as {ENDPOINT} or [::1]:9797")
                })?;
                let host_names: Vec<String> = parts.map(str::to_owned).collect();
                match host_names.iter().any(String::is_empty) {
                    true => Err("name a host after each comma".to_owned()),
                    false => Ok(LiveStream::Metrics { address, host_names }),
                }
            }
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
        let named = |address: &str, names: &[&str]| {
            let host_names = names.iter().map(|&name| name.to_owned()).collect();
            Some(LiveStream::Metrics { address: address.parse().unwrap(), host_names })
        };
        let at = |address: &str| named(address, &[]);
        check("ndjson", Some(LiveStream::Lines(None)));
        check("ndjson=a=b.ndjson", Some(LiveStream::Lines(Some("a=b.ndjson".into()))));
        check("openmetrics", at("127.0.0.1:9797"));
        check("openmetrics=0.0.0.0:80", at("0.0.0.0:80"));
        check("openmetrics=[::1]:0", at("[::1]:0"));
        check("openmetrics=0.0.0.0:80,a.example,b", named("0.0.0.0:80", &["a.example", "b"]));
        for text in [
            "",
            "json",
            "ndjson=",
            "openmetrics=",
            "openmetrics=9797",
            "openmetrics=host:1",
            "openmetrics=[::1]:0,",
        ] {
            check(text, None);
        }
    }
}
