//! Texts as areas, in the font of the program: a part of DejaVu Sans (`font/README.md` says which).

use std::fmt::Write as _;

use fathom_model::text::shown;
use ttf_parser::{Face, GlyphId, OutlineBuilder};

use crate::formats::chart::drawing::{Anchor, PlacedText};

const FILE: &[u8] = include_bytes!("font/DejaVuSans.subset.ttf");
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
