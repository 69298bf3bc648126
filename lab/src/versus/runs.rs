//! One run of one program: its command line, what shows or records it meanwhile, and the figures of its output.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use fathom_tests::{LoopDevice, Program, wait_for};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use xtask::packages;
use xtask::process::{cargo_command, now};

use super::Figure;
use super::load::{BEST_OPTIONS, LOG, RunLoad, Shown};
use super::resident::line_bytes;

/// Size of the files.
const FILE_BYTES: u64 = 1 << 30;
/// Longer than any program takes to start, and the interval between two checks whether it has ended.
const START_LIMIT: Duration = Duration::from_secs(30);
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// A recorder has begun after this time.
const RECORDER_PATIENCE: Duration = Duration::from_secs(20);
/// The metrics are read this often, and this is the longest wait for an answer.
const EVERY: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(2);
/// The message before the address of the metrics.
const ADDRESS: &str = "Live metrics: http://";

/// A program with its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// fathom under fio's command line.
    Fathom,
    /// The same, with nothing that shows its run.
    FathomUnshown,
    /// fio with the same words, and with its best options.
    Fio,
    FioAtBest,
    /// The bare ring, with this batch size.
    BareRing(u32),
    /// The bare loop over pread.
    BarePread,
}

/// The programs: fathom as released, or what `FATHOM_BIN` names; Debian's fio; the benches are empty if no row runs one.
pub struct Programs {
    pub fathom: PathBuf,
    pub fio: PathBuf,
    bare_ring: PathBuf,
    bare_pread: PathBuf,
    pub next_offset: PathBuf,
}

impl Programs {
    /// Builds fathom's programs, the benches if `has_benches`, and installs fio if it is missing.
    pub fn prepare(has_benches: bool) -> anyhow::Result<Programs> {
        packages::require("fio")?;
        // One by one: built together, the benches' wishes for their dependencies would reach the program.
        let fathom = match std::env::var_os("FATHOM_BIN") {
            Some(path) => PathBuf::from(path),
            None => named(&build(&["--package", "fathom", "--bin", "fathom"])?, "fathom")?,
        };
        let sys = ["--package", "fathom-sys", "--bench", "bare_ring", "--bench", "bare_pread"];
        let workload = ["--package", "fathom-workload", "--bench", "next_offset"];
        let benches = if has_benches { build(&[&sys[..], &workload].concat())? } else { Vec::new() };
        let bench = |name| if has_benches { named(&benches, name) } else { Ok(PathBuf::new()) };
        let (bare_ring, bare_pread) = (bench("bare_ring")?, bench("bare_pread")?);
        Ok(Programs { fathom, fio: find_fio()?, bare_ring, bare_pread, next_offset: bench("next_offset")? })
    }
}

/// Builds targets as they are released; answers their names and executables.
fn build(targets: &[&str]) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let mut command =
        cargo_command(&["build", "--profile", "dist", "--message-format=json-render-diagnostics"]);
    let output = command.args(targets).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run {command:?}"))?;
    ensure!(output.status.success(), "{command:?} failed: its messages are above");
    Ok(executables(&String::from_utf8_lossy(&output.stdout)))
}

/// Names and executables in cargo's messages.
fn executables(messages: &str) -> Vec<(String, PathBuf)> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let built = |message: Value| {
        let executable = PathBuf::from(message["executable"].as_str()?);
        Some((message["target"]["name"].as_str()?.to_owned(), executable))
    };
    messages.filter_map(built).collect()
}

fn named(built: &[(String, PathBuf)], name: &str) -> anyhow::Result<PathBuf> {
    let found = built.iter().find(|(target, _)| target == name);
    found.map(|(_, path)| path.clone()).with_context(|| format!("cargo has built no {name}"))
}

