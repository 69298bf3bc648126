//! Block devices: trims, ends and errors.

use std::process::Command;
use std::sync::Arc;

use fathom_engine::{EngineEntry, EngineSetup};
use fathom_model::Op;
use fathom_sys::io::{OpenFlags, open_target};

use super::fixture::*;

/// A loop device on a file of `size` bytes with known contents; detached when dropped.
struct LoopDevice {
    path: std::path::PathBuf,
    backing: tempfile::NamedTempFile,
}

impl LoopDevice {
    /// `None`, and the reason printed, if this machine cannot create one.
    fn new(size: u64) -> Option<LoopDevice> {
        let backing = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(backing.path(), (0..size).map(content).collect::<Vec<u8>>()).unwrap();
        let made = Command::new("losetup").args(["--find", "--show"]).arg(backing.path()).output();
        match made {
            Ok(made) if made.status.success() => {
                let path = String::from_utf8(made.stdout).unwrap().trim().into();
                Some(LoopDevice { path, backing })
            }
            Ok(made) => {
                println!("skipped: no loop device: {}", String::from_utf8_lossy(&made.stderr).trim());
                None
            }
            Err(error) => {
                println!("skipped: no losetup: {error}");
                None
            }
        }
    }

    fn setup(&self, entry: &EngineEntry, size: u64, direct: bool) -> EngineSetup {
        let flags = OpenFlags { write: true, direct, ..OpenFlags::default() };
        let file = Arc::new(open_target(&self.path, flags).unwrap());
        let mut setup = setup_on(entry, file, size, true, direct);
        setup.files[0].is_block_device = true;
        setup
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let detached = Command::new("losetup").arg("--detach").arg(&self.path).status();
        assert!(detached.is_ok_and(|status| status.success()), "{} stays behind", self.path.display());
    }
}

#[test]
fn block_devices_are_written_read_and_trimmed() {
    let size = 64 * BLOCK as u64;
    for entry in real_engines() {
        let Some(device) = LoopDevice::new(size) else { return };
        let Some(mut engine) = open(entry, device.setup(entry, size, entry.name != "mmap")) else { continue };
        engine.payload(0).fill(0x5A);
        assert_eq!(one(&mut *engine, Op::Write, 0, BLOCK), BLOCK as i64, "{}", entry.name);
        assert_eq!(one(&mut *engine, Op::Sync, 0, 0), 0, "{}", entry.name);
        assert_eq!(one(&mut *engine, Op::Trim, 8 * BLOCK as u64, BLOCK), BLOCK as i64, "{}", entry.name);
        for (block, byte) in [(0, 0x5A), (8, 0), (9, content(9 * BLOCK as u64))] {
            assert_eq!(
                one(&mut *engine, Op::Read, block * BLOCK as u64, BLOCK),
                BLOCK as i64,
                "{}",
                entry.name
            );
            assert_eq!(engine.payload(0)[0], byte, "{} block {block}", entry.name);
        }
        assert_eq!(one(&mut *engine, Op::Read, size, BLOCK), 0, "{}", entry.name);
        assert_eq!(one(&mut *engine, Op::Write, size, BLOCK), -ENOSPC, "{}", entry.name);
    }
}

#[test]
fn device_errors_are_results() {
    let size = 64 * BLOCK as u64;
    for entry in real_engines() {
        let Some(device) = LoopDevice::new(size) else { return };
        let Some(mut engine) = open(entry, device.setup(entry, size, entry.name != "mmap")) else { continue };
        device.backing.as_file().set_len(size / 2).unwrap();
        assert_eq!(one(&mut *engine, Op::Read, size - BLOCK as u64, BLOCK), -EIO, "{}", entry.name);
        assert_eq!(one(&mut *engine, Op::Read, 0, BLOCK), BLOCK as i64, "{}", entry.name);
        assert_eq!(engine.payload(0)[1], content(1), "{}", entry.name);
    }
}
