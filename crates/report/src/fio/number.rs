//! Numbers as fio prints them: a few significant digits and a prefix of the binary or the decimal family.

use fathom_model::plan::FigureForm;

/// Which prefixes: `Ki`, `Mi` … of 1024, or `k`, `M` … of 1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Powers of 1024.
    Binary,
    /// Powers of 1000.
    Decimal,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberUnit {
    /// A plain number.
    None,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Bits per second.
    BitsPerSecond,
}

impl NumberUnit {
    const fn suffix(self) -> &'static str {
        match self {
            NumberUnit::None => "",
            NumberUnit::Bytes => "B",
            NumberUnit::BytesPerSecond => "B/s",
            NumberUnit::BitsPerSecond => "bit/s",
        }
    }
}

/// `number` with at most `digits` digits: divided until its whole part has no more, then filled up with decimals as
/// far as digits and point together leave room.
///
/// Like fio, only the remainder of the last division makes the decimals, so 10,239 bytes are `10.00KiB` (the whole
/// part was still 9 when the decimals were counted) and 10,240 are `10.0KiB`.
pub fn fio_number(number: u64, digits: usize, family: Family, unit: NumberUnit) -> String {
    let (thousand, prefixes) = match family {
        Family::Binary => (1024, ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]),
        Family::Decimal => (1000, ["", "k", "M", "G", "T", "P", "E"]),
    };
    let mut whole = number;
    let mut remainder = 0;
    let mut prefix = 0;
    let mut length = whole.to_string().len();
    while length > digits && prefix + 1 < prefixes.len() {
        remainder = whole % thousand;
        whole /= thousand;
        prefix += 1;
        length = whole.to_string().len();
    }
    let tail = format!("{}{}", prefixes[prefix], unit.suffix());
    if prefix == 0 {
        return format!("{whole}{tail}");
    }
    match digits.saturating_sub(length + 1) {
        0 => format!("{}{tail}", whole + u64::from(remainder * 2 >= thousand)),
        decimals => format!("{:.decimals$}{tail}", whole as f64 + remainder as f64 / thousand as f64),
    }
}

/// Figures in the form that a job asks for.
pub(crate) trait Figures {
    /// The family that comes first, and the one in parentheses.
    fn families(&self) -> [Family; 2];
    /// A size in one family.
    fn bytes(&self, number: u64, family: Family) -> String;
    /// A bandwidth, given in bytes, in one family.
    fn bandwidth(&self, number: u64, family: Family) -> String;
    /// A plain number.
    fn count(&self, number: u64) -> String;
}

impl Figures for FigureForm {
    fn families(&self) -> [Family; 2] {
        match self.decimal {
            false => [Family::Binary, Family::Decimal],
            true => [Family::Decimal, Family::Binary],
        }
    }

    fn bytes(&self, number: u64, family: Family) -> String {
        fio_number(number, self.digits.into(), family, NumberUnit::Bytes)
    }

    fn bandwidth(&self, number: u64, family: Family) -> String {
        match self.bits {
            false => fio_number(number, self.digits.into(), family, NumberUnit::BytesPerSecond),
            true => {
                fio_number(number.saturating_mul(8), self.digits.into(), family, NumberUnit::BitsPerSecond)
            }
        }
    }

    fn count(&self, number: u64) -> String {
        fio_number(number, self.digits.into(), Family::Decimal, NumberUnit::None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What fio 3.33 printed for these block sizes.
    #[test]
    fn sizes_as_fio_printed_them() {
        for (number, expected) in [
            (0, "0B"),
            (1, "1B"),
            (999, "999B"),
            (1_024, "1024B"),
            (9_999, "9999B"),
            (10_000, "9.77KiB"),
            (10_235, "10.00KiB"),
            (10_239, "10.00KiB"),
            (10_240, "10.0KiB"),
            (12_345, "12.1KiB"),
            (65_520, "64.0KiB"),
            (65_536, "64.0KiB"),
            (102_399, "100.0KiB"),
            (102_400, "100KiB"),
            (1_000_000, "977KiB"),
            (1_023_999, "1000KiB"),
            (1_048_576, "1024KiB"),
            (1_500_000, "1465KiB"),
            (9_999_999, "9766KiB"),
            (10_239_999, "10000KiB"),
            (10_485_759, "10.00MiB"),
            (10_485_760, "10.0MiB"),
            (99_999_999, "95.4MiB"),
            (104_857_600, "100MiB"),
            (1_073_741_823, "1024MiB"),
            (2_147_483_647, "2048MiB"),
            (u64::MAX, "16.0EiB"),
        ] {
            assert_eq!(FigureForm::default().bytes(number, Family::Binary), expected, "{number}");
        }
    }

    #[test]
    fn rates_and_counts_as_fio_printed_them() {
        for (number, expected) in [
            (39, "39"),
            (1_000, "1000"),
            (24_380, "24.4k"),
            (512_000, "512k"),
            (1_534_500, "1535k"),
            (2_730_666, "2731k"),
            (16_000, "16.0k"),
        ] {
            assert_eq!(fio_number(number, 4, Family::Decimal, NumberUnit::None), expected, "{number}");
        }
        assert_eq!(fio_number(1_720_437, 6, Family::Decimal, NumberUnit::None), "1720.4k");
        assert_eq!(FigureForm::default().bandwidth(18_000, Family::Binary), "17.6KiB/s");
        assert_eq!(FigureForm::default().bandwidth(18_000, Family::Decimal), "18.0kB/s");
        assert_eq!(FigureForm::default().bandwidth(4_096_000, Family::Decimal), "4096kB/s");
    }

    /// What fio 3.33 printed for 98,304,000 bytes per second.
    #[test]
    fn figures_as_asked_for() {
        let check = |digits, decimal, bits, expected: [&str; 2]| {
            let form = FigureForm { digits, decimal, bits };
            assert_eq!(form.families().map(|family| form.bandwidth(98_304_000, family)), expected);
        };
        check(4, false, false, ["93.8MiB/s", "98.3MB/s"]);
        check(4, true, false, ["98.3MB/s", "93.8MiB/s"]);
        check(4, false, true, ["750Mibit/s", "786Mbit/s"]);
        check(6, false, false, ["96000KiB/s", "98304kB/s"]);
        check(2, false, false, ["94MiB/s", "98MB/s"]);
        let two = FigureForm { digits: 2, ..FigureForm::default() };
        assert_eq!((two.bytes(120 << 20, Family::Binary), two.count(1500)), ("0GiB".into(), "2k".into()));
    }
}
