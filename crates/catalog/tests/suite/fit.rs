//! Volumes for a need, computed by hand; and a check that simulated volumes of the proposed types meet the need.

use fathom_catalog::{Catalog, Fit, LatencyNeed, Parameters, SearchScope, VolumeNeed, VolumeOffer};
use fathom_model::Op;
use fathom_predict::{OfferedLoad, RecurringBurst, reach};
use fathom_volume::{Limit, LimitStage, Volume, VolumeLatency, VolumeModel, VolumeRequest};
use proptest::prelude::*;

const GIB: u64 = 1 << 30;
const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * 1024.0;
const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const DAY: u64 = 86_400 * SECOND;

/// `rate` random requests of `block` bytes per second, on `gib` GiB.
fn random(rate: f64, block: f64, gib: u64) -> VolumeNeed {
    VolumeNeed {
        size_bytes: gib * GIB,
        load: OfferedLoad::of(block, false),
        iops: rate,
        in_ios: true,
        in_bytes: false,
        burst: None,
        besides: Vec::new(),
        latency: Vec::new(),
        persistent: false,
        instance: None,
    }
}

fn burst(need: VolumeNeed, length_ns: u64, every_ns: u64) -> VolumeNeed {
    VolumeNeed { burst: Some(RecurringBurst { length_ns, period_ns: every_ns, iops_between: 0.0 }), ..need }
}

fn fit(need: &VolumeNeed) -> Fit {
    Catalog::shipped().fit(need, SearchScope::default())
}

/// The choice for `id`: GiB, IOPS, MiB/s; or the reason why there is none.
fn of(fit: &Fit, id: &str) -> String {
    let whole =
        |part: Option<u64>, unit: u64| part.map(|part| format!(" {}", part / unit)).unwrap_or_default();
    let chosen = |offer: &VolumeOffer| {
        let Parameters { size_bytes, iops, bytes_per_second, .. } = &offer.parameters;
        format!("{}{}{}", whole(*size_bytes, GIB), whole(*iops, 1), whole(*bytes_per_second, 1 << 20))
    };
    let offer = fit.offers().find(|offer| offer.id == id).map(chosen);
    let why = || fit.others.iter().find(|other| other.id == id).map(|other| other.why.clone());
    offer.map(|offer| offer.trim().to_owned()).or_else(why).unwrap_or_default()
}

fn month(fit: &Fit, id: &str) -> f64 {
    let offer = fit.offers().find(|offer| offer.id == id).unwrap();
    (offer.month.as_ref().unwrap().total * 100.0).round() / 100.0
}

#[track_caller]
fn check(need: &VolumeNeed, expected: &[(&str, &str)]) -> Fit {
    let fit = fit(need);
    for (id, text) in expected {
        assert_eq!(of(&fit, id), *text, "{id}");
    }
    fit
}

