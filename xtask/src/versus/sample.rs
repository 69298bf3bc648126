//! The output of one run: fathom's and fio's JSON, and the line of a bare loop.

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::recording::RecordingCost;

/// The figures of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunSample {
    /// Requests that were completed, of both directions.
    pub ios: f64,
    /// Time of the job's thread or process in user mode, in ns. The kernel splits a thread's time by where its ticks fell.
    pub user_ns: f64,
    /// In the kernel.
    pub system_ns: f64,
    /// From the first request to the last.
    pub wall_ns: f64,
    /// Mean completion latency; 0 of a bare loop.
    pub clat_ns: f64,
    /// Mean total latency; 0 of a bare loop.
    pub lat_ns: f64,
    /// Mean latency of reads by the kernel's counters of the device; 0 where no device was read.
    pub device_ns: f64,
    /// CPU time of the process and its children, start and report included, in ns; 0 where it was not taken.
    pub process_ns: f64,
    /// Of the recorder beside it.
    pub recording: Option<RecordingCost>,
}

impl RunSample {
    /// Reads the JSON document in `text`, which begins with the first brace: fio prints messages before it.
    pub fn from_document(text: &str) -> anyhow::Result<RunSample> {
        let start = text.find('{').context("no JSON was printed")?;
        let mut documents = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        let document = documents.next().context("no JSON was printed")?.context("not JSON")?;
        let [job] = document["jobs"].as_array().map_or(&[][..], Vec::as_slice) else {
            bail!("not one job, or not one group of jobs, in the result");
        };
        let number = |value: &Value, name: &str| {
            value[name].as_f64().with_context(|| format!("no number called {name} in the result"))
        };
        if number(job, "error")? != 0.0 {
            bail!("the job ended with error {}", job["error"]);
        }
        let (read, write) = (&job["read"], &job["write"]);
        let written = write["total_ios"].as_f64().unwrap_or(0.0);
        let job_ns = number(job, "job_runtime")? * 1e6;
        let sample = RunSample {
            ios: number(read, "total_ios")? + written,
            user_ns: number(job, "usr_cpu")? / 100.0 * job_ns,
            system_ns: number(job, "sys_cpu")? / 100.0 * job_ns,
            wall_ns: number(read, "runtime")? * 1e6,
            clat_ns: number(&read["clat_ns"], "mean")?,
            lat_ns: number(&read["lat_ns"], "mean")?,
            device_ns: device_ns(&document["disk_util"][0]),
            process_ns: 0.0,
            recording: None,
        };
        sample.checked()
    }

    /// Reads the line that a bare loop prints.
    pub fn from_bare_loop(line: &str) -> anyhow::Result<RunSample> {
        let value: Value = serde_json::from_str(line).context("a bare loop printed no JSON")?;
        let number =
            |name: &str| value[name].as_f64().with_context(|| format!("no number called {name} in {line}"));
        let sample = RunSample {
            ios: number("ios")?,
            user_ns: number("user_ns")?,
            system_ns: number("system_ns")?,
            wall_ns: number("wall_ns")?,
            ..RunSample::default()
        };
        sample.checked()
    }

    /// Every figure divides by one of these.
    fn checked(self) -> anyhow::Result<RunSample> {
        if self.ios <= 0.0 || self.wall_ns <= 0.0 || self.user_ns + self.system_ns <= 0.0 {
            bail!("a run without requests, or without time: {self:?}");
        }
        Ok(self)
    }

    /// CPU time over what `cpus` CPUs had: below one where the job waited, or something else ran.
    pub fn share_of(&self, cpus: u32) -> f64 {
        (self.user_ns + self.system_ns) / (self.wall_ns * f64::from(cpus))
    }

