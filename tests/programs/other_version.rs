//! A rank of another version of fathom, for jobs with mixed versions: it joins the job that a launcher started and meets the other
//! ranks as fathom does. As rank 0 it says why they cannot measure together.
//!
//! `other_version VERSION`

#![forbid(unsafe_code)]

use std::io::Write as _;
use std::process::ExitCode;

use fathom_assess::fleet::{FleetFiles, FleetJob};

fn main() -> ExitCode {
    let version = std::env::args().nth(1).expect("the version is the argument");
    match FleetJob::join(Default::default(), &|name: &str| std::env::var(name).ok()) {
        Ok(job) => meet(job.of_version(&version)),
        Err(error) => {
            tell(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn meet(job: FleetJob) -> ExitCode {
    let rank = job.rank();
    match job.meet(&[], Ok(FleetFiles::default()), |_| ()) {
        // The others took it for one of theirs.
        Ok(_) => ExitCode::SUCCESS,
        Err(stop) => {
            if rank == 0 || !stop.is_of_all {
                tell(&stop.error.to_string());
            }
            stop.abort();
            ExitCode::FAILURE
        }
    }
}

fn tell(line: &str) {
    #[expect(clippy::disallowed_methods, reason = "the rule is for what users run")]
    let mut stderr = std::io::stderr();
    stderr.write_all(format!("error: {line}\n").as_bytes()).expect("the launcher reads it");
}
