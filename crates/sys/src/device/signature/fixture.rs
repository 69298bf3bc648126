//! Images made by hand, for the tests of the probes.

use super::probe;

/// A mebibyte.
pub(super) const MIB: usize = 1 << 20;
/// The end of a boot sector.
pub(super) const BOOT: (usize, &[u8]) = (510, &[0x55, 0xaa]);

/// Zeros with some bytes set.
pub(super) fn image(size: usize, patches: &[(usize, &[u8])]) -> Vec<u8> {
    let mut image = vec![0; size];
    for (offset, bytes) in patches {
        image[*offset..offset + bytes.len()].copy_from_slice(bytes);
    }
    image
}

/// The signatures found on an image.
pub(super) fn names(image: &[u8]) -> Vec<&'static str> {
    probe(image, image.len() as u64).unwrap().iter().map(|signature| signature.name).collect()
}

/// That on 4 MiB with some bytes set exactly these are recognised.
#[track_caller]
pub(super) fn check(patches: &[(usize, &[u8])], expected: &[&str]) {
    assert_eq!(names(&image(4 * MIB, patches)), expected);
}
