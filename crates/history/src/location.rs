//! Where a history is: a file, or a PostgreSQL server. Passwords in the URI of a server are passed on to its client library and
//! are shown nowhere.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

/// The schemes by which a server is recognised.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
/// How the names of directories for servers begin.
pub(crate) const DIRECTORY_PREFIX: &str = "server-";
/// Replaces a password.
const HIDDEN: &str = "***";
/// Shorter ones are in too many words to be looked for.
const SHORTEST_SECRET: usize = 3;

/// Where a history is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// An SQLite file.
    File(PathBuf),
    /// A database of a PostgreSQL server.
    Server(Arc<ServerUri>),
}

impl Location {
    /// The location that `text` names: the URI of a server, or a path.
    pub fn new(text: impl Into<PathBuf>) -> Location {
        let path = text.into();
        match path.to_str().and_then(ServerUri::new) {
            Some(server) => Location::Server(Arc::new(server)),
            None => Location::File(path),
        }
    }

    /// The path of a file.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Location::File(path) => Some(path),
            Location::Server(_) => None,
        }
    }

    /// The same from any current directory.
    ///
    /// # Errors
    /// The current directory cannot be found.
    pub fn absolute(&self) -> io::Result<Location> {
        match self {
            Location::File(path) => std::path::absolute(path).map(Location::File),
            Location::Server(server) => Ok(Location::Server(server.clone())),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::File(path) => path.display().fmt(f),
            Location::Server(server) => f.write_str(&server.shown),
        }
    }
}

/// The connection URI of a server. Shown without password and options of the connection.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerUri {
    uri: String,
    shown: String,
    secrets: Vec<String>,
    problem: Option<&'static str>,
}

impl ServerUri {
    /// `None` where `text` is no URI of a server. A malformed URI is refused when it is opened.
    fn new(text: &str) -> Option<ServerUri> {
        let rest = SCHEMES.iter().find_map(|scheme| text.strip_prefix(scheme))?;
        let read = |server: Result<ServerUri, &'static str>| {
            server.unwrap_or_else(|problem| ServerUri {
                uri: text.to_owned(),
                // Where a password ends in it is unknown.
                shown: format!("{}{HIDDEN}", SCHEMES[0]),
                secrets: Vec::new(),
                problem: Some(problem),
            })
        };
        Some(read(parse(text, rest)))
    }

    /// The URI as it was given, with its password.
    pub(crate) fn uri(&self) -> &str {
        &self.uri
    }

    /// Why it cannot be used, where it cannot.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        self.problem
    }

    /// A name for a directory, the same for each URI of this database and user.
    pub fn directory_name(&self) -> Option<String> {
        let name = self.shown.strip_prefix(SCHEMES[0])?;
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.@,:".contains(byte);
        let escape = |byte: u8| match is_plain(&byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        };
        let name: String = name.bytes().map(escape).collect();
        // The prefix keeps names such as `..` from having a meaning; names of files have at most 255 bytes.
        (self.problem.is_none() && name.len() <= 200).then(|| format!("{DIRECTORY_PREFIX}{name}"))
    }

    /// `message` without the passwords of this URI.
    pub(crate) fn redact(&self, message: &str) -> String {
        let secrets = self.secrets.iter().filter(|secret| secret.len() >= SHORTEST_SECRET);
        secrets.fold(message.to_owned(), |message, secret| message.replace(secret.as_str(), HIDDEN))
    }
}

impl fmt::Debug for ServerUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerUri({})", self.shown)
    }
}

const MISPLACED: &str = "write @ and / in a user name or password as %40 and %2F";
const BAD_ESCAPE: &str = "write % as %25";
const BAD_PARAMETER: &str = "write each parameter as NAME=VALUE, and & in a value as %26";

/// Parameters that say which database it is; the others say how it is reached.
const NAMING: [&str; 6] = ["host", "hostaddr", "port", "user", "dbname", "service"];
const SECRET: [&str; 2] = ["password", "sslpassword"];

/// Reads the part of a URI after its scheme, as libpq does: a user is named if an `@` comes before the first `/`.
fn parse(uri: &str, rest: &str) -> Result<ServerUri, &'static str> {
    let user_end = rest.find(['@', '/']).filter(|&end| rest.as_bytes()[end] == b'@');
    let (user, rest) = user_end.map_or(("", rest), |end| (&rest[..end], &rest[end + 1..]));
    let (name, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    // Part of a password would otherwise be taken for a host, a port or a database, and shown.
    let hosts = name.split('/').next().unwrap_or_default();
    if name.contains('@') || name.matches('/').count() > 1 || !hosts.split(',').all(has_port_or_none) {
        return Err(MISPLACED);
    }
    let (user, password) = user.split_once(':').map_or((user, None), |(user, word)| (user, Some(word)));
    let mut secrets = Vec::new();
    let mut add_secret = |secret: &str| -> Result<(), &'static str> {
        secrets.extend([secret.to_owned(), decoded(secret)?]);
        Ok(())
    };
    password.map_or(Ok(()), &mut add_secret)?;
    let mut naming = Vec::new();
    for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
        let (key, value) = parameter.split_once('=').ok_or(BAD_PARAMETER)?;
        decoded(value)?;
        if SECRET.contains(&key) {
            add_secret(value)?;
        } else if NAMING.contains(&key) {
            naming.push(parameter);
        }
    }
    decoded(user).and(decoded(name))?;
    let at = if user.is_empty() { "" } else { "@" };
    let mark = if naming.is_empty() { "" } else { "?" };
    let shown = format!("{}{user}{at}{name}{mark}{}", SCHEMES[0], naming.join("&"));
    secrets.retain(|secret| !secret.is_empty());
    Ok(ServerUri { uri: uri.to_owned(), shown, secrets, problem: None })
}

