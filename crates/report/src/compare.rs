//! Reports of `compare`.

mod charts;
mod explain;
pub mod json;
pub mod junit;
mod matrix;
mod surfaces;
mod value;
mod view;

pub use charts::{ChartKind, chart, plots};
pub use matrix::Layout;
pub use view::view;
