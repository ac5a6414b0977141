//! A whole probe: which probers run, in which order, and what their witnesses say together.

use emmc_port::BlockTarget;
use emmc_units::Nanos;
use emmc_workload::BenchError;

use crate::advice::advice;
use crate::part::{Part, Settings};
use crate::requests::{Requests, Watching};
use crate::result::{Findings, Parameter};
use crate::written::{page, written};
use crate::{capacity, reads};

const MIB: u64 = 1 << 20;
/// What writing probes write at most, if not told otherwise. Unit: bytes.
pub(crate) const BUDGET: u64 = 2 << 30;

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
    let mut remarks = Vec::new();
    let mut add = |found: Vec<(&'static str, Parameter)>| {
        findings.parameters.extend(found.into_iter().map(|(name, parameter)| (name.to_owned(), parameter)));
    };
    if settings.has(Part::Reads) {
        let cost = tried(reads::cost(&mut requests))?;
        add(cost.unwrap_or_else(|why| unknown(&[("command_overhead", "us"), ("read_rate", "MB/s")], &why)));
    }
    if settings.write {
        add(written(&mut requests, settings, &mut remarks)?);
    } else {
        add(unwritten(&mut requests, settings)?);
    }
    if settings.write && settings.has(Part::Capacity) {
        (requests.budget_bytes, requests.until) = (settings.budget_bytes, end);
        if settings.is_capacity_alone() {
            // What is restored counts too, and nothing stops it.
            requests.budget_bytes -= capacity::RESTORED.min(settings.budget_bytes / 2);
        }
        let (capacity, remarks) = match tried(capacity::capacity(&mut requests, settings.is_capacity_alone()))? {
            Ok(found) => (found.parameter, found.remarks),
            Err(why) => (Parameter::unknown(why, "bytes", vec![]), vec![]),
        };
        findings.remarks.extend(remarks);
        findings.parameters.insert("capacity".into(), capacity);
    }
    findings.remarks.extend(remarks);
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
pub(crate) fn tried<T>(result: Result<T, BenchError>) -> Result<Result<T, String>, BenchError> {
    match result {
        Ok(found) => Ok(Ok(found)),
        Err(error @ (BenchError::Budget { .. } | BenchError::Time { .. } | BenchError::Misfit { .. })) => {
            Ok(Err(error.to_string()))
        }
        Err(error) => Err(error),
    }
}

/// Parameters without a value, for one reason.
pub(crate) fn unknown(names: &[(&'static str, &str)], why: &str) -> Vec<(&'static str, Parameter)> {
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
pub(crate) const OF_WRITES: [(Part, &str, &str); 13] = [
    (Part::Page, "write_unit", "bytes"),
    (Part::Units, "open_units", ""),
    (Part::Units, "allocation_unit", "bytes"),
    (Part::Order, "open_units_random", ""),
    (Part::Order, "mapping_class", ""),
    (Part::Idle, "idle_collection", ""),
    (Part::Cache, "write_cache", "bytes"),
    (Part::Discard, "discard", ""),
    (Part::Regions, "regions", ""),
    (Part::Regions, "fat_region", ""),
    (Part::Slc, "slc_cache", "bytes"),
    (Part::Slc, "slc_refill", "MB/s"),
    (Part::Capacity, "capacity", "bytes"),
];
