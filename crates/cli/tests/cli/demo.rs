//! `fathom demo`: the real commands on simulated volumes, and nothing that remains.

use crate::{ended, files_in, program, run, scratch};

#[test]
fn the_tour_shows_what_the_commands_print_and_keeps_nothing() {
    let dir = scratch();
    let shown = run(dir.path(), &["demo"]).quietly().stdout;
    for part in ["== 1 of 5: ping", "== 5 of 5: compare", "== What to try next =="] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let line = "$ fathom bench 'sim:aws-gp2?size=50GiB'\n";
    assert!(shown.contains(line), "{shown}");
    let alone = run(dir.path(), &["bench", "sim:aws-gp2?size=50GiB"]).quietly().stdout;
    let (_, behind) = shown.split_once(line).unwrap();
    assert!(behind.starts_with(&alone), "the same as the command itself prints");
    assert!(!shown.contains('\u{1b}'), "plain in a pipe");
    assert!(files_in(dir.path()).is_empty(), "{:?}", files_in(dir.path()));
}

#[test]
fn one_step_can_be_chosen_and_a_history_of_the_environment_is_left_alone() {
    let dir = scratch();
    let output = program(dir.path()).args(["demo", "compare", "ping"]).env("FATHOM_HISTORY", "h.db").output();
    let shown = ended(output.unwrap()).quietly().stdout;
    assert!(shown.contains("== 1 of 2: ping") && shown.contains("== 2 of 2: compare"), "{shown}");
    assert!(!shown.contains("identify"), "{shown}");
    assert!(files_in(dir.path()).is_empty());
    let refused = run(dir.path(), &["demo", "fly"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
}
