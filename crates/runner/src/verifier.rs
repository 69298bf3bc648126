//! The check of blocks that were read back.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fathom_model::Request;
use fathom_model::plan::VerifyMethod;
use fathom_stats::{BadBlock, VerifyOutcome};
use fathom_sys::files::create_output;
use fathom_sys::io::{describe, fadvise_dontneed};
use fathom_workload::verify::{BlockCheck, BlockWriter, Finding, Mismatch, SavedState, WrongChecksum};

use crate::filler::compressible;
use crate::verify_spec::state_path;
use crate::worker::{VerifySpec, WorkerSpec};

/// Bad parts of blocks that are described.
const DESCRIBED: usize = 1000;

/// The seed of the last write to a block.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KnownSeed {
    /// Not known.
    None,
    /// Of a write of this run.
    OfThisRun(u64),
    /// Of a write of an earlier run of the same job, or of another program; and that of a pass after it.
    OfEarlierRun(u64, Option<u64>),
}

/// Checks the blocks that a worker reads.
pub(crate) struct Verifier {
    check: BlockCheck,
    /// Makes the expected block for a dump.
    expected: BlockWriter,
    method: VerifyMethod,
    names: Vec<String>,
    files: Vec<Arc<std::fs::File>>,
    invalidates: bool,
    dumps: bool,
    /// The job's flag in fio's messages: it reads back its own writes.
    is_own: bool,
    pub ends_at_first: bool,
    trimmed_are_zeroes: bool,
    /// Where and as what the state is saved at the end.
    saved: Option<SavedState>,
    state_directory: Option<PathBuf>,
    findings: Vec<Finding>,
    /// The first parts of short reads, by slot.
    begun: BTreeMap<u32, Vec<u8>>,
    outcome: VerifyOutcome,
    /// Blocks of an earlier run that have the seed of their last write.
    matching: u64,
    /// Blocks of an earlier run that have another seed.
    deviating: Vec<BadBlock>,
    deviations: u64,
}

impl Verifier {
    /// The check of the worker of `spec`.
    pub fn new(spec: &WorkerSpec) -> Option<Box<Self>> {
        let verify = spec.verify.as_ref()?;
        let shaped = compressible(spec).is_some();
        Some(Box::new(Verifier {
            check: BlockCheck::new(&verify.plan, spec.setup.max_block, shaped),
            expected: BlockWriter::new(&verify.plan, compressible(spec), verify.worker),
            method: verify.plan.method,
            names: verify.names.clone(),
            files: spec.setup.files.iter().filter_map(|open| open.file.clone()).collect(),
            invalidates: spec.invalidate,
            dumps: verify.plan.dump,
            is_own: spec.source.pattern.writes(),
            ends_at_first: verify.plan.fatal || !spec.on_error.continue_verify,
            trimmed_are_zeroes: verify.plan.trims.is_some_and(|trims| trims.are_zeroes),
            saved: saved_state(spec, verify),
            state_directory: verify.plan.state_directory.clone(),
            findings: Vec::new(),
            begun: BTreeMap::new(),
            outcome: VerifyOutcome::default(),
            matching: 0,
            deviating: Vec::new(),
            deviations: 0,
        }))
    }

    /// Makes the device, and not the page cache, answer the reads that follow.
    pub fn settle_files(&self) {
        for file in &self.files {
            // A failed sync shows in what is read.
            let _ = file.sync_all();
            if self.invalidates {
                let _ = fadvise_dontneed(file, 0, 0);
            }
        }
    }

    /// Keeps the first part of a short read.
    pub fn begin(&mut self, slot: u32, part: &[u8]) {
        self.begun.entry(slot).or_default().extend_from_slice(part);
    }

    /// Checks the block that `read` has read into `data`, or the last part of it. False if it is bad.
    pub fn check(&mut self, slot: u32, read: &Request, data: &mut [u8], seed: KnownSeed) -> bool {
        let Some(data) = data.get_mut(..read.len as usize) else {
            self.outcome.unchecked += 1;
            return true;
        };
        self.outcome.checked += 1;
        match self.begun.remove(&slot) {
            None => self.check_whole(read.file, read.offset, data, seed),
            Some(mut whole) => {
                let offset = read.offset - whole.len() as u64;
                whole.extend_from_slice(data);
                self.check_whole(read.file, offset, &mut whole, seed)
            }
        }
    }

