//! fio's syntax of patterns: `"text"`, `0xbytes`, decimal numbers, `%o` and `'file'`, one after the other.

use std::fs::File;
use std::io::Read;

use fathom_model::plan::FillPattern;

/// Most bytes of a pattern.
const LONGEST: usize = 64 << 10;

/// The pattern that `text` describes.
pub fn parse(text: &str) -> Result<FillPattern, String> {
    let mut pattern = FillPattern::default();
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(needed());
    }
    while !rest.is_empty() {
        rest = piece(&mut pattern, rest)?;
        if pattern.bytes.len() > LONGEST {
            return Err(format!("a pattern has at most {LONGEST} bytes"));
        }
    }
    if pattern.bytes.is_empty() { Err(needed()) } else { Ok(pattern) }
}

fn needed() -> String {
    "a pattern is needed: \"text\", 0xbytes, a number, %o, the name of a file in single quotes, or several of these".to_owned()
}

/// Adds the first piece of `text`; returns the rest.
fn piece<'a>(pattern: &mut FillPattern, text: &'a str) -> Result<&'a str, String> {
    if let Some(quoted) = text.strip_prefix('"') {
        let (string, rest) = quoted.split_once('"').ok_or("the text of a pattern ends with \"")?;
        pattern.bytes.extend_from_slice(string.as_bytes());
        return Ok(rest);
    }
    if let Some(rest) = text.strip_prefix("%o") {
        pattern.offsets.push(pattern.bytes.len());
        pattern.bytes.extend_from_slice(&[0; 8]);
        return Ok(rest);
    }
    if let Some(quoted) = text.strip_prefix('\'') {
        let (name, rest) = quoted.split_once('\'').ok_or("the name of the file of a pattern ends with '")?;
        add_file(pattern, name)?;
        return Ok(rest);
    }
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let end = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
        let (digits, rest) = hex.split_at(end);
        add_hex(pattern, digits)?;
        return Ok(rest);
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let end = match digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len()) {
        // "-120xdeadface" is -12 and 0xdeadface.
        end if end > 1 && digits[..end].ends_with('0') && digits[end..].starts_with(['x', 'X']) => end - 1,
        end => end,
    };
    let (number, rest) = text.split_at(text.len() - digits.len() + end);
    let value: i64 = number.parse().map_err(|_| needed())?;
    add_number(pattern, value);
    Ok(rest)
}

/// The bytes of a file. A pipe or a device, which may have no end, is refused.
fn add_file(pattern: &mut FillPattern, name: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot read the file of the pattern, {name}: {error}");
    if !std::fs::metadata(name).map_err(failed)?.is_file() {
        return Err(format!("the pattern {name} has to be a regular file"));
    }
    let file = File::open(name).map_err(failed)?;
    // One more byte than a pattern may have, so that a longer one is refused.
    file.take(LONGEST as u64 + 1).read_to_end(&mut pattern.bytes).map_err(failed)?;
    Ok(())
}

/// Bytes in the order of their digits; a missing first digit is 0.
fn add_hex(pattern: &mut FillPattern, digits: &str) -> Result<(), String> {
    if digits.is_empty() {
        return Err("hexadecimal digits are needed after 0x".to_owned());
    }
    let odd = digits.len() % 2;
    let starts = (0..digits.len().div_ceil(2)).map(|byte| (byte * 2).saturating_sub(odd));
    for (byte, start) in starts.enumerate() {
        let end = byte * 2 + 2 - odd;
        let value = u8::from_str_radix(&digits[start..end], 16).map_err(|_| needed())?;
        pattern.bytes.push(value);
    }
    Ok(())
}

/// The fewest bytes that hold `value`, lowest first.
fn add_number(pattern: &mut FillPattern, value: i64) {
    let bytes = value.to_le_bytes();
    let filler = if value < 0 { 0xff } else { 0 };
    let count = bytes.iter().rposition(|&byte| byte != filler).map_or(1, |last| last + 1);
    pattern.bytes.extend_from_slice(&bytes[..count]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_fio() {
        // The bytes that Debian's fio 3.33 writes.
        for (text, bytes, offsets) in [
            ("0xdeadbeef", vec![0xde, 0xad, 0xbe, 0xef], vec![]),
            ("0xabc", vec![0x0a, 0xbc], vec![]),
            ("258", vec![2, 1], vec![]),
            ("0", vec![0], vec![]),
            ("-1", vec![0xff], vec![]),
            ("\"abcd\"", b"abcd".to_vec(), vec![]),
            ("0x1234\"q\"", vec![0x12, 0x34, b'q'], vec![]),
            ("%o", vec![0; 8], vec![0]),
            ("\"abc\"%o0xff12", b"abc\0\0\0\0\0\0\0\0\xff\x12".to_vec(), vec![3]),
            ("\"abcd\"-120xdeadface", b"abcd\xf4\xde\xad\xfa\xce".to_vec(), vec![]),
            ("10", vec![10], vec![]),
        ] {
            let parsed = parse(text).unwrap();
            assert_eq!((parsed.bytes, parsed.offsets), (bytes, offsets), "{text}");
        }
        for bad in ["", "abc", "\"abc", "0x", "%x", "'file", "-", "\"\"", "0x12z", "12x5"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_file_is_part_of_a_pattern() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("bytes");
        std::fs::write(&path, b"\x01\x00\xff").unwrap();
        let name = path.display();
        let parsed = parse(&format!("\"a\"'{name}'%o")).unwrap();
        assert_eq!((&parsed.bytes[..4], &parsed.offsets[..]), (&b"a\x01\x00\xff"[..], &[4][..]));
        std::fs::write(&path, vec![1; LONGEST + 1]).unwrap();
        assert!(parse(&format!("'{name}'")).unwrap_err().contains("at most 65536 bytes"));
        std::fs::write(&path, b"").unwrap();
        assert!(parse(&format!("'{name}'")).is_err(), "an empty file has no pattern");
        for (bad, reason) in
            [("'no such'", "no such"), ("'/dev/zero'", "regular file"), ("'.'", "regular file")]
        {
            assert!(parse(bad).unwrap_err().contains(reason), "{bad}");
        }
    }
}
