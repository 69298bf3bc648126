//! The exit codes of commands that check criteria.

use crate::{run, scratch};

const VOLUME: &str = "sim:custom?iops=700&bandwidth=20MiB&latency=500us&parallelism=64&size=1GiB";

#[test]
fn an_inconclusive_criterion_has_an_exit_code_of_its_own_with_strict() {
    let dir = scratch();
    let check = |command: &[&str], criterion: &str, expected: [i32; 2]| {
        for (strict, expected) in [&[][..], &["--strict"]].into_iter().zip(expected) {
            let ran = run(dir.path(), &[command, &[criterion], strict, &[VOLUME]].concat());
            assert_eq!(ran.code, Some(expected), "{command:?} {criterion} {strict:?}: {ran:?}");
        }
    };
    let bench = ["bench", "--quick", "--only=lat-read", "--expect"];
    check(&bench, "lat-read.iops>=100", [0, 0]);
    check(&bench, "lat-read.lat_ns.p9999<1s", [0, 4]);
    check(&bench, "lat-read.lat_ns.mean<10us", [3, 3]);
    let sweep = ["sweep", "--budget=10s", "--iodepth=1", "--bs=4k", "--expect"];
    check(&sweep, "mean<5ms", [0, 0]);
    check(&sweep, "p99.99<5ms", [0, 4]);
    check(&sweep, "mean<1us", [3, 3]);
    let ping = ["ping", "-q", "-c", "30", "-i", "10ms", "--expect"];
    check(&ping, "p50<5ms", [0, 0]);
    check(&ping, "p99<5ms", [0, 4]);
    check(&ping, "p99<5ms,p50<1us", [3, 3]);
}
