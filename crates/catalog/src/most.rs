//! The fastest volumes of a type, and their rates.

use fathom_predict::{OfferedLoad, limits_bytes, reach};

use crate::amount::GIB;
use crate::entry::CatalogEntry;
use crate::fit_size::MOST_GIB;
use crate::levels::{bytes_range, chooses_bytes, chooses_iops, iops_range};
use crate::resolve::Parameters;
use crate::sheet::turning_points;
use crate::wire::{BurstModel, IopsModel};

/// Candidates for the fastest volume: each turning point of the rules, and the largest size.
pub(crate) fn volumes(entry: &CatalogEntry, least_gib: u64) -> Vec<Parameters> {
    let wire = &entry.wire;
    let (least, most) = entry.size_range_gib();
    let first = least_gib.max(least);
    let mut sizes = turning_points(wire);
    // A burst may be available only below a turning point.
    sizes = sizes.into_iter().flat_map(|size| [size.saturating_sub(1), size]).collect();
    if wire.iops_model == IopsModel::TieredBySize {
        sizes.extend(wire.tiers.iter().filter_map(|tier| tier.size_gib.map(|gib| gib as u64)));
    }
    let last = most.unwrap_or(first.max(MOST_GIB));
    sizes.extend([first, last]);
    sizes.retain(|size| (first..=last).contains(size));
    let is_named = matches!(wire.iops_model, IopsModel::TieredByInstance | IopsModel::TieredByCount);
    let tiers: Vec<Option<String>> = match is_named {
        true => wire.tiers.iter().map(|tier| Some(tier.name.clone())).collect(),
        false => vec![None],
    };
    let of = |size: u64, tier: &Option<String>| {
        let size_bytes = size.saturating_mul(GIB);
        let iops = chooses_iops(wire).then(|| iops_range(wire, size_bytes).1);
        let bytes_per_second =
            chooses_bytes(wire).then(|| bytes_range(wire, size_bytes, iops.unwrap_or_default()).1);
        let tier = tier.clone();
        Parameters { size_bytes: Some(size_bytes), iops, bytes_per_second, tier, ..Parameters::default() }
    };
    sizes.iter().flat_map(|size| tiers.iter().map(|tier| of(*size, tier))).collect()
}

impl CatalogEntry {
    /// The tiers that are chosen by name, because the instance determines the limits.
    pub fn named_tiers(&self) -> Vec<&str> {
        let is_named = matches!(self.wire.iops_model, IopsModel::TieredByInstance | IopsModel::TieredByCount);
        self.wire.tiers.iter().filter(|_| is_named).map(|tier| tier.name.as_str()).collect()
    }

    /// The highest sustained rates of any volume of this type: IOPS of random 4 KiB requests, and bytes per second of
    /// sequential 1 MiB requests, in the faster direction. `None` if not published.
    pub fn most(&self) -> (Option<f64>, Option<f64>) {
        let megabyte = f64::from(1 << 20);
        let models: Vec<_> = volumes(self, 1)
            .iter()
            .filter_map(|parameters| self.resolve(parameters).ok())
            .map(|resolved| resolved.model)
            .collect();
        let most = |load: &OfferedLoad| {
            let reads = [1.0, 0.0].map(|share| OfferedLoad { read_fraction: Some(share), ..load.clone() });
            let all = models.iter().flat_map(|model| reads.iter().map(|load| reach(model, load).iops));
            all.flatten().reduce(f64::max)
        };
        let bytes = most(&OfferedLoad::of(megabyte, true)).filter(|_| models.iter().any(limits_bytes));
        (most(&OfferedLoad::of(4096.0, false)), bytes.map(|rate| rate * megabyte))
    }

    /// The burst rule: `credit`, `window` or `billed`; `None` if there is none or none is published.
    pub fn burst_rule(&self) -> Option<&'static str> {
        match self.wire.burst_model {
            BurstModel::None | BurstModel::Unspecified => None,
            BurstModel::IoCreditBucket
            | BurstModel::ThroughputCreditBucket
            | BurstModel::DualCreditBucket => Some("credit"),
            BurstModel::TimedWindow => Some("window"),
            BurstModel::OnDemandBilled => Some("billed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Catalog;

    #[test]
    fn the_highest_rates_of_a_type() {
        let mib = 1_048_576.0;
        for (id, iops, bytes, burst) in [
            ("aws-gp2-2016", Some(10_000.0), Some(160.0 * mib), Some("credit")),
            ("aws-gp3", Some(80_000.0), Some(2000.0 * mib), None),
            ("aws-io1", Some(64_000.0), Some(1000.0 * mib), None),
            ("azure-premium-ssd", Some(20_000.0), Some(900e6), Some("credit")),
            ("linode-block-storage", Some(8000.0), Some(350e6), Some("window")),
            ("gcp-pd-standard", Some(15_000.0), Some(1200.0 * mib), None),
            ("aws-instance-store-nvme", Some(3_300_000.0), None, None),
            ("qingcloud-high-performance", Some(24_992.0), None, None),
            ("tencent-cbs-basic", None, None, None),
        ] {
            let entry = Catalog::shipped().get(id).unwrap();
            assert_eq!((entry.most(), entry.burst_rule()), ((iops, bytes), burst), "{id}");
        }
    }
}
