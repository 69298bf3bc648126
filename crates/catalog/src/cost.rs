//! The monthly cost of a volume, as far as its sources state prices. A part with an unknown price is named, never
//! counted as free.

use fathom_model::{CostPart, MonthlyCost, Price};

use crate::amount::{self, GIB};
use crate::entry::CatalogEntry;
use crate::levels;
use crate::resolve::{ModelRefusal, Parameters};

/// The use of a volume in a month.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MonthlyUse {
    /// Requests.
    pub ios: f64,
    /// Billed transactions of on-demand bursts.
    pub billed_transactions: f64,
}

/// Seconds of a billing month: 730 hours.
const MONTH_S: f64 = 730.0 * 3600.0;

impl MonthlyUse {
    /// A month at these rates per second.
    pub fn at_rates(ios: f64, billed_transactions: f64) -> MonthlyUse {
        MonthlyUse { ios: ios * MONTH_S, billed_transactions: billed_transactions * MONTH_S }
    }
}

impl CatalogEntry {
    /// The cost of a month with this use; `None` without a sourced price.
    ///
    /// # Errors
    /// The type has no such volume.
    pub fn cost_of_month(
        &self,
        parameters: &Parameters,
        used: MonthlyUse,
    ) -> Result<Option<MonthlyCost>, ModelRefusal> {
        let Some(price) = self.price() else { return Ok(None) };
        let resolved = self.resolve(parameters)?;
        let size_bytes = resolved.model.size_bytes;
        let refuse = |reason| ModelRefusal { id: self.id().to_owned(), reason };
        let (iops, throughput) = self.paid_for(parameters, size_bytes).map_err(refuse)?;
        let mut wanted = vec![match resolved.tier.filter(|_| !price.tiers.is_empty()) {
            // A tier is sold as a whole.
            Some(tier) => {
                let each = price.tiers.iter().find(|priced| priced.tier == tier).map(|priced| priced.month);
                (format!("tier {tier}"), 1.0, each)
            }
            None => ("size".to_owned(), size_bytes as f64 / GIB as f64, price.per_gib_month),
        }];
        wanted.extend(self.iops_parts(&price, iops));
        wanted.extend([
            ("provisioned throughput".to_owned(), throughput, price.per_throughput_month),
            ("billed bursts".to_owned(), used.billed_transactions, None),
        ]);
        if price.are_ios_unknown {
            wanted.push(("I/Os".to_owned(), used.ios, None));
        }
        let mut cost = MonthlyCost { price, total: 0.0, parts: Vec::new(), unknown: Vec::new() };
        for (what, amount, rate) in wanted.into_iter().filter(|(_, amount, _)| *amount > 0.0) {
            match rate {
                Some(rate) => cost.parts.push(CostPart { what, amount, cost: amount * rate }),
                None => cost.unknown.push(what),
            }
        }
        // Most types do not bill requests, and sources do not state that for each.
        if let Some(rate) = cost.price.per_million_ios {
            cost.parts.push(CostPart {
                what: "I/Os".to_owned(),
                amount: used.ios,
                cost: used.ios / 1e6 * rate,
            });
        }
        cost.total = cost.parts.iter().map(|part| part.cost).sum();
        Ok(Some(cost))
    }

    /// The provisioned IOPS beyond those included, by price: name, amount, price of each.
    fn iops_parts(&self, price: &Price, iops: f64) -> Vec<(String, f64, Option<f64>)> {
        let included = self.wire.iops_included.unwrap_or(0.0);
        let beyond = |most: f64| (most - included).clamp(0.0, iops);
        let end = price.iops_up_to.map_or(iops, beyond);
        let mut parts = Vec::new();
        let mut priced = (0.0, "provisioned IOPS".to_owned(), price.per_iops_month);
        for step in &price.iops_steps {
            let from = beyond(step.above_iops).min(end);
            parts.push((priced.1, from - priced.0, priced.2));
            let name = format!("provisioned IOPS above {}", step.above_iops);
            priced = (from, name, Some(step.per_iops_month));
        }
        parts.push((priced.1, end - priced.0, priced.2));
        parts.push(("further provisioned IOPS".to_owned(), iops - end, None));
        parts
    }

