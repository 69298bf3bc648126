//! What a bench target called `instructions` is made of: a list of cases, each a loop over one operation.
//!
//! The program runs one case as often as it is told and measures nothing itself: `cargo xtask instructions` counts what
//! it executes. Shared by the bench targets through `#[path]`, because a crate of its own would hold nothing else.

use std::process::ExitCode;

/// Something whose instructions are counted.
pub struct Case {
    /// Its name within the crate: lower case, digits and dashes.
    pub name: &'static str,
    /// So many operations give a steady mean, and twice as many are counted within two seconds.
    pub operations: u64,
    /// Performs so many operations.
    pub run: fn(u64),
}

/// Runs the case and number of operations that the arguments name; lists the cases where there are none.
pub fn main(cases: &[Case]) -> ExitCode {
    // cargo gives `--bench` to every bench target that it runs.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match &arguments[..] {
        [] => {
            cases.iter().for_each(|case| println!("{} {}", case.name, case.operations));
            return ExitCode::SUCCESS;
        }
        [name, operations] => {
            let case = cases.iter().find(|case| case.name == name);
            if let (Some(case), Ok(operations)) = (case, operations.parse()) {
                (case.run)(operations);
                return ExitCode::SUCCESS;
            }
        }
        _ => {}
    }
    eprintln!("usage: instructions [CASE OPERATIONS]; without arguments it lists the cases");
    ExitCode::from(2)
}
