//! What `catalog fit` answers: what serves a need, the cheapest first, and why the others do not. Pure.

use std::io;

use fathom_catalog::{Fit, VolumeOffer};
use fathom_model::units::grouped;

use crate::bench::table::{INDENT, decimal};
use crate::catalog::show::{gib, month};
use crate::columns::{self, Align, Columns, pad, wrap};
use crate::{Style, TextWriter};

const MIB: f64 = 1_048_576.0;

/// Writes the answer to a need that is told in words.
///
/// # Errors
/// Those of `out`.
pub fn render(fit: &Fit, need: &str, style: &Style, out: &mut TextWriter) -> io::Result<()> {
    let page = FitPage { style, width: style.width.max(40) };
    page.paragraph(need, 0, out)?;
    writeln!(out)?;
    for (currency, offers) in &fit.priced {
        let regions = said(offers, |offer| offer.bill.as_ref().map(|bill| bill.price.region.clone()));
        page.offers(&format!("In {currency} a month ({})", regions.join(", ")), offers, true, out)?;
    }
    if !fit.unpriced.is_empty() {
        page.offers("Their price is not known from a source", &fit.unpriced, false, out)?;
    }
    if fit.offers().next().is_none() {
        page.paragraph("No type serves that need.", 0, out)?;
        writeln!(out)?;
    }
    page.notes(fit, out)?;
    page.others(fit, out)
}

/// What offers have to say, each once.
fn said(offers: &[VolumeOffer], of: impl Fn(&VolumeOffer) -> Option<String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for text in offers.iter().filter_map(of) {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}

struct FitPage<'a> {
    style: &'a Style,
    width: usize,
}

impl FitPage<'_> {
    fn paragraph(&self, text: &str, indent: usize, out: &mut TextWriter) -> io::Result<()> {
        wrap(text, self.width, indent, indent).iter().try_for_each(|line| writeln!(out, "{line}"))
    }

    fn offers(
        &self,
        title: &str,
        offers: &[VolumeOffer],
        is_priced: bool,
        out: &mut TextWriter,
    ) -> io::Result<()> {
        let head = vec!["type", "GiB", "chosen", "IOPS", "MiB/s", "a month", "/1,000 IOPS", "/100 MiB/s"];
        let mut align = vec![Align::Right; head.len()];
        (align[0], align[2]) = (Align::Left, Align::Left);
        let mut columns = Columns { head, align, rows: offers.iter().map(row).collect() };
        if !is_priced {
            ["a month", "/1,000 IOPS", "/100 MiB/s"].iter().for_each(|name| columns.drop(name));
        }
        if columns.rows.iter().all(|row| row[2].is_empty()) {
            columns.drop("chosen");
        }
        for (index, line) in wrap(title, self.width, 0, INDENT).iter().enumerate() {
            writeln!(out, "{}", if index == 0 { self.style.bold(line) } else { line.clone() })?;
        }
        let dispensable = ["/100 MiB/s", "/1,000 IOPS", "MiB/s"];
        columns.write(self.style, INDENT, self.width, &dispensable, out)?;
        writeln!(out)
    }

    /// Each note once, with those whom it concerns.
    fn notes(&self, fit: &Fit, out: &mut TextWriter) -> io::Result<()> {
        let mut notes: Vec<(String, Vec<&str>)> = Vec::new();
        for offer in fit.offers() {
            let unknown = offer.bill.as_ref().filter(|bill| !bill.is_whole());
            let unknown =
                unknown.map(|bill| format!("+ ? is what is paid for its {}", bill.unknown.join(" and its ")));
            for note in offer.notes.iter().cloned().chain(unknown) {
                match notes.iter_mut().find(|(known, _)| *known == note) {
                    Some((_, ids)) => ids.push(&offer.id),
                    None => notes.push((note, vec![&offer.id])),
                }
            }
        }
        if notes.is_empty() {
            return Ok(());
        }
        writeln!(out, "{}", self.style.bold("Before you buy"))?;
        for (note, ids) in notes {
            let text = format!("{}: {note}", ids.join(", "));
            wrap(&text, self.width, INDENT, 2 * INDENT)
                .iter()
                .try_for_each(|line| writeln!(out, "{line}"))?;
        }
        let instance = "An instance has limits of its own, which are not looked at here.";
        self.paragraph(instance, INDENT, out)?;
        writeln!(out)
    }

    fn others(&self, fit: &Fit, out: &mut TextWriter) -> io::Result<()> {
        if fit.others.is_empty() {
            return Ok(());
        }
        writeln!(out, "{}", self.style.bold("Do not serve"))?;
        let wide = fit.others.iter().map(|other| columns::width(&other.id)).max().unwrap_or(0);
        for other in &fit.others {
            let lines = wrap(&other.why, self.width, INDENT + wide + 2, INDENT + wide + 2);
            for (index, line) in lines.iter().enumerate() {
                let id = if index == 0 { other.id.as_str() } else { "" };
                writeln!(out, "{:INDENT$}{}  {}", "", pad(id, wide), line.trim_start_matches(' '))?;
            }
        }
        Ok(())
    }
}

/// What is bought of it; `None` where that goes with what it belongs to, of which the catalogue does not know the size.
pub(crate) fn size_of(offer: &VolumeOffer) -> Option<u64> {
    offer.parameters.size_bytes.filter(|_| offer.parameters.tier.is_none())
}

fn row(offer: &VolumeOffer) -> Vec<String> {
    let chosen = [
        offer.tier.clone(),
        offer.parameters.iops.map(|iops| format!("{} IOPS", grouped(iops))),
        offer.parameters.bytes_per_second.map(|rate| format!("{} MiB/s", decimal(rate as f64 / MIB))),
    ];
    let chosen: Vec<String> = chosen.into_iter().flatten().collect();
    let (per_iops, per_bytes) = offer.unit_prices();
    let money = |amount: Option<f64>| amount.map(|amount| format!("{amount:.2}")).unwrap_or_default();
    vec![
        offer.id.clone(),
        size_of(offer).map_or("?".to_owned(), gib),
        chosen.join(", "),
        offer.iops.map(|iops| grouped(iops as u64)).unwrap_or_default(),
        offer.bytes_per_second.map(|rate| decimal(rate / MIB)).unwrap_or_default(),
        offer.bill.as_ref().map(month).unwrap_or_default(),
        money(per_iops),
        money(per_bytes),
    ]
}
