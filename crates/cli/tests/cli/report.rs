//! `fathom report`: pages, charts and files, whose values are those of the run.

use std::path::Path;

use serde_json::Value;

use crate::{run, scratch};

const VOLUME: &str = "sim:aws-gp2-2016?size=50GiB";
const BENCH: [&str; 5] =
    ["bench", "--quick", "--only=lat-read,rand-read,rand-mixed,seq-read", "--keep", VOLUME];

/// The page of the newest run.
fn page(dir: &Path, more: &[&str]) -> String {
    run(dir, &[&["report", "last", "-o", "page.html"], more].concat()).succeeded();
    std::fs::read_to_string(dir.join("page.html")).unwrap()
}

/// The data of the charts of a page.
fn charts(page: &str) -> Vec<Value> {
    let parts = page.split("<script type=\"application/json\">").skip(1);
    let data = parts.map(|part| part.split("</script>").next().unwrap());
    data.map(|text| serde_json::from_str(text).expect("a chart has one document")).collect()
}

/// The charts with this title.
fn titled<'a>(charts: &'a [Value], title: &str) -> Vec<&'a Value> {
    let found: Vec<&Value> = charts.iter().filter(|chart| chart["title"] == title).collect();
    assert!(!found.is_empty(), "no chart has the title {title}");
    found
}

/// The points of the series `name`; its only one has no name.
fn points<'a>(chart: &'a Value, name: &str) -> &'a [Value] {
    let all = chart["series"].as_array().unwrap();
    let series = all.iter().find(|series| series["name"] == name || all.len() == 1 && series["name"] == "");
    series.map_or(&[], |series| series["points"].as_array().unwrap())
}

fn document(dir: &Path) -> Value {
    let text = run(dir, &["report", "last", "--format", "json"]).quietly().stdout;
    serde_json::from_str(&text).unwrap()
}

fn close(one: f64, other: f64, share: f64) -> bool {
    (one - other).abs() <= share * other.abs()
}

#[test]
fn the_values_of_every_chart_are_those_of_the_document() {
    let dir = scratch();
    run(dir.path(), &BENCH).succeeded();
    let document = document(dir.path());
    let tests = document["tests"].as_array().unwrap();
    let charts = charts(&page(dir.path(), &[]));
    for (title, direction, path, scale) in [
        ("IOPS of each test", "read", "iops", 1.0),
        ("IOPS of each test", "write", "iops", 1.0),
        ("Bandwidth of each test", "read", "bytes_per_second", 1.0 / f64::from(1 << 20)),
        ("Median latency of each test", "read", "lat_ns/p50", 1.0),
        ("99th percentile of latency of each test", "read", "lat_ns/p99", 1.0),
    ] {
        let chart = titled(&charts, title)[0];
        for (place, test) in tests.iter().enumerate() {
            assert_eq!(chart["x"]["names"][place], test["id"]);
            let expected = test.pointer(&format!("/{direction}/{path}")).and_then(Value::as_f64);
            let bars = points(chart, direction);
            let bar = bars.iter().find(|point| point[0] == place as f64).and_then(|point| point[2].as_f64());
            assert_eq!(bar.is_some(), expected.is_some(), "{title}: {}", test["id"]);
            if let (Some(bar), Some(expected)) = (bar, expected) {
                assert!(close(bar, expected * scale, 1e-12), "{title}: {bar} {expected}");
            }
        }
    }
    // What the steps of a course add up to is what the test counted, ramp and all.
    for (chart, test) in titled(&charts, "IOPS over time").into_iter().zip(tests) {
        let requests = |name: &str| -> f64 {
            let span = |point: &Value| point[1].as_f64().unwrap() - point[0].as_f64().unwrap();
            points(chart, name).iter().map(|point| point[2].as_f64().unwrap() * span(point) / 1e9).sum()
        };
        let ramps = chart["marks"].as_array().unwrap().iter().filter(|mark| mark["reason"] == "ramp");
        let ramp_ns: f64 = ramps.map(|ramp| ramp["to"].as_f64().unwrap()).sum();
        let measured_ns = test["measured_ns"].as_f64().unwrap();
        let counted = test["read"]["ios"].as_f64().unwrap() * (1.0 + ramp_ns / measured_ns);
        assert!(close(requests("read"), counted, 0.02), "{}: {} {counted}", test["id"], requests("read"));
    }
    let curve = titled(&charts, "Latency by percentile")[0];
    let p99 = points(curve, "read").iter().find(|point| point[4] == "p99").expect("it has enough I/Os");
    assert_eq!(p99[2].as_f64(), tests[0]["read"]["lat_ns"]["p99"].as_f64());
    let map = charts.iter().find(|chart| chart["form"] == "heat").unwrap();
    let cells = map["cells"].as_array().unwrap().iter().map(|cell| cell[2].as_f64().unwrap()).sum::<f64>();
    assert!(cells >= tests[0]["read"]["ios"].as_f64().unwrap(), "{cells}");
}

