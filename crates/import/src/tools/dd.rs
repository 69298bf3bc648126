//! `dd`: the line of its result, in the languages that it speaks.

use super::{Output, decimal};

/// What the word for "copied" has in it: English and French, German and Polish, Turkish, Czech, Russian, Ukrainian, Chinese,
/// Japanese, Korean.
const COPIED: &[&str] =
    &["copi", "kopi", "kopy", "kopír", "копи", "копі", "复制", "複製", "拷贝", "コピー", "복사"];

/// What the word for "records" has in it, or in Chinese the words for "read" and "written".
const RECORDS: &[&str] = &[
    "record", "datens", "запис", "registr", "rekord", "záznam", "kayıt", "レコード", "读", "写", "讀", "寫",
    "레코드",
];

/// Units of its time.
const SECONDS: &[&str] = &["s", "sec", "secs", "second", "seconds", "c", "с", "秒", "초"];

/// Letters between the size and the time of a result.
const MAX_WORDS: usize = 40;

/// Lines above a result in which its command line is looked for.
const MAX_ABOVE: usize = 6;

/// What a line says.
struct Copied<'a> {
    bytes: &'a str,
    seconds: String,
    /// The rate, its unit, and what `k` of the unit is.
    rate: Option<(String, String, &'static str)>,
}

/// `1073741824 bytes (1.1 GB, 1.0 GiB) copied, 5.1 s, 210 MB/s`, with the command line above it where it stands there.
pub(super) fn read(lines: &[&str]) -> Vec<Output> {
    let is_result = |index: &usize| !is_progress(lines, *index);
    let found = (0..lines.len()).filter_map(|index| Some((index, copied(lines[index])?)));
    let found = found.filter(|(index, _)| is_result(index));
    found.map(|(index, copied)| output(lines, index, copied)).collect()
}

/// True of the states of `status=progress`, which stand in one line, before the counts of the same run.
fn is_progress(lines: &[&str], index: usize) -> bool {
    let states = lines[index].matches(" bytes (").count();
    states > 1 && lines.get(index + 1).is_some_and(|line| is_count(line))
}

/// True of a line that tells a result.
pub(crate) fn is_result(line: &str) -> bool {
    copied(line).is_some()
}

/// True of `100+0 records in`, in any of these languages.
pub(crate) fn is_count(line: &str) -> bool {
    let text = line.to_lowercase();
    let Some((count, rest)) = text.split_once('+') else { return false };
    let is_number = count.ends_with(|sign: char| sign.is_ascii_digit())
        && rest.starts_with(|sign: char| sign.is_ascii_digit());
    is_number && text.chars().count() <= MAX_WORDS && RECORDS.iter().any(|word| text.contains(word))
}

fn copied(line: &str) -> Option<Copied<'_>> {
    of_bsd(line).or_else(|| of_gnu(line))
}

/// `1048576000 bytes transferred in 0.912345 secs (1149320158 bytes/sec)`.
fn of_bsd(line: &str) -> Option<Copied<'_>> {
    let (amount, rest) = line.split_once(" bytes transferred in ")?;
    let (seconds, rest) = decimal(rest)?;
    let is_bytes = !amount.is_empty() && amount.chars().all(|sign| sign.is_ascii_digit());
    let (unit, rest) = rest.split_once('(').unwrap_or((rest, ""));
    let rate = rest.strip_suffix("bytes/sec)").and_then(decimal).map(|(rate, _)| rate);
    (is_bytes && SECONDS.contains(&unit.trim())).then(|| Copied {
        bytes: amount,
        seconds,
        rate: rate.map(|rate| (rate, "B/s".to_owned(), "")),
    })
}

