//! The documents of a run, and where they go: standard output or the file of `--output`.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use fathom_model::plan::{LogPlan, RecordedRequest};
use fathom_model::{Op, RunPlan};
use fathom_options::{CommandOptions, OutputFormat};
use fathom_record::{FindingId, RunRecord};
use fathom_report::fio::idleness::CpuIdleness;
use fathom_report::fio::iolog::IologText;
use fathom_report::fio::json::Bins;
use fathom_report::fio::log::{LogKind, LogTexts, WorkerLog};
use fathom_report::fio::{json as fio_json, normal as fio_normal, terse as fio_terse};
use fathom_report::{FioReport, Style, TextWriter};
use fathom_runner::CompletionLog;
use fathom_stats::{LoggedIo, Snapshot};
use fathom_sys::files::{PathRefusal, check_output, create_output};
use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::debug::RequestTrace;
use super::refusal;
use crate::exit::Complaint;
use crate::output;

/// Which documents come out, and where to.
pub struct Sink {
    file: Option<(PathBuf, File)>,
    formats: Vec<OutputFormat>,
    terse_version: u8,
    /// The text ends with notes: a person reads it, or has asked for them.
    shows_notes: bool,
}

impl Sink {
    /// Opens the file before anything is measured.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn open(command: &CommandOptions) -> Result<Sink, Complaint> {
        let mut formats = command.formats.clone();
        if formats.is_empty() {
            formats.push(OutputFormat::Normal);
        }
        let file = match &command.output {
            None => None,
            Some(path) => Some((
                path.clone(),
                create_output(path).map_err(|error| {
                    let usual = "name a file in a directory that exists and can be written: --output=FILE";
                    let refused = PathRefusal::of(&error).map(PathRefusal::hint);
                    let (name, why) = (path.display(), output::plain(&error));
                    refusal(
                        format!("fio: cannot open {name} for the output: {why}"),
                        Some(refused.unwrap_or(usual).to_owned()),
                    )
                })?,
            )),
        };
        let shows_notes = command.advise || (file.is_none() && output::stdout_is_seen());
        Ok(Sink { file, formats, terse_version: command.terse_version.unwrap_or(3), shows_notes })
    }

    /// Nothing comes out.
    pub fn silent() -> Sink {
        Sink { file: None, formats: Vec::new(), terse_version: 3, shows_notes: false }
    }

    /// The text of a run on simulated volumes always says that nothing was measured.
    pub fn with_notes_of_simulated(self, is_simulated: bool) -> Sink {
        Sink { shows_notes: self.shows_notes || is_simulated, ..self }
    }

    /// True where fio's text is among the documents.
    pub fn has_text(&self) -> bool {
        self.formats.contains(&OutputFormat::Normal)
    }

    /// Writes to where the documents go.
    ///
    /// # Errors
    /// It cannot be written; a reader of standard output that has gone away is none.
    pub fn write(&mut self, write: impl FnOnce(&mut TextWriter) -> io::Result<()>) -> Result<(), Complaint> {
        let Some((path, file)) = &mut self.file else { return super::print(write) };
        output::write_to(&mut io::BufWriter::new(output::CountedWriter(file)), write).map_err(|error| {
            let (path, why) = (path.display(), output::plain(&error));
            refusal(format!("fio: cannot write the output to {path}: {why}"), None)
        })
    }

    /// True where the documents go to a file.
    pub fn is_file(&self) -> bool {
        self.file.is_some()
    }

    /// The documents in fio's order, whatever order was asked for.
    pub fn report(&mut self, record: &RunRecord, idleness: Option<CpuIdleness>) -> Result<(), Complaint> {
        let style = Style::local();
        // Scripts search fio's text for words that notes may have too.
        let is_for_programs = !self.shows_notes;
        let report = FioReport { idleness, is_for_programs, ..FioReport::new(record) };
        let (formats, terse_version) = (self.formats.clone(), self.terse_version);
        if formats.is_empty() {
            return Ok(());
        }
        let has_json = [OutputFormat::Json, OutputFormat::JsonPlus].iter().any(|json| formats.contains(json));
        if is_for_programs && !has_json {
            match output::stderr_is_seen() {
                true => fio_normal::notes(&report).iter().for_each(|note| output::warn(note)),
                false => burst_notes(record).for_each(|note| output::warn(&note)),
            }
        }
        self.write(|out| {
            if formats.contains(&OutputFormat::Terse) {
                fio_terse::render(record, terse_version, out)?;
            }
            if formats.contains(&OutputFormat::JsonPlus) {
                fio_json::render_report(&report, Bins::With, &style, &mut out.json())?;
            } else if formats.contains(&OutputFormat::Json) {
                fio_json::render_report(&report, Bins::Without, &style, &mut out.json())?;
            }
            // Standard error has the reason why nothing began; an empty report would only repeat it.
            if formats.contains(&OutputFormat::Normal)
                && record.tests.iter().any(|test| !test.jobs.is_empty())
            {
                fio_normal::render_report(&report, &style, out)?;
                fio_normal::render_hosts(record, &style, out)?;
            }
            Ok(())
        })
    }
}

