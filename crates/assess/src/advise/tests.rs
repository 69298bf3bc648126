//! Advice on loads whose answer is known.

use std::io::Write;

use fathom_analysis::advise::ObjectiveSource;
use fathom_model::Nanos;

use super::*;

fn settings(candidates: &[&str]) -> AdviseSettings {
    AdviseSettings {
        files: Vec::new(),
        device: None,
        stated: None,
        candidates: candidates.iter().map(|&name| name.to_owned()).collect(),
        current: None,
        instance: None,
        provider: None,
        size: None,
        expectations: Vec::new(),
        growth: 1.0,
        order: AdviceOrder::Price,
        historical: false,
        currency: "USD".to_owned(),
        prices: Vec::new(),
        types: VolumeTypes::default(),
    }
}

fn stated(need: NeedSettings, candidates: &[&str]) -> AdviseSettings {
    AdviseSettings { stated: Some(need), ..settings(candidates) }
}

/// A file with this text, and its path.
fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// Sums of CloudWatch at five minutes: reads of 16 KiB, the I/Os of each interval, with a mean latency in ms.
fn cloudwatch(sums: &[u64], latency_ms: f64) -> tempfile::NamedTempFile {
    let mut text =
        "Timestamp,VolumeReadOps,VolumeReadBytes,VolumeWriteOps,VolumeWriteBytes,VolumeTotalReadTime\n"
            .to_owned();
    for (index, ops) in sums.iter().enumerate() {
        let (day, minute) = (1 + index / 288, index % 288 * 5);
        let time = format!("2026-11-{day:02}T{:02}:{:02}:00Z", minute / 60, minute % 60);
        text += &format!("{time},{ops},{},0,0,{}\n", ops * 16_384, *ops as f64 * latency_ms / 1e3);
    }
    file(&text)
}

fn observed(file: &tempfile::NamedTempFile, candidates: &[&str]) -> AdviseSettings {
    AdviseSettings { files: vec![file.path().to_owned()], ..settings(candidates) }
}

#[test]
fn stated_prices_rank_candidates() {
    let need = NeedSettings { iops: Some(1000), ..NeedSettings::default() };
    let names = ["custom?iops=2000&latency=1ms", "custom?iops=3000&latency=1ms", "aws-gp3?size=100GiB"];
    let price = |place: usize, per_month: f64| StatedPrice {
        volume: names[place].to_owned(),
        per_month,
        currency: "USD".to_owned(),
    };
    let asked = AdviseSettings {
        prices: vec![price(0, 9.0), price(1, 4.0), price(2, 6.5)],
        instance: Some("m6i.large".to_owned()),
        ..stated(need, &names)
    };
    let advice = advise(&asked).unwrap();
    let totals: Vec<f64> = advice.candidates.iter().map(|one| one.price.as_ref().unwrap().total).collect();
    assert_eq!(totals, [4.0, 6.5, 9.0]);
    let other = StatedPrice { volume: "custom".to_owned(), ..price(0, 1.0) };
    let is_of = ["custom", "custom?instance=m5.large", "customé", "custom2"].map(|name| other.is_of(name));
    assert_eq!(is_of, [true, true, false, false]);
    let error = advise(&AdviseSettings { prices: vec![other], ..asked }).unwrap_err();
    assert!(error.message.contains("--price custom"), "{}", error.message);
}

#[test]
fn bursts_are_served_by_credits_where_these_suffice() {
    let burst = Some((Nanos::from_secs(600), Nanos::from_secs(86_400)));
    let need = NeedSettings {
        iops: Some(3000),
        burst,
        baseline_iops: Some(50),
        size: Some(50 << 30),
        ..NeedSettings::default()
    };
    let advice = advise(&stated(need, &["aws-gp2"])).unwrap();
    let answer = advice.answer().unwrap();
    // 150 IOPS and a bucket that lasts for 1,895 s at 3,000.
    assert_eq!(answer.parameters.size_bytes, Some(50 << 30));
    let predicted = answer.predicted.first().unwrap();
    assert_eq!((predicted.exhausted_ns, predicted.throttled_share), (None, 0.0));
    let expected = (5_400_000.0 - 2850.0 * 600.0) / 5_400_000.0;
    assert!((predicted.lowest_credits.unwrap().share - expected).abs() < 1e-3, "{predicted:?}");
}

