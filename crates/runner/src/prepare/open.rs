//! Opening a target for a worker.

use std::fs::File;
use std::sync::Arc;

use fathom_engine::OpenFile;
use fathom_model::plan::{FileAdvice, OpenSync};
use fathom_model::{BlockSize, JobPlan};
use fathom_sys::file_use::{AtomicSizes, atomic_sizes};
use fathom_sys::io::{Advice, OpenFlags, direct_alignment, fadvise, logical_block_size};
use fathom_workload::Extent;

use crate::RunError;
use crate::session::{Session, Time};
use crate::targets::{self, Target, TargetKind};

/// Opens one target for one worker, and checks the requirements of direct I/O.
pub(super) fn open_file(
    session: &Session,
    job: &JobPlan,
    target: &Target,
    extent: Extent,
) -> Result<OpenFile, RunError> {
    if target.kind == TargetKind::Virtual {
        let size = target.size.max(extent.offset + extent.len);
        return Ok(OpenFile {
            file: None,
            size,
            is_block_device: matches!(session.time, Time::Virtual { .. }),
            volume: target.volume,
        });
    }
    let io = &job.io;
    let modifies = io.modifies();
    let flags = OpenFlags {
        read: io.pattern.reads() || !modifies || io.verify.is_some() || job.engine.name == "mmap",
        // fallocate(2) needs it for reads too.
        write: modifies || job.engine.name == "falloc",
        direct: io.direct,
        sync: io.open_sync == OpenSync::Sync,
        dsync: io.open_sync == OpenSync::Dsync,
        // Reads would update the inode's access time now and then, and check it every time.
        no_atime: true,
        ..OpenFlags::default()
    };
    let failed =
        |source| RunError::Target { attempted: "open", path: target.path.clone(), source, direct: io.direct };
    let Some(handle) = &target.handle else { return Err(failed(std::io::ErrorKind::NotFound.into())) };
    let file = handle.reopen(flags).map_err(failed)?;
    if io.direct {
        check_alignment(job, target, &file, extent)?;
    }
    if job.files.usage.atomic && modifies {
        check_atomic(job, target, atomic_sizes(&file))?;
    }
    // As fio does by default: otherwise the kernel reads ahead for random requests. Advice only.
    let advice = match job.files.usage.advice {
        FileAdvice::None => None,
        FileAdvice::ByOffsets if io.pattern.random => Some(Advice::Random),
        FileAdvice::ByOffsets | FileAdvice::Sequential => Some(Advice::Sequential),
        FileAdvice::Random => Some(Advice::Random),
        FileAdvice::NoReuse => Some(Advice::NoReuse),
    };
    if let Some(advice) = advice {
        let _ = fadvise(&file, 0, 0, advice);
    }
    let size = match target.kind {
        TargetKind::BlockDevice => target.size,
        _ => file.metadata().map_err(failed)?.len(),
    };
    let is_block_device = target.kind == TargetKind::BlockDevice;
    Ok(OpenFile { file: Some(Arc::new(file)), size, is_block_device, volume: 0 })
}

/// With O_DIRECT every request must be a multiple of the logical block size; this check replaces a later EINVAL.
fn check_alignment(job: &JobPlan, target: &Target, file: &File, extent: Extent) -> Result<(), RunError> {
    let unit = match target.kind {
        TargetKind::BlockDevice => logical_block_size(file).ok().map(u64::from),
        _ => direct_alignment(file).map(|alignment| u64::from(alignment.offset)),
    };
    let Some(unit) = unit.filter(|&unit| unit > 1) else { return Ok(()) };
    let sizes = targets::ops_used(job).map(|op| ("bs", job.io.block_size[op].smallest()));
    let steps = targets::ops_used(job).filter_map(|op| match &job.io.block_size[op] {
        BlockSize::Range(range) => Some(("the step of bsrange", range.step())),
        BlockSize::Fixed(_) | BlockSize::Split(_) => None,
    });
    let aligns = targets::ops_used(job).map(|op| ("blockalign", job.io.access.align[op]));
    let others = [("offset", extent.offset), ("the skip of rw", job.io.access.skip.unsigned_abs())];
    for (what, value) in sizes.chain(steps).chain(aligns).chain(others) {
        if !value.is_multiple_of(unit) {
            return Err(RunError::plan(
                &job.name,
                format!(
                    "{what}={value} is not a multiple of {unit} bytes, as direct I/O on {} needs",
                    target.path.display()
                ),
                format!("use multiples of {unit}, or direct=0"),
            ));
        }
    }
    Ok(())
}

/// The kernel refuses other writes with EINVAL.
fn check_atomic(job: &JobPlan, target: &Target, sizes: Option<AtomicSizes>) -> Result<(), RunError> {
    let refused = |reason: String, hint: &str| Err(RunError::plan(&job.name, reason, hint));
    let path = target.path.display();
    let Some(AtomicSizes { min, max }) = sizes else {
        return refused(
            format!("atomic=1 on {path}: the kernel, the file system or the device has no atomic writes"),
            "omit atomic, or use a device with atomic writes and Linux 6.11 or later",
        );
    };
    let size = &job.io.block_size.write;
    for bytes in [size.smallest(), size.largest()] {
        if !bytes.is_power_of_two() || !(u64::from(min)..=u64::from(max)).contains(&bytes) {
            return refused(
                format!("atomic=1 on {path} with bs={bytes}: atomic writes have {min} to {max} bytes there"),
                "set bs to a power of two in that range",
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atomic_writes_have_sizes_of_the_device() {
        let target = Target {
            path: "d".into(),
            kind: TargetKind::BlockDevice,
            size: 1 << 20,
            volume: 0,
            handle: None,
            identity: None,
            planned: 0,
            uses: 0,
        };
        let check = |block: u64, sizes, expected: Option<&str>| {
            let mut job = JobPlan::default();
            job.io.block_size.write = block.into();
            let refused = check_atomic(&job, &target, sizes).err().map(|error| error.to_string());
            assert_eq!(refused.is_some(), expected.is_some(), "{refused:?}");
            assert!(refused.unwrap_or_default().contains(expected.unwrap_or_default()));
        };
        let sizes = Some(AtomicSizes { min: 4096, max: 65536 });
        check(16384, sizes, None);
        check(131_072, sizes, Some("4096 to 65536 bytes"));
        check(12288, sizes, Some("4096 to 65536 bytes"));
        check(4096, None, Some("has no atomic writes"));
    }
}
