//! What `prepare` was asked for.

use std::str::FromStr;

use fathom_model::Nanos;
use fathom_model::units::parse_bytes;

use crate::settings::RunSettings;

/// What was asked for. Where no step is, the target decides.
#[derive(Clone, Debug, Default)]
pub struct PrepareSettings {
    /// What every run is asked for.
    pub run: RunSettings,
    /// Tell the device that nothing on it is needed.
    pub trim: bool,
    /// Write every block once.
    pub fill: bool,
    /// Write every block twice, then this until it is steady.
    pub precondition: Option<PrepareWorkload>,
    /// Read every block once.
    pub touch: bool,
    /// What a round of the workload lasts; `None` = a minute.
    pub round: Option<Nanos>,
    /// Longest time for the rounds; `None` = as many as the rule allows.
    pub budget: Option<Nanos>,
    /// Goes on with an earlier run, which made the file if there is one.
    pub resume: bool,
}

/// The workload that a device is brought into a steady state by: `randwrite:4k:32`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrepareWorkload {
    /// fio's word: `randwrite`, `write`, `randrw` or `rw`, of which half are writes.
    pub rw: String,
    /// Bytes per request.
    pub block: u64,
    /// Requests in flight.
    pub depth: u32,
}

impl Default for PrepareWorkload {
    /// Random writes of 4 KiB: what the SNIA's IOPS test watches.
    fn default() -> Self {
        PrepareWorkload { rw: "randwrite".to_owned(), block: 4096, depth: 32 }
    }
}

const PATTERNS: [&str; 4] = ["randwrite", "write", "randrw", "rw"];

impl FromStr for PrepareWorkload {
    type Err = String;

    fn from_str(text: &str) -> Result<PrepareWorkload, String> {
        let mut workload = PrepareWorkload::default();
        let mut words = text.split(':').map(str::trim);
        let rw = words.next().unwrap_or_default();
        if !PATTERNS.contains(&rw) {
            return Err(format!("write RW[:BLOCK[:DEPTH]] with RW one of {}", PATTERNS.join(", ")));
        }
        workload.rw = rw.to_owned();
        if let Some(block) = words.next() {
            workload.block = parse_bytes(block).map_err(|error| error.to_string())?;
            if !(512..=1 << 30).contains(&workload.block) || !workload.block.is_multiple_of(512) {
                return Err(format!("block size '{block}' is not a multiple of 512 up to 1 GiB"));
            }
        }
        if let Some(depth) = words.next() {
            let number = depth.parse().ok().filter(|depth| (1..=65_536).contains(depth));
            workload.depth = number.ok_or_else(|| format!("depth '{depth}' is not between 1 and 65536"))?;
        }
        match words.next() {
            Some(more) => Err(format!("unexpected '{more}': write RW[:BLOCK[:DEPTH]]")),
            None => Ok(workload),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads() {
        let check = |text: &str, expected: Option<(&str, u64, u32)>| {
            let found = text.parse::<PrepareWorkload>().ok();
            let found = found.as_ref().map(|found| (found.rw.as_str(), found.block, found.depth));
            assert_eq!(found, expected, "{text}");
        };
        check("randwrite", Some(("randwrite", 4096, 32)));
        check("write:128k", Some(("write", 131_072, 32)));
        check("randrw:8k:1", Some(("randrw", 8192, 1)));
        for wrong in [
            "",
            "randread",
            "randwrite:0",
            "randwrite:1000",
            "randwrite:4k:0",
            "randwrite:4k:1:2",
            "write::3",
        ] {
            check(wrong, None);
        }
    }
}
