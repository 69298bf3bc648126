//! The points of one pattern and number of jobs as heat maps over block size and queue depth, and as curves along one of them.

use fathom_analysis::pattern::{AccessPattern, block_name};
use fathom_analysis::sweep::Sweep;
use fathom_analysis::sweep::knee::Knee;
use fathom_analysis::sweep::point::SweepPoint;

use crate::columns::capital;
use crate::view::{Block, Cell, Column, HeatMap, Row, Table, View, decimal, iops_text};

/// Adds the maps and curves of each pattern and number of jobs that has more than one point.
pub(super) fn push(sweep: &Sweep, view: &mut View) {
    for (rw, jobs) in grids(&sweep.points) {
        let of_grid = |point: &&SweepPoint| (point.spot.rw, point.spot.numjobs) == (rw, jobs);
        let grid = Grid { points: sweep.points.iter().filter(of_grid).collect() };
        let of_jobs = if jobs > 1 { format!(", {jobs} jobs") } else { String::new() };
        let title = capital(rw.title());
        view.push_full(
            format!("{title}{of_jobs}: by block size and queue depth"),
            [Block::HeatMaps(vec![
                grid.map("IOPS", |point| (point.ios > 0).then(|| short_iops(point.iops))),
                grid.map("MiB/s", |point| (point.ios > 0).then(|| Cell::mebibytes(point.bytes_per_second))),
                grid.map("mean latency", |point| point.lat_ns.mean.map(Cell::mean_latency)),
            ])],
        );
        if let Some(knee) = sweep.knees.iter().find(|knee| (knee.rw, knee.numjobs) == (rw, jobs)) {
            let block = block_name(knee.block_size_bytes);
            view.push_full(format!("{title} {block}{of_jobs}: by queue depth"), [grid.by_depth(knee)]);
        }
        view.push_full(format!("{title}{of_jobs}: maximum by block size"), [grid.by_block()]);
    }
}

/// The highest rate of each pattern and block size in one table, with the latency there and by itself.
pub(super) fn best(sweep: &Sweep) -> Table {
    let grids = grids(&sweep.points).into_iter().map(|(rw, jobs)| {
        let of_grid = |point: &&SweepPoint| (point.spot.rw, point.spot.numjobs) == (rw, jobs);
        Grid { points: sweep.points.iter().filter(of_grid).collect() }
    });
    let rows: Vec<Row> = grids
        .flat_map(|grid| grid.bests().into_iter().map(|best| grid.row(best)).collect::<Vec<_>>())
        .collect();
    let columns = [
        Column::left("workload"),
        Column::right("IOPS"),
        Column::right("MiB/s"),
        Column::right("at QD"),
        Column::right("mean"),
        Column::right("p99").dispensable(1),
        Column::right("lowest mean").dispensable(0),
    ];
    Table::new(columns, rows).without_empty()
}

fn grids(points: &[SweepPoint]) -> Vec<(AccessPattern, u32)> {
    let mut grids: Vec<(AccessPattern, u32)> =
        points.iter().map(|point| (point.spot.rw, point.spot.numjobs)).collect();
    grids.sort_unstable();
    grids.dedup();
    let main = points.first().map(|point| point.spot.numjobs);
    let size = |of: &(AccessPattern, u32)| {
        points.iter().filter(|point| (point.spot.rw, point.spot.numjobs) == *of).count()
    };
    grids.retain(|of| size(of) > 1 || Some(of.1) == main);
    grids
}

struct Grid<'a> {
    points: Vec<&'a SweepPoint>,
}

