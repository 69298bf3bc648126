//! Shares as text.

/// A share in percent with three decimals at most, those that it has: `99.97 %`.
pub(super) fn share(share: f64) -> String {
    let text = format!("{:.3}", share * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A small share in percent, two digits of it: `0.0038 %`.
pub(super) fn small_share(share: f64) -> String {
    let percent = share * 100.0;
    let digits = if percent > 0.0 { (1.0 - percent.log10().floor()).clamp(0.0, 9.0) as usize } else { 0 };
    format!("{percent:.digits$} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_differences_from_the_whole_are_shown() {
        for (value, expected) in
            [(1.0, "100 %"), (0.5, "50 %"), (0.953, "95.3 %"), (0.999, "99.9 %"), (0.99991, "99.991 %")]
        {
            assert_eq!(share(value), expected);
        }
        for (value, expected) in [(0.000_038, "0.0038 %"), (0.5, "50 %"), (1.0, "100 %"), (0.0, "0 %")] {
            assert_eq!(small_share(value), expected);
        }
    }
}
