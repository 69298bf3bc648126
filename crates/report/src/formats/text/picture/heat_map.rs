//! Heat maps: a colour or a shade before each value.

use super::Picture;
use crate::Style;
use crate::columns::width;
use crate::view::{Cell, HeatMap};

const SHADES: [&str; 5] = [" ", "░", "▒", "▓", "█"];
/// Narrowest cell.
const MIN_CELL: usize = 4;

/// The map within `room`: the columns with fewest cells leave first.
pub(super) fn picture(map: &HeatMap, room: usize, style: &Style) -> Picture {
    let cells = || map.rows.iter().flat_map(|(_, cells)| cells).flatten();
    let most = cells().filter_map(Cell::number).fold(0.0, f64::max);
    let cell_width = cells().map(|cell| width(&cell.text)).max().unwrap_or(0).max(MIN_CELL);
    let names = map.rows.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
    let label = names.max(width(map.measure));
    // A shade stands before each value, two blanks before each shade.
    let column = cell_width + 3;
    let kept = columns_to_keep(map, (room.saturating_sub(label) / column).max(1));
    let seen = label + kept.len() * column;
    let mut head = format!("{:>label$}", map.measure);
    for &index in &kept {
        head.push_str(&format!("{:>column$}", map.columns[index]));
    }
    let mut lines = vec![(style.bold(&head), seen)];
    for (name, cells) in &map.rows {
        let mut line = format!("{name:>label$}");
        for &index in &kept {
            let Some(cell) = &cells[index] else {
                line.push_str(&" ".repeat(column));
                continue;
            };
            let share = cell.number().filter(|_| most > 0.0).map_or(0.0, |value| value / most);
            let fill = " ".repeat(cell_width.saturating_sub(width(&cell.text)));
            line.push_str("  ");
            line.push_str(&style.shade(share, &format!("{fill}{}", cell.text), SHADES));
        }
        lines.push((line, seen));
    }
    Picture { lines }
}

fn columns_to_keep(map: &HeatMap, most: usize) -> Vec<usize> {
    let mut kept: Vec<usize> = (0..map.columns.len()).collect();
    let measured = |index: usize| map.rows.iter().filter(|(_, cells)| cells[index].is_some()).count();
    while kept.len() > most {
        let Some(rarest) = kept.iter().copied().rev().min_by_key(|&index| measured(index)) else { break };
        kept.retain(|&index| index != rarest);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_shaded_and_the_emptiest_columns_leave_first() {
        let cell = |iops: f64| Some(Cell::iops(iops));
        let map = HeatMap {
            across: "",
            down: "",
            measure: "IOPS",
            columns: ["QD 1", "QD 2", "QD 4"].map(str::to_owned).to_vec(),
            rows: vec![
                ("4k".to_owned(), vec![cell(100.0), cell(200.0), cell(400.0)]),
                ("64k".to_owned(), vec![cell(50.0), None, cell(60.0)]),
            ],
            ..HeatMap::default()
        };
        let lines = |room| -> Vec<String> {
            picture(&map, room, &Style::default()).lines.into_iter().map(|(line, _)| line).collect()
        };
        assert_eq!(
            lines(40),
            ["IOPS   QD 1   QD 2   QD 4", "  4k  ░ 100  ▒ 200  █ 400", " 64k     50            60"]
        );
        assert_eq!(lines(20)[0], "IOPS   QD 1   QD 4");
    }
}
