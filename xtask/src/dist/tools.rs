//! The programs that make and check a release, and the Debian packages that they come in.

use crate::packages::Tool;

const fn tool(program: &'static str, package: &'static str) -> Tool {
    Tool { program, package }
}

/// Those that make it.
pub const MAKING: &[Tool] = &[
    tool("cc", "gcc"),
    tool("dpkg-deb", "dpkg"),
    tool("git", "git"),
    tool("gzip", "gzip"),
    tool("md5sum", "coreutils"),
    tool("readelf", "binutils"),
    tool("rpmbuild", "rpm"),
    tool("tar", "tar"),
];

/// Those that compile for aarch64.
pub const CROSS: &[Tool] = &[
    tool("/usr/aarch64-linux-gnu/lib/libc.a", "libc6-dev-arm64-cross"),
    tool("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
];

/// Those that install and run it.
pub const CHECKING: &[Tool] = &[
    tool("/usr/sbin/chroot", "coreutils"),
    tool("debootstrap", "debootstrap"),
    tool("pip3", "python3-pip"),
    tool("python3", "python3"),
    tool("rpm", "rpm"),
    tool("setpriv", "util-linux"),
    tool("sha256sum", "coreutils"),
    tool("unshare", "util-linux"),
];

/// What runs the binary for aarch64.
pub const EMULATOR: &str = "qemu-aarch64";

/// Its package.
pub const EMULATING: &[Tool] = &[tool(EMULATOR, "qemu-user")];
