//! Data sheets agree with the providers' published figures.

use fathom_catalog::{Catalog, LimitDirection, Parameters, Rule, Sheet, SheetLimit};
use fathom_model::LimitUnit;

const GIB: u64 = 1 << 30;
const MIB: f64 = 1_048_576.0;

fn sheet(id: &str, gib: u64) -> Sheet {
    let parameters = Parameters { size_bytes: Some(gib * GIB), ..Parameters::default() };
    Catalog::shipped().get(id).unwrap().sheet(&parameters).unwrap()
}

/// Baseline, burst, and seconds to empty and to refill, of I/Os.
fn ios(sheet: &Sheet) -> (u64, Option<u64>, Option<u64>, Option<u64>) {
    let level = sheet.limits.iter().find(|level| level.unit == LimitUnit::Ios).unwrap();
    let seconds = |ns: Option<u64>| ns.map(|ns| (ns + 500_000_000) / 1_000_000_000);
    (level.baseline_rate, level.burst_rate, seconds(level.empty_ns), seconds(level.refill_ns))
}

#[test]
fn gp2_of_2016_at_the_sizes_where_its_rules_change() {
    // 3 a GiB, at least 100 and at most 10,000; below 1,000 GiB bursts to 3,000 from 5,400,000 credits, which last
    // 5,400,000 / (3,000 - base) seconds and come back in 5,400,000 / base; 128 MiB/s to 170 GiB, 160 above.
    for (gib, base, burst, empty, refill, mib) in [
        (10, 100, Some(3000), Some(1862), Some(54_000), 128.0),
        (33, 100, Some(3000), Some(1862), Some(54_000), 128.0),
        (34, 102, Some(3000), Some(1863), Some(52_941), 128.0),
        (50, 150, Some(3000), Some(1895), Some(36_000), 128.0),
        (1000, 3000, None, None, None, 160.0),
        (3334, 10_000, None, None, None, 160.0),
        (16_384, 10_000, None, None, None, 160.0),
    ] {
        let sheet = sheet("aws-gp2-2016", gib);
        assert_eq!(ios(&sheet), (base, burst, empty, refill), "{gib} GiB");
        let bytes = sheet.limits.iter().find(|level| level.unit == LimitUnit::Bytes).unwrap();
        assert_eq!((bytes.baseline_rate as f64 / MIB, bytes.burst_rate), (mib, None), "{gib} GiB");
        assert_eq!((sheet.io_unit_bytes, sheet.merges_sequential), (Some(256 << 10), true));
    }
}

#[test]
fn blocks_of_gp2_of_2016() {
    let sheet = sheet("aws-gp2-2016", 50);
    // Random: IOPS sustained and in a burst, and seconds of the burst. From 64 KiB on, 128 MiB/s are fewer than 3,000;
    // a request of 512 KiB counts twice, so that 256 per second spend 512 credits.
    for (kib, sustained, burst, lasts) in [
        (4, 150.0, 3000.0, 5.4e6 / 2850.0),
        (32, 150.0, 3000.0, 5.4e6 / 2850.0),
        (64, 150.0, 2048.0, 5.4e6 / 1898.0),
        (256, 150.0, 512.0, 5.4e6 / 362.0),
        (512, 75.0, 256.0, 5.4e6 / 362.0),
        (1024, 37.5, 128.0, 5.4e6 / 362.0),
    ] {
        let row = sheet.blocks.iter().find(|row| row.block_size_bytes == kib << 10).unwrap();
        let found = row.random.burst.unwrap();
        assert_eq!((row.random.iops, found.iops), (Some(sustained), burst), "{kib}k");
        let seconds = found.lasts_ns.unwrap() as f64 / 1e9;
        assert!(
            (seconds - lasts).abs() < 1e-6 && row.direction == LimitDirection::Total,
            "{kib}k: {seconds}"
        );
        // Sequential ones are merged: 128 MiB/s at any size, 150 units of 256 KiB sustained.
        let bytes = row.sequential.burst.unwrap().iops * (kib << 10) as f64;
        let sustained = row.sequential.iops.unwrap() * (kib << 10) as f64;
        assert!((bytes - 128.0 * MIB).abs() < 1.0 && (sustained - 37.5 * MIB).abs() < 1.0, "{kib}k");
    }
    // 3,000 at 0.366 ms each are 1.1 in flight.
    assert_eq!(sheet.blocks[0].iodepth, Some(2));
    assert!(!sheet.is_latency_assumed);
}

