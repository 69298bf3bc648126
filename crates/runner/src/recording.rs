//! Reads the recordings that jobs replay, before anything else is prepared.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fathom_model::plan::{Mix, RecordedFile, RecordedLoad, RecordedRequest, ReplayPlan, SizeSpec};
use fathom_model::{JobPlan, Op, RunPlan};
use fathom_sys::device::SysRoot;
use fathom_sys::files::{Lines, RECORDING};
use fathom_workload::replay::{BlktraceError, Iolog, IologVersion, Recording, is_blktrace, read_blktrace};

use crate::RunError;

/// A recording that cannot be replayed, and the remedy.
#[derive(Debug)]
struct Refusal {
    reason: String,
    hint: String,
}

/// Reads the recordings that the jobs of `plan` replay. Their files and operations become those of the jobs.
///
/// # Errors
/// A recording cannot be read, is broken, or names a device that does not exist here.
pub fn load_recordings(plan: &mut RunPlan) -> Result<(), RunError> {
    // Read once: standard input ends.
    let mut known: BTreeMap<PathBuf, Recording> = BTreeMap::new();
    for job in &mut plan.jobs {
        let Some(mut replay) = job.replay.take() else { continue };
        let refused = |Refusal { reason, hint }| RunError::plan(&job.name, reason, hint);
        replay.recorded.clear();
        for log in &replay.logs {
            if !known.contains_key(log) {
                known.insert(log.clone(), read(log).map_err(refused)?);
            }
            let recorded = replayed(&replay, &known[log])
                .map_err(|refusal| Refusal {
                    reason: format!("{}: {}", log.display(), refusal.reason),
                    ..refusal
                })
                .map_err(refused)?;
            replay.recorded.push(Arc::new(recorded));
        }
        adapt(job, &replay);
        job.replay = Some(replay);
    }
    Ok(())
}

const BROKEN: &str = "correct or remove this line";

/// Reads the recording at `path`, of whatever format.
fn read(path: &Path) -> Result<Recording, Refusal> {
    let unread =
        |error: fathom_sys::files::InputError| Refusal { reason: error.to_string(), hint: error.hint() };
    let (name, file) = RECORDING.reader(path).map_err(unread)?;
    read_from(&name, file)
}

/// Reads a recording of whatever format; errors call it `name`.
fn read_from(name: &str, input: impl std::io::Read) -> Result<Recording, Refusal> {
    let unread =
        |error: fathom_sys::files::InputError| Refusal { reason: error.to_string(), hint: error.hint() };
    let mut reader = BufReader::with_capacity(64 << 10, input);
    let first = reader.fill_buf().map_err(|error| Refusal {
        reason: format!("cannot read {name}: {}", fathom_sys::io::describe(&error)),
        hint: "check the file".to_owned(),
    })?;
    if is_blktrace(first) {
        return read_blktrace(&mut reader, RECORDING.most_entries)
            .map_err(|error| broken_events(name, error));
    }
    let mut lines = Lines::new(&RECORDING, name, reader);
    let first = lines.next_line().map_err(unread)?.unwrap_or_default();
    let Some(version) = IologVersion::of(first) else {
        return Err(Refusal {
            reason: format!("{name}:1: it is neither an iolog of version 2 or 3 nor a recording of blktrace"),
            hint: "record one with write_iolog=FILE; its first line is `fio version 3 iolog`".to_owned(),
        });
    };
    let mut log = Iolog::new(version);
    while let Some(line) = lines.next_line().map_err(unread)? {
        if let Err(reason) = log.line(line) {
            let hint = match () {
                () if reason.contains("was not added") => "add a line before it: TIME FILE add",
                () if reason.contains("is not open") => "add a line before it: TIME FILE open",
                () if reason.contains("second log") => "use a write_iolog of its own for each job",
                () => BROKEN,
            };
            return Err(Refusal {
                reason: format!("{name}:{}: {reason}", lines.number()),
                hint: hint.to_owned(),
            });
        }
        lines.check_entries(log.kept()).map_err(unread)?;
    }
    Ok(log.finish())
}

fn broken_events(name: &str, error: BlktraceError) -> Refusal {
    let (reason, hint) = match error {
        BlktraceError::Io(error) => {
            (format!("cannot read {name}: {}", fathom_sys::io::describe(&error)), "check the file")
        }
        BlktraceError::Event { event, reason } => (
            format!("{name}: event {event}: {reason}"),
            "merge the files of blktrace with `blkparse -i NAME -d FILE`, and replay that one",
        ),
        BlktraceError::TooMany => (
            format!("{name} has more than {} requests", RECORDING.most_entries),
            "split it into several by time",
        ),
    };
    Refusal { reason, hint: hint.to_owned() }
}

