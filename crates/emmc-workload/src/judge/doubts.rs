//! Reasons to doubt a result, and circumstances that affected it.
//!
//! Each rule needs facts of the [`Context`](crate::Context); if they are absent it reports nothing.

use emmc_port::TargetKind;

use crate::result::measurement::Measurement;
use crate::result::{BenchResult, Doubt};

/// A speed above the bus's by this factor is more than rounding.
const ABOVE_BUS: f64 = 1.02;
/// From this share of the bus's throughput on, a read may not have reached flash.
const NEAR_BUS: f64 = 0.85;
/// The fastest bus that eMMC has: HS400 on eight lines. Unit: 10^6 bytes a second.
const EMMC_MB_PER_S_MAX: f64 = 400.0;
/// From this share of the time on, the measurement may show the host's processor.
const BUSY: f64 = 0.9;
/// Measurements with an interval wider than this have too few requests. Unit: share of the mean.
const INTERVAL_WIDE: f64 = 0.2;
/// Most measurements that a finding lists.
const CELLS_MAX: usize = 4;

/// Every reason to doubt a result.
pub fn doubts(result: &BenchResult) -> Vec<Doubt> {
    let rules = [
        faster_than_bus,
        page_cache,
        holes,
        state_unknown,
        wraps,
        processor_bound,
        governor,
        queueing,
        cache,
        few,
        failed,
        stopped,
    ];
    rules.iter().filter_map(|rule| rule(result)).collect()
}

fn is_real(result: &BenchResult) -> bool {
    result.target_kind != TargetKind::Simulated
}

/// The measurements to which a rule applies.
fn cells(result: &BenchResult, rule: impl Fn(&Measurement) -> Option<String>) -> Option<String> {
    let found: Vec<String> = result
        .outcome
        .measurements
        .iter()
        .filter_map(|cell| Some(format!("{} {}: {}", cell.row, cell.column, rule(cell)?)))
        .collect();
    let more = found.len().saturating_sub(CELLS_MAX);
    let shown = found.get(..CELLS_MAX).unwrap_or(&found).join("; ");
    match (found.len(), more) {
        (0, _) => None,
        (_, 0) => Some(shown),
        _ => Some(format!("{shown}; and {more} more")),
    }
}

fn faster_than_bus(result: &BenchResult) -> Option<Doubt> {
    let context = &result.context;
    let is_emmc = context.card.as_ref().and_then(|card| card.kind.as_deref()) == Some("emmc");
    let (most, of) = match &context.bus {
        Some(bus) => (bus.mb_per_s_max, format!("{}, {} lines", bus.mode, bus.lines)),
        None if is_emmc && is_real(result) => (EMMC_MB_PER_S_MAX, "the fastest bus of any eMMC".into()),
        None => return None,
    };
    let moves = |cell: &&Measurement| cell.op == "read" || cell.op == "write" || cell.op == "mixed";
    let rule = |cell: &Measurement| {
        let over = Some(cell).filter(moves)?.mb_per_s > most * ABOVE_BUS;
        over.then(|| format!("{:.0} MB/s", cell.mb_per_s))
    };
    let evidence = format!("{}; the bus carries {most:.0} MB/s ({of})", cells(result, rule)?);
    Some(Doubt::new("faster_than_bus", "faster than the bus: a cache of the host was measured", evidence))
}

fn page_cache(result: &BenchResult) -> Option<Doubt> {
    let filesystem =
        result.context.filesystem.as_ref().filter(|filesystem| filesystem.in_memory || filesystem.cached)?;
    let what = if filesystem.in_memory {
        "the file is in memory and on no device: this is the speed of memory"
    } else {
        "the filesystem has no direct I/O: reads may never reach the device"
    };
    Some(Doubt::new("page_cache", what, format!("{} on {}", filesystem.fstype, filesystem.mount)))
}

fn holes(result: &BenchResult) -> Option<Doubt> {
    let holes = result.context.filesystem.as_ref()?.hole_bytes;
    let what = "parts of the file have no blocks on the device: reads of them do not reach it";
    (holes > 0).then(|| Doubt::new("holes", what, format!("{holes} of {} bytes", result.size_bytes)))
}

