//! A chart as one PNG file on white ground: its SVG in pixels, two for each of its units, as screens of today show it sharply. Texts
//! are drawn in a font of the program's own, so that they look the same everywhere; a character that the font lacks is a box.

use std::fmt::{Display, Write as _};

use fathom_model::text::shown;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

use super::chart::Chart;
use super::picture::PictureError;
use super::svg;
use crate::formats::chart::drawing::{Anchor, PlacedText};

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

const FILE: &[u8] = include_bytes!("png/font/DejaVuSans.subset.ttf");
/// The font has one weight and no slant: letters have an edge, in units of their size, or lean by so many degrees.
const BOLD_EDGE: f64 = 0.045;
const SLANT_DEGREES: f64 = 11.3;

/// The outline of glyphs as the data of a path.
struct PathData {
    data: String,
    /// Where the glyph begins.
    pen: f32,
}

impl PathData {
    fn push(&mut self, command: char, points: &[(f32, f32)]) {
        self.data.push(command);
        for (x, y) in points {
            // A string takes everything.
            let _ = write!(self.data, "{} {} ", x + self.pen, y);
        }
    }
}

impl OutlineBuilder for PathData {
    fn move_to(&mut self, x: f32, y: f32) {
        self.push('M', &[(x, y)]);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.push('L', &[(x, y)]);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.push('Q', &[(x1, y1), (x, y)]);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.push('C', &[(x1, y1), (x2, y2), (x, y)]);
    }

    fn close(&mut self) {
        self.push('Z', &[]);
    }
}

/// The text as a path of this class and colour; empty where the font cannot be read.
pub(in crate::formats) fn outlined(placed: &PlacedText, class: &str, colour: &str) -> String {
    let Ok(face) = Face::parse(FILE, 0) else { return String::new() };
    let mut path = PathData { data: String::new(), pen: 0.0 };
    for c in shown(&placed.text).chars() {
        // Glyph 0 is the box.
        let glyph = face.glyph_index(c).unwrap_or(GlyphId(0));
        face.outline_glyph(glyph, &mut path);
        path.pen += f32::from(face.glyph_hor_advance(glyph).unwrap_or_default());
    }
    let units = f64::from(face.units_per_em());
    let start = match placed.anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => -0.5,
        Anchor::End => -1.0,
    } * f64::from(path.pen);
    let ((x, y), scale) = (placed.at, placed.look.size() / units);
    let turn = if placed.is_upright { " rotate(-90)" } else { "" };
    let lean = if placed.look.is_italic() { format!(" skewX({SLANT_DEGREES})") } else { String::new() };
    let edge = match placed.look.is_bold() {
        true => format!(" stroke=\"{colour}\" stroke-width=\"{}\"", BOLD_EDGE * units),
        false => String::new(),
    };
    // Of letters up is more, of pictures less.
    format!(
        "<path transform=\"translate({x:.1} {y:.1}){turn} scale({scale} -{scale}){lean} translate({start} 0)\" \
         class=\"{class}\"{edge} d=\"{}\"/>",
        path.data
    )
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

#[cfg(test)]
mod glyphs_tests {
    use super::*;

    #[test]
    fn every_character_of_the_charts_has_a_glyph_and_others_a_box() {
        let face = Face::parse(FILE, 0).expect("the font is read");
        for c in ('!'..='~').chain("µ×–—…·äßø€≤≥≈ΔΩ".chars()) {
            let glyph = face.glyph_index(c).unwrap_or_else(|| panic!("{c}"));
            let mut path = PathData { data: String::new(), pen: 0.0 };
            assert!(face.outline_glyph(glyph, &mut path).is_some() && !path.data.is_empty(), "{c}");
        }
        assert!(['日', '🙂', 'ע', 'ж', '\0'].iter().all(|c| face.glyph_index(*c).is_none()));
        assert!(face.glyph_bounding_box(GlyphId(0)).is_some());
    }
}
