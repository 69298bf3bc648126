//! Parquet: the table of figures, a column chunk of one page for each column, plain and uncompressed.
//!
//! Required columns of three types need a fraction of the format: the `parquet` crate would add 1 MiB to the program and 14
//! crates to the build. The footer is Thrift in its compact protocol.

use std::io::{self, Write};

use super::{COLUMNS, ExportedFigure, ExportedRun, figures, unit};

/// Marks both ends of a file.
const MAGIC: &[u8] = b"PAR1";
/// Rows of a group: a page of strings stays far below the 2 GiB that its header can count.
const ROWS_OF_GROUP: usize = 100_000;

/// A column of a group.
enum ColumnValues {
    Integers(Vec<i64>),
    Reals(Vec<f64>),
    Texts(Vec<String>),
}

/// Writes every figure of `runs` as a row.
///
/// # Errors
/// Those of `out`.
pub fn render(runs: &[ExportedRun], out: &mut dyn Write) -> io::Result<()> {
    let figures = figures(runs);
    let mut file = MAGIC.to_vec();
    let mut groups = Vec::new();
    for rows in figures.chunks(ROWS_OF_GROUP) {
        groups.push(write_group(&columns(rows), rows.len(), &mut file));
    }
    let footer = footer(&groups, figures.len());
    file.extend_from_slice(&footer);
    file.extend_from_slice(&(footer.len() as u32).to_le_bytes());
    file.extend_from_slice(MAGIC);
    out.write_all(&file)
}

