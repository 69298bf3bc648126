//! Recordings of every format in the shape in which programs write them: detection, units, devices, gaps, and damaged texts.

use fathom_observed::{
    GapReason, LoadCourse, LoadFormat, ObservedInterval, ObservedLoad, SourceKind, read_blktrace, read_text,
    source_kind,
};

/// A fixture: file, format, device to choose, entries, I/Os, bytes, length in s, and the gap with its length in s.
type Fixture =
    (&'static str, LoadFormat, Option<&'static str>, usize, u64, u64, u64, Option<(GapReason, u64)>);

const FIXTURES: &[Fixture] = &[
    ("iostat.json", LoadFormat::IostatJson, Some("nvme0n1"), 4, 7_720, 104_243_200, 40, None),
    (
        "sadf.json",
        LoadFormat::SadfJson,
        None,
        4,
        216_450,
        1_773_158_400,
        3_599,
        Some((GapReason::Restart, 1_199)),
    ),
    ("sar.txt", LoadFormat::SarText, Some("nvme0n1"), 2, 132_300, 1_083_801_600, 1_200, None),
    (
        "sar-old.txt",
        LoadFormat::SarText,
        None,
        3,
        99_000,
        1_216_512_000,
        2_400,
        Some((GapReason::Restart, 600)),
    ),
    (
        "prometheus.json",
        LoadFormat::PrometheusRange,
        None,
        4,
        25_200,
        240_844_800,
        300,
        Some((GapReason::CounterReset, 60)),
    ),
    (
        "cloudwatch-data.json",
        LoadFormat::CloudwatchData,
        None,
        5,
        1_380_000,
        21_135_360_000,
        1_800,
        Some((GapReason::Missing, 300)),
    ),
    (
        "cloudwatch-statistics.json",
        LoadFormat::CloudwatchStatistics,
        None,
        3,
        990_000,
        16_220_160_000,
        900,
        None,
    ),
    ("cloudwatch.csv", LoadFormat::CloudwatchCsv, None, 3, 1_002_000, 16_318_464_000, 900, None),
    (
        "azure.json",
        LoadFormat::AzureMonitor,
        None,
        4,
        43_035,
        582_451_200,
        300,
        Some((GapReason::Missing, 60)),
    ),
    ("gcp.json", LoadFormat::GcpMonitoring, None, 4, 115_200, 992_870_400, 240, None),
    ("app.iolog", LoadFormat::IologThree, None, 201, 201, 2_785_280, 0, None),
    ("app-2.iolog", LoadFormat::IologTwo, None, 24, 24, 81_920, 0, None),
    ("blkparse.txt", LoadFormat::Blkparse, None, 60, 60, 307_200, 0, None),
];

