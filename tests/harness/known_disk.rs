//! A disk of which everything is known: a file in memory, served through FUSE, that delays requests by an exact model. What a
//! measurement says of it can be right or wrong.
//!
//! A request waits for the write cache, then for all limits, then for a server or the head, and takes its latency; pauses delay its
//! end. Times count from the disk's beginning.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use fathom_sys::clock::monotonic_ns;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::fuse_file::{FileModel, FileOperation, FileRequest, FuseFile};
use crate::loop_device::LoopDevice;
use crate::noise::RepeatableNoise;

/// The behaviour of a [`KnownDisk`]: times in seconds, rates per second, sizes in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskModel {
    pub size: u64,
    pub read_latency: f64,
    pub write_latency: f64,
    /// Share of the latency that is distributed exponentially.
    pub jitter: f64,
    /// Requests in service at a time.
    pub servers: Option<usize>,
    pub limits: Vec<RateLimit>,
    pub buckets: Vec<BurstBucket>,
    /// Nothing is served for the first `.1` of each period `.0`.
    pub pauses: Option<(f64, f64)>,
    /// Limits give the share `.2` for the first `.1` of each period `.0`.
    pub neighbour: Option<(f64, f64, f64)>,
    /// Share of the limits that is lost a minute.
    pub decay: f64,
    /// From `.0` on, limits give the share `.1`.
    pub step: Option<(f64, f64)>,
    /// A share `.0` of requests takes `.1` more.
    pub tail: Option<(f64, f64)>,
    /// Limits admit requests at multiples of this.
    pub grid: f64,
    /// Requests that are not aligned to `.0` take `.1` more.
    pub alignment: Option<(u64, f64)>,
    /// One head: mean time of a seek, bytes per second.
    pub head: Option<(f64, f64)>,
    /// Bytes of a write cache, and its bytes per second to the medium.
    pub write_cache: Option<(f64, f64)>,
    pub flush: f64,
    /// Flushes do not wait for the write cache.
    pub lies: bool,
    /// The first read of each 512 KiB takes this more.
    pub first_touch: f64,
    /// Reads of 4 KiB that were read before take this time and pass no limit.
    pub host_cache: Option<f64>,
    /// Blocks of zeros take this share of the latency and pass no limit.
    pub zeros: Option<f64>,
    /// The most bytes that can be written before ENOSPC.
    pub room: Option<u64>,
    /// Time of a discard of a MiB.
    pub discard: f64,
    /// The disk is filled with random bytes.
    pub is_filled: bool,
}

/// A limit on requests or bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    pub direction: Direction,
    pub per_second: f64,
    pub unit: RateUnit,
    /// What an idle disk may use at once, s.
    pub tolerance: f64,
    /// The rate at the end of the disk, to which it changes linearly.
    pub at_end: Option<f64>,
}

/// A rate that lasts while there are credits, which accrue at the baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BurstBucket {
    pub unit: RateUnit,
    pub burst: f64,
    pub base: f64,
    pub capacity: f64,
    pub initial: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Both,
    Reads,
    Writes,
}

/// What a rate counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateUnit {
    Requests,
    /// Requests, of which one of more than so many bytes counts as several.
    Units(f64),
    Bytes,
}

impl Default for DiskModel {
    /// 512 MiB that answer after 100 µs, in any number at a time.
    fn default() -> Self {
        DiskModel {
            size: 512 << 20,
            read_latency: 100e-6,
            write_latency: 100e-6,
            jitter: 0.0,
            servers: None,
            limits: Vec::new(),
            buckets: Vec::new(),
            pauses: None,
            neighbour: None,
            decay: 0.0,
            step: None,
            tail: None,
            grid: 0.0,
            alignment: None,
            head: None,
            write_cache: None,
            flush: 0.0,
            lies: false,
            first_touch: 0.0,
            host_cache: None,
            zeros: None,
            room: None,
            discard: 0.0,
            is_filled: true,
        }
    }
}

impl RateLimit {
    pub const fn iops(per_second: f64) -> Self {
        RateLimit {
            direction: Direction::Both,
            per_second,
            unit: RateUnit::Requests,
            tolerance: 0.0,
            at_end: None,
        }
    }

