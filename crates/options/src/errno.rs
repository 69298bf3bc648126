//! Numbers of Linux's errors, by their names.

use crate::value;

/// The errors of block devices and file systems that job files name.
const NAMES: &[(&str, i32)] = &[
    ("EPERM", 1),
    ("ENOENT", 2),
    ("EINTR", 4),
    ("EIO", 5),
    ("ENXIO", 6),
    ("E2BIG", 7),
    ("EBADF", 9),
    ("EAGAIN", 11),
    ("ENOMEM", 12),
    ("EACCES", 13),
    ("EFAULT", 14),
    ("EBUSY", 16),
    ("EEXIST", 17),
    ("EXDEV", 18),
    ("ENODEV", 19),
    ("ENOTDIR", 20),
    ("EISDIR", 21),
    ("EINVAL", 22),
    ("ENFILE", 23),
    ("EMFILE", 24),
    ("EFBIG", 27),
    ("ENOSPC", 28),
    ("ESPIPE", 29),
    ("EROFS", 30),
    ("EPIPE", 32),
    ("ENODATA", 61),
    ("ETIME", 62),
    ("ENOLINK", 67),
    ("EPROTO", 71),
    ("EOVERFLOW", 75),
    ("EILSEQ", 84),
    ("EOPNOTSUPP", 95),
    ("ETIMEDOUT", 110),
    ("ESTALE", 116),
    ("EREMOTEIO", 121),
    ("EDQUOT", 122),
];

/// A list of errors, names or numbers, separated by colons; it may be empty.
pub(crate) fn list(text: &str) -> Result<Vec<i32>, String> {
    let entries = text.split(':').map(str::trim).filter(|entry| !entry.is_empty());
    entries
        .map(|entry| match NAMES.iter().find(|(name, _)| *name == entry) {
            Some((_, number)) => Ok(*number),
            None if !entry.starts_with(|c: char| c.is_ascii_digit()) => {
                Err(format!("{entry} is not a known error: give its number"))
            }
            None => value::integer_in(entry, 1, 4095).map(|number| number as i32),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_names_or_numbers() {
        assert_eq!(list("ENOSPC:5: EINVAL"), Ok(vec![28, 5, 22]));
        assert_eq!(list(""), Ok(vec![]));
        assert!(list("EWHAT").is_err() && list("0").is_err() && list("x").is_err());
    }
}
