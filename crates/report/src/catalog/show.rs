//! What `catalog show` tells of one type: where its rules come from, what its size decides, and what one volume gives by
//! block size. Pure.

use std::io;

use fathom_catalog::{
    BlockRow, BurstReach, CatalogEntry, Lifecycle, LimitDirection, LimitUnit, ReachedRate, Rule, Sheet,
    SheetLimit,
};
use fathom_model::Nanos;
use fathom_model::units::{bytes, duration, grouped, latency};

use crate::bench::table::{INDENT, decimal};
use crate::catalog::list::{size, sizes};
use crate::columns::{Align, Columns, wrap};
use crate::{Style, TextWriter};

const GIB: u64 = 1 << 30;
const MIB: f64 = 1_048_576.0;
/// Where the text of a fact begins.
const LABEL: usize = 14;

/// What is shown of a type.
pub struct Shown<'a> {
    /// The type.
    pub entry: &'a CatalogEntry,
    /// Volumes of it by size.
    pub sheets: &'a [Sheet],
    /// Just these sizes were asked for.
    pub is_asked: bool,
    /// The one that is told of by block size.
    pub told: Option<&'a Sheet>,
    /// Everything that was found about it and is not calculated with.
    pub facts: bool,
}

/// Writes it.
///
/// # Errors
/// Those of `out`.
pub fn render(shown: &Shown<'_>, style: &Style, out: &mut TextWriter) -> io::Result<()> {
    let page = CatalogPage { style, width: style.width.max(40) };
    page.head(shown, out)?;
    if let Some(why) = shown.entry.unmodelled() {
        let text = format!("It cannot be simulated, and `catalog fit` leaves it out: {why}.");
        page.paragraph(&text, out)?;
    }
    if !shown.sheets.is_empty() {
        page.by_size(shown, out)?;
    }
    if let Some(sheet) = shown.told {
        page.by_block(shown.entry, sheet, out)?;
        for told in &sheet.assumptions {
            page.paragraph(&format!("Assumed: {told}."), out)?;
        }
    }
    Ok(())
}

struct CatalogPage<'a> {
    style: &'a Style,
    width: usize,
}

