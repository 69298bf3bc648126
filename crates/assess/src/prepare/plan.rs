//! What `prepare` is going to do and what that costs, before anything is touched.

use std::path::Path;

use fathom_analysis::pattern::block_name;
use fathom_analysis::prepare::PreparePiece;
use fathom_analysis::steady::ROUND_NS;
use fathom_model::Nanos;
use fathom_model::units::bytes;
use fathom_record::{PrepareStage, RunHeader};
use fathom_runner::{Session, unknown_data};
use fathom_sys::device::{TargetHandle, TargetStack};
use fathom_volume::VolumeModel;

use super::settings::{PrepareSettings, PrepareWorkload};
use super::target::{PrepareKind, PrepareTarget};
use crate::AssessError;
use crate::machine::engine_rows;
use crate::planned::{
    engine_or_substitute, escaped, goes_on_after_errors, pair, seed_pair, size_word, time_word,
};
use crate::simulated;
use crate::suite::section_of;
use crate::target::BenchTarget;
use crate::traffic::{OfferedTraffic, PlannedTraffic};
use crate::until_steady::Rounds;

/// What is going to be done.
#[derive(Clone, Debug)]
pub struct PreparePlan {
    /// The target.
    pub target: PrepareTarget,
    /// In the order they come in.
    pub stages: Vec<PrepareStage>,
    /// How long the workload is repeated, where there is one.
    pub rounds: Option<Rounds>,
    /// Things a reader of the results should know.
    pub notes: Vec<String>,
    /// What was asked for.
    pub settings: PrepareSettings,
    /// What all random choices derive from.
    pub seed: u64,
    engine: String,
}

impl PreparePlan {
    /// Plans what was asked for; looks at the target and changes nothing.
    ///
    /// # Errors
    /// The target cannot be used, or may not be written to and would be; the time is too short for a steady state.
    pub fn make(settings: PrepareSettings) -> Result<PreparePlan, AssessError> {
        settings.run.types.check_named()?;
        let target = PrepareTarget::inspect(&settings)?;
        simulated::check_cache(&settings.run.target, settings.run.buffered)?;
        PreparePlan::on(target, settings)
    }

    /// Plans what was asked for on a target already looked at.
    ///
    /// # Errors
    /// As for [`PreparePlan::make`].
    pub fn on(target: PrepareTarget, settings: PrepareSettings) -> Result<PreparePlan, AssessError> {
        let stages = stages(&target, &settings)?;
        let rounds = match &settings.precondition {
            Some(workload) => {
                check_workload(workload, &target, &settings)?;
                let round = settings.round.unwrap_or(Nanos(ROUND_NS));
                Some(Rounds::new(Some(round), settings.budget)?)
            }
            None => None,
        };
        let of_bench = as_of_bench(&target);
        simulated::check_engine(settings.run.engine.as_deref(), &of_bench)?;
        let mut notes = simulated::notes_on([&of_bench]);
        notes.extend(remarks(&target, &stages));
        let engine = engine_or_substitute(settings.run.engine.as_deref(), &of_bench, &mut notes);
        let seed = settings.run.seed.unwrap_or_else(|| of_bench.usual_seed());
        Ok(PreparePlan { target, stages, rounds, notes, settings, seed, engine })
    }

    /// The session that it runs on.
    pub fn session(&self) -> Session {
        simulated::session_for([&as_of_bench(&self.target)])
    }

    /// The target by a name that means the same everywhere on this machine.
    pub fn target_name(&self) -> String {
        match self.target.kind {
            PrepareKind::Simulated => self.settings.run.target.display().to_string(),
            _ => self.target.file.display().to_string(),
        }
    }

    /// What it moves.
    pub fn traffic(&self) -> PlannedTraffic {
        let [read, written, _] = self.bytes();
        let passes =
            self.stages.iter().filter(|stage| !matches!(stage, PrepareStage::Workload | PrepareStage::Trim));
        let ios = |stage: &PrepareStage| {
            let piece = PreparePiece { stage: *stage, offset: 0, length: self.target.size };
            self.target.size / piece.block()
        };
        let rounds_ns = self.rounds.map_or(0, |rounds| rounds.budget.0);
        let reads_in_rounds = |workload: &PrepareWorkload| workload.rw.ends_with("rw");
        let offered = OfferedTraffic {
            sized_bytes: read + written,
            sized_written_bytes: written,
            sized_ios: passes.map(ios).sum(),
            timed_ns: rounds_ns,
            writing_ns: rounds_ns,
            reads: read > 0 || self.settings.precondition.as_ref().is_some_and(reads_in_rounds),
        };
        PlannedTraffic::on(&as_of_bench(&self.target), &self.settings.run, &[], offered)
    }

