//! `fathom compare`: on virtual time every number is exact, so whole reports are compared.

use std::path::Path;

use serde_json::Value;

use crate::{ended, on_both, program, run, run_with_history, scratch};

on_both!(runs_of_the_history_are_repetitions_of_one_source);

const ONLY: &str = "--only=lat-read,commit,rand-read,rand-mixed,seq-read";

/// What `compare` prints for `args` in an empty directory.
#[track_caller]
fn printed(args: &[&str]) -> String {
    let dir = scratch();
    let text = run(dir.path(), &[&["compare", "--quick", ONLY], args].concat()).quietly().stdout;
    text.replace(concat!("fathom bench ", env!("CARGO_PKG_VERSION")), "fathom bench 0.0.0")
}

#[test]
fn two_volumes_stand_side_by_side() {
    let sources = ["sim:aws-gp2-2016?size=50GiB", "sim:aws-gp3"];
    insta::assert_snapshot!("compare_two", printed(&sources));
    for format in ["markdown", "csv"] {
        let args = [&sources[..], &["--format", format]].concat();
        insta::assert_snapshot!(format!("compare_two_{format}"), printed(&args));
    }
}

#[test]
fn many_volumes_make_a_matrix() {
    let sources = [
        "sim:aws-gp2-2016?size=50GiB",
        "sim:aws-gp3",
        "sim:do-volume-standard",
        "sim:aws-st1?size=1TiB",
        "sim:custom?iops=700&bandwidth=20MiB&latency=500us&parallelism=64",
        "--base=B",
        "--price=E=3.50EUR/month",
    ];
    insta::assert_snapshot!("compare_many", printed(&sources));
    let transposed = printed(&[&sources[..], &["--only=rand-read,rand-mixed", "--transpose"]].concat());
    insta::assert_snapshot!("compare_many_transposed", transposed);
}

#[test]
fn the_document_has_pairs_ranking_and_conclusion() {
    let text = printed(&[
        "sim:custom?iops=1000&latency=1ms",
        "sim:custom?iops=2000&latency=1ms",
        "--runs=3",
        "--json",
    ]);
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (document["schema"].as_str(), document["base"].as_str()),
        (Some("fathom.compare/1"), Some("A"))
    );
    assert_eq!(document["sources"][0]["runs"].as_array().unwrap().len(), 3);
    let pairs = document["pairs"].as_array().unwrap();
    let pair = |test: &str, metric: &str| {
        pairs
            .iter()
            .find(|pair| pair["test"] == test && pair["metric"] == metric && pair["direction"] == "read")
            .unwrap()
    };
    let rate = pair("rand-read", "iops");
    assert_eq!((rate["verdict"].as_str(), rate["interval"].as_str()), (Some("better"), Some("runs")));
    assert!((rate["ratio"].as_f64().unwrap() - 2.0).abs() < 0.01, "{rate:#}");
    assert_eq!((rate["runs_a"].as_u64(), rate["runs_b"].as_u64()), (Some(3), Some(3)));
    // One request at a time meets the latency, which is the same.
    assert_eq!(pair("lat-read", "iops")["verdict"], "equivalent");
    assert_eq!(pair("rand-read", "lat_ns.mean")["verdict"], "better");
    assert_eq!(document["ranking"][0]["source"], "B");
    for member in ["differences", "contradictions", "conclusion", "uses", "tests"] {
        assert!(document[member].is_array(), "{member}");
    }
    assert!(document["conclusion"].as_array().unwrap().len() <= 5);
}

/// Keeps a bench of a simulated volume, with a label.
#[track_caller]
fn keep(dir: &Path, volume: &str, label: &str, more: &[&str]) {
    let args = ["bench", "--quick", "--only=lat-read,rand-read", "--label", label, volume];
    run_with_history(dir, &[&args[..], more].concat()).quietly();
}