#[test]
fn a_bench_writes_the_same_page_that_its_run_has_later() {
    let dir = scratch();
    run(dir.path(), &[&BENCH[..], &["--report", "now.html"]].concat()).succeeded();
    let now = std::fs::read_to_string(dir.path().join("now.html")).unwrap();
    assert_eq!(now, page(dir.path(), &[]));
    // What cannot be written is said before anything is measured.
    let missing = run(dir.path(), &[&BENCH[..], &["--report", "no/such/page.html"]].concat());
    assert_eq!((missing.code, missing.stdout.as_str()), (Some(1), ""), "{}", missing.stderr);
    assert!(missing.stderr.contains("cannot write no/such/page.html"), "{}", missing.stderr);
    for (name, told) in
        [("now.svg", "now.svg would be a chart"), ("now.xyz", "unsupported output format: .xyz")]
    {
        let other = run(dir.path(), &[&BENCH[..], &["-o", name]].concat());
        assert!(other.code == Some(2) && other.stderr.contains(told), "{}", other.stderr);
    }
    // The ending chooses the format.
    let json = run(dir.path(), &[&BENCH[..], &["-o", "now.json", "--json"]].concat()).quietly();
    let members = |text: &str| serde_json::from_str::<Value>(text).unwrap()["tests"].clone();
    let written = std::fs::read_to_string(dir.path().join("now.json")).unwrap();
    assert_eq!(members(&json.stdout), members(&written));
    for other in [&["--against", "sim:aws-gp3"][..], &["--every", "1h", "--for", "2h"]] {
        let refused = run(dir.path(), &[&BENCH[..], &["--report", "now.html"], other].concat());
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    }
}

#[test]
fn every_activity_has_a_page() {
    let dir = scratch();
    let volume = "sim:custom?iops=700&bandwidth=20MiB&latency=500us&parallelism=64&size=1GiB";
    for (command, title) in [
        (&["sweep", "--budget=10s", volume][..], "Random read: IOPS by queue depth"),
        (&["surface", "--points=10", "--budget=10s", volume], "Transfer rate by offset, MiB/s"),
        (&["identify", "--budget=5m", volume], "IOPS over time"),
        (&["prepare", "--fill", volume], "Bandwidth over time"),
        (&["ping", "-c", "300", "-i", "100ms", volume], "Latency over time"),
        (&["simulate", "--profile=oltp", "--for=1h", "aws-gp2-2016?size=50GiB"], "Burst credits over time"),
    ] {
        run(dir.path(), &[command, &["--keep"]].concat()).succeeded();
        let page = page(dir.path(), &[]);
        titled(&charts(&page), title);
        for part in ["<h2>Conditions</h2>", "Content-Security-Policy", "</html>"] {
            assert!(page.contains(part), "{command:?}: {part}");
        }
    }
}

