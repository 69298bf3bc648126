//! A chart as shapes: what every form of file draws, each in its own way.

use super::look::{AreaLook, LineLook, TextLook};

/// On which side of its place a text lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A point of a drawing, from its upper left corner.
pub(crate) type Point = (f64, f64);

/// A rectangle by its upper left corner and its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rectangle {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// A text with its place on the base line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlacedText {
    pub(crate) at: Point,
    pub(crate) anchor: Anchor,
    /// True where it reads upwards.
    pub(crate) is_upright: bool,
    pub(crate) look: TextLook,
    /// As it was given: hidden characters are still in it.
    pub(crate) text: String,
}

/// A part of a drawing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Text(PlacedText),
    /// Lines through points, each from its first to its last.
    Lines(Vec<Vec<Point>>, LineLook),
    /// Rectangles that do not overlap.
    Rectangles(Vec<Rectangle>, AreaLook),
    /// A convex area.
    Polygon(Vec<Point>, AreaLook),
    /// A disc by its centre and radius.
    Disc(Point, f64, AreaLook),
}

/// Shapes in the order in which they cover each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Drawing {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) title: String,
    /// Description for readers who cannot see it.
    pub(crate) description: String,
    pub(crate) shapes: Vec<Shape>,
}

impl Drawing {
    pub(super) fn text(&mut self, at: Point, anchor: Anchor, look: TextLook, text: &str) {
        let text = PlacedText { at, anchor, is_upright: false, look, text: text.to_owned() };
        self.shapes.push(Shape::Text(text));
    }

    /// A text that reads upwards, around its place.
    pub(super) fn upright_text(&mut self, at: Point, look: TextLook, text: &str) {
        let text = PlacedText { at, anchor: Anchor::Middle, is_upright: true, look, text: text.to_owned() };
        self.shapes.push(Shape::Text(text));
    }

    pub(super) fn line(&mut self, from: Point, to: Point, look: LineLook) {
        self.lines(vec![vec![from, to]], look);
    }

    pub(super) fn lines(&mut self, mut lines: Vec<Vec<Point>>, look: LineLook) {
        lines.retain(|points| points.len() > 1);
        if !lines.is_empty() {
            self.shapes.push(Shape::Lines(lines, look));
        }
    }

    /// Rectangles; of a negative size none is left.
    pub(super) fn rectangles(&mut self, mut rectangles: Vec<Rectangle>, look: AreaLook) {
        for rectangle in &mut rectangles {
            rectangle.width = rectangle.width.max(0.0);
            rectangle.height = rectangle.height.max(0.0);
        }
        if !rectangles.is_empty() {
            self.shapes.push(Shape::Rectangles(rectangles, look));
        }
    }

    /// The marker of a series: a form for each, whatever its colour.
    pub(super) fn marker(&mut self, place: usize, (x, y): Point) {
        const R: f64 = 4.0;
        let points = match place % 5 {
            0 => return self.shapes.push(Shape::Disc((x, y), R, AreaLook::Series(place))),
            1 => vec![(x - R, y - R), (x + R, y - R), (x + R, y + R), (x - R, y + R)],
            2 => vec![(x, y - R - 1.0), (x + R + 1.0, y + R), (x - R - 1.0, y + R)],
            3 => vec![(x, y - R - 1.5), (x + R + 1.5, y), (x, y + R + 1.5), (x - R - 1.5, y)],
            _ => vec![(x, y + R + 1.0), (x + R + 1.0, y - R), (x - R - 1.0, y - R)],
        };
        self.shapes.push(Shape::Polygon(points, AreaLook::Series(place)));
    }
}
