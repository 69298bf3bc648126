//! Text in XML.

use fathom_model::text::shown;

/// `text` as text: one line, and no character of it is markup.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in shown(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Of no use in XML.
            '\u{fffe}' | '\u{ffff}' => {}
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_is_markup() {
        assert_eq!(escaped("<a b=\"c\">&'\n\u{1b}"), "&lt;a b=&quot;c&quot;&gt;&amp;&#39;\\x0a\\x1b");
    }
}
