//! The catalogue as a stranger meets it: what is shown of types, what serves a need, and files of one's own.

use std::path::Path;

use serde_json::Value;

use crate::{files_in, program, run, scratch};

/// What `args` print.
#[track_caller]
fn printed(args: &[&str]) -> String {
    run(scratch().path(), args).quietly().stdout
}

fn document(args: &[&str]) -> Value {
    serde_json::from_str(&printed(args)).unwrap()
}

/// Runs `args` and checks the code and what is on standard error.
#[track_caller]
fn check(dir: &Path, args: &[&str], parts: &[&str]) {
    let ended = run(dir, args);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{args:?}: {ended:?}");
    for part in parts {
        assert!(ended.stderr.contains(part), "{args:?} lacks {part:?}: {}", ended.stderr);
    }
    assert!(!ended.stderr.contains("internal error"), "{}", ended.stderr);
}

#[test]
fn a_type_by_size_and_block_size() {
    insta::assert_snapshot!(
        "catalog_show",
        printed(&["catalog", "show", "aws-gp2-2016", "--size", "10g,33g,34g,50g,1000g,3334g,16t"])
    );
    insta::assert_snapshot!("catalog_show_apart", printed(&["catalog", "show", "gcp-pd-standard"]));
    insta::assert_snapshot!("catalog_show_unmodelled", printed(&["catalog", "show", "tencent-cbs-basic"]));
}

#[test]
fn what_serves_a_need() {
    let need = ["catalog", "fit", "--iops", "5000", "--throughput", "200MiB", "--size", "500GiB"];
    insta::assert_snapshot!("catalog_fit", printed(&need));
    insta::assert_snapshot!(
        "catalog_fit_burst",
        printed(&[
            "catalog", "fit", "--provider", "aws", "--iops", "3000", "--size", "100g", "--burst", "30m/day",
            "--baseline-iops", "200", "--expect", "p99<5ms", "--persistent",
        ])
    );
    insta::assert_snapshot!(
        "catalog_fit_profile",
        printed(&["catalog", "fit", "--provider", "gcp", "--profile", "oltp", "--size", "200GiB"])
    );
}

#[test]
fn markdown_and_csv_have_the_same_values() {
    let show: &[&str] = &["show", "aws-gp2-2016", "--size", "50g"];
    let list: &[&str] = &["list", "--provider", "linode", "--current"];
    let fit: &[&str] = &["fit", "--provider", "gcp", "--iops", "5000", "--size", "200GiB"];
    for (name, args) in [("show", show), ("list", list), ("fit", fit)] {
        for format in ["markdown", "csv"] {
            let args = [&["catalog"], args, &["--format", format]].concat();
            insta::assert_snapshot!(format!("catalog_{name}_{format}"), printed(&args));
        }
    }
}

