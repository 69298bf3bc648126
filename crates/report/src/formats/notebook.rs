//! A Jupyter notebook: the report as Markdown, each chart as a picture above the code that makes it again, and all values as data
//! frames of pandas.
//!
//! The pictures are PNG, which Jupyter shows of a notebook that nobody has trusted yet, as GitHub and editors do. Text of others
//! stands in string literals only: it cannot become code.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use fathom_model::text::{is_hidden, shown};
use serde::Serialize;
use serde_json::{Value, json};

use super::chart::{self, Chart};
use super::{jsonl, markdown, png};
use crate::Style;
use crate::view::{AxisScale, Block, Cell, HeatMap, Plot, PlotForm, PlotPoint, PlotSeries, Section, View};

/// A notebook as nbformat 4.5 has it.
#[derive(Serialize)]
struct Notebook {
    cells: Vec<CellData>,
    metadata: Value,
    nbformat: u32,
    nbformat_minor: u32,
}

#[derive(Serialize)]
struct CellData {
    cell_type: &'static str,
    id: String,
    metadata: Value,
    source: String,
    #[serde(flatten)]
    code: Option<CodeData>,
}

/// What a cell of code has besides.
#[derive(Serialize)]
struct CodeData {
    execution_count: Option<u32>,
    outputs: Vec<Value>,
}

/// Cells in reading order.
#[derive(Default)]
struct Cells {
    cells: Vec<CellData>,
    charts: usize,
}

impl Cells {
    fn push(&mut self, cell_type: &'static str, metadata: Value, source: String, code: Option<CodeData>) {
        let id = format!("cell-{}", self.cells.len() + 1);
        self.cells.push(CellData { cell_type, id, metadata, source, code });
    }

    fn push_markdown(&mut self, source: String) {
        if !source.is_empty() {
            self.push("markdown", json!({}), source, None);
        }
    }

    /// Code that a reader sees on demand: most of it is data.
    fn push_code(&mut self, source: String, outputs: Vec<Value>) {
        let code = CodeData { execution_count: None, outputs };
        self.push("code", json!({"jupyter": {"source_hidden": true}}), source, Some(code));
    }

    fn push_section(&mut self, section: &Section) {
        let mut text = Section { title: section.title.clone(), blocks: Vec::new() };
        for block in &section.blocks {
            match block {
                Block::Plots(plots) => {
                    self.push_text(&mut text);
                    plots.iter().for_each(|plot| self.push_plot(plot));
                }
                Block::HeatMaps(maps) => {
                    self.push_text(&mut text);
                    maps.iter().for_each(|map| self.push_map(map));
                }
                other => text.blocks.push(other.clone()),
            }
        }
        self.push_text(&mut text);
    }

    /// The blocks so far as one cell; none are left.
    fn push_text(&mut self, text: &mut Section) {
        let text = std::mem::take(text);
        if !text.title.is_empty() || !text.blocks.is_empty() {
            self.push_markdown(markdown::section_text(&text));
        }
    }

    fn push_plot(&mut self, plot: &Plot) {
        let name = self.next_name();
        let source = match plot.form {
            PlotForm::Bars => bars_source(plot, &name),
            PlotForm::Steps | PlotForm::Lines => curves_source(plot, &name),
        };
        let chart = Chart { title: plot.title.clone(), plots: vec![plot.clone()], ..Chart::default() };
        self.push_code(source, picture(&chart));
    }

    fn push_map(&mut self, map: &HeatMap) {
        let name = self.next_name();
        let rows = map.rows.iter().map(|(name, cells)| {
            let values = cells.iter().map(|cell| json!(cell.as_ref().and_then(Cell::number)));
            std::iter::once(json!(name)).chain(values).collect()
        });
        let heads: Vec<String> =
            std::iter::once(map.down.to_owned()).chain(map.columns.iter().cloned()).collect();
        let index = literal(map.down);
        let source = format!("{}{name} = {name}.set_index({index})\n{name}", frame(&name, &heads, rows));
        let title = map.name();
        self.push_code(source, picture(&Chart { title, maps: vec![map.clone()], ..Chart::default() }));
    }

    fn next_name(&mut self) -> String {
        self.charts += 1;
        format!("chart_{}", self.charts)
    }
}

