//! The probers that write, in their order, and what their witnesses say together.

use emmc_workload::BenchError;

use crate::part::{Part, Settings};
use crate::probe::{OF_WRITES, tried, unknown};
use crate::requests::Requests;
use crate::result::{Evidence, Parameter, Value};
use crate::steps::{STEPS_BYTES, Steps, steps};
use crate::units::{Limit, SWEEP_MAX, Streams};
use crate::{idle, order, reads, regions, sustained, units, volatile};

const MIB: u64 = 1 << 20;
/// Least size of the area of writing probes. Unit: bytes.
const AREA_MIN: u64 = 512 * MIB;
/// Pages of this size and less are no larger than mapping units of some cards. Unit: bytes.
const SMALL_PAGE: u64 = 8 << 10;
/// The part of the area that is filled for reads. Unit: bytes.
const FILLED: u64 = 24 * MIB;

/// The page: what reads pay for crossing, and by what durable writes grow.
pub(crate) fn page(borders: &reads::Borders, steps: Result<&Steps, &str>, filled: bool) -> Parameter {
    let coarsest = borders.levels.last().copied();
    let mut evidence = vec![Evidence::new("read alignment", &borders.seen, coarsest.map(Value::Whole))];
    let unit = match steps {
        Ok(steps) => {
            let sizes: Vec<String> = steps.changes.iter().map(|size| (size >> 10).to_string()).collect();
            let seen = match sizes.is_empty() {
                true => "no steps in the times of durable writes of 4 to 128 KiB".to_owned(),
                false => format!("the time of a durable write changes after {} KiB", sizes.join(", ")),
            };
            evidence.push(Evidence::new("write steps", seen, steps.unit.map(Value::Whole)));
            steps.unit
        }
        Err(why) => {
            evidence.push(Evidence::new("write steps", why, None));
            None
        }
    };
    match (coarsest, unit) {
        // Reads alone see a border of the mapping unit as they see one of a page; a small one may be either.
        (Some(read), None)
            if borders.levels.len() == 1
                && (4097..=SMALL_PAGE).contains(&read)
                && !steps.is_ok_and(|steps| steps.change_at_odd_multiples(read)) =>
        {
            let why = format!("{} KiB is the only border that reads pay for: a page, or the mapping unit", read >> 10);
            Parameter::unknown(why, "bytes", evidence)
        }
        (Some(read), _) if read > 4096 => Parameter::of(Value::Whole(read), "bytes", evidence),
        // The finest border is the mapping unit, and the page is one of its multiples.
        (Some(read), Some(write)) if write % read == 0 => Parameter::of(Value::Whole(write), "bytes", evidence),
        _ => {
            let why = match filled {
                true => "reads cost the same across every border, or only across 4 KiB: writes alone do not decide",
                false => "reads cost the same across every border: the area may be empty; --write fills it first",
            };
            Parameter::unknown(why, "bytes", evidence)
        }
    }
}