    pub const fn bytes(per_second: f64) -> Self {
        RateLimit { unit: RateUnit::Bytes, ..RateLimit::iops(per_second) }
    }

    pub const fn of(self, direction: Direction) -> Self {
        RateLimit { direction, ..self }
    }
}

impl Direction {
    fn includes(self, operation: FileOperation) -> bool {
        match self {
            Direction::Both => true,
            Direction::Reads => operation == FileOperation::Read,
            Direction::Writes => operation != FileOperation::Read,
        }
    }
}

impl RateUnit {
    fn of(self, bytes: u32) -> f64 {
        match self {
            RateUnit::Requests => 1.0,
            RateUnit::Units(of) => (f64::from(bytes) / of).ceil().max(1.0),
            RateUnit::Bytes => f64::from(bytes),
        }
    }
}

/// A disk with exactly this behaviour; unmounted on drop.
#[derive(Debug)]
pub struct KnownDisk {
    file: FuseFile<DiskState>,
}

const FILL_CHUNK: usize = 1 << 20;

impl KnownDisk {
    /// A disk that begins now: buckets are full.
    pub fn new(model: &DiskModel) -> Self {
        let contents = File::from(
            memfd_create("fathom-test-disk", MemfdFlags::CLOEXEC).expect("memory files can be made"),
        );
        contents.set_len(model.size).expect("there is room in memory");
        if model.is_filled {
            fill(&contents, model.size);
        }
        KnownDisk { file: FuseFile::new(model.size, DiskState::new(model), Some(contents)) }
    }

    /// The disk as a file: the way with the least noise.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// A loop device over it, past the page cache; it is to be dropped before the disk.
    pub fn device(&self) -> LoopDevice {
        LoopDevice::over(self.path())
    }

    /// Everything begins again: time, credits, caches.
    pub fn begin_again(&self) {
        let model = self.file.model().model.clone();
        self.become_like(&model);
    }

    /// It begins again with another behaviour, of the same size.
    pub fn become_like(&self, model: &DiskModel) {
        *self.file.model() = DiskState::new(model);
    }

    /// From the first read or write to the one that found a bucket empty; `None` if none did.
    pub fn exhausted_after(&self) -> Option<Duration> {
        let state = self.file.model();
        Some(Duration::from_secs_f64(state.exhausted? - state.first?))
    }

    /// By how much at most `percent` of the answers were late, since it began: what the machine withheld from the disk.
    pub fn lateness(&self, percent: usize) -> Duration {
        let mut sorted = self.file.model().late_ns.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        Duration::from_nanos(sorted.get(rank - 1).copied().unwrap_or(0))
    }
}

fn fill(mut contents: &File, size: u64) {
    let mut noise = RepeatableNoise::new(1);
    let chunk: Vec<u8> = (0..FILL_CHUNK / 8).flat_map(|_| noise.bits().to_ne_bytes()).collect();
    for at in (0..size).step_by(FILL_CHUNK) {
        let bytes = (size - at).min(FILL_CHUNK as u64) as usize;
        // Each MiB begins elsewhere in the noise.
        let turn = (at >> 20) as usize * 24 % FILL_CHUNK;
        let (first, second) = (&chunk[turn..], &chunk[..turn]);
        contents.write_all(&[first, second].concat()[..bytes]).expect("there is room in memory");
    }
}

/// Chunks of the first touch, and of the host's cache.
const TOUCHED_BYTES: u64 = 512 << 10;
const CACHED_BYTES: u64 = 4096;
const EIO: i32 = 5;
const ENOSPC: i32 = 28;
const SECOND_NS: f64 = 1e9;

#[derive(Debug)]
struct DiskState {
    model: DiskModel,
    origin_ns: u64,
    /// When each limit has served everything before.
    paid: Vec<f64>,
    /// For each bucket: when it has served everything before, and its credits at that time.
    credits: Vec<(f64, f64)>,
    /// When each server is free.
    servers: Vec<f64>,
    /// When the head is free, and where it is.
    head: (f64, u64),
    /// Bytes in the write cache, at a time.
    dirty: (f64, f64),
    written: u64,
    touched: Vec<bool>,
    cached: Vec<bool>,
    noise: RepeatableNoise,
    /// When the first read or write arrived, and the first that found a bucket empty.
    first: Option<f64>,
    exhausted: Option<f64>,
    /// How late each answer was, ns.
    late_ns: Vec<u64>,
}