/// The notebook.
pub fn render(view: &View, style: &Style) -> String {
    let view = view.in_units_of(style);
    let mut cells = Cells::default();
    cells.push_markdown(markdown::head_text(&view, style));
    cells.push_code(results_source(&view), Vec::new());
    view.sections.iter().for_each(|section| cells.push_section(section));
    let metadata = json!({
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    });
    let notebook = Notebook { cells: cells.cells, metadata, nbformat: 4, nbformat_minor: 5 };
    // Neither numbers nor names in it can fail.
    let mut text = serde_json::to_string_pretty(&notebook).unwrap_or_default();
    text.push('\n');
    text
}

/// The values behind the report as a data frame.
fn results_source(view: &View) -> String {
    let mut source =
        "# The values behind this report, one row each.\nimport json\n\nimport pandas as pd\n\n".to_owned();
    source.push_str("rows = [\n");
    for row in &view.data.rows {
        // A string takes everything.
        let _ = writeln!(source, "    {},", literal(&jsonl::object(&view.data.columns, row)));
    }
    source.push_str("]\nresults = pd.DataFrame([json.loads(row) for row in rows])\nresults");
    source
}

/// A statement that makes the data frame `name`.
fn frame(name: &str, heads: &[String], rows: impl Iterator<Item = Vec<Value>>) -> String {
    let heads: Vec<String> = heads.iter().map(|head| literal(head)).collect();
    let data = literal(&rows.map(Value::Array).collect::<Value>().to_string());
    format!("{name} = pd.DataFrame(json.loads({data}), columns=[{}])\n", heads.join(", "))
}

/// `heads`, then the names of the series, each once: columns of a data frame are addressed by them.
fn column_names(plot: &Plot, heads: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = heads.iter().map(|head| (*head).to_owned()).collect();
    for (place, series) in plot.series.iter().enumerate() {
        let name = match series.name.as_str() {
            "" if plot.y.label.is_empty() => format!("value {}", place + 1),
            "" => plot.y.label.clone(),
            name => name.to_owned(),
        };
        let is_taken = names.contains(&name);
        names.push(if is_taken { format!("{name} ({})", place + 1) } else { name });
    }
    names
}

/// A row of a data frame: a stretch or moment, and what each series has there.
struct SpanRow {
    from: f64,
    to: f64,
    values: Vec<Option<f64>>,
}

fn span_rows(plot: &Plot) -> Vec<SpanRow> {
    let series = plot.series.iter().enumerate();
    let mut points: Vec<(usize, &PlotPoint)> =
        series.flat_map(|(place, series)| series.points.iter().map(move |point| (place, point))).collect();
    points.sort_by(|(_, one), (_, other)| one.from.total_cmp(&other.from).then(one.to.total_cmp(&other.to)));
    let mut rows: Vec<SpanRow> = Vec::new();
    for (place, &PlotPoint { from, to, y, .. }) in points {
        let is_same = |row: &&mut SpanRow| (row.from, row.to) == (from, to) && row.values[place].is_none();
        match rows.last_mut().filter(is_same) {
            Some(row) => row.values[place] = Some(y),
            None => {
                let mut values = vec![None; plot.series.len()];
                values[place] = Some(y);
                rows.push(SpanRow { from, to, values });
            }
        }
    }
    rows
}

/// A row for each stretch or moment, with the values of all series.
fn curves_source(plot: &Plot, name: &str) -> String {
    let axis = if plot.x.label.is_empty() { "x" } else { plot.x.label.as_str() };
    let (from, to) = (format!("{axis} from"), format!("{axis} to"));
    let names = column_names(plot, &[&from, &to]);
    let rows = span_rows(plot).into_iter().map(|row| {
        let values = row.values.into_iter().map(|value| json!(value));
        [json!(row.from), json!(row.to)].into_iter().chain(values).collect()
    });
    let form = if plot.form == PlotForm::Steps { ", drawstyle=\"steps-post\"" } else { ", marker=\"o\"" };
    let values: Vec<String> = names.iter().skip(2).map(|name| literal(name)).collect();
    format!(
        "{}{name}.plot(x={}, y=[{}]{form}{}{}, title={}, ylabel={})",
        frame(name, &names, rows),
        literal(&from),
        values.join(", "),
        logarithmic("logx", plot.x.scale),
        logarithmic("logy", plot.y.scale),
        label(&plot.title),
        label(&plot.y.label)
    )
}

