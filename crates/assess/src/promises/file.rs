//! Promises as data: a TOML file with one table each. Pure, but for reading the file.

use std::path::Path;

use fathom_model::units::{parse_bytes, parse_duration};
use fathom_record::{PromiseConditions, ShareRecord};
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
    promise: Vec<RawPromise>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPromise {
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

/// One promise of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Filed {
    /// As for `--expect`.
    pub(super) expect: String,
    /// Where it comes from.
    pub(super) source: String,
    pub(super) class: String,
    pub(super) tolerance_percent: Option<f64>,
    pub(super) share: Option<ShareRecord>,
    pub(super) conditions: PromiseConditions,
    /// Requests under way for each a second that is promised.
    pub(super) depth_per_iops: Option<f64>,
}

/// Reads the file at `path`.
///
/// # Errors
/// It is not there, or not a file of promises; the message says where.
pub(super) fn read(path: &Path) -> Result<Vec<Filed>, AssessError> {
    let name = path.display().to_string();
    of_text(&name, &EXPECTATIONS.read_text(path)?)
}

/// Reads the text of a file called `name`.
///
/// # Errors
/// It is not a file of promises; the message says where.
pub(super) fn of_text(name: &str, text: &str) -> Result<Vec<Filed>, AssessError> {
    parse(name, text).map_err(|reason| AssessError::Promise {
        said: name.to_owned(),
        reason,
        hint: Some(HINT.to_owned()),
    })
}

const HINT: &str =
    "docs/promises.md shows such a file: [[promise]] tables, each with expect = \"TEST.METRIC>=VALUE\"";

fn parse(name: &str, text: &str) -> Result<Vec<Filed>, String> {
    let raw: RawFile = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        format!("line {line}: {}", error.message().trim_end())
    })?;
    if raw.promise.is_empty() {
        return Err("it promises nothing".to_owned());
    }
    let of = |promise: &RawPromise| {
        filed(&raw, promise, name).map_err(|reason| format!("\"{}\": {reason}", promise.expect))
    };
    raw.promise.iter().map(of).collect()
}

fn filed(file: &RawFile, raw: &RawPromise, name: &str) -> Result<Filed, String> {
    let within = raw.within.as_ref().or(file.within.as_ref());
    let period_ns = raw.over.as_deref().map(period).transpose()?;
    if period_ns.is_some() && raw.time.is_none() {
        return Err("over = … says nothing without time = \"99.9%\"".to_owned());
    }
    let share = raw
        .time
        .as_deref()
        .map(parse_percent)
        .transpose()?
        .map(|percent| ShareRecord { fraction: percent / 100.0, period_ns });
    let is_depth = |depth: &Option<f64>| depth.is_none_or(|depth| depth.is_finite() && depth > 0.0);
    if !is_depth(&raw.depth) || !is_depth(&raw.depth_per_iops) {
        return Err("a depth is above 0".to_owned());
    }
    if raw.depth.is_some() && raw.depth_per_iops.is_some() {
        return Err("depth and depth_per_iops say the same twice".to_owned());
    }
    let block = raw.block_size.as_deref().map(parse_bytes).transpose().map_err(|error| error.to_string())?;
    if block == Some(0) {
        return Err("a block size is above 0".to_owned());
    }
    Ok(Filed {
        expect: raw.expect.clone(),
        source: file.source.clone().unwrap_or_else(|| name.to_owned()),
        class: raw.class.clone().unwrap_or_default(),
        tolerance_percent: within.map(|text| parse_percent(text)).transpose()?,
        share,
        conditions: PromiseConditions {
            block_size_bytes: block,
            depth: raw.depth,
            instance: raw.instance.clone().or_else(|| file.instance.clone()),
            ..PromiseConditions::default()
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
            _ => Err(format!("'{other}' is no time: write year, month, or 24h")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read() {
        let text = "source = 'a page'\nwithin = '10%'\n\
            [[promise]]\nexpect = 'rand-read.iops>=1000'\ntime = '99.9%'\nover = 'year'\nblock_size = '16k'\n\
            depth_per_iops = 0.005\ninstance = 'm1.large'\n\
            [[promise]]\nexpect = 'lat-read.lat_ns.mean<5ms'\nwithin = '0%'\nclass = 'small'\n";
        let filed = parse("p.toml", text).unwrap();
        assert_eq!((filed.len(), filed[0].source.as_str(), filed[1].class.as_str()), (2, "a page", "small"));
        assert_eq!((filed[0].tolerance_percent, filed[1].tolerance_percent), (Some(10.0), Some(0.0)));
        let share = filed[0].share.unwrap();
        assert!((share.fraction - 0.999).abs() < 1e-12 && share.period_ns == Some(YEAR_NS));
        assert_eq!(filed[0].conditions.block_size_bytes, Some(16384));
        assert_eq!(filed[0].conditions.instance.as_deref(), Some("m1.large"));
    }

    #[test]
    fn the_page_shows_a_file_that_is_one() {
        let page = include_str!("../../../../docs/promises.md");
        let text = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let filed = parse("promise.toml", text).unwrap();
        assert_eq!((filed[0].class.as_str(), filed[0].depth_per_iops), ("large", Some(0.005)));
        assert!(fathom_analysis::criterion::Criterion::parse(&filed[0].expect).is_ok());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let check = |text: &str, expected: &str| {
            let error = parse("p.toml", text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        check("[[promise]]\nexpct = 'a.iops>=1'", "line 2: unknown field `expct`");
        check("[[promise]]\ntime = '99%'", "line 1: missing field `expect`");
        check("promise = []", "promises nothing");
        check("not toml", "line 1");
        let one = |rest: &str| format!("[[promise]]\nexpect = 'a.iops>=1'\n{rest}");
        check(&one("time = '99.9'"), "\"a.iops>=1\": '99.9' is no percentage");
        check(&one("over = 'year'"), "says nothing without time");
        check(&one("time = '99%'\nover = 'ever'"), "'ever' is no time");
        check(&one("block_size = 'large'"), "is not a size");
        check(&one("depth = 0"), "above 0");
        check(&one("block_size = '0'"), "a block size is above 0");
        check(&one("depth = 4\ndepth_per_iops = 0.1"), "say the same twice");
    }
}
