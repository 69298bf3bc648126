//! What `catalog show` tells of one type: where its rules come from, what its size decides, and what one volume gives by
//! block size. Pure.

use fathom_catalog::{BlockRow, CatalogEntry, Lifecycle, LimitDirection, Rule, Sheet, SheetLimit};
use fathom_model::LimitUnit;
use fathom_model::units::{duration, grouped, latency};
use fathom_model::{MonthlyCost, Nanos, Price, STALE};
use fathom_predict::{BurstReach, ReachedRate};
use serde_json::{Value, json};

use crate::catalog::fit::chosen;
use crate::catalog::list::{size, sizes, whole_iops};
use crate::document::object;
use crate::view::{Block, Cell, Column, KeyFigure, Row, Table, View, ViewHead, decimal};

/// What is shown of a type.
pub struct Shown<'a> {
    /// The type.
    pub entry: &'a CatalogEntry,
    /// Volumes of it by size.
    pub sheets: &'a [Sheet],
    /// Just these sizes were asked for.
    pub is_asked: bool,
    /// The limit that is reported per block size.
    pub explained: Option<&'a Sheet>,
    /// Everything that was found about it and is not calculated with.
    pub facts: bool,
}

/// The type, its volumes by size, and one of them by block size.
pub fn view(shown: &Shown<'_>) -> View {
    let entry = shown.entry;
    let mut view = View { data: data(shown), ..View::default() };
    let api = entry.api_name().map(|name| format!(" ({name})")).unwrap_or_default();
    let title = format!("{}: {} {}{api}", entry.id(), entry.provider(), entry.type_name());
    view.head = Some(ViewHead { target: vec![title], ..ViewHead::default() });
    let unmodelled = entry
        .unmodelled()
        .map(|why| format!("It cannot be simulated, and `catalog fit` excludes it: {why}."));
    for (index, rule) in rules(shown).into_iter().enumerate() {
        view.say(if index == 0 { "Rules" } else { "" }, rule);
    }
    view.warn("Not modelled", unmodelled);
    let all = figures(shown);
    let is_first = |figure: &&KeyFigure| ["kind", "sizes", "latency"].contains(&figure.label.as_str());
    let short = entry.price().map(|price| price_parts(&price));
    let price = KeyFigure::new("price", short.unwrap_or_else(|| "unknown: no source states it".to_owned()));
    let first = all.iter().filter(is_first).cloned().chain([price]);
    view.push_brief("", [Block::KeyFigures(first.collect())]);
    view.push_full("Type", [Block::KeyFigures(all)]);
    let facts = entry.facts().filter(|_| shown.facts);
    let facts = facts.map(|(name, text)| KeyFigure::new(name.replace('_', " "), text));
    view.push("Other facts", [Block::KeyFigures(facts.collect())]);
    if let Some(sheet) = shown.explained {
        let title = match entry.size_range() {
            (None, None) => "How it works".to_owned(),
            _ => format!("How it works, with {} as an example", size(sheet.size_bytes)),
        };
        view.push_full(title, [Block::Notes(entry.explanation(sheet))]);
    }
    if !shown.sheets.is_empty() {
        push_sizes(shown, &mut view);
    }
    if let Some(sheet) = shown.explained {
        push_blocks(entry, sheet, &mut view);
        let assumptions = sheet.assumptions.iter().map(|explained| format!("{explained}.")).collect();
        view.push_full("Assumptions", [Block::Notes(assumptions)]);
    }
    view
}

/// The sentences on the rules that stand first: those on the rates, and that on burst credits.
pub(super) fn rules(shown: &Shown<'_>) -> Vec<String> {
    let all = shown.explained.map(|sheet| shown.entry.explanation(sheet)).unwrap_or_default();
    let burst = all.iter().skip(MAX_RULES).find(|rule| rule.starts_with(BURST));
    all.iter().take(MAX_RULES).chain(burst).cloned().collect()
}

