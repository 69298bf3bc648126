//! A panel of a heat map: the stronger a cell, the higher its value, by equal steps of the logarithm.

use std::fmt::Write as _;

use super::writer::{Anchor, SvgWriter};
use super::{Area, LINE, fitted, text_width};
use crate::columns::capital;
use crate::view::{Cell, HeatMap};

const ROW: f64 = 9.0;
/// Strengths that a reader tells apart.
const LEVELS: usize = 8;

/// Height of the panel.
pub(super) fn height(map: &HeatMap) -> f64 {
    map.rows.len() as f64 * ROW + LINE * 4.0
}

/// Draws the panel.
pub(super) fn draw(map: &HeatMap, area: Area, svg: &mut SvgWriter) {
    let left = area.x + text_width(map.rows.iter().map(|(name, _)| name.as_str())) + LINE + 12.0;
    let (top, right) = (area.y + LINE * 0.9, area.x + area.width - 6.0);
    let bottom = top + map.rows.len() as f64 * ROW;
    let wide = (right - left) / map.columns.len().max(1) as f64;
    svg.text(area.x, area.y, Anchor::Start, "panel", &fitted(&capital(map.measure), area.width));
    for level in 1..=LEVELS {
        let mut path = String::new();
        for (row, (_, cells)) in map.rows.iter().enumerate() {
            for (column, _) in
                cells.iter().enumerate().filter(|(_, cell)| level_of(map, cell.as_ref()) == level)
            {
                let (x, y) = (left + column as f64 * wide, top + row as f64 * ROW);
                // A string takes everything.
                let _ = write!(path, "M{x:.1} {y:.1}h{wide:.1}v{ROW}h-{wide:.1}z");
            }
        }
        if !path.is_empty() {
            svg.path(&path, &format!("f0 h{level}"));
        }
    }
    svg.line((left, top), (left, bottom), "axis");
    svg.line((left, bottom), (right, bottom), "axis");
    let every = (LINE / ROW).ceil() as usize;
    for (row, (name, _)) in map.rows.iter().enumerate() {
        if (map.rows.len() - 1 - row).is_multiple_of(every) {
            svg.text(left - 6.0, top + (row + 1) as f64 * ROW, Anchor::End, "tick", name);
        }
    }
    let room = text_width(map.columns.iter().map(String::as_str)) + LINE;
    let sparse = ((room / wide).ceil() as usize).max(1);
    for (column, name) in map.columns.iter().enumerate().step_by(sparse) {
        svg.text(left + column as f64 * wide, bottom + LINE, Anchor::Start, "tick", name);
    }
    svg.upright_text(area.x + 11.0, f64::midpoint(top, bottom), "tick", map.down);
    svg.text(f64::midpoint(left, right), bottom + LINE * 1.9, Anchor::Middle, "tick", map.across);
}

/// 1 to [`LEVELS`]; 0 where there is nothing.
fn level_of(map: &HeatMap, cell: Option<&Cell>) -> usize {
    let value = cell.and_then(Cell::number).filter(|value| *value > 0.0);
    let share = value.map(|value| value.ln_1p() / map.most().ln_1p());
    share.map_or(0, |share| ((share * LEVELS as f64).ceil() as usize).clamp(1, LEVELS))
}
