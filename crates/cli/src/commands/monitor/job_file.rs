//! `monitor --to-job`: the file that gets the job.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use fathom_analysis::monitor::MonitorInterval;
use fathom_analysis::monitor::capture::Capture;
use fathom_model::text::shell_quoted;
use fathom_report::monitor::job as monitor_job;
use fathom_sys::files::{PathRefusal, check_output, replace_output};

use crate::exit::Complaint;
use crate::output;

/// As for any file that is made; the umask takes away from it.
pub const NEW_FILE_MODE: u32 = 0o666;

fn unwritable(path: &Path, error: &io::Error) -> String {
    format!("cannot write {}: {}", path.display(), output::plain(error))
}

/// Where the job goes.
pub struct JobFile {
    path: PathBuf,
}

impl JobFile {
    /// A file that can be created at `path`, as far as that is known without creating it.
    ///
    /// # Errors
    /// It cannot.
    pub fn check(path: &Path) -> Result<JobFile, Complaint> {
        match check_output(path) {
            Ok(()) => Ok(JobFile { path: path.to_owned() }),
            Err(error) => {
                let hint = PathRefusal::of(&error).map(PathRefusal::hint);
                let hint = hint.unwrap_or("name a file in an existing directory");
                Err(Complaint::usage(unwritable(path, &error), Some(hint.to_owned())))
            }
        }
    }

    /// Writes the job of the one device that did most.
    ///
    /// # Errors
    /// No device did anything, or the file cannot be written.
    pub fn write(&self, captures: &BTreeMap<String, Capture>) -> Result<(), Complaint> {
        let mut loads: Vec<MonitorInterval> = captures.values().filter_map(Capture::load).collect();
        loads.sort_by_key(|load| std::cmp::Reverse(load.activity.total().ios));
        let text = loads.first().and_then(|load| Some((load, monitor_job::render(load)?)));
        let Some((load, text)) = text else {
            let hint = "run fathom monitor while the load runs".to_owned();
            return Err(Complaint::failed("cannot write a job: the devices completed no I/O", Some(hint)));
        };
        replace_output(&self.path, NEW_FILE_MODE, |out| out.write_all(text.as_bytes())).map_err(|error| {
            let hint = PathRefusal::of(&error).map(|refusal| refusal.hint().to_owned());
            Complaint::failed(unwritable(&self.path, &error), hint)
        })?;
        let others = loads.len() - 1;
        let more = if others == 0 { String::new() } else { format!(" ({others} other devices had less)") };
        let name = self.path.to_string_lossy();
        let name = shell_quoted(&name);
        output::warn(&format!(
            "Wrote the load of {}{more} to {name}. To run it: TARGET=... fathom fio {name}",
            load.device.name
        ));
        Ok(())
    }
}