    /// Bytes of all passes that read, write and trim, in this order.
    pub fn bytes(&self) -> [u64; 3] {
        let passes = |wanted: &str| {
            let stages =
                self.stages.iter().filter(|stage| **stage != PrepareStage::Workload && stage.rw() == wanted);
            stages.count() as u64 * self.target.size
        };
        [passes("read"), passes("write"), passes("trim")]
    }

    /// Why the run that `earlier` is the head of cannot be gone on with; `None` where it can. `first_ms` is when its first piece
    /// began.
    pub fn is_another(&self, earlier: &RunHeader, first_ms: Option<u64>) -> Option<String> {
        if earlier.size_bytes != self.target.size {
            let (was, is) = (bytes(earlier.size_bytes), bytes(self.target.size));
            return Some(format!("it prepared {was}, and this is {is}"));
        }
        if self.target.kind == PrepareKind::File {
            let made = std::fs::metadata(&self.target.file).and_then(|metadata| metadata.created()).ok()?;
            let made_ms = made.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis() as u64;
            return (made_ms > first_ms?).then(|| "the file was recreated since".to_owned());
        }
        let stack = TargetStack::of(&self.target.file).ok()?;
        let (now, then) = (stack.devices.first()?, earlier.conditions.target.devices.first()?);
        let serial = now.serial.clone().unwrap_or_default();
        let differs = now.size_bytes != then.size_bytes || (!then.serial.is_empty() && serial != then.serial);
        differs.then(|| "the device has another size or serial number".to_owned())
    }

    /// The fio command line that does what `stage` does, in one piece or for one round.
    pub fn fio_command(&self, stage: PrepareStage) -> String {
        let options = match (stage, &self.settings.precondition, self.rounds.and_then(|rounds| rounds.round))
        {
            (PrepareStage::Workload, Some(workload), Some(round)) => self.round_options(workload, round, 0),
            _ => self.job_options(&PreparePiece { stage, offset: 0, length: self.target.size }),
        };
        section_of(stage.id(), &options, &engine_rows())
            .map(|section| section.command_line())
            .unwrap_or_default()
    }

    /// fio's options for `piece`.
    pub(super) fn job_options(&self, piece: &PreparePiece) -> Vec<(String, String)> {
        let stage = piece.stage;
        // A discard is one call whatever the engine; the simplest does.
        let by_call = stage == PrepareStage::Trim && self.target.kind != PrepareKind::Simulated;
        let mut options = self.base(if by_call { "psync" } else { &self.engine });
        if piece.offset > 0 {
            options.push(pair("offset", size_word(piece.offset)));
        }
        options.extend([
            pair("size", size_word(piece.length)),
            pair("rw", stage.rw()),
            pair("bs", block_name(piece.block())),
            pair("iodepth", stage.depth().to_string()),
        ]);
        match stage {
            PrepareStage::Fill | PrepareStage::Sequential { .. } => options.push(pair("end_fsync", "1")),
            // One block that cannot be read is no reason to leave the others untouched.
            PrepareStage::Touch => options.extend(goes_on_after_errors()),
            PrepareStage::Trim | PrepareStage::Workload => {}
        }
        let pass = PrepareStage::ALL.iter().position(|known| *known == stage).unwrap_or(0) as u64;
        options.push(self.seed_word((piece.offset >> 9).wrapping_mul(31).wrapping_add(pass + 1)));
        options
    }

    /// fio's options for a round of the workload, counted from 0.
    pub(super) fn round_options(
        &self,
        workload: &PrepareWorkload,
        round: Nanos,
        index: usize,
    ) -> Vec<(String, String)> {
        let size = self.target.size - self.target.size % workload.block;
        let mut options = self.base(&self.engine);
        options.extend([
            pair("size", size_word(size)),
            pair("rw", workload.rw.as_str()),
            pair("bs", block_name(workload.block)),
            pair("iodepth", workload.depth.to_string()),
            pair("time_based", "1"),
            pair("runtime", time_word(round)),
            self.seed_word(index as u64 + 1_000_003),
        ]);
        options
    }

    fn base(&self, engine: &str) -> Vec<(String, String)> {
        vec![
            pair("ioengine", engine),
            pair("filename", escaped(&self.target.file)),
            pair("direct", if self.settings.run.buffered { "0" } else { "1" }),
        ]
    }

    /// Passes have other data each, and rounds other places.
    fn seed_word(&self, place: u64) -> (String, String) {
        seed_pair(self.seed, place)
    }
}