/// With writes.
pub(crate) fn written(
    requests: &mut Requests<'_>,
    settings: &Settings,
    remarks: &mut Vec<String>,
) -> Result<Vec<(&'static str, Parameter)>, BenchError> {
    let mut found = Vec::new();
    if Part::ALL.iter().all(|part| matches!(part, Part::Reads | Part::Capacity) || !settings.has(*part)) {
        return Ok(found);
    }
    let room = requests.to - requests.from;
    if room < AREA_MIN {
        let what = format!("writing probes: the area has {room} bytes; expected at least {AREA_MIN}");
        return Err(BenchError::Misfit { suite: crate::requests::NAME, what });
    }
    // From the end: a part for reads and steps, and one for the sequential stream; streams use the rest.
    let end = requests.to;
    let zone = (end - FILLED - STEPS_BYTES) / (4 * MIB) * (4 * MIB);
    let sweep = (zone - SWEEP_MAX.min(room / 4)) / (4 * MIB) * (4 * MIB);
    remarks.extend(tried(requests.choose_durable(zone))?.unwrap_or_default());
    let filled = tried(requests.fill(zone, end))?;
    if settings.has(Part::Page) {
        let measured = match &filled {
            Ok(()) => tried(reads::borders(requests, zone, zone + FILLED))?,
            Err(why) => Err(why.clone()),
        };
        match measured {
            Ok(borders) => {
                let steps = tried(steps(requests, zone))?;
                found.push(("page", page(&borders, steps.as_ref().map_err(String::as_str), true)));
                found.push(("write_unit", write_unit(&steps)));
            }
            Err(why) => found.extend(unknown(&[("page", "bytes"), ("write_unit", "bytes")], &why)),
        }
    }
    let of_streams = |part: &Part| matches!(part, Part::Units | Part::Order | Part::Idle) && settings.has(*part);
    if Part::ALL.iter().any(of_streams) {
        match limited(requests, sweep, end)? {
            Ok((limit, mut streams)) => {
                if settings.has(Part::Units) {
                    found.extend(allocation(requests, &limit, &mut streams, sweep)?);
                }
                if settings.has(Part::Order) {
                    found.extend(ordered(requests, &limit, &streams, remarks)?);
                }
                if settings.has(Part::Idle) {
                    let idle = tried(idle::collection(requests, &mut streams, &limit))?;
                    found.push(("idle_collection", idle.unwrap_or_else(|why| Parameter::unknown(why, "", vec![]))));
                }
            }
            Err(why) => {
                let parts = OF_WRITES.iter().filter(|(part, _, _)| of_streams(part));
                found.extend(unknown(&parts.map(|(_, name, unit)| (*name, *unit)).collect::<Vec<_>>(), &why));
            }
        }
    }
    if settings.has(Part::Cache) {
        let cache = tried(volatile::cache(requests, zone))?;
        found.push(("write_cache", cache.unwrap_or_else(|why| Parameter::unknown(why, "bytes", vec![]))));
    }
    if settings.has(Part::Discard) {
        let discard = match &filled {
            Ok(()) => tried(volatile::discard(requests, zone, FILLED))?,
            Err(why) => Err(why.clone()),
        };
        found.push(("discard", discard.unwrap_or_else(|why| Parameter::unknown(why, "", vec![]))));
    }
    if settings.has(Part::Regions) {
        let regions = tried(regions::regions(requests))?;
        found.extend(regions.unwrap_or_else(|why| unknown(&[("regions", ""), ("fat_region", "")], &why)));
    }
    if settings.has(Part::Slc) {
        // Near the end of them all, because it fills the cache and writes most.
        let whole = |name| {
            let (_, parameter) = found.iter().find(|(other, _)| *other == name)?;
            parameter.value.as_ref()?.whole()
        };
        let open = whole("open_units").zip(whole("allocation_unit")).map(|(count, unit)| count * unit);
        let slc = tried(sustained::cache(requests, open))?;
        found.extend(slc.unwrap_or_else(|why| unknown(&[("slc_cache", "bytes"), ("slc_refill", "MB/s")], &why)));
    }
    Ok(found)
}

/// How many units are open, by streams before the place of the sequential one.
fn limited(requests: &mut Requests<'_>, sweep: u64, end: u64) -> Result<Result<(Limit, Streams), String>, BenchError> {
    requests.to = sweep;
    let streams = Streams::new(requests);
    requests.to = end;
    let Some(mut streams) = streams else {
        return Ok(Err("the area is too small for streams in units of their own".into()));
    };
    let limit = tried(units::limit(requests, &mut streams))?;
    Ok(limit.map(|limit| (limit, streams)))
}

/// Open units in random order, and the class of mapping.
fn ordered(
    requests: &mut Requests<'_>,
    limit: &Limit,
    streams: &Streams,
    remarks: &mut Vec<String>,
) -> Result<Vec<(&'static str, Parameter)>, BenchError> {
    let small = match tried(order::small(requests))? {
        Ok(small) => small,
        Err(why) => return Ok(unknown(&[("open_units_random", ""), ("mapping_class", "")], &why)),
    };
    // The second size confirms what the first one finds.
    let sizes = [2 * small, small];
    let mut streams = streams.clone();
    let mut in_random = |size| units::limit_in_random(requests, &mut streams, size, limit);
    let limits = in_random(sizes[0]).and_then(|first| Ok([first, in_random(sizes[1])?]));
    let open = match tried(limits)? {
        Ok(limits) => open_in_random(&limits, sizes),
        Err(why) => Parameter::unknown(why, "", vec![]),
    };
    let class = match tried(order::class(requests, small, limit))? {
        Ok(class) => {
            remarks.extend(class.remark);
            class.parameter
        }
        Err(why) => Parameter::unknown(why, "", vec![]),
    };
    Ok(vec![("open_units_random", open), ("mapping_class", class)])
}

/// Two sizes of writes must show the same number.
fn open_in_random(limits: &[Limit; 2], sizes: [u64; 2]) -> Parameter {
    let witness = |(limit, size): (&Limit, u64)| {
        let tests: Vec<String> =
            limit.tests.iter().map(|cost| format!("{}: {:.1}", cost.streams, cost.ratio)).collect();
        let seen = format!(
            "cost of a {} KiB write in random order against a sequential one, by streams: {}",
            size >> 10,
            tests.join(", ")
        );
        Evidence::new("streams in random order", seen, Some(Value::Whole(limit.open as u64)))
    };
    let evidence: Vec<Evidence> = limits.iter().zip(sizes).map(witness).collect();
    let [one, other] = limits;
    if (one.open, one.is_limit) != (other.open, other.is_limit) {
        return Parameter::unknown("writes of two sizes show different numbers", "", evidence);
    }
    let parameter = Parameter::of(Value::Whole(one.open as u64), "", evidence);
    if one.is_limit { parameter } else { parameter.at_least() }
}