/// The requests of a recording as `plan` replays them.
fn replayed(plan: &ReplayPlan, recording: &Recording) -> Result<RecordedLoad, Refusal> {
    let is_skipped = |op: Op| plan.skip[(op as usize).min(Op::Sync as usize)];
    let mut recorded = RecordedLoad::default();
    let mut places: Vec<Option<u32>> = vec![None; recording.files.len()];
    for RecordedRequest { at_ns, request } in &recording.requests {
        if is_skipped(request.op) {
            continue;
        }
        let source = if plan.redirect.is_some() { 0 } else { request.file as usize };
        let file = match places[source] {
            Some(file) => file,
            None => {
                let path = match &plan.redirect {
                    Some(path) => path.clone(),
                    None => path_of(&recording.files[source])?,
                };
                recorded.files.push(RecordedFile { path, ..RecordedFile::default() });
                *places[source].insert(recorded.files.len() as u32 - 1)
            }
        };
        let offset = (request.offset / plan.scale.max(1)) & !(plan.align.max(1) - 1);
        let end = offset + u64::from(request.len);
        let used = &mut recorded.files[file as usize];
        used.end = used.end.max(end);
        if request.op == Op::Read {
            used.read_end = used.read_end.max(end);
        }
        let at_ns = (u128::from(*at_ns) * 100 / u128::from(plan.time_scale.max(1))) as u64;
        let request = fathom_model::Request { file, offset, ..*request };
        recorded.requests.push(RecordedRequest { at_ns, request });
    }
    match recorded.requests.is_empty() {
        false => Ok(recorded),
        true => Err(Refusal {
            reason: "it contains no request to replay".to_owned(),
            hint: "check the recording and replay_skip".to_owned(),
        }),
    }
}

/// The path of a recorded file, which may be the number of a device.
fn path_of(name: &str) -> Result<PathBuf, Refusal> {
    let number = |text: &str| text.parse::<u32>().ok();
    let device = name.split_once(':').and_then(|(major, minor)| Some((number(major)?, number(minor)?)));
    let Some((major, minor)) = device else { return Ok(PathBuf::from(name)) };
    match SysRoot::real().block_name(major, minor) {
        Some(device) => Ok(PathBuf::from(format!("/dev/{}", device.replace('!', "/")))),
        None => Err(Refusal {
            reason: format!("there is no device {major}:{minor} here"),
            hint: "name the target with replay_redirect=".to_owned(),
        }),
    }
}

/// Gives `job` the files and operations of its recordings.
fn adapt(job: &mut JobPlan, replay: &ReplayPlan) {
    for (index, clone) in job.clones.iter_mut().enumerate() {
        if let Some(recorded) = replay.of_clone(index) {
            clone.paths = recorded.files.iter().map(|file| file.path.clone()).collect();
        }
    }
    let requests = replay.recorded.iter().flat_map(|recorded| &recorded.requests);
    let mut largest = [0; 3];
    for RecordedRequest { request, .. } in requests {
        if let Some(largest) = largest.get_mut(request.op as usize) {
            *largest = request.len.max(*largest);
        }
    }
    let io = &mut job.io;
    io.pattern.mix = match largest.map(|bytes| bytes > 0) {
        [_, false, false] => Mix::Read,
        [false, true, false] => Mix::Write,
        [false, false, true] => Mix::Trim,
        [true, true, false] => Mix::ReadWrite { read_percent: 50 },
        [_, _, true] => Mix::ReadWriteTrim,
    };
    for (op, bytes) in Op::DATA.into_iter().zip(largest) {
        if bytes > 0 {
            io.block_size[op] = u64::from(bytes).into();
        }
    }
    (io.size, io.io_size, io.file_size) = (None, None, None);
    (io.offset, io.offset_increment) = (SizeSpec::default(), SizeSpec::default());
    (io.fsync_every, io.fdatasync_every, io.loops) = (0, 0, 1);
    (io.access, io.random_map) = (Default::default(), true);
    // A recording ends by itself; a runtime may end it earlier.
    job.time.time_based = false;
    // As in fio, what is replayed is not recorded again.
    job.measure.logs.issued = None;
}

#[cfg(test)]
mod tests {
    use fathom_model::plan::ClonePlan;

    use super::*;

    const LOG: &str = "fio version 3 iolog\n0 a add\n0 a open\n0 b add\n0 b open\n10 a write 5000 4096\n\
                       20 b read 8192 512\n30 a sync 0 0\n40 b close\n";

    fn job(change: impl FnOnce(&mut ReplayPlan), text: &str) -> Result<JobPlan, (String, String)> {
        let refused = |Refusal { reason, hint }: Refusal| (reason, hint);
        let mut replay = ReplayPlan { logs: vec![PathBuf::from("log")], ..ReplayPlan::default() };
        change(&mut replay);
        let recording = read_from("log", text.as_bytes()).map_err(refused)?;
        replay.recorded.push(Arc::new(replayed(&replay, &recording).map_err(refused)?));
        let clone = ClonePlan { paths: vec![PathBuf::from("own")], seed: 0, cpus: Vec::new() };
        let mut job = JobPlan { clones: vec![clone; 2], ..JobPlan::default() };
        adapt(&mut job, &replay);
        job.replay = Some(replay);
        Ok(job)
    }