#[test]
fn credits_that_run_out_after_days_do_not_sustain_a_stated_load() {
    // st1 of 1 TiB has 40 MiB/s and credits for a day and a half at 50 MB/s.
    let need = NeedSettings { bytes_per_second: Some(50_000_000), ..NeedSettings::default() };
    let advice = advise(&stated(need, &["aws-st1?size=1TiB"])).unwrap();
    assert!(advice.candidates[0].verdict.verdict.is_missed(), "{:?}", advice.candidates[0].verdict);
    let exhausted = advice.candidates[0].predicted.first().unwrap().exhausted_ns;
    assert!(exhausted.is_some_and(|ns| ns > 86_400_000_000_000), "{exhausted:?}");
    // 100 IOPS and 5.4 M credits, of which each burst takes more than come back until the next one.
    let need = NeedSettings {
        iops: Some(1500),
        burst: Some((Nanos::from_secs(1_800), Nanos::from_secs(86_400))),
        baseline_iops: Some(80),
        ..NeedSettings::default()
    };
    let advice = advise(&stated(need, &["aws-gp2?size=33GiB"])).unwrap();
    let exhausted = advice.candidates[0].predicted.first().unwrap().exhausted_ns;
    assert!(exhausted.is_some_and(|ns| ns > 4 * 86_400_000_000_000), "{exhausted:?}");
}

#[test]
fn the_instance_limits_volumes_that_are_named() {
    let file = cloudwatch(&[3_000_000; 4], 1.0);
    let names =
        ["custom?iops=20000&latency=1ms&size=1GiB", "aws-gp3?size=100GiB&iops=12000&instance=m5.large"];
    let asked = AdviseSettings {
        current: Some("aws-gp3?size=100GiB&iops=12000".to_owned()),
        instance: Some("m6i.large".to_owned()),
        ..observed(&file, &names)
    };
    let advice = advise(&asked).unwrap();
    let of =
        |begin: &str| advice.candidates.iter().find(|candidate| candidate.target.starts_with(begin)).unwrap();
    assert!(of("sim:custom").target.ends_with("&instance=m6i.large"));
    assert_eq!(of("sim:aws-gp3").instance.as_deref(), Some("m5.large"));
    let current = advice.current.as_ref().unwrap();
    assert_eq!(current.instance.as_deref(), Some("m6i.large"));
    // One of another provider is not that of the present volume.
    let elsewhere = AdviseSettings { instance: Some("m6i.large".to_owned()), ..settings(&[]) };
    let current = Some("azure-premium-ssd?size=512GiB".to_owned());
    let volume = present(&AdviseSettings { current, ..elsewhere.clone() }).unwrap().unwrap();
    assert_eq!(volume.chosen.unwrap().1.instance, None);
    let current = Some("aws-gp2?size=100GiB".to_owned());
    let unknown = AdviseSettings { current, instance: Some("m6i.lardge".to_owned()), ..elsewhere };
    assert!(present(&unknown).unwrap().is_err());
}

#[test]
fn the_plain_prediction_of_own_limits() {
    // 1,000 IOPS for 40 minutes on 3,000.
    let file = cloudwatch(&[300_000; 8], 1.0);
    let advice = advise(&observed(&file, &["sim:custom?iops=3000&latency=1ms&size=10GiB"])).unwrap();
    let found = &advice.candidates[0];
    assert_eq!((found.id.as_str(), found.is_replayed, advice.candidates.len()), ("custom", false, 1));
    let iops = found.predicted.total(|op| Some(op.iops)).unwrap();
    assert!((iops.value().unwrap() / 1000.0 - 1.0).abs() < 0.001, "{iops:?}");
    // How the I/Os arrived within five minutes is unknown, and so is the percentile.
    let p99 = found.predicted.range(|one| Some(one.summary.read.as_ref()?.lat_ns.p99? as f64)).unwrap();
    assert!(p99.value().is_none() && p99.low < 1.1e6 && p99.high > 1e9, "{p99:?}");
    assert!(found.verdict.verdict.is_inconclusive(), "{:?}", found.verdict);
    assert_eq!(advice.observed.arrivals, ["evenly", "evenly and in order", "at once"]);
}

