//! What a sentence is about: the test above it, or another disk, a promise, a comparison, a setting or a reader of the page.
//!
//! Only the first may be held against a test, so a doubt about it is enough to leave a sentence alone.

/// Words of promises, limits and expectations.
const PROMISES: &[&str] = &[
    "limit", "limits", "limited", "data sheet", "datasheet", "spec", "specs", "specification",
    "specifications", "specified", "rated", "advertised", "advertises", "promised", "promises", "claims",
    "claimed", "guaranteed", "guarantees", "provisioned", "baseline", "vendor", "manufacturer", "expect",
    "expects", "expected", "target", "goal", "would", "should", "could", "can", "may", "might", "must", "if",
    "will", "need", "needs", "needed", "require", "requires", "required", "theoretical", "sla", "gives you",
    "pay", "paid", "buy", "bought", "purchased", "ordered", "theoretically",
];
/// Words of bounds.
const BOUNDS: &[&str] =
    &["up to", "at least", "at most", "below", "under", "above", "over", "within", "between"];
/// Words of comparisons.
const COMPARISONS: &[&str] = &[
    "than", "compared", "comparison", "versus", "vs", "instead", "faster", "slower", "difference", "drop",
    "dropped", "lost", "loses", "varies", "rose", "rises", "fell", "falls", "by", "unlike", "whereas",
    "while",
];
/// Words for other disks, other people and other times.
const OTHERS: &[&str] = &[
    "other", "others", "another", "different", "old", "older", "previous", "previously", "earlier", "before",
    "former", "next", "later", "following", "mine", "your", "his", "her", "their", "people", "users",
    "typical", "typically", "usual", "usually", "normal", "normally", "without", "waited", "yesterday",
    "after", "production", "replica", "laptop", "network", "service", "database", "install", "installs",
    "installed", "set up", "setup", "fill", "filled", "reboot", "restart", "first run", "second run",
    "third run", "last run", "last year", "second test", "second time", "crashed", "a hard disk",
    "a hard drive", "an hdd", "an ssd", "average disk", "average drive", "an nvme", "a disk", "a drive",
];
/// Words of settings.
const SETTINGS: &[&str] =
    &["told", "set", "setting", "sets", "configured", "option", "queue", "queue depth", "qd", "iodepth"];
