//! Requests as bytes: each one as the difference from the previous one of its operation.

use std::num::NonZeroU64;

use fathom_model::Op;

use super::number::{folded, get, put, unfolded};
use crate::load::ObservedRequest;

/// Bytes of a sector, the unit of offsets and lengths.
const SECTOR: u64 = 512;
/// Sectors of the larger unit of offsets.
const WIDE: u64 = 8;

/// Bits of the first byte: the operation, and which numbers follow.
const OPERATION: u8 = 0b11;
/// A latency follows.
const HAS_LATENCY: u8 = 1 << 2;
/// The length is that of the previous request of the operation, and does not follow.
const SAME_LENGTH: u8 = 1 << 3;
/// It begins where the previous request of the operation ended; no offset follows.
const CONTINUES: u8 = 1 << 4;
/// The offset is in units of eight sectors.
const WIDE_OFFSET: u8 = 1 << 5;
/// The number of the thread follows: it is not that of the previous request.
const OTHER_THREAD: u8 = 1 << 6;
/// Bits without a meaning.
const UNKNOWN: u8 = 1 << 7;

/// What the previous requests of a block were.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestCode {
    at_ns: u64,
    /// Where the previous request of each operation ended, sectors.
    ends: [u64; 4],
    /// Its length, sectors.
    lengths: [u64; 4],
    /// The thread of the previous request.
    thread: u8,
}

impl RequestCode {
    /// The state at the beginning of a block whose times count from `base_ns`.
    pub fn from(base_ns: u64) -> RequestCode {
        RequestCode { at_ns: base_ns, ..RequestCode::default() }
    }

    /// Appends a request, which is not earlier than the previous one. Offset and length are multiples of 512.
    pub fn encode(&mut self, request: &ObservedRequest, out: &mut Vec<u8>) {
        let code = code_of(request.op);
        let index = usize::from(code);
        let (first, length) = (request.offset / SECTOR, u64::from(request.bytes) / SECTOR);
        let before = self.ends[index];
        let distance = first.wrapping_sub(before) as i64;
        let is_wide = first.is_multiple_of(WIDE) && before.is_multiple_of(WIDE);
        let mut tag = code;
        for (bit, is_set) in [
            (HAS_LATENCY, request.latency_ns.is_some()),
            (SAME_LENGTH, length == self.lengths[index]),
            (CONTINUES, distance == 0),
            (WIDE_OFFSET, distance != 0 && is_wide),
            (OTHER_THREAD, request.thread != self.thread),
        ] {
            tag |= if is_set { bit } else { 0 };
        }
        out.push(tag);
        if request.thread != self.thread {
            out.push(request.thread);
        }
        put(out, request.at_ns.saturating_sub(self.at_ns));
        if distance != 0 {
            put(out, folded(if is_wide { distance / WIDE as i64 } else { distance }));
        }
        if length != self.lengths[index] {
            put(out, length);
        }
        if let Some(latency) = request.latency_ns {
            put(out, latency.get());
        }
        self.at_ns = self.at_ns.max(request.at_ns);
        (self.ends[index], self.lengths[index]) = (first + length, length);
        self.thread = request.thread;
    }

    /// The request at `*at`, which moves behind it; `None` where the bytes are not valid.
    #[inline]
    pub fn decode(&mut self, bytes: &[u8], at: &mut usize) -> Option<ObservedRequest> {
        let tag = *bytes.get(*at)?;
        *at += 1;
        if tag & UNKNOWN != 0 {
            return None;
        }
        let index = usize::from(tag & OPERATION);
        let mut thread = self.thread;
        if tag & OTHER_THREAD != 0 {
            thread = *bytes.get(*at)?;
            *at += 1;
        }
        let at_ns = self.at_ns.checked_add(get(bytes, at)?)?;
        let distance = match tag & CONTINUES {
            0 => unfolded(get(bytes, at)?),
            _ => 0,
        };
        let distance = if tag & WIDE_OFFSET == 0 { distance } else { distance.checked_mul(WIDE as i64)? };
        let first = self.ends[index].checked_add_signed(distance)?;
        let length = if tag & SAME_LENGTH == 0 { get(bytes, at)? } else { self.lengths[index] };
        let latency_ns = match tag & HAS_LATENCY {
            0 => None,
            _ => Some(NonZeroU64::new(get(bytes, at)?)?),
        };
        let end = first.checked_add(length).filter(|end| *end <= i64::MAX as u64 / SECTOR)?;
        let length_bytes = u32::try_from(length.checked_mul(SECTOR)?).ok()?;
        (self.at_ns, self.thread) = (at_ns, thread);
        (self.ends[index], self.lengths[index]) = (end, length);
        let op = [Op::Read, Op::Write, Op::Trim, Op::Sync][index];
        Some(ObservedRequest {
            at_ns,
            offset: first * SECTOR,
            latency_ns,
            bytes: length_bytes,
            file: 0,
            thread,
            op,
        })
    }
}

