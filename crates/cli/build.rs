//! Folds functions of identical code where the linker is the toolchain's own, for a smaller program.

use std::env;

/// Whose toolchain links with LLD by itself.
const TARGET: &str = "x86_64-unknown-linux-gnu";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |variable: &str, value: &str| env::var(variable).is_ok_and(|found| found == value);
    let is_linker_chosen = env::var("CARGO_ENCODED_RUSTFLAGS")
        .is_ok_and(|flags| flags.contains("link") || flags.contains("-fuse-ld"));
    if is("TARGET", TARGET) && is("PROFILE", "release") && !is_linker_chosen {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}