fn runs_of_the_history_are_repetitions_of_one_source(dir: &Path) {
    for seed in ["1", "2", "3"] {
        for (iops, label) in [("1000", "volume=a"), ("900", "volume=b")] {
            keep(dir, &format!("sim:custom?iops={iops}&latency=200us&seed={seed}"), label, &[]);
        }
    }
    let compare = |args: &[&str]| run_with_history(dir, &[&["compare"], args].concat());
    let found = compare(&["label:volume=a", "2,4,6", "--json"]).quietly();
    let document: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(document["sources"][0]["runs"], serde_json::json!(["run 1", "run 3", "run 5"]));
    let pairs = document["pairs"].as_array().unwrap();
    let rate = pairs.iter().find(|pair| pair["test"] == "rand-read" && pair["metric"] == "iops").unwrap();
    assert_eq!((rate["verdict"].as_str(), rate["runs_b"].as_u64()), (Some("worse"), Some(3)));
    // last is run 6, last~1 run 5, and the newest of label a is run 5 too.
    for (args, expected) in
        [(["last~1", "last"], ["run 5", "run 6"]), (["label:volume=a~0", "6"], ["run 5", "run 6"])]
    {
        let text = compare(&[&args[..], &["--full"]].concat()).quietly().stdout;
        assert!(expected.iter().all(|run| text.contains(run)) && text.contains("single"), "{text}");
    }
    for (condition, strict, code) in [
        ("rand-read.iops < 0.95", false, 3),
        ("rand-read.iops < 0.85", false, 0),
        ("rand-read.iops < 950 IOPS", false, 3),
        ("iops < 0.95", true, 3),
        ("rand-read.lat.mean < 1ms", true, 0),
    ] {
        let mut args = vec!["1,3,5", "2,4,6", "--fail-if", condition];
        args.extend(strict.then_some("--strict"));
        let ended = compare(&args);
        assert_eq!(ended.code, Some(code), "{condition}: {}{}", ended.stdout, ended.stderr);
    }
    // One short run each decides nothing.
    let one = ["1", "2", "--fail-if", "rand-read.lat.mean > 1.01"];
    assert_eq!(compare(&one).code, Some(0));
    assert_eq!(compare(&[&one[..], &["--strict"]].concat()).code, Some(4));
    // Exports are sources too, several runs in one file.
    let exported = run_with_history(dir, &["history", "export", "2", "4", "6"]).quietly().stdout;
    std::fs::write(dir.join("b.jsonl"), exported).unwrap();
    let text = compare(&["1,3,5", "b.jsonl", "--full"]).quietly().stdout;
    assert!(text.contains("worse") && text.contains("b.jsonl (3)"), "{text}");
}

#[test]
fn a_model_runs_the_tests_of_the_run_beside_it() {
    let dir = scratch();
    keep(dir.path(), "sim:custom?iops=1000&latency=200us", "volume=a", &["--runtime=2s", "--size=1g"]);
    let args = ["compare", "--history=h.db", "last", "sim:custom?iops=3000&latency=200us", "--json"];
    let document: Value = serde_json::from_str(&run(dir.path(), &args).quietly().stdout).unwrap();
    let tests: Vec<&str> =
        document["tests"].as_array().unwrap().iter().map(|test| test["test"].as_str().unwrap()).collect();
    assert_eq!(tests, ["lat-read", "rand-read"]);
    let prevented =
        document["differences"].as_array().unwrap().iter().any(|one| one["prevents_verdict"] == true);
    assert!(!prevented, "{:#}", document["differences"]);
    let conditions: Vec<&str> = document["differences"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["condition"].as_str().unwrap())
        .collect();
    assert!(!conditions.contains(&"runtime") && !conditions.contains(&"size"), "{conditions:?}");
}

/// Two classes of a provider, as the text of fio 2.2 was published, beside a model that runs the same test.
#[test]
fn the_output_of_another_program_is_a_source() {
    let dir = scratch();
    let articles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../import/tests/fixtures/articles");
    for class in ["capacity", "high-performance"] {
        let name = format!("qingcloud-{class}-randread.fio-2.2.10.txt");
        std::fs::copy(articles.join(&name), dir.path().join(format!("{class}.txt"))).unwrap();
    }
    let args = ["compare", "capacity.txt", "high-performance.txt", "sim:custom?iops=5000&latency=1ms"];
    let text = run(dir.path(), &args).quietly().stdout;
    let text = text.replace(concat!("fathom bench ", env!("CARGO_PKG_VERSION")), "fathom bench 0.0.0");
    insta::assert_snapshot!("compare_imported", text);
}

