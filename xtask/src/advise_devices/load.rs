//! The loads: an iolog with times for those that come by themselves, clients of `fathom fio` for those that wait.

use std::fmt::Write as _;

use fathom_tests::RepeatableNoise;

use super::case::{AdviseCase, CLOSED_REQUESTS, LENGTH_S, LoadShape};

/// Size of a request, and of the volumes.
pub const BLOCK: u64 = 8192;
pub const SIZE: u64 = 1 << 30;
/// Of requests, so many are reads.
const READS: f64 = 0.7;
/// Most requests of a burst: the loop device that is recorded holds 128.
const MOST_AT_ONCE: f64 = 100.0;
/// An open load begins after this time: what the program itself reads of a device to be written, which is recorded too, is complete
/// by then on the slowest volume.
pub const LEAD_S: f64 = 3.0;
/// Pareto's exponent, and the smallest burst.
const TAIL: f64 = 1.4;
const LEAST: f64 = 2.6;
/// Requests that a replay may have outstanding: more than any queue here.
const DEPTH: &str = "--iodepth=32768";

/// When requests arrive, µs.
fn arrivals(shape: LoadShape, seed: u64) -> Vec<u64> {
    let mut noise = RepeatableNoise::seeded(seed);
    let (mut at_s, mut all) = (0.0, Vec::new());
    let mean_burst = mean_burst();
    while at_s < LENGTH_S {
        all.push((at_s * 1e6) as u64);
        if let LoadShape::Bursty(_) = shape {
            let size = burst(noise.even());
            all.extend(std::iter::repeat_n((at_s * 1e6) as u64, size as usize - 1));
        }
        let rate = match shape {
            LoadShape::Diurnal(rate) => rate * (1.0 + 0.8 * (at_s / LENGTH_S * std::f64::consts::TAU).sin()),
            // The mean is 0.28 of the batch's rate.
            LoadShape::Batch(rate) if at_s % (LENGTH_S / 3.0) < LENGTH_S / 15.0 => rate / 0.28,
            LoadShape::Batch(rate) => rate / 2.8,
            LoadShape::Bursty(rate) => rate / mean_burst,
            LoadShape::Constant(rate) => rate,
            LoadShape::Database(_) => return Vec::new(),
        };
        at_s += match shape {
            LoadShape::Constant(_) => 1.0 / rate,
            _ => -(1.0 - noise.even()).ln() / rate,
        };
    }
    all
}

/// The size of a burst, for a number from 0 to 1.
fn burst(even: f64) -> f64 {
    (LEAST * (1.0 - even).powf(-1.0 / TAIL)).min(MOST_AT_ONCE).floor()
}

fn mean_burst() -> f64 {
    const PARTS: u32 = 100_000;
    (0..PARTS).map(|part| burst((f64::from(part) + 0.5) / f64::from(PARTS))).sum::<f64>() / f64::from(PARTS)
}

/// The requests of an open load on `target`, as an iolog.
pub fn iolog(case: &AdviseCase, target: &str) -> String {
    let mut noise = RepeatableNoise::seeded(case.seed ^ 0x5eed);
    let mut text = format!("fio version 3 iolog\n0 {target} add\n0 {target} open\n");
    let mut last = 0;
    let lead_us = (LEAD_S * 1e6) as u64;
    for at_us in arrivals(case.shape, case.seed).into_iter().map(|at_us| lead_us + at_us) {
        let offset = (noise.even() * (SIZE / BLOCK) as f64) as u64 * BLOCK;
        let operation = if noise.even() < READS { "read" } else { "write" };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{at_us} {target} {operation} {offset} {BLOCK}");
        last = at_us;
    }
    text + &format!("{last} {target} close\n")
}

/// The words after `fathom fio` of a load on `target`; `log` is its iolog, and names of the latency logs begin with `latencies`.
pub fn arguments(case: &AdviseCase, target: &str, log: &str, latencies: &str) -> Vec<String> {
    let mut words: Vec<String> =
        ["--name=load", "--direct=1", "--output-format=json", "--eta=never"].map(str::to_owned).to_vec();
    words.push(format!("--write_lat_log={latencies}"));
    match case.shape {
        LoadShape::Database(clients) => {
            words.extend(
                ["--rw=randrw", "--rwmixread=70", "--norandommap", "--ioengine=psync", "--group_reporting"]
                    .map(str::to_owned),
            );
            words.push(format!("--numjobs={clients}"));
            words.push(format!("--number_ios={}", CLOSED_REQUESTS / u64::from(clients)));
            words.extend([format!("--bs={BLOCK}"), format!("--size={SIZE}"), format!("--filename={target}")]);
        }
        _ => {
            words.extend(["--ioengine=libaio", DEPTH].map(str::to_owned));
            words.push(format!("--read_iolog={log}"));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_have_their_mean_rate_and_their_shape() {
        for index in 0..4 {
            let case = AdviseCase::of(index);
            let (LoadShape::Constant(rate)
            | LoadShape::Diurnal(rate)
            | LoadShape::Batch(rate)
            | LoadShape::Bursty(rate)) = case.shape
            else {
                continue;
            };
            let all = arrivals(case.shape, case.seed);
            let found = all.len() as f64 / LENGTH_S;
            assert!((found / rate - 1.0).abs() < 0.1, "{}: {found}, not {rate}", case.name);
            assert!(all.is_sorted());
            // The busiest second over the mean.
            let mut seconds = vec![0; LENGTH_S as usize];
            all.iter().for_each(|at_us| seconds[(at_us / 1_000_000) as usize] += 1);
            let peak = f64::from(*seconds.iter().max().unwrap()) / rate;
            let expected = [0.9..1.1, 1.6..2.3, 3.0..4.2, 1.4..6.0][index as usize].clone();
            assert!(expected.contains(&peak), "{}: {peak}", case.name);
        }
    }

    #[test]
    fn an_iolog_has_every_request() {
        let case = AdviseCase::of(3);
        let text = iolog(&case, "/dev/loop9");
        let requests = text.lines().filter(|line| line.ends_with(" 8192")).count();
        assert_eq!(requests, arrivals(case.shape, case.seed).len());
        assert!(text.ends_with("close\n"));
        assert!(arguments(&AdviseCase::of(4), "x", "", "").iter().any(|word| word == "--numjobs=8"));
    }
}
