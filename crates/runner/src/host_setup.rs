//! What the jobs of a run change on the machine before it, and what is undone after it: I/O schedulers, which stay, and
//! control groups.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fathom_model::plan::ControlGroupPlan;
use fathom_model::{JobPlan, RunPlan};
use fathom_sys::control_group::{IoHierarchy, set_scheduler};
use fathom_sys::device::{SysRoot, TargetIdentity};
use fathom_sys::io::describe;

use crate::RunError;
use crate::targets::Target;

/// What is undone at the end.
#[derive(Debug, Default)]
pub(crate) struct HostChanges {
    groups: Option<IoHierarchy>,
    /// Groups to remove.
    made: Vec<String>,
    /// The group to which the process returns.
    left: Option<String>,
}

/// Applies the plans of the jobs; the notes say what had no effect.
pub(crate) fn apply(
    plan: &RunPlan,
    targets: &BTreeMap<PathBuf, Target>,
) -> Result<(HostChanges, Vec<String>), RunError> {
    let notes = choose_schedulers(plan, targets)?;
    let mut changes = HostChanges::default();
    let joined = join_groups(plan, &SysRoot::real(), &mut changes);
    if joined.is_err() {
        // The error is what to report.
        let _ = changes.undo();
        joined?;
        changes = HostChanges::default();
    }
    Ok((changes, notes))
}

fn refused(job: &JobPlan, reason: String, hint: &str) -> RunError {
    RunError::plan(&job.name, reason, hint)
}

fn choose_schedulers(plan: &RunPlan, targets: &BTreeMap<PathBuf, Target>) -> Result<Vec<String>, RunError> {
    let mut notes = Vec::new();
    for job in &plan.jobs {
        let Some(scheduler) = &job.threads.host.scheduler else { continue };
        let paths: BTreeSet<&PathBuf> = job.clones.iter().flat_map(|clone| &clone.paths).collect();
        for path in paths {
            let device = match targets.get(path).and_then(|target| target.identity) {
                Some(TargetIdentity::Device(major, minor) | TargetIdentity::File(major, minor, _)) => {
                    (major, minor)
                }
                None => continue,
            };
            let chosen = set_scheduler(Path::new("/"), device, scheduler).map_err(|error| {
                let reason =
                    format!("unable to set io scheduler to {scheduler}: {}", describe(&error.source));
                refused(job, reason, &format!("use one of {}, as root", error.available))
            })?;
            if !chosen {
                let path = path.display();
                notes.push(format!(
                    "note: ioscheduler has no effect on {path}: no disk with a scheduler is under it"
                ));
            }
        }
    }
    notes.dedup();
    Ok(notes)
}

fn join_groups(plan: &RunPlan, system: &SysRoot, changes: &mut HostChanges) -> Result<(), RunError> {
    let named = |job: &JobPlan| job.threads.host.control_group.clone();
    let Some(first) = plan.jobs.iter().find(|job| named(job).is_some()) else { return Ok(()) };
    let Some(groups) = IoHierarchy::find(system) else {
        let reason = "has cgroup, and no control groups for I/O are mounted".to_owned();
        return Err(refused(first, reason, "mount cgroup2 with the io controller, or omit cgroup"));
    };
    changes.groups = Some(groups.clone());
    for job in &plan.jobs {
        let Some(ControlGroupPlan { name, weight, is_kept }) = named(job) else {
            if groups.has_processes() {
                return Err(apart(job));
            }
            continue;
        };
        if groups.has_processes() && named(first).is_some_and(|group| group.name != name) {
            return Err(apart(job));
        }
        let path = groups.path(&name);
        let failed = |what: &str, error: &std::io::Error| {
            let reason = format!("cannot {what} control group {}: {}", path.display(), describe(error));
            refused(job, reason, "run as root, or omit cgroup")
        };
        if groups.make(&name).map_err(|error| failed("make", &error))? && !is_kept {
            changes.made.push(name.clone());
        }
        if let Some(weight) = weight {
            groups.set_weight(&name, weight).map_err(|error| match error.kind() {
                std::io::ErrorKind::Unsupported => refused(
                    job,
                    format!(
                        "cannot set the weight of control group {}: this kernel gives it none",
                        path.display()
                    ),
                    "omit cgroup_weight, or use a kernel with the bfq scheduler or io.weight",
                ),
                _ => failed("set the weight of", &error),
            })?;
        }
        if groups.has_processes() && changes.left.is_none() {
            let before = groups.of_process(system);
            groups.join(&name, std::process::id()).map_err(|error| failed("join", &error))?;
            changes.left = before;
        }
    }
    Ok(())
}

