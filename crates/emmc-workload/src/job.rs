//! Jobs: phases of load on a virtual card, with idle time, trims and power cycles between them.
//!
//! A job is JSON; it runs on any [`CardTarget`](emmc_port::CardTarget), through the loop of the suites. Absent on
//! purpose: files (the caller passes the bytes of a trace), clocks and presentation.

mod fields;
mod phases;
mod plan;
mod ready;
mod requests;
mod result;
mod run;
mod series;
mod sums;
#[cfg(test)]
mod tests;

use emmc_regs::Area;
use emmc_units::{Nanos, Size};

use crate::drive::order::Order;
use crate::trace::Replay;
use fields::Fields;
pub use ready::{READY_JOBS, ReadyJob, ready_job};
pub use requests::{HostRequest, requests};
pub use result::{Ended, LatencyResult, PhaseResult, RunResult, Work as WorkDone};
pub use run::{RunError, run};
pub use series::Series;

/// Most tasks that a phase may have outstanding.
const DEPTH_MAX: u64 = 256;

/// A job.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Seed of everything random.
    pub seed: u64,
    /// Its phases, in order.
    pub phases: Vec<Phase>,
}

/// One phase of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Its name in the job, e.g. `hot_cold`.
    pub kind: &'static str,
    /// Seed of its random numbers; absent: derived from the job's and the number of the phase.
    pub seed: Option<u64>,
    /// Requests that the host keeps outstanding.
    pub queue_depth: u32,
    /// Whether the volatile cache is on, if the card has one.
    pub cache: bool,
    /// Its work.
    pub work: Work,
}

/// The work of a phase.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// Requests of one size after a pattern.
    Transfer(Transfer),
    /// Trims a share of the blocks of a range.
    Trim(Trim),
    /// The host is idle.
    Idle {
        /// How long.
        time: Nanos,
        /// Whether the card may use it for background work.
        background: bool,
    },
    /// Flushes everything to flash.
    Flush,
    /// A power cycle.
    PowerCycle {
        /// Whether the host announces the power-off, so that the card can save its memory.
        notify: bool,
    },
    /// Recorded requests.
    Replay(Replay),
}

/// Requests of one size after a pattern.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfer {
    /// The positions of requests.
    pub pattern: Pattern,
    /// Share of them that are reads, 0 to 1.
    pub read_share: f64,
    /// The total amount.
    pub amount: Amount,
    /// Size of a request.
    ///
    /// Unit: bytes, a multiple of 512.
    pub block_bytes: u32,
    /// The part of the card.
    pub target: Target,
    /// Reliable writes.
    pub reliable: bool,
    /// Writes bypass the volatile cache.
    pub force: bool,
}

/// The positions of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// Ascending, in interleaved streams; a stream moves on after `spacing` bytes.
    Sequential {
        /// Streams.
        streams: u32,
        /// Bytes from the beginning of one stream to that of the next; absent: an equal share of the range.
        spacing: Option<u64>,
        /// Whether the blocks inside each spacing come in random order.
        shuffled: bool,
    },
    /// After an order that does not depend on the size of the range.
    Ordered(Order),
    /// Each request is, with probability `trim_share`, a trim of a random block that holds data, else a random write.
    Mixed {
        /// Below one half: above it no block would stay mapped.
        trim_share: f64,
    },
}

/// The amount of work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// A number of bytes.
    Bytes(u64),
    /// A multiple of the area's size, in whole requests.
    Capacities(f64),
    /// The range once.
    RangeOnce,
    /// Until the card has worn out.
    UntilWornOut,
}

/// Part of an area.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// The area.
    pub area: Area,
    /// Its beginning.
    pub from: Size,
    /// Its end.
    pub to: Size,
}

/// Trims a share of the blocks of a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trim {
    /// Which part of the card.
    pub target: Target,
    /// Share of the blocks, 0 to 1, chosen at random; 1: all, in order.
    pub share: f64,
    /// Size of a request.
    ///
    /// Unit: bytes, a multiple of 512.
    pub block_bytes: u32,
    /// A discard, after which the old content may come back.
    pub discard: bool,
}

/// What is wrong with a job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// The text is not JSON.
    #[error("job: {0}")]
    Syntax(String),
    /// A value violates a rule.
    #[error("job: {place}{field}: found {found}, {rule}")]
    Rule {
        /// The phase, if it is in one, e.g. `phase 2 (random): `.
        place: String,
        /// The key.
        field: String,
        /// Its value.
        found: String,
        /// What it must be.
        rule: String,
    },
}

/// Returns the bytes of a trace, by its name.
pub type Load<'a> = &'a mut dyn FnMut(&str) -> Result<Vec<u8>, String>;

/// Defaults of a phase.
#[derive(Clone, Copy, Debug)]
struct Defaults {
    queue_depth: u32,
    cache: bool,
    block_bytes: u32,
}

impl Job {
    /// Reads a job; `load` returns the bytes of a trace.
    ///
    /// Errors: the first error, with phase, key and rule.
    pub fn from_json(text: &str, load: Load<'_>) -> Result<Self, JobError> {
        let value = serde_json::from_str(text).map_err(|error| JobError::Syntax(error.to_string()))?;
        let mut fields = Fields::new("", value)?;
        let seed = fields.whole("seed", 0, u64::MAX)?.unwrap_or(1);
        let defaults = Defaults {
            queue_depth: fields.whole("queue_depth", 1, DEPTH_MAX)?.unwrap_or(1) as u32,
            cache: fields.flag("cache")?.unwrap_or(true),
            block_bytes: fields.block("block")?.unwrap_or(4096),
        };
        let phases = fields.list("phases")?;
        fields.finish()?;
        let phases = phases.into_iter().zip(1..).map(|(phase, number)| phases::read(number, phase, &defaults, load));
        Ok(Self { seed, phases: phases.collect::<Result<_, _>>()? })
    }

    /// Whether it cuts power without notice. The card then needs sequence numbers, from which it rebuilds its map.
    pub fn cuts_power(&self) -> bool {
        self.phases.iter().any(|phase| phase.work == Work::PowerCycle { notify: false })
    }

    /// The seed of a phase, counted from 0.
    pub fn phase_seed(&self, index: usize) -> u64 {
        let own = self.phases[index].seed;
        own.unwrap_or_else(|| self.seed.wrapping_add((index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }
}
