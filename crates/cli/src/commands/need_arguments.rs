//! The options that state the need for a volume, and the currency of prices.

use clap::Args;
use fathom_analysis::criterion::LatencyObjective;
use fathom_assess::need::NeedSettings;
use fathom_model::Nanos;
use fathom_model::units::{parse_bytes, parse_duration};

use super::catalog::{rate, size};

/// What a volume has to give.
#[derive(Args, Clone, Debug)]
pub struct NeedArguments {
    /// Required IOPS
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..), value_name = "NUMBER")]
    pub iops: Option<u64>,
    /// Required bandwidth per second: 200MiB
    ///
    /// Together with --iops it sets the block size.
    #[arg(long = "bandwidth", alias = "throughput", value_parser = rate, value_name = "BYTES")]
    pub throughput: Option<u64>,
    /// Required capacity: 500GiB
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub size: Option<u64>,
    /// Block size [default: from the rates, else 4k]
    ///
    /// 1m if only --bandwidth is given.
    #[arg(long, value_parser = parse_bytes, value_name = "SIZE")]
    pub bs: Option<u64>,
    /// Pattern, as for fio [default: random, any mix]
    ///
    /// randread, randwrite, randrw, read, write or rw.
    #[arg(long, value_name = "PATTERN")]
    pub rw: Option<String>,
    /// Percentage of reads in a mix [default: any]
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=100), value_name = "PERCENT")]
    pub rwmixread: Option<u8>,
    /// Time under load, so that burst credits may serve it: 30m/day
    ///
    /// Per hour, day or week.
    #[arg(long, value_parser = burst, value_name = "TIME/PERIOD")]
    pub burst: Option<(Nanos, Nanos)>,
    /// Required IOPS between bursts
    #[arg(long, requires = "burst", value_name = "NUMBER")]
    pub baseline_iops: Option<u64>,
    /// Instance whose limits apply as well: m6i.large
    #[arg(long, value_name = "INSTANCE")]
    pub instance: Option<String>,
    /// Needs of a workload profile, such as postgresql
    ///
    /// `fathom bench --profile list` has their names. Other options override them.
    #[arg(long)]
    pub profile: Option<String>,
}

impl NeedArguments {
    /// The need as stated, within these latencies.
    pub fn settings(&self, latency: Vec<LatencyObjective>, persistent: bool) -> NeedSettings {
        NeedSettings {
            size: self.size,
            iops: self.iops,
            bytes_per_second: self.throughput,
            block: self.bs,
            rw: self.rw.clone(),
            read_percent: self.rwmixread,
            latency,
            burst: self.burst,
            baseline_iops: self.baseline_iops,
            persistent,
            instance: self.instance.clone(),
            profile: self.profile.clone(),
        }
    }

    /// Whether a rate or an access pattern is stated.
    pub fn states_load(&self) -> bool {
        self.iops.is_some()
            || self.throughput.is_some()
            || self.bs.is_some()
            || self.rw.is_some()
            || self.rwmixread.is_some()
            || self.burst.is_some()
            || self.profile.is_some()
    }
}

/// A currency code, in any case.
pub fn currency(text: &str) -> Result<String, String> {
    match text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        true => Ok(text.to_ascii_uppercase()),
        false => Err(format!("'{text}' is not a currency code, as in USD or EUR")),
    }
}

/// `30m/day`.
fn burst(text: &str) -> Result<(Nanos, Nanos), String> {
    let wrong = || format!("'{text}' is not TIME/PERIOD, as in 30m/day or 5m/h");
    let (length, every) = text.split_once('/').ok_or_else(wrong)?;
    let length = parse_duration(length).map_err(|_| wrong())?;
    let every = match every.trim() {
        "hour" | "h" => Nanos::from_secs(3600),
        "day" | "d" => Nanos::from_secs(86_400),
        "week" | "w" => Nanos::from_secs(7 * 86_400),
        other => parse_duration(other).map_err(|_| wrong())?,
    };
    match length {
        Nanos::ZERO => Err("the time must be above 0".to_owned()),
        length if length >= every => {
            Err("the time must be shorter than its period; for a continuous load omit --burst".to_owned())
        }
        length => Ok((length, every)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts() {
        let seconds = |length: u64, every: u64| Some((Nanos::from_secs(length), Nanos::from_secs(every)));
        for (text, expected) in [
            ("30m/day", seconds(1800, 86_400)),
            ("90/h", seconds(90, 3600)),
            ("2h/week", seconds(7200, 604_800)),
            ("10s/5m", seconds(10, 300)),
            ("1d/day", None),
            ("0/day", None),
            ("30m", None),
            ("30m/", None),
            ("/day", None),
        ] {
            assert_eq!(burst(text).ok(), expected, "{text}");
        }
        assert_eq!(size("50GiB"), Ok(50 << 30));
        assert!(size("0").is_err() && size("50").is_err() && rate("0").is_err());
        assert_eq!((rate("200MiB/s"), rate("200MB")), (Ok(200 << 20), Ok(200_000_000)));
    }
}
