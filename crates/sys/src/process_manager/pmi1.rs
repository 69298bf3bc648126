//! The process-manager interface, version 1: the launcher is MPICH's `mpiexec` (hydra), alone and inside batch systems.
//!
//! On the socket go lines of pairs `name=value` between blanks: the process asks, the launcher answers.

use std::time::Duration;

use super::connection::{Asked, Connection, Inherited};
use super::words::Words;
use super::{ProcessManager, ProcessManagerError, TextLimits};

/// A process's connection to the launcher of its job.
#[derive(Debug)]
pub(super) struct Pmi1 {
    connection: Connection,
    rank: u32,
    size: u32,
    /// The name of the job's space of keys and values.
    space: String,
    limits: TextLimits,
}

impl Pmi1 {
    /// Greets the launcher.
    pub(super) fn connect(inherited: Inherited, limit: Duration) -> Result<Pmi1, ProcessManagerError> {
        let Inherited { stream, rank, size } = inherited;
        let limits = TextLimits { key: 0, value: 0 };
        let connection = Connection::new(stream);
        let mut pmi = Pmi1 { connection, rank, size, space: String::new(), limits };
        let asked = Asked::new("init", limit);
        let greeting = pmi.ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init", asked)?;
        if greeting.get("pmi_version") != Some("1") {
            return Err(greeting.unexpected(asked));
        }
        let asked = asked.then("get_maxes");
        let maxes = pmi.ask("cmd=get_maxes", "maxes", asked)?;
        // The launcher counts the byte that ends a text in C.
        let most = |name: &str| maxes.get(name)?.parse::<usize>().ok()?.checked_sub(1);
        let limits = most("keylen_max").zip(most("vallen_max"));
        let (key, value) = limits.ok_or_else(|| maxes.unexpected(asked))?;
        pmi.limits = TextLimits { key, value };
        let asked = asked.then("get_my_kvsname");
        let mut space = pmi.ask("cmd=get_my_kvsname", "my_kvsname", asked)?;
        pmi.space = space.take("kvsname").ok_or_else(|| space.unexpected(asked))?;
        Ok(pmi)
    }

    /// Sends a line and takes the answer, which must be `command`.
    fn ask(&mut self, line: &str, command: &str, asked: Asked) -> Result<Words, ProcessManagerError> {
        let answer = self.exchange(line, asked)?;
        answer.expect(asked, command).map(|()| answer)
    }

    fn exchange(&mut self, line: &str, asked: Asked) -> Result<Words, ProcessManagerError> {
        self.connection.send(format!("{line}\n").as_bytes(), asked)?;
        Ok(Words::between_blanks(&self.connection.line(asked)?))
    }
}

impl ProcessManager for Pmi1 {
    fn name(&self) -> &'static str {
        "PMI-1"
    }

    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn limits(&self) -> TextLimits {
        self.limits
    }

    fn put(&mut self, key: &str, value: &str, limit: Duration) -> Result<(), ProcessManagerError> {
        self.limits.check_key(key)?;
        self.limits.check_value(value)?;
        let line = format!("cmd=put kvsname={} key={key} value={value}", self.space);
        self.ask(&line, "put_result", Asked::new("put", limit)).map(drop)
    }

    fn get(&mut self, rank: u32, key: &str, limit: Duration) -> Result<String, ProcessManagerError> {
        self.limits.check_key(key)?;
        let asked = Asked::new("get", limit);
        let mut answer = self.exchange(&format!("cmd=get kvsname={} key={key}", self.space), asked)?;
        if !answer.is("get_result") {
            return Err(answer.unexpected(asked));
        }
        // Launchers have different numbers for a key that is not there.
        let value = answer.expect(asked, "get_result").ok().and_then(|()| answer.take("value"));
        value.ok_or_else(|| ProcessManagerError::NoValue { rank, key: key.to_owned() })
    }

    fn fence(&mut self, limit: Duration) -> Result<(), ProcessManagerError> {
        self.ask("cmd=barrier_in", "barrier_out", Asked::new("fence", limit)).map(drop)
    }

    fn finish(&mut self, limit: Duration) -> Result<(), ProcessManagerError> {
        self.ask("cmd=finalize", "finalize_ack", Asked::new("finalize", limit)).map(drop)
    }

    fn abort(&mut self, code: i32, _message: &str) {
        self.connection.send_last(format!("cmd=abort exitcode={code}\n").as_bytes());
    }
}
