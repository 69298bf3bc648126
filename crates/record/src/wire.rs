//! What is left out where it says nothing.

/// For `skip_serializing_if`: true where the value is what a missing field would be read as.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
