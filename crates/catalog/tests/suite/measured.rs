//! Entries reproduce published measurements of volumes within 5 %.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fathom_catalog::{Catalog, SimulatedTarget};
use fathom_model::Op;
use fathom_volume::{Volume, VolumeRequest};

const SECOND: u64 = 1_000_000_000;
const KIB: u64 = 1 << 10;

/// Random IOPS at queue depth `depth`, from second 1 to the end.
fn iops(target: &str, block: u64, depth: usize, seconds: u64) -> f64 {
    let target = SimulatedTarget::parse(Catalog::shipped(), target).unwrap();
    let mut volume = Volume::new(&target.model, target.seed).unwrap();
    let blocks = target.model.size_bytes / block;
    let mut ends = BinaryHeap::from(vec![Reverse(0); depth]);
    let (mut index, mut count) = (0, 0);
    while let Some(Reverse(now)) = ends.pop() {
        if now >= seconds * SECOND {
            break;
        }
        count += u64::from(now >= SECOND);
        index += 1;
        let offset = (index * 0x9e37_79b1) % blocks * block;
        let request = VolumeRequest { op: Op::Read, offset, bytes: block as u32 };
        ends.push(Reverse(volume.submit(now, &request).at_ns));
    }
    count as f64 / (seconds - 1) as f64
}

fn check(target: &str, block: u64, depth: usize, measured: f64) {
    let simulated = iops(target, block, depth, 21);
    assert!(
        (simulated / measured - 1.0).abs() < 0.05,
        "{target} {block} at {depth}: {simulated}, not {measured}"
    );
}

#[test]
fn gp2_of_50_gib() {
    for measured in [3009.0, 3016.0, 2943.0] {
        check("sim:aws-gp2-2016?size=50GiB", 4 * KIB, 64, measured);
    }
    // QD 1, as ioping: 365.9 us each.
    check("sim:aws-gp2-2016?size=50GiB", 4 * KIB, 1, 1e6 / 365.9);
}

#[test]
fn digitaloceans_volumes_of_2018() {
    let volume = "sim:do-volume-standard-2018-04";
    for (kib, expected) in [(4, 5000.0), (16, 5000.0), (32, 5000.0), (64, 3200.0), (256, 800.0)] {
        check(volume, kib * KIB, 128, expected);
    }
    // Sufficient queue depths, and QD 1.
    check(volume, 4 * KIB, 4, 5000.0);
    check(volume, 256 * KIB, 2, 800.0);
    check(volume, 4 * KIB, 1, 1782.0);
    // 22,937 MiB in 120.16 s.
    check(volume, 1024 * KIB, 32, 22_937.0 / 120.16);
}

#[test]
fn io1_of_2012() {
    for depth in [1, 32] {
        check("sim:aws-io1-2012?size=100GiB&iops=1000", 4 * KIB, depth, 1020.0);
        check("sim:aws-io1-2012?size=200GiB&iops=2000", 4 * KIB, depth, 2040.0);
    }
}

#[test]
fn tencents_ssd_volumes() {
    // 8 jobs at QD 1: 4 KiB for IOPS, 128 KiB for bandwidth.
    for (id, ios, mib) in
        [("tencent-cbs-ssd", 22_700.0, 262.0), ("tencent-cbs-enhanced-ssd", 49_800.0, 354.0)]
    {
        check(&format!("sim:{id}?size=1TiB"), 4 * KIB, 8, ios);
        check(&format!("sim:{id}?size=1TiB"), 128 * KIB, 8, mib * 8.0);
    }
}
