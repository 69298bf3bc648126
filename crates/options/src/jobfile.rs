//! Job files: INI text with sections, comments, includes and variables, split into words.
//!
//! This module checks the syntax only; `section` interprets the words.

use std::io;
use std::path::Path;

use crate::arithmetic;
use crate::cli::ParseEnvironment;
use crate::error::{JobFilePosition, OptionError};
use crate::listed::without_number;
use crate::pasted::{as_meant, meant_name, meant_value};

/// Largest job file, includes included, in bytes. A reader need not return more than one byte above it.
pub const JOB_FILE_LIMIT: usize = 1 << 20;

/// Most option lines, because each takes far more memory than its text. The number of jobs is bounded elsewhere.
const MAX_LINES: usize = 65_536;

/// Deepest nesting of includes.
const MAX_INCLUDES: usize = 16;

/// A section as in the file.
#[derive(Debug, PartialEq)]
pub(crate) struct RawSection {
    pub(crate) name: String,
    pub(crate) lines: Vec<RawLine>,
}

/// An option line of a section, variables replaced.
#[derive(Debug, PartialEq)]
pub(crate) struct RawLine {
    pub(crate) key: String,
    pub(crate) value: Option<String>,
    pub(crate) place: JobFilePosition,
}

/// A job file, split into words.
pub(crate) struct RawJobFile {
    pub(crate) sections: Vec<RawSection>,
    /// Notes for the user: values that were read otherwise than they are written.
    pub(crate) notes: Vec<String>,
}

/// Reads and splits the job file at `path`; `-` is standard input.
pub(crate) fn parse(path: &Path, env: &ParseEnvironment<'_>) -> Result<RawJobFile, OptionError> {
    let found = RawJobFile { sections: Vec::new(), notes: Vec::new() };
    let mut parser = JobFileParser { env, found, bytes: 0, lines: 0 };
    let bytes = (env.read_file)(path).map_err(|source| unreadable(path, source))?;
    parser.text(path, &bytes, 0)?;
    Ok(parser.found)
}

struct JobFileParser<'a> {
    env: &'a ParseEnvironment<'a>,
    found: RawJobFile,
    bytes: usize,
    /// Option lines so far.
    lines: usize,
}

fn unreadable(path: &Path, source: io::Error) -> OptionError {
    if source.kind() == io::ErrorKind::FileTooLarge {
        return too_large(path.display().to_string());
    }
    OptionError::open_job_file(path.display().to_string(), source)
}

fn too_large(file: String) -> OptionError {
    let reason = format!("it is larger than {} MiB", JOB_FILE_LIMIT >> 20);
    OptionError::job_file(&file, &reason, "check that this is a job file; a target is given with --filename")
}

fn refused(place: JobFilePosition, reason: &str, remedy: &str) -> OptionError {
    OptionError::job_file(&place.file, reason, remedy).at(Some(Box::new(place)))
}

