//! Texts that pages, translations and people have changed, and tables of figures.

use fathom_import::{detect, import, records};
use fathom_record::import::{FigureBound, ImportedTest, MissingReason};
use fathom_record::{ImportFormat, Metric, RunRecord, TestStatus};

const LEGACY: &str = "test: (groupid=0, jobs=1): err= 0: pid=22615\n  read : io=4096.0MB, bw=346522KB/s, iops=86630 , runt= 12104msec\n";

fn only(text: &str) -> ImportedTest {
    let record = import(text, "t").unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(record.tests.len(), 1, "{text}");
    record.tests[0].imported().expect("an imported test").clone()
}

fn value(test: &ImportedTest, metric: &str) -> Option<f64> {
    test.figure(Metric::parse(metric).expect("a metric")).map(|figure| figure.value)
}

fn missing(test: &ImportedTest) -> Vec<(u64, &str, MissingReason)> {
    test.missing.iter().map(|missing| (missing.line, missing.figure.as_str(), missing.reason)).collect()
}

#[test]
fn a_page_may_change_blanks_dashes_and_line_breaks() {
    let expected = (Some(86_630.0), Some(346_522.0 * 1024.0));
    for text in [
        LEGACY.to_owned(),
        LEGACY.replace('\n', "\r\n"),
        LEGACY.replace(' ', "\u{a0}"),
        LEGACY.replace('\n', " "),
        LEGACY.replace(' ', ""),
        LEGACY.replace(", ", ",\n  "),
        LEGACY.replace('\n', "\n\n"),
        LEGACY.replace("bw=346522KB/s", "bw=346522 KB/s"),
        format!("We ran it:\n{LEGACY}\nThe rate is good: x=5, read on.\n"),
    ] {
        let test = only(&text);
        assert_eq!((value(&test, "read.iops"), value(&test, "read.bytes_per_second")), expected, "{text}");
        assert_eq!(missing(&test), [], "{text}");
    }
}

#[test]
fn html_and_lost_characters_are_read_or_named() {
    let test = only(&format!(
        "{LEGACY}    slat (\u{b5}sec): min=2, max=5, avg=3.50, stdev=1.00\n    lat (sec): min=5, max=9, avg=7.00, stdev=1.00\n"
    ));
    assert_eq!(value(&test, "read.slat_ns.mean"), Some(3_500.0));
    assert_eq!(value(&test, "read.lat_ns.mean"), None);
    let unknown = MissingReason::UnknownUnit;
    let names = ["read lat min", "read lat max", "read lat mean", "read lat stddev"];
    assert_eq!(missing(&test), names.map(|name| (4, name, unknown)));
    let depths = only(&format!("{LEGACY}  IO depths    : 1=0.1%, &gt;=64=99.9%\n"));
    assert_eq!(depths.entries[0].depths.iter().map(|share| share.from).collect::<Vec<_>>(), [1, 64]);
}

#[test]
fn a_lost_field_is_named_and_derived_where_others_give_it() {
    let test = only(&LEGACY.replace("bw=346522KB/s", ""));
    assert_eq!(missing(&test), [(2, "read bandwidth", MissingReason::Lost)]);
    let bandwidth = test.figure(Metric::parse("read.bytes_per_second").unwrap()).unwrap();
    assert_eq!(bandwidth.origin.name(), "derived");
    assert!((bandwidth.value / 354_838_528.0 - 1.0).abs() < 1e-3, "{bandwidth:?}");
    let unreadable = only(&LEGACY.replace("86630", "many"));
    assert_eq!(missing(&unreadable), [(2, "read IOPS", MissingReason::Unreadable)]);
    // A rate without its unit is not taken for bytes or anything else.
    let bare = only(&LEGACY.replace("346522KB/s", "346522"));
    assert_eq!(missing(&bare), [(2, "read bandwidth", MissingReason::UnknownUnit)]);
}

#[test]
fn units_follow_the_generation_of_fio() {
    let rate = |text: &str| value(&only(text), "read.bytes_per_second");
    assert_eq!(rate(LEGACY), Some(354_838_528.0));
    assert_eq!(rate(&format!("fio --kb_base=1000 --name=test\n{LEGACY}")), Some(346_522_000.0));
    let modern = "t: (groupid=0, jobs=1): err= 0: pid=1\n  read: IOPS=4.2k, BW=16.4MiB/s (17.2MB/s)(16.4MiB/1001msec)\n";
    assert_eq!(rate(modern), Some(16.4 * 1_048_576.0));
    let iops = only(modern).figure(Metric::parse("read.iops").unwrap()).unwrap();
    assert_eq!((iops.value, iops.resolution), (4_200.0, 51.0));
}

