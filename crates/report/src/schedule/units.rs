//! The systemd service and timer of a schedule, as text.
//!
//! The timer starts the service at each slot, and the service runs what is due then. Paths and arguments may hold anything: they are
//! quoted by the rules of systemd.service(5) and systemd.syntax(7).

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use fathom_record::RunSchedule;
use jiff::Timestamp;

/// Most instants that a timer lists one by one.
const MOST_INSTANTS: u64 = 2_000;
const DAY_MS: u64 = 86_400_000;
const HOUR_MS: u64 = 3_600_000;
const MINUTE_MS: u64 = 60_000;

/// Both units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleUnits {
    /// The name of the units without their ending.
    pub name: String,
    /// The text of the service.
    pub service: String,
    /// The text of the timer.
    pub timer: String,
}

/// A schedule or path that units cannot express.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitError {
    /// What cannot be expressed.
    pub reason: String,
    /// The remedy.
    pub hint: String,
}

/// What the service runs.
#[derive(Clone, Debug)]
pub struct UnitCommand<'a> {
    /// The absolute path of the program.
    pub program: &'a Path,
    /// Its arguments.
    pub arguments: &'a [OsString],
    /// The directory that relative paths start from, absolute.
    pub directory: &'a Path,
    /// The target, for people.
    pub target: &'a str,
}

/// The units of `schedule`.
///
/// # Errors
/// The instants or the directory cannot be expressed.
pub fn units(schedule: &RunSchedule, command: &UnitCommand<'_>) -> Result<ScheduleUnits, UnitError> {
    let name = format!("fathom-{}", schedule.name);
    let words =
        std::iter::once(command.program.as_os_str()).chain(command.arguments.iter().map(OsString::as_os_str));
    let line: Vec<String> = words.map(quoted).collect();
    let description = format!("fathom schedule {} on {}", schedule.name, command.target);
    let service = format!(
        "[Unit]\nDescription={}\n\n[Service]\nType=oneshot\nWorkingDirectory={}\nExecStart={}\n",
        plain_text(&description),
        directory(command.directory)?,
        line.join(" ")
    );
    let mut timer = format!("[Unit]\nDescription={}\n\n[Timer]\n", plain_text(&description));
    for expression in calendar(schedule)? {
        let _ = writeln!(timer, "OnCalendar={expression}");
    }
    timer.push_str("AccuracySec=100ms\nPersistent=false\n\n[Install]\nWantedBy=timers.target\n");
    Ok(ScheduleUnits { name, service, timer })
}

/// A word of a command line: quoted unless it is plain; `%` begins a specifier and `$` a variable, quoted or not.
fn quoted(word: &OsStr) -> String {
    let mut text = String::new();
    let mut is_plain = !word.is_empty();
    for chunk in word.as_bytes().utf8_chunks() {
        for letter in chunk.valid().chars() {
            is_plain &= letter.is_ascii_alphanumeric() || "/._-+=:,@%$".contains(letter);
            match letter {
                '%' | '$' => text.extend([letter, letter]),
                '"' | '\\' => text.extend(['\\', letter]),
                letter if letter.is_control() => {
                    let mut bytes = [0; 4];
                    text.extend(letter.encode_utf8(&mut bytes).bytes().map(escaped));
                }
                letter => text.push(letter),
            }
        }
        is_plain &= chunk.invalid().is_empty();
        text.extend(chunk.invalid().iter().copied().map(escaped));
    }
    if is_plain { text } else { format!("\"{text}\"") }
}

fn escaped(byte: u8) -> String {
    format!("\\x{byte:02x}")
}

/// A line of text, in which only specifiers and line ends have a meaning.
fn plain_text(text: &str) -> String {
    let shown: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    shown.replace('%', "%%").replace('\\', "/")
}

/// A directory as the rest of a line, where nothing is quoted: `/.` keeps blanks and backslashes at its end.
fn directory(path: &Path) -> Result<String, UnitError> {
    match path.to_str().filter(|text| !text.chars().any(char::is_control)) {
        Some(text) if text.ends_with([' ', '\\']) => Ok(format!("{}/.", text.replace('%', "%%"))),
        Some(text) => Ok(text.replace('%', "%%")),
        None => Err(UnitError {
            reason: "a systemd unit cannot name the current directory: its path is not UTF-8, or has control characters"
                .to_owned(),
            hint: "change to another directory and use absolute paths".to_owned(),
        }),
    }
}

