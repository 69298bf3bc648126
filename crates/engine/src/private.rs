//! The private options of engines: an engine receives each as its text, under its name, once it is checked.

use fathom_model::{EngineOption, OptionValueKind};

/// The option that requests atomic writes from an engine. It follows from the job and is no row of the engine.
pub(crate) const ATOMIC: &str = "atomic";

const fn option(
    name: &'static str,
    kind: OptionValueKind,
    default: &'static str,
    doc: &'static str,
    check: fn(&str) -> Result<(), String>,
) -> EngineOption {
    EngineOption { name, kind, default, doc, check }
}

/// A switch that may be given without a value.
pub(crate) const fn flag(name: &'static str, default: &'static str, doc: &'static str) -> EngineOption {
    option(name, OptionValueKind::Flag, default, doc, is_switch)
}

pub(crate) const fn switch(name: &'static str, default: &'static str, doc: &'static str) -> EngineOption {
    option(name, OptionValueKind::Bool, default, doc, is_switch)
}

pub(crate) const fn count(name: &'static str, default: &'static str, doc: &'static str) -> EngineOption {
    option(name, OptionValueKind::Int, default, doc, |value| whole(value, u32::MAX))
}

pub(crate) const fn percent(name: &'static str, default: &'static str, doc: &'static str) -> EngineOption {
    option(name, OptionValueKind::Int, default, doc, |value| whole(value, 100))
}

fn is_switch(value: &str) -> Result<(), String> {
    match value {
        "0" | "1" => Ok(()),
        "" => Err("it must be 0 or 1".to_owned()),
        other => Err(format!("`{other}` is neither 0 nor 1")),
    }
}

fn whole(value: &str, max: u32) -> Result<(), String> {
    match value.parse::<u32>() {
        Ok(number) if number <= max => Ok(()),
        _ if max == u32::MAX => Err(format!("`{value}` is not a whole number below {}", 1_u64 << 32)),
        _ => Err(format!("`{value}` is not a whole number from 0 to {max}")),
    }
}

/// A list of numbers or sizes, which the grammar checks.
const fn list(
    name: &'static str,
    kind: OptionValueKind,
    default: &'static str,
    doc: &'static str,
) -> EngineOption {
    option(name, kind, default, doc, |value| match value {
        "" => Err("a value is needed".to_owned()),
        _ => Ok(()),
    })
}

/// Priorities of single requests, which [`crate::prioritized`] draws.
const PRIORITIES: [EngineOption; 5] = [
    list(
        "cmdprio_percentage",
        OptionValueKind::Int,
        "0",
        "Percentage of the requests with the priority of cmdprio and cmdprio_class, for reads,writes.",
    ),
    list(
        "cmdprio_class",
        OptionValueKind::Int,
        "1",
        "I/O priority class of these requests: 1 realtime, 2 best effort, 3 idle.",
    ),
    list("cmdprio", OptionValueKind::Int, "0", "Their priority within the class, from 0 (highest) to 7."),
    list("cmdprio_hint", OptionValueKind::Int, "0", "Their priority hint, from 0 to 1023."),
    list(
        "cmdprio_bssplit",
        OptionValueKind::Text,
        "",
        "Percentages by request size, as 4k/20:64k/5, or with class and level as 4k/20/1/0; for reads,writes.",
    ),
];

/// The options of an engine, and behind them those of [`PRIORITIES`]; `N` is the number of both.
pub(crate) const fn with_priorities<const N: usize>(own: &[EngineOption]) -> [EngineOption; N] {
    let mut all = [PRIORITIES[0]; N];
    let mut index = 0;
    while index < N {
        all[index] = if index < own.len() { own[index] } else { PRIORITIES[index - own.len()] };
        index += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked() {
        for (option, taken, refused) in [
            (percent("x", "", ""), &["0", "30", "100"][..], &["101", "", "3%"][..]),
            (switch("x", "", ""), &["0", "1"], &["2", ""]),
            (count("x", "", ""), &["0", "4294967295"], &["4294967296", "4k", "", "-1"]),
            (PRIORITIES[0], &["10,20"], &[""]),
        ] {
            assert!(taken.iter().all(|text| (option.check)(text).is_ok()), "{taken:?}");
            assert!(refused.iter().all(|text| (option.check)(text).is_err()), "{refused:?}");
        }
    }
}