/// Debian's fio, not a link of that name, which may be fathom.
fn find_fio() -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = [PathBuf::from("/usr/bin")].into_iter().chain(std::env::split_paths(&path));
    let found = places.map(|place| place.join("fio")).find(|place| place.is_file());
    let found = found.context("fio is not on the search path")?;
    let real = found.canonicalize().with_context(|| format!("cannot follow {}", found.display()))?;
    let is_fathom = real.file_name().is_some_and(|name| name.to_string_lossy().contains("fathom"));
    ensure!(!is_fathom, "{} is fathom under fio's name", found.display());
    Ok(found)
}

/// 1 GiB of random bytes in the page cache. It has no name, so it goes with this process, however that ends; the programs open it
/// through `/proc`.
#[derive(Debug)]
pub struct DataFile {
    file: File,
    /// Where other processes find it.
    path: String,
}

impl DataFile {
    /// Makes it in `directory` and writes it out, so that no writing back disturbs what follows.
    pub fn create(directory: &Path) -> anyhow::Result<DataFile> {
        let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let is_short =
            line_bytes(&memory, "MemAvailable:").is_some_and(|available| available < 2 * FILE_BYTES);
        ensure!(
            !is_short,
            "2 GiB of memory must be available, so that a file of 1 GiB stays in the page cache"
        );
        let mut file = tempfile::tempfile_in(directory)
            .with_context(|| format!("cannot make a file in {}", directory.display()))?;
        let random = File::open("/dev/urandom").context("cannot open /dev/urandom")?;
        std::io::copy(&mut random.take(FILE_BYTES), &mut file)
            .and_then(|_| file.sync_all())
            .with_context(|| format!("cannot write 1 GiB to {}", directory.display()))?;
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        Ok(DataFile { file, path })
    }
}

/// Everything a run needs.
pub struct Lab {
    pub programs: Programs,
    /// The file to read.
    pub file: DataFile,
    /// The file to write, in memory, so that no writing back disturbs what follows.
    pub in_memory: DataFile,
    /// The device in memory of rows that record one, if there are any and this machine can make one.
    pub device: Option<LoopDevice>,
    /// Where logs are written.
    pub logs: TempDir,
    pub seconds: u32,
    /// The CPUs that we may use, ascending; at least one.
    pub cpus: Vec<usize>,
}

impl Lab {
    /// The words after the program's name.
    fn arguments(&self, subject: Subject, load: &RunLoad, file: &str) -> String {
        let cpu = self.cpus.last().copied().unwrap_or_default();
        let bare = format!("{file} --seconds={} --cpu={cpu}", self.seconds);
        let words = load.arguments(file, self.seconds, &self.cpus);
        match subject {
            Subject::Fathom => [&["fio", &words], load.shown.words()].concat().join(" "),
            Subject::FathomUnshown => format!("fio {words}"),
            Subject::Fio => words,
            Subject::FioAtBest => format!("{words} {BEST_OPTIONS}"),
            Subject::BareRing(batch) => format!("{bare} --depth={} --batch={batch}", load.depth),
            Subject::BarePread => bare,
        }
    }

    /// The name of a program, and where it is.
    fn program(&self, subject: Subject) -> (&'static str, &Path) {
        match subject {
            Subject::Fathom | Subject::FathomUnshown => ("fathom", &self.programs.fathom),
            Subject::Fio | Subject::FioAtBest => ("fio", &self.programs.fio),
            Subject::BareRing(_) => ("bare_ring", &self.programs.bare_ring),
            Subject::BarePread => ("bare_pread", &self.programs.bare_pread),
        }
    }

    /// The command line as one would type it, with `FILE` for the file.
    pub fn shown(&self, subject: Subject, load: &RunLoad) -> String {
        let file = if load.is_recorded() { "DEVICE" } else { "FILE" };
        let line = format!("{} {}", self.program(subject).0, self.arguments(subject, load, file));
        match subject == Subject::Fathom && load.is_recorded() {
            true => format!("{line}, while fathom monitor --no-owners --record LOG.load DEVICE"),
            false => line,
        }
    }

