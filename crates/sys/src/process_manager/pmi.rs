//! The process-manager interfaces PMI-1 and PMI-2: pairs `name=value` on an inherited socket; the process asks, the launcher answers.
//!
//! Version 1 (MPICH's `mpiexec`, hydra, alone and inside batch systems) writes lines of pairs between blanks. Version 2 (Slurm's
//! `srun --mpi=pmi2`) agrees on the version by such a line; then each message is a length of six characters and pairs each ended by a
//! semicolon, which no value can hold: Slurm has no escape for it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::connection::{Asked, Connection, Inherited, MAX_MESSAGE};
use super::{JobPlace, ProcessManager, ProcessManagerError, TextLimits};

/// Characters of the length before a message of version 2.
const LENGTH_WIDTH: usize = 6;
/// The limits of version 2, with the byte that ends a text in C; no message asks for them.
const LIMITS_2: TextLimits = TextLimits { key: 63, value: 1023 };

/// A process's connection to the launcher of its job.
#[derive(Debug)]
pub(super) struct Pmi {
    connection: Connection,
    place: JobPlace,
    version: Version,
}

#[derive(Debug)]
enum Version {
    /// With the name of the job's space of keys and values.
    One {
        space: String,
    },
    Two,
}

impl Pmi {
    /// Greets a launcher of version 1.
    pub(super) fn connect_1(inherited: Inherited, limit: Duration) -> Result<Pmi, ProcessManagerError> {
        let asked = Asked::new("init", limit);
        let version = Version::One { space: String::new() };
        let mut pmi = Pmi::greet(inherited, "PMI-1", version, asked)?;
        let asked = asked.then("get_maxes");
        let maxes = pmi.ask("cmd=get_maxes", "maxes", asked)?;
        // The launcher counts the byte that ends a text in C.
        let max = |name: &str| maxes.get(name)?.parse::<usize>().ok()?.checked_sub(1);
        let limits = max("keylen_max").zip(max("vallen_max"));
        let (key, value) = limits.ok_or_else(|| maxes.unexpected(asked))?;
        pmi.place.limits = TextLimits { key, value };
        let asked = asked.then("get_my_kvsname");
        let mut names = pmi.ask("cmd=get_my_kvsname", "my_kvsname", asked)?;
        let space = names.take("kvsname").ok_or_else(|| names.unexpected(asked))?;
        pmi.version = Version::One { space };
        Ok(pmi)
    }

    /// Greets a launcher of version 2, of the job `job`.
    pub(super) fn connect_2(
        inherited: Inherited,
        job: Option<String>,
        limit: Duration,
    ) -> Result<Pmi, ProcessManagerError> {
        let job = job.ok_or(ProcessManagerError::Environment("PMI_JOBID"))?;
        let asked = Asked::new("init", limit);
        let mut pmi = Pmi::greet(inherited, "PMI-2", Version::Two, asked)?;
        let JobPlace { rank, size, .. } = pmi.place;
        let asked = asked.then("fullinit");
        let body = format!("cmd=fullinit;pmijobid={job};pmirank={rank};threaded=FALSE;");
        let answer = pmi.ask(&body, "fullinit-response", asked)?;
        let is_place =
            |name: &str, expected: u32| answer.get(name).is_none_or(|text| text.parse() == Ok(expected));
        match is_place("rank", rank) && is_place("size", size) {
            true => Ok(pmi),
            false => Err(answer.unexpected(asked)),
        }
    }

    /// Agrees on the version, which is a line in both.
    fn greet(
        inherited: Inherited,
        interface: &'static str,
        version: Version,
        asked: Asked,
    ) -> Result<Pmi, ProcessManagerError> {
        let Inherited { stream, rank, size } = inherited;
        let mut connection = Connection::new(stream);
        let (number, subversion) = if matches!(version, Version::Two) { ("2", 0) } else { ("1", 1) };
        let line = format!("cmd=init pmi_version={number} pmi_subversion={subversion}\n");
        connection.send(line.as_bytes(), asked)?;
        let greeting = Words::between_blanks(&connection.line(asked)?);
        greeting.expect(asked, "response_to_init")?;
        match greeting.get("pmi_version") == Some(number) {
            true => {
                let place = JobPlace { interface, rank, size, limits: LIMITS_2 };
                Ok(Pmi { connection, place, version })
            }
            false => Err(greeting.unexpected(asked)),
        }
    }

    /// Sends a message and takes the answer, which must be `command`.
    fn ask(&mut self, body: &str, command: &str, asked: Asked) -> Result<Words, ProcessManagerError> {
        let answer = self.exchange(body, asked)?;
        answer.expect(asked, command).map(|()| answer)
    }

