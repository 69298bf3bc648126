//! The build's own commands: `cargo xtask test` is the gate, `cargo xtask tidy` its checks of the source itself, `cargo
//! xtask docs` writes the generated documents, `cargo xtask instructions` counts what an operation executes, `cargo
//! xtask campaign` fuzzes, `cargo xtask versus-fio` compares with fio, and `cargo xtask dist` makes what users install.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr)] // A program that talks to developers.

mod advise_devices;
mod advise_speed;
mod campaign;
mod comparisons;
mod contradictions;
mod device_campaign;
mod device_tests;
mod dist;
mod docs;
mod extremes;
mod fio_corpus;
mod fio_parser;
mod fleet_failures;
mod fleet_scale;
mod fuzz;
mod gate;
mod identify_devices;
mod instructions;
mod kernels;
mod long_tests;
mod packages;
mod pages;
mod planted_causes;
mod process;
mod readers;
mod test_programs;
mod tidy;
mod twins;
mod versus;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask COMMAND

  test           everything that must hold: packages, format, tidy, lints, release build, instruction counts, unit and
                 crate tests, device tests
  tidy           what the source must keep to: imports, lengths, leftovers, links, generated documents
  docs           write the generated documents
  instructions   hold the instructions per operation against benches/instructions.toml; --write stores them there, --only NAME
                 takes the cases with NAME in their names alone
  campaign       what runs for as long as one likes; without a NAME the list of what there is
  dist           what users install: static binaries, packages, images; --check installs and runs them; --help
  versus-fio     what an I/O costs beside Debian's fio, written into the pages that quote it; --help";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        ["test"] => gate::run(&root()),
        ["tidy"] => tidy::run(&root()),
        ["docs"] => docs::write(&root()),
        ["campaign", ref rest @ ..] => campaign::run(&root(), rest),
        ["dist", ref rest @ ..] => dist::run(&root(), rest),
        ["versus-fio", ref rest @ ..] => versus::run(&root(), rest),
        ["instructions", ref asked @ ..] => match instructions::InstructionArguments::parse(asked) {
            Some(asked) => instructions::run(&root(), &asked),
            None => {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
        },
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

/// The workspace's directory.
fn root() -> PathBuf {
    let manifest_directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest_directory.parent().expect("xtask lies in the workspace").to_owned()
}
