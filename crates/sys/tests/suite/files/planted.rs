//! A directory as an attacker prepares one.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Another user.
pub const ANOTHER: u32 = 65534;

/// What only root can set up; false where the test runs as another user.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A directory with a victim's file in `private/victim`, and `shared`, which has `mode`.
pub struct Ground {
    directory: TempDir,
}

pub const PRECIOUS: &str = "precious";

impl Ground {
    pub fn new(mode: u32) -> Ground {
        let directory = tempfile::tempdir().unwrap();
        for (name, mode) in [("private", 0o700), ("shared", mode)] {
            fs::create_dir(directory.path().join(name)).unwrap();
            fs::set_permissions(directory.path().join(name), Permissions::from_mode(mode)).unwrap();
        }
        let ground = Ground { directory };
        fs::write(ground.victim(), PRECIOUS).unwrap();
        ground
    }

    pub fn victim(&self) -> PathBuf {
        self.directory.path().join("private/victim")
    }

    pub fn shared(&self, name: &str) -> PathBuf {
        self.directory.path().join("shared").join(name)
    }

    /// A link to the victim's file in the shared directory.
    pub fn link(&self, owner: Option<u32>) -> PathBuf {
        let link = self.shared("link");
        symlink(self.victim(), &link).unwrap();
        if let Some(owner) = owner {
            std::os::unix::fs::lchown(&link, Some(owner), None).unwrap();
        }
        link
    }

    pub fn is_untouched(&self) -> bool {
        fs::read_to_string(self.victim()).unwrap() == PRECIOUS
    }

    pub fn give_shared_to(&self, owner: u32) {
        give(&self.directory.path().join("shared"), owner);
    }
}

pub fn give(path: &Path, owner: u32) {
    chown(path, Some(owner), None).unwrap();
}