    fn requests(job: &JobPlan) -> Vec<(u64, u32, Op, u64)> {
        let recorded = job.replay.as_ref().and_then(|replay| replay.of_clone(0)).unwrap();
        let of = |recorded: &RecordedRequest| {
            let request = recorded.request;
            (recorded.at_ns / 1_000, request.file, request.op, request.offset)
        };
        recorded.requests.iter().map(of).collect()
    }

    #[test]
    fn files_and_operations_are_those_of_the_recording() {
        let job = job(|_| (), LOG).unwrap();
        assert_eq!(job.clones[1].paths, ["a", "b"].map(PathBuf::from));
        assert_eq!(job.io.pattern.mix, Mix::ReadWrite { read_percent: 50 });
        assert_eq!((job.io.block_size.read.largest(), job.io.block_size.write.largest()), (512, 4096));
        let recorded = job.replay.as_ref().unwrap().of_clone(1).unwrap();
        let uses: Vec<(u64, u64)> = recorded.files.iter().map(|file| (file.read_end, file.end)).collect();
        assert_eq!(uses, [(0, 9096), (8704, 8704)]);
    }

    #[test]
    fn offsets_and_times_are_scaled() {
        let scaled = job(|replay| (replay.scale, replay.time_scale) = (2, 200), LOG).unwrap();
        assert_eq!(
            requests(&scaled),
            [(5, 0, Op::Write, 2500), (10, 1, Op::Read, 4096), (15, 0, Op::Sync, 0)]
        );
        let aligned = job(|replay| replay.align = 4096, LOG).unwrap();
        assert_eq!(requests(&aligned)[0], (10, 0, Op::Write, 4096));
    }

    #[test]
    fn operations_are_skipped_and_redirected() {
        let skipped = job(|replay| replay.skip = [false, true, false, true], LOG).unwrap();
        assert_eq!(requests(&skipped), [(20, 0, Op::Read, 8192)]);
        assert_eq!((skipped.clones[0].paths.len(), skipped.io.pattern.mix), (1, Mix::Read));
        let redirected = job(|replay| replay.redirect = Some(PathBuf::from("x")), LOG).unwrap();
        assert_eq!(redirected.clones[0].paths, [PathBuf::from("x")]);
        assert!(requests(&redirected).iter().all(|request| request.1 == 0));
        let (reason, _) = job(|replay| replay.skip = [true; 4], LOG).unwrap_err();
        assert_eq!(reason, "it contains no request to replay");
    }

    #[test]
    fn a_broken_log_is_refused_by_line_with_a_remedy() {
        for (text, reason, hint) in [
            ("hello\n", "log:1: it is neither an iolog", "record one with write_iolog"),
            ("", "log:1: it is neither an iolog", "record one with write_iolog"),
            ("fio version 1 iolog\n", "log:1: it is neither", "record one"),
            ("fio version 3 iolog\n1 a read 0 1\n", "log:2: 'a' was not added", "add a line before it"),
            ("fio version 3 iolog\n1 a add\n1 a read 0 1\n", "log:3: 'a' is not open", "TIME FILE open"),
            ("fio version 3 iolog\n1 a raed 0 1\n", "log:2: unknown action 'raed'", "correct or remove"),
            ("fio version 3 iolog\n", "it contains no request", "check the recording"),
        ] {
            let error = job(|_| (), text).unwrap_err();
            assert!(error.0.starts_with(reason) && error.1.contains(hint), "{text}: {error:?}");
        }
    }

    #[test]
    fn recordings_of_blktrace_are_recognised() {
        let mut event = Vec::new();
        for word in [0x6561_7407_u32, 1, 9, 0, 8, 0, 4096, 1 << 17 | 1, 0, 8 << 20, 0, 0] {
            event.extend(word.to_le_bytes());
        }
        let recording = read_from("trace", &event[..]).map_err(|refusal| refusal.reason).unwrap();
        assert_eq!(recording.files, ["8:0"]);
        assert_eq!(
            (recording.requests[0].request.op, recording.requests[0].request.offset),
            (Op::Write, 4096)
        );
        let refusal = read_from("trace", &event[..40]).expect_err("it is incomplete");
        assert!(refusal.reason == "trace: event 1: it is incomplete" && refusal.hint.contains("blkparse"));
    }

    #[test]
    fn devices_that_do_not_exist_are_refused() {
        assert_eq!(path_of("dir/file").map_err(|refusal| refusal.reason), Ok(PathBuf::from("dir/file")));
        let refusal = path_of("4095:1048575").expect_err("there is no such device");
        assert!(refusal.reason.contains("4095:1048575") && refusal.hint.contains("replay_redirect"));
    }
}