impl JobFileParser<'_> {
    fn text(&mut self, path: &Path, bytes: &[u8], depth: usize) -> Result<(), OptionError> {
        let file = path.display().to_string();
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > JOB_FILE_LIMIT {
            return Err(too_large(file));
        }
        let text = decoded(&file, bytes)?;
        for (index, line) in text.lines().enumerate() {
            let place =
                JobFilePosition { file: file.clone(), line: index + 1, column: 1, text: line.to_owned() };
            self.line(path, place, depth)?;
        }
        Ok(())
    }

    fn line(&mut self, path: &Path, place: JobFilePosition, depth: usize) -> Result<(), OptionError> {
        let line = place.text.trim();
        if line.is_empty() || line.starts_with([';', '#']) {
            return Ok(());
        }
        if line.starts_with('[') {
            let written = section_name(line, &place)?;
            let name = meant_name(written);
            if name.is_empty() {
                let place = located(&place, line);
                return Err(refused(place, "the section has no name", "write [NAME], or [global]"));
            }
            if name != written {
                let JobFilePosition { file, line, .. } = &place;
                let note = as_meant(&format!("{file}:{line}: '[{written}]'"), &format!("'[{name}]'"));
                self.found.notes.push(note);
            }
            if depth > 0 {
                let remedy = "include only options, and open the section in the including file";
                return Err(refused(place, "No new sections in included files", remedy));
            }
            self.found.sections.push(RawSection { name, lines: Vec::new() });
            return Ok(());
        }
        // Text after a comment sign is dropped, inside values too, as in fio.
        let end = line.find([';', '#']).unwrap_or(line.len());
        let written = line[..end].trim_end().to_owned();
        let written = arithmetic::substitute(&written, self.env).map_err(|reason| {
            refused(located(&place, &written), &reason, "write the value as a plain number")
        })?;
        let written = written.trim();
        if let Some(name) = included(written) {
            return self.include(path, name, &place, depth);
        }
        let Some(section) = self.found.sections.last_mut() else {
            let reason = format!("option <{written}> outside of [] job section");
            return Err(refused(place, &reason, "add a line such as [global] or [job1] above it"));
        };
        let (key, value) = match written.split_once('=') {
            Some((key, value)) => (key.trim_end(), Some(value.trim_start())),
            None => (written, None),
        };
        if !key.is_empty() {
            self.lines += 1;
            if self.lines > MAX_LINES {
                let reason = format!("it has more than {MAX_LINES} option lines");
                return Err(refused(place, &reason, "split it into several job files"));
            }
            let place = located(&place, value.unwrap_or(key));
            let meant = value.map(meant_value);
            if let Some((value, meant)) = value.zip(meant).filter(|(value, meant)| value != meant) {
                let JobFilePosition { file, line, .. } = &place;
                self.found.notes.push(as_meant(&format!("{file}:{line}: '{value}'"), &format!("'{meant}'")));
            }
            section.lines.push(RawLine { key: key.to_owned(), value: meant.map(str::to_owned), place });
        }
        Ok(())
    }

    fn include(
        &mut self,
        path: &Path,
        name: &str,
        place: &JobFilePosition,
        depth: usize,
    ) -> Result<(), OptionError> {
        if depth >= MAX_INCLUDES {
            let reason = format!("includes are nested more than {MAX_INCLUDES} deep");
            return Err(refused(place.clone(), &reason, "check that no file includes itself"));
        }
        let beside = path.parent().map(|parent| parent.join(name)).unwrap_or_else(|| name.into());
        let (found, bytes) = match (self.env.read_file)(Path::new(name)) {
            Ok(bytes) => (Path::new(name).to_owned(), bytes),
            Err(_) => match (self.env.read_file)(&beside) {
                Ok(bytes) => (beside, bytes),
                Err(error) => {
                    let reason = format!("unable to open '{name}' job file: {}", without_number(&error));
                    return Err(refused(
                        located(place, name),
                        &reason,
                        "check the path of the included file",
                    ));
                }
            },
        };
        self.text(&found, &bytes, depth + 1)
    }
}

/// The position of `piece` in the line, if the line contains it unchanged.
fn located(place: &JobFilePosition, piece: &str) -> JobFilePosition {
    let column = match place.text.rfind(piece) {
        Some(start) if !piece.is_empty() => place.text[..start].chars().count() + 1,
        _ => place.text.chars().take_while(|c| c.is_whitespace()).count() + 1,
    };
    JobFilePosition { column, ..place.clone() }
}

/// The name between the brackets as it is written; it may be empty.
fn section_name<'l>(line: &'l str, place: &JobFilePosition) -> Result<&'l str, OptionError> {
    let ends = |rest: &str| rest.trim_start().is_empty() || rest.trim_start().starts_with([';', '#']);
    let end = line.char_indices().filter(|(_, c)| *c == ']').find(|(at, _)| ends(&line[at + 1..]));
    let Some((end, _)) = end else {
        return Err(refused(
            located(place, line),
            "the section has no closing ]",
            "write [NAME] alone on the line",
        ));
    };
    Ok(line[1..end].trim())
}

/// The file of an `include FILE` line.
fn included(line: &str) -> Option<&str> {
    let name = line.strip_prefix("include")?;
    let name = name.strip_prefix([' ', '\t'])?.trim();
    (!name.is_empty() && !name.starts_with('=')).then_some(name)
}

