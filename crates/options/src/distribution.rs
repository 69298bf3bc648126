//! fio's syntax for distributions: `zipf:1.1:0.5`, `normal:10`, `zoned:60/10:40/90`.

use fathom_model::PerOp;
use fathom_model::plan::{Distribution, FileOrder};

use crate::value;

/// Names of the distributions of `random_distribution`.
const NAMES: &str = "random, zipf, pareto, normal, zoned, zoned_abs";

/// Most zones of a distribution, as in fio.
const MAX_ZONES: usize = 256;

/// Parses the distribution of offsets of each operation. Only zones may differ between them, as in fio.
pub(crate) fn per_operation(text: &str) -> Result<PerOp<Distribution>, String> {
    let text = text.trim();
    let (name, values) = text.split_once(':').unwrap_or((text, ""));
    if !matches!(name, "zoned" | "zoned_abs") {
        return Ok(PerOp::splat(single(name, values)?));
    }
    if values.is_empty() {
        return Err(format!("zones are needed, as in {name}:60/10:40/90"));
    }
    let [read, write, trim] = value::per_operation(values)?;
    let of = |entry: Option<&str>| match entry {
        None => Ok(Distribution::Random),
        Some(zones) if name == "zoned" => relative_zones(zones),
        Some(zones) => absolute_zones(zones),
    };
    Ok(PerOp { read: of(read)?, write: of(write)?, trim: of(trim)? })
}

fn single(name: &str, values: &str) -> Result<Distribution, String> {
    if !["random", "zipf", "pareto", "normal", "gauss"].contains(&name) {
        return Err(format!("valid values are {NAMES}"));
    }
    let mut numbers = values.split(':').filter(|value| !value.is_empty()).map(number);
    let first = numbers.next().transpose()?;
    let center = numbers.next().transpose()?;
    if let Some(more) = numbers.next() {
        return Err(format!("{} is one value too many: give NAME:VALUE:CENTER", more?));
    }
    if let Some(center) = center.filter(|center| !(0.0..=1.0).contains(center)) {
        return Err(format!("the center {center} is out of range (0 to 1)"));
    }
    match name {
        "random" if first.is_none() => Ok(Distribution::Random),
        "random" => Err("the uniform distribution has no values".to_owned()),
        "zipf" => match first.unwrap_or(1.1) {
            1.0 => Err("a zipf theta of 1 is not possible, as in fio: use 0.999 or 1.001".to_owned()),
            theta if theta > 0.0 && theta <= 100.0 => Ok(Distribution::Zipf { theta, center }),
            theta => Err(format!("zipf theta {theta} is out of range (above 0, at most 100)")),
        },
        "pareto" => match first.unwrap_or(0.2) {
            h if h > 0.0 && h < 1.0 => Ok(Distribution::Pareto { h, center }),
            _ => Err("the h of pareto must be above 0 and below 1".to_owned()),
        },
        _ => match first.unwrap_or(0.0) {
            deviation if (0.0..100.0).contains(&deviation) => Ok(Distribution::Normal { deviation, center }),
            _ => Err("the deviation of normal must be 0 or more and below 100 percent".to_owned()),
        },
    }
}

fn number(text: &str) -> Result<f64, String> {
    let text = text.trim();
    text.parse()
        .ok()
        .filter(|value: &f64| value.is_finite())
        .ok_or_else(|| format!("'{text}' is not a number"))
}

/// Entries of access percentage and the text of the size; an empty percentage is 0 here.
fn zones(text: &str) -> Result<Vec<(u8, &str)>, String> {
    let entries: Vec<&str> = text.split(':').map(str::trim).filter(|entry| !entry.is_empty()).collect();
    if entries.len() > MAX_ZONES {
        return Err(format!("{} zones are too many: {MAX_ZONES} at most", entries.len()));
    }
    let mut zones = Vec::new();
    for entry in entries {
        let (share, size) = entry.split_once('/').unwrap_or((entry, ""));
        let share = share.trim().trim_end_matches('%');
        zones.push((if share.is_empty() { 0 } else { value::percent(share)? }, size.trim()));
    }
    let total: u32 = zones.iter().map(|(share, _)| u32::from(*share)).sum();
    if total != 100 {
        return Err(format!("the shares of the zones add up to {total} percent: they must add up to 100"));
    }
    Ok(zones)
}

fn relative_zones(text: &str) -> Result<Distribution, String> {
    let mut all = Vec::new();
    for (share, size) in zones(text)? {
        let size = size.trim_end_matches('%');
        all.push((share, if size.is_empty() { None } else { Some(value::percent(size)?) }));
    }
    let given: u32 = all.iter().map(|&(_, size)| u32::from(size.unwrap_or(0))).sum();
    let Some(rest) = 100_u32.checked_sub(given) else {
        return Err(format!("the sizes of the zones add up to {given} percent: at most 100 are possible"));
    };
    let empty = all.iter().filter(|&&(_, size)| size.is_none()).count() as u32;
    let mut index = 0;
    let sized = all.into_iter().map(|(share, size)| {
        let part = || {
            index += 1;
            (rest / empty + u32::from(index <= rest % empty)) as u8
        };
        (share, size.unwrap_or_else(part))
    });
    Ok(Distribution::Zoned(sized.collect()))
}

