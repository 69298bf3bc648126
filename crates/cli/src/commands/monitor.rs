//! `fathom monitor`: shows what devices do now, and writes the job that would do it again.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::{Args, ValueHint};
use fathom_analysis::monitor::capture::Capture;
use fathom_analysis::monitor::{MonitorInterval, WatchedDevice};
use fathom_assess::TestKeeper;
use fathom_assess::monitor::{
    self, MonitorObserver, MonitorSettings, RecordingBegun, RecordingProgress, RecordingSettings,
};
use fathom_model::Nanos;
use fathom_model::text::shell_quoted;
use fathom_model::units::{bytes, duration, grouped, parse_bytes, parse_duration};
use fathom_observed::recording::RecordingDetail;
use fathom_record::{RunHeader, RunRecord};
use fathom_report::formats::{Format, text};
use fathom_report::live::MonitorTick;
use fathom_report::live::json::LiveLine;
use fathom_report::monitor::{
    intervals as monitor_intervals, job as monitor_job, json as monitor_json, lines as monitor_lines,
    means as monitor_means, view as monitor_view,
};
use fathom_report::view::View;
use fathom_report::{Style, TextWriter, text_writer};
use fathom_runner::{MachineTicks, StopHandle};
use fathom_sys::clock::monotonic_ns;
use fathom_sys::files::{PathRefusal, check_output, replace_output};

use super::format_arguments::FormatArguments;
use super::run_arguments::{KeepArguments, words};
use crate::exit::{Complaint, Exit};
use crate::live::{LiveArguments, LiveOutputs, LiveRun, NextKey, check_beside_lines};
use crate::store::{self, HistoryKeeper};
use crate::{keys, output, signals};

/// What `fathom monitor` takes.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct MonitorArguments {
    /// Devices by name or node, or files and directories on them [default: all disks]
    devices: Vec<PathBuf>,
    /// Length of each interval: 1, 500ms, 1m
    #[arg(long, short, value_parser = interval, default_value = "1s", value_name = "TIME")]
    interval: Nanos,
    /// Stop after N intervals
    #[arg(long, short, value_parser = clap::value_parser!(u64).range(1..), value_name = "N")]
    count: Option<u64>,
    #[command(flatten, next_help_heading = "Output")]
    form: FormatArguments,
    #[command(flatten, next_help_heading = "History")]
    keeping: KeepArguments,
    /// Trace single requests (needs root): exact sizes, order, and latency at the device
    #[arg(long)]
    trace: bool,
    /// Omit the processes behind the load
    #[arg(long)]
    no_owners: bool,
    /// Write a job file that reproduces the load; implies --trace where permitted
    #[arg(long, value_name = "FILE")]
    to_job: Option<PathBuf>,
    #[command(flatten)]
    recording: RecordingArguments,
    #[command(flatten, next_help_heading = "Live views")]
    live: LiveArguments,
}

const EXAMPLES: &str = "\
Examples:
  fathom monitor                            all disks, every second, until Ctrl-C
  fathom monitor /mnt/data --interval 5     the device under a directory
  fathom monitor --tui --trace nvme0n1      in full screen, with service times
  fathom monitor --count 60 --format csv    means over a minute
  fathom monitor --json --count 60 nvme0n1 > minute.ndjson
  fathom monitor --to-job load.fio --count 60 nvme0n1
  TARGET=/dev/nvme1n1 fathom fio load.fio   replays it on another device
  fathom monitor --record app.load nvme0n1  every I/O, until Ctrl-C; then: fathom trace info app.load
  fathom monitor --record app.load --record-size 1GiB --record-files 24 --interval 1m nvme0n1";

