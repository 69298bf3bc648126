//! How long files, functions and parameter lists may be. The exceptions only shrink.

use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use super::TidyFinding;
use super::tree::RustFile;

const FILE_LINES: usize = 400;
const FUNCTION_LINES: usize = 70;
/// As many as clippy allows: with fewer, values that do not belong together are passed as tuples.
const PARAMETERS: usize = 7;
/// Lines inside the braces of an unsafe block.
const UNSAFE_LINES: usize = 5;
/// How far under its maximum an exception may lie before the maximum must follow it down.
const SLACK: usize = 10;

/// A file or function that is longer than the rule, and why it may be.
struct Exception {
    path: &'static str,
    /// The function's name; empty for the file.
    function: &'static str,
    maximum: usize,
    reason: &'static str,
}

/// Raise no maximum here: split the file or the function instead.
const EXCEPTIONS: &[Exception] = &[];

/// A table is read row by row; its length says nothing.
fn is_table(path: &str) -> bool {
    path.contains("/table/")
}

/// The lengths in one file.
pub fn check(file: &RustFile) -> Vec<TidyFinding> {
    if file.is_test() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let lines = file.tests_begin() - 1;
    let limit = limit_of(EXCEPTIONS, &file.path, "", FILE_LINES);
    if lines > limit && !is_table(&file.path) {
        findings.push(TidyFinding::new(
            &file.path,
            0,
            format!("{lines} lines before the tests, allowed are {limit}"),
        ));
    }
    let mut functions = Functions::default();
    functions.visit_file(&file.syntax);
    for function in functions.seen {
        let limit = limit_of(EXCEPTIONS, &file.path, &function.name, FUNCTION_LINES);
        let mut report = |message| findings.push(TidyFinding::new(&file.path, function.line, message));
        if function.lines > limit {
            report(format!("{} has {} lines, allowed are {limit}", function.name, function.lines));
        }
        if function.parameters > PARAMETERS {
            report(format!(
                "{} has {} parameters, allowed are {PARAMETERS}",
                function.name, function.parameters
            ));
        }
    }
    let too_long = functions.unsafe_blocks.iter().filter(|(_, lines)| *lines > UNSAFE_LINES);
    findings.extend(too_long.map(|(line, lines)| {
        TidyFinding::new(
            &file.path,
            *line,
            format!("unsafe block of {lines} lines, allowed are {UNSAFE_LINES}"),
        )
    }));
    findings
}

/// Exceptions that are no longer needed, or whose maximum can be lowered.
pub fn check_exceptions(files: &[RustFile]) -> Vec<TidyFinding> {
    EXCEPTIONS.iter().filter_map(|exception| ratchet(exception, files)).collect()
}

fn ratchet(exception: &Exception, files: &[RustFile]) -> Option<TidyFinding> {
    let what = if exception.function.is_empty() { "the file" } else { exception.function };
    let report = |message: String| Some(TidyFinding::new(exception.path, 0, message));
    let Some(file) = files.iter().find(|file| file.path == exception.path) else {
        return report("has an exception but is not there".to_owned());
    };
    let (length, rule) = if exception.function.is_empty() {
        (Some(file.tests_begin() - 1), FILE_LINES)
    } else {
        let mut functions = Functions::default();
        functions.visit_file(&file.syntax);
        let lines =
            functions.seen.iter().filter(|seen| seen.name == exception.function).map(|seen| seen.lines).max();
        (lines, FUNCTION_LINES)
    };
    match length {
        None => report(format!("{what} has an exception ({}) but is not there", exception.reason)),
        Some(length) if length <= rule => {
            report(format!("{what} needs no exception any more: {length} lines"))
        }
        Some(length) if length + SLACK < exception.maximum => {
            report(format!("{what} has shrunk: lower its maximum from {} to {length}", exception.maximum))
        }
        Some(_) => None,
    }
}

fn limit_of(exceptions: &[Exception], path: &str, function: &str, rule: usize) -> usize {
    let found = exceptions.iter().find(|exception| exception.path == path && exception.function == function);
    found.map_or(rule, |exception| exception.maximum)
}

struct Function {
    name: String,
    line: usize,
    lines: usize,
    parameters: usize,
}

/// Collects the functions and unsafe blocks outside tests.
#[derive(Default)]
struct Functions {
    seen: Vec<Function>,
    unsafe_blocks: Vec<(usize, usize)>,
}

impl Functions {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let (start, end) = (signature.span().start().line, block.span().end().line);
        let parameters =
            signature.inputs.iter().filter(|input| matches!(input, syn::FnArg::Typed(_))).count();
        self.seen.push(Function {
            name: signature.ident.to_string(),
            line: start,
            lines: end - start + 1,
            parameters,
        });
    }
}