#[test]
fn the_present_volume_is_a_candidate_and_decides_whatever_the_arrivals_are() {
    // 100 IOPS with hours at 2,500: gp2 of 300 GiB bursts for 45 min at that rate and then has 900.
    let sums: Vec<u64> = (0..288).map(|index| if index % 72 < 24 { 750_000 } else { 30_000 }).collect();
    let file = cloudwatch(&sums, 1.0);
    let asked = AdviseSettings { current: Some("aws-gp2?size=300GiB".to_owned()), ..observed(&file, &[]) };
    let advice = advise(&asked).unwrap();
    let current = advice.current.as_ref().unwrap();
    // 5.4 M credits at 2,500 - 900 a second.
    let exhausted = current.predicted.first().unwrap().exhausted_ns.unwrap() as f64 / 1e9;
    assert!((exhausted / 3375.0 - 1.0).abs() < 0.001, "{exhausted}");
    assert_eq!((advice.source, advice.provider.as_str()), (ObjectiveSource::Current, "AWS"));
    let answer = advice.answer().unwrap();
    assert_eq!(answer.id, "aws-gp3");
    let price = |candidate: &AdvisedCandidate| candidate.price.as_ref().unwrap().total;
    assert!(price(answer) < price(current), "{} {}", price(answer), price(current));
    assert!(advice.candidates.iter().all(|candidate| candidate.id.starts_with("aws-")));
    assert!(advice.candidates.iter().any(|candidate| candidate.is_current));
}

#[test]
fn requests_are_replayed_and_objectives_decided() {
    // 200 reads of 4 KiB per second for 20 s.
    let lines: String = (0..4000_u64)
        .map(|index| format!("{} /t read {} 4096\n", index * 5000, index % 999 * 4096))
        .collect();
    let file = file(&format!("fio version 3 iolog\n{lines}"));
    let names = ["custom?iops=1000&latency=2ms&size=1GiB", "custom?iops=100&latency=1ms&size=1GiB"];
    let expectations = vec![Criterion::parse("read.lat_ns.p99<5ms").unwrap()];
    let advice = advise(&AdviseSettings { expectations, ..observed(&file, &names) }).unwrap();
    let [fast, slow] = &advice.candidates[..] else { panic!("{advice:?}") };
    assert!(fast.is_replayed && fast.verdict.verdict.is_met() && slow.verdict.verdict.is_missed());
    assert_eq!(fast.target, format!("sim:{}", names[0]));
    let p99 = fast.predicted.first().unwrap().summary.read.as_ref().unwrap().lat_ns.p99.unwrap();
    assert!((1_980_000..=2_020_000).contains(&p99), "{p99}");
    let slow = slow.predicted.first().unwrap();
    assert!((slow.served_share - 0.5).abs() < 0.01 && slow.throttled_share > 0.98, "{slow:?}");
    // 1,000 IOPS are five times the load; together with others each waits.
    let breaks = fast.breaks.as_ref().unwrap();
    assert!((4.0..=5.6).contains(&breaks.growth.unwrap()), "{breaks:?}");
}

