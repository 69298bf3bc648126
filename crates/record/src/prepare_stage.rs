//! The stages of a preparation.

use serde::{Deserialize, Serialize};

/// A pass over the target, or what comes after passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub enum PrepareStage {
    /// Trim: the device may discard everything on it.
    Trim,
    /// Every block is written once.
    Fill,
    /// The workload-independent part of the SNIA's preconditioning: every block is written, and then once more.
    Sequential {
        /// 1 or 2.
        pass: u8,
    },
    /// The workload-dependent part: the workload itself until it is steady.
    Workload,
    /// Every block is read once.
    Touch,
}

impl PrepareStage {
    /// Every stage there is, in the order they come in.
    pub const ALL: [PrepareStage; 6] = [
        PrepareStage::Trim,
        PrepareStage::Fill,
        PrepareStage::Sequential { pass: 1 },
        PrepareStage::Sequential { pass: 2 },
        PrepareStage::Workload,
        PrepareStage::Touch,
    ];

    /// Its name in JSON, and the beginning of the ids of its pieces.
    pub const fn id(self) -> &'static str {
        match self {
            PrepareStage::Trim => "trim",
            PrepareStage::Fill => "fill",
            PrepareStage::Sequential { pass: 1 } => "precondition-1",
            PrepareStage::Sequential { .. } => "precondition-2",
            PrepareStage::Workload => "precondition-workload",
            PrepareStage::Touch => "touch",
        }
    }

    /// The same for people.
    pub const fn title(self) -> &'static str {
        match self {
            PrepareStage::Trim => "trim",
            PrepareStage::Fill => "fill",
            PrepareStage::Sequential { pass: 1 } => "precondition, pass 1",
            PrepareStage::Sequential { .. } => "precondition, pass 2",
            PrepareStage::Workload => "precondition, rounds",
            PrepareStage::Touch => "touch",
        }
    }

    /// fio's word for what a pass does.
    pub const fn rw(self) -> &'static str {
        match self {
            PrepareStage::Trim => "trim",
            PrepareStage::Touch => "read",
            PrepareStage::Fill | PrepareStage::Sequential { .. } | PrepareStage::Workload => "write",
        }
    }

    /// Bytes per request of a pass: what the SNIA says, else large, so that the bandwidth is the limit.
    pub const fn block(self) -> u64 {
        match self {
            // One request is one call, which nothing interrupts.
            PrepareStage::Trim => 64 << 20,
            PrepareStage::Sequential { .. } => 128 << 10,
            PrepareStage::Fill | PrepareStage::Workload | PrepareStage::Touch => 1 << 20,
        }
    }

    /// Requests in flight: reads of a volume that is fetched from afar wait for each block.
    pub const fn depth(self) -> u32 {
        if matches!(self, PrepareStage::Trim) { 1 } else { 32 }
    }

    /// True where it changes the target.
    pub const fn modifies(self) -> bool {
        !matches!(self, PrepareStage::Touch)
    }
}

impl From<PrepareStage> for &'static str {
    fn from(stage: PrepareStage) -> &'static str {
        stage.id()
    }
}

impl TryFrom<String> for PrepareStage {
    type Error = String;

    fn try_from(id: String) -> Result<PrepareStage, String> {
        PrepareStage::ALL
            .into_iter()
            .find(|stage| stage.id() == id)
            .ok_or_else(|| format!("unknown stage '{id}'"))
    }
}