/// The size, the same in other units or not, a word for "copied", which older translations have in front, the time, and the rate.
fn of_gnu(line: &str) -> Option<Copied<'_>> {
    let start = line.find(|sign: char| sign.is_ascii_digit())?;
    let (before, amount) = line.split_at(start);
    let end = amount.find(|sign: char| !sign.is_ascii_digit())?;
    let (bytes, rest) = amount.split_at(end);
    if !rest.starts_with(|sign: char| sign == ' ' || sign.is_alphabetic()) {
        return None;
    }
    let size = rest.split_once('(').filter(|(word, _)| !has_digit(word));
    let behind = match size {
        Some((_, inside)) => inside.split_once(')')?.1,
        None => rest,
    };
    let words = &behind[..behind.find(|sign: char| sign.is_ascii_digit())?];
    // A sentence about files may have the word in front as well.
    let is_old = size.is_some() && !before.trim().contains(' ');
    let verb = match before.is_empty() {
        true => words,
        false if is_old => before,
        false => return None,
    };
    let is_head = words.trim_end().ends_with([',', '、']) && verb.chars().count() <= MAX_WORDS;
    let verb = if is_head { verb.to_lowercase() } else { return None };
    if !COPIED.iter().any(|word| verb.contains(word)) {
        return None;
    }
    let (seconds, rest) = decimal(&behind[words.len()..])?;
    let (unit, rest) = rest.split_once([',', '、']).unwrap_or((rest, ""));
    SECONDS.contains(&unit.trim()).then(|| Copied { bytes, seconds, rate: rate(rest) })
}

fn has_digit(text: &str) -> bool {
    text.contains(|sign: char| sign.is_ascii_digit())
}

/// `210 MB/s`: GNU's dd counts in powers of 1,000. That of BusyBox, which sets no blank there, counts in powers of 1,024.
fn rate(text: &str) -> Option<(String, String, &'static str)> {
    let (value, rest) = decimal(text)?;
    let base = if rest.starts_with(' ') { "1000" } else { "1024" };
    let unit = rest.trim().split('/').next()?.chars().map(latin).collect::<String>();
    let is_rate = rest.contains('/') && unit.ends_with('B') && unit.len() <= 3;
    is_rate.then(|| (value, format!("{unit}/s"), base))
}

/// The letter of a unit that a translation has replaced.
fn latin(sign: char) -> char {
    match sign {
        'к' => 'k',
        'К' => 'K',
        'М' => 'M',
        'Г' => 'G',
        'Т' => 'T',
        'Б' | 'В' | 'o' => 'B',
        other => other,
    }
}

/// A block size as fio writes it: dd's `MB` is 1,000,000 bytes, and fio's is as much as `M`.
fn block_size(text: &str) -> String {
    let scales = [("kB", 1_000_u64), ("KB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000)];
    let bytes = scales.iter().find_map(|(unit, scale)| {
        let count: u64 = text.strip_suffix(unit)?.parse().ok()?;
        count.checked_mul(*scale)
    });
    bytes.map_or_else(|| text.to_owned(), |bytes| bytes.to_string())
}

fn output(lines: &[&str], index: usize, copied: Copied<'_>) -> Output {
    let above = &lines[index.saturating_sub(MAX_ABOVE)..index];
    let command = above.iter().rev().find(|line| line.contains("dd ") && line.contains("if="));
    let words: Vec<&str> = command.map(|line| line.split_whitespace().collect()).unwrap_or_default();
    let word = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)).unwrap_or_default();
    let block_size = block_size(word("bs="));
    let direction = match words.is_empty() {
        true => "",
        false if word("of=").starts_with("/dev/null") => "read",
        false => "write",
    };
    let flags = format!("{},{}", word("oflag="), word("iflag="));
    let direct = match words.is_empty() {
        _ if flags.contains("direct") => "1",
        true => "",
        false => "0",
    };
    let flushes = word("conv=").split(',').any(|word| matches!(word, "fsync" | "fdatasync"));
    let options = [
        ("rw", direction),
        ("bs", block_size.as_str()),
        ("direct", direct),
        ("end_fsync", if flushes { "1" } else { "" }),
        ("iodepth", "1"),
    ];
    let direction = if direction.is_empty() { "total" } else { direction };
    let mut output = Output::at(index, "dd");
    output.add(index, "dd", &format!("{direction} bytes"), (copied.bytes, "B"), &options);
    output.add(index, "dd", &format!("{direction} runtime"), (&copied.seconds, "s"), &options);
    if let Some((rate, unit, base)) = &copied.rate {
        let options = [&options[..], &[("kb_base", *base)]].concat();
        output.add(index, "dd", &format!("{direction}.bytes_per_second"), (rate, unit), &options);
    }
    output
}

#[cfg(test)]
mod tests {
    use fathom_record::import::ImportedOp;

    use super::super::{read, tests::found};

    fn only(text: &str) -> ImportedOp {
        let all = found(text);
        assert_eq!(all.len(), 1, "{text}");
        let entry = &all[0].tests[0].imported.entries[0];
        let of_op = fathom_model::Op::DATA.into_iter().find_map(|op| entry.op(op).cloned());
        of_op.or_else(|| entry.total.clone()).unwrap()
    }

