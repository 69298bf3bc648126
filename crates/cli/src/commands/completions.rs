//! `fathom completions`: the script that makes a shell complete command lines of fathom.
//!
//! The scripts ask the program itself (`complete`) for each word, so they need not be renewed with it.

use clap::{Args, ValueEnum};

use crate::exit::{Complaint, Exit};
use crate::output;

/// What `fathom completions` takes.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub struct CompletionsArguments {
    /// Shell to print the script for
    #[arg(value_enum)]
    shell: Shell,
}

const EXAMPLES: &str = "\
Completes commands, options, suites, tests, engines, volume types (sim:ID), and the runs, tags and hosts of the history.

Examples:
  source <(fathom completions bash)       in ~/.bashrc
  fathom completions bash > /etc/bash_completion.d/fathom
  source <(fathom completions zsh)        in ~/.zshrc, after compinit
  fathom completions fish > ~/.config/fish/completions/fathom.fish";

/// A shell that there is a script for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    /// GNU bash, from 4.4
    Bash,
    /// zsh
    Zsh,
    /// fish
    Fish,
}

impl Shell {
    const fn script(self) -> &'static str {
        match self {
            Shell::Bash => include_str!("completions/fathom.bash"),
            Shell::Zsh => include_str!("completions/fathom.zsh"),
            Shell::Fish => include_str!("completions/fathom.fish"),
        }
    }
}

/// Prints the script.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(arguments: &CompletionsArguments) -> Result<Exit, Complaint> {
    output::print(|out| out.own_lines(arguments.shell.script()))?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_asks_the_program() {
        for shell in Shell::value_variants() {
            let script = shell.script();
            assert!(script.contains(&format!(" {} ", crate::commands::complete::NAME)), "{shell:?}");
            // Only what can be printed as it is.
            assert!(script.chars().all(|c| c == '\n' || (' '..='~').contains(&c)), "{shell:?}");
        }
    }
}