/// Words of ratios.
const RATIOS: &[&str] = &[
    "each", "every", "per gb", "per gib", "per tb", "per tib", "per dollar", "per $", "per watt", "per core",
    "per thread", "per job", "per disk", "per usd", "/gb", "/gib", "/tb", "/$",
];
/// What makes a sentence one about something else than what was measured.
const OTHER: [&[&str]; 6] = [PROMISES, BOUNDS, COMPARISONS, OTHERS, SETTINGS, RATIOS];
/// The same in languages whose words are inflected or stand without blanks: the beginnings of words, or parts of the text.
const OTHER_STEMS: &[&str] = &[
    "лимит",
    "огранич",
    "предел",
    "заявл",
    "обеща",
    "паспорт",
    "специфик",
    "номинал",
    "производител",
    "гарантир",
    "ожида",
    "должен",
    "должн",
    "нужн",
    "требу",
    "до ",
    "по сравнению",
    "сравн",
    "чем",
    "быстрее",
    "медленнее",
    "меньше",
    "больше",
    "стар",
    "прежн",
    "предыдущ",
    "друг",
    "раньше",
    "обычн",
    "если",
    "без ",
    "на доллар",
    "за доллар",
    "на гб",
    "за гб",
    "глубин",
    "вчера",
    "после",
    "перезагруз",
    "теоретич",
    "сеть",
    "сети",
    "сетев",
    "кажд",
    "установк",
    "旧",
    "舊",
    "标称",
    "標稱",
    "厂商",
    "廠商",
    "官方",
    "宣称",
    "承诺",
    "规格",
    "上限",
    "限制",
    "限额",
    "预期",
    "期望",
    "目标",
    "应该",
    "应当",
    "需要",
    "要求",
    "高达",
    "可达",
    "至少",
    "以上",
    "以下",
    "不到",
    "超过",
    "相比",
    "比",
    "其他",
    "其它",
    "另一",
    "别人",
    "之前",
    "以前",
    "如果",
    "每gb",
    "每美元",
    "每元",
    "通常",
    "一般",
    "深度",
    "理论",
    "机械",
    "网络",
    "昨天",
    "每个",
    "重启",
    "安装",
    "下降",
    "损失",
    "购买",
];
/// Kinds of disks: a sentence that names one speaks of the test only if the text above it does too, or if it points at it.
const KINDS: &[&str] = &["hdd", "hard disk", "hard drive", "ssd", "nvme", "sata", "sas", "raid", "optane"];
const POINTERS: &[&str] = &["this", "our", "该", "此", "этот", "наш"];
/// Words of a sentence that says what a test did and nothing else. The list of what else a sentence may speak of has no end, so one
/// with any other word is left alone.
const PLAIN: &[&str] = &[
    "the", "a", "this", "that", "these", "it", "its", "so", "and", "of", "in", "at", "is", "was", "are",
    "were", "we", "i", "can", "see", "as", "get", "gets", "got", "give", "gives", "gave", "reach", "reached",
    "reaches", "achieve", "achieved", "achieves", "do", "does", "did", "deliver", "delivers", "delivered",
    "show", "shows", "showed", "measured", "result", "results", "took", "takes", "finished", "completed",
    "ran", "runs", "run", "test", "tests", "benchmark", "job", "fio", "ioping", "disk", "drive", "volume",
    "device", "ssd", "hdd", "nvme", "our", "here", "about", "approximately", "around", "only", "just",
    "nearly", "almost", "roughly", "read", "reads", "write", "writes", "reading", "writing", "random",
    "sequential", "iops", "o", "latency", "average", "mean", "avg", "max", "maximum", "maximal", "min",
    "minimum", "minimal", "peak", "median", "percentile", "th", "bandwidth", "throughput", "rate", "runtime",
    "per", "second", "seconds", "minute", "minutes", "s", "ms", "us", "µs", "μs", "sec", "usec", "msec",
    "microsecond", "microseconds", "millisecond", "milliseconds", "kb", "mb", "gb", "kib", "mib", "gib",
    "operations", "requests", "total", "time", "very", "also", "then", "thus", "therefore", "performance",
    "io", "в", "и", "с", "за", "на", "мс", "мкс", "мин", "мы", "это", "мб", "гб",
];
/// The beginnings of such words in Russian.
const PLAIN_STEMS: &[&str] = &[
    "диск",
    "тест",
    "выполня",
    "операци",
    "чтени",
    "запис",
    "секунд",
    "заверш",
    "занял",
    "заняло",
    "задержк",
    "составля",
    "составил",
    "около",
    "средн",
    "микросекунд",
    "миллисекунд",
    "минут",
    "скорост",
    "случайн",
    "последовательн",
    "достиг",
    "показ",
    "получ",
    "выда",
    "результат",
    "максимальн",
    "минимальн",
    "примерно",
    "всего",
    "видим",
    "пропускн",
    "способност",
    "этот",
    "равн",
    "время",
    "работ",
];
/// Such words in Chinese, those first that others are a part of.
const PLAIN_PARTS: &[&str] = &[
    "毫秒", "微秒", "分钟", "每秒", "运行时间", "运行", "时间", "测试", "总共", "操作", "用了", "耗时",
    "达到", "随机", "顺序", "延迟", "时延", "平均", "大约", "最大", "最小", "最高", "最低", "带宽", "吞吐量",
    "吞吐", "可以", "看到", "我们", "结果", "磁盘", "硬盘", "云盘", "性能", "左右", "请求", "百分位", "中位",
    "完成", "读取", "写入", "秒", "读", "写", "的", "为", "是", "了", "次", "和", "约", "数", "共", "到",
    "在", "内", "这", "该", "值",
];
/// Words behind which the name of a disk or a machine stands.
const OWNERS: &[&str] = &[
    "disk", "drive", "volume", "device", "host", "server", "machine", "instance", "vm", "node", "model",
    "диск", "сервер", "диска",
];
const PROGRAMS: &[&str] = &[
    "fio", "ioping", "dd", "hdparm", "sysbench", "iostat", "bonnie", "iozone", "crystaldiskmark",
    "kdiskmark", "diskspd",
];
/// Sentences that go on with what the one before them is about.
const GOES_ON: &[&str] = &["it", "that", "this", "they", "there", "он", "она", "оно", "это", "它", "这"];

/// True of letters that stand in words with blanks between them.
fn is_of_word(sign: char) -> bool {
    sign.is_alphanumeric() && !is_ideograph(sign)
}

fn is_ideograph(sign: char) -> bool {
    ('\u{2e80}'..='\u{9fff}').contains(&sign)
}

