//! Texts of the kernel on mounts and disks.

use std::os::unix::ffi::OsStrExt;

use fathom_sys::device::diskstats::{DiskStats, parse_diskstats};
use fathom_sys::device::filesystem::{parse_mountinfo, unescape};
use fathom_sys::device::host::count_cpus;
use fathom_sys::device::topology::parse_number;

/// Reads the text as each of them.
pub fn check(data: &[u8]) {
    for mount in parse_mountinfo(data) {
        assert!(data.len() >= mount.mount_point.as_os_str().len());
        mount.super_option("upperdir");
        assert!(mount.source_nodes().iter().all(|node| node.starts_with("/dev")));
    }
    assert!(unescape(data).as_bytes().len() <= data.len());
    let text = String::from_utf8_lossy(data);
    assert!(parse_diskstats(&text).keys().all(|name| !name.is_empty()));
    for line in text.lines() {
        DiskStats::parse(line);
        count_cpus(line);
        parse_number(line);
    }
}