#[test]
fn separate_directions_have_separate_rows() {
    let sheet = sheet("gcp-pd-standard", 1000);
    let level = |direction| {
        let of = |level: &&SheetLimit| (level.direction, level.unit) == (direction, LimitUnit::Ios);
        sheet.limits.iter().find(of).map(|level| (level.baseline_rate, level.rule))
    };
    assert_eq!(level(LimitDirection::Total), None);
    assert_eq!(level(LimitDirection::Read), Some((750, Rule::None)));
    assert_eq!(level(LimitDirection::Write), Some((1500, Rule::None)));
    assert_eq!(sheet.blocks.len(), 18);
    assert!(sheet.is_latency_assumed);
    let bill = sheet.month.unwrap();
    assert!((bill.total - 40.0).abs() < 1e-6 && bill.is_whole());
}

#[test]
fn required_choices_default_to_the_maximum_and_are_noted() {
    // 50 a GiB.
    let sheet = sheet("aws-io1", 100);
    assert_eq!(ios(&sheet).0, 5000);
    assert_eq!(sheet.parameters.iops, Some(5000));
    assert!(sheet.assumptions[0].contains("5000"), "{:?}", sheet.assumptions);
}

#[test]
fn sizes_include_the_points_where_rules_change() {
    let sizes = |id: &str| Catalog::shipped().get(id).unwrap().sizes_gib();
    // 100 and 10,000 IOPS are reached at 33.3 and 3,333.3 GiB, the burst ends at 1,000, more bandwidth begins above 170.
    let gp2 = sizes("aws-gp2-2016");
    for size in [1, 33, 34, 171, 1000, 3334, 16_384] {
        assert!(gp2.contains(&size), "{size} is not in {gp2:?}");
    }
    assert_eq!(gp2.last(), Some(&16_384));
    assert_eq!(sizes("azure-premium-ssd").len(), 14);
    assert_eq!(sizes("aws-st1")[0], 125);
    for entry in Catalog::shipped().entries().filter(|entry| entry.unmodelled().is_none()) {
        for gib in entry.sizes_gib() {
            let parameters = Parameters { size_bytes: Some(gib * GIB), ..Parameters::default() };
            let sheet = entry.sheet(&parameters).unwrap();
            assert!(!sheet.limits.is_empty() && !sheet.blocks.is_empty(), "{} {gib}", entry.id());
        }
    }
}

#[test]
fn rules_are_explained_in_sentences() {
    let check = |id: &str, gib: u64, expected: &[&str]| {
        let entry = Catalog::shipped().get(id).unwrap();
        let parameters = Parameters { size_bytes: Some(gib * GIB), ..Parameters::default() };
        let text = entry.explanation(&entry.sheet(&parameters).unwrap());
        for sentence in expected {
            assert!(text.iter().any(|one| one == sentence), "{id} lacks {sentence}: {text:#?}");
        }
    };
    check(
        "aws-gp2",
        50,
        &[
            "IOPS follow from the size: 3 per GiB, at least 100, at most 16,000.",
            "The IOPS limit applies to every block size: 150 I/Os of 256 KiB are 37.5 MiB/s, below the bandwidth limit of \
             128 MiB/s.",
            "Burst credits: the bucket holds 5,400,000; every second adds 150, which is the baseline, and each I/O spends one. \
             While credits remain, the limit is 3,000 IOPS, afterwards 150 IOPS. A full bucket lasts 31 min 35 s at this rate \
             and refills in 10 h when idle.",
            "An I/O of up to 256 KiB counts as one, a larger one as several. Adjacent sequential I/Os count together: 64 of \
             4 KiB are one, unless the client waits for a sync between them.",
            "50.0 GiB cost 5.00 USD per month (5.00 for size).",
        ],
    );
    check(
        "do-volume-standard",
        100,
        &[
            "Every size has 5,000 IOPS.",
            "Both limits apply at once: small I/Os reach the IOPS limit of 5,000, I/Os larger than 39.1 KiB the bandwidth limit \
             of 191 MiB/s.",
            "Burst window: 7,500 IOPS for 1 min, then 5,000 IOPS for a pause before the next burst.",
        ],
    );
    check("azure-premium-ssd", 100, &["100 GiB cost 19.71 USD per month (19.71 for tier P10)."]);
    check("qingcloud-capacity", 100, &["It reached 9,107 IOPS.", "It serves 8 I/Os at once; others queue."]);
    for entry in Catalog::shipped().entries().filter(|entry| entry.unmodelled().is_none()) {
        let text = entry.explanation(&entry.sheet(&Parameters::default()).unwrap());
        assert!(text.len() > 2 && text.iter().all(|one| one.ends_with('.')), "{}: {text:#?}", entry.id());
    }
}
