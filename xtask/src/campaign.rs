//! Campaigns: what runs for as long as one likes, outside the gate. Each is a line in [`CAMPAIGNS`].

use std::path::Path;

use anyhow::bail;

use crate::{
    advise_devices, advise_speed, comparisons, contradictions, fio_corpus, fio_parser, fleet_failures,
    fleet_scale, fuzz, identify_devices, pages, planted_causes, twins,
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
        doc: "gather 200 ranks under mpiexec, and merge generated records, beside the limits of both [--records 10000]",
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
    match CAMPAIGNS.iter().find(|campaign| campaign.name == *name) {
        Some(campaign) => (campaign.run)(root, rest),
        None => bail!("there is no campaign {name}; there are:\n{}", list()),
    }
}

fn list() -> String {
    let lines: Vec<String> =
        CAMPAIGNS.iter().map(|campaign| format!("  {:<17} {}", campaign.name, campaign.doc)).collect();
    lines.join("\n")
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
}
