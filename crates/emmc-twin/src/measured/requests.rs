//! Requests of other suites and tools: which of them the simulator can repeat.

use emmc_workload::import::UNSYNCED;
use emmc_workload::{CardState, Measurement, Outcome, StateKind};

use super::has_no_speed;
use crate::cell::{Figure, Requests};

/// A state holds for all of the card from this share on.
const WHOLE: f64 = 0.95;

/// What the kernel makes of sequential calls through its page cache, as the suites `hdparm` and `dd` repeat it: the
/// size of a request in KiB, and how many are outstanding.
const READ_AHEAD: (u64, u16) = (128, 2);
const WRITTEN_BACK: (u64, u16) = (512, 32);

/// Suites of emmclab whose requests come in another order, in several places, or after others that are not repeated.
const OTHERS: [&str; 7] = ["class", "fs", "install", "boot", "reliable", "replay", "tiotest"];

/// The requests of a measurement and their size in KiB, or why they are not repeated.
pub(super) fn requests(outcome: &Outcome, cell: &Measurement) -> Result<(Requests, u64), &'static str> {
    let is_write = match cell.op.as_str() {
        "write" => true,
        "read" => false,
        _ => return Err("neither reads nor writes alone"),
    };
    if OTHERS.contains(&outcome.suite.as_str()) {
        return Err("the suite is not repeated");
    }
    if cell.flushed_every.is_some() {
        return Err("a flush after each write, or after every few");
    }
    let is_random = match cell.order.as_str() {
        "sequential" => false,
        "random" | "shuffled" => true,
        "sequential, buffered" => return buffered(outcome, cell, is_write),
        _ => return Err("an order that is not repeated, or through the page cache"),
    };
    let is_aged = is_aged(outcome, cell)?;
    let depth = u16::try_from(cell.queue_depth).map_err(|_| "too many requests at a time")?;
    if cell.block_bytes < 1024 || cell.block_bytes % 1024 > 0 {
        return Err("not whole KiB");
    }
    if has_no_speed(cell) || depth == 0 {
        return Err("no speed");
    }
    Ok((Requests { is_aged, is_write, is_random, depth, figure: Figure::Rate }, cell.block_bytes / 1024))
}

/// Whether reads find erased flash alone, which a card need not read.
pub(super) fn holds_nothing(state: &CardState) -> bool {
    state.holds_share == Some(0.0) && matches!(state.kind, StateKind::Fresh | StateKind::Trimmed)
}

/// Whether random writes had overwritten all of the card, or why its state is not repeated.
pub(super) fn is_aged(outcome: &Outcome, cell: &Measurement) -> Result<bool, &'static str> {
    let (is_write, is_random) = (cell.op == "write", cell.order != "sequential");
    let Some(state) = &cell.state else {
        // fio's random jobs usually run over a whole device that holds data.
        return Ok(outcome.suite == "fio" && is_write && is_random);
    };
    let is_all = |share: Option<f64>| share.is_none_or(|share| share >= WHOLE);
    match state.kind {
        _ if !is_write && holds_nothing(state) => Err("reads of a card that holds no data"),
        StateKind::Filled if is_write && is_random => {
            Err("random writes to a full card that was not overwritten before")
        }
        StateKind::Aged if is_write && !(is_all(state.holds_share) && is_all(state.of_share)) => {
            Err("writes to an aged card that is not full, or of which only a part was overwritten")
        }
        StateKind::Aged if outcome.suite == "trim" => Err("a card of which a fifth was overwritten has not settled"),
        kind => Ok(kind == StateKind::Aged),
    }
}

/// Sequential calls through the page cache.
fn buffered(outcome: &Outcome, cell: &Measurement, is_write: bool) -> Result<(Requests, u64), &'static str> {
    let is_hdparm = outcome.suite == "hdparm";
    if has_no_speed(cell) {
        return Err("no speed");
    }
    // hdparm drops the cache before; of a file, part may have been in memory.
    if !is_write && !is_hdparm {
        return Err("reads of a file through the page cache: part of it may have been in memory");
    }
    let is_unsynced = |remark: &String| remark.starts_with(UNSYNCED);
    if is_write && (outcome.suite == "fio" || outcome.remarks.iter().any(is_unsynced)) {
        return Err("writes through the page cache without a sync: part of them may have stayed in memory");
    }
    let (kib, depth) = if is_write { WRITTEN_BACK } else { READ_AHEAD };
    Ok((Requests { is_aged: false, is_write, is_random: false, depth, figure: Figure::Rate }, kib))
}
