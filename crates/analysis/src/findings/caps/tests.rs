use fathom_model::{Nanos, Rate};
use fathom_record::{InspectionRecord, PlanRecord};

use super::*;
use crate::fixture::{self, TestLoad, ids, plan, record};
use crate::rows::rows;

fn load(rw: &'static str, bs_kib: u64, depth: u32, iops: f64) -> TestLoad {
    TestLoad { rw, bs: bs_kib << 10, depth, iops, ..TestLoad::default() }
}

fn check(run: &RunRecord) -> Vec<Finding> {
    let rows = rows(run);
    findings(&caps(run, &rows), &rows)
}

fn told(loads: &[TestLoad]) -> Vec<String> {
    check(&record(loads)).into_iter().map(|finding| finding.id.to_string()).collect()
}

#[test]
fn a_plateau_takes_two_points() {
    let deep = load("randread", 4, 64, 3001.0);
    assert_eq!(told(std::slice::from_ref(&deep)), [""; 0]);
    assert_eq!(told(&[deep.clone(), load("randread", 4, 8, 2999.0)]), ["unknown-limit"]);
    // Still climbing, of another direction, of the same depth, or uneven.
    assert_eq!(told(&[deep.clone(), load("randread", 4, 8, 2500.0)]), [""; 0]);
    assert_eq!(told(&[deep.clone(), load("randwrite", 4, 8, 2999.0)]), [""; 0]);
    assert_eq!(told(&[deep.clone(), load("randread", 4, 60, 2999.0)]), [""; 0]);
    let uneven = TestLoad { seconds: vec![0.9, 1.1], ..load("randread", 4, 8, 2999.0) };
    assert_eq!(told(&[deep.clone(), uneven]), [""; 0]);
    // What was let through at the start does not count, unless a ramp has seen to it.
    let cold = TestLoad { seconds: vec![1.1, 1.0, 1.0, 1.0], ..load("randread", 4, 8, 3000.0) };
    assert_eq!(told(&[deep.clone(), cold.clone()]), ["unknown-limit"]);
    let mut warm = record(&[deep.clone(), cold]);
    warm.tests[1].jobs[0].ramp = Some(Default::default());
    assert_eq!(check(&warm), []);
    // Through the page cache, or held back by the job itself.
    let changes: [fn(&mut PlanRecord); 3] = [
        |plan| plan.io.direct = false,
        |plan| plan.time.think_time.pause = Nanos(5),
        |plan| plan.time.rate.rates.read = Rate::iops(3000),
    ];
    for change in changes {
        let mut run = record(&[deep.clone(), load("randread", 4, 8, 2999.0)]);
        plan(&mut run, change);
        assert_eq!(check(&run), [], "{:?}", run.tests[0].jobs[0].plan);
    }
}

#[test]
fn bytes_and_requests_are_told_apart() {
    let iops = [load("randread", 4, 8, 3000.0), load("randread", 16, 64, 3000.0)];
    assert_eq!(told(&iops), ["iops-cap"]);
    let bytes = [load("read", 1024, 32, 128.0), load("read", 128, 8, 1024.0)];
    assert_eq!(told(&bytes), ["bandwidth-cap"]);
    let one_size = [load("read", 1024, 32, 128.0), load("read", 1024, 8, 128.0)];
    assert_eq!(told(&one_size), ["unknown-limit"]);
    let with = |other: TestLoad| told(&[one_size.as_slice(), &[other]].concat());
    assert_eq!(with(load("randread", 4, 8, 2000.0)), ["bandwidth-cap"]);
    assert_eq!(with(load("randread", 4, 1, 100.0)), ["unknown-limit"]);
    assert_eq!(with(load("randread", 4096, 8, 64.0))[0], "iops-cap");
    let all: Vec<TestLoad> = iops.into_iter().chain(bytes).collect();
    let found = check(&record(&all));
    assert_eq!(ids(&found), ["iops-cap", "bandwidth-cap"]);
    assert_eq!(found[0].claim, "4k and 16k reads are limited to 3,000 IOPS at QD 8 and at QD 64.");
    assert_eq!(
        found[1].claim,
        "128k and 1m reads are limited to 128 MiB/s; the crossover block size is 43.7 KiB: below it the IOPS limit applies, above it the bandwidth limit."
    );
    let crossover = found[1].evidence["crossover_block_size_bytes"].as_f64().unwrap();
    assert!((crossover / 44_739.2 - 1.0).abs() < 0.001, "{crossover}");
}

