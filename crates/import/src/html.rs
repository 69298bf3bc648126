//! The text of a page in HTML: a line for each block, the lines of preformatted text as they are, and tables in Markdown.
//!
//! Lines keep the numbers that they have in the page as long as the page has room for them: what is imported names its line.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::{RawKind, Rawtext, ScriptData};
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer};

/// Elements that begin and end lines.
const BLOCKS: [&str; 31] = [
    "address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "div", "dl", "dt",
    "figcaption", "figure", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "ol",
    "p", "section", "summary", "title", "ul", "nav",
];
/// Elements whose contents are not text.
const RAW: [&str; 4] = ["style", "iframe", "noembed", "noframes"];
/// Elements whose contents are not shown.
const UNSEEN: [&str; 4] = ["svg", "template", "select", "object"];
/// Letters of the longest cell of a table of figures: longer ones are parts of a page that is laid out by a table.
const MAX_CELL: usize = 400;
/// More columns or rows than that are not spanned by a cell.
const MAX_SPAN: usize = 50;

/// Whether a text is a page in HTML.
pub(crate) fn is_html(text: &str) -> bool {
    const BEGINS: &[&str] = &[
        "!doctype html", "html", "head", "body", "table", "div", "article", "section", "main", "pre", "meta",
        "title", "link", "style", "script", "ol", "ul", "dl", "p", "h1", "h2", "h3", "h4", "code", "center",
    ];
    let Some(tag) = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']).strip_prefix('<') else {
        return false;
    };
    let begins = |name: &&str| {
        let (head, rest) = (tag.get(..name.len()), tag.get(name.len()..));
        head.is_some_and(|head| head.eq_ignore_ascii_case(name))
            && rest.is_some_and(|rest| rest.starts_with(|next: char| next == '>' || next.is_whitespace()))
    };
    BEGINS.iter().any(begins)
}

/// The text of a page.
pub(crate) fn text_of(page: &str) -> String {
    let queue = BufferQueue::default();
    queue.push_back(StrTendril::from(page));
    let tokenizer = Tokenizer::new(Sink(RefCell::default()), Default::default());
    let _ = tokenizer.feed(&queue);
    tokenizer.end();
    let mut text = tokenizer.sink.0.into_inner();
    text.end_table();
    text.end_line();
    text.out
}

