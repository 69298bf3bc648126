//! Predictions beside the truth, figure by figure.

use std::fmt;

use serde_json::{Value, json};

use super::run::{MeasuredCase, RunFigures};

/// How far a prediction may be from the truth.
const RATE: f64 = 0.03;
const LATENCY: f64 = 0.10;
const EXHAUSTED: f64 = 0.05;

/// The line of results of a case.
pub fn judged(case: &MeasuredCase) -> Value {
    let volumes: Vec<Value> = case
        .truths
        .iter()
        .map(|(name, target, truth)| {
            let found = candidate(&case.advice, target);
            json!({"volume": name, "target": target, "figures": figures(case, found, truth)})
        })
        .collect();
    let observed = &case.advice["observed"];
    let current = &case.advice["current"]["predicted"];
    json!({
        "pace": observed["pace"], "head_s": case.head_s, "has_lost": case.has_lost, "volumes": volumes,
        "recorded": {"iops": case.recorded.ios / case.recorded.seconds, "read_ns": case.recorded.read_ns,
            "write_ns": case.recorded.write_ns, "observed_ns": observed["lat_ns"], "predicted_ns": current["lat_ns"]},
    })
}

fn candidate<'a>(advice: &'a Value, target: &str) -> &'a Value {
    let candidates = advice["candidates"].as_array().map_or(&[][..], Vec::as_slice);
    candidates
        .iter()
        .find(|found| found["target"] == target)
        .map_or(&Value::Null, |found| &found["predicted"])
}

/// Each figure: its name, the prediction and the truth, and whether they are near.
fn figures(case: &MeasuredCase, found: &Value, truth: &RunFigures) -> Vec<Value> {
    let rate = recorded_rate(case, truth);
    let mut all = vec![figure("rate", found["iops"].as_f64(), Some((rate, rate)), RATE)];
    for (direction, latencies) in [("read", truth.read_ns), ("write", truth.write_ns)] {
        for ((percentile, latency), late) in ["p50", "p99"].into_iter().zip(latencies).zip(truth.late_ns) {
            let prediction = found[direction][percentile].as_f64();
            let truth = Some((latency - late, latency));
            all.push(figure(&format!("{direction} {percentile}"), prediction, truth, LATENCY));
        }
    }
    let exhausted = found["exhausted_ns"].as_f64().map(|ns| ns / 1e9 - case.head_s);
    if exhausted.is_some() || truth.exhausted_s.is_some() {
        all.push(figure("exhausted", exhausted, truth.exhausted_s.map(|s| (s, s)), EXHAUSTED));
    }
    all
}

/// The rate of a run by the clock of the recording, which begins before the first request; that of an open load also ends after
/// the last one.
fn recorded_rate(case: &MeasuredCase, truth: &RunFigures) -> f64 {
    let length_s = case.advice["observed"]["length_ns"].as_f64().unwrap_or(0.0) / 1e9;
    let until_s = case.head_s + truth.seconds;
    truth.ios / if case.is_closed { until_s } else { until_s.max(length_s) }
}

/// `truth` is a range: what was measured, and that less the time by which the disk was late.
fn figure(name: &str, prediction: Option<f64>, truth: Option<(f64, f64)>, most: f64) -> Value {
    let error = prediction.zip(truth).map(|(prediction, (low, high))| {
        let nearest = prediction.clamp(low.min(high), high);
        prediction / nearest - 1.0
    });
    let is_near = error.is_some_and(|error| error.abs() <= most);
    let (low, measured) = (truth.map(|truth| truth.0), truth.map(|truth| truth.1));
    json!({"figure": name, "predicted": prediction, "truth": measured, "truth_less_lateness": low, "error": error,
        "is_near": is_near})
}

fn each<'a>(line: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    line[name].as_array().into_iter().flatten()
}

/// `00-constant, open: served: rate +0.1 %, read p50 -1.2 % ...`.
pub fn shown(line: &Value) -> String {
    let volumes: Vec<String> = each(line, "volumes")
        .map(|volume| {
            let figures: Vec<String> = each(volume, "figures")
                .map(|figure| {
                    format!(
                        "{} {}{}",
                        text(figure, "figure"),
                        percent(figure),
                        if is_near(figure) { "" } else { " OUTSIDE" }
                    )
                })
                .collect();
            format!("{}: {}", text(volume, "volume"), figures.join(", "))
        })
        .collect();
    let lost = if line["has_lost"] == true { "; EVENTS LOST" } else { "" };
    format!("{}, {}{lost}: {}", text(line, "case"), text(line, "pace"), volumes.join("; "))
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or("-")
}

fn is_near(figure: &Value) -> bool {
    figure["is_near"] == true
}

fn percent(figure: &Value) -> String {
    figure["error"].as_f64().map_or("unknown".to_owned(), |error| format!("{:+.1} %", error * 100.0))
}

