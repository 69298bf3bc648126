//! Phrases that the glossary replaces by a term of the field. Looks at the string literals of the product crates, not at
//! tests, comments or names.

use proc_macro2::{TokenStream, TokenTree};

use super::TidyFinding;
use super::tree::RustFile;
use super::words::has_word;

/// Forbidden phrases, and the terms to use.
const REPLACED: &[(&str, &str)] = &[
    ("broken off", "interrupted"),
    ("under way", "in flight"),
    ("ran dry", "exhausted"),
    ("what was promised", "expectation or published specification"),
    ("not judged", "inconclusive"),
    ("used up", "exhausted"),
    ("for ever", "sustained"),
    ("laying out", "file layout"),
    ("working file", "test file"),
    ("working files", "test files"),
    ("What it tells", "Findings"),
    ("What it is good for", "Workload suitability"),
    ("how sure", "95 % confidence interval"),
    ("modelled volume", "simulated volume"),
    ("modelled volumes", "simulated volumes"),
    ("a second of others", "foreign I/O"),
];

/// Checks the literals of one file of a product crate.
pub fn check(file: &RustFile) -> Vec<TidyFinding> {
    if !file.path.starts_with("crates/") || !file.path.contains("/src/") || file.is_test() {
        return Vec::new();
    }
    let mut literals = Vec::new();
    if let Ok(tokens) = file.text.parse::<TokenStream>() {
        collect(tokens, &mut literals);
    }
    let mut findings = Vec::new();
    for (line, literal) in literals.iter().filter(|(line, _)| *line < file.tests_begin()) {
        for (phrase, term) in REPLACED.iter().filter(|(phrase, _)| has_word(literal, phrase)) {
            findings.push(TidyFinding::new(&file.path, *line, format!("'{phrase}': write '{term}'")));
        }
    }
    findings
}

/// The string literals of `tokens` with their lines; documentation is not among them.
fn collect(tokens: TokenStream, literals: &mut Vec<(usize, String)>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Group(group) => collect(group.stream(), literals),
            TokenTree::Literal(literal) => {
                if let syn::Lit::Str(text) = syn::Lit::new(literal) {
                    literals.push((text.span().start().line, text.value()));
                }
            }
            TokenTree::Ident(name) if name == "doc" => {
                let is_attribute =
                    matches!(tokens.peek(), Some(TokenTree::Punct(sign)) if sign.as_char() == '=');
                if is_attribute {
                    tokens.nth(1);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_found_in_literals_of_product_code_alone() {
        let lines = |path: &str, text: &str| {
            let file = RustFile::parse(path, text).expect("it parses");
            check(&file).iter().map(|finding| finding.line).collect::<Vec<_>>()
        };
        let text = "/// Broken off: ran dry.\nfn f() {\n    g(\"it ran dry\", format!(\"{n} under \\\n way\"));\n}\n\
                    #[cfg(test)]\nmod tests {\n    const A: &str = \"used up\";\n}\n";
        assert_eq!(lines("crates/a/src/a.rs", text), [3, 3]);
        assert_eq!(lines("crates/a/tests/a.rs", text), [0; 0]);
        assert_eq!(lines("xtask/src/a.rs", text), [0; 0]);
        assert_eq!(lines("crates/a/src/a.rs", "const A: &str = \"one for every slot\";"), [0; 0]);
    }
}