/// The mean over a burst and what follows is the rate of neither. A log has to say so too, although no terminal shows the notes.
fn burst_notes(record: &RunRecord) -> impl Iterator<Item = String> {
    let falls = record.findings.iter().filter(|finding| finding.id == FindingId::BurstSuspected);
    falls.map(|finding| format!("fathom: {}", finding.text()))
}

/// A file is written when it has this many bytes to write.
const CHUNK: usize = 8 << 10;

/// The logs of all workers.
pub struct FioLogs {
    /// By the number of the worker.
    workers: Vec<LoggedWorker>,
    files: Vec<LogFile>,
    texts: LogTexts,
    waits: u64,
    /// Shows issued requests.
    trace: Option<RequestTrace>,
}

/// A worker, and its files by kind.
struct LoggedWorker {
    plan: LogPlan,
    /// Recorded latencies: slat, clat, lat.
    recorded: [bool; 3],
    files: [Option<usize>; LogKind::ALL.len()],
    log: Option<WorkerLog>,
    issued: Option<IssuedLog>,
    /// Its targets, for what shows its requests.
    targets: Vec<String>,
}

/// The log of a worker's issued requests.
struct IssuedLog {
    file: usize,
    /// `None` before the run begins, and after the worker has ended.
    text: Option<IologText>,
}

struct LogFile {
    path: PathBuf,
    compressed: bool,
    /// `None` before the run begins.
    file: Option<LogWriter>,
    text: Vec<u8>,
    /// Why it is not written any more.
    failure: Option<String>,
}

/// What a log file is written by.
enum LogWriter {
    Plain(File),
    Compressed(Box<ZlibEncoder<File>>),
}

impl LogWriter {
    fn write_all(&mut self, text: &[u8]) -> io::Result<()> {
        match self {
            LogWriter::Plain(file) => file.write_all(text),
            LogWriter::Compressed(file) => file.write_all(text),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            LogWriter::Plain(_) => Ok(()),
            LogWriter::Compressed(file) => file.finish().map(drop),
        }
    }
}