    fn command(&self, subject: Subject, load: &RunLoad) -> Command {
        let mut command = Command::new(self.program(subject).1);
        let device = self.device.as_ref().filter(|_| load.is_recorded());
        let target = match device {
            Some(device) => &device.path().display().to_string(),
            None if load.is_verified() => &self.in_memory.path,
            None => &self.file.path,
        };
        let log = self.logs.path().join("q").display().to_string();
        let arguments = self.arguments(subject, load, target);
        command.args(arguments.split(' ').map(|word| word.replace(LOG, &log))).stdin(Stdio::null());
        // fio leaves files of its state where it stands.
        command.current_dir("/");
        command
    }

    /// Runs it to its end and parses its output.
    pub fn sample(&self, subject: Subject, load: &RunLoad) -> anyhow::Result<RunSample> {
        let command = self.command(subject, load);
        let shown = if subject == Subject::Fathom { load.shown } else { Shown::Nothing };
        let device = self.device.as_ref().filter(|_| shown == Shown::Recorded);
        let recorder = device.map(|device| self.start_recorder(device)).transpose()?;
        let children_before = children_ns()?;
        let output = shown_output(command, shown, &self.logs.path().join("q.json"))?;
        let process_ns = children_ns()? - children_before;
        let recording = recorder.map(end_recorder).transpose()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let failed = || {
            let messages = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            format!("`{}` ended with {}: {messages}", self.shown(subject, load), output.status)
        };
        ensure!(output.status.success(), failed());
        let sample = match subject {
            Subject::BareRing(_) | Subject::BarePread => RunSample::from_bare_loop(&text),
            _ => RunSample::from_document(&text),
        };
        Ok(RunSample { process_ns, recording, ..sample.with_context(failed)? })
    }

    /// Starts it without waiting; its output is dropped.
    pub fn start(&self, subject: Subject, load: &RunLoad) -> anyhow::Result<Child> {
        let mut command = self.command(subject, load);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().with_context(|| format!("cannot run {command:?}"))
    }

    /// Reads the file whole if `load` reads it, as others may have pushed it out of the page cache.
    pub fn warm_for(&self, load: &RunLoad) -> anyhow::Result<()> {
        let mut file = &self.file.file;
        if load.is_on_file() {
            file.rewind().context("cannot go back in the data file")?;
            std::io::copy(&mut file, &mut std::io::sink()).context("cannot read the data file")?;
        }
        Ok(())
    }

    /// Starts `subject` and answers the ms until it reads the file, as reported by the kernel; then ends it.
    pub fn start_ms(&self, subject: Subject, load: &RunLoad) -> anyhow::Result<f64> {
        let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
        let watch = inotify::init(flags).context("cannot watch files")?;
        inotify::add_watch(&watch, self.file.path.as_str(), inotify::WatchFlags::ACCESS)
            .context("cannot watch the file")?;
        let started = now();
        let mut child = self.start(subject, load)?;
        let first = loop {
            let mut watched = [PollFd::new(&watch, PollFlags::IN)];
            match poll(&mut watched, Some(&LOOK)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => break Some(now()),
                Err(error) => return Err(error).context("cannot wait for the first read"),
            }
            let has_ended = child.try_wait().context("cannot wait for the program")?.is_some();
            if has_ended || now() - started > START_LIMIT {
                break None;
            }
        };
        // Asked to end, fio ends its jobs itself.
        if child.try_wait().context("cannot wait for the program")?.is_none() {
            kill_process(Pid::from_child(&child), Signal::TERM).context("cannot end the program")?;
            child.wait().context("cannot wait for the program")?;
        }
        let mut space = [MaybeUninit::uninit(); 512];
        let event = inotify::Reader::new(&watch, &mut space).next().map(|event| event.events());
        let has_read = event.is_ok_and(|event| event.contains(inotify::ReadFlags::ACCESS));
        let first = first.filter(|_| has_read);
        let first =
            first.with_context(|| format!("{}: it has not read the file", self.shown(subject, load)))?;
        Ok((first - started).as_secs_f64() * 1e3)
    }

