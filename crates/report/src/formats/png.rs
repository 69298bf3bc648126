//! A chart as one PNG file on white ground, with two pixels for each of its units, as screens of today show it sharply. The text is
//! drawn with a font of its own, so that it looks the same everywhere; a character that the font lacks is a box.

mod file;
mod font;
mod image;
mod outline;
mod paint;

use super::chart::{self, Chart};
use font::Font;
use image::Image;

/// Pixels for each unit of a chart.
const SCALE: u32 = 2;
/// A higher picture is refused by many viewers.
const MOST_PIXELS: u32 = 32_767;

/// The chart as a file.
///
/// # Errors
/// It is too high for a picture; the message says so.
pub fn render(chart: &Chart) -> Result<Vec<u8>, String> {
    let drawing = chart::draw(chart);
    let (width, height) = (drawing.width.ceil() as u32, drawing.height.ceil() as u32);
    let scale = scale_for(height).ok_or_else(|| {
        format!("the chart is {height} pixels high, and a PNG file has at most {MOST_PIXELS}")
    })?;
    let mut image = Image::new(width * scale, height * scale, chart::look::LIGHT.paper);
    let font = Font::embedded();
    drawing.shapes.iter().for_each(|shape| paint::shape(shape, &font, f64::from(scale), &mut image));
    Ok(file::encoded(&image, scale))
}

/// Pixels for each unit of a chart of this height; `None` where it is too high.
fn scale_for(height: u32) -> Option<u32> {
    [SCALE, 1].into_iter().find(|scale| height.saturating_mul(*scale) <= MOST_PIXELS)
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
        let drawing = chart::draw(&sample::chart());
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
            render(&Chart { plots, ..Chart::default() }).is_err_and(|error| error.contains("pixels high"))
        );
    }
}
