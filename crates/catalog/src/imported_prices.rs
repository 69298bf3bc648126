//! Prices that a user imported from price lists, kept in a file of their own: they take precedence over those of the catalogue.

use std::collections::BTreeMap;

use fathom_model::Price;
use serde::{Deserialize, Serialize};

use crate::price_list::PriceList;

/// The `schema` of the file.
const SCHEMA: &str = "fathom.prices/1";

/// Imported prices by the ids of the catalogue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportedPrices {
    prices: BTreeMap<String, Price>,
}

/// The file.
#[derive(Serialize, Deserialize)]
struct PricesFile {
    schema: String,
    prices: BTreeMap<String, Price>,
}

impl ImportedPrices {
    /// The prices in the text of a file.
    ///
    /// # Errors
    /// It is not such a file: why.
    pub fn parse(text: &str) -> Result<ImportedPrices, String> {
        let file: PricesFile = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if file.schema != SCHEMA {
            return Err(format!("its schema is '{}', not {SCHEMA}", file.schema));
        }
        Ok(ImportedPrices { prices: file.prices })
    }

    /// The text of a file.
    pub fn text(&self) -> String {
        let file = PricesFile { schema: SCHEMA.to_owned(), prices: self.prices.clone() };
        // Texts and numbers that came from JSON can be written as JSON.
        serde_json::to_string_pretty(&file).map(|text| text + "\n").unwrap_or_default()
    }

    /// Takes the prices of a list, in place of earlier ones of the same volumes.
    pub fn take(&mut self, list: PriceList) {
        self.prices.extend(list.prices);
    }

    /// Removes the prices of a volume; false where there is none.
    pub fn remove(&mut self, id: &str) -> bool {
        self.prices.remove(id).is_some()
    }

    /// All prices by the ids of their volumes.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Price)> {
        self.prices.iter().map(|(id, price)| (id.as_str(), price))
    }

    /// True without prices.
    pub fn is_empty(&self) -> bool {
        self.prices.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Catalog, MonthlyUse, Parameters};

    fn priced(per_gib: f64) -> PriceList {
        let price = Price {
            currency: "EUR".to_owned(),
            region: "eu-central-1".to_owned(),
            as_of: Some("2026-11-23".to_owned()),
            per_gib_month: Some(per_gib),
            source: "a list".to_owned(),
            ..Price::default()
        };
        PriceList { region: price.region.clone(), prices: BTreeMap::from([("aws-gp2".to_owned(), price)]) }
    }

    #[test]
    fn imported_prices_come_back_and_take_precedence() {
        let mut prices = ImportedPrices::default();
        prices.take(priced(0.5));
        prices.take(priced(0.25));
        let read = ImportedPrices::parse(&prices.text()).unwrap();
        assert_eq!(read, prices);
        let catalog = Catalog::shipped().clone().with_prices(&read);
        let entry = catalog.get("aws-gp2").unwrap();
        let parameters = Parameters { size_bytes: Some(100 << 30), ..Parameters::default() };
        let cost = entry.cost_of_month(&parameters, MonthlyUse::default()).unwrap().unwrap();
        assert_eq!(
            (cost.total, cost.price.currency.as_str(), cost.price.source.as_str()),
            (25.0, "EUR", "a list")
        );
        assert_eq!(entry.shipped_price().map(|price| price.currency), Some("USD".to_owned()));
        assert!(prices.remove("aws-gp2") && !prices.remove("aws-gp2") && prices.is_empty());
        for text in ["", "{}", "{\"schema\": \"x\", \"prices\": {}}"] {
            assert!(ImportedPrices::parse(text).is_err(), "{text}");
        }
    }
}
