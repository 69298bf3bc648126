//! The idle time of CPUs, of `--idle-prof`.

use std::fmt;

use serde_json::{Map, Value};

/// How idle the CPUs were during a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CpuIdleness {
    /// Idle share of each CPU, percent, by its number; empty where it was not asked for.
    pub cpus: Vec<(u32, f64)>,
    /// Idle share of all CPUs, percent; `None` where nothing ran.
    pub system: Option<f64>,
    /// Mean time of a fixed piece of work, us.
    pub unit_mean_us: f64,
    /// Its standard deviation.
    pub unit_stddev_us: f64,
}

impl CpuIdleness {
    /// The object of fio's JSON.
    pub(crate) fn json(&self) -> Value {
        let mut object = Map::new();
        let mut put = |name: &str, value: f64| object.insert(name.to_owned(), value.into());
        self.system.map(|system| put("system", system));
        for (cpu, idle) in &self.cpus {
            put(&format!("cpu-{cpu}"), *idle);
        }
        put("unit_mean", self.unit_mean_us);
        put("unit_stddev", self.unit_stddev_us);
        object.into()
    }
}

/// The lines of fio's text.
impl fmt::Display for CpuIdleness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "CPU idleness:")?;
        if let Some(system) = self.system {
            writeln!(f, "  system: {system:.2}%")?;
        }
        if !self.cpus.is_empty() {
            let cpus: Vec<String> = self.cpus.iter().map(|(_, idle)| format!("{idle:.2}%")).collect();
            writeln!(f, "  percpu: {}", cpus.join(", "))?;
        }
        writeln!(f, "  unit work: mean={:.2}us, stddev={:.2}", self.unit_mean_us, self.unit_stddev_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_json_are_those_of_fio() {
        let cpus = vec![(0, 1.48), (1, 20.676)];
        let idleness =
            CpuIdleness { cpus, system: Some(11.078), unit_mean_us: 17.481, unit_stddev_us: 12.06 };
        let text = "CPU idleness:\n  system: 11.08%\n  percpu: 1.48%, 20.68%\n  unit work: mean=17.48us, stddev=12.06\n";
        assert_eq!(idleness.to_string(), text);
        let Value::Object(object) = idleness.json() else { panic!() };
        let keys: Vec<&str> = object.keys().map(String::as_str).collect();
        for key in ["system", "cpu-0", "cpu-1", "unit_mean", "unit_stddev"] {
            assert!(keys.contains(&key), "{keys:?}");
        }
        let calibrated = CpuIdleness { system: None, cpus: Vec::new(), ..idleness };
        assert_eq!(calibrated.to_string().lines().count(), 2);
    }
}