    /// `fathom monitor --record` of `device`, once it records.
    fn start_recorder(&self, device: &LoopDevice) -> anyhow::Result<Program> {
        let file = self.logs.path().join("q.load");
        if file.exists() {
            std::fs::remove_file(&file).context("cannot remove the last recording")?;
        }
        let mut command = Command::new(&self.programs.fathom);
        command.args(["monitor", "--no-owners", "--record"]).arg(&file).arg(device.name());
        let program = Program::start(&mut command);
        let has_begun = wait_for(RECORDER_PATIENCE, || program.stderr().contains("recording every I/O"));
        ensure!(has_begun, "requests cannot be recorded: {}", program.stderr().trim());
        Ok(program)
    }
}

/// What a recording took and lost: CPU time of the recorder in ns, and events that the kernel had no room for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecordingCost {
    pub cpu_ns: f64,
    pub lost: u64,
}

fn end_recorder(program: Program) -> anyhow::Result<RecordingCost> {
    let before_ns = children_ns()?;
    program.signal(Signal::INT);
    let ended = program.finish();
    let lost = lost_events(&ended.stderr);
    let lost = lost.with_context(|| format!("the recorder does not say what it lost: {}", ended.stderr))?;
    Ok(RecordingCost { cpu_ns: children_ns()? - before_ns, lost })
}

/// From `recorded 7 entries in 1 file, 1.2 kB; 1,200 events lost`, or `no event lost`.
fn lost_events(messages: &str) -> Option<u64> {
    let last = messages.lines().rfind(|line| line.contains("monitor: recorded "))?;
    let (_, lost) = last.rsplit_once("; ")?;
    match lost.strip_suffix(" events lost") {
        Some(count) => count.replace(',', "").parse().ok(),
        None => (lost == "no event lost").then_some(0),
    }
}

/// CPU time of the waited-for children and their children, ns; the kernel counts it in ticks.
fn children_ns() -> anyhow::Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").context("cannot read /proc/self/stat")?;
    let ticks = stat_ticks(&stat, 13).context("/proc/self/stat holds no times of children")?;
    Ok(ticks as f64 * 1e9 / rustix::param::clock_ticks_per_second() as f64)
}

/// The sum of two times in `/proc/PID/stat`, so many fields behind the name, which may hold anything: 11 for those of the process, 13
/// for those of its children.
pub fn stat_ticks(stat: &str, fields: usize) -> Option<u64> {
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace().skip(fields);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

/// Runs `command`, which is to be `shown`, to its end; with a view, its document is what it wrote into `document`.
fn shown_output(mut command: Command, shown: Shown, document: &Path) -> anyhow::Result<Output> {
    match shown {
        Shown::Nothing | Shown::Recorded => {
            command.output().with_context(|| format!("cannot run {command:?}"))
        }
        Shown::View => on_a_terminal(&command, document),
        Shown::Streams => with_readers(command),
    }
}

/// On a terminal that `script` makes; nobody looks at it.
fn on_a_terminal(command: &Command, document: &Path) -> anyhow::Result<Output> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words.map(|word| quoted(&word.to_string_lossy())).collect();
    let line = format!("stty cols 200 rows 50; exec {}", words.join(" "));
    let mut terminal = Command::new("script");
    terminal.args(["-q", "-e", "-f", "-c", &line, "/dev/null"]).env("TERM", "xterm").current_dir("/");
    terminal.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = terminal.spawn().context("cannot run script, of the package bsdutils")?;
    // Its end would end the terminal.
    let keys = child.stdin.take();
    let mut output = child.wait_with_output().context("cannot wait for script")?;
    drop(keys);
    if output.status.success() {
        output.stdout = std::fs::read(document)
            .with_context(|| format!("a run with a view wrote no {}", document.display()))?;
    }
    Ok(output)
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// With a client that reads the metrics twice a second; the lines go to a file.
fn with_readers(mut command: Command) -> anyhow::Result<Output> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot run {command:?}"))?;
    let mut messages = BufReader::new(child.stderr.take().context("its messages are piped")?);
    let mut first = String::new();
    messages.read_line(&mut first).context("cannot read what fathom says")?;
    let address = first.trim().strip_prefix(ADDRESS).and_then(|rest| rest.split('/').next());
    let Some(address) = address.map(str::to_owned) else {
        bail!("fathom names no address of its metrics: {first}");
    };
    let (end, has_ended) = channel::<()>();
    let reader = std::thread::spawn(move || {
        let mut answers = 0u32;
        while has_ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
            answers += u32::from(read_metrics(&address).is_ok_and(|text| text.ends_with("# EOF\n")));
        }
        answers
    });
    let output = child.wait_with_output().context("cannot wait for fathom")?;
    drop(end);
    let answers = reader.join().unwrap_or_default();
    let is_unread = output.status.success() && answers == 0;
    ensure!(
        !is_unread,
        "the metrics of a run were never answered: it is shorter than {} ms",
        EVERY.as_millis()
    );
    Ok(output)
}

