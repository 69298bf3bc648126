use super::*;

const BLOCKS: u64 = 1024;
const DRAWS: u64 = 1 << 20;

fn zipf(theta: f64) -> Distribution {
    Distribution::Zipf { theta, center: None }
}

/// How often each of `blocks` numbers is drawn in `DRAWS` draws.
fn counts(skew: &mut Skew, blocks: u64) -> Vec<u64> {
    let mut rng = Rng::new(11);
    let mut counts = vec![0; blocks as usize];
    (0..DRAWS).for_each(|_| counts[skew.next(&mut rng) as usize] += 1);
    counts
}

fn ordered(distribution: &Distribution, blocks: u64) -> Vec<u64> {
    counts(&mut Skew::ordered(distribution, blocks, &mut Rng::new(1)).unwrap(), blocks)
}

fn scattered(distribution: &Distribution, blocks: u64) -> Vec<u64> {
    let skew = Skew::scattered(distribution, (blocks, 4096), None, &mut Rng::new(1));
    counts(&mut skew.unwrap(), blocks)
}

/// Chi-squared of `counts` against `weights`, over cells of at least 50 expected draws, and the number of cells.
fn chi_squared(counts: &[u64], weights: &[f64]) -> (f64, f64) {
    let total: f64 = weights.iter().sum();
    let drawn: u64 = counts.iter().sum();
    let (mut chi, mut cells, mut cell) = (0.0, 0.0, (0.0, 0.0));
    for (&count, weight) in counts.iter().zip(weights) {
        cell = (cell.0 + count as f64, cell.1 + weight / total * drawn as f64);
        if cell.1 >= 50.0 {
            chi += (cell.0 - cell.1).powi(2) / cell.1;
            cells += 1.0;
            cell = (0.0, 0.0);
        }
    }
    (chi, cells)
}

/// A correct generator exceeds this less than once in 10,000 times.
fn check_fits(counts: &[u64], weights: &[f64], name: &str) {
    let (chi, cells) = chi_squared(counts, weights);
    let limit = cells + 3.8 * (2.0 * cells).sqrt() + 8.0;
    assert!(cells > 3.0 && chi < limit, "{name}: chi-squared {chi} of {cells} cells");
}

fn zipf_weights(theta: f64, blocks: u64) -> Vec<f64> {
    (1..=blocks).map(|rank| (rank as f64).powf(-theta)).collect()
}

#[test]
fn zipf_ranks_have_their_frequencies() {
    for theta in [0.4, 0.9, 1.1, 1.2, 2.5] {
        for blocks in [1, 2, 200, 257, 1024, 5_000, 100_000] {
            let counts = ordered(&zipf(theta), blocks);
            match blocks {
                ..200 => assert!(counts.is_sorted_by(|a, b| a > b), "{counts:?}"),
                _ => check_fits(
                    &counts,
                    &zipf_weights(theta, blocks),
                    &format!("zipf:{theta}, {blocks} blocks"),
                ),
            }
        }
    }
}

#[test]
fn pareto_ranks_have_their_shares() {
    for h in [0.05_f64, 0.2, 0.5, 0.7] {
        let power = (1.0 - h).ln() / h.ln();
        for blocks in [1024, 100_000] {
            let below = |rank: u64| (rank as f64 / blocks as f64).powf(power);
            let weights: Vec<f64> = (0..blocks).map(|rank| below(rank + 1) - below(rank)).collect();
            let counts = ordered(&Distribution::Pareto { h, center: None }, blocks);
            check_fits(&counts, &weights, &format!("pareto:{h}, {blocks} blocks"));
            // The meaning of the number: this share of the blocks has the rest of the requests.
            let first: u64 = counts[..(h * blocks as f64) as usize].iter().sum();
            assert!((first as f64 / DRAWS as f64 - (1.0 - h)).abs() < 0.01, "{h}: {first}");
        }
    }
}

