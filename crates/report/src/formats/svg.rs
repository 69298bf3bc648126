//! A chart as one SVG file, which holds its own style: colours for light and dark grounds and for print. Text of others cannot become
//! markup.

use std::fmt::Write as _;

use super::chart::drawing::{Anchor, Drawing, PlacedText, Point, Rectangle, Shape};
use super::chart::look::{
    AreaLook, COLOURS, CURVE_DASHES, Colour, DARK, LEVELS, LIGHT, LIMIT_DASHES, LineLook, PRINT, Scheme,
    TextLook, dashes_of,
};
use super::chart::{self, Chart};
use crate::xml::escaped;

/// The chart as a file.
pub fn render(chart: &Chart) -> String {
    written(&chart::draw(chart), &style(), &text_element)
}

/// The chart for a page that has the style of its classes.
pub(crate) fn inline(chart: &Chart) -> String {
    written(&chart::draw(chart), "", &text_element)
}

/// The chart on white ground, for programs without fonts: its texts are areas. What lies along the pixels has sharp edges.
#[cfg(feature = "png")]
pub(super) fn in_outlines(chart: &Chart) -> String {
    let mut css = "rect, .grid, .axis, .mark".to_owned();
    (1..=LEVELS).for_each(|level| css.push_str(&format!(", .h{level}")));
    css.push_str(" { shape-rendering: crispEdges }\n");
    let _ = push_forms(&mut css);
    let _ = push_colours(&LIGHT, &mut css);
    written(&chart::draw(chart), &css, &|text| {
        super::png::outlined(text, text_class(text.look), &hex(text_colour(text.look, &LIGHT)))
    })
}

fn written(drawing: &Drawing, style: &str, text: &dyn Fn(&PlacedText) -> String) -> String {
    let Drawing { width, height, title, description, shapes } = drawing;
    let style = if style.is_empty() { String::new() } else { format!("<style>{style}</style>\n") };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" role=\"img\" font-family=\"system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif\">\n\
         <title>{}</title>\n<desc>{}</desc>\n{style}\
         <rect width=\"100%\" height=\"100%\" class=\"paper\"/>\n",
        escaped(title),
        escaped(description),
    );
    for shape in shapes {
        // A string takes everything.
        let _ = element(shape, text, &mut out);
        out.push('\n');
    }
    out.push_str("</svg>\n");
    out
}

