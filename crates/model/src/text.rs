//! Untrusted text in a form that is safe to print: names of jobs, files, devices and processes, lines of job files,
//! error messages of the system.
//!
//! Records, JSON documents and errors keep such text unchanged. It is escaped once, when it becomes a line of output:
//! all text is printed through `fathom_report::TextWriter`, which calls [`shown`].

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;

/// True for characters that control a terminal, or that move or hide others: control characters, line separators,
/// direction marks and zero-width characters.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e007f}')
}

/// `text` with an escape (`\x1b`, `\u{202e}`) in place of each hidden character; the result is always one line. A
/// backslash that could be read as the start of such an escape is doubled, so that the original can be recovered. Must
/// not be applied twice.
pub fn shown(text: &str) -> Cow<'_, str> {
    escaped(text, true)
}

/// Like [`shown`], but printable text stays unchanged even if it looks like an escape: for formats that scripts read,
/// commands that people copy, and texts of fathom that contain escapes.
pub fn defused(text: &str) -> Cow<'_, str> {
    escaped(text, false)
}

fn escaped(text: &str, doubles: bool) -> Cow<'_, str> {
    let is_plain = |byte: u8| (b' '..0x7f).contains(&byte) && (byte != b'\\' || !doubles);
    if text.bytes().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c == '\\' && doubles {
            let after = rest.trim_start_matches('\\');
            let run = &rest[..rest.len() - after.len()];
            out.push_str(run);
            if needs_doubling(after) {
                out.push_str(run);
            }
            rest = after;
            continue;
        }
        push(&mut out, c);
        rest = &rest[c.len_utf8()..];
    }
    Cow::Owned(out)
}

fn push(out: &mut String, c: char) {
    // Writing to a string cannot fail.
    let _ = match c {
        _ if !is_hidden(c) => out.write_char(c),
        _ if c.is_ascii() => write!(out, "\\x{:02x}", u32::from(c)),
        _ => write!(out, "\\u{{{:x}}}", u32::from(c)),
    };
}

/// True if a backslash before `after` would read as an escape: an escape follows, or text that looks like the rest of
/// one.
fn needs_doubling(after: &str) -> bool {
    let (digits, is_short) = match after.as_bytes() {
        [b'x', ..] => (after.get(1..3), true),
        [b'u', b'{', ..] => (after[2..].split_once('}').map(|(digits, _)| digits), false),
        _ => return after.chars().next().is_some_and(is_hidden),
    };
    let Some(c) = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).and_then(char::from_u32)
    else {
        return false;
    };
    let mut escape = String::new();
    push(&mut escape, c);
    is_hidden(c) && c.is_ascii() == is_short && after.starts_with(&escape[1..])
}

/// The first `most` of several names, and how many more there are: `a, b and 3 more`.
pub fn listed<T: AsRef<str>>(names: &[T], most: usize) -> String {
    let shown = names.iter().take(most).map(AsRef::as_ref).collect::<Vec<&str>>().join(", ");
    match names.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// `text` as one word of a POSIX shell, on one line and in printable characters.
pub fn shell_quoted(text: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:,=+%@-".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        Cow::Borrowed(text)
    } else if text.chars().any(is_hidden) {
        Cow::Owned(ansi_quoted(text))
    } else {
        Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
    }
}

/// `$'…'` (POSIX since 2024), with an octal escape per byte of a hidden character.
fn ansi_quoted(text: &str) -> String {
    let mut word = "$'".to_owned();
    for c in text.chars() {
        match c {
            '\'' | '\\' => word.extend(['\\', c]),
            _ if is_hidden(c) => {
                c.to_string().bytes().for_each(|byte| word.push_str(&format!("\\{byte:03o}")));
            }
            _ => word.push(c),
        }
    }
    word.push('\'');
    word
}

/// The system's message for an error, without its number.
pub fn errno_text(errno: i32) -> String {
    let text = io::Error::from_raw_os_error(errno).to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (text, expected) in [
            ("4k", "4k"),
            ("/dev/disk/by-id/x:y", "/dev/disk/by-id/x:y"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("$HOME", "'$HOME'"),
            ("~/x", "'~/x'"),
            ("", "''"),
            ("a\n; rm -rf 'x'", r"$'a\012; rm -rf \'x\''"),
            ("\x1b[2J\\n\u{202e}", r"$'\033[2J\\n\342\200\256'"),
        ] {
            assert_eq!(shell_quoted(text), expected);
        }
    }

    #[test]
    fn hidden_characters_become_escapes_and_all_others_stay() {
        for (text, expected) in [
            ("plain", "plain"),
            ("größe 日本 🙂", "größe 日本 🙂"),
            ("\x1b]0;x\x07", r"\x1b]0;x\x07"),
            ("a\nb\r\tc\0\x7f", r"a\x0ab\x0d\x09c\x00\x7f"),
            ("\u{9b}31m", r"\u{9b}31m"),
            (
                "\u{202e}gnp.exe\u{2069}\u{200b}\u{2028}\u{feff}",
                r"\u{202e}gnp.exe\u{2069}\u{200b}\u{2028}\u{feff}",
            ),
            // Printable text that looks like an escape.
            (r"\x1b", r"\\x1b"),
            (r"\\x1b", r"\\\\x1b"),
            ("\\\x1b", r"\\\x1b"),
            (r"\u{202e}", r"\\u{202e}"),
            // Escapes of other programs, such as udev's, and paths of other systems.
            (r"/dev/disk/by-label/my\x20disk", r"/dev/disk/by-label/my\x20disk"),
            (r"C:\new\users\x \u{41} \x1B \", r"C:\new\users\x \u{41} \x1B \"),
        ] {
            assert_eq!(shown(text), expected, "{text:?}");
        }
        assert_eq!(defused("\\x1b\x1b"), r"\x1b\x1b");
    }

    /// The original text of `shown`.
    fn read_back(shown: &str) -> String {
        let mut text = String::new();
        let mut rest = shown;
        while let Some(c) = rest.chars().next() {
            let after = rest.trim_start_matches('\\');
            let run = rest.len() - after.len();
            if run == 0 {
                text.push(c);
                rest = &rest[c.len_utf8()..];
                continue;
            }
            rest = after;
            if !needs_doubling(after) {
                text.push_str(&"\\".repeat(run));
                continue;
            }
            text.push_str(&"\\".repeat(run / 2));
            if run % 2 == 1 {
                let length = if after.starts_with('x') { 3 } else { after.find('}').unwrap() + 1 };
                let digits = after[1..length].trim_matches(['{', '}']);
                text.push(u32::from_str_radix(digits, 16).ok().and_then(char::from_u32).unwrap());
                rest = &after[length..];
            }
        }
        text
    }

    proptest! {
        #[test]
        fn shown_text_has_no_hidden_characters_and_can_be_read_back(
            pieces in prop::collection::vec(
                prop_oneof![
                    any::<char>().prop_map(String::from),
                    "[\\\\xu{}0-9a-f]{1,4}",
                    "[\\x00-\\x1f\\x7f-\\x9f\u{202a}-\u{202e}\u{2066}-\u{2069}\u{200b}]",
                    Just(r"\x1b".to_owned()),
                    Just(r"\u{202e}".to_owned()),
                ],
                0..12,
            ),
        ) {
            let text = pieces.concat();
            let once = shown(&text);
            prop_assert!(!once.chars().any(is_hidden));
            prop_assert_eq!(read_back(&once), text.as_str());
            prop_assert!(!defused(&text).chars().any(is_hidden));
            prop_assert_eq!(defused(&once), once.clone());
        }
    }
}
