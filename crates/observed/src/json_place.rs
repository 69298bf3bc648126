//! Finds the line of a value in the text of a JSON document that has been parsed before.

use crate::json::JsonStep;

/// The line, from 1, on which the value at `path` begins; `None` where there is none.
pub(crate) fn line_of(text: &str, path: &[JsonStep]) -> Option<u64> {
    let mut scanner = JsonScanner { bytes: text.as_bytes(), at: 0 };
    scanner.skip_blanks();
    for step in path {
        match step {
            JsonStep::Key(key) => scanner.enter_member(key)?,
            JsonStep::Index(index) => scanner.enter_item(*index)?,
        }
    }
    Some(scanner.bytes[..scanner.at].iter().filter(|byte| **byte == b'\n').count() as u64 + 1)
}

/// A place in a valid document.
struct JsonScanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl JsonScanner<'_> {
    fn skip_blanks(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    /// Takes `sign` and the blanks behind it.
    fn take(&mut self, sign: u8) -> Option<()> {
        if self.bytes.get(self.at) != Some(&sign) {
            return None;
        }
        self.at += 1;
        self.skip_blanks();
        Some(())
    }

    /// From an object to the value of its member `key`.
    fn enter_member(&mut self, key: &str) -> Option<()> {
        self.take(b'{')?;
        loop {
            let from = self.at;
            self.skip_text()?;
            let name: String = serde_json::from_slice(&self.bytes[from..self.at]).ok()?;
            self.skip_blanks();
            self.take(b':')?;
            if name == key {
                return Some(());
            }
            self.skip_value()?;
            self.take(b',')?;
        }
    }

    /// From an array to its item number `index`.
    fn enter_item(&mut self, index: usize) -> Option<()> {
        self.take(b'[')?;
        for _ in 0..index {
            self.skip_value()?;
            self.take(b',')?;
        }
        Some(())
    }

    fn skip_text(&mut self) -> Option<()> {
        if self.bytes.get(self.at) != Some(&b'"') {
            return None;
        }
        self.at += 1;
        loop {
            match self.bytes.get(self.at)? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Some(())
    }

    /// Takes a value, whatever is in it, and the blanks behind it.
    fn skip_value(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.bytes.get(self.at)? {
                b'"' => self.skip_text()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' if depth == 0 => break,
                b'}' | b']' => {
                    depth -= 1;
                    self.at += 1;
                }
                b',' if depth == 0 => break,
                _ => self.at += 1,
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found() {
        let text = "\n{ \"a\": [1, {\"x\\\"y\": \"}]\\\\\"},\n {\"b\" :\n 2}],\n\"c\": {}}";
        let key = |key: &str| JsonStep::Key(key.to_owned());
        assert_eq!(line_of(text, &[]), Some(2));
        assert_eq!(line_of(text, &[key("a"), JsonStep::Index(1), key("x\"y")]), Some(2));
        assert_eq!(line_of(text, &[key("a"), JsonStep::Index(2), key("b")]), Some(4));
        assert_eq!(line_of(text, &[key("c")]), Some(5));
        for path in [
            vec![key("d")],
            vec![key("c"), key("d")],
            vec![JsonStep::Index(0)],
            vec![key("a"), JsonStep::Index(9)],
        ] {
            assert_eq!(line_of(text, &path), None, "{path:?}");
        }
    }
}
