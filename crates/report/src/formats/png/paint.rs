//! Shapes on an image.

use std::f64::consts::TAU;

use fathom_model::text::shown;

use super::font::Font;
use super::image::Image;
use super::outline::Outline;
use crate::formats::chart::drawing::{Anchor, PlacedText, Point, Shape};
use crate::formats::chart::look::{LIGHT, LineLook};

/// Corners of a disc, and of the smaller ones where lines meet.
const DISC_CORNERS: usize = 32;
const JOINT_CORNERS: usize = 10;

/// Paints a shape, whose units are `scale` pixels wide.
pub(super) fn shape(shape: &Shape, font: &Font, scale: f64, image: &mut Image) {
    let scaled = |points: &[Point]| points.iter().map(|(x, y)| (x * scale, y * scale)).collect::<Vec<_>>();
    match shape {
        Shape::Text(placed) => text(placed, font, scale, image),
        Shape::Lines(all, look) => {
            let all: Vec<Vec<Point>> = all.iter().map(|points| scaled(points)).collect();
            lines(&all, *look, scale, image);
        }
        Shape::Rectangles(rectangles, look) => {
            for one in rectangles {
                let corner = (one.x * scale, one.y * scale);
                let opposite = ((one.x + one.width) * scale, (one.y + one.height) * scale);
                rectangle(corner, opposite, image, |image, x, y| {
                    image.blend(x, y, look.colour(&LIGHT), look.opacity() as f32);
                });
            }
        }
        Shape::Polygon(points, look) => {
            let mut outline = Outline::new(image);
            outline.push_convex(&mut scaled(points));
            outline.fill(look.colour(&LIGHT), look.opacity(), image);
        }
        Shape::Disc((x, y), radius, look) => {
            let mut outline = Outline::new(image);
            outline.push_convex(&mut disc((x * scale, y * scale), radius * scale, DISC_CORNERS));
            outline.fill(look.colour(&LIGHT), look.opacity(), image);
        }
    }
}

/// Every pixel of a rectangle, whose edges are moved to the nearest ones between pixels; what has a width keeps one pixel.
fn rectangle(corner: Point, opposite: Point, image: &mut Image, paint: impl Fn(&mut Image, u32, u32)) {
    let span = |from: f64, to: f64, most: u32| {
        let edge = |value: f64| value.round().clamp(0.0, f64::from(most)) as u32;
        let least = if to > from { edge(from) + 1 } else { edge(from) };
        edge(from)..edge(to).max(least)
    };
    for y in span(corner.1, opposite.1, image.height()) {
        for x in span(corner.0, opposite.0, image.width()) {
            paint(image, x, y);
        }
    }
}

fn lines(all: &[Vec<Point>], look: LineLook, scale: f64, image: &mut Image) {
    let (width, colour) = (look.width() * scale, look.colour(&LIGHT));
    // Grid and axes are as sharp as pixels are.
    if let ([line], LineLook::Grid | LineLook::Axis) = (all, look)
        && let [(x1, y1), (x2, y2)] = line.as_slice()
        && (x1 == x2 || y1 == y2)
    {
        let half = width * 0.5;
        let (across, up) = if x1 == x2 { (half, 0.0) } else { (0.0, half) };
        let corner = (x1.min(*x2) - across, y1.min(*y2) - up);
        let opposite = (x1.max(*x2) + across, y1.max(*y2) + up);
        return rectangle(corner, opposite, image, |image, x, y| image.blend(x, y, colour, 1.0));
    }
    let mut outline = Outline::new(image);
    let dashes: Vec<f64> = look.dashes().iter().map(|length| length * scale).collect();
    for line in all {
        dashed(line, &dashes).iter().for_each(|points| push_stroke(points, width * 0.5, &mut outline));
    }
    outline.fill(colour, 1.0, image);
}

/// The parts of a line that `dashes`, lengths of strokes and gaps by turns, leave of it.
fn dashed(points: &[Point], dashes: &[f64]) -> Vec<Vec<Point>> {
    if dashes.iter().sum::<f64>() <= 0.0 {
        return vec![points.to_vec()];
    }
    let mut strokes: Vec<Vec<Point>> = Vec::new();
    let mut left = dashes[0];
    let mut place = 0;
    let mut stroke: Vec<Point> = points.first().copied().into_iter().collect();
    for pair in points.windows(2) {
        let ((x1, y1), (x2, y2)) = (pair[0], pair[1]);
        let length = (x2 - x1).hypot(y2 - y1);
        let mut done = 0.0;
        while length - done > left {
            done += left;
            let at = (x1 + (x2 - x1) * done / length, y1 + (y2 - y1) * done / length);
            // Every other one is a gap.
            if place % 2 == 0 {
                stroke.push(at);
                strokes.push(std::mem::take(&mut stroke));
            } else {
                stroke = vec![at];
            }
            place += 1;
            left = dashes[place % dashes.len()].max(f64::MIN_POSITIVE);
        }
        left -= length - done;
        if place % 2 == 0 {
            stroke.push(pair[1]);
        }
    }
    strokes.push(stroke);
    strokes
}