impl FioLogs {
    /// The logs that `plan` asks for, and what shows its requests; `None` if there are none. Makes no file.
    ///
    /// # Errors
    /// A file could not be made.
    pub fn new(plan: &RunPlan, trace: Option<RequestTrace>) -> Result<Option<FioLogs>, Complaint> {
        let (workers, files, texts) = (Vec::new(), Vec::new(), LogTexts::default());
        let mut logs = FioLogs { workers, files, texts, waits: 0, trace };
        let mut places = HashMap::new();
        for job in &plan.jobs {
            let measure = &job.measure;
            let recorded = [measure.slat, measure.clat, measure.lat];
            for clone in &job.clones {
                let number = logs.workers.len() + 1;
                let mut files = [None; LogKind::ALL.len()];
                for kind in LogKind::ALL.into_iter().filter(|kind| is_recorded(*kind, recorded)) {
                    let Some(name) = kind.file_name(&measure.logs, &job.name, number) else { continue };
                    files[kind as usize] = Some(logs.place(&mut places, name, measure.logs.compressed)?);
                }
                let issued = match &measure.logs.issued {
                    None => None,
                    Some(name) => {
                        // An iolog is of one worker.
                        let is_taken = places.contains_key(name);
                        let name = if is_taken { format!("{name}.{number}") } else { name.clone() };
                        Some(IssuedLog { file: logs.place(&mut places, name, false)?, text: None })
                    }
                };
                let plan = measure.logs.clone();
                let targets = clone.paths.iter().map(|path| path.display().to_string()).collect();
                logs.workers.push(LoggedWorker { plan, recorded, files, log: None, issued, targets });
            }
        }
        Ok((!logs.files.is_empty() || logs.trace.is_some()).then_some(logs))
    }

    /// The number of the log file `name`, which may be one of those before.
    fn place(
        &mut self,
        places: &mut HashMap<String, usize>,
        name: String,
        compressed: bool,
    ) -> Result<usize, Complaint> {
        if let Some(&place) = places.get(&name) {
            return Ok(place);
        }
        let path = PathBuf::from(&name);
        check_output(&path).map_err(|error| log_refusal(cannot_open(&path, &error)))?;
        self.files.push(LogFile { path, compressed, file: None, text: Vec::new(), failure: None });
        places.insert(name, self.files.len() - 1);
        Ok(self.files.len() - 1)
    }

    /// Passes the texts of `worker` on to its files.
    fn write(&mut self, worker: usize) {
        let files = &self.workers[worker].files;
        for (text, place) in self.texts.iter_mut().zip(files) {
            if let Some(place) = place {
                self.files[*place].add(text);
            }
            text.clear();
        }
    }
}

/// fio makes no log of a latency that is not recorded.
fn is_recorded(kind: LogKind, [slat, clat, lat]: [bool; 3]) -> bool {
    match kind {
        LogKind::Bandwidth | LogKind::Iops => true,
        LogKind::Slat => slat,
        LogKind::Clat | LogKind::Histogram => clat,
        LogKind::Lat => lat,
    }
}

/// Makes a log file, or says why it cannot be made.
pub fn create_log(path: &Path) -> Result<File, String> {
    create_output(path).map_err(|error| cannot_open(path, &error))
}

fn cannot_open(path: &Path, error: &io::Error) -> String {
    format!("cannot open the log {}: {}", path.display(), output::plain(error))
}

/// The refusal of a run whose log cannot be made.
pub fn log_refusal(reason: String) -> Complaint {
    let hint = "name a log in a directory that exists and can be written";
    refusal(format!("fio: {reason}"), Some(hint.to_owned()))
}

impl LogFile {
    fn add(&mut self, text: &[u8]) {
        self.text.extend_from_slice(text);
        if self.text.len() >= CHUNK {
            self.write();
        }
    }

    fn write(&mut self) {
        if self.failure.is_none()
            && let Some(file) = &mut self.file
            && let Err(error) = file.write_all(&self.text)
        {
            self.failure = Some(output::plain(&error));
        }
        self.text.clear();
    }

    fn close(&mut self) {
        self.write();
        let ended = self.file.take().map_or(Ok(()), LogWriter::finish);
        if let Err(error) = ended {
            self.failure.get_or_insert(output::plain(&error));
        }
    }
}