/// Whether `text` has `word`, with no letter before it, and none behind it if it is to be `whole`.
fn has_at_boundary(text: &str, word: &str, whole: bool) -> bool {
    let begins_word = word.starts_with(is_of_word);
    let ends_word = whole && word.ends_with(is_of_word);
    text.match_indices(word).any(|(at, _)| {
        let is_begun = begins_word && text[..at].ends_with(is_of_word);
        let goes_on = ends_word && text[at + word.len()..].starts_with(is_of_word);
        !is_begun && !goes_on
    })
}

/// Whether a text in lower case has one of these words, as a whole.
pub(super) fn has_word(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| has_at_boundary(text, word, true))
}

/// Whether a text in lower case has a word that begins so.
pub(super) fn has_stem(text: &str, stems: &[&str]) -> bool {
    stems.iter().any(|stem| has_at_boundary(text, stem, false))
}

/// Whether a sentence, in lower case, says by itself that it is about something else.
pub(super) fn is_about_other(sentence: &str) -> bool {
    // What one can see is there, unlike what a disk can do.
    let sentence = sentence.replace("can see", "see");
    OTHER.iter().any(|words| has_word(&sentence, words)) || has_stem(&sentence, OTHER_STEMS)
}

/// Whether a sentence, in lower case, has the subject of the one before it.
pub(super) fn goes_on(sentence: &str) -> bool {
    let first = sentence.trim_start();
    GOES_ON.iter().any(|word| {
        let rest = first.strip_prefix(word);
        rest.is_some_and(|rest| word.starts_with(is_ideograph) || !rest.starts_with(is_of_word))
    })
}

/// Whether a sentence names a disk, a machine or a program that `own`, the text of the test and above it, does not name.
pub(super) fn names_other(sentence: &str, own: &str, tool: &str) -> bool {
    let (lower, own_lower) = (sentence.to_lowercase(), own.to_lowercase());
    let knows = |name: &str| has_at_boundary(&own_lower, &name.to_lowercase(), true);
    let mut unknown_kinds = KINDS.iter().filter(|kind| !has_stem(&own_lower, &[kind]));
    let names_kind = unknown_kinds.any(|kind| has_stem(&lower, &[kind])) && !has_stem(&lower, POINTERS);
    let names_program = PROGRAMS.iter().any(|name| has_word(&lower, &[name]) && !tool.contains(name));
    let words: Vec<&str> = sentence
        .split(|sign: char| !(is_of_word(sign) || matches!(sign, '-' | '_' | '.')))
        .map(|word| word.trim_matches(['-', '_', '.']))
        .filter(|word| !word.is_empty())
        .collect();
    let owned = words
        .windows(2)
        .any(|pair| OWNERS.contains(&pair[0].to_lowercase().as_str()) && is_name(pair[1]) && !knows(pair[1]));
    names_kind || names_program || owned || words.iter().any(|word| is_model(word) && !knows(word))
}

/// Whether a sentence says what a test did and nothing else; `name` is what the page calls the test.
pub(super) fn is_plain(sentence: &str, name: &str) -> bool {
    let (lower, name) = (sentence.to_lowercase(), name.to_lowercase());
    // Words that are plain in these phrases only.
    let lower = lower.replace("you can see", "we see").replace("on average", "average");
    let mut words = lower.split(|sign: char| !is_of_word(sign)).filter(|word| !word.is_empty());
    let is_known = |word: &str| {
        word.contains(|sign: char| sign.is_ascii_digit())
            || PLAIN.contains(&word)
            || PLAIN_STEMS.iter().any(|stem| word.starts_with(stem))
            || has_at_boundary(&name, word, true)
    };
    let ideographs: String = lower.chars().map(|sign| if is_ideograph(sign) { sign } else { ' ' }).collect();
    let rest = PLAIN_PARTS.iter().fold(ideographs, |rest, part| rest.replace(part, " "));
    words.all(is_known) && !rest.contains(|sign: char| sign.is_alphanumeric())
}

/// True of what stands behind `disk` as its name: `B`, `sdb1`, not `reached`.
fn is_name(word: &str) -> bool {
    word != "IOPS" && word.starts_with(char::is_alphabetic) && word.chars().any(|sign| sign.is_uppercase())
}

/// True of the name of a model or a type: letters with digits behind them, which percentiles have too.
fn is_model(word: &str) -> bool {
    let letters = word.trim_start_matches(|sign: char| sign.is_alphabetic());
    let is_percentile = word.starts_with(['p', 'P']) && letters.len() + 1 == word.len();
    letters.len() < word.len() && letters.chars().any(|sign| sign.is_ascii_digit()) && !is_percentile
}

