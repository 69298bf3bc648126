//! What a worker's thread sets up before its engine is opened, and does after its last request.

use std::io;
use std::path::PathBuf;
use std::process::Stdio;

use fathom_engine::OpenFile;
use fathom_model::plan::{HostPlan, MemoryMode, ThreadPlan, WriteHint};
use fathom_stats::WorkerFailure;
use fathom_sys::affinity::pin_current_thread;
use fathom_sys::child::{self, run_until};
use fathom_sys::control_group::IoHierarchy;
use fathom_sys::device::SysRoot;
use fathom_sys::files::create_output;
use fathom_sys::io::{describe, fadvise_dontneed, flags_of, reopen, set_write_hint, sync_file_system};
use fathom_sys::memory::LockedMemory;
use fathom_sys::priority::{NumaMode, set_group, set_io_priority, set_memory_policy, set_nice, set_user};
use fathom_sys::thread::thread_id;
use fathom_sys::transfer;

use crate::stop::StopHandle;
use crate::worker::WorkerSpec;

fn failure(attempted: &str, error: &io::Error, hint: &str) -> WorkerFailure {
    let errno = error.raw_os_error().unwrap_or(0);
    WorkerFailure::new(errno, format!("cannot {attempted}: {}", describe(error)), Some(hint))
}

/// Applies the plan of the thread to the calling thread, and prepares its files.
pub(crate) fn apply(spec: &WorkerSpec, files: &[OpenFile], stop: &StopHandle) -> Result<(), WorkerFailure> {
    let ThreadPlan { nice, io_priority, cpu_nodes, memory, prerun, .. } = &spec.threads;
    let mut cpus = spec.cpus.clone();
    for &node in cpu_nodes {
        cpus.extend(cpus_of_node(node).ok_or_else(|| {
            let attempted = format!("find NUMA node {node}");
            failure(
                &attempted,
                &io::ErrorKind::NotFound.into(),
                "set numa_cpu_nodes to nodes of this machine",
            )
        })?);
    }
    if !cpus.is_empty() {
        pin_current_thread(&cpus).map_err(|error| {
            let attempted = format!("pin to CPUs {cpus:?}");
            failure(&attempted, &error, "set cpus_allowed to CPUs this process may use")
        })?;
    }
    if let Some(nice) = nice {
        set_nice(*nice)
            .map_err(|error| failure(&format!("set nice to {nice}"), &error, "run as root, or raise nice"))?;
    }
    if let Some(priority) = io_priority {
        set_io_priority(priority.value()).map_err(|error| {
            failure("set the I/O priority", &error, "run as root, or use prioclass=2 (best effort)")
        })?;
    }
    if let Some(policy) = memory {
        let mode = match policy.mode {
            MemoryMode::Default => NumaMode::Default,
            MemoryMode::Prefer => NumaMode::Preferred,
            MemoryMode::Bind => NumaMode::Bind,
            MemoryMode::Interleave => NumaMode::Interleave,
            MemoryMode::Local => NumaMode::Local,
        };
        set_memory_policy(mode, &policy.nodes).map_err(|error| {
            failure("set the memory policy", &error, "set numa_mem_policy to nodes of this machine")
        })?;
    }
    join_control_group(&spec.threads.host)?;
    act_as(&spec.threads.host, files)?;
    prerun.as_deref().map_or(Ok(()), |command| run_command(&spec.name, "prerun", command, stop))?;
    prepare_files(spec, files)
}

/// Joins the group that the session has made, unless the whole process has.
fn join_control_group(host: &HostPlan) -> Result<(), WorkerFailure> {
    let Some(group) = &host.control_group else { return Ok(()) };
    let Some(groups) = IoHierarchy::find(&SysRoot::real()).filter(|groups| !groups.has_processes()) else {
        return Ok(());
    };
    groups.join(&group.name, thread_id()).map_err(|error| {
        failure(&format!("join control group {}", group.name), &error, "run as root, or omit cgroup")
    })
}

/// Acts as the user and the group of the job from now on. The session has opened the files as its own user, so that this
/// one is asked for by opening them again.
fn act_as(host: &HostPlan, files: &[OpenFile]) -> Result<(), WorkerFailure> {
    let hint = "run as root, or omit uid and gid";
    if let Some(group) = host.group {
        set_group(group).map_err(|error| failure(&format!("act as group {group}"), &error, hint))?;
    }
    if let Some(user) = host.user {
        set_user(user).map_err(|error| failure(&format!("act as user {user}"), &error, hint))?;
    }
    if host.user.is_none() && host.group.is_none() {
        return Ok(());
    }
    for file in files.iter().filter_map(|open| open.file.as_deref()) {
        flags_of(file).and_then(|flags| reopen(file, flags)).map_err(|error| {
            failure("open a file as the user of the job", &error, "let that user and group open it")
        })?;
    }
    Ok(())
}

