//! Whether a record has the parts that every writer fills. A reader gives fields that are missing their defaults, so that records of
//! earlier versions are read; without this check an empty object would pass for a test in which nothing happened.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::RecordError;

/// There or not, whatever it is.
type Part = Option<IgnoredAny>;
/// The names of the members of an object.
type Members = BTreeMap<String, IgnoredAny>;

#[derive(Deserialize)]
struct RecordShape {
    header: Option<HeaderShape>,
    tests: Option<Vec<TestShape>>,
}

#[derive(Deserialize)]
struct HeaderShape {
    target: Part,
    activity: Part,
}

#[derive(Deserialize)]
struct TestShape {
    id: Part,
    status: Part,
    #[serde(default)]
    jobs: Vec<JobShape>,
    #[serde(default)]
    observed: Option<BTreeMap<String, Members>>,
}

#[derive(Deserialize)]
struct JobShape {
    name: Part,
    plan: Option<Members>,
    measured: Part,
}

/// Checks the record `text`, which is one by its types.
///
/// # Errors
/// A part lacks a field, or is empty.
pub(crate) fn check(text: &str) -> Result<(), RecordError> {
    let RecordShape { header, tests } = serde_json::from_str(text).map_err(RecordError::Malformed)?;
    let it = || "it".to_owned();
    let header = header.ok_or_else(|| missing(it(), "header"))?;
    let of_header = || "header".to_owned();
    require(header.target.is_some(), of_header, "target")?;
    require(header.activity.is_some(), of_header, "activity")?;
    let tests = tests.ok_or_else(|| missing(it(), "tests"))?;
    tests.iter().enumerate().try_for_each(|(index, test)| check_test(index, test))
}

fn check_test(index: usize, test: &TestShape) -> Result<(), RecordError> {
    let of_test = || format!("tests[{index}]");
    require(test.id.is_some(), of_test, "id")?;
    require(test.status.is_some(), of_test, "status")?;
    for (number, job) in test.jobs.iter().enumerate() {
        let of_job = || format!("tests[{index}].jobs[{number}]");
        require(job.name.is_some(), of_job, "name")?;
        require(job.plan.as_ref().is_some_and(|plan| !plan.is_empty()), of_job, "plan")?;
        require(job.measured.is_some(), of_job, "measured")?;
    }
    let mut observed = test.observed.iter().flatten();
    require(observed.all(|(_, members)| !members.is_empty()), of_test, "observed")
}

fn require(is_there: bool, place: impl Fn() -> String, field: &'static str) -> Result<(), RecordError> {
    if is_there { Ok(()) } else { Err(missing(place(), field)) }
}

fn missing(place: String, field: &'static str) -> RecordError {
    RecordError::Damaged { place, field }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_parts_are_refused_by_place_and_field() {
        let check = |header: &str, tests: &str, expected: Option<&str>| {
            let text = format!(r#"{{"header":{header},"tests":{tests}}}"#);
            let error = check(&text).err().map(|error| error.to_string());
            let expected = expected.map(|rest| format!("the record is damaged: {rest}"));
            assert_eq!(error, expected, "{text}");
        };
        let header = r#"{"target":"/data","activity":{"kind":"bench"}}"#;
        let job = r#"{"name":"a","plan":{"numjobs":1},"measured":{}}"#;
        check(header, "[]", None);
        check(header, &format!(r#"[{{"id":"a","status":"complete","jobs":[{job}]}}]"#), None);
        check(header, r#"[{"id":"a","status":"complete","observed":{"ping":{"how":{}}}}]"#, None);
        check("{}", "[]", Some("header has no 'target'"));
        check(r#"{"target":""}"#, "[]", Some("header has no 'activity'"));
        check("null", "[]", Some("it has no 'header'"));
        check(header, "null", Some("it has no 'tests'"));
        let whole = r#"{"id":"a","status":"complete"}"#;
        check(header, &format!("[{whole},{{}}]"), Some("tests[1] has no 'id'"));
        check(header, r#"[{"id":"a"}]"#, Some("tests[0] has no 'status'"));
        let with = |jobs: &str| format!(r#"[{{"id":"a","status":"complete","jobs":[{jobs}]}}]"#);
        check(header, &with(&format!("{job},{{}}")), Some("tests[0].jobs[1] has no 'name'"));
        check(
            header,
            &with(r#"{"name":"a","plan":{},"measured":{}}"#),
            Some("tests[0].jobs[0] has no 'plan'"),
        );
        check(
            header,
            &with(r#"{"name":"a","plan":{"numjobs":1}}"#),
            Some("tests[0].jobs[0] has no 'measured'"),
        );
        check(
            header,
            r#"[{"id":"a","status":"complete","observed":{"ping":{}}}]"#,
            Some("tests[0] has no 'observed'"),
        );
    }
}
