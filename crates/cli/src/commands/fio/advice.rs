//! Advice on the jobs for the person at the terminal. A script's streams never have it.

use std::collections::BTreeMap;

use fathom_analysis::{AdviceDevice, AdviceFacts, advice};
use fathom_model::RunPlan;
use fathom_options::CommandOptions;
use fathom_sys::device::{HostFacts, Locality, TargetStack};

use crate::output;

/// Most paths that are looked at: the others of a job are like them.
const LOOKED_AT: usize = 32;

/// Writes advice on `plan` to standard error: on a terminal that shows both streams, or where it was asked for.
pub(super) fn give(command: &CommandOptions, plan: &RunPlan) {
    if command.advise || output::stdout_is_seen() && output::stderr_is_seen() {
        advice(plan, &facts(plan)).iter().for_each(|text| output::warn(&format!("advice: {text}")));
    }
}

fn facts(plan: &RunPlan) -> AdviceFacts {
    let paths = plan.jobs.iter().flat_map(|job| &job.clones).flat_map(|clone| &clone.paths);
    let mut devices = BTreeMap::new();
    for path in paths {
        if devices.len() == LOOKED_AT {
            break;
        }
        if devices.contains_key(path) {
            continue;
        }
        let Ok(stack) = TargetStack::of(path) else { continue };
        let Some(device) = stack.devices.first() else { continue };
        let is_network = stack.devices.iter().any(|device| matches!(device.locality, Locality::Network(_)));
        let largest_request = device.max_sectors_kb.map(|kib| kib * 1024);
        devices.insert(path.clone(), AdviceDevice { name: device.name.clone(), is_network, largest_request });
    }
    AdviceFacts { memory: HostFacts::read().memory_bytes, devices }
}
