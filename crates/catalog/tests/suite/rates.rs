//! The rates that volumes of the catalogue reach, beside figures that are worked out by hand.

use fathom_catalog::{Catalog, Parameters};
use fathom_predict::{BurstReach, OfferedLoad, exhausted_rates, reach};
use fathom_volume::VolumeModel;

const KIB: f64 = 1024.0;

fn model(id: &str, gib: u64) -> VolumeModel {
    let parameters = Parameters { size_bytes: Some(gib << 30), ..Parameters::default() };
    Catalog::shipped().get(id).unwrap().resolve(&parameters).unwrap().model
}

/// Checks the sustained rate, the burst rate, and the seconds of the burst.
fn check(id: &str, gib: u64, load: OfferedLoad, sustained: f64, burst: Option<(f64, f64)>) {
    let found = reach(&model(id, gib), &load);
    let near = |one: f64, other: f64| (one - other).abs() <= other * 1e-5;
    assert!(near(found.iops.unwrap(), sustained), "{id} {gib} {load:?}: {found:?}");
    let seconds = |burst: BurstReach| burst.lasts_ns.map_or(0.0, |ns| ns as f64 / 1e9);
    match (found.burst, burst) {
        (None, None) => {}
        (Some(found), Some((rate, lasts))) => {
            assert!(near(found.iops, rate) && near(seconds(found), lasts), "{id} {gib} {load:?}: {found:?}");
        }
        _ => panic!("{id} {gib} {load:?}: {found:?}"),
    }
}

#[test]
fn rates_follow_from_limits_and_block_sizes() {
    let random = |kib: f64| OfferedLoad::of(kib * KIB, false);
    let sequential = |kib: f64| OfferedLoad::of(kib * KIB, true);
    // 50 GiB of gp2: 150 sustained, 3,000 for 5,400,000 / 2,850 s.
    check("aws-gp2-2016", 50, random(4.0), 150.0, Some((3000.0, 5_400_000.0 / 2850.0)));
    // 128 MiB/s are 2,048 of 64 KiB, which spend 1,898 credits per second.
    check("aws-gp2-2016", 50, random(64.0), 150.0, Some((2048.0, 5_400_000.0 / 1898.0)));
    // Merged into units of 256 KiB: 150 of those sustained are 9,600 of 4 KiB, and 128 MiB/s are 32,768.
    check("aws-gp2-2016", 50, sequential(4.0), 9600.0, Some((32_768.0, 5_400_000.0 / (512.0 - 150.0))));
    // 1 MiB at random is four units: 37.5 sustained, 128 by bandwidth, which are 512 units.
    check("aws-gp2-2016", 50, random(1024.0), 37.5, Some((128.0, 5_400_000.0 / (512.0 - 150.0))));
    check("aws-gp2-2016", 1000, random(4.0), 3000.0, None);
    check("aws-gp2-2016", 16_384, random(4.0), 10_000.0, None);
    // A whole MiB for each random request: 40 MiB/s sustained, 250 with burst credits: 1 TiB at 210 MiB/s.
    check("aws-st1", 1024, random(4.0), 40.0, Some((250.0, 1_048_576.0 / 210.0)));
    check("aws-st1", 1024, sequential(1024.0), 40.0, Some((250.0, 1_048_576.0 / 210.0)));
    check("do-volume-standard", 100, random(4.0), 5000.0, Some((7500.0, 60.0)));
    check("do-volume-standard-2018-04", 100, random(64.0), 200e6 / 65_536.0, None);
    // Separate directions: any mix reaches at least the slower one.
    check("gcp-pd-standard", 1000, random(4.0), 750.0, None);
    // One access of 8 ms at a time; eight of 2.36 ms.
    check("aws-ebs-standard-2012", 100, random(4.0), 125.0, None);
    let writes = OfferedLoad { read_fraction: Some(0.0), ..random(4.0) };
    check("qingcloud-capacity", 100, writes, 8.0 / 2.36e-3, None);
    check("gcp-pd-standard", 1000, OfferedLoad { read_fraction: Some(0.0), ..random(4.0) }, 1500.0, None);
    check("gcp-pd-standard", 1000, OfferedLoad { read_fraction: Some(0.25), ..random(4.0) }, 2000.0, None);
}

#[test]
fn each_limit_with_credits_leaves_a_rate_of_its_own() {
    let reads = |kib: f64| OfferedLoad { read_fraction: Some(1.0), ..OfferedLoad::of(kib * KIB, false) };
    let check = |id: &str, gib: u64, kib: f64, expected: &[f64]| {
        assert_eq!(exhausted_rates(&model(id, gib), &reads(kib)), expected, "{id}");
    };
    check("aws-gp2", 50, 4.0, &[150.0]);
    check("aws-gp3", 50, 4.0, &[]);
    // P4: 120 IOPS, and 25 MB/s.
    check("azure-premium-ssd", 32, 62.5, &[120.0, 25e6 / 64_000.0]);
}

#[test]
fn whole_units_count_each_direction_has_its_slope_and_iops_are_bought_within_bounds() {
    let of = |read_fraction: f64, kib: f64| OfferedLoad {
        read_fraction: Some(read_fraction),
        ..OfferedLoad::of(kib * KIB, false)
    };
    // Units of 93 GiB with 28,000 reads, 5,600 writes, 110 and 82 MiB/s each: 200 GiB are two.
    check("yandex-network-ssd-nonreplicated", 200, of(1.0, 4.0), 56_000.0, None);
    check("yandex-network-ssd-nonreplicated", 200, of(0.0, 4.0), 11_200.0, None);
    check("yandex-network-ssd-nonreplicated", 93, of(1.0, 1024.0), 110.0, None);
    check("yandex-network-ssd-nonreplicated", 93, of(0.0, 1024.0), 82.0, None);
    check("yandex-network-ssd", 40, of(1.0, 4.0), 1000.0, None);

    let bought = |id: &str, gib: u64, iops: u64| {
        let parameters =
            Parameters { size_bytes: Some(gib << 30), iops: Some(iops), ..Parameters::default() };
        let resolved = Catalog::shipped().get(id).unwrap().resolve(&parameters);
        resolved.map(|found| {
            let rate = |kib: f64| reach(&found.model, &of(1.0, kib)).iops.unwrap().round();
            (rate(4.0), rate(1024.0))
        })
    };
    // 6,800 by the size and 13,200 more, each with 16 kB/s: 170 + 211.2 MB/s.
    assert_eq!(bought("alibaba-essd-autopl", 100, 20_000), Ok((20_000.0, 364.0)));
    assert_eq!(bought("alibaba-essd-autopl", 100, 56_800).map(|found| found.0), Ok(56_800.0));
    assert!(
        bought("alibaba-essd-autopl", 100, 56_801).unwrap_err().reason.contains("between 6800 and 56800")
    );
    assert!(bought("alibaba-essd-autopl", 3, 4_000).is_err(), "sold from 4 GiB on");
    // Ranges by size.
    assert_eq!(bought("ibm-vpc-custom", 99, 4_000).map(|found| found.0), Ok(4_000.0));
    assert!(bought("ibm-vpc-custom", 99, 4_001).unwrap_err().reason.contains("between 100 and 4000"));
    assert!(bought("ibm-vpc-custom", 12_000, 999).unwrap_err().reason.contains("between 1000 and 48000"));
    assert!(bought("gcp-hyperdisk-extreme", 1_000, 1_999).unwrap_err().reason.contains("between 2000"));
}