impl CatalogPage<'_> {
    fn paragraph(&self, text: &str, out: &mut TextWriter) -> io::Result<()> {
        wrap(text, self.width, 0, 0).iter().try_for_each(|line| writeln!(out, "{line}"))
    }

    fn fact(&self, label: &str, text: &str, out: &mut TextWriter) -> io::Result<()> {
        let lines = wrap(text, self.width, INDENT + LABEL, INDENT + LABEL);
        for (index, line) in lines.iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            writeln!(
                out,
                "{:INDENT$}{}{}",
                "",
                self.style.dim(&format!("{label:LABEL$}")),
                line.trim_start_matches(' ')
            )?;
        }
        Ok(())
    }

    fn head(&self, shown: &Shown<'_>, out: &mut TextWriter) -> io::Result<()> {
        let entry = shown.entry;
        let api = entry.api_name().map(|name| format!(" ({name})")).unwrap_or_default();
        let title = format!("{}: {} {}{api}", entry.id(), entry.provider(), entry.type_name());
        for (index, line) in wrap(&title, self.width, 0, INDENT).iter().enumerate() {
            writeln!(out, "{}", if index == 0 { self.style.bold(line) } else { line.clone() })?;
        }
        let lost = if entry.is_persistent() { "" } else { ", its data are lost with the instance" };
        let state = match entry.lifecycle() {
            Lifecycle::Current => "",
            Lifecycle::Previous => ", sold, but its provider recommends another",
            Lifecycle::Historical => ", no longer sold by these rules",
        };
        self.fact("kind", &format!("{}{lost}{state}", entry.media()), out)?;
        let range = sizes(entry);
        if !range.is_empty() {
            self.fact("sizes", &range, out)?;
        }
        if let Some(sheet) = shown.told {
            self.of_volumes(sheet, out)?;
        }
        let percent = |share: f64| format!("{} %", (share * 1e4).round() / 100.0);
        match entry.promise() {
            (Some(rate), Some(time)) => {
                self.fact(
                    "promised",
                    &format!("{} of the rate, {} of the time", percent(rate), percent(time)),
                    out,
                )?;
            }
            (None, Some(time)) => {
                self.fact("promised", &format!("the rate, {} of the time", percent(time)), out)?
            }
            _ => {}
        }
        self.fact("price", &price(entry), out)?;
        self.fact("rules of", &format!("{}, {}", entry.as_of(), entry.confidence()), out)?;
        for (index, source) in entry.sources().enumerate() {
            self.fact(if index == 0 { "source" } else { "" }, source, out)?;
        }
        if let Some(notes) = entry.notes() {
            self.fact("note", notes, out)?;
        }
        for (index, (name, text)) in entry.facts().filter(|_| shown.facts).enumerate() {
            self.fact(
                if index == 0 { "also" } else { "" },
                &format!("{}: {text}", name.replace('_', " ")),
                out,
            )?;
        }
        writeln!(out)
    }

    /// What is the same for every volume of a type.
    fn of_volumes(&self, sheet: &Sheet, out: &mut TextWriter) -> io::Result<()> {
        if let Some(unit) = sheet.io_unit_bytes {
            let merged = if sheet.merges_sequential { ", in which sequential ones are merged" } else { "" };
            self.fact("counts", &format!("I/Os of up to {}{merged}", bytes(unit)), out)?;
        }
        let (read, write) = (latency(sheet.latency_ns.0 as u64), latency(sheet.latency_ns.1 as u64));
        let mean = if read == write { read } else { format!("{read} reads, {write} writes") };
        let told = if sheet.is_latency_assumed {
            format!("not published, taken as about {mean}")
        } else {
            format!("{mean} on average")
        };
        self.fact("latency", &told, out)
    }

    fn by_size(&self, shown: &Shown<'_>, out: &mut TextWriter) -> io::Result<()> {
        let currency =
            shown.sheets.iter().find_map(|sheet| Some(sheet.bill.as_ref()?.price.currency.clone()));
        let head = vec![
            "size",
            "tier",
            "IOPS",
            "burst IOPS",
            "lasts",
            "refilled",
            "MiB/s",
            "burst MiB/s",
            "lasts ",
            "refilled ",
            "a month",
        ];
        let mut align = vec![Align::Right; head.len()];
        align[1] = Align::Left;
        let mut rows: Vec<Vec<String>> = shown.sheets.iter().map(by_size).collect();
        // Where a larger one gives nothing else, one line tells of both; but the last shows how far that goes.
        if shown.entry.size_range() == (None, None) {
            rows.iter_mut().for_each(|row| row[0].clear());
        }
        let last = rows.pop();
        rows.dedup_by(|next, row| !shown.is_asked && next[1..10] == row[1..10]);
        rows.extend(last.filter(|last| rows.last().is_none_or(|row| row != last)));
        let mut columns = Columns { head, align, rows };
        for name in [
            "size",
            "tier",
            "burst IOPS",
            "lasts",
            "refilled",
            "burst MiB/s",
            "lasts ",
            "refilled ",
            "a month",
        ] {
            let Some(index) = columns.head.iter().position(|head| *head == name) else { continue };
            if columns.rows.iter().all(|row| row[index].is_empty()) {
                columns.drop(name);
            }
        }
        let priced = currency.filter(|_| columns.head.contains(&"a month"));
        let by = match () {
            () if columns.head.contains(&"size") => "By size",
            () if columns.head.contains(&"tier") => "By tier",
            () => "Any volume",
        };
        let title = match priced {
            Some(currency) => format!("{by}, price in {currency}"),
            None => by.to_owned(),
        };
        self.table(&title, columns, &["refilled ", "refilled", "lasts ", "a month"], out)
    }

    fn by_block(&self, entry: &CatalogEntry, sheet: &Sheet, out: &mut TextWriter) -> io::Result<()> {
        let chosen = [
            sheet.parameters.iops.map(|iops| format!("{} IOPS", grouped(iops))),
            sheet.parameters.bytes_per_second.map(|rate| format!("{} MiB/s", decimal(rate as f64 / MIB))),
            sheet.tier.clone(),
        ];
        let chosen: Vec<String> = chosen.into_iter().flatten().collect();
        let with = if chosen.is_empty() { String::new() } else { format!(" with {}", chosen.join(", ")) };
        let what =
            if entry.size_range() == (None, None) { "Any volume".to_owned() } else { size(sheet.size_bytes) };
        let is_merged = sheet.blocks.iter().any(|row| row.random != row.sequential);
        let order = if is_merged { ", random" } else { "" };
        let columns = |reach: fn(&BlockRow) -> &ReachedRate, has_depth| by_block(sheet, reach, has_depth);
        let dispensable = ["MiB/s in it", "at depth"];
        let title = format!("{what}{with}, by block size{order}");
        self.table(&title, columns(|row| &row.random, true), &dispensable, out)?;
        if is_merged {
            let title = format!("{what}{with}, by block size, sequential");
            self.table(&title, columns(|row| &row.sequential, false), &dispensable, out)?;
        }
        Ok(())
    }

    fn table(
        &self,
        title: &str,
        columns: Columns,
        dispensable: &[&str],
        out: &mut TextWriter,
    ) -> io::Result<()> {
        writeln!(out, "{}", self.style.bold(title))?;
        columns.write(self.style, INDENT, self.width, dispensable, out)?;
        writeln!(out)
    }
}

/// `0.1 USD a GiB, 0.065 USD for each IOPS, us-east-1, 2026`.
fn price(entry: &CatalogEntry) -> String {
    let Some(price) = entry.price() else { return "not known from a source".to_owned() };
    let up_to = price.iops_up_to.map(|most| format!(", up to {} IOPS", grouped(most as u64)));
    let iops = format!("for each IOPS and month that is not included{}", up_to.unwrap_or_default());
    let parts = [
        (price.per_gib_month, "a GiB and month"),
        (price.per_iops_month, iops.as_str()),
        (price.per_throughput_month, "for each unit of bandwidth and month that is not included"),
        (price.per_million_ios, "for a million I/Os"),
    ];
    let parts =
        parts.into_iter().filter_map(|(each, what)| Some(format!("{} {} {what}", each?, price.currency)));
    let when = price.as_of.map(|when| format!(", {when}")).unwrap_or_default();
    format!("{} ({}{when}; {})", parts.collect::<Vec<_>>().join(", "), price.region, price.source)
}

