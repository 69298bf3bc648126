//! Trends: the form that chooses a metric, and its course over the stored runs.

use super::super::PageBody;
use super::super::writer::HtmlWriter;
use super::forms::{TextField, choice, refusal};
use super::{FormValues, Site, SitePage};

/// What the page of a trend shows.
#[derive(Clone, Copy, Debug)]
pub struct TrendPage<'a> {
    /// What was asked for.
    pub values: &'a FormValues,
    /// Why that cannot be shown.
    pub error: Option<&'a str>,
    /// The trend, once it was asked for.
    pub body: Option<&'a PageBody>,
}

const METRIC: TextField =
    TextField { name: "metric", label: "Metric", example: "rand-read.read.iops or p99" };
const FILTERS: [TextField; 7] = [
    TextField { name: "test", label: "Test", example: "rand-read" },
    TextField { name: "target", label: "Target", example: "/mnt/data" },
    TextField { name: "host", label: "Host", example: "" },
    TextField { name: "device", label: "Device", example: "" },
    TextField { name: "tag", label: "Tag", example: "" },
    TextField { name: "since", label: "Since", example: "2026-11-01 or 30d" },
    TextField { name: "until", label: "Until", example: "" },
];
/// What runs can be grouped by, besides labels.
const GROUPS: [&str; 5] = ["target", "device", "host", "type", "hour"];

impl Site {
    /// The page of a trend.
    pub fn trend(&self, page: &TrendPage<'_>) -> SitePage {
        let mut out = HtmlWriter::default();
        out.raw("<section aria-label=\"Metric and runs\">\n");
        refusal(page.error, &mut out);
        out.raw("<form method=\"get\" action=\"/trend\" class=\"fields\">\n");
        METRIC.write(page.values, &mut out);
        choice("by", "Series by", None, &GROUPS, page.values, &mut out);
        FILTERS.iter().for_each(|field| field.write(page.values, &mut out));
        out.raw("<button type=\"submit\">Show the trend</button>\n</form>\n");
        out.element("p", &[("class", "note")], "A metric may name its test, as in rand-read.p99.");
        out.raw("</section>\n");
        let nothing = PageBody::default();
        self.page("Trends", &out.finish(), page.body.unwrap_or(&nothing))
    }
}
