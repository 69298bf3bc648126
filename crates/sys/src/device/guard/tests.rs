//! The guard on a fabricated `/proc` and `/sys`: devices that this machine does not have.

use super::*;
use crate::device::fixture::Fixture;

fn check(fixture: &Fixture, name: &str, expected: &[&str]) {
    let root = fixture.root();
    let found = Survey::of(&root, &[]).unwrap().users_of_device(name, &mut BTreeSet::new());
    let sentences: Vec<String> = found.iter().map(Obstacle::to_string).collect();
    assert_eq!(sentences, expected, "{name}");
}

fn disks() -> Fixture {
    let fixture = Fixture::new();
    fixture.disk("a", "sda", "8:0", &[]);
    fixture.partition("sda", 1, "sda1", "8:1").partition("sda", 2, "sda2", "8:2");
    fixture.disk("b", "sdb", "8:16", &[]);
    fixture.disk("virtual", "dm-0", "253:0", &[]).write("sys/devices/virtual/block/dm-0/dm/name", "vg-lv\n");
    fixture
}

#[test]
fn mounts_by_number() {
    let mut fixture = disks();
    fixture.mount("8:1", "/", "ext4", "/dev/root").mount("8:1", "/mnt/bound\\040here", "ext4", "/dev/root");
    check(
        &fixture,
        "sda",
        &["its partition /dev/sda1 is mounted at /", "its partition /dev/sda1 is mounted at /mnt/bound here"],
    );
    check(&fixture, "sda1", &["/dev/sda1 is mounted at /", "/dev/sda1 is mounted at /mnt/bound here"]);
    check(&fixture, "sda2", &[]);
    check(&fixture, "sdb", &[]);
}

#[test]
fn disk_mounted_as_a_whole() {
    let mut fixture = disks();
    fixture.mount("8:0", "/mnt", "xfs", "/dev/sda");
    check(&fixture, "sda2", &["its disk /dev/sda is mounted as a whole at /mnt"]);
}

#[test]
fn members_of_a_mounted_btrfs() {
    let mut fixture = disks();
    fixture.write("sys/fs/btrfs/id/devices/sda2", "").write("sys/fs/btrfs/id/devices/sdb", "");
    fixture.mount("0:50", "/pool", "btrfs", "/dev/sda2");
    check(&fixture, "sdb", &["/dev/sdb is mounted at /pool"]);
    check(&fixture, "sda", &["its partition /dev/sda2 is mounted at /pool"]);
}

#[test]
fn holders() {
    let fixture = disks();
    fixture.holds("dm-0", "sda2");
    check(&fixture, "sda2", &["/dev/mapper/vg-lv is built on /dev/sda2"]);
    check(&fixture, "sda", &["/dev/mapper/vg-lv is built on /dev/sda2"]);
    check(&fixture, "sda1", &[]);
    check(&fixture, "dm-0", &[]);
    fixture.holds("dm-0", "sdb").partition("sdb", 1, "sdb1", "8:17");
    check(&fixture, "sdb1", &["/dev/mapper/vg-lv is built on /dev/sdb"]);
}

#[test]
fn swap() {
    let fixture = disks();
    fixture.write(
        "proc/swaps",
        "Filename\t\t\t\tType\t\tSize\n/dev/mapper/vg-lv partition 100 0 -2\n/dev/sda2\tpartition\t9\n",
    );
    check(&fixture, "dm-0", &["/dev/mapper/vg-lv is active swap space"]);
    check(&fixture, "sda", &["/dev/sda2 is active swap space"]);
    check(&fixture, "sdb", &[]);
}

#[test]
fn host_managed_zones() {
    let check = |zoned: &str, expected: bool| {
        let fixture = disks();
        let queue = "sys/devices/a/block/sda/queue/zoned";
        fixture.write(queue, &format!("{zoned}\n"));
        for name in ["sda", "sda1"] {
            assert_eq!(facts::is_host_managed(&fixture.root(), name), expected, "{name}: {zoned}");
        }
        assert!(!facts::is_host_managed(&fixture.root(), "sdb"));
    };
    check("host-managed", true);
    check("host-aware", false);
    check("none", false);
}

