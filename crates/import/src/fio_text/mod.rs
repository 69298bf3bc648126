//! What fio prints for people, from 1.59 to 3.x, whole or in part, also where a page or a translation has changed it.

mod entry;
mod fields;
mod group;
mod outputs;
mod progress;
mod segment;

use std::collections::{BTreeMap, HashMap};

use fathom_model::{Op, PerOp};
use fathom_record::import::{BlockRange, ImportedDisk, ImportedLoad, MissingFigure, MissingReason};

use crate::ImportError;
use crate::number::{self, Number, ReadResult, UnitStyle};
use crate::report::{SourceReport, miss};
use crate::text::SourceText;
use entry::EntryReader;
use fields::Fields;
use segment::{Segment, SegmentKind};

/// True where a text has a line of fio's results.
pub(crate) fn is_fio_text(source: &SourceText) -> bool {
    segment::has_results(source.as_str())
}

/// What fio printed in a text.
pub(crate) struct FioOutputs {
    pub outputs: Vec<SourceReport>,
    /// Lines of earlier states of the same runs, as `--status-interval` prints them.
    pub earlier: Vec<u64>,
}

/// Reads every output of a text.
pub(crate) fn read(source: &SourceText) -> Result<FioOutputs, ImportError> {
    let source = &source.without_cut_number();
    let segments = segment::segments(source);
    let outputs = outputs::divide(&segments);
    let mut found = FioOutputs { outputs: Vec::new(), earlier: Vec::new() };
    let processes: Vec<_> =
        outputs.iter().map(|range| outputs::processes(&segments[range.clone()])).collect();
    let last: HashMap<_, _> = processes.iter().enumerate().map(|(at, processes)| (processes, at)).collect();
    // A page that shows the version once has one version.
    let only_version = segment::only_version(source.as_str());
    for (at, range) in outputs.iter().enumerate() {
        let own = &segments[range.clone()];
        let (first, next) = (own[0].line, outputs.get(at + 1).map(|next| segments[next.start].line));
        let lines = (if at == 0 { 1 } else { first }, next.map_or(u64::MAX, |next| first.max(next - 1)));
        if !processes[at].is_empty() && last[&processes[at]] > at {
            found.earlier.push(first);
            continue;
        }
        found.outputs.push(output(source.lines(lines.0, lines.1), own, only_version.as_deref())?.at(first));
    }
    Ok(found)
}

/// Reads an output.
fn output(text: &str, segments: &[Segment], only_version: Option<&str>) -> Result<SourceReport, ImportError> {
    let version = segment::version(text).or_else(|| only_version.map(str::to_owned));
    let mut reader = TextReader {
        style: style(text, version.as_deref()),
        version: version.unwrap_or_default(),
        ..TextReader::default()
    };
    segments.iter().for_each(|segment| reader.take(segment));
    reader.finish()
}

/// Which unit words a text has, by its version or by words that only one generation prints.
fn style(text: &str, version: Option<&str>) -> UnitStyle {
    let major = version.and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let is_legacy = match major {
        Some(major) if major < 3 => !has(&["IOPS="]),
        Some(_) => false,
        None => has(&["runt=", "aggrb=", "iops="]),
    };
    match (is_legacy, has(&["kb_base=1000"])) {
        (true, true) => UnitStyle::LegacyDecimal,
        (true, false) => UnitStyle::Legacy,
        _ if major.is_some() || has(&["IOPS=", "issued rwts", "run="]) => UnitStyle::Modern,
        _ => UnitStyle::Unknown,
    }
}

/// What a segment needs to be read.
#[derive(Clone, Copy)]
struct Context<'a> {
    pub style: UnitStyle,
    pub segment: &'a Segment,
}

/// Takes figures from the fields of a segment, and notes what is missing.
struct Taker<'a> {
    pub fields: Fields<'a>,
    pub context: Context<'a>,
    /// What the figures are of: `read lat`.
    pub subject: String,
    pub missing: Vec<MissingFigure>,
}

