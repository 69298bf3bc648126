//! Why an observed load could not be read.

/// A source that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", place(*line, field))]
pub struct LoadError {
    /// Line of the text, from 1; 0 where it is about the whole.
    pub line: u64,
    /// The field, as `hosts[0].statistics[3].disk[0].rkB/s`; empty where it is about no field.
    pub field: String,
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub hint: String,
}

fn place(line: u64, field: &str) -> String {
    match (line, field) {
        (0, "") => String::new(),
        (0, field) => format!("{field}: "),
        (line, "") => format!("line {line}: "),
        (line, field) => format!("line {line}: {field}: "),
    }
}

impl LoadError {
    pub(crate) fn new(line: u64, problem: impl Into<String>, hint: impl Into<String>) -> LoadError {
        LoadError { line, field: String::new(), problem: problem.into(), hint: hint.into() }
    }

    pub(crate) fn in_field(self, field: impl Into<String>) -> LoadError {
        LoadError { field: field.into(), ..self }
    }

    /// A text of no known format.
    pub(crate) fn unknown(text: &str) -> LoadError {
        let problem = match text.trim().is_empty() {
            true => "it is empty",
            false => "the format is unknown",
        };
        LoadError::new(
            u64::from(!text.trim().is_empty()),
            problem,
            "use an fio iolog, a recording of `fathom monitor --record`, blktrace or blkparse, `sar -d`, `sadf -j -- -d`, `iostat -x \
             -t -o JSON`, a Prometheus query_range of node_exporter, or an export of AWS CloudWatch, Azure Monitor or GCP Monitoring",
        )
    }

    /// A source without an I/O.
    pub fn empty(what: &str) -> LoadError {
        LoadError::new(0, format!("it contains no {what}"), "record again while the application runs")
    }

    /// A recording of several devices of which none, or none of this name, is chosen.
    pub(crate) fn device(chosen: Option<&str>, known: &[String]) -> LoadError {
        let listed = list(known);
        let problem = match chosen {
            Some(name) => format!("it has no device '{name}'"),
            None => format!("it has several devices: {listed}"),
        };
        let hint = match (chosen, known) {
            (None, _) => "choose one with --device".to_owned(),
            (Some(_), [one]) => format!("its only device is {one}"),
            (Some(_), _) => format!("use one of {listed}"),
        };
        LoadError::new(0, problem, hint)
    }
}

/// Names in one line, of many the first.
fn list(names: &[String]) -> String {
    const MOST: usize = 20;
    let shown: Vec<&str> = names.iter().take(MOST).map(String::as_str).collect();
    match names.len().saturating_sub(MOST) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_line_and_the_field() {
        let error = LoadError::new(3, "'x' is not a number", "h");
        assert_eq!(error.to_string(), "line 3: 'x' is not a number");
        assert_eq!(error.clone().in_field("a.b").to_string(), "line 3: a.b: 'x' is not a number");
        assert_eq!(LoadError { line: 0, ..error }.to_string(), "'x' is not a number");
    }

    #[test]
    fn devices_are_listed() {
        let names: Vec<String> = (0..22).map(|number| format!("d{number}")).collect();
        let error = LoadError::device(None, &names[..2]);
        assert_eq!(
            (error.problem.as_str(), error.hint.as_str()),
            ("it has several devices: d0, d1", "choose one with --device")
        );
        assert!(LoadError::device(None, &names).problem.ends_with("d19 and 2 more"));
        assert_eq!(LoadError::device(Some("x"), &names[..1]).hint, "its only device is d0");
        assert_eq!(LoadError::device(Some("x"), &names[..2]).hint, "use one of d0, d1");
    }
}
