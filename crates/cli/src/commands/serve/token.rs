//! The token that readers need.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use fathom_assess::AssessError;
use fathom_sys::files::TOKEN;
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest, Sha256};

use crate::exit::Complaint;

/// Bytes of a random token.
const RANDOM_BYTES: usize = 24;
/// Fewest characters of a token that a user chose.
const SHORTEST: usize = 16;

/// A secret of the server and its readers. It is in no message.
pub struct Token(String);

impl Token {
    /// A token that nobody can guess.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn random() -> io::Result<Token> {
        let mut bytes = [0; RANDOM_BYTES];
        // The kernel gives so few at once, or none.
        let count = getrandom(&mut bytes, GetRandomFlags::empty())?;
        if count < bytes.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Token(hex(&bytes)))
    }

    /// The first line of the file at `path`.
    ///
    /// # Errors
    /// It cannot be read, others may read it, or it has no token.
    pub fn read(path: &Path) -> Result<Token, Complaint> {
        let text = TOKEN.read_text(path).map_err(AssessError::from)?;
        let name = path.display();
        // Whatever could be read has a mode.
        let mode = fs::metadata(path).map_or(0, |metadata| metadata.permissions().mode());
        if mode & 0o077 != 0 {
            let hint = format!("make it yours alone: chmod 600 '{name}'");
            return Err(Complaint::usage(format!("other users may read the token in {name}"), Some(hint)));
        }
        let token = text.lines().next().unwrap_or_default().trim();
        if token.len() < SHORTEST || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            let message = format!(
                "the first line of {name} is no token of {SHORTEST} or more visible ASCII characters"
            );
            let hint = format!("draw one: head -c 24 /dev/urandom | base64 > '{name}'");
            return Err(Complaint::usage(message, Some(hint)));
        }
        Ok(Token(token.to_owned()))
    }

    /// The token itself.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether `given` is the token. How long that takes depends on neither.
    pub fn is(&self, given: &str) -> bool {
        is_same(&self.0, given)
    }

    /// What a cookie has in its place: a browser keeps no token.
    pub fn session(&self) -> String {
        self.seal("session")
    }

    /// Whether `given` is [`Token::session`].
    pub fn is_session(&self, given: &str) -> bool {
        self.is_seal(given, "session")
    }

    /// What only who knows the token can make of `text`.
    pub fn seal(&self, text: &str) -> String {
        // Two rounds, so that no seal of a text is the beginning of that of a longer one.
        let inner = Sha256::digest(format!("fathom {} {text}", self.0));
        hex(&Sha256::digest(format!("fathom {} {}", self.0, hex(&inner))))
    }

    /// Whether `given` is [`Token::seal`] of `text`.
    pub fn is_seal(&self, given: &str, text: &str) -> bool {
        is_same(&self.seal(text), given)
    }
}

/// Compares digests of both, and all of them.
fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (Sha256::digest(one), Sha256::digest(other));
    one.iter().zip(other.iter()).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_long_and_compared_whole() {
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert_eq!(one.text().len(), 2 * RANDOM_BYTES);
        assert_ne!(one.text(), other.text());
        assert!(one.is(one.text()) && !one.is(other.text()) && !one.is("") && !one.is(&one.text()[1..]));
        assert!(one.is_seal(&one.seal("a"), "a") && !one.is_seal(&one.seal("a"), "b"));
        assert!(!one.is_seal(&other.seal("a"), "a"));
        assert!(one.is_session(&one.session()) && !one.is_session(one.text()) && !one.is(&one.session()));
    }

    #[test]
    fn files_have_a_token_that_others_cannot_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let check = |text: &str, mode: u32, part: &str| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            match Token::read(&path) {
                Ok(token) => assert_eq!(token.text(), part),
                Err(complaint) => assert!(complaint.message.contains(part), "{}", complaint.message),
            }
        };
        check("0123456789abcdef\nmore\n", 0o600, "0123456789abcdef");
        check("0123456789abcdef", 0o640, "other users may read the token");
        check("0123456789abcde\n", 0o600, "is no token of 16");
        check("0123456789 abcdef\n", 0o600, "is no token");
        check("", 0o400, "is no token");
        fs::remove_file(&path).unwrap();
        assert!(Token::read(&path).is_err());
    }
}
