//! From a load that was seen to the jobs that would make it again: one per kind and order of request, each with its own
//! rate, so that the mix comes out as it was and not rounded to percents. Pure.
//!
//! Several sizes are one job where whole percents say their shares well enough, else a job each.

use std::collections::BTreeMap;

use fathom_model::Op;

use crate::monitor::MonitorInterval;
use crate::monitor::load::{LoadClass, OpLoad};

/// From this share on all requests of a kind are taken to be sequential: at depth some of a stream overtake each other.
const ALL_SEQUENTIAL: f64 = 0.8;
/// Up to this share none is: small random ranges are hit in order by chance.
const NONE_SEQUENTIAL: f64 = 0.1;
/// What makes up less than this of the requests and of the bytes is left out.
const NEGLIGIBLE: f64 = 0.003;
/// Sizes kept as they are; the others are gathered by powers of two.
const EXACT_SIZES: usize = 12;
/// This share of the requests found no more in flight when they were issued than the job will have.
const DEPTH_SHARE: f64 = 0.95;
/// How far the mean size may be off where shares are rounded to whole percents.
const SPLIT_MEAN_ERROR: f64 = 0.01;
/// More than any job needs.
const MAX_DEPTH: u64 = 1024;

/// Bytes per request, and the percentage of requests that have them.
pub type Shares = Vec<(u64, u8)>;

/// One job.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplaySection {
    /// Its name.
    pub name: String,
    /// Read, write or trim.
    pub op: Op,
    /// In random order.
    pub random: bool,
    /// Their sizes.
    pub sizes: Shares,
    /// Requests per second.
    pub iops: f64,
    /// Requests in flight at most.
    pub depth: u64,
    /// The part of the device that was used: first byte, bytes.
    pub range: Option<(u64, u64)>,
    /// A flush after this many requests.
    pub fdatasync: Option<u64>,
}

impl ReplaySection {
    /// Mean bytes per request.
    pub fn mean_bytes(&self) -> f64 {
        mean_bytes(&self.sizes)
    }
}

/// What the jobs stand for.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayJobs {
    /// The jobs, most requests first.
    pub sections: Vec<ReplaySection>,
    /// What was seen of each kind: requests per second, and their mean bytes.
    pub rates: Vec<(Op, f64, f64)>,
    /// Sizes and order were seen; else there are only means.
    pub is_exact: bool,
    /// The share of requests that are in none of the jobs, 0 to 1.
    pub left_out: f64,
}

/// The jobs of a load.
pub fn job(seen: &MonitorInterval) -> ReplayJobs {
    let is_exact = seen.load.as_ref().is_some_and(|load| !load.ops.is_empty());
    let mut sections = Vec::new();
    let mut rates = Vec::new();
    for op in Op::DATA.into_iter().filter(|&op| seen.activity.ops[op].bytes > 0) {
        let traced = seen.load.as_ref().and_then(|load| load.ops.get(&op));
        let mut of_op = match traced.filter(|traced| traced.all().bytes > 0) {
            Some(traced) => of_trace(seen, op, traced),
            None => of_means(seen, op).map_or((0.0, Vec::new()), |section| (section.iops, vec![section])),
        };
        let moved = seen.activity.ops[op].bytes as f64 * 1e9 / seen.elapsed_ns as f64;
        rates.push((op, of_op.0, moved / of_op.0));
        sections.append(&mut of_op.1);
    }
    let all: f64 = rates.iter().map(|(_, iops, _)| iops).sum();
    let bytes = |section: &ReplaySection| section.iops * section.mean_bytes();
    let all_bytes: f64 = sections.iter().map(bytes).sum();
    sections.retain(|section| section.iops >= NEGLIGIBLE * all || bytes(section) >= NEGLIGIBLE * all_bytes);
    sections.sort_by(|a, b| b.iops.total_cmp(&a.iops));
    add_flushes(seen, &mut sections);
    let kept: f64 = sections.iter().map(|section| section.iops).sum();
    let left_out = if all > 0.0 { (1.0 - kept / all).max(0.0) } else { 0.0 };
    ReplayJobs { sections, rates, is_exact, left_out }
}