fn code_of(op: Op) -> u8 {
    match op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Trim => 2,
        Op::Sync | Op::Datasync => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(at_ns: u64, op: Op, offset: u64, bytes: u32, latency_ns: u64) -> ObservedRequest {
        ObservedRequest {
            at_ns,
            offset,
            latency_ns: NonZeroU64::new(latency_ns),
            bytes,
            file: 0,
            thread: 0,
            op,
        }
    }

    #[test]
    fn requests_come_back_and_are_small() {
        let mut requests = vec![
            request(1_000, Op::Read, 4096, 4096, 80_000),
            request(1_000, Op::Read, 8192, 4096, 1),
            request(1_700, Op::Write, 1 << 40, 512, 0),
            request(1_700, Op::Sync, 0, 0, 900_000),
            request(60_000_000_000, Op::Trim, 3 * 512, 1 << 30, 5),
            request(60_000_000_001, Op::Read, 0, 512, u64::MAX),
            request(60_000_000_001, Op::Write, i64::MAX as u64 / 512 * 512 - 512, 512, 7),
        ];
        // Random reads of 4 KiB within 100 GiB at 50,000 IOPS.
        let random = |place: u64| place.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (100 << 18) * 4096;
        requests.extend((1..=1_000).map(|place| {
            request(60_000_000_001 + place * 20_000, Op::Read, random(place), 4096, 100_000 + place)
        }));
        // Two threads in turn, and an unknown one.
        requests
            .iter_mut()
            .take(7)
            .zip([1, 1, 0, 2, 255, 1, 1])
            .for_each(|(one, thread)| one.thread = thread);
        let (mut bytes, mut code) = (Vec::new(), RequestCode::from(1_000));
        let mut small = 0;
        for (place, request) in requests.iter().enumerate() {
            small = if place == 7 { bytes.len() } else { small };
            code.encode(request, &mut bytes);
        }
        assert!((bytes.len() - small) < 12_000, "{} bytes for 1,000 random reads", bytes.len() - small);
        let (mut at, mut code) = (0, RequestCode::from(1_000));
        for request in &requests {
            assert_eq!(code.decode(&bytes, &mut at).as_ref(), Some(request));
        }
        assert_eq!((at, code.decode(&bytes, &mut at)), (bytes.len(), None));
    }

    #[test]
    fn impossible_requests_are_refused() {
        let sequential = CONTINUES | SAME_LENGTH;
        for bytes in [
            &[UNKNOWN | sequential, 0][..],
            // Cut off; before the beginning of the device; a latency of 0; 2^32 bytes.
            &[sequential],
            &[SAME_LENGTH, 0, 1],
            &[sequential | HAS_LATENCY, 0, 0],
            &[CONTINUES, 0, 0x80, 0x80, 0x80, 4],
            // Cut off before the thread.
            &[sequential | OTHER_THREAD],
        ] {
            assert_eq!(RequestCode::default().decode(bytes, &mut 0), None, "{bytes:?}");
        }
        assert!(RequestCode::default().decode(&[sequential, 0], &mut 0).is_some());
        assert_eq!(
            RequestCode::from(u64::MAX).decode(&[sequential, 1], &mut 0),
            None,
            "beyond the end of time"
        );
    }
}