#[test]
fn the_group_line_alone_is_a_test() {
    let test = only(
        "Run status group 0 (all jobs):\n  WRITE: io=22937MB, aggrb=195468KB/s, minb=195468KB/s, maxb=195468KB/s, mint=120160msec, maxt=120160msec\n",
    );
    assert_eq!(value(&test, "write.bytes_per_second"), Some(195_468.0 * 1024.0));
    assert_eq!(value(&test, "write.iops"), None);
}

#[test]
fn clones_are_one_test_and_other_jobs_of_the_group_are_beside_it() {
    let job = |name: &str, group: u32| {
        LEGACY.replace("test", name).replace("groupid=0", &format!("groupid={group}"))
    };
    let text = [job("a", 0), job("a", 0), job("b", 0), job("a", 1)].concat();
    let record = import(&text, "t").unwrap();
    let tests: Vec<(&str, usize, Vec<String>)> = record
        .tests
        .iter()
        .map(|test| {
            let imported = test.imported().expect("it is imported");
            (test.id.as_str(), imported.entries.len(), imported.beside.clone())
        })
        .collect();
    assert_eq!(tests, [("a", 2, vec!["b".to_owned()]), ("b", 1, vec!["a".to_owned()]), ("a (2)", 1, vec![])]);
    assert_eq!(value(record.tests[0].imported().unwrap(), "iops"), Some(173_260.0));
}

#[test]
fn a_job_may_have_the_name_of_an_operation() {
    let test = only(&LEGACY.replace("test", "read"));
    assert_eq!((test.entries[0].name.as_str(), value(&test, "read.iops")), ("read", Some(86_630.0)));
}

#[test]
fn a_failed_job_is_a_failed_test() {
    let record =
        import(&LEGACY.replace("err= 0", "err= 5 (file:io_u.c:1, func=io_u, error=Input/output error)"), "t")
            .unwrap();
    assert_eq!((record.status, record.tests[0].status), (TestStatus::Failed, TestStatus::Failed));
}

#[test]
fn ioping_prints_of_its_versions_are_read() {
    let newer = "4 KiB >>> . (ext4 /dev/vda 252.0 GiB): request=1 time=91.2 us (warmup)\n\
        4 KiB >>> . (ext4 /dev/vda 252.0 GiB): request=2 time=339.0 us\n\n\
        --- . (ext4 /dev/vda 252.0 GiB) ioping statistics ---\n\
        4 requests completed in 1.26 ms, 16 KiB written, 3.16 k iops, 12.4 MiB/s\n\
        1 too slow, generated 5 requests in 4.00 s, 20 KiB, 1 iops, 5.00 KiB/s\n\
        min/avg/max/mdev = 230.0 us / 316.1 us / 402.0 us / 62.9 us\n";
    let test = only(newer);
    assert_eq!(
        (value(&test, "write.iops"), value(&test, "write.lat_ns.mean")),
        (Some(3_160.0), Some(316_100.0))
    );
    let paced = test.entries[0].paced.as_ref().unwrap();
    assert_eq!((paced.wall_ns.unwrap().value, paced.too_slow.unwrap().value), (4_000_000_000, 1));
    let write = test.entries[0].write.as_ref().unwrap();
    assert_eq!((write.lat.requests.len(), write.runtime_ns.unwrap().value), (1, 1_260_000));
    let raw = only("4 32628 122594 502145397 6750 8157 11447 1909 5 400175577\n");
    assert_eq!((value(&raw, "lat_ns.mean"), value(&raw, "iops")), (Some(8_157.0), Some(122_594.0)));
}

