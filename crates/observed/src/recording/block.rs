//! Blocks: what a recording consists of, each with its length, its number of entries and a checksum of both and of its content.

use std::io::Read;

/// What every block begins with.
pub(super) const MARK: [u8; 4] = *b"FTHM";
/// Version of the blocks.
const VERSION: u8 = 1;
/// Bytes before the content: mark, kind, version, two reserved bytes, length, entries, checksum.
const FRAME: usize = 20;
/// Where the checksum is. It covers the rest of the frame behind the mark, and the content.
const CHECKSUM: usize = 16;
/// Most bytes of content that are read.
const MAX_BYTES: u32 = 4 << 20;

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    /// The header of a file.
    Header,
    /// Requests.
    Requests,
    /// Sums of intervals.
    Sums,
    /// The end of a file.
    End,
}

impl BlockKind {
    const ALL: [BlockKind; 4] = [BlockKind::Header, BlockKind::Requests, BlockKind::Sums, BlockKind::End];

    const fn letter(self) -> u8 {
        match self {
            BlockKind::Header => b'H',
            BlockKind::Requests => b'R',
            BlockKind::Sums => b'S',
            BlockKind::End => b'E',
        }
    }
}

/// True for the beginning of a recording.
pub(crate) fn is_recording(head: &[u8]) -> bool {
    head.starts_with(&MARK) && head.get(MARK.len()) == Some(&BlockKind::Header.letter())
}

/// A block with this content.
pub(super) fn framed(kind: BlockKind, entries: u32, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(FRAME + content.len());
    bytes.extend(MARK);
    bytes.extend([kind.letter(), VERSION, 0, 0]);
    bytes.extend((content.len() as u32).to_le_bytes());
    bytes.extend(entries.to_le_bytes());
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&bytes[MARK.len()..]), content);
    bytes.extend(checksum.to_le_bytes());
    bytes.extend(content);
    bytes
}

/// A block that was read; its content is in the buffer that it was read into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub kind: BlockKind,
    pub entries: u32,
    /// Bytes of the file that it takes.
    pub bytes: u64,
}

/// Why no further block was read.
#[derive(Debug)]
pub(super) enum BlockFault {
    /// There is none.
    End,
    /// The source ends within it.
    Cut,
    /// It is not what was written.
    Damaged(&'static str),
    /// It is of a later version of the format.
    Version(u8),
    /// The source cannot be read.
    Io(std::io::Error),
}

/// Reads the next block of `input` into `content`.
pub(super) fn read_block(input: &mut dyn Read, content: &mut Vec<u8>) -> Result<Block, BlockFault> {
    let mut frame = [0; FRAME];
    match filled(input, &mut frame)? {
        0 => return Err(BlockFault::End),
        FRAME => {}
        _ => return Err(BlockFault::Cut),
    }
    let four = |at: usize| u32::from_le_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]);
    if frame[..MARK.len()] != MARK {
        return Err(BlockFault::Damaged("it does not begin with FTHM"));
    }
    if frame[5] != VERSION {
        return Err(BlockFault::Version(frame[5]));
    }
    let (length, entries) = (four(8), four(12));
    if length > MAX_BYTES {
        return Err(BlockFault::Damaged("its length is impossible"));
    }
    content.resize(length as usize, 0);
    if filled(input, content)? < content.len() {
        return Err(BlockFault::Cut);
    }
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&frame[MARK.len()..CHECKSUM]), content);
    if checksum != four(CHECKSUM) {
        return Err(BlockFault::Damaged("its checksum does not match"));
    }
    let kind = BlockKind::ALL.into_iter().find(|kind| kind.letter() == frame[4]);
    let kind = kind.ok_or(BlockFault::Damaged("its kind is unknown"))?;
    Ok(Block { kind, entries, bytes: (FRAME + content.len()) as u64 })
}

/// Fills `buffer` as far as the source goes; returns the bytes read.
fn filled(input: &mut dyn Read, buffer: &mut [u8]) -> Result<usize, BlockFault> {
    let mut read = 0;
    while read < buffer.len() {
        match input.read(&mut buffer[read..]) {
            Ok(0) => break,
            Ok(count) => read += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(BlockFault::Io(error)),
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_damaged_byte_is_found() {
        let whole = framed(BlockKind::Requests, 3, b"content");
        let mut content = Vec::new();
        let read = |bytes: &[u8], content: &mut Vec<u8>| read_block(&mut { bytes }, content);
        let block = read(&whole, &mut content).unwrap();
        assert_eq!((block.kind, block.entries, block.bytes), (BlockKind::Requests, 3, whole.len() as u64));
        assert_eq!(content, b"content");
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 0x10;
            let fault = read(&damaged, &mut content).unwrap_err();
            let is_found = matches!(fault, BlockFault::Damaged(_) | BlockFault::Version(_) | BlockFault::Cut);
            assert!(is_found, "{place}: {fault:?}");
            let cut = read(&whole[..place], &mut content).unwrap_err();
            assert!(matches!(cut, BlockFault::Cut) == (place > 0), "{place}: {cut:?}");
        }
        assert!(is_recording(&framed(BlockKind::Header, 0, b"{}")) && !is_recording(&whole));
    }
}