/// The instants of the slots as calendar expressions: one that repeats where the interval divides an hour or a day, else all of them.
fn calendar(schedule: &RunSchedule) -> Result<Vec<String>, UnitError> {
    let every_ms = schedule.every_ms;
    let at = |slot: u64| {
        let ms = i64::try_from(schedule.instant_of(slot)).unwrap_or_default();
        Timestamp::from_millisecond(ms).unwrap_or_default()
    };
    let is_whole = every_ms.is_multiple_of(1000) && schedule.begins_unix_ms.is_multiple_of(1000);
    if !is_whole {
        return Err(UnitError {
            reason: "the instants of a timer are whole seconds".to_owned(),
            hint: "use an --every in whole seconds".to_owned(),
        });
    }
    let field = |unit_ms: u64, range: u64| {
        let step = every_ms / unit_ms;
        let first = schedule.begins_unix_ms / unit_ms % range % step.max(1);
        if step == range {
            format!("{:02}", schedule.begins_unix_ms / unit_ms % range)
        } else {
            format!("{first:02}/{step}")
        }
    };
    let begins = at(0);
    let divides = |unit_ms: u64, whole_ms: u64| {
        every_ms.is_multiple_of(unit_ms) && every_ms <= whole_ms && whole_ms.is_multiple_of(every_ms)
    };
    let repeated = match () {
        () if divides(HOUR_MS, DAY_MS) => {
            Some(format!("*-*-* {}:{}", field(HOUR_MS, 24), begins.strftime("%M:%S")))
        }
        () if divides(MINUTE_MS, HOUR_MS) => {
            Some(format!("*-*-* *:{}:{}", field(MINUTE_MS, 60), begins.strftime("%S")))
        }
        () if divides(1000, MINUTE_MS) => Some(format!("*-*-* *:*:{}", field(1000, 60))),
        () => None,
    };
    if let Some(expression) = repeated {
        return Ok(vec![format!("{expression} UTC")]);
    }
    let slots = schedule.slots();
    if slots > MOST_INSTANTS {
        return Err(UnitError {
            reason: format!(
                "an interval that divides neither an hour nor a day needs {slots} instants in a timer"
            ),
            hint: "use an --every that divides an hour or a day: 10m, 15m, 30m, 1h, 6h".to_owned(),
        });
    }
    Ok((0..slots).map(|slot| at(slot).strftime("%Y-%m-%d %H:%M:%S UTC").to_string()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-23 03:17:05 UTC.
    const BEGINS_MS: u64 = 1_795_403_825_000;

    fn expressions(every_s: u64, lasts_s: u64) -> Result<Vec<String>, UnitError> {
        let schedule = RunSchedule {
            name: "nightly".to_owned(),
            begins_unix_ms: BEGINS_MS,
            every_ms: every_s * 1000,
            lasts_ms: lasts_s * 1000,
            ..RunSchedule::default()
        };
        calendar(&schedule)
    }

    #[test]
    fn slots_become_calendar_expressions() {
        for (every_s, expected) in [
            (86_400, "*-*-* 03:17:05 UTC"),
            (6 * 3600, "*-*-* 03/6:17:05 UTC"),
            (3600, "*-*-* 00/1:17:05 UTC"),
            (900, "*-*-* *:02/15:05 UTC"),
            (60, "*-*-* *:00/1:05 UTC"),
            (20, "*-*-* *:*:05/20 UTC"),
        ] {
            assert_eq!(expressions(every_s, 604_800).unwrap(), [expected], "{every_s}");
        }
        let odd = expressions(5 * 3600, 15 * 3600).unwrap();
        assert_eq!(odd, ["2026-11-23 03:17:05 UTC", "2026-11-23 08:17:05 UTC", "2026-11-23 13:17:05 UTC"]);
        assert!(expressions(7 * 60, 604_800).is_ok());
        assert!(expressions(61, 604_800).is_err_and(|error| error.reason.contains("needs 9915 instants")));
    }

    #[test]
    fn words_are_quoted_by_systemds_rules() {
        let check = |word: &[u8], expected: &str| assert_eq!(quoted(OsStr::from_bytes(word)), expected);
        check(b"/usr/bin/fathom", "/usr/bin/fathom");
        check(b"--every=1h", "--every=1h");
        check(b"", "\"\"");
        check(b"/mnt/my disk", "\"/mnt/my disk\"");
        check(b"100%", "100%%");
        check(b"$HOME/x;y", "\"$$HOME/x;y\"");
        check(b"a\"b\\c'd", "\"a\\\"b\\\\c'd\"");
        check(b"line\nend\t", "\"line\\x0aend\\x09\"");
        check(b"caf\xe9", "\"caf\\xe9\"");
        check("µ".as_bytes(), "\"µ\"");
        let of = |text: &str| directory(Path::new(text));
        assert_eq!(of("/mnt/a b%"), Ok("/mnt/a b%%".to_owned()));
        assert_eq!(of("/mnt/blank "), Ok("/mnt/blank /.".to_owned()));
        assert!(of("/mnt/a\nb").is_err());
    }
}