fn backing(fixture: &Fixture, name: &str, file: &str) {
    let number = format!("7:{}", name.trim_start_matches("loop"));
    fixture.disk("virtual", name, &number, &[]);
    fixture.write(&format!("sys/devices/virtual/block/{name}/loop/backing_file"), &format!("{file}\n"));
}

fn behind(device: &str, user: &str) -> String {
    format!("the loop device {device} has its data there, and {user}")
}

#[test]
fn loops_over_devices_and_files() {
    let mut fixture = disks();
    fixture.write("srv/a.img", "").write("srv/b.img", "");
    backing(&fixture, "loop0", "/dev/sdb");
    backing(&fixture, "loop1", "/srv/a.img");
    backing(&fixture, "loop2", "/srv/a.img");
    fixture.mount("7:0", "/mnt/zero", "ext4", "/dev/loop0").mount("7:1", "/mnt/one", "xfs", "/dev/loop1");
    let zero = "/dev/loop0 is mounted at /mnt/zero";
    let one = "/dev/loop1 is mounted at /mnt/one";
    check(&fixture, "sdb", &[&behind("/dev/loop0", zero)]);
    check(&fixture, "loop0", &[zero]);
    check(&fixture, "loop2", &[&behind("/dev/loop1", one)]);
    check(&fixture, "loop1", &[one]);
    check_file(&fixture, "/srv/a.img", &[&behind("/dev/loop1", one)]);
    check_file(&fixture, "/srv/b.img", &[]);
}

/// The obstacles for the file at `path`, under this and another name.
#[track_caller]
fn check_file(fixture: &Fixture, path: &str, expected: &[&str]) {
    let root = fixture.root();
    let link = root.path(format!("{path}.link"));
    std::fs::hard_link(root.path(path), &link).unwrap();
    for path in [root.path(path), link] {
        let target = TargetHandle::open(&path).unwrap();
        let found = Survey::of(&root, &[&target]).unwrap().obstacles(&target).unwrap();
        let sentences: Vec<String> = found.iter().map(Obstacle::to_string).collect();
        assert_eq!(sentences, expected, "{}", path.display());
        assert!(found.iter().all(|obstacle| obstacle.class() == ObstacleClass::InUse));
    }
}

#[test]
fn chains_of_loops_are_followed_to_the_mount() {
    let mut fixture = disks();
    fixture.write("srv/a.img", "");
    backing(&fixture, "loop0", "/srv/a.img");
    backing(&fixture, "loop1", "/dev/loop0");
    backing(&fixture, "loop2", "/dev/loop1");
    fixture.mount("7:2", "/deep", "ext4", "/dev/loop2");
    let deep = "/dev/loop2 is mounted at /deep";
    let middle = behind("/dev/loop2", deep);
    check(&fixture, "loop2", &[deep]);
    check(&fixture, "loop1", &[&middle]);
    check(&fixture, "loop0", &[&behind("/dev/loop1", &middle)]);
    check_file(&fixture, "/srv/a.img", &[&behind("/dev/loop0", &behind("/dev/loop1", &middle))]);
}

#[test]
fn holders_are_followed_to_their_mounts() {
    let mut fixture = disks();
    fixture.disk("virtual", "md0", "9:0", &[]).holds("md0", "sda2").holds("dm-0", "md0");
    fixture.mount("253:0", "/data", "xfs", "/dev/mapper/vg-lv");
    let volume = "/dev/mapper/vg-lv is mounted at /data";
    let array = format!("/dev/mapper/vg-lv is built on /dev/md0, and {volume}");
    check(&fixture, "md0", &[&array]);
    check(&fixture, "sda2", &[&format!("/dev/md0 is built on /dev/sda2, and {array}")]);
    check(&fixture, "sda", &[&format!("/dev/md0 is built on /dev/sda2, and {array}")]);
    check(&fixture, "sda1", &[]);
}

