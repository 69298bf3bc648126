//! A value for each of read, write and trim.

use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};

use crate::Op;

/// One value per data operation. Indexing with a sync operation is a programming error and panics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PerOp<T> {
    /// The value for reads.
    pub read: T,
    /// The value for writes.
    pub write: T,
    /// The value for trims.
    pub trim: T,
}

impl<T: Clone> PerOp<T> {
    /// The same value for every operation.
    pub fn splat(value: T) -> Self {
        PerOp { read: value.clone(), write: value.clone(), trim: value }
    }
}

impl<T> PerOp<T> {
    /// References to the values.
    pub fn as_ref(&self) -> PerOp<&T> {
        PerOp { read: &self.read, write: &self.write, trim: &self.trim }
    }

    /// The values with their operations, in report order.
    pub fn iter(&self) -> impl Iterator<Item = (Op, &T)> {
        [(Op::Read, &self.read), (Op::Write, &self.write), (Op::Trim, &self.trim)].into_iter()
    }

    /// Applies `f` to each value.
    pub fn map<U>(self, mut f: impl FnMut(T) -> U) -> PerOp<U> {
        PerOp { read: f(self.read), write: f(self.write), trim: f(self.trim) }
    }
}

impl<T> Index<Op> for PerOp<T> {
    type Output = T;
    fn index(&self, op: Op) -> &T {
        match op {
            Op::Read => &self.read,
            Op::Write => &self.write,
            Op::Trim => &self.trim,
            Op::Sync | Op::Datasync => panic!("sync operations have no data value"),
        }
    }
}

impl<T> IndexMut<Op> for PerOp<T> {
    fn index_mut(&mut self, op: Op) -> &mut T {
        match op {
            Op::Read => &mut self.read,
            Op::Write => &mut self.write,
            Op::Trim => &mut self.trim,
            Op::Sync | Op::Datasync => panic!("sync operations have no data value"),
        }
    }
}
