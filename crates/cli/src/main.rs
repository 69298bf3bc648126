//! The binary: chooses the command, prints what it made, and exits with its code.
//!
//! The only crate that prints and exits. `fathom fio …`, and any call under the name `fio`, speaks fio's own command
//! line, `fathom ping …` and the name `ioping` that of ioping; everything else is clap's.

#![forbid(unsafe_code)]

mod commands;
mod exit;
mod http;
mod keys;
mod live;
mod output;
mod progress;
mod ranks;
mod signals;
mod simulate_progress;
mod store;

use std::ffi::OsString;
use std::panic::catch_unwind;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::channel;

use exit::{Complaint, Exit};

/// What a program that panicked ends with.
const PANICKED: u8 = 101;
/// Stack of the command's thread: as much as a program's first thread has.
const STACK_BYTES: usize = 8 << 20;

/// How the program was called.
enum InvokedProgram {
    Fio,
    Ioping,
    Ping,
    Completion,
    Own,
}

fn main() -> ExitCode {
    install_panic_hook();
    let args: Vec<OsString> = std::env::args_os().collect();
    let called = args.first().map(Path::new).and_then(Path::file_name);
    let is = |name: &str| called.is_some_and(|called| called == name);
    let says = |name: &str| args.get(1).is_some_and(|word| word == name);
    let (front, words) = match () {
        () if is("fio") => (InvokedProgram::Fio, 1),
        () if says("fio") => (InvokedProgram::Fio, 2),
        () if is("ioping") => (InvokedProgram::Ioping, 1),
        () if says("ping") => (InvokedProgram::Ping, 2),
        () if says(commands::complete::NAME) => (InvokedProgram::Completion, 2),
        () => (InvokedProgram::Own, 0),
    };
    let (end, ended) = channel();
    let forced = match front {
        InvokedProgram::Fio => Exit::FioInterrupted,
        InvokedProgram::Ioping => Exit::Ioping(4),
        InvokedProgram::Ping | InvokedProgram::Completion | InvokedProgram::Own => Exit::Interrupted,
    };
    signals::start(forced, end.clone());
    let command = move || {
        let number = catch_unwind(|| run(&front, &args, words).number()).unwrap_or(PANICKED);
        let _ = end.send(number);
    };
    // This thread waits for the end alone, so nothing that hangs keeps the program from ending.
    let begun = std::thread::Builder::new().name("command".to_owned()).stack_size(STACK_BYTES).spawn(command);
    if let Err(error) = begun {
        output::warn(&format!("error: cannot start a thread: {}", output::plain(&error)));
        output::warn("hint: raise the number of processes (ulimit -u)");
        return Exit::Failed.code();
    }
    let exit = ended.recv().map_or(Exit::Failed.code(), ExitCode::from);
    live::restore_soon();
    keys::restore();
    exit
}

fn run(front: &InvokedProgram, args: &[OsString], words: usize) -> Exit {
    match front {
        InvokedProgram::Fio => commands::fio::run(&args[words..]),
        InvokedProgram::Ioping => commands::ping::run_as_ioping(&args[words..]),
        InvokedProgram::Ping => commands::ping::run(&args[words..]),
        InvokedProgram::Completion => commands::complete::run(&args[words..]),
        InvokedProgram::Own => commands::run(args).unwrap_or_else(Complaint::report),
    }
}

/// A panic is a bug of ours: one line that says so, instead of a trace that says nothing to a user.
fn install_panic_hook() {
    std::panic::set_hook(Box::new(|info| {
        // A view would cover the words.
        live::restore();
        let place = info.location().map(|place| format!(" at {}:{}", place.file(), place.line()));
        let message = info.payload_as_str().unwrap_or("unknown");
        output::warn(&format!("error: internal error{}: {message}", place.unwrap_or_default()));
        output::warn("hint: this is a bug in fathom; please report it with the command line");
    }));
}
