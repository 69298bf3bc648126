//! Names of simulated targets on the command line.

use fathom_catalog::{Catalog, Parameters, SimulatedTarget};
use fathom_volume::{
    Accounting, Cache, Fault, FaultKind, FirstTouch, Limit, LimitStage, TokenRate, VolumeLatency, VolumeModel,
};
use proptest::prelude::*;

const GIB: u64 = 1 << 30;
const SECOND: u64 = 1_000_000_000;

fn rate(tokens: u64) -> TokenRate {
    TokenRate::per_second(tokens).unwrap()
}

fn parse(text: &str) -> Result<SimulatedTarget, String> {
    SimulatedTarget::parse(Catalog::shipped(), text).map_err(|error| error.reason)
}

fn named(name: &str, ios: Option<Limit>, bytes: Option<Limit>) -> LimitStage {
    LimitStage { name: name.to_owned(), ios, bytes, ..LimitStage::default() }
}

/// Checks the model of `sim:custom?` with `text`, by default of 100 GiB.
fn check(text: &str, expected: VolumeModel) {
    let target = parse(&format!("sim:custom?{text}")).unwrap();
    assert_eq!((target.model, target.id.as_str()), (expected, "custom"), "{text}");
}

#[test]
fn custom_volumes_have_the_limits_that_are_given() {
    let plain = VolumeModel::unlimited(100 * GIB);
    let of = |tokens| Some(Limit::Rate(rate(tokens)));
    let ios = |tokens| named("volume", of(tokens), None);
    let credit = |base, burst, capacity| {
        let burst: Option<u64> = burst;
        Some(Limit::Credit { base: rate(base), burst: burst.map(rate), capacity, initial: capacity })
    };
    check("", plain.clone());
    check("size=50GiB", VolumeModel::unlimited(50 * GIB));
    check("iops=5000", VolumeModel { shared: vec![ios(5000)], ..plain.clone() });
    let both = named("volume", of(5000), of(200_000_000));
    check("iops=5000&bandwidth=200MB/s", VolumeModel { shared: vec![both], ..plain.clone() });
    let burst = named("volume", credit(150, Some(3000), 5_400_000), of(128 << 20));
    let text = "iops=150&burst_iops=3000&bucket_ios=5400000&bandwidth=128MiB";
    check(text, VolumeModel { shared: vec![burst], ..plain.clone() });
    let bytes = named("volume", None, credit(40 << 20, None, 1 << 40));
    check("bandwidth=40m&bucket_bytes=1TiB", VolumeModel { shared: vec![bytes], ..plain.clone() });
    // Separate: the shared value for both, unless one has its own.
    check(
        "iops=3000&shared=0&write_iops=1000",
        VolumeModel { reads: vec![ios(3000)], writes: vec![ios(1000)], ..plain.clone() },
    );
    check("read_iops=3000", VolumeModel { reads: vec![ios(3000)], ..plain.clone() });
    let together = VolumeModel { shared: vec![ios(3500)], reads: vec![ios(3000)], ..plain.clone() };
    check("iops=3500&read_iops=3000", together);
    let instance = LimitStage { slack_ns: 10_000_000, ..named("instance", of(4000), of(62_500_000)) };
    check(
        "iops=5000&instance_iops=4000&instance_bandwidth=62500kB",
        VolumeModel { shared: vec![instance, ios(5000)], ..plain.clone() },
    );
    let accounting = Accounting { unit_bytes: Some(16 << 10), ..Accounting::default() };
    let unit = LimitStage { accounting, ..ios(1000) };
    check("iops=1000&io_unit=16k", VolumeModel { shared: vec![unit], ..plain.clone() });
    let (read_latency, write_latency) = (VolumeLatency::fixed(500_000), VolumeLatency::fixed(2_000_000));
    check(
        "latency=500us&write_latency=2ms&parallelism=8",
        VolumeModel { read_latency, write_latency, parallelism: Some(8), ..plain.clone() },
    );
    let ahead = LimitStage { slack_ns: 10_000_000, ..ios(1000) };
    check("iops=1000&slack=10ms", VolumeModel { shared: vec![ahead], ..plain.clone() });
    assert_eq!(parse("sim:custom?slack=10ms").unwrap_err(), "slack= has no effect: the volume has no limit");
    let penalty = |counts_as, extra_ns, per_second| {
        let initialization = TokenRate::per_second(per_second);
        Some(FirstTouch { chunk_bytes: 512 << 10, counts_as, extra_ns, initialization })
    };
    check("first_touch=0", plain.clone());
    check("first_touch=1", VolumeModel { first_touch: penalty(2, 0, 0), ..plain.clone() });
    check("first_touch=5ms", VolumeModel { first_touch: penalty(1, 5_000_000, 0), ..plain.clone() });
    let initialized = |penalty| VolumeModel { first_touch: penalty, ..plain.clone() };
    check("initialization=100MiB", initialized(penalty(1, 0, 100 << 20)));
    check("initialization=9MB&first_touch=1ms", initialized(penalty(1, 1_000_000, 9_000_000)));
    let stall = |at, length_ns| Fault { at_ns: at * SECOND, length_ns, kind: FaultKind::Stall };
    let faults = vec![stall(30, 20 * SECOND), stall(90, u64::MAX)];
    check("stall=90s+inf&stall=30s+20s", VolumeModel { faults, ..plain });
    assert_eq!(parse("sim:custom?seed=7").unwrap().seed, 7);
}

