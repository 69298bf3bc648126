//! The options that name the hosts of a job, and the program on them.

use std::path::{Path, PathBuf};

use clap::Args;
use fathom_assess::AssessError;
use fathom_assess::launcher::{hosts, hosts_of_file};
use fathom_sys::files::HOST_LIST;

use crate::exit::Complaint;
use crate::output;

/// The hosts of a job.
#[derive(Args, Clone, Debug)]
pub struct HostArguments {
    /// Hosts in bracket notation: h[1-64], r[1-2]n[01-16], h1,h2
    #[arg(long, value_name = "LIST", conflicts_with = "hosts_file")]
    hosts: Option<String>,
    /// File of hosts, a name or list a line; - is standard input
    #[arg(long, value_name = "FILE")]
    hosts_file: Option<PathBuf>,
}

impl HostArguments {
    /// The hosts that are named; none where neither option is there.
    ///
    /// # Errors
    /// A list has a mistake, or the file cannot be read.
    pub fn named(&self) -> Result<Vec<String>, Complaint> {
        match (&self.hosts, &self.hosts_file) {
            (Some(list), _) => Ok(hosts(list)?),
            (None, Some(path)) => {
                let text = HOST_LIST.read_text(path).map_err(AssessError::from)?;
                Ok(hosts_of_file(&text, &path.display().to_string())?)
            }
            (None, None) => Ok(Vec::new()),
        }
    }
}

/// The text of a list of hosts that a scheduler wrote.
///
/// # Errors
/// It cannot be read.
pub fn read(name: &str) -> Result<String, String> {
    HOST_LIST.read_text(Path::new(name)).map_err(|error| error.to_string())
}

/// A variable of the environment, unless it is empty.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The program on the hosts: the one that is named, else the path of this one.
///
/// # Errors
/// The path of this one is unknown.
pub fn program(named: Option<&Path>) -> Result<String, Complaint> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => std::env::current_exe().map_err(|error| {
            let hint = Some("name it: --program PATH".to_owned());
            Complaint::failed(format!("cannot find the path of fathom: {}", output::plain(&error)), hint)
        })?,
    };
    Ok(path.display().to_string())
}