/// All requests of a kind per second, and jobs by order and, where they do not fit into one, size.
fn of_trace(seen: &MonitorInterval, op: Op, traced: &OpLoad) -> (f64, Vec<ReplaySection>) {
    let share = traced.sequential_share().unwrap_or(0.0);
    let (sequential, random, all) = (&traced.sequential, &traced.random, traced.all());
    let classes: Vec<(bool, &LoadClass, &str)> = match share {
        _ if share >= ALL_SEQUENTIAL => vec![(false, &all, "")],
        _ if share <= NONE_SEQUENTIAL => vec![(true, &all, "")],
        _ => vec![(false, sequential, "-sequential"), (true, random, "-random")],
    };
    // The bytes are whole even where events were missed. The count of requests would not do: the kernel also counts a
    // flush without data as a write.
    let moved = seen.activity.ops[op].bytes as f64 * 1e9 / seen.elapsed_ns as f64;
    let rate = moved * all.requests as f64 / all.bytes as f64;
    let mut sections = Vec::new();
    for (random, class, suffix) in classes {
        let mut sizes = gathered(&class.sizes, seen.device.logical_block_bytes);
        sizes.retain(|&(size, count)| {
            let is_some = |part: u64, all: u64| part as f64 >= NEGLIGIBLE * all as f64;
            is_some(count, class.requests) || is_some(size * count, class.bytes)
        });
        let all_sizes: u64 = sizes.iter().map(|(_, count)| count).sum();
        let one_job = split(&sizes);
        let jobs: Vec<(String, Shares, u64)> = match one_job {
            Some(shares) => vec![(String::new(), shares, all_sizes)],
            None => sizes
                .iter()
                .map(|&(size, count)| (format!("-{}", short(size)), vec![(size, 100)], count))
                .collect(),
        };
        for (size, sizes, count) in jobs {
            let part = count as f64 / all.requests as f64;
            let of_class = count as f64 / class.requests as f64;
            let depth = match class.depth_at(DEPTH_SHARE) {
                Some(depth) => (depth as f64 * of_class).ceil() as u64,
                None => little(seen, op, part),
            };
            let largest = sizes.iter().map(|&(size, _)| size).max().unwrap_or(0);
            sections.push(ReplaySection {
                name: format!("{op}s{suffix}{size}"),
                op,
                random,
                sizes,
                iops: rate * part,
                depth: depth.clamp(1, MAX_DEPTH),
                range: used(class, largest),
                fdatasync: None,
            });
        }
    }
    (rate, sections)
}

/// The shares of sizes in whole percents; `None` where that would be too coarse, or where the sizes do not fit together:
/// they must be multiples of the smallest.
fn split(sizes: &[(u64, u64)]) -> Option<Shares> {
    let all: u64 = sizes.iter().map(|(_, count)| count).sum();
    let smallest = sizes.iter().map(|&(size, _)| size).min()?;
    let share = |count: u64| count as f64 * 100.0 / all as f64;
    let mut split: Shares = sizes.iter().map(|&(size, count)| (size, share(count).round() as u8)).collect();
    let given: i32 = split.iter().map(|&(_, percent)| i32::from(percent)).sum();
    // What rounding left over or took goes to the largest share, where it matters least.
    let most = split.iter_mut().max_by_key(|(_, percent)| *percent)?;
    most.1 = u8::try_from(i32::from(most.1) + 100 - given).ok()?;
    let fits = split.iter().all(|&(size, percent)| size.is_multiple_of(smallest) && percent > 0);
    let mean = sizes.iter().map(|&(size, count)| size as f64 * share(count) / 100.0).sum::<f64>();
    (fits && (mean_bytes(&split) / mean - 1.0).abs() <= SPLIT_MEAN_ERROR).then_some(split)
}

/// One job with the rate and the mean size of the requests, in random order, since neither sizes nor order are known.
fn of_means(seen: &MonitorInterval, op: Op) -> Option<ReplaySection> {
    let done = &seen.activity.ops[op];
    // Most flushes have no data of their own and were counted as a write of nothing, too.
    let empty = if op == Op::Write { seen.activity.flush.ios } else { 0 };
    let with_data = done.ios.checked_sub(empty).filter(|&ios| ios > 0).unwrap_or(done.ios);
    (done.bytes > 0 && with_data > 0).then(|| ReplaySection {
        name: format!("{op}s"),
        op,
        random: true,
        sizes: sizes_of_mean(done.bytes as f64 / with_data as f64, seen.device.logical_block_bytes),
        iops: with_data as f64 * 1e9 / seen.elapsed_ns as f64,
        depth: little(seen, op, 1.0),
        range: None,
        fdatasync: None,
    })
}

