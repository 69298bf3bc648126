//! Areas between straight lines, and how much of each pixel they cover.
//!
//! Each row of pixels is looked at along a few lines. Along each, the crossings of the outline say exactly which stretches lie inside:
//! those around which it winds, so that pieces of one area may overlap.

use super::image::Image;
use crate::formats::chart::drawing::Point;
use crate::formats::chart::look::Colour;

/// Lines along which a row of pixels is looked at.
const LINES: i32 = 8;

/// Where the outline crosses a line.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    /// Number of the line, from the top of the image.
    line: i32,
    x: f32,
    /// 1 downwards, -1 upwards.
    winding: i32,
}

/// An area that may consist of pieces.
pub(super) struct Outline {
    /// Lines of the image.
    lines: i32,
    crossings: Vec<Crossing>,
}

impl Outline {
    /// An area without pieces, for an image.
    pub(super) fn new(image: &Image) -> Outline {
        Outline { lines: image.height() as i32 * LINES, crossings: Vec::new() }
    }

    /// Adds the inside of a closed line; one of the other direction in it is a hole.
    pub(super) fn push(&mut self, points: &[Point]) {
        let next = points.iter().cycle().skip(1);
        points.iter().zip(next).for_each(|(from, to)| self.push_edge(*from, *to));
    }

    /// Adds a convex piece, in whatever direction its points are.
    pub(super) fn push_convex(&mut self, points: &mut [Point]) {
        let next = points.iter().cycle().skip(1);
        let area: f64 = points.iter().zip(next).map(|(one, other)| one.0 * other.1 - other.0 * one.1).sum();
        if area < 0.0 {
            points.reverse();
        }
        self.push(points);
    }

    fn push_edge(&mut self, from: Point, to: Point) {
        let finite = [from.0, from.1, to.0, to.1].iter().all(|value| value.is_finite());
        if !finite || from.1 == to.1 {
            return;
        }
        let (winding, upper, lower) = if from.1 < to.1 { (1, from, to) } else { (-1, to, from) };
        let per_line = f64::from(LINES);
        // The middle of a line lies between the ends of the edge, the upper one included.
        let line_of = |y: f64| (y * per_line - 0.5).ceil().clamp(0.0, f64::from(self.lines)) as i32;
        let slope = (lower.0 - upper.0) / (lower.1 - upper.1);
        for line in line_of(upper.1)..line_of(lower.1) {
            let y = (f64::from(line) + 0.5) / per_line;
            self.crossings.push(Crossing { line, x: (upper.0 + (y - upper.1) * slope) as f32, winding });
        }
    }

    /// Lays `colour` on what the area covers.
    pub(super) fn fill(mut self, colour: Colour, opacity: f64, image: &mut Image) {
        self.crossings
            .sort_unstable_by(|one, other| one.line.cmp(&other.line).then(one.x.total_cmp(&other.x)));
        let mut row = CoveredRow::new(image.width());
        for crossings in self.crossings.chunk_by(|one, other| one.line / LINES == other.line / LINES) {
            for line in crossings.chunk_by(|one, other| one.line == other.line) {
                let mut winding = 0;
                for pair in line.windows(2) {
                    winding += pair[0].winding;
                    if winding != 0 {
                        row.cover(pair[0].x, pair[1].x);
                    }
                }
            }
            row.lay(crossings[0].line / LINES, colour, opacity as f32, image);
        }
    }
}

/// How much of each pixel of a row is covered.
struct CoveredRow {
    pixels: Vec<f32>,
    /// Pixels that may be covered.
    from: usize,
    to: usize,
}

impl CoveredRow {
    fn new(width: u32) -> CoveredRow {
        CoveredRow { pixels: vec![0.0; width as usize], from: usize::MAX, to: 0 }
    }

    /// Adds a stretch of one line.
    fn cover(&mut self, from: f32, to: f32) {
        const SHARE: f32 = 1.0 / LINES as f32;
        let width = self.pixels.len() as f32;
        let (from, to) = (from.clamp(0.0, width), to.clamp(0.0, width));
        if to <= from {
            return;
        }
        let (first, last) = (from as usize, (to.ceil() as usize).min(self.pixels.len()));
        for (pixel, covered) in self.pixels[first..last].iter_mut().enumerate() {
            let left = (first + pixel) as f32;
            *covered += (to.min(left + 1.0) - from.max(left)) * SHARE;
        }
        (self.from, self.to) = (self.from.min(first), self.to.max(last));
    }

    /// Lays the row on the image, and begins another.
    fn lay(&mut self, y: i32, colour: Colour, opacity: f32, image: &mut Image) {
        for x in self.from..self.to {
            let covered = std::mem::take(&mut self.pixels[x]);
            if covered > 0.0 {
                image.blend(x as u32, y as u32, colour, covered * opacity);
            }
        }
        (self.from, self.to) = (usize::MAX, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHITE: Colour = Colour { red: 255, green: 255, blue: 255 };
    const BLACK: Colour = Colour { red: 0, green: 0, blue: 0 };

    /// The reds of an image of 4 by 3 pixels on which an area lies.
    fn reds(opacity: f64, push: impl FnOnce(&mut Outline)) -> Vec<Vec<u8>> {
        let mut image = Image::new(4, 3, WHITE);
        let mut outline = Outline::new(&image);
        push(&mut outline);
        outline.fill(BLACK, opacity, &mut image);
        image.rows().map(|row| row.iter().step_by(3).copied().collect()).collect()
    }

    fn square(from: f64, to: f64) -> Vec<Point> {
        vec![(from, from), (to, from), (to, to), (from, to)]
    }

    #[test]
    fn pixels_are_covered_as_far_as_the_area_reaches() {
        let of = |from: f64, to: f64| reds(1.0, |outline| outline.push(&square(from, to)));
        assert_eq!(of(1.0, 2.0), [[255, 255, 255, 255], [255, 0, 255, 255], [255, 255, 255, 255]]);
        assert_eq!(of(0.5, 1.0), [[191, 255, 255, 255], [255; 4], [255; 4]]);
        // Outside of the image is nothing.
        assert_eq!(of(-5.0, 9.0), [[0; 4], [0; 4], [0; 4]]);
        assert_eq!(of(5.0, 9.0), [[255; 4]; 3]);
        assert_eq!(of(f64::NAN, 2.0), [[255; 4]; 3]);
    }

    #[test]
    fn pieces_may_overlap_and_the_other_direction_is_a_hole() {
        let twice = reds(0.5, |outline| {
            outline.push_convex(&mut square(0.0, 2.0));
            outline.push_convex(&mut square(2.0, 0.0).into_iter().rev().collect::<Vec<_>>());
        });
        assert_eq!(twice, [[128, 128, 255, 255], [128, 128, 255, 255], [255; 4]]);
        let hole = reds(1.0, |outline| {
            outline.push(&square(0.0, 3.0));
            outline.push(&square(1.0, 2.0).into_iter().rev().collect::<Vec<_>>());
        });
        assert_eq!(hole, [[0, 0, 0, 255], [0, 255, 0, 255], [0, 0, 0, 255]]);
    }
}