/// Every figure of every case, a row each.
pub fn table(lines: &[Value]) -> String {
    let mut rows = vec![format!(
        "{:<14} {:<8} {:<10} {:>12} {:>12} {:>9}",
        "case", "volume", "figure", "predicted", "truth", "error"
    )];
    for line in lines {
        for volume in each(line, "volumes") {
            for figure in each(volume, "figures") {
                let unit = text(figure, "figure");
                let number = |name: &str| {
                    figure[name].as_f64().map_or("unknown".to_owned(), |value| amount(unit, value))
                };
                rows.push(format!(
                    "{:<14} {:<8} {:<10} {:>12} {:>12} {:>9}{}",
                    text(line, "case"),
                    text(volume, "volume"),
                    unit,
                    number("predicted"),
                    number("truth"),
                    percent(figure),
                    if is_near(figure) { "" } else { "  outside" }
                ));
            }
        }
    }
    rows.join("\n")
}

fn amount(figure: &str, value: f64) -> String {
    match figure {
        "rate" => format!("{value:.1} IOPS"),
        "exhausted" => format!("{value:.2} s"),
        _ => format!("{:.3} ms", value / 1e6),
    }
}

/// All results together.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tally {
    cases: usize,
    figures: usize,
    outside: usize,
    /// Cases whose recorder lost events.
    lossy: usize,
}

impl Tally {
    pub fn of(lines: &[Value]) -> Tally {
        let mut tally = Tally::default();
        for line in lines {
            tally.cases += 1;
            tally.lossy += usize::from(line["has_lost"] == true);
            for figure in each(line, "volumes").flat_map(|volume| each(volume, "figures")) {
                tally.figures += 1;
                tally.outside += usize::from(!is_near(figure));
            }
        }
        tally
    }

    pub fn holds(&self) -> bool {
        self.figures > 0 && self.outside == 0 && self.lossy == 0
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { cases, figures, outside, lossy } = self;
        write!(
            out,
            "{cases} loads: {} of {figures} figures as near as they have to be (rate {:.0} %, p50 and p99 {:.0} %, time of \
             exhaustion {:.0} %); {lossy} recordings with lost events",
            figures - outside,
            RATE * 100.0,
            LATENCY * 100.0,
            EXHAUSTED * 100.0
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(iops: f64, p99: f64, exhausted_ns: Option<f64>) -> MeasuredCase {
        let latencies = json!({"p50": 1e6, "p99": p99});
        let predicted =
            json!({"iops": iops, "read": latencies, "write": latencies, "exhausted_ns": exhausted_ns});
        let truth = RunFigures {
            ios: 5_000.0,
            seconds: 9.0,
            read_ns: [1e6, 4e6],
            write_ns: [1e6, 4e6],
            late_ns: [0.0; 2],
            exhausted_s: Some(5.0),
        };
        MeasuredCase {
            is_closed: false,
            advice: json!({"observed": {"length_ns": 10e9, "pace": "open"},
                "candidates": [{"target": "sim:a", "predicted": predicted}]}),
            head_s: 0.5,
            has_lost: false,
            recorded: truth.clone(),
            truths: vec![("served", "sim:a".to_owned(), truth)],
        }
    }

    fn outside(case: &MeasuredCase) -> Vec<String> {
        let line = judged(case);
        let all = each(&line["volumes"][0], "figures").filter(|figure| !is_near(figure));
        all.map(|figure| text(figure, "figure").to_owned()).collect()
    }

    #[test]
    fn figures_have_to_be_near() {
        let none: [&str; 0] = [];
        assert_eq!(outside(&case(501.0, 4.3e6, Some(5.6e9))), none);
        assert_eq!(outside(&case(520.0, 4.3e6, Some(5.6e9))), ["rate"]);
        assert_eq!(outside(&case(500.0, 4.5e6, None)), ["read p99", "write p99", "exhausted"]);
        // The disk was late by a tenth.
        let mut late = case(500.0, 3.3e6, Some(5.5e9));
        assert_eq!(outside(&late), ["read p99", "write p99"]);
        late.truths[0].2.late_ns = [0.0, 0.4e6];
        assert_eq!(outside(&late), none);
        let closed = MeasuredCase { is_closed: true, ..case(5_000.0 / 9.5, 4e6, Some(5.5e9)) };
        assert_eq!(outside(&closed), none);
    }

    #[test]
    fn results_are_shown_and_added_up() {
        let mut lines = [judged(&case(500.0, 4e6, Some(5.5e9))), judged(&case(600.0, 4e6, Some(5.5e9)))];
        let tally = Tally::of(&lines);
        assert_eq!((tally.figures, tally.outside, tally.holds()), (12, 1, false));
        assert!(Tally::of(&lines[..1]).holds() && !Tally::of(&[]).holds());
        lines[1]["case"] = "00-constant".into();
        assert_eq!(table(&lines).lines().count(), 13);
        assert!(
            shown(&lines[1]).starts_with("00-constant, open: served: rate +20.0 % OUTSIDE, read p50 +0.0 %")
        );
    }
}
