//! Mixed block sizes: the shares are the requested ones, compared with Debian's fio, and a random pass covers the range
//! once.

use std::collections::BTreeMap;

use fathom_tests::{FioReport, fio, loading, need, scratch};

use crate::ours::{Ours, filename};

const KIB: u64 = 1024;
/// Requests of a comparison: the standard deviation of fio's shares is a quarter of a percent and less.
const REQUESTS: f64 = 40_000.0;

/// The share of the larger of two sizes, from the number of requests and their bytes.
fn share_of_larger(report: &FioReport, op: &str, (small, large): (u64, u64)) -> f64 {
    let [ios, bytes] = ["total_ios", "io_bytes"].map(|field| report.number(&format!("/{op}/{field}")));
    (bytes - ios * small as f64) / (ios * (large - small) as f64)
}

#[test]
fn shares_equal_those_of_debians_fio() {
    need!(tool "fio");
    let _loading = loading();
    let ours = Ours::new();
    for (split, read, write) in [
        ("4k/60:8k/40", (4, 8, 0.4), (4, 8, 0.4)),
        ("64k/10:4k/", (4, 64, 0.1), (4, 64, 0.1)),
        ("4k/90:64k/,8k/25:32k/75", (4, 64, 0.1), (8, 32, 0.75)),
    ] {
        for rw in ["randrw", "rw"] {
            let mean = |(small, large, share): (u64, u64, f64)| {
                (small as f64 * (1.0 - share) + large as f64 * share) * KIB as f64
            };
            let io_size = format!("--io_size={:.0}", REQUESTS * (mean(read) + mean(write)));
            let (rw, split) = (format!("--rw={rw}"), format!("--bssplit={split}"));
            let arguments = ["--name=mix", "--ioengine=null", "--size=1000g", &rw, &split, &io_size];
            let reports = [ours.fio(arguments), fio(arguments)];
            for (op, (small, large, expected)) in [("read", read), ("write", write)] {
                let shares =
                    reports.each_ref().map(|report| share_of_larger(report, op, (small * KIB, large * KIB)));
                // Ours hold in every hundred; fio's are drawn, and may be off by five standard deviations.
                let told = format!("{split} {rw} {op}: {shares:?}");
                assert!((shares[0] - expected).abs() < 0.003, "{told}");
                assert!((shares[1] - expected).abs() < 0.0125, "{told}");
            }
        }
    }
}

#[test]
fn a_random_pass_of_mixed_sizes_covers_the_file_once() {
    need!(tool "strace");
    let _loading = loading();
    let (ours, directory) = (Ours::new(), scratch());
    let path = directory.path().join("file");
    let size = 10 << 20;
    std::fs::write(&path, vec![0; size]).expect("the scratch directory has room");
    let options = ["-a", "1", "-s", "0", "-e", "trace=pread64", "-P", path.to_str().expect("ASCII")];
    let name = filename(&path);
    let arguments =
        ["--name=mix", "--rw=randread", "--bssplit=4k/70:16k/20:64k/10", "--ioengine=psync", &name];
    let (report, trace) = ours.fio_traced(&options, arguments);
    let mut ranges: Vec<(u64, u64)> = trace
        .lines()
        .filter_map(|line| {
            let (arguments, length) = line.rsplit_once(") = ").filter(|_| line.contains("pread64("))?;
            Some((arguments.rsplit_once(", ")?.1.parse().ok()?, length.parse().ok()?))
        })
        .collect();
    assert_eq!(ranges.len() as f64, report.number("/read/total_ios"));
    let steps = ranges.windows(2).filter(|two| two[0].0 + two[0].1 == two[1].0).count();
    assert!(steps < 40, "{steps} of {} requests follow their neighbour", ranges.len());
    let mut counts: BTreeMap<u64, f64> = BTreeMap::new();
    ranges.iter().for_each(|(_, len)| *counts.entry(*len).or_default() += 100.0 / ranges.len() as f64);
    for (size, share) in [(4 * KIB, 70.0), (16 * KIB, 20.0), (64 * KIB, 10.0)] {
        // The last deck of a hundred is not whole.
        let found = counts.get(&size).copied().unwrap_or(0.0);
        assert!((found - share).abs() < 3.0, "{found} % of requests have {size} bytes: {counts:?}");
    }
    ranges.sort_unstable();
    let end = ranges.iter().try_fold(0, |end, &(offset, len)| (offset == end).then_some(offset + len));
    let end = end.expect("neither gaps nor overlaps");
    assert!(size as u64 - end < 64 * KIB, "ends at {end}");
}