/// Sentences on rates that stand first.
const MAX_RULES: usize = 2;
/// How the sentence on burst credits begins.
const BURST: &str = "Burst credits";

fn figures(shown: &Shown<'_>) -> Vec<KeyFigure> {
    let entry = shown.entry;
    let lost = if entry.is_persistent() { "" } else { ", data are lost with the instance" };
    let state = match entry.lifecycle() {
        Lifecycle::Current => "",
        Lifecycle::Previous => ", superseded by the provider",
        Lifecycle::Historical => ", no longer sold with these rules",
    };
    let measured = if entry.is_as_measured() { ", as measured: no limits are published" } else { "" };
    let mut figures = vec![KeyFigure::new("kind", format!("{}{lost}{state}{measured}", entry.media()))];
    let range = sizes(entry);
    if !range.is_empty() {
        figures.push(KeyFigure::new("sizes", range));
    }
    if let Some(sheet) = shown.explained {
        let (read, write) = (latency(sheet.read_lat_mean_ns), latency(sheet.write_lat_mean_ns));
        let mean = if read == write { read } else { format!("{read} reads, {write} writes") };
        let text = if sheet.is_latency_assumed {
            format!("not published, assumed to be {mean}")
        } else {
            format!("{mean} on average")
        };
        figures.push(KeyFigure::new("latency", text));
    }
    figures.extend(
        DETAILS.iter().flat_map(|detail| {
            (detail.texts)(entry).into_iter().map(|text| KeyFigure::new(detail.label, text))
        }),
    );
    figures
}

/// A field of a type: its lines in the text, and its members in the document of `catalog show` where those of
/// `catalog list` do not have them.
struct Detail {
    label: &'static str,
    texts: fn(&CatalogEntry) -> Vec<String>,
    members: fn(&CatalogEntry) -> Value,
}

/// Fields that are shown as they are, each declared once.
const DETAILS: &[Detail] = &[
    Detail {
        label: "guaranteed",
        texts: |entry| guaranteed(entry).into_iter().collect(),
        members: |entry| {
            let (rate_fraction, time_fraction) = entry.published_shares();
            json!({ "published_rate_fraction": rate_fraction, "published_time_fraction": time_fraction })
        },
    },
    Detail { label: "price", texts: |entry| vec![price(entry)], members: |_| Value::Null },
    Detail {
        label: "rules of",
        texts: |entry| vec![format!("{}, {}", entry.as_of(), entry.confidence())],
        members: |_| Value::Null,
    },
    Detail {
        label: "source",
        texts: |entry| entry.sources().map(str::to_owned).collect(),
        members: |entry| json!({ "sources": entry.sources().collect::<Vec<&str>>() }),
    },
    Detail {
        label: "note",
        texts: |entry| entry.notes().map(str::to_owned).into_iter().collect(),
        members: |entry| json!({ "notes": entry.notes() }),
    },
];

/// The members of the document for [`DETAILS`].
pub(super) fn details(entry: &CatalogEntry) -> impl Iterator<Item = Value> {
    DETAILS.iter().map(move |detail| (detail.members)(entry))
}

fn guaranteed(entry: &CatalogEntry) -> Option<String> {
    let percent = |share: f64| format!("{} %", (share * 1e4).round() / 100.0);
    let (rate, time) = entry.published_shares();
    let rate = rate.map_or_else(|| "the rate".to_owned(), |rate| format!("{} of the rate", percent(rate)));
    Some(format!("{rate}, {} of the time", percent(time?)))
}