fn interval(text: &str) -> Result<Nanos, String> {
    match parse_duration(text) {
        Ok(time) if time < Nanos::from_millis(10) => Err("the shortest interval is 10 ms".to_owned()),
        Ok(time) if time > Nanos::from_secs(86_400) => Err("the longest interval is one day".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}

/// Watches until the count is reached or a signal comes.
///
/// # Errors
/// It could not begin, or the job file cannot be written.
pub fn run(arguments: MonitorArguments, command: &[OsString]) -> Result<Exit, Complaint> {
    let stop = StopHandle::default();
    let caught = signals::watch_saying(stop.clone(), "stopped immediately").map_err(signals::unwatched)?;
    let settings = MonitorSettings {
        devices: arguments.devices,
        interval: arguments.interval,
        count: arguments.count,
        trace: arguments.trace || arguments.to_job.is_some(),
        recording: arguments.recording.settings(),
        owners: !arguments.no_owners,
        keeps: arguments.keeping.is_asked_for(),
        labels: arguments.keeping.labels(),
        command: words(command),
    };
    // Now rather than after hours of watching.
    let job_file = arguments.to_job.as_ref().map(|path| JobFile::check(path)).transpose()?;
    let style = arguments.form.style();
    let live = MonitorLive::open(&arguments.live, arguments.form.format(), &style, arguments.count)?;
    let form = match arguments.form.format() {
        Format::Json => MonitorOutput::Json,
        Format::Text if live.has_screen() && output::stdout_is_seen() => MonitorOutput::Covered,
        Format::Text if output::stdout_is_seen() => MonitorOutput::Live(Screen::default()),
        Format::Text => MonitorOutput::Lines,
        format => MonitorOutput::Means(format),
    };
    let mut printer = MonitorPrinter {
        form,
        style,
        stop: stop.clone(),
        captures: BTreeMap::new(),
        captures_wanted: job_file.is_some(),
        keeper: HistoryKeeper::asked_for(&arguments.keeping, None),
        live,
        begun: false,
        ended: Arc::new(AtomicU64::new(0)),
        failed: None,
        recording_failed: None,
    };
    let keys = if printer.live.has_screen() { None } else { keys::watch() };
    let ended = printer.ended.clone();
    caught.answer_status(move || format!("monitor: {} intervals so far", ended.load(Ordering::Relaxed)));
    let record = monitor::run(&settings, &stop, &mut printer)?;
    drop(keys);
    let failed = printer.recording_failed.take();
    let captures = printer.finish(&record)?;
    if let Some(reason) = failed {
        return Err(recording_failed(&reason));
    }
    if let Some(file) = job_file {
        file.write(&captures)?;
    }
    Ok(if caught.number().is_some() { Exit::Interrupted } else { Exit::Done })
}

/// Shows what came out: the lines of the intervals, or the means.
///
/// # Errors
/// Those of `out`.
pub fn show(record: &RunRecord, style: &Style, format: Format, out: &mut TextWriter) -> io::Result<()> {
    match format {
        Format::Text => monitor_lines::render(record, style, out),
        _ => format.write(
            style,
            out,
            || monitor_means(record),
            |out| {
                monitor_intervals(record)
                    .into_iter()
                    .try_for_each(|interval| monitor_json::line(interval, out))
            },
        ),
    }
}

enum MonitorOutput {
    /// A table that is drawn over.
    Live(Screen),
    /// Nothing until the end: a view has the terminal.
    Covered,
    /// A line per device and interval.
    Lines,
    /// An object per device and interval.
    Json,
    /// Only the means at the end, in this format.
    Means(Format),
}

/// Shows each interval as it ends.
struct MonitorPrinter {
    form: MonitorOutput,
    style: Style,
    stop: StopHandle,
    /// What each device did, for the job file.
    captures: BTreeMap<String, Capture>,
    captures_wanted: bool,
    keeper: HistoryKeeper,
    live: MonitorLive,
    begun: bool,
    /// Intervals that have ended, for who asks how it goes.
    ended: Arc<AtomicU64>,
    /// What went wrong with writing; nothing more is written then.
    failed: Option<io::Error>,
    /// Why the recording ended early.
    recording_failed: Option<String>,
}

impl MonitorPrinter {
    /// Keeps the run; returns what was captured. Means over all the time are the report; on a terminal they take the place of the
    /// last interval.
    fn finish(mut self, record: &RunRecord) -> Result<BTreeMap<String, Capture>, Complaint> {
        self.live.end();
        record.tests.iter().for_each(|test| self.keeper.append(test));
        let kept = self.keeper.finish(record);
        let failed = self.failed.take().map_or(Ok(()), Err);
        if failed.is_ok() {
            match &mut self.form {
                MonitorOutput::Live(screen) => draw(screen, &monitor_means(record), &self.style)?,
                MonitorOutput::Covered => {
                    output::print(|out| text::render(&monitor_means(record), &self.style, out))?;
                }
                MonitorOutput::Means(format) => {
                    output::print(|out| show(record, &self.style, *format, out))?;
                }
                MonitorOutput::Lines | MonitorOutput::Json => {}
            }
            if matches!(self.form, MonitorOutput::Live(_) | MonitorOutput::Covered | MonitorOutput::Lines) {
                output::print(|out| store::write_kept(&kept, out))?;
            }
        }
        output::forgive_closed_pipe(failed)?;
        Ok(self.captures)
    }

    fn show(&mut self, intervals: &[MonitorInterval]) -> io::Result<()> {
        let style = &self.style;
        let begun = std::mem::replace(&mut self.begun, true);
        match &mut self.form {
            MonitorOutput::Live(screen) => {
                self.style.width = output::style().width;
                let first = intervals.first();
                let length = first.map_or(0, |first| (first.elapsed_ns + 500_000) / 1_000_000);
                let number = first.map_or(0, |first| first.number);
                let title = format!(
                    "Interval {number} of {}; q or Ctrl-C ends.",
                    duration(Nanos::from_millis(length))
                );
                draw(screen, &monitor_view(&title, intervals), &self.style)
            }
            MonitorOutput::Lines => output::try_print(|out| {
                if !begun {
                    writeln!(out, "{}", monitor_lines::head(style))?;
                }
                intervals
                    .iter()
                    .try_for_each(|interval| writeln!(out, "{}", monitor_lines::line(interval, style)))
            }),
            MonitorOutput::Json => output::try_print(|out| {
                intervals.iter().try_for_each(|interval| monitor_json::line(interval, &mut out.json()))
            }),
            MonitorOutput::Means(_) | MonitorOutput::Covered => Ok(()),
        }
    }

    /// A line on standard error that does not stand in the way of the table.
    fn say(&mut self, line: &str) {
        if let MonitorOutput::Live(screen) = &mut self.form {
            let _ = output::try_print(|out| screen.clear(out));
        }
        output::warn(line);
    }
}

fn draw(screen: &mut Screen, view: &View, style: &Style) -> io::Result<()> {
    let shown = text_writer::text(|out| text::render(view, style, out))?;
    output::try_print(|out| screen.draw(&shown, out))
}

impl MonitorObserver for MonitorPrinter {
    fn begun(&mut self, header: &RunHeader) {
        self.keeper.begin(header);
        self.live.begin(header);
    }

    fn interval(&mut self, intervals: &[MonitorInterval]) {
        self.ended.fetch_add(1, Ordering::Relaxed);
        self.live.take(intervals);
        if self.captures_wanted {
            for interval in intervals {
                self.captures.entry(interval.device.name.clone()).or_default().add(interval);
            }
        }
        if self.failed.is_none()
            && let Err(error) = self.show(intervals)
        {
            self.failed = Some(error);
            self.stop.request("the reader of standard output has gone");
        }
    }

    fn stalled(&mut self, device: &WatchedDevice, length_ns: u64, in_flight: u64) {
        let length = duration(Nanos(length_ns));
        self.say(&format!(
            "monitor: {}: stalled: no I/O completed for {length}, {in_flight} in flight",
            device.name
        ));
    }

    fn answered(&mut self, device: &WatchedDevice, length_ns: u64) {
        self.say(&format!(
            "monitor: {}: I/Os complete again after {}",
            device.name,
            duration(Nanos(length_ns))
        ));
    }

    fn untraced(&mut self, reason: &str, hint: Option<&str>) {
        self.say(&format!("monitor: cannot trace requests, reporting means only: {reason}"));
        if let Some(hint) = hint {
            self.say(&format!("hint: {hint}"));
        }
    }

    fn recording(&mut self, begun: &RecordingBegun) {
        recording_begun(begun).iter().for_each(|line| self.say(line));
    }

    fn recording_lost(&mut self, events: u64) {
        self.say(&events_lost(events));
    }

    fn recorded(&mut self, progress: &RecordingProgress) {
        self.recording_failed.clone_from(&progress.failed);
        self.say(&recording_ended(progress));
    }
}

/// What shows a monitor while it goes on, beside its own output.
pub struct MonitorLive {
    outputs: LiveOutputs,
    /// How many intervals there will be, where that is known.
    of: Option<u64>,
    /// When it began, ns of the monotonic clock.
    began_ns: u64,
    machine: Option<MachineTicks>,
}

impl MonitorLive {
    /// Opens what `arguments` ask for, beside a report in `format`.
    ///
    /// # Errors
    /// The terminal, a file or an address cannot be had, or the view and lines of JSON would share the terminal.
    pub fn open(
        arguments: &LiveArguments,
        format: Format,
        style: &Style,
        of: Option<u64>,
    ) -> Result<MonitorLive, Complaint> {
        if format == Format::Json {
            check_beside_lines(arguments)?;
        }
        let units = style.units.unwrap_or_default();
        let run = LiveRun { steps: Vec::new(), next: NextKey::ShowDevice, units, can_be_followed: false };
        let outputs = LiveOutputs::open(arguments, run)?;
        Ok(MonitorLive { outputs, of, began_ns: 0, machine: None })
    }

    /// True where a view has the terminal.
    pub fn has_screen(&self) -> bool {
        self.outputs.has_screen()
    }

    /// Watching begins.
    pub fn begin(&mut self, header: &RunHeader) {
        let Some(hub) = self.outputs.hub() else { return };
        self.began_ns = monotonic_ns();
        self.machine = Some(MachineTicks::begin(None, self.began_ns));
        hub.change(Some(LiveLine::Begun), |state| {
            state.begin(header);
            state.begin_monitor();
        });
    }

    /// An interval has ended.
    pub fn take(&mut self, intervals: &[MonitorInterval]) {
        let Some(hub) = self.outputs.hub() else { return };
        let now = monotonic_ns();
        let host = self.machine.as_mut().and_then(|machine| machine.tick(now).host);
        let tick = MonitorTick { intervals, host, elapsed_ns: now - self.began_ns, of: self.of };
        hub.change(Some(LiveLine::Snapshot), |state| state.tick_monitor(&tick));
    }

    /// It has ended; the terminal is as it was.
    pub fn end(&mut self) {
        self.outputs = LiveOutputs::default();
    }
}

/// Smallest file of several.
const MIN_BYTES: u64 = 1 << 20;

/// Where to record to.
#[derive(Args)]
pub struct RecordingArguments {
    /// Record every I/O of one device for `fathom trace info` (needs root; else sums of each second)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["trace", "to_job"])]
    record: Option<PathBuf>,
    /// Begin another file at this size: FILE.00001, FILE.00002, ...
    #[arg(long, value_name = "SIZE", value_parser = file_size, requires = "record")]
    record_size: Option<u64>,
    /// Keep the N latest files [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), requires = "record_size")]
    record_files: Option<u32>,
}

fn file_size(text: &str) -> Result<u64, String> {
    match parse_bytes(text) {
        Ok(size) if size < MIN_BYTES => Err("the smallest size is 1 MiB".to_owned()),
        Ok(size) => Ok(size),
        Err(error) => Err(error.to_string()),
    }
}

impl RecordingArguments {
    /// What is asked for, if anything.
    pub fn settings(&self) -> Option<RecordingSettings> {
        let path = self.record.clone()?;
        Some(RecordingSettings { path, most_bytes: self.record_size, most_files: self.record_files })
    }
}

/// Lines on a recording that begins.
pub fn recording_begun(begun: &RecordingBegun) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some((reason, hint)) = &begun.refused {
        lines.push(format!("monitor: cannot record requests, only counters of each second: {reason}"));
        lines.extend(hint.map(|hint| format!("hint: {hint}")));
    }
    // The first note of counters says what the line above says.
    let notes = begun.notes.iter().skip(usize::from(begun.refused.is_some()));
    lines.extend(notes.map(|note| format!("monitor: {note}")));
    let what = match begun.detail {
        RecordingDetail::Requests => "every I/O",
        RecordingDetail::Sums => "counters of each second",
    };
    lines.push(format!("monitor: recording {what} to {}", quoted(&begun.path)));
    lines
}

/// A line on events that were lost.
pub fn events_lost(events: u64) -> String {
    format!(
        "monitor: lost {} events: the kernel's buffers were full; they are counted in the recording",
        grouped(events)
    )
}

/// A line on a recording that has ended.
pub fn recording_ended(progress: &RecordingProgress) -> String {
    let files = match progress.files {
        1 => "1 file".to_owned(),
        files => format!("{files} files"),
    };
    let lost = match progress.lost {
        0 => "no event lost".to_owned(),
        lost => format!("{} events lost", grouped(lost)),
    };
    let (entries, size) = (grouped(progress.entries), bytes(progress.bytes));
    format!("monitor: recorded {entries} entries in {files}, {size}; {lost}")
}

/// A recording that ended early.
pub fn recording_failed(reason: &str) -> Complaint {
    let hint = "free space or name a file elsewhere; `fathom trace info` reads what was written".to_owned();
    Complaint::failed(reason, Some(hint))
}

fn quoted(path: &std::path::Path) -> String {
    shell_quoted(&path.to_string_lossy()).into_owned()
}

/// As for any file that is made; the umask takes away from it.
pub const NEW_FILE_MODE: u32 = 0o666;

fn unwritable(path: &Path, error: &io::Error) -> String {
    format!("cannot write {}: {}", path.display(), output::plain(error))
}

/// Where the job goes.
pub struct JobFile {
    path: PathBuf,
}

impl JobFile {
    /// A file that can be created at `path`, as far as that is known without creating it.
    ///
    /// # Errors
    /// It cannot.
    pub fn check(path: &Path) -> Result<JobFile, Complaint> {
        match check_output(path) {
            Ok(()) => Ok(JobFile { path: path.to_owned() }),
            Err(error) => {
                let hint = PathRefusal::of(&error).map(PathRefusal::hint);
                let hint = hint.unwrap_or("name a file in an existing directory");
                Err(Complaint::usage(unwritable(path, &error), Some(hint.to_owned())))
            }
        }
    }

    /// Writes the job of the one device that did most.
    ///
    /// # Errors
    /// No device did anything, or the file cannot be written.
    pub fn write(&self, captures: &BTreeMap<String, Capture>) -> Result<(), Complaint> {
        let mut loads: Vec<MonitorInterval> = captures.values().filter_map(Capture::load).collect();
        loads.sort_by_key(|load| std::cmp::Reverse(load.activity.total().ios));
        let text = loads.first().and_then(|load| Some((load, monitor_job::render(load)?)));
        let Some((load, text)) = text else {
            let hint = "run fathom monitor while the load runs".to_owned();
            return Err(Complaint::failed("cannot write a job: the devices completed no I/O", Some(hint)));
        };
        replace_output(&self.path, NEW_FILE_MODE, |out| out.write_all(text.as_bytes())).map_err(|error| {
            let hint = PathRefusal::of(&error).map(|refusal| refusal.hint().to_owned());
            Complaint::failed(unwritable(&self.path, &error), hint)
        })?;
        let others = loads.len() - 1;
        let more = if others == 0 { String::new() } else { format!(" ({others} other devices had less)") };
        let name = self.path.to_string_lossy();
        let name = shell_quoted(&name);
        output::warn(&format!(
            "Wrote the load of {}{more} to {name}. To run it: TARGET=... fathom fio {name}",
            load.device.name
        ));
        Ok(())
    }
}

/// What is on the terminal now.
#[derive(Debug, Default)]
pub struct Screen {
    lines: usize,
}

impl Screen {
    /// Replaces what was drawn by the lines of `text`, as many of them as the terminal has room for. They have their colours
    /// already.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn draw(&mut self, text: &str, out: &mut TextWriter) -> io::Result<()> {
        let (rows, columns) = console::Term::stdout().size();
        let size = (usize::from(rows).saturating_sub(1).max(1), usize::from(columns).max(1));
        self.draw_within(text, size, out)
    }

    fn draw_within(
        &mut self,
        text: &str,
        (rows, columns): (usize, usize),
        out: &mut TextWriter,
    ) -> io::Result<()> {
        self.clear(out)?;
        for line in text.lines() {
            // A line that is wider than the terminal takes several of its rows.
            let taken = console::measure_text_width(line).div_ceil(columns).max(1);
            if self.lines + taken > rows {
                break;
            }
            out.coloured_lines(&format!("{line}\n"))?;
            self.lines += taken;
        }
        Ok(())
    }

    /// Takes away what was drawn; the cursor stands where it began.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn clear(&mut self, out: &mut TextWriter) -> io::Result<()> {
        if self.lines > 0 {
            out.go_back(self.lines)?;
            self.lines = 0;
        }
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_between_ten_milliseconds_and_a_day() {
        let check = |text: &str, expected: Option<u64>| {
            assert_eq!(interval(text).ok().map(|time| time.0 / 1_000_000), expected, "{text}");
        };
        check("1", Some(1000));
        check("500ms", Some(500));
        check("2m", Some(120_000));
        check("9ms", None);
        check("0", None);
        check("25h", None);
        check("soon", None);
    }

    #[test]
    fn small_files_are_refused() {
        assert_eq!(file_size("1GiB"), Ok(1 << 30));
        assert_eq!(file_size("64k"), Err("the smallest size is 1 MiB".to_owned()));
        assert!(file_size("much").is_err());
    }

    #[test]
    fn losses_and_refusals_are_said() {
        let progress = RecordingProgress { entries: 1_234, bytes: 12_345, files: 2, lost: 5, failed: None };
        let line = recording_ended(&progress);
        assert!(line.contains("1,234 entries in 2 files") && line.ends_with("5 events lost"), "{line}");
        let refused = RecordingBegun {
            path: PathBuf::from("a b"),
            detail: RecordingDetail::Sums,
            refused: Some(("not allowed".to_owned(), Some("run as root"))),
            notes: vec!["counters".to_owned(), "another".to_owned()],
        };
        let lines = recording_begun(&refused);
        assert_eq!(lines[1..3], ["hint: run as root".to_owned(), "monitor: another".to_owned()]);
        assert!(lines[3].ends_with("counters of each second to 'a b'"), "{lines:?}");
    }

    #[test]
    fn lines_are_drawn_over_those_before() {
        let mut screen = Screen::default();
        let mut written = Vec::new();
        let mut out = TextWriter::new(&mut written);
        screen.draw_within("a\n\n\x1b[1mabcde\x1b[0m\n", (10, 3), &mut out).unwrap();
        screen.draw_within("a\nb\nc\n", (2, 3), &mut out).unwrap();
        screen.clear(&mut out).unwrap();
        screen.clear(&mut out).unwrap();
        assert_eq!(
            String::from_utf8(written).unwrap(),
            "a\n\n\x1b[1mabcde\x1b[0m\n\x1b[4A\r\x1b[Ja\nb\n\x1b[2A\r\x1b[J"
        );
    }
}