#[test]
fn documents_have_a_schema_and_units() {
    let list = document(&["catalog", "list", "--json"]);
    assert_eq!(list["schema"], "fathom.catalog-list/1");
    assert_eq!(list["types"].as_array().unwrap().len(), 126);
    let ssds = document(&["catalog", "list", "--json", "--provider", "aws", "--kind", "hdd", "--current"]);
    let ids: Vec<&str> =
        ssds["types"].as_array().unwrap().iter().map(|kind| kind["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["aws-ebs-standard", "aws-sc1", "aws-st1"]);

    let show = document(&["catalog", "show", "aws-gp2-2016", "--size", "50GiB", "--json"]);
    assert_eq!((&show["schema"], &show["id"]), (&"fathom.catalog-show/1".into(), &"aws-gp2-2016".into()));
    let volume = &show["volumes"][0];
    assert_eq!(volume["size_bytes"], 50u64 << 30);
    let ios = &volume["limits"][0];
    assert_eq!(
        (&ios["unit"], &ios["baseline_rate"], &ios["burst_rate"]),
        (&"ios".into(), &150.into(), &3000.into())
    );
    assert_eq!((&ios["capacity"], &ios["refill_ns"]), (&5_400_000.into(), &36_000_000_000_000u64.into()));
    assert_eq!(volume["blocks"][4]["random"]["burst"]["iops"], 2048.0);
    assert_eq!((&volume["month"], &volume["is_latency_assumed"]), (&Value::Null, &false.into()));

    let need = ["catalog", "fit", "--json", "--iops", "5000", "--throughput", "200MiB", "--size", "500GiB"];
    let fit = document(&need);
    assert_eq!(fit["schema"], "fathom.catalog-fit/1");
    assert_eq!((&fit["need"]["iops"], &fit["need"]["block_size_bytes"]), (&5000.0.into(), &41_943.04.into()));
    assert_eq!((&fit["need"]["burst"], &fit["need"]["persistent"]), (&Value::Null, &false.into()));
    let groups = fit["priced"].as_array().unwrap();
    assert_eq!(groups.iter().map(|group| &group["currency"]).collect::<Vec<_>>(), ["USD", "CNY", "RUB"]);
    let named = |id: &str| {
        groups[0]["offers"].as_array().unwrap().iter().find(|offer| offer["id"] == id).cloned().unwrap()
    };
    // 500 GiB at 0.08, 2,000 IOPS at 0.005, 75 MiB/s at 0.04.
    assert_eq!(named("aws-gp3")["month"]["total"], 53.0);
    let last = groups[0]["offers"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["id"], &last["month"]["unknown"]),
        (&"azure-standard-ssd".into(), &serde_json::json!(["I/Os"]))
    );
    let named = |id: &str| fit["others"].as_array().unwrap().iter().find(|other| other["id"] == id).cloned();
    assert_eq!((named("aws-st1").unwrap()["reason"].clone(), named("aws-gp2-2016")), ("iops".into(), None));
    assert!(fit["left_out"].as_array().unwrap().contains(&"aws-gp2-2016".into()));
    let yuan = document(&[&need[..], &["--currency", "cny", "--historical"]].concat());
    assert_eq!((&yuan["priced"][0]["currency"], &yuan["left_out"]), (&"CNY".into(), &serde_json::json!([])));
    // How large a disk of a machine is, the catalogue does not know.
    let local = document(&["catalog", "fit", "--json", "--iops", "200000", "--provider", "aws"]);
    let sizes =
        local["unpriced"].as_array().unwrap().iter().map(|offer| (&offer["id"], &offer["size_bytes"]));
    assert_eq!(sizes.collect::<Vec<_>>(), [(&"aws-instance-store-nvme".into(), &Value::Null)]);
}

#[test]
fn instances_are_listed_shown_and_taken_into_account() {
    let text = printed(&["catalog", "show", "m6i.large"]);
    for part in ["m6i.large", "3,600", "burst IOPS", "Sources", "2026-08-02"] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    let list = document(&["catalog", "list", "--instances", "--provider", "azure", "--json"]);
    assert_eq!(list["schema"], "fathom.catalog-instances/1");
    let instances = list["instances"].as_array().unwrap();
    assert!(instances.len() > 100 && instances.iter().all(|one| one["provider"] == "Azure"));
    let need = ["catalog", "fit", "--iops", "5000", "--size", "500GiB", "--instance"];
    let fit = document(&[&need[..], &["m6i.4xlarge", "--json"]].concat());
    assert_eq!(fit["need"]["instance"], "m6i.4xlarge");
    let dir = scratch();
    for (args, part) in [
        (&["m0.large"][..], "unknown instance 'm0.large'"),
        (&["m6i.large", "--provider", "azure"], "m6i.large is one of AWS"),
    ] {
        let ended = run(dir.path(), &[&need[..], args].concat());
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(part), "{ended:?}");
    }
}

#[test]
fn published_figures_stand_beside_those_of_the_model() {
    insta::assert_snapshot!("catalog_published", printed(&["catalog", "published", "tencent-cbs-ssd"]));
    let document = document(&["catalog", "published", "qingcloud-capacity", "--json"]);
    assert_eq!(document["schema"], "fathom.catalog-published/1");
    let runs = document["runs"].as_array().unwrap();
    assert!(runs.iter().all(|run| run["types"].as_array().unwrap().contains(&"qingcloud-capacity".into())));
    let reads = runs.iter().find(|run| run["id"] == "a3-cap-randread").unwrap();
    assert_eq!(reads["source"]["title"], "Notes on QingCloud block storage IOPS");
    let iops = reads["figures"].as_array().unwrap().iter().find(|one| one["metric"] == "read.iops").unwrap();
    assert_eq!((&iops["value"], &iops["verdict"]), (&9107.0.into(), &"input".into()));
    assert!((iops["simulated"].as_f64().unwrap() / 9107.0 - 1.0).abs() < 0.01, "{iops}");
    let dir = scratch();
    check(dir.path(), &["catalog", "published", "aws-gp3"], &["no figures of aws-gp3 were published"]);
    check(dir.path(), &["catalog", "published", "aws-gp9"], &["unknown volume type 'aws-gp9'"]);
}