#[test]
fn the_first_screen_has_the_verdict_a_chart_limits_and_uses() {
    let dir = scratch();
    run(dir.path(), &["bench", "--quick", "--keep", "sim:aws-gp2?size=50GiB"]).succeeded();
    let bench = page(dir.path(), &[]);
    let (first, rest) = bench.split_once("<h2>Tests</h2>").expect("it has several tests");
    for part in [
        "<title>sim:aws-gp2?size=50GiB, simulated: Sustains 150 IOPS",
        "<h1><span>Sustains</span> 150 IOPS, 37.5 MiB/s <small>published rule, aws-gp2</small></h1>",
        "<p class=\"burst\"><b>Burst</b> 3,000 IOPS for 31 min 35 s",
        "<dt>Sustained</dt>\n<dd>150 IOPS</dd>\n<dd class=\"note\">published rule</dd>",
        "<dt>Burst</dt>\n<dd>3,000 IOPS</dd>\n<dd class=\"note\">±",
        "<b>Next</b> aws-gp3, 50 GiB",
        "<b>Suits</b> <span class=\"good\">etcd</span>",
        "<b>During bursts only</b> <span class=\"partly\">OLTP</span>",
    ] {
        assert!(first.contains(part), "{part} is not in {first}");
    }
    assert!(!first.contains("<b>Suits</b> etcd"), "the strip of uses stands for the line");
    // The chart is that of the rule: the burst for its time, then the baseline.
    let story = &charts(first)[0];
    let course = points(story, "");
    assert_eq!(course[1][2].as_f64(), Some(150.0), "{story}");
    assert!(close(course[0][1].as_f64().unwrap(), 1895e9, 0.01), "{}", course[0]);
    // Each test is a row that opens.
    let rows = rest.matches("<summary><span class=\"left\">").count();
    assert_eq!(rows, document(dir.path())["tests"].as_array().unwrap().len());

    run(dir.path(), &["sweep", "--keep", "--budget=20s", "sim:aws-gp3?size=100GiB"]).succeeded();
    let sweep = page(dir.path(), &[]);
    assert!(sweep.contains("<h1><span>Sustains</span> reads 3,000 IOPS"), "{sweep}");
    assert_eq!(charts(&sweep)[0]["title"], "Random read: IOPS by queue depth");
    assert_eq!(titled(&charts(&sweep), "Random read: IOPS by queue depth").len(), 1);

    run(dir.path(), &["identify", "--keep", "--budget=15m", "sim:aws-gp2?size=50GiB"]).succeeded();
    let identified = page(dir.path(), &[]);
    assert!(
        identified.contains("<dt>Bandwidth</dt>\n<dd>128.0 MiB/s</dd>\n<dd class=\"note\">±"),
        "{identified}"
    );
}

#[test]
fn several_runs_are_compared_first() {
    let dir = scratch();
    run(dir.path(), &BENCH).succeeded();
    run(dir.path(), &["report", "1", "sim:aws-gp3", "-o", "both.html"]).succeeded();
    let both = std::fs::read_to_string(dir.path().join("both.html")).unwrap();
    let places = ["class=\"verdict\"", "class=\"story\"", "<h2>A: Verdict</h2>", "<h2>B: Verdict</h2>"];
    let places = places.map(|part| both.find(part).unwrap_or_else(|| panic!("{part} is missing")));
    assert!(places.is_sorted(), "{places:?}");
    assert!(!both.contains("<h2></h2>"));
}

