//! A whole probe: which probers run, in which order, and what their witnesses say together.

use emmc_port::BlockTarget;
use emmc_units::Nanos;
use emmc_workload::BenchError;
use serde::{Deserialize, Serialize};

use crate::advice::advice;
use crate::requests::{Requests, Watching};
use crate::result::{Evidence, Findings, Parameter, Value};
use crate::steps::{STEPS_BYTES, Steps, steps};
use crate::units::{Limit, SWEEP_MAX, Streams};
use crate::{capacity, reads, units, volatile};

const MIB: u64 = 1 << 20;
/// Least size of the area of writing probes. Unit: bytes.
const AREA_MIN: u64 = 512 * MIB;
/// What writing probes write at most, if not told otherwise. Unit: bytes.
pub(crate) const BUDGET: u64 = 1 << 30;
/// Pages of this size and less are no larger than mapping units of some cards. Unit: bytes.
const SMALL_PAGE: u64 = 8 << 10;
/// The part of the area that is filled for reads. Unit: bytes.
const FILLED: u64 = 24 * MIB;

/// A part of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Part {
    /// The cost of a command, and the rate of reads.
    Reads,
    /// The page and the least useful write.
    Page,
    /// Open units and their size.
    Units,
    /// The write cache.
    Cache,
    /// What a discard does.
    Discard,
    /// Whether the stated capacity is there.
    Capacity,
}

impl Part {
    /// All of them, in the order in which they run.
    pub const ALL: [Self; 6] = [Self::Reads, Self::Page, Self::Units, Self::Cache, Self::Discard, Self::Capacity];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Page => "page",
            Self::Units => "units",
            Self::Cache => "cache",
            Self::Discard => "discard",
            Self::Capacity => "capacity",
        }
    }
}

/// What a probe may do.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Run the probers that write; the area's content is lost.
    pub write: bool,
    /// Start of the area. Unit: bytes.
    pub from_bytes: u64,
    /// End of the area. Unit: bytes.
    pub to_bytes: u64,
    /// Most that may be written. Unit: bytes.
    pub budget_bytes: u64,
    /// Most time, of the target's clock; a request that has begun is completed.
    pub time: Option<Nanos>,
    /// What is measured; empty: everything.
    pub parts: Vec<Part>,
    /// Seed of everything random.
    pub seed: u64,
}

impl Settings {
    /// Whether a part is measured.
    pub fn has(&self, part: Part) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }

    /// Only the capacity: then nothing is lost, because what the marks overwrite is restored.
    pub fn is_capacity_alone(&self) -> bool {
        self.parts == [Part::Capacity]
    }
}

/// Probes a target. `watch` is called at every request, and stops the probe with `false`.
///
/// Errors: the target fails; the probe is stopped.
pub fn probe(target: &mut dyn BlockTarget, settings: &Settings, watch: Watching<'_>) -> Result<Findings, BenchError> {
    let mut requests = Requests::new(target, watch, settings.seed);
    requests.from = settings.from_bytes.next_multiple_of(4096);
    requests.to = settings.to_bytes / 4096 * 4096;
    requests.budget_bytes = settings.budget_bytes;
    let end = settings.time.map(|time| requests.now() + time);
    let tests_capacity = settings.write && settings.has(Part::Capacity) && requests.has_content();
    if tests_capacity && !settings.is_capacity_alone() {
        // The capacity comes last, and most depends on it.
        requests.budget_bytes = settings.budget_bytes.saturating_sub(capacity::WRITTEN);
        requests.until = settings.time.map(|time| requests.now() + Nanos(time.0 / 4 * 3));
    } else {
        requests.until = end;
    }
    if requests.to < requests.from + 16 * MIB {
        let what =
            format!("the area has {} bytes; expected at least 16 MiB", requests.to.saturating_sub(requests.from));
        return Err(BenchError::Misfit { suite: crate::requests::NAME, what });
    }
    let mut findings = Findings::default();
    let mut add = |found: Vec<(&'static str, Parameter)>| {
        findings.parameters.extend(found.into_iter().map(|(name, parameter)| (name.to_owned(), parameter)));
    };
    if settings.has(Part::Reads) {
        let cost = tried(reads::cost(&mut requests))?;
        add(cost.unwrap_or_else(|why| unknown(&[("command_overhead", "us"), ("read_rate", "MB/s")], &why)));
    }
    if settings.write {
        add(written(&mut requests, settings)?);
    } else {
        add(unwritten(&mut requests, settings)?);
    }
    if settings.write && settings.has(Part::Capacity) {
        (requests.budget_bytes, requests.until) = (settings.budget_bytes, end);
        let (capacity, remarks) = match tried(capacity::capacity(&mut requests, settings.is_capacity_alone()))? {
            Ok(found) => (found.parameter, found.remarks),
            Err(why) => (Parameter::unknown(why, "bytes", vec![]), vec![]),
        };
        findings.remarks.extend(remarks);
        findings.parameters.insert("capacity".into(), capacity);
    }
    findings.wrote = requests.spent.written_bytes > 0;
    findings.spent = requests.spent;
    if !settings.write {
        let more = "Only reads were made. --write also measures the write unit, allocation units, the cache, discard and the \
                    capacity; the content of the area is lost.";
        findings.remarks.push(more.into());
    }
    findings.advice = advice(&findings);
    Ok(findings)
}

