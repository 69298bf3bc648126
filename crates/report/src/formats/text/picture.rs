//! Heat maps and plots in characters: several side by side where there is room.

mod bars;
mod heat_map;
mod plot;

use std::io;

use super::{INDENT, Page};
use crate::columns::wrap;
use crate::view::{HeatMap, Plot, PlotForm};
use crate::{Style, TextWriter};

/// Lines with their width as it is seen.
struct Picture {
    lines: Vec<(String, usize)>,
}

/// Blanks between pictures.
const GAP: usize = 3;
/// Two plots stand side by side from this width on.
const TWO_PLOTS: usize = 132;
/// A plot wider than this is no easier to read.
const WIDEST_PLOT: usize = 120;
const PLOT_HEIGHT: usize = 10;

impl Page<'_> {
    pub(super) fn heat_maps(&self, maps: &[HeatMap], out: &mut TextWriter) -> io::Result<()> {
        let room = self.width - INDENT;
        self.side_by_side(maps.iter().map(|map| heat_map::picture(map, room, self.style)).collect(), out)
    }

    pub(super) fn plots(&self, plots: &[Plot], out: &mut TextWriter) -> io::Result<()> {
        let room = self.width - INDENT;
        let width = if self.width >= TWO_PLOTS { (room - GAP) / 2 } else { room }.min(WIDEST_PLOT);
        let size = plot::PlotSize { width, height: PLOT_HEIGHT, is_unicode: self.style.unicode };
        let picture = |plot: &Plot| picture(plot, size, self.style);
        self.side_by_side(plots.iter().map(picture).collect(), out)?;
        self.legend(plots, out)?;
        // Bars say it themselves.
        let marked = plots.iter().filter(|plot| plot.form != PlotForm::Bars);
        let mut reasons: Vec<&str> = marked.flat_map(|plot| &plot.marks).map(|mark| mark.reason).collect();
        reasons.sort_unstable();
        reasons.dedup();
        if reasons.is_empty() {
            return Ok(());
        }
        let legend: Vec<String> =
            reasons.iter().map(|reason| format!("{} {reason}", plot::letter(reason))).collect();
        writeln!(out, "{:INDENT$}{}", "", self.style.dim(&format!("No rate: {}", legend.join(", "))))
    }

    /// The letters of the series of plots that share a field, and the limits.
    fn legend(&self, plots: &[Plot], out: &mut TextWriter) -> io::Result<()> {
        let mut entries: Vec<String> = Vec::new();
        let shared = plots.iter().filter(|plot| plot.form != PlotForm::Bars);
        for plot in shared {
            let named = plot.series.iter().enumerate().filter(|_| plot.series.len() > 1);
            let series =
                named.map(|(place, series)| format!("{} {}", plot::series_letter(plot, place), series.name));
            let limits = plot.limits.iter().map(|limit| format!("dotted {}", limit.name));
            for entry in series.chain(limits) {
                // A name that is the letter says no more.
                let entry = entry
                    .split_once(' ')
                    .filter(|(letter, name)| letter == name)
                    .map_or(entry.as_str(), |_| "")
                    .to_owned();
                if !entry.is_empty() && !entries.contains(&entry) {
                    entries.push(entry);
                }
            }
        }
        if entries.is_empty() {
            return Ok(());
        }
        let lines = wrap(&entries.join(", "), self.width, INDENT, INDENT);
        lines.into_iter().try_for_each(|line| writeln!(out, "{}", self.style.dim(&line)))
    }

    /// Pictures side by side as far as the width goes, the others below.
    fn side_by_side(&self, pictures: Vec<Picture>, out: &mut TextWriter) -> io::Result<()> {
        let room = self.width - INDENT;
        let mut rows: Vec<Picture> = Vec::new();
        for picture in pictures {
            match rows.last_mut() {
                Some(row) if row.width() + GAP + picture.width() <= room => row.append(picture),
                _ => rows.push(picture),
            }
        }
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                writeln!(out)?;
            }
            for (line, _) in &row.lines {
                writeln!(out, "{:INDENT$}{}", "", line.trim_end_matches(' '))?;
            }
        }
        Ok(())
    }
}

/// The lines of one plot, `width` wide.
pub(in crate::formats) fn plot_lines(plot: &Plot, width: usize) -> Vec<String> {
    let size = plot::PlotSize { width, height: PLOT_HEIGHT, is_unicode: true };
    picture(plot, size, &Style::default()).lines.into_iter().map(|(line, _)| line).collect()
}

fn picture(plot: &Plot, size: plot::PlotSize, style: &Style) -> Picture {
    match plot.form {
        PlotForm::Bars => bars::picture(plot, size, style),
        PlotForm::Steps | PlotForm::Lines => plot::picture(plot, size, style),
    }
}

impl Picture {
    fn width(&self) -> usize {
        self.lines.iter().map(|(_, width)| *width).max().unwrap_or(0)
    }

    fn append(&mut self, other: Picture) {
        let start = self.width() + GAP;
        self.lines.resize(self.lines.len().max(other.lines.len()), (String::new(), 0));
        for ((line, width), (more, more_width)) in self.lines.iter_mut().zip(other.lines) {
            line.push_str(&" ".repeat(start - *width));
            line.push_str(&more);
            *width = start + more_width;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_writer::text;

    #[test]
    fn pictures_stand_side_by_side_where_they_fit() {
        let picture =
            |text: &str| Picture { lines: vec![(text.to_owned(), text.len()), ("x".to_owned(), 1)] };
        let written = |width: usize| {
            let style = Style::default();
            let page = Page { style: &style, width, is_brief: false };
            let pictures = vec![picture("abcd"), picture("efg")];
            text(|out| page.side_by_side(pictures, out)).expect("writing to memory")
        };
        assert_eq!(written(12), "  abcd   efg\n  x      x\n");
        assert_eq!(written(11), "  abcd\n  x\n\n  efg\n  x\n");
    }
}