impl DiskState {
    fn new(model: &DiskModel) -> DiskState {
        let chunks =
            |of: u64, is_used: bool| vec![false; if is_used { model.size.div_ceil(of) } else { 0 } as usize];
        DiskState {
            origin_ns: monotonic_ns(),
            paid: vec![0.0; model.limits.len()],
            credits: model.buckets.iter().map(|bucket| (0.0, bucket.initial)).collect(),
            servers: vec![0.0; model.servers.unwrap_or(0)],
            head: (0.0, u64::MAX),
            dirty: (0.0, 0.0),
            written: 0,
            touched: chunks(TOUCHED_BYTES, model.first_touch > 0.0),
            cached: chunks(CACHED_BYTES, model.host_cache.is_some()),
            noise: RepeatableNoise::new(7),
            first: None,
            exhausted: None,
            late_ns: Vec::new(),
            model: model.clone(),
        }
    }

    /// The share of their rates that limits give at `at`.
    fn share(&self, at: f64) -> f64 {
        let decayed = (1.0 - self.model.decay).powf(at / 60.0);
        let left =
            self.model.neighbour.filter(|(period, on, _)| at % period < *on).map_or(1.0, |(.., left)| left);
        let stepped = self.model.step.filter(|(from, _)| at >= *from).map_or(1.0, |(_, share)| share);
        decayed * left * stepped
    }

    /// When a read or write that arrives at `arrival` ends.
    fn end(&mut self, request: &FileRequest, arrival: f64) -> f64 {
        let is_read = request.operation == FileOperation::Read;
        self.first = self.first.or(Some(arrival));
        if let Some(share) = self.model.zeros.filter(|_| request.is_zeros) {
            return arrival + self.model.read_latency * share;
        }
        if let Some(hit) = self.model.host_cache.filter(|_| is_read && self.is_cached(request)) {
            return arrival + hit;
        }
        let at = if is_read { arrival } else { self.accepted(f64::from(request.bytes), arrival) };
        let at = self.admitted(request, at);
        let end = match self.model.head {
            Some((seek, rate)) => self.moved(request, at, seek, rate),
            None => self.served(request, at),
        };
        self.model.pauses.map_or(end, |(period, length)| end + (length - end % period).max(0.0))
    }

    /// Past the write cache.
    fn accepted(&mut self, bytes: f64, arrival: f64) -> f64 {
        let Some((capacity, drain)) = self.model.write_cache else { return arrival };
        let dirty = self.dirty_at(arrival) + bytes;
        self.dirty = (arrival, dirty);
        arrival + (dirty - capacity).max(0.0) / drain
    }

    fn dirty_at(&self, at: f64) -> f64 {
        let drain = self.model.write_cache.map_or(0.0, |(_, drain)| drain);
        (self.dirty.1 - (at - self.dirty.0).max(0.0) * drain).max(0.0)
    }

    /// Past all limits and buckets.
    fn admitted(&mut self, request: &FileRequest, arrival: f64) -> f64 {
        let (mut at, share) = (arrival, self.share(arrival));
        for (limit, paid) in self.model.limits.iter().zip(&mut self.paid) {
            if limit.direction.includes(request.operation) {
                let place = request.offset as f64 / self.model.size as f64;
                let rate =
                    limit.per_second + limit.at_end.map_or(0.0, |end| (end - limit.per_second) * place);
                let cost = limit.unit.of(request.bytes) / (rate * share);
                // Bytes are there when they have been transferred; a request is admitted when its turn comes.
                let transfer =
                    if limit.unit == RateUnit::Bytes && limit.tolerance == 0.0 { cost } else { 0.0 };
                at = at.max((paid.max(arrival) - limit.tolerance).max(arrival) + transfer);
                *paid = paid.max(arrival) + cost;
            }
        }
        for (bucket, (free, credits)) in self.model.buckets.iter().zip(&mut self.credits) {
            let cost = bucket.unit.of(request.bytes);
            let mut begin = free.max(arrival);
            *credits = (*credits + (begin - *free) * bucket.base).min(bucket.capacity);
            if *credits < cost {
                begin += (cost - *credits) / bucket.base;
                *credits = cost;
                self.exhausted = self.exhausted.or(Some(begin));
            }
            // What accrues during the transfer is counted by the next request.
            *credits -= cost;
            let end = begin + cost / bucket.burst;
            *credits += (end - begin) * bucket.base;
            *free = end;
            // Bytes are there when they have been transferred; a request is admitted when its turn comes.
            at = at.max(if bucket.unit == RateUnit::Bytes { end } else { begin });
        }
        if self.model.grid > 0.0 { (at / self.model.grid - 1e-9).ceil() * self.model.grid } else { at }
    }