#[test]
fn what_is_known_as_measured_alone_is_labelled_so() {
    insta::assert_snapshot!(
        "catalog_show_measured",
        printed(&["catalog", "show", "aws-ebs-standard-2012", "--size", "50GiB"])
    );
    let show = document(&["catalog", "show", "qingcloud-capacity", "--json"]);
    assert_eq!(show["as_measured"], true);
    let bench = ["bench", "sim:qingcloud-capacity", "--only=rand-read", "--quick", "--json", "--no-history"];
    let bench = printed(&bench);
    assert!(bench.contains("as measured"), "{bench}");
    let identify = printed(&["identify", "sim:qingcloud-high-performance", "--budget", "5m"]);
    let section = identify.split("Candidates").nth(1).unwrap_or_default();
    assert!(!section.contains("qingcloud"), "{identify}");
    let fit = run(
        scratch().path(),
        &["catalog", "fit", "--iops", "1000", "--provider", "qingcloud", "--historical", "--full"],
    );
    assert!(fit.code == Some(0) && fit.stdout.contains("known as measured alone"), "{fit:?}");
    let brief = printed(&["catalog", "fit", "--iops", "1000", "--provider", "qingcloud"]);
    assert!(
        brief.contains("no source states their prices") && brief.contains("qingcloud-general-ssd"),
        "{brief}"
    );
}

#[test]
fn a_need_that_nothing_serves_is_told_by_the_exit() {
    let dir = scratch();
    let ended = run(dir.path(), &["catalog", "fit", "--iops", "90000000"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(3), ""));
    assert!(ended.stdout.contains("no volume type meets this requirement"), "{}", ended.stdout);
    let all = [
        "catalog", "fit", "--iops", "18446744073709551615", "--size", "18446744073709551615B", "--throughput",
    ];
    let ended = run(dir.path(), &[&all[..], &["18446744073709551615B"]].concat());
    assert_eq!(
        (ended.code, ended.stderr.contains("below the minimum of 512")),
        (Some(2), true),
        "{}",
        ended.stderr
    );
    assert_eq!(run(dir.path(), &all[..6]).code, Some(3));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let dir = scratch();
    for (args, parts) in [
        (&["show", "aws-gp9"][..], &["unknown volume type 'aws-gp9'", "did you mean aws-gp2, aws-gp3?"][..]),
        (&["show", "sim:aws-gp9"], &["unknown volume type 'aws-gp9'"]),
        (&["show", "nothing-like-it"], &["catalog list"]),
        (
            &["show", "aws-gp2", "--size", "17TiB"],
            &["not available with 17408 GiB, only from 1 to 16384 GiB"],
        ),
        (&["show", "aws-gp2", "--iops", "500"], &["its IOPS cannot be chosen"]),
        (&["show", "aws-gp2", "--size", "0"], &["the size must be above 0"]),
        (&["show", "azure-premium-ssd", "--tier", "P99"], &["unknown tier P99", "P10"]),
        (&["list", "--provider", "amazon"], &["no provider called 'amazon'", "AWS"]),
        (&["list", "--medium", "tape"], &["unknown medium 'tape'", "hdd"]),
        (&["fit"], &["no requirement given", "--iops"]),
        (&["fit", "--iops", "0"], &["--iops"]),
        (&["fit", "--size", "500"], &["'500' has no unit: write 500g for GiB"]),
        (&["show", "aws-gp2", "--size", "50"], &["'50' has no unit: write 50g for GiB"]),
        (&["fit", "--iops", "1", "--profile", "all"], &["only one profile"]),
        (&["fit", "--iops", "1", "--rw", "read", "--rwmixread", "50"], &["needs a mixed pattern"]),
        (&["fit", "--iops", "5000", "--throughput", "1MiB"], &["below the minimum of 512"]),
        (&["fit", "--iops", "1", "--provider", "acme"], &["no provider called 'acme'"]),
        (&["fit", "--iops", "1", "--profile", "oltpp"], &["unknown profile 'oltpp'"]),
        (&["fit", "--iops", "1", "--currency", "euros"], &["'euros' is not a currency code", "EUR"]),
        (&["fit", "--iops", "1", "--burst", "30m"], &["TIME/PERIOD"]),
        (&["fit", "--iops", "1", "--expect", "p99"], &["p99<5ms"]),
        (&["fit", "--iops", "1", "--baseline-iops", "1"], &["--burst"]),
    ] {
        let args: Vec<&str> = std::iter::once("catalog").chain(args.iter().copied()).collect();
        check(dir.path(), &args, parts);
    }
    assert_eq!(files_in(dir.path()), [] as [&Path; 0], "nothing was made");
}

