//! Starting the ranks of a job by a launcher that is there: which hosts, which launcher, and its command line.

mod check;
mod plan;

pub use check::{FACTS_ARGUMENTS, check_facts, host_facts_text};
pub use plan::{HostOrigin, JobHosts, LaunchPlan, ScaleStep, is_in_slurm, scale_steps};
pub use plan::{LAUNCHERS, Launcher, LauncherFamily};
pub use plan::{folded, hosts, hosts_of_file};