#[test]
fn tables_have_metrics_units_and_words_for_what_is_not_there() {
    let csv = "test,metric,value,unit,bs,iodepth\n\
        seq-read,read.bytes_per_second,102176,KiB/s,64k,1\n\
        rand-read,read.iops,1828,IOPS,4k,1\n\
        rand-read-32,read.iops,stalled,IOPS,4k,32\n\
        rand-read,read transfer rate minimum,12.5,MB/s,,\n\
        rand-read,access time,20.3,ms,,\n";
    assert_eq!(detect(csv), Some(ImportFormat::Csv));
    let record = import(csv, "sheet.csv").unwrap();
    let test = |index: usize| record.tests[index].imported().unwrap();
    assert_eq!(value(test(0), "read.bytes_per_second"), Some(102_176.0 * 1024.0));
    assert_eq!((value(test(1), "read.iops"), test(1).load.queue_depth), (Some(1_828.0), Some(1)));
    assert_eq!(missing(test(1)), [(5, "read transfer rate minimum", MissingReason::UnknownUnit)]);
    assert_eq!(missing(test(2)), [(4, "read.iops", MissingReason::Stalled)]);
    let toml = "tool = 'HD Tune'\nkb_base = 1024\n[[figure]]\ntest = 'a'\nmetric = 'transfer rate average'\nvalue = 52.8\nunit = 'MB/s'\n";
    let record = import(toml, "sheet.toml").unwrap();
    let imported = record.tests[0].imported().unwrap();
    assert_eq!(
        (imported.tool.as_str(), value(imported, "bytes_per_second")),
        ("HD Tune", Some(52.8 * 1_048_576.0))
    );
}

#[test]
fn errors_name_the_line_and_the_remedy() {
    for (text, expected) in [
        ("", "the source is empty"),
        ("hello", "line 1: the source has no figures of a known format"),
        ("test,metric,value,unit\na,speed,1,\n", "line 2: unknown metric 'speed'"),
        ("test,metric,value,unit\na,iops,1,\nb,bw,5,\n", "line 3: the value has no unit"),
        ("test,metric,value,unit\na,lat_ns.mean,5,furlong\n", "line 2: unknown unit of time 'furlong'"),
        ("test,metric,value,unit\na,iops,\"1,024\",\n", "line 2: cannot read the value '1,024'"),
        ("test,metric,value,unit\na,iops\n", "line 2: not a row of the table"),
        (
            "warning\n{\n  \"fio version\" : \"fio-3.33\",\n  \"jobs\" : [\n",
            "line 5: the JSON document is cut off",
        ),
        ("[[figure]]\nmetric = \n", "line 2: invalid TOML"),
        ("{\"schema\":\"fathom.record/9\"}", "line 1: this record has version 9"),
    ] {
        let error = records(text, "t").unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
        assert!(!error.hint.is_empty());
    }
}

#[test]
fn records_of_fathom_are_read_one_a_line() {
    let record = import(LEGACY, "t").unwrap();
    let text = format!("{0}\n{0}\n", record.to_json());
    assert_eq!(records(&text, "x").unwrap(), [record.clone(), record.clone()]);
    let pretty = serde_json::to_string_pretty(&record).unwrap();
    assert_eq!(records(&pretty, "x").unwrap(), [record]);
    assert!(RunRecord::from_json(&pretty).is_ok());
}

#[test]
fn json_of_fio_2_counts_in_kib_and_microseconds() {
    let text = "note: both iodepth >= 1 and synchronous I/O engine are selected\n{\n  \"fio version\" : \"fio-2.1.10\",\n  \"jobs\" : [\n    {\n      \
        \"jobname\" : \"old\", \"groupid\" : 0, \"error\" : 0,\n      \"read\" : {\n        \"io_bytes\" : 641996, \"bw\" : 320838, \
        \"iops\" : 80209, \"runtime\" : 2001,\n        \"slat\" : { \"min\" : 0, \"max\" : 0, \"mean\" : 0.00, \"stddev\" : 0.00 },\n        \
        \"clat\" : { \"min\" : 1, \"max\" : 2655, \"mean\" : 11.45, \"stddev\" : 5.25, \"percentile\" : { \"1.000000\" : 9, \
        \"99.000000\" : 22, \"0.00\" : 0, \"0.00\" : 0, \"0.00\" : 0 } },\n        \"lat\" : { \"min\" : 1, \"max\" : 2656, \"mean\" : 11.60, \
        \"stddev\" : 5.26 },\n        \"bw_min\" : 0, \"bw_max\" : 0, \"bw_agg\" : 0.00, \"bw_mean\" : 0.00, \"bw_dev\" : 0.00\n      },\n      \
        \"write\" : { \"io_bytes\" : 0, \"bw\" : 0, \"iops\" : 0, \"runtime\" : 0 },\n      \"usr_cpu\" : 2.50, \"sys_cpu\" : 9.00\n    }\n  ]\n}\n";
    let test = only(text);
    assert_eq!((test.tool_version.as_str(), test.entries[0].write.is_some()), ("2.1.10", false));
    let read = test.entries[0].read.as_ref().unwrap();
    assert_eq!(read.bytes.map(|bytes| bytes.value), Some(641_996 * 1024));
    assert_eq!(value(&test, "read.bytes_per_second"), Some(320_838.0 * 1024.0));
    assert_eq!(value(&test, "read.lat_ns.mean"), Some(11_600.0));
    assert_eq!(
        read.clat.percentiles.iter().map(|of| (of.percent, of.ns.value)).collect::<Vec<_>>(),
        [(1.0, 9_000), (99.0, 22_000)]
    );
    assert_eq!((read.slat.mean, read.bandwidth_windows.is_some()), (None, false));
}