    fn check(text: &str, bytes: u64, seconds: f64, rate: f64) {
        let op = only(text);
        assert_eq!(op.bytes.unwrap().value, bytes, "{text}");
        assert!((op.runtime_ns.unwrap().value as f64 / 1e9 - seconds).abs() < 1e-9, "{text}");
        assert!((op.bytes_per_second.unwrap().value / rate - 1.0).abs() < 1e-9, "{text}");
    }

    #[test]
    fn results_in_other_languages_and_with_decimal_commas() {
        let gib = 1 << 30;
        check("1073741824 bytes (1.1 GB) copied, 8,51234 s, 126 MB/s", gib, 8.51234, 126e6);
        check("1073741824 Bytes (1,1 GB, 1,0 GiB) kopiert, 10,2345 s, 105 MB/s", gib, 10.2345, 105e6);
        check("скопировано 1073741824 байта (1,1 GB), 5,12 c, 210 MB/c", gib, 5.12, 210e6);
        check("1073741824 байт (1,1 GB, 1,0 GiB) скопирован, 5,12 s, 1,2 GB/s", gib, 5.12, 1.2e9);
        check("1073741824 байта (1,1 ГБ) скопировано, 5,12 с, 210 МБ/с", gib, 5.12, 210e6);
        check("1073741824 字节 (1.1 GB, 1.0 GiB) 已复制，2.5 s，429 MB/s", gib, 2.5, 429e6);
        check("2457600000字节(2.5 GB)已复制，107.187 秒，22.9 MB/秒", 2_457_600_000, 107.187, 22.9e6);
        check("4096000 octets (4,1 MB, 3,9 MiB) copiés, 0,0452 s, 90,6 MB/s", 4_096_000, 0.0452, 90.6e6);
        check("512 bytes copied, 0,000125 s, 4,1 MB/s", 512, 0.000_125, 4.1e6);
        check(
            "1048576000 bytes transferred in 0.912345 secs (1149320158 bytes/sec)",
            1_048_576_000,
            0.912_345,
            1_149_320_158.0,
        );
        check(
            "104857600 bytes (100.0MB) copied, 0.5 seconds, 200.0MB/s",
            104_857_600,
            0.5,
            200.0 * 1_048_576.0,
        );
    }

    #[test]
    fn a_quoted_mail_and_what_is_no_result() {
        let quoted = "> $ dd if=/dev/zero of=x bs=1M count=100\n> 104857600 bytes (105 MB, 100 MiB) copied, 1.05 s, 99.9 MB/s\n";
        check(quoted, 104_857_600, 1.05, 99.9e6);
        assert_eq!(found(quoted)[0].tests[0].imported.load.rw.as_deref(), Some("write"));
        // A rate that ends within its number or unit is dropped.
        assert!(only("104857600 bytes (105 MB) copied, 1.05 s, 9").bytes_per_second.is_none());
        for text in
            ["He copied 3 files, 5 s, 10 MB/s", "3,5 bytes copied, 2 s", "10 bytes copied in 5 s, 3 MB/s"]
        {
            assert!(read(&crate::text::SourceText::new(text)).is_empty(), "{text}");
        }
    }

    #[test]
    fn states_of_a_run_are_no_results() {
        let state =
            |seconds: u32| format!("\r{seconds}00000000 bytes (1 GB, 1 GiB) copied, {seconds} s, 100 MB/s");
        let text = format!(
            "$ dd if=/dev/sda of=/dev/null bs=1MB status=progress\n{}{}\n300+0 records in\n300+0 records out\n\
             300000000 bytes (300 MB, 286 MiB) copied, 3.1 s, 96.8 MB/s\n",
            state(1),
            state(2)
        );
        check(&text, 300_000_000, 3.1, 96.8e6);
        assert_eq!(found(&text)[0].tests[0].imported.load.block_size.read.unwrap().max, 1_000_000);
    }

    #[test]
    fn lines_of_counts_are_known_in_any_language() {
        for (line, is_count) in [
            ("100+0 records out", true),
            ("16384+0 Datensätze ein", true),
            ("记录了100+0 的读入", true),
            ("100+0 enregistrements lus", true),
            ("записей получено: 100+0", true),
            ("1 + 1", false),
            ("## 4+2 erasure coding", false),
            ("Random reads", false),
        ] {
            assert_eq!(super::is_count(line), is_count, "{line}");
        }
    }
}