/// The stages that were asked for, or what suits the target.
fn stages(target: &PrepareTarget, settings: &PrepareSettings) -> Result<Vec<PrepareStage>, AssessError> {
    let passes = settings.precondition.is_some();
    let nothing_said = !(settings.trim || settings.fill || settings.touch || passes);
    let fill = settings.fill || nothing_said && target.may_write;
    let touch = settings.touch || nothing_said && !target.may_write;
    let wanted = |stage: &PrepareStage| match stage {
        PrepareStage::Trim => settings.trim,
        PrepareStage::Fill => fill,
        PrepareStage::Sequential { .. } | PrepareStage::Workload => passes,
        PrepareStage::Touch => touch,
    };
    let stages: Vec<PrepareStage> = PrepareStage::ALL.into_iter().filter(wanted).collect();
    if !target.may_write && stages.iter().any(|stage| stage.modifies()) {
        let path = settings.run.target.display();
        let hint = format!(
            "use --destroy-data={path} if nothing on it is needed, or --touch alone, which only reads"
        );
        return settings.run.refuse(format!("this would destroy the data of the {}", target.noun()), hint);
    }
    if target.kind == PrepareKind::NewFile && (settings.trim || !(fill || passes)) {
        return settings.run.refuse("a new file can only be filled", "use --fill or --precondition");
    }
    if settings.trim && target.kind == PrepareKind::BlockDevice && !discards(&settings.run.target) {
        return settings.run.refuse("the device does not support discard", "omit --trim, or use --fill");
    }
    Ok(stages)
}

/// Whether the device supports discards; true where that is unknown.
fn discards(path: &Path) -> bool {
    let stack = TargetStack::of(path).ok();
    let granularity = stack.and_then(|stack| stack.devices.first()?.discard_granularity);
    granularity != Some(0)
}

fn check_workload(
    workload: &PrepareWorkload,
    target: &PrepareTarget,
    settings: &PrepareSettings,
) -> Result<(), AssessError> {
    if workload.block > target.size {
        let reason =
            format!("a block of {} exceeds the size of {}", bytes(workload.block), bytes(target.size));
        return settings.run.refuse(reason, "use a smaller block: --precondition=randwrite:4k");
    }
    if !settings.run.buffered && !workload.block.is_multiple_of(target.unit) {
        let (unit, block) = (bytes(target.unit), bytes(workload.block));
        let reason = format!("direct I/O requires multiples of {unit} bytes; got {block}");
        return settings.run.refuse(reason, "use another block size, or --buffered");
    }
    Ok(())
}

/// The same target as other commands know it.
fn as_of_bench(target: &PrepareTarget) -> BenchTarget {
    match (&target.volume, target.kind) {
        (Some(volume), _) => BenchTarget::Simulated(volume.clone()),
        (None, PrepareKind::Simulated) => {
            BenchTarget::simulated(&target.file.to_string_lossy(), VolumeModel::unlimited(target.size))
        }
        _ => BenchTarget::BlockDevice { path: target.file.clone(), size: target.size, destroy: true },
    }
}