    fn exchange(&mut self, body: &str, asked: Asked) -> Result<Words, ProcessManagerError> {
        self.connection.send(self.message(body).as_bytes(), asked)?;
        if let Version::One { .. } = self.version {
            return Ok(Words::between_blanks(&self.connection.line(asked)?));
        }
        let length = self.connection.bytes(LENGTH_WIDTH, asked)?;
        let length = String::from_utf8_lossy(&length).into_owned();
        let count = length.trim().parse().ok().filter(|count| *count <= MAX_MESSAGE);
        let count = count.ok_or_else(|| asked.unexpected(format!("a message of length '{length}'")))?;
        let body = self.connection.bytes(count, asked)?;
        Ok(Words::between_semicolons(&String::from_utf8_lossy(&body)))
    }

    fn message(&self, body: &str) -> String {
        match self.version {
            Version::One { .. } => format!("{body}\n"),
            Version::Two => format!("{:<LENGTH_WIDTH$}{body}", body.len()),
        }
    }
}

impl ProcessManager for Pmi {
    fn place(&self) -> JobPlace {
        self.place
    }

    fn put(&mut self, key: &str, value: &str, limit: Duration) -> Result<(), ProcessManagerError> {
        self.place.limits.check_key(key)?;
        self.place.limits.check_value(value)?;
        let (body, command) = match &self.version {
            Version::One { space } => {
                (format!("cmd=put kvsname={space} key={key} value={value}"), "put_result")
            }
            Version::Two => (format!("cmd=kvs-put;key={key};value={value};"), "kvs-put-response"),
        };
        self.ask(&body, command, Asked::new("put", limit)).map(drop)
    }

    fn get(&mut self, rank: u32, key: &str, limit: Duration) -> Result<String, ProcessManagerError> {
        self.place.limits.check_key(key)?;
        let asked = Asked::new("get", limit);
        let value = match &self.version {
            Version::One { space } => {
                let mut answer = self.exchange(&format!("cmd=get kvsname={space} key={key}"), asked)?;
                if !answer.is("get_result") {
                    return Err(answer.unexpected(asked));
                }
                // Launchers have different numbers for a key that is not there.
                answer.expect(asked, "get_result").ok().and_then(|()| answer.take("value"))
            }
            // No job is named: that is this one.
            Version::Two => {
                let body = format!("cmd=kvs-get;jobid=;srcid={rank};key={key};");
                let mut answer = self.ask(&body, "kvs-get-response", asked)?;
                answer.take("value").filter(|_| answer.get("found") == Some("TRUE"))
            }
        };
        value.ok_or_else(|| ProcessManagerError::NoValue { rank, key: key.to_owned() })
    }

    fn fence(&mut self, limit: Duration) -> Result<(), ProcessManagerError> {
        let (body, command) = match self.version {
            Version::One { .. } => ("cmd=barrier_in", "barrier_out"),
            Version::Two => ("cmd=kvs-fence;", "kvs-fence-response"),
        };
        self.ask(body, command, Asked::new("fence", limit)).map(drop)
    }

    fn finish(&mut self, limit: Duration) -> Result<(), ProcessManagerError> {
        let (body, command) = match self.version {
            Version::One { .. } => ("cmd=finalize", "finalize_ack"),
            Version::Two => ("cmd=finalize;", "finalize-response"),
        };
        self.ask(body, command, Asked::new("finalize", limit)).map(drop)
    }

    /// Version 2 has no exit code; Slurm kills all processes.
    fn abort(&mut self, code: i32, text: &str) {
        let body = match self.version {
            Version::One { .. } => format!("cmd=abort exitcode={code}"),
            Version::Two => format!("cmd=abort;isworld=TRUE;msg={};", text.replace([';', '\n'], ",")),
        };
        self.connection.send_last(self.message(&body).as_bytes());
    }
}

/// The pairs of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Words(BTreeMap<String, String>);

impl Words {
    pub(super) fn between_blanks(message: &str) -> Words {
        Words(message.split_whitespace().filter_map(pair).collect())
    }

    pub(super) fn between_semicolons(message: &str) -> Words {
        Words(message.split(';').filter_map(pair).collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn take(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    /// Refuses another answer than `command`, and one that reports a failure.
    fn expect(&self, asked: Asked, command: &str) -> Result<(), ProcessManagerError> {
        let is_done = self.get("rc").is_none_or(|code| code == "0");
        if self.is(command) && is_done { Ok(()) } else { Err(self.unexpected(asked)) }
    }

    fn is(&self, command: &str) -> bool {
        self.get("cmd") == Some(command)
    }

    fn unexpected(&self, asked: Asked) -> ProcessManagerError {
        let words: Vec<String> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        asked.unexpected(words.join(" "))
    }
}

fn pair(word: &str) -> Option<(String, String)> {
    word.split_once('=').map(|(name, value)| (name.trim().to_owned(), value.to_owned()))
}
