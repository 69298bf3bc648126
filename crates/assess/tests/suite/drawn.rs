//! Volumes with limits drawn at random from a seed, and what can be seen of them.

use crate::random::Rng;

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Read,
    Write,
}

/// A limit: a rate, and the burst above it with its credit. A burst of `None` has no limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawing {
    pub base: u64,
    pub credit: Option<(Option<u64>, u64)>,
}

impl Drawing {
    fn highest(&self) -> f64 {
        match self.credit {
            None => self.base as f64,
            Some((burst, _)) => burst.map_or(f64::INFINITY, |burst| burst as f64),
        }
    }
}

/// A bucket as it was drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    pub is_ios: bool,
    /// `None` = both directions.
    pub way: Option<Way>,
    pub base: f64,
    pub burst: Option<f64>,
    pub capacity: f64,
}

/// Limits on I/Os and on bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    pub ios: Option<Drawing>,
    pub bytes: Option<Drawing>,
}

/// A volume.
#[derive(Clone, Debug)]
pub struct Drawn {
    pub seed: u64,
    /// On both directions together, or the same for each where `apart`.
    pub both: Limits,
    pub apart: bool,
    pub reads: Limits,
    pub writes: Limits,
    pub unit: Option<u64>,
    pub latency_ns: f64,
    pub is_spread: bool,
    pub width: Option<u64>,
    pub instance: Limits,
    pub first_touch: Option<String>,
    pub size_gib: u64,
    pub stall: Option<(u64, u64)>,
    pub budget_s: u64,
    /// Largest request that is made, bytes.
    pub most_block: f64,
}

fn pick<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.next() as usize % from.len()]
}

/// Largest request that is made.
const MAX_BLOCK: f64 = 67_108_864.0;
/// Requests that emptying may take, so that all of it fits.
const MAX_IOS: f64 = 400_000.0;

impl Drawn {
    pub fn of(seed: u64) -> Drawn {
        let mut rng = Rng(seed.wrapping_mul(0x1_0001) ^ 0xfa7_4014);
        let has_ios = rng.chance(0.85);
        let has_bytes = !has_ios || rng.chance(0.85);
        let ios = has_ios.then(|| ios(&mut rng));
        let bytes = has_bytes.then(|| bytes(&mut rng));
        let both = Limits { ios, bytes };
        let form = rng.share();
        let (mut reads, mut writes) = (Limits::default(), Limits::default());
        let apart = form > 0.6 && form < 0.85;
        if form >= 0.85 {
            let own = |rng: &mut Rng| {
                let scale = rng.between(0.3, 1.5);
                let scaled = |one: Option<Drawing>| {
                    one.map(|one| Drawing {
                        base: (one.base as f64 * scale) as u64 + 1,
                        credit: one.credit.map(|(burst, credit)| {
                            (burst.map(|burst| (burst as f64 * scale) as u64 + 2), credit)
                        }),
                    })
                };
                Limits { ios: scaled(both.ios), bytes: scaled(both.bytes) }
            };
            reads = own(&mut rng);
            writes = own(&mut rng);
        }
        let both = if form >= 0.85 { Limits::default() } else { both };
        let unit = rng.chance(0.5).then(|| match rng.next() % 3 {
            0 => 512 * (1 + rng.next() % 2048),
            _ => pick(&mut rng, &[4096, 8192, 16_384, 32_768, 65_536, 131_072, 262_144, 1 << 20]),
        });
        let latency_us = if rng.chance(0.2) { 0 } else { rng.between(50.0, 5000.0) as u64 };
        let is_spread = rng.chance(0.3);
        let width = (latency_us > 0 && rng.chance(0.3)).then(|| rng.between(1.0, 257.0) as u64);
        let mut instance = Limits::default();
        if rng.chance(0.15) {
            let plain = |base: f64| Some(plain(base));
            let highest = |one: Option<Drawing>| one.map(|one| one.base as f64);
            if rng.chance(0.6) {
                instance.ios = plain(highest(both.ios).unwrap_or(5000.0) * rng.between(0.5, 3.0) + 20.0);
            }
            if rng.chance(0.6) {
                instance.bytes = plain(highest(both.bytes).unwrap_or(1e8) * rng.between(0.5, 3.0) + 1e5);
            }
        }
        let first_touch = rng.chance(0.12).then(|| pick(&mut rng, &["1", "1", "5ms", "20ms"]).to_owned());
        let size_gib = rng.between(20.0, 2000.0) as u64;
        let stall = rng.chance(0.06).then(|| (rng.between(1.0, 100.0) as u64, rng.between(1.0, 30.0) as u64));
        let latency_ns = latency_us as f64 * 1e3;
        let mut drawn = Drawn {
            seed,
            both,
            apart,
            reads,
            writes,
            unit,
            latency_ns,
            is_spread,
            width,
            instance,
            first_touch,
            size_gib,
            stall,
            budget_s: 3600,
            most_block: MAX_BLOCK,
        };
        let most = [Way::Read, Way::Write].map(|way| drawn.rate(way, 512.0)).into_iter().fold(1.0, f64::max);
        drawn.budget_s = (3.0 * MAX_IOS / most).clamp(120.0, 3600.0) as u64;
        drawn
    }

