//! The Phoronix Test Suite: results of fio.

use super::{Output, leading};

/// Lines from the head of a test to its result.
const MAX_BELOW: usize = 60;

/// What the head of a test says: `Type: Random Read - Engine: Linux AIO - Direct: Yes - Block Size: 4KB`.
struct Load<'a> {
    text: &'a str,
    rw: &'static str,
    bs: String,
    direct: &'static str,
}

/// `Average: 3450 MB/s` below the head of a test; its rate and its bandwidth are of one test.
pub(super) fn read(lines: &[&str]) -> Vec<Output> {
    let mut all: Vec<Output> = Vec::new();
    let mut head: Option<(usize, &str)> = None;
    for (index, line) in lines.iter().enumerate() {
        let line = line.trim();
        if let Some(text) = head_of(line) {
            head = Some((index, text));
        }
        let Some((start, text)) = head.filter(|(start, _)| index - start < MAX_BELOW) else { continue };
        let Some((value, unit)) = line.strip_prefix("Average:").and_then(leading) else { continue };
        let Some(load) = load_of(text) else { continue };
        let (metric, unit, base) = match unit {
            "IOPS" => ("iops", "IOPS", ""),
            "MB/s" => ("bytes_per_second", "MB/s", "either"),
            _ => continue,
        };
        let direction = if load.rw.ends_with("write") { "write" } else { "read" };
        let metric = format!("{direction}.{metric}");
        if !all.last().is_some_and(|output| is_rest(output, &load, &metric)) {
            let mut output = Output::at(start, "Phoronix Test Suite");
            load.text.trim_start_matches("Type: ").clone_into(&mut output.heading);
            all.push(output);
        }
        let Some(output) = all.last_mut() else { continue };
        let options = [("rw", load.rw), ("bs", load.bs.as_str()), ("direct", load.direct), ("kb_base", base)];
        output.add(index, &format!("{}-{}", load.rw, load.bs), &metric, (value, unit), &options);
    }
    all
}

/// The load in the head of a test, or in the line above its runs.
fn head_of(line: &str) -> Option<&str> {
    let text = &line[line.find("Type: ")?..];
    text.contains("Block Size: ").then(|| text.trim_end_matches([']', ':', ' ']))
}

/// True where an output is of the same test, and lacks this figure.
fn is_rest(output: &Output, load: &Load<'_>, metric: &str) -> bool {
    let is_same = output.heading == load.text.trim_start_matches("Type: ");
    is_same && output.rows.iter().all(|row| row.metric != metric)
}

fn load_of(text: &str) -> Option<Load<'_>> {
    let part = |name: &str| text.split(" - ").find_map(|part| part.trim().strip_prefix(name));
    let rw = match part("Type: ") {
        Some("Random Read") => "randread",
        Some("Random Write") => "randwrite",
        Some("Sequential Read") => "read",
        Some("Sequential Write") => "write",
        _ => return None,
    };
    let bs = part("Block Size: ").unwrap_or_default().trim_end_matches(['B', 'i']).to_lowercase();
    let direct = match part("Direct: ") {
        Some("Yes") => "1",
        Some("No") => "0",
        _ => "",
    };
    Some(Load { text, rw, bs, direct })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, read_op};

    #[test]
    fn figures_of_a_test_are_together_and_its_name_is_its_load() {
        let load = "Type: Random Read - Engine: Linux AIO - Direct: Yes - Block Size: 4KB - Disk Target: Default Test Directory";
        let text = format!(
            "Flexible IO Tester 3.29:\n    pts/fio-1.15.0 [{load}]\n    Test 1 of 1\n        Started Run 3 @ 10:02:00\n\n\
             \x20   {load}:\n        812\n\n    Average: 812 MB/s\n    Deviation: 0.31%\n\n    {load}:\n        208000\n\n\
             \x20   Average: 208000 IOPS\n    Deviation: 0.24%\n"
        );
        let all = found(&text);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].tests[0].heading, load.trim_start_matches("Type: "));
        let read = read_op(&all[0], "randread-4k");
        assert_eq!(
            (read.iops.unwrap().value, read.bytes_per_second.unwrap().value),
            (208_000.0, 812.0 * 1_048_576.0)
        );
        // The same load again is another test.
        assert_eq!(found(&format!("{text}{text}")).len(), 2);
    }
}
