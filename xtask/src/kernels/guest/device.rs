//! The bytes of a device, and what the kernel calls it.

use std::path::Path;

use anyhow::{Context as _, bail, ensure};

use super::shell::sh;

/// All bytes of a device or file, from below any cache: another name of the same storage may have been written.
pub fn bytes_of(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::write("/proc/sys/vm/drop_caches", "3")?;
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Fails with the first place at which bytes differ.
pub fn ensure_unchanged(path: &Path, before: &[u8]) -> anyhow::Result<()> {
    let after = bytes_of(path)?;
    if after == before {
        return Ok(());
    }
    ensure!(after.len() == before.len(), "{} has another size", path.display());
    let first = before.iter().zip(&after).position(|(before, after)| before != after);
    bail!("{} has changed at byte {}", path.display(), first.unwrap_or_default())
}

/// Overwrites all of a device with zeros, by other means than fathom: what was on it is no obstacle to the next case.
pub fn clear(path: &Path) -> anyhow::Result<()> {
    let mut device = std::fs::File::options().write(true).open(path)?;
    let size = size_of(path)?;
    std::io::copy(&mut std::io::Read::take(std::io::repeat(0), size), &mut device)?;
    device.sync_all().with_context(|| format!("cannot clear {}", path.display()))
}

/// Its size.
pub fn size_of(path: &Path) -> anyhow::Result<u64> {
    let shown = sh(&format!("blockdev --getsize64 {}", path.display()))?;
    shown.trim().parse().context("blockdev prints a size")
}

/// The kernel's name of a device: `dm-0` of `/dev/mapper/x`.
pub fn kernel_name(path: &Path) -> anyhow::Result<String> {
    let metadata = std::fs::metadata(path)?;
    let number = std::os::unix::fs::MetadataExt::rdev(&metadata);
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let link = std::fs::read_link(format!("/sys/dev/block/{major}:{minor}"))?;
    Ok(link.file_name().context("a link names a device")?.to_string_lossy().into_owned())
}
