//! The file of a twin.

use fathom_assess::read_twin;

use crate::serving;

/// Reads the twin, and has its volume serve requests.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match read_twin(text) {
        Ok(twin) => {
            let model = twin.model().expect("a twin that was read has a model");
            serving::check(&model, 1, 300);
        }
        Err(problem) => assert!(!problem.is_empty(), "an error without a message"),
    }
}
