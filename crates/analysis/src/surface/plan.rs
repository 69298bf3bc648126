//! Where a surface is measured, in which order and for how long. Pure: the same seed gives the same places for ever.

/// The order in which places are visited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VisitOrder {
    /// From the first to the last.
    Ascending,
    /// From the last to the first.
    Descending,
    /// As it comes, so that dependence on time and dependence on the offset are distinct.
    #[default]
    Random,
}

impl VisitOrder {
    /// All of them.
    pub const ALL: [VisitOrder; 3] = [VisitOrder::Ascending, VisitOrder::Descending, VisitOrder::Random];

    /// As typed.
    pub const fn name(self) -> &'static str {
        match self {
            VisitOrder::Ascending => "ascending",
            VisitOrder::Descending => "descending",
            VisitOrder::Random => "random",
        }
    }
}

/// One place of the surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SurfacePlace {
    /// Number from the beginning of the area, from 0.
    pub index: u32,
    /// Where it begins, bytes.
    pub offset: u64,
    /// Bytes up to the next one.
    pub length: u64,
}

/// Places where none are asked for.
pub const POINTS: u32 = 200;
/// Least bytes of a place, and least blocks: fewer tell more of their first request than of the place.
const MIN_BYTES: u64 = 4 << 20;
const MIN_BLOCKS: u64 = 16;
/// Least time for a place that was not asked for, ns: a run begins and ends in some ms, and a slow request takes as long.
const MIN_TIME_NS: u64 = 60_000_000;

/// How many places there are: as many as were asked for and have a block each, else what suits the area and the time.
pub fn points(area: u64, block: u64, wanted: Option<u32>, time_ns: u64) -> u32 {
    let block = block.max(1);
    let (most, least_bytes) = match wanted {
        Some(wanted) => (u64::from(wanted), block),
        None => (u64::from(POINTS).min(time_ns / MIN_TIME_NS), MIN_BYTES.max(MIN_BLOCKS * block)),
    };
    most.min(area / least_bytes).max(1) as u32
}

/// `points` places evenly over `area` bytes, each beginning with a whole block, in the order of their offsets.
pub fn places(area: u64, block: u64, points: u32) -> Vec<SurfacePlace> {
    let block = block.max(1);
    let start = |index: u32| {
        let offset = u128::from(area) * u128::from(index) / u128::from(points.max(1));
        offset as u64 / block * block
    };
    let place = |index| {
        let (offset, end) = (start(index), start(index + 1));
        SurfacePlace { index, offset, length: end.saturating_sub(offset).max(block) }
    };
    (0..points).map(place).collect()
}

/// The same places in the order of visiting.
pub fn visits(mut places: Vec<SurfacePlace>, order: VisitOrder, seed: u64) -> Vec<SurfacePlace> {
    match order {
        VisitOrder::Ascending => {}
        VisitOrder::Descending => places.reverse(),
        VisitOrder::Random => {
            let mut state = seed;
            for last in (1..places.len()).rev() {
                places.swap(last, (next(&mut state) % (last as u64 + 1)) as usize);
            }
        }
    }
    places
}

/// The next number of the sequence that splitmix64 makes of `state`.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SurfaceParts {
    /// The rate at each place with one request at a time.
    pub transfer: bool,
    /// The rate at a high queue depth.
    pub saturated: bool,
    /// Single requests all over the area.
    pub access: bool,
    /// One small region over and over.
    pub burst: bool,
    /// The file benchmark.
    pub file: bool,
}

/// How long each part takes, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// One place with everything that belongs to it.
    pub place_ns: u64,
    /// Reading in order at one place.
    pub transfer_ns: u64,
    /// The probes of one place on average, at most.
    pub access_ns: u64,
    /// One place at a high queue depth.
    pub saturated_ns: u64,
    /// The burst rate.
    pub burst_ns: u64,
    /// The whole file benchmark.
    pub file_ns: u64,
}

/// Places at which the rate at a high queue depth is measured.
pub const SATURATED_POINTS: u32 = 8;
/// Those of them that are read once more: first accesses may cost more.
pub const SATURATED_AGAIN: u32 = 4;
/// Times beyond which a place learns nothing more.
const LONGEST_TRANSFER_NS: u64 = 1_000_000_000;
const LONGEST_SATURATED_NS: u64 = 2_040_000_000;
const BURST_NS: (u64, u64) = (100_000_000, 2_000_000_000);
const MIN_SLICE_NS: u64 = 10_000_000;
/// Beginning and ending a run.
const OVERHEAD_NS: u64 = 8_000_000;

/// The part of `budget_ns` that goes to the places.
pub fn time_of_places(budget_ns: u64, parts: &SurfaceParts) -> u64 {
    let surface = if parts.file && is_surface(parts) { budget_ns / 2 } else { budget_ns };
    if !parts.transfer && !parts.access {
        return 0;
    }
    surface / 100 * (if parts.saturated { 72 } else { 93 })
}