/// The conclusion on two sources.
#[track_caller]
fn conclusion(dir: &Path, args: &[&str]) -> Vec<String> {
    let text = run(dir, &[&["compare"], args, &["--json"]].concat()).quietly().stdout;
    let document: Value = serde_json::from_str(&text).unwrap();
    let sentences = document["conclusion"].as_array().unwrap().iter();
    sentences.map(|sentence| sentence.as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_order_that_differs_by_less_than_counts_does_not_reverse() {
    let dir = scratch();
    let of = |other: &str, runs: &str| {
        conclusion(dir.path(), &["--quick", "--only=rand-read", runs, "sim:aws-gp2-2016?size=50GiB", other])
    };
    let near = of("sim:custom?iops=2970&latency=500us", "--runs=1");
    assert!(near.iter().all(|sentence| !sentence.contains("reverses")), "{near:?}");
    let equal = "While burst credits last, for 31 min 35 s: no difference above 3 % between B and A.";
    assert_eq!(near.last().map(String::as_str), Some(equal));
    let far = of("sim:custom?iops=2500&latency=500us", "--runs=1");
    assert!(far.iter().any(|sentence| sentence.contains("reverses, for 31 min 35 s: A")), "{far:?}");
    // Repeated bursts of the same rate do not put in doubt what remains of one of them.
    let repeated = of("sim:aws-gp3", "--runs=3");
    assert!(repeated[0].starts_with("B (aws-gp3) leads with 20.0 times the sustained rate"), "{repeated:?}");
    assert!(repeated.iter().all(|sentence| !sentence.contains("reverses")), "{repeated:?}");
}

#[test]
fn tests_that_wait_have_no_order_by_rate_and_one_by_latency() {
    let dir = scratch();
    let columns = "test,metric,value,unit,rw,bs,iodepth,tool";
    let table = |iops: u32, us: u32| {
        format!(
            "{columns}\np,read.iops,{iops},,randread,4k,1,ioping\np,read.lat_ns.mean,{us},us,randread,4k,1,ioping\n"
        )
    };
    std::fs::write(dir.path().join("a.csv"), table(1828, 540)).unwrap();
    std::fs::write(dir.path().join("b.csv"), table(900, 1100)).unwrap();
    let found = conclusion(dir.path(), &["a.csv", "b.csv"]);
    let why = "tests that wait between I/Os do not reach the limit of a volume, and no other has a rate";
    let latency = "the mean latency of B at QD 1 is 2.04 times that of A (p)";
    assert_eq!(found[0], format!("No order: {why}; {latency}."));
    let text = run(dir.path(), &["compare", "a.csv", "b.csv"]).quietly().stdout;
    assert!(text.contains("1,828") && !text.contains("states no rate"), "{text}");
}

/// One source has the sum of reads and writes, the other has both.
#[test]
fn a_mix_whose_operations_one_source_does_not_tell_apart_is_compared_by_its_total() {
    let dir = scratch();
    let columns = "test,metric,value,unit,rw,bs,iodepth";
    let apart = format!("{columns}\nm,read.iops,1500,,randrw,4k,32\nm,write.iops,500,,randrw,4k,32\n");
    std::fs::write(dir.path().join("a.csv"), apart).unwrap();
    let together = format!("{columns}\nm,total.iops,4000,,randrw,4k,32\n");
    std::fs::write(dir.path().join("b.csv"), together).unwrap();
    for (sources, by) in [(["a.csv", "b.csv"], "B (b.csv) leads"), (["b.csv", "a.csv"], "A (b.csv) leads")] {
        let found = conclusion(dir.path(), &sources);
        assert!(
            found[0].starts_with(by) && found[0].contains("with 2.00 times the measured rate"),
            "{found:?}"
        );
    }
}

/// Two sources over block sizes and depths, one of them with an interval and a hang.
const GRID: &str = "\
test,metric,value,unit,rw,bs,iodepth,numjobs
d1,read.iops,1000,,randread,4k,1,1
d4,read.iops,3500,,randread,4k,4,1
d16,read.iops,5000,,randread,4k,16,1
d16,read.lat_ns.p50,3,ms,randread,4k,16,1
d16,read.lat_ns.p99,9,ms,randread,4k,16,1
b16,read.iops,5000,,randread,16k,16,1
b64,read.iops,3200,,randread,64k,16,1
b256,read.iops,VALUE,,randread,256k,16,1
";

#[test]
fn charts_are_drawn_on_the_terminal_and_as_files() {
    let dir = scratch();
    let slower = GRID.replace("5000", "4000").replace("3200", "1600").replace("VALUE", "stalled");
    std::fs::write(dir.path().join("a.csv"), GRID.replace("VALUE", "800")).unwrap();
    std::fs::write(dir.path().join("<b>.csv"), slower).unwrap();
    let compare = |args: &[&str]| run(dir.path(), &[&["compare", "a.csv", "<b>.csv"], args].concat());
    let shown =
        compare(&["--chart=bars", "--chart=ladder", "--chart=depth", "--chart=latency"]).quietly().stdout;
    let charts = shown.split("\nCharts\n").nth(1).unwrap().split("\nLimits").next().unwrap();
    insta::assert_snapshot!("compare_charts", charts.split("\nRanking").next().unwrap());
    let files = ["a.svg", "log-bars:b.svg", "ladder:c.svg", "depth:d.svg", "latency:e.svg"];
    let args: Vec<String> = files.iter().map(|file| format!("--chart={file}")).collect();
    compare(&args.iter().map(String::as_str).collect::<Vec<_>>()).quietly();
    for name in ["a.svg", "b.svg", "c.svg", "d.svg", "e.svg"] {
        let svg = std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert!(
            svg.starts_with("<svg ") && svg.contains("&lt;b&gt;.csv") && !svg.contains("<b>"),
            "{name}: {svg}"
        );
    }
    insta::assert_snapshot!("compare_depth_svg", std::fs::read_to_string(dir.path().join("d.svg")).unwrap());
    for (chart, part) in [
        ("day", "cannot draw the chart day: it needs a test on burst credits"),
        ("surface:x.svg", "it needs runs of fathom surface"),
        ("pie", "use one of bars, log-bars, ladder, depth, latency, day, surface"),
        ("bars:x.jpg", "write KIND:FILE.svg"),
    ] {
        let ended = compare(&["--chart", chart]);
        assert!(ended.code == Some(2) && ended.stderr.contains(part), "{chart}: {}", ended.stderr);
    }
    let ended = compare(&["--chart=none/x.svg"]);
    assert!(ended.code == Some(1) && ended.stderr.contains("cannot write none/x.svg"), "{}", ended.stderr);
}

#[test]
fn rates_over_a_day_end_with_the_burst_credits() {
    let args = ["sim:aws-gp2-2016?size=50GiB", "sim:aws-gp3", "--only=rand-read", "--chart=day"];
    let shown = printed(&args);
    let charts = shown.split("\nCharts\n").nth(1).unwrap().split("\nStability").next().unwrap();
    insta::assert_snapshot!("compare_chart_of_a_day", charts);
}

#[test]
fn conditions_are_written_as_junit() {
    let dir = scratch();
    for (name, rate) in [("a.csv", "1000"), ("b.csv", "900")] {
        let text = format!("test,metric,value,unit\nt,read.iops,{rate},\n");
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let args = ["compare", "a.csv", "b.csv", "--fail-if=t.iops < 0.95", "--junit=out.xml"];
    assert_eq!(run(dir.path(), &args).code, Some(0));
    let text = std::fs::read_to_string(dir.path().join("out.xml")).unwrap();
    assert!(text.contains("skipped=\"1\"") && text.contains("one run has no interval"), "{text}");
    assert_eq!(run(dir.path(), &[&args[..], &["--strict"]].concat()).code, Some(4));
    let text = std::fs::read_to_string(dir.path().join("out.xml")).unwrap();
    assert!(text.contains("<failure type=\"inconclusive\""), "{text}");
    let refused = run(dir.path(), &["compare", "a.csv", "b.csv", "--junit=out.xml"]);
    assert_eq!(refused.code, Some(2));
}

#[test]
fn published_figures_are_sources() {
    let dir = scratch();
    let compare = |one: &str, other: &str| run(dir.path(), &["compare", one, other]);
    let (fast, slow) = ("published:qingcloud-high-performance", "published:a3-cap-randread");
    assert!(compare(fast, slow).quietly().stdout.contains("B/A"));
    for (name, part) in [
        ("published:aws-io1-2012", "'aws-io1-2012' names several published volumes"),
        ("published:none", "no figures are published under 'none'"),
        ("published:a0-claims", "use one of a0-aws, a0-do"),
    ] {
        let ended = compare(name, fast);
        assert!(ended.code == Some(2) && ended.stderr.contains(part), "{name}: {}", ended.stderr);
    }
    let ended = run(dir.path(), &["compare", fast, slow, "--type=B=aws-gp9"]);
    assert!(
        ended.code == Some(2) && ended.stderr.contains("unknown volume type 'aws-gp9'"),
        "{}",
        ended.stderr
    );
}

/// A document of our own is as good as the record that it is made of, as far as its figures go.
#[test]
fn documents_of_bench_and_pasted_text_are_sources() {
    let dir = scratch();
    let bench = ["bench", "--quick", "--only=lat-read,rand-read", "--history=h.db", "--label=volume=ssd-3"];
    let volume = "sim:custom?iops=1000&latency=200us";
    let text = run(dir.path(), &[&bench[..], &[volume, "--json"]].concat()).quietly().stdout;
    std::fs::write(dir.path().join("bench.json"), &text).unwrap();
    let args = ["compare", "--history=h.db", "label:volume=ssd-3", "bench.json", "--json"];
    let document: Value = serde_json::from_str(&run(dir.path(), &args).quietly().stdout).unwrap();
    let pairs = document["pairs"].as_array().unwrap();
    let rates: Vec<&Value> = pairs.iter().filter(|pair| pair["metric"] == "iops").collect();
    assert_eq!(rates.len(), 2);
    for pair in pairs.iter().filter(|pair| !pair["b"].is_null()) {
        let ratio = pair["ratio"].as_f64().unwrap();
        assert!((ratio - 1.0).abs() < 1e-6, "{pair:#}");
    }
    let listed: Vec<&str> = document["differences"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["condition"].as_str())
        .collect();
    assert!(!listed.contains(&"queue depth") && !listed.contains(&"size"), "{listed:?}");
    // A sheet without operations: its figures are those of the only one that the other source did.
    let sheet = "test,metric,value,unit\nrand-read,iops,500,\nrand-read,lat.mean,2,ms\n";
    std::fs::write(dir.path().join("sheet.csv"), sheet).unwrap();
    let args = ["compare", "--history=h.db", "last", "sheet.csv", "--explain=B:rand-read.iops", "--json"];
    let document: Value = serde_json::from_str(&run(dir.path(), &args).quietly().stdout).unwrap();
    let cell = &document["explanations"][0];
    assert_eq!((cell["cell"].as_str(), cell["value"].as_f64()), (Some("B:rand-read.read.iops"), Some(500.0)));
    assert_eq!(cell["runs"][0]["line"].as_u64(), Some(2));
    let pasted = std::fs::File::open(dir.path().join("bench.json")).unwrap();
    let args = ["compare", "--history=h.db", "last~0", "-"];
    let pasted = ended(program(dir.path()).args(args).stdin(pasted).output().unwrap()).quietly();
    assert!(pasted.stdout.contains("rand-read"), "{pasted:?}");
}

/// A table in which a latency and a rate do not go together, bounds, estimates and statements.
#[test]
fn tables_say_what_they_know() {
    let dir = scratch();
    let table = "test,metric,value,unit,kind,rw,bs,iodepth\n\
                 t,read.iops,1020,,,randread,4k,1\n\
                 t,read access time,20.3,ms,,randread,4k,1\n\
                 u,iops,5920,,,randread,4k,1\n\
                 u,lat.mean,0.168,us,,randread,4k,1\n\
                 v,runtime,118.471,s,,randwrite,4k,64\n\
                 v,runtime,~30,s,claimed,randwrite,4k,64\n\
                 w,write.iops,>7000,,,randwrite,4k,8\n\
                 w,write.bw,210,MB/s,,randwrite,4k,8\n\
                 x,iops,~1600,,,,,\n";
    std::fs::write(dir.path().join("a.csv"), table).unwrap();
    std::fs::write(dir.path().join("b.csv"), "test,metric,value,unit\nx,iops,1700,\n").unwrap();
    let text = run(dir.path(), &["compare", "--full", "a.csv", "b.csv"]).quietly().stdout;
    for part in [
        "A, t: 1,020 IOPS at the stated mean latency take 21 outstanding I/Os, and the test has 1",
        "A, u: 5,920 IOPS at the stated mean latency keep the device busy for 0.1 % of the time",
        "A, v: the text states ~30 s as runtime (claimed), and the output has 1 min 58 s",
        "above 7,000",
        "unit unknown",
        "~1,600",
    ] {
        assert!(text.replace("\n    ", " ").contains(part), "{part}: {text}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_the_reason() {
    let dir = scratch();
    std::fs::write(dir.path().join("junk.json"), "{\"schema\":\"fathom.bench/1\"}").unwrap();
    let sim = "sim:custom?iops=100";
    for (args, parts) in [
        (&[sim][..], &["2"][..]),
        (&["last", sim], &["there is no history", "hint: use a run number"]),
        (&["junk.json", sim], &["cannot read junk.json", "hint: "]),
        (&["none.json", sim], &["there is no such file"]),
        (&["sim:aws-gp9", sim], &["unknown volume type 'aws-gp9'"]),
        (&["-", "-"], &["standard input can be one source only"]),
        (&[sim, sim, "--base=C"], &["--base names source C, but there are 2", "use A to B"]),
        (&[sim, sim, "--base=1"], &["not the letter of a source"]),
        (&[sim, sim, "--price=C=1USD/month"], &["--price names source C"]),
        (&[sim, sim, "--price=A=1USD"], &["write A=12USD/month"]),
        (&[sim, sim, "--only=none"], &["no test is named none", "use one of lat-read"]),
        (
            &[sim, sim, "--quick", "--only=lat-read", "--fail-if=x.iops<1"],
            &["names no test", "use one of lat-read"],
        ),
        (&[sim, sim, "--fail-if=iops<5k"], &["write 0.95, or 5000 IOPS"]),
        (&[sim, sim, "--strict"], &["--fail-if"]),
        (&[&format!("{sim},{sim}"), sim], &["is not a whole number"]),
    ] {
        let ended = run(dir.path(), &[&["compare"], args].concat());
        // What is not there is no mistake in the command line.
        let code = if parts[0].starts_with("there is no ") { 1 } else { 2 };
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(code), ""), "{args:?}: {}", ended.stderr);
        for part in parts {
            assert!(ended.stderr.contains(part), "{args:?} lacks {part:?}: {}", ended.stderr);
        }
    }
}

#[test]
fn a_comparison_is_written_to_a_file_as_well() {
    let dir = scratch();
    let args = ["compare", "sim:aws-gp3", "sim:custom?iops=100", "--quick", "--only=rand-read", "-o"];
    for (file, part) in [("both.html", "<h1"), ("both.md", "| test"), ("both.json", "\"fathom.compare/1\"")] {
        let printed = run(dir.path(), &[&args[..], &[file]].concat()).quietly().stdout;
        assert!(printed.contains("  Result "), "{printed}");
        let written = std::fs::read_to_string(dir.path().join(file)).unwrap();
        assert!(written.contains(part), "{file}: {written}");
    }
    let refused = run(dir.path(), &[&args[..], &["both.xyz"]].concat());
    assert!(refused.code == Some(2) && refused.stderr.contains("unsupported output format: .xyz"));
}

#[test]
fn value_for_money_comes_first_if_it_is_asked_for() {
    let dir = scratch();
    let sources = ["compare", "sim:aws-gp2?size=100GiB", "sim:aws-gp3", "sim:custom?iops=2000", "--quick"];
    let asked = |more: &[&str]| {
        let args = [&sources[..], &["--only=rand-read", "--by=price"], more].concat();
        run(dir.path(), &args).quietly().stdout
    };
    // 10 USD for 300 sustained IOPS, 8 USD for 3,000.
    let text = asked(&[]);
    assert!(text.contains(" B 2.67 USD, A 33.33 per 1,000 sustained IOPS and month\n"), "{text}");
    assert!(text.contains(" C: add --price C=12USD/month\n"), "{text}");
    let text = asked(&["--price=C=4USD/month"]);
    assert!(text.contains("C 2.00 USD, B 2.67, A 33.33 per 1,000"), "{text}");
    // Currencies have no order.
    let text = asked(&["--price=C=4EUR/month"]);
    assert!(text.contains("have no order"), "{text}");
    let of_uses = |price: &str| {
        let args = [&sources[..], &["--by=price", price]].concat();
        run(dir.path(), &args).quietly().stdout
    };
    let text = of_uses("--price=C=4USD/month");
    assert!(text.contains("Cheapest for OLTP, ") && text.contains("backup: C, 4.00 USD."), "{text}");
    // A file has the same.
    asked(&["--price=C=4USD/month", "-o", "value.html"]);
    let page = std::fs::read_to_string(dir.path().join("value.html")).unwrap();
    assert!(page.contains("C 2.00 USD, B 2.67, A 33.33 per 1,000 sustained IOPS and month"));
    let text = of_uses("--price=C=4EUR/month");
    assert!(!text.contains("Cheapest for"), "{text}");
}

#[test]
fn a_page_is_imported_with_what_it_does_not_say() {
    let dir = scratch();
    let page = "Disks\n\n| disk | Random read 4k (IOPS) |\n|---|---|\n| A | 3,016 |\n| B | n/k |\n";
    std::fs::write(dir.path().join("page.txt"), page).unwrap();
    let args = ["history", "import", "page.txt", "--type=aws-gp2?size=50GiB", "--price=12USD/month"];
    let args = [&args[..], &["--date=2017-09-14", "--label=article=1", "--history=h.db"]].concat();
    let said = run(dir.path(), &args).quietly().stdout;
    assert_eq!(said, "Imported run 1: page.txt, tables of a page, 1 test.\n");
    let shown = run(dir.path(), &["report", "1", "--full", "--history=h.db"]).quietly().stdout;
    for part in ["A rand-read-4k", "3,016", "2017-09-14", "skipped: line 6: Random read 4k (IOPS): n/k"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let args = ["compare", "1", "sim:aws-gp3", "--by=price", "--history=h.db"];
    let compared = run(dir.path(), &args).quietly().stdout;
    assert!(compared.contains("12.00 USD"), "{compared}");
}

/// A page on two volumes: jobs of one name under their headings, and what the text makes of each.
fn page_on_two_volumes() -> String {
    let output = |hour: u32, heading: &str, rw: &str, result: &str, said: &str| {
        format!(
            "{heading}\n\n# fio --name=test --rw={rw} --bs=4k --iodepth=64 --direct=1 --size=4G\n\
             test: (g=0): rw={rw}, bs=4K-4K/4K-4K/4K-4K, ioengine=libaio, iodepth=64\nfio-2.2.10\nStarting 1 process\n\
             test: (groupid=0, jobs=1): err= 0: pid={hour}: Tue Feb  3 {hour}:00:00 2026\n  {result}\n  \
             cpu          : usr=3.80%, sys=16.70%, ctx=925976, majf=0, minf=73\n\n{said}\n\n"
        )
    };
    let alpha = "read : io=4096.0MB, bw=346522KB/s, iops=86630, runt= 12104msec";
    let beta = "read : io=4096.0MB, bw=12065KB/s, iops=3016, runt=347640msec";
    let writes = "write: io=4096.0MB, bw=11774KB/s, iops=2943, runt=356237msec";
    [
        output(
            10,
            "Random reads on Alpha",
            "randread",
            alpha,
            "The disk does 86680 reads per second. The test finished in about 30 seconds.",
        ),
        output(
            11,
            "Random reads on Beta",
            "randread",
            beta,
            "The disk does 3016 reads per second. The test finished in about 5 minutes.",
        ),
        output(12, "Random writes on Beta", "randwrite", writes, ""),
    ]
    .concat()
}

#[test]
fn a_page_on_two_volumes_is_imported_one_by_one_and_tells_what_its_text_gets_wrong() {
    let dir = scratch();
    std::fs::write(dir.path().join("page.txt"), page_on_two_volumes()).unwrap();
    let import = |args: &[&str]| {
        let args = [&["history", "import", "page.txt", "--history=h.db"], args].concat();
        run(dir.path(), &args)
    };
    import(&["--only=alpha"]).quietly();
    let said = import(&["--only=beta", "--type=aws-gp2?size=50GiB"]).quietly().stdout;
    assert_eq!(said, "Imported run 2: page.txt, fio text, 2 tests.\n");
    let shown = |run_number: &str| {
        run(dir.path(), &["report", run_number, "--history=h.db"]).quietly().stdout.replace("\n ", " ")
    };
    let (alpha, beta) = (shown("1"), shown("2"));
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(squeezed(&alpha).contains("The text states 86680 IOPS as read IOPS"), "{alpha}");
    assert!(squeezed(&alpha).contains("(and 1 more)"), "30 s beside 12 s: {alpha}");
    assert!(alpha.contains("Random reads on Alpha") && !alpha.contains("Beta"), "{alpha}");
    // Rounded statements are right.
    assert!(!beta.contains("contradiction"), "{beta}");
    let limit = "3,016 and 2,943 IOPS: the burst limit of aws-gp2?size=50GiB, 3,000 for 31 min 35 s from full credits";
    assert!(squeezed(&beta).contains(limit), "{beta}");
    let exceeded = import(&["--only=alpha", "--type=aws-gp2?size=50GiB"]).quietly().stdout;
    assert!(exceeded.starts_with("Imported run 3"), "{exceeded}");
    assert!(squeezed(&shown("3")).contains("86,630 IOPS: more than aws-gp2?size=50GiB allows (3,000)"));
    let compared = run(dir.path(), &["compare", "1", "2", "--history=h.db"]).quietly().stdout;
    assert!(compared.contains("86,630") && compared.contains("3,016"), "{compared}");
    let unknown = import(&["--only=gamma"]);
    let names = "the tests are Random reads on Alpha, Random reads on Beta, Random writes on Beta";
    assert!(unknown.code == Some(2) && unknown.stderr.contains(names), "{unknown:?}");
}

#[test]
fn surfaces_are_compared_by_their_summaries() {
    let dir = scratch();
    for volume in ["sim:custom?size=20GiB&bandwidth=100MiB", "sim:custom?size=40GiB&bandwidth=50MiB"] {
        run(dir.path(), &["surface", volume, "--budget=30s", "--history=h.db"]).quietly();
    }
    run(dir.path(), &["bench", "--quick", "--only=rand-read", "sim:aws-gp3", "--history=h.db"]).quietly();
    let compared =
        |args: &[&str]| run(dir.path(), &[&["compare", "--history=h.db"], args].concat()).quietly().stdout;
    let text = compared(&["1", "2", "--full"]);
    for part in ["Surfaces\n", "mean rate", "access time, mean", "rate at 0-10 %", "rate at 90-100 %", "B/A"]
    {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert!(!text.contains("point-") && !text.contains("saturated-"), "no row for each place: {text}");
    let document: serde_json::Value = serde_json::from_str(&compared(&["1", "2", "--json"])).unwrap();
    assert_eq!(document["tests"], serde_json::json!([]));
    let rate = |at: usize| document["surfaces"][at]["transfer_rate"]["mean"].as_f64().unwrap() / 1_048_576.0;
    assert!((rate(0) - 100.0).abs() < 5.0 && (rate(1) - 50.0).abs() < 3.0, "{document:#}");
    let mixed = compared(&["--full", "1", "3"]);
    assert!(mixed.contains("Surfaces\n") && mixed.contains("rand-read"), "{mixed}");
    // A model runs the tests of the sources, of which the places of a surface are none.
    let modelled = compared(&["1", "3", "sim:aws-gp2?size=20GiB"]);
    assert!(modelled.contains("rand-read") && !modelled.contains("point-"), "{modelled}");
}

#[test]
fn sources_without_a_use_are_named_once() {
    let dir = scratch();
    let bench = |tests: &str| {
        run(dir.path(), &["bench", "--quick", tests, "sim:aws-gp3", "--history=h.db"]).quietly();
    };
    bench("--only=rand-read,commit");
    bench("--only=rand-read,commit");
    run(dir.path(), &["surface", "sim:aws-gp3", "--budget=20s", "--history=h.db"]).quietly();
    let text = run(dir.path(), &["compare", "--full", "1", "2", "3", "--history=h.db"]).quietly().stdout;
    let uses =
        text.split("Workload suitability\n").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap();
    assert!(uses.contains("No use was measured on C."), "{uses}");
    let head = uses.lines().find(|line| line.trim_start().starts_with("use "));
    assert!(head.is_none_or(|head| !head.contains('C')), "{uses}");
    assert!(!uses.contains("not measured"), "{uses}");
}