/// The cells of one volume.
fn by_size(sheet: &Sheet) -> Vec<String> {
    let of = |counted: LimitUnit, cell: &dyn Fn(&SheetLimit) -> Option<String>| {
        let levels: Vec<&SheetLimit> = sheet.levels.iter().filter(|level| level.counted == counted).collect();
        let mut cells: Vec<String> = levels.iter().filter_map(|level| cell(level)).collect();
        cells.dedup();
        let is_apart = levels.iter().any(|level| level.direction != LimitDirection::Total);
        let only = |direction: LimitDirection| levels.iter().all(|level| level.direction == direction);
        match cells.as_slice() {
            [one] if is_apart && only(LimitDirection::Read) => format!("{one} read"),
            [one] if is_apart && only(LimitDirection::Write) => format!("{one} write"),
            cells => cells.join("/"),
        }
    };
    let whole = |counted: LimitUnit, rate: u64| match counted {
        LimitUnit::Ios => grouped(rate),
        LimitUnit::Bytes => decimal(rate as f64 / MIB),
    };
    let time = |ns: u64| duration(Nanos(ns));
    let mut row = vec![size(sheet.size_bytes), sheet.tier.clone().unwrap_or_default()];
    for counted in [LimitUnit::Ios, LimitUnit::Bytes] {
        row.push(of(counted, &|level| Some(whole(counted, level.base))));
        row.push(of(counted, &|level| level.burst.map(|rate| whole(counted, rate))));
        row.push(of(counted, &|level| match level.rule {
            Rule::Billed => Some("billed".to_owned()),
            _ => level.empty_ns.map(time),
        }));
        row.push(of(counted, &|level| level.refill_ns.map(time)));
    }
    row.push(sheet.bill.as_ref().map(month).unwrap_or_default());
    row
}

/// What is known of a month's price, and a plus where that is not all.
pub(crate) fn month(bill: &fathom_catalog::MonthlyCost) -> String {
    let total = bill.total();
    let cents = (total * 100.0).round() as u64;
    let text = format!("{}.{:02}", grouped(cents / 100), cents % 100);
    match (bill.is_whole(), bill.parts.is_empty()) {
        (true, _) => text,
        (false, true) => "?".to_owned(),
        (false, false) => format!("{text} + ?"),
    }
}

fn by_block(sheet: &Sheet, of: fn(&BlockRow) -> &ReachedRate, has_depth: bool) -> Columns {
    let mut head = vec!["block", "", "IOPS", "MiB/s", "burst IOPS", "MiB/s in it", "lasts"];
    let mut align = vec![Align::Right; head.len()];
    align[1] = Align::Left;
    if has_depth {
        head.push("at depth");
        align.push(Align::Right);
    }
    let rate = |row: &BlockRow, rate: Option<f64>| match rate {
        Some(rate) => (self::rate(rate), decimal(rate * row.block_bytes as f64 / MIB)),
        None => ("no limit".to_owned(), String::new()),
    };
    let cells = |row: &BlockRow| {
        let reach = of(row);
        let (iops, mib) = rate(row, reach.sustained);
        let (burst, burst_mib) =
            reach.burst.map_or_else(Default::default, |burst| rate(row, Some(burst.rate)));
        let lasts = reach.burst.map(|burst: BurstReach| match burst.lasts_ns {
            Some(ns) => duration(Nanos(ns)),
            None => "billed".to_owned(),
        });
        let direction = match row.direction {
            LimitDirection::Total => String::new(),
            other => other.name().to_owned(),
        };
        let block = fathom_analysis::pattern::block_name(row.block_bytes);
        let mut cells = vec![block, direction, iops, mib, burst, burst_mib, lasts.unwrap_or_default()];
        if has_depth {
            cells.push(row.depth.map(grouped).unwrap_or_default());
        }
        cells
    };
    let mut columns = Columns { head, align, rows: sheet.blocks.iter().map(cells).collect() };
    for name in ["", "burst IOPS", "MiB/s in it", "lasts", "at depth"] {
        let Some(index) = columns.head.iter().position(|head| *head == name) else { continue };
        if columns.rows.iter().all(|row| row[index].is_empty()) {
            columns.drop(name);
        }
    }
    columns
}

/// A rate of requests: whole, or with a decimal where there are few.
fn rate(rate: f64) -> String {
    if rate < 99.95 && rate.fract() > 0.005 { decimal(rate) } else { grouped(rate as u64) }
}

/// The size of a volume in whole GiB.
pub(crate) fn gib(size_bytes: u64) -> String {
    grouped(size_bytes.div_ceil(GIB))
}