impl<'a> Visit<'a> for Functions {
    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        if !is_for_tests(&function.attrs) {
            self.add(&function.sig, &function.block);
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'a syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.add(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_expr_unsafe(&mut self, block: &'a syn::ExprUnsafe) {
        let span = block.block.span();
        let lines = (span.end().line - span.start().line + 1).saturating_sub(2).max(1);
        self.unsafe_blocks.push((span.start().line, lines));
        visit::visit_expr_unsafe(self, block);
    }
}

/// True for `#[cfg(test)]` and `#[test]`.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        meta => meta.path().is_ident("test"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        let file = RustFile::parse(path, text).expect("the test's source parses");
        check(&file).iter().map(ToString::to_string).collect()
    }

    fn function(name: &str, lines: usize) -> String {
        format!("fn {name}() {{\n{}}}\n", "    work();\n".repeat(lines - 2))
    }

    #[test]
    fn long_files_are_found_but_not_for_their_tests_or_tables() {
        let long = "const A: u8 = 1;\n".repeat(401);
        let just = "const A: u8 = 1;\n".repeat(400);
        assert_eq!(found("a.rs", &long), ["a.rs: 401 lines before the tests, allowed are 400"]);
        assert_eq!(found("a.rs", &just), [""; 0]);
        assert_eq!(found("a.rs", &format!("{just}#[cfg(test)]\nmod tests {{\n{long}}}\n")), [""; 0]);
        assert_eq!(found("crates/x/src/table/a.rs", &long), [""; 0]);
        assert_eq!(found("crates/x/tests/a.rs", &long), [""; 0]);
    }

    #[test]
    fn long_functions_are_found_at_any_depth() {
        let long = function("f", 71);
        assert_eq!(found("a.rs", &function("f", 70)), [""; 0]);
        assert_eq!(found("a.rs", &long), ["a.rs:1: f has 71 lines, allowed are 70"]);
        assert_eq!(
            found("a.rs", &format!("impl A {{\n{long}}}\n")),
            ["a.rs:2: f has 71 lines, allowed are 70"]
        );
        assert_eq!(
            found("a.rs", &format!("trait A {{\n{long}}}\n")),
            ["a.rs:2: f has 71 lines, allowed are 70"]
        );
        assert_eq!(found("a.rs", &format!("#[cfg(test)]\nmod tests {{\n{long}}}\n")), [""; 0]);
    }

    #[test]
    fn braces_in_strings_and_comments_do_not_count() {
        let text = format!("fn f() {{\n    let a = \"{{{{\"; // {{\n}}\n{}", function("g", 70));
        assert_eq!(found("a.rs", &text), [""; 0]);
    }

    #[test]
    fn many_parameters_are_found_and_self_does_not_count() {
        let eight = "fn f(a: u8, b: u8, c: u8, d: u8, e: u8, g: u8, h: u8, i: u8) {}\n";
        assert_eq!(found("a.rs", eight), ["a.rs:1: f has 8 parameters, allowed are 7"]);
        let seven = "impl A { fn f(&self, a: u8, b: u8, c: u8, d: u8, e: u8, g: u8, h: u8) {} }\n";
        assert_eq!(found("a.rs", seven), [""; 0]);
    }

    #[test]
    fn long_unsafe_blocks_are_found() {
        let block =
            |lines| format!("fn f() {{\n    unsafe {{\n{}    }}\n}}\n", "        work();\n".repeat(lines));
        assert_eq!(found("a.rs", &block(5)), [""; 0]);
        assert_eq!(found("a.rs", &block(6)), ["a.rs:2: unsafe block of 6 lines, allowed are 5"]);
    }

    #[test]
    fn exceptions_only_shrink() {
        let files = [RustFile::parse("a.rs", &function("f", 80)).expect("parses")];
        let check = |path, function, maximum, expected: Option<&str>| {
            let exception = Exception { path, function, maximum, reason: "a list" };
            let found = ratchet(&exception, &files).map(|finding| finding.to_string());
            assert_eq!(found.as_deref(), expected, "{path} {function} {maximum}");
        };
        check("a.rs", "f", 80, None);
        check("a.rs", "f", 90, None);
        check("a.rs", "f", 91, Some("a.rs: f has shrunk: lower its maximum from 91 to 80"));
        check("a.rs", "g", 80, Some("a.rs: g has an exception (a list) but is not there"));
        check("a.rs", "", 500, Some("a.rs: the file needs no exception any more: 80 lines"));
        check("b.rs", "", 500, Some("b.rs: has an exception but is not there"));
        let exceptions = [Exception { path: "a.rs", function: "f", maximum: 80, reason: "a list" }];
        assert_eq!(limit_of(&exceptions, "a.rs", "f", 70), 80);
        assert_eq!(limit_of(&exceptions, "a.rs", "g", 70), 70);
    }
}
