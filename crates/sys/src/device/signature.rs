//! Finds out what a device or image already holds, from the marks that on-disk formats leave.
//!
//! It reads about a MiB at the start and the end and never writes. It would rather name something that is only a remnant
//! than miss something alive: the answer guards data. It knows what `blkid` knows, and some formats besides.

mod file_systems;
mod firmware_raid;
#[cfg(test)]
mod fixture;
mod magic;
mod members;
mod partition_tables;
mod swap;
mod view;

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use magic::MAGICS;
use view::{View, read_exactly};

/// Something with bytes at offsets: a device, an image, a buffer.
pub trait ReadAt {
    /// Fill the start of `buffer` from `offset`; how much was there, 0 at the end.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

impl ReadAt for File {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }
}

impl ReadAt for [u8] {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|start| self.get(start..)).unwrap_or_default();
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }
}

impl<R: ReadAt + ?Sized> ReadAt for &R {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        (**self).read_at(offset, buffer)
    }
}

/// The class of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SignatureClass {
    /// A table of partitions.
    PartitionTable,
    /// A file system.
    FileSystem,
    /// Swap space or a hibernation image.
    Swap,
    /// A part of a volume group, RAID, pool or cache.
    Member,
    /// An encrypted container.
    Encrypted,
}

/// One format found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signature {
    /// The format: `ext4`, `GPT`, `LVM2`, `MD RAID 1.2` …
    pub name: &'static str,
    /// Its class.
    pub class: SignatureClass,
    /// Where its mark stands, in bytes.
    pub offset: u64,
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Some names include their class.
        const OWN_NOUNS: [&str; 7] = ["label", "map", "image", "log", "journal", "heartbeat", "disk"];
        let noun = match self.class {
            _ if OWN_NOUNS.iter().any(|noun| self.name.ends_with(noun)) => "",
            SignatureClass::PartitionTable => " partition table",
            SignatureClass::FileSystem => " file system",
            SignatureClass::Swap => " space",
            SignatureClass::Member => " member",
            SignatureClass::Encrypted => " encrypted volume",
        };
        let noun = if self.name.ends_with(noun) { "" } else { noun };
        write!(f, "{}{noun}", self.name)
    }
}

/// Everything recognised on a device of `size` bytes; the same format at several places (copies of a superblock) is
/// named once. Fails when the device cannot be read where a mark would be.
pub fn probe(reader: impl ReadAt, size: u64) -> io::Result<Vec<Signature>> {
    let view = View::new(&reader, size);
    let mut found = Vec::new();
    partition_tables::probe(&view, &mut found)?;
    for magic in MAGICS {
        if view.has(magic.offset, magic.bytes)? {
            add(&mut found, magic.name, magic.class, magic.offset);
        }
    }
    file_systems::probe(&view, &mut found)?;
    swap::probe(&view, &mut found)?;
    members::probe(&view, &mut found)?;
    firmware_raid::probe(&view, &mut found)?;
    let mut names = Vec::new();
    found.retain(|signature: &Signature| {
        let new = !names.contains(&signature.name);
        names.push(signature.name);
        new
    });
    Ok(found)
}

/// Where the first byte that is not zero stands, looked for in the first MiB and the last 64 KiB of `size` bytes; `None`
/// when all these are zero. For a device on which [`probe`] recognises nothing: something unknown may still be there.
pub fn unknown_data(reader: impl ReadAt, size: u64) -> io::Result<Option<u64>> {
    const START: u64 = 1 << 20;
    const END: u64 = 64 << 10;
    let start = START.min(size);
    let end = END.min(size - start);
    let mut buffer = vec![0u8; usize::try_from(start.max(end)).unwrap_or_default()];
    for (offset, length) in [(0, start), (size - end, end)] {
        let bytes = &mut buffer[..usize::try_from(length).unwrap_or_default()];
        if !read_exactly(&reader, offset, bytes)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(index) = bytes.iter().position(|&byte| byte != 0) {
            return Ok(Some(offset + index as u64));
        }
    }
    Ok(None)
}

type Found = Vec<Signature>;

fn add(found: &mut Found, name: &'static str, class: SignatureClass, offset: u64) {
    found.push(Signature { name, class, offset });
}

#[cfg(test)]
mod tests {
    use super::fixture::{BOOT, MIB, check, image, names};
    use super::*;

    #[test]
    fn every_fixed_mark() {
        for magic in MAGICS.iter().filter(|magic| magic.offset < 4 * MIB as u64) {
            check(&[(magic.offset as usize, magic.bytes)], &[magic.name]);
        }
    }

    #[test]
    fn fixed_marks_are_in_order_and_long_enough() {
        assert!(MAGICS.windows(2).all(|pair| pair[0].offset <= pair[1].offset));
        assert!(MAGICS.iter().all(|magic| (4..=32).contains(&magic.bytes.len())));
    }

    /// A device of 1 TiB that is zero but for one mark.
    struct Sparse(u64, &'static [u8]);

    impl ReadAt for Sparse {
        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
            buffer.fill(0);
            for (byte, position) in self.1.iter().zip(self.0..) {
                if let Some(index) = position.checked_sub(offset).filter(|index| *index < buffer.len() as u64)
                {
                    buffer[index as usize] = *byte;
                }
            }
            Ok(buffer.len())
        }
    }

    #[test]
    fn marks_far_into_a_large_device() {
        for magic in MAGICS {
            let found = probe(Sparse(magic.offset, magic.bytes), 1 << 40).unwrap();
            assert_eq!(
                found,
                [Signature { name: magic.name, class: magic.class, offset: magic.offset }],
                "{magic:?}"
            );
        }
    }

