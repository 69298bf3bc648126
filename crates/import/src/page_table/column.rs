//! What the head of a column says: the metric, its unit and the load, in the words of several languages.

/// What a column has.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ColumnKind {
    /// A figure.
    Figure(FigureColumn),
    /// Block sizes, queue depths, numbers of jobs: options of fio, by their names.
    Option(&'static str),
    /// Names of what was measured.
    Label,
}

/// A column of figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FigureColumn {
    pub quantity: Quantity,
    /// As in the head, put plainly; empty where it is not there.
    pub unit: &'static str,
    /// `read` or `write`.
    pub direction: Option<&'static str>,
    /// The order of accesses, in any case.
    pub is_random: Option<bool>,
    /// Bytes in units of 1,024, as fio writes them.
    pub bs: Option<String>,
    pub iodepth: Option<u32>,
    pub numjobs: Option<u32>,
    pub extreme: Option<Extreme>,
    /// `p99`, of latencies.
    pub percentile: Option<&'static str>,
    /// What a number in the column stands for: 1,000 where the head says thousands.
    pub scale: Option<f64>,
    /// A limit or a promise: it was not measured.
    pub is_claimed: bool,
    pub is_burst: bool,
    /// The time of single accesses, as disk testers have it beside a transfer rate.
    pub is_access_time: bool,
}

/// What is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Quantity {
    #[default]
    Iops,
    Bandwidth,
    Latency,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extreme {
    Least,
    Mean,
    Most,
}

/// Units as people write them, in small letters, with what they are; the longest first where one is the beginning of another.
const UNITS: &[(&str, &str, Quantity)] = &[
    ("次/秒", "IOPS", Quantity::Iops),
    ("次每秒", "IOPS", Quantity::Iops),
    ("kiops", "kIOPS", Quantity::Iops),
    ("iops", "IOPS", Quantity::Iops),
    ("io/s", "IOPS", Quantity::Iops),
    ("ops/s", "IOPS", Quantity::Iops),
    ("gib/s", "GiB/s", Quantity::Bandwidth),
    ("mib/s", "MiB/s", Quantity::Bandwidth),
    ("kib/s", "KiB/s", Quantity::Bandwidth),
    ("gb/s", "GB/s", Quantity::Bandwidth),
    ("mb/s", "MB/s", Quantity::Bandwidth),
    ("kb/s", "KB/s", Quantity::Bandwidth),
    ("gbps", "", Quantity::Bandwidth),
    ("mbps", "", Quantity::Bandwidth),
    ("mo/s", "MB/s", Quantity::Bandwidth),
    ("ko/s", "KB/s", Quantity::Bandwidth),
    ("гиб/с", "GiB/s", Quantity::Bandwidth),
    ("миб/с", "MiB/s", Quantity::Bandwidth),
    ("киб/с", "KiB/s", Quantity::Bandwidth),
    ("гб/с", "GB/s", Quantity::Bandwidth),
    ("мб/с", "MB/s", Quantity::Bandwidth),
    ("кб/с", "KB/s", Quantity::Bandwidth),
    ("毫秒", "ms", Quantity::Latency),
    ("微秒", "us", Quantity::Latency),
    ("мкс", "us", Quantity::Latency),
    ("мс", "ms", Quantity::Latency),
    ("msec", "ms", Quantity::Latency),
    ("usec", "us", Quantity::Latency),
    ("ms", "ms", Quantity::Latency),
    ("us", "us", Quantity::Latency),
    ("μs", "us", Quantity::Latency),
    ("µs", "us", Quantity::Latency),
    ("ns", "ns", Quantity::Latency),
];

/// Words for what is counted.
const QUANTITIES: &[(&str, Quantity)] = &[
    ("iops", Quantity::Iops),
    ("throughput", Quantity::Bandwidth),
    ("bandwidth", Quantity::Bandwidth),
    ("transfer rate", Quantity::Bandwidth),
    ("speed", Quantity::Bandwidth),
    ("吞吐", Quantity::Bandwidth),
    ("带宽", Quantity::Bandwidth),
    ("帶寬", Quantity::Bandwidth),
    ("速率", Quantity::Bandwidth),
    ("速度", Quantity::Bandwidth),
    ("пропускн", Quantity::Bandwidth),
    ("скорость", Quantity::Bandwidth),
    ("débit", Quantity::Bandwidth),
    ("bande passante", Quantity::Bandwidth),
    ("durchsatz", Quantity::Bandwidth),
    ("bandbreite", Quantity::Bandwidth),
    ("latenc", Quantity::Latency),
    ("latenz", Quantity::Latency),
    ("access time", Quantity::Latency),
    ("response time", Quantity::Latency),
    ("时延", Quantity::Latency),
    ("時延", Quantity::Latency),
    ("延迟", Quantity::Latency),
    ("延遲", Quantity::Latency),
    ("访问时间", Quantity::Latency),
    ("訪問時間", Quantity::Latency),
    ("响应时间", Quantity::Latency),
    ("задержк", Quantity::Latency),
    ("время доступа", Quantity::Latency),
    ("время отклика", Quantity::Latency),
];

