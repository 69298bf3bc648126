//! `cargo xtask campaign pages`: Chromium opens the pages of `fathom report` of runs on simulated volumes as phone, laptop and large
//! screen show them, dark and light, uses every chart by pointer and keyboard, and axe-core and the Nu HTML Checker look at them.
//!
//! A page is tried in a frame, because the window of a headless Chromium is never narrower than 500 px. `probe.js` runs inside it
//! and `frame.js` around it. What is seen is kept in `target/pages`.

mod browser;
mod markup;
mod served;
mod subject;
mod tools;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, bail, ensure};

use browser::{Browser, Screen, Seen};
use served::ServedPage;
use subject::{SUBJECTS, Subject};
use tools::Checkers;

const SCREENS: [Screen; 6] = [
    Screen { width: 390, dark: false },
    Screen { width: 390, dark: true },
    Screen { width: 1280, dark: false },
    Screen { width: 1280, dark: true },
    Screen { width: 2560, dark: false },
    Screen { width: 2560, dark: true },
];
/// Pages that are tried at once.
const JOBS: usize = 2;
/// Faults of a page that are printed.
const SHOWN_FAULTS: usize = 20;

/// Runs the campaign.
pub fn campaign(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let chosen = Chosen::of(arguments)?;
    tools::require_programs()?;
    let directory = crate::gate::target_directory(root).join("pages");
    fs::create_dir_all(&directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let checkers = Checkers::unpacked(&directory.join("checkers"))?;
    let place = Place { directory, checkers };
    let mut faulty = place.try_all(&chosen.reports)?;
    let mut count = chosen.reports.len();
    if chosen.is_served {
        let pages = place.try_served()?;
        count += pages.len();
        faulty += pages.iter().filter(|page| !page.faults.is_empty()).count();
        for page in pages {
            let name = format!("{}: {}", served::NAME, page.name);
            let tried =
                TriedPage { charts: page.charts, faults: page.faults, screens: page.screens, kib: None };
            println!("{}", tried.lines(&name).join("\n"));
        }
    }
    println!("{count} pages, {faulty} with faults; pages and screenshots in {}", place.directory.display());
    ensure!(faulty == 0, "{faulty} of {count} pages have faults");
    Ok(())
}

/// The pages that are asked for.
struct Chosen {
    reports: Vec<&'static Subject>,
    is_served: bool,
}

impl Chosen {
    fn of(arguments: &[&str]) -> anyhow::Result<Chosen> {
        let only = match arguments {
            [] => "",
            ["--only", only] => only,
            _ => bail!("the only argument is --only NAME"),
        };
        let reports: Vec<_> = SUBJECTS.iter().filter(|subject| subject.name.contains(only)).collect();
        let is_served = served::NAME.contains(only);
        let all: Vec<&str> = SUBJECTS.iter().map(|subject| subject.name).chain([served::NAME]).collect();
        ensure!(is_served || !reports.is_empty(), "there is no page {only}; there are {}", all.join(", "));
        Ok(Chosen { reports, is_served })
    }
}

/// Where pages and pictures are kept, and what looks at them.
struct Place {
    directory: PathBuf,
    checkers: Checkers,
}

impl Place {
    /// Tries the pages of a server, on a thread as the others.
    fn try_served(&self) -> anyhow::Result<Vec<ServedPage>> {
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| served::try_all(&self.directory, &self.checkers, &SCREENS));
            worker.join().unwrap_or_else(|_| bail!("the pages of the server could not be tried: see above"))
        })
    }

    /// Tries pages, a few at a time, and returns how many have faults.
    fn try_all(&self, subjects: &[&Subject]) -> anyhow::Result<usize> {
        let (next, faulty) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = || -> anyhow::Result<()> {
            let home = fathom_tests::scratch();
            while let Some(subject) = subjects.get(next.fetch_add(1, Ordering::Relaxed)) {
                let page = subject::make(subject, home.path(), &self.directory)?;
                let tried = TriedPage::of(subject, &page, self)?;
                faulty.fetch_add(usize::from(!tried.faults.is_empty()), Ordering::Relaxed);
                println!("{}", tried.lines(subject.name).join("\n"));
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..JOBS).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| {
                worker.join().unwrap_or_else(|_| bail!("a page could not be tried: see above"))
            })
        })?;
        Ok(faulty.into_inner())
    }
}

