//! The first screen of a page: the verdict as its heading, the chart that shows what happened, limits and uses. And the rows of tests,
//! which show their charts on demand.

use std::fmt::Write as _;

use super::{HtmlWriter, chart, tone_class, write_block};
use crate::verdict::{NEXT, NOT_FOR, SUITS};
use crate::view::{Align, Column, Front, KeyFigure, Row, TestDetails, TestRows, Tone, UseTone, View};

/// The label of a line that is written nearly as large as the first.
const BURST: &str = "Burst";
/// First lines of more characters are written smaller.
const LONG_HEADING: usize = 44;
/// First lines of more characters are no more than their first clause.
const MAX_HEADING: usize = 110;
/// The area in which a course at a glance is drawn.
const GLANCE: (f64, f64) = (120.0, 22.0);

/// Writes the first screen of `view`; `charts` counts those of the page.
pub(super) fn write(view: &View, charts: &mut usize, out: &mut HtmlWriter) {
    let front = &view.front;
    let is_elsewhere = |line: &&KeyFigure| match line.label.as_str() {
        SUITS | NOT_FOR => !front.uses.is_empty(),
        NEXT => !front.figures.is_empty(),
        _ => false,
    };
    let lines: Vec<&KeyFigure> = view.verdict.iter().filter(|line| !is_elsewhere(line)).collect();
    if let Some((first, rest)) = lines.split_first() {
        out.raw("<section class=\"verdict\" id=\"verdict\" aria-label=\"Verdict\">\n");
        heading(first, out);
        let (problems, others): (Vec<&KeyFigure>, Vec<&KeyFigure>) =
            rest.iter().partition(|line| line.tone == Tone::Alarm);
        let (bursts, others): (Vec<&KeyFigure>, Vec<&KeyFigure>) =
            others.into_iter().partition(|line| line.label == BURST);
        bursts.into_iter().for_each(|line| labelled("p", "burst", line, out));
        if !others.is_empty() {
            out.raw("<div class=\"lead\">\n");
            others.into_iter().for_each(|line| labelled("p", "", line, out));
            out.close("div");
        }
        if !problems.is_empty() {
            out.raw("<ul class=\"problems\">\n");
            problems.into_iter().for_each(|line| labelled("li", "", line, out));
            out.close("ul");
        }
        out.close("section");
    }
    if front.is_empty() {
        return;
    }
    let is_alone = front.plot.is_none() && front.uses.is_empty() || front.figures.is_empty();
    out.raw(if is_alone { "<div class=\"first alone\">\n" } else { "<div class=\"first\">\n" });
    if front.plot.is_some() || !front.uses.is_empty() {
        story(front, charts, out);
    }
    if !front.figures.is_empty() {
        figures(front, view.verdict.iter().find(|line| line.label == NEXT), out);
    }
    out.close("div");
}

/// The first line: what follows its statement is smaller.
fn heading(line: &KeyFigure, out: &mut HtmlWriter) {
    let (text, rest) = statement(&line.cell.text);
    let is_long = text.chars().count() > LONG_HEADING;
    let class = [(line.tone == Tone::Alarm).then_some("alarm"), is_long.then_some("long")];
    let class = class.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let class = Some(("class", class.as_str())).filter(|(_, class)| !class.is_empty());
    out.open("h1", class.as_slice());
    if !line.label.is_empty() {
        out.raw("<span>");
        out.text(&line.label);
        out.raw("</span> ");
    }
    out.text(text);
    if !rest.is_empty() {
        out.raw(" <small>");
        out.text(rest);
        out.raw("</small>");
    }
    out.close("h1");
}

/// A text without its explanation: that in brackets at its end, or what follows the first clause of a long one.
fn statement(text: &str) -> (&str, &str) {
    if let Some(parts) = text.strip_suffix(')').and_then(|text| text.rsplit_once(" (")) {
        return parts;
    }
    let is_long = text.chars().count() > MAX_HEADING;
    let ends = [", but ", "; ", ". "].into_iter().filter_map(|end| text.find(end));
    match ends.min().filter(|_| is_long) {
        Some(at) => (&text[..at], text[at..].trim_start_matches(['.', ',', ';', ' '])),
        None => (text, ""),
    }
}

fn labelled(element: &str, class: &str, line: &KeyFigure, out: &mut HtmlWriter) {
    let class = Some(("class", class)).filter(|(_, class)| !class.is_empty());
    out.open(element, class.as_slice());
    if !line.label.is_empty() {
        out.raw("<b>");
        out.text(&line.label);
        out.raw("</b> ");
    }
    out.text(&line.cell.text);
    out.close(element);
}

