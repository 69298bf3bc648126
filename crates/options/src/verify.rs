//! The contents of writes and the check of what is read back: defaults and contradictions.

use fathom_model::Op;
use fathom_model::plan::{
    Compressible, Dedupe, DedupeMode, FillPattern, IoPlan, Payload, ShapedPayload, VerifyBacklog,
    VerifyMethod, VerifyPlan, VerifyTrim,
};

use crate::error::OptionError;
use crate::job_options::{DedupeOption, JobOptions, VerifyOptions};
use crate::resolve::refused;
use crate::section::Section;

/// Bytes of a chunk of compressible data by default, as in fio.
const DEFAULT_CHUNK: u32 = 512;
/// Size of the working set by default, percent, as in fio.
const DEFAULT_SET_PERCENT: u8 = 5;

/// The contents of writes. Zeroes take precedence, then a shape, then a pattern.
pub(crate) fn payload(options: &JobOptions) -> Payload {
    let shape = shape(options);
    if options.zero_buffers == Some(true) {
        Payload::Zero
    } else if shape != ShapedPayload::default() {
        Payload::Shaped(shape)
    } else if let Some(pattern) = &options.buffer_pattern {
        Payload::Pattern(pattern.clone())
    } else if options.refill_buffers == Some(true) {
        Payload::Refill
    } else if options.scramble_buffers == Some(false) {
        Payload::Fixed
    } else {
        Payload::Stamped
    }
}

fn shape(options: &JobOptions) -> ShapedPayload {
    let given = |percent: Option<u8>| percent.filter(|&percent| percent > 0);
    let compressible = given(options.compress_percent).map(|percent| Compressible {
        percent,
        chunk: options.compress_chunk.filter(|&bytes| bytes > 0).unwrap_or(DEFAULT_CHUNK),
        pattern: options.buffer_pattern.clone(),
    });
    let dedupe = given(options.dedupe_percent).map(|percent| Dedupe {
        percent,
        mode: match options.dedupe_mode {
            None | Some(DedupeOption::Repeat) => DedupeMode::Repeat,
            Some(DedupeOption::WorkingSet) => DedupeMode::WorkingSet {
                percent: options.dedupe_set_percent.unwrap_or(DEFAULT_SET_PERCENT),
                is_global: options.dedupe_global.unwrap_or(false),
            },
        },
    });
    ShapedPayload { compressible, dedupe }
}

/// The check of a job; `None` without one.
pub(crate) fn plan(section: &Section, io: &IoPlan) -> Result<Option<VerifyPlan>, OptionError> {
    let options = &section.options.verify;
    let only = options.only == Some(true);
    let Some(Some(method)) = options.method else {
        trims(section, io)?;
        // Without a check the job would write.
        return if only { Err(contradicts(section, "has verify_only and no verify=")) } else { Ok(None) };
    };
    if only && options.reads_back == Some(false) {
        return Err(contradicts(section, "has verify_only and do_verify=0"));
    }
    let pattern = options
        .pattern
        .clone()
        .map(|pattern| FillPattern { interval: options.pattern_interval.unwrap_or(0), ..pattern });
    if method.compares_pattern() && method != VerifyMethod::Meta && pattern.is_none() {
        return Err(refused(
            section,
            format!("verify={} has no pattern to check", method.name()),
            "add verify_pattern=, for example verify_pattern=0xdeadbeef",
        ));
    }
    let plan = VerifyPlan {
        method,
        pattern,
        interval: options.interval.unwrap_or(0),
        offset: options.offset.unwrap_or(0),
        reads_back: options.reads_back.unwrap_or(true),
        only: options.only.unwrap_or(false),
        backlog: backlog(options),
        trims: trims(section, io)?,
        fatal: options.fatal.unwrap_or(false),
        dump: options.dump.unwrap_or(false),
        checks_generation: options.header_seed.unwrap_or(true) && options.write_sequence.unwrap_or(true),
        saves_state: options.state_save.unwrap_or(true),
        state_directory: None,
        loads_state: options.state_load.unwrap_or(false),
    };
    check_sizes(section, io, &plan)?;
    check_dedupe(section, io)?;
    Ok(Some(plan))
}

fn contradicts(section: &Section, reason: &str) -> OptionError {
    let remedy = "omit verify_only to write, or name the check, for example verify=crc32c do_verify=1";
    refused(section, reason, remedy)
}

