//! The kernel's counters of the target's devices and of the devices beneath them.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use fathom_stats::{DeviceTick, DiskCounters, DiskInterval, DiskOutcome, series};
use fathom_sys::device::{DiskSampler, DiskStats, TargetStack};

/// Samples every device under a run's targets. A run without block devices has none.
#[derive(Clone, Default)]
pub(crate) struct Disks {
    sampler: Option<Arc<DiskSampler>>,
    /// For each device, the one stacked on top of it.
    above: Vec<Option<String>>,
    first: Option<(u64, Vec<DiskCounters>)>,
    previous: Option<(u64, Vec<DiskCounters>)>,
    outcomes: Vec<DiskOutcome>,
    /// Intervals are numbered by their tick divided by `2^coarser`; their times align with other series.
    coarser: u32,
}

impl Disks {
    /// The devices under `paths`, topmost first; unknown ones are omitted, because that is no error of the run.
    pub fn under<'a>(paths: impl Iterator<Item = &'a Path>) -> Self {
        let mut names: Vec<String> = Vec::new();
        let mut above: BTreeMap<String, String> = BTreeMap::new();
        for stack in paths.filter_map(|path| TargetStack::of(path).ok()) {
            for device in &stack.devices {
                if !names.contains(&device.name) {
                    names.push(device.name.clone());
                }
                for beneath in &device.under {
                    above.entry(beneath.clone()).or_insert_with(|| device.name.clone());
                }
            }
        }
        let Ok(sampler) = DiskSampler::open(&names) else { return Disks::default() };
        let above: Vec<_> = names.iter().map(|name| above.get(name).cloned()).collect();
        let outcomes = names.iter().zip(&above).map(|(name, under)| DiskOutcome {
            name: name.clone(),
            under: under.clone(),
            ..DiskOutcome::default()
        });
        Disks { outcomes: outcomes.collect(), sampler: Some(Arc::new(sampler)), above, ..Disks::default() }
    }

    fn sample(&self) -> Option<Vec<DiskCounters>> {
        let mut raw = Vec::with_capacity(self.above.len());
        self.sampler.as_ref()?.sample(&mut raw).ok()?;
        Some(raw.iter().map(counters).collect())
    }

    /// The start of the measured part; earlier counts are excluded.
    pub fn begin(&mut self, now: u64) {
        self.first = self.sample().map(|sample| (now, sample));
        self.previous.clone_from(&self.first);
        self.outcomes.iter_mut().for_each(|disk| disk.intervals.clear());
    }

    /// The end of an interval; returns its counts. Times are relative to the start of the run.
    pub fn tick(&mut self, tick: u32, now: u64) -> Vec<DeviceTick> {
        let (Some((since, before)), Some(sample)) = (self.previous.take(), self.sample()) else {
            return Vec::new();
        };
        let mut ticks = Vec::with_capacity(sample.len());
        for ((disk, now_counters), earlier) in self.outcomes.iter_mut().zip(&sample).zip(&before) {
            let counters = now_counters.since(earlier);
            let tick = tick >> self.coarser;
            disk.push_interval(DiskInterval { tick, start_ns: since, end_ns: now, counters });
            ticks.push(DeviceTick { name: disk.name.clone(), span_ns: now - since, counters });
        }
        if self.outcomes.iter().any(|disk| disk.intervals.len() >= series::MAX) {
            self.coarser += 1;
            self.outcomes.iter_mut().for_each(DiskOutcome::halve_intervals);
        }
        self.previous = Some((now, sample));
        ticks
    }

    /// The end of the measured part.
    pub fn end(mut self, tick: u32, now: u64) -> Vec<DiskOutcome> {
        self.tick(tick, now);
        if let (Some((began, first)), Some((ended, last))) = (&self.first, &self.previous) {
            for ((disk, last), first) in self.outcomes.iter_mut().zip(last).zip(first) {
                disk.counters = last.since(first);
                disk.elapsed_ns = ended - began;
            }
        }
        self.outcomes
    }
}

fn counters(raw: &DiskStats) -> DiskCounters {
    DiskCounters {
        read_ios: raw.read_ios,
        read_merges: raw.read_merges,
        read_sectors: raw.read_sectors,
        read_ticks_ms: raw.read_ticks_ms,
        write_ios: raw.write_ios,
        write_merges: raw.write_merges,
        write_sectors: raw.write_sectors,
        write_ticks_ms: raw.write_ticks_ms,
        busy_ms: raw.busy_ms,
        queue_ms: raw.queue_ms,
        discard_ios: raw.discard_ios,
        discard_sectors: raw.discard_sectors,
        flush_ios: raw.flush_ios,
        flush_ticks_ms: raw.flush_ticks_ms,
    }
}
