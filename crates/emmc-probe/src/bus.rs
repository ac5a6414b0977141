//! Reads under which a bus shows its errors: large ones for the data lines, many small ones for the command line.
//!
//! Every place is read twice and compared. Absent on purpose: the verdict (`emmc_analysis::bus`), and writes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use emmc_port::{BlockContent, BlockTarget, BusLink, BusRound, Host, TargetError};
use emmc_units::{Nanos, Rng};

/// A large read: the largest request of many controllers. Unit: bytes.
const LARGE: usize = 512 << 10;
/// A small one. Unit: bytes.
const SMALL: usize = 4 << 10;
/// Small reads for each large one.
const SMALL_READS: usize = 32;

/// What to do.
#[derive(Clone, Debug)]
pub struct Stress {
    /// For each clock.
    pub time: Nanos,
    /// Clocks to try after the one in use, until one shows no error. Unit: Hz.
    pub lower_hz: Vec<u64>,
    /// Of the places that are read.
    pub seed: u64,
}

/// Why a stress ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StressError {
    /// The target cannot go on.
    Target(TargetError),
    /// The host cannot be asked or set: a sentence.
    Link(String),
    /// Stopped by a signal.
    Stopped,
}

/// What was seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stressed {
    /// At the clock in use, then at lower ones.
    pub rounds: Vec<BusRound>,
    /// Why no lower clock was tried, or why the clock is not the one from before: a sentence.
    pub unset: Option<String>,
}

/// Reads at the clock in use and, while errors show, at the lower ones.
///
/// `shows_errors` judges a round. The clock is set back at the end, whatever ended the work.
/// Errors: [`StressError`].
pub fn stress<T: BlockTarget + BlockContent>(
    target: &mut T,
    link: &mut impl BusLink,
    plan: &Stress,
    shows_errors: impl Fn(&BusRound) -> bool,
    stop: &AtomicBool,
) -> Result<Stressed, StressError> {
    let found_hz = link.host().map_err(StressError::Link)?.ios.get("clock").and_then(|text| hertz(text));
    let mut rng = Rng::new(plan.seed);
    let mut all = Stressed { rounds: vec![round(target, link, None, plan.time, &mut rng, stop)?], unset: None };
    let (mut is_changed, mut ended) = (false, Ok(()));
    for hz in &plan.lower_hz {
        if all.rounds.last().is_some_and(|round| !shows_errors(round)) {
            break;
        }
        if let Err(error) = link.set_clock(*hz) {
            all.unset = Some(error);
            break;
        }
        is_changed = true;
        // A controller divides its base clock, so that two that are asked for may be one.
        let actual = link.host().ok().and_then(|host| host.bus()).map(|bus| bus.clock_hz);
        let is_tried = |round: &BusRound| round.bus[0].as_ref().map(|bus| bus.clock_hz) == actual;
        if actual.is_some() && all.rounds.iter().any(is_tried) {
            continue;
        }
        match round(target, link, Some(*hz), plan.time, &mut rng, stop) {
            Ok(round) => all.rounds.push(round),
            Err(error) => {
                ended = Err(error);
                break;
            }
        }
    }
    if let Some(hz) = found_hz.filter(|_| is_changed) {
        if let Err(error) = link.set_clock(hz) {
            all.unset = Some(format!("the clock is not set back to {hz} Hz: {error}"));
        }
    }
    ended.map(|()| all)
}

/// `200000000 Hz`.
fn hertz(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

fn round<T: BlockTarget + BlockContent>(
    target: &mut T,
    link: &mut impl BusLink,
    asked_hz: Option<u64>,
    time: Nanos,
    rng: &mut Rng,
    stop: &AtomicBool,
) -> Result<BusRound, StressError> {
    let before = link.host().map_err(StressError::Link)?;
    // What was logged until now belongs to nobody.
    link.new_log();
    let began = target.now();
    let mut round = BusRound { asked_hz, ..BusRound::default() };
    let (mut first, mut second) = (vec![0; LARGE], vec![0; LARGE]);
    while target.now().since(began) < time {
        let mut read = |bytes: usize| twice(target, rng, &mut first[..bytes], &mut second[..bytes], &mut round);
        read(LARGE).map_err(StressError::Target)?;
        for _ in 0..SMALL_READS {
            read(SMALL).map_err(StressError::Target)?;
        }
        if stop.load(Ordering::Relaxed) {
            return Err(StressError::Stopped);
        }
    }
    round.seconds = target.now().since(began).0 as f64 / 1e9;
    let after = link.host().map_err(StressError::Link)?;
    round.counted = counted(&before, &after);
    round.bus = [before.bus(), after.bus()];
    round.log = link.new_log();
    Ok(round)
}

/// Reads one place twice.
fn twice<T: BlockTarget + BlockContent>(
    target: &mut T,
    rng: &mut Rng,
    first: &mut [u8],
    second: &mut [u8],
    round: &mut BusRound,
) -> Result<(), TargetError> {
    let size = target.shape().size_bytes;
    let bytes = (first.len() as u64).min(size);
    let length = bytes as usize;
    let offset = rng.below((size / bytes).max(1)) * bytes;
    let mut is_good = true;
    for into in [&mut first[..length], &mut second[..length]] {
        let done = target.read_into(offset, into)?;
        round.reads += 1;
        round.bytes += bytes;
        round.failed += u64::from(done.error.is_some());
        is_good &= done.error.is_none();
    }
    if is_good {
        round.differing += u64::from(first[..length] != second[..length]);
        let is_uniform = |block: &&[u8]| block.iter().all(|byte| *byte == block[0]);
        round.uniform_blocks += first[..length].chunks(SMALL).filter(is_uniform).count() as u64;
    }
    Ok(())
}

/// What the driver counted in between; a counter that was cleared starts at zero.
fn counted(before: &Host, after: &Host) -> Option<BTreeMap<String, u64>> {
    let since = |(name, count): (&String, &u64)| {
        let before = before.err_stats.get(name).copied().unwrap_or(0);
        (name.clone(), count.checked_sub(before).unwrap_or(*count))
    };
    (!after.err_stats.is_empty()).then(|| after.err_stats.iter().map(since).collect())
}

#[cfg(test)]
mod tests;
