//! Raw lines: `-B`, `-p`, `-P`.

use fathom_record::import::{Figure, FigureNumber, FigurePlace, ImportedLatency, ImportedOp, PacedLoad};

use crate::ImportError;
use crate::report::SourceReport;

/// Fields of a line: count, time, IOPS, bytes per second, min, avg, max, mdev; from 1.1 on all requests and wall time as well.
const FIELDS: [usize; 2] = [8, 10];

/// The numbers of a line; `None` where it is no such line.
fn numbers(line: &str) -> Option<Vec<f64>> {
    let numbers: Option<Vec<f64>> = line
        .split_whitespace()
        .map(|field| field.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0))
        .collect();
    numbers.filter(|numbers| FIELDS.contains(&numbers.len()))
}

/// True where a text has nothing but such lines.
pub(crate) fn is_raw(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).peekable();
    lines.peek().is_some() && lines.all(|line| numbers(line).is_some())
}

/// Reads every line as a test: each is a period of its own.
pub(crate) fn read(text: &str) -> Result<SourceReport, ImportError> {
    let mut report = SourceReport::default();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let line_number = index as u64 + 1;
        let numbers = numbers(line).ok_or_else(|| {
            ImportError::new(line_number, "not a raw line of ioping", "import lines of 8 or 10 numbers alone")
        })?;
        let scale = time_scale(&numbers).ok_or_else(|| {
            ImportError::new(
                line_number,
                "the unit of the times is unknown: count, time and IOPS do not agree",
                "import ioping's text or JSON instead",
            )
        })?;
        let mut test = test(&numbers, scale);
        test.imported.places.push(FigurePlace { line: line_number, ..FigurePlace::default() });
        report.tests.push(test);
    }
    Ok(report)
}

/// ns in the unit of the times: early versions print µs. It follows from the count, the time and the rate.
fn time_scale(numbers: &[f64]) -> Option<f64> {
    let [count, time, iops] = *numbers.first_chunk()?;
    if count == 0.0 || time == 0.0 || iops == 0.0 {
        return (numbers.len() == FIELDS[1]).then_some(1.0);
    }
    // The rate is a whole number.
    let expected_ns = |iops: f64| count / iops * 1e9;
    let is = |scale: f64| {
        let ns = time * scale;
        ns >= expected_ns(iops + 1.0) * 0.9 && ns <= expected_ns((iops - 1.0).max(0.5)) * 1.1
    };
    // The wall time is printed only since there are ns.
    [1.0, 1e3, 1e6].into_iter().find(|&scale| is(scale)).or((numbers.len() == FIELDS[1]).then_some(1.0))
}

fn test(numbers: &[f64], scale: f64) -> crate::report::SourceTest {
    fn whole<T: FigureNumber>(value: f64) -> Option<Figure<T>> {
        // Rates and means are rounded down.
        Figure::printed(value, 1.0)
    }
    fn exact(value: f64) -> Option<Figure<u64>> {
        Figure::printed(value, 0.0)
    }
    let time = |value: f64| Figure::printed(value * scale, if scale > 1.0 { scale } else { 0.0 });
    let mean = |value: f64| Figure::printed(value * scale, scale);
    let lat = ImportedLatency {
        samples: exact(numbers[0]),
        min: time(numbers[4]),
        mean: mean(numbers[5]),
        max: time(numbers[6]),
        stddev: mean(numbers[7]),
        ..ImportedLatency::default()
    };
    let figures = ImportedOp {
        ios: exact(numbers[0]),
        runtime_ns: time(numbers[1]),
        iops: whole(numbers[2]),
        bytes_per_second: whole(numbers[3]),
        lat,
        ..ImportedOp::default()
    };
    let paced = numbers.get(8).zip(numbers.get(9)).map(|(&ios, &wall)| PacedLoad {
        ios: exact(ios),
        wall_ns: exact(wall),
        ..PacedLoad::default()
    });
    super::test(super::load(None, None, None), None, figures, paced)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_of_times_follows_from_count_and_rate() {
        let check = |line: &str, expected: Option<f64>| {
            assert_eq!(time_scale(&numbers(line).unwrap()), expected, "{line}");
        };
        check("4 32628 122594 502145397 6750 8157 11447 1909 5 400175577", Some(1.0));
        check("100 8672 11531 47232000 63 87 144 10", Some(1e3));
        check("100 8672000 11531 47232000 63000 87000 144000 10000", Some(1.0));
        check("100 5 11531 47232000 63 87 144 10", None);
    }
}
