//! What an identified device is held against: its limits, and that nothing was invented.

use std::fmt;

use serde_json::{Value, json};

use super::case::{DeviceCase, Disturbance};

/// The line of results of one device.
pub fn judged(case: &DeviceCase, document: &Value) -> Value {
    let is_steady = case.disturbance == Disturbance::None;
    let limits: Vec<Value> = case
        .truths()
        .into_iter()
        .map(|(path, truth)| {
            let figure = document.pointer(path).unwrap_or(&Value::Null);
            let number = |name: &str| figure[name].as_f64();
            let (low, value, high) = (number("low"), number("value"), number("high"));
            let verdict = match (value, low, high) {
                (Some(_), Some(low), Some(high)) if low <= truth && truth <= high => "held",
                (Some(_), ..) => "outside",
                (None, Some(low), _) if low > truth => "outside",
                (None, Some(_), _) => "bound",
                _ => "unknown",
            };
            json!({"limit": path, "truth": truth, "low": low, "value": value, "high": high,
                "why": figure["why"], "verdict": verdict})
        })
        .collect();
    json!({"is_steady": is_steady, "limits": limits,
    "bursts": document["bursts"].as_array().map_or(0, Vec::len),
    "first_touch": !document["first_touch"].is_null(),
    "confounders": document["confounders"].as_array().map(|all| {
        all.iter().map(|one| one["id"].clone()).collect::<Vec<_>>()
    })})
}

/// `003-both-iops-…: /iops/read 717 (710 to 727) of 719: held`.
pub fn shown(line: &Value) -> String {
    let limits = line["limits"].as_array().into_iter().flatten().map(|limit| {
        let number = |name: &str| limit[name].as_f64().map_or("-".to_owned(), |value| format!("{value:.0}"));
        let path = limit["limit"].as_str().unwrap_or_default();
        let verdict = limit["verdict"].as_str().unwrap_or_default();
        format!(
            "{path} {} ({} to {}) of {}: {verdict}",
            number("value"),
            number("low"),
            number("high"),
            number("truth")
        )
    });
    let limits: Vec<String> = limits.collect();
    let invented = if line["bursts"] == 0 { "" } else { "; BUCKET INVENTED" };
    let touched = if line["first_touch"] == true { "; FIRST TOUCH INVENTED" } else { "" };
    let name = line["case"].as_str().unwrap_or_default();
    format!("{name}: {}; {}{invented}{touched}", limits.join(", "), line["confounders"])
}

/// All results together.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tally {
    devices: usize,
    held: usize,
    outside: usize,
    bound: usize,
    /// Values of limits that did not stay the same.
    claimed: usize,
    invented: usize,
}

impl Tally {
    pub fn of<'a>(lines: impl Iterator<Item = &'a Value>) -> Tally {
        let mut tally = Tally::default();
        for line in lines {
            tally.devices += 1;
            let is_invented = line["bursts"] != 0 || line["first_touch"] == true;
            tally.invented += usize::from(is_invented);
            let is_steady = line["is_steady"] == true;
            for limit in line["limits"].as_array().into_iter().flatten() {
                match limit["verdict"].as_str() {
                    Some("held") => tally.held += 1,
                    Some("outside") if is_steady => tally.outside += 1,
                    Some("outside") => tally.claimed += 1,
                    _ => tally.bound += usize::from(is_steady),
                }
            }
        }
        tally
    }

    /// At least 90 % of the intervals hold the limits, and nothing was invented.
    pub fn holds(&self) -> bool {
        let all = self.held + self.outside + self.claimed;
        self.held * 10 >= all * 9 && self.invented == 0
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { devices, held, outside, bound, claimed, invented } = self;
        write!(
            out,
            "{devices} devices: {held} of {} intervals hold the limit; {claimed} wrong values of limits that changed; {bound} \
             steady limits without a value; {invented} devices with an invented bucket or first-touch penalty",
            held + outside
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_judged_by_the_limit() {
        let case = DeviceCase::of(0);
        let truth = case.truths()[0].1;
        let check = |low: Option<f64>,
                     value: Option<f64>,
                     high: Option<f64>,
                     bursts: usize,
                     expected: &str,
                     holds: bool| {
            let figure = json!({"low": low, "value": value, "high": high});
            let bursts = vec![json!({}); bursts];
            let document = json!({"iops": {"read": figure}, "bursts": bursts, "confounders": []});
            let line = judged(&case, &document);
            assert_eq!(line["limits"][0]["verdict"], expected);
            assert_eq!(Tally::of([&line].into_iter()).holds(), holds);
            assert_eq!(shown(&line).contains("INVENTED"), !line["bursts"].eq(&0));
        };
        check(Some(truth * 0.99), Some(truth), Some(truth * 1.01), 0, "held", true);
        check(Some(truth * 0.97), Some(truth * 0.98), Some(truth * 0.99), 0, "outside", false);
        check(Some(truth * 0.9), None, None, 0, "bound", true);
        check(Some(truth * 1.1), None, None, 0, "outside", false);
        check(None, None, None, 0, "unknown", true);
        check(Some(truth * 0.99), Some(truth), Some(truth * 1.01), 1, "held", false);
    }
}
