//! Rows for the private options of engines: each stores the checked text under its own name.

use crate::RawEngineOptions;

/// The option that requests atomic writes from an engine. It follows from the job and is no row of the engine.
pub(crate) const ATOMIC: &str = "atomic";

/// Stores 0 or 1.
pub(crate) fn store_switch(options: &mut RawEngineOptions, name: &str, value: &str) -> Result<(), String> {
    match value {
        "0" | "1" => options.0.insert(name.to_owned(), value.to_owned()),
        "" => return Err("it must be 0 or 1".to_owned()),
        other => return Err(format!("`{other}` is neither 0 nor 1")),
    };
    Ok(())
}

/// Stores a list of numbers or sizes, which the grammar checks.
pub(crate) fn store_list(options: &mut RawEngineOptions, name: &str, value: &str) -> Result<(), String> {
    if value.is_empty() {
        return Err("a value is needed".to_owned());
    }
    options.0.insert(name.to_owned(), value.to_owned());
    Ok(())
}

/// Stores a whole number.
pub(crate) fn store_count(options: &mut RawEngineOptions, name: &str, value: &str) -> Result<(), String> {
    let number: u32 =
        value.parse().map_err(|_| format!("`{value}` is not a whole number below {}", 1_u64 << 32))?;
    options.0.insert(name.to_owned(), number.to_string());
    Ok(())
}

/// Stores a percentage.
pub(crate) fn store_percent(options: &mut RawEngineOptions, name: &str, value: &str) -> Result<(), String> {
    match value.parse::<u32>() {
        Ok(percent) if percent <= 100 => store_count(options, name, value),
        _ => Err(format!("`{value}` is not a whole number from 0 to 100")),
    }
}

macro_rules! flag_row {
    ($name:literal, $default:literal, $doc:literal) => {
        $crate::private::row!(OptionValueKind::Flag, $crate::private::store_switch, $name, $default, $doc)
    };
}

macro_rules! bool_row {
    ($name:literal, $default:literal, $doc:literal) => {
        $crate::private::row!(OptionValueKind::Bool, $crate::private::store_switch, $name, $default, $doc)
    };
}

macro_rules! count_row {
    ($name:literal, $default:literal, $doc:literal) => {
        $crate::private::row!(OptionValueKind::Int, $crate::private::store_count, $name, $default, $doc)
    };
}

macro_rules! percent_row {
    ($name:literal, $default:literal, $doc:literal) => {
        $crate::private::row!(OptionValueKind::Int, $crate::private::store_percent, $name, $default, $doc)
    };
}

macro_rules! list_row {
    ($kind:expr, $name:literal, $default:literal, $doc:literal) => {
        $crate::private::row!($kind, $crate::private::store_list, $name, $default, $doc)
    };
}

macro_rules! row {
    ($kind:expr, $store:path, $name:literal, $default:literal, $doc:literal) => {
        OptionRow {
            name: $name,
            aliases: &[],
            kind: $kind,
            default: $default,
            doc: $doc,
            apply: |options, value| $store(options, $name, value),
        }
    };
}

/// The rows of an engine, and behind them those of priorities of single requests, which [`crate::prioritized`] draws.
macro_rules! with_priorities {
    ($($row:expr),* $(,)?) => {
        &[
            $($row,)*
            $crate::private::list_row!(
                OptionValueKind::Int,
                "cmdprio_percentage",
                "0",
                "Percentage of the requests with the priority of cmdprio and cmdprio_class, for reads,writes."
            ),
            $crate::private::list_row!(
                OptionValueKind::Int,
                "cmdprio_class",
                "1",
                "I/O priority class of these requests: 1 realtime, 2 best effort, 3 idle."
            ),
            $crate::private::list_row!(
                OptionValueKind::Int,
                "cmdprio",
                "0",
                "Their priority within the class, from 0 (highest) to 7."
            ),
            $crate::private::list_row!(
                OptionValueKind::Int,
                "cmdprio_hint",
                "0",
                "Their priority hint, from 0 to 1023."
            ),
            $crate::private::list_row!(
                OptionValueKind::Text,
                "cmdprio_bssplit",
                "",
                "Percentages by request size, as 4k/20:64k/5, or with class and level as 4k/20/1/0; for reads,writes."
            ),
        ]
    };
}

pub(crate) use {bool_row, count_row, flag_row, list_row, percent_row, row, with_priorities};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_at_most_a_hundred() {
        for (text, is_taken) in
            [("0", true), ("30", true), ("100", true), ("101", false), ("", false), ("3%", false)]
        {
            let mut options = RawEngineOptions::default();
            assert_eq!(store_percent(&mut options, "x", text).is_ok(), is_taken, "{text}");
            assert_eq!(options.int("x", 7), if is_taken { text.parse().unwrap() } else { 7 });
        }
    }

    #[test]
    fn switches_are_0_or_1() {
        for (text, expected) in [("0", Some("0")), ("1", Some("1")), ("2", None), ("", None)] {
            let mut options = RawEngineOptions::default();
            assert_eq!(store_switch(&mut options, "x", text).is_ok(), expected.is_some(), "{text}");
            assert_eq!(options.0.get("x").map(String::as_str), expected);
        }
    }
}