fn push_sizes(shown: &Shown<'_>, view: &mut View) {
    let columns = [
        Column::right("size"),
        Column::left("tier"),
        Column::right("IOPS"),
        Column::right("burst IOPS"),
        Column::right("lasts"),
        Column::right("refills in").dispensable(1),
        Column::right("MiB/s"),
        Column::right("burst MiB/s"),
        Column::right("lasts").dispensable(2),
        Column::right("refills in").dispensable(0),
        Column::right(MONTH).dispensable(3),
    ];
    let mut rows: Vec<Row> = shown.sheets.iter().map(by_size).collect();
    if shown.entry.size_range() == (None, None) {
        rows.iter_mut().for_each(|row| row.cells[0] = Cell::default());
    }
    // Where a larger one gives nothing else, one line tells of both; but the last shows how far that goes.
    let last = rows.pop();
    rows.dedup_by(|next, row| !shown.is_asked && next.cells[1..10] == row.cells[1..10]);
    rows.extend(last.filter(|last| rows.last().is_none_or(|row| row.cells != last.cells)));
    let table = Table::new(columns, rows).without_empty();
    let has = |head: &str| table.columns.iter().any(|column| column.head == head);
    let by = match () {
        () if has("size") => "Limits by size",
        () if has("tier") => "Limits by tier",
        () => "Limits of any volume",
    };
    let currency = shown.sheets.iter().find_map(|sheet| Some(&sheet.month.as_ref()?.price.currency));
    let title = match currency.filter(|_| has(MONTH)) {
        Some(currency) => format!("{by}, price in {currency}"),
        None => by.to_owned(),
    };
    view.push(title, [Block::Table(table)]);
}

const MONTH: &str = "per month";

fn push_blocks(entry: &CatalogEntry, sheet: &Sheet, view: &mut View) {
    let chosen = chosen(sheet.tier.as_deref(), &sheet.parameters);
    let with = if chosen.is_empty() { String::new() } else { format!(" with {chosen}") };
    let what =
        if entry.size_range() == (None, None) { "any volume".to_owned() } else { size(sheet.size_bytes) };
    let is_merged = sheet.blocks.iter().any(|row| row.random != row.sequential);
    let order = if is_merged { ", random I/O" } else { "" };
    let title = |order: &str| format!("Limits of {what}{with} by block size{order}");
    view.push_full(title(order), [Block::Table(by_block(sheet, |row| &row.random))]);
    if is_merged {
        let sequential = by_block(sheet, |row| &row.sequential).without(&["QD"]);
        view.push_full(title(", sequential I/O"), [Block::Table(sequential)]);
    }
}

fn price(entry: &CatalogEntry) -> String {
    entry.price().map_or_else(|| "unknown: no source states it".to_owned(), |price| price_text(&price))
}

/// `0.1 USD a GiB, 0.065 USD for each IOPS, us-east-1, 2026`.
pub fn price_text(price: &Price) -> String {
    let when = price.date_text().map(|when| format!(", {when}")).unwrap_or_default();
    let confidence = price.confidence.map(|confidence| format!(", {} confidence", confidence.name()));
    let confidence = confidence.unwrap_or_default();
    format!("{} ({}{when}{confidence}; {})", price_parts(price), price.region, price.source)
}

/// What is charged: `0.1 USD a GiB, 0.065 USD for each IOPS`.
fn price_parts(price: &Price) -> String {
    let up_to = price.iops_up_to.map(|most| format!(", up to {} IOPS", grouped(most as u64)));
    let iops = format!("per additional IOPS and month{}", up_to.unwrap_or_default());
    let tiers = match (price.tiers.first(), price.tiers.last()) {
        (Some(first), Some(last)) => {
            let ends = (first.month, &first.tier, last.month, &last.tier);
            Some(format!(
                "{} {} ({}) to {} ({}) per month and tier",
                ends.0, price.currency, ends.1, ends.2, ends.3
            ))
        }
        _ => None,
    };
    let part = |each: Option<f64>, what: &str| Some(format!("{} {} {what}", each?, price.currency));
    let steps = price.iops_steps.iter().filter_map(|step| {
        let what = format!("for each above {} IOPS", grouped(step.above_iops as u64));
        part(Some(step.per_iops_month), &what)
    });
    let first = [part(price.per_gib_month, "per GiB and month"), tiers, part(price.per_iops_month, &iops)];
    let last = [
        part(price.per_throughput_month, "per additional unit of bandwidth and month"),
        part(price.per_million_ios, "per million I/Os"),
        price.are_ios_unknown.then(|| "I/Os are billed at an unknown price".to_owned()),
    ];
    let parts: Vec<String> =
        first.into_iter().flatten().chain(steps).chain(last.into_iter().flatten()).collect();
    parts.join(", ")
}

