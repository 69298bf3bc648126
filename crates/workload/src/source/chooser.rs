//! The file of the next request.

use std::collections::VecDeque;

use fathom_model::plan::FileOrder;

use crate::rng::Rng;
use crate::skew::Skew;

/// Chooses files by an order, several requests to each. Files whose pass has ended are left out, and at most a given
/// number is in use at a time.
#[derive(Clone, Debug)]
pub(super) struct FileChooser {
    order: Order,
    /// Requests to a file before the next.
    run: u32,
    left: u32,
    files: u32,
    open: u32,
    /// Files in use, and the first file that has not been in use in this pass.
    active: VecDeque<u32>,
    unopened: u32,
    /// Index of the current file in `active`.
    at: usize,
}

#[derive(Clone, Debug)]
enum Order {
    RoundRobin,
    Sequential,
    Uniform,
    /// Indices of a distribution over all files, which are never left out.
    Skewed(Box<Skew>),
}

impl FileChooser {
    /// A chooser of one of `files` files.
    pub(super) fn new(order: &FileOrder, run: u32, open: u32, files: u32, rng: &mut Rng) -> Self {
        let order = match order {
            FileOrder::RoundRobin => Order::RoundRobin,
            FileOrder::Sequential => Order::Sequential,
            FileOrder::Drawn(distribution) => match Skew::ordered(distribution, u64::from(files), rng) {
                Some(skew) => Order::Skewed(Box::new(skew)),
                None => Order::Uniform,
            },
        };
        let open = if open == 0 { files } else { open.min(files) };
        let run = run.max(1);
        let mut chooser = FileChooser {
            order,
            run,
            left: run,
            files,
            open,
            active: VecDeque::with_capacity(files as usize),
            unopened: 0,
            at: 0,
        };
        chooser.restart(rng);
        chooser
    }

    /// True if a file whose pass has ended begins another one.
    pub(super) fn keeps_ended(&self) -> bool {
        matches!(self.order, Order::Skewed(_))
    }

    /// Begins a pass over all files.
    pub(super) fn restart(&mut self, rng: &mut Rng) {
        self.active.clear();
        self.active.extend(0..self.open);
        (self.unopened, self.at) = (self.open, 0);
        self.choose(rng);
    }

    /// The current file; `None` if no file is left.
    pub(super) fn current(&self) -> Option<usize> {
        self.active.get(self.at).map(|&file| file as usize)
    }

    /// Counts a request to the current file.
    pub(super) fn used(&mut self, rng: &mut Rng) {
        self.left -= 1;
        if self.left > 0 {
            return;
        }
        match self.order {
            Order::Sequential => self.left = self.run,
            Order::RoundRobin => {
                self.at = if self.at + 1 >= self.active.len() { 0 } else { self.at + 1 };
                self.left = self.run;
            }
            Order::Uniform | Order::Skewed(_) => self.choose(rng),
        }
    }

    /// Leaves out the current file until the next pass, and chooses another one.
    pub(super) fn ended(&mut self, rng: &mut Rng) {
        if self.unopened < self.files {
            self.active[self.at] = self.unopened;
            self.unopened += 1;
            if matches!(self.order, Order::RoundRobin) && self.left == self.run {
                return;
            }
        } else {
            self.active.remove(self.at);
        }
        if self.at >= self.active.len() {
            self.at = 0;
        }
        self.choose(rng);
    }

    fn choose(&mut self, rng: &mut Rng) {
        self.left = self.run;
        let count = self.active.len() as u64;
        match &mut self.order {
            Order::Uniform if count > 0 => self.at = rng.below(count) as usize,
            Order::Skewed(skew) => self.at = skew.next(rng) as usize,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::plan::Distribution;

    use super::*;

    /// The files of the requests, each file having `blocks` of them per pass.
    fn served(order: &FileOrder, run: u32, open: u32, files: u32, blocks: u32) -> Vec<usize> {
        let mut rng = Rng::new(5);
        let mut chooser = FileChooser::new(order, run, open, files, &mut rng);
        let (mut left, mut served) = (vec![blocks; files as usize], Vec::new());
        while let Some(file) = chooser.current() {
            if left[file] == 0 {
                chooser.ended(&mut rng);
                continue;
            }
            left[file] -= 1;
            served.push(file);
            chooser.used(&mut rng);
        }
        served
    }

    #[test]
    fn orders_serve_each_file_to_its_end() {
        let check = |order, run, open, expected: &[usize]| {
            assert_eq!(served(&order, run, open, 3, 3), expected, "{order:?}:{run}, {open} open");
        };
        check(FileOrder::RoundRobin, 1, 0, &[0, 1, 2, 0, 1, 2, 0, 1, 2]);
        check(FileOrder::RoundRobin, 2, 0, &[0, 0, 1, 1, 2, 2, 0, 1, 2]);
        check(FileOrder::Sequential, 1, 0, &[0, 0, 0, 1, 1, 1, 2, 2, 2]);
        check(FileOrder::RoundRobin, 1, 2, &[0, 1, 0, 1, 0, 1, 2, 2, 2]);
        let drawn = FileOrder::Drawn(Distribution::Random);
        for run in [1, 4] {
            let mut all = served(&drawn, run, 0, 5, 40);
            assert_ne!(all[..40], [0; 40]);
            all.sort_unstable();
            assert!((0..5).all(|file| all[file * 40..][..40].iter().all(|&served| served == file)));
        }
    }

    #[test]
    fn a_skewed_order_prefers_the_first_files() {
        let order = FileOrder::Drawn(Distribution::Zipf { theta: 1.2, center: None });
        let mut rng = Rng::new(5);
        let mut chooser = FileChooser::new(&order, 1, 0, 4, &mut rng);
        let mut counts = [0; 4];
        for _ in 0..10_000 {
            counts[chooser.current().unwrap()] += 1;
            chooser.used(&mut rng);
        }
        assert!(counts.is_sorted_by(|a, b| a > b) && counts[0] > 4_000, "{counts:?}");
        assert!(chooser.keeps_ended());
    }
}