#[test]
fn stale_types_and_changes_are_listed() {
    let stale = |args: &[&str]| document(&[&["catalog", "check", "--json"], args].concat())["types"].clone();
    // The day of the tests is 2026-11-23; types that are no longer sold cannot be stale.
    let names = |types: &Value| -> Vec<String> {
        types.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    let old = names(&stale(&["--stale=90d"]));
    assert!(old.contains(&"yandex-network-ssd".to_owned()), "{old:?}");
    assert!(!old.contains(&"aws-ebs-standard-2012".to_owned()), "{old:?}");
    assert!(names(&stale(&["--stale=10000d"])).is_empty());
    let changed = document(&["catalog", "diff", "aws-gp2-2016", "aws-gp2", "--json"]);
    let field =
        |name: &str| changed["changes"].as_array().unwrap().iter().find(|one| one["field"] == name).cloned();
    let maximum = field("iops_max").unwrap();
    assert_eq!((maximum["old"].as_str(), maximum["new"].as_str()), (Some("10000"), Some("16000")));
}

const MINE: &str = include_str!("../../../catalog/tests/mine.toml");

#[test]
fn types_of_ones_own() {
    let dir = scratch();
    let file = dir.path().join("mine.toml");
    std::fs::write(&file, MINE).unwrap();
    let named = ["catalog", "show", "mine", "--catalog", "mine.toml"];
    assert!(run(dir.path(), &named).quietly().stdout.contains("5,000"));
    let by_variable =
        program(dir.path()).env("FATHOM_CATALOG", &file).args(["catalog", "list"]).output().unwrap();
    assert!(String::from_utf8(by_variable.stdout).unwrap().contains("mine "));
    assert_eq!(run(dir.path(), &["catalog", "check", "mine.toml"]).quietly().stdout, "mine: valid\n");
    check(dir.path(), &["catalog", "check", "mine.toml", "--json"], &["reported as text only", "--stale"]);
    // A target may name it too.
    let bench = [
        "bench", "sim:mine", "--catalog", "mine.toml", "--only=rand-read", "--quick", "--json",
        "--no-history",
    ];
    let document: Value = serde_json::from_str(&run(dir.path(), &bench).quietly().stdout).unwrap();
    let iops = document["tests"][0]["read"]["iops"].as_f64().unwrap();
    assert!((iops / 5000.0 - 1.0).abs() < 0.02, "{iops}");

    let ping = ["ping", "-q", "-c", "5", "--catalog", "mine.toml", "sim:mine"];
    let ping = [&ping[..], &["--json"]].concat();
    assert!(run(dir.path(), &ping).quietly().stdout.contains("a simulated volume (Me Box"));

    std::fs::write(&file, MINE.replace("5000", "-1")).unwrap();
    let refused = &["mine.toml:12: mine: iops_max -1 is below 0"][..];
    check(dir.path(), &named, refused);
    check(dir.path(), &["catalog", "check", "mine.toml"], refused);
    check(dir.path(), &["bench", "sim:aws-gp2", "--catalog", "mine.toml"], refused);
    check(dir.path(), &["ping", "--catalog", "mine.toml", "sim:aws-gp2"], refused);
    for command in ["identify", "sweep", "surface", "prepare"] {
        check(dir.path(), &[command, "sim:aws-gp2", "--catalog", "mine.toml"], refused);
    }
    check(
        dir.path(),
        &["catalog", "list", "--catalog", "none.toml"],
        &["cannot read the catalogue none.toml"],
    );
    std::fs::write(&file, "").unwrap();
    check(dir.path(), &["catalog", "check", "mine.toml"], &["it defines no volume type"]);
}

#[test]
fn imported_prices_replace_those_of_the_catalogue_until_they_are_removed() {
    let dir = scratch();
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("../catalog/tests/prices/aws.json");
    let list = list.to_str().unwrap();
    let prices = |args: &[&str]| run(dir.path(), &[&["catalog", "import-prices"], args].concat());
    let shown = || run(dir.path(), &["catalog", "show", "--full", "aws-gp3"]).quietly().stdout;
    let before = shown();
    assert!(prices(&["--list"]).quietly().stdout.contains("No price has been imported."));
    check(dir.path(), &["catalog", "import-prices", list], &["it has several regions", "--region"]);
    let imported = prices(&[list, "--region", "eu-central-1"]).quietly().stdout;
    assert!(imported.contains("the prices of 1 volume type in eu-central-1"), "{imported}");
    assert!(shown().contains("0.0952 USD per GiB and month (eu-central-1, 2026-09-30"), "{}", shown());
    assert!(prices(&["--list"]).quietly().stdout.starts_with("aws-gp3: 0.0952 USD"));
    check(dir.path(), &["catalog", "import-prices", "--remove", "aws-gp2"], &["use one of aws-gp3, or all"]);
    prices(&["--remove", "aws-gp3"]).quietly();
    assert_eq!(shown(), before);
    std::fs::write(
        dir.path().join("bad.json"),
        "{\"Items\": [\n{\"productName\": \"Ultra Disks\",\n\
        \"meterName\": \"Ultra LRS Provisioned IOPS\", \"unitOfMeasure\": \"1/Day\"}]}",
    )
    .unwrap();
    check(
        dir.path(),
        &["catalog", "import-prices", "bad.json"],
        &["bad.json:3: Items[0].unitOfMeasure: '1/Day' is not a unit of Ultra LRS Provisioned IOPS"],
    );
}