/// A row for each group of bars.
fn bars_source(plot: &Plot, name: &str) -> String {
    let names = column_names(plot, &["name"]);
    let rows = plot.x.names.iter().enumerate().map(|(group, group_name)| {
        let value = |series: &PlotSeries| {
            json!(series.points.iter().find(|point| point.from == group as f64).map(|point| point.y))
        };
        std::iter::once(json!(group_name)).chain(plot.series.iter().map(value)).collect()
    });
    format!(
        "{}{name}.plot.barh(x=\"name\"{}, title={}, xlabel={})",
        frame(name, &names, rows),
        logarithmic("logx", plot.y.scale),
        label(&plot.title),
        label(&plot.y.label)
    )
}

/// A text that matplotlib shows as it is.
fn label(text: &str) -> String {
    literal(&text.replace('$', "\\$"))
}

fn logarithmic(argument: &str, scale: AxisScale) -> String {
    match scale {
        AxisScale::Linear => String::new(),
        AxisScale::Logarithmic => format!(", {argument}=True"),
    }
}

/// A picture that Jupyter shows at half the size of its pixels; none where the chart is too high.
fn picture(chart: &Chart) -> Vec<Value> {
    let Ok(png) = png::render(chart) else { return Vec::new() };
    let drawing = chart::draw(chart);
    vec![json!({
        "output_type": "display_data",
        "data": {"image/png": BASE64_STANDARD.encode(png), "text/plain": shown(&chart.title)},
        "metadata": {"image/png": {"width": drawing.width.ceil(), "height": drawing.height.ceil()}},
    })]
}

/// A text as a literal of Python, in which every character is seen.
fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        // A string takes everything.
        let _ = match c {
            '"' | '\\' => write!(out, "\\{c}"),
            _ if is_hidden(c) => write!(out, "\\U{:08x}", u32::from(c)),
            _ => out.write_char(c),
        };
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::chart::sample;
    use crate::view::{Column, Row, Table, ViewHead};

    /// The cells of the notebook of a view with charts and hostile text.
    fn cells() -> Vec<Value> {
        let sample = sample::chart();
        let head = ViewHead { target: vec![sample.title.clone()], ..ViewHead::default() };
        let data = Table::new(
            [Column::left("test"), Column::right("iops")],
            [Row::new([Cell::from("a \"b\"\n\\"), Cell::iops(0.5)])],
        );
        let mut view = View { head: Some(head), data, ..View::default() };
        let blocks = [
            Block::note(sample.title.as_str()),
            Block::Plots(sample.plots),
            Block::HeatMaps(sample.maps),
            Block::note("end"),
        ];
        view.push("Charts", blocks);
        let text = render(&view, &Style::default());
        let notebook: Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!((notebook["nbformat"].as_u64(), notebook["nbformat_minor"].as_u64()), (Some(4), Some(5)));
        notebook["cells"].as_array().expect("it has cells").clone()
    }

    #[test]
    fn text_charts_and_values_have_cells_in_reading_order() {
        let cells = cells();
        let kinds: Vec<&str> = cells.iter().map(|cell| cell["cell_type"].as_str().unwrap_or("")).collect();
        assert_eq!(kinds, ["markdown", "code", "markdown", "code", "code", "code", "markdown"]);
        for cell in &cells {
            let is_code = cell["cell_type"] == "code";
            assert_eq!(cell.get("outputs").is_some(), is_code, "{cell}");
            assert_eq!(cell.get("execution_count").is_some(), is_code, "{cell}");
        }
        for chart in &cells[3..6] {
            let png = chart["outputs"][0]["data"]["image/png"].as_str().expect("it has a picture");
            assert!(BASE64_STANDARD.decode(png).is_ok_and(|png| png.starts_with(b"\x89PNG")));
            assert_eq!(chart["outputs"][0]["metadata"]["image/png"]["width"], 960.0);
        }
    }

    #[test]
    fn text_of_others_stands_in_literals() {
        assert_eq!(
            literal("a\"b\\\n\u{1b}\u{202e}\u{e0001}ü"),
            r#""a\"b\\\U0000000a\U0000001b\U0000202e\U000e0001ü""#
        );
        for cell in cells() {
            let source = cell["source"].as_str().expect("it has a source");
            assert!(source.chars().all(|c| c == '\n' || !is_hidden(c)), "{source}");
            if cell["cell_type"] == "markdown" {
                assert!(!source.replace("\\<", "").contains('<'), "{source}");
            } else {
                // Outside of literals there is nothing of others.
                let plain = source.replace("\\\\", "").replace("\\\"", "");
                let code: String = plain.split('"').step_by(2).collect();
                assert!(!code.contains("alert"), "{source}");
            }
        }
    }
}