/// Whether what follows the host's name is a number.
fn has_port_or_none(host: &str) -> bool {
    let after_address = host.rsplit_once(']').map_or(host, |(_, rest)| rest);
    after_address.split_once(':').is_none_or(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A text of a URI without its escapes.
fn decoded(text: &str) -> Result<String, &'static str> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16)).ok_or(BAD_ESCAPE);
        bytes.push((digit()? * 16 + digit()?) as u8);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A word of a command line without the password of a server's URI in it.
pub fn without_password(word: &str) -> Cow<'_, str> {
    let start = SCHEMES.iter().filter_map(|scheme| word.find(scheme)).min();
    match start.and_then(|start| Some((start, ServerUri::new(&word[start..])?))) {
        Some((start, server)) => format!("{}{}", &word[..start], server.shown).into(),
        None => word.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(uri: &str) -> Arc<ServerUri> {
        match Location::new(uri) {
            Location::Server(server) => server,
            Location::File(path) => panic!("{path:?}"),
        }
    }

    #[test]
    fn only_uris_are_servers() {
        for path in ["postgres", "postgres:/x", "/postgres://x", "", "mysql://x", "POSTGRES://x"] {
            assert_eq!(Location::new(path), Location::File(path.into()));
        }
        assert!(matches!(Location::new("postgresql://"), Location::Server(_)));
    }

    #[test]
    fn passwords_and_options_are_not_shown() {
        let check = |uri: &str, expected: &str| {
            let location = Location::new(uri);
            assert_eq!(location.to_string(), expected);
            assert!(!format!("{location:?}").contains("sesame"), "{location:?}");
        };
        check("postgres://db/fathom", "postgres://db/fathom");
        check("postgresql://ann:sesame@db:5433/fathom", "postgres://ann@db:5433/fathom");
        check("postgres://ann:open:sesame?@db/x", "postgres://ann@db/x");
        check("postgres://:sesame@db/x", "postgres://db/x");
        check("postgres://a%40b:s%65same@[::1],db2:7/x?sslmode=require", "postgres://a%40b@[::1],db2:7/x");
        check("postgres:///x?host=/run/pg&password=sesame&port=7", "postgres:///x?host=/run/pg&port=7");
        check("postgres://?service=team&sslpassword=sesame", "postgres://?service=team");
        // Where the password ends cannot be known.
        check("postgres://ann:ses/ame@db/x", "postgres://***");
        check("postgres://ann:ses@ame@db/x", "postgres://***");
        check("postgres://ann:sesame/x", "postgres://***");
        check("postgres://ann:sesame%zz@db/x", "postgres://***");
        check("postgres://db/x?password=ses&ame", "postgres://***");
    }

    #[test]
    fn passwords_are_removed_from_messages() {
        let server = server("postgres://ann:s%65same@db/x?sslpassword=open");
        assert_eq!(server.redact("bad s%65same, sesame and open"), "bad ***, *** and ***");
        assert_eq!(self::server("postgres://ann:a@db").redact("refused"), "refused");
    }

    #[test]
    fn malformed_uris_are_named() {
        for (uri, problem) in [
            ("postgres://ann:x/y@db/x", MISPLACED),
            ("postgres://db/x?password", BAD_PARAMETER),
            ("postgres://ann:100%@db", BAD_ESCAPE),
        ] {
            assert_eq!(server(uri).problem(), Some(problem), "{uri}");
            assert_eq!(server(uri).directory_name(), None);
        }
    }

    #[test]
    fn a_directory_is_named_by_the_database() {
        let check = |uri: &str, expected: &str| assert_eq!(server(uri).directory_name().unwrap(), expected);
        check("postgres://ann:sesame@db:5432/fathom", "server-ann@db:5432%2Ffathom");
        check("postgresql://ann@db:5432/fathom?sslmode=require", "server-ann@db:5432%2Ffathom");
        check("postgres://..", "server-..");
        check("postgres:///x?host=/run/pg", "server-%2Fx%3Fhost%3D%2Frun%2Fpg");
    }

    #[test]
    fn words_of_a_command_line_lose_passwords() {
        let check = |word: &str, expected: &str| assert_eq!(without_password(word), expected);
        check("--history=postgres://ann:sesame@db/x", "--history=postgres://ann@db/x");
        check("postgresql://ann:sesame@db/x", "postgres://ann@db/x");
        check("postgres://ann:se/same@db", "postgres://***");
        check("--name=x", "--name=x");
    }
}