fn text(name: &str) -> String {
    let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

fn intervals(load: &ObservedLoad) -> &[ObservedInterval] {
    let LoadCourse::Intervals(intervals) = &load.course else { panic!("these are intervals") };
    intervals
}

#[test]
fn every_format_is_detected_and_read_in_its_units() {
    for &(name, format, device, entries, ops, bytes, seconds, gap) in FIXTURES {
        let load = read_text(&text(name), device).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(load.format, format, "{name}");
        let (found, served) = match &load.course {
            LoadCourse::Intervals(intervals) => {
                let sum = |figure: &dyn Fn(&ObservedInterval) -> Option<u64>| {
                    intervals.iter().filter_map(figure).sum::<u64>()
                };
                (intervals.len(), (sum(&|one| one.total.ops), sum(&|one| one.total.bytes)))
            }
            LoadCourse::Requests(trace) => {
                let bytes = trace.requests.iter().map(|request| u64::from(request.bytes)).sum();
                (trace.requests.len(), (trace.requests.len() as u64, bytes))
            }
        };
        assert_eq!((found, served), (entries, (ops, bytes)), "{name}");
        if seconds > 0 {
            assert_eq!(load.length_ns, seconds * 1_000_000_000, "{name}");
            assert!(load.started_unix_ns.is_some(), "{name}");
        }
        let gaps: Vec<_> = load.gaps.iter().map(|gap| (gap.reason, gap.length_ns / 1_000_000_000)).collect();
        assert_eq!(gaps, gap.into_iter().collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn texts_of_windows_programs_are_the_same() {
    for &(name, _, device, ..) in FIXTURES {
        let plain = text(name);
        let marked = format!("\u{feff}{}", plain.replace('\n', "\r\n"));
        assert_eq!(read_text(&marked, device).unwrap(), read_text(&plain, device).unwrap(), "{name}");
    }
}

#[test]
fn every_format_has_a_fixture() {
    let binary = [LoadFormat::Blktrace, LoadFormat::Recording];
    for format in LoadFormat::ALL.into_iter().map(|row| row.0).filter(|format| !binary.contains(format)) {
        assert!(FIXTURES.iter().any(|fixture| fixture.1 == format), "{}", format.name());
    }
}

#[test]
fn several_devices_are_listed_unless_one_is_chosen() {
    for name in ["iostat.json", "sar.txt"] {
        let error = read_text(&text(name), None).unwrap_err();
        assert_eq!(error.problem, "it has several devices: nvme0n1, nvme1n1", "{name}");
        assert_eq!(error.hint, "choose one with --device");
        assert_eq!(read_text(&text(name), Some("/dev/nvme1n1")).unwrap().device, "nvme1n1");
        assert_eq!(read_text(&text(name), Some("sda")).unwrap_err().problem, "it has no device 'sda'");
    }
}

#[test]
fn times_depths_limits_and_credits_are_kept() {
    let load = read_text(&text("cloudwatch-data.json"), None).unwrap();
    let found = intervals(&load);
    assert_eq!(load.started_unix_ns, Some(1_795_341_600_000_000_000));
    let reads = found[2].by_op.read;
    assert_eq!((reads.ops, reads.latency_sum_ns), (Some(900_000), Some(1_800_000_000_000)));
    assert_eq!((found[2].limit_reached, found[2].credits_ppm), (Some(true), Some(580_000)));
    let load = read_text(&text("cloudwatch-statistics.json"), None).unwrap();
    assert_eq!(intervals(&load)[2].queue_depth_milli, Some(6_000));
    let load = read_text(&text("prometheus.json"), None).unwrap();
    let first = &intervals(&load)[0];
    assert_eq!(
        (first.by_op.write.latency_sum_ns, first.utilization_ppm),
        (Some(1_200_000_000), Some(75_000))
    );
    assert_eq!(first.queue_depth_milli, Some(70));
    let load = read_text(&text("gcp.json"), None).unwrap();
    let limits: Vec<_> = intervals(&load).iter().map(|one| one.limit_reached).collect();
    assert_eq!(limits, [Some(false), Some(false), Some(true), Some(false)]);
}

#[test]
fn requests_of_blkparse_have_latencies() {
    let load = read_text(&text("blkparse.txt"), None).unwrap();
    let LoadCourse::Requests(trace) = &load.course else { panic!("it is a trace") };
    assert_eq!(load.device, "8:0");
    for request in &trace.requests {
        let ns = request.latency_ns.unwrap().get();
        assert!((495_000..=695_000).contains(&ns), "{request:?}");
    }
}

/// An event of blktrace on device 8:16, a read of 4 KiB.
fn event(time_ns: u64, action: u32, sector: u64) -> Vec<u8> {
    let mut event = Vec::new();
    event.extend(0x6561_7407_u32.to_le_bytes());
    event.extend(1_u32.to_le_bytes());
    event.extend(time_ns.to_le_bytes());
    event.extend(sector.to_le_bytes());
    event.extend(4096_u32.to_le_bytes());
    event.extend((1_u32 << 16 | action).to_le_bytes());
    event.extend(1_u32.to_le_bytes());
    event.extend((8_u32 << 20 | 16).to_le_bytes());
    event.extend([0; 8]);
    event
}

#[test]
fn events_of_several_cpus_are_joined() {
    // The completions were recorded by another CPU, whose file stands first.
    let bytes = [event(1_500, 8, 0), event(1_000, 1, 0), event(1_100, 7, 0), event(2_000, 7, 8)].concat();
    assert_eq!(source_kind(&bytes), SourceKind::Events);
    let load = read_blktrace(&mut &*bytes, None, 10).unwrap();
    let LoadCourse::Requests(trace) = &load.course else { panic!("it is a trace") };
    let found: Vec<_> =
        trace.requests.iter().map(|one| (one.at_ns, one.offset, one.latency_ns.map(|ns| ns.get()))).collect();
    assert_eq!(found, [(0, 0, Some(400)), (900, 4096, None)]);
    assert_eq!(
        (load.device.as_str(), load.notes[0].as_str()),
        ("8:16", "1 I/Os have no completion in the trace")
    );
    let error = read_blktrace(&mut &*bytes, None, 3).unwrap_err();
    assert_eq!(error.problem, "it has more events than are kept in memory");
    let error = read_blktrace(&mut &bytes[..50], None, 9).unwrap_err();
    assert_eq!(error.problem, "event 2: it is incomplete");
}

#[test]
fn damaged_texts_are_refused_or_read_and_never_end_the_program() {
    for &(name, _, device, ..) in FIXTURES {
        let whole = text(name);
        let boundaries = (0..whole.len()).step_by(61).filter(|&at| whole.is_char_boundary(at));
        for at in boundaries {
            let damaged =
                [whole[..at].to_owned(), whole[at..].to_owned(), whole.replacen(&whole[at..at + 1], "-", 3)];
            for text in damaged {
                if let Err(error) = read_text(&text, device) {
                    assert!(!error.problem.is_empty() && !error.hint.is_empty(), "{name}: {error:?}");
                }
            }
        }
    }
}

#[test]
fn errors_in_documents_name_line_and_field() {
    let refused = |name: &str, from: &str, to: &str| {
        let whole = text(name);
        assert!(whole.contains(from), "{name} has no {from}");
        read_text(&whole.replacen(from, to, 1), None).unwrap_err().to_string()
    };
    assert_eq!(
        refused("sadf.json", "\"tps\": 120.50", "\"tps\": \"many\""),
        "line 28: sysstat.hosts[0].statistics[2].disk[0].tps: 'many' is not a number"
    );
    assert_eq!(
        refused("azure.json", "\"average\": 118.0", "\"average\": []"),
        "line 29: value[0].timeseries[0].data[1].average: an array is not a number"
    );
    assert_eq!(
        refused("prometheus.json", "\"1006000\"", "\"x\""),
        "line 1: data.result[0].values[1][1]: 'x' is not a number"
    );
    assert_eq!(
        refused("cloudwatch.csv", "60000,", "6e,"),
        "line 6: vol-0a1b2c3d4e5f60718 VolumeReadOps: '6e' is not a number"
    );
}