#[test]
fn iops_and_throughput_together() {
    // 5,000 IOPS and 200 MiB/s are requests of 40.96 KiB.
    let need = VolumeNeed { in_bytes: true, ..random(5000.0, 200.0 * MIB / 5000.0, 500) };
    let fit = check(
        &need,
        &[
            // 5,000 / 3 a GiB = 1,666.7 GiB; 250 MiB/s.
            ("aws-gp2", "1667"),
            // 5,000 of them carry 0.25 MiB/s each at most: 1,250.
            ("aws-gp3", "500 5000 200"),
            // 3,000 + 6 * 500 = 6,000; 140 + 0.28 * 500 = 280 MiB/s.
            ("gcp-pd-balanced", "500"),
            // 5,000 / 0.75 reads a GiB = 6,666.7 GiB.
            ("gcp-pd-standard", "6667"),
            ("linode-block-storage", "500"),
            ("aws-io1", "500 5000"),
            // P30 has 5,000 and 200 MB/s, which are 190.7 MiB/s: P40, 7,500 and 250 MB/s.
            ("azure-premium-ssd", "2048"),
            ("aws-st1", "at most 500 IOPS of 41.0 KiB at 16.0 TiB"),
            ("aws-ebs-standard", "its provider publishes a range, not a rule"),
            ("gcp-local-ssd", "its bandwidth is not published"),
        ],
    );
    let usd = &fit.priced.iter().find(|priced| priced.currency == "USD").unwrap().offers;
    let order: Vec<(&str, f64, bool)> = usd
        .iter()
        .map(|offer| {
            let bill = offer.month.as_ref().unwrap();
            (offer.id.as_str(), (bill.total * 100.0).round() / 100.0, bill.is_whole())
        })
        .collect();
    assert_eq!(
        order,
        [
            // 500 GiB at 0.0425.
            ("oci-block-balanced", 21.25, true),
            // 500 GiB at 0.10.
            ("gcp-pd-balanced", 50.0, true),
            ("linode-block-storage", 50.0, true),
            ("vultr-block-nvme", 50.0, true),
            // 500 GiB at 0.08, 2,000 IOPS beyond the included 3,000 at 0.005, 75 MiB/s beyond 125 at 0.04.
            ("aws-gp3", 53.0, true),
            // 500 GiB at 0.0803, 2,000 IOPS at 0.00511, 85 MB/s beyond 125 at 0.04015.
            ("azure-premium-ssd-v2", 53.78, true),
            // 500 GiB at 0.15.
            ("tencent-cbs-enhanced-ssd", 75.0, true),
            ("tencent-cbs-ssd", 75.0, true),
            ("tencent-cbs-tremendous-ssd", 75.0, true),
            // 500 GiB at 0.153; at 0.17; at 0.2295; 1,667 at 0.10.
            ("alibaba-essd-pl1", 76.5, true),
            ("gcp-pd-ssd", 85.0, true),
            ("oci-block-ultra-high-120", 114.75, true),
            ("aws-gp2", 166.7, true),
            // 500 GiB at 0.125 and 5,000 IOPS at 0.032.
            ("gcp-hyperdisk-extreme", 222.5, true),
            // A P40, whatever of it is used.
            ("azure-premium-ssd", 259.05, true),
            // 6,667 GiB at 0.04.
            ("gcp-pd-standard", 266.68, true),
            // 500 GiB at 0.11972, 5,000 IOPS at 0.04964, 210 MB/s at 0.3495.
            ("azure-ultra-disk", 381.46, true),
            // 500 GiB at 0.125 and 5,000 at 0.065.
            ("aws-io1", 387.5, true),
            ("aws-io2-block-express", 387.5, true),
            ("gcp-pd-extreme", 387.5, true),
            // An E80, and I/Os at an unknown price.
            ("azure-standard-ssd", 2457.6, false),
        ]
    );
    // 1,667 GiB of gp2 are 5,001 IOPS and 250 MiB/s for 166.70.
    let (per_iops, per_bytes) = (usd[12].month_per_1000_iops, usd[12].month_per_100_mib_per_second);
    assert!((per_iops.unwrap() - 166.7 / 5.001).abs() < 1e-6);
    assert!((per_bytes.unwrap() - 166.7 / 2.5).abs() < 1e-6);
    assert!(fit.priced.iter().all(|fathom_catalog::PricedOffers { currency, offers }| {
        offers.iter().all(|offer| offer.month.as_ref().unwrap().price.currency == *currency)
    }));
}

#[test]
fn iops_alone() {
    let fit = check(
        &random(10_000.0, 4.0 * KIB, 100),
        &[
            // 10,000 / 3 = 3,333.3; (10,000 - 3,000) / 6 = 1,166.7; (10,000 - 6,000) / 30 = 133.3.
            ("aws-gp2", "3334"),
            ("gcp-pd-balanced", "1167"),
            ("gcp-pd-ssd", "134"),
            // 50 a GiB: 200 GiB. 1,000 a GiB: as many as are needed.
            ("aws-io1", "200 10000"),
            ("aws-io2-block-express", "100 10000"),
            // (10,000 - 1,800) / 30 = 273.3; / 12 = 683.3.
            ("tencent-cbs-ssd", "274"),
            ("alibaba-essd-pl0", "684"),
            (
                "linode-block-storage",
                "8,000 IOPS of 4.0 KiB sustained; 12,000 IOPS of 4.0 KiB for 1 min at most",
            ),
            // P60 has 16,000, the smallest with 10,000 or more.
            ("azure-premium-ssd", "8192"),
        ],
    );
    assert_eq!(month(&fit, "aws-io1"), 25.0 + 650.0);
    assert_eq!(month(&fit, "aws-io2-block-express"), 12.5 + 650.0);
    assert_eq!(month(&fit, "gcp-pd-ssd"), 22.78);
}

