//! Priorities of single requests: the options `cmdprio*` of the engines that can give a request one.

use fathom_model::plan::{IoPriority, PriorityShare, RequestPriorities};
use fathom_model::{Op, PerOp};

use crate::error::OptionError;
use crate::resolve::refused;
use crate::section::Section;
use crate::value;

/// The class of such requests by default, as in fio: realtime.
const DEFAULT_CLASS: u8 = 1;
/// The least of the classes that can be chosen, and the last.
const CLASSES: (u64, u64) = (1, 3);

/// Requests with a priority of their own, of the job of `section`.
pub(crate) fn plan(section: &Section) -> Result<RequestPriorities, OptionError> {
    let given = |name: &str| {
        let options = section.options.engine_options.iter();
        options.rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    };
    let bad = |option: &str, reason: String| {
        let remedy =
            format!("see --enghelp={},{option}", section.options.ioengine.as_deref().unwrap_or("psync"));
        refused(section, format!("has {option}={}: {reason}", given(option).unwrap_or_default()), remedy)
    };
    let numbers = |option: &str, (least, most): (u64, u64)| match given(option) {
        Some(text) => per_operation(text, least, most).map_err(|reason| bad(option, reason)),
        None => Ok(PerOp::default()),
    };
    let percents = numbers("cmdprio_percentage", (0, 100))?;
    let classes = numbers("cmdprio_class", CLASSES)?;
    let levels = numbers("cmdprio", (0, 7))?;
    let hints = numbers("cmdprio_hint", (0, 1023))?;
    let priority = |op: Op| IoPriority {
        class: classes[op].map_or(DEFAULT_CLASS, |class| class as u8),
        level: levels[op].unwrap_or(0) as u8,
        hint: hints[op].unwrap_or(0) as u16,
    };
    let mut shares = PerOp::<Vec<PriorityShare>>::default();
    // fio gives trims none.
    for op in [Op::Read, Op::Write] {
        let percent = percents[op].filter(|&percent| percent > 0);
        let share = |percent| PriorityShare { size: None, percent: percent as u8, priority: priority(op) };
        shares[op].extend(percent.map(share));
    }
    let Some(text) = given("cmdprio_bssplit") else { return Ok(RequestPriorities { shares }) };
    if percents.iter().any(|(_, percent)| percent.is_some_and(|percent| percent > 0)) {
        let problem = "has both cmdprio_percentage and cmdprio_bssplit".to_owned();
        return Err(refused(section, problem, "keep one of them"));
    }
    let lists = value::per_operation(text).map_err(|reason| bad("cmdprio_bssplit", reason))?;
    for (op, list) in [Op::Read, Op::Write].into_iter().zip(lists) {
        shares[op] =
            split(list.unwrap_or_default(), priority(op)).map_err(|reason| bad("cmdprio_bssplit", reason))?;
    }
    Ok(RequestPriorities { shares })
}

/// Numbers for reads and writes; one alone is for both.
fn per_operation(text: &str, least: u64, most: u64) -> Result<PerOp<Option<u64>>, String> {
    let mut numbers = PerOp::default();
    for (op, entry) in Op::DATA.into_iter().zip(value::per_operation(text)?) {
        numbers[op] = entry.map(|entry| value::integer_in(entry, least, most)).transpose()?;
    }
    Ok(numbers)
}

