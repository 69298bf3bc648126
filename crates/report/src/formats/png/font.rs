//! The font in which PNG files are written: a part of DejaVu Sans (`font/README.md` says which), read from its TrueType file.
//!
//! Only what that file has is read: outlines of lines and parabolas, and glyphs composed of others. What cannot be read is empty, so
//! that no character stops a report; a test reads every glyph.

use crate::formats::chart::drawing::Point;

const FILE: &[u8] = include_bytes!("font/DejaVuSans.subset.ttf");
/// Straight lines in place of a parabola.
const STEPS: u32 = 5;
/// Glyphs in glyphs in glyphs.
const MOST_DEPTH: usize = 4;

/// The number of a glyph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Glyph(u16);

/// A box, for characters that the font lacks.
const MISSING: Glyph = Glyph(0);

/// The tables of a font file.
pub(super) struct Font {
    glyphs: &'static [u8],
    /// Where each glyph begins in `glyphs`.
    places: &'static [u8],
    has_long_places: bool,
    widths: &'static [u8],
    /// Glyphs that have a width of their own; further ones have the last.
    width_count: usize,
    /// Numbers of characters, their differences to those of glyphs, and where exceptions are listed.
    map: &'static [u8],
    /// Units of the size of the font.
    units: f64,
}

/// A point of an outline.
#[derive(Clone, Copy, Debug)]
struct OutlinePoint {
    x: f64,
    y: f64,
    /// False for the control point of a parabola.
    is_on: bool,
}

/// How the points of a part of a glyph are moved.
struct Placement {
    scale: [f64; 4],
    shift: Point,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn i16_at(bytes: &[u8], at: usize) -> Option<i16> {
    u16_at(bytes, at).map(u16::cast_signed)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize)
}

/// A table of the file; empty where it has none of that name.
fn table(name: &[u8; 4]) -> &'static [u8] {
    let find = || {
        let count = usize::from(u16_at(FILE, 4)?);
        let entry =
            (0..count).map(|number| 12 + number * 16).find(|at| FILE.get(*at..*at + 4) == Some(name))?;
        let (start, length) = (u32_at(FILE, entry + 8)?, u32_at(FILE, entry + 12)?);
        FILE.get(start..start + length)
    };
    find().unwrap_or_default()
}

/// The part of the table of characters that maps 16 bits by stretches.
fn character_map() -> Option<&'static [u8]> {
    const BY_STRETCHES: u16 = 4;
    let all = table(b"cmap");
    let count = usize::from(u16_at(all, 2)?);
    let starts = (0..count).filter_map(|number| u32_at(all, 4 + number * 8 + 4));
    starts.filter_map(|start| all.get(start..)).find(|map| u16_at(map, 0) == Some(BY_STRETCHES))
}

impl Font {
    /// The font of the program.
    pub(super) fn embedded() -> Font {
        let head = table(b"head");
        Font {
            glyphs: table(b"glyf"),
            places: table(b"loca"),
            has_long_places: u16_at(head, 50) == Some(1),
            widths: table(b"hmtx"),
            width_count: usize::from(u16_at(table(b"hhea"), 34).unwrap_or_default()),
            map: character_map().unwrap_or_default(),
            units: f64::from(u16_at(head, 18).unwrap_or(1).max(1)),
        }
    }

    /// The glyph of a character.
    pub(super) fn glyph(&self, c: char) -> Glyph {
        let code = u16::try_from(u32::from(c)).ok();
        code.and_then(|code| self.mapped(code)).filter(|glyph| *glyph != 0).map_or(MISSING, Glyph)
    }

    fn mapped(&self, code: u16) -> Option<u16> {
        let map = self.map;
        let stretches = usize::from(u16_at(map, 6)?) / 2;
        let [ends, starts, differences, offsets] =
            [14, 16 + stretches * 2, 16 + stretches * 4, 16 + stretches * 6];
        let at = (0..stretches).find(|at| u16_at(map, ends + at * 2).is_some_and(|end| end >= code))? * 2;
        let start = u16_at(map, starts + at).filter(|start| *start <= code)?;
        let difference = u16_at(map, differences + at)?;
        match u16_at(map, offsets + at)? {
            0 => Some(code.wrapping_add(difference)),
            offset => {
                let place = offsets + at + usize::from(offset) + usize::from(code - start) * 2;
                let glyph = u16_at(map, place)?;
                Some(if glyph == 0 { 0 } else { glyph.wrapping_add(difference) })
            }
        }
    }

    /// The width of a glyph, as a share of the size of the font.
    pub(super) fn advance(&self, glyph: Glyph) -> f64 {
        let place = usize::from(glyph.0).min(self.width_count.saturating_sub(1));
        f64::from(u16_at(self.widths, place * 4).unwrap_or_default()) / self.units
    }