    fn moved(&mut self, request: &FileRequest, at: f64, seek: f64, rate: f64) -> f64 {
        let moves = if request.offset == self.head.1 { 0.0 } else { seek * (0.5 + self.noise.even()) };
        self.head = (
            self.head.0.max(at) + moves + f64::from(request.bytes) / rate,
            request.offset + u64::from(request.bytes),
        );
        self.head.0
    }

    fn served(&mut self, request: &FileRequest, at: f64) -> f64 {
        let latency = self.latency(request);
        let Some(server) = self.servers.iter_mut().min_by(|one, other| one.total_cmp(other)) else {
            return at + latency;
        };
        *server = server.max(at) + latency;
        *server
    }

    fn latency(&mut self, request: &FileRequest) -> f64 {
        let is_read = request.operation == FileOperation::Read;
        let base = if is_read { self.model.read_latency } else { self.model.write_latency };
        let drawn = -(1.0 - self.noise.even()).ln();
        let mut latency = base * (1.0 - self.model.jitter + self.model.jitter * drawn);
        let is_aligned =
            |to: u64| request.offset.is_multiple_of(to) && u64::from(request.bytes).is_multiple_of(to);
        latency +=
            self.model.alignment.filter(|(to, _)| !is_aligned(*to)).map_or(0.0, |(_, penalty)| penalty);
        let is_tail = self.model.tail.is_some_and(|(share, _)| self.noise.even() < share);
        latency += self.model.tail.filter(|_| is_tail).map_or(0.0, |(_, extra)| extra);
        if self.is_first_touch(request) && is_read { latency + self.model.first_touch } else { latency }
    }

    fn is_first_touch(&mut self, request: &FileRequest) -> bool {
        !self.touched.is_empty() && !mark(&mut self.touched, request, TOUCHED_BYTES)
    }

    fn is_cached(&mut self, request: &FileRequest) -> bool {
        mark(&mut self.cached, request, CACHED_BYTES)
    }
}

/// Marks the chunks of a range; true if all of them were.
fn mark(chunks: &mut [bool], request: &FileRequest, of: u64) -> bool {
    let last = (request.offset + u64::from(request.bytes.max(1)) - 1) / of;
    let range = &mut chunks[(request.offset / of) as usize..=last as usize];
    let were_all = range.iter().all(|chunk| *chunk);
    range.fill(true);
    were_all
}

impl FileModel for DiskState {
    fn sees_data(&self) -> bool {
        self.model.zeros.is_some()
    }

    fn answered_late(&mut self, late_ns: u64) {
        self.late_ns.push(late_ns);
    }

