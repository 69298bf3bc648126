//! Expectation files: TOML with one table per expectation. Pure, except for reading the file.

use std::path::Path;

use fathom_model::units::{parse_bytes, parse_duration};
use fathom_record::{ExpectationConditions, ShareRecord};
use fathom_sys::files::EXPECTATIONS;
use serde::Deserialize;

use crate::AssessError;
use fathom_analysis::criterion::parse_percent;

/// ns of a year.
const YEAR_NS: u64 = 365 * 86_400 * 1_000_000_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    source: Option<String>,
    #[serde(default)]
    within: Option<String>,
    #[serde(default)]
    instance: Option<String>,
    expectation: Vec<RawFileExpectation>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFileExpectation {
    expect: String,
    within: Option<String>,
    time: Option<String>,
    over: Option<String>,
    block_size: Option<String>,
    depth: Option<f64>,
    depth_per_iops: Option<f64>,
    instance: Option<String>,
    class: Option<String>,
}

/// One expectation of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Filed {
    /// As for `--expect`.
    pub(super) expect: String,
    /// Where it comes from.
    pub(super) source: String,
    pub(super) class: String,
    pub(super) tolerance_percent: Option<f64>,
    pub(super) share: Option<ShareRecord>,
    pub(super) conditions: ExpectationConditions,
    /// Queue depth per expected IOPS.
    pub(super) depth_per_iops: Option<f64>,
}

/// Reads the file at `path`.
///
/// # Errors
/// It cannot be read, or is not an expectation file; the message names the line.
pub(super) fn read(path: &Path) -> Result<Vec<Filed>, AssessError> {
    let name = path.display().to_string();
    of_text(&name, &EXPECTATIONS.read_text(path)?)
}

/// Reads the text of a file called `name`.
///
/// # Errors
/// It is not an expectation file; the message names the line.
pub(super) fn of_text(name: &str, text: &str) -> Result<Vec<Filed>, AssessError> {
    parse(name, text).map_err(|reason| AssessError::usage(format!("{name}: {reason}"), HINT))
}

const HINT: &str = "write [[expectation]] tables with expect = \"TEST.METRIC>=VALUE\"; \
                    see docs/src/reference/expectations-syntax.md";

fn parse(name: &str, text: &str) -> Result<Vec<Filed>, String> {
    let raw: RawFile = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        format!("line {line}: {}", error.message().trim_end())
    })?;
    if raw.expectation.is_empty() {
        return Err("it contains no expectation".to_owned());
    }
    let of = |expectation: &RawFileExpectation| {
        filed(&raw, expectation, name).map_err(|reason| format!("\"{}\": {reason}", expectation.expect))
    };
    raw.expectation.iter().map(of).collect()
}

fn filed(file: &RawFile, raw: &RawFileExpectation, name: &str) -> Result<Filed, String> {
    let within = raw.within.as_ref().or(file.within.as_ref());
    let period_ns = raw.over.as_deref().map(period).transpose()?;
    if period_ns.is_some() && raw.time.is_none() {
        return Err("over needs time, such as time = \"99.9%\"".to_owned());
    }
    let share = raw
        .time
        .as_deref()
        .map(parse_percent)
        .transpose()?
        .map(|percent| ShareRecord { fraction: percent / 100.0, period_ns });
    let is_depth = |depth: &Option<f64>| depth.is_none_or(|depth| depth.is_finite() && depth > 0.0);
    if !is_depth(&raw.depth) || !is_depth(&raw.depth_per_iops) {
        return Err("a depth must be above 0".to_owned());
    }
    if raw.depth.is_some() && raw.depth_per_iops.is_some() {
        return Err("depth and depth_per_iops exclude each other".to_owned());
    }
    let block = raw.block_size.as_deref().map(parse_bytes).transpose().map_err(|error| error.to_string())?;
    if block == Some(0) {
        return Err("block_size must be above 0".to_owned());
    }
    Ok(Filed {
        expect: raw.expect.clone(),
        source: file.source.clone().unwrap_or_else(|| name.to_owned()),
        class: raw.class.clone().unwrap_or_default(),
        tolerance_percent: within.map(|text| parse_percent(text)).transpose()?,
        share,
        conditions: ExpectationConditions {
            block_size_bytes: block,
            depth: raw.depth,
            instance: raw.instance.clone().or_else(|| file.instance.clone()),
            ..ExpectationConditions::default()
        },
        depth_per_iops: raw.depth_per_iops,
    })
}

fn period(text: &str) -> Result<u64, String> {
    match text.trim() {
        "year" => Ok(YEAR_NS),
        "month" => Ok(YEAR_NS / 12),
        other => match parse_duration(other) {
            Ok(time) if time.0 > 0 => Ok(time.0),
            _ => Err(format!("'{other}' is not a time: write year, month, or 24h")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read() {
        let text = "source = 'a page'\nwithin = '10%'\n\
            [[expectation]]\nexpect = 'rand-read.iops>=1000'\ntime = '99.9%'\nover = 'year'\nblock_size = '16k'\n\
            depth_per_iops = 0.005\ninstance = 'm1.large'\n\
            [[expectation]]\nexpect = 'lat-read.lat_ns.mean<5ms'\nwithin = '0%'\nclass = 'small'\n";
        let filed = parse("p.toml", text).unwrap();
        assert_eq!((filed.len(), filed[0].source.as_str(), filed[1].class.as_str()), (2, "a page", "small"));
        assert_eq!((filed[0].tolerance_percent, filed[1].tolerance_percent), (Some(10.0), Some(0.0)));
        let share = filed[0].share.unwrap();
        assert!((share.fraction - 0.999).abs() < 1e-12 && share.period_ns == Some(YEAR_NS));
        assert_eq!(filed[0].conditions.block_size_bytes, Some(16384));
        assert_eq!(filed[0].conditions.instance.as_deref(), Some("m1.large"));
    }

    #[test]
    fn the_file_in_the_documentation_is_valid() {
        let page = include_str!("../../../../docs/src/reference/expectations-syntax.md");
        let text = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let filed = parse("expectation.toml", text).unwrap();
        assert_eq!((filed[0].class.as_str(), filed[0].depth_per_iops), ("large", Some(0.005)));
        assert!(fathom_analysis::criterion::Criterion::parse(&filed[0].expect).is_ok());
    }

    #[test]
    fn errors_name_the_line_or_the_expectation() {
        let check = |text: &str, expected: &str| {
            let error = parse("p.toml", text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        check("[[expectation]]\nexpct = 'a.iops>=1'", "line 2: unknown field `expct`");
        check("[[expectation]]\ntime = '99%'", "line 1: missing field `expect`");
        check("expectation = []", "contains no expectation");
        check("not toml", "line 1");
        let one = |rest: &str| format!("[[expectation]]\nexpect = 'a.iops>=1'\n{rest}");
        check(&one("time = '99.9'"), "\"a.iops>=1\": '99.9' is not a percentage");
        check(&one("over = 'year'"), "over needs time");
        check(&one("time = '99%'\nover = 'ever'"), "'ever' is not a time");
        check(&one("block_size = 'large'"), "is not a size");
        check(&one("depth = 0"), "above 0");
        check(&one("block_size = '0'"), "block_size must be above 0");
        check(&one("depth = 4\ndepth_per_iops = 0.1"), "exclude each other");
    }
}