#[test]
fn larger_requests_that_count_as_several_are_no_bandwidth_limit() {
    let small = [load("randread", 4, 8, 1000.0), load("randread", 16, 64, 1000.0)];
    let with = |more: &[(u64, f64)]| {
        let more =
            more.iter().flat_map(|&(kib, iops)| [8, 32].map(|depth| load("randread", kib, depth, iops)));
        check(&record(&small.iter().cloned().chain(more).collect::<Vec<_>>()))
    };
    let either = with(&[(64, 250.0), (256, 62.5)]);
    assert_eq!(ids(&either), ["iops-cap", "unknown-limit"]);
    assert!(either[1].claim.contains("inconclusive whether by a bandwidth limit or"), "{}", either[1].claim);
    let deciding = either[1].remedy.as_deref().unwrap_or_default();
    assert!(deciding.starts_with("Measure blocks of 20.0 KiB as well"), "{deciding}");
    let units = with(&[(20, 500.0), (64, 250.0), (256, 62.5)]);
    assert_eq!(ids(&units), ["iops-cap"]);
    assert!(units[0].claim.contains("; I/Os of more than 16.0 KiB count as several"), "{}", units[0].claim);
    let bytes = with(&[(20, 800.0), (64, 250.0), (256, 62.5)]);
    assert_eq!(ids(&bytes), ["iops-cap", "bandwidth-cap"]);
    assert!(bytes[1].claim.contains("the crossover block size is 16.0 KiB"), "{}", bytes[1].claim);
}

#[test]
fn a_limit_that_the_other_direction_shows_counts_large_requests() {
    let loads = [
        load("randread", 4, 64, 1000.0),
        load("randread", 4, 8, 1000.0),
        load("randwrite", 4, 64, 1000.0),
        load("randwrite", 1024, 32, 15.625),
        load("write", 128, 8, 125.0),
        load("read", 1024, 8, 15.625),
    ];
    let found = check(&record(&loads));
    assert_eq!(ids(&found), ["iops-cap", "unknown-limit"]);
    assert!(
        found[1].claim.contains("or by the limit of 1,000 IOPS with an I/O counted"),
        "{}",
        found[1].claim
    );
}

#[test]
fn one_point_is_enough_where_the_limit_is_known() {
    let check = |line: &str, expected: &[&str]| {
        // A busy host makes the seconds of a limit uneven.
        for seconds in [[1.0; 4], [1.0, 0.8, 1.2, 1.0]].map(Vec::from) {
            let mut run = record(&[TestLoad { seconds, ..load("randread", 4, 16, 1003.0) }]);
            run.header.hosts[0].cgroup.io_limits = vec![line.to_owned()];
            assert_eq!(ids(&check(&run)), expected, "{line}");
        }
    };
    check("7:0 read_iops 1000", &["iops-cap"]);
    check("7:0 write_iops 1000", &[]);
    check("7:0 read_iops 1100", &[]);
    check("7:0 read_bytes_per_second 4096000", &["bandwidth-cap"]);
    check("7:0 read_iops", &[]);
    let mut run = record(&[load("randread", 128, 16, 3200.0)]);
    run.header.hosts[0].cgroup.io_limits =
        ["7:0 read_iops 50000", "7:0 read_bytes_per_second 419430400"].map(str::to_owned).to_vec();
    let found = super::findings(&caps(&run, &rows(&run)), &rows(&run));
    let claim =
        "128k reads are limited to 400 MiB/s; the limits of the control group are 50,000 IOPS and 400 MiB/s.";
    assert_eq!(found[0].claim, claim);
}

#[test]
fn equal_rates_in_all_directions_are_a_shared_limit_where_latencies_are_those_of_a_queue() {
    let measured = |rates: [f64; 3], quickest_ns: u64| {
        let [read, write, mixed] = rates;
        let mut run = record(&[
            load("randread", 4, 64, read),
            load("randwrite", 4, 64, write),
            load("randread", 4, 64, mixed),
        ]);
        for test in &mut run.tests {
            let measured = &mut test.jobs[0].measured;
            for op in [&mut measured.read, &mut measured.write].into_iter().filter(|op| op.ios > 0) {
                op.lat.merge(&fixture::latency(64, quickest_ns));
            }
        }
        let measured = &mut run.tests[2].jobs[0].measured;
        measured.write = measured.read.clone();
        measured.read.ios /= 2;
        measured.write.ios /= 2;
        check(&run).into_iter().map(|found| found.claim).collect::<Vec<_>>()
    };
    assert_eq!(
        measured([3000.0, 3010.0, 2990.0], 400_000),
        [
            "4k reads are limited to 3,000 IOPS, which are 11.7 MiB/s; reads and writes share the limit; \
             inconclusive whether the limit counts I/Os or bytes: no other block size shows which.",
            "4k writes are limited to 3,010 IOPS, which are 11.8 MiB/s; reads and writes share the limit; \
             inconclusive whether the limit counts I/Os or bytes: no other block size shows which."
        ]
    );
    let none: [&str; 0] = [];
    assert_eq!(measured([3000.0, 2000.0, 3000.0], 400_000), none);
    assert_eq!(measured([3000.0, 3000.0, 2800.0], 400_000), none);
    // A device that takes 21 ms for anything has the same rates without a limit.
    assert_eq!(measured([3000.0; 3], 20_000_000), none);
}