/// Shares of sizes, as in `4k/20:8k/50/2/1`: size, percentage, and optionally class, level and hint; without these the
/// priority is `default`.
fn split(text: &str, default: IoPriority) -> Result<Vec<PriorityShare>, String> {
    let mut shares: Vec<PriorityShare> = Vec::new();
    for entry in text.split(':').map(str::trim).filter(|entry| !entry.is_empty()) {
        let fields: Vec<&str> = entry.split('/').map(str::trim).collect();
        let percent = match fields.get(1) {
            None | Some(&"") => 0,
            Some(percent) => value::percent(percent)?,
        };
        let number = |index: usize, least, most| value::integer_in(fields[index], least, most);
        let priority = match fields.len() {
            1 | 2 => default,
            4 | 5 => IoPriority {
                class: number(2, 0, CLASSES.1)? as u8,
                level: number(3, 0, 7)? as u8,
                hint: if fields.len() == 5 { number(4, 0, 1023)? as u16 } else { 0 },
            },
            _ => {
                return Err(format!("'{entry}' is neither SIZE/PERCENT nor SIZE/PERCENT/CLASS/LEVEL[/HINT]"));
            }
        };
        let size = Some(value::integer_in(fields[0], 1, u32::MAX.into())? as u32);
        shares.push(PriorityShare { size, percent, priority });
        let of_size = |share: &&PriorityShare| share.size == size;
        let total: u32 = shares.iter().filter(of_size).map(|share| u32::from(share.percent)).sum();
        if total > 100 {
            return Err(format!("the shares of size {} add up to {total} percent, more than 100", fields[0]));
        }
    }
    shares.retain(|share| share.percent > 0);
    Ok(shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(options: &[(&str, &str)]) -> Result<RequestPriorities, String> {
        let mut section = Section { name: "a".to_owned(), ..Section::default() };
        section.options.ioengine = Some("libaio".to_owned());
        section.options.engine_options =
            options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        plan(&section).map_err(|error| error.to_string())
    }

    /// The shares of one operation as `SIZE PERCENT VALUE`.
    fn shown(options: &[(&str, &str)], op: Op) -> String {
        match planned(options) {
            Ok(plan) => {
                let shares = plan.shares[op].iter().map(|share| {
                    format!("{} {} {:#x}", share.size.unwrap_or(0), share.percent, share.priority.value())
                });
                shares.collect::<Vec<_>>().join(", ")
            }
            Err(reason) => reason,
        }
    }

    #[test]
    fn shares_of_all_requests() {
        let check = |options: &[(&str, &str)], reads: &str, writes: &str| {
            assert_eq!(
                (&*shown(options, Op::Read), &*shown(options, Op::Write)),
                (reads, writes),
                "{options:?}"
            );
            assert_eq!(shown(options, Op::Trim), "");
        };
        check(&[], "", "");
        check(&[("cmdprio_class", "2")], "", "");
        check(&[("cmdprio_percentage", "30")], "0 30 0x2000", "0 30 0x2000");
        check(&[("cmdprio_percentage", "30,0"), ("cmdprio", "3")], "0 30 0x2003", "");
        check(
            &[
                ("cmdprio_percentage", "10,20"),
                ("cmdprio_class", "3,2"),
                ("cmdprio", "1,7"),
                ("cmdprio_hint", "2"),
            ],
            "0 10 0x6011",
            "0 20 0x4017",
        );
    }

    #[test]
    fn shares_of_sizes() {
        let check = |text: &str, reads: &str| {
            assert_eq!(shown(&[("cmdprio_bssplit", text), ("cmdprio", "1")], Op::Read), reads, "{text}");
        };
        check("4k/20:8k/100", "4096 20 0x2001, 8192 100 0x2001");
        check("4k/20/1/3:4k/30/2/5/1,64k/1", "4096 20 0x2003, 4096 30 0x400d");
        check("4k:8k/", "");
        check(",4k/10", "");
        let refusal = |reason: &str, text: &str| format!("fio: job <a> has cmdprio_bssplit={text}: {reason}");
        let check = |text: &str, reason: &str| check(text, &refusal(reason, text));
        check("4k/60:4k/60", "the shares of size 4k add up to 120 percent, more than 100");
        check("4k/20/3", "'4k/20/3' is neither SIZE/PERCENT nor SIZE/PERCENT/CLASS/LEVEL[/HINT]");
        check("/50", "a number is needed");
        check("4k/20/4/0", "max value out of range: 4 (3 max)");
    }

    #[test]
    fn a_percentage_and_sizes_contradict_one_another() {
        let both = [("cmdprio_percentage", "1"), ("cmdprio_bssplit", "4k/1")];
        assert!(planned(&both).unwrap_err().contains("both cmdprio_percentage and cmdprio_bssplit"));
        assert!(planned(&[("cmdprio_percentage", "0"), both[1]]).is_ok());
        assert!(planned(&[("cmdprio_percentage", "101")]).unwrap_err().contains("out of range"));
        assert!(planned(&[("cmdprio_class", "0")]).unwrap_err().contains("out of range"));
    }
}