fn story(front: &Front, charts: &mut usize, out: &mut HtmlWriter) {
    out.raw("<section class=\"story\" id=\"story\" aria-label=\"At a glance\">\n");
    if let Some(plot) = &front.plot {
        chart::plot(plot, charts, out);
    }
    if !front.uses.is_empty() {
        uses(front, out);
    }
    out.close("section");
}

fn figures(front: &Front, next: Option<&KeyFigure>, out: &mut HtmlWriter) {
    out.raw("<section class=\"key\" id=\"figures\">\n");
    out.element("h2", &[], front.title);
    out.raw("<dl>\n");
    for figure in &front.figures {
        out.element("dt", &[], &figure.label);
        out.element("dd", &[], &figure.cell.text);
        out.element("dd", &[("class", "note")], &figure.note);
    }
    out.close("dl");
    if let Some(next) = next {
        labelled("p", "next", next, out);
    }
    out.close("section");
}

fn uses(front: &Front, out: &mut HtmlWriter) {
    out.raw("<div class=\"uses\" role=\"group\" aria-label=\"Uses\">\n");
    for group in &front.uses {
        let class = match group.tone {
            UseTone::Good => "good",
            UseTone::Partly => "partly",
            UseTone::Bad => "bad",
        };
        out.raw("<p><b>");
        out.text(group.heading);
        out.raw("</b> ");
        for name in &group.names {
            out.element("span", &[("class", class)], name);
        }
        out.close("p");
    }
    out.close("div");
}

/// Writes the rows of tests.
pub(super) fn tests(tests: &TestRows, title: &str, charts: &mut usize, out: &mut HtmlWriter) {
    let columns = &tests.table.columns;
    out.open("div", &[("class", &format!("rows k{}", columns.len()))]);
    out.raw("<div class=\"heads\" aria-hidden=\"true\">");
    columns.iter().for_each(|column| out.element("span", &[("class", &cell_class(column))], column.head));
    out.raw("<span class=\"glance\">over time</span>");
    out.close("div");
    for (row, details) in tests.table.rows.iter().zip(&tests.details) {
        let class = tone_class(row.tone).map(|class| ("class", class));
        out.open("details", class.as_slice());
        out.raw("<summary>");
        cells(row, columns, out);
        glance(details, out);
        out.close("summary");
        details.blocks.iter().for_each(|block| write_block(block, title, charts, out));
        out.close("details");
    }
    out.close("div");
}

fn cell_class(column: &Column) -> String {
    let classes =
        [(column.align == Align::Left).then_some("left"), column.dispensable.is_some().then_some("minor")];
    classes.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The cells of a row, each behind its head for who does not see the column.
fn cells(row: &Row, columns: &[Column], out: &mut HtmlWriter) {
    for (place, (cell, column)) in row.cells.iter().zip(columns).enumerate() {
        out.open("span", &[("class", &cell_class(column))]);
        if place > 0 && !cell.text.is_empty() {
            out.raw("<span class=\"unseen\">");
            out.text(&format!(", {} ", column.head));
            out.raw("</span>");
        }
        out.text(&cell.text);
        out.raw("</span>");
    }
    if let Some(remark) = &row.remark {
        out.element("span", &[("class", "remark")], remark);
    }
}

/// The course of a test as a line from 0 up.
fn glance(details: &TestDetails, out: &mut HtmlWriter) {
    let (width, height) = GLANCE;
    let most = details.course.iter().copied().fold(0.0, f64::max);
    let step = width / (details.course.len().max(2) - 1) as f64;
    let mut path = String::new();
    for (place, value) in details.course.iter().enumerate() {
        let up = if most > 0.0 { value / most * (height - 4.0) } else { 0.0 };
        let command = if place == 0 { 'M' } else { 'L' };
        // A string takes everything.
        let _ = write!(path, "{command}{:.1} {:.1}", place as f64 * step, height - 2.0 - up);
    }
    out.raw(&format!(
        "<svg class=\"glance\" viewBox=\"0 0 {width} {height}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <path class=\"curve c0\" vector-effect=\"non-scaling-stroke\" d=\"{path}\"/></svg>"
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_is_a_statement_and_its_explanation_is_smaller() {
        assert_eq!(statement("150 IOPS (published rule)"), ("150 IOPS", "published rule"));
        assert_eq!(statement("1, but 2; 3"), ("1, but 2; 3", ""));
        let long =
            format!("B leads with 6 times the rate, but {}; and more", "its latency is higher ".repeat(5));
        let (head, rest) = statement(&long);
        assert_eq!(head, "B leads with 6 times the rate");
        assert!(rest.starts_with("but its latency") && rest.ends_with("; and more"), "{rest}");
    }
}