impl<'a> Taker<'a> {
    pub fn new(context: Context<'a>, subject: impl Into<String>) -> Taker<'a> {
        let fields = Fields::of(&context.segment.body);
        Taker { fields, context, subject: subject.into(), missing: Vec::new() }
    }

    /// The figure behind one of these keys, read by `read`; a note where there is none.
    pub fn take<T: fathom_record::import::FigureNumber>(
        &mut self,
        keys: &[&str],
        name: &str,
        read: impl Fn(&str) -> ReadResult,
    ) -> Option<fathom_record::import::Figure<T>> {
        let text = keys.iter().find_map(|key| self.fields.get(key));
        let found = match text {
            Some(text) if !text.is_empty() => read(text).and_then(number::Reading::figure),
            _ => Err(MissingReason::Lost),
        };
        found.map_err(|reason| self.note(name, reason)).ok()
    }

    /// The same where the field may be absent.
    pub fn take_if_there<T: fathom_record::import::FigureNumber>(
        &mut self,
        keys: &[&str],
        name: &str,
        read: impl Fn(&str) -> ReadResult,
    ) -> Option<fathom_record::import::Figure<T>> {
        keys.iter().any(|key| self.fields.get(key).is_some()).then(|| self.take(keys, name, read)).flatten()
    }

    pub fn note(&mut self, name: &str, reason: MissingReason) {
        let figure = format!("{} {name}", self.subject).trim().to_owned();
        let text = self.context.segment.text.clone();
        miss(&mut self.missing, MissingFigure { line: self.context.segment.line, text, figure, reason });
    }
}

/// The state of a reader between two segments.
#[derive(Default)]
struct TextReader {
    style: UnitStyle,
    version: String,
    report: SourceReport,
    /// The loads of the lines before the results, by name and group, with how many lines there were.
    loads: BTreeMap<(String, u32), (ImportedLoad, u32)>,
    entry: Option<EntryReader>,
    /// Missing figures of parts that belong to no job.
    missing: Vec<MissingFigure>,
    group: Option<fathom_record::import::ImportedGroup>,
    disks: Vec<ImportedDisk>,
    progress: Option<Segment>,
}

impl TextReader {
    fn take(&mut self, segment: &Segment) {
        let context = Context { style: self.style, segment };
        match &segment.kind {
            SegmentKind::Load { name, group } => self.load(context, name, *group),
            SegmentKind::Job { name } => {
                self.end_entry();
                self.entry = Some(EntryReader::new(context, name));
            }
            SegmentKind::Progress => self.progress = Some(segment.clone()),
            SegmentKind::Group(id) => {
                self.end_entry();
                self.end_group();
                self.group = Some(fathom_record::import::ImportedGroup { id: *id, ..Default::default() });
            }
            SegmentKind::GroupOp(word) => {
                self.end_entry();
                let group = self.group.get_or_insert_default();
                let missing = group::take(context, word, &self.version, group);
                self.missing.extend(missing);
            }
            SegmentKind::Disk { name, is_below } => {
                self.end_entry();
                self.end_group();
                let (disk, missing) = group::disk(context, name, *is_below);
                self.disks.push(disk);
                self.missing.extend(missing);
            }
            SegmentKind::Other => {}
            // A part of the results whose first line is missing belongs to a job without a name.
            _ => self.entry.get_or_insert_with(EntryReader::unnamed).take(context),
        }
    }

    fn load(&mut self, context: Context<'_>, name: &str, group: u32) {
        let fields = Fields::of(&context.segment.body);
        let whole = |key: &str| fields.get(key).and_then(|text| text.parse::<u32>().ok());
        let load = ImportedLoad {
            rw: fields.get("rw").and_then(crate::load::pattern_name),
            block_size: block_sizes(&context.segment.body, self.style),
            queue_depth: whole("iodepth"),
            engine: fields.get("ioengine").filter(|name| !name.is_empty()).map(str::to_owned),
            ..ImportedLoad::default()
        };
        let found = self.loads.entry((name.to_owned(), group)).or_insert((load, 0));
        found.1 += 1;
    }