/// An output of fio 3.x of one job that read, as fio prints it.
fn output(name: &str, pid: u32, time: &str, ios: u64) -> String {
    format!(
        "{name}: (g=0): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=libaio, iodepth=8\n\
         fio-3.33\nStarting 1 process\n\n\
         {name}: (groupid=0, jobs=1): err= 0: pid={pid}: Sat Nov 28 {time} 2026\n  \
         read: IOPS={}, BW={}KiB/s (1000kB/s)(9MiB/10000msec)\n  \
         IO depths    : 1=0.1%, 2=0.1%, 4=0.1%, 8=99.9%, 16=0.0%, 32=0.0%, >=64=0.0%\n     \
         issued rwts: total={ios},0,0,0 short=0,0,0,0 dropped=0,0,0,0\n\n\
         Run status group 0 (all jobs):\n   READ: bw={}KiB/s (1000kB/s), run=10000-10000msec\n",
        ios / 10,
        ios / 10 * 4,
        ios / 10 * 4
    )
}

fn json_output(name: &str, start_ms: u64, elapsed: u64, ios: u64) -> String {
    format!(
        "{{\n  \"fio version\" : \"fio-3.33\",\n  \"jobs\" : [ {{ \"jobname\" : \"{name}\", \"groupid\" : 0, \"error\" : 0,\n  \
         \"job_start\" : {start_ms}, \"elapsed\" : {elapsed},\n  \
         \"read\" : {{ \"total_ios\" : {ios}, \"io_bytes\" : {}, \"iops\" : {}.5, \"runtime\" : 10000 }} }} ]\n}}\n",
        ios * 4096,
        ios / 10
    )
}

const PING: &str = "4 KiB <<< . (ext4 /dev/vda 252.0 GiB): request=1 time=339.0 us\n\n\
                    --- . (ext4 /dev/vda 252.0 GiB) ioping statistics ---\n\
                    9 requests completed in 2.71 ms, 36 KiB read, 3.32 k iops, 13.0 MiB/s\n\
                    generated 10 requests in 9.00 s, 40 KiB, 1 iops, 4.44 KiB/s\n\
                    min/avg/max/mdev = 200 us / 300 us / 600 us / 100 us\n";

/// The tests of a text: title, and IOPS of reads rounded.
fn tests_of(text: &str) -> (Vec<(String, u64)>, RunRecord) {
    let record = import(text, "t").unwrap_or_else(|error| panic!("{error}\n{text}"));
    let iops = |test: &ImportedTest| value(test, "read.iops").unwrap_or(0.0) as u64;
    let tests =
        record.tests.iter().map(|test| (test.title.clone(), iops(test.imported().expect("it is imported"))));
    (tests.collect(), record)
}

fn named(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    expected.iter().map(|(name, iops)| ((*name).to_owned(), *iops)).collect()
}

