//! The comparisons of five published articles, from their texts and tables: whole reports, and each figure beside the one that was
//! taken from the article by hand.

use std::path::Path;

use fathom_catalog::{Published, PublishedFigure};
use serde_json::Value;

use crate::{run, scratch};

/// What `compare` prints for `args` in a directory with the texts of the articles.
#[track_caller]
fn printed(args: &[&str]) -> String {
    let dir = scratch();
    let articles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../import/tests/fixtures/articles");
    for entry in std::fs::read_dir(articles).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, dir.path().join(path.file_name().unwrap())).unwrap();
    }
    let table =
        "test,metric,value,unit,bs\nmax-bandwidth,bw,unpublished,,128k\nmax-iops,iops,unpublished,,4k\n";
    std::fs::write(dir.path().join("hdd.csv"), table).unwrap();
    let text = run(dir.path(), &[&["compare"], args].concat()).quietly().stdout;
    text.replace(concat!("fathom bench ", env!("CARGO_PKG_VERSION")), "fathom bench 0.0.0")
}

#[track_caller]
fn document(args: &[&str]) -> Value {
    serde_json::from_str(&printed(&[args, &["--json"]].concat())).unwrap()
}

/// Three outputs of fio and one of ioping are the runs of one volume.
fn texts(volume: &str, version: &str) -> String {
    let fio = ["randrw", "randread", "randwrite"].map(|test| format!("{volume}-{test}.fio-{version}.txt"));
    format!("{},{volume}.ioping.txt", fio.join(","))
}

/// The value of a figure of a source in base units.
#[track_caller]
fn value(document: &Value, test: usize, name: &str, source: usize) -> f64 {
    let (direction, metric) = name.split_once('.').unwrap();
    let figures = document["tests"][test]["figures"].as_array().unwrap();
    let figure = figures.iter().find(|figure| figure["direction"] == direction && figure["metric"] == metric);
    let figure = figure.unwrap_or_else(|| panic!("{}: {name}", document["tests"][test]["test"]));
    figure["cells"][source]["value"].as_f64().unwrap()
}

/// The name of a figure here, and its value in base units, as it was taken from the article by hand.
fn by_hand(figure: &PublishedFigure) -> Option<(String, f64)> {
    let unit = match figure.unit.as_str() {
        "KiB/s" => 1024.0,
        "MiB/s" => 1_048_576.0,
        "us" => 1e3,
        "ms" => 1e6,
        "1/s" => 1.0,
        _ => return None,
    };
    let name = match figure.metric.as_str() {
        "read.bw" | "write.bw" | "read.iops" | "write.iops" => {
            figure.metric.replace(".bw", ".bytes_per_second")
        }
        "latency.avg" => "read.lat_ns.mean".to_owned(),
        "iops" => "read.iops".to_owned(),
        "bw" => "read.bytes_per_second".to_owned(),
        "lat.avg" => "write.lat_ns.mean".to_owned(),
        _ => return None,
    };
    Some((name, figure.value * unit))
}

/// Compares every rate and mean latency of these runs, in the order of the rows, with the figures that were taken by hand.
#[track_caller]
fn check_by_hand(document: &Value, source: usize, runs: &[(usize, &str)]) -> usize {
    let published = Published::shipped();
    let mut checked = 0;
    for (test, id) in runs {
        let run = published.runs.iter().find(|run| run.id == *id).unwrap();
        for (name, expected) in run.figures.iter().filter_map(by_hand) {
            let found = value(document, *test, &name, source);
            // What fio 1.x and 2.x print behind a point has lost its zeros, and ioping rounds to three digits.
            assert!((found / expected - 1.0).abs() < 2e-3, "{id}: {name} = {expected}, found {found}");
            checked += 1;
        }
    }
    checked
}

#[track_caller]
fn contradictions(document: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let all = document["contradictions"].as_array().unwrap();
    all.iter().map(|one| (text(&one["kind"]), text(&one["claim"]))).collect()
}

/// A local disk beside a network volume on burst credits: the headline counts what can be held, and says for how long the burst lasts.
#[test]
fn a_droplet_beside_gp2() {
    let (local, gp2) = (texts("digitalocean-ssd", "1.59"), texts("aws-gp2-50g", "2.1.3"));
    let args = [
        local.as_str(),
        &gp2,
        "--type=A=do-droplet-local-ssd-2016?size=60GiB",
        "--type=B=aws-gp2-2016?size=50GiB",
    ];
    insta::assert_snapshot!("article_droplet_and_gp2", printed(&args));
    let document = document(&args);
    let rows = |volume: &'static str| {
        let ids = ["randrw", "randread", "randwrite", "ioping"].map(|test| format!("a0-{volume}-{test}"));
        ids.into_iter().enumerate().collect::<Vec<_>>()
    };
    for (source, volume) in ["do", "aws"].into_iter().enumerate() {
        let ids = rows(volume);
        let ids: Vec<(usize, &str)> = ids.iter().map(|(row, id)| (*row, id.as_str())).collect();
        assert_eq!(check_by_hand(&document, source, &ids), 11);
    }
    let sentences = document["conclusion"].to_string();
    for part in ["times the sustained rate of B", "for 31 min 35 s, then 150 IOPS"] {
        assert!(sentences.contains(part), "{part}: {sentences}");
    }
}