fn element(shape: &Shape, text: &dyn Fn(&PlacedText) -> String, out: &mut String) -> std::fmt::Result {
    match shape {
        Shape::Text(placed) => out.write_str(&text(placed)),
        Shape::Lines(lines, look) => match lines.as_slice() {
            [line] if line.len() == 2 => {
                let [(x1, y1), (x2, y2)] = [line[0], line[1]];
                write!(out, "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"")?;
                write!(out, " class=\"{}\"/>", line_class(*look))
            }
            lines => {
                out.push_str("<path d=\"");
                lines.iter().try_for_each(|line| push_line(line, out))?;
                write!(out, "\" class=\"{}\"/>", line_class(*look))
            }
        },
        Shape::Rectangles(rectangles, look) => rectangle_element(rectangles, *look, out),
        Shape::Polygon(points, look) => {
            out.push_str("<path d=\"");
            push_line(points, out)?;
            write!(out, "Z\" class=\"{}\"/>", area_class(*look))
        }
        Shape::Disc((x, y), radius, look) => {
            write!(
                out,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" class=\"{}\"/>",
                area_class(*look)
            )
        }
    }
}

fn text_element(text: &PlacedText) -> String {
    let (x, y) = text.at;
    let place = match text.is_upright {
        true => format!("transform=\"translate({x:.1} {y:.1}) rotate(-90)\""),
        false => format!("x=\"{x:.1}\" y=\"{y:.1}\""),
    };
    let anchor = match text.anchor {
        Anchor::Start => "start",
        Anchor::Middle => "middle",
        Anchor::End => "end",
    };
    let (class, text) = (text_class(text.look), escaped(&text.text));
    format!("<text {place} text-anchor=\"{anchor}\" class=\"{class}\">{text}</text>")
}

fn rectangle_element(rectangles: &[Rectangle], look: AreaLook, out: &mut String) -> std::fmt::Result {
    if let [Rectangle { x, y, width, height }] = rectangles {
        write!(out, "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"")?;
        return write!(out, " class=\"{}\"/>", area_class(look));
    }
    out.push_str("<path d=\"");
    for Rectangle { x, y, width, height } in rectangles {
        // Edges, not widths: what is rounded apart would leave gaps between neighbours.
        write!(out, "M{x:.1} {y:.1}H{:.1}V{:.1}H{x:.1}z", x + width, y + height)?;
    }
    write!(out, "\" class=\"{}\"/>", area_class(look))
}

fn push_line(points: &[Point], out: &mut String) -> std::fmt::Result {
    for (place, (x, y)) in points.iter().enumerate() {
        write!(out, "{}{x:.1} {y:.1}", if place == 0 { "M" } else { "L" })?;
    }
    Ok(())
}

// Classes, which pages style as well.

const fn text_class(look: TextLook) -> &'static str {
    match look {
        TextLook::Title => "title",
        TextLook::Panel => "panel",
        TextLook::Label => "label",
        TextLook::Tick => "tick",
        TextLook::Note => "note",
        TextLook::Absent => "absent",
    }
}

fn line_class(look: LineLook) -> String {
    match look {
        LineLook::Grid => "grid".to_owned(),
        LineLook::Axis => "axis".to_owned(),
        LineLook::Interval => "interval".to_owned(),
        LineLook::Limit(place) => format!("limit c{}", place % COLOURS),
        LineLook::Curve(place) => match dashes_of(place) {
            0 => format!("curve c{}", place % COLOURS),
            dashes => format!("curve c{} d{dashes}", place % COLOURS),
        },
    }
}

fn area_class(look: AreaLook) -> String {
    match look {
        AreaLook::Series(place) if place >= COLOURS => format!("f{} again", place % COLOURS),
        AreaLook::Series(place) => format!("f{place}"),
        AreaLook::Mark => "mark".to_owned(),
        AreaLook::Level(level) => format!("f0 h{level}"),
    }
}

/// Rules without variables, which few programs but browsers know.
fn style() -> String {
    let mut css = "\n".to_owned();
    // A string takes everything.
    let _ = push_forms(&mut css);
    let _ = push_colours(&LIGHT, &mut css);
    for (condition, scheme) in [("(prefers-color-scheme: dark)", &DARK), ("print", &PRINT)] {
        let _ = writeln!(css, "@media {condition} {{");
        let _ = push_colours(scheme, &mut css);
        css.push_str("}\n");
    }
    css
}

/// Sizes, widths, dashes and strengths.
fn push_forms(css: &mut String) -> std::fmt::Result {
    for look in TextLook::ALL {
        let weight = if look.is_bold() { "; font-weight: 600" } else { "" };
        let slant = if look.is_italic() { "; font-style: italic" } else { "" };
        writeln!(css, ".{} {{ font-size: {}px{weight}{slant} }}", text_class(look), look.size())?;
    }
    for (class, look) in [
        ("grid", LineLook::Grid),
        ("axis", LineLook::Axis),
        ("interval", LineLook::Interval),
        ("curve", LineLook::Curve(0)),
        ("limit", LineLook::Limit(0)),
    ] {
        writeln!(css, ".{class} {{ fill: none; stroke-width: {}; stroke-linejoin: round }}", look.width())?;
    }
    writeln!(css, ".limit {{ stroke-dasharray: {} }}", dasharray(LIMIT_DASHES))?;
    for (number, dashes) in CURVE_DASHES.into_iter().enumerate().skip(1) {
        writeln!(css, ".d{number} {{ stroke-dasharray: {} }}", dasharray(dashes))?;
    }
    writeln!(css, ".mark {{ opacity: {} }}", AreaLook::Mark.opacity())?;
    writeln!(css, ".again {{ opacity: {} }}", AreaLook::Series(COLOURS).opacity())?;
    (1..=LEVELS)
        .try_for_each(|level| writeln!(css, ".h{level} {{ opacity: {} }}", AreaLook::Level(level).opacity()))
}

fn dasharray(dashes: &[f64]) -> String {
    dashes.iter().map(f64::to_string).collect::<Vec<_>>().join(" ")
}

fn push_colours(scheme: &Scheme, css: &mut String) -> std::fmt::Result {
    writeln!(css, ".paper {{ fill: {} }}", hex(scheme.paper))?;
    for look in TextLook::ALL {
        writeln!(css, ".{} {{ fill: {} }}", text_class(look), hex(text_colour(look, scheme)))?;
    }
    for (class, look) in
        [("grid", LineLook::Grid), ("axis", LineLook::Axis), ("interval", LineLook::Interval)]
    {
        writeln!(css, ".{class} {{ stroke: {} }}", hex(look.colour(scheme)))?;
    }
    writeln!(css, ".mark {{ fill: {} }}", hex(AreaLook::Mark.colour(scheme)))?;
    scheme.series.iter().enumerate().try_for_each(|(place, colour)| {
        let colour = hex(*colour);
        writeln!(css, ".c{place} {{ stroke: {colour} }} .f{place} {{ fill: {colour} }}")
    })
}

const fn text_colour(look: TextLook, scheme: &Scheme) -> Colour {
    if look.is_quiet() { scheme.quiet_text } else { scheme.text }
}

fn hex(Colour { red, green, blue }: Colour) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::chart::sample::chart;

    #[test]
    fn text_of_others_is_no_markup() {
        let svg = render(&chart());
        assert!(!svg.contains("<script") && svg.contains("&lt;script&gt;"), "{svg}");
        assert!(svg.chars().all(|c| c == '\n' || !fathom_model::text::is_hidden(c)));
        // Every tag is closed: a parser would take it.
        let opened = svg.matches('<').count() - svg.matches("</").count() - svg.matches("/>").count();
        assert_eq!(opened, svg.matches("</").count(), "{svg}");
    }

    #[test]
    fn a_file_has_titles_axes_units_a_legend_and_both_colour_schemes() {
        let svg = render(&chart());
        for part in [
            "<title>",
            "<desc>",
            "prefers-color-scheme: dark",
            "queue depth",
            ">IOPS<",
            ">stalled<",
            ">limit of A<",
            "@media print",
        ] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        // An interval has caps on both ends.
        assert_eq!(svg.matches("class=\"interval\"").count(), 1);
    }
}
