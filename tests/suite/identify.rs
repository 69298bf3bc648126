//! `fathom identify` on devices: nothing is written to one that was not named, and wrong words are refused.

use fathom_tests::{LoopDevice, fathom, measuring_alone, need, run, scratch};

const MIB: u64 = 1 << 20;

#[test]
fn a_device_keeps_its_data_unless_it_is_named() {
    need!(root, tool "losetup");
    let _alone = measuring_alone();
    let device = LoopDevice::new(32 * MIB);
    let home = scratch();
    let mut command = fathom(home.path());
    let ended = run(command.args(["identify", "--budget=30s"]).arg(device.path()));
    ended.assert_code(0).assert_shown(&["reads alone", "--destroy-data=", "burst credit"]);
    assert!(std::fs::read(device.path()).expect("the device can be read").iter().all(|byte| *byte == 0));
    for wrong in [&["--budget=29s"][..], &["--read-only", "--destroy-data=/dev/null"], &["--bs=4k"]] {
        run(fathom(home.path()).arg("identify").args(wrong).arg(device.path())).assert_code(2);
    }
}
