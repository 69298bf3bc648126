//! The documents of price lists as a stream: of their large maps and arrays one member at a time is in memory.

use std::fmt;
use std::io::{BufReader, Read};

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::{PriceLine, PriceLines, PriceListError, aws, azure, gcp};

/// Bytes that are read together.
const BUFFER: usize = 256 << 10;

/// Reads the documents of a list.
pub(super) fn read_documents(input: impl Read) -> Result<PriceLines, PriceListError> {
    let mut reader = serde_json::Deserializer::from_reader(BufReader::with_capacity(BUFFER, input));
    let mut list = ListReader::default();
    let mut documents = 0;
    // Pages follow each other.
    while documents == 0 || reader.end().is_err() {
        let read = TopLevel(&mut list).deserialize(&mut reader);
        read.map_err(|error| refusal(&error, documents == 0))?;
        documents += 1;
    }
    Ok(list.lines)
}

fn refusal(error: &serde_json::Error, is_first: bool) -> PriceListError {
    let hint = "export the list again, as JSON: AWS's offer file of AmazonEC2, Azure's retail prices, or the SKUs of GCP";
    if is_first && error.is_eof() && error.line() <= 1 && error.column() == 0 {
        return PriceListError::new(0, "it is empty", hint);
    }
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let problem = text.strip_suffix(&place).unwrap_or(&text);
    PriceListError::new(error.line(), problem, hint)
}

/// What has been read.
#[derive(Default)]
struct ListReader {
    lines: PriceLines,
    aws: aws::AwsProducts,
}

/// A document: a map with the members of one of the lists.
struct TopLevel<'a>(&'a mut ListReader);

impl<'de> DeserializeSeed<'de> for TopLevel<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for TopLevel<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the object of a price list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let ListReader { lines, aws } = self.0;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "publicationDate" => {
                    let value: Value = map.next_value()?;
                    let date = value.as_str().and_then(|text| text.get(..10));
                    let date = date.ok_or_else(|| A::Error::custom("publicationDate: it is not a date"))?;
                    lines.date = Some(date.to_owned());
                }
                "products" => map.next_value_seed(Members(|sku: &str, product: &Value| {
                    aws.take_product(sku, product);
                    Ok::<(), String>(())
                }))?,
                "terms" => {
                    lines.title = aws::TITLE;
                    map.next_value_seed(AwsTerms { products: aws, lines: &mut lines.lines })?;
                }
                "Items" => {
                    lines.title = azure::TITLE;
                    let found = &mut lines.lines;
                    map.next_value_seed(Elements("Items", |item: &Value| azure::take(item, found)))?;
                }
                "skus" => {
                    lines.title = gcp::TITLE;
                    let found = &mut lines.lines;
                    map.next_value_seed(Elements("skus", |sku: &Value| gcp::take(sku, found)))?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// The members of an object, one at a time.
struct Members<F>(F);

impl<'de, F: FnMut(&str, &Value) -> Result<(), String>> DeserializeSeed<'de> for Members<F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, F: FnMut(&str, &Value) -> Result<(), String>> Visitor<'de> for Members<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some((key, value)) = map.next_entry::<String, Value>()? {
            (self.0)(&key, &value).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

/// The elements of an array, one at a time, and the name of the array.
struct Elements<F>(&'static str, F);

impl<'de, F: FnMut(&Value) -> Result<(), String>> DeserializeSeed<'de> for Elements<F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, F: FnMut(&Value) -> Result<(), String>> Visitor<'de> for Elements<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        let mut index = 0_u64;
        while let Some(element) = elements.next_element::<Value>()? {
            (self.1)(&element).map_err(|reason| A::Error::custom(format!("{}[{index}].{reason}", self.0)))?;
            index += 1;
        }
        Ok(())
    }
}

/// The terms of AWS's offer file: of those on demand the prices of known products.
struct AwsTerms<'a> {
    products: &'a aws::AwsProducts,
    lines: &'a mut Vec<PriceLine>,
}

impl<'de> DeserializeSeed<'de> for AwsTerms<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for AwsTerms<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the terms of a price list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let AwsTerms { products, lines } = self;
        while let Some(key) = map.next_key::<String>()? {
            if key != "OnDemand" {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            map.next_value_seed(Members(|sku: &str, terms: &Value| {
                let taken = products.take_terms(sku, terms, lines);
                taken.map_err(|reason| format!("terms.OnDemand.{sku}.{reason}"))
            }))?;
        }
        Ok(())
    }
}
