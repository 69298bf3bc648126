//! A stored record, `fathom.record/2`.

use fathom_record::RunRecord;

use crate::{messages, rendering};

/// Reads the record, writes it again, and makes every report of it.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let record = match RunRecord::from_json(text) {
        Ok(record) => record,
        Err(error) => return messages::check(&error, error.hint()),
    };
    let written = record.to_json();
    match RunRecord::from_json(&written) {
        Ok(again) => {
            assert!(again.to_json() == written, "what is written reads as something else:\n{written}")
        }
        Err(error) => panic!("what is written cannot be read: {error:?}\n{written}"),
    }
    rendering::check(&record);
}