    /// The figure that a row asks for, in the row's unit.
    pub fn figure(&self, figure: SampleFigure) -> f64 {
        let job_ns = self.user_ns + self.system_ns;
        match figure {
            SampleFigure::PerCpuSecond => self.ios / job_ns * 1e3,
            SampleFigure::PerSecond => self.ios / self.wall_ns * 1e3,
            SampleFigure::UserTime => self.user_ns / self.ios,
            SampleFigure::JobTime => job_ns / self.ios,
            SampleFigure::OutsideLatency => self.wall_ns / self.ios - self.clat_ns,
            SampleFigure::BeyondDevice => self.lat_ns - self.device_ns,
            SampleFigure::ProcessTime => self.process_ns / self.ios,
            SampleFigure::OutsideJob => (self.process_ns - job_ns) / 1e6,
        }
    }
}

/// The figure taken from a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleFigure {
    /// Million requests per second of CPU time.
    PerCpuSecond,
    /// Million requests per second.
    PerSecond,
    /// ns of user time per request.
    UserTime,
    /// ns of CPU time of the job per request.
    JobTime,
    /// ns per request that its completion latency does not hold.
    OutsideLatency,
    /// ns of CPU time of the process, its threads and children per request.
    ProcessTime,
    /// ns of mean latency beyond the kernel's own of the device.
    BeyondDevice,
    /// ms of CPU time of the process outside of its job.
    OutsideJob,
}

/// Mean latency of the reads of a device, ns: its counter of their time has ms.
fn device_ns(disk: &Value) -> f64 {
    let number = |name: &str| disk[name].as_f64().unwrap_or(0.0);
    if number("read_ios") > 0.0 { number("read_ticks") * 1e6 / number("read_ios") } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r#"note: before the document
        {"jobs": [{"error": 0, "job_runtime": 2000, "usr_cpu": 10.0, "sys_cpu": 40.0,
                   "read": {"total_ios": 1000000, "runtime": 2000, "clat_ns": {"mean": 1500.0}, "lat_ns": {"mean": 1600.0}}}],
         "disk_util": [{"name": "vda", "read_ios": 1000000, "read_ticks": 1200}]}"#;

    #[test]
    fn figures_of_a_document() {
        let mut sample = RunSample::from_document(DOCUMENT).unwrap();
        sample.process_ns = 1.25e9;
        let check = |figure, expected: f64| {
            let got = sample.figure(figure);
            assert!((got - expected).abs() < 1e-9, "{figure:?}: {got}, not {expected}");
        };
        check(SampleFigure::PerCpuSecond, 1.0);
        check(SampleFigure::PerSecond, 0.5);
        check(SampleFigure::UserTime, 200.0);
        check(SampleFigure::JobTime, 1000.0);
        check(SampleFigure::OutsideLatency, 500.0);
        check(SampleFigure::BeyondDevice, 400.0);
        check(SampleFigure::OutsideJob, 250.0);
        check(SampleFigure::ProcessTime, 1250.0);
        assert_eq!((sample.share_of(1), sample.share_of(2)), (0.5, 0.25));
    }

    #[test]
    fn a_bare_loop_has_no_latency() {
        let sample = RunSample::from_bare_loop(r#"{"ios":4,"user_ns":1,"system_ns":2,"wall_ns":8}"#).unwrap();
        assert_eq!((sample.ios, sample.system_ns, sample.clat_ns), (4.0, 2.0, 0.0));
        assert_eq!(sample.figure(SampleFigure::PerSecond), 500.0);
    }

    #[test]
    fn zero_rates_are_refused() {
        let check = |from: &str, to: &str| {
            let text = DOCUMENT.replace(from, to);
            assert_ne!(text, DOCUMENT, "{from}");
            assert!(RunSample::from_document(&text).is_err(), "{to}");
        };
        check("\"error\": 0", "\"error\": 5");
        check("1000000", "0");
        check("\"total_ios\"", "\"other\"");
        check("\"runtime\": 2000,", "\"runtime\": 0,");
        check("\"jobs\": [", "\"jobs\": [{\"error\": 0},");
        assert!(RunSample::from_document("no document at all").is_err());
        assert!(RunSample::from_bare_loop("{\"ios\":1}").is_err());
    }
}