fn backlog(options: &VerifyOptions) -> Option<VerifyBacklog> {
    let blocks = options.backlog.filter(|&blocks| blocks > 0)?;
    Some(VerifyBacklog { blocks, batch: options.backlog_batch.filter(|&batch| batch > 0).unwrap_or(blocks) })
}

/// Trims of written blocks; without their backlog there are none, as in fio, which makes them a mistake.
fn trims(section: &Section, io: &IoPlan) -> Result<Option<VerifyTrim>, OptionError> {
    let options = &section.options.verify;
    let Some(percent) = options.trim_percent.filter(|&percent| percent > 0) else { return Ok(None) };
    let refused = |problem: &str, remedy: &str| {
        let problem = format!("has trim_percentage={percent} and {problem}");
        Err(refused(section, problem, remedy))
    };
    let Some(backlog) = options.trim_backlog.filter(|&backlog| backlog > 0) else {
        return refused(
            "no trim_backlog: nothing is trimmed",
            "set trim_backlog to writes between two batches of trims",
        );
    };
    match options.method {
        Some(Some(_)) if !io.pattern.writes() => refused("does not write", "use rw=write or randwrite"),
        Some(Some(_)) if options.only == Some(true) => {
            refused("verify_only: the trimmed blocks are unknown", "omit one of them")
        }
        Some(Some(_)) => Ok(Some(VerifyTrim {
            percent,
            backlog,
            batch: options.trim_batch.filter(|&batch| batch > 0).unwrap_or(backlog),
            are_zeroes: options.trim_is_zero.unwrap_or(true),
        })),
        _ => refused("no verify=", "name the check, for example verify=crc32c"),
    }
}

/// Refuses headers that do not fit.
fn check_sizes(section: &Section, io: &IoPlan, plan: &VerifyPlan) -> Result<(), OptionError> {
    if !plan.method.has_header() {
        return Ok(());
    }
    let header = plan.method.header_len() as u64;
    let offset = u64::from(plan.offset);
    if (1..header).contains(&offset) {
        return Err(refused(
            section,
            format!("verify_offset={offset} is within the header of {header} bytes"),
            format!("omit verify_offset, or set it to {header} or more"),
        ));
    }
    let needed = offset + header;
    let smallest = |op: Op| io.block_size[op].smallest();
    let block = match (io.pattern.reads(), io.pattern.writes()) {
        (true, true) => smallest(Op::Read).min(smallest(Op::Write)),
        (true, false) => smallest(Op::Read),
        _ => smallest(Op::Write),
    };
    let interval = u64::from(plan.interval);
    if interval > 0 && interval < needed {
        return Err(refused(
            section,
            format!("cannot offset verify header beyond the verify interval: {needed} bytes in {interval}"),
            format!("set verify_interval to {needed} or more, or lower verify_offset"),
        ));
    }
    if block <= needed {
        return Err(refused(
            section,
            format!("blocks of {block} bytes have no room for data after a header of {needed} bytes"),
            format!("set bs above {needed}, or use a shorter checksum such as verify=crc32c"),
        ));
    }
    Ok(())
}