/// Whether the comments of readers begin at a line: their heading, or the name of the first who has one.
pub(super) fn begins_comments(line: &str) -> bool {
    const TITLES: &[&str] = &[
        "comment",
        "comments",
        "reply",
        "replies",
        "responses",
        "leave a reply",
        "leave a comment",
        "discussion",
        "комментарии",
        "комментариев",
        "ответить",
        "评论",
        "留言",
        "回复",
    ];
    let lower = line.trim().to_lowercase();
    let title: String = lower.chars().filter(|sign| sign.is_alphabetic() || *sign == ' ').collect();
    TITLES.contains(&title.trim())
        || lower.ends_with("says:")
        || lower.ends_with("wrote:")
        || is_reader(&lower)
}

/// True of `joe: I got ...`: what somebody says of himself.
fn is_reader(lower: &str) -> bool {
    let Some((name, said)) = lower.split_once([':', '：']) else { return false };
    let is_short = name.split_whitespace().count() <= 2 && name.chars().count() <= 24;
    let said = said.trim_start();
    is_short && (["i ", "i'", "we ", "my ", "я ", "у меня", "我"].iter().any(|word| said.starts_with(word)))
}

/// True of a line of a shell, or of the text of somebody else.
pub(super) fn is_command_or_quote(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with(['$', '>']) || line.contains(" --")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_about_something_else_are_known_by_their_words() {
        for other in [
            "my old disk reached only 500 iops",
            "according to the data sheet it does 90,000 iops",
            "the limit of the volume is 3000 iops",
            "i expected 20,000 iops",
            "the price is 120 usd, so 57 iops per dollar",
            "other users report 12,000 iops",
            "this is fast, compared with 6842 iops of disk a",
            "我的旧硬盘只有 120 iops",
            "厂商标称 90000 iops",
            "старый диск давал 120 iops",
            "yesterday it reached 500 iops",
            "the bandwidth of the network is 125 mb/s",
            "it took 30 s to install fio",
            "i paid for 3000 iops",
            "the latency rose by 5 ms",
            "理论值 90000 iops",
            "вчера было 500 iops",
            "fio was told to run for 60 seconds",
        ] {
            assert!(is_about_other(other), "{other}");
        }
        for own in [
            "thanks to the separated disks the test reached 25,089 iops",
            "as you can see, the read bandwidth is 267 mb/s",
            "диск выполняет 33215 операций чтения в секунду",
            "тест завершен за ~ 30 секунд",
            "读操作iops为25086",
        ] {
            assert!(!is_about_other(own), "{own}");
        }
    }

    #[test]
    fn a_plain_sentence_has_no_word_on_anything_else() {
        for plain in [
            "The test took 30 s.",
            "As you can see, the read bandwidth is 267 MB/s.",
            "读操作IOPS为25086,写操作的IOPS为8366,总共运行时间31秒",
            "Тест завершен за ~ 30 секунд",
            "The latency was 356 us on average",
            "Alpha does 500 IOPS",
        ] {
            assert!(is_plain(plain, "Random reads on Alpha"), "{plain}");
        }
        for other in [
            "Reddit shows 12,000 IOPS",
            "Our application does 500 IOPS",
            "You get 3000 IOPS",
            "A good disk does 100,000 IOPS",
            "It started at 500 IOPS",
            "Ночью 500 IOPS",
            "晚上只有 500 IOPS",
            "The PCIe bandwidth is 985 MB/s",
        ] {
            assert!(!is_plain(other, "Random reads on Alpha"), "{other}");
        }
    }

    #[test]
    fn names_that_the_test_does_not_have_are_others() {
        let own = "# Disk A\nfio --filename=/dev/sdb\nrandread: (g=0): rw=randread";
        for other in
            ["Disk B reached 500 IOPS", "gp2 reached 500 IOPS", "The SSD had 500 IOPS", "ioping said 0.3 ms"]
        {
            assert!(names_other(other, own, "fio"), "{other}");
        }
        for same in
            ["Disk A reached 500 IOPS", "This SSD had 500 IOPS", "p99 latency: 400 us", "fio had 5 ms"]
        {
            assert!(!names_other(same, own, "fio"), "{same}");
        }
    }

    #[test]
    fn readers_have_comments() {
        for line in
            ["Comments", "3 Comments", "## Комментарии (4)", "Joe says:", "joe: I got 500 IOPS on mine."]
        {
            assert!(begins_comments(line), "{line}");
        }
        for line in ["Result: 500 IOPS", "No comment on this result", "Reads: 5 ms"] {
            assert!(!begins_comments(line), "{line}");
        }
    }
}
