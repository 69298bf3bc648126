//! What a sweep is to look for beside the limits: an objective for latency, a rate to reach. Read from the command line,
//! held against points.

use fathom_model::Nanos;
use fathom_model::units::{parse_bytes, parse_duration};
use fathom_record::LatencySummary;

use crate::sweep::point::SweepPoint;

/// An objective for latency: `p99<5ms`.
#[derive(Clone, Debug, PartialEq)]
pub struct Slo {
    /// `mean`, `p50`, `p90`, `p95`, `p99`, `p999`, `p9999` or `max`.
    statistic: &'static str,
    /// It may be reached.
    inclusive: bool,
    limit: Nanos,
    text: String,
}

/// A rate to reach: `iops>=5000` or `bytes_per_second>=200MiB`.
#[derive(Clone, Debug, PartialEq)]
pub struct RateGoal {
    is_bytes: bool,
    rate: f64,
    text: String,
}

/// Statistics that an objective can name, and the share of requests beyond them.
const STATISTICS: [(&str, f64); 8] = [
    ("mean", 1.0),
    ("p50", 0.5),
    ("p90", 0.1),
    ("p95", 0.05),
    ("p99", 0.01),
    ("p999", 0.001),
    ("p9999", 0.0001),
    ("max", 1.0),
];
/// Requests that must lie beyond a percentile before it is one.
const LEAST_BEYOND: f64 = 10.0;

impl Slo {
    /// Reads an objective; the error says how one is written.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(text: &str) -> Result<Slo, String> {
        let wrong = || format!("'{text}' is no objective: write one such as 'p99<5ms' or 'mean<=800us'");
        let (name, rest) = text.split_once('<').ok_or_else(wrong)?;
        let (inclusive, limit) = rest.strip_prefix('=').map_or((false, rest), |limit| (true, limit));
        let name = name.trim().replace('.', "");
        let (statistic, _) = STATISTICS.into_iter().find(|(known, _)| *known == name).ok_or_else(|| {
            let names: Vec<&str> = STATISTICS.iter().map(|(known, _)| *known).collect();
            format!("'{name}' is no statistic of a latency: there are {}", names.join(", "))
        })?;
        if !limit.trim().ends_with('s') {
            return Err(format!("'{}' has no unit: write one such as 5ms or 800us", limit.trim()));
        }
        let limit = parse_duration(limit).map_err(|error| error.to_string())?;
        if limit == Nanos::ZERO {
            return Err("no request takes no time: write a limit above 0".to_owned());
        }
        Ok(Slo { statistic, inclusive, limit, text: text.trim().to_owned() })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What of the latency it limits: `mean`, `p99`, `max`, ...
    pub fn statistic(&self) -> &'static str {
        self.statistic
    }

    /// The limit.
    pub fn limit(&self) -> Nanos {
        self.limit
    }

    /// Whether `point` meets it; `None` where its sample does not tell.
    pub fn is_met(&self, point: &SweepPoint) -> Option<bool> {
        self.is_met_by(&point.lat)
    }

    /// Whether a latency meets it; `None` where its sample does not tell.
    pub fn is_met_by(&self, lat: &LatencySummary) -> Option<bool> {
        let whole = |ns: Option<u64>| ns.map(|ns| ns as f64);
        let value = match self.statistic {
            "mean" => lat.mean,
            "p50" => whole(lat.p50),
            "p90" => whole(lat.p90),
            "p95" => whole(lat.p95),
            "p99" => whole(lat.p99),
            "p999" => whole(lat.p999),
            "p9999" => whole(lat.p9999),
            _ => whole(lat.max),
        }?;
        let limit = self.limit.0 as f64;
        Some(value < limit || self.inclusive && value == limit)
    }

    /// Requests that a point needs so that it can be judged.
    pub(crate) fn samples(&self) -> f64 {
        let beyond =
            STATISTICS.iter().find(|(name, _)| *name == self.statistic).map_or(1.0, |(_, share)| *share);
        LEAST_BEYOND / beyond
    }
}

impl RateGoal {
    /// Reads a rate to reach; the error says how one is written.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(text: &str) -> Result<RateGoal, String> {
        let wrong =
            || format!("'{text}' is no rate to reach: write 'iops>=5000' or 'bytes_per_second>=200MiB'");
        let (name, value) = text.split_once(">=").ok_or_else(wrong)?;
        let (is_bytes, rate) = match name.trim() {
            "iops" => (false, value.trim().parse::<f64>().map_err(|_| wrong())?),
            "bytes_per_second" | "bw" => (
                true,
                parse_bytes(value.trim().trim_end_matches("/s")).map_err(|error| error.to_string())? as f64,
            ),
            _ => return Err(wrong()),
        };
        if !(rate.is_finite() && rate > 0.0) {
            return Err(format!("'{}' is not above 0", value.trim()));
        }
        Ok(RateGoal { is_bytes, rate, text: text.trim().to_owned() })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether `point` reaches it.
    pub fn is_reached(&self, point: &SweepPoint) -> bool {
        point.is_sound() && (if self.is_bytes { point.bytes_per_second } else { point.iops }) >= self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::AccessPattern;
    use crate::sweep::point::SweepSpot;
    use crate::sweep::point::model::Model;

    fn point() -> SweepPoint {
        let model = Model { rest_ns: 1e6, iops: 1e9, bytes_per_second: 1e12 };
        model.measure(
            SweepSpot { rw: AccessPattern::RandRead, block: 4096, depth: 2, jobs: 1 },
            1_000_000_000,
            0.0,
        )
    }

    #[test]
    fn objectives() {
        // A mean of 1 ms, percentiles of 1.2 ms, 2000 samples.
        for (text, met) in [
            ("mean<=1ms", Some(true)),
            ("mean<1ms", Some(false)),
            ("p99<1.5ms", Some(true)),
            ("p99<1100us", Some(false)),
            ("p99.9<5ms", None),
            ("p9999<5ms", None),
        ] {
            assert_eq!(Slo::parse(text).unwrap().is_met(&point()), met, "{text}");
        }
        for (text, said) in [
            ("p99", "is no objective"),
            ("p98<1ms", "no statistic"),
            ("p99<5", "no unit"),
            ("p99<0ms", "above 0"),
        ] {
            let error = Slo::parse(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn rates_to_reach() {
        // 2000 requests of 4 KiB a second.
        for (text, reached) in [
            ("iops>=2000", true),
            ("iops>=2001", false),
            ("bytes_per_second>=7MiB", true),
            ("bw >= 8MiB/s", false),
        ] {
            assert_eq!(RateGoal::parse(text).unwrap().is_reached(&point()), reached, "{text}");
        }
        for text in ["iops>5", "iops>=x", "iops>=0", "iops>=inf", "lat>=5", ""] {
            assert!(RateGoal::parse(text).is_err(), "{text}");
        }
    }
}