    #[test]
    fn copies_are_named_once() {
        check(&[(512, b"EFI PART"), (4 * MIB - 512, b"EFI PART")], &["GPT"]);
        check(&[BOOT, (64 << 10, b"ReIsEr4"), (32 << 10, b"JFS1")], &["DOS", "jfs", "reiser4"]);
    }

    /// Numbers as of a generator that a benchmark may have filled a device with.
    fn random_words(seed: u64) -> impl Iterator<Item = u64> {
        let mut state = seed;
        std::iter::repeat_with(move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        })
    }

    #[test]
    fn zeros_and_tiny_images_have_no_signature() {
        for size in [0, 1, 511, 512, 513, 4096, 65536, 256 << 10, 4 * MIB + 1] {
            assert_eq!(names(&image(size, &[])), [] as [&str; 0], "{size} bytes");
        }
    }

    #[test]
    fn random_data_has_no_signature() {
        let mut random = vec![0u8; 2 * MIB + 512];
        for round in 0..16u64 {
            for (bytes, word) in random.chunks_exact_mut(8).zip(random_words(0x9e37_79b9_7f4a_7c15 + round)) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
            assert_eq!(names(&random), [] as [&str; 0], "round {round}");
        }
    }

    /// Two bytes at a given place are there by chance once in 65536 devices: here they are there always, amid random
    /// data, and nothing must come of it.
    #[test]
    fn short_marks_amid_random_data_are_no_signature() {
        let short: [(usize, &[u8]); 12] = [
            (0, b"HM"),
            (0, b"ER"),
            (88, b"CS"),
            (508, &[0xda, 0xbe]),
            (510, &[0x55, 0xaa]),
            (1024, b"BD"),
            (1024 + 16, &[0x7f, 0x13]),
            (1024 + 16, &[0x24, 0x78]),
            (1024 + 24, &[0x5a, 0x4d]),
            (1024 + 0x38, &[0x53, 0xef]),
            (MIB - 512, b"JM"),
            (MIB - 512, &[0x55, 0xaa]),
        ];
        let mut random = vec![0u8; MIB];
        for (bytes, word) in random.chunks_exact_mut(8).zip(random_words(1)) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        // Only what lies around the marks changes from round to round.
        let around = [0..2048, MIB - 512..MIB];
        for (round, (offset, mark)) in short.iter().cycle().take(12 * 100).enumerate() {
            for range in around.clone() {
                let words = random_words(round as u64 + 0x1234_5678);
                for (bytes, word) in random[range].chunks_exact_mut(8).zip(words.skip(8)) {
                    bytes.copy_from_slice(&word.to_le_bytes());
                }
            }
            random[*offset..offset + mark.len()].copy_from_slice(mark);
            assert_eq!(names(&random), [] as [&str; 0], "round {round}");
        }
    }

    #[test]
    fn repeated_bytes_have_no_signature() {
        for byte in 0..=255 {
            assert_eq!(names(&vec![byte; MIB]), [] as [&str; 0], "{byte:#x}");
        }
    }

    #[test]
    fn unreadable_is_an_error() {
        struct Broken;
        impl ReadAt for Broken {
            fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
                let is_broken = offset + buffer.len() as u64 > 60_000;
                if is_broken { Err(io::Error::from_raw_os_error(5)) } else { Ok(buffer.len()) }
            }
        }
        assert_eq!(probe(Broken, 1 << 20).unwrap_err().raw_os_error(), Some(5));
        assert_eq!(unknown_data(Broken, 1 << 20).unwrap_err().raw_os_error(), Some(5));
    }

    #[test]
    fn unknown_data_is_found_at_the_start_and_the_end() {
        let check = |size: usize, at: Option<usize>, expected: Option<u64>| {
            let mut bytes = vec![0; size];
            if let Some(at) = at {
                bytes[at] = 1;
            }
            assert_eq!(unknown_data(&bytes[..], size as u64).unwrap(), expected, "{size}: {at:?}");
        };
        for size in [0, 1, 4096, MIB, MIB + 1, MIB + (64 << 10), 4 * MIB] {
            check(size, None, None);
            for at in [0, size.wrapping_sub(1)].into_iter().filter(|at| *at < size) {
                check(size, Some(at), Some(at as u64));
            }
        }
        check(4 * MIB, Some(MIB - 1), Some(MIB as u64 - 1));
        check(4 * MIB, Some(MIB), None);
        check(4 * MIB, Some(4 * MIB - (64 << 10)), Some((4 << 20) - (64 << 10)));
        check(4 * MIB, Some(4 * MIB - (64 << 10) - 1), None);
        // An image that is shorter than it should be.
        let error = unknown_data(&[0u8; 100][..], 101).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn sentences() {
        let check = |name: &'static str, class: SignatureClass, expected: &str| {
            assert_eq!(Signature { name, class, offset: 0 }.to_string(), expected);
        };
        check("GPT", SignatureClass::PartitionTable, "GPT partition table");
        check("BSD disk label", SignatureClass::PartitionTable, "BSD disk label");
        check("Apple partition map", SignatureClass::PartitionTable, "Apple partition map");
        check("ext4", SignatureClass::FileSystem, "ext4 file system");
        check("ext journal", SignatureClass::FileSystem, "ext journal");
        check("swap", SignatureClass::Swap, "swap space");
        check("hibernation image", SignatureClass::Swap, "hibernation image");
        check("LVM2", SignatureClass::Member, "LVM2 member");
        check("VMFS member", SignatureClass::Member, "VMFS member");
        check("qcow2 disk image", SignatureClass::Member, "qcow2 disk image");
        check("LUKS2", SignatureClass::Encrypted, "LUKS2 encrypted volume");
    }
}