#[test]
fn throughput_alone() {
    let need = VolumeNeed {
        load: OfferedLoad::of(MIB, true),
        in_ios: false,
        in_bytes: true,
        ..random(500.0, MIB, 1024)
    };
    check(
        &need,
        &[
            // 500 MiB/s at 40 a TiB: 12.5 TiB. At 12 a TiB it never comes to more than 192.
            ("aws-st1", "12800"),
            ("aws-sc1", "at most 192 MiB/s at 16.0 TiB"),
            // 2,000 units of 256 KiB a second, and 0.25 MiB/s for each: the 3,000 that are included do.
            ("aws-gp3", "1024 3000 500"),
            ("aws-gp2", "at most 250 MiB/s at 16.0 TiB"),
            // (500 - 140) / 0.28 = 1,285.7; (500 - 240) / 0.48 = 541.7, and 1,024 are asked for.
            ("gcp-pd-balanced", "1286"),
            ("gcp-pd-ssd", "1024"),
            ("aws-io1", "1024 2000"),
        ],
    );
}

#[test]
fn large_requests_count_in_units() {
    // 1,000 requests of 1 MiB in random order are 4,000 units of 256 KiB and 1,000 MiB/s.
    check(
        &random(1000.0, MIB, 100),
        &[("aws-gp3", "100 4000 1000"), ("aws-io2-block-express", "100 4000"), ("gcp-pd-ssd", "1584")],
    );
    // 200 of 4 KiB in random order on a hard disk cost a whole MiB each: 200 MiB/s, at 40 a TiB.
    check(&random(200.0, 4.0 * KIB, 125), &[("aws-st1", "5120")]);
}

#[test]
fn a_daily_burst_of_half_an_hour() {
    let need = burst(random(3000.0, 4.0 * KIB, 100), 30 * MINUTE, DAY);
    let fit = check(
        &need,
        &[
            // 100 GiB earn 300 a second: (3,000 - 300) * 1,800 s = 4.86 M of 5.4 M credits, which 84,600 s bring back.
            ("aws-gp2", "100"),
            // P6, 64 GiB, lacks the space; P10 has 500 and bursts to 3,500: 2,500 * 1,800 s = 4.5 M of 5.4 M.
            ("azure-premium-ssd", "128"),
        ],
    );
    assert_eq!(month(&fit, "aws-gp2"), 10.0);
    // Two hours: 3,000 - b <= 5.4 M / 7,200 s = 750, so b >= 2,250: 750 GiB.
    check(&burst(random(3000.0, 4.0 * KIB, 100), 120 * MINUTE, DAY), &[("aws-gp2", "750")]);
    // 20 minutes of each hour: (3,000 - b) * 1,200 <= b * 2,400, so b >= 1,000: 334 GiB.
    check(&burst(random(3000.0, 4.0 * KIB, 100), 20 * MINUTE, 60 * MINUTE), &[("aws-gp2", "334")]);
    // With 500 a second in between: (3,000 - b) * 1,200 <= (b - 500) * 2,400, so b >= 1,333.3: 445 GiB.
    let mut busy = burst(random(3000.0, 4.0 * KIB, 100), 20 * MINUTE, 60 * MINUTE);
    busy.burst.as_mut().unwrap().iops_between = 500.0;
    check(&busy, &[("aws-gp2", "445")]);
    // Windows of a minute: a minute in five, but not two.
    let minutes = |count: u64| burst(random(12_000.0, 4.0 * KIB, 100), count * MINUTE, 5 * MINUTE);
    check(&minutes(1), &[("linode-block-storage", "100")]);
    let why = "12,000 IOPS of 4.0 KiB for 1 min at most, 8,000 IOPS of 4.0 KiB at baseline: not enough for each \
               burst, or refills too slowly";
    check(&minutes(2), &[("linode-block-storage", why)]);
}

