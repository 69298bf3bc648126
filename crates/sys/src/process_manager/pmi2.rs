//! The process-manager interface, version 2: the launcher is Slurm's `srun --mpi=pmi2`.
//!
//! The first exchange is a line of version 1, which agrees on the version. Then each message is a length of six characters and pairs
//! `name=value`, each ended by a semicolon, which no value can hold: Slurm has no escape for it.

use std::time::Duration;

use super::connection::{Asked, Connection, Inherited, MOST_MESSAGE};
use super::words::Words;
use super::{ProcessManager, ProcessManagerError, TextLimits};

/// Characters of the length before a message.
const LENGTH_WIDTH: usize = 6;
/// The limits of the interface, with the byte that ends a text in C; no message asks for them.
const LIMITS: TextLimits = TextLimits { key: 63, value: 1023 };

/// A process's connection to the launcher of its job.
#[derive(Debug)]
pub(super) struct Pmi2 {
    connection: Connection,
    rank: u32,
    size: u32,
}

impl Pmi2 {
    /// Greets the launcher of the job `job`.
    pub(super) fn connect(
        inherited: Inherited,
        job: Option<String>,
        limit: Duration,
    ) -> Result<Pmi2, ProcessManagerError> {
        let job = job.ok_or(ProcessManagerError::Environment("PMI_JOBID"))?;
        let Inherited { stream, rank, size } = inherited;
        let mut pmi = Pmi2 { connection: Connection::new(stream), rank, size };
        let asked = Asked::new("init", limit);
        pmi.agree_on_version(asked)?;
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

    fn agree_on_version(&mut self, asked: Asked) -> Result<(), ProcessManagerError> {
        self.connection.send(b"cmd=init pmi_version=2 pmi_subversion=0\n", asked)?;
        let greeting = Words::between_blanks(&self.connection.line(asked)?);
        greeting.expect(asked, "response_to_init")?;
        match greeting.get("pmi_version") {
            Some("2") => Ok(()),
            _ => Err(greeting.unexpected(asked)),
        }
    }

    /// Sends a message and takes the answer, which must be `command`.
    fn ask(&mut self, body: &str, command: &str, asked: Asked) -> Result<Words, ProcessManagerError> {
        self.connection.send(message(body).as_bytes(), asked)?;
        let length = self.connection.bytes(LENGTH_WIDTH, asked)?;
        let length = String::from_utf8_lossy(&length).into_owned();
        let count = length.trim().parse().ok().filter(|count| *count <= MOST_MESSAGE);
        let count = count.ok_or_else(|| asked.unexpected(format!("a message of length '{length}'")))?;
        let body = self.connection.bytes(count, asked)?;
        let answer = Words::between_semicolons(&String::from_utf8_lossy(&body));
        answer.expect(asked, command).map(|()| answer)
    }
}

/// A message with its length.
fn message(body: &str) -> String {
    format!("{:<LENGTH_WIDTH$}{body}", body.len())
}

impl ProcessManager for Pmi2 {
    fn name(&self) -> &'static str {
        "PMI-2"
    }

    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn limits(&self) -> TextLimits {
        LIMITS
    }

    fn put(&mut self, key: &str, value: &str, limit: Duration) -> Result<(), ProcessManagerError> {
        LIMITS.check_key(key)?;
        LIMITS.check_value(value)?;
        let body = format!("cmd=kvs-put;key={key};value={value};");
        self.ask(&body, "kvs-put-response", Asked::new("put", limit)).map(drop)
    }

    fn get(&mut self, rank: u32, key: &str, limit: Duration) -> Result<String, ProcessManagerError> {
        LIMITS.check_key(key)?;
        let asked = Asked::new("get", limit);
        // No job is named: that is this one.
        let body = format!("cmd=kvs-get;jobid=;srcid={rank};key={key};");
        let mut answer = self.ask(&body, "kvs-get-response", asked)?;
        let value = answer.take("value").filter(|_| answer.get("found") == Some("TRUE"));
        value.ok_or_else(|| ProcessManagerError::NoValue { rank, key: key.to_owned() })
    }

    fn fence(&mut self, limit: Duration) -> Result<(), ProcessManagerError> {
        self.ask("cmd=kvs-fence;", "kvs-fence-response", Asked::new("fence", limit)).map(drop)
    }

    fn finish(&mut self, limit: Duration) -> Result<(), ProcessManagerError> {
        self.ask("cmd=finalize;", "finalize-response", Asked::new("finalize", limit)).map(drop)
    }

    /// The interface has no exit code; Slurm kills all processes.
    fn abort(&mut self, _code: i32, text: &str) {
        let text = text.replace([';', '\n'], ",");
        self.connection.send_last(message(&format!("cmd=abort;isworld=TRUE;msg={text};")).as_bytes());
    }
}
