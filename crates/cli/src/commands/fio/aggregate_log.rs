//! `--bandwidth-log`: the bandwidth of all jobs together, a line per tick and direction.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

use fathom_model::Op;
use fathom_options::CommandOptions;
use fathom_stats::Snapshot;

use super::logs::{create_log, log_refusal};
use crate::exit::Complaint;

/// The files for reads, writes and trims.
pub struct AggregateLog {
    files: Vec<File>,
}

impl AggregateLog {
    /// Opens the files, if `command` asks for them.
    ///
    /// # Errors
    /// A file cannot be made.
    pub fn open(command: &CommandOptions) -> Result<Option<AggregateLog>, Complaint> {
        let Some(name) = &command.bandwidth_log else { return Ok(None) };
        let files = Op::DATA.map(|op| create_log(&PathBuf::from(format!("{name}-{}_bw.log", op.name()))));
        let files: Result<Vec<File>, String> = files.into_iter().collect();
        files.map(|files| Some(AggregateLog { files })).map_err(log_refusal)
    }

    /// Adds the bandwidth since the snapshot before.
    pub fn add(&mut self, snapshot: &Snapshot) {
        for (op, (file, bytes)) in self.files.iter_mut().zip(snapshot.bytes_per_second).enumerate() {
            let (at_ms, kib) = (snapshot.elapsed_ns / 1_000_000, bytes as u64 >> 10);
            // A line that cannot be written is missing, as in fio; the report is complete.
            let _ = writeln!(file, "{at_ms}, {kib}, {op}, 0, 0");
        }
    }
}