#[test]
fn latency_limits_exclude_types() {
    let below = |name: &str, per_million, most_ns| {
        let latency =
            LatencyNeed { statistic: name.to_owned(), per_million, most_ns, of_reads: true, of_writes: true };
        VolumeNeed { latency: vec![latency], ..random(500.0, 4.0 * KIB, 500) }
    };
    let assumed = "assumed for its kind: none is published";
    check(
        &below("mean", None, 400_000),
        &[
            ("alibaba-essd-pl1", "500"),
            ("aws-gp2", &format!("its mean is about 500 µs, {assumed}")),
            ("aws-st1", &format!("its mean is about 5.00 ms, {assumed}")),
            ("gcp-hyperdisk-balanced", "its mean is about 2.00 ms, as published"),
        ],
    );
    let fit =
        check(&below("p99", Some(990_000), 5_000_000), &[("aws-gp2", "500"), ("alibaba-essd-pl1", "500")]);
    let notes = |id: &str| fit.offers().find(|offer| offer.id == id).unwrap().notes.join("; ");
    assert!(notes("aws-gp2").contains("its latency is not published"), "{}", notes("aws-gp2"));
    assert!(!notes("alibaba-essd-pl1").contains("latency"), "{}", notes("alibaba-essd-pl1"));
}

#[test]
fn instances_limit_their_volumes() {
    let on =
        |instance: &str| VolumeNeed { instance: Some(instance.to_owned()), ..random(5000.0, 4.0 * KIB, 500) };
    let small = fit(&on("m5.large"));
    assert!(
        of(&small, "aws-gp3").starts_with("3,600 IOPS of 4.0 KiB sustained"),
        "{}",
        of(&small, "aws-gp3")
    );
    assert_eq!(of(&small, "aws-instance-store-nvme"), "it is a part of its instance");
    let large = check(&on("m5.2xlarge"), &[("aws-gp3", "500 5000 125")]);
    let offer = large.offers().find(|offer| offer.id == "aws-gp3").unwrap();
    assert_eq!(offer.parameters.instance.as_deref(), Some("m5.2xlarge"));
}

#[test]
fn persistent_data_excludes_instance_stores() {
    let need = random(100_000.0, 4.0 * KIB, 400);
    check(&need, &[("aws-instance-store-nvme", "400"), ("aws-io2-block-express", "400 100000")]);
    // 35,000 writes of i3.large are too few; i3.xlarge has 70,000 and i3.2xlarge 180,000.
    let tier = |need: &VolumeNeed| {
        fit(need)
            .offers()
            .find(|offer| offer.id == "aws-instance-store-nvme")
            .and_then(|offer| offer.tier.clone())
    };
    assert_eq!(tier(&need).as_deref(), Some("i3.2xlarge"));
    let reads =
        VolumeNeed { load: OfferedLoad { read_fraction: Some(1.0), ..need.load.clone() }, ..need.clone() };
    assert_eq!(tier(&reads).as_deref(), Some("i3.large"));
    let persistent = VolumeNeed { persistent: true, ..need };
    check(&persistent, &[("aws-instance-store-nvme", "its data are lost with the instance")]);
}

#[test]
fn capacity_alone() {
    let need = VolumeNeed { in_ios: false, ..random(0.0, 4.0 * KIB, 20_000) };
    check(
        &need,
        &[
            ("aws-gp2", "not available above 16384 GiB"),
            ("aws-gp3", "20000 3000 125"),
            ("azure-standard-hdd", "32767"),
            ("aws-io2-block-express", "20000 100"),
        ],
    );
}

#[test]
fn separate_limits_of_reads_and_writes() {
    let need = |reads| VolumeNeed {
        load: OfferedLoad { read_fraction: reads, ..OfferedLoad::of(4.0 * KIB, false) },
        ..random(3000.0, 0.0, 100)
    };
    // 0.75 reads and 1.5 writes a GiB.
    check(&need(Some(1.0)), &[("gcp-pd-standard", "4000")]);
    check(&need(Some(0.0)), &[("gcp-pd-standard", "2000")]);
    check(&need(Some(0.5)), &[("gcp-pd-standard", "2000")]);
    check(&need(None), &[("gcp-pd-standard", "4000")]);
}

#[test]
fn offers_are_filtered_by_provider() {
    let need = random(1000.0, 4.0 * KIB, 100);
    let of = |name: &str| {
        Catalog::shipped().fit(&need, SearchScope { provider: Some(name), ..SearchScope::default() })
    };
    let all = of("aws");
    assert!(all.offers().count() > 3 && all.offers().all(|offer| offer.provider == "AWS"));
    assert_eq!(of("linode").offers().count(), 1);
    assert_eq!(of("Akamai/Linode").offers().count(), 1);
    assert_eq!((of("nobody").offers().count(), of("nobody").others.len()), (0, 0));
}

