//! Why a figure is not explained: by run and metric, the first that fits.

const LOCAL: &str = "a client that was busy (53 % system time) and a drive that slowed with its writes; the as-measured model has neither";
const AS_MEASURED: &str =
    "the as-measured model has one rate per direction and one latency, whose spread is assumed";
const CPU: &str = "the client's processor is not modelled";
const KERNEL: &str = "what the client's kernel merged or its file system did besides; the model has neither";
const STATUS: &str =
    "the last moment of the run as the status line shows it; the model's rate does not waver";
const WAVERS: &str =
    "how the rate and the latency wavered on a shared cluster; the model keeps its cap to the millisecond";
const OUTLIERS: &str = "the extremes of 213,935 requests on a shared cluster; of the entry's latency only the mean is known, and its spread is ours";
const SUBMITTING: &str = "the time of the submitting call; on a simulated volume it takes none";
const ONE_DRAW: &str = "a single request; the model draws its latencies at random around the same mean";
const SPREAD: &str = "the spread of ten requests, of which one took 710 us; the model's spread is ours";
const WRITES: &str = "writes waited longer than reads there; the entry has one latency for both";
const PROSE: &str = "a round figure of the text; the article's own output says otherwise";
const CACHE: &str =
    "another disk of the type, or a detail of its cache, which the as-measured model does not have";
const HD_TUNE: &str = "HD Tune's sequential sweep; the rate is that of the 16 KiB unit at neither 1,000 nor 2,000 IOPS, and the same for both: something before the volume limits it";
const IO1_UNIT: &str = "contradicts the 16 KiB unit: at 33 to 42 MB/s the volume of 1,000 IOPS serves over 2,000 of them a second; the same rate on both volumes means another limit (the instance's is 62.5 MB/s)";
const IO1_ACCESS: &str =
    "19 to 20 ms an access cannot go with 1,020 and 2,040 IOPS one at a time on the same volumes";
const IO1_WRITE: &str =
    "0.53 ms for a single write; of the entry's latency only the upper bound of reads is known";
const AZURE_CACHE: &str =
    "preview of 2012 with a cache on the host; the as-measured model has its reads alone";
const AZURE_SYSTEM: &str =
    "the system disk: another cache and other disks than the data disk of the as-measured model";
const AZURE_HANG: &str = "the disk hung: 0 was measured twice at depth 32, which is no rate";
const AZURE_NONE: &str =
    "access and sequential transfer contradict the latency of the file benchmark on the same disk";
const AZURE_TEMP: &str =
    "the instance's temporary disk, served from memory: the as-measured model has its file benchmark alone";
const PREMIUM_PROSE: &str =
    "prose that rounds a screenshot, on a volume of three times the size of the measured one";
const ADVICE: &str = "advice of the article, not a result";
const CPU_CREDIT: &str = "CPU credit of the instance; its test used 4 % of the CPU and never came near it";

/// Run (or how it begins), how the metric begins, the reason.
const REASONS: &[(&str, &str, &str)] = &[
    ("a0-do-", "cpu.", CPU),
    ("a0-do-", "last_status.", STATUS),
    ("a0-do-", "disk.merge", KERNEL),
    ("a0-do-", "disk.ios", KERNEL),
    ("a0-do-ioping", "", ONE_DRAW),
    ("a0-do-", "", LOCAL),
    ("a0-claims", "do.", LOCAL),
    ("a0-claims", "aws.t2_small", CPU_CREDIT),
    ("a0-claims", "aws.randrw.time", PROSE),
    ("a0-aws-ioping", "request.", ONE_DRAW),
    ("a0-aws-ioping", "latency.", SPREAD),
    ("a0-aws-randrw", "disk.ticks.write", WRITES),
    ("a0-aws-", "disk.ticks.", KERNEL),
    ("a0-aws-", "cpu.", CPU),
    ("a0-aws-", "last_status.", STATUS),
    ("a0-aws-", "disk.", KERNEL),
    ("a1-do-", "cpu.", CPU),
    ("a1-do-", "slat.", SUBMITTING),
    ("a1-do-lat-read", "", OUTLIERS),
    ("a1-do-expectations", "min_recommended", ADVICE),
    ("a1-do-bw-test", "", WAVERS),
    ("a2-aws-C-", "", CACHE),
    ("a2-aws-D-", "", CACHE),
    ("a2-aws-E-benchmark", "access_time", IO1_ACCESS),
    ("a2-aws-F-benchmark", "access_time", IO1_ACCESS),
    ("a2-aws-E-benchmark", "", HD_TUNE),
    ("a2-aws-F-benchmark", "", HD_TUNE),
    ("a2-aws-F-file", "rand4k_write_iops", IO1_WRITE),
    ("a2-aws-E-file", "seq_", IO1_UNIT),
    ("a2-aws-F-file", "seq_", IO1_UNIT),
    ("a2-azure-C-file", "rand4k_qd32_read_iops", AZURE_HANG),
    ("a2-azure-C-", "", AZURE_SYSTEM),
    ("a2-azure-D-", "", AZURE_TEMP),
    ("a2-azure-E-", "", AZURE_NONE),
    ("a2-azure-F-", "", AZURE_CACHE),
    ("a3-", "cpu.", CPU),
    ("a3-", "last_status.", STATUS),
    ("a3-", "disk.", KERNEL),
    ("a3-", "request.", ONE_DRAW),
    ("a3-", "", AS_MEASURED),
    ("a4-premium-3t", "", PREMIUM_PROSE),
];

/// Why; empty where no reason is known, which a test finds.
pub(super) fn why(run: &str, metric: &str) -> &'static str {
    let fits = |(of_run, of_metric, _): &&(&str, &str, &str)| {
        run.starts_with(of_run) && metric.starts_with(of_metric)
    };
    REASONS.iter().find(fits).map_or("", |(_, _, reason)| reason)
}
