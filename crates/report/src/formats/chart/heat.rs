//! A panel of a heat map: the stronger a cell, the higher its value, by equal steps of the logarithm.

use super::drawing::{Anchor, Drawing, Rectangle};
use super::look::{AreaLook, LEVELS, LineLook, TextLook};
use super::{Area, CHARACTER, LINE, fitted, text_width};
use crate::columns::capital;
use crate::view::{Cell, HeatMap};

const ROW: f64 = 9.0;

/// Height of the panel.
pub(super) fn height(map: &HeatMap) -> f64 {
    map.rows.len() as f64 * ROW + LINE * 4.0
}

/// Draws the panel.
pub(super) fn draw(map: &HeatMap, area: Area, drawing: &mut Drawing) {
    let (across, down) = (map.across_ticks(), map.down_ticks());
    let left = area.x + text_width(down.iter().map(|tick| tick.text.as_str())) + LINE + 12.0;
    let (top, right) = (area.y + LINE * 0.9, area.x + area.width - 6.0);
    let bottom = top + map.rows.len() as f64 * ROW;
    let wide = (right - left) / map.columns.len().max(1) as f64;
    let title = match map.title.as_str() {
        "" => capital(map.measure),
        title => format!("{title}: {} by {} and {}", map.measure, map.across, map.down),
    };
    let title = fitted(&title, area.width);
    drawing.text((area.x, area.y), Anchor::Start, TextLook::Panel, &title);
    let most = map.most();
    for level in 1..=LEVELS {
        let mut cells = Vec::new();
        for (row, (_, values)) in map.rows.iter().enumerate() {
            let of_level =
                values.iter().enumerate().filter(|(_, cell)| level_of(cell.as_ref(), most) == level);
            cells.extend(of_level.map(|(column, _)| Rectangle {
                x: left + column as f64 * wide,
                y: top + row as f64 * ROW,
                width: wide,
                height: ROW,
            }));
        }
        drawing.rectangles(cells, AreaLook::Level(level));
    }
    drawing.line((left, top), (left, bottom), LineLook::Axis);
    drawing.line((left, bottom), (right, bottom), LineLook::Axis);
    // From the bottom up, as many as have room.
    let mut free = f64::INFINITY;
    for tick in down.iter().rev() {
        let at = top + tick.place * ROW;
        if at <= free {
            drawing.line((left - 4.0, at), (left, at), LineLook::Axis);
            drawing.text((left - 7.0, at + 4.0), Anchor::End, TextLook::Tick, &tick.text);
            free = at - LINE * 0.9;
        }
    }
    let room = text_width(across.iter().map(|tick| tick.text.as_str())) + CHARACTER;
    let mut free = f64::NEG_INFINITY;
    for tick in &across {
        let at = left + tick.place * wide;
        if at - room * 0.5 >= free && at + room * 0.5 <= area.x + area.width + LINE {
            drawing.line((at, bottom), (at, bottom + 4.0), LineLook::Axis);
            drawing.text((at, bottom + LINE), Anchor::Middle, TextLook::Tick, &tick.text);
            free = at + room * 0.5;
        }
    }
    drawing.upright_text((area.x + 11.0, f64::midpoint(top, bottom)), TextLook::Tick, map.down);
    let at = (f64::midpoint(left, right), bottom + LINE * 1.9);
    drawing.text(at, Anchor::Middle, TextLook::Tick, map.across);
}

/// 1 to [`LEVELS`], which `most` has; 0 where there is nothing.
fn level_of(cell: Option<&Cell>, most: f64) -> usize {
    let value = cell.and_then(Cell::number).filter(|value| *value > 0.0);
    let share = value.map(|value| value.ln_1p() / most.ln_1p());
    share.map_or(0, |share| ((share * LEVELS as f64).ceil() as usize).clamp(1, LEVELS))
}
