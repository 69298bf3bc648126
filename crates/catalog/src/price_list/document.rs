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
        let read = Level { list: &mut list, is_terms: false }.deserialize(&mut reader);
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

/// Takes the lines of one item of a list.
type TakeItem = fn(&Value, &mut Vec<PriceLine>) -> Result<(), String>;

/// The object of a price list, or the terms in that of AWS.
struct Level<'a> {
    list: &'a mut ListReader,
    is_terms: bool,
}

impl<'de> DeserializeSeed<'de> for Level<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Level<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_terms { "the terms of a price list" } else { "the object of a price list" })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let ListReader { lines, aws } = &mut *self.list;
            match (key.as_str(), self.is_terms) {
                ("publicationDate", false) => {
                    let value: Value = map.next_value()?;
                    let date = value.as_str().and_then(|text| text.get(..10));
                    let date = date.ok_or_else(|| A::Error::custom("publicationDate: it is not a date"))?;
                    lines.date = Some(date.to_owned());
                }
                ("products", false) => map.next_value_seed(Each {
                    is_map: true,
                    take: |sku: &str, product: &Value| {
                        aws.take_product(sku, product);
                        Ok(())
                    },
                })?,
                ("terms", false) => {
                    lines.title = aws::TITLE;
                    map.next_value_seed(Level { list: &mut *self.list, is_terms: true })?;
                }
                ("OnDemand", true) => map.next_value_seed(Each {
                    is_map: true,
                    take: |sku: &str, terms: &Value| {
                        let taken = aws.take_terms(sku, terms, &mut lines.lines);
                        taken.map_err(|reason| format!("terms.OnDemand.{sku}.{reason}"))
                    },
                })?,
                ("Items" | "skus", false) => {
                    let is_gcp = key == "skus";
                    let take: TakeItem = if is_gcp { gcp::take } else { azure::take };
                    lines.title = if is_gcp { gcp::TITLE } else { azure::TITLE };
                    map.next_value_seed(Each {
                        is_map: false,
                        take: |index: &str, item: &Value| {
                            take(item, &mut lines.lines).map_err(|reason| format!("{key}[{index}].{reason}"))
                        },
                    })?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// Takes the members of an object by their names, or the elements of an array by their places.
struct Each<F> {
    is_map: bool,
    take: F,
}

impl<'de, F: FnMut(&str, &Value) -> Result<(), String>> DeserializeSeed<'de> for Each<F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.is_map { deserializer.deserialize_map(self) } else { deserializer.deserialize_seq(self) }
    }
}

impl<'de, F: FnMut(&str, &Value) -> Result<(), String>> Visitor<'de> for Each<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_map { "an object" } else { "an array" })
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some((key, value)) = map.next_entry::<String, Value>()? {
            (self.take)(&key, &value).map_err(A::Error::custom)?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        let mut index = 0_u64;
        while let Some(element) = elements.next_element::<Value>()? {
            (self.take)(&index.to_string(), &element).map_err(A::Error::custom)?;
            index += 1;
        }
        Ok(())
    }
}
