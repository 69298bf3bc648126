//! The records of all ranks on their way to rank 0.

use std::time::Duration;

use fathom_record::RunRecord;

use super::super::records::{self, FleetReport};
use super::{Coordinator, FleetError, RankState};

/// Bytes of records that a launcher passes on in a second, at the least.
const LAUNCHER_BYTES_PER_SECOND: u64 = 1 << 20;

impl Coordinator {
    /// Brings all records to rank 0, which are so many bytes: no rank is done before the last.
    pub(super) fn collect(
        &mut self,
        from_directory: bool,
        bytes: u64,
        states: &[RankState],
        own: Option<(RunRecord, String)>,
    ) -> Result<Option<FleetReport>, FleetError> {
        self.exchange.phase = "the records of all ranks";
        let (record, text) = own.unzip();
        let text = text.unwrap_or_default();
        if !from_directory && self.place.rank != 0 && !text.is_empty() {
            self.exchange.put("record", text.as_bytes())?;
        }
        drop(text);
        let passed = Duration::from_secs(bytes / LAUNCHER_BYTES_PER_SECOND);
        self.exchange.fence(self.short_limit() + passed)?;
        if self.place.rank != 0 {
            self.exchange.finish()?;
            return Ok(None);
        }
        let (place, directory) = (self.place.clone(), self.directory.clone());
        let mut report = records::collect(&place, record, |rank| {
            if from_directory {
                let directory = directory.as_ref().ok_or("no directory")?;
                return directory.read_record(rank);
            }
            let text = self.exchange.get(rank, "record").map_err(|error| error.to_string())?;
            records::parse(&text)
        });
        report.notes.splice(0..0, records::notes_of(&place, states));
        // The report is there, whatever the launcher says.
        let _ = self.exchange.finish();
        Ok(Some(report))
    }
}