#[test]
fn a_host_cache_is_given_by_mode_or_size() {
    let cache = |text: &str| parse(text).unwrap().model.cache;
    let read_only = Cache::read_only(4 * GIB, 100_000);
    assert_eq!(cache("sim:custom?iops=500&cache=None"), None);
    assert_eq!(cache("sim:custom?iops=500&cache=read-only"), Some(read_only.clone()));
    assert_eq!(cache("sim:custom?iops=500&cache=4GiB"), Some(read_only.clone()));
    let written = Cache { dirty_bytes: 4 * GIB / 5, ..read_only.clone() };
    assert_eq!(cache("sim:custom?cache=ReadWrite"), Some(written));
    let limit = named("cache", Some(Limit::Rate(rate(9000))), Some(Limit::Rate(rate(100 << 20))));
    let expected = Cache {
        dirty_bytes: 64 << 20,
        hits_per_million: 800_000,
        is_warm: true,
        reads: Some(limit.clone()),
        writes: Some(limit),
        ..Cache::read_only(GIB, 50_000)
    };
    let text = "cache=readwrite&cache_size=1GiB&cache_dirty=64MiB&cache_hit=80%&cache_warm=1&cache_latency=50us\
                &cache_iops=9000&cache_bandwidth=100MiB";
    assert_eq!(cache(&format!("sim:custom?{text}")), Some(expected.clone()));
    // A type that offers it; what is assumed is stated.
    let premium = parse(&format!("sim:azure-premium-ssd?size=1TiB&latency=1ms&{text}")).unwrap();
    assert_eq!(premium.model.cache, Some(expected));
    assert!(premium.assumptions.contains(&"its limits apply behind the host cache".to_owned()));
    let assumed = parse("sim:custom?cache=ReadWrite").unwrap().assumptions;
    let text =
        "its host cache is not described: assumed 4.0 GiB, 100 µs per request, 819 MiB of dirty data at most";
    assert_eq!(assumed[0], text);
    let added = parse("sim:aws-gp2?cache=ReadOnly").unwrap().assumptions;
    assert!(
        added.iter().any(|told| told.starts_with("its provider does not offer a host cache")),
        "{added:?}"
    );
    for (text, expected) in [
        (
            "sim:azure-ultra-disk?cache=ReadOnly&iops=1000&bandwidth=10MB",
            "its host caching modes are None; got ReadOnly",
        ),
        (
            "sim:custom?cache=maybe",
            "cache=maybe is not None, ReadOnly, ReadWrite or the size of a read cache, as in 4GiB",
        ),
        (
            "sim:custom?cache=1GiB&cache_size=2GiB",
            "cache=1GiB is not None, ReadOnly, ReadWrite or the size of a read cache, as in 4GiB",
        ),
        (
            "sim:custom?cache_hit=50",
            "the properties of a cache need its mode: add cache=ReadOnly or cache=ReadWrite",
        ),
        (
            "sim:custom?cache=ReadOnly&cache_hit=101",
            "cache_hit=101 is not a percentage from 0 to 100, as in 80%",
        ),
        ("sim:custom?cache=ReadOnly&cache_dirty=1MiB", "cache_dirty needs cache=ReadWrite"),
        ("sim:custom?cache=None&cache_warm=1", "cache=None has no properties: omit them"),
        ("sim:custom?cache=1kB", "cache.bytes give 0 lines; at least 8 are required"),
    ] {
        assert_eq!(parse(text).unwrap_err(), expected, "{text}");
    }
}

