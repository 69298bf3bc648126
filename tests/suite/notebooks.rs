//! What Jupyter's own library and pandas make of a report as a notebook.

use std::path::Path;

use fathom_tests::{fathom, loading, must_run, need, run, scratch, skip};

/// Validates the notebook, runs all its cells, and compares what they hold with the rows and charts of the report.
const READ: &str = r##"
import io, json, nbformat, pandas
notebook = nbformat.read("run.ipynb", as_version=nbformat.NO_CONVERT)
nbformat.validate(notebook)
assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
scope = {}
for cell in notebook.cells:
    if cell.cell_type == "code":
        exec(compile(cell.source, cell.id, "exec"), scope)
rows = pandas.read_json("run.jsonl", lines=True)
results = scope["results"]
assert list(results.columns) == list(rows.columns), results.columns
assert results["test"].tolist() == rows["test"].tolist()
charts = [frame for name, frame in scope.items() if name.startswith("chart_")]
assert all(len(frame) > 0 for frame in charts), charts
maps = [frame for frame in charts if frame.index.name is not None]
plots = [frame for frame in charts if frame.index.name is None]
page = open("run.html", encoding="utf-8").read().split('<script type="application/json">')[1:]
drawn = [json.loads(part.split("</script>")[0]) for part in page]
sums = [sum(cell[2] for cell in chart["cells"]) for chart in drawn if chart["form"] == "heat"]
assert set(sums) <= {frame.sum().sum() for frame in maps}, sums
drawn = [chart for chart in drawn if chart["form"] != "heat"]
assert len(drawn) == len(plots), (len(drawn), len(plots))
for chart, frame in zip(drawn, plots):
    values = sorted(point[2] for series in chart["series"] for point in series["points"])
    columns = frame.columns[1 if chart["form"] == "bars" else 2:]
    held = frame[columns].to_numpy(dtype=float, na_value=float("nan")).flatten().tolist()
    assert sorted(value for value in held if value == value) == values, chart["title"]
print(len(results), len(plots) > 5, len(maps))
"##;

#[test]
fn a_notebook_is_valid_and_its_cells_hold_the_values_of_the_page() {
    need!(tool "pip3", tool "python3");
    let readers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/python-readers");
    if !readers.join("nbformat").exists() {
        return skip("needs the Python packages that cargo xtask test installs");
    }
    let _loading = loading();
    let home = scratch();
    let fathom = || {
        let mut command = fathom(home.path());
        command.current_dir(home.path());
        command
    };
    let label = "--label=a=\"\"\"</script>\\\u{1b}[31m\u{202e}";
    let bench = ["bench", "--quick", "--only=rand-read,rand-mixed,lat-read", "--keep", label];
    run(fathom().args(bench).arg("sim:custom?iops=700&latency=500us&parallelism=64")).assert_code(0);
    for name in ["run.ipynb", "run.jsonl", "run.html"] {
        run(fathom().args(["report", "-o", name])).assert_code(0);
    }
    let mut python = std::process::Command::new("python3");
    python.current_dir(home.path()).env("PYTHONPATH", readers).env("MPLBACKEND", "Agg");
    let shown = must_run(python.env("MPLCONFIGDIR", home.path()).args(["-c", READ]));
    assert_eq!(shown, "3 True 3");
}
