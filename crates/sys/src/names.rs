//! Requests on the names of files: making, inspecting and removing them.
//!
//! Every function is one system call, or two where it opens a file, and answers 0 or a negative errno.

use std::ffi::CStr;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

/// Retries while a signal interrupts.
fn answer<T>(mut call: impl FnMut() -> Result<T, Errno>) -> i64 {
    loop {
        match call() {
            Ok(_) => return 0,
            Err(Errno::INTR) => {}
            Err(errno) => return -i64::from(errno.raw_os_error()),
        }
    }
}

/// open(2), which makes the file if there is none, and close(2).
pub fn make_file(name: &CStr) -> i64 {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    answer(|| rustix::fs::open(name, flags, Mode::RUSR | Mode::WUSR))
}

/// mkdir(2).
pub fn make_directory(name: &CStr) -> i64 {
    answer(|| rustix::fs::mkdir(name, Mode::RWXU))
}

/// stat(2).
pub fn inspect(name: &CStr) -> i64 {
    answer(|| rustix::fs::stat(name))
}

/// lstat(2).
pub fn inspect_link(name: &CStr) -> i64 {
    answer(|| rustix::fs::lstat(name))
}

/// statx(2) of everything.
pub fn inspect_extended(name: &CStr) -> i64 {
    answer(|| rustix::fs::statx(CWD, name, AtFlags::empty(), StatxFlags::ALL))
}

/// unlink(2).
pub fn remove_file(name: &CStr) -> i64 {
    answer(|| rustix::fs::unlink(name))
}

/// rmdir(2).
pub fn remove_directory(name: &CStr) -> i64 {
    answer(|| rustix::fs::rmdir(name))
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn names_are_made_inspected_and_removed() {
        let place = tempfile::tempdir().unwrap();
        let name = |name: &str| CString::new(place.path().join(name).as_os_str().as_bytes()).unwrap();
        let (file, directory) = (name("f"), name("d"));
        for check in [inspect, inspect_link, inspect_extended] {
            assert_eq!(check(&file), -2);
        }
        assert_eq!((make_file(&file), make_file(&file), make_directory(&directory)), (0, 0, 0));
        for check in [inspect, inspect_link, inspect_extended] {
            assert_eq!((check(&file), check(&directory)), (0, 0));
        }
        assert_eq!((make_directory(&directory), remove_directory(&file)), (-17, -20));
        assert_eq!((remove_file(&file), remove_directory(&directory)), (0, 0));
        assert_eq!((remove_file(&file), remove_directory(&directory)), (-2, -2));
        std::os::unix::fs::symlink("elsewhere", place.path().join("f")).unwrap();
        assert_eq!(make_file(&file), -40, "a link is not followed");
        assert!(!place.path().join("elsewhere").exists());
    }
}
