//! Reads and writes through a pipe with splice(2).
//!
//! After an error the pipe may contain data, so it is replaced by a new one.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

/// A pipe that data passes through.
#[derive(Debug)]
pub struct SplicePipe {
    read: OwnedFd,
    write: OwnedFd,
    bytes: usize,
}

impl SplicePipe {
    /// A pipe that holds up to `bytes` if the system permits, else less.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn new(bytes: usize) -> io::Result<SplicePipe> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        // Requests above the size of the pipe take several rounds.
        let _ = fcntl_setpipe_size(&write, bytes.clamp(4096, 1 << 20));
        Ok(SplicePipe { read, write, bytes })
    }

    /// Reads from `file` at `offset`: bytes moved, or a negative errno.
    pub fn read_at(&mut self, file: &File, bytes: &mut [u8], offset: u64) -> i64 {
        let mut moved = 0;
        let result = self.read_rounds(file, bytes, offset, &mut moved);
        self.answer(result, moved)
    }

    /// Writes to `file` at `offset`: bytes moved, or a negative errno.
    pub fn write_at(&mut self, file: &File, bytes: &[u8], offset: u64) -> i64 {
        let mut moved = 0;
        let result = self.write_rounds(file, bytes, offset, &mut moved);
        self.answer(result, moved)
    }

    fn answer(&mut self, result: Result<(), Errno>, moved: usize) -> i64 {
        let Err(errno) = result else { return moved as i64 };
        match SplicePipe::new(self.bytes) {
            Ok(pipe) => *self = pipe,
            Err(error) => return -i64::from(error.raw_os_error().unwrap_or(5)),
        }
        if moved > 0 { moved as i64 } else { -i64::from(errno.raw_os_error()) }
    }

    fn read_rounds(
        &self,
        file: &File,
        bytes: &mut [u8],
        offset: u64,
        moved: &mut usize,
    ) -> Result<(), Errno> {
        while *moved < bytes.len() {
            let mut at = offset + *moved as u64;
            let left = bytes.len() - *moved;
            let count =
                uninterrupted(|| splice(file, Some(&mut at), &self.write, None, left, SpliceFlags::MOVE))?;
            if count == 0 {
                break;
            }
            let end = *moved + count;
            while *moved < end {
                let read = uninterrupted(|| rustix::io::read(&self.read, &mut bytes[*moved..end]))?;
                *moved += read;
            }
        }
        Ok(())
    }

    fn write_rounds(&self, file: &File, bytes: &[u8], offset: u64, moved: &mut usize) -> Result<(), Errno> {
        while *moved < bytes.len() {
            let mut left = self.put(&bytes[*moved..])?;
            while left > 0 {
                let mut at = offset + *moved as u64;
                let count =
                    uninterrupted(|| splice(&self.read, None, file, Some(&mut at), left, SpliceFlags::MOVE))?;
                if count == 0 {
                    return Err(Errno::IO);
                }
                *moved += count;
                left -= count;
            }
        }
        Ok(())
    }

    /// Puts as many of `bytes` into the pipe as it holds; returns their number.
    fn put(&self, bytes: &[u8]) -> Result<usize, Errno> {
        let part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        // SAFETY: the kernel only reads the memory of `bytes`, which its owner keeps: every caller empties the pipe, or
        // drops it, before it returns.
        let count = unsafe { libc::vmsplice(self.write.as_raw_fd(), &part, 1, 0) };
        match usize::try_from(count) {
            Ok(count) => Ok(count),
            Err(_) => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)),
        }
    }
}

/// Repeats `call` while a signal interrupts it.
fn uninterrupted(mut call: impl FnMut() -> Result<usize, Errno>) -> Result<usize, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_passes_through_the_pipe_in_rounds() {
        let file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|index| (index / 7) as u8).collect();
        let mut pipe = SplicePipe::new(bytes.len()).unwrap();
        assert_eq!(pipe.write_at(&file, &bytes, 4096), 3_000_000);
        let mut again = vec![0; bytes.len()];
        assert_eq!(pipe.read_at(&file, &mut again, 4096), 3_000_000);
        assert!(again == bytes);
        assert_eq!(pipe.read_at(&file, &mut again, 3_000_000), 4096, "up to the end of the file");
        assert_eq!(pipe.read_at(&file, &mut again, 1 << 40), 0);
    }

    #[test]
    fn nothing_of_a_failed_write_stays_in_the_pipe() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("f");
        std::fs::write(&path, b"0123").unwrap();
        let unwritable = File::open(&path).unwrap();
        let mut pipe = SplicePipe::new(4096).unwrap();
        assert_eq!(pipe.write_at(&unwritable, b"lost", 0), -9);
        let mut bytes = [0; 4];
        assert_eq!((pipe.read_at(&unwritable, &mut bytes, 0), &bytes), (4, b"0123"));
    }
}
