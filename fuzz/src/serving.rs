//! Requests for a simulated volume, and the invariants of its completions.

use fathom_model::Op;
use fathom_volume::{RequestOutcome, Volume, VolumeModel, VolumeRequest};

/// Largest request, as engines make them.
const MAX_BYTES: u64 = 4 << 20;

/// Puts `count` requests to a volume of `model`, advancing the clock as they complete, and reads its burst credits.
pub(crate) fn check(model: &VolumeModel, seed: u64, count: u64) {
    let mut volume = Volume::new(model, seed).expect("a model that was found sound");
    let mut draw = Draw(seed ^ 0x9e37_79b9_7f4a_7c15);
    let mut now = 0_u64;
    for index in 0..count {
        let op = [Op::Read, Op::Write, Op::Trim, Op::Sync, Op::Datasync][draw.below(5) as usize];
        let most = MAX_BYTES.min(model.size_bytes);
        let bytes = if op.is_sync() { 0 } else { draw.below(most) + 1 };
        let offset = draw.below(model.size_bytes - bytes + 1);
        let answer = volume.submit(now, &VolumeRequest { op, offset, bytes: bytes as u32 });
        assert!(answer.at_ns >= now, "request {index} completed at {} and was made at {now}", answer.at_ns);
        assert_eq!(answer.outcome == RequestOutcome::Never, answer.at_ns == u64::MAX);
        // Now and then the next one follows only when this one has completed, or much later.
        match draw.below(4) {
            0 if answer.outcome != RequestOutcome::Never => now = answer.at_ns,
            1 => now = now.saturating_add(draw.below(1 << 40)),
            _ => {}
        }
        now = now.min(u64::MAX / 4);
    }
    assert_eq!(volume.counters().issued, count);
    let states = |at: u64| volume.stage_states(at).count();
    assert_eq!(states(now), states(u64::MAX / 2));
    volume.client_state(now);
    volume.billed_transactions();
}

/// splitmix64.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end.max(1)
    }
}
