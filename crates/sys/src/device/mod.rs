//! What the kernel tells of block devices, file systems and the host.
