//! The bare ring: random reads through io_uring and nothing else. No latency, no statistics, no random map, no options.
//!
//! What the kernel alone costs, to hold the measuring loop against. It must stay the cheapest loop we know how to write:
//! whatever makes a ring cheaper belongs here first.

mod bare;

use std::error::Error;
use std::io;
use std::os::fd::AsRawFd as _;

use bare::{BLOCK, Draws, Task};
use io_uring::{CompletionQueue, IoUring, SubmissionQueue, Submitter, opcode, types};

/// The size of a huge page, which the buffers start on.
const HUGE_PAGE: usize = 2 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let task = Task::from_arguments()?;
    let (depth, batch) = (task.depth.unwrap_or(64), task.batch.unwrap_or(16));
    if batch == 0 || batch > depth {
        return Err(format!("a batch is 1 to the depth, which is {depth}").into());
    }
    let buffers = Buffers::new(depth as usize)?;
    let mut ring: IoUring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_no_sqarray()
        .setup_submit_all()
        .build(depth.next_power_of_two())?;
    ring.submitter().register_files(&[task.file.as_raw_fd()])?;
    let whole = libc::iovec { iov_base: buffers.start.cast(), iov_len: buffers.len };
    // SAFETY: the buffers outlive the ring's last request: `turn` returns with none in flight.
    unsafe { ring.submitter().register_buffers(&[whole]) }?;
    let (mut submitter, queue, completions) = ring.split();
    submitter.register_ring_fd()?;
    let mut ring = Bare {
        submitter,
        queue,
        completions,
        free: (0..depth).collect(),
        draws: Draws::new(task.blocks),
        start: buffers.start,
    };
    task.run(|| ring.turn(batch))
}

/// A ring in use.
struct Bare<'a> {
    submitter: Submitter<'a>,
    queue: SubmissionQueue<'a>,
    completions: CompletionQueue<'a>,
    /// Slots that are free; the one used last comes first, its buffer being in the cache.
    free: Vec<u32>,
    draws: Draws,
    start: *mut u8,
}

impl Bare<'_> {
    /// Makes `batch` requests and takes their completions.
    #[inline(always)]
    fn turn(&mut self, batch: u32) -> io::Result<u64> {
        // The kernel has taken everything; the queue learns of that here.
        self.queue.sync();
        for _ in 0..batch {
            let slot = self.free.pop().expect("every turn returns the slots it took");
            let buffer = self.start.wrapping_add(slot as usize * BLOCK);
            let entry = opcode::ReadFixed::new(types::Fixed(0), buffer, BLOCK as u32, 0)
                .offset(self.draws.next_offset())
                .build()
                .user_data(u64::from(slot));
            // SAFETY: the buffer is registered, and in no other request until its slot is free again.
            unsafe { self.queue.push(&entry) }.expect("the queue has room for every slot");
        }
        self.queue.sync();
        self.submitter.submit()?;
        let mut missing = batch;
        loop {
            self.completions.sync();
            for completion in &mut self.completions {
                if completion.result() != BLOCK as i32 {
                    return Err(io::Error::other(format!("a read answered {}", completion.result())));
                }
                self.free.push(completion.user_data() as u32);
                missing -= 1;
            }
            if missing == 0 {
                return Ok(u64::from(batch));
            }
            self.submitter.submit_and_wait(1)?;
        }
    }
}

/// Memory for every slot, on huge pages where the kernel has some.
struct Buffers {
    start: *mut u8,
    len: usize,
}

impl Buffers {
    fn new(slots: usize) -> io::Result<Buffers> {
        let len = (slots * BLOCK).next_multiple_of(HUGE_PAGE);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let mapped = len + HUGE_PAGE;
        // SAFETY: a new mapping at a place the kernel chooses touches nothing that exists.
        let place = unsafe { libc::mmap(std::ptr::null_mut(), mapped, access, flags, -1, 0) };
        if place == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = place.cast::<u8>().wrapping_add(place.addr().next_multiple_of(HUGE_PAGE) - place.addr());
        // SAFETY: the range lies in the mapping just made, which nothing else knows of.
        unsafe {
            libc::madvise(start.cast(), len, libc::MADV_HUGEPAGE);
            start.write_bytes(1, len);
        }
        Ok(Buffers { start, len })
    }
}