    /// Checks that the trimmed block that `read` has read into `data`, or the last part of it, is zeroes, unless the job does
    /// not want that. False if it is not.
    pub fn check_trimmed(&mut self, slot: u32, read: &Request, data: &[u8]) -> bool {
        let begun = self.begun.remove(&slot).unwrap_or_default();
        let Some(data) = data.get(..read.len as usize).filter(|_| self.trimmed_are_zeroes) else {
            self.outcome.unchecked += 1;
            return true;
        };
        self.outcome.checked += 1;
        let Some(at) = begun.iter().chain(data).position(|&byte| byte != 0) else { return true };
        self.outcome.bad += 1;
        if self.outcome.first_bad.len() < DESCRIBED {
            let (offset, len) = (read.offset - begun.len() as u64, read.len + begun.len() as u32);
            let file = self.names.get(read.file as usize).cloned().unwrap_or_default();
            let problem = format!(
                "trim: verify failed at file {file} offset {offset}, length {len}: byte {at} of the trimmed block is not 0"
            );
            self.outcome.first_bad.push(BadBlock {
                file,
                offset,
                len,
                block_offset: offset,
                block_len: len,
                problem: vec![problem],
                dumps: Vec::new(),
            });
        }
        false
    }

    fn check_whole(&mut self, file: u32, offset: u64, data: &mut [u8], seed: KnownSeed) -> bool {
        let known = match seed {
            KnownSeed::OfThisRun(seed) => Some(seed),
            KnownSeed::None | KnownSeed::OfEarlierRun(..) => None,
        };
        self.check.check(data, offset, known, &mut self.findings);
        if self.findings.is_empty() {
            if let KnownSeed::OfEarlierRun(seed, later) = seed {
                self.compare_seed(file, offset, data, (seed, later));
            }
            return true;
        }
        self.describe(file, offset, data, known);
        false
    }

    /// Compares the seed of a block of an earlier run. Another program has other seeds, so that a deviation counts only
    /// if other blocks have the seeds of this job. One of a later pass has what was written last.
    fn compare_seed(&mut self, file: u32, offset: u64, data: &mut [u8], (seed, later): (u64, Option<u64>)) {
        self.check.check(data, offset, Some(seed), &mut self.findings);
        if !self.findings.is_empty() && later.is_some() {
            let mut of_later = Vec::new();
            self.check.check(data, offset, later, &mut of_later);
            if of_later.is_empty() {
                self.findings.clear();
            }
        }
        let Some(finding) = self.findings.first().cloned() else {
            self.matching += 1;
            return;
        };
        self.deviations += 1;
        if self.deviating.len() < DESCRIBED {
            let bad = self.bad_block(file, offset, data.len() as u32, &finding);
            self.deviating.push(bad);
        }
        self.findings.clear();
    }

    #[cold]
    fn describe(&mut self, file: u32, offset: u64, data: &[u8], seed: Option<u64>) {
        let findings = std::mem::take(&mut self.findings);
        self.outcome.bad += findings.len() as u64;
        let expected = if self.dumps { self.expected.expected(data, offset, seed) } else { Vec::new() };
        for finding in &findings {
            if self.outcome.first_bad.len() == DESCRIBED {
                return;
            }
            let bad = self.bad_block(file, offset, data.len() as u32, finding);
            let dumps =
                if self.dumps { self.dump(file, bad.offset, finding, [data, &expected]) } else { Vec::new() };
            self.outcome.first_bad.push(BadBlock { dumps, ..bad });
        }
    }

    fn bad_block(&self, file: u32, block_offset: u64, block_len: u32, finding: &Finding) -> BadBlock {
        let offset = block_offset + u64::from(finding.at);
        let mut bad = BadBlock {
            file: self.names.get(file as usize).cloned().unwrap_or_default(),
            offset,
            len: finding.len,
            block_offset,
            block_len,
            ..BadBlock::default()
        };
        bad.problem = problem(&bad, &finding.mismatch, self.method, self.is_own);
        bad
    }

    /// Writes the bad part at `offset` of the file, of the block that was received and of the one that was expected, to files
    /// in the working directory; returns what was done.
    fn dump(&self, file: u32, offset: u64, finding: &Finding, blocks: [&[u8]; 2]) -> Vec<String> {
        let name = self.names.get(file as usize).map_or("", |name| name);
        let part = finding.at as usize..(finding.at + finding.len) as usize;
        let [received, expected] = blocks.map(|block| block.get(part.clone()).unwrap_or(block));
        [("received", received), ("expected", expected)]
            .map(|(kind, bytes)| {
                let path = dump_path(name, offset, kind);
                match create_output(&path).and_then(|mut file| file.write_all(bytes)) {
                    Ok(()) => format!("{kind} data dumped as {}", path.display()),
                    Err(error) => format!("cannot write {}: {}", path.display(), describe(&error)),
                }
            })
            .to_vec()
    }

    /// The result. Returns whether blocks are bad that were found only at the end.
    pub fn finish(&mut self) -> bool {
        if self.matching == 0 || self.deviations == 0 {
            return false;
        }
        self.outcome.bad += self.deviations;
        self.outcome.first_bad.append(&mut self.deviating);
        self.deviations = 0;
        true
    }