/// The same from the shipped figures, whose text contradicts its outputs.
#[test]
fn statements_beside_outputs_that_say_otherwise() {
    let document = document(&["published:a0-do", "published:a0-aws"]);
    let found = contradictions(&document);
    assert!(found.iter().all(|(kind, _)| kind == "stated"), "{found:?}");
    for part in
        ["A, randwrite: the text states ~30 s as runtime (claimed), and the output has 1 min 58 s", "~356 us"]
    {
        assert!(found.iter().any(|(_, claim)| claim.contains(part)), "{part}: {found:?}");
    }
}

/// The ladder of block sizes that an article expects, beside its measurements and the model.
#[test]
fn a_ladder_of_block_sizes_measured_and_expected() {
    let measured = "digitalocean-volume-bw-test.fio-2.txt,digitalocean-volume-lat-read.fio-2.txt";
    let args = ["published:a1-do-expected", measured, "sim:do-volume-standard-2018-04"];
    insta::assert_snapshot!("article_block_ladder", printed(&args));
    let document = document(&args);
    // The page has lost rate, bandwidth and mean latency: they follow from what is left.
    for (row, name, expected) in [
        (0, "write.iops", 22_937.0 / 120.160),
        (0, "write.bytes_per_second", 195_468.0 * 1024.0),
        (0, "write.lat_ns.mean", 167.62e6),
        (3, "read.iops", 1_782.0),
        (3, "read.bytes_per_second", 7_131.2 * 1024.0),
        (3, "read.lat_ns.mean", 556e3),
    ] {
        let found = value(&document, row, name, 1);
        assert!((found / expected - 1.0).abs() < 2e-3, "{name} = {expected}, found {found}");
    }
    // What was expected of each size, where MB are of 2^20 or of 10^6 bytes.
    let ladder =
        [(5, 5000.0, 20.0), (6, 5000.0, 80.0), (7, 5000.0, 160.0), (8, 3200.0, 200.0), (9, 800.0, 200.0)];
    for (row, iops, megabytes) in ladder {
        assert!((value(&document, row, "read.iops", 0) - iops).abs() < 1e-9);
        let bandwidth = value(&document, row, "read.bytes_per_second", 0);
        assert!((bandwidth - megabytes * 1_048_576.0).abs() < 1.0, "{bandwidth}");
        // The model, which has 200 MB of 10^6 bytes.
        assert!((value(&document, row, "read.iops", 2) / iops - 1.0).abs() < 0.06);
    }
}

const DISKS: [&str; 8] = [
    "published:a2-aws-C", "published:a2-aws-D", "published:a2-aws-E", "published:a2-aws-F",
    "published:a2-azure-C", "published:a2-azure-D", "published:a2-azure-E", "published:a2-azure-F",
];

#[test]
fn eight_disks_in_one_matrix() {
    insta::assert_snapshot!("article_eight_disks", printed(&DISKS));
    insta::assert_snapshot!(
        "article_eight_disks_transposed",
        printed(&[&DISKS[..], &["--transpose"]].concat())
    );
    let document = document(&DISKS);
    let rows: Vec<&str> =
        document["tests"].as_array().unwrap().iter().map(|test| test["test"].as_str().unwrap()).collect();
    let row = |name: &str| rows.iter().position(|row| *row == name).unwrap();
    let (kib, mib) = (1024.0, 1_048_576.0);
    for (test, name, source, expected) in [
        ("transfer-rate", "read.bytes_per_second", 2, 33.5 * mib),
        ("transfer-rate", "read.bytes_per_second", 3, 33.6 * mib),
        ("access-time", "read.lat_ns.mean", 2, 20.3e6),
        ("access-time", "read.lat_ns.mean", 5, 0.059e6),
        ("file-read", "read.bytes_per_second", 0, 102_176.0 * kib),
        ("file-write", "write.bytes_per_second", 5, 1_911_305.0 * kib),
        ("rand-read", "read.iops", 3, 2_040.0),
        ("rand-write", "write.iops", 7, 156.0),
        ("rand-read-32", "read.iops", 0, 16_409.0),
        ("rand-write-32", "write.iops", 6, 1_519.0),
    ] {
        let found = value(&document, row(test), name, source);
        assert!((found / expected - 1.0).abs() < 1e-6, "{test}.{name}: {found} {expected}");
    }
    // The disk that hung has no rate of 0, no rank, and a name.
    let hung = &document["tests"][row("rand-read-32")]["figures"][0]["cells"][4];
    assert_eq!((hung["value"].is_null(), hung["state"].as_str()), (true, Some("stalled")));
    let ranked = document["ranking"].as_array().unwrap().iter().find(|one| one["source"] == "E").unwrap();
    assert!(ranked["rank"].is_null() && ranked["stalled"][0] == "rand-read-32", "{ranked}");
    let headline = document["conclusion"][0].as_str().unwrap();
    for part in ["stalled in rand-read-32 and is not ranked", "F is ephemeral"] {
        assert!(headline.contains(part), "{headline}");
    }
    let found = contradictions(&document);
    let kinds = |kind: &str| -> Vec<&str> {
        found.iter().filter(|(of, _)| of == kind).map(|(_, claim)| claim.as_str()).collect()
    };
    let shared = kinds("shared-limit");
    assert_eq!(shared.len(), 1, "{shared:?}");
    assert!(
        shared[0].starts_with("C and D have the same bandwidth within 3 % in transfer-rate and file-read"),
        "{shared:?}"
    );
    let latencies = kinds("latency-and-rate");
    let of_io1 = "C, rand-read: 1,020 IOPS with one request at a time exceed the 49 that the latency of 20.3 ms in access-time \
                  allows. The block size of access-time is unknown";
    assert!(latencies.iter().any(|claim| claim.starts_with(of_io1)), "{latencies:?}");
    let faster = kinds("faster-than-maximum");
    assert_eq!(faster.len(), 4, "{found:?}");
    // Larger blocks, deeper queues or readahead explain a faster read as well as a cache.
    assert!(
        faster.iter().all(|claim| claim.contains("The block size of transfer-rate is unknown")),
        "{faster:?}"
    );
}

