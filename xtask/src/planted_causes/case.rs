//! The devices of the campaign: four with each cause, and five that are measured six times.

use fathom_tests::Cap;

/// Cases with a cause, and repeated measurements of devices without one.
pub const PLANTED: u64 = CAUSES * 4;
pub const REPEATED: u64 = DEVICES * 6;
const CAUSES: u64 = 10;
const DEVICES: u64 = 5;

const MIB: u64 = 1 << 20;

/// Where data is kept that is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    Tmpfs,
    /// A raw device over a file in memory, and a file system on one.
    Device,
    FileSystem,
    /// An overlay whose upper directory is on tmpfs.
    Overlay,
}

/// Why syncs reach no medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FakeFlush {
    /// The device keeps its data in memory and announces a cache.
    Memory(u64),
    /// The file system is mounted without barriers.
    NoBarriers(u64),
}

/// What is known of a device or of its surroundings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cause {
    Capped(Cap),
    /// The limit falls by this share a second.
    Decaying(f64),
    /// Another process reads this many blocks of 4 KiB a second.
    Neighbour(u64),
    /// So many busy loops share the CPU with the benchmark.
    Starved(usize),
    MemoryBacked(Memory),
    /// So many MiB that were never written.
    Unwritten(u64),
    FakeFlush(FakeFlush),
    /// The device takes requests of so many KiB at the most.
    Split(u32),
    /// Writes of this block size on physical blocks of 4 KiB.
    Misaligned(u64),
    /// Nothing is answered for so many ms.
    Stalled(u64),
    /// None: a repeat of one device.
    Repeat(Cap),
}

/// One measurement.
#[derive(Clone, Debug)]
pub struct PlantedCase {
    /// Unique; a repeat's ends with its number.
    pub name: String,
    pub cause: Cause,
}

impl PlantedCase {
    /// The `index`th: always the same.
    pub fn of(index: u64) -> PlantedCase {
        if index >= PLANTED {
            let (device, repeat) = ((index - PLANTED) % DEVICES, (index - PLANTED) / DEVICES);
            let cap = REPEATED_CAPS[device as usize];
            return PlantedCase { name: format!("repeat-{device}-{repeat}"), cause: Cause::Repeat(cap) };
        }
        let (cause, variant) = (index % CAUSES, (index / CAUSES) as usize);
        let none = Cap::default();
        let (name, cause) = match cause {
            0 => (
                "capped",
                Cause::Capped(
                    [
                        Cap { read_iops: Some(317), ..none },
                        Cap { read_iops: Some(1900), ..none },
                        Cap { read_bps: Some(7 * MIB), ..none },
                        Cap { read_bps: Some(31 * MIB), read_iops: Some(5000), ..none },
                    ][variant],
                ),
            ),
            1 => ("decaying", Cause::Decaying([0.01, 0.02, 0.04, 0.08][variant])),
            2 => ("neighbour", Cause::Neighbour([200, 400, 700, 1000][variant])),
            3 => ("starved", Cause::Starved([1, 1, 2, 3][variant])),
            4 => (
                "memory",
                Cause::MemoryBacked(
                    [Memory::Tmpfs, Memory::Device, Memory::FileSystem, Memory::Overlay][variant],
                ),
            ),
            5 => ("unwritten", Cause::Unwritten([64, 100, 256, 1000][variant])),
            6 => (
                "fake-flush",
                Cause::FakeFlush(
                    [
                        FakeFlush::Memory(64),
                        FakeFlush::Memory(128),
                        FakeFlush::NoBarriers(128),
                        FakeFlush::NoBarriers(256),
                    ][variant],
                ),
            ),
            7 => ("split", Cause::Split([32, 64, 128, 256][variant])),
            8 => ("misaligned", Cause::Misaligned([512, 1024, 1536, 2048][variant])),
            _ => ("stalled", Cause::Stalled([2600, 3000, 3500, 4000][variant])),
        };
        PlantedCase { name: format!("{name}-{variant}"), cause }
    }
}

const REPEATED_CAPS: [Cap; DEVICES as usize] = [
    Cap { read_iops: Some(240), write_iops: Some(240), read_bps: None, write_bps: None },
    Cap { read_iops: Some(1000), write_iops: Some(600), read_bps: None, write_bps: None },
    Cap { read_iops: None, write_iops: None, read_bps: Some(9 * MIB), write_bps: Some(9 * MIB) },
    Cap {
        read_iops: Some(1500),
        write_iops: Some(1500),
        read_bps: Some(25 * MIB),
        write_bps: Some(25 * MIB),
    },
    Cap {
        read_iops: Some(2200),
        write_iops: Some(1100),
        read_bps: Some(48 * MIB),
        write_bps: Some(20 * MIB),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_different_and_always_the_same() {
        let cases: Vec<PlantedCase> = (0..PLANTED + REPEATED).map(PlantedCase::of).collect();
        for (index, case) in cases.iter().enumerate() {
            assert!(cases[..index].iter().all(|other| other.name != case.name), "{}", case.name);
            assert_eq!(PlantedCase::of(index as u64).cause, case.cause);
        }
    }
}
