//! The initial corpus of a target: files of the repository, and a dictionary of their words.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Context as _;
use fathom_tests::fuzz_seeds;

use super::Places;

/// Numbers at which types end.
const EXTREMES: &[&str] = &[
    "0",
    "-1",
    "255",
    "65536",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "5e-324",
    "nan",
    "inf",
];

/// Words of a dictionary at most, each so long.
const MOST_WORDS: usize = 2_000;
const WORD: std::ops::RangeInclusive<usize> = 2..=40;

/// Writes the inputs that `target` begins with. Returns the directory.
pub fn write_seeds(places: &Places, target: &str) -> anyhow::Result<PathBuf> {
    let directory = places.build().join("seeds").join(target);
    if directory.exists() {
        std::fs::remove_dir_all(&directory)
            .with_context(|| format!("cannot clear {}", directory.display()))?;
    }
    std::fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
    for (index, seed) in fuzz_seeds(target).iter().enumerate() {
        let path = directory.join(format!("seed-{index:03}"));
        std::fs::write(&path, seed).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(directory)
}

/// Writes the words that `target` may meet. Returns the file.
pub fn write_dictionary(places: &Places, target: &str) -> anyhow::Result<PathBuf> {
    let mut words = BTreeSet::new();
    for seed in fuzz_seeds(target) {
        words.extend(words_of(&String::from_utf8_lossy(&seed)));
    }
    let mut words: Vec<String> = words.into_iter().take(MOST_WORDS).collect();
    words.extend(EXTREMES.iter().map(|number| (*number).to_owned()));
    words.extend(option_words(target));
    let path = places.build().join(format!("{target}.dict"));
    let lines: String = words.iter().map(|word| format!("\"{}\"\n", escaped(word))).collect();
    std::fs::write(&path, lines).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

fn words_of(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !"_-.".contains(c));
    let is_word = |word: &&str| WORD.contains(&word.len()) && !word.starts_with(|c: char| c.is_ascii_digit());
    words.filter(is_word).map(str::to_owned)
}

/// The names of fio's options and the words that they take, as `target` writes them.
fn option_words(target: &str) -> Vec<String> {
    let dashes = match target {
        "job_file" => "",
        "command_line" => "--",
        _ => return Vec::new(),
    };
    let mut words = Vec::new();
    for row in fathom_options::OPTION_TABLE.iter().flat_map(|(_, rows)| *rows) {
        words.push(format!("{dashes}{}=", row.name));
        if let fathom_options::OptionValueKind::Choice(choices) = row.kind {
            words.extend(choices.iter().map(|choice| format!("{dashes}{}={choice}", row.name)));
        }
    }
    words.extend(fathom_options::UNSUPPORTED.iter().map(|option| format!("{dashes}{}", option.name)));
    words
}

/// A word in libFuzzer's syntax: special bytes in hexadecimal.
fn escaped(word: &str) -> String {
    let byte = |byte: u8| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(byte)),
        0x20..=0x7e => char::from(byte).to_string(),
        _ => format!("\\x{byte:02X}"),
    };
    word.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionaries_have_words_of_seeds_and_options() {
        assert_eq!(words_of("[a]\niops = 5000 # x_y").collect::<Vec<_>>(), ["iops", "x_y"]);
        let words = option_words("command_line");
        assert!(
            ["--rw=", "--rw=randread", "--verify="].iter().all(|word| words.iter().any(|has| has == word))
        );
        assert!(option_words("trace").is_empty());
        assert_eq!(escaped("a\"b\\\nµ"), "a\\\"b\\\\\\x0A\\xC2\\xB5");
    }
}