/// Heads of columns of options.
const OPTIONS: &[(&str, &str)] = &[
    ("block size", "bs"),
    ("blocksize", "bs"),
    ("taille de bloc", "bs"),
    ("blockgröße", "bs"),
    ("块大小", "bs"),
    ("塊大小", "bs"),
    ("размер блока", "bs"),
    ("queue depth", "iodepth"),
    ("iodepth", "iodepth"),
    ("队列深度", "iodepth"),
    ("隊列深度", "iodepth"),
    ("глубина очереди", "iodepth"),
    ("numjobs", "numjobs"),
    ("threads", "numjobs"),
    ("jobs", "numjobs"),
    ("线程", "numjobs"),
    ("потоков", "numjobs"),
];

pub(crate) const READS: &[&str] = &["read", "读", "讀", "чтени", "lecture", "lesen"];
pub(crate) const WRITES: &[&str] = &["write", "写", "寫", "запис", "écriture", "schreib"];
const RANDOM: &[&str] = &["rand", "随机", "隨機", "случайн", "aléatoire", "zufällig"];
const SEQUENTIAL: &[&str] = &["seq", "顺序", "順序", "последовательн", "séquentiel", "连续"];
const LEAST: &[&str] = &["min", "最小", "最低", "минимальн"];
const MOST: &[&str] = &["max", "peak", "最大", "最高", "峰值", "максимальн", "пиков"];
const MEAN: &[&str] = &["avg", "average", "mean", "平均", "средн", "moyen", "mittel"];
const ACCESS_TIME: &[&str] = &["access time", "访问时间", "訪問時間", "время доступа"];
const BURST: &[&str] = &["burst", "爆发", "爆發", "突发", "突發"];

/// Ends of what a rate or a price is for, and shares: no figures of a volume.
const RATIOS: &[&str] = &[
    "/$", "$/", "/€", "€/", "/usd", "usd/", "/eur", "/gb", "/gib", "/tb", "/tib", "/watt", "/month", "/iops",
    "на гб", "за гб", "на доллар", "на рубль", "每gb", "每gib", "每元", "每tb",
];
/// Devices other than disks.
const OTHER_DEVICES: &[&str] = &[
    "pcie", "sata", "network", "ethernet", "memory", "cpu", "interface", "сети", "сеть", "网络", "網絡",
    "内存",
];
const SPREADS: &[&str] =
    &["stdev", "std.", "std dev", "deviation", "jitter", "variance", "σ", "标准差", "отклонен"];
const CLAIMS: &[&str] = &[
    "limit", "claim", "spec", "rated", "advertised", "guarantee", "promise", "data sheet", "datasheet",
    "baseline", "provisioned", "nominal", "expected", "theoretical", "лимит", "заявлен", "паспорт", "标称",
    "宣称", "限制", "理论",
];
const THOUSANDS: &[&str] = &["(k)", "[k]", "k iops", "x1000", "x 1000", "×1000", "thousand", "тыс", "千"];
const TEN_THOUSANDS: &[&str] = &["万", "萬"];
/// Words for percentiles, the longest first.
const PERCENTILES: &[(&str, &str)] = &[
    ("99.99", "p99.99"),
    ("99.9", "p99.9"),
    ("p999", "p99.9"),
    ("p99", "p99"),
    ("99th", "p99"),
    ("99%", "p99"),
    ("99 %", "p99"),
    ("p95", "p95"),
    ("95th", "p95"),
    ("95%", "p95"),
    ("95 %", "p95"),
    ("p90", "p90"),
    ("90th", "p90"),
    ("p50", "p50"),
    ("50th", "p50"),
    ("median", "p50"),
    ("медиан", "p50"),
    ("中位", "p50"),
];

/// True of what is put in relation to something else than time.
fn is_ratio(lower: &str) -> bool {
    let is_time = |rest: &str| rest.starts_with("sec") || rest.starts_with("s ") || rest == "s";
    has(lower, RATIOS) || lower.split(" per ").skip(1).any(|rest| !is_time(rest))
}