/// What was seen of a page on all screens.
#[derive(Default)]
struct TriedPage {
    charts: u64,
    screens: usize,
    /// Size of its file.
    kib: Option<usize>,
    faults: Vec<String>,
}

impl TriedPage {
    fn of(subject: &Subject, page: &Path, place: &Place) -> anyhow::Result<TriedPage> {
        let text = fs::read_to_string(page).with_context(|| format!("cannot read {}", page.display()))?;
        let mut tried = TriedPage { kib: Some(text.len() / 1024), ..TriedPage::default() };
        tried.faults.extend(markup::faults(&place.checkers, page)?);
        let browser = Browser::new(&place.directory, subject.name, &place.checkers)?;
        for screen in &SCREENS {
            let seen = browser.probe(&text, screen, subject.text)?;
            browser.screenshot(page, screen, seen.height)?;
            tried.add(screen, &seen);
        }
        for screen in SCREENS.iter().filter(|screen| !screen.dark) {
            let seen = browser.without_scripts(page, screen)?;
            ensure!(seen.charts > 0 || !seen.faults.is_empty(), "the page has no chart without scripts");
            tried.add(screen, &seen);
        }
        Ok(tried)
    }

    fn add(&mut self, screen: &Screen, seen: &Seen) {
        self.charts = self.charts.max(seen.charts);
        self.screens += 1;
        self.faults.extend(seen.faults.iter().map(|fault| format!("{screen}: {fault}")));
    }

    /// The verdict, and under it the faults.
    fn lines(&self, name: &str) -> Vec<String> {
        let TriedPage { charts, screens, kib, faults } = self;
        let verdict = match faults.len() {
            0 => "holds".to_owned(),
            1 => "1 fault".to_owned(),
            count => format!("{count} faults"),
        };
        let size = kib.map_or(String::new(), |kib| format!("{kib} KiB"));
        let verdict = format!("{name:<15} {size:>8} {charts:>4} charts, on {screens} screens: {verdict}");
        let shown = faults.iter().take(SHOWN_FAULTS).map(|fault| format!("    {fault}"));
        let more =
            faults.len().checked_sub(SHOWN_FAULTS + 1).map(|rest| format!("    and {} more", rest + 1));
        std::iter::once(verdict).chain(shown).chain(more).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_chosen_by_name() {
        let all = Chosen::of(&[]).unwrap();
        assert!(all.is_served && all.reports.len() == SUBJECTS.len());
        let ping = Chosen::of(&["--only", "ping"]).unwrap();
        assert!(!ping.is_served && ping.reports[0].name == "ping");
        let served = Chosen::of(&["--only", "serve"]).unwrap();
        assert!(served.is_served && served.reports.is_empty());
        assert!(Chosen::of(&["--only", "picnic"]).is_err() && Chosen::of(&["ping"]).is_err());
    }

    #[test]
    fn a_line_counts_the_faults_of_all_screens() {
        let mut tried = TriedPage { kib: Some(7), ..TriedPage::default() };
        assert!(tried.lines("ping")[0].ends_with("holds"));
        tried.add(&SCREENS[1], &Seen { charts: 3, height: 9, faults: vec!["no chart".to_owned()] });
        assert_eq!(tried.faults, ["390 px dark: no chart"]);
        let lines = tried.lines("ping");
        assert!(lines[0].ends_with("1 fault") && lines[0].contains("3 charts"), "{lines:?}");
        assert_eq!(lines[1..], ["    390 px dark: no chart"]);
        tried.faults = vec!["no chart".to_owned(); SHOWN_FAULTS + 3];
        assert_eq!(tried.lines("ping").last().unwrap(), "    and 3 more");
    }
}
