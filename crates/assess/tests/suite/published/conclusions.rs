//! What the articles conclude, and what fathom concludes from the same figures.

/// A conclusion of an article.
pub struct Conclusion {
    pub article: &'static str,
    pub theirs: &'static str,
    pub ours: &'static str,
    /// The figures it rests on, `run/metric`.
    pub evidence: &'static [&'static str],
}

pub const CONCLUSIONS: &[Conclusion] = &[
    Conclusion {
        article: "AWS vs DigitalOcean (2016)",
        theirs: "gp2 gives 3,000 IOPS, reads, writes and a mix alike: a limit of the volume",
        ours: "A shared IOPS limit, but the burst rate of it: 50 GiB sustain 150 IOPS and hold 3,000 for 31 min 35 s; the three runs spent \
               55 % of the burst credits",
        evidence: &[
            "a0-aws-randrw/read.iops",
            "a0-aws-randread/read.iops",
            "a0-aws-randwrite/write.iops",
            "a0-claims/aws.gp2_50gib.baseline",
        ],
    },
    Conclusion {
        article: "AWS vs DigitalOcean (2016)",
        theirs: "DigitalOcean is faster: 86,630 read IOPS against 3,016",
        ours: "Not comparable: a local SSD of the host against a volume behind a network, and a client whose CPU was busy; its \
               random writes (8,850 IOPS) took 118 s, not 30 s as the text says",
        evidence: &[
            "a0-do-randread/read.iops",
            "a0-do-randwrite/write.runtime",
            "a0-claims/do.randwrite.time",
        ],
    },
    Conclusion {
        article: "How to Benchmark DigitalOcean Volumes (2018)",
        theirs: "Up to 32k the IOPS limit of 5,000 applies, above it the bandwidth limit of 200 MB/s",
        ours: "The same: the crossover block size is 39.1 KiB; at 32k the volume still reaches 5,000 IOPS, although the text says less",
        evidence: &["a1-do-crossover/bs32k.iops", "a1-do-crossover/bs64k.iops", "a1-do-bw-test/write.bw"],
    },
    Conclusion {
        article: "How to Benchmark DigitalOcean Volumes (2018)",
        theirs: "A depth of 64 or more is needed to measure the limits",
        ours: "More than needed: at 0.56 ms, 5,000 IOPS need 3 I/Os in flight, and depth 4 reaches them; a deeper queue adds latency alone",
        evidence: &["a1-do-expectations/saturation_qd.4k", "a1-do-lat-read/lat.avg"],
    },
    Conclusion {
        article: "AWS vs Azure (2012-13)",
        theirs: "Provisioned IOPS deliver what was ordered, 1,020 of 1,000 and 2,040 of 2,000",
        ours: "The same for 4k; sequential reads of both stop at 33.5 MB/s, so another limit than the ordered IOPS applies there",
        evidence: &[
            "a2-aws-E-file/rand4k_read_iops",
            "a2-aws-F-file/rand4k_read_iops",
            "a2-aws-E-benchmark/avg_transfer",
            "a2-aws-F-benchmark/avg_transfer",
        ],
    },
    Conclusion {
        article: "AWS vs Azure (2012-13)",
        theirs: "Standard disks give 1,046 to 16,409 IOPS where about 100 are published",
        ours: "A small test file in a cache: an access anywhere on the disk takes 8 ms, which are 125 IOPS",
        evidence: &[
            "a2-aws-C-file/rand4k_write_iops",
            "a2-aws-C-file/rand4k_qd32_read_iops",
            "a2-aws-D-benchmark/access_time",
        ],
    },
    Conclusion {
        article: "AWS vs Azure (2012-13)",
        theirs: "Azure's cached system disk reads 0 IOPS at depth 32",
        ours: "A stall, which is no rate: no I/O completed while it was measured",
        evidence: &["a2-azure-C-file/rand4k_qd32_read_iops"],
    },
    Conclusion {
        article: "QingCloud block storage (2017)",
        theirs: "The ultra-high-performance class has 25,000 read and 9,944 write IOPS at 0.168 microseconds",
        ours: "A limit per direction: a mix reaches the same 25,000 reads; the latency is 0.168 ms; no limit is published, so nothing is promised",
        evidence: &["a3-perf-randrw/read.iops", "a3-perf-randread/read.iops", "a3-perf-ioping/latency.avg"],
    },
    Conclusion {
        article: "QingCloud block storage (2017)",
        theirs: "The capacity class has 9,107 read and 3,390 write IOPS",
        ours: "Not sustained rates: writes ended at 9,035 IOPS after a mean of 3,390; the mix has 6,655 IOPS, about what reads and \
               writes give that share the time of one disk (6,406 at these rates)",
        evidence: &[
            "a3-cap-randrw/read.iops",
            "a3-cap-randrw/write.iops",
            "a3-cap-randread/read.iops",
            "a3-cap-randwrite/write.iops",
            "a3-cap-randwrite/last_status.write.iops",
        ],
    },
    Conclusion {
        article: "Cloud disks of Tencent (2020-21)",
        theirs: "SSD: 22,700 IOPS and 262 MiB/s; Enhanced SSD: 49,800 IOPS and 354 MiB/s",
        ours: "The limits of both in bandwidth and of the Enhanced SSD in IOPS; the SSD stays below its 26,000 IOPS because 8 I/Os in flight \
               at 0.35 ms give no more: the queue was too shallow",
        evidence: &[
            "a4-tencent_cbs_ssd-1tib/max.iops",
            "a4-tencent_cbs_enhanced_ssd-1tib/max.iops",
            "a4-tencent_cbs_ssd-1tib/max.bw",
        ],
    },
];
