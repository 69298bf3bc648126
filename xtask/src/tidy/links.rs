//! Every relative link in Markdown leads to a file that is there, and to a heading that is in it.

use super::{TidyFinding, Tree};

/// Checks all Markdown of the workspace.
pub fn check(tree: &Tree) -> Vec<TidyFinding> {
    let pages = || tree.texts.iter().filter(|(path, _)| path.ends_with(".md"));
    let exists = |path: &str| path.is_empty() || tree.paths.iter().any(|known| known == path);
    let headings = |path: &str| tree.texts.get(path).map(|text| slugs(text));
    pages().flat_map(|(path, text)| broken(path, text, &exists, &headings)).collect()
}

fn broken(
    path: &str,
    text: &str,
    exists: &dyn Fn(&str) -> bool,
    headings: &dyn Fn(&str) -> Option<Vec<String>>,
) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (line, target) in links(text) {
        let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
        let resolved = if file.is_empty() { path.to_owned() } else { resolve(path, file) };
        if !exists(&resolved) {
            findings.push(TidyFinding::new(path, line, format!("link to {target}: no {resolved}")));
        } else if !heading.is_empty()
            && headings(&resolved).is_some_and(|known| !known.iter().any(|slug| slug == heading))
        {
            findings.push(TidyFinding::new(path, line, format!("link to {target}: no such heading")));
        }
    }
    findings
}

/// Relative link targets with their lines; code is passed over.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let outside_code: String = line.split('`').step_by(2).collect();
        for part in outside_code.split("](").skip(1) {
            let target = part.split([')', ' ']).next().unwrap_or_default();
            let is_relative = !target.contains("://") && !target.starts_with("mailto:");
            if is_relative && !target.is_empty() {
                found.push((number, target.to_owned()));
            }
        }
    }
    found
}

/// Lines outside fenced and indented code, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        (!fenced && !is_fence && !line.starts_with("    ")).then_some((index + 1, line))
    })
}

/// The anchors of the headings, as GitHub forms them.
fn slugs(text: &str) -> Vec<String> {
    let headings =
        prose(text).filter_map(|(_, line)| line.strip_prefix('#')).map(|line| line.trim_start_matches('#'));
    headings
        .map(|heading| {
            let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

/// The path from the workspace's directory that `target` means in the page `from`.
fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    if target.starts_with('/') {
        parts.clear();
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_resolved_from_the_page() {
        let check =
            |from, target, expected| assert_eq!(resolve(from, target), expected, "{target} in {from}");
        check("README.md", "docs/a.md", "docs/a.md");
        check("docs/adr/0001.md", "../a.md", "docs/a.md");
        check("docs/adr/0001.md", "./0002.md", "docs/adr/0002.md");
        check("docs/adr/0001.md", "/README.md", "README.md");
        check("docs/a.md", "adr/", "docs/adr");
        check("docs/a.md", "..", "");
    }

    #[test]
    fn broken_links_are_found_outside_of_code() {
        let text = "# A heading: with `code`\n[a](b.md) [web](https://x.y/z)\n[c](d.md \"title\") `[e](f.md)`\n\
                    ```\n[g](h.md)\n```\n[i](#a-heading-with-code) [j](#none)\n[k](b.md#there) [l](b.md#not)\n";
        let exists = |path: &str| ["b.md", "page.md"].contains(&path);
        let headings = |path: &str| Some(if path == "b.md" { vec!["there".to_owned()] } else { slugs(text) });
        let found: Vec<String> =
            broken("page.md", text, &exists, &headings).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "page.md:3: link to d.md: no d.md",
                "page.md:7: link to #none: no such heading",
                "page.md:8: link to b.md#not: no such heading",
            ]
        );
    }
}