    /// The width of a text.
    pub(super) fn width(&self, text: &str) -> f64 {
        text.chars().map(|c| self.advance(self.glyph(c))).sum()
    }

    /// Closed lines around and in a glyph, as shares of the size of the font, from the base line up.
    pub(super) fn contours(&self, glyph: Glyph) -> Vec<Vec<Point>> {
        let outlines = self.outlines(glyph.0, MOST_DEPTH).unwrap_or_default();
        let scaled = |(x, y): Point| (x / self.units, y / self.units);
        outlines.iter().map(|outline| flattened(outline).into_iter().map(scaled).collect()).collect()
    }

    /// The outlines of a glyph; `None` where the file has no such.
    fn outlines(&self, glyph: u16, depth: usize) -> Option<Vec<Vec<OutlinePoint>>> {
        let place = |number: usize| match self.has_long_places {
            true => u32_at(self.places, number * 4),
            false => u16_at(self.places, number * 2).map(|half| usize::from(half) * 2),
        };
        let data = self.glyphs.get(place(usize::from(glyph))?..place(usize::from(glyph) + 1)?)?;
        if data.is_empty() {
            return Some(Vec::new());
        }
        match usize::try_from(i16_at(data, 0)?) {
            Ok(count) => simple(data, count),
            Err(_) => self.composed(data, depth.checked_sub(1)?),
        }
    }

    /// The outlines of a glyph that is composed of others.
    fn composed(&self, data: &[u8], depth: usize) -> Option<Vec<Vec<OutlinePoint>>> {
        const IS_FOLLOWED: u16 = 0x20;
        let mut all = Vec::new();
        let mut at = 10;
        loop {
            let (flags, part) = (u16_at(data, at)?, u16_at(data, at + 2)?);
            let (placement, length) = placement(data, at + 4, flags)?;
            let mut outlines = self.outlines(part, depth)?;
            outlines.iter_mut().flatten().for_each(|point| placement.apply(point));
            all.extend(outlines);
            at += 4 + length;
            if flags & IS_FOLLOWED == 0 {
                return Some(all);
            }
        }
    }
}

impl Placement {
    fn apply(&self, point: &mut OutlinePoint) {
        let [xx, xy, yx, yy] = self.scale;
        let (x, y) = (point.x, point.y);
        point.x = x * xx + y * yx + self.shift.0;
        point.y = x * xy + y * yy + self.shift.1;
    }
}

/// Where a part of a composed glyph stands, and the bytes that say so from `at` on.
fn placement(data: &[u8], at: usize, flags: u16) -> Option<(Placement, usize)> {
    const HAS_WORDS: u16 = 0x1;
    const HAS_SCALE: u16 = 0x8;
    const HAS_TWO_SCALES: u16 = 0x40;
    const HAS_MATRIX: u16 = 0x80;
    let byte = |at: usize| data.get(at).map(|byte| f64::from(byte.cast_signed()));
    let (shift, length) = match flags & HAS_WORDS {
        0 => ((byte(at)?, byte(at + 1)?), 2),
        _ => ((f64::from(i16_at(data, at)?), f64::from(i16_at(data, at + 2)?)), 4),
    };
    // Fourteen bits after the point.
    let factor =
        |number: usize| i16_at(data, at + length + number * 2).map(|value| f64::from(value) / 16_384.0);
    let (scale, factors) = if flags & HAS_SCALE != 0 {
        ([factor(0)?, 0.0, 0.0, factor(0)?], 1)
    } else if flags & HAS_TWO_SCALES != 0 {
        ([factor(0)?, 0.0, 0.0, factor(1)?], 2)
    } else if flags & HAS_MATRIX != 0 {
        ([factor(0)?, factor(1)?, factor(2)?, factor(3)?], 4)
    } else {
        ([1.0, 0.0, 0.0, 1.0], 0)
    };
    Some((Placement { scale, shift }, length + factors * 2))
}

/// The outlines of a glyph of its own: the last point of each, flags, then the steps across and up.
fn simple(data: &[u8], count: usize) -> Option<Vec<Vec<OutlinePoint>>> {
    const IS_ON: u8 = 0x1;
    const X_IS_SHORT: u8 = 0x2;
    const Y_IS_SHORT: u8 = 0x4;
    const IS_REPEATED: u8 = 0x8;
    const X_IS_SAME: u8 = 0x10;
    const Y_IS_SAME: u8 = 0x20;
    let ends: Vec<usize> =
        (0..count).map(|number| u16_at(data, 10 + number * 2).map(usize::from)).collect::<Option<_>>()?;
    let points = ends.last().map_or(0, |last| last + 1);
    let mut at = 10 + count * 2;
    at += 2 + usize::from(u16_at(data, at)?);
    let mut flags = Vec::with_capacity(points);
    while flags.len() < points {
        let flag = *data.get(at)?;
        let more = if flag & IS_REPEATED != 0 { usize::from(*data.get(at + 1)?) } else { 0 };
        at += if flag & IS_REPEATED != 0 { 2 } else { 1 };
        flags.extend(std::iter::repeat_n(flag, more + 1));
    }
    flags.truncate(points);
    let xs = coordinates(data, &mut at, &flags, X_IS_SHORT, X_IS_SAME)?;
    let ys = coordinates(data, &mut at, &flags, Y_IS_SHORT, Y_IS_SAME)?;
    let all: Vec<OutlinePoint> = flags
        .iter()
        .zip(xs.into_iter().zip(ys))
        .map(|(flag, (x, y))| OutlinePoint { x, y, is_on: flag & IS_ON != 0 })
        .collect();
    let starts = std::iter::once(0).chain(ends.iter().map(|end| end + 1));
    starts.zip(&ends).map(|(start, end)| all.get(start..=*end).map(<[_]>::to_vec)).collect()
}