#[test]
fn many_requests_are_compared_in_sums_with_sums_and_replayed_with_replayed() {
    // 30,000 reads of 4 KiB, 30 at an instant: on average 600 a second, each with others before it.
    let lines: String = (0..30_000_u64)
        .map(|index| format!("{} /t read {} 4096\n", index / 30 * 50_000, index % 999 * 4096))
        .collect();
    let file = file(&format!("fio version 3 iolog\n{lines}"));
    let current = Some("aws-gp3?size=100GiB&iops=4000".to_owned());
    let advice = advise(&AdviseSettings { current, ..observed(&file, &[]) }).unwrap();
    let current = advice.current.as_ref().unwrap();
    assert!(current.is_replayed && current.predicted.first().unwrap().longest_queue >= 30);
    let predicted = |candidate: &AdvisedCandidate| {
        let p99 = candidate.predicted.range(|one| Some(one.summary.read.as_ref()?.lat_ns.p99? as f64));
        p99.unwrap().high
    };
    // What is chosen in sums is not taken for faster than the present volume when that is replayed.
    let answer = advice.answer().unwrap();
    assert!(answer.is_replayed && predicted(answer) <= predicted(current) * 1.15);
}

#[test]
fn a_finer_recording_narrows_the_range() {
    let coarse = cloudwatch(&[300_000; 12], 1.0);
    let lines: String = (0..12_000_u64)
        .map(|index| format!("{} /t read {} 4096\n", index * 1000, index % 999 * 4096))
        .collect();
    let fine = file(&format!("fio version 3 iolog\n{lines}"));
    let mut asked = observed(&coarse, &["custom?iops=3000&latency=1ms&size=1GiB"]);
    asked.expectations = vec![Criterion::parse("read.lat_ns.p99<3s").unwrap()];
    let alone = advise(&asked).unwrap();
    assert!(alone.answer().is_none() && alone.candidates[0].verdict.verdict.is_inconclusive());
    asked.files.push(fine.path().to_owned());
    let both = advise(&asked).unwrap();
    assert_eq!(both.observed.files.len(), 2);
    assert!(both.answer().is_some(), "{:?}", both.candidates[0].verdict);
}

#[test]
fn growth_and_missing_loads() {
    let file = cloudwatch(&[300_000; 4], 1.0);
    let mut asked = observed(&file, &["custom?iops=2100&latency=1ms&size=1GiB"]);
    asked.expectations = vec![Criterion::parse("iops>1")].into_iter().collect::<Result<_, _>>().unwrap();
    assert!(advise(&asked).unwrap().answer().is_some());
    let grown = advise(&AdviseSettings { growth: 3.0, ..asked.clone() }).unwrap();
    assert!(grown.candidates[0].verdict.why.starts_with("serves 7"), "{:?}", grown.candidates[0].verdict);
    let error = advise(&settings(&[])).unwrap_err();
    assert_eq!((error.to_string().as_str(), error.kind == crate::ErrorKind::Usage), ("no load given", true));
    asked.candidates = vec!["aws-gp4".to_owned()];
    assert!(advise(&asked).unwrap_err().to_string().contains("unknown volume type"));
}

#[test]
fn volumes_are_ordered_by_what_is_asked() {
    let need = NeedSettings { iops: Some(2_000), ..NeedSettings::default() };
    let volumes =
        ["custom?iops=3000&latency=500us", "custom?iops=9000&latency=2ms", "custom?iops=2500&latency=1ms"];
    let prices = [(volumes[0], 3.0), (volumes[1], 2.0), (volumes[2], 1.0)];
    let prices = prices.map(|(volume, per_month)| StatedPrice {
        volume: volume.to_owned(),
        per_month,
        currency: "USD".to_owned(),
    });
    let first = |order: AdviceOrder| {
        let asked = stated(need.clone(), &volumes);
        let advice = advise(&AdviseSettings { order, prices: prices.to_vec(), ..asked }).unwrap();
        advice.answer().unwrap().target.clone()
    };
    let expected = [
        (AdviceOrder::Price, volumes[2]),
        (AdviceOrder::Latency, volumes[0]),
        (AdviceOrder::Headroom, volumes[1]),
    ];
    for (order, volume) in expected {
        assert!(first(order).contains(volume), "{order:?}: {}", first(order));
    }
}