pub(crate) fn has(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

/// A number that ends before `end`, and what stands before it.
fn number_before(text: &str, end: usize) -> Option<u32> {
    let before = text[..end].trim_end();
    let start = before
        .rfind(|sign: char| !sign.is_ascii_digit())
        .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    before[start..].parse().ok()
}

/// A block size in a text: `4k` of `4KB random read`.
pub(super) fn block_size(text: &str) -> Option<String> {
    let lower = text.to_lowercase();
    let bytes = lower.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let starts = bytes[at].is_ascii_digit()
            && (at == 0 || !bytes[at - 1].is_ascii_alphanumeric() && bytes[at - 1] != b'.');
        if !starts {
            at += 1;
            continue;
        }
        let digits = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let end = at + digits;
        let rest = lower[end..].trim_start();
        let unit = ["kib", "kb", "k", "mib", "mb", "m", "ko", "кб", "киб", "к"].into_iter().find(|unit| {
            rest.strip_prefix(unit).is_some_and(|rest| {
                // Neither a word nor a rate.
                !rest.starts_with(|sign: char| sign.is_ascii_alphanumeric() || sign == '/' || sign == '.')
            })
        });
        if let Some(unit) = unit {
            let sign = if unit.starts_with('m') { 'm' } else { 'k' };
            return Some(format!("{}{sign}", &lower[at..end]));
        }
        at = end;
    }
    None
}