/// Locks the memory that the plan of the thread takes from the machine, until it is dropped; less if the run is to end.
pub(crate) fn lock_memory(
    spec: &WorkerSpec,
    stop: &StopHandle,
) -> Result<Option<LockedMemory>, WorkerFailure> {
    let bytes = spec.threads.locked_memory;
    if bytes == 0 {
        return Ok(None);
    }
    let hint = "lower lockmem, or raise `ulimit -l`";
    let lock = |len| LockedMemory::new(len, || !stop.is_requested());
    let locked = usize::try_from(bytes).map_err(io::Error::other).and_then(lock);
    locked.map(Some).map_err(|error| failure(&format!("lock {bytes} bytes of memory"), &error, hint))
}

/// The CPUs of a NUMA node.
fn cpus_of_node(node: u32) -> Option<Vec<usize>> {
    let text = SysRoot::real().text(format!("/sys/devices/system/node/node{node}/cpulist"))?;
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some((first.parse().ok()?, last.parse().ok()?))
    };
    let ranges = text.trim().split(',').filter_map(range);
    Some(ranges.flat_map(|(first, last): (usize, usize)| first..=last).collect())
}

/// Runs a command of the job in a shell, with its output in a file, as fio does, until the run is asked to end. Its exit status means
/// nothing.
fn run_command(job: &str, when: &str, command: &str, stop: &StopHandle) -> Result<(), WorkerFailure> {
    let path = PathBuf::from(format!("{}.{when}.txt", job.replace('/', "_")));
    let hint = "check that the current directory can be written to";
    let opened = create_output(&path).and_then(|file| Ok((file.try_clone()?, file)));
    let (out, err) = opened.map_err(|error| failure(&format!("create {}", path.display()), &error, hint))?;
    let mut shell = child::command("/bin/sh");
    shell.arg("-c").arg(command).stdin(Stdio::null()).stdout(out).stderr(err);
    run_until(&mut shell, || stop.is_requested())
        .map_err(|error| failure(&format!("run the command of exec_{when}"), &error, "check /bin/sh"))?;
    Ok(())
}

/// Prepares the files of a worker: hints, and what is in the page cache at the start.
fn prepare_files(spec: &WorkerSpec, files: &[OpenFile]) -> Result<(), WorkerFailure> {
    let opened = || files.iter().filter_map(|open| open.file.as_deref());
    if let Some(hint) = spec.usage.write_hint {
        let life_time = match hint {
            WriteHint::None => 1,
            WriteHint::Short => 2,
            WriteHint::Medium => 3,
            WriteHint::Long => 4,
            WriteHint::Extreme => 5,
        };
        for file in opened() {
            set_write_hint(file, life_time)
                .map_err(|error| failure("set the write hint", &error, "omit write_hint for this target"))?;
        }
    }
    if spec.usage.pre_read {
        let mut buffer = vec![0; 1 << 20];
        for (file, extent) in opened().zip(&spec.source.extents) {
            let mut at = extent.offset;
            let end = extent.offset + extent.len;
            while at < end {
                let len = (end - at).min(buffer.len() as u64) as usize;
                match transfer::read_at(file, &mut buffer[..len], at) {
                    moved if moved > 0 => at += moved as u64,
                    0 => break,
                    errno => {
                        let error = io::Error::from_raw_os_error(errno.unsigned_abs() as i32);
                        return Err(failure("read the file into the page cache", &error, "omit pre_read"));
                    }
                }
            }
        }
    } else if spec.invalidate {
        // Here rather than at preparation, because an earlier phase may have filled the cache. Advice only, and without
        // effect on targets without a page cache.
        opened().for_each(|file| _ = fadvise_dontneed(file, 0, 0));
    }
    Ok(())
}

/// What follows the last request and is not part of the measurement.
pub(crate) fn finish(spec: &WorkerSpec, files: &[OpenFile], stop: &StopHandle) -> Result<(), WorkerFailure> {
    if spec.usage.fsync_on_close {
        for file in files.iter().filter_map(|open| open.file.as_deref()) {
            file.sync_all()
                .map_err(|error| failure("sync a file when it is closed", &error, "check the device"))?;
        }
    }
    if spec.usage.end_syncfs {
        for file in files.iter().filter_map(|open| open.file.as_deref()) {
            sync_file_system(file)
                .map_err(|error| failure("sync the file system of a file", &error, "check the device"))?;
        }
    }
    spec.threads
        .postrun
        .as_deref()
        .map_or(Ok(()), |command| run_command(&spec.name, "postrun", command, stop))
}