#[test]
fn two_classes_of_a_provider() {
    let args = [texts("qingcloud-capacity", "2.2.10"), texts("qingcloud-high-performance", "2.2.10")];
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    insta::assert_snapshot!("article_two_classes", printed(&args));
    let document = document(&args);
    for (source, class) in ["cap", "perf"].into_iter().enumerate() {
        let ids = ["randrw", "randread", "randwrite", "ioping"].map(|test| format!("a3-{class}-{test}"));
        let ids: Vec<(usize, &str)> = ids.iter().map(String::as_str).enumerate().collect();
        assert_eq!(check_by_hand(&document, source, &ids), 11);
    }
    // Jobs of one size: the elapsed time is a figure.
    let elapsed =
        document["tests"][0]["figures"].as_array().unwrap().iter().find(|one| one["metric"] == "elapsed_ns");
    assert_eq!(elapsed.unwrap()["cells"][1]["value"].as_f64(), Some(31_342e6));
    // The text has the latencies in the wrong unit.
    let stated = contradictions(&self::document(&["published:a3-cap", "published:a3-perf"]));
    let part = "B, ioping: the text states ~0.168 us as read lat mean (claimed), and the output has 168 µs, 1,000 times as much: the \
                unit of the statement is wrong";
    assert!(stated.iter().any(|(_, claim)| claim == part), "{stated:?}");
}

#[test]
fn types_of_a_provider_beside_references() {
    let sources = [
        "published:a4-tencent_cbs_premium-1tib",
        "published:a4-tencent_cbs_ssd-1tib",
        "published:a4-tencent_cbs_enhanced_ssd-1tib",
        "published:a4-premium-3t",
        "hdd.csv",
        "sim:tencent-cbs-ssd?size=1TiB",
    ];
    insta::assert_snapshot!("article_types_of_a_provider", printed(&sources));
    let document = document(&sources);
    let mib = 1_048_576.0;
    for (source, bandwidth, iops) in [(0, 151.0, 7_480.0), (1, 262.0, 22_700.0), (2, 354.0, 49_800.0)] {
        assert!((value(&document, 0, "total.bytes_per_second", source) - bandwidth * mib).abs() < 1.0);
        assert!((value(&document, 1, "total.iops", source) - iops).abs() < 1e-9);
    }
    let states = |row: usize| document["tests"][row]["figures"][0]["cells"][4]["state"].clone();
    assert_eq!((states(0), states(1)), ("unpublished".into(), "unpublished".into()));
    // A bound has no ratio.
    let bound = &document["tests"][2]["figures"][0]["cells"][3];
    assert_eq!((bound["bound"].as_str(), bound["value"].as_f64()), (Some("below"), Some(2000.0)));
}

#[test]
fn every_cell_of_a_text_is_traced_to_its_line() {
    let (local, gp2) = (texts("digitalocean-ssd", "1.59"), texts("aws-gp2-50g", "2.1.3"));
    let explain = |cell: &str| document(&[&local, &gp2, "--explain", cell])["explanations"][0].clone();
    let cell = explain("B:test-randread.iops");
    let run = &cell["runs"][0];
    assert_eq!((cell["value"].as_f64(), run["line"].as_u64()), (Some(3016.0), Some(6)));
    assert!(run["origin"].as_str().unwrap().ends_with("aws-gp2-50g-randread.fio-2.1.3.txt"), "{run}");
    assert!(run["printed"].as_str().unwrap().contains("iops=3016"), "{run}");
    let latency = explain("A:ioping.read.lat.mean");
    assert!(latency["runs"][0]["printed"].as_str().unwrap().contains("min/avg/max/mdev"), "{latency}");
    insta::assert_snapshot!(
        "article_explained",
        printed(&[&local, &gp2, "--explain=B:test-randread.iops", "--explain=A:test-randrw.write.bw"])
    );
}
