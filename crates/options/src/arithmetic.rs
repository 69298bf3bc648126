//! Variables of job files: `${NAME}`, and `$ncpus`, `$pagesize`, `$mb_memory` with whole-number arithmetic.
//!
//! fio runs bc(1) for the arithmetic; this module gives the same results: integers, with truncating division.

use crate::cli::ParseEnvironment;

/// Longest text that substitution may produce, in bytes.
const LIMIT: usize = 64 * 1024;

/// Replaces the variables of an option line. Arithmetic is evaluated only if the line has a variable with a number of
/// the machine.
pub(crate) fn substitute(line: &str, env: &ParseEnvironment<'_>) -> Result<String, String> {
    let line = variables(line, env.variable)?;
    let numbers = [
        ("$pagesize", env.machine.page_size),
        ("$mb_memory", env.machine.memory_mib),
        ("$ncpus", env.machine.cpus),
    ];
    if !numbers.iter().any(|(name, _)| line.contains(name)) {
        return Ok(line);
    }
    let mut line = line;
    for (name, number) in numbers {
        line = line.replace(name, &number.to_string());
    }
    let Some((key, value)) = line.split_once('=') else { return Ok(line) };
    if !is_expression(value) {
        return Ok(line);
    }
    match evaluate(value)? {
        // "0-2" from `cpus_allowed=0-$ncpus` is a range, not a difference.
        negative if negative < 0 => Ok(line),
        number => Ok(format!("{key}={number}")),
    }
}

fn variables(line: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = line;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start + 2..].find('}') else { break };
        out.push_str(&rest[..start]);
        out.push_str(&variable(&rest[start + 2..start + 2 + length]).unwrap_or_default());
        rest = &rest[start + 3 + length..];
        if out.len() > LIMIT {
            return Err(format!("the variables expand to more than {LIMIT} bytes"));
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// True for numbers joined by operators; all other text stays unchanged.
fn is_expression(value: &str) -> bool {
    let allowed = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '*' | '/' | '%' | '(' | ')' | ' ');
    let value = value.trim();
    value.chars().all(allowed) && !value.ends_with('%') && value.contains(['+', '-', '*', '/', '%', '('])
}

/// Deepest nesting of parentheses.
const MAX_DEPTH: usize = 32;

fn evaluate(text: &str) -> Result<i128, String> {
    let bytes: Vec<u8> = text.bytes().filter(|byte| *byte != b' ').collect();
    let mut parser = ArithmeticParser { bytes: &bytes, at: 0 };
    let value = parser.sum(0)?;
    if parser.at < bytes.len() { Err(parser.unexpected()) } else { Ok(value) }
}

struct ArithmeticParser<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl ArithmeticParser<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn unexpected(&self) -> String {
        match self.peek() {
            Some(byte) => format!("unexpected '{}' in the arithmetic", char::from(byte)),
            None => "the arithmetic ends too early".to_owned(),
        }
    }

    fn sum(&mut self, depth: usize) -> Result<i128, String> {
        let mut value = self.product(depth)?;
        while let Some(operator @ (b'+' | b'-')) = self.peek() {
            self.at += 1;
            let right = self.product(depth)?;
            let result = if operator == b'+' { value.checked_add(right) } else { value.checked_sub(right) };
            value = result.ok_or_else(too_large)?;
        }
        Ok(value)
    }

    fn product(&mut self, depth: usize) -> Result<i128, String> {
        let mut value = self.factor(depth)?;
        while let Some(operator @ (b'*' | b'/' | b'%')) = self.peek() {
            self.at += 1;
            let right = self.factor(depth)?;
            if right == 0 && operator != b'*' {
                return Err("division by zero".to_owned());
            }
            let result = match operator {
                b'*' => value.checked_mul(right),
                b'/' => value.checked_div(right),
                _ => value.checked_rem(right),
            };
            value = result.ok_or_else(too_large)?;
        }
        Ok(value)
    }

    fn factor(&mut self, depth: usize) -> Result<i128, String> {
        if depth > MAX_DEPTH {
            return Err(format!("parentheses are nested more than {MAX_DEPTH} deep"));
        }
        match self.peek() {
            Some(b'(') => {
                self.at += 1;
                let value = self.sum(depth + 1)?;
                if self.peek() != Some(b')') {
                    return Err(self.unexpected());
                }
                self.at += 1;
                Ok(value)
            }
            Some(b'-') => {
                self.at += 1;
                self.factor(depth + 1)?.checked_neg().ok_or_else(too_large)
            }
            Some(byte) if byte.is_ascii_digit() => self.number(),
            _ => Err(self.unexpected()),
        }
    }

    fn number(&mut self) -> Result<i128, String> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        let digits = std::str::from_utf8(&self.bytes[start..self.at]).map_err(|_| self.unexpected())?;
        digits.parse::<u64>().map(i128::from).map_err(|_| too_large())
    }
}

fn too_large() -> String {
    "the arithmetic does not fit into 64 bits".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::tests::environment;

    #[test]
    fn variables_and_arithmetic_are_replaced() {
        for (line, expected) in [
            ("size=4k", Some("size=4k")),
            ("filename=${DIR}/f", Some("filename=/data/f")),
            ("size=${UNSET}k", Some("size=k")),
            ("size=${DIR", Some("size=${DIR")),
            ("name=$DIR", Some("name=$DIR")),
            ("numjobs=$ncpus", Some("numjobs=4")),
            ("numjobs=$ncpus/3", Some("numjobs=1")),
            ("numjobs=($ncpus + 1) * 2", Some("numjobs=10")),
            ("bs=$pagesize*2", Some("bs=8192")),
            ("size=$mb_memory*1048576", Some("size=1073741824")),
            ("numjobs=2*3", Some("numjobs=2*3")),
            ("filename=/tmp/x$ncpus", Some("filename=/tmp/x4")),
            ("size=$mb_memorym", Some("size=1024m")),
            ("cpus_allowed=0-$ncpus", Some("cpus_allowed=0-4")),
            ("numjobs=$ncpus/0", None),
            ("numjobs=$ncpus*", None),
            ("numjobs=($ncpus", None),
            ("size=$ncpus*18446744073709551616", None),
            ("size=$ncpus%", Some("size=4%")),
        ] {
            let result = substitute(line, &environment(&[]));
            assert_eq!(result.ok().as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        assert!(evaluate(&format!("{}1{}", "(".repeat(10_000), ")".repeat(10_000))).is_err());
        assert!(evaluate(&"-".repeat(10_000)).is_err());
        assert_eq!(evaluate("((2+3)*4-10)/3"), Ok(3));
        assert_eq!(evaluate("7%4--1"), Ok(4));
    }

    #[test]
    fn negating_the_minimum_is_refused() {
        let least = "(-9223372036854775808*9223372036854775808*2)";
        assert_eq!(evaluate(least), Ok(i128::MIN));
        assert_eq!(evaluate(&format!("-{least}")), Err(too_large()));
    }
}