/// Decodes the text of a job file; the error shows the first byte that is not text.
fn decoded<'b>(file: &str, bytes: &'b [u8]) -> Result<&'b str, OptionError> {
    let zero = bytes.iter().position(|byte| *byte == 0);
    let (text, bad) = match std::str::from_utf8(bytes) {
        Ok(text) => (text, zero),
        Err(error) => {
            let end = error.valid_up_to();
            ("", Some(zero.map_or(end, |zero| zero.min(end))))
        }
    };
    let Some(bad) = bad else { return Ok(text.strip_prefix('\u{feff}').unwrap_or(text)) };
    let before = &bytes[..bad];
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    let place = JobFilePosition {
        file: file.to_owned(),
        line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
        column: String::from_utf8_lossy(&before[start..]).chars().count() + 1,
        text: String::from_utf8_lossy(&bytes[start..bytes.len().min(bad + 64)])
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned(),
    };
    let reason = format!("it is binary: byte 0x{:02x} is not text", bytes[bad]);
    Err(refused(place, &reason, "use a text file in fio's job format; a target is given with --filename"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::tests::environment;

    type Sections<T> = Vec<(T, Vec<(T, Option<T>)>)>;
    type Expected<'a> = (&'a str, &'a [(&'a str, Option<&'a str>)]);

    fn parsed(files: &[(&str, &[u8])]) -> Result<Sections<String>, String> {
        let env = environment(files);
        let found = parse(Path::new(files[0].0), &env).map_err(|error| error.to_string())?;
        Ok(found
            .sections
            .into_iter()
            .map(|section| {
                (section.name, section.lines.into_iter().map(|line| (line.key, line.value)).collect())
            })
            .collect())
    }

    fn check(text: &str, expected: &[Expected<'_>]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, lines)| {
                let lines: Vec<_> =
                    lines.iter().map(|(key, value)| (key.to_string(), value.map(str::to_owned))).collect();
                (name.to_string(), lines)
            })
            .collect();
        assert_eq!(parsed(&[("j", text.as_bytes())]), Ok(expected), "{text:?}");
    }

    #[test]
    fn sections_options_and_comments() {
        check("", &[]);
        check("; note\n# note\n\n", &[]);
        check("[a]\nrw=read\nthread\n", &[("a", &[("rw", Some("read")), ("thread", None)])]);
        check("  [a]  ; x\r\n\t rw = read ; note\r\n", &[("a", &[("rw", Some("read"))])]);
        check("[a]\nfilename=x#y\n", &[("a", &[("filename", Some("x"))])]);
        check(
            "[a b]\nsize=\n[c]\nname=d=e",
            &[("a b", &[("size", Some(""))]), ("c", &[("name", Some("d=e"))])],
        );
        check("\u{feff}[a]\nfilename=${DIR}\n", &[("a", &[("filename", Some("/data"))])]);
        check("[a]\n=4\n", &[("a", &[])]);
        check("[a]\ninclude=x\n", &[("a", &[("include", Some("x"))])]);
    }

    #[test]
    fn includes_add_options() {
        let files: &[(&str, &[u8])] =
            &[("d/j", b"[a]\ninclude i\nrw=read"), ("d/i", b"bs=1k\ninclude k ; note\n"), ("k", b"size=1m")];
        let lines = &parsed(files).unwrap()[0].1;
        let keys: Vec<&str> = lines.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["bs", "size", "rw"]);
    }

    #[test]
    fn errors_have_no_numbers_of_the_system() {
        let read_file = |path: &Path| match path.to_str() {
            Some("j") => Ok(b"[a]\ninclude nope\n".to_vec()),
            _ => Err(std::io::Error::from_raw_os_error(2)),
        };
        let env = ParseEnvironment { read_file: &read_file, ..environment(&[]) };
        let error = parse(Path::new("j"), &env).err().unwrap().to_string();
        assert!(error.contains("unable to open 'nope' job file: No such file or directory\n"), "{error}");
    }

    #[test]
    fn errors_name_file_line_and_column() {
        for (text, start, place) in [
            (&b"size=1m\n[a]\n"[..], "fio: job file j: option <size=1m> outside of [] job section", "j:1:1"),
            (b"[a\nrw=read", "fio: job file j: the section has no closing ]", "j:1:1"),
            (b"\n  [c]x", "fio: job file j: the section has no closing ]", "j:2:3"),
            (b"[]", "fio: job file j: the section has no name", "j:1:1"),
            (b"[a]\ninclude nope", "fio: job file j: unable to open 'nope' job file", "j:2:9"),
            (b"[a]\nrw=\x00read", "fio: job file j: it is binary: byte 0x00", "j:2:4"),
            (b"[a]\n\n\xff\xfe", "fio: job file j: it is binary: byte 0xff", "j:3:1"),
            (b"[a]\nnumjobs=$ncpus/0", "fio: job file j: division by zero", "j:2:1"),
            (b"[a]\ninclude j", "fio: job file j: No new sections in included files", "j:1:1"),
        ] {
            let error = parsed(&[("j", text)]).unwrap_err();
            assert!(error.starts_with(start), "{error}");
            assert!(error.contains(&format!("--> {place}\n")), "{error}");
        }
    }

    #[test]
    fn size_and_nesting_are_bounded() {
        let large = vec![b'\n'; JOB_FILE_LIMIT + 1];
        assert!(parsed(&[("j", &large)]).unwrap_err().contains("larger than 1 MiB"));
        let many = [&b"[a]\n"[..], &b"a\n".repeat(100_000)].concat();
        let error = parsed(&[("j", &many)]).unwrap_err();
        assert!(error.contains("more than 65536 option lines"), "{error}");
        let error = parsed(&[("j", b"[a]\ninclude i"), ("i", b"include i")]).unwrap_err();
        assert!(error.contains("nested more than 16 deep"), "{error}");
        let bomb = b"include i\n".repeat(100);
        assert!(parsed(&[("j", b"[a]\ninclude i"), ("i", &bomb)]).is_err());
        assert!(parsed(&[("missing", b"")]).is_ok());
        assert!(parse(Path::new("nofile"), &environment(&[])).is_err());
    }
}
