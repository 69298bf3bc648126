//! Engines of fio that are not supported: known by name, so that each is refused with what to use instead.

/// A row of the table of refused engines.
pub(crate) struct RefusedEngine {
    /// fio's names.
    pub names: &'static [&'static str],
    /// What it does, as the end of a sentence that begins with "it".
    pub does: &'static str,
    /// The remedy.
    pub instead: &'static str,
}

const fn row(names: &'static [&'static str], does: &'static str, instead: &'static str) -> RefusedEngine {
    RefusedEngine { names, does, instead }
}

/// fio's engines that are refused.
pub(crate) const REFUSED_ENGINES: &[RefusedEngine] = &[
    row(
        &["cpuio"],
        "uses CPU time and does no I/O",
        "run stress-ng --cpu N --cpu-load PERCENT beside the jobs, or use thinktime_spin",
    ),
    row(&["exec"], "runs a program", "use exec_prerun, or start the program beside the jobs"),
    row(&["external"], "loads an engine from a library", "use an engine of the list of --enghelp"),
    row(
        &["io_uring_cmd"],
        "passes commands through to NVMe character devices (/dev/ng*), beside the guard that protects mounted devices",
        "use ioengine=io_uring on the block device",
    ),
    row(
        &["sg"],
        "passes commands through to SCSI character devices (/dev/sg*), beside the guard that protects mounted devices",
        "use ioengine=io_uring on the block device",
    ),
    row(
        &["libblkio", "libcufile", "spdk", "xnvme"],
        "drives devices through a library",
        "use ioengine=io_uring on the block device",
    ),
    row(
        &["dev-dax", "libpmem", "pmemblk"],
        "accesses persistent memory through a library",
        "use ioengine=mmap on a file of a file system that is mounted with dax",
    ),
    row(&["mtd"], "accesses raw flash memory", "use ioengine=psync on /dev/mtdblockN"),
    row(&["rbd", "rados"], "accesses Ceph through a library", "map an image with rbd map and use /dev/rbdN"),
    row(&["libiscsi"], "accesses a LUN through a library", "log in with iscsiadm and use the block device"),
    row(&["nbd"], "accesses an export through a library", "connect it with nbd-client and use /dev/nbdN"),
    row(
        &["gfapi", "gfapi_async"],
        "accesses Gluster through a library",
        "mount the volume and use directory=",
    ),
    row(&["nfs"], "accesses an export through a library", "mount the export and use directory="),
    row(&["dfs"], "accesses DAOS through a library", "mount the container with dfuse and use directory="),
    row(
        &["libhdfs"],
        "accesses HDFS through a library",
        "mount it through its NFS gateway and use directory=",
    ),
    row(
        &["http"],
        "accesses object storage",
        "mount the bucket, for example with rclone mount, and use directory=",
    ),
    row(&["net", "netsplice"], "measures the network", "use iperf3"),
    row(&["rdma"], "measures the network", "use ib_read_bw and ib_write_bw"),
    row(&["e4defrag"], "moves the extents of files in ext4", "run e4defrag beside the jobs"),
    row(&["windowsaio"], "is for Windows", "use ioengine=libaio"),
];

/// The row of the engine with this name; `external:PATH` has one too.
pub(crate) fn find(name: &str) -> Option<&'static RefusedEngine> {
    let name = if name.starts_with("external:") { "external" } else { name };
    REFUSED_ENGINES.iter().find(|row| row.names.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_says_what_to_do_instead() {
        for row in REFUSED_ENGINES {
            assert!(!row.names.is_empty() && !row.does.is_empty() && !row.instead.is_empty());
            for text in [row.does, row.instead] {
                assert!(text.is_ascii() && !text.ends_with('.'), "{text}");
            }
        }
        assert_eq!(find("rados").map(|row| row.names[0]), Some("rbd"));
        assert!(find("external:/lib/foo.so").is_some());
        assert!(find("io_uring").is_none());
    }
}
