//! Traces of requests on a simulated volume: fio's iolog, versions 2 and 3, blktrace events and the text of blkparse.

use std::io::Read;
use std::path::Path;

use fathom_model::Nanos;
use fathom_model::units::grouped;
use fathom_observed::{LoadCourse, ObservedLoad, RequestTrace};
use fathom_predict::forecast::{TraceForecast, forecast_trace};
use fathom_runner::StopHandle;
use fathom_sys::files::{Input, TRACE};

use super::{Predicted, SimulateObserver};
use crate::AssessError;
use crate::observed_load::{no_trace, requests_of};
use crate::simulated::SimulatedVolume;

/// Requests in the order in which they were made.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Where it comes from.
    pub name: String,
    /// What it is: `fio iolog version 3`, ...
    pub format: &'static str,
    /// The requests; the files of a log share the offsets of the volume.
    trace: RequestTrace,
    /// What the trace lasts by itself, ns.
    length_ns: u64,
    notes: Vec<String>,
}

impl Trace {
    /// Reads the trace at `path`; `device` chooses one of several.
    ///
    /// # Errors
    /// It cannot be read, is not a trace, has a malformed line, no requests, or more of them than are kept.
    pub fn read(path: &Path, device: Option<&str>) -> Result<Trace, AssessError> {
        let (name, file) = TRACE.reader(path)?;
        Trace::read_from(&TRACE, &name, file, device)
    }

    /// Reads the trace that `reader` gives, within the limits of `input`; errors call it `name`.
    ///
    /// # Errors
    /// As [`Trace::read`].
    pub fn read_from(
        input: &'static Input,
        name: &str,
        reader: impl Read + Send,
        device: Option<&str>,
    ) -> Result<Trace, AssessError> {
        let ObservedLoad { format, length_ns, course, mut notes, .. } =
            requests_of(input, name, reader, device)?;
        let LoadCourse::Requests(trace) = course else { return Err(no_trace(name, "it has no requests")) };
        if trace.files.len() > 1 {
            let count = trace.files.len();
            notes.insert(0, format!("the {count} files of the trace share the offsets of the volume"));
        }
        Ok(Trace { name: name.to_owned(), format: format.title(), trace, length_ns, notes })
    }

    /// Requests in it.
    pub fn requests(&self) -> usize {
        self.trace.requests.len()
    }

    /// What it lasts by itself: from its first request to its last, as far as it says.
    pub fn length(&self) -> Nanos {
        Nanos(self.length_ns)
    }
}