/// Adds a line of twice `half` in width, round where its parts meet.
fn push_stroke(points: &[Point], half: f64, outline: &mut Outline) {
    for pair in points.windows(2) {
        let ((x1, y1), (x2, y2)) = (pair[0], pair[1]);
        let length = (x2 - x1).hypot(y2 - y1);
        if length > 0.0 {
            let (x, y) = ((y1 - y2) / length * half, (x2 - x1) / length * half);
            outline.push_convex(&mut [
                (x1 + x, y1 + y),
                (x2 + x, y2 + y),
                (x2 - x, y2 - y),
                (x1 - x, y1 - y),
            ]);
        }
    }
    let joints = points.len().saturating_sub(2);
    for joint in points.iter().skip(1).take(joints) {
        outline.push_convex(&mut disc(*joint, half, JOINT_CORNERS));
    }
}

fn disc((x, y): Point, radius: f64, corners: usize) -> Vec<Point> {
    let corner = |number: usize| {
        let (sine, cosine) = (number as f64 / corners as f64 * TAU).sin_cos();
        (x + cosine * radius, y + sine * radius)
    };
    (0..corners).map(corner).collect()
}

/// The font has one weight and no slant: letters are drawn twice, or leaned over.
const BOLD_SHIFT: f64 = 0.045;
const SLANT: f64 = 0.2;

fn text(placed: &PlacedText, font: &Font, scale: f64, image: &mut Image) {
    let look = placed.look;
    let em = look.size() * scale;
    let text = shown(&placed.text);
    let shift = match placed.anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => 0.5,
        Anchor::End => 1.0,
    } * font.width(&text);
    let (x, y) = (placed.at.0 * scale, placed.at.1 * scale);
    let slant = if look.is_italic() { SLANT } else { 0.0 };
    let copies: &[f64] = if look.is_bold() { &[0.0, BOLD_SHIFT] } else { &[0.0] };
    let mut outline = Outline::new(image);
    let mut pen = -shift;
    for c in text.chars() {
        let glyph = font.glyph(c);
        for contour in font.contours(glyph) {
            for copy in copies {
                // Of letters up is more, of images less.
                let place = |(across, up): &Point| {
                    let (along, down) = ((pen + copy + across + up * slant) * em, -up * em);
                    if placed.is_upright { (x + down, y - along) } else { (x + along, y + down) }
                };
                outline.push(&contour.iter().map(place).collect::<Vec<_>>());
            }
        }
        pen += font.advance(glyph);
    }
    let colour = if look.is_quiet() { LIGHT.quiet_text } else { LIGHT.text };
    outline.fill(colour, 1.0, image);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_go_on_around_corners() {
        let corner = [(0.0, 0.0), (10.0, 0.0), (10.0, 10.0)];
        assert_eq!(dashed(&corner, &[]), [corner.to_vec()]);
        assert_eq!(
            dashed(&corner, &[6.0, 2.0]),
            [
                vec![(0.0, 0.0), (6.0, 0.0)],
                vec![(8.0, 0.0), (10.0, 0.0), (10.0, 4.0)],
                vec![(10.0, 6.0), (10.0, 10.0)],
            ]
        );
    }

    #[test]
    fn rectangles_lie_between_pixels_and_keep_one() {
        let pixels = |from: f64, to: f64| {
            let mut image = Image::new(4, 1, LIGHT.paper);
            rectangle((from, 0.0), (to, 1.0), &mut image, |image, x, y| {
                image.blend(x, y, LIGHT.text, 1.0);
            });
            let row = image.rows().next().expect("it has one").to_vec();
            row.chunks(3).map(|pixel| pixel[0] != LIGHT.paper.red).collect::<Vec<_>>()
        };
        assert_eq!(pixels(0.6, 2.4), [false, true, false, false]);
        assert_eq!(pixels(1.1, 1.2), [false, true, false, false]);
        assert_eq!(pixels(1.0, 1.0), [false; 4]);
        assert_eq!(pixels(-3.0, 99.0), [true; 4]);
    }
}