fn absolute_zones(text: &str) -> Result<Distribution, String> {
    let mut all = Vec::new();
    for (share, size) in zones(text)? {
        if all.last().is_some_and(|&(_, bytes)| bytes == 0) {
            return Err("only the last zone may have no size".to_owned());
        }
        // A size of 0 is that of one block, as in fio; none is the rest.
        all.push((share, if size.is_empty() { 0 } else { value::integer(size)?.max(1) }));
    }
    Ok(Distribution::ZonedAbs(all))
}

/// Parses `file_service_type`: the order, and the requests to a file before the next.
pub(crate) fn file_order(text: &str) -> Result<(FileOrder, u32), String> {
    let text = text.trim();
    let (name, value) = text.split_once(':').unwrap_or((text, ""));
    let run = || if value.is_empty() { Ok(1) } else { value::count(value, 1) };
    match name {
        "roundrobin" => Ok((FileOrder::RoundRobin, run()?)),
        "sequential" => Ok((FileOrder::Sequential, run()?)),
        "random" => Ok((FileOrder::Drawn(Distribution::Random), run()?)),
        "zipf" | "pareto" | "normal" | "gauss" => Ok((FileOrder::Drawn(single(name, value)?), 1)),
        _ => Err("valid values are random, zipf, pareto, normal, gauss, roundrobin, sequential".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_are_parsed_like_fios() {
        let check = |text: &str, expected: Distribution| {
            assert_eq!(per_operation(text), Ok(PerOp::splat(expected)), "{text}");
        };
        check("random", Distribution::Random);
        check("zipf", Distribution::Zipf { theta: 1.1, center: None });
        check("zipf:0.9", Distribution::Zipf { theta: 0.9, center: None });
        check("zipf:1.2:0.25", Distribution::Zipf { theta: 1.2, center: Some(0.25) });
        check("pareto", Distribution::Pareto { h: 0.2, center: None });
        check("pareto:0.3", Distribution::Pareto { h: 0.3, center: None });
        check("normal:10", Distribution::Normal { deviation: 10.0, center: None });
        check("zoned:60/10:30/20:8/30:2/40", Distribution::Zoned(vec![(60, 10), (30, 20), (8, 30), (2, 40)]));
        check("zoned:50/:50/10:", Distribution::Zoned(vec![(50, 90), (50, 10)]));
        check("zoned:100/0", Distribution::Zoned(vec![(100, 0)]));
        check("zoned:20/:30/:50/1", Distribution::Zoned(vec![(20, 50), (30, 49), (50, 1)]));
        check("zoned_abs:100/0", Distribution::ZonedAbs(vec![(100, 1)]));
        check("zoned_abs:60/1g:40/", Distribution::ZonedAbs(vec![(60, 1 << 30), (40, 0)]));
        let apart = per_operation("zoned:100/50:0/50,60/10:40/90").unwrap();
        assert_eq!(apart.read, Distribution::Zoned(vec![(100, 50), (0, 50)]));
        assert_eq!(apart.trim, Distribution::Zoned(vec![(60, 10), (40, 90)]));
        for (bad, reason) in [
            ("zipf:1.0", "theta of 1 is not possible"),
            ("zipf:-1", "out of range"),
            ("zipf:x", "not a number"),
            ("zipf:1.1:2", "the center 2 is out of range"),
            ("zipf:1.1:0.5:9", "one value too many"),
            ("pareto:1.2", "above 0 and below 1"),
            ("normal:100", "below 100 percent"),
            ("random:1", "no values"),
            ("sequence:1,2", "valid values are random, zipf"),
            ("zoned", "zones are needed"),
            ("zoned:60/10:50/90", "add up to 110 percent"),
            ("zoned:60/10:30/80", "add up to 90 percent"),
            ("zoned:60/50:40/60", "add up to 110 percent"),
            ("zoned_abs:60/:40/1g", "only the last zone"),
        ] {
            let error = per_operation(bad).unwrap_err();
            assert!(error.contains(reason), "{bad}: {error}");
        }
    }

    #[test]
    fn file_orders_are_parsed_like_fios() {
        assert_eq!(file_order("roundrobin"), Ok((FileOrder::RoundRobin, 1)));
        assert_eq!(file_order("sequential:8"), Ok((FileOrder::Sequential, 8)));
        assert_eq!(file_order("random:4"), Ok((FileOrder::Drawn(Distribution::Random), 4)));
        let zipf = Distribution::Zipf { theta: 1.5, center: None };
        assert_eq!(file_order("zipf:1.5"), Ok((FileOrder::Drawn(zipf), 1)));
        let normal = Distribution::Normal { deviation: 20.0, center: None };
        assert_eq!(file_order("gauss:20"), Ok((FileOrder::Drawn(normal), 1)));
        assert!(file_order("roundrobin:0").is_err() && file_order("bogus").is_err());
    }
}