/// One size, or two of which one is a multiple of the other, whose mean is `mean` bytes: of those that are off by the same
/// number of tenths of a percent, the two that are closest. Requests of a page and more begin and end with one.
fn sizes_of_mean(mean: f64, logical_block_bytes: u64) -> Shares {
    const PAGE: u64 = 4096;
    let unit = logical_block_bytes.max(512);
    let grain = if mean >= PAGE as f64 { unit.max(PAGE) } else { unit };
    let single = ((mean / grain as f64).round() as u64).max(1) * grain;
    let smaller = std::iter::successors(Some(grain), |size| Some(size * 2));
    let splits = smaller.take_while(|&size| size as f64 <= mean).filter_map(|small| {
        let large = (mean / small as f64).ceil() as u64 * small;
        let percent = ((mean - small as f64) * 100.0 / (large - small).max(1) as f64).round() as u8;
        (large > small && (1..100).contains(&percent)).then(|| vec![(small, 100 - percent), (large, percent)])
    });
    let off = |shares: &Shares| (mean_bytes(shares) / mean - 1.0).abs();
    let spread = |shares: &Shares| shares.iter().map(|(size, _)| size).max().unwrap_or(&0) - shares[0].0;
    std::iter::once(vec![(single, 100)])
        .chain(splits)
        .min_by_key(|shares| ((off(shares) * 1e3) as u64, spread(shares)))
        .unwrap_or_default()
}

/// Mean bytes per request.
fn mean_bytes(shares: &[(u64, u8)]) -> f64 {
    shares.iter().map(|&(size, percent)| size as f64 * f64::from(percent) / 100.0).sum()
}

/// The depth that a share of the requests of `op` had on average, rounded up: rate times wait.
fn little(seen: &MonitorInterval, op: Op, share: f64) -> u64 {
    let done = &seen.activity.ops[op];
    let depth = done.ticks_ms as f64 * 1e6 / seen.elapsed_ns as f64 * share;
    (depth.ceil() as u64).clamp(1, MAX_DEPTH)
}

/// The part of the device that a class used; at least one request of `block` bytes.
fn used(class: &LoadClass, block: u64) -> Option<(u64, u64)> {
    const UNIT: u64 = 4096;
    let (low, high) = class.range?;
    let start = low / UNIT * UNIT;
    Some((start, (high.next_multiple_of(UNIT) - start).max(block)))
}

/// Sizes with their counts: the most frequent as they are, the others by powers of two at their mean.
fn gathered(sizes: &BTreeMap<u64, u64>, unit: u64) -> Vec<(u64, u64)> {
    let mut by_count: Vec<(u64, u64)> =
        sizes.iter().filter(|(size, _)| **size > 0).map(|(&size, &count)| (size, count)).collect();
    by_count.sort_by_key(|&(size, count)| (std::cmp::Reverse(count), size));
    let rest = by_count.split_off(by_count.len().min(EXACT_SIZES));
    let mut gathered: BTreeMap<u64, u64> = by_count.into_iter().collect();
    let mut octaves: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for (size, count) in rest {
        let octave = octaves.entry(size.ilog2()).or_default();
        *octave = (octave.0 + size * count, octave.1 + count);
    }
    let unit = unit.max(512);
    for (bytes, count) in octaves.into_values() {
        let mean = (bytes as f64 / count as f64 / unit as f64).round().max(1.0) as u64 * unit;
        *gathered.entry(mean).or_default() += count;
    }
    gathered.into_iter().collect()
}

/// Gives the busiest writing job the flushes that were seen.
fn add_flushes(seen: &MonitorInterval, sections: &mut [ReplaySection]) {
    let flushes = seen.activity.flush.ios as f64 * 1e9 / seen.elapsed_ns.max(1) as f64;
    if flushes > 0.0
        && let Some(writer) = sections.iter_mut().find(|section| section.op == Op::Write)
    {
        writer.fdatasync = Some((writer.iops / flushes).round().max(1.0) as u64);
    }
}

