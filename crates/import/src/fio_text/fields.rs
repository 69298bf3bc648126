//! The fields `key=value` of a segment, wherever they stand.

/// The fields of a text.
pub(super) struct Fields<'a> {
    fields: Vec<(&'a str, &'a str)>,
}

impl<'a> Fields<'a> {
    /// Every field; the text between two is left out.
    pub fn of(text: &'a str) -> Fields<'a> {
        let mut fields = Vec::new();
        for (at, _) in text.match_indices('=') {
            // The sign of `>=64=` belongs to the key.
            if text[..at].ends_with('>') {
                continue;
            }
            let before = text[..at].trim_end();
            let start = before
                .rfind(|c: char| c.is_whitespace() || ",;|([".contains(c))
                .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
            let value = value(&text[at + 1..]);
            fields.push((&before[start..], value));
        }
        Fields { fields }
    }

    /// The value of the first field with this key.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.fields.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.fields.iter().copied()
    }
}

/// The value at the beginning of `text`: up to a comma, or to a blank that no unit follows.
fn value(text: &str) -> &str {
    let text = text.trim_start_matches([' ', '\t']);
    if let Some(inside) = text.strip_prefix('[') {
        return inside.split(']').next().unwrap_or(inside).trim();
    }
    let end = text.find(|c: char| c.is_whitespace() || ",;()[]|".contains(c)).unwrap_or(text.len());
    let first = &text[..end];
    // `bw=104 KB/s`: a blank came between number and unit.
    let is_number = !first.is_empty() && first.chars().all(|c| c.is_ascii_digit() || c == '.');
    let behind = text[end..].trim_start_matches(' ');
    let unit_end = behind.find(|c: char| !c.is_ascii_alphabetic() && c != '/').unwrap_or(behind.len());
    let is_unit = is_number && !text[end..].starts_with('\n') && UNITS.contains(&&behind[..unit_end]);
    if !is_unit {
        // `err= 0: pid=1`.
        return first.trim_end_matches(':');
    }
    let length = text.len() - behind.len() + unit_end;
    &text[..length]
}

/// Units that may stand apart from their number.
const UNITS: &[&str] = &[
    "B/s", "KB/s", "kB/s", "KiB/s", "MB/s", "MiB/s", "GB/s", "GiB/s", "B", "KB", "kB", "KiB", "MB", "MiB",
    "GB", "GiB", "msec", "usec", "nsec", "sec", "k", "K", "M",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_with_or_without_blanks() {
        let check = |text: &str, key: &str, expected: Option<&str>| {
            assert_eq!(Fields::of(text).get(key), expected, "{text}");
        };
        check(" io=4096.0MB, bw=346522KB/s, iops=86630 , runt= 12104msec", "runt", Some("12104msec"));
        check(" io=4096.0MB,bw=346522KB/s,iops=86630,runt=12104msec", "iops", Some("86630"));
        check("io=1MB, bw= 104 KB/s, iops=26", "bw", Some("104 KB/s"));
        check("min=2 , max=4027 , avg= 3.77", "max", Some("4027"));
        check("| 99.99th=[  545]", "99.99th", Some("545"));
        check("32=0.1%, >=64=100.0%", ">=64", Some("100.0%"));
        check("err= 0: pid=2584: Fri", "err", Some("0"));
        check("err= 0: pid=2584: Fri", "pid", Some("2584"));
        check("IOPS=52.7k, BW=206MiB/s (216MB/s)(412MiB/2001msec)", "BW", Some("206MiB/s"));
        check("bw=, iops=", "bw", Some(""));
        check("min=1\nmsec", "min", Some("1"));
    }
}
