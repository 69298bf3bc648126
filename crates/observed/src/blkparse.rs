//! The text of blkparse in its usual form: `MAJOR,MINOR CPU NUMBER SECONDS PID ACTION RWBS SECTOR + SECTORS [PROGRAM]`.

use fathom_model::Op;
use fathom_workload::replay::{BlockAction, BlockEvent};

/// Bytes of a sector.
const SECTOR: u64 = 512;

/// Why a line that ends too early has no meaning.
const CUT_OFF: &str = "the line is cut off";

/// True for a line of that form.
pub(crate) fn is_line(line: &str) -> bool {
    head(line).is_some()
}

/// The beginning of a line, and the words after it.
fn head(line: &str) -> Option<(u32, u64, impl Iterator<Item = &str>)> {
    let (device, time, words) = place(line)?;
    Some((device, nanoseconds(time)?, words))
}

/// The device of a line, its time and the words after it.
fn place(line: &str) -> Option<(u32, &str, impl Iterator<Item = &str>)> {
    let mut words = line.split_whitespace();
    let (major, minor) = words.next()?.split_once(',')?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    let device = major.checked_mul(1 << 20)?.checked_add(minor).filter(|_| minor < 1 << 20)?;
    words.next()?.parse::<u64>().ok()?;
    words.next()?.parse::<u64>().ok()?;
    Some((device, words.next()?, words))
}

/// The event of a line; `None` for lines about anything else, the summary among them.
///
/// # Errors
/// Why a line about a request has no meaning.
pub(crate) fn parse(line: &str) -> Result<Option<BlockEvent>, String> {
    let Some((device, time, mut words)) = place(line) else { return Ok(None) };
    let at_ns = nanoseconds(time).ok_or_else(|| format!("'{time}' is not a time in seconds"))?;
    let (Some(process), Some(action), Some(kind)) = (words.next(), words.next(), words.next()) else {
        return Err(CUT_OFF.to_owned());
    };
    // Formats without it have some other word in its place.
    let thread = process.parse().unwrap_or(0);
    let action = match action {
        "Q" => BlockAction::Queue,
        "D" => BlockAction::Issue,
        "C" => BlockAction::Complete,
        _ => return Ok(None),
    };
    let op = match () {
        () if kind.contains('D') => Op::Trim,
        () if kind.contains('R') => Op::Read,
        () if kind.contains('W') => Op::Write,
        () if kind.contains('F') => Op::Sync,
        () => return Ok(None),
    };
    let rest: Vec<&str> = words.take(3).collect();
    let (offset, bytes) = match rest[..] {
        [sector, "+", count] => (bytes_of(sector)?, bytes_of(count)?),
        // A flush by itself, with the program that made it or its error.
        _ if line.trim_end().ends_with(']') => (0, 0),
        _ => return Err(CUT_OFF.to_owned()),
    };
    let len = u32::try_from(bytes).map_err(|_| format!("an I/O of {bytes} bytes is too large"))?;
    let op = if len == 0 { Op::Sync } else { op };
    Ok(Some(BlockEvent { at_ns, action, op, offset, len, device, thread }))
}

fn bytes_of(word: &str) -> Result<u64, String> {
    let sectors = word.parse::<u64>().map_err(|_| format!("'{word}' is not a number of sectors"))?;
    let bytes = sectors.checked_mul(SECTOR).filter(|&bytes| bytes <= i64::MAX as u64);
    bytes.ok_or_else(|| format!("no device has a sector {sectors}"))
}

/// Seconds with up to nine decimals, exactly.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, decimals) = text.split_once('.')?;
    let digits = decimals.len();
    if digits == 0 || digits > 9 {
        return None;
    }
    let fraction: u64 = decimals.parse().ok()?;
    let whole = seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?;
    whole.checked_add(fraction * 10u64.pow(9 - digits as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_requests_are_events() {
        let of = |rest: &str| parse(&format!("  8,16   1       17     0.000000100  4711  {rest}")).unwrap();
        let event = BlockEvent {
            at_ns: 100,
            action: BlockAction::Queue,
            op: Op::Read,
            offset: 4096,
            len: 4096,
            device: 8 << 20 | 16,
            thread: 4711,
        };
        assert_eq!(of("Q  RA 8 + 8 [fio]"), Some(event));
        assert_eq!(
            of("D  WS 8 + 8 [fio]"),
            Some(BlockEvent { action: BlockAction::Issue, op: Op::Write, ..event })
        );
        assert_eq!(
            of("C  DS 8 + 8 [0]"),
            Some(BlockEvent { action: BlockAction::Complete, op: Op::Trim, ..event })
        );
        assert_eq!(
            of("D  FN [fio]"),
            Some(BlockEvent { action: BlockAction::Issue, op: Op::Sync, offset: 0, len: 0, ..event })
        );
        assert_eq!(of("P   N [fio]"), None);
        assert_eq!(of("A   R 8 + 8 <- (8,17) 0"), None);
        assert_eq!(parse("CPU0 (sda):").unwrap(), None);
        assert_eq!(parse(" Reads Queued: 1, 4KiB").unwrap(), None);
    }

    #[test]
    fn broken_lines_are_refused() {
        let of = |rest: &str| parse(&format!("8,0 1 1 0.5 1 {rest}")).unwrap_err();
        assert_eq!(of("D R x + 8"), "'x' is not a number of sectors");
        assert_eq!(of("D R 8 + 99999999"), "an I/O of 51199999488 bytes is too large");
        assert_eq!(of("D R 18446744073709551615 + 8"), "no device has a sector 18446744073709551615");
        for rest in ["C", "C R", "C R 8", "C R 8 +", "D FN [fi"] {
            assert_eq!(of(rest), CUT_OFF, "{rest}");
        }
        assert_eq!(parse("8,0 1 1 0.x 1 C R 8 + 8 [0]").unwrap_err(), "'0.x' is not a time in seconds");
    }
}