#[test]
fn frequent_blocks_are_scattered_over_the_range_with_the_same_frequencies() {
    let mut counts = scattered(&zipf(1.1), BLOCKS);
    let hottest = (0..BLOCKS as usize).max_by_key(|&block| counts[block]).unwrap();
    let neighbours =
        counts[(hottest + 1) % BLOCKS as usize] + counts[(hottest + BLOCKS as usize - 1) % BLOCKS as usize];
    assert!(neighbours < counts[hottest] / 4, "{neighbours}");
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let (chi, cells) = chi_squared(&counts[..100], &zipf_weights(1.1, BLOCKS)[..100]);
    assert!(chi < 3.0 * cells, "{chi}");
}

/// The shares of the most frequent blocks that Debian's fio 3.33 had in 102,400 requests to 1,024 blocks.
#[test]
fn the_frequencies_are_those_that_fio_has() {
    let center = Some(0.5);
    let check = |distribution, fios: &[f64], tolerance: f64| {
        let mut counts = scattered(&distribution, BLOCKS);
        assert_eq!((0..BLOCKS as usize).max_by_key(|&block| counts[block]), Some(512));
        counts.sort_unstable_by(|a, b| b.cmp(a));
        for (rank, share) in fios.iter().enumerate() {
            let ours = counts[rank] as f64 / DRAWS as f64;
            assert!((ours / (share / 102_400.0) - 1.0).abs() < tolerance, "{distribution:?} {rank}: {ours}");
        }
    };
    // fio's own third rank is 17 % above the law.
    check(Distribution::Zipf { theta: 1.1, center }, &[18_232.0, 8_500.0], 0.02);
    check(Distribution::Zipf { theta: 0.8, center }, &[6_558.0, 3_757.0], 0.02);
    check(
        Distribution::Pareto { h: 0.2, center },
        &[38_946.0, 3_977.0, 2_483.0, 1_849.0, 1_500.0, 1_253.0],
        0.03,
    );
}

#[test]
fn normal_offsets_have_the_mean_and_the_deviation() {
    for (deviation, center, mean) in [(10.0, None, 0.5), (2.0, Some(0.25), 0.25)] {
        let counts = scattered(&Distribution::Normal { deviation, center }, BLOCKS);
        let weights: Vec<f64> = (0..BLOCKS)
            .map(|block| {
                let z = ((block as f64 + 0.5) / BLOCKS as f64 - mean) / (deviation / 100.0);
                (-z * z / 2.0).exp()
            })
            .collect();
        check_fits(&counts, &weights, &format!("normal:{deviation}"));
    }
    assert_eq!(scattered(&Distribution::Normal { deviation: 0.0, center: None }, BLOCKS)[512], DRAWS);
    let at_the_end = Distribution::Normal { deviation: 0.0, center: Some(1.0) };
    assert_eq!(scattered(&at_the_end, BLOCKS)[1023], DRAWS);
}

#[test]
fn zones_have_their_shares_of_requests_and_of_the_range() {
    let check = |distribution: Distribution, expected: &[(usize, usize, f64)]| {
        let counts = scattered(&distribution, 1000);
        for &(first, end, share) in expected {
            let of: u64 = counts[first..end].iter().sum();
            let ours = of as f64 / DRAWS as f64;
            assert!((ours - share).abs() < 0.01, "{distribution:?} {first}..{end}: {ours}");
            let even = counts[first..end].iter().all(|&count| {
                let mean = of as f64 / (end - first) as f64;
                (count as f64 - mean).abs() < 6.0 * mean.sqrt()
            });
            assert!(even, "{distribution:?} {first}..{end}");
        }
    };
    check(Distribution::Zoned(vec![(60, 10), (40, 90)]), &[(0, 100, 0.6), (100, 1000, 0.4)]);
    let bytes = |blocks: u64| blocks * 4096;
    check(
        Distribution::ZonedAbs(vec![(60, bytes(250)), (10, bytes(50)), (30, 0)]),
        &[(0, 250, 0.6), (250, 300, 0.1), (300, 1000, 0.3)],
    );
    // Beyond the end there is nothing to access.
    check(
        Distribution::ZonedAbs(vec![(50, bytes(500)), (50, bytes(5000))]),
        &[(0, 500, 0.5), (500, 1000, 0.5)],
    );
}

#[test]
fn the_uniform_distribution_needs_no_table() {
    assert!(Skew::ordered(&Distribution::Random, 8, &mut Rng::new(1)).is_none());
}