/// One coordinate of each point: steps of a byte with a sign in the flag, of two bytes, or none.
fn coordinates(data: &[u8], at: &mut usize, flags: &[u8], short: u8, same: u8) -> Option<Vec<f64>> {
    let mut value = 0.0;
    let mut step = |flag: &u8| {
        let (step, length) = match (flag & short != 0, flag & same != 0) {
            (true, is_positive) => {
                let step = f64::from(*data.get(*at)?);
                (if is_positive { step } else { -step }, 1)
            }
            (false, true) => (0.0, 0),
            (false, false) => (f64::from(i16_at(data, *at)?), 2),
        };
        *at += length;
        value += step;
        Some(value)
    };
    flags.iter().map(&mut step).collect()
}

/// An outline as a line through points. Between two control points lies a point of the outline.
fn flattened(outline: &[OutlinePoint]) -> Vec<Point> {
    let mut points = Vec::with_capacity(outline.len() * 2);
    for (point, next) in outline.iter().zip(outline.iter().cycle().skip(1)) {
        points.push(*point);
        if !point.is_on && !next.is_on {
            let (x, y) = (f64::midpoint(point.x, next.x), f64::midpoint(point.y, next.y));
            points.push(OutlinePoint { x, y, is_on: true });
        }
    }
    let Some(first) = points.iter().position(|point| point.is_on) else { return Vec::new() };
    points.rotate_left(first);
    let mut line = Vec::new();
    let mut at = 0;
    while at < points.len() {
        let (point, next) = (points[at], points[(at + 1) % points.len()]);
        line.push((point.x, point.y));
        if next.is_on {
            at += 1;
            continue;
        }
        let end = points[(at + 2) % points.len()];
        for step in 1..STEPS {
            let share = f64::from(step) / f64::from(STEPS);
            let (before, both, after) =
                ((1.0 - share) * (1.0 - share), 2.0 * share * (1.0 - share), share * share);
            line.push((
                point.x * before + next.x * both + end.x * after,
                point.y * before + next.y * both + end.y * after,
            ));
        }
        at += 2;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_of_the_charts_has_a_glyph_and_every_glyph_an_outline() {
        let font = Font::embedded();
        for c in ('!'..='~').chain("µ×–—…·äßø€≤≥≈ΔΩ".chars()) {
            let glyph = font.glyph(c);
            assert!(glyph != MISSING && !font.contours(glyph).is_empty(), "{c}");
            assert!((0.2..1.2).contains(&font.advance(glyph)), "{c}: {}", font.advance(glyph));
        }
        let count = usize::from(u16_at(table(b"maxp"), 4).expect("it has a number of glyphs"));
        assert!((0..count).all(|glyph| font.outlines(glyph as u16, MOST_DEPTH).is_some()));
        assert!(font.contours(font.glyph(' ')).is_empty() && font.advance(font.glyph(' ')) > 0.2);
    }

    #[test]
    fn other_characters_are_a_box() {
        let font = Font::embedded();
        for c in ['日', '🙂', 'ע', 'ж', '\u{ffff}', '\0'] {
            assert_eq!(font.glyph(c), MISSING, "{c}");
        }
        assert!(!font.contours(MISSING).is_empty() && font.advance(MISSING) > 0.2);
        assert!(font.contours(Glyph(u16::MAX)).is_empty());
    }

    #[test]
    fn letters_stand_on_the_base_line() {
        let font = Font::embedded();
        let points: Vec<Point> = font.contours(font.glyph('H')).concat();
        let heights = || points.iter().map(|point| point.1);
        assert_eq!(heights().fold(f64::INFINITY, f64::min), 0.0);
        assert!((0.7..0.76).contains(&heights().fold(0.0, f64::max)));
        // An accent stands above its letter.
        let top =
            |c: char| font.contours(font.glyph(c)).concat().iter().map(|point| point.1).fold(0.0, f64::max);
        assert!(top('ä') > top('a'));
        assert!(font.width("Wide") > font.width("thin"));
    }
}
