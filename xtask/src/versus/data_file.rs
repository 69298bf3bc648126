//! The file that is read or written: 1 GiB of random bytes in the page cache. It has no name, so it goes with this process, however
//! that ends; the programs open it through `/proc`.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::os::fd::AsRawFd as _;
use std::path::Path;

use anyhow::{Context as _, bail};

/// Its size.
const BYTES: u64 = 1 << 30;

/// A file that exists as long as this does.
#[derive(Debug)]
pub struct DataFile {
    file: File,
    /// Where other processes find it.
    pub path: String,
}

impl DataFile {
    /// Makes it in `directory` and writes it out, so that no writing back disturbs what follows.
    pub fn create(directory: &Path) -> anyhow::Result<DataFile> {
        let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        if available_bytes(&memory).is_some_and(|available| available < 2 * BYTES) {
            bail!("2 GiB of memory must be available, so that a file of 1 GiB stays in the page cache");
        }
        let mut file = tempfile::tempfile_in(directory)
            .with_context(|| format!("cannot make a file in {}", directory.display()))?;
        let random = File::open("/dev/urandom").context("cannot open /dev/urandom")?;
        std::io::copy(&mut random.take(BYTES), &mut file)
            .and_then(|_| file.sync_all())
            .with_context(|| format!("cannot write 1 GiB to {}", directory.display()))?;
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        Ok(DataFile { file, path })
    }

    /// Reads it whole, as others may have pushed it out of the page cache.
    pub fn warm(&self) -> anyhow::Result<()> {
        let mut file = &self.file;
        let mut buffer = vec![0; 1 << 20];
        file.rewind().context("cannot go back in the data file")?;
        while file.read(&mut buffer).context("cannot read the data file")? > 0 {}
        Ok(())
    }
}

/// `MemAvailable` of `/proc/meminfo`.
fn available_bytes(memory: &str) -> Option<u64> {
    let value = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    value.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_in_bytes() {
        let check = |memory: &str, expected| assert_eq!(available_bytes(memory), expected, "{memory}");
        check("MemTotal:  9 kB\nMemAvailable:   2048 kB\n", Some(2 << 20));
        check("MemAvailable: many kB\n", None);
        check("", None);
    }
}