    /// One as capped devices are, with credit for a minute or two at the most, and with time for a few dozen rates of some
    /// seconds each.
    pub fn device(seed: u64) -> Drawn {
        let mut rng = Rng(seed.wrapping_mul(0x3_0001) ^ 0xde_71ce);
        let has_ios = rng.chance(0.8);
        let mut limits = Limits {
            ios: has_ios.then(|| plain(rng.between(300.0, 5000.0))),
            bytes: (!has_ios || rng.chance(0.6)).then(|| plain(rng.between(4e6, 3e8))),
        };
        if rng.chance(0.7) {
            let is_ios = limits.bytes.is_none() || (has_ios && rng.chance(0.7));
            let one = if is_ios { &mut limits.ios } else { &mut limits.bytes };
            let highest = one.map_or(0.0, |one| one.base as f64);
            let base = highest / rng.between(1.6, 10.0);
            let credit = (highest - base) * rng.between(8.0, 100.0);
            *one = Some(Drawing { base: base as u64, credit: Some((Some(highest as u64), credit as u64)) });
        }
        Drawn {
            seed,
            both: limits,
            apart: rng.chance(0.5),
            reads: Limits::default(),
            writes: Limits::default(),
            unit: rng.chance(0.25).then(|| pick(&mut rng, &[16_384, 32_768, 65_536, 131_072])),
            latency_ns: rng.between(30.0, 500.0).floor() * 1e3,
            is_spread: rng.chance(0.5),
            width: None,
            instance: Limits::default(),
            first_touch: None,
            size_gib: 1,
            stall: None,
            budget_s: pick(&mut rng, &[300, 400, 600]),
            most_block: 524_288.0,
        }
    }

    pub fn target(&self) -> String {
        let mut words = vec![format!("size={}GiB", self.size_gib), format!("seed={}", self.seed)];
        for (prefix, limits) in [("", self.both), ("read_", self.reads), ("write_", self.writes)] {
            let names =
                [("iops", "burst_iops", "bucket_ios"), ("bandwidth", "burst_bandwidth", "bucket_bytes")];
            for ((base, burst, bucket), one) in names.into_iter().zip([limits.ios, limits.bytes]) {
                let Some(one) = one else { continue };
                words.push(format!("{prefix}{base}={}", one.base));
                if let Some((highest, credit)) = one.credit {
                    words.extend(highest.map(|highest| format!("{prefix}{burst}={highest}")));
                    words.push(format!("{prefix}{bucket}={credit}"));
                }
            }
        }
        words.extend(self.unit.map(|unit| format!("io_unit={unit}")));
        if self.latency_ns > 0.0 {
            words.push(format!("latency={}us", self.latency_ns / 1e3));
            words.extend(self.is_spread.then(|| "latency_spread=1".to_owned()));
        }
        words.extend(self.width.map(|width| format!("parallelism={width}")));
        words.extend(self.apart.then(|| "shared=0".to_owned()));
        words.extend(self.instance.ios.map(|one| format!("instance_iops={}", one.base)));
        words.extend(self.instance.bytes.map(|one| format!("instance_bandwidth={}", one.base)));
        words.extend(self.first_touch.as_ref().map(|touch| format!("first_touch={touch}")));
        words.extend(self.stall.map(|(at, length)| format!("stall={at}s+{length}s")));
        format!("sim:custom?{}", words.join("&"))
    }

    fn own(&self, way: Way) -> Limits {
        match way {
            Way::Read => self.reads,
            Way::Write => self.writes,
        }
    }

    /// The lowest of the limits on I/Os that are counted in units, and of the instance's.
    fn count_limits(&self, way: Way) -> (f64, f64) {
        let least = |one: Option<Drawing>| one.map_or(f64::INFINITY, |one| one.highest());
        (least(self.both.ios).min(least(self.own(way).ios)), least(self.instance.ios))
    }

    fn byte_limit(&self, way: Way) -> f64 {
        let least = |one: Option<Drawing>| one.map_or(f64::INFINITY, |one| one.highest());
        least(self.both.bytes).min(least(self.own(way).bytes)).min(least(self.instance.bytes))
    }

    fn medium(&self) -> f64 {
        let served = self.width.unwrap_or(4096) as f64;
        if self.latency_ns > 0.0 { served / (self.latency_ns / 1e9) } else { f64::INFINITY }
    }

    /// Requests a second with blocks of so many bytes, at the highest.
    fn rate(&self, way: Way, block: f64) -> f64 {
        let (ios, instance) = self.count_limits(way);
        let units = self.unit.map_or(1.0, |unit| (block / unit as f64).ceil());
        (ios / units).min(instance).min(self.byte_limit(way) / block).min(self.medium())
    }

