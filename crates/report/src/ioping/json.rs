//! ioping's JSON: one array of requests and statistics, piece by piece as they come. Pure; the form is that of ioping 1.3.

use std::fmt::Write as _;

use fathom_analysis::ping::{Note, PingSample, PingTarget, PingWindow};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Writes the pieces of one array. Nothing is kept but whether one was written.
#[derive(Debug)]
pub struct Pieces {
    place: PingTarget,
    time_zone: TimeZone,
    begun: bool,
}

impl Pieces {
    /// An array about `place`, with local times of `time_zone`.
    pub fn new(place: PingTarget, time_zone: TimeZone) -> Pieces {
        Pieces { place, time_zone, begun: false }
    }

    /// The piece of a request, answered at `unix_us`.
    pub fn sample(&mut self, sample: &PingSample, note: Option<Note>, unix_us: u64) -> String {
        let ignored = matches!(note, Some(Note::Warmup | Note::TooFast | Note::TooSlow | Note::Again));
        let mut text = self.head(unix_us);
        let fields = [
            ("request", sample.request.to_string()),
            ("operation", format!("\"{}\"", sample.operation.name())),
            ("size", sample.result.max(0).to_string()),
            ("time", sample.lat_ns.to_string()),
            ("ignored", ignored.to_string()),
        ];
        object(&mut text, "io", &fields);
        text
    }

    /// The piece of a stretch of time that ended at `unix_us`.
    pub fn window(&mut self, window: &PingWindow, unix_us: u64) -> String {
        let moments = &window.lat_ns;
        let rate = |count: u64, ns: f64| if ns > 0.0 { count as f64 * 1e9 / ns } else { 0.0 };
        let (sum, wall) = (moments.sum as f64, window.load.wall_ns() as f64);
        let mut text = self.head(unix_us);
        let stat = [
            ("count", moments.count.to_string()),
            ("size", window.load.counted_bytes.to_string()),
            ("time", moments.sum.to_string()),
            ("iops", format!("{:.6}", rate(moments.count, sum))),
            ("bps", format!("{:.0}", rate(window.load.counted_bytes, sum))),
            ("min", moments.min.to_string()),
            ("avg", format!("{:.0}", moments.mean())),
            ("max", moments.max.to_string()),
            ("mdev", format!("{:.0}", window.deviation_ns())),
        ];
        object(&mut text, "stat", &stat);
        let load = [
            ("count", window.load.answered.to_string()),
            ("size", window.load.answered_bytes.to_string()),
            ("time", window.load.wall_ns().to_string()),
            ("iops", format!("{:.6}", rate(window.load.answered, wall))),
            ("bps", format!("{:.0}", rate(window.load.answered_bytes, wall))),
        ];
        // Behind another object.
        text.truncate(text.trim_end().len());
        text.push_str(",\n");
        object(&mut text, "load", &load);
        text
    }

    /// What closes the array.
    pub fn end(self) -> &'static str {
        if self.begun { "}]\n" } else { "[]\n" }
    }

    fn head(&mut self, unix_us: u64) -> String {
        let mut text = if self.begun { "},{\n" } else { "[{\n" }.to_owned();
        self.begun = true;
        let at = i64::try_from(unix_us).ok().and_then(|us| Timestamp::from_microsecond(us).ok());
        let at = at.unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(self.time_zone.clone());
        // Into a string nothing fails.
        let _ = writeln!(text, "  \"timestamp\": {}.{:06},", unix_us / 1_000_000, unix_us % 1_000_000);
        let _ = writeln!(text, "  \"localtime\": \"{}\",", at.strftime("%Y-%m-%dT%H:%M:%S%z"));
        let place = &self.place;
        let (fs_type, device) = match (place.is_block_device, place.is_char_device) {
            (true, _) => ("block", "device"),
            (_, true) => ("character", "device"),
            _ => (place.fs_type.as_str(), place.device.as_str()),
        };
        let fields = [
            ("path", quoted(&place.path)),
            ("fstype", quoted(fs_type)),
            ("device", quoted(device)),
            ("device_size", place.device_size_bytes.to_string()),
        ];
        object(&mut text, "target", &fields);
        text.truncate(text.trim_end().len());
        text.push_str(",\n");
        text
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn object(text: &mut String, name: &str, fields: &[(&str, String)]) {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("    \"{name}\": {value}")).collect();
    let _ = writeln!(text, "  \"{name}\": {{\n{}\n  }}", fields.join(",\n"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_analysis::ping::PingLoad;
    use fathom_model::Op;

    #[test]
    fn the_array_is_ioping_s() {
        let place = PingTarget {
            path: "a \"b\"".to_owned(),
            fs_type: "ext4".to_owned(),
            device: "/dev/vda".to_owned(),
            device_size_bytes: 270_553_174_016,
            ..PingTarget::default()
        };
        let sample = PingSample {
            request: 1,
            operation: Op::Read,
            offset_bytes: 0,
            size_bytes: 4096,
            result: 4096,
            lat_ns: 1787,
            response_ns: None,
            served: None,
            elapsed_ns: 0,
        };
        let load = PingLoad {
            counted_bytes: 4096,
            answered: 2,
            answered_bytes: 8192,
            end_ns: 10_179_066,
            ..PingLoad::default()
        };
        let mut window = PingWindow { load, ..PingWindow::default() };
        window.lat_ns.record(1324);
        let mut pieces = Pieces::new(place, TimeZone::UTC);
        let mut text = pieces.sample(&sample, Some(Note::Warmup), 1_795_213_535_882_301);
        text += &pieces.window(&window, 1_795_213_535_892_377);
        text += pieces.end();
        let expected = r#"[{
  "timestamp": 1795213535.882301,
  "localtime": "2026-11-20T22:25:35+0000",
  "target": {
    "path": "a \"b\"",
    "fstype": "ext4",
    "device": "/dev/vda",
    "device_size": 270553174016
  },
  "io": {
    "request": 1,
    "operation": "read",
    "size": 4096,
    "time": 1787,
    "ignored": true
  }
},{
  "timestamp": 1795213535.892377,
  "localtime": "2026-11-20T22:25:35+0000",
  "target": {
    "path": "a \"b\"",
    "fstype": "ext4",
    "device": "/dev/vda",
    "device_size": 270553174016
  },
  "stat": {
    "count": 1,
    "size": 4096,
    "time": 1324,
    "iops": 755287.009063,
    "bps": 3093655589,
    "min": 1324,
    "avg": 1324,
    "max": 1324,
    "mdev": 0
  },
  "load": {
    "count": 2,
    "size": 8192,
    "time": 10179066,
    "iops": 196.481681,
    "bps": 804789
  }
}]
"#;
        assert_eq!(text, expected);
        assert_eq!(Pieces::new(PingTarget::default(), TimeZone::UTC).end(), "[]\n");
    }
}
