//! Options about the choice of offsets, sizes and files.

use fathom_model::OptionValueKind::{Choice, Int, Size, Text};
use fathom_model::plan::StridedZones;

use super::{ANY, JobOption, MAX_BLOCK, count, flag, int, per_op, row, set, size, switch};
use crate::job_options::{JobOptions, RandomGenerator};
use crate::{distribution, value};

const GENERATORS: [(&str, RandomGenerator); 3] = [
    ("tausworthe", RandomGenerator::Tausworthe),
    ("lfsr", RandomGenerator::Lfsr),
    ("tausworthe64", RandomGenerator::Tausworthe),
];

const SEQUENCERS: [(&str, bool); 2] = [("sequential", false), ("identical", true)];

const ZONE_MODES: [(&str, bool); 2] = [("none", false), ("strided", true)];

pub(super) const ROWS: &[JobOption] = &[
    row("bsrange", Text, block_range).aliases(&["blocksize_range"]).doc(
        "Smallest and largest size of a request, as 4k-64k or read,write,trim ranges; sizes are \
              multiples of the smallest.",
    ),
    flag("bs_unaligned", |options, on| options.bs_unaligned = Some(on))
        .aliases(&["blocksize_unaligned"])
        .doc("Sizes of bsrange are any number of bytes, and offsets are drawn independently."),
    switch("bs_is_seq_rand", |options, on| options.bs_is_seq_rand = Some(on))
        .aliases(&["blocksize_is_seq_rand"])
        .doc(
            "The sizes of bs, bsrange and bssplit are those of sequential and random requests, not of \
              reads and writes.",
        ),
    row("ba", Size, |options, text| {
        per_op(&mut options.plan.io.access.align, text, NEEDED, |size| {
            value::integer_in(size, 1, u64::MAX / 2)
        })
    })
    .aliases(&["blockalign"])
    .doc(
        "Random offsets are multiples of this instead of the smallest block, and are drawn \
              independently.",
    ),
    int("number_ios", ANY, |options, count| options.plan.io.access.number_ios = count).default("0").doc(
        "Stop after this many requests per loop, if the size does not end it earlier; 0 means no \
              limit.",
    ),
    row("random_distribution", Text, |options, text| {
        distribution::per_operation(text).map(|parsed| options.plan.io.access.distribution = parsed)
    })
    .default("random")
    .doc(
        "Distribution of random offsets: random, zipf:THETA, pareto:H, normal:PERCENT, each with \
              :CENTER, or zones as zoned:60/10:40/90 and zoned_abs:60/1g:40/9g.",
    ),
    row("percentage_random", Int, |options, text| {
        per_op(&mut options.plan.io.access.percentage_random, text, NEEDED, value::percent)
    })
    .default("100")
    .doc(
        "Percentage of the requests of a random job at random offsets, or read,write,trim; the \
              others are sequential.",
    ),
    row("random_generator", Choice(&["tausworthe", "lfsr", "tausworthe64"]), |options, text| {
        set(&mut options.random_generator, value::choice(text, &GENERATORS))
    })
    .default("tausworthe")
    .doc(
        "With lfsr every block is visited once even with norandommap; the numbers come from one \
              generator in any case.",
    ),
    row("rw_sequencer", Choice(&["sequential", "identical"]), |options, text| {
        value::choice(text, &SEQUENCERS).map(|repeats| options.plan.io.access.run_repeats = repeats)
    })
    .default("sequential")
    .doc("Whether the requests of rw=randread:N follow the random offset or repeat it."),
    switch("serialize_overlap", |options, on| options.plan.io.serialize_overlap = on)
        .doc("A request that overlaps one in flight, of which one writes, waits for it."),
    row("file_service_type", Text, |options, text| {
        distribution::file_order(text).map(|(order, run)| {
            (options.plan.io.access.files, options.plan.io.access.file_run) = (order, run);
        })
    })
    .default("roundrobin")
    .doc(
        "Order of the files: roundrobin, sequential or random, each with :N requests to a file \
              before the next, or zipf:THETA, pareto:H, normal:PERCENT.",
    ),
    count("openfiles", 1, |options, files| options.plan.io.access.open_files = files)
        .doc("Files in use at a time; the next ones follow when these are finished."),
    row("zonemode", Choice(&["none", "strided"]), |options, text| match text.trim() {
        "zbd" => Err("zoned block devices are not supported: use none or strided".to_owned()),
        text => set(&mut options.strided, value::choice(text, &ZONE_MODES)),
    })
    .default("none")
    .doc("With strided, zones of zonerange bytes are visited in turn."),
    size("zonesize", ANY, |options, bytes| zones(options).size = bytes)
        .default("0")
        .doc("Bytes to move in a zone before the next one."),
    size("zonerange", ANY, |options, bytes| zones(options).range = bytes)
        .default("0")
        .doc("Bytes of a zone; without it, zonesize."),
    size("zoneskip", ANY, |options, bytes| zones(options).skip = bytes)
        .default("0")
        .doc("Bytes between two zones."),
];

/// What an empty list lacks.
const NEEDED: &str = "a number is needed";

fn zones(options: &mut JobOptions) -> &mut StridedZones {
    options.plan.io.access.zones.get_or_insert(StridedZones { size: 0, range: 0, skip: 0 })
}

fn block_range(options: &mut JobOptions, text: &str) -> Result<(), String> {
    per_op(&mut options.bsrange, text, NEEDED, |entry| {
        let ends = entry.split_once(['-', ':']);
        let (low, high) = ends.ok_or("a range is needed, such as 4k-16k: use bs for one size")?;
        let (low, high) = (value::integer_in(low, 1, MAX_BLOCK)?, value::integer_in(high, 1, MAX_BLOCK)?);
        Ok(Some((low.min(high), low.max(high))))
    })
}