#[test]
fn swap_on_a_holder_counts_for_what_is_below() {
    let fixture = disks();
    fixture.holds("dm-0", "sdb").write("proc/swaps", "Filename Type\n/dev/mapper/vg-lv partition 1 0 -2\n");
    check(
        &fixture,
        "sdb",
        &["/dev/mapper/vg-lv is built on /dev/sdb, and /dev/mapper/vg-lv is active swap space"],
    );
}

#[test]
fn logs_journals_and_members_of_mounted_file_systems() {
    let mut fixture = disks();
    fixture.mount_with("8:1", "/srv", "xfs", "/dev/sda1", "rw,logdev=/dev/sdb,noquota");
    check(&fixture, "sdb", &["/dev/sdb is the log of the xfs mounted at /srv"]);
    fixture.write("proc/fs/jbd2/sda1-8/info", "").write("proc/fs/jbd2/sda2/info", "");
    check(&fixture, "sda2", &["/dev/sda2 is the journal of a mounted file system"]);
    check(&fixture, "sda1", &["/dev/sda1 is mounted at /srv"]);
    fixture.write("sys/fs/btrfs/2c19/devices/dm-0", "");
    check(&fixture, "dm-0", &["/dev/mapper/vg-lv is a member of the mounted btrfs 2c19"]);
}

#[test]
fn mounts_of_other_namespaces() {
    let mut fixture = disks();
    fixture.mount("8:1", "/", "ext4", "/dev/root");
    let process = |id: u32, namespace: &str, mounts: &str| {
        fixture.write(&format!("proc/{id}/mountinfo"), mounts).write(&format!("proc/{id}/comm"), "db\n");
        fixture.link(&format!("proc/{id}/ns/mnt"), Path::new(namespace));
    };
    fixture.link("proc/self/ns/mnt", Path::new("mnt:[1]"));
    process(1, "mnt:[1]", "20 1 8:16 / /not/looked/at rw - ext4 /dev/sdb rw\n");
    process(30, "mnt:[2]", "20 1 8:1 / / rw - ext4 /dev/root rw\n21 20 8:16 / /db rw - xfs /dev/sdb rw\n");
    process(31, "mnt:[2]", "21 20 8:2 / /not/looked/at rw - xfs /dev/sda2 rw\n");
    check(&fixture, "sdb", &["/dev/sdb is mounted at /db in the mount namespace of process 30 (db)"]);
    check(&fixture, "sda1", &["/dev/sda1 is mounted at /"]);
    check(&fixture, "sda2", &[]);
}

#[test]
fn a_file_that_may_be_behind_a_loop_device_is_not_free() {
    let fixture = disks();
    backing(&fixture, "loop0", "/srv/gone (deleted)");
    fixture.write("srv/other", "some bytes");
    check_file(
        &fixture,
        "/srv/other",
        &["the loop device /dev/loop0 may have its data there: its file cannot be identified"],
    );
}

#[test]
fn without_proc_nothing_is_free() {
    let dir = tempfile::tempdir().unwrap();
    let root = SysRoot::at(dir.path());
    assert!(matches!(Survey::of(&root, &[]), Err(DeviceError::Io { attempted: "read", .. })));
}

#[test]
fn loop_over_a_mounted_device() {
    let mut fixture = disks();
    backing(&fixture, "loop0", "/dev/sda1");
    fixture.mount("8:1", "/data", "ext4", "/dev/sda1");
    check(&fixture, "loop0", &["/dev/sda1 is mounted at /data"]);
}

#[test]
fn missing_path() {
    assert!(matches!(
        in_use(Path::new("/no/such/device")),
        Err(DeviceError::Io { attempted: "inspect", .. })
    ));
    assert_eq!(in_use(Path::new("/dev/null")).unwrap(), []);
}
