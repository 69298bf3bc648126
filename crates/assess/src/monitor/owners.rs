//! Which processes may be behind a load: they moved data in the interval and hold something of the device open.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use fathom_analysis::monitor::{MonitorInterval, ProcessActivity};
use fathom_sys::device::facts::device_facts;
use fathom_sys::device::processes::{ProcessIo, open_on, process_io};
use fathom_sys::device::{SysRoot, topology};

/// Processes that are looked at more closely, those that moved most first.
const MAX_PROCESSES: usize = 32;
/// Most owners reported for a device.
const MAX_OWNERS: usize = 5;

/// How long an interval waits for its owners. Where a file system does not answer, there are none.
const PATIENCE: Duration = Duration::from_millis(500);

/// Looks for owners on a thread of its own: what it asks of files may hang with the device under them.
pub(super) struct Owners {
    questions: Sender<Question>,
    answers: Receiver<(u64, Vec<Vec<ProcessActivity>>)>,
    asked: u64,
    /// The last question is not answered yet.
    waiting: bool,
}

/// The devices of one interval.
struct Question {
    number: u64,
    at_ns: u64,
    devices: Vec<Busy>,
}

/// A device that did something.
struct Busy {
    name: String,
    reads: bool,
    writes: bool,
    elapsed_ns: u64,
}

impl Owners {
    /// Begins to watch; `None` where no thread can be had.
    pub fn start() -> Option<Owners> {
        let (questions, asked) = channel::<Question>();
        let (answer, answers) = channel();
        let look = move || {
            let root = SysRoot::real();
            let mut known = LastReading::start(&root);
            while let Ok(question) = asked.recv() {
                let owners = known.attribute(&root, &question);
                if answer.send((question.number, owners)).is_err() {
                    break;
                }
            }
        };
        std::thread::Builder::new().name("owners".to_owned()).spawn(look).ok()?;
        Some(Owners { questions, answers, asked: 0, waiting: false })
    }

    /// Names the owners of each device's load since the last call, as far as that is known in time.
    pub fn attribute(&mut self, at_ns: u64, intervals: &mut [MonitorInterval]) {
        while self.waiting
            && let Ok((number, _)) = self.answers.try_recv()
        {
            self.waiting = number != self.asked;
        }
        if self.waiting {
            return;
        }
        let devices = intervals.iter().map(|interval| Busy {
            name: interval.device.name.clone(),
            reads: interval.activity.ops.read.ios > 0,
            writes: interval.activity.ops.write.ios > 0,
            elapsed_ns: interval.elapsed_ns,
        });
        self.asked += 1;
        let question = Question { number: self.asked, at_ns, devices: devices.collect() };
        self.waiting = self.questions.send(question).is_ok();
        if let Ok((_, owners)) = self.answers.recv_timeout(PATIENCE) {
            self.waiting = false;
            intervals.iter_mut().zip(owners).for_each(|(interval, owners)| interval.owners = owners);
        }
    }
}

/// What processes had moved at the last reading, and which device lies on which.
struct LastReading {
    before: HashMap<(u32, u64), (u64, u64)>,
    at_ns: Option<u64>,
    /// The block devices there were, and the files under loop devices.
    names: Vec<(String, Option<String>)>,
    /// What each of them lies on directly.
    under: HashMap<String, Vec<String>>,
}

impl LastReading {
    fn start(root: &SysRoot) -> LastReading {
        let before = process_io(root).iter().map(key_and_counts).collect();
        LastReading { before, at_ns: None, names: Vec::new(), under: HashMap::new() }
    }

    fn attribute(&mut self, root: &SysRoot, question: &Question) -> Vec<Vec<ProcessActivity>> {
        let seconds = match self.at_ns.replace(question.at_ns) {
            Some(before) => (question.at_ns - before) as f64 / 1e9,
            None => question.devices.first().map_or(1.0, |device| device.elapsed_ns as f64 / 1e9),
        };
        let moved = self.moved(root);
        self.look_at_stacks(root);
        let owners_of = |device: &Busy| {
            let numbers = self.numbers_above(root, &device.name);
            // Who only wrote is not behind reads; what it wrote went elsewhere, or is still in memory.
            let fits = |read: u64, written: u64| (device.reads && read > 0) || (device.writes && written > 0);
            let candidates = moved.iter().filter(|(_, read, written)| fits(*read, *written));
            let owners = candidates.filter_map(|(process, read, written)| {
                let file = open_on(root, process.process, &numbers)?;
                Some(ProcessActivity {
                    process: process.process,
                    command: process.command.clone(),
                    read_bytes_per_second: *read as f64 / seconds,
                    write_bytes_per_second: *written as f64 / seconds,
                    file: file.path.display().to_string(),
                })
            });
            owners.take(MAX_OWNERS).collect()
        };
        question.devices.iter().map(owners_of).collect()
    }

    /// Who moved how many bytes since the last call, read and written, most first.
    fn moved(&mut self, root: &SysRoot) -> Vec<(ProcessIo, u64, u64)> {
        let processes = process_io(root);
        let now: HashMap<_, _> = processes.iter().map(key_and_counts).collect();
        let before = std::mem::replace(&mut self.before, now);
        let mut moved: Vec<(ProcessIo, u64, u64)> = processes
            .into_iter()
            .filter_map(|process| {
                let (key, (read, written)) = key_and_counts(&process);
                // One that was not there before has moved all of it since.
                let earlier = before.get(&key).copied().unwrap_or((0, 0));
                let (read, written) = (read.saturating_sub(earlier.0), written.saturating_sub(earlier.1));
                (read + written > 0).then_some((process, read, written))
            })
            .collect();
        moved.sort_by_key(|(_, read, written)| std::cmp::Reverse(read + written));
        moved.truncate(MAX_PROCESSES);
        moved
    }

    /// Which device lies on which; read again only when devices came or went.
    fn look_at_stacks(&mut self, root: &SysRoot) {
        let with_file = |name: String| {
            let file = root.text(root.block_dir(&name).join("loop/backing_file"));
            (name, file)
        };
        let names: Vec<_> = root.names("/sys/class/block").into_iter().map(with_file).collect();
        if names == self.names {
            return;
        }
        let under = |(name, _): &(String, _)| Some((name.clone(), device_facts(root, name).ok()?.under));
        self.under = names.iter().filter_map(under).collect();
        self.names = names;
    }

    /// The numbers of a device and of all that lie on it.
    fn numbers_above(&self, root: &SysRoot, name: &str) -> Vec<(u32, u32)> {
        let mut found = vec![name.to_owned()];
        let mut next = 0;
        while let Some(below) = found.get(next).cloned() {
            next += 1;
            for (upper, under) in &self.under {
                if under.contains(&below) && !found.contains(upper) {
                    found.push(upper.clone());
                }
            }
        }
        let number = |name: &String| {
            root.text(root.block_dir(name).join("dev")).and_then(|text| topology::parse_number(&text))
        };
        found.iter().filter_map(number).collect()
    }
}

fn key_and_counts(process: &ProcessIo) -> ((u32, u64), (u64, u64)) {
    ((process.process, process.started), (process.read_bytes, process.written_bytes))
}
