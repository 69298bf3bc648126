//! `cargo xtask COMMAND`: the build's own commands.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr)] // A program that talks to developers.

use std::process::ExitCode;

use xtask::process::{cargo_command, root, watch};
use xtask::{dist, docs, gate, instructions, tidy};

const USAGE: &str = "\
cargo xtask COMMAND
  test           everything that must hold: packages, format, tidy, lints, release build, instruction counts, unit and
                 crate tests, device tests
  tidy           what the source must keep to: imports, lengths, leftovers, links, generated documents
  docs           write the generated documents and the pages of the book
  instructions   compare the instructions per operation with benches/instructions.toml; --write stores them there, --only NAME
                 takes the cases with NAME in their names alone
  dist           what users install: static binaries, packages, images; --check installs and runs them; --help
  campaign NAME  an experiment that runs for as long as one likes, as does cargo lab NAME; without a NAME the list";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        ["test"] => gate::run(&root()),
        ["tidy"] => tidy::run(&root()),
        ["docs"] => docs::write(&root()),
        ["campaign", ref rest @ ..] => {
            watch(cargo_command(&["run", "--quiet", "--release", "--package", "lab", "--"]).args(rest))
        }
        ["dist", ref rest @ ..] => dist::run(&root(), rest),
        ["instructions", ref rest @ ..] => instructions::run(&root(), rest),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
