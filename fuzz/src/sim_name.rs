//! The name of a simulated volume, `sim:ID?KEY=VALUE&…`.

use std::path::Path;

use fathom_assess::{PlanTargets, SimulatedVolume, VolumeTypes};
use fathom_options::{PlanningHost, Section, resolve};

use crate::{messages, serving};

/// Understands the name, makes the volume, and has it serve requests by themselves and those of a job.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let name = if text.starts_with("sim:") { text.to_owned() } else { format!("sim:{text}") };
    let volume = match SimulatedVolume::named(Path::new(&name), &VolumeTypes::default()) {
        Ok(volume) => volume,
        Err(error) => return messages::check(&error, error.hint.as_deref()),
    };
    serving::check(&volume.model, volume.seed, 300);
    run_job(&name);
}

/// A job as `fathom fio` would run it, of few requests and little virtual time.
fn run_job(name: &str) {
    let escaped = name.replace("sim:", "sim\u{0}").replace(':', "\\:").replace("sim\u{0}", "sim:");
    let pairs = [
        ("filename", escaped.as_str()),
        ("rw", "randrw"),
        ("iodepth", "4"),
        ("io_size", "1m"),
        ("runtime", "20"),
    ];
    let Ok(section) = Section::from_pairs("job", &pairs, &[]) else { return };
    let Ok(plan) = resolve(&[section], &PlanningHost { cpus: 1, entropy: 7 }) else { return };
    let is_it = plan.jobs[0].clones[0].paths == [Path::new(name)];
    if !is_it {
        return;
    }
    match PlanTargets::of(&plan, &VolumeTypes::default()) {
        Ok(targets) => {
            if let Err(error) = targets.session().run(&plan, &mut ()) {
                messages::check(&error, error.hint().as_deref());
            }
        }
        Err(error) => messages::check(&error, error.hint.as_deref()),
    }
}
