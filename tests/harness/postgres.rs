//! A PostgreSQL server for tests, private to them: in a directory of its own, on a socket in it, run by an unprivileged user.
//!
//! A process beside it waits for the end of the test process, however that ends, and then stops the server and removes the
//! directory.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Pid, Signal};

use crate::shell::{must_run, try_run};
use crate::skip;

/// Where Debian puts the versions of the server, which are not on the search path.
const VERSIONS: &str = "/usr/lib/postgresql";
/// The unprivileged user, `nobody`, if the tests run as root: the server refuses root.
const NOBODY: u32 = 65_534;
/// A user of the server who needs a password.
const GUARDED: &str = "guarded";
/// The password of that user.
const PASSWORD: &str = "open sesame";

/// A running server.
#[derive(Debug)]
pub struct PostgresServer {
    programs: PathBuf,
    directory: PathBuf,
    databases: AtomicUsize,
    /// Its standard input ends with this process.
    undertaker: Child,
}

impl PostgresServer {
    /// Starts a server; `None`, and says so, where none is installed.
    ///
    /// # Panics
    /// When it cannot be started, or may not be skipped.
    pub fn start() -> Option<PostgresServer> {
        installed().map(PostgresServer::with)
    }

    /// As [`PostgresServer::start`], the same server for all tests of a process, which must not stop it.
    pub fn shared() -> Option<&'static PostgresServer> {
        static SHARED: OnceLock<PostgresServer> = OnceLock::new();
        installed().map(|programs| SHARED.get_or_init(|| PostgresServer::with(programs)))
    }

    fn with(programs: PathBuf) -> PostgresServer {
        let directory = tempfile::Builder::new().prefix("fathom-pg-").tempdir().expect("temporary directory");
        let directory = directory.keep();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).expect("own directory");
        let is_root = fs::metadata(&directory).expect("own directory").uid() == 0;
        if is_root {
            chown(&directory, Some(NOBODY), Some(NOBODY)).expect("root may give a directory away");
        }
        let undertaker = undertaker(&directory);
        let server = PostgresServer { programs, directory, databases: AtomicUsize::new(0), undertaker };
        server.initialize();
        server.resume();
        server.sql(
            "postgres",
            &format!("CREATE ROLE {GUARDED} LOGIN SUPERUSER PASSWORD '{PASSWORD}'; CREATE ROLE reader LOGIN"),
        );
        server
    }

    fn initialize(&self) {
        let data = self.data();
        let mut initdb = self.program("initdb");
        initdb.args(["--no-sync", "--encoding=UTF8", "--locale=C", "--username=fathom", "--auth=trust"]);
        must_run(initdb.arg("--pgdata").arg(&data));
        let rules = format!("local all {GUARDED} scram-sha-256\nlocal all all trust\n");
        fs::write(data.join("pg_hba.conf"), rules).expect("a file of the server");
        let settings = format!(
            "listen_addresses = ''\nunix_socket_directories = '{}'\nmax_connections = 200\nfsync = off\n",
            self.directory.display()
        );
        fs::write(data.join("postgresql.auto.conf"), settings).expect("a file of the server");
    }

    /// The URI of a database, for a user who may do everything.
    pub fn uri(&self, database: &str) -> String {
        format!("postgres://fathom@/{database}?host={}", self.directory.display())
    }

    /// The URI of a database with a user who needs a password.
    pub fn guarded_uri(&self, database: &str, password: &str) -> String {
        let password = password.replace(' ', "%20");
        format!("postgres://{GUARDED}:{password}@/{database}?host={}", self.directory.display())
    }

    /// The password that [`PostgresServer::guarded_uri`] needs.
    pub fn password(&self) -> &'static str {
        PASSWORD
    }

    /// Makes an empty database, and returns its name.
    pub fn create_database(&self) -> String {
        let name = format!("history_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        name
    }

    /// Runs SQL in a database; unqualified names are those of the history. Returns the values, a row a line.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        must_run(self.psql(database).arg("--command").arg(sql))
    }

    /// A client for a database.
    pub fn psql(&self, database: &str) -> Command {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.env("PGOPTIONS", "-c search_path=fathom -c client_min_messages=warning");
        psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1"]);
        psql.arg(self.uri(database));
        psql
    }

    /// Ends the server at once, as a crash of it does.
    pub fn stop(&self) {
        must_run(self.control().args(["stop", "--mode=immediate"]));
    }

    /// Starts the server again.
    pub fn resume(&self) {
        let log = self.directory.join("log");
        must_run(self.control().args(["start", "--wait", "--silent", "--log"]).arg(log));
    }

    /// Stops all its processes, as if it hung, until [`PostgresServer::go_on`].
    pub fn hang(&self) {
        self.signal(Signal::STOP);
    }

    /// The end of a hang.
    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let file = fs::read_to_string(self.data().join("postmaster.pid")).expect("the server runs");
        let pid = file.lines().next().expect("its first line is its process id");
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        for pid in std::iter::once(pid).chain(children.split_whitespace()) {
            let pid = pid.parse().ok().and_then(Pid::from_raw).expect("a process id");
            // A child may have ended meanwhile.
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    /// The URI of a database for a user with no privileges.
    pub fn reader_uri(&self, database: &str) -> String {
        self.uri(database).replace("fathom@", "reader@")
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    fn control(&self) -> Command {
        let mut control = self.program("pg_ctl");
        // The server keeps what it inherits.
        control.arg("--pgdata").arg(self.data()).current_dir("/");
        control
    }

    fn program(&self, name: &str) -> Command {
        as_owner_of(&self.directory, &self.programs.join(name))
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        drop(self.undertaker.stdin.take());
        let _ = self.undertaker.wait();
    }
}

/// As [`programs`]; says where there are none.
fn installed() -> Option<PathBuf> {
    let found = programs();
    if found.is_none() {
        skip("needs the programs initdb, pg_ctl and psql (Debian: postgresql)");
    }
    found
}

/// The directory with the programs of the newest server.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir(VERSIONS).into_iter().flatten().flatten();
    let mut found: Vec<(u32, PathBuf)> = versions
        .filter_map(|version| {
            let number = version.file_name().to_str()?.parse().ok()?;
            Some((number, version.path().join("bin")))
        })
        .collect();
    found.sort();
    let newest_first = found.into_iter().rev().map(|(_, programs)| programs);
    let elsewhere: Vec<PathBuf> =
        std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    newest_first
        .chain(elsewhere)
        .find(|programs| ["initdb", "pg_ctl", "psql"].iter().all(|name| programs.join(name).is_file()))
}

/// A program run by the owner of `directory`.
fn as_owner_of(directory: &Path, program: &Path) -> Command {
    let owner = fs::metadata(directory).map_or(0, |metadata| metadata.uid());
    if owner != NOBODY {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(program);
    command
}

/// Waits for the end of its input, stops the server and removes `directory`; in a session of its own, so that no signal for the
/// tests ends it.
fn undertaker(directory: &Path) -> Child {
    const SCRIPT: &str = "trap '' HUP INT TERM; cat > /dev/null; cd /
        for pid in $(head -n 1 \"$1/data/postmaster.pid\"); do
            kill -CONT $pid $(cat /proc/$pid/task/$pid/children) 2> /dev/null
        done
        kill -QUIT $(head -n 1 \"$1/data/postmaster.pid\") 2> /dev/null
        for look in $(seq 100); do test -e \"$1/data/postmaster.pid\" || break; sleep 0.05; done
        rm -rf --one-file-system \"$1\"";
    let spawned = Command::new("setsid")
        .args(["sh", "-c", SCRIPT, "undertaker"])
        .arg(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    spawned.unwrap_or_else(|error| {
        try_run(Command::new("rm").arg("-rf").arg(directory));
        panic!("cannot run setsid: {error}")
    })
}
