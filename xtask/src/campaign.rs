//! Campaigns: what runs for as long as one likes, outside the gate. Each is a line in [`CAMPAIGNS`].

use std::path::Path;

use anyhow::{bail, ensure};

use crate::gate::{now, shown};
use crate::{
    advise_devices, advise_speed, comparisons, contradictions, extremes, fio_corpus, fio_parser,
    fleet_failures, fleet_scale, fuzz, identify_devices, kernels, long_tests, pages, planted_causes, twins,
};

/// One campaign.
struct Campaign {
    /// Its name on the command line.
    name: &'static str,
    /// One line, its arguments named.
    doc: &'static str,
    /// Runs it with the arguments that follow its name.
    run: fn(&Path, &[&str]) -> anyhow::Result<()>,
}

const CAMPAIGNS: &[Campaign] = &[
    Campaign {
        name: "advise-speed",
        doc: "time and memory of `fathom advise` on long loads [--requests 100000000] [--directory /var/tmp] [--program PATH]",
        run: advise_speed::campaign,
    },
    Campaign {
        name: "advise-devices",
        doc: "predict recorded loads and run them on capped volumes [--cases 10] [--only NAME] [--fresh]; --sums [--loads 300]",
        run: advise_devices::campaign,
    },
    Campaign {
        name: "comparisons",
        doc: "verdicts on pairs of volumes and intervals of precise tests, over many tries [--tries 1000]",
        run: comparisons::campaign,
    },
    Campaign {
        name: "contradictions",
        doc: "compare verdicts of runs on simulated volumes drawn at random [--volumes 300] [--from SEED]",
        run: contradictions::campaign,
    },
    Campaign {
        name: "extremes",
        doc: "try extreme numbers in every option of every command [--cases 10000] [--program PATH]",
        run: extremes::campaign,
    },
    Campaign {
        name: "fio-corpus",
        doc: "run the corpus of job files beside fio [--only TEXT]",
        run: fio_corpus::campaign,
    },
    Campaign {
        name: "fio-parser",
        doc: "parse drawn job files and command lines beside fio [--cases 10000] [--jobs 2] [--only TEXT] [--fresh]",
        run: fio_parser::campaign,
    },
    Campaign {
        name: "fleet-scale",
        doc: "gather 200 ranks under mpiexec, and merge 10,000 records, beside the limits of both [--records 10000]",
        run: fleet_scale::campaign,
    },
    Campaign {
        name: "fleet-failures",
        doc: "let ranks die, hang and lose their hosts under each launcher [--cases 360] [--jobs 3] [--only NAME] [--fresh]",
        run: fleet_failures::campaign,
    },
    Campaign {
        name: "fuzz",
        doc: "run the fuzz targets, and go on where it ended [--minutes 30, of each] [--jobs 2] [--only NAME,...] [--fresh]",
        run: fuzz::campaign,
    },
    Campaign {
        name: "identify-devices",
        doc: "identify capped devices, and go on where it ended [--cases 120] [--jobs 4, at once] [--only NAME] [--fresh]",
        run: identify_devices::campaign,
    },
    Campaign {
        name: "kernels",
        doc: "boot Debian's kernels in QEMU and run every command and the guard there [--only STACK] [--kernel 6.12]",
        run: kernels::campaign,
    },
    Campaign {
        name: "long-tests",
        doc: "run the tests of which the gate runs a part in their whole length",
        run: long_tests::campaign,
    },
    Campaign {
        name: "pages",
        doc: "open the pages of reports in Chromium and use their charts, on six screens [--only NAME]",
        run: pages::campaign,
    },
    Campaign {
        name: "planted-causes",
        doc: "measure devices with planted causes and others again and again [--cases 70] [--jobs 1] [--only NAME] [--fresh]",
        run: planted_causes::campaign,
    },
    Campaign {
        name: "twins",
        doc: "make twins of capped devices and check how far they are from them [--cases 5] [--jobs 1] [--only NAME] [--fresh]",
        run: twins::campaign,
    },
];

/// Runs the campaign that `arguments` name, or lists all.
pub fn run(root: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let Some((name, rest)) = arguments.split_first() else {
        println!("{}", list());
        return Ok(());
    };
    if *name == "all" {
        return run_all(root, CAMPAIGNS, rest);
    }
    match CAMPAIGNS.iter().find(|campaign| campaign.name == *name) {
        Some(campaign) => (campaign.run)(root, rest),
        None => bail!("there is no campaign {name}; there are:\n{}", list()),
    }
}

/// Runs one campaign after the other, as each is by itself, and says of each at the end whether it held. One that fails does
/// not stop the next.
fn run_all(root: &Path, campaigns: &[Campaign], arguments: &[&str]) -> anyhow::Result<()> {
    ensure!(arguments.is_empty(), "all takes no arguments: each campaign runs as it does by itself");
    let mut results = Vec::new();
    for campaign in campaigns {
        println!("campaign {} ...", campaign.name);
        let began = now();
        let result = (campaign.run)(root, &[]);
        if let Err(error) = &result {
            println!("{error:#}");
        }
        results.push((campaign.name, shown(began.elapsed()), result.err()));
    }
    for (name, took, error) in &results {
        let verdict = error.as_ref().map_or("holds".to_owned(), |error| format!("FAILED: {error}"));
        println!("{name:<17} {took:>8}  {}", verdict.lines().next().unwrap_or_default());
    }
    let failed = results.iter().filter(|(.., error)| error.is_some()).count();
    ensure!(failed == 0, "{failed} of {} campaigns failed", results.len());
    Ok(())
}

fn list() -> String {
    let all =
        "  all               run every campaign, for a night, and say of each whether it held".to_owned();
    let each = CAMPAIGNS.iter().map(|campaign| format!("  {:<17} {}", campaign.name, campaign.doc));
    each.chain([all]).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn campaigns_are_listed_and_others_refused() {
        for (index, campaign) in CAMPAIGNS.iter().enumerate() {
            assert!(CAMPAIGNS[..index].iter().all(|other| other.name != campaign.name));
            assert!(list().contains(campaign.doc));
        }
        let error = run(Path::new("/nonexistent"), &["picnic"]).unwrap_err();
        assert!(error.to_string().starts_with("there is no campaign picnic"), "{error}");
    }

    #[test]
    fn a_campaign_that_fails_does_not_stop_the_others() {
        fn held(_: &Path, _: &[&str]) -> anyhow::Result<()> {
            Ok(())
        }
        fn failed(_: &Path, _: &[&str]) -> anyhow::Result<()> {
            bail!("it found something")
        }
        let campaign = |run| Campaign { name: "a", doc: "", run };
        let run = |campaigns: &[Campaign]| run_all(Path::new("/nonexistent"), campaigns, &[]);
        assert!(run(&[campaign(held), campaign(held)]).is_ok());
        let error = run(&[campaign(failed), campaign(held), campaign(failed)]).unwrap_err();
        assert_eq!(error.to_string(), "2 of 3 campaigns failed");
    }
}
