//! `fathom serve`: the history in a browser. Reads, and changes tags and notes where that is allowed; it measures nothing.

mod access;
mod cache;
mod events;
mod follow;
mod forms;
mod places;
mod reply;
mod token;
mod writes;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use fathom_history::Location;
use fathom_model::units::UnitSystem;
use fathom_report::Style;
use fathom_report::html::site::Site;

use self::access::Access;
use self::places::HistoryServer;
use self::token::Token;
use super::run_arguments::location;
use crate::exit::{Complaint, Exit};
use crate::http::own_names::host_name;
use crate::http::{Limits, Server};
use crate::{output, store};

/// Readers have the CPUs after everything else: a measurement on this machine is not to feel them.
const NICE: i8 = 19;
const LIMITS: Limits =
    Limits { clients: 256, body_bytes: 16 << 10, stack_bytes: 2 << 20, nice: NICE, keeps_alive: true };

/// What `fathom serve` takes.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct ServeArguments {
    /// Address and port to listen on; readers need a token unless it is a loopback address
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:9798")]
    listen: SocketAddr,
    /// Let readers tag, note and remove runs
    #[arg(long)]
    allow_write: bool,
    /// File with the token that readers need [default: none on loopback, else a random one is printed]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Name by which readers reach this server, besides localhost, the name of this host and IP addresses (repeatable)
    #[arg(long = "host-name", value_name = "NAME")]
    host_names: Vec<String>,
    /// Units: iec (MiB/s) or si (MB/s) [default: those of the expectations, else iec]
    #[arg(long, value_name = "UNITS")]
    units: Option<UnitSystem>,
    /// History to serve: a file, or postgres://... [default: FATHOM_HISTORY, else the user's own file]
    #[arg(long, value_name = "FILE|URI", value_parser = location)]
    history: Option<Location>,
}

const EXAMPLES: &str = "\
Serves until Ctrl-C. Never starts a measurement; its threads have the lowest priority (nice 19).

Examples:
  fathom serve                                 on http://127.0.0.1:9798/, for this machine alone
  fathom serve --listen 127.0.0.1:0            on a free port
  fathom serve --allow-write                   with tags, notes and removal
  fathom serve --listen 0.0.0.0:9798           for other machines, with a token that is printed
  fathom serve --listen 0.0.0.0:9798 --token-file ~/.fathom-token --host-name perf.example.org
  ssh -L 9798:127.0.0.1:9798 server fathom serve";

/// Serves the history until the program is ended.
///
/// # Errors
/// There is no history, no token, or the address cannot be had.
pub fn run(arguments: ServeArguments) -> Result<Exit, Complaint> {
    let history = store::existing(arguments.history)?;
    let history = history.absolute().map_err(|error| failed("cannot find the history", &error))?;
    let token = match &arguments.token_file {
        Some(path) => Some(Token::read(path)?),
        None if arguments.listen.ip().is_loopback() => None,
        None => Some(Token::random().map_err(|error| failed("cannot draw a token", &error))?),
    };
    let server = Server::listen(arguments.listen).map_err(|error| unavailable(arguments.listen, &error))?;
    let address = server.address().map_err(|error| unavailable(arguments.listen, &error))?;
    let is_own = arguments.token_file.is_some();
    let lines = announcement(&history, address, token.as_ref().filter(|_| !is_own), arguments.allow_write);
    let access = Access::new(token, arguments.host_names, address.port(), arguments.allow_write);
    let style = Style { show_fio: true, units: arguments.units, ..Style::local() };
    let site = Site { style, can_write: arguments.allow_write };
    let handler = Arc::new(HistoryServer::new(history, access, site));
    server.serve(handler, LIMITS).map_err(|error| failed("cannot start a thread", &error))?;
    output::print(|out| lines.iter().try_for_each(|line| writeln!(out, "{line}")))?;
    loop {
        // Nothing is lost by a signal, which ends the program.
        std::thread::park();
    }
}

/// What is said at the start; `token` is one that nobody knows yet.
fn announcement(
    history: &Location,
    address: SocketAddr,
    token: Option<&Token>,
    can_write: bool,
) -> Vec<String> {
    let host = match address.ip() {
        ip if ip.is_unspecified() => host_name(),
        _ => None,
    };
    let place = host.map_or(address.to_string(), |name| format!("{name}:{}", address.port()));
    let mut lines = vec![format!("Serving {history}; Ctrl-C ends it.")];
    match token {
        None => lines.push(format!("Open http://{place}/")),
        Some(token) => {
            lines.push(format!("Open http://{place}/login?token={}", token.text()));
            lines.push(format!("Token: {}", token.text()));
        }
    }
    if !address.ip().is_loopback() {
        lines.push("Connections are not encrypted: use a network you trust, or a proxy with TLS.".to_owned());
    }
    if can_write {
        lines.push("Readers may tag, note and remove runs.".to_owned());
    }
    lines
}

fn unavailable(address: SocketAddr, error: &io::Error) -> Complaint {
    let hint = "choose another port, or 0 for a free one: --listen 127.0.0.1:0";
    Complaint::usage(format!("cannot listen on {address}: {}", output::plain(error)), Some(hint.to_owned()))
}

fn failed(what: &str, error: &io::Error) -> Complaint {
    Complaint::failed(format!("{what}: {}", output::plain(error)), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_printed_only_where_nobody_knows_it() {
        let (history, token) = (Location::new("/h.db"), Token::random().unwrap());
        let address = "192.0.2.1:80".parse().unwrap();
        let lines = announcement(&history, address, Some(&token), false).join("\n");
        assert!(lines.contains(&format!("http://192.0.2.1:80/login?token={}", token.text())), "{lines}");
        let lines = announcement(&history, "127.0.0.1:9798".parse().unwrap(), None, true);
        assert_eq!(lines[1], "Open http://127.0.0.1:9798/");
        assert_eq!(lines.len(), 3);
    }
}