#[test]
fn catalogue_types_accept_their_parameters() {
    let entry = |id: &str, parameters: &Parameters| {
        Catalog::shipped().get(id).unwrap().resolve(parameters).unwrap().model
    };
    let sized = |gib: u64| Parameters { size_bytes: Some(gib * GIB), ..Parameters::default() };
    let model = |text: &str| parse(text).unwrap().model;
    assert_eq!(model("sim:aws-gp2-2016?size=50GiB"), entry("aws-gp2-2016", &sized(50)));
    let provisioned = Parameters { iops: Some(6000), bytes_per_second: Some(250 << 20), ..sized(200) };
    assert_eq!(model("sim:aws-gp3?size=200GiB&iops=6000&bandwidth=250MiB"), entry("aws-gp3", &provisioned));
    let billed = Parameters { on_demand: true, ..sized(1024) };
    assert_eq!(model("sim:azure-premium-ssd?size=1TiB&on_demand=1"), entry("azure-premium-ssd", &billed));
    assert_eq!(parse("sim:azure-premium-ssd?size=100GiB&tier=P30").unwrap().tier.as_deref(), Some("P30"));
    let premium = parse("sim:azure-premium-ssd?size=100GiB&latency=1ms&seed=3").unwrap();
    assert_eq!((premium.tier.as_deref(), premium.seed), (Some("P10"), 3));
    assert_eq!(premium.model.read_latency, VolumeLatency::fixed(1_000_000));
    assert!(premium.assumptions.is_empty(), "{:?}", premium.assumptions);
    let capped = model("sim:aws-gp2?size=50GiB&instance_iops=2000");
    assert_eq!(
        capped.shared.iter().map(|stage| stage.name.as_str()).collect::<Vec<_>>(),
        ["instance", "volume"]
    );
}

