//! The bytes of a device as the probes read them: the start and the end are read once, everything else when asked for.

use std::io;

use super::ReadAt;

/// Holds every mark of the first labels of ZFS and all that stands before.
const HEAD: u64 = 512 << 10;
/// Holds the last two labels of ZFS, also where the size is no multiple of theirs.
const TAIL: u64 = 768 << 10;

/// A device or image of a known size.
pub(super) struct View<'a> {
    reader: &'a dyn ReadAt,
    /// In bytes.
    pub(super) size: u64,
    windows: [ViewWindow; 2],
}

/// Bytes already read; empty where they cannot be read in one piece.
struct ViewWindow {
    offset: u64,
    bytes: Vec<u8>,
}

impl View<'_> {
    /// Reads the start and the end of `size` bytes. An error is left to the probe that needs what cannot be read.
    pub(super) fn new(reader: &dyn ReadAt, size: u64) -> View<'_> {
        let tail = size.saturating_sub(TAIL).max(HEAD.min(size));
        let window = |offset, length: u64| {
            let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
            let is_filled = read_exactly(reader, offset, &mut bytes).unwrap_or(false);
            ViewWindow { offset, bytes: if is_filled { bytes } else { Vec::new() } }
        };
        View { reader, size, windows: [window(0, HEAD.min(size)), window(tail, size - tail)] }
    }

    /// The bytes at `offset`, or `None` when the device ends before.
    pub(super) fn bytes<const N: usize>(&self, offset: u64) -> io::Result<Option<[u8; N]>> {
        let mut buffer = [0u8; N];
        Ok(self.fill(offset, &mut buffer)?.then_some(buffer))
    }

    /// Fills `buffer` from `offset`; false when the device ends before.
    pub(super) fn fill(&self, offset: u64, buffer: &mut [u8]) -> io::Result<bool> {
        if offset.checked_add(buffer.len() as u64).is_none_or(|end| end > self.size) {
            return Ok(false);
        }
        for window in &self.windows {
            let start = offset.checked_sub(window.offset).and_then(|start| usize::try_from(start).ok());
            if let Some(known) = start.and_then(|start| window.bytes.get(start..start + buffer.len())) {
                buffer.copy_from_slice(known);
                return Ok(true);
            }
        }
        read_exactly(self.reader, offset, buffer)
    }

    /// Whether the device holds `expected` at `offset`.
    pub(super) fn has(&self, offset: u64, expected: &[u8]) -> io::Result<bool> {
        let mut buffer = [0u8; 32];
        let buffer = &mut buffer[..expected.len()];
        Ok(self.fill(offset, buffer)? && buffer == expected)
    }

    /// The start of the `n`th last sector of 512 bytes, counted from 1; `None` when the device is smaller.
    pub(super) fn sector_from_end(&self, n: u64) -> Option<u64> {
        (self.size / 512).checked_sub(n).map(|sector| sector * 512)
    }
}

/// Fills `buffer` from `offset`; false when the end comes first.
pub(super) fn read_exactly(reader: &dyn ReadAt, offset: u64, buffer: &mut [u8]) -> io::Result<bool> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read_at(offset + filled as u64, &mut buffer[filled..]) {
            Ok(0) => return Ok(false),
            Ok(length) => filled += length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// The little-endian number at `at`.
pub(super) fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// The little-endian number at `at`.
pub(super) fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The little-endian number at `at`.
pub(super) fn le64(bytes: &[u8], at: usize) -> u64 {
    u64::from(le32(bytes, at)) | u64::from(le32(bytes, at + 4)) << 32
}

/// The big-endian number at `at`.
pub(super) fn be16(bytes: &[u8], at: usize) -> u16 {
    le16(bytes, at).swap_bytes()
}

/// The big-endian number at `at`.
pub(super) fn be32(bytes: &[u8], at: usize) -> u32 {
    le32(bytes, at).swap_bytes()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Records the reads; a byte has the low bits of its offset in KiB. Sector 3 is broken.
    struct Recorder {
        reads: RefCell<Vec<(u64, usize)>>,
        is_broken: bool,
    }

    impl ReadAt for Recorder {
        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
            self.reads.borrow_mut().push((offset, buffer.len()));
            let broken = 3 * 512..4 * 512;
            if self.is_broken && offset < broken.end && offset + buffer.len() as u64 > broken.start {
                return Err(io::Error::from_raw_os_error(5));
            }
            for (byte, position) in buffer.iter_mut().zip(offset..) {
                *byte = (position >> 10) as u8;
            }
            Ok(buffer.len())
        }
    }

    fn recorder(is_broken: bool) -> Recorder {
        Recorder { reads: RefCell::default(), is_broken }
    }

    #[test]
    fn the_start_and_the_end_are_read_once() {
        let size = 1 << 30;
        let reader = recorder(false);
        let view = View::new(&reader, size);
        for offset in [0, 100_000, HEAD - 4, size - TAIL, size - 4] {
            assert_eq!(view.bytes::<4>(offset).unwrap(), Some([(offset >> 10) as u8; 4]));
        }
        assert_eq!(view.bytes::<4>(size - 3).unwrap(), None);
        assert_eq!(*reader.reads.borrow(), [(0, HEAD as usize), (size - TAIL, TAIL as usize)]);
        assert_eq!(view.bytes::<4>(HEAD - 2).unwrap(), Some([255, 255, 0, 0]));
        assert_eq!(reader.reads.borrow().len(), 3);
    }

    #[test]
    fn a_small_device_is_read_without_overlap() {
        let reader = recorder(false);
        let size = HEAD + 4096;
        View::new(&reader, size);
        assert_eq!(*reader.reads.borrow(), [(0, HEAD as usize), (HEAD, 4096)]);
    }

    #[test]
    fn an_unreadable_sector_fails_only_where_it_is_needed() {
        let reader = recorder(true);
        let view = View::new(&reader, 1 << 30);
        assert_eq!(view.bytes::<4>(1024).unwrap(), Some([1; 4]));
        assert_eq!(view.bytes::<4>(3 * 512).unwrap_err().raw_os_error(), Some(5));
    }
}