impl CompletionLog for FioLogs {
    fn open(&mut self) -> Result<(), String> {
        self.files.iter_mut().try_for_each(|log| {
            let file = create_log(&log.path)?;
            log.file = Some(match log.compressed {
                true => LogWriter::Compressed(Box::new(ZlibEncoder::new(file, Compression::default()))),
                false => LogWriter::Plain(file),
            });
            Ok::<_, String>(())
        })?;
        let mut text = Vec::new();
        for worker in &mut self.workers {
            let Some(issued) = &mut worker.issued else { continue };
            issued.text = Some(IologText::new(worker.targets.iter().cloned(), &mut text));
            self.files[issued.file].add(&text);
            text.clear();
        }
        Ok(())
    }

    fn begin(&mut self, worker: usize, clock_ms: u64, measures_slat: bool) {
        let worker = &mut self.workers[worker];
        let [slat, clat, lat] = worker.recorded;
        worker.log = Some(WorkerLog::new(&worker.plan, [slat && measures_slat, clat, lat], clock_ms));
    }

    fn add(&mut self, worker: usize, requests: &[LoggedIo]) {
        if let Some(log) = &mut self.workers[worker].log {
            log.add(requests, &mut self.texts);
            self.write(worker);
        }
    }

    fn end(&mut self, worker: usize, elapsed_ns: u64, waits: u64) {
        self.waits += waits;
        if let Some(mut log) = self.workers[worker].log.take() {
            log.end(elapsed_ns, &mut self.texts);
            self.write(worker);
        }
    }

    fn issued(&mut self, worker: usize, requests: &[RecordedRequest]) {
        if let Some(trace) = &self.trace {
            trace.issued(requests, &self.workers[worker].targets);
        }
        let Some(issued) = &mut self.workers[worker].issued else { return };
        if let Some(text) = &mut issued.text {
            let mut lines = Vec::new();
            text.issued(requests, &mut lines);
            self.files[issued.file].add(&lines);
        }
    }

    fn issued_all(&mut self, worker: usize, at_ns: u64, waits: u64) {
        self.waits += waits;
        let Some(issued) = &mut self.workers[worker].issued else { return };
        if let Some(text) = issued.text.take() {
            let mut lines = Vec::new();
            text.end(at_ns, &mut lines);
            self.files[issued.file].add(&lines);
        }
    }

    fn close(mut self: Box<Self>) -> Vec<String> {
        self.files.iter_mut().for_each(LogFile::close);
        let failed = self.files.iter().filter_map(|log| {
            log.failure.as_ref().map(|why| format!("the log {} is incomplete: {why}", log.path.display()))
        });
        let mut notes: Vec<String> = failed.collect();
        if self.waits > 0 {
            notes.push(format!(
                "jobs waited {} times for their logs to be written; use log_avg_msec for smaller logs",
                self.waits
            ));
        }
        notes
    }
}

/// The files for reads, writes and trims.
pub struct AggregateLog {
    files: Vec<File>,
}

impl AggregateLog {
    /// Opens the files, if `command` asks for them.
    ///
    /// # Errors
    /// A file cannot be made.
    pub fn open(command: &CommandOptions) -> Result<Option<AggregateLog>, Complaint> {
        let Some(name) = &command.bandwidth_log else { return Ok(None) };
        let files = Op::DATA.map(|op| create_log(&PathBuf::from(format!("{name}-{}_bw.log", op.name()))));
        let files: Result<Vec<File>, String> = files.into_iter().collect();
        files.map(|files| Some(AggregateLog { files })).map_err(log_refusal)
    }

    /// Adds the bandwidth since the snapshot before.
    pub fn add(&mut self, snapshot: &Snapshot) {
        for (op, (file, bytes)) in self.files.iter_mut().zip(snapshot.bytes_per_second).enumerate() {
            let (at_ms, kib) = (snapshot.elapsed_ns / 1_000_000, bytes as u64 >> 10);
            // A line that cannot be written is missing, as in fio; the report is complete.
            let _ = writeln!(file, "{at_ms}, {kib}, {op}, 0, 0");
        }
    }
}