fn read_metrics(address: &str) -> std::io::Result<String> {
    let mut client = TcpStream::connect(address)?;
    client.set_read_timeout(Some(PATIENCE))?;
    client.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let mut text = String::new();
    client.read_to_string(&mut text)?;
    Ok(text)
}

/// The figures of one run: from fathom's and fio's JSON, or the line of a bare loop.
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
    /// Mean completion latency, and mean total latency; 0 of a bare loop.
    pub clat_ns: f64,
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
    fn from_document(text: &str) -> anyhow::Result<RunSample> {
        let start = text.find('{').context("no JSON was printed")?;
        let mut documents = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        let document = documents.next().context("no JSON was printed")?.context("not JSON")?;
        let [job] = document["jobs"].as_array().map_or(&[][..], Vec::as_slice) else {
            bail!("not one job, or not one group of jobs, in the result");
        };
        let number = |value: &Value, name: &str| {
            value[name].as_f64().with_context(|| format!("no number called {name} in the result"))
        };
        ensure!(number(job, "error")? == 0.0, "the job ended with error {}", job["error"]);
        let (read, write) = (&job["read"], &job["write"]);
        let job_ns = number(job, "job_runtime")? * 1e6;
        // The counter of the time of a device's reads has ms.
        let disk = |name: &str| document["disk_util"][0][name].as_f64().unwrap_or(0.0);
        let device_ns =
            if disk("read_ios") > 0.0 { disk("read_ticks") * 1e6 / disk("read_ios") } else { 0.0 };
        let sample = RunSample {
            ios: number(read, "total_ios")? + write["total_ios"].as_f64().unwrap_or(0.0),
            user_ns: number(job, "usr_cpu")? / 100.0 * job_ns,
            system_ns: number(job, "sys_cpu")? / 100.0 * job_ns,
            wall_ns: number(read, "runtime")? * 1e6,
            clat_ns: number(&read["clat_ns"], "mean")?,
            lat_ns: number(&read["lat_ns"], "mean")?,
            device_ns,
            ..RunSample::default()
        };
        sample.checked()
    }

    /// Reads the line that a bare loop prints.
    fn from_bare_loop(line: &str) -> anyhow::Result<RunSample> {
        let value: Value = serde_json::from_str(line).context("a bare loop printed no JSON")?;
        let number =
            |name: &str| value[name].as_f64().with_context(|| format!("no number called {name} in {line}"));
        let (ios, user_ns, system_ns) = (number("ios")?, number("user_ns")?, number("system_ns")?);
        RunSample { ios, user_ns, system_ns, wall_ns: number("wall_ns")?, ..RunSample::default() }.checked()
    }

    /// Every figure divides by one of these.
    fn checked(self) -> anyhow::Result<RunSample> {
        let is_whole = self.ios > 0.0 && self.wall_ns > 0.0 && self.user_ns + self.system_ns > 0.0;
        ensure!(is_whole, "a run without requests, or without time: {self:?}");
        Ok(self)
    }

    /// CPU time over what `cpus` CPUs had: below one where the job waited, or something else ran.
    pub fn share_of(&self, cpus: usize) -> f64 {
        (self.user_ns + self.system_ns) / (self.wall_ns * cpus as f64)
    }

    /// A figure that one run has, in the row's unit.
    pub fn figure(&self, figure: Figure) -> f64 {
        let job_ns = self.user_ns + self.system_ns;
        match figure {
            Figure::PerCpuSecond => self.ios / job_ns * 1e3,
            Figure::PerSecond => self.ios / self.wall_ns * 1e3,
            Figure::UserTime => self.user_ns / self.ios,
            Figure::JobTime => job_ns / self.ios,
            Figure::OutsideLatency => self.wall_ns / self.ios - self.clat_ns,
            Figure::BeyondDevice => self.lat_ns - self.device_ns,
            Figure::ProcessTime => self.process_ns / self.ios,
            Figure::OutsideJob => (self.process_ns - job_ns) / 1e6,
            _ => f64::NAN,
        }
    }
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
        check(Figure::PerCpuSecond, 1.0);
        check(Figure::PerSecond, 0.5);
        check(Figure::UserTime, 200.0);
        check(Figure::JobTime, 1000.0);
        check(Figure::OutsideLatency, 500.0);
        check(Figure::BeyondDevice, 400.0);
        check(Figure::OutsideJob, 250.0);
        check(Figure::ProcessTime, 1250.0);
        assert_eq!((sample.share_of(1), sample.share_of(2)), (0.5, 0.25));
    }

    #[test]
    fn a_bare_loop_has_no_latency() {
        let sample = RunSample::from_bare_loop(r#"{"ios":4,"user_ns":1,"system_ns":2,"wall_ns":8}"#).unwrap();
        assert_eq!((sample.ios, sample.system_ns, sample.clat_ns), (4.0, 2.0, 0.0));
        assert_eq!(sample.figure(Figure::PerSecond), 500.0);
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

    #[test]
    fn executables_are_found_in_cargo_messages() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"libc"},"executable":null}
