//! The files of a recording: one, or several of a largest size, of which the latest are kept.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use fathom_observed::recording::{RecordingEnd, RecordingHeader};
use fathom_sys::files::{create_new, create_output};

use super::RecordingSettings;

/// Names that are tried where a file of that name exists already.
const MAX_NAMES: u32 = 10_000;

/// Writes blocks to the present file.
#[derive(Debug)]
pub(super) struct RecordingFiles {
    settings: RecordingSettings,
    header: RecordingHeader,
    file: File,
    path: PathBuf,
    /// Bytes of the present file.
    bytes: u64,
    /// Bytes of the files before.
    earlier_bytes: u64,
    /// Number of files.
    count: u32,
    /// The present file and those before that are kept.
    kept: VecDeque<PathBuf>,
}

impl RecordingFiles {
    /// Makes the first file, which does not exist yet, and writes its header.
    pub fn create(settings: RecordingSettings, header: RecordingHeader) -> io::Result<RecordingFiles> {
        let path = path_of(&settings, header.file);
        let file = new_file(&path)?;
        let kept = VecDeque::from([path.clone()]);
        let mut files =
            RecordingFiles { settings, header, file, path, bytes: 0, earlier_bytes: 0, count: 1, kept };
        files.write(&files.header.block())?;
        Ok(files)
    }

    /// The present file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of all files.
    pub fn written_bytes(&self) -> u64 {
        self.earlier_bytes + self.bytes
    }

    /// Files that were written.
    pub fn count(&self) -> u32 {
        self.count
    }

    pub fn write(&mut self, block: &[u8]) -> io::Result<()> {
        self.file.write_all(block)?;
        self.bytes += block.len() as u64;
        Ok(())
    }

    /// Begins another file with what happens from `next_ns` on, where this one has its largest size.
    pub fn rotate(&mut self, now_ns: u64, next_ns: u64) -> io::Result<()> {
        if self.settings.most_bytes.is_none_or(|most| self.bytes < most) {
            return Ok(());
        }
        self.write(&RecordingEnd { end_ns: now_ns, continues: true, in_flight: 0 }.block())?;
        self.header.file += 1;
        let first = self.header.file;
        (self.path, self.file) = loop {
            let path = path_of(&self.settings, self.header.file);
            match new_file(&path) {
                Ok(file) => break (path, file),
                // That of an earlier recording stays.
                Err(error)
                    if error.kind() == ErrorKind::AlreadyExists && self.header.file - first < MAX_NAMES =>
                {
                    self.header.file += 1;
                }
                Err(error) => return Err(error),
            }
        };
        self.header.from_ns = next_ns;
        self.earlier_bytes += std::mem::take(&mut self.bytes);
        self.count += 1;
        self.kept.push_back(self.path.clone());
        while self.settings.most_files.is_some_and(|most| self.kept.len() > most as usize) {
            if let Some(oldest) = self.kept.pop_front() {
                // Somebody else may have moved it away.
                let _ = std::fs::remove_file(oldest);
            }
        }
        self.write(&self.header.block())
    }

    /// Ends the last file.
    pub fn end(&mut self, end_ns: u64, in_flight: u64) -> io::Result<()> {
        self.write(&RecordingEnd { end_ns, continues: false, in_flight }.block())
    }
}

/// A number follows the name where there may be several files.
fn path_of(settings: &RecordingSettings, number: u32) -> PathBuf {
    let mut path = settings.path.clone().into_os_string();
    if settings.most_bytes.is_some() {
        path.push(format!(".{number:05}"));
    }
    path.into()
}

/// A recording of hours is not overwritten.
fn new_file(path: &Path) -> io::Result<File> {
    create_new(path)?;
    create_output(path)
}

#[cfg(test)]
mod tests {
    use fathom_observed::recording::{RecordingDetail, RequestBlock, read_recording};
    use fathom_observed::{LoadSource, ObservedRequest, RequestPoint};

    use super::*;

    fn header() -> RecordingHeader {
        RecordingHeader {
            detail: RecordingDetail::Requests,
            point: RequestPoint::Driver,
            device: "sda".to_owned(),
            size_bytes: 1 << 30,
            sector_bytes: 512,
            host: "h".to_owned(),
            started_unix_ns: 1_700_000_000_000_000_000,
            file: 1,
            from_ns: 0,
            tool_version: "1".to_owned(),
            notes: Vec::new(),
        }
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_latest_files_are_kept_and_joined_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("load");
        let settings = RecordingSettings { path, most_bytes: Some(600), most_files: Some(3) };
        // A file of an earlier recording is in the way.
        std::fs::write(directory.path().join("load.00003"), "x").unwrap();
        let mut files = RecordingFiles::create(settings.clone(), header()).unwrap();
        let mut block = RequestBlock::default();
        for second in 0..50_u64 {
            let at_ns = second * 1_000_000_000;
            block.push(&ObservedRequest {
                at_ns,
                offset: 0,
                latency_ns: None,
                bytes: 512,
                file: 0,
                op: Default::default(),
            });
            files.write(&block.take(at_ns, 0, 0)).unwrap();
            files.rotate(at_ns, at_ns).unwrap();
        }
        files.end(50_000_000_000, 0).unwrap();
        assert!(files.count() > 4, "{}", files.count());
        let found = names(directory.path());
        assert_eq!((found.len(), found[0].as_str()), (4, "load.00003"));
        let own: Vec<&String> = found.iter().filter(|name| *name != "load.00003").collect();
        let bytes: Vec<u8> =
            own.iter().flat_map(|name| std::fs::read(directory.path().join(name)).unwrap()).collect();
        let LoadSource::Stream(mut requests) = read_recording(&bytes[..], None).unwrap() else {
            panic!("these are requests")
        };
        let times: Vec<u64> = requests.by_ref().map(|request| request.unwrap().at_ns).collect();
        assert!(
            times.len() > 5 && times.windows(2).all(|pair| pair[1] - pair[0] == 1_000_000_000),
            "{times:?}"
        );
        let load = requests.into_load();
        assert!(load.gaps.is_empty() && load.notes.is_empty(), "{load:?}");
        assert_eq!(load.started_unix_ns.unwrap() + load.length_ns, 1_700_000_050_000_000_000);
        assert_eq!(
            RecordingFiles::create(RecordingSettings { most_bytes: None, ..settings }, header())
                .map(drop)
                .ok(),
            Some(())
        );
    }

    #[test]
    fn existing_files_are_not_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("load");
        std::fs::write(&path, "precious").unwrap();
        let settings = RecordingSettings { path: path.clone(), most_bytes: None, most_files: None };
        let error = RecordingFiles::create(settings, header()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    }
}