#[test]
fn one_row_in_front_of_the_limit_of_the_other_direction_is_limited_too() {
    let quickest = |run: &mut RunRecord, at: usize, ns: u64| {
        // The queue is empty in the ramp only.
        let mut ramp = fathom_record::PhaseOutcome::default();
        ramp.write.lat = fixture::latency(64, ns);
        run.tests[at].jobs[0].ramp = Some(ramp);
    };
    let of = |loads: &[TestLoad], ns: u64| {
        let mut run = record(loads);
        quickest(&mut run, 2, ns);
        check(&run).into_iter().map(|found| found.claim).collect::<Vec<_>>()
    };
    let reads = [load("randread", 4, 64, 3000.0), load("randread", 4, 8, 3000.0)];
    let both = |rate: f64| [reads.as_slice(), &[load("randwrite", 4, 64, rate)]].concat();
    let limited = "4k writes are limited to 3,010 IOPS";
    assert!(of(&both(3010.0), 400_000).iter().any(|claim| claim.starts_with(limited)));
    let one = |claims: Vec<String>| claims.iter().filter(|claim| claim.contains("are limited")).count();
    assert_eq!(one(of(&both(2800.0), 400_000)), 1);
    // Writes that take that long by themselves.
    assert_eq!(one(of(&both(3010.0), 20_000_000)), 1);
    let streams =
        [load("read", 1024, 32, 125.0), load("read", 128, 8, 1000.0), load("write", 1024, 32, 125.0)];
    let found = of(&streams, 10_000_000);
    assert!(found.iter().any(|claim| claim.starts_with("1m writes are limited to 125 MiB/s")), "{found:?}");
}

#[test]
fn sharing_is_seen_in_a_mix() {
    let capped = |mixed: f64| {
        let mut run = record(&[
            load("randread", 4, 64, 3000.0),
            load("randread", 4, 8, 3000.0),
            load("randwrite", 4, 64, 3000.0),
            load("randwrite", 4, 8, 3000.0),
            load("randread", 4, 64, mixed),
        ]);
        let measured = &mut run.tests[4].jobs[0].measured;
        measured.write = measured.read.clone();
        measured.read.ios /= 2;
        measured.write.ios /= 2;
        check(&run).remove(0).claim
    };
    assert!(capped(3000.0).contains("; reads and writes share the limit"), "{}", capped(3000.0));
    assert!(capped(6000.0).contains("; reads and writes have separate limits"), "{}", capped(6000.0));
}

#[test]
fn waiting_for_a_turn_is_told_from_the_device() {
    let alone = load("randread", 4, 1, 2000.0);
    let capped = [load("randread", 4, 8, 3000.0), load("randread", 4, 64, 3000.0)];
    assert_eq!(told(&capped), ["unknown-limit"]);
    let found = check(&record(&[vec![alone], capped.to_vec()].concat()));
    assert_eq!(ids(&found), ["unknown-limit", "queueing"]);
    assert_eq!(
        found[1].claim,
        "latency is mostly queueing delay: 2.67 ms at QD 8 (500 µs at QD 1), 21.3 ms at QD 64 (500 µs at QD 1)."
    );
    assert_eq!(found[1].remedy.as_deref(), Some("QD 2 is enough for these rates."));
    let known = [load("randread", 4, 1, 2000.0), load("randread", 4, 64, 3000.0)];
    let mut run = record(&known);
    run.header.hosts[0].cgroup.io_limits = vec!["7:0 read_iops 3000".to_owned()];
    assert_eq!(
        check(&run)[1].claim,
        "latency is 21.3 ms, of which 20.8 ms is queueing delay: QD 64 at 3,000 IOPS; at QD 1 it is 500 µs."
    );
}

#[test]
fn a_limit_has_the_figure_of_the_table() {
    let cold = TestLoad { seconds: vec![1.2, 1.0, 1.0, 1.0], ..load("randread", 4, 8, 3000.0) };
    let run = record(&[cold.clone(), TestLoad { depth: 64, ..cold }]);
    let found = check(&run);
    assert!(found[0].claim.starts_with("4k reads are limited to 3,150 IOPS"), "{}", found[0].claim);
    assert_eq!(found[0].evidence["iops"].as_f64(), Some(3150.0));
}

