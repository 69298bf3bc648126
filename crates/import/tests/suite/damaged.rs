//! Texts with parts cut out or put in: what is read is a record, and what is not has an error with a remedy.

use fathom_import::{detect, import, import_as, records};
use fathom_record::{ImportFormat, Metric, RunRecord};
use proptest::prelude::*;

const TEXTS: [&str; 6] = [
    include_str!("../fixtures/articles/digitalocean-volume-bw-test.fio-2.txt"),
    include_str!("../fixtures/articles/digitalocean-ssd-randrw.fio-1.59.txt"),
    include_str!("../fixtures/articles/aws-gp2-50g.ioping.txt"),
    include_str!("../fixtures/outputs/fio-3.33-json.txt"),
    include_str!("../fixtures/outputs/fio-3.33-terse-5.txt"),
    include_str!("../fixtures/outputs/fio-3.33-text.txt"),
];

const INSERTED: [&str; 12] = [
    "=", "9999999999999999999999", "-nan", "\u{a0}", "[", "(", "\n", ",", "KB/s", "\u{b5}", "th=[ 5]",
    ": ios=1/2,",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_damaged_text_is_a_record_or_an_error(
        text in prop::sample::select(TEXTS.to_vec()),
        edits in prop::collection::vec((0.0..1.0_f64, 0..80_usize, prop::sample::select(INSERTED.to_vec())), 0..6),
    ) {
        let mut characters: Vec<char> = text.chars().collect();
        for (at, cut, inserted) in edits {
            let start = (at * characters.len() as f64) as usize;
            let end = (start + cut).min(characters.len());
            characters.splice(start..end, inserted.chars());
        }
        let text: String = characters.into_iter().collect();
        match records(&text, "t") {
            Ok(found) => for record in found {
                let again = RunRecord::from_json(&record.to_json());
                prop_assert_eq!(again.ok(), Some(record));
            },
            Err(error) => prop_assert!(!error.to_string().is_empty() && !error.hint.is_empty()),
        }
        for format in [ImportFormat::FioText, ImportFormat::FioTerse, ImportFormat::IopingText] {
            drop(import_as(format, &text, "t"));
        }
    }

    #[test]
    fn a_printed_line_imports_to_its_figures(
        kib in 1..1_000_000_000_u64, iops in 1..999_999_u64, ms in 1..100_000_000_u64,
    ) {
        let text = format!(
            "t: (groupid=0, jobs=1): err= 0: pid=1\n  write: io={}KB, bw={kib}KB/s, iops={iops}, runt={ms:>6}msec\n",
            kib / 2,
        );
        prop_assert_eq!(detect(&text), Some(ImportFormat::FioText));
        let record = import(&text, "t").expect("a whole line");
        let test = record.tests[0].imported().expect("an imported test");
        let value = |metric: &str| test.figure(Metric::parse(metric).expect("a metric")).map(|figure| figure.value);
        prop_assert_eq!(value("write.iops"), Some(iops as f64));
        prop_assert_eq!(value("bw"), Some(kib as f64 * 1024.0));
        prop_assert_eq!(test.runtime_ns(), ms * 1_000_000);
        prop_assert_eq!(&test.missing, &vec![]);
    }
}