/// A prober's result, or why it gave none; a failed or stopped target ends the probe.
fn tried<T>(result: Result<T, BenchError>) -> Result<Result<T, String>, BenchError> {
    match result {
        Ok(found) => Ok(Ok(found)),
        Err(error @ (BenchError::Budget { .. } | BenchError::Time { .. } | BenchError::Misfit { .. })) => {
            Ok(Err(error.to_string()))
        }
        Err(error) => Err(error),
    }
}

/// Parameters without a value, for one reason.
fn unknown(names: &[(&'static str, &str)], why: &str) -> Vec<(&'static str, Parameter)> {
    names.iter().map(|(name, unit)| (*name, Parameter::unknown(why, unit, vec![]))).collect()
}

/// Without writing: what reads can show.
fn unwritten(requests: &mut Requests<'_>, settings: &Settings) -> Result<Vec<(&'static str, Parameter)>, BenchError> {
    let (from, to) = (requests.from, requests.to);
    let mut found = Vec::new();
    if settings.has(Part::Page) {
        found.push(match tried(reads::borders(requests, from, to))? {
            Ok(borders) => ("page", page(&borders, Err("nothing was written"), false)),
            Err(why) => ("page", Parameter::unknown(why, "bytes", vec![])),
        });
    }
    for part in Part::ALL.into_iter().filter(|part| settings.has(*part)) {
        let names = OF_WRITES.iter().filter(|(of, _, _)| *of == part).map(|(_, name, unit)| (*name, *unit));
        found.extend(unknown(&names.collect::<Vec<_>>(), "only writes show it (--write)"));
    }
    Ok(found)
}

/// Parameters that only writes show, with their units.
const OF_WRITES: [(Part, &str, &str); 6] = [
    (Part::Page, "write_unit", "bytes"),
    (Part::Units, "open_units", ""),
    (Part::Units, "allocation_unit", "bytes"),
    (Part::Cache, "write_cache", "bytes"),
    (Part::Discard, "discard", ""),
    (Part::Capacity, "capacity", "bytes"),
];

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
fn written(requests: &mut Requests<'_>, settings: &Settings) -> Result<Vec<(&'static str, Parameter)>, BenchError> {
    let mut found = Vec::new();
    if [Part::Page, Part::Units, Part::Cache, Part::Discard].iter().all(|part| !settings.has(*part)) {
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
    if settings.has(Part::Units) {
        let (open, unit) = opened(requests, sweep, end)?;
        found.extend([("open_units", open), ("allocation_unit", unit)]);
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
    Ok(found)
}

/// Open units and their size, by streams before the place of the sequential one.
fn opened(requests: &mut Requests<'_>, sweep: u64, end: u64) -> Result<(Parameter, Parameter), BenchError> {
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
    match limits {
        Ok((limit, streams)) => allocation(requests, limit, streams, sweep),
        Err(why) => Ok((Parameter::unknown(why.clone(), "", vec![]), Parameter::unknown(why, "bytes", vec![]))),
    }
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