/// The cells of one volume.
fn by_size(sheet: &Sheet) -> Row {
    let of = |counted: LimitUnit, cell: &dyn Fn(&SheetLimit) -> Option<String>| {
        let levels: Vec<&SheetLimit> = sheet.limits.iter().filter(|level| level.unit == counted).collect();
        let mut cells: Vec<String> = levels.iter().filter_map(|level| cell(level)).collect();
        cells.dedup();
        let is_apart = levels.iter().any(|level| level.direction != LimitDirection::Total);
        let only = |direction: LimitDirection| levels.iter().all(|level| level.direction == direction);
        Cell::from(match cells.as_slice() {
            [one] if is_apart && only(LimitDirection::Read) => format!("{one} read"),
            [one] if is_apart && only(LimitDirection::Write) => format!("{one} write"),
            cells => cells.join("/"),
        })
    };
    let whole = |counted: LimitUnit, rate: u64| match counted {
        LimitUnit::Ios => grouped(rate),
        LimitUnit::Bytes => Cell::mebibytes(rate as f64).text,
    };
    let time = |ns: u64| duration(Nanos(ns));
    let size = Cell::integer(sheet.size_bytes, size(sheet.size_bytes));
    let mut cells = vec![size, sheet.tier.clone().into()];
    for counted in [LimitUnit::Ios, LimitUnit::Bytes] {
        cells.push(of(counted, &|level| Some(whole(counted, level.baseline_rate))));
        cells.push(of(counted, &|level| level.burst_rate.map(|rate| whole(counted, rate))));
        cells.push(of(counted, &|level| match level.rule {
            Rule::Billed => Some("billed".to_owned()),
            _ => level.empty_ns.map(time),
        }));
        cells.push(of(counted, &|level| level.refill_ns.map(time)));
    }
    cells.push(sheet.month.as_ref().map(month).into());
    Row::new(cells)
}

/// What is known of a month's price, and a plus where that is not all.
pub(crate) fn month(bill: &MonthlyCost) -> Cell {
    let total = Cell::money(bill.total);
    match (bill.is_whole(), bill.parts.is_empty()) {
        (true, _) => marked(total, &bill.price),
        (false, true) => "?".into(),
        (false, false) => marked(Cell { text: format!("{} + ?", total.text), ..total }, &bill.price),
    }
}

/// What stands behind stale prices in tables.
const STALE_MARK: &str = "*";

/// A price in a table, with a mark where it is stale.
pub(crate) fn marked(cell: Cell, price: &Price) -> Cell {
    let mark = if price.is_stale { STALE_MARK } else { "" };
    Cell { text: format!("{}{mark}", cell.text), ..cell }
}

/// The meaning of the mark, where one of the prices in a table has it.
pub(crate) fn mark_note<'a>(prices: impl Iterator<Item = &'a Price>) -> Option<String> {
    let mut stale = prices.filter(|price| price.is_stale);
    stale.next().map(|_| {
        format!(
            "{STALE_MARK} The price is {STALE}: `fathom catalog import-prices FILE` imports current ones."
        )
    })
}