#[test]
fn a_stream_of_small_blocks_is_held_by_the_cap_on_requests() {
    let capped = [load("randread", 4, 8, 3000.0), load("randread", 4, 64, 3000.0)];
    let with = |rw, large: f64| {
        let more = vec![load(rw, 4, 32, 3000.0), load("read", 1024, 32, large)];
        told(&[capped.to_vec(), more].concat())
    };
    assert_eq!(with("read", 128.0), ["iops-cap", "small-block-for-bandwidth"]);
    assert_eq!(with("randread", 128.0), ["iops-cap"]);
    assert_eq!(with("read", 12.0), ["bandwidth-cap"]);
}

#[test]
fn a_plateau_of_service_times_is_parallelism_and_behind_a_limiter_a_limit() {
    let measured = |first: &[(u64, u64)]| {
        let mut run = record(&[
            load("randread", 4, 1, 1000.0),
            load("randread", 4, 8, 4000.0),
            load("randread", 4, 64, 4000.0),
            load("read", 1024, 1, 500.0),
        ]);
        let mut ramp = fathom_record::PhaseOutcome::default();
        first.iter().for_each(|&(count, us)| ramp.read.clat.merge(&fixture::latency(count, us * 1000)));
        run.tests[2].jobs[0].ramp = Some(ramp);
        check(&run).iter().map(|found| found.id.to_string()).collect::<Vec<_>>()
    };
    let served: Vec<(u64, u64)> = (1..16).map(|turn| (4, turn * 1000)).collect();
    assert_eq!(measured(&served), ["queueing"]);
    let mut pipe = record(&[load("randread", 4, 1, 1000.0), load("randread", 4, 64, 1000.0)]);
    pipe.tests[1].jobs[0].ramp = Some(fathom_record::PhaseOutcome::default());
    let ramp = pipe.tests[1].jobs[0].ramp.as_mut().unwrap();
    (1..60).for_each(|turn| ramp.read.clat.merge(&fixture::latency(1, turn * 1_000_000)));
    assert_eq!(ids(&check(&pipe))[0], "unknown-limit");
    let limited: Vec<(u64, u64)> = (0..60).map(|turn| (1, 1000 + turn * 250)).collect();
    assert_eq!(measured(&limited), ["iops-cap", "queueing"]);
    // What a limiter saved up is served at once.
    assert_eq!(measured(&[(900, 1000)]), ["iops-cap", "queueing"]);
    assert_eq!(measured(&[]), ["iops-cap", "queueing"]);
}

#[test]
fn bursts_after_a_rest_tell_servers_from_a_limiter() {
    let check = |time_us: &dyn Fn(u64, u64) -> u64, expected: Option<usize>| {
        let bursts = (0..8).map(|burst| {
            let mut lat_ns: Vec<u64> = (1..=32).map(|at| time_us(burst, at) * 1000).collect();
            lat_ns.sort_unstable();
            BurstRecord { lat_ns }
        });
        let found = Servers::of(&bursts.collect::<Vec<_>>());
        assert_eq!(found.map(|found| found.number), expected);
    };
    // Service of 460 us; the client begins a request every 5 us.
    check(&|_, at| at.div_ceil(7) * 460 + at % 7 * 5, Some(7));
    check(&|_, at| at.div_ceil(2) * 460, Some(2));
    // The client adds half as much.
    check(&|_, at| at.div_ceil(7) * 400 + 200 - at * 4, Some(7));
    // One burst of three is disturbed.
    check(&|burst, at| at.div_ceil(7) * 460 + if burst % 3 == 0 { at * 90 } else { 0 }, Some(7));
    // Limiters of the same rate, without credits and with some, and of another.
    check(&|_, at| 460 + at * 66, None);
    check(&|_, at| 460 + at.saturating_sub(20) * 66, None);
    check(&|_, at| 460 + at * 2000, None);
    // All at once, and at the next of fixed times.
    check(&|_, _| 460, None);
    check(&|burst, at| 3000 + burst * 9000 + at / 20 * 9000, None);
}

#[test]
fn a_plateau_of_servers_is_no_limit() {
    let loads = [
        load("randread", 4, 1, 2100.0),
        load("randread", 4, 8, 15_100.0),
        load("randread", 4, 64, 15_100.0),
        load("read", 1024, 32, 3000.0),
    ];
    let mut run = record(&loads);
    assert_eq!(ids(&check(&run))[..1], ["iops-cap"]);
    let lat_ns: Vec<u64> = (0..32).map(|at| (at / 7 + 1) * 460_000).collect();
    let bursts = vec![BurstRecord { lat_ns }; 8];
    run.header.conditions.target.inspection =
        Some(InspectionRecord { bursts, ..InspectionRecord::default() });
    let left = check(&run);
    assert!(left.iter().all(|found| found.id != FindingId::IopsCap), "{left:?}");
}