/// All threads of a process share its group of version 2.
fn apart(job: &JobPlan) -> RunError {
    refused(
        job,
        "is not in the control group of the other jobs: with cgroup version 2 all threads of a process share one"
            .to_owned(),
        "give all jobs the same cgroup, or run them as separate commands",
    )
}

impl HostChanges {
    /// Leaves and removes the groups; returns what failed.
    pub fn undo(self) -> Vec<String> {
        let Some(groups) = self.groups else { return Vec::new() };
        let mut notes = Vec::new();
        let mut note = |what: &str, name: &str, error: std::io::Error| {
            let path = groups.path(name);
            notes.push(format!("could not {what} control group {}: {}", path.display(), describe(&error)));
        };
        if let Some(before) = self.left
            && let Err(error) = groups.join(&before, std::process::id())
        {
            note("return to", &before, error);
        }
        for name in self.made.iter().rev() {
            if let Err(error) = groups.remove(name) {
                note("remove", name, error);
            }
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use fathom_model::plan::{HostPlan, ThreadPlan};

    use super::*;

    fn job(group: Option<ControlGroupPlan>) -> JobPlan {
        let host = HostPlan { control_group: group, ..HostPlan::default() };
        JobPlan { threads: ThreadPlan { host, ..ThreadPlan::default() }, ..JobPlan::default() }
    }

    fn plan(groups: &[Option<&str>], weight: Option<u32>) -> RunPlan {
        let group = |name: &str| ControlGroupPlan { name: name.to_owned(), weight, is_kept: false };
        RunPlan { jobs: groups.iter().map(|name| job(name.map(group))).collect(), ..RunPlan::default() }
    }

    /// A machine whose control groups are plain directories.
    fn machine(kind: &str, options: &str) -> (tempfile::TempDir, SysRoot) {
        let dir = tempfile::tempdir().unwrap();
        let groups = dir.path().join("groups");
        fs::create_dir_all(dir.path().join("proc")).unwrap();
        fs::create_dir_all(&groups).unwrap();
        let mounts = format!("cgroup {} {kind} {options} 0 0\n", groups.display());
        fs::write(dir.path().join("proc/mounts"), mounts).unwrap();
        // The reader prefixes absolute paths with its own root.
        let controllers = dir.path().join(groups.strip_prefix("/").unwrap());
        fs::create_dir_all(&controllers).unwrap();
        fs::write(controllers.join("cgroup.controllers"), "cpu io\n").unwrap();
        let root = SysRoot::at(dir.path());
        (dir, root)
    }

    #[test]
    fn groups_are_made_once_and_removed() {
        let (dir, root) = machine("cgroup", "rw,blkio");
        let mut changes = HostChanges::default();
        join_groups(&plan(&[Some("a"), None, Some("b"), Some("a")], None), &root, &mut changes).unwrap();
        assert!(dir.path().join("groups/a").is_dir() && dir.path().join("groups/b").is_dir());
        assert_eq!(changes.made, ["a", "b"]);
        assert_eq!(changes.undo(), [""; 0]);
        assert_eq!(fs::read_dir(dir.path().join("groups")).unwrap().count(), 0);
    }

    #[test]
    fn a_weight_that_cannot_be_set_refuses_the_job() {
        let (_dir, root) = machine("cgroup", "rw,blkio");
        let mut changes = HostChanges::default();
        let error = join_groups(&plan(&[Some("a")], Some(200)), &root, &mut changes).unwrap_err();
        assert!(error.to_string().contains("this kernel gives it none"), "{error}");
        assert_eq!(changes.undo(), [""; 0]);
    }

    #[test]
    fn jobs_of_one_process_share_a_group_of_version_2() {
        let (_dir, root) = machine("cgroup2", "rw");
        for jobs in [[Some("a"), None], [Some("a"), Some("b")]] {
            let mut changes = HostChanges::default();
            let error = join_groups(&plan(&jobs, None), &root, &mut changes).unwrap_err();
            assert!(error.to_string().contains("share one"), "{error}");
        }
    }
}