/// `64k`, `512`: a size as options write it.
pub fn short(bytes: u64) -> String {
    for (unit, letter) in [(1 << 20, 'm'), (1 << 10, 'k')] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{}{letter}", bytes / unit);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::load::LoadWatch;

    /// Ten seconds of these requests, one after the other.
    fn seen(requests: impl IntoIterator<Item = (Op, u64, u64)>) -> MonitorInterval {
        let mut interval = MonitorInterval { elapsed_ns: 10_000_000_000, ..MonitorInterval::default() };
        let mut watch = LoadWatch::default();
        for (turn, (op, at, bytes)) in requests.into_iter().enumerate() {
            watch.issued(op, at, bytes, turn as u64);
            watch.completed(op, at, turn as u64);
            if op.is_sync() {
                interval.activity.flush.ios += 1;
                interval.activity.ops.write.ios += 1;
                continue;
            }
            let done = &mut interval.activity.ops[op];
            done.ios += 1;
            done.bytes += bytes;
            done.ticks_ms += 20;
        }
        interval.load = Some(watch.take());
        interval
    }

    fn scattered(n: u64) -> u64 {
        n * 514_229 % 262_144 * 65_536
    }

    #[test]
    fn one_kind_of_request_is_one_job() {
        let job = job(&seen((0..4000).map(|n| (Op::Read, scattered(n), 4096))));
        assert!(job.is_exact && job.left_out < 1e-9);
        let [section] = job.sections.as_slice() else { panic!("{job:#?}") };
        assert_eq!((section.name.as_str(), section.op, section.random), ("reads", Op::Read, true));
        assert_eq!((section.sizes.as_slice(), section.iops, section.depth), (&[(4096, 100)][..], 400.0, 1));
        let highest = (0..4000).map(scattered).max().unwrap();
        assert_eq!(section.range, Some((0, highest + 4096)));
    }

    #[test]
    fn kinds_orders_and_sizes_get_rates_of_their_own() {
        let requests = (0..10_000).map(|n| match n % 10 {
            0..6 => (Op::Read, scattered(n), 4096),
            6..8 => (Op::Read, scattered(n), 65_536),
            8 => (Op::Write, 1 << 40 | (n / 10 * 131_072), 131_072),
            _ => (Op::Sync, 0, 0),
        });
        let job = job(&seen(requests));
        let got: Vec<_> = job
            .sections
            .iter()
            .map(|s| (s.name.as_str(), s.random, s.sizes.clone(), s.iops, s.fdatasync))
            .collect();
        assert_eq!(
            got,
            [
                ("reads", true, vec![(4096, 75), (65_536, 25)], 800.0, None),
                ("writes", false, vec![(131_072, 100)], 100.0, Some(1)),
            ]
        );
        let rates: Vec<(Op, f64)> = job.rates.iter().map(|&(op, iops, _)| (op, iops)).collect();
        assert_eq!(rates, [(Op::Read, 800.0), (Op::Write, 100.0)]);
        assert_eq!(job.sections[1].range, Some((1 << 40, 1000 * 131_072)));
    }

    #[test]
    fn a_stream_among_scattered_requests_of_its_kind_is_a_job_of_its_own() {
        let requests = (0..4000).map(|n| match n % 4 {
            0 => (Op::Read, 1 << 40 | (n / 4 * 65_536), 65_536),
            _ => (Op::Read, scattered(n), 4096),
        });
        let job = job(&seen(requests));
        let names: Vec<&str> = job.sections.iter().map(|section| section.name.as_str()).collect();
        assert!(
            names.contains(&"reads-sequential") && names.iter().any(|name| name.starts_with("reads-random"))
        );
        let total: f64 = job.sections.iter().map(|section| section.iops).sum();
        assert!((total / 400.0 + job.left_out - 1.0).abs() < 1e-9);
    }

    #[test]
    fn without_a_trace_rates_are_exact_and_sizes_keep_their_mean() {
        let check = |sizes: &[u64], logical: u64, expected: &[(u64, u8)]| {
            let each = |n: u64| (Op::Write, scattered(n), sizes[n as usize % sizes.len()]);
            let mut seen = seen((0..1000).map(each));
            (seen.load, seen.device.logical_block_bytes) = (None, logical);
            let job = job(&seen);
            let [section] = job.sections.as_slice() else { panic!("{job:#?}") };
            assert_eq!((section.sizes.as_slice(), section.iops), (expected, 100.0), "{sizes:?}");
            let mean = sizes.iter().sum::<u64>() as f64 / sizes.len() as f64;
            assert!((section.mean_bytes() / mean - 1.0).abs() < 0.005, "{sizes:?}: {}", section.mean_bytes());
            let (_, iops, told_mean) = job.rates[0];
            assert!((iops - 100.0).abs() < 1e-9 && (told_mean / mean - 1.0).abs() < 1e-9, "{:?}", job.rates);
            assert!(section.random && !job.is_exact);
            // 100 requests a second of 20 ms each are two in flight.
            assert_eq!((section.depth, section.range), (2, None));
        };
        check(&[4096, 12_288], 512, &[(8192, 100)]);
        check(&[4096, 4096, 4096, 4096, 16_384], 4096, &[(4096, 40), (8192, 60)]);
        check(&[4096, 4096, 4096, 4096, 16_384], 512, &[(4096, 40), (8192, 60)]);
        check(&[512, 512, 512, 1024], 512, &[(512, 75), (1024, 25)]);
        check(&[4096, 4096, 4096, 8192], 512, &[(4096, 75), (8192, 25)]);
        // A large mean is near enough to whole pages.
        check(&[1 << 20, (1 << 20) + 1024], 512, &[(1 << 20, 100)]);
    }

    #[test]
    fn more_flushes_than_writes_leave_every_write_its_data() {
        let mut seen = seen((0..100).map(|n| (Op::Write, scattered(n), 4096)));
        (seen.load, seen.activity.flush.ios) = (None, 100);
        let job = job(&seen);
        assert_eq!((job.sections[0].sizes.as_slice(), job.sections[0].iops), (&[(4096, 100)][..], 10.0));
    }

    #[test]
    fn rare_requests_are_left_out_and_counted() {
        let requests =
            (0..1000).map(|n| if n == 500 { (Op::Write, 0, 512) } else { (Op::Read, scattered(n), 4096) });
        let job = job(&seen(requests));
        assert_eq!(job.sections.len(), 1);
        assert!((job.left_out - 0.001).abs() < 1e-9);
        assert!(super::job(&seen([])).sections.is_empty());
    }

    #[test]
    fn many_sizes_keep_their_mean() {
        let sizes: BTreeMap<u64, u64> = (1..=256).map(|pages| (pages * 4096, 300 - pages)).collect();
        let gathered = gathered(&sizes, 512);
        assert!(gathered.len() <= EXACT_SIZES + 10, "{gathered:?}");
        let mean = |list: &mut dyn Iterator<Item = (u64, u64)>| {
            let (bytes, count) =
                list.fold((0, 0), |sum, (size, count)| (sum.0 + size * count, sum.1 + count));
            bytes as f64 / count as f64
        };
        let (before, after) =
            (mean(&mut sizes.iter().map(|(&a, &b)| (a, b))), mean(&mut gathered.iter().copied()));
        assert!((after / before - 1.0).abs() < 0.005, "{before} {after}");
    }

    #[test]
    fn shares_are_percents_where_that_is_near_enough() {
        let check = |sizes: &[(u64, u64)], expected: Option<&[(u64, u8)]>| {
            assert_eq!(split(sizes).as_deref(), expected, "{sizes:?}");
        };
        check(&[(4096, 5)], Some(&[(4096, 100)]));
        check(&[(4096, 698), (16_384, 302)], Some(&[(4096, 70), (16_384, 30)]));
        check(&[(4096, 1), (8192, 1), (16_384, 1)], Some(&[(4096, 33), (8192, 33), (16_384, 34)]));
        check(&[(4096, 986), (8192, 14)], Some(&[(4096, 99), (8192, 1)]));
        // Less than half a percent; 27k is no multiple of 4k; a megabyte now and then is most of the bytes.
        check(&[(4096, 996), (8192, 4)], None);
        check(&[(4096, 50), (27_648, 50)], None);
        check(&[(4096, 9_795), (1 << 20, 205)], None);
        check(&[], None);
    }

    #[test]
    fn sizes_that_do_not_fit_together_get_a_job_each() {
        let job = job(&seen((0..1000).map(|n| (Op::Read, scattered(n), 4096 + n % 5 / 4 * 512))));
        let got: Vec<_> = job.sections.iter().map(|s| (s.name.as_str(), s.iops)).collect();
        assert_eq!(got, [("reads-4k", 80.0), ("reads-4608", 20.0)]);
    }

    #[test]
    fn sizes_are_short_where_that_is_exact() {
        assert_eq!([512, 4096, 6656, 1 << 20, 3 << 19].map(short), ["512", "4k", "6656", "1m", "1536k"]);
    }
}