/// The model at the start of a recurring burst: with the credits that accrue between bursts, or none for a permanent
/// need. Without latency.
fn prepared(model: &VolumeModel, need: &VolumeNeed) -> VolumeModel {
    let mut model = model.clone();
    (model.read_latency, model.write_latency) = (VolumeLatency::fixed(0), VolumeLatency::fixed(0));
    let stages = model.shared.iter_mut().chain(&mut model.reads).chain(&mut model.writes);
    for LimitStage { ios, bytes, .. } in stages {
        for limit in [ios, bytes].into_iter().flatten() {
            if let Limit::Credit { base, capacity, initial, .. } = limit {
                let earned = |ns: u64| u64::try_from(base.in_ns(ns)).unwrap_or(u64::MAX);
                *initial =
                    need.burst.map_or(0, |burst| earned(burst.period_ns - burst.length_ns).min(*capacity));
            }
        }
    }
    model
}

/// Delay of the last request of a need whose requests are evenly spaced over `seconds`, ns.
fn lateness(model: &VolumeModel, need: &VolumeNeed, op: Op, seconds: f64) -> u64 {
    let mut volume = Volume::new(&prepared(model, need), 1).unwrap();
    let bytes = need.load.mean_bytes() as u32;
    let places = model.size_bytes / u64::from(bytes);
    let count = (need.iops * seconds) as u64;
    let mut late = 0;
    for index in 0..count {
        let due = (index as f64 / need.iops * 1e9) as u64;
        // A prime stride, so that no request begins at the end of another.
        let place = if need.load.sequential { index % places } else { index * 7919 % places };
        let request = VolumeRequest { op, offset: place * u64::from(bytes), bytes };
        late = volume.submit(due, &request).at_ns.saturating_sub(due);
    }
    late
}

/// Largest delay of a request without a queue: limits apply over 10 ms, and the whole units that it is charged accrue
/// at the baseline.
fn turn(model: &VolumeModel, need: &VolumeNeed) -> u64 {
    let bytes = need.load.mean_bytes();
    let stages = model.shared.iter().chain(&model.reads).chain(&model.writes);
    let of = |stage: &LimitStage| {
        let unit = stage.accounting.unit_bytes.map_or(bytes, f64::from);
        let units = (bytes / unit).ceil();
        let charged = if stage.accounting.whole_units { units * unit } else { bytes };
        let time =
            |limit: Option<Limit>, tokens: f64| limit.map_or(0.0, |limit| tokens / limit.baseline().as_f64());
        time(stage.ios, units) + time(stage.bytes, charged)
    };
    20_000_000 + (stages.map(of).sum::<f64>() * 2e9) as u64
}

