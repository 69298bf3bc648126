//! Sections of reports that were asked for before. A run that has ended does not change, so that its report is made once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use fathom_history::RunId;
use fathom_report::html::PageBody;

/// Reports that are kept.
const MOST: usize = 16;

/// Reports by their runs; several are compared.
#[derive(Default)]
pub struct ReportCache(Mutex<VecDeque<(Vec<RunId>, Arc<PageBody>)>>);

impl ReportCache {
    /// The report of `runs`, if it is known.
    pub fn get(&self, runs: &[RunId]) -> Option<Arc<PageBody>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = known.iter().position(|(of, _)| of == runs)?;
        let entry = known.remove(place)?;
        let body = entry.1.clone();
        known.push_front(entry);
        Some(body)
    }

    /// Keeps the report of `runs`, in place of the one that was not asked for the longest.
    pub fn keep(&self, runs: Vec<RunId>, body: Arc<PageBody>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(of, _)| *of != runs);
        known.push_front((runs, body));
        known.truncate(MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_that_are_asked_for_stay() {
        let (cache, body) = (ReportCache::default(), Arc::new(PageBody::default()));
        for run in 0..MOST as i64 {
            cache.keep(vec![RunId(run)], body.clone());
        }
        assert!(cache.get(&[RunId(0)]).is_some() && cache.get(&[RunId(0), RunId(1)]).is_none());
        cache.keep(vec![RunId(99)], body);
        assert!(cache.get(&[RunId(0)]).is_some() && cache.get(&[RunId(1)]).is_none());
    }
}
