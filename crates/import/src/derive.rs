//! Figures that follow from others of the same entry, marked as derived.

use fathom_model::Op;
use fathom_record::import::{Figure, FigureNumber, ImportedEntry, ImportedLatency, ImportedLoad, ImportedOp};

use crate::load::only_block_size;

/// Fills in what follows from the figures of the source.
pub(crate) fn fill(load: &ImportedLoad, entry: &mut ImportedEntry) {
    for op in Op::DATA {
        let size = only_block_size(load, op);
        let slot = match op {
            Op::Read => &mut entry.read,
            Op::Write => &mut entry.write,
            _ => &mut entry.trim,
        };
        if let Some(found) = slot {
            fill_op(found, size);
        }
    }
    if let Some(total) = &mut entry.total {
        fill_op(total, None);
    }
}

fn fill_op(op: &mut ImportedOp, block_size: Option<u64>) {
    let size = block_size.map(|size| Figure { value: size, ..Figure::default() });
    op.ios = op.ios.or_else(|| quotient(op.bytes?, size?, 1.0));
    op.bytes = op.bytes.or_else(|| product(op.ios?, size?));
    op.iops = op.iops.or_else(|| quotient(op.ios?, op.runtime_ns?, 1e9));
    op.bytes_per_second = op.bytes_per_second.or_else(|| quotient(op.bytes?, op.runtime_ns?, 1e9));
    op.bytes_per_second = op.bytes_per_second.or_else(|| product(op.iops?, size?));
    op.iops = op.iops.or_else(|| quotient(op.bytes_per_second?, size?, 1.0));
    // Where only other figures of the latency are printed: it is the sum of its two parts.
    if op.lat != ImportedLatency::default() {
        op.lat.mean = op.lat.mean.or_else(|| {
            let (slat, clat) = (op.slat.mean?.real(), op.clat.mean?.real());
            let sum = Figure::derived(slat.value + clat.value, slat.resolution + clat.resolution)?;
            Some(sum.bounded(slat.bound.with(clat.bound)?))
        });
    }
}

/// `one` divided by `other`, times `scale`.
fn quotient<A: FigureNumber, B: FigureNumber, C: FigureNumber>(
    one: Figure<A>,
    other: Figure<B>,
    scale: f64,
) -> Option<Figure<C>> {
    let (one, other) = (one.real(), other.real());
    let value = one.value / other.value * scale;
    let found = Figure::derived(value, value * (share(one) + share(other))).filter(|_| other.value > 0.0)?;
    Some(found.bounded(one.bound.with(other.bound.reversed())?))
}

fn product<A: FigureNumber, B: FigureNumber, C: FigureNumber>(
    one: Figure<A>,
    other: Figure<B>,
) -> Option<Figure<C>> {
    let (one, other) = (one.real(), other.real());
    let value = one.value * other.value;
    let found = Figure::derived(value, value * (share(one) + share(other)))?;
    Some(found.bounded(one.bound.with(other.bound)?))
}

/// The resolution as a share of the figure.
fn share(figure: Figure<f64>) -> f64 {
    if figure.value > 0.0 { figure.resolution / figure.value } else { 0.0 }
}