/// What a reader should know of the target and the plan.
fn remarks(target: &PrepareTarget, stages: &[PrepareStage]) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(volume) = &target.volume {
        let kept =
            "the simulated volume is lost when the command ends: the result is the time that preparing takes";
        notes.push(kept.to_owned());
        if stages.contains(&PrepareStage::Touch) && volume.model.first_touch.is_none() {
            notes.push("this volume has no first-touch penalty; set one with first_touch=".to_owned());
        }
    }
    if target.may_write && target.volume.is_none() && target.kind == PrepareKind::BlockDevice {
        notes.extend(TargetHandle::open(&target.file).ok().as_ref().and_then(unknown_data));
    }
    if target.filesystem.as_ref().is_some_and(|filesystem| filesystem.is_root_filesystem) {
        notes.push("the file is on the root file system, which other programs use too".to_owned());
    }
    if target.sparse && stages.contains(&PrepareStage::Touch) && !stages.contains(&PrepareStage::Fill) {
        notes.push("the file is sparse: reads of holes do not reach a device".to_owned());
    }
    if target.size < target.capacity {
        notes.push(format!("prepares {} of {}", bytes(target.size), bytes(target.capacity)));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::RunSettings;

    const MIB: u64 = 1 << 20;

    fn target(kind: PrepareKind, may_write: bool) -> PrepareTarget {
        PrepareTarget {
            kind,
            file: "/t/x".into(),
            size: 64 * MIB,
            capacity: 64 * MIB,
            may_write,
            unit: 512,
            sparse: false,
            filesystem: None,
            volume: None,
        }
    }

    fn settings() -> PrepareSettings {
        PrepareSettings {
            run: RunSettings {
                target: "/t/x".into(),
                seed: Some(1),
                engine: Some("psync".to_owned()),
                ..RunSettings::default()
            },
            ..Default::default()
        }
    }

    #[test]
    fn stages_suit_the_target_unless_they_are_said() {
        use PrepareKind::{BlockDevice, File, NewFile};
        let check = |kind, may_write, settings: PrepareSettings, expected: Result<&[&str], &str>| {
            let found = stages(&target(kind, may_write), &settings);
            match (found, expected) {
                (Ok(found), Ok(expected)) => {
                    assert_eq!(found.iter().map(|stage| stage.id()).collect::<Vec<_>>(), expected)
                }
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
                (found, _) => panic!("{found:?}, expected {expected:?}"),
            }
        };
        check(NewFile, true, settings(), Ok(&["fill"]));
        check(File, false, settings(), Ok(&["touch"]));
        check(File, true, settings(), Ok(&["fill"]));
        check(BlockDevice, false, settings(), Ok(&["touch"]));
        check(BlockDevice, true, settings(), Ok(&["fill"]));
        let all = PrepareSettings {
            trim: true,
            precondition: Some(PrepareWorkload::default()),
            touch: true,
            ..settings()
        };
        let in_order = ["trim", "precondition-1", "precondition-2", "precondition-workload", "touch"];
        check(File, true, all.clone(), Ok(&in_order));
        check(File, false, all.clone(), Err("destroy the data"));
        check(NewFile, true, all, Err("can only be filled"));
        check(NewFile, true, PrepareSettings { touch: true, ..settings() }, Err("can only be filled"));
        check(
            NewFile,
            true,
            PrepareSettings { touch: true, fill: true, ..settings() },
            Ok(&["fill", "touch"]),
        );
    }

    #[test]
    fn commands_are_what_a_user_would_type() {
        let plan = PreparePlan::on(target(PrepareKind::File, true), settings()).unwrap();
        let words = |piece: PreparePiece| {
            let options = plan.job_options(&piece);
            options.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        };
        let piece = |stage, offset, length| PreparePiece { stage, offset, length };
        let base = "ioengine=psync filename=/t/x direct=1";
        assert!(
            words(piece(PrepareStage::Fill, 0, 64 * MIB))
                .starts_with(&format!("{base} size=64m rw=write bs=1m iodepth=32 end_fsync=1 randseed="))
        );
        assert!(
            words(piece(PrepareStage::Sequential { pass: 2 }, 16 * MIB, 32 * MIB))
                .starts_with(&format!("{base} offset=16m size=32m rw=write bs=128k iodepth=32 end_fsync=1"))
        );
        assert!(words(piece(PrepareStage::Touch, 63 * MIB, 512)).starts_with(&format!(
            "{base} offset=63m size=512 rw=read bs=512 iodepth=32 continue_on_error=all ignore_error=5:52:61:67:74:84:110:117:121,5:52:61:67:74:84:110:117:121"
        )));
        assert!(
            words(piece(PrepareStage::Trim, 0, 64 * MIB))
                .starts_with(&format!("{base} size=64m rw=trim bs=64m iodepth=1"))
        );
        // The two passes write other data.
        let [one, two] = [1, 2].map(|pass| words(piece(PrepareStage::Sequential { pass }, 0, MIB)));
        assert_ne!(one, two);
        let round = plan.round_options(&PrepareWorkload::default(), Nanos::from_secs(60), 0);
        assert!(round.contains(&pair("runtime", "60s")) && round.contains(&pair("bs", "4k")));
    }

    #[test]
    fn what_cannot_be_done_is_refused_before() {
        let check = |settings: PrepareSettings, expected: &str| {
            let error = PreparePlan::on(target(PrepareKind::File, true), settings).unwrap_err();
            assert!(error.to_string().contains(expected) && error.hint.is_some(), "{error}");
        };
        let with = |text: &str| Some(text.parse::<PrepareWorkload>().unwrap());
        check(PrepareSettings { precondition: with("randwrite:1g"), ..settings() }, "exceeds the size");
        check(
            PrepareSettings { precondition: with("write"), budget: Some(Nanos::from_secs(5)), ..settings() },
            "5 rounds",
        );
        check(
            PrepareSettings {
                run: RunSettings { engine: Some("warp".to_owned()), ..settings().run },
                ..settings()
            },
            "warp",
        );
        let of_pages = PrepareTarget { unit: 4096, ..target(PrepareKind::File, true) };
        let odd = PrepareSettings { precondition: with("randwrite:512"), ..settings() };
        assert!(PreparePlan::on(of_pages, odd).unwrap_err().to_string().contains("multiples of 4.0 KiB"));
    }
}
