//! The output of other programs, in every format.

use fathom_import::{decode, import, import_as, records};
use fathom_record::{ImportFormat, RunRecord};

use crate::{messages, rendering};

const FORMATS: [ImportFormat; 9] = [
    ImportFormat::BenchJson,
    ImportFormat::FioJson,
    ImportFormat::FioTerse,
    ImportFormat::FioText,
    ImportFormat::IopingText,
    ImportFormat::IopingRaw,
    ImportFormat::IopingJson,
    ImportFormat::Csv,
    ImportFormat::Toml,
];

/// Reads the text as what it is and as every other format; what is read is a record that can be stored and shown.
pub fn check(data: &[u8]) {
    let text = decode(data);
    match records(&text, "fuzz") {
        Ok(found) => found.iter().for_each(check_record),
        Err(error) => messages::check(&error, Some(&error.hint)),
    }
    let Ok(_) = import(&text, "fuzz") else { return };
    for format in FORMATS {
        match import_as(format, &text, "fuzz") {
            Ok(record) => check_record(&record),
            Err(error) => messages::check(&error, Some(&error.hint)),
        }
    }
}

fn check_record(record: &RunRecord) {
    let written = record.to_json();
    match RunRecord::from_json(&written) {
        Ok(again) => assert!(again == *record, "what is written reads as something else:\n{written}"),
        Err(error) => panic!("what is written cannot be read: {error:?}\n{written}"),
    }
    rendering::check(record);
}