/// Reads as fast as the bus, of data that the suite has not written, from a card in an unknown state: trimmed or
/// unwritten ranges are answered without flash.
fn state_unknown(result: &BenchResult) -> Option<Doubt> {
    let bus = result.context.bus.as_ref().filter(|_| is_real(result) && result.outcome.written_bytes == 0)?;
    let rule = |cell: &Measurement| {
        let is_known = cell.state.as_ref().is_some_and(|state| !state.is_unknown());
        let near = bus.mb_per_s_max * NEAR_BUS..=bus.mb_per_s_max * ABOVE_BUS;
        let is_fast = cell.op == "read" && near.contains(&cell.mb_per_s);
        (is_fast && !is_known).then(|| format!("{:.0} MB/s", cell.mb_per_s))
    };
    let what = "reads as fast as the bus, of ranges this suite has not written: a card reads unmapped ranges this fast";
    let evidence = format!("{}; the bus carries {:.0} MB/s", cells(result, rule)?, bus.mb_per_s_max);
    Some(Doubt::new("state_unknown", what, evidence))
}

fn wraps(result: &BenchResult) -> Option<Doubt> {
    let rule = |cell: &Measurement| {
        let bytes = cell.bytes.unwrap_or(0);
        let over = cell.order == "sequential" && cell.op != "trim" && bytes > result.size_bytes;
        over.then(|| format!("{bytes} bytes"))
    };
    let evidence = format!("{}; the target has {}", cells(result, rule)?, result.size_bytes);
    Some(Doubt::new("wraps", "the target is too small for the pattern: it covered the same range again", evidence))
}

fn processor_bound(result: &BenchResult) -> Option<Doubt> {
    let effort = result.context.effort.filter(|_| is_real(result))?;
    let share = (effort.user_s + effort.system_s) / effort.time_s.max(1e-9);
    let what = "the processor was busy nearly all the time: the host may be what was measured";
    (share > BUSY).then(|| Doubt::new("processor_bound", what, format!("{:.0} % of one processor", share * 100.0)))
}

fn governor(result: &BenchResult) -> Option<Doubt> {
    let governors = &result.context.host.as_ref()?.governors;
    let other: Vec<&str> = governors.iter().map(String::as_str).filter(|name| *name != "performance").collect();
    let what = "the processor's clock may have changed during the run: small requests look slower than they are";
    (!other.is_empty()).then(|| Doubt::new("governor", what, format!("governor {}", other.join(", "))))
}

fn queueing(result: &BenchResult) -> Option<Doubt> {
    let card = result.context.card.as_ref()?;
    let off = card.queueing_offered == Some(true) && card.queueing_on == Some(false);
    let what = "the card supports command queueing, but it is off: a queue depth above 1 gains nothing";
    (off && is_real(result)).then(|| Doubt::new("queueing_off", what, "CMDQ_SUPPORT is set, CMDQ_MODE_EN is not"))
}

fn cache(result: &BenchResult) -> Option<Doubt> {
    let card = result.context.card.as_ref()?;
    let off = card.cache_bytes.is_some_and(|bytes| bytes > 0) && card.cache_on == Some(false);
    let what = "the card's cache is off: small writes are slower than with the cache";
    (off && is_real(result)).then(|| Doubt::new("cache_off", what, "CACHE_SIZE is not 0, CACHE_CTRL is"))
}

fn few(result: &BenchResult) -> Option<Doubt> {
    if !is_real(result) {
        return None;
    }
    let rule = |cell: &Measurement| match &cell.mb_per_s_interval {
        None => Some(format!("{} requests", cell.requests.unwrap_or(0))),
        Some(interval) => {
            let half = (interval.high - interval.low) / 2.0 / cell.mb_per_s.max(1e-9);
            (half > INTERVAL_WIDE).then(|| format!("+-{:.0} %", half * 100.0))
        }
    };
    let what = "too few requests, or too much variation, for a figure that can be compared";
    Some(Doubt::new("few_requests", what, cells(result, rule)?))
}

fn failed(result: &BenchResult) -> Option<Doubt> {
    let rule = |cell: &Measurement| (cell.errors > 0).then(|| format!("{} requests", cell.errors));
    Some(Doubt::new("failed_requests", "some requests failed", cells(result, rule)?))
}

fn stopped(result: &BenchResult) -> Option<Doubt> {
    let why = result.outcome.ended_early.clone()?;
    Some(Doubt::new("stopped", "the suite ended early: the report covers what was measured until then", why))
}

#[cfg(test)]
mod tests;