    /// Provisioned IOPS and units of throughput beyond those included.
    fn paid_for(&self, parameters: &Parameters, size_bytes: u64) -> Result<(f64, f64), String> {
        let wire = &self.wire;
        let wanted = levels::Wanted {
            size_bytes,
            tier: None,
            iops: parameters.iops,
            bytes_per_second: parameters.bytes_per_second,
        };
        let iops = if wire.iops_extra_max.is_some() {
            levels::extra_iops(wire, wanted)? as f64
        } else if wire.iops_provisioned_max.is_some() && wire.iops_per_provisioned_throughput.is_none() {
            let chosen = levels::of(wire, wanted)?.0.shared.unwrap_or(0) as f64;
            (chosen - wire.iops_included.unwrap_or(0.0)).max(0.0)
        } else {
            0.0
        };
        let unit = wire.unit_bytes();
        let included = wire.throughput_included.map_or(0, |included| amount::of(included, unit));
        let bytes = parameters.bytes_per_second.unwrap_or(included).saturating_sub(included);
        Ok((iops, bytes as f64 / unit as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalog;

    fn cost(id: &str, parameters: &Parameters, ios: f64) -> Option<MonthlyCost> {
        let entry = Catalog::shipped().get(id).unwrap();
        entry.cost_of_month(parameters, MonthlyUse { ios, billed_transactions: 0.0 }).unwrap()
    }

    #[test]
    fn known_parts_are_added_and_unknown_ones_named() {
        let of = |size: u64, iops: Option<u64>| Parameters {
            size_bytes: Some(size * GIB),
            iops,
            ..Parameters::default()
        };
        let check = |id: &str, parameters: Parameters, total: f64, unknown: &[&str]| {
            let cost = cost(id, &parameters, 1e9).unwrap();
            assert!((cost.total - total).abs() < 1e-6, "{id}: {cost:?}");
            assert_eq!(cost.unknown, unknown, "{id}");
        };
        // 500 GiB at 0.10; 100 GiB at 0.125 and 2,000 IOPS at 0.065; 3,000 IOPS of gp3 are included, 2,000 more cost 0.005.
        check("aws-gp2", of(500, None), 50.0, &[]);
        check("aws-io1", of(100, Some(2000)), 12.5 + 130.0, &[]);
        check("aws-gp3", of(100, None), 8.0, &[]);
        check("aws-gp3", of(100, Some(5000)), 8.0 + 10.0, &[]);
        // 32,000 IOPS at 0.065, the next 32,000 at 0.0455, the others at 0.03185.
        check("aws-io2-block-express", of(1000, Some(32_000)), 125.0 + 2080.0, &[]);
        check("aws-io2-block-express", of(1000, Some(40_000)), 125.0 + 2080.0 + 364.0, &[]);
        check("aws-io2-block-express", of(1000, Some(100_000)), 125.0 + 2080.0 + 1456.0 + 1146.6, &[]);
        // 100 GiB at 0.0803, 2,000 IOPS beyond 3,000 at 0.00511.
        check("azure-premium-ssd-v2", of(100, Some(5000)), 8.03 + 10.22, &[]);
        // A tier is sold as a whole: 100 GiB are a P10. The I/Os of standard SSDs are billed at an unknown price, those of
        // standard HDDs at 0.05 a million.
        check("azure-premium-ssd", of(100, None), 19.71, &[]);
        check("azure-standard-ssd", of(100, None), 9.6, &["I/Os"]);
        check("azure-standard-hdd", of(100, None), 5.888 + 50.0, &[]);
        // 100 GiB of unknown price; 1,000 IOPS at 0.10.
        check("aws-io1-2012", of(100, Some(1000)), 100.0, &["size"]);
        assert_eq!(cost("aws-gp2-2016", &of(50, None), 0.0), None);
    }
}