fn is_surface(parts: &SurfaceParts) -> bool {
    parts.transfer || parts.saturated || parts.access || parts.burst
}

/// Divides `budget_ns` over the parts.
pub fn times(budget_ns: u64, points: u32, parts: &SurfaceParts) -> Times {
    let surface = match (parts.file, is_surface(parts)) {
        (true, true) => budget_ns / 2,
        (false, _) => budget_ns,
        (true, false) => 0,
    };
    let place_ns = time_of_places(budget_ns, parts) / u64::from(points.max(1));
    let usable = place_ns.saturating_sub(OVERHEAD_NS).max(2 * MIN_SLICE_NS);
    let (transfer, access) = match (parts.transfer, parts.access) {
        (true, true) => (usable / 100 * 72, usable / 100 * 28),
        (true, false) => (usable, 0),
        (false, true) => (0, usable),
        (false, false) => (0, 0),
    };
    let saturated =
        if parts.saturated { surface / 100 * 21 / u64::from(SATURATED_POINTS + SATURATED_AGAIN) } else { 0 };
    let limited = |ns: u64, least: u64, most: u64| if ns == 0 { 0 } else { ns.clamp(least, most) };
    Times {
        place_ns,
        transfer_ns: limited(transfer, MIN_SLICE_NS, LONGEST_TRANSFER_NS),
        access_ns: limited(access, MIN_SLICE_NS, LONGEST_TRANSFER_NS),
        saturated_ns: limited(saturated, MIN_SLICE_NS, LONGEST_SATURATED_NS),
        burst_ns: if parts.burst { (surface / 100 * 5).clamp(BURST_NS.0, BURST_NS.1) } else { 0 },
        file_ns: if parts.file { budget_ns - surface.min(budget_ns) } else { 0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const MINUTE: u64 = 60_000_000_000;
    const ALL: SurfaceParts =
        SurfaceParts { transfer: true, saturated: true, access: true, burst: true, file: true };

    #[test]
    fn as_many_places_as_the_area_and_the_time_allow() {
        let check = |area, block, wanted, time, expected: u32| {
            assert_eq!(points(area, block, wanted, time), expected, "{area} {block} {wanted:?} {time}");
        };
        check(1 << 40, 65_536, None, MINUTE, 200);
        check(128 * MIB, 65_536, None, MINUTE, 32);
        check(128 * MIB, MIB, None, MINUTE, 8);
        check(16 * MIB, 8 * MIB, None, MINUTE, 1);
        check(1 << 40, 65_536, None, 3_000_000_000, 50);
        check(1 << 40, 65_536, Some(400), 3_000_000_000, 400);
        check(16 * MIB, MIB, Some(400), MINUTE, 16);
        check(100, MIB, Some(400), 0, 1);
    }

    #[test]
    fn places_cover_the_area_without_a_gap() {
        for (area, block, points) in
            [(1_000 * MIB, 65_536, 200), (20 << 40, MIB, 200), (16 * MIB + 512, 512, 7)]
        {
            let places = places(area, block, points);
            assert_eq!((places.len() as u32, places[0].offset), (points, 0));
            for pair in places.windows(2) {
                assert_eq!(pair[0].offset + pair[0].length, pair[1].offset);
                assert!(pair[1].offset.is_multiple_of(block));
            }
            let last = places[places.len() - 1];
            assert!(last.offset + last.length <= area && last.offset + last.length + block > area);
        }
    }

    #[test]
    fn every_order_visits_every_place_once() {
        let indices = |order, seed| -> Vec<u32> {
            visits(places(100 * MIB, 4096, 10), order, seed).iter().map(|place| place.index).collect()
        };
        assert_eq!(indices(VisitOrder::Ascending, 1), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(indices(VisitOrder::Descending, 1), [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
        let random = indices(VisitOrder::Random, 1);
        assert_ne!(random, indices(VisitOrder::Random, 2));
        assert_eq!(random, indices(VisitOrder::Random, 1));
        let mut sorted = random;
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn the_parts_stay_within_the_budget() {
        for budget in [10_000_000_000, MINUTE, 10 * MINUTE] {
            for parts in [ALL, SurfaceParts { file: false, ..ALL }, SurfaceParts { saturated: false, ..ALL }]
            {
                let points = points(1 << 40, 65_536, None, time_of_places(budget, &parts));
                let times = times(budget, points, &parts);
                assert!(times.transfer_ns + times.access_ns <= times.place_ns, "{times:?}");
                let all = times.place_ns * u64::from(points)
                    + times.saturated_ns * u64::from(SATURATED_POINTS + SATURATED_AGAIN)
                    + times.burst_ns
                    + times.file_ns;
                assert!(all <= budget, "{all} of {budget}: {times:?}");
            }
        }
        let file =
            SurfaceParts { transfer: false, saturated: false, access: false, burst: false, file: true };
        assert_eq!(times(MINUTE, 1, &file), Times { file_ns: MINUTE, ..Times::default() });
    }
}
