//! A completed request, as logs record it.

use fathom_model::Op;

/// A request of the measured part that completed in full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoggedIo {
    /// When it completed, ns since the start of the measured part.
    pub at_ns: u64,
    /// Issued to completed, ns.
    pub clat_ns: u64,
    /// Start to completed, ns.
    pub lat_ns: u64,
    /// Offset in bytes.
    pub offset: u64,
    /// Bytes moved.
    pub len: u32,
    /// Read, write or trim.
    pub op: Op,
    /// Its I/O priority, as Linux packs it.
    pub priority: u16,
    /// It precedes requests of other priorities.
    pub is_high: bool,
}
