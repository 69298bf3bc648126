//! fio's syntax for a mix of block sizes: `4k/60:8k/40`; empty shares divide the rest.
//!
//! fio accepts any shares, gives a remainder of 100 to the smallest size, and rounds sizes down to multiples of the
//! smallest. The intent is unclear then, so such values are refused here.

use fathom_model::BlockSize;

use crate::value;

/// Most entries of a mix, as in fio.
const MOST: usize = 64;

/// The error for an empty value.
pub(crate) const NEEDED: &str = "sizes and shares are needed, as in 4k/60:8k/40";

/// Parses the mix of one operation, with sizes up to `largest`.
pub(crate) fn parse(text: &str, largest: u64) -> Result<BlockSize, String> {
    let mut entries = Vec::new();
    for entry in text.split(':').map(str::trim).filter(|entry| !entry.is_empty()) {
        let (size, share) = entry.split_once('/').unwrap_or((entry, ""));
        let share = match share.trim() {
            "" => 0,
            share => value::percent(share.strip_suffix('%').unwrap_or(share))?,
        };
        entries.push((value::integer_in(size, 1, largest)?, share));
    }
    if entries.is_empty() {
        return Err(NEEDED.to_owned());
    }
    if entries.len() > MOST {
        return Err(format!("{} sizes are too many: {MOST} at most", entries.len()));
    }
    divide_rest(&mut entries)?;
    let smallest = entries.iter().map(|&(size, _)| size).min().unwrap_or(1);
    if let Some((size, _)) = entries.iter().find(|(size, _)| !size.is_multiple_of(smallest)) {
        return Err(format!("{size} is not a multiple of the smallest size, {smallest}"));
    }
    BlockSize::of_shares(&entries).ok_or_else(|| NEEDED.to_owned())
}

/// Divides the remaining percentage equally among the entries without a share, as fio does: in whole percents, and the
/// remainder of that to the largest of them. Here a share of 0 means an empty one.
fn divide_rest(entries: &mut [(u64, u8)]) -> Result<(), String> {
    let given: u32 = entries.iter().map(|&(_, share)| u32::from(share)).sum();
    let empty = entries.iter().filter(|&&(_, share)| share == 0).count() as u32;
    let Some(rest) = 100_u32.checked_sub(given) else {
        return Err(format!("the shares add up to {given} percent: they must add up to 100"));
    };
    match (rest, empty) {
        (0, 0) => return Ok(()),
        (_, 0) => {
            return Err(format!(
                "the shares add up to {given} percent: they must add up to 100, or one must be empty"
            ));
        }
        _ if rest < empty => {
            return Err(format!("the shares leave {rest} percent, too little for the sizes without one"));
        }
        _ => {}
    }
    let largest = entries.iter().filter(|&&(_, share)| share == 0).map(|&(size, _)| size).max();
    let mut left_over = rest % empty;
    for (size, share) in entries.iter_mut().filter(|(_, share)| *share == 0) {
        let extra = if Some(*size) == largest { std::mem::take(&mut left_over) } else { 0 };
        *share = (rest / empty + extra) as u8;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_are_parsed_like_fios() {
        let check = |text: &str, expected: &str| {
            let read = match parse(text, u64::from(u32::MAX)) {
                Ok(size) => size.to_string(),
                Err(reason) => reason,
            };
            assert_eq!(read, expected, "{text}");
        };
        check("4k/60:8k/40", "4096/60:8192/40");
        check("8k/40:4k/60", "4096/60:8192/40");
        check("4k/60%:8k/40%", "4096/60:8192/40");
        check("4k/50:64k/:32k/", "4096/50:32768/25:65536/25");
        check("4k/:8k/:16k/", "4096/33:8192/33:16384/34");
        check("4k/50:8k", "4096/50:8192/50");
        check("4k/0:8k/", "4096/50:8192/50");
        check("1k/2:4k/:8k/:16k/:32k/:64k/", "1024/2:4096/19:8192/19:16384/19:32768/19:65536/22");
        check("4k", "4096");
        check("4k/100", "4096");
        check("4k/50:4k/50:", "4096");
        check(" 4k/50 : 8k/50 ", "4096/50:8192/50");
        check(
            "4k/30:8k/20",
            "the shares add up to 50 percent: they must add up to 100, or one must be empty",
        );
        check("4k/70:8k/60", "the shares add up to 130 percent: they must add up to 100");
        check("4k/100:8k/", "the shares leave 0 percent, too little for the sizes without one");
        check("4k/60:6k/40", "6144 is not a multiple of the smallest size, 4096");
        check("4k/x:8k/50", "'x' is not a number");
        check("4k/-1:8k/50", "min value out of range: it must not be negative");
        check("0/50:8k/50", "min value out of range: 0 (1 min)");
        check(":", NEEDED);
        check(&vec!["4k/1"; 65].join(":"), "65 sizes are too many: 64 at most");
    }
}