#[test]
fn the_ending_of_the_file_chooses_the_format() {
    let dir = scratch();
    run(dir.path(), &BENCH).succeeded();
    for (name, start) in [("r.md", "# sim:"), ("r.csv", "test,title,"), ("r.json", "{"), ("r.txt", "sim:aws")]
    {
        let said = run(dir.path(), &["report", "-o", name]).quietly().stdout;
        assert!(said.starts_with(&format!("Wrote {name} (")), "{said}");
        let text = std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert!(text.starts_with(start), "{name}: {text}");
    }
    for kind in ["overview", "time", "latency", "heat"] {
        run(dir.path(), &["report", "--chart", kind, "-o", "chart.svg"]).succeeded();
        let svg = std::fs::read_to_string(dir.path().join("chart.svg")).unwrap();
        assert!(svg.starts_with("<svg ") && svg.contains("sim:aws-gp2-2016"), "{kind}");
        // To a pipe as well.
        assert_eq!(run(dir.path(), &["report", "--chart", kind]).quietly().stdout, svg);
    }
    assert!(run(dir.path(), &["report", "--format=html"]).quietly().stdout.starts_with("<!doctype html>"));
    let text = run(dir.path(), &["report", "--full"]).quietly().stdout;
    assert!(text.starts_with("sim:aws") && text.contains("\nFindings\n"), "{text}");
    for (arguments, told) in [
        (&["-o", "a.xyz"][..], "unsupported output format: .xyz"),
        (&["-o", "a.jpg", "--chart", "time"], "end it in .html"),
        (&["-o", "a.svg"], "--chart overview"),
        (&["-o", "a.png"], "--chart overview"),
        (&["-o", "a.html", "--chart", "time"], "writes SVG or PNG, not html"),
        (&["--chart", "pie"], "unknown kind of chart 'pie'"),
        (&["--chart", "depth"], "needs a sweep"),
        (&["--format", "yaml"], "unknown format 'yaml'"),
        (&["nothing"], "nothing"),
    ] {
        let refused = run(dir.path(), &[&["report", "last"], arguments].concat());
        assert!(
            refused.code != Some(0) && refused.stderr.contains(told),
            "{arguments:?}: {}",
            refused.stderr
        );
    }
    assert!(!dir.path().join("a.png").exists() && !dir.path().join("a.html").exists());
}

