//! The characters of a file, in the encoding that it names or has.

use std::borrow::Cow;

use chardetng::EncodingDetector;
use encoding_rs::{Encoding, UTF_8};

/// Bytes in which a page names its encoding.
const MAX_HEAD: usize = 4096;

/// The text of a file: by its byte order mark, else UTF-8 where it is that, else by the encoding that the page names, else by the
/// one that its bytes look like. What is not of that encoding becomes U+FFFD.
pub fn decode(bytes: &[u8]) -> Cow<'_, str> {
    if let Some((encoding, length)) = Encoding::for_bom(bytes) {
        return encoding.decode_without_bom_handling(&bytes[length..]).0;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => named(bytes).unwrap_or_else(|| likely(bytes)).decode_without_bom_handling(bytes).0,
    }
}

/// The encoding of `<meta charset="gbk">`, or of a `content` with `charset=gbk`.
fn named(bytes: &[u8]) -> Option<&'static Encoding> {
    let head: String = bytes.iter().take(MAX_HEAD).map(|&byte| char::from(byte)).collect();
    let head = head.to_ascii_lowercase();
    head.match_indices("<meta").find_map(|(at, _)| {
        let tag = head[at..].split('>').next()?;
        let (_, behind) = tag.split_once("charset")?;
        let label = behind.trim_start().strip_prefix('=')?.trim_start_matches(['"', '\'', ' ']);
        let end = label.find(['"', '\'', ' ', ';', '/']).unwrap_or(label.len());
        // A page whose tags can be read byte for byte is in no encoding of two bytes a letter.
        Encoding::for_label(&label.as_bytes()[..end]).filter(|encoding| encoding.is_ascii_compatible())
    })
}

/// The encoding that bytes look like; UTF-8 where most letters beyond ASCII are of that.
fn likely(bytes: &[u8]) -> &'static Encoding {
    let (mut letters, mut broken) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        letters += chunk.valid().chars().filter(|letter| !letter.is_ascii()).count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    if letters >= broken {
        return UTF_8;
    }
    let mut detector = EncodingDetector::new();
    detector.feed(bytes, true);
    detector.guess(None, false)
}

#[cfg(test)]
mod tests {
    use encoding_rs::{BIG5, GB18030, GBK, ISO_8859_2, KOI8_R, WINDOWS_1251, WINDOWS_1252};

    use super::*;

    #[test]
    fn the_mark_at_the_beginning_tells() {
        let little: Vec<u8> = "\u{feff}read µ".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = "\u{feff}read µ".encode_utf16().flat_map(u16::to_be_bytes).collect();
        for bytes in [little, big, b"\xef\xbb\xbfread \xc2\xb5".to_vec()] {
            assert_eq!(decode(&bytes), "read µ");
        }
    }

    #[test]
    fn a_page_is_in_the_encoding_that_it_names() {
        for (encoding, name) in [
            (WINDOWS_1251, "Диск"),
            (KOI8_R, "Диск"),
            (GBK, "高效云盘"),
            (GB18030, "高效云盘"),
            (BIG5, "磁碟"),
            (WINDOWS_1252, "Gerät"),
            (ISO_8859_2, "dysk łącznie"),
        ] {
            let label = encoding.name();
            for meta in [
                format!("<meta charset=\"{label}\">"),
                format!("<META http-equiv='Content-Type' content='text/html; charset={label}'/>"),
            ] {
                let page = format!("<html>{meta}<table><tr><td>{name}</td></tr></table>");
                assert_eq!(decode(&encoding.encode(&page).0), page);
            }
        }
        // A page that is UTF-8 is read as that, whatever it says.
        let page = "<meta charset=gb2312><p>Диск</p>";
        assert_eq!(decode(page.as_bytes()), page);
        assert_eq!(decode(b"<meta charset=iso-8859-1><p>Ger\xe4t"), "<meta charset=iso-8859-1><p>Gerät");
    }

    #[test]
    fn without_a_name_the_bytes_tell() {
        for (encoding, text) in [
            (GBK, "高效云盘的随机读性能，普通云盘的随机写性能"),
            (WINDOWS_1251, "Скорость чтения старого диска и нового диска"),
        ] {
            assert_eq!(decode(&encoding.encode(text).0), text);
        }
        // A broken letter of a text in UTF-8 does not change the others.
        assert_eq!(decode("µs — 5\u{a0}\u{b5}".as_bytes().split_last().unwrap().1), "µs — 5\u{a0}\u{fffd}");
    }
}
