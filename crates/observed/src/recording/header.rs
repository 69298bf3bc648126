//! What the first block of a recording says: device, clock, and what the rest of the file holds.

use serde_json::{Value, json};

use super::block::{BlockKind, framed};
use crate::load::RequestPoint;

/// What a recording holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordingDetail {
    /// Every request.
    Requests,
    /// Sums over intervals.
    Sums,
}

impl RecordingDetail {
    const fn name(self) -> &'static str {
        match self {
            RecordingDetail::Requests => "requests",
            RecordingDetail::Sums => "intervals",
        }
    }
}

/// The beginning of a file of a recording. A recording may have several files, which have everything but `file` and `from_ns` in
/// common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingHeader {
    /// What it holds.
    pub detail: RecordingDetail,
    /// Where requests were seen.
    pub point: RequestPoint,
    /// The kernel's name of the device.
    pub device: String,
    /// The size of the device, bytes; 0 where it is unknown.
    pub size_bytes: u64,
    /// Its logical block, bytes.
    pub sector_bytes: u64,
    /// The host.
    pub host: String,
    /// Wall clock at the time 0 of the recording, ns since the epoch.
    pub started_unix_ns: u64,
    /// The number of the file, from 1.
    pub file: u32,
    /// The time at which this file begins, ns.
    pub from_ns: u64,
    /// The version of the program that recorded it.
    pub tool_version: String,
    /// What a reader has to know, one sentence each without its full stop.
    pub notes: Vec<String>,
}

impl RecordingHeader {
    /// Its block.
    pub fn block(&self) -> Vec<u8> {
        let document = json!({
            "format": "fathom-load",
            "detail": self.detail.name(),
            "seen_at": self.point.name(),
            "device": self.device,
            "size_bytes": self.size_bytes,
            "sector_bytes": self.sector_bytes,
            "host": self.host,
            "clock": "monotonic",
            "started_unix_ns": self.started_unix_ns,
            "file": self.file,
            "from_ns": self.from_ns,
            "tool_version": self.tool_version,
            "notes": self.notes,
        });
        framed(BlockKind::Header, 0, document.to_string().as_bytes())
    }

    /// The header in the content of its block; else the field that is wrong.
    pub(super) fn parse(content: &[u8]) -> Result<RecordingHeader, String> {
        let document: Value =
            serde_json::from_slice(content).map_err(|error| format!("it is not JSON: {error}"))?;
        let text = |name: &str| {
            let value = document.get(name).and_then(Value::as_str);
            value.map(str::to_owned).ok_or_else(|| format!("{name}: it is not a text"))
        };
        let number = |name: &str| {
            let value = document.get(name).and_then(Value::as_u64);
            value.ok_or_else(|| format!("{name}: it is not a whole number"))
        };
        let details = [RecordingDetail::Requests, RecordingDetail::Sums];
        let detail = text("detail")?;
        let detail = details.into_iter().find(|one| one.name() == detail);
        let points = [RequestPoint::Driver, RequestPoint::Program];
        let point = text("seen_at")?;
        let point = points.into_iter().find(|one| one.name() == point);
        let notes = document.get("notes").and_then(Value::as_array);
        let notes = notes.into_iter().flatten().filter_map(|note| Some(note.as_str()?.to_owned()));
        Ok(RecordingHeader {
            detail: detail.ok_or("detail: it is neither 'requests' nor 'intervals'")?,
            point: point.ok_or("seen_at: it is neither 'driver' nor 'program'")?,
            device: text("device")?,
            size_bytes: number("size_bytes")?,
            sector_bytes: number("sector_bytes")?,
            host: text("host")?,
            started_unix_ns: number("started_unix_ns")?,
            file: u32::try_from(number("file")?).map_err(|_| "file: it is too large")?,
            from_ns: number("from_ns")?,
            tool_version: text("tool_version")?,
            notes: notes.collect(),
        })
    }
}

/// The last block of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordingEnd {
    /// The time at which it ends, ns.
    pub end_ns: u64,
    /// Another file follows.
    pub continues: bool,
    /// I/Os that were in flight at the end, which have no latency.
    pub in_flight: u64,
}

impl RecordingEnd {
    /// Its block.
    pub fn block(&self) -> Vec<u8> {
        let document =
            json!({ "end_ns": self.end_ns, "continues": self.continues, "in_flight": self.in_flight });
        framed(BlockKind::End, 0, document.to_string().as_bytes())
    }

    pub(super) fn parse(content: &[u8]) -> Result<RecordingEnd, String> {
        let document: Value =
            serde_json::from_slice(content).map_err(|error| format!("it is not JSON: {error}"))?;
        let end_ns = document.get("end_ns").and_then(Value::as_u64);
        Ok(RecordingEnd {
            end_ns: end_ns.ok_or("end_ns: it is not a whole number")?,
            continues: document.get("continues").and_then(Value::as_bool).unwrap_or(false),
            in_flight: document.get("in_flight").and_then(Value::as_u64).unwrap_or(0),
        })
    }
}
