//! The monthly cost of a volume, as far as its sources state prices. A part with an unknown price is named, never
//! counted as free.

use fathom_model::{CostPart, MonthlyCost};

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
        let size_bytes = self.resolve(parameters)?.model.size_bytes;
        let refuse = |reason| ModelRefusal { id: self.id().to_owned(), reason };
        let (iops, throughput) = self.paid_for(parameters, size_bytes).map_err(refuse)?;
        let included = self.wire.iops_included.unwrap_or(0.0);
        let known = price.iops_up_to.map_or(iops, |most| iops.min((most - included).max(0.0)));
        let wanted = [
            ("size", size_bytes as f64 / GIB as f64, price.per_gib_month),
            ("provisioned IOPS", known, price.per_iops_month),
            ("further provisioned IOPS", iops - known, None),
            ("provisioned throughput", throughput, price.per_throughput_month),
            ("billed bursts", used.billed_transactions, None),
        ];
        let mut cost = MonthlyCost { price, total: 0.0, parts: Vec::new(), unknown: Vec::new() };
        for (what, amount, rate) in wanted.into_iter().filter(|(_, amount, _)| *amount > 0.0) {
            match rate {
                Some(rate) => {
                    cost.parts.push(CostPart { what: what.to_owned(), amount, cost: amount * rate })
                }
                None => cost.unknown.push(what.to_owned()),
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

    /// Provisioned IOPS and units of throughput beyond those included.
    fn paid_for(&self, parameters: &Parameters, size_bytes: u64) -> Result<(f64, f64), String> {
        let wire = &self.wire;
        let wanted = levels::Wanted {
            size_bytes,
            tier: None,
            iops: parameters.iops,
            bytes_per_second: parameters.bytes_per_second,
        };
        let iops = if wire.iops_provisioned_max.is_some() && wire.iops_per_provisioned_throughput.is_none() {
            let chosen = levels::of(wire, wanted)?.0.shared.unwrap_or(0) as f64;
            (chosen - wire.iops_included.unwrap_or(0.0)).max(0.0)
        } else {
            0.0
        };
        let unit = wire.throughput_unit.map_or(1, |unit| unit.bytes());
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
        // 500 GiB at 0.10; 100 GiB at 0.125 and 2,000 IOPS at 0.065; 3,000 IOPS of gp3 are included, and 5,000 are not.
        check("aws-gp2", of(500, None), 50.0, &[]);
        check("aws-io1", of(100, Some(2000)), 12.5 + 130.0, &[]);
        check("aws-gp3", of(100, None), 8.0, &[]);
        // The price of an IOPS holds for the first 32,000; the price of the others is from memory.
        check("aws-io2-block-express", of(1000, Some(32_000)), 125.0 + 2080.0, &[]);
        check("aws-io2-block-express", of(1000, Some(40_000)), 125.0 + 2080.0, &["further provisioned IOPS"]);
        check("aws-gp3", of(100, Some(5000)), 8.0, &["provisioned IOPS"]);
        // 100 GiB of unknown price; 1,000 IOPS at 0.10.
        check("aws-io1-2012", of(100, Some(1000)), 100.0, &["size"]);
        assert_eq!(cost("aws-gp2-2016", &of(50, None), 0.0), None);
    }
}