    /// The limit on I/Os, and whether it shows.
    pub fn iops(&self, way: Way) -> (Option<f64>, bool) {
        let (ios, instance) = self.count_limits(way);
        let limit = ios.min(instance);
        let is_visible = limit < 0.85 * self.medium() && limit * 512.0 < 0.95 * self.byte_limit(way);
        (Some(limit).filter(|limit| limit.is_finite()), is_visible && limit.is_finite())
    }

    /// The limit on bytes, and whether it shows.
    pub fn bytes(&self, way: Way) -> (Option<f64>, bool) {
        let limit = self.byte_limit(way);
        let (ios, instance) = self.count_limits(way);
        let largest = self.most_block / 2.0;
        let carried = (ios * self.unit.map_or(largest, |unit| unit as f64))
            .min(instance * largest)
            .min(self.medium() * largest);
        (Some(limit).filter(|limit| limit.is_finite()), limit.is_finite() && carried > 1.1 * limit)
    }

    /// The unit, and whether it shows.
    pub fn unit(&self) -> (Option<f64>, bool) {
        let Some(unit) = self.unit else { return (None, false) };
        let beyond = (unit + 512) as f64;
        let (ios, _) = self.count_limits(Way::Read);
        let plain = |block: f64| self.rate(Way::Read, block).max(0.0);
        let without = (ios)
            .min(self.count_limits(Way::Read).1)
            .min(self.byte_limit(Way::Read) / beyond)
            .min(self.medium());
        let is_visible = unit as f64 <= self.most_block / 8.0 && plain(beyond) < 0.93 * without;
        (Some(unit as f64), is_visible && self.rate(Way::Read, 512.0) * beyond < 25e9)
    }

    /// What the key says, where a further limit does not hide it.
    pub fn is_shared(&self) -> Option<bool> {
        let has_own = self.reads != Limits::default();
        let is_apart = self.apart || has_own;
        let hides = self.instance.ios.is_some() || self.instance.bytes.is_some();
        (!(is_apart && hides)).then_some(!is_apart)
    }

    pub fn shows_sharing(&self) -> bool {
        self.iops(Way::Read).1 && self.iops(Way::Write).1 && self.instance == Limits::default()
    }

    pub fn buckets(&self) -> Vec<Bucket> {
        let mut all = Vec::new();
        let mut add = |way: Option<Way>, limits: Limits| {
            for (is_ios, one) in [(true, limits.ios), (false, limits.bytes)] {
                let Some(Drawing { base, credit: Some((burst, capacity)) }) = one else { continue };
                let of = way.unwrap_or(Way::Read);
                let (ios, instance) = self.count_limits(of);
                let other = if is_ios { ios.min(instance) } else { self.byte_limit(of) };
                let burst = burst.map(|burst| other.min(burst as f64));
                all.push(Bucket { is_ios, way, base: base as f64, burst, capacity: capacity as f64 });
            }
        };
        if self.apart {
            add(Some(Way::Read), self.both);
            add(Some(Way::Write), self.both);
        } else {
            add(None, self.both);
        }
        add(Some(Way::Read), self.reads);
        add(Some(Way::Write), self.writes);
        all
    }

    /// It can be emptied well within the budget.
    pub fn can_empty(&self, bucket: &Bucket) -> bool {
        let way = bucket.way.unwrap_or(Way::Read);
        let is_alone = self.buckets().iter().filter(|one| one.way == bucket.way).count() == 1;
        let x = self.byte_limit(way) / self.iops(way).0.unwrap_or(1.0);
        let block = x.clamp(512.0, self.unit.unwrap_or(1 << 26) as f64);
        let drawn = self.rate(way, block * 0.96) * if bucket.is_ios { 1.0 } else { block * 0.96 };
        let beyond = drawn - bucket.base;
        is_alone && beyond > 0.1 * bucket.base && bucket.capacity / beyond < 0.5 * self.budget_s as f64
    }
}

fn plain(base: f64) -> Drawing {
    Drawing { base: base as u64, credit: None }
}

fn ios(rng: &mut Rng) -> Drawing {
    let base = rng.between(50.0, 200_000.0) as u64;
    let credit = rng.chance(0.3).then(|| {
        let burst = (base as f64 * rng.between(1.3, 30.0)).min(200_000.0).max(base as f64 * 1.3);
        let seconds = rng.between(3.0, 2400.0).min(MAX_IOS / burst);
        let credit = ((burst - base as f64) * seconds) as u64 + 10;
        (Some(burst as u64), credit)
    });
    Drawing { base, credit }
}

fn bytes(rng: &mut Rng) -> Drawing {
    let base = rng.between(1e6, 2e9) as u64;
    let credit = rng.chance(0.25).then(|| {
        let burst = base as f64 * rng.between(1.3, 20.0);
        let seconds = rng.between(3.0, 2400.0);
        (Some(burst as u64), ((burst - base as f64) * seconds) as u64)
    });
    Drawing { base, credit }
}