fn write_unit(steps: &Result<Steps, String>) -> Parameter {
    match steps {
        Err(why) => Parameter::unknown(why.clone(), "bytes", vec![]),
        Ok(steps) => match steps.useful_write() {
            None => Parameter::unknown("the rates of durable writes have no clear drop", "bytes", vec![]),
            Some(bytes) => {
                let rates: Vec<String> =
                    steps.rates.iter().map(|(size, rate)| format!("{}: {rate:.2}", size >> 10)).collect();
                let seen = format!("sequential writes in MB/s by KiB: {}", rates.join(", "));
                let evidence = vec![Evidence::new("durable write ladder", seen, Some(Value::Whole(bytes)))];
                Parameter::of(Value::Whole(bytes), "bytes", evidence)
            }
        },
    }
}

/// Open units and their size.
fn allocation(
    requests: &mut Requests<'_>,
    limit: &Limit,
    streams: &mut Streams,
    sweep: u64,
) -> Result<Vec<(&'static str, Parameter)>, BenchError> {
    let named = |open, unit| vec![("open_units", open), ("allocation_unit", unit)];
    let tests: Vec<String> = limit.tests.iter().map(|cost| format!("{}: {:.1}", cost.streams, cost.ratio)).collect();
    let seen = format!("cost of a 128 KiB write against one stream, by streams: {}", tests.join(", "));
    let open = limit.open;
    if !limit.is_limit {
        let evidence = vec![Evidence::new("streams in turn", seen, Some(Value::Whole(open as u64)))];
        let parameter = Parameter::of(Value::Whole(open as u64), "", evidence).at_least();
        let why = format!("no limit of open units up to {open}: nothing shows their borders");
        return Ok(named(parameter, Parameter::unknown(why, "bytes", vec![])));
    }
    if open == 0 {
        let evidence = vec![Evidence::new("streams in turn", seen, None)];
        let why = "the same number of streams was fast and slow";
        return Ok(named(Parameter::unknown(why, "", evidence), Parameter::unknown(why, "bytes", vec![])));
    }
    let mut open_evidence = vec![Evidence::new("streams in turn", seen, Some(Value::Whole(open as u64)))];
    let mut evidence = Vec::new();
    let mut values = Vec::new();
    match tried(units::distance(requests, open))? {
        Ok(found) => {
            let seen = match found.unit {
                Some(unit) => format!(
                    "{open} streams are fast and one more is slow from {} KiB apart on, not at {} KiB; {} tests",
                    unit >> 10,
                    found.below >> 10,
                    found.tests
                ),
                None => format!("no clear distance in {} tests, up to {} KiB", found.tests, found.below >> 10),
            };
            if found.unit.is_some() {
                let seen = format!("{open} streams and one more at distances of a unit, elsewhere on the card");
                open_evidence.push(Evidence::new("streams at a distance", seen, Some(Value::Whole(open as u64))));
            }
            evidence.push(Evidence::new("streams at a distance", seen, found.unit.map(Value::Whole)));
            values.extend(found.unit);
        }
        Err(why) => evidence.push(Evidence::new("streams at a distance", why, None)),
    }
    match tried(units::borders(requests, streams, open, sweep))? {
        Ok(borders) => {
            let seen = match borders.unit {
                Some(unit) => format!(
                    "{} of {} slow writes lie {} KiB apart, the first border at {} KiB of a unit",
                    borders.count,
                    borders.count + borders.outliers,
                    unit >> 10,
                    borders.phase >> 10
                ),
                None => {
                    format!("{} slow writes in {} MiB, at no equal distances", borders.outliers, borders.written >> 20)
                }
            };
            evidence.push(Evidence::new("sequential stream across borders", seen, borders.unit.map(Value::Whole)));
            values.extend(borders.unit);
        }
        Err(why) => evidence.push(Evidence::new("sequential stream across borders", why, None)),
    }
    let open = Parameter::of(Value::Whole(open as u64), "", open_evidence);
    let unit = match values[..] {
        [] => Parameter::unknown("neither distances nor borders show it", "bytes", evidence),
        [unit] => Parameter::of(Value::Whole(unit), "bytes", evidence),
        [a, b, ..] if a == b => Parameter::of(Value::Whole(a), "bytes", evidence),
        _ => Parameter::unknown("distances and borders disagree", "bytes", evidence),
    };
    Ok(named(open, unit))
}
