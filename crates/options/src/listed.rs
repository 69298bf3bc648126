//! The directories that jobs name: `directory`, and the files of `opendir`.

use std::io;
use std::path::{Path, PathBuf};

use crate::cli::Invocation;
use crate::error::OptionError;

/// Most files of the directories of all jobs.
const MAX_LISTED: usize = 1 << 20;

impl Invocation {
    /// The directories of `directory`, which must exist: unlike those of file names, fio does not make them.
    pub fn directories(&self) -> Vec<PathBuf> {
        self.sections
            .iter()
            .flat_map(|section| &section.options.directory)
            .flatten()
            .map(PathBuf::from)
            .collect()
    }

    /// Replaces the directories of `opendir` by the names of their files, as `list` returns them.
    ///
    /// # Errors
    /// A directory cannot be listed, has no file, or the names are not valid text.
    pub fn list_directories(
        &mut self,
        list: &dyn Fn(&Path) -> io::Result<Vec<PathBuf>>,
    ) -> Result<(), OptionError> {
        let mut listed = 0;
        for section in &mut self.sections {
            let directories = std::mem::take(&mut section.options.opendir);
            for directory in directories {
                let refused = |reason: String| OptionError::bad_value("opendir", &directory, &reason);
                let files = list(Path::new(&directory)).map_err(|error| refused(without_number(&error)))?;
                listed += files.len();
                if files.is_empty() || listed > MAX_LISTED {
                    return Err(refused(format!(
                        "it has {} files: 1 to {MAX_LISTED} can be used",
                        files.len()
                    )));
                }
                let names = files.into_iter().map(|file| file.into_os_string().into_string());
                let names: Vec<String> = names
                    .collect::<Result<_, _>>()
                    .map_err(|name| refused(format!("the name {} is not valid UTF-8", name.display())))?;
                self.messages.push(format!("fio: opendir added {} files", names.len()));
                section.options.filename.get_or_insert_default().extend(names);
            }
        }
        Ok(())
    }
}

/// The text of an error, without its number.
pub(crate) fn without_number(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map_or(text.clone(), |(words, _)| words.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PlanningHost, Section};

    fn planned(list: &dyn Fn(&Path) -> io::Result<Vec<PathBuf>>) -> Result<Vec<PathBuf>, String> {
        let section = Section::from_pairs("j", &[("opendir", "d"), ("filename", "x")], &[]).unwrap();
        let mut invocation = Invocation { sections: vec![section], ..Invocation::default() };
        invocation.list_directories(list).map_err(|error| error.to_string())?;
        assert_eq!(invocation.messages.len(), 1);
        let plan = invocation.plan(&PlanningHost::default()).map_err(|error| error.to_string())?;
        Ok(plan.jobs[0].clones[0].paths.clone())
    }

    #[test]
    fn directories_become_the_names_of_their_files() {
        let files = planned(&|directory| Ok(vec![directory.join("a:b"), directory.join("c")]));
        assert_eq!(files.unwrap(), ["x", "d/a:b", "d/c"].map(PathBuf::from));
        assert!(planned(&|_| Err(io::ErrorKind::NotFound.into())).unwrap_err().contains("opendir=d"));
        assert!(planned(&|_| Ok(Vec::new())).unwrap_err().contains("0 files"));
    }
}
