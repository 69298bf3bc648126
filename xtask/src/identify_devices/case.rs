//! The devices of the campaign: limits with odd values, and what disturbs some of them.

use fathom_tests::{Cap, RepeatableNoise};

/// What happens to a device while it is identified.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Disturbance {
    /// Nothing.
    None,
    /// Its limit falls by this share a minute.
    Decay(f64),
    /// Another process reads this many requests a second, 60 s on and 60 s off.
    OtherProcess(u64),
    /// Half of its limit is gone every other minute, and no counter shows why.
    HiddenNeighbour,
}

/// One device.
#[derive(Clone, Debug)]
pub struct DeviceCase {
    /// Unique, with its numbers.
    pub name: String,
    pub cap: Cap,
    pub disturbance: Disturbance,
}

impl DeviceCase {
    /// The `index`th: always the same.
    pub fn of(index: u64) -> DeviceCase {
        let state = index.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678_9abc_def1);
        let mut draw = Draw(RepeatableNoise::new(state));
        let (iops, other) = (draw.around(80, 3000), draw.around(80, 3000));
        let (bytes, other_bytes) = (draw.around(4_000_000, 90_000_000), draw.around(4_000_000, 90_000_000));
        let none = Cap::default();
        // Both limits of one direction meet at some KiB.
        let above = bytes.max(iops * 6_000);
        let (name, cap, disturbance) = match index % 10 {
            0 => ("read-iops", Cap { read_iops: Some(iops), ..none }, Disturbance::None),
            1 => ("write-iops", Cap { write_iops: Some(iops), ..none }, Disturbance::None),
            2 => ("read-bytes", Cap { read_bps: Some(bytes), ..none }, Disturbance::None),
            3 => (
                "both-iops",
                Cap { read_iops: Some(iops), write_iops: Some(other), ..none },
                Disturbance::None,
            ),
            4 => {
                ("read-both", Cap { read_iops: Some(iops), read_bps: Some(above), ..none }, Disturbance::None)
            }
            5 => (
                "both-bytes",
                Cap { read_bps: Some(bytes), write_bps: Some(other_bytes), ..none },
                Disturbance::None,
            ),
            6 => ("decay", Cap { read_iops: Some(iops.max(500)), ..none }, Disturbance::Decay(draw.share())),
            7 => (
                "process",
                Cap { read_iops: Some(iops.max(500)), ..none },
                Disturbance::OtherProcess(iops.max(500) / 2),
            ),
            8 => ("neighbour", Cap { read_iops: Some(iops.max(500)), ..none }, Disturbance::HiddenNeighbour),
            _ => (
                "write-both",
                Cap { write_iops: Some(iops), write_bps: Some(above), ..none },
                Disturbance::None,
            ),
        };
        DeviceCase { name: format!("{index:03}-{name}-{iops}-{bytes}"), cap, disturbance }
    }

    /// Each limit, by the member of the document that tells it.
    pub fn truths(&self) -> Vec<(&'static str, f64)> {
        let Cap { read_iops, write_iops, read_bps, write_bps } = self.cap;
        let all = [
            ("/iops/read", read_iops),
            ("/iops/write", write_iops),
            ("/bytes_per_second/read", read_bps),
            ("/bytes_per_second/write", write_bps),
        ];
        all.into_iter().filter_map(|(path, limit)| Some((path, limit? as f64))).collect()
    }

    /// True where writes are identified as well.
    pub fn writes(&self) -> bool {
        self.cap.write_iops.is_some() || self.cap.write_bps.is_some()
    }
}

/// Numbers that look random and are always the same.
struct Draw(RepeatableNoise);

impl Draw {
    /// Between both, small ones as often as large ones.
    fn around(&mut self, least: u64, most: u64) -> u64 {
        (least as f64 * (most as f64 / least as f64).powf(self.0.even())).round() as u64
    }

    /// 5 to 30 % a minute.
    fn share(&mut self) -> f64 {
        0.05 + 0.25 * self.0.even()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_different_and_always_the_same() {
        let cases: Vec<DeviceCase> = (0..120).map(DeviceCase::of).collect();
        let is_new = |index: usize| cases[..index].iter().all(|other| other.cap != cases[index].cap);
        let different = (0..cases.len()).filter(|&index| is_new(index)).count();
        assert!(different >= 80, "{different}");
        for (index, case) in cases.iter().enumerate() {
            assert!(!case.truths().is_empty());
            assert_eq!(DeviceCase::of(index as u64).name, case.name);
        }
        let undisturbed = cases.iter().filter(|case| case.disturbance == Disturbance::None);
        assert!(undisturbed.map(|case| case.truths().len()).sum::<usize>() >= 100);
    }
}