not JSON
{"reason":"compiler-artifact","target":{"name":"bare_ring"},"executable":"/t/bare_ring-1"}
{"reason":"build-finished","success":true}"#;
        let found = executables(messages);
        assert_eq!(found, [("bare_ring".to_owned(), PathBuf::from("/t/bare_ring-1"))]);
        assert_eq!(named(&found, "bare_ring").unwrap(), PathBuf::from("/t/bare_ring-1"));
        assert!(named(&found, "bare_pread").is_err());
    }

    #[test]
    fn losses_are_read_from_the_last_line() {
        let check = |messages: &str, expected| assert_eq!(lost_events(messages), expected, "{messages}");
        let none =
            "monitor: recording every I/O\nmonitor: recorded 7 entries in 1 file, 1 kB; no event lost\n";
        check(none, Some(0));
        check("monitor: recorded 7 entries in 2 files, 1 kB; 1,200 events lost", Some(1200));
        check("monitor: recorded 7 entries", None);
        check("", None);
    }

    #[test]
    fn process_names_may_contain_any_character() {
        let stat = "7 (a) R) S 1 2 3 4 5 6 7 8 9 10 11 12 130 14 15";
        assert_eq!((stat_ticks(stat, 13), stat_ticks(stat, 11)), (Some(144), Some(23)));
        assert_eq!((stat_ticks("7 (a) S 1 2 3", 13), stat_ticks("", 11)), (None, None));
        assert_eq!((quoted("--name=a b").as_str(), quoted("it's").as_str()), ("'--name=a b'", "'it'\\''s'"));
    }
}
