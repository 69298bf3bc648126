//! The plan of a worker: that of its job as resolved, and its own part.

use fathom_model::JobPlan;
use fathom_model::plan::{
    ClonePlan, DepthPlan, EnginePlan, FilePlan, IoPlan, MeasurePlan, OnError, TimePlan,
};
use serde::{Deserialize, Serialize};

/// The resolved plan that all clones of a job share. Missing fields have fio's defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanRecord {
    /// Clones of the job.
    pub numjobs: u32,
    /// The engine and its private options as typed.
    #[serde(rename = "ioengine")]
    pub engine: EnginePlan,
    /// What is done to the target.
    pub io: IoPlan,
    /// Requests in flight, and in which batches.
    pub depth: DepthPlan,
    /// When to start, pause and stop.
    pub time: TimePlan,
    /// How files are opened, laid out and left behind.
    pub files: FilePlan,
    /// What is measured and which percentiles fio's outputs show.
    pub measure: MeasurePlan,
    /// The first worker to end stops the other jobs of the phase.
    #[serde(rename = "exitall")]
    pub exit_all: bool,
    /// Which failed requests do not end the worker.
    #[serde(rename = "continue_on_error")]
    pub on_error: OnError,
}

impl Default for PlanRecord {
    fn default() -> Self {
        PlanRecord {
            numjobs: 1,
            engine: EnginePlan::default(),
            io: IoPlan::default(),
            depth: DepthPlan::default(),
            time: TimePlan::default(),
            files: FilePlan::default(),
            measure: MeasurePlan::default(),
            exit_all: false,
            on_error: OnError::default(),
        }
    }
}

impl PlanRecord {
    /// Stores what the clones of a job share.
    pub fn of(plan: &JobPlan) -> PlanRecord {
        PlanRecord {
            numjobs: plan.clones.len() as u32,
            engine: plan.engine.clone(),
            io: plan.io.clone(),
            depth: plan.depth,
            time: plan.time,
            files: plan.files,
            measure: plan.measure.clone(),
            exit_all: plan.exit_all,
            on_error: plan.on_error,
        }
    }

    /// The private option of the engine as typed, where it was given.
    pub fn engine_option(&self, name: &str) -> Option<&str> {
        self.engine.options.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// What a clone has for itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CloneRecord {
    /// The files, in order.
    #[serde(rename = "filename")]
    pub paths: Vec<String>,
    /// Source of its random numbers.
    pub seed: u64,
    /// CPUs it may run on; empty means all.
    #[serde(rename = "cpus_allowed")]
    pub cpus: Vec<usize>,
}

impl CloneRecord {
    /// Stores what one clone has for itself. Paths are text: bytes that are not UTF-8 are replaced.
    pub(crate) fn of(clone: &ClonePlan) -> CloneRecord {
        CloneRecord {
            paths: clone.paths.iter().map(|path| path.display().to_string()).collect(),
            seed: clone.seed,
            cpus: clone.cpus.clone(),
        }
    }
}
