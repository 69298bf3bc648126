//! The file: chunks with their checksums around the compressed rows.

use std::io::Write as _;

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};

use super::image::Image;

/// Pixels in a metre where there is one for each unit, 96 in an inch.
const PIXELS_PER_METRE: u32 = 3780;

/// An image as a PNG file; programs that know of `scale` show it in its units.
pub(super) fn encoded(image: &Image, scale: u32) -> Vec<u8> {
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    // Eight bits for each of red, green and blue, not interlaced.
    let sizes = [image.width(), image.height()].map(u32::to_be_bytes).concat();
    push_chunk(b"IHDR", &[&sizes[..], &[8, 2, 0, 0, 0]].concat(), &mut file);
    let density = (PIXELS_PER_METRE * scale).to_be_bytes();
    push_chunk(b"pHYs", &[&density[..], &density[..], &[1]].concat(), &mut file);
    push_chunk(b"IDAT", &compressed(image), &mut file);
    push_chunk(b"IEND", &[], &mut file);
    file
}

fn push_chunk(name: &[u8; 4], data: &[u8], file: &mut Vec<u8>) {
    let mut sum = Crc::new();
    sum.update(name);
    sum.update(data);
    file.extend((data.len() as u32).to_be_bytes());
    file.extend(name);
    file.extend(data);
    file.extend(sum.sum().to_be_bytes());
}

/// The rows, each as its differences to the one above: most are the same.
fn compressed(image: &Image) -> Vec<u8> {
    const UP: u8 = 2;
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    let mut above = vec![0; image.width() as usize * 3];
    let mut filtered = Vec::with_capacity(above.len() + 1);
    for row in image.rows() {
        filtered.clear();
        filtered.push(UP);
        filtered.extend(row.iter().zip(&above).map(|(byte, above)| byte.wrapping_sub(*above)));
        above.copy_from_slice(row);
        // A vector takes everything.
        let _ = encoder.write_all(&filtered);
    }
    encoder.finish().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::ZlibDecoder;

    use super::*;
    use crate::formats::chart::look::Colour;

    #[test]
    fn rows_come_back_from_the_file() {
        let mut image = Image::new(2, 2, Colour { red: 1, green: 2, blue: 3 });
        image.blend(1, 1, Colour { red: 255, green: 0, blue: 9 }, 1.0);
        let file = encoded(&image, 2);
        let start = file.windows(4).position(|name| name == b"IDAT").expect("it has rows");
        let length = u32::from_be_bytes(file[start - 4..start].try_into().expect("four bytes")) as usize;
        let mut rows = Vec::new();
        let data = &file[start + 4..start + 4 + length];
        ZlibDecoder::new(data).read_to_end(&mut rows).expect("it is zlib");
        assert_eq!(rows, [2, 1, 2, 3, 1, 2, 3, 2, 0, 0, 0, 254, 254, 6]);
    }
}
