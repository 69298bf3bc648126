//! The objects that share data with a target: a user of one of them uses the target.

use super::Survey;
use super::loops::Backing;
use crate::device::handle::{TargetHandle, TargetIdentity};
use crate::device::topology;

impl Survey<'_> {
    /// The target, and every device and file that shares data with it: partitions and their disk, their holders, and
    /// loop devices with their backing files.
    pub(super) fn shared_with(&self, target: &TargetHandle) -> Vec<TargetIdentity> {
        let (mut names, mut files) = (Vec::new(), Vec::new());
        match target.identity() {
            TargetIdentity::Device(major, minor) => names.extend(self.root.block_name(major, minor)),
            file @ TargetIdentity::File(..) => files.push(file),
        }
        let (mut seen_names, mut seen_files): (Vec<String>, Vec<TargetIdentity>) = (Vec::new(), Vec::new());
        while !names.is_empty() || !files.is_empty() {
            if let Some(name) = names.pop().filter(|name| !seen_names.contains(name)) {
                names.extend(topology::partitions_of(self.root, &name));
                // Another partition of the same disk shares nothing: the disk is noted, not followed.
                let disk = topology::disk_of(self.root, &name);
                names.extend(self.root.names(self.root.block_dir(&name).join("holders")));
                for one in &self.loops {
                    let is_this = one.name == name || disk.as_ref() == Some(&one.name);
                    match &one.backing {
                        Backing::Device(behind) if is_this => names.push(behind.clone()),
                        Backing::File(file) if is_this => files.push(*file),
                        Backing::Device(behind) if *behind == name => names.push(one.name.clone()),
                        _ => {}
                    }
                }
                seen_names.extend(disk);
                seen_names.push(name);
            }
            if let Some(file) = files.pop().filter(|file| !seen_files.contains(file)) {
                let over = self.loops.iter().filter(|one| one.backing == Backing::File(file));
                names.extend(over.map(|one| one.name.clone()));
                seen_files.push(file);
            }
        }
        let number = |name: &String| {
            let text = self.root.text(self.root.block_dir(name).join("dev"))?;
            topology::parse_number(&text).map(|(major, minor)| TargetIdentity::Device(major, minor))
        };
        let devices = seen_names.iter().filter_map(number);
        let target = std::iter::once(target.identity());
        target.chain(devices).chain(seen_files.iter().copied()).collect()
    }
}
