//! How findings put numbers into words, and how they are put together.

use fathom_model::units;
use fathom_record::{Finding, FindingId};

use crate::rows::RecordRow;

/// A finding on these rows without evidence yet, of the first severity that its id allows; it has no remedy if `remedy` is empty.
/// Under fio's name, where a test may be several jobs, the claim names a single row.
pub(crate) fn finding<'a>(
    id: FindingId,
    rows: impl IntoIterator<Item = &'a RecordRow<'a>>,
    claim: impl Into<String>,
    remedy: impl Into<String>,
) -> Finding {
    let (severity, remedy) = (id.severities()[0], Some(remedy.into()).filter(|text| !text.is_empty()));
    on_rows(Finding { id, severity, claim: claim.into(), remedy, ..Finding::default() }, rows)
}

/// The same resting on these rows.
pub(crate) fn on_rows<'a>(
    mut finding: Finding,
    rows: impl IntoIterator<Item = &'a RecordRow<'a>>,
) -> Finding {
    let rows: Vec<&RecordRow<'_>> = rows.into_iter().collect();
    for row in &rows {
        if !finding.tests.contains(&row.test.id) {
            finding.tests.push(row.test.id.clone());
        }
    }
    match rows.as_slice() {
        [row] if !row.is_own() => Finding { claim: format!("{}: {}", row.name(), finding.claim), ..finding },
        _ => finding,
    }
}

/// A number of requests or a depth: whole from 10 on, one decimal below where it has one.
pub(crate) fn count(value: f64) -> String {
    let tenths = (value * 10.0).round() / 10.0;
    if tenths >= 10.0 || tenths.fract() == 0.0 {
        units::grouped(tenths.round() as u64)
    } else {
        format!("{tenths:.1}")
    }
}

/// A share in percent: `0.3 %`, `12 %`.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// `128 MiB/s`, `11.7 MiB/s`.
pub(crate) fn mebibytes(bytes_per_second: f64) -> String {
    let mebibytes = bytes_per_second / f64::from(1 << 20);
    if mebibytes >= 999.95 {
        return format!("{} MiB/s", units::grouped(mebibytes.round() as u64));
    }
    let text = format!("{mebibytes:.1}");
    format!("{} MiB/s", text.strip_suffix(".0").unwrap_or(&text))
}

/// `4k`, `1m`, `512`.
pub(crate) fn block(bytes: u64) -> String {
    for (unit, suffix) in [(1u64 << 30, "g"), (1 << 20, "m"), (1 << 10, "k")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{}{suffix}", bytes / unit);
        }
    }
    bytes.to_string()
}

/// A time in seconds: `2.5 s`.
pub(crate) fn seconds(ns: u64) -> String {
    let tenths = (ns as f64 / 1e8).round() / 10.0;
    if tenths.fract() == 0.0 { format!("{tenths:.0} s") } else { format!("{tenths:.1} s") }
}

#[cfg(test)]
mod tests {
    use fathom_record::Activity;

    use super::*;
    use crate::fixture::{TestLoad, record};
    use crate::rows::rows;

    /// Reports of fathom's own commands put the test before the claim.
    #[test]
    fn only_under_fios_name_a_claim_names_its_job() {
        for (activity, expected) in
            [(Activity::Fio, "t: slow."), (Activity::default(), "slow."), (Activity::Surface, "slow.")]
        {
            let mut run = record(&[TestLoad::default()]);
            run.header.activity = activity.clone();
            let reported = finding(FindingId::Knee, &rows(&run), "slow.", "");
            assert_eq!(reported.claim, expected, "{activity:?}");
        }
    }

    #[test]
    fn numbers_in_words() {
        let check = |value: f64, expected: &str| assert_eq!(count(value), expected);
        check(0.0, "0");
        check(1.0, "1");
        check(1.54, "1.5");
        check(9.96, "10");
        check(3000.4, "3,000");
        let check = |share: f64, expected: &str| assert_eq!(percent(share), expected);
        check(0.003, "0.3 %");
        check(0.0999, "10 %");
        check(1.0, "100 %");
        assert_eq!(
            (mebibytes(134_217_728.0), mebibytes(12_288_000.0)),
            ("128 MiB/s".to_owned(), "11.7 MiB/s".to_owned())
        );
        assert_eq!(mebibytes(3_228_670_000.0), "3,079 MiB/s");
        assert_eq!([block(512), block(4096), block(1 << 20), block(1536)], ["512", "4k", "1m", "1536"]);
        assert_eq!((seconds(2_000_000_000), seconds(2_449_000_000)), ("2 s".to_owned(), "2.4 s".to_owned()));
    }
}