/// Headers make all blocks differ.
fn check_dedupe(section: &Section, io: &IoPlan) -> Result<(), OptionError> {
    match &io.payload {
        Payload::Shaped(ShapedPayload { dedupe: Some(_), .. }) => Err(refused(
            section,
            "has dedupe_percentage and verify: the headers of verify make all blocks differ",
            "omit one of them",
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PlanningHost, resolve};

    fn io_of(pairs: &[(&str, &str)]) -> Result<IoPlan, String> {
        let section = Section::from_pairs("t", pairs, &[]).map_err(|error| error.to_string())?;
        let plan = resolve(&[section], &PlanningHost::default()).map_err(|error| error.to_string())?;
        Ok(plan.jobs[0].io.clone())
    }

    fn verify_of(pairs: &[(&str, &str)]) -> Option<VerifyPlan> {
        io_of(&[&[("rw", "write"), ("verify", "crc32c")], pairs].concat()).unwrap().verify
    }

    #[test]
    fn defaults_are_those_of_fio() {
        assert_eq!(io_of(&[("rw", "write"), ("verify", "0")]).unwrap().verify, None);
        let plan = verify_of(&[]).unwrap();
        assert!(plan.reads_back && plan.checks_generation && !plan.only && !plan.fatal && !plan.dump);
        assert!(plan.saves_state && !plan.loads_state);
        assert_eq!((plan.interval, plan.offset, plan.backlog, plan.pattern), (0, 0, None, None));
        assert!(!verify_of(&[("verify_write_sequence", "0")]).unwrap().checks_generation);
        let backlog = verify_of(&[("verify_backlog", "8")]).unwrap().backlog;
        assert_eq!(backlog, Some(VerifyBacklog { blocks: 8, batch: 8 }));
        let backlog = verify_of(&[("verify_backlog", "8"), ("verify_backlog_batch", "3")]).unwrap().backlog;
        assert_eq!(backlog, Some(VerifyBacklog { blocks: 8, batch: 3 }));
    }

    #[test]
    fn written_blocks_are_trimmed_in_batches() {
        let trims = |pairs: &[(&str, &str)]| {
            verify_of(&[&[("trim_percentage", "50"), ("trim_backlog", "16")], pairs].concat()).unwrap().trims
        };
        let expected = VerifyTrim { percent: 50, backlog: 16, batch: 16, are_zeroes: true };
        assert_eq!(trims(&[]), Some(expected));
        let other = trims(&[("trim_backlog_batch", "4"), ("trim_verify_zero", "0")]);
        assert_eq!(other, Some(VerifyTrim { batch: 4, are_zeroes: false, ..expected }));
        assert_eq!(trims(&[("trim_percentage", "0")]), None);
        assert_eq!(verify_of(&[("trim_backlog", "16")]).unwrap().trims, None);
        for (pairs, problem) in [
            (&[("rw", "write"), ("trim_backlog", "1")][..], "no verify="),
            (&[("rw", "write"), ("verify", "md5")], "no trim_backlog"),
            (&[("rw", "read"), ("verify", "md5"), ("trim_backlog", "1")], "does not write"),
            (
                &[("rw", "write"), ("verify", "md5"), ("trim_backlog", "1"), ("verify_only", "1")],
                "verify_only",
            ),
        ] {
            let error = io_of(&[&[("trim_percentage", "5")], pairs].concat()).unwrap_err();
            assert!(error.contains(problem), "{pairs:?}: {error}");
        }
    }

    #[test]
    fn a_check_alone_never_becomes_a_write() {
        let alone = [("rw", "write"), ("verify_only", "1")];
        assert!(io_of(&alone).unwrap_err().contains("no verify="));
        let checked = [&alone[..], &[("verify", "md5")]].concat();
        assert!(io_of(&checked).unwrap().verify.is_some_and(|plan| plan.only));
        assert!(io_of(&[&checked[..], &[("do_verify", "0")]].concat()).unwrap_err().contains("do_verify=0"));
    }

    #[test]
    fn contents_of_writes() {
        let payload = |pairs: &[(&str, &str)]| io_of(pairs).unwrap().payload;
        assert!(matches!(payload(&[("buffer_pattern", "0x11")]), Payload::Pattern(_)));
        assert_eq!(payload(&[("buffer_pattern", "0x11"), ("zero_buffers", "")]), Payload::Zero);
        let Payload::Shaped(shape) = payload(&[("buffer_compress_percentage", "40")]) else { panic!() };
        assert_eq!(shape.compressible, Some(Compressible { percent: 40, chunk: 512, pattern: None }));
        let Payload::Shaped(shape) =
            payload(&[("dedupe_percentage", "30"), ("dedupe_mode", "working_set"), ("dedupe_global", "1")])
        else {
            panic!()
        };
        let mode = DedupeMode::WorkingSet { percent: 5, is_global: true };
        assert_eq!(shape.dedupe, Some(Dedupe { percent: 30, mode }));
        assert_eq!(payload(&[("dedupe_percentage", "0")]), Payload::Stamped);
    }

    #[test]
    fn headers_that_do_not_fit_are_refused() {
        for (pairs, problem) in [
            (vec![("bs", "40")], "no room"),
            (vec![("verify_offset", "41")], "within the header"),
            (vec![("verify_interval", "80"), ("verify_offset", "60")], "beyond the verify interval"),
            (vec![("verify", "pattern")], "no pattern"),
            (vec![("dedupe_percentage", "5")], "all blocks differ"),
        ] {
            let pairs = [vec![("rw", "write"), ("verify", "crc32c")], pairs].concat();
            let error = io_of(&pairs).unwrap_err();
            assert!(error.contains(problem), "{pairs:?}: {error}");
        }
        assert!(io_of(&[("rw", "write"), ("verify", "null"), ("bs", "40")]).is_ok());
    }
}