    /// Saves how many writes are complete, the last of them among `requests`.
    pub fn save_state(&mut self, writes: u64, requests: &[Request]) {
        let Some(mut state) = self.saved.take() else { return };
        state.writes = writes;
        state.last = requests.iter().map(|request| (u64::from(request.file), request.offset)).collect();
        let path = state_path(self.state_directory.as_deref(), &state.name, state.worker);
        let saved = create_output(&path).and_then(|mut file| file.write_all(&state.to_bytes()));
        self.outcome.unsaved =
            saved.err().map(|error| format!("cannot save {}: {}", path.display(), describe(&error)));
    }

    /// What is wrong with the first bad block, in one line.
    pub fn first_problem(&self) -> String {
        let lines = self.outcome.first_bad.first().map(|bad| bad.problem.as_slice()).unwrap_or_default();
        let line = lines.iter().find(|line| line.contains("offset ") && line.contains("length "));
        line.or(lines.first()).cloned().unwrap_or_default()
    }

    /// The result.
    pub fn outcome(&self) -> VerifyOutcome {
        self.outcome.clone()
    }
}

/// The state of a worker that saves it: one that writes to files.
fn saved_state(spec: &WorkerSpec, verify: &VerifySpec) -> Option<SavedState> {
    let plan = &verify.plan;
    let writes = spec.source.pattern.writes() && !plan.only && plan.saves_state;
    let has_files = spec.setup.files.iter().any(|open| open.file.is_some());
    (writes && has_files).then(|| SavedState {
        name: verify.job.0.clone(),
        worker: verify.job.1,
        // fio has the state of its random generator there, if the order is random.
        seed: spec.source.pattern.random.then_some(spec.source.seed),
        files: spec.setup.files.len() as u32,
        ..SavedState::default()
    })
}

/// fio's name of a dump: that of the file, in the working directory.
fn dump_path(name: &str, offset: u64, kind: &str) -> PathBuf {
    let base = Path::new(name).file_name().map_or_else(|| "block".into(), |base| base.to_string_lossy());
    PathBuf::from(format!("{base}.{offset}.{kind}"))
}

/// What is wrong, in fio's words.
fn problem(bad: &BadBlock, mismatch: &Mismatch, method: VerifyMethod, is_own: bool) -> Vec<String> {
    let BadBlock { file, offset, len, block_offset, block_len, .. } = bad;
    let place = format!(
        "at file {file} offset {offset}, length {len} (requested block: offset={block_offset}, length={block_len}"
    );
    let flags = if is_own { "88" } else { "8" };
    let failed = |method: &str| format!("{method}: verify failed {place}, flags={flags})");
    match mismatch {
        Mismatch::Magic { found } => vec![format!("verify: bad magic header {found:x}, wanted acca {place})")],
        Mismatch::Version { found } => vec![
            format!("verify: unsupported header version {found:x} {place})"),
            "       A version of fio after 3.33 wrote the block; only such a version can verify it.".to_owned(),
        ],
        Mismatch::Length { found, wanted } => {
            vec![format!("verify: bad header length {found}, wanted {wanted} {place})")]
        }
        Mismatch::Offset { found, wanted } => {
            vec![format!("verify: bad header offset {found}, wanted {wanted} {place})")]
        }
        Mismatch::Seed { found, wanted } => vec![
            format!("verify: bad header rand_seed {found}, wanted {wanted} {place})"),
            "       The block has the data of another write, which may be an earlier one.".to_owned(),
        ],
        Mismatch::HeaderChecksum { found, calculated } => {
            vec![format!("verify: bad header crc {found:x}, calculated {calculated:x} {place})")]
        }
        Mismatch::Checksum(wrong) => {
            let WrongChecksum { expected, received, other_method } = wrong.as_ref();
            let mut lines = vec![
                failed(method.name()),
                format!("       Expected CRC: {expected}"),
                format!("       Received CRC: {received}"),
            ];
            if let Some(number) = other_method {
                lines.push(format!("fio: verify type mismatch ({number} media, {} given)", method.name()));
            }
            lines
        }
        Mismatch::Pattern { at, found, wanted } => vec![
            format!(
                "fio: got pattern '{found:02x}', wanted '{wanted:02x}'. Bad bits {}",
                (found ^ wanted).count_ones()
            ),
            format!("fio: bad pattern block offset {at}"),
            failed("pattern"),
        ],
        Mismatch::Data => vec![
            failed(method.name()),
            "       The data is not what the seed of the header generates; the checksum covers its first and last bytes."
                .to_owned(),
        ],
    }
}
