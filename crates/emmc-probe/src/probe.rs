//! A whole probe: which probers run, in which order, and what their witnesses say together.

use emmc_port::BlockTarget;
use emmc_workload::BenchError;

use crate::advice::advice;
use crate::requests::{Requests, Watching};
use crate::result::{Evidence, Findings, Parameter, Value};
use crate::steps::{STEPS_BYTES, Steps, steps};
use crate::units::{Limit, SWEEP_MAX, Streams};
use crate::{reads, units, volatile};

const MIB: u64 = 1 << 20;
/// Least size of the area of writing probes. Unit: bytes.
const AREA_MIN: u64 = 512 * MIB;
/// What writing probes write at most, if not told otherwise. Unit: bytes.
pub(crate) const BUDGET: u64 = 1 << 30;
/// The part of the area that is filled for reads. Unit: bytes.
const FILLED: u64 = 24 * MIB;

/// What a probe may do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Run the probers that write; the area's content is lost.
    pub write: bool,
    /// Start of the area. Unit: bytes.
    pub from_bytes: u64,
    /// End of the area. Unit: bytes.
    pub to_bytes: u64,
    /// Most that may be written. Unit: bytes.
    pub budget_bytes: u64,
    /// Seed of everything random.
    pub seed: u64,
}

/// Probes a target. `watch` is called at every request, and stops the probe with `false`.
///
/// Errors: the target fails; the probe is stopped.
pub fn probe(target: &mut dyn BlockTarget, settings: &Settings, watch: Watching<'_>) -> Result<Findings, BenchError> {
    let mut requests = Requests::new(target, watch, settings.seed);
    requests.from = settings.from_bytes.next_multiple_of(4096);
    requests.to = settings.to_bytes / 4096 * 4096;
    requests.budget_bytes = settings.budget_bytes;
    if requests.to < requests.from + 16 * MIB {
        let what =
            format!("the area has {} bytes; expected at least 16 MiB", requests.to.saturating_sub(requests.from));
        return Err(BenchError::Misfit { suite: crate::requests::NAME, what });
    }
    let mut findings = Findings::default();
    let mut add = |found: Vec<(&'static str, Parameter)>| {
        findings.parameters.extend(found.into_iter().map(|(name, parameter)| (name.to_owned(), parameter)));
    };
    add(reads::cost(&mut requests)?);
    if settings.write {
        add(written(&mut requests)?);
    } else {
        add(unwritten(&mut requests)?);
    }
    findings.wrote = requests.spent.written_bytes > 0;
    findings.spent = requests.spent;
    if !settings.write {
        let more = "Only reads were made. --write also measures the write unit, allocation units, the cache and discard; \
                    the content of the area is lost.";
        findings.remarks.push(more.into());
    }
    findings.advice = advice(&findings);
    Ok(findings)
}

/// A prober's result, or why it gave none; a failed or stopped target ends the probe.
fn tried<T>(result: Result<T, BenchError>) -> Result<Result<T, String>, BenchError> {
    match result {
        Ok(found) => Ok(Ok(found)),
        Err(error @ (BenchError::Budget { .. } | BenchError::Misfit { .. })) => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}

/// Without writing: what reads can show.
fn unwritten(requests: &mut Requests<'_>) -> Result<Vec<(&'static str, Parameter)>, BenchError> {
    let (from, to) = (requests.from, requests.to);
    let borders = reads::borders(requests, from, to)?;
    let mut found = vec![("page", page(&borders, Err("nothing was written"), false))];
    for (name, unit) in
        [("write_unit", "bytes"), ("open_units", ""), ("allocation_unit", "bytes"), ("write_cache", "bytes")]
    {
        found.push((name, Parameter::unknown("only writes show it (--write)", unit, vec![])));
    }
    found.push(("discard", Parameter::unknown("only a discard of written data shows it (--write)", "", vec![])));
    Ok(found)
}

/// The page: what reads pay for crossing, and by what durable writes grow.
fn page(borders: &reads::Borders, steps: Result<&Steps, &str>, filled: bool) -> Parameter {
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
        // A finer level of reads is the mapping unit.
        (Some(read), _) if read > 4096 => Parameter::of(Value::Whole(read), "bytes", evidence),
        (None, Some(write)) => Parameter::of(Value::Whole(write), "bytes", evidence),
        _ => {
            let why = match filled {
                true => "neither reads nor writes show steps",
                false => "reads cost the same across every border: the area may be empty; --write fills it first",
            };
            Parameter::unknown(why, "bytes", evidence)
        }
    }
}

/// With writes.
fn written(requests: &mut Requests<'_>) -> Result<Vec<(&'static str, Parameter)>, BenchError> {
    let mut found = Vec::new();
    let room = requests.to - requests.from;
    if room < AREA_MIN {
        let what = format!("writing probes: the area has {room} bytes; expected at least {AREA_MIN}");
        return Err(BenchError::Misfit { suite: crate::requests::NAME, what });
    }
    // From the end: a part for reads and steps, and one for the sequential stream; streams use the rest.
    let end = requests.to;
    let zone = (end - FILLED - STEPS_BYTES) / (4 * MIB) * (4 * MIB);
    let sweep = (zone - SWEEP_MAX.min(room / 4)) / (4 * MIB) * (4 * MIB);
    let filled = tried(requests.fill(zone, end))?;
    let borders = reads::borders(requests, zone, zone + FILLED)?;
    let measured = match &filled {
        Ok(()) => tried(steps(requests, zone))?,
        Err(why) => Err(why.clone()),
    };
    found.push(("page", page(&borders, measured.as_ref().map_err(String::as_str), filled.is_ok())));
    found.push(("write_unit", write_unit(&measured)));
    requests.to = sweep;
    let streams = Streams::new(requests);
    requests.to = end;
    let limits = match streams {
        Some(mut streams) => {
            let limit = tried(units::limit(requests, &mut streams))?;
            limit.map(|limit| (limit, streams))
        }
        None => Err("the area is too small for streams in units of their own".into()),
    };
    let (open, unit) = match limits {
        Ok((limit, streams)) => allocation(requests, limit, streams, sweep)?,
        Err(why) => (Parameter::unknown(why.clone(), "", vec![]), Parameter::unknown(why, "bytes", vec![])),
    };
    found.push(("open_units", open));
    found.push(("allocation_unit", unit));
    found.push(("write_cache", volatile::cache(requests, zone)?));
    found.push(("discard", volatile::discard(requests, zone, FILLED)?));
    Ok(found)
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
    limit: Limit,
    mut streams: Streams,
    sweep: u64,
) -> Result<(Parameter, Parameter), BenchError> {
    let tests: Vec<String> = limit.tests.iter().map(|cost| format!("{}: {:.1}", cost.streams, cost.ratio)).collect();
    let seen = format!("cost of a 128 KiB write against one stream, by streams: {}", tests.join(", "));
    let open = limit.open;
    if !limit.is_limit {
        let evidence = vec![Evidence::new("streams in turn", seen, Some(Value::Whole(open as u64)))];
        let parameter = Parameter::of(Value::Whole(open as u64), "", evidence).at_least();
        let why = format!("no limit of open units up to {open}: nothing shows their borders");
        return Ok((parameter, Parameter::unknown(why, "bytes", vec![])));
    }
    if open == 0 {
        let evidence = vec![Evidence::new("streams in turn", seen, None)];
        let why = "the same number of streams was fast and slow";
        return Ok((Parameter::unknown(why, "", evidence), Parameter::unknown(why, "bytes", vec![])));
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
    match tried(units::borders(requests, &mut streams, open, sweep))? {
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
    Ok((open, unit))
}