    fn complete_ns(&mut self, request: &FileRequest, now_ns: u64) -> Result<u64, i32> {
        let arrival = now_ns.saturating_sub(self.origin_ns) as f64 / SECOND_NS;
        let end = match request.operation {
            FileOperation::Read | FileOperation::Write if request.bytes == 0 => return Err(EIO),
            FileOperation::Write => {
                self.written += u64::from(request.bytes);
                if self.model.room.is_some_and(|room| self.written > room) {
                    return Err(ENOSPC);
                }
                self.end(request, arrival)
            }
            FileOperation::Read => self.end(request, arrival),
            FileOperation::Flush => {
                let drain = self
                    .model
                    .write_cache
                    .filter(|_| !self.model.lies)
                    .map_or(f64::INFINITY, |(_, drain)| drain);
                arrival + self.model.flush + self.dirty_at(arrival) / drain
            }
            FileOperation::Discard(length) => {
                arrival + self.model.discard * (length as f64 / 1_048_576.0).max(1.0)
            }
        };
        Ok(self.origin_ns + (end * SECOND_NS) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When reads of `bytes`, which all arrive `gap` after the one before, end.
    fn ends(model: &DiskModel, count: u32, bytes: u32, gap: f64) -> Vec<f64> {
        let mut state = DiskState { origin_ns: 0, ..DiskState::new(model) };
        let ends = (0..count).map(|index| {
            let offset = u64::from(index * 7919 % 1000) * u64::from(bytes);
            let request = FileRequest { operation: FileOperation::Read, offset, bytes, is_zeros: false };
            let at = state.complete_ns(&request, (f64::from(index) * gap * 1e9) as u64);
            at.expect("there is room") as f64 / 1e9
        });
        ends.collect()
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < expected * 1e-3, "{found} for {expected}");
    }

    #[test]
    fn limits_and_servers_pace_requests() {
        let limited = |limit| DiskModel { limits: vec![limit], ..DiskModel::default() };
        close(ends(&limited(RateLimit::iops(500.0)), 1001, 4096, 0.0)[1000], 2.0001);
        close(ends(&limited(RateLimit::bytes(1e6)), 1000, 4096, 0.0)[999], 4.0961);
        let units = RateLimit { unit: RateUnit::Units(16384.0), ..RateLimit::iops(1000.0) };
        close(ends(&limited(units), 1001, 40960, 0.0)[1000], 3.0001);
        let tolerant = RateLimit { tolerance: 0.1, ..RateLimit::iops(1000.0) };
        close(ends(&limited(tolerant), 1101, 4096, 0.0)[1100], 1.0001);
        let writes = limited(RateLimit::iops(1.0).of(Direction::Writes));
        close(ends(&writes, 10, 4096, 0.0)[9], 100e-6);
        close(ends(&DiskModel { servers: Some(4), ..DiskModel::default() }, 4000, 4096, 0.0)[3999], 0.1);
    }

    #[test]
    fn buckets_fall_to_their_baseline() {
        let bucket = BurstBucket {
            unit: RateUnit::Requests,
            burst: 3000.0,
            base: 100.0,
            capacity: 5800.0,
            initial: 5800.0,
        };
        let model = DiskModel { buckets: vec![bucket], ..DiskModel::default() };
        let all = ends(&model, 7000, 4096, 0.0);
        close(all[5999], 2.0);
        close(all[6999] - all[5999], 10.0);
    }

    #[test]
    fn time_takes_its_toll() {
        let base = DiskModel { limits: vec![RateLimit::iops(1000.0)], ..DiskModel::default() };
        let last = |model: &DiskModel, count: u32| ends(model, count, 4096, 1e-3)[count as usize - 1];
        close(last(&DiskModel { pauses: Some((1.0, 0.1)), ..base.clone() }, 2011), 2.1);
        close(last(&DiskModel { neighbour: Some((4.0, 2.0, 0.5)), ..base.clone() }, 2000), 4.0);
        close(last(&DiskModel { step: Some((1.0, 0.5)), ..base.clone() }, 2000), 3.0);
        let tails = ends(&DiskModel { tail: Some((0.01, 0.05)), ..base }, 10_000, 4096, 1e-2);
        let late =
            tails.iter().enumerate().filter(|(index, end)| **end - *index as f64 * 1e-2 > 0.05).count();
        assert!((70..130).contains(&late), "{late}");
    }

    #[test]
    fn a_write_cache_fills_and_flushes_wait_for_it_or_lie() {
        for (lies, flushed) in [(false, 3.0), (true, 1e-9)] {
            let model = DiskModel { write_cache: Some((1e6, 1e6)), lies, ..DiskModel::default() };
            let mut state = DiskState { origin_ns: 0, ..DiskState::new(&model) };
            let write =
                FileRequest { operation: FileOperation::Write, offset: 0, bytes: 1_000_000, is_zeros: false };
            let took: Vec<u64> = (0..3).map(|_| state.complete_ns(&write, 0).unwrap() / 1_000_000).collect();
            assert_eq!(took, [0, 1000, 2000]);
            let flush = FileRequest { operation: FileOperation::Flush, bytes: 0, ..write };
            close(state.complete_ns(&flush, 0).unwrap() as f64 / 1e9 + 1e-9, flushed);
        }
    }
}