impl Grid<'_> {
    /// The values of one coordinate, each once.
    fn axis<T: Ord>(&self, coordinate: impl Fn(&SweepPoint) -> T) -> Vec<T> {
        let mut values: Vec<T> = self.points.iter().map(|point| coordinate(point)).collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    fn map(&self, measure: &'static str, cell: impl Fn(&SweepPoint) -> Option<Cell>) -> HeatMap {
        let depths = self.axis(|point| point.spot.iodepth);
        let at = |block: u64, depth: u32| {
            let point = self
                .points
                .iter()
                .rfind(|point| (point.spot.block_size_bytes, point.spot.iodepth) == (block, depth))
                .copied()?;
            let measured = cell(point);
            Some(match (point.stalled_ns, measured) {
                (Some(_), measured) => Cell { text: "stalled".to_owned(), ..measured.unwrap_or_default() },
                (None, Some(measured)) => measured,
                (None, None) => point.status.name().into(),
            })
        };
        let row = |block: u64| (block_name(block), depths.iter().map(|&depth| at(block, depth)).collect());
        let mut columns: Vec<String> = depths.iter().map(u32::to_string).collect();
        if let Some(first) = columns.first_mut() {
            first.insert_str(0, "QD ");
        }
        HeatMap {
            measure,
            across: "queue depth",
            down: "block size",
            columns,
            rows: self.axis(|point| point.spot.block_size_bytes).into_iter().map(row).collect(),
            ..HeatMap::default()
        }
    }

    /// The curve over queue depth of the smallest block size that was swept in full.
    fn by_depth(&self, knee: &Knee) -> Block {
        let mut points: Vec<&&SweepPoint> = self
            .points
            .iter()
            .filter(|point| point.spot.block_size_bytes == knee.block_size_bytes && point.ios > 0)
            .collect();
        points.sort_by_key(|point| point.spot.iodepth);
        let columns = [
            Column::right("QD"),
            Column::right("IOPS").drawn(),
            Column::right("mean"),
            Column::right("p99").dispensable(1),
            Column::right("mean QD").dispensable(0),
            Column::left("knee").dispensable(2),
        ];
        let row = |point: &&SweepPoint| {
            let marks = [
                (knee.iodepth_latency == point.spot.iodepth).then_some("best for latency"),
                (knee.iodepth_throughput == Some(point.spot.iodepth)).then_some("95 % of the plateau"),
            ];
            Row::new([
                Cell::count(u64::from(point.spot.iodepth)),
                Cell::iops(point.iops),
                point.lat_ns.mean.map(Cell::mean_latency).into(),
                point.lat_ns.p99.map(Cell::latency).into(),
                point.queue_depth_mean.map(|depth| Cell::real(depth, decimal(depth))).into(),
                marks.into_iter().flatten().collect::<Vec<_>>().join(", ").into(),
            ])
        };
        Block::Table(Table::new(columns, points.into_iter().map(row)))
    }

    /// The highest rate of each block size: of depths that reach the same, the least.
    fn bests(&self) -> Vec<&SweepPoint> {
        const SAME: f64 = 0.99;
        let best = |block: u64| {
            let of_block =
                || self.points.iter().filter(|point| point.spot.block_size_bytes == block && point.ios > 0);
            let most = of_block().map(|point| point.iops).fold(0.0, f64::max);
            of_block()
                .filter(|point| point.iops >= SAME * most)
                .min_by_key(|point| point.spot.iodepth)
                .copied()
        };
        self.axis(|point| point.spot.block_size_bytes).into_iter().filter_map(best).collect()
    }

    /// The row of the highest rate of a block size.
    fn row(&self, best: &SweepPoint) -> Row {
        let spot = best.spot;
        let jobs = if spot.numjobs > 1 { format!(" x {} jobs", spot.numjobs) } else { String::new() };
        let of_block =
            self.points.iter().filter(|point| point.spot.block_size_bytes == spot.block_size_bytes);
        let lowest = of_block.filter_map(|point| point.lat_ns.mean).reduce(f64::min);
        Row::new([
            format!("{} {}{jobs}", spot.rw.title(), block_name(spot.block_size_bytes)).into(),
            Cell::iops(best.iops),
            Cell::mebibytes(best.bytes_per_second),
            Cell::count(u64::from(spot.iodepth)),
            best.lat_ns.mean.map(Cell::mean_latency).into(),
            best.lat_ns.p99.map(Cell::latency).into(),
            lowest.map(Cell::mean_latency).into(),
        ])
    }

    /// The highest rate of each block size, where there are several.
    fn by_block(&self) -> Block {
        let bests = self.bests();
        let row = |point: &&SweepPoint| {
            Row::new([
                Cell::integer(point.spot.block_size_bytes, block_name(point.spot.block_size_bytes)),
                Cell::iops(point.iops),
                Cell::mebibytes(point.bytes_per_second),
                Cell::count(u64::from(point.spot.iodepth)),
            ])
        };
        let columns = [
            Column::right("block"),
            Column::right("IOPS").drawn(),
            Column::right("MiB/s").drawn(),
            Column::right("QD"),
        ];
        let shown = if bests.len() > 1 { bests.as_slice() } else { &[] };
        Block::Table(Table::new(columns, shown.iter().map(row)))
    }
}

/// A rate in at most five characters: `0.8`, `999`, `9,999`, `12.3k`, `1.23M`.
fn short_iops(rate: f64) -> Cell {
    let text = match rate {
        999_500.0.. => format!("{:.2}M", rate / 1e6),
        99_950.0.. => format!("{:.0}k", rate / 1e3),
        9_999.5.. => format!("{:.1}k", rate / 1e3),
        _ => iops_text(rate),
    };
    Cell::real(rate, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_stay_short() {
        for (rate, expected) in [
            (0.82, "0.8"),
            (999.4, "999"),
            (9_999.4, "9,999"),
            (12_345.0, "12.3k"),
            (99_951.0, "100k"),
            (1_234_567.0, "1.23M"),
        ] {
            assert_eq!(short_iops(rate).text, expected);
        }
    }
}
