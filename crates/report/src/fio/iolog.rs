//! fio's iolog, version 3: a line per issued request, and per file that is added, opened and closed.
//!
//! Files are opened by their first request and closed at the end.

use std::io::Write as _;

use fathom_model::plan::RecordedRequest;

/// The text of one worker's iolog.
pub struct IologText {
    files: Vec<IologFile>,
}

struct IologFile {
    name: String,
    is_open: bool,
}

impl IologText {
    /// The log of a worker with these files; its beginning is appended to `text`.
    pub fn new(names: impl Iterator<Item = String>, text: &mut Vec<u8>) -> IologText {
        let files: Vec<IologFile> = names.map(|name| IologFile { name, is_open: false }).collect();
        text.extend_from_slice(b"fio version 3 iolog\n");
        for file in &files {
            append(text, 0, &file.name, "add");
        }
        IologText { files }
    }

    /// Appends the lines of requests to `text`.
    pub fn issued(&mut self, requests: &[RecordedRequest], text: &mut Vec<u8>) {
        for RecordedRequest { at_ns, request } in requests {
            let Some(file) = self.files.get_mut(request.file as usize) else { continue };
            if !file.is_open {
                file.is_open = true;
                append(text, *at_ns, &file.name, "open");
            }
            let (at_us, name, op) = (at_ns / 1_000, &file.name, request.op.name());
            // Memory never fails a write.
            let _ = writeln!(text, "{at_us} {name} {op} {} {}", request.offset, request.len);
        }
    }

    /// Appends the end of the log, at `at_ns`, to `text`.
    pub fn end(self, at_ns: u64, text: &mut Vec<u8>) {
        for file in self.files.iter().filter(|file| file.is_open) {
            append(text, at_ns, &file.name, "close");
        }
    }
}

fn append(text: &mut Vec<u8>, at_ns: u64, name: &str, action: &str) {
    let _ = writeln!(text, "{} {name} {action}", at_ns / 1_000);
}

#[cfg(test)]
mod tests {
    use fathom_model::{Op, Request};

    use super::*;

    #[test]
    fn files_are_opened_by_their_first_request() {
        let request = |at_us: u64, op, file, offset, len| RecordedRequest {
            at_ns: at_us * 1_000 + 999,
            request: Request { op, file, offset, len },
        };
        let mut text = Vec::new();
        let mut log = IologText::new(["a", "b", "c"].map(str::to_owned).into_iter(), &mut text);
        log.issued(&[request(5, Op::Write, 1, 4096, 512), request(7, Op::Sync, 1, 0, 0)], &mut text);
        log.issued(&[request(9, Op::Trim, 0, 0, 4096), request(9, Op::Read, 7, 0, 1)], &mut text);
        log.end(11_000, &mut text);
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "fio version 3 iolog\n0 a add\n0 b add\n0 c add\n5 b open\n5 b write 4096 512\n7 b sync 0 0\n9 a open\n\
             9 a trim 0 4096\n11 a close\n11 b close\n"
        );
    }
}
