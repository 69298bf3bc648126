//! The same jobs on the same volumes give the same numbers, on every machine and in every version.
//!
//! Every number of an outcome and of its volume's counters enters a digest. A different digest is a change of measured
//! numbers, independent of speed.

use fathom_engine::sim::{BEGIN_NS, Volume};
use fathom_model::plan::{DepthPlan, Mix, OnError, SizeSpec, ThinkTime};
use fathom_model::{BlockSize, JobPlan, Nanos, Op, PerOp, Rate as JobRate, RateProcess, RunPlan};
use fathom_runner::Session;
use fathom_stats::{Latency as Latencies, Moments, PhaseOutcome, RunOutcome, WorkerOutcome};
use fathom_volume::{
    Accounting, Billing, Cache, Client, CpuCredit, Fault, FaultKind, FirstTouch, Limit, LimitStage,
    TokenRate, VolumeLatency, VolumeModel,
};

use crate::plans::{job, timed};

const SECOND: u64 = 1_000_000_000;
const SIZE: u64 = 8 << 30;

/// FNV-1a over numbers.
struct Digest(u64);

impl Digest {
    fn number(&mut self, number: u64) {
        for byte in number.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn numbers(&mut self, numbers: impl IntoIterator<Item = u64>) {
        numbers.into_iter().for_each(|number| self.number(number));
    }

    fn text(&mut self, text: &str) {
        self.numbers(text.bytes().map(u64::from));
    }

    fn moments(&mut self, it: &Moments) {
        let halves = |wide: u128| [wide as u64, (wide >> 64) as u64];
        let min = if it.count == 0 { u64::MAX } else { it.min };
        self.numbers([it.count, min, it.max]);
        self.numbers(halves(it.sum).into_iter().chain(halves(it.sum_squares)));
    }

    fn latency(&mut self, it: &Latencies) {
        self.moments(&it.moments);
        it.histogram.sparse().for_each(|(bin, count)| self.numbers([bin as u64, count]));
    }

    fn phase(&mut self, it: &PhaseOutcome) {
        self.numbers([it.start_ns, it.end_ns, it.schedule_end_ns, it.syncs, it.syncs_failed]);
        self.latency(&it.sync_lat);
        self.numbers(it.depth.0.into_iter().chain(it.submit.0).chain(it.complete.0));
        for op in it.ops() {
            self.numbers([op.issued, op.ios, op.bytes, op.short, op.failed]);
            [&op.slat, &op.clat, &op.lat, &op.open_loop.response, &op.open_loop.late]
                .into_iter()
                .for_each(|latency| self.latency(latency));
            self.numbers([op.open_loop.latest_ns, op.open_loop.backlog]);
            self.moments(&op.bandwidth_windows);
            self.moments(&op.iops_windows);
        }
        for interval in &it.series {
            self.numbers([u64::from(interval.tick), interval.start_ns, interval.end_ns]);
            for op in interval.ops() {
                self.numbers([op.ios, op.bytes, op.clat_sum_ns]);
                self.numbers(op.clat_bins.iter().flat_map(|&(bin, count)| [u64::from(bin), count]));
            }
        }
    }

    fn worker(&mut self, it: &WorkerOutcome) {
        it.ramp.iter().chain([&it.measured]).for_each(|phase| self.phase(phase));
        let mut errors: Vec<_> = it.errors.iter().collect();
        errors.sort_by_key(|error| error.op.name());
        for error in errors {
            self.text(error.op.name());
            self.numbers([error.errno as u64, error.count]);
        }
        for slow in &it.slowest {
            self.numbers([
                slow.start_ns,
                slow.lat_ns,
                (slow.op as u64).min(Op::Sync as u64),
                slow.offset,
                u64::from(slow.depth),
            ]);
        }
        for stall in &it.stalls {
            self.numbers([stall.start_ns, stall.length_ns, u64::from(stall.depth), u64::from(stall.over)]);
            self.numbers(stall.offsets.iter().copied());
        }
        self.text(it.failure.as_ref().map_or("", |failure| &failure.message));
    }

    fn outcome(&mut self, it: &RunOutcome) {
        self.number(it.elapsed_ns);
        it.workers.iter().for_each(|worker| self.worker(worker));
    }

    fn volume(&mut self, it: &Volume) {
        let counted = it.counters();
        self.numbers([counted.issued, counted.done, counted.failed, counted.never]);
        self.numbers([counted.read_bytes, counted.written_bytes, counted.cache_hits, counted.first_touches]);
        self.number(it.billed_transactions());
    }
}

fn rate(tokens: u64) -> TokenRate {
    TokenRate::per_second(tokens).expect("it is one")
}

fn limited(ios: Option<Limit>, bytes: Option<Limit>) -> VolumeModel {
    let stage = LimitStage { ios, bytes, ..LimitStage::default() };
    VolumeModel { shared: vec![stage], ..VolumeModel::unlimited(SIZE) }
}

fn cap(ios: u64) -> VolumeModel {
    limited(Some(Limit::Rate(rate(ios))), None)
}

fn latent(model: VolumeModel) -> VolumeModel {
    let (read_latency, write_latency) = (VolumeLatency::around(400_000), VolumeLatency::around(700_000));
    VolumeModel { read_latency, write_latency, sync_latency: VolumeLatency::fixed(900_000), ..model }
}

fn bucket(credit: u64) -> VolumeModel {
    let burst = Some(rate(3000));
    let ios = Limit::Credit { base: rate(150), burst, capacity: 5_400_000, initial: credit };
    let mut model = latent(limited(Some(ios), Some(Limit::Rate(rate(128 << 20)))));
    model.shared[0].accounting =
        Accounting { unit_bytes: Some(256 << 10), merges_sequential: true, whole_units: false };
    model
}

/// All rare parts together.
fn odd() -> VolumeModel {
    let window = Limit::Window { base: rate(800), burst: rate(2500), burst_ns: SECOND, rest_ns: 2 * SECOND };
    let on_demand = Limit::OnDemand { base: rate(10 << 20), burst: rate(40 << 20) };
    let instance = LimitStage { ios: Some(window), slack_ns: 10_000_000, ..LimitStage::default() };
    let billing = Some(Billing { transaction_bytes: 256 << 10 });
    let writes = LimitStage { bytes: Some(on_demand), billing, ..LimitStage::default() };
    let fault = |at: u64, length: u64, kind| Fault { at_ns: at, length_ns: length, kind };
    let credit = CpuCredit { baseline_per_mille: 100, capacity_ns: SECOND, initial_ns: SECOND / 2 };
    VolumeModel {
        client: Some(Client {
            cpus: 2,
            request_ns: 90_000,
            kib_ns: 500,
            steal_per_mille: 50,
            credit: Some(credit),
        }),
        cache: Some(Cache { dirty_bytes: 8 << 20, ..Cache::read_only(64 << 20, 20_000) }),
        shared: vec![instance],
        writes: vec![writes],
        parallelism: Some(12),
        first_touch: Some(FirstTouch {
            chunk_bytes: 1 << 20,
            counts_as: 2,
            extra_ns: 3_000_000,
            initialization: None,
        }),
        faults: vec![
            fault(2 * SECOND, SECOND, FaultKind::Slow { percent: 300 }),
            fault(5 * SECOND / 2, SECOND, FaultKind::Error { per_million: 20_000, errno: 5 }),
            fault(5 * SECOND, 3 * SECOND, FaultKind::Stall),
        ],
        ..latent(VolumeModel::unlimited(SIZE))
    }
}

fn parallel(width: Option<u32>) -> VolumeModel {
    latent(VolumeModel { parallelism: width, ..VolumeModel::unlimited(SIZE) })
}

const MIXED: Mix = Mix::ReadWrite { read_percent: 70 };

fn random(mix: Mix, depth: u32, seconds: u64) -> JobPlan {
    let mut job = timed(job("one", mix, true, depth), seconds);
    job.depth = DepthPlan::batched(depth, true, 4096);
    job.on_error = OnError { continue_read: true, continue_write: true, continue_verify: true };
    job
}

fn with(mut job: JobPlan, change: impl FnOnce(&mut JobPlan)) -> JobPlan {
    change(&mut job);
    job
}

/// `count` copies of `job` with different seeds.
fn copies(job: &JobPlan, count: u64) -> Vec<JobPlan> {
    (0..count).map(|copy| with(job.clone(), |job| job.clones[0].seed += copy)).collect()
}

fn digest(model: &VolumeModel, jobs: Vec<JobPlan>) -> u64 {
    let volume = Volume::beginning_at(model, 1, BEGIN_NS).expect("the model is sound");
    let session = Session::on_volumes(vec![("target".into(), volume)]);
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    // Twice, because the second run starts from the state after the first.
    for _ in 0..2 {
        let plan = RunPlan { jobs: jobs.clone(), ..RunPlan::default() };
        digest.outcome(&session.run(&plan, &mut ()).expect("the plan fits the volume"));
    }
    session.inspect_volume("target".as_ref(), |volume, _| digest.volume(volume)).expect("it is there");
    digest.0
}

fn check(model: &VolumeModel, jobs: Vec<JobPlan>, expected: u64) {
    let found = digest(model, jobs.clone());
    assert_eq!(found, expected, "{found:#018x} {jobs:?}");
}

#[test]
fn limits_of_every_kind_at_every_depth() {
    let fixed = VolumeModel { read_latency: VolumeLatency::fixed(100_000), ..VolumeModel::unlimited(SIZE) };
    for (model, depth, ms, expected) in [
        (cap(5000), 1, 2000, 0x1af8_e723_6ccb_2b3f),
        (cap(5000), 2, 2000, 0x45e6_4104_9cba_e95c),
        (cap(5000), 32, 2000, 0x6cf3_4e6f_8b7b_f206),
        (cap(77_777), 256, 600, 0x7ff3_7844_eb9a_ae3b),
        (cap(1_500_000_000), 32, 1, 0x55f4_7c4e_3744_3b6a),
        (latent(cap(20_000)), 1, 1000, 0x352c_15c5_48cc_4708),
        (latent(cap(20_000)), 32, 1000, 0x41b2_e047_7b71_da85),
        (bucket(9_000), 1, 6000, 0x1e66_362f_25a0_50b8),
        (bucket(9_000), 32, 6000, 0x8745_dba5_8b78_7677),
        (bucket(9_000), 256, 6000, 0x98d8_39fd_37ee_f655),
        (parallel(Some(16)), 4, 1000, 0xb6ec_2dc6_6df9_a36d),
        (parallel(Some(16)), 64, 1000, 0x82aa_a435_ecf2_ea0a),
        (parallel(None), 1, 2000, 0x656b_2ecb_5b86_28be),
        (parallel(None), 300, 60, 0x0eaa_c4ef_8e39_e77e),
        (odd(), 1, 10_000, 0x52f6_e3b8_70d4_f80a),
        (odd(), 24, 10_000, 0x53ae_0e45_16ef_53c4),
        (fixed, 32, 200, 0x1727_4195_4e84_6b78),
    ] {
        let job = with(random(Mix::Read, depth, 1), |job| job.time.runtime = Some(Nanos::from_millis(ms)));
        check(&model, vec![job], expected);
    }
}

#[test]
fn operations_and_sizes_of_every_kind() {
    let small = |mut job: JobPlan| {
        (job.time.runtime, job.time.time_based) = (None, false);
        job.io.io_size = Some(SizeSpec::Bytes(40 << 20));
        job
    };
    let split = BlockSize::of_shares(&[(4096, 60), (65_536, 40)]).expect("it is one");
    for (model, job, expected) in [
        (odd(), random(MIXED, 16, 10), 0x4449_5737_94d4_d47b),
        (bucket(9_000), random(MIXED, 32, 10), 0x4696_73c3_34d9_d5f4),
        (cap(5000), random(Mix::Write, 32, 2), 0x6518_9fc8_1d04_fea6),
        (bucket(9_000), random(Mix::Trim, 8, 10), 0x8ce9_b2ee_afe9_09a0),
        (odd(), random(Mix::TrimWrite, 8, 10), 0xdc7c_1339_1c8c_62bf),
        (bucket(9_000), with(random(Mix::Write, 8, 10), |job| job.io.fsync_every = 3), 0xa99e_1e57_f613_b0d0),
        (odd(), with(random(MIXED, 32, 10), |job| job.io.fdatasync_every = 2), 0x3bf9_83f5_b3d0_4249),
        (
            odd(),
            with(random(MIXED, 8, 10), |job| job.io.block_size = PerOp::splat(split.clone())),
            0x5d2a_6a73_0391_7fa8,
        ),
        (
            bucket(90_000),
            with(random(Mix::Read, 8, 10), |job| job.io.pattern.random = false),
            0xdea8_9c22_6c0a_4220,
        ),
        (cap(5000), small(random(Mix::Read, 32, 1)), 0x899b_7376_7d5d_790f),
        (
            bucket(9_000),
            small(with(random(Mix::Write, 32, 1), |job| job.io.end_fsync = true)),
            0x630e_8e76_4b81_e389,
        ),
        (
            bucket(9_000),
            small(with(random(MIXED, 8, 1), |job| {
                (job.io.size, job.io.loops) = (Some(SizeSpec::Bytes(1 << 20)), 3);
            })),
            0x3bc8_4cc4_57e0_a7ad,
        ),
        (
            cap(5000),
            with(random(Mix::Read, 8, 10), |job| job.on_error = OnError::default()),
            0xb466_8005_3b22_11ec,
        ),
        (
            odd(),
            with(random(Mix::Read, 8, 10), |job| job.on_error = OnError::default()),
            0xd90d_99c5_a3dc_ed8c,
        ),
    ] {
        check(&model, vec![job], expected);
    }
}

#[test]
fn times_and_batches_of_every_kind() {
    let rated = |reads, writes, process| {
        move |job: &mut JobPlan| {
            job.time.rate.rates =
                PerOp { read: JobRate::iops(reads), write: JobRate::iops(writes), trim: None };
            job.time.rate.process = process;
        }
    };
    let depth = |change: fn(&mut DepthPlan)| move |job: &mut JobPlan| change(&mut job.depth);
    for (model, job, expected) in [
        (
            odd(),
            with(random(Mix::Read, 16, 10), |job| job.time.ramp = Nanos(3_123_456_789)),
            0xccb7_cef4_24ae_5cd4,
        ),
        (
            cap(5000),
            with(random(MIXED, 32, 4), |job| job.time.ramp = Nanos::from_secs(1)),
            0x33c7_6617_9bc2_9a32,
        ),
        (
            bucket(900),
            with(random(Mix::Read, 16, 30), |job| {
                job.time.think_time =
                    ThinkTime { pause: Nanos(777_777_777), blocks: Some(100), ..ThinkTime::default() };
            }),
            0x8cd6_6b76_f8ff_0623,
        ),
        (
            bucket(900),
            with(random(Mix::Read, 16, 5), |job| {
                job.time.start_delay = (Nanos::from_secs(1), Nanos::from_secs(9000));
            }),
            0x62ed_8796_4d2f_4b35,
        ),
        (
            bucket(9_000),
            with(random(Mix::Read, 16, 10), rated(2000, 0, RateProcess::Linear)),
            0xcd66_838e_1084_91c0,
        ),
        (odd(), with(random(MIXED, 16, 10), rated(1000, 0, RateProcess::Poisson)), 0x0ac5_8d31_9b2b_c376),
        (
            parallel(Some(4)),
            with(random(MIXED, 16, 2), rated(20_000, 400, RateProcess::Poisson)),
            0x3676_0546_89d5_f561,
        ),
        (bucket(9_000), with(random(Mix::Read, 16, 10), depth(|depth| depth.low = 4)), 0x67af_f57b_5fa5_012a),
        (
            bucket(9_000),
            with(random(Mix::Read, 16, 10), depth(|depth| depth.low = 15)),
            0xd0e8_01de_bdf1_2438,
        ),
        (
            parallel(None),
            with(random(Mix::Read, 16, 1), depth(|depth| depth.batch_complete_min = 0)),
            0x909e_81fd_42ca_bd88,
        ),
        (
            cap(5000),
            with(random(Mix::Read, 1, 1), depth(|depth| depth.batch_complete_min = 0)),
            0xd6cb_64c2_b320_0868,
        ),
        (
            parallel(None),
            with(random(Mix::Read, 64, 1), |job| job.depth = DepthPlan::new(64)),
            0x433b_9b56_983a_d52f,
        ),
        (
            bucket(9_000),
            with(random(Mix::Read, 16, 10), |job| (job.measure.slat, job.measure.lat) = (false, false)),
            0xca7f_725f_5c75_8691,
        ),
        (cap(5000), with(random(Mix::Read, 16, 2), |job| job.measure.clat = false), 0xd026_3049_6ec4_fa41),
    ] {
        check(&model, vec![job], expected);
    }
}

#[test]
fn concurrent_and_successive_jobs() {
    let staged = |jobs: Vec<JobPlan>| -> Vec<JobPlan> {
        jobs.into_iter().enumerate().map(|(at, job)| with(job, |job| job.phase = at as u32)).collect()
    };
    let unlike = || {
        vec![
            random(Mix::Read, 1, 10),
            with(random(MIXED, 4, 10), |job| job.time.ramp = Nanos(1_500_000_000)),
            with(random(Mix::Write, 16, 7), |job| {
                job.time.start_delay = (Nanos::from_secs(2), Nanos::from_secs(2))
            }),
        ]
    };
    for (model, jobs, expected) in [
        (cap(5000), copies(&random(Mix::Read, 32, 2), 3), 0x1e2c_70f0_fb7a_383d),
        (bucket(9_000), copies(&random(Mix::Read, 32, 10), 8), 0xcccb_a089_23a1_a07d),
        (parallel(Some(16)), copies(&random(MIXED, 16, 1), 3), 0x7db0_d6b7_c895_a27b),
        (odd(), copies(&random(MIXED, 4, 10), 8), 0x3e8a_0bb4_7a18_ba18),
        (
            cap(1_000_000),
            copies(&with(random(Mix::Read, 8, 1), |job| job.time.runtime = Some(Nanos::from_millis(50))), 3),
            0xdf32_e154_4b49_9a54,
        ),
        (bucket(9_000), unlike(), 0x8325_f869_d096_672d),
        (odd(), unlike(), 0xeb31_9908_9210_83bc),
        (bucket(9_000), staged(unlike()), 0xab86_4d78_51de_d67a),
        (
            bucket(9_000),
            vec![random(Mix::Read, 4, 9), with(random(Mix::Write, 4, 3), |job| job.exit_all = true)],
            0xd5e3_3a24_0ddd_38f9,
        ),
    ] {
        check(&model, jobs, expected);
    }
}
