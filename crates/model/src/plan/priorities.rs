//! I/O priorities: of all requests of a job, and of some of them.

use crate::{Op, PerOp};

/// Bits of a priority below its class, as Linux packs it.
const CLASS_SHIFT: u32 = 13;
/// Bits of a priority below its hint.
const HINT_SHIFT: u32 = 3;

/// An I/O priority of Linux.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoPriority {
    /// 0 none, 1 realtime, 2 best effort, 3 idle.
    pub class: u8,
    /// 0 (highest) to 7.
    pub level: u8,
    /// 0 to 1023.
    pub hint: u16,
}

impl IoPriority {
    /// The priority that Linux packs as `value`.
    pub fn from_value(value: u16) -> IoPriority {
        IoPriority {
            class: (value >> CLASS_SHIFT) as u8,
            level: (value & 7) as u8,
            hint: value >> HINT_SHIFT & 0x3ff,
        }
    }

    /// As Linux packs it. As in fio, a priority without a class is one of best effort.
    pub fn value(self) -> u16 {
        let class = if self.class == 0 { 2 } else { self.class };
        u16::from(class) << CLASS_SHIFT | (self.hint & 0x3ff) << HINT_SHIFT | u16::from(self.level & 7)
    }
}

/// Requests of a job that have a priority of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestPriorities {
    /// Their shares.
    pub shares: PerOp<Vec<PriorityShare>>,
}

/// A share of the requests of one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PriorityShare {
    /// Only requests of this many bytes; `None` = of any size.
    pub size: Option<u32>,
    /// Their share in percent.
    pub percent: u8,
    /// Their priority.
    pub priority: IoPriority,
}

impl RequestPriorities {
    /// Whether all requests have the priority of the job.
    pub fn is_empty(&self) -> bool {
        self.shares.iter().all(|(_, shares)| shares.is_empty())
    }

    /// The priorities that requests of `op` may have, each once: first that of the job, `of_job`. Empty if there is no other.
    pub fn values(&self, op: Op, of_job: u16) -> Vec<u16> {
        let mut values = Vec::new();
        for share in &self.shares[op] {
            let value = share.priority.value();
            if values.is_empty() {
                values.push(of_job);
            }
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values
    }

    /// The priority of a request of `len` bytes; `draw` is a number below 100, and each one as likely as the others. `None`
    /// = that of the job.
    pub fn pick(&self, op: Op, len: u32, draw: u8) -> Option<u16> {
        let mut below = 0;
        let fits = |share: &&PriorityShare| share.size.is_none_or(|size| size == len);
        self.shares[op].iter().filter(fits).find_map(|share| {
            below += share.percent;
            (draw < below).then(|| share.priority.value())
        })
    }

    /// Whether fio's logs mark a request of priority `value` as high, in a job with the priority `of_job`: it precedes the
    /// requests of the other priorities.
    pub fn is_high(&self, value: u16, of_job: u16) -> bool {
        let mut others =
            self.shares.iter().flat_map(|(_, shares)| shares).map(|share| share.priority.value());
        if value != of_job {
            return of_job == 0 || value < of_job;
        }
        of_job != 0 && !self.is_empty() && others.all(|other| other > of_job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(size: Option<u32>, percent: u8, class: u8, level: u8) -> PriorityShare {
        PriorityShare { size, percent, priority: IoPriority { class, level, hint: 0 } }
    }

    #[test]
    fn values_are_those_of_linux() {
        let check = |class, level, hint, value| {
            let priority = IoPriority { class, level, hint };
            assert_eq!(priority.value(), value);
            assert_eq!(IoPriority::from_value(value).value(), value);
        };
        check(0, 0, 0, 0x4000);
        check(1, 3, 0, 0x2003);
        check(2, 2, 0, 0x4002);
        check(0, 2, 0, 0x4002);
        check(3, 7, 1, 0x600f);
    }

    #[test]
    fn shares_of_sizes_follow_one_another() {
        let read =
            vec![share(Some(4096), 10, 1, 3), share(Some(4096), 20, 2, 1), share(Some(8192), 100, 3, 0)];
        let priorities = RequestPriorities { shares: PerOp { read, ..PerOp::default() } };
        let check = |len, draw, expected: Option<u16>| {
            assert_eq!(priorities.pick(Op::Read, len, draw), expected, "{len} {draw}");
        };
        check(4096, 0, Some(0x2003));
        check(4096, 9, Some(0x2003));
        check(4096, 10, Some(0x4001));
        check(4096, 29, Some(0x4001));
        check(4096, 30, None);
        check(8192, 99, Some(0x6000));
        check(512, 0, None);
        assert_eq!(priorities.pick(Op::Write, 4096, 0), None);
        assert_eq!(priorities.values(Op::Read, 0), [0, 0x2003, 0x4001, 0x6000]);
        assert_eq!(priorities.values(Op::Write, 0), [0_u16; 0]);
        assert!(!priorities.is_empty() && RequestPriorities::default().is_empty());
    }

    #[test]
    fn the_smaller_of_two_priorities_is_high() {
        let shares = |class| PerOp { read: vec![share(None, 50, class, 1)], ..PerOp::default() };
        let high = |class, value, of_job| RequestPriorities { shares: shares(class) }.is_high(value, of_job);
        assert!(high(1, 0x2001, 0) && !high(1, 0, 0));
        assert!(high(1, 0x2001, 0x4000) && !high(1, 0x4000, 0x4000));
        assert!(!high(2, 0x4001, 0x2003) && high(2, 0x2003, 0x2003));
        assert!(!RequestPriorities::default().is_high(0x2003, 0x2003));
    }
}