/// What the trace gets of the volume.
pub(super) fn predict(
    trace: &Trace,
    volume: &SimulatedVolume,
    length: Option<Nanos>,
    stop: &StopHandle,
    observer: &mut dyn SimulateObserver,
) -> Result<Predicted, AssessError> {
    let refuse = |reason: String| {
        AssessError::usage(format!("{}: {reason}", volume.path.display()), "use a larger size=")
    };
    let requests = &trace.trace;
    let largest = requests.requests.iter().map(|request| u64::from(request.bytes)).max().unwrap_or(0);
    if largest > volume.size() {
        return Err(refuse(format!(
            "{} has an I/O of {largest} bytes, more than the size of the volume",
            trace.name
        )));
    }
    let found = forecast_trace(
        &volume.model,
        volume.seed,
        (requests, trace.length_ns),
        length.map(|length| length.0),
        &|| stop.is_requested().then(|| stop.reason().unwrap_or_default()),
        &mut |at_ns, iops| observer.progress(at_ns, iops),
    );
    let TraceForecast { forecast, interrupted, never, moved, billed } =
        found.map_err(|error| refuse(error.to_string()))?;
    let mut notes = trace.notes.clone();
    if trace.length_ns == 0 && requests.has_times {
        notes.push("all I/Os of the trace have the same time, so the trace is replayed once".to_owned());
    }
    if moved > 0 {
        notes.push(format!("{} I/Os beyond the end of the volume were moved into it", grouped(moved)));
    }
    let failure = (never > 0).then(|| format!("{} I/Os never complete", grouped(never)));
    Ok(Predicted { forecast, interrupted, failure, notes, billed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::VolumeTypes;

    fn read(text: &str) -> Result<Trace, String> {
        Trace::read_from(&TRACE, "t", text.as_bytes(), None).map_err(|error| error.to_string())
    }

    #[test]
    fn notes_say_what_a_log_lacks() {
        let two =
            "fio version 2 iolog\n/a add\n/b add\n/a open\n/a read 0 512\n/a wait 250 0\n/b write 512 512\n";
        let (two, three) = (read(two).unwrap(), read("fio version 3 iolog\n1 /t read 0 1\n").unwrap());
        assert!(
            !two.trace.has_times && two.notes.len() == 2 && three.trace.has_times && three.notes.is_empty()
        );
        assert_eq!((two.requests(), two.length_ns, two.format), (2, 250_000, "fio iolog version 2"));
    }

    #[test]
    fn lines_and_requests_have_a_limit() {
        static FEW: Input = Input { most_entries: 2, most_line_bytes: 100, ..TRACE };
        let read = |text: &str| {
            let trace = Trace::read_from(&FEW, "t", text.as_bytes(), None);
            trace.map(|trace| trace.requests()).map_err(|error| error.to_string())
        };
        let requests = |count: usize| format!("fio version 3 iolog\n{}", "1 /t read 0 512\n".repeat(count));
        assert_eq!(read(&requests(2)), Ok(2));
        assert_eq!(
            read(&requests(3)),
            Err("cannot read the trace t: it has more than 2 requests".to_owned())
        );
        let long = "cannot read the trace t: line 2 is longer than 100 bytes".to_owned();
        assert_eq!(read(&format!("fio version 3 iolog\n{}", "x".repeat(101))), Err(long));
    }

    fn predicted(volume: &str, text: &str, seconds: Option<u64>) -> Predicted {
        let trace = Trace::read_from(&TRACE, "t", text.as_bytes(), None).unwrap();
        let volume = SimulatedVolume::named(volume.as_ref(), &VolumeTypes::default()).unwrap();
        let stop = StopHandle::default();
        predict(&trace, &volume, seconds.map(Nanos::from_secs), &stop, &mut ()).unwrap()
    }

    /// So many reads of 4 KiB, so many µs apart.
    fn reads(count: u64, apart_us: u64) -> String {
        let line = |index: u64| format!("{} /t read {} 4096\n", index * apart_us, index * 4096);
        "fio version 3 iolog\n".to_owned() + &(0..count).map(line).collect::<String>()
    }

    const HUNDRED: &str = "sim:custom?iops=100&latency=1ms&size=1GiB";

    #[test]
    fn a_volume_that_keeps_up_serves_each_at_its_time() {
        // 50 a second for 10 s.
        let Predicted { forecast, .. } = predicted(HUNDRED, &reads(500, 20_000), None);
        assert_eq!((forecast.ops.read.ios, forecast.ops.read.lat.moments.max), (500, 1_000_000));
        let pace = forecast.own_pace.unwrap();
        assert_eq!((pace.most_in_flight, pace.late_ns), (Some(1), Some(1_000_000)));
        assert_eq!(forecast.elapsed_ns, 499 * 20_000_000 + 1_000_000);
    }

    #[test]
    fn a_volume_that_does_not_is_told_by_how_much() {
        // 200 a second for 5 s on half of that: it takes 10 s, and the last waits 5 s.
        let Predicted { forecast, .. } = predicted(HUNDRED, &reads(1_000, 5_000), None);
        let pace = forecast.own_pace.as_ref().unwrap();
        let late = pace.late_ns.unwrap() as f64 / 1e9;
        assert!((4.9..5.1).contains(&late), "{late}");
        assert!((490..=510).contains(&pace.most_in_flight.unwrap()), "{pace:?}");
        let longest = forecast.ops.read.lat.moments.max as f64 / 1e9;
        assert!((4.9..5.1).contains(&longest), "{longest}");
        assert_eq!(forecast.slices.iter().map(|slice| slice.counted.ios[0]).sum::<u64>(), 1_000);
        let rates: Vec<f64> = forecast.slices[1..].iter().map(|slice| slice.iops()).collect();
        assert!(rates.iter().all(|rate| (99.0..=102.0).contains(rate)), "{rates:?}");
    }

    #[test]
    fn a_trace_is_repeated_for_as_long_as_is_asked() {
        let Predicted { forecast, .. } = predicted(HUNDRED, &reads(50, 20_000), Some(10));
        // 50 in 980 ms, the last of each pass together with the first of the next.
        assert!((505..=512).contains(&forecast.ops.read.ios), "{}", forecast.ops.read.ios);
        assert_eq!(forecast.slices.len(), 10);
        let shorter = predicted(HUNDRED, &reads(500, 20_000), Some(2));
        assert_eq!((shorter.forecast.ops.read.ios, shorter.interrupted), (100, None));
    }

    #[test]
    fn a_trace_that_takes_no_time_is_made_once() {
        let Predicted { forecast, notes, .. } = predicted(HUNDRED, &reads(3, 0), Some(86_400));
        assert_eq!(forecast.ops.read.ios, 3);
        assert!(notes.iter().any(|note| note.contains("the same time")), "{:?}", notes);
        let never = "sim:custom?latency=1ms&size=1GiB&stall=0s+inf";
        let ended = predicted(never, "fio version 2 iolog\n/t read 0 4096\n", Some(86_400));
        assert_eq!(ended.failure.as_deref(), Some("1 I/Os never complete"));
    }

    #[test]
    fn years_in_which_nothing_happens_are_looked_at_now_and_then() {
        let apart = 9 * 365 * 86_400 * 1_000_000;
        let mut looks = 0;
        struct Counting<'a>(&'a mut u32);
        impl SimulateObserver for Counting<'_> {
            fn progress(&mut self, _at_ns: u64, _iops: f64) {
                *self.0 += 1;
            }
        }
        let trace = Trace::read_from(&TRACE, "t", reads(2, apart).as_bytes(), None).unwrap();
        let volume = SimulatedVolume::named(HUNDRED.as_ref(), &VolumeTypes::default()).unwrap();
        let (stop, observer) = (StopHandle::default(), &mut Counting(&mut looks));
        let Predicted { forecast, .. } = predict(&trace, &volume, None, &stop, observer).unwrap();
        assert_eq!((forecast.ops.read.ios, forecast.elapsed_ns), (2, apart * 1_000 + 1_000_000));
        assert!(looks < 10_000, "{looks}");
    }

    #[test]
    fn without_times_each_follows_the_one_before() {
        let text = "fio version 2 iolog\n/t add\n/t open\n".to_owned()
            + &"/t read 0 4096\n".repeat(50)
            + "/t wait 2000000 0\n/t write 99999999999 4096\n/t sync 0 0\n";
        let Predicted { forecast, notes, .. } = predicted("sim:custom?latency=10ms&size=1GiB", &text, None);
        assert_eq!((forecast.ops.read.ios, forecast.ops.write.ios, forecast.syncs.moments.count), (50, 1, 1));
        // The wait is longer than what stands before it.
        assert_eq!(forecast.elapsed_ns, 2_020_000_000);
        assert!(forecast.own_pace.is_none());
        assert!(notes.iter().any(|note| note.starts_with("1 I/Os beyond")), "{:?}", notes);
    }

    #[test]
    fn a_stall_is_told_as_one() {
        let volume = "sim:custom?latency=1ms&size=1GiB&stall=2s+3s";
        let Predicted { forecast, .. } = predicted(volume, &reads(100, 100_000), None);
        let [stall] = forecast.stalls[..] else { panic!("{:?}", forecast.stalls) };
        assert_eq!((stall.start_ns, stall.length_ns), (2_000_000_000, 3_001_000_000));
        assert!(forecast.is_stalled(&forecast.slices[3]) && forecast.ops.read.ios == 100);
    }

    #[test]
    fn what_never_completes_is_counted() {
        let Predicted { forecast, failure, .. } =
            predicted("sim:custom?latency=1ms&size=1GiB&stall=1s+inf", &reads(20, 100_000), None);
        assert_eq!(failure.as_deref(), Some("10 I/Os never complete"));
        assert_eq!(forecast.ops.read.ios, 10);
    }
}
