//! A chart as one PNG file on white ground: its SVG in pixels, two for each of its units, as screens of today show it sharply. Texts
//! are drawn in a font of the program's own, so that they look the same everywhere; a character that the font lacks is a box.

mod glyphs;

use std::fmt::Display;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

use super::chart::Chart;
use super::picture::PictureError;
use super::svg;
pub(super) use glyphs::outlined;

/// Pixels for each unit of a chart.
const SCALE: u32 = 2;
/// A higher picture is refused by many viewers.
const MAX_PIXELS: u32 = 32_767;
/// Pixels in a metre where there is one for each unit, 96 in an inch.
const PIXELS_PER_METRE: u32 = 3780;

/// The chart as a file.
///
/// # Errors
/// It is too high for a picture.
pub fn render(chart: &Chart) -> Result<Vec<u8>, PictureError> {
    let failed = |message: String| PictureError { message, hint: "write SVG, which has no such limit" };
    let unreadable = |error: &dyn Display| failed(format!("cannot draw the chart: {error}"));
    let tree =
        Tree::from_str(&svg::in_outlines(chart), &Options::default()).map_err(|error| unreadable(&error))?;
    let (width, height) = (tree.size().width().ceil() as u32, tree.size().height().ceil() as u32);
    let sized =
        scale_for(height).and_then(|scale| Some((scale, Pixmap::new(width * scale, height * scale)?)));
    let (scale, mut pixels) = sized.ok_or_else(|| {
        failed(format!("the chart is {height} pixels high, and a PNG file has at most {MAX_PIXELS}"))
    })?;
    resvg::render(&tree, Transform::from_scale(scale as f32, scale as f32), &mut pixels.as_mut());
    // The ground covers everything, so nothing is transparent.
    let colours: Vec<u8> = pixels.data().chunks_exact(4).flat_map(|pixel| &pixel[..3]).copied().collect();
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, pixels.width(), pixels.height());
    encoder.set_color(png::ColorType::Rgb);
    // Programs that know of the density show the picture in the chart's units.
    let (density, unit) = (PIXELS_PER_METRE * scale, png::Unit::Meter);
    encoder.set_pixel_dims(Some(png::PixelDimensions { xppu: density, yppu: density, unit }));
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(&colours));
    written.map_err(|error| unreadable(&error))?;
    Ok(file)
}

/// Pixels for each unit of a chart of this height; `None` where it is too high.
fn scale_for(height: u32) -> Option<u32> {
    [SCALE, 1].into_iter().find(|scale| height.saturating_mul(*scale) <= MAX_PIXELS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::chart::sample;

    /// The size in the header.
    fn size(png: &[u8]) -> (u32, u32) {
        let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().expect("four bytes"));
        (number(16), number(20))
    }

    #[test]
    fn a_file_has_two_pixels_for_each_unit_of_the_drawing() {
        let drawing = super::super::chart::draw(&sample::chart());
        let png = render(&sample::chart()).expect("it is small");
        assert!(png.starts_with(b"\x89PNG\r\n\x1a\n") && png.ends_with(b"IEND\xae\x42\x60\x82"));
        assert_eq!(size(&png), (drawing.width as u32 * 2, drawing.height as u32 * 2));
    }

    #[test]
    fn text_of_any_script_is_drawn() {
        let title = "日本語 العربية עברית 🙂 \u{1b}[2J\u{202e}\u{300} größe Ω я \u{10ffff}".to_owned();
        let chart = Chart { title, ..sample::chart() };
        assert!(render(&chart).is_ok_and(|png| png.len() > 1000));
    }

    #[test]
    fn a_chart_that_is_too_high_has_fewer_pixels_or_none() {
        assert_eq!(
            [700, 16_383, 16_384, 32_767, 32_768, u32::MAX].map(scale_for),
            [Some(2), Some(2), Some(1), Some(1), None, None]
        );
        let plots = vec![sample::chart().plots[1].clone(); 240];
        assert!(
            render(&Chart { plots, ..Chart::default() })
                .is_err_and(|error| error.message.contains("pixels high"))
        );
    }
}
