//! The host cache of a simulated volume: `cache=ReadOnly&cache_size=8GiB&…`.

use fathom_model::units::{bytes, latency};
use fathom_volume::{Accounting, Cache, LimitStage};
use serde::{Deserialize, Serialize};

use crate::limits::plain;
use crate::parts::UnusedParts;
use crate::resolve::{is_limited, stage};

/// Host caching. What is not given is assumed, and the assumption stated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HostCaching {
    /// The mode.
    pub mode: CachingMode,
    /// Capacity.
    pub size_bytes: Option<u64>,
    /// Share of the reads that are served of those whose data the cache holds, per cent.
    pub hit_percent: Option<u64>,
    /// Dirty bytes that a write-back cache holds at most.
    pub dirty_bytes: Option<u64>,
    /// Latency of a request that the cache serves, ns.
    pub latency_ns: Option<u64>,
    /// It holds the data that is used first from the start.
    pub is_warm: Option<bool>,
    /// Limit on the requests that the cache serves.
    pub iops: Option<u64>,
    /// Limit on the bytes per second that the cache serves.
    pub bytes_per_second: Option<u64>,
}

/// The mode of a host cache, with the names of Azure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum CachingMode {
    /// No cache.
    #[default]
    None,
    /// Reads are served; writes go through.
    ReadOnly,
    /// Writes are acknowledged by the cache, too.
    ReadWrite,
}

impl CachingMode {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            CachingMode::None => "None",
            CachingMode::ReadOnly => "ReadOnly",
            CachingMode::ReadWrite => "ReadWrite",
        }
    }

    /// The mode of this name, in any case and with or without hyphen.
    fn named(text: &str) -> Option<CachingMode> {
        let name: String = text.chars().filter(|one| !matches!(one, '-' | '_')).collect();
        let all = [CachingMode::None, CachingMode::ReadOnly, CachingMode::ReadWrite];
        all.into_iter().find(|mode| mode.name().eq_ignore_ascii_case(&name))
    }
}

/// Capacity that is assumed.
const USUAL_BYTES: u64 = 4 << 30;
/// Latency that is assumed.
const USUAL_LATENCY_NS: u64 = 100_000;
/// The part of the capacity that may be dirty: one of so many.
const USUAL_DIRTY_PARTS: u64 = 5;

/// The parameters of the cache; `None` if `cache` is not given.
pub(crate) fn read(parts: &mut UnusedParts<'_>) -> Result<Option<HostCaching>, String> {
    let mode = parts.text("cache");
    let mut caching = HostCaching {
        mode: CachingMode::None,
        size_bytes: parts.bytes("cache_size")?,
        hit_percent: parts.percent("cache_hit")?,
        dirty_bytes: parts.bytes("cache_dirty")?,
        latency_ns: parts.duration("cache_latency")?,
        is_warm: parts.switch("cache_warm")?,
        iops: parts.number("cache_iops")?,
        bytes_per_second: parts.bytes("cache_bandwidth")?,
    };
    let Some(text) = mode else {
        return match caching == HostCaching::default() {
            true => Ok(None),
            false => {
                Err("the properties of a cache need its mode: add cache=ReadOnly or cache=ReadWrite"
                    .to_owned())
            }
        };
    };
    let refuse =
        || format!("cache={text} is not None, ReadOnly, ReadWrite or the size of a read cache, as in 4GiB");
    caching.mode = match CachingMode::named(text) {
        Some(mode) => mode,
        None if caching.size_bytes.is_some() => return Err(refuse()),
        None => {
            let size = fathom_model::units::parse_bytes(text).ok().filter(|size| *size > 0);
            caching.size_bytes = Some(size.ok_or_else(refuse)?);
            CachingMode::ReadOnly
        }
    };
    if caching.mode == CachingMode::None && caching != HostCaching::default() {
        return Err("cache=None has no properties: omit them".to_owned());
    }
    if caching.mode != CachingMode::ReadWrite && caching.dirty_bytes.is_some() {
        return Err("cache_dirty needs cache=ReadWrite".to_owned());
    }
    Ok(Some(caching))
}

impl HostCaching {
    /// The cache in front of a volume; what is not given is that of `known`, else assumed.
    pub(crate) fn model(
        &self,
        known: Option<&Cache>,
        assumptions: &mut Vec<String>,
    ) -> Result<Option<Cache>, String> {
        if self.mode == CachingMode::None {
            return Ok(None);
        }
        let mut assumed = Vec::new();
        let mut cache = known.cloned().unwrap_or_else(|| Cache::read_only(USUAL_BYTES, USUAL_LATENCY_NS));
        match self.size_bytes {
            Some(size) => {
                let resized = Cache::read_only(size, cache.latency_ns);
                (cache.bytes, cache.line_bytes) = (resized.bytes, resized.line_bytes);
            }
            None if known.is_none() => assumed.push(bytes(cache.bytes)),
            None => {}
        }
        match self.latency_ns {
            Some(ns) => (cache.latency_ns, cache.write_latency_ns) = (ns, ns),
            None if known.is_none() => assumed.push(format!("{} per request", latency(cache.latency_ns))),
            None => {}
        }
        cache.dirty_bytes = match self.mode {
            CachingMode::ReadWrite if known.is_some() => self.dirty_bytes.unwrap_or(cache.dirty_bytes),
            CachingMode::ReadWrite => self.dirty_bytes.unwrap_or_else(|| {
                let dirty = (cache.bytes / USUAL_DIRTY_PARTS).max(1);
                assumed.push(format!("{} of dirty data at most", bytes(dirty)));
                dirty
            }),
            _ => 0,
        };
        if let Some(percent) = self.hit_percent {
            cache.hits_per_million = u32::try_from(percent * 10_000).unwrap_or(u32::MAX);
        }
        cache.is_warm = self.is_warm.unwrap_or(cache.is_warm);
        if let Some(own) = limited(self.iops, self.bytes_per_second)? {
            cache.reads = Some(own.clone());
            cache.writes = Some(own);
        }
        if !assumed.is_empty() {
            assumptions.push(format!("its host cache is not described: assumed {}", assumed.join(", ")));
        }
        if !cache.is_warm {
            assumptions
                .push("its host cache starts empty: the first access to each block misses it".to_owned());
        }
        Ok(Some(cache))
    }
}

/// A limit on what a cache serves.
pub(crate) fn limited(
    iops: Option<u64>,
    bytes_per_second: Option<u64>,
) -> Result<Option<LimitStage>, String> {
    let own = stage("cache", Accounting::default(), plain(iops)?, plain(bytes_per_second)?);
    Ok(Some(own).filter(is_limited))
}