/// The values under [`COLUMNS`].
fn columns(rows: &[ExportedFigure<'_>]) -> Vec<ColumnValues> {
    let integers = |of: &dyn Fn(&ExportedFigure<'_>) -> u64| {
        ColumnValues::Integers(rows.iter().map(|row| i64::try_from(of(row)).unwrap_or(i64::MAX)).collect())
    };
    let texts =
        |of: &dyn Fn(&ExportedFigure<'_>) -> String| ColumnValues::Texts(rows.iter().map(of).collect());
    vec![
        integers(&|row| row.run.id),
        integers(&|row| row.run.started_unix_ms),
        texts(&|row| row.run.hostname.clone()),
        texts(&|row| row.run.device.clone()),
        texts(&|row| row.run.volume_type.clone().unwrap_or_default()),
        texts(&|row| row.run.target.clone()),
        texts(&|row| row.run.kind.name().to_owned()),
        texts(&|row| row.run.status.name().to_owned()),
        texts(&|row| row.run.tags.join(",")),
        texts(&|row| row.test.to_owned()),
        texts(&|row| row.metric.to_string()),
        ColumnValues::Reals(rows.iter().map(|row| row.value).collect()),
        texts(&|row| unit(&row.metric).to_owned()),
    ]
}

impl ColumnValues {
    /// The physical type: INT64, DOUBLE, BYTE_ARRAY.
    const fn physical_type(&self) -> i64 {
        match self {
            ColumnValues::Integers(_) => 2,
            ColumnValues::Reals(_) => 5,
            ColumnValues::Texts(_) => 6,
        }
    }

    fn plain(&self) -> Vec<u8> {
        match self {
            ColumnValues::Integers(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            ColumnValues::Reals(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            ColumnValues::Texts(values) => {
                let mut bytes = Vec::new();
                for value in values {
                    bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
                    bytes.extend_from_slice(value.as_bytes());
                }
                bytes
            }
        }
    }
}

/// Where a column of a group lies.
struct ChunkPlace {
    physical_type: i64,
    offset: usize,
    /// With the header of its page.
    length: usize,
}

/// Where the columns of a group lie.
struct GroupPlace {
    rows: usize,
    chunks: Vec<ChunkPlace>,
}

/// Encodings: of values, and of the levels that required columns do not have.
const PLAIN: i64 = 0;
const RLE: i64 = 3;

fn write_group(columns: &[ColumnValues], rows: usize, file: &mut Vec<u8>) -> GroupPlace {
    let mut chunks = Vec::new();
    for column in columns {
        let values = column.plain();
        let mut data = Thrift::default();
        data.integer(1, rows as i64).integer(2, PLAIN).integer(3, RLE).integer(4, RLE);
        let mut header = Thrift::default();
        let length = values.len() as i64;
        header.integer(1, 0).integer(2, length).integer(3, length).structure(5, data);
        let offset = file.len();
        file.extend_from_slice(&header.ended());
        file.extend_from_slice(&values);
        chunks.push(ChunkPlace {
            physical_type: column.physical_type(),
            offset,
            length: file.len() - offset,
        });
    }
    GroupPlace { rows, chunks }
}

/// The metadata of the file: the schema, and where each column lies.
fn footer(groups: &[GroupPlace], rows: usize) -> Vec<u8> {
    let types: Vec<i64> = columns(&[]).iter().map(ColumnValues::physical_type).collect();
    let mut root = Thrift::default();
    root.text(4, "figures").integer(5, COLUMNS.len() as i64);
    let mut schema = vec![root];
    for (name, &physical_type) in COLUMNS.iter().zip(&types) {
        let mut element = Thrift::default();
        // Required.
        element.integer(1, physical_type).integer(3, 0).text(4, name);
        if physical_type == 6 {
            // UTF-8.
            element.integer(6, 0);
        }
        schema.push(element);
    }
    let group = |place: &GroupPlace| {
        let total: usize = place.chunks.iter().map(|chunk| chunk.length).sum();
        let chunks = place.chunks.iter().zip(COLUMNS).map(|(chunk, name)| {
            let mut metadata = Thrift::default();
            let length = chunk.length as i64;
            metadata.integer(1, chunk.physical_type).integers(2, &[PLAIN]).texts(3, &[name]).integer(4, 0);
            metadata.wide(5, place.rows as i64).wide(6, length).wide(7, length).wide(9, chunk.offset as i64);
            let mut found = Thrift::default();
            found.wide(2, chunk.offset as i64).structure(3, metadata);
            found
        });
        let mut written = Thrift::default();
        written.structures(1, chunks.collect()).wide(2, total as i64).wide(3, place.rows as i64);
        written
    };
    let mut metadata = Thrift::default();
    metadata.integer(1, 1).structures(2, schema).wide(3, rows as i64);
    metadata.structures(4, groups.iter().map(group).collect());
    metadata.text(6, concat!("fathom ", env!("CARGO_PKG_VERSION")));
    metadata.ended()
}

/// Types of the compact protocol.
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A Thrift structure in the compact protocol; fields are added in ascending order.
#[derive(Default)]
struct Thrift {
    bytes: Vec<u8>,
    last: u8,
}

impl Thrift {
    fn field(&mut self, id: u8, kind: u8) {
        self.bytes.push((id - self.last) << 4 | kind);
        self.last = id;
    }

    /// An integer of 32 bits.
    fn integer(&mut self, id: u8, value: i64) -> &mut Thrift {
        self.field(id, I32);
        put_zigzag(&mut self.bytes, value);
        self
    }

    /// An integer of 64 bits.
    fn wide(&mut self, id: u8, value: i64) -> &mut Thrift {
        self.field(id, I64);
        put_zigzag(&mut self.bytes, value);
        self
    }

    fn text(&mut self, id: u8, value: &str) -> &mut Thrift {
        self.field(id, BINARY);
        put_text(&mut self.bytes, value);
        self
    }

    fn structure(&mut self, id: u8, value: Thrift) -> &mut Thrift {
        self.field(id, STRUCT);
        self.bytes.extend_from_slice(&value.ended());
        self
    }

    fn list(&mut self, id: u8, kind: u8, length: usize) {
        self.field(id, LIST);
        match length {
            0..15 => self.bytes.push((length as u8) << 4 | kind),
            _ => {
                self.bytes.push(0xf0 | kind);
                put_varint(&mut self.bytes, length as u64);
            }
        }
    }

    fn integers(&mut self, id: u8, values: &[i64]) -> &mut Thrift {
        self.list(id, I32, values.len());
        values.iter().for_each(|&value| put_zigzag(&mut self.bytes, value));
        self
    }

    fn texts(&mut self, id: u8, values: &[&str]) -> &mut Thrift {
        self.list(id, BINARY, values.len());
        values.iter().for_each(|value| put_text(&mut self.bytes, value));
        self
    }

    fn structures(&mut self, id: u8, values: Vec<Thrift>) -> &mut Thrift {
        self.list(id, STRUCT, values.len());
        values.into_iter().for_each(|value| self.bytes.extend_from_slice(&value.ended()));
        self
    }

    /// The bytes with the mark of the end.
    fn ended(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn put_zigzag(bytes: &mut Vec<u8>, value: i64) {
    put_varint(bytes, (value << 1 ^ value >> 63) as u64);
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put_varint(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_fields_are_compact() {
        let bytes = |put: fn(&mut Vec<u8>)| {
            let mut bytes = Vec::new();
            put(&mut bytes);
            bytes
        };
        assert_eq!(bytes(|out| put_varint(out, 300)), [0xac, 2]);
        assert_eq!(bytes(|out| put_zigzag(out, -1)), [1]);
        assert_eq!(bytes(|out| put_zigzag(out, 64)), [0x80, 1]);
        let mut inner = Thrift::default();
        inner.integer(1, 1);
        let mut outer = Thrift::default();
        outer.text(4, "ab").structure(5, inner);
        assert_eq!(outer.ended(), [0x48, 2, b'a', b'b', 0x1c, 0x15, 2, 0, 0]);
    }
}