#[test]
fn types_that_are_no_longer_sold_are_asked_for_and_currencies_ordered() {
    let need = random(1000.0, 4096.0, 100);
    let with = |historical, currency| {
        Catalog::shipped().fit(&need, SearchScope { historical, currency, ..SearchScope::default() })
    };
    let ids = |fit: &Fit| fit.offers().map(|offer| offer.id.clone()).collect::<Vec<_>>();
    let (sold, all) = (with(false, None), with(true, None));
    assert!(sold.left_out.contains(&"aws-gp2-2016".to_owned()), "{:?}", sold.left_out);
    assert!(
        !ids(&sold).contains(&"aws-gp2-2016".to_owned()) && ids(&all).contains(&"aws-gp2-2016".to_owned())
    );
    assert_eq!(all.left_out, [] as [&str; 0]);
    let old = all.offers().find(|offer| offer.id == "aws-gp2-2016").unwrap();
    assert!(old.notes.contains(&"no longer sold with these rules".to_owned()), "{:?}", old.notes);
    let currencies = |fit: &Fit| fit.priced.iter().map(|one| one.currency.clone()).collect::<Vec<_>>();
    assert_eq!(currencies(&with(false, Some("USD"))), ["USD", "CNY", "EUR", "RUB"]);
    assert_eq!(currencies(&with(false, Some("CNY"))), ["CNY", "EUR", "RUB", "USD"]);
    assert_eq!(currencies(&with(false, Some("EUR"))), ["EUR", "CNY", "RUB", "USD"]);
    // Offers of which no part has a price stand behind all others.
    for fit in [&sold, &all] {
        assert!(
            fit.priced.iter().flat_map(|one| &one.offers).all(|offer| !offer
                .month
                .as_ref()
                .unwrap()
                .parts
                .is_empty())
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn proposed_volumes_meet_the_need(
        rate in prop::sample::select(vec![40.0, 137.0, 1000.0, 2900.0, 4999.0]),
        kib in prop::sample::select(vec![4.0, 16.0, 64.0, 260.0, 1024.0]),
        gib in 1u64..2000,
        is_sequential in any::<bool>(),
        length_s in prop::option::of(1u64..40),
        every_s in 60u64..200,
    ) {
        let need = VolumeNeed { load: OfferedLoad::of(kib * KIB, is_sequential), ..random(rate, kib * KIB, gib) };
        let need = match length_s {
            Some(length) => burst(need, length * SECOND, every_s * SECOND),
            None => need,
        };
        let seconds = length_s.map_or(20.0, |length| length as f64);
        let found = fit(&need);
        prop_assert!(
            found.offers().count() + found.others.len() + found.left_out.len()
                == Catalog::shipped().entries().count()
        );
        for offer in found.offers() {
            prop_assert!(offer.parameters.size_bytes >= Some(need.size_bytes));
            let model = Catalog::shipped().get(&offer.id).unwrap().resolve(&offer.parameters).unwrap().model;
            for op in [Op::Read, Op::Write] {
                let late = lateness(&model, &need, op, seconds);
                prop_assert!(late <= turn(&model, &need), "{} {op:?} is {late} ns late: {offer:?}", offer.id);
            }
        }
    }

    #[test]
    fn smaller_choices_do_not_meet_the_need(rate in 100.0f64..20_000.0, gib in 1u64..500) {
        let need = random(rate.round(), 4.0 * KIB, gib);
        for offer in fit(&need).offers().filter(|offer| offer.tier.is_none()) {
            let entry = Catalog::shipped().get(&offer.id).unwrap();
            let smaller = offer.parameters.size_bytes.unwrap() - GIB;
            let fewer = offer.parameters.iops.map(|iops| iops - 1);
            let parameters = [
                Parameters { size_bytes: Some(smaller), ..offer.parameters.clone() },
                Parameters { iops: fewer, ..offer.parameters.clone() },
            ];
            let is_least = smaller < need.size_bytes;
            for (index, parameters) in parameters.iter().enumerate() {
                if (index == 0 && is_least) || (index == 1 && fewer.is_none()) {
                    continue;
                }
                let Ok(resolved) = entry.resolve(parameters) else { continue };
                let rate = reach(&resolved.model, &need.load).iops.unwrap();
                prop_assert!(rate < need.iops, "{} would do with {parameters:?}", offer.id);
            }
        }
    }
}

#[test]
fn user_types_without_a_largest_size() {
    let text = "[volume.mine]\nprovider = \"Me\"\ntype_name = \"Box\"\nmedia = \"ssd\"\nlifecycle = \"current\"\nsource = \"x\"\n\
                as_of = \"2026\"\nconfidence = \"quoted\"\nlimits_shared_read_write = true\niops_model = \"linear_clamped\"\n\
                iops_per_gib = 2\nburst_model = \"none\"\n";
    let own = Catalog::parse("mine.toml", text).unwrap();
    let of = |need: &VolumeNeed| {
        let fit = own.fit(need, SearchScope::default());
        let size = fit.offers().next().and_then(|offer| offer.parameters.size_bytes).map(|bytes| bytes / GIB);
        (size, fit.others.first().map(|other| other.why.clone()))
    };
    assert_eq!(of(&random(1001.0, 4.0 * KIB, 10)), (Some(501), None));
    // The rate of larger requests is not published.
    let why = Some("its bandwidth is not published".to_owned());
    assert_eq!(of(&random(1001.0, 64.0 * KIB, 10)), (None, why));
    let why = Some("at most 131,072 IOPS of 4.0 KiB".to_owned());
    assert_eq!(of(&random(1e6, 4.0 * KIB, 10)), (None, why));
}