fn by_block(sheet: &Sheet, of: fn(&BlockRow) -> &ReachedRate) -> Table {
    let lasts = |burst: BurstReach| burst.lasts_ns.map_or_else(|| "billed".into(), Cell::duration);
    let sustained = |row: &BlockRow| rate_cells(row, of(row).iops);
    let burst = |row: &BlockRow| rate_cells(row, of(row).burst.map(|burst| burst.iops));
    let table = Table::of::<BlockRow>(
        &[
            (Column::right("block"), &|row| {
                fathom_analysis::pattern::block_name(row.block_size_bytes).into()
            }),
            (Column::left(""), &|row| match row.direction {
                LimitDirection::Total => Cell::default(),
                other => other.name().into(),
            }),
            (Column::right("IOPS"), &|row| match of(row).iops {
                Some(_) => sustained(row)[0].clone(),
                None => "no limit".into(),
            }),
            (Column::right("MiB/s"), &|row| sustained(row)[1].clone()),
            (Column::right("burst IOPS"), &|row| burst(row)[0].clone()),
            (Column::right("burst MiB/s").dispensable(0), &|row| burst(row)[1].clone()),
            (Column::right("lasts"), &|row| of(row).burst.map(lasts).into()),
            (Column::right("QD").dispensable(1), &|row| row.iodepth.map(Cell::count).into()),
        ],
        &sheet.blocks,
    );
    table.without_empty()
}

/// A rate of requests of one size, whole or with a decimal where there are few, and the same in bytes.
fn rate_cells(row: &BlockRow, rate: Option<f64>) -> [Cell; 2] {
    let is_few = |rate: f64| rate < 99.95 && rate.fract() > 0.005;
    let iops = |rate: f64| if is_few(rate) { Cell::real(rate, decimal(rate)) } else { whole_iops(rate) };
    [rate.map(iops).into(), rate.map(|rate| Cell::mebibytes(rate * row.block_size_bytes as f64)).into()]
}

/// Of each volume its limits, and what they leave to requests of each size.
fn data(shown: &Shown<'_>) -> Table {
    const COLUMNS: &str = "\
        id,size_bytes,tier,monthly_cost=month.total,currency=month.currency,price_is_stale,scope,direction,\
        block_size_bytes,iodepth,iops,bytes_per_second,burst_iops,burst_bytes_per_second,\
        burst_lasts_ns,burst_refill_ns";
    let of_sheet = |sheet: &Sheet| -> Vec<Value> {
        let volume = json!({
            "id": shown.entry.id(),
            "size_bytes": sheet.size_bytes,
            "tier": sheet.tier,
            "month": sheet.month,
            "price_is_stale": sheet.month.as_ref().map(|bill| bill.price.is_stale),
        });
        let limits = sheet.limits.iter().map(|level| {
            let (rate, burst) = match level.unit {
                LimitUnit::Ios => ("iops", "burst_iops"),
                LimitUnit::Bytes => ("bytes_per_second", "burst_bytes_per_second"),
            };
            json!({
                "scope": "limit",
                "direction": level.direction.name(),
                (rate): level.baseline_rate,
                (burst): level.burst_rate,
                "burst_lasts_ns": level.empty_ns,
                "burst_refill_ns": level.refill_ns,
            })
        });
        let reached = |scope: &str, block: &BlockRow, reach: &ReachedRate| {
            let bytes = |rate: Option<f64>| rate.map(|rate| rate * block.block_size_bytes as f64);
            let burst = reach.burst.map(|burst| burst.iops);
            json!({
                "scope": scope,
                "direction": block.direction.name(),
                "block_size_bytes": block.block_size_bytes,
                "iodepth": block.iodepth.filter(|_| scope == "random"),
                "iops": reach.iops,
                "bytes_per_second": bytes(reach.iops),
                "burst_iops": burst,
                "burst_bytes_per_second": bytes(burst),
                "burst_lasts_ns": reach.burst.and_then(|burst| burst.lasts_ns),
                "burst_refill_ns": reach.burst.and_then(|burst| burst.refill_ns),
            })
        };
        let of_blocks = sheet.blocks.iter().flat_map(|block| {
            [reached("random", block, &block.random), reached("sequential", block, &block.sequential)]
        });
        limits.chain(of_blocks).map(|row| object([volume.clone(), row])).collect()
    };
    let apart = shown.explained.filter(|sheet| !shown.sheets.contains(sheet));
    Table::of_documents(&[COLUMNS], shown.sheets.iter().chain(apart).flat_map(of_sheet))
}