struct Sink(RefCell<PageText>);

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<()> {
        let mut text = self.0.borrow_mut();
        text.line = line;
        match token {
            Token::CharacterTokens(found) => text.add(&found),
            Token::TagToken(Tag { kind: TagKind::EndTag, name, .. }) => text.end(&name),
            Token::TagToken(tag) => {
                text.begin(&tag);
                return match &*tag.name {
                    _ if tag.self_closing => TokenSinkResult::Continue,
                    "script" => raw(ScriptData),
                    name if RAW.contains(&name) => raw(Rawtext),
                    _ => TokenSinkResult::Continue,
                };
            }
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

fn raw(kind: RawKind) -> TokenSinkResult<()> {
    TokenSinkResult::RawData(kind)
}

/// What was read so far.
#[derive(Default)]
struct PageText {
    out: String,
    /// Lines in it.
    lines: u64,
    /// The line of the page that is read.
    line: u64,
    /// The line that is not ended, and where it began.
    inline: String,
    inline_from: u64,
    preformatted: usize,
    /// The name of the element that is not shown, and how deep it is nested.
    unseen: Option<(String, usize)>,
    /// In a script or a style.
    is_raw: bool,
    table: Option<PageTable>,
}

#[derive(Default)]
struct PageTable {
    from: u64,
    rows: Vec<Vec<PageCell>>,
    /// A cell is open.
    is_in_cell: bool,
}

#[derive(Clone, Default)]
struct PageCell {
    text: String,
    line: u64,
    columns: usize,
    rows: usize,
    /// It names a column or a row.
    is_head: bool,
    /// It has lines of its own.
    is_laid_out: bool,
}

impl PageText {
    fn begin(&mut self, tag: &Tag) {
        let name: &str = &tag.name;
        if let Some((unseen, depth)) = &mut self.unseen {
            *depth += usize::from(unseen == name && !tag.self_closing);
            return;
        }
        match name {
            name if name == "script" || RAW.contains(&name) => self.is_raw = !tag.self_closing,
            "br" => self.break_line(),
            "pre" | "textarea" => {
                self.break_line();
                self.preformatted += 1;
            }
            "table" => self.begin_table(),
            "tr" => self.begin_row(),
            "td" | "th" => self.begin_cell(tag),
            // A power or a footnote stays apart from the digits before it.
            "sup" if self.is_in_cell() => self.add("^"),
            name if UNSEEN.contains(&name) && !tag.self_closing => {
                self.unseen = Some((name.to_owned(), 1));
            }
            name if BLOCKS.contains(&name) => self.begin_block(),
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        if let Some((unseen, depth)) = &mut self.unseen {
            *depth -= usize::from(unseen == name);
            if *depth == 0 {
                self.unseen = None;
            }
            return;
        }
        match name {
            name if name == "script" || RAW.contains(&name) => self.is_raw = false,
            "pre" | "textarea" => {
                self.break_line();
                self.preformatted = self.preformatted.saturating_sub(1);
            }
            "table" => self.end_table(),
            "tr" | "td" | "th" => self.end_cell(),
            name if BLOCKS.contains(&name) => self.begin_block(),
            _ => {}
        }
    }

    fn add(&mut self, text: &str) {
        if self.is_raw || self.unseen.is_some() {
            return;
        }
        // The token ends at the line that is read.
        let first = self.line.saturating_sub(text.matches('\n').count() as u64);
        if self.preformatted == 0 {
            let before = &text[..text.len() - text.trim_start().len()];
            self.line = first + before.matches('\n').count() as u64;
            return self.add_words(text);
        }
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                self.break_line();
            }
            self.line = first + index as u64;
            if !line.is_empty() {
                self.open().push_str(line.trim_end_matches('\r'));
            }
        }
    }

    /// Words with single blanks between them.
    fn add_words(&mut self, text: &str) {
        let line = self.open();
        for part in text.split_inclusive(char::is_whitespace) {
            let word = part.trim_end();
            line.push_str(word);
            if word.len() < part.len() && !line.is_empty() && !line.ends_with([' ', '\n']) {
                line.push(' ');
            }
        }
    }

    /// What text is added to.
    fn open(&mut self) -> &mut String {
        let cell = self.table.as_mut().filter(|table| table.is_in_cell);
        if let Some(cell) = cell.and_then(|table| table.rows.last_mut()?.last_mut()) {
            return &mut cell.text;
        }
        if self.inline.is_empty() {
            self.inline_from = self.line;
        }
        &mut self.inline
    }

    fn is_in_cell(&self) -> bool {
        self.table.as_ref().is_some_and(|table| table.is_in_cell)
    }

    /// A line ends here, in a cell too.
    fn break_line(&mut self) {
        if !self.is_in_cell() {
            return self.end_line();
        }
        let is_preformatted = self.preformatted > 0;
        let cell = self.table.as_mut().and_then(|table| table.rows.last_mut()?.last_mut());
        if let Some(cell) = cell {
            cell.is_laid_out |= is_preformatted && !cell.text.trim().is_empty();
            if !cell.text.is_empty() {
                cell.text.push('\n');
            }
        }
    }

    fn begin_block(&mut self) {
        match self.is_in_cell() {
            true => {
                let text = self.open();
                if !text.is_empty() && !text.ends_with('\n') {
                    text.push('\n');
                }
            }
            false if !self.inline.is_empty() => self.end_line(),
            false => {}
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.inline);
        let from = if line.is_empty() { self.line } else { self.inline_from };
        if !line.trim().is_empty() {
            self.put(line.trim_end(), from);
        }
    }

    /// Adds a line at its number, or after those that are there.
    fn put(&mut self, line: &str, at: u64) {
        while self.lines + 1 < at {
            self.out.push('\n');
            self.lines += 1;
        }
        self.out.push_str(line);
        self.out.push('\n');
        self.lines += 1;
    }

    fn begin_table(&mut self) {
        // A table around another lays out a page.
        if let Some(table) = self.table.take() {
            self.put_cells(&table);
        }
        self.end_line();
        self.table = Some(PageTable { from: self.line, ..PageTable::default() });
    }

    fn begin_row(&mut self) {
        if let Some(table) = &mut self.table {
            table.is_in_cell = false;
            table.rows.push(Vec::new());
        }
    }

    fn begin_cell(&mut self, tag: &Tag) {
        let span = |name: &str| {
            let value = tag.attrs.iter().find(|one| &*one.name.local == name);
            value.and_then(|one| one.value.trim().parse().ok()).unwrap_or(1).clamp(1, MAX_SPAN)
        };
        let line = self.line;
        let Some(table) = &mut self.table else { return self.begin_block() };
        if table.rows.is_empty() {
            table.rows.push(Vec::new());
        }
        table.is_in_cell = true;
        let cell = PageCell {
            line,
            columns: span("colspan"),
            rows: span("rowspan"),
            is_head: &*tag.name == "th",
            ..PageCell::default()
        };
        if let Some(row) = table.rows.last_mut() {
            row.push(cell);
        }
    }

    fn end_cell(&mut self) {
        if let Some(table) = &mut self.table {
            table.is_in_cell = false;
        }
    }

    fn end_table(&mut self) {
        let Some(mut table) = self.table.take() else { return };
        table.rows.retain(|row| !row.is_empty());
        let is_laid_out = |cell: &PageCell| cell.is_laid_out || cell.text.chars().nth(MAX_CELL).is_some();
        if table.rows.iter().flatten().any(is_laid_out) {
            return self.put_cells(&table);
        }
        if table.is_listing() {
            for cell in table.rows.iter().filter_map(|row| row.last()) {
                self.put(cell.text.trim_end(), cell.line);
            }
            return;
        }
        for row in table.spanned() {
            self.put(&format!("| {} |", row.join(" | ")), table.from);
        }
        // What follows is not a part of it.
        self.put("", table.from);
    }

    /// The lines of all cells.
    fn put_cells(&mut self, table: &PageTable) {
        for cell in table.rows.iter().flatten() {
            for (index, line) in cell.text.split('\n').enumerate() {
                if !line.trim().is_empty() {
                    self.put(line.trim_end(), cell.line + index as u64);
                }
            }
        }
    }
}

impl PageTable {
    /// Lines of a file with their numbers beside them.
    fn is_listing(&self) -> bool {
        let is_numbered = |(index, row): (usize, &Vec<PageCell>)| {
            let number = row[0].text.trim();
            row.len() == 2 && (number.is_empty() || number == (index + 1).to_string())
        };
        let has_head = self.rows.iter().flatten().any(|cell| cell.is_head);
        !has_head && self.rows.len() > 1 && self.rows.iter().enumerate().all(is_numbered)
    }

    /// The texts of the cells in each row and column that they span.
    fn spanned(&self) -> Vec<Vec<String>> {
        // For each column the text that goes on below, and in how many rows.
        let mut below: Vec<(String, usize)> = Vec::new();
        let mut rows = Vec::new();
        for cells in &self.rows {
            let mut row: Vec<String> = Vec::new();
            let mut cells = cells.iter();
            loop {
                match below.get_mut(row.len()).filter(|(_, rows)| *rows > 0) {
                    Some((text, rows)) => {
                        *rows -= 1;
                        row.push(text.clone());
                    }
                    None => {
                        let Some(cell) = cells.next() else { break };
                        let words = cell.text.split_whitespace().collect::<Vec<_>>().join(" ");
                        let text = words.replace('|', "/");
                        for _ in 0..cell.columns {
                            below.resize(below.len().max(row.len() + 1), (String::new(), 0));
                            below[row.len()] = (text.clone(), cell.rows - 1);
                            row.push(text.clone());
                        }
                    }
                }
            }
            rows.push(row);
        }
        let heads = self.rows.iter().take_while(|row| row.iter().all(|cell| cell.is_head)).count();
        let joined = rows.drain(..heads).reduce(join_heads);
        joined.into_iter().chain(rows).collect()
    }
}

/// The names of columns over several rows: `Random read` above `IOPS`.
fn join_heads(mut upper: Vec<String>, lower: Vec<String>) -> Vec<String> {
    upper.resize(upper.len().max(lower.len()), String::new());
    for (name, below) in upper.iter_mut().zip(lower) {
        if *name != below {
            *name = format!("{name} {below}").trim().to_owned();
        }
    }
    upper
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(page: &str, expected: &str) {
        assert_eq!(text_of(page), expected, "{page}");
    }

    #[test]
    fn pages_are_told_from_other_texts() {
        for page in [
            "<!DOCTYPE html><p>a",
            "\u{feff}\n <html lang=\"ru\">",
            "<table>\n",
            "<pre>fio-3.28",
            "<ol class=x>",
            "<meta charset=a>",
        ] {
            assert!(is_html(page), "{page}");
        }
        for text in ["", "<", "<tablet>", "a <table>", "{\"fio version\": 1}", "<<< /dev/sda"] {
            assert!(!is_html(text), "{text}");
        }
    }

    #[test]
    fn blocks_are_lines_and_keep_their_numbers() {
        check("<h1>Two\n disks</h1>\n<p>a<b>b</b> &lt;c&gt;\n\n<p>d<br>e", "Two disks\n\nab <c>\n\nd\ne\n");
        check("<p>a<script>if (a < b) { '<p>' }</script><style>p{}</style><svg><p>x</svg>b", "ab\n");
        check("<ul><li>a<li>b</ul>", "a\nb\n");
    }

    #[test]
    fn preformatted_text_stays_as_it_is() {
        check(
            "<pre>\n  read : io=1 &amp; bw=2\n\n    lat=3\n</pre><p>x",
            "\n  read : io=1 & bw=2\n\n    lat=3\nx\n",
        );
        check("<pre><div>a b</div><div>  c</div></pre>", "a b\n  c\n");
        check("<pre>a  b<br>c</pre>", "a  b\nc\n");
    }

    #[test]
    fn tables_are_markdown() {
        check(
            "<table>\n<tr><th>Disk\n<th>IOPS | 4k\n<tr>\n<td><p>SSD</p>\n<td>3,000<br>max\n</table>\n\n\n\n<p>end",
            "| Disk | IOPS / 4k |\n| SSD | 3,000 max |\n\n\n\n\n\n\n\n\nend\n",
        );
        check(
            "<table><tr><td rowspan=2>a<td colspan=2>b<tr><td>c<td>d</table>",
            "| a | b | b |\n| a | c | d |\n\n",
        );
        check(
            "<table><tr><th rowspan=2>Disk<th colspan=2>Random read<tr><th>IOPS<th>MB/s<tr><td>a<td>1<td>2</table>",
            "| Disk | Random read IOPS | Random read MB/s |\n| a | 1 | 2 |\n\n",
        );
        check("<table><tr></table>x", "\nx\n");
    }

    #[test]
    fn tables_around_a_text_are_not() {
        let listing = "<table><tr><td>1<td>  read: IOPS=9<tr><td>2<td>  lat: 3</table>";
        check(listing, "read: IOPS=9\nlat: 3\n");
        let gutter = "<table><tr><td><pre>1\n2</pre><td><pre>a\n  b</pre></table>";
        check(gutter, "1\n2\na\n  b\n");
        check("<table><tr><td>nav<td><table><tr><th>a<th>b</table></table>", "nav\n| a | b |\n\n");
    }
}
