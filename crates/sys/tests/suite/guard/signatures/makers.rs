//! Images written by the programs that make file systems, labels and containers; they need no privilege.

use crate::guard::loop_device::{is_on_path, run_with_input};

use super::{image, names, says_blkid};

/// A program that writes a format, and how both are called.
pub struct Maker {
    tool: &'static str,
    /// The size of the image before, in MiB; 0 where the program makes the file.
    mib: u64,
    /// `IMAGE` stands for the image and `FOLDER` for a directory with a file in it.
    arguments: &'static [&'static str],
    input: &'static str,
    /// What it is to be recognised as.
    name: &'static str,
    /// What `blkid -p` is to say of it; empty where it does not recognise what the program makes.
    pub blkid: &'static str,
}

const fn maker(
    tool: &'static str,
    mib: u64,
    arguments: &'static [&'static str],
    name: &'static str,
    blkid: &'static str,
) -> Maker {
    Maker { tool, mib, arguments, input: "", name, blkid }
}

/// The same with something to read on standard input.
const fn given(input: &'static str, maker: Maker) -> Maker {
    Maker { input, ..maker }
}

pub const MAKERS: &[Maker] = &[
    maker("mkfs.ext2", 16, &["-q", "-F", "IMAGE"], "ext2", "TYPE=ext2"),
    maker("mkfs.ext3", 16, &["-q", "-F", "IMAGE"], "ext3", "TYPE=ext3"),
    maker("mkfs.ext4", 16, &["-q", "-F", "IMAGE"], "ext4", "TYPE=ext4"),
    maker("mkfs.ext4", 16, &["-q", "-F", "-b1024", "-O^has_journal", "IMAGE"], "ext4", "TYPE=ext4"),
    maker("mkfs.ext4", 16, &["-q", "-F", "-Ojournal_dev", "IMAGE"], "ext journal", "TYPE=jbd"),
    maker("mkfs.xfs", 320, &["-q", "IMAGE"], "xfs", "TYPE=xfs"),
    maker("mkfs.xfs", 320, &["-q", "-mcrc=0", "-ssize=4096", "IMAGE"], "xfs", "TYPE=xfs"),
    maker(
        "mkfs.xfs",
        80,
        &["-q", "-llogdev=IMAGE,size=64m", "-dname=OTHER,size=320m,file"],
        "XFS log",
        "TYPE=xfs_external_log",
    ),
    maker("mkfs.btrfs", 128, &["-q", "IMAGE"], "btrfs", "TYPE=btrfs"),
    maker("mkfs.f2fs", 64, &["-q", "IMAGE"], "f2fs", "TYPE=f2fs"),
    maker("mkfs.nilfs2", 160, &["-q", "IMAGE"], "nilfs2", "TYPE=nilfs2"),
    maker("mkfs.jfs", 16, &["-q", "IMAGE"], "jfs", "TYPE=jfs"),
    maker("mkfs.reiserfs", 64, &["-q", "-f", "-f", "IMAGE"], "reiserfs", "TYPE=reiserfs"),
    maker("mkfs.ntfs", 16, &["-q", "-F", "IMAGE"], "NTFS", "TYPE=ntfs"),
    maker("mkfs.exfat", 16, &["IMAGE"], "exFAT", "TYPE=exfat"),
    maker("mkfs.vfat", 4, &["-F12", "IMAGE"], "FAT", "TYPE=vfat"),
    maker("mkfs.vfat", 16, &["-F16", "IMAGE"], "FAT", "TYPE=vfat"),
    maker("mkfs.vfat", 64, &["-F32", "IMAGE"], "FAT", "TYPE=vfat"),
    maker("mkfs.vfat", 64, &["-A", "IMAGE"], "FAT", ""),
    maker("mkapfs", 600, &["IMAGE"], "APFS", "TYPE=apfs"),
    maker("hformat", 16, &["IMAGE"], "HFS", "TYPE=hfs"),
    maker("mkudffs", 16, &["--blocksize=512", "IMAGE"], "UDF", "TYPE=udf"),
    maker("mkudffs", 16, &["--blocksize=4096", "IMAGE"], "UDF", "TYPE=udf"),
    maker("genisoimage", 0, &["-quiet", "-o", "IMAGE", "FOLDER"], "ISO 9660", "TYPE=iso9660"),
    maker("mksquashfs", 0, &["FOLDER", "IMAGE", "-quiet", "-no-progress"], "squashfs", "TYPE=squashfs"),
    maker("mkfs.erofs", 0, &["--quiet", "IMAGE", "FOLDER"], "erofs", "TYPE=erofs"),
    maker("mkfs.cramfs", 0, &["FOLDER", "IMAGE"], "cramfs", "TYPE=cramfs"),
    maker("mkfs.cramfs", 0, &["-Nbig", "FOLDER", "IMAGE"], "cramfs", "TYPE=cramfs"),
    maker("genromfs", 0, &["-d", "FOLDER", "-f", "IMAGE"], "romfs", "TYPE=romfs"),
    maker(
        "mkfs.ubifs",
        0,
        &["-m2048", "-e126976", "-c100", "-r", "FOLDER", "-o", "IMAGE"],
        "ubifs",
        "TYPE=ubifs",
    ),
    given(
        "[volume]\nmode=ubi\nvol_id=0\nvol_size=1MiB\nvol_type=dynamic\nvol_name=x\n",
        maker("ubinize", 0, &["-o", "IMAGE", "-m2048", "-p128KiB", "/dev/stdin"], "UBI", ""),
    ),
    maker("mkfs.minix", 4, &["-1", "IMAGE"], "minix", "TYPE=minix"),
    maker("mkfs.minix", 4, &["-1", "-n14", "IMAGE"], "minix", "TYPE=minix"),
    maker("mkfs.minix", 4, &["-2", "IMAGE"], "minix", "TYPE=minix"),
    maker("mkfs.minix", 64, &["-2", "-n14", "IMAGE"], "minix", "TYPE=minix"),
    maker("mkfs.minix", 64, &["-3", "IMAGE"], "minix", "TYPE=minix"),
    maker("mkfs.bfs", 4, &["IMAGE"], "SCO BFS", "TYPE=bfs"),
    maker("makefs", 0, &["-tffs", "-s16m", "IMAGE", "FOLDER"], "UFS", "TYPE=ufs"),
    maker("makefs", 0, &["-tffs", "-Bbe", "-s16m", "IMAGE", "FOLDER"], "UFS", "TYPE=ufs"),
    maker("makefs", 0, &["-tffs", "-oversion=2", "-s16m", "IMAGE", "FOLDER"], "UFS2", "TYPE=ufs"),
    maker("mkswap", 16, &["IMAGE"], "swap", "TYPE=swap"),
    maker("mkswap", 16, &["--pagesize", "65536", "IMAGE"], "swap", "TYPE=swap"),
    maker("make-bcache", 16, &["-B", "IMAGE"], "bcache", "TYPE=bcache"),
    maker("make-bcache", 80, &["-C", "IMAGE"], "bcache", "TYPE=bcache"),
    given(
        "secret",
        maker(
            "cryptsetup",
            16,
            &["-q", "luksFormat", "--type=luks1", "--pbkdf-force-iterations=1000", "IMAGE", "-"],
            "LUKS1",
            "TYPE=crypto_LUKS",
        ),
    ),
    given(
        "secret",
        maker(
            "cryptsetup",
            32,
            &[
                "-q",
                "luksFormat",
                "--type=luks2",
                "--pbkdf=pbkdf2",
                "--pbkdf-force-iterations=1000",
                "IMAGE",
                "-",
            ],
            "LUKS2",
            "TYPE=crypto_LUKS",
        ),
    ),
    maker(
        "veritysetup",
        4,
        &["format", "FOLDER/file", "IMAGE"],
        "device-mapper verity",
        "TYPE=DM_verity_hash",
    ),
    given("label: dos\n2048 4096\n", maker("sfdisk", 16, &["-q", "IMAGE"], "DOS", "PTTYPE=dos")),
    given("label: dos\n", maker("sfdisk", 16, &["-q", "IMAGE"], "DOS", "PTTYPE=dos")),
    given("label: gpt\n", maker("sfdisk", 16, &["-q", "IMAGE"], "GPT", "PTTYPE=gpt")),
    given("label: sgi\n", maker("sfdisk", 16, &["-q", "IMAGE"], "SGI disk label", "PTTYPE=sgi")),
    given("label: sun\n", maker("sfdisk", 16, &["-q", "IMAGE"], "Sun disk label", "PTTYPE=sun")),
    maker("parted", 16, &["-s", "IMAGE", "mklabel", "mac"], "Apple partition map", "PTTYPE=mac"),
    maker(
        "parted",
        16,
        &["-s", "IMAGE", "mklabel", "atari", "mkpart", "primary", "1MiB", "8MiB"],
        "Atari disk label",
        "PTTYPE=atari",
    ),
    maker("parted", 16, &["-s", "IMAGE", "mklabel", "dvh"], "SGI disk label", "PTTYPE=sgi"),
    maker("parted", 16, &["-s", "IMAGE", "mklabel", "pc98"], "DOS", "PTTYPE=dos"),
    maker("parted", 16, &["-s", "IMAGE", "mklabel", "bsd"], "BSD disk label", ""),
    maker("parted", 16, &["-s", "IMAGE", "mklabel", "amiga"], "Amiga disk label", ""),
];

#[test]
fn formats_made_by_real_programs_are_recognised() {
    for Maker { tool, mib, arguments, input, name, blkid } in MAKERS {
        if !is_on_path(tool) {
            assert!(std::env::var_os("CI").is_none(), "{tool} is needed in CI");
            eprintln!("skipped: {tool} is not installed");
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("folder");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("file"), [b'x'; 8192]).unwrap();
        let path = dir.path().join("image").to_str().unwrap().to_owned();
        if *mib > 0 {
            image(dir.path(), *mib << 20, &[]);
        }
        let arguments: Vec<String> = arguments
            .iter()
            .map(|argument| {
                argument
                    .replace("IMAGE", &path)
                    .replace("FOLDER", folder.to_str().unwrap())
                    .replace("OTHER", dir.path().join("other").to_str().unwrap())
            })
            .collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        run_with_input(tool, &arguments, input);
        assert_eq!(names(&path), [*name], "{tool} {arguments:?}");
        if let Some(says) = says_blkid(&path).filter(|_| !blkid.is_empty()) {
            assert!(says.lines().any(|line| line == *blkid), "{tool} {arguments:?}: blkid says {says:?}");
        }
    }
}