/// A queue depth in a text: 32 of `QD32`, `Q32T1`, `iodepth=32`, `32 threads` being none.
fn depth(text: &str) -> Option<u32> {
    let after = |mark: &str| {
        let at = text.find(mark)? + mark.len();
        let rest = text[at..].trim_start_matches([' ', '=', ':', '-']);
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    let counted = |mark: &str| number_before(text, text.find(mark)?);
    let marked = ["iodepth", "queue depth", "qd", "队列深度", "隊列深度"].into_iter().find_map(after);
    let short = || text.find('q').filter(|at| *at == 0 || !text.as_bytes()[at - 1].is_ascii_alphabetic());
    marked.or_else(|| short().and_then(|_| after("q"))).or_else(|| ["個", "个"].into_iter().find_map(counted))
}

/// The unit at an end of a text, or in brackets: `(MB/s)`.
pub(super) fn unit_of(text: &str) -> Option<(&'static str, Quantity)> {
    // Bits, or bytes that somebody wrote so.
    if ["Mb/s", "Gb/s", "Kb/s", "bit/s"].iter().any(|unit| text.contains(unit)) {
        return Some(("", Quantity::Bandwidth));
    }
    let text = text.to_lowercase().replace("/sec", "/s").replace("/сек", "/с");
    let known =
        |word: &str| UNITS.iter().find(|(unit, ..)| *unit == word).map(|&(_, unit, kind)| (unit, kind));
    let inside = text.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map(|(inside, _)| inside);
    let parts = inside.into_iter().flat_map(|inside| inside.split([',', ' ', ';']));
    let words = text.split([' ', ',', '(', ')', '[', ']', ':']);
    let mut all = parts.chain(words).chain(std::iter::once(text.as_str()));
    all.find_map(|word| known(word.trim()))
}

/// What a head says.
pub(super) fn column(head: &str) -> ColumnKind {
    if head.split_whitespace().nth(MAX_HEAD_WORDS).is_some() {
        return ColumnKind::Label;
    }
    let lower = head.to_lowercase();
    let unit = unit_of(head);
    let named = QUANTITIES.iter().filter_map(|&(word, quantity)| Some((lower.find(word)?, quantity)));
    let named = named.min_by_key(|(at, _)| *at).map(|(_, quantity)| quantity);
    let is_iops = lower.contains("iops");
    let is_rate_word = has(&lower, BURST) && (lower.contains("rate") || lower.contains('率'));
    let quantity = match (unit, named) {
        (Some((_, quantity)), _) => quantity,
        (None, _) if is_iops => Quantity::Iops,
        (None, Some(quantity)) => quantity,
        (None, None) if is_rate_word => Quantity::Bandwidth,
        (None, None) => {
            let option = OPTIONS.iter().find(|(word, _)| lower.contains(word));
            return option.map_or(ColumnKind::Label, |&(_, name)| ColumnKind::Option(name));
        }
    };
    let percentile = PERCENTILES.iter().find(|(word, _)| lower.contains(word)).map(|&(_, name)| name);
    let is_share = lower.contains('%') && percentile.is_none();
    let is_other = is_ratio(&lower) || is_share || has(&lower, OTHER_DEVICES) || has(&lower, SPREADS);
    // A sentence that has such a word is no head.
    if head.chars().count() > MAX_HEAD || is_other || percentile.is_some() && quantity != Quantity::Latency {
        return ColumnKind::Label;
    }
    let (reads, writes) = (has(&lower, READS), has(&lower, WRITES));
    let (random, sequential) = (has(&lower, RANDOM), has(&lower, SEQUENTIAL));
    let extreme = [(LEAST, Extreme::Least), (MOST, Extreme::Most), (MEAN, Extreme::Mean)];
    ColumnKind::Figure(FigureColumn {
        quantity,
        unit: unit.map(|(unit, _)| unit).unwrap_or(if quantity == Quantity::Iops { "IOPS" } else { "" }),
        direction: match (reads, writes) {
            (true, false) => Some("read"),
            (false, true) => Some("write"),
            _ => None,
        },
        is_random: (random != sequential).then_some(random),
        bs: block_size(&lower),
        iodepth: depth(&lower),
        numjobs: None,
        extreme: extreme.into_iter().find(|(words, _)| has(&lower, words)).map(|(_, extreme)| extreme),
        percentile,
        scale: match quantity {
            Quantity::Iops if has(&lower, TEN_THOUSANDS) => Some(1e4),
            Quantity::Iops if has(&lower, THOUSANDS) => Some(1e3),
            _ => None,
        },
        is_claimed: has(&lower, CLAIMS),
        is_burst: has(&lower, BURST),
        is_access_time: has(&lower, ACCESS_TIME),
    })
}

/// More words are a sentence, and no head.
const MAX_HEAD_WORDS: usize = 8;
/// Letters of the longest head.
const MAX_HEAD: usize = 48;

/// The heads in one line that has nothing else: `Block Size IOPS Bandwidth`.
pub(super) fn heads_in_line(line: &str) -> Option<Vec<String>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut heads: Vec<String> = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let name = (1..=3.min(words.len() - at)).rev().find_map(|count| {
            let name = words[at..at + count].join(" ");
            let is_one = match column(&name) {
                ColumnKind::Figure(_) => count == 1,
                ColumnKind::Option(_) => true,
                ColumnKind::Label => false,
            };
            is_one.then_some((name, count))
        });
        let (name, count) = name?;
        heads.push(name);
        at += count;
    }
    (heads.len() > 1).then_some(heads)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(head: &str) -> FigureColumn {
        match column(head) {
            ColumnKind::Figure(figure) => figure,
            other => panic!("{head}: {other:?}"),
        }
    }

    #[test]
    fn heads_in_several_languages() {
        let least = figure("最小傳輸速率(MB/s)");
        assert_eq!(
            (least.quantity, least.unit, least.extreme),
            (Quantity::Bandwidth, "MB/s", Some(Extreme::Least))
        );
        let access = figure("訪問時間(ms)");
        assert_eq!((access.quantity, access.unit), (Quantity::Latency, "ms"));
        let random = figure("32個4KB隨機讀IOPS");
        assert_eq!(
            (random.quantity, random.direction, random.is_random, random.bs.as_deref(), random.iodepth),
            (Quantity::Iops, Some("read"), Some(true), Some("4k"), Some(32))
        );
        let sequential = figure("順序寫(KB/s)");
        assert_eq!(
            (sequential.unit, sequential.direction, sequential.is_random),
            ("KB/s", Some("write"), Some(false))
        );
        assert!(figure("爆發率(MB/s)").is_burst);
        assert_eq!(figure("最大IOPS (次/秒)").unit, "IOPS");
        assert_eq!(figure("Скорость чтения, МБ/с").unit, "MB/s");
        assert_eq!(figure("Задержка (мс)").quantity, Quantity::Latency);
        assert_eq!(figure("RND4K Q32T1 read [MB/s]").iodepth, Some(32));
        assert_eq!(figure("Débit (Mo/s)").unit, "MB/s");
        let german = figure("Durchsatz beim Schreiben (MB/s)");
        assert_eq!((german.quantity, german.direction), (Quantity::Bandwidth, Some("write")));
        assert_eq!(figure("Latency").unit, "");
        for (head, expected) in [
            ("Block Size", ColumnKind::Option("bs")),
            ("队列深度", ColumnKind::Option("iodepth")),
            ("磁盤", ColumnKind::Label),
            ("圖例", ColumnKind::Label),
        ] {
            assert_eq!(column(head), expected, "{head}");
        }
    }

    #[test]
    fn heads_in_one_line_are_told_apart() {
        let heads = heads_in_line("Block Size IOPS Bandwidth").unwrap();
        assert_eq!(heads, ["Block Size", "IOPS", "Bandwidth"]);
        assert_eq!(heads_in_line("The bandwidth is low"), None);
        assert_eq!(block_size("256K"), Some("256k".to_owned()));
        assert_eq!((block_size("100 MB/s"), block_size("1MiB seq")), (None, Some("1m".to_owned())));
    }
}
