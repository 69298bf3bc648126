//! Elements of SVG as text.

use std::fmt::Write as _;

use super::style::fill_class;
use crate::xml::escaped;

/// On which side of its place a text lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    const fn name(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

/// What is drawn so far.
#[derive(Default)]
pub(super) struct SvgWriter {
    body: String,
}

impl SvgWriter {
    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        // A string takes everything.
        let _ = self.body.write_fmt(element);
        self.body.push('\n');
    }

    pub(super) fn text(&mut self, x: f64, y: f64, anchor: Anchor, class: &str, text: &str) {
        let (anchor, text) = (anchor.name(), escaped(text));
        self.push(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{text}</text>"
        ));
    }

    /// A text that reads upwards.
    pub(super) fn upright_text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let text = escaped(text);
        self.push(format_args!(
            "<text transform=\"translate({x:.1} {y:.1}) rotate(-90)\" text-anchor=\"middle\" class=\"{class}\">{text}</text>"
        ));
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.push(format_args!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" class=\"{class}\"/>"
        ));
    }

    pub(super) fn rectangle(&mut self, x: f64, y: f64, size: (f64, f64), class: &str) {
        let (width, height) = (size.0.max(0.0), size.1.max(0.0));
        self.push(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" class=\"{class}\"/>"
        ));
    }

    /// A line through points.
    pub(super) fn curve(&mut self, points: &[(f64, f64)], class: &str) {
        let mut path = String::new();
        for (place, (x, y)) in points.iter().enumerate() {
            let _ = write!(path, "{}{x:.1} {y:.1}", if place == 0 { "M" } else { "L" });
        }
        self.path(&path, class);
    }

    pub(super) fn path(&mut self, path: &str, class: &str) {
        self.push(format_args!("<path d=\"{path}\" class=\"{class}\"/>"));
    }

    /// The marker of a series: a form for each, whatever its colour.
    pub(super) fn marker(&mut self, place: usize, x: f64, y: f64) {
        const R: f64 = 4.0;
        let path = match place % 5 {
            0 => format!(
                "M{:.1} {y:.1}a{R} {R} 0 1 0 {:.1} 0a{R} {R} 0 1 0 -{:.1} 0Z",
                x - R,
                2.0 * R,
                2.0 * R
            ),
            1 => format!("M{:.1} {:.1}h{:.1}v{:.1}h-{:.1}Z", x - R, y - R, 2.0 * R, 2.0 * R, 2.0 * R),
            2 => format!("M{x:.1} {:.1}L{:.1} {:.1}H{:.1}Z", y - R - 1.0, x + R + 1.0, y + R, x - R - 1.0),
            3 => format!(
                "M{x:.1} {:.1}L{:.1} {y:.1}L{x:.1} {:.1}L{:.1} {y:.1}Z",
                y - R - 1.5,
                x + R + 1.5,
                y + R + 1.5,
                x - R - 1.5
            ),
            _ => format!("M{x:.1} {:.1}L{:.1} {:.1}H{:.1}Z", y + R + 1.0, x + R + 1.0, y - R, x - R - 1.0),
        };
        self.path(&path, &fill_class(place));
    }

    /// The whole file.
    pub(super) fn document(
        self,
        width: f64,
        height: f64,
        title: &str,
        description: &str,
        style: &str,
    ) -> String {
        let style = if style.is_empty() { String::new() } else { format!("<style>{style}</style>\n") };
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" role=\"img\" font-family=\"system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif\">\n\
             <title>{}</title>\n<desc>{}</desc>\n{style}\
             <rect width=\"100%\" height=\"100%\" class=\"paper\"/>\n{}</svg>\n",
            escaped(title),
            escaped(description),
            self.body
        )
    }
}