#[test]
fn invalid_targets_are_refused_with_the_reason() {
    for (text, expected) in [
        ("sim:aws-gp9", "unknown volume type 'aws-gp9'"),
        ("sim:", "no volume type given"),
        ("sim:?size=1GiB", "no volume type given"),
        ("sim:aws-io1", "its IOPS must be chosen, between 100 and 5000"),
        ("sim:custom?iops", "\"iops\" is not KEY=VALUE"),
        ("sim:custom?iops=0", "iops=0 is not a whole number above 0"),
        ("sim:custom?iops=many", "iops=many is not a whole number above 0"),
        ("sim:custom?iops=1&iops=2", "iops is given twice"),
        ("sim:custom?size=0", "size=0: the size must be above 0"),
        ("sim:custom?burst_iops=5", "a burst rate needs a baseline: add iops"),
        ("sim:custom?iops=5&burst_iops=9", "burst_iops needs a burst bucket: add bucket_ios"),
        (
            "sim:custom?write_iops=5&write_burst_iops=9",
            "write_burst_iops needs a burst bucket: add write_bucket_ios",
        ),
        ("sim:custom?iops=9&burst_iops=5&bucket_ios=1", "burst_iops=5 is below the baseline iops=9"),
        (
            "sim:aws-gp3?instance=m5.large&instance_iops=9",
            "instance= has limits: omit instance_iops= and instance_bandwidth=",
        ),
        (
            "sim:aws-gp3?instance=Standard_D2s_v5",
            "Standard_D2s_v5 is an instance of Azure: a volume of the type aws-gp3 cannot be attached to it",
        ),
        (
            "sim:aws-instance-store-nvme?tier=i3.large&instance=m5.large",
            "it is a part of its instance: omit instance",
        ),
        ("sim:custom?instance=m0.large", "unknown instance 'm0.large'"),
        ("sim:custom?parallelism=99999999999", "parallelism 4294967295 is not between 1 and 1048576"),
        ("sim:custom?shared=yes", "shared=yes is not 0 or 1"),
        ("sim:custom?first_touch=2x", "first_touch=2x is not 0, 1 or a time, as in 5ms"),
        ("sim:custom?stall=5s+0s", "stall=5s+0s has no length"),
        ("sim:custom?stall=5s+9s&stall=6s+1s", "two stalls overlap"),
        ("sim:custom?latency=2h", "latency=2h is not a time of at most an hour, as in 500us or 2s"),
        ("sim:aws-gp2?size=50", "size=50: '50' has no unit: write 50g for GiB, 50m for MiB or 50b for bytes"),
        ("sim:azure-premium-ssd?size=1TiB&tier=P20", "its tier P20 holds at most 512 GiB"),
        ("sim:aws-gp2?first_touch=1", "its first-touch penalty is not published: omit first_touch"),
        ("sim:aws-gp2?on_demand=1", "it has no on-demand bursts of a published rate: omit on_demand"),
        (
            "sim:azure-premium-ssd?size=500GiB&on_demand=1",
            "it has no on-demand bursts of a published rate: omit on_demand",
        ),
    ] {
        assert_eq!(parse(text).unwrap_err(), expected, "{text}");
    }
    let hint = |text: &str| SimulatedTarget::parse(Catalog::shipped(), text).unwrap_err().hint().unwrap();
    for (text, expected) in [
        ("sim:aws-gp9", "did you mean aws-gp2, aws-gp3?"),
        ("sim:aws-io1", "choose by size=, iops=, bandwidth= or tier=; see `fathom catalog show aws-io1`"),
        ("sim:tencent-cbs-basic", "see `fathom catalog show tencent-cbs-basic`"),
        ("sim:custom?iops=0", "use, for example, sim:custom?iops=3000"),
        ("sim:", "use sim:ID?size=50GiB"),
    ] {
        assert!(hint(text).starts_with(expected), "{text}: {}", hint(text));
    }
    let unknown = parse("sim:custom?iosp=5").unwrap_err();
    assert!(unknown.starts_with("unknown parameter iosp; use one of size, io_unit,"), "{unknown}");
    assert!(SimulatedTarget::is_one("sim:custom") && !SimulatedTarget::is_one("/dev/sim:custom"));
}

#[test]
fn an_instance_is_in_front_of_the_volume() {
    for (text, assumptions) in [
        ("sim:aws-gp3?size=500GiB&iops=6000&instance=m5.large", 2),
        ("sim:custom?iops=6000&instance=m5.large", 2),
    ] {
        let target = parse(text).unwrap();
        let names: Vec<&str> = target.model.shared.iter().map(|stage| stage.name.as_str()).collect();
        assert_eq!(names, ["instance", "volume"], "{text}");
        let capacity = (18_750 - 3_600) * 1_800;
        let credit =
            Limit::Credit { base: rate(3_600), burst: Some(rate(18_750)), capacity, initial: capacity };
        assert_eq!(target.model.shared[0].ios, Some(credit), "{text}");
        let of_instance = target.assumptions.iter().filter(|text| text.contains("m5.large"));
        assert_eq!(of_instance.count(), assumptions, "{text}");
    }
}