#[test]
fn each_output_of_a_page_is_a_test_in_its_place() {
    let fio = |pid, time, ios| output("test", pid, time, ios);
    let three = [fio(1, "09:00:00", 30_000), fio(2, "09:10:00", 20_000), fio(3, "09:20:00", 10_000)];
    let (found, record) = tests_of(&three.concat());
    assert_eq!(found, named(&[("test", 3000), ("test (2)", 2000), ("test (3)", 1000)]));
    assert!(record.tests.iter().all(|test| test.imported().expect("it is imported").beside.is_empty()));
    assert_eq!(record.header.notes, ["3 outputs at lines 1, 12, 23: each is imported as tests of its own"]);
    // As pages cut them: results alone, without the lines before or after.
    let results = |text: &String| {
        let lines = text.lines().skip(4).take(4).map(|line| format!("{line}\n"));
        lines.collect::<String>()
    };
    let parts: Vec<String> = three.iter().map(results).collect();
    assert_eq!(tests_of(&parts.concat()).0, found);
    let rates = "read : io=1000KB, bw=12000KB/s, iops=3000 , runt= 1000msec\n\
                 read : io=1000KB, bw=8000KB/s, iops=2000 , runt= 1000msec\n";
    assert_eq!(tests_of(rates).0.iter().map(|(_, iops)| *iops).collect::<Vec<_>>(), [3000, 2000]);
    // Among each other, in the order of the page.
    let json = json_output("json", 1_700_000_000_000, 11, 50_000);
    let page =
        ["We ran:\n", &three[0], PING, &three[1], "and then\n", &json, "again\n", PING, &three[2]].concat();
    let (found, record) = tests_of(&page);
    let expected = [("test", 3000), ("ioping", 3320), ("test (2)", 2000), ("json", 5000)];
    assert_eq!(found[..4], named(&expected));
    assert_eq!(found[4..], named(&[("ioping (2)", 3320), ("test (3)", 1000)]));
    assert_eq!(record.header.activity.kind().name(), "import");
    // Outputs of two devices are not those of the first.
    let on = |disk: &str, output: &String| {
        format!("{output}\nDisk stats (read/write):\n  {disk}: ios=1/0, util=9.00%\n")
    };
    let (_, record) = tests_of(&[on("vda", &three[0]), on("sdb", &three[1]), on("vda", &three[2])].concat());
    assert_eq!(record.header.target, "vda,sdb");
}

#[test]
fn states_and_formats_of_one_run_are_one_test() {
    // `--status-interval`, in text and in JSON.
    let states = [output("test", 7, "09:00:00", 10_000), output("test", 7, "09:00:10", 20_000)].concat();
    let (found, record) = tests_of(&states);
    assert_eq!(found, named(&[("test", 2000)]));
    assert_eq!(
        record.header.notes,
        ["line 1 skipped: intermediate output of a run whose final output was imported"]
    );
    let state = |elapsed, ios| json_output("test", 1_700_000_000_000, elapsed, ios);
    assert_eq!(tests_of(&[state(5, 10_000), state(10, 20_000)].concat()).0, named(&[("test", 2000)]));
    // Two runs of one job file.
    let runs = [state(11, 20_000), json_output("test", 1_700_000_060_000, 11, 30_000)];
    assert_eq!(tests_of(&runs.concat()).0, named(&[("test", 2000), ("test (2)", 3000)]));
    // `--output-format=normal,json`.
    let both = [output("test", 7, "09:00:00", 20_000), state(11, 20_000)].concat();
    let (found, record) = tests_of(&both);
    assert_eq!(found, named(&[("test", 2000)]));
    assert_eq!(record.header.notes, ["line 1 skipped: the same run as at line 12, in another format"]);
    // Clones that are reported one by one are one test.
    let clones = [output("test", 7, "09:00:00", 20_000), output("test", 8, "09:00:01", 20_000)]
        .map(|text| text.lines().skip(4).take(4).map(|line| format!("{line}\n")).collect::<String>());
    assert_eq!(tests_of(&clones.concat()).0, named(&[("test", 4000)]));
}

#[test]
fn a_damaged_output_is_named_beside_the_others() {
    let cut = json_output("json", 1_700_000_000_000, 11, 50_000);
    let text = [&output("test", 7, "09:00:00", 20_000), &cut[..cut.len() / 2]].concat();
    let (found, record) = tests_of(&text);
    assert_eq!(found, named(&[("test", 2000)]));
    let [note] = record.header.notes.as_slice() else { panic!("{:?}", record.header.notes) };
    assert!(note.starts_with("not imported: ") && note.contains("cut off or damaged"), "{note}");
}

#[test]
fn what_follows_from_a_bound_is_a_bound() {
    let table = "test,metric,value,unit,bs,rw\na,read.iops,>1828,IOPS,4k,read\nb,read.bytes_per_second,<8,MiB/s,4k,read\n";
    let record = import(table, "t").unwrap_or_else(|error| panic!("{error}"));
    let bound = |test: usize, metric: &str| {
        let test = record.tests[test].imported().expect("it is imported");
        test.figure(Metric::parse(metric).expect("a metric")).map(|figure| figure.bound)
    };
    assert_eq!(bound(0, "read.bytes_per_second"), Some(FigureBound::Above));
    assert_eq!(bound(1, "read.iops"), Some(FigureBound::Below));
}
