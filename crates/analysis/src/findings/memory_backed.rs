//! Whether a storage device was measured at all: a file system or device may keep its data in memory.

use fathom_record::{DeviceRecord, FilesystemRecord, Finding, FindingId, RunRecord, TargetRecord};

use crate::rows::RecordRow;
use crate::say::finding;

/// The locality of a device that keeps its data in memory.
const MEMORY: &str = "memory";

/// What to do about it.
pub(crate) const REMEDY: &str = "Measure a directory, file or device on the storage in question.";

/// That a target keeps its data in memory, as the beginning of a sentence; `None` where it is not known to.
pub(crate) fn claim(target: &TargetRecord) -> Option<String> {
    let in_memory = |filesystem: &FilesystemRecord| {
        let (fs_type, memory) = (filesystem.fs_type.clone(), filesystem.memory.clone()?);
        Some(if fs_type == memory { memory } else { format!("{fs_type} over {memory}") })
    };
    Some(match target.filesystem.as_ref().and_then(in_memory) {
        Some(memory) => format!("{memory} keeps files in memory"),
        None => format!("{} keeps its data in memory", memory_device(&target.devices)?),
    })
}

/// A finding for all rows where the target of the run is in memory.
pub(crate) fn findings(record: &RunRecord, rows: &[RecordRow<'_>]) -> Option<Finding> {
    let claim = claim(&record.header.conditions.target)?;
    let measured: Vec<&RecordRow<'_>> = rows.iter().filter(|row| row.summary.total.is_some()).collect();
    if measured.is_empty() {
        return None;
    }
    let claim = format!("{claim}: these are figures of the host's memory, not of a storage device.");
    Some(finding(FindingId::MemoryBacked, measured, claim, REMEDY))
}

/// The first of the devices at the bottom of the stack, where all of them keep their data in memory.
fn memory_device(devices: &[DeviceRecord]) -> Option<&str> {
    let is_bottom =
        |device: &&DeviceRecord| devices.iter().all(|other| other.under.as_ref() != Some(&device.name));
    let is_memory = |device: &DeviceRecord| device.locality.as_deref() == Some(MEMORY);
    let bottom: Vec<&DeviceRecord> = devices.iter().filter(is_bottom).collect();
    let first = bottom.first()?;
    bottom.iter().all(|device| is_memory(device)).then_some(first.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{TestLoad, record};
    use crate::rows::rows;
    use fathom_record::Severity;

    fn claim(record: &RunRecord) -> Option<String> {
        findings(record, &rows(record)).map(|finding| finding.claim)
    }

    #[test]
    fn memory_file_systems_are_reported_and_others_are_not() {
        let mut run = record(&[
            TestLoad { id: "a", ..TestLoad::default() },
            TestLoad { id: "b", ..TestLoad::default() },
        ]);
        let on_memory = |fs_type: &str, memory: Option<&str>| FilesystemRecord {
            fs_type: fs_type.to_owned(),
            memory: memory.map(str::to_owned),
            ..FilesystemRecord::default()
        };
        let mut on = |fs_type: &str, memory: Option<&str>| {
            run.header.conditions.target.filesystem = Some(on_memory(fs_type, memory));
            findings(&run, &rows(&run))
        };
        let found = on("tmpfs", Some("tmpfs")).expect("tmpfs is memory");
        assert_eq!(
            (found.severity, &found.tests[..]),
            (Severity::Warning, &["a".to_owned(), "b".to_owned()][..])
        );
        assert!(found.claim.starts_with("tmpfs keeps files in memory: "), "{}", found.claim);
        let layered = on("overlay", Some("tmpfs")).expect("its upper layer is memory");
        assert!(layered.claim.starts_with("overlay over tmpfs keeps files in memory: "), "{}", layered.claim);
        assert_eq!(on("ext4", None), None);
        assert_eq!(on("overlay", None), None);
        run.tests.clear();
        run.header.conditions.target.filesystem = Some(on_memory("tmpfs", Some("tmpfs")));
        assert_eq!(claim(&run), None);
    }

    #[test]
    fn a_stack_is_memory_where_every_device_at_its_bottom_is() {
        let device = |name: &str, under: Option<&str>, locality: Option<&str>| DeviceRecord {
            name: name.to_owned(),
            under: under.map(str::to_owned),
            locality: locality.map(str::to_owned),
            ..DeviceRecord::default()
        };
        let check = |devices: &[DeviceRecord], expected: Option<&str>| {
            let mut run = record(&[TestLoad::default()]);
            run.header.conditions.target.devices = devices.to_vec();
            assert_eq!(
                claim(&run).and_then(|claim| claim.split(' ').next().map(str::to_owned)).as_deref(),
                expected
            );
        };
        let over = || device("dm-0", None, None);
        check(&[device("zram0", None, Some("memory"))], Some("zram0"));
        check(&[over(), device("zram0", Some("dm-0"), Some("memory"))], Some("zram0"));
        check(&[device("sda", None, Some("local"))], None);
        let mixed = [over(), device("ram0", Some("dm-0"), Some("memory")), device("sda", Some("dm-0"), None)];
        check(&mixed, None);
        check(&[], None);
    }
}
