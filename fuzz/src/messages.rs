//! Requirements on every refusal: a message, and no empty hint.

use std::fmt::Display;

/// Checks an error and its hint.
pub(crate) fn check(error: &impl Display, hint: Option<&str>) {
    assert!(!error.to_string().trim().is_empty(), "an error without a message");
    assert!(hint.is_none_or(|hint| !hint.trim().is_empty()), "{error}: an empty hint");
}