    fn end_entry(&mut self) {
        let Some(reader) = self.entry.take() else { return };
        let found = reader.finish();
        let test = &mut self.report.test(&found.entry.name, found.group).imported;
        test.load.queue_depth = test.load.queue_depth.or(found.depth);
        test.entries.push(found.entry);
        found.missing.into_iter().for_each(|missing| miss(&mut test.missing, missing));
        test.places.extend(found.places);
    }

    fn end_group(&mut self) {
        if let Some(group) = self.group.take() {
            self.report.set_group(&group);
            // Without a line of a job, the group is all there is.
            if !self.report.tests.iter().any(|test| test.group == group.id) {
                let id = group.id;
                let test = self.report.test("", id);
                test.imported.entries.push(group::entry(&group));
                test.imported.group = Some(group);
            }
        }
    }

    fn finish(mut self) -> Result<SourceReport, ImportError> {
        self.end_entry();
        self.end_group();
        if self.report.tests.is_empty() {
            return Err(ImportError::new(
                1,
                "the fio text has no results",
                "import the lines from 'NAME: (groupid=0, jobs=1)' on, or those below 'Run status group'",
            ));
        }
        let is_single = self.report.tests.len() == 1 && self.report.tests[0].imported.entries.len() == 1;
        for test in &mut self.report.tests {
            let found = self.loads.get(&(test.name.clone(), test.group));
            // A job that was given no name in the results.
            let only = self.loads.values().next().filter(|_| self.loads.len() == 1 && is_single);
            let imported = &mut test.imported;
            if let Some((load, _)) = found.or(only) {
                let depth = imported.load.queue_depth;
                imported.load = ImportedLoad { queue_depth: load.queue_depth.or(depth), ..load.clone() };
            }
            imported.load.jobs = imported.entries.iter().map(|entry| entry.jobs).sum();
            (imported.tool, imported.tool_version) = ("fio".to_owned(), self.version.clone());
            imported.disks.clone_from(&self.disks);
            for missing in &self.missing {
                miss(&mut imported.missing, missing.clone());
            }
        }
        if let (true, Some(progress)) = (is_single, &self.progress) {
            let entry = &mut self.report.tests[0].imported.entries[0];
            progress::take(Context { style: self.style, segment: progress }, &self.version, entry);
        }
        Ok(self.report)
    }
}

/// `4K-4K/4K-4K/4K-4K` of 1.x and 2.x, `(R) 4096B-4096B, (W) 4096B-4096B, (T) ...` of 3.x.
fn block_sizes(body: &str, style: UnitStyle) -> PerOp<Option<BlockRange>> {
    let Some(text) = body.split_once("bs=").map(|(_, rest)| rest) else { return PerOp::default() };
    let size = |text: &str| {
        let number = Number::parse(text)?;
        let bytes = match number.unit {
            "" => number.value,
            unit => number::bytes_in(number, unit, style).ok()?.value,
        };
        Some(bytes.round() as u64).filter(|&size| size > 0 && size < 1 << 40)
    };
    let range = |text: &str| {
        let (min, max) = text.trim().split_once('-')?;
        Some(BlockRange { min: size(min)?, max: size(max)? })
    };
    let mut sizes = PerOp::default();
    if !text.trim_start().starts_with('(') {
        let end = text.find([',', ' ']).unwrap_or(text.len());
        for (op, part) in Op::DATA.into_iter().zip(text[..end].split('/')) {
            sizes[op] = range(part);
        }
        return sizes;
    }
    for (op, mark) in [(Op::Read, "(R)"), (Op::Write, "(W)"), (Op::Trim, "(T)")] {
        let part = text.split_once(mark).map(|(_, rest)| rest.split([',', '(']).next().unwrap_or(rest));
        sizes[op] = part.and_then(range);
    }
    sizes
}
