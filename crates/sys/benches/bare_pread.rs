//! Random reads through pread and nothing else: what the system call alone costs.

mod bare;

use std::error::Error;
use std::io;
use std::os::unix::fs::FileExt as _;

use bare::{BLOCK, Draws, Task};

fn main() -> Result<(), Box<dyn Error>> {
    let task = Task::from_arguments()?;
    if task.depth.is_some() || task.batch.is_some() {
        return Err("pread has no depth".into());
    }
    let mut draws = Draws::new(task.blocks);
    let mut buffer = vec![1; BLOCK];
    task.run(|| match task.file.read_at(&mut buffer, draws.next_offset()) {
        Ok(BLOCK) => Ok(1),
        Ok(short) => Err(io::Error::other(format!("a read answered {short}"))),
        Err(error) => Err(error),
    })
}