#[cfg(not(feature = "png"))]
#[test]
fn a_program_without_png_says_how_to_have_it() {
    let dir = scratch();
    run(dir.path(), &BENCH).succeeded();
    let refused = run(dir.path(), &["report", "--chart", "time", "-o", "chart.png"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("hint: write SVG, or build fathom with `--features png`"), "{refused:?}");
}

/// Width and height in the header of a PNG file.
#[cfg(feature = "png")]
fn size(png: &[u8]) -> (u32, u32) {
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

#[cfg(feature = "png")]
#[test]
fn a_chart_in_pixels_is_twice_the_one_in_svg() {
    let dir = scratch();
    run(dir.path(), &BENCH).succeeded();
    for kind in ["overview", "time", "latency", "heat"] {
        run(dir.path(), &["report", "--chart", kind, "-o", "chart.png"]).succeeded();
        let png = std::fs::read(dir.path().join("chart.png")).unwrap();
        let svg = run(dir.path(), &["report", "--chart", kind]).quietly().stdout;
        let (width, height) = size(&png);
        let box_of = format!("viewBox=\"0 0 {} {}\"", width / 2, height / 2);
        assert!(svg.contains(&box_of), "{kind}: {width} {height}");
    }
    let compared = ["compare", "1", "sim:aws-gp3", "--quick", "--chart", "latency:both.png"];
    run(dir.path(), &compared).succeeded();
    assert_eq!(size(&std::fs::read(dir.path().join("both.png")).unwrap()).0, 1920);
}

#[cfg(feature = "png")]
#[test]
fn the_page_of_an_imported_test_has_its_percentiles_or_says_why_it_has_no_chart() {
    let dir = scratch();
    let job = ["fio", "--name=t", "--ioengine=null", "--size=64m", "--rw=randread", "--output-format=json"];
    std::fs::write(dir.path().join("t.json"), run(dir.path(), &job).quietly().stdout).unwrap();
    run(dir.path(), &["report", "t.json", "-o", "t.html"]).succeeded();
    let text = std::fs::read_to_string(dir.path().join("t.html")).unwrap();
    let document: Value = {
        let text = std::fs::read_to_string(dir.path().join("t.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let all = charts(&text);
    let curve = points(titled(&all, "Latency by percentile")[0], "read");
    let clat = &document["jobs"][0]["read"]["clat_ns"]["percentile"];
    for (name, key) in [("p50", "50.000000"), ("p99", "99.000000"), ("p99.9", "99.900000")] {
        let point = curve.iter().find(|point| point[4] == name).unwrap_or_else(|| panic!("no {name}"));
        assert_eq!(point[2].as_f64(), clat[key].as_f64(), "{name}");
    }
    std::fs::write(dir.path().join("bare.csv"), "test,metric,value,unit\nt,read.iops,100,IOPS\n").unwrap();
    run(dir.path(), &["report", "bare.csv", "-o", "bare.html"]).succeeded();
    let bare = std::fs::read_to_string(dir.path().join("bare.html")).unwrap();
    assert!(charts(&bare).is_empty() && bare.contains("No chart: the source has one test"), "{bare}");
}

#[test]
fn names_of_others_are_text_in_every_format() {
    const NAME: &str = "<script>alert(1)</script>\"><img src=x onerror=alert(2)>\u{1b}[31m\u{202e}=1+1";
    let dir = scratch();
    let name = format!("--name={NAME}");
    let job = ["fio", &name, "--ioengine=null", "--size=1g", "--rw=randread", "--time_based", "--runtime=2"];
    let label = format!("{NAME}={NAME}");
    run(dir.path(), &[&job[..], &["--keep"]].concat()).succeeded();
    let labelled =
        run(dir.path(), &["bench", "--quick", "--only=lat-read", "--keep", "--label", &label, VOLUME]);
    labelled.succeeded();
    for selection in ["1", "2"] {
        run(dir.path(), &["report", selection, "-o", "page.html"]).succeeded();
        let page = std::fs::read_to_string(dir.path().join("page.html")).unwrap();
        run(dir.path(), &["report", selection, "--chart", "time", "-o", "chart.svg"]).succeeded();
        if cfg!(feature = "png") {
            run(dir.path(), &["report", selection, "--chart", "time", "-o", "chart.png"]).succeeded();
        }
        let svg = std::fs::read_to_string(dir.path().join("chart.svg")).unwrap();
        for text in [&page, &svg] {
            assert!(!text.contains("<script>alert") && !text.contains("<img"), "{selection}");
            assert!(!text.contains(['\u{1b}', '\u{202e}']), "{selection}");
        }
        for format in ["markdown", "text", "csv"] {
            let text = run(dir.path(), &["report", selection, "--format", format]).quietly().stdout;
            assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{format}: {text}");
            // Between fences everything is text.
            let before_commands = text.split("```").next().unwrap();
            assert!(format != "markdown" || !before_commands.contains("<script>"), "{text}");
        }
    }
}

/// Jobs that wait for those before them share no second: the rates of a page are those of each.
#[test]
fn rates_of_all_operations_of_an_imported_table_have_bars() {
    let dir = scratch();
    let table = "| Disk | IOPS |\n|---|---|\n| A | 68,400 |\n| B | 91,000 |\n";
    std::fs::write(dir.path().join("page.md"), table).unwrap();
    run(dir.path(), &["history", "import", "page.md"]).succeeded();
    let charts = charts(&page(dir.path(), &[]));
    let bars = points(titled(&charts, "IOPS of each test")[0], "total");
    let rates: Vec<f64> = bars.iter().map(|bar| bar[2].as_f64().unwrap()).collect();
    assert_eq!(rates, [68_400.0, 91_000.0]);
}

#[test]
fn jobs_after_each_other_are_not_added_up() {
    let dir = scratch();
    let job = "--filename=sim:custom?iops=1000&latency=1ms&size=1GiB --rw=randread --iodepth=8 --time_based --runtime=10";
    let words: Vec<&str> = "fio --keep --name=a".split(' ').chain(job.split(' ')).collect();
    let words = [&words[..], &["--name=b", "--stonewall"], &job.split(' ').collect::<Vec<_>>()].concat();
    run(dir.path(), &words).succeeded();
    let csv = run(dir.path(), &["report", "last", "--format", "csv"]).quietly().stdout;
    let mut rows = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let heads = rows.next().unwrap();
    let iops = heads.iter().position(|head| *head == "iops").unwrap();
    let whole: f64 = rows.next().unwrap()[iops].parse().unwrap();
    assert!(close(whole, 1000.0, 0.05), "{whole}");
    let charts = charts(&page(dir.path(), &[]));
    let overview = titled(&charts, "IOPS of each test")[0];
    assert_eq!(overview["x"]["names"], serde_json::json!(["a", "b"]));
    for bar in points(overview, "read") {
        assert!(close(bar[2].as_f64().unwrap(), 1000.0, 0.05), "{bar}");
    }
}