#[test]
fn shared_limits_are_had_in_equal_parts() {
    let ios = |text: &str, at: usize| parse(text).unwrap().model.shared[at].ios.unwrap().baseline();
    // 3,000 IOPS for all disks and 6 for each GiB of all of them.
    assert_eq!(ios("sim:gcp-pd-balanced?size=500GiB", 0), rate(6_000));
    assert_eq!(ios("sim:gcp-pd-balanced?size=500GiB&shared_by=4", 0), rate(3_750));
    let read = |text: &str| ios(text, 0).tokens() as f64 / ios(text, 0).per_ns() as f64;
    let whole = "sim:gcp-hyperdisk-ml?size=1TiB&bandwidth=2000MiB";
    assert!((read(whole) / read(&format!("{whole}&shared_by=8")) - 8.0).abs() < 1e-9);
    let instance = "sim:aws-gp3?size=100GiB&instance=m5.large";
    assert_eq!(ios(&format!("{instance}&shared_by=3"), 0), rate(1_200));
    assert_eq!(ios(&format!("{instance}&shared_by=3"), 1), ios(instance, 1), "its own are not shared");
    assert_eq!(
        parse("sim:aws-gp3?shared_by=2").unwrap_err(),
        "its limits are its own: omit shared_by, or add instance"
    );
}

#[test]
fn limits_that_are_dealt_out_in_windows_let_requests_be_ahead() {
    let target = parse("sim:yandex-network-ssd?size=128GiB").unwrap();
    assert!(target.model.shared.iter().chain(&target.model.reads).all(|stage| stage.slack_ns == 100_000_000));
}

proptest! {
    #[test]
    fn any_text_is_refused_or_gives_a_volume(
        id in prop_oneof![Just("custom".to_owned()), "[a-z0-9-]{0,12}", any_id()],
        parts in prop::collection::vec((any_key(), any_value()), 0..5),
    ) {
        let parts: Vec<String> = parts.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        if let Ok(target) = parse(&format!("sim:{id}?{}", parts.join("&"))) {
            prop_assert!(fathom_volume::Volume::new(&target.model, target.seed).is_ok());
        }
    }
}

fn any_id() -> impl Strategy<Value = String> {
    let ids: Vec<String> = Catalog::shipped().entries().map(|entry| entry.id().to_owned()).collect();
    prop::sample::select(ids)
}

fn any_key() -> impl Strategy<Value = String> {
    let keys = [
        "size", "iops", "burst_iops", "bucket_ios", "bandwidth", "burst_bandwidth", "bucket_bytes",
        "io_unit", "latency", "parallelism", "slack", "shared", "instance", "instance_iops",
        "instance_bandwidth", "first_touch", "seed", "stall", "read_iops", "write_bandwidth", "tier",
        "on_demand", "cache", "cache_size", "cache_hit", "cache_dirty", "nonsense",
    ];
    prop::sample::select(keys.to_vec()).prop_map(str::to_owned)
}

fn any_value() -> impl Strategy<Value = String> {
    let likely = [
        "0", "1", "100", "3000", "50GiB", "1TiB", "18446744073709551615", "200MB", "5ms", "1s+2s", "1s+inf",
        "-1", "1e9", "P10", "ReadOnly", "ReadWrite", "m5.large",
    ];
    prop_oneof![
        prop::sample::select(likely.to_vec()).prop_map(str::to_owned),
        any::<u64>().prop_map(|n| n.to_string()),
        ".{0,6}"
    ]
}
