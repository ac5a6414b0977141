use emmc_units::{Bytes, Nanos, SECTOR_BYTES};
use serde::Serialize;

use crate::Spans;

/// Most tasks in a card's command queue.
///
/// Source: JESD84-B51, CMDQ_DEPTH: 5 bits, depth minus one.
pub const DEPTH_QUEUED_MAX: u32 = 32;

/// The longest span: a minute, so that no sum overflows.
const SPAN_MAX: Nanos = Nanos::from_secs(60);
/// Limit of cores and outstanding requests, against typing errors.
const CORES_MAX: u32 = 1024;
const DEPTH_MAX: u32 = 65_536;
/// The largest chunk: many times a request of Linux.
const CHUNK_MAX: Bytes = Bytes::GIB;

/// What starts the next transfer when one ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CqEngine {
    /// The controller's queue engine (CQHCI): the next transfer starts without a core.
    Hardware,
    /// The card queues, a core sends CMD44 to CMD47: the next transfer waits for the interrupt and for a core's
    /// command.
    Software,
    /// No queue: the same wait; the next request's pre stage may still overlap the transfer.
    None,
}

/// How requests of one kind pass through the host.
///
/// All requests exist at the start; at most `depth` have started their pre stage and not completed their post stage.
/// The card serves one at a time, in order. A core performs one stage at a time without preemption; completed requests
/// go first, as interrupts do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// The three stages.
    pub spans: Spans,
    /// The last part of pre, which only one request at a time can be in.
    ///
    /// Source: the `mmcqd` thread up to Linux 4.15 (all of pre in the paper's formula); since then `mq->busy` of
    /// drivers/mmc/core/queue.c serialises `mmc_mq_queue_rq`.
    pub serial: Nanos,
    /// What a request transfers.
    pub chunk: Bytes,
    /// Most outstanding requests.
    pub depth: u32,
    /// Cores used.
    pub cores: u32,
    /// Who starts the next transfer.
    pub engine: CqEngine,
    /// Between the end of a transfer and the start of the next if a core must start it. It is part of the software's
    /// spans: no additional cost on a core.
    pub gap: Nanos,
}

/// Why a pipeline is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PipelineError {
    /// A stage has zero time.
    #[error("{0} is 0 us; expected more than 0 (the result for an infinitely fast device is computed anyway)")]
    ZeroSpan(&'static str),
    /// A time is too long.
    #[error("{0} is {1}; expected at most 60 s")]
    LongSpan(&'static str, Nanos),
    /// The chunk is not whole sectors, zero, or larger than a request can be.
    #[error("chunk is {0} B; expected a multiple of 512 B, from 512 B to 1 GiB")]
    Chunk(u64),
    /// Zero or too many outstanding requests.
    #[error("depth is {depth}; expected 1 to {max}{why}")]
    Depth {
        /// As given.
        depth: u32,
        /// The limit.
        max: u32,
        /// What sets the limit.
        why: &'static str,
    },
    /// No core, or too many.
    #[error("cores is {0}; expected 1 to 1024")]
    Cores(u32),
    /// The serial part is longer than the whole.
    #[error("serial part of pre is {serial}; expected at most pre, which is {pre}")]
    Serial {
        /// As given.
        serial: Nanos,
        /// All of pre.
        pre: Nanos,
    },
    /// The gap is longer than all software.
    #[error("gap is {gap}; expected at most pre + post, which include it: {software}")]
    Gap {
        /// As given.
        gap: Nanos,
        /// What the cores spend on a request.
        software: Nanos,
    },
    /// Zero or too many requests.
    #[error("requests is {0}; expected 1 to 10000000")]
    Requests(u64),
}

impl Pipeline {
    /// The paper's pipeline: all of pre is serial, 32 outstanding requests, two cores, a queue engine in hardware;
    /// without the engine, all of post would pass between two transfers.
    pub fn new(spans: Spans, chunk: Bytes) -> Self {
        let (serial, gap) = (spans.pre, spans.post);
        Self { spans, serial, chunk, depth: DEPTH_QUEUED_MAX, cores: 2, engine: CqEngine::Hardware, gap }
    }

    /// Validates the parameters.
    ///
    /// Errors: the first parameter that is out of bounds.
    pub fn checked(self) -> Result<Self, PipelineError> {
        let spans = self.spans;
        for (name, span) in [("pre", spans.pre), ("hw", spans.hw), ("post", spans.post)] {
            match span {
                Nanos::ZERO => return Err(PipelineError::ZeroSpan(name)),
                _ if span > SPAN_MAX => return Err(PipelineError::LongSpan(name, span)),
                _ => {}
            }
        }
        let whole = self.chunk.whole_sectors().is_some();
        if !whole || self.chunk.0 < SECTOR_BYTES || self.chunk > CHUNK_MAX {
            return Err(PipelineError::Chunk(self.chunk.0));
        }
        let (max, why) = match self.engine {
            CqEngine::None => (DEPTH_MAX, ""),
            _ => (DEPTH_QUEUED_MAX, ", the tasks that a card's queue holds (without a queue there is no such limit)"),
        };
        if !(1..=max).contains(&self.depth) {
            return Err(PipelineError::Depth { depth: self.depth, max, why });
        }
        if !(1..=CORES_MAX).contains(&self.cores) {
            return Err(PipelineError::Cores(self.cores));
        }
        if self.serial > spans.pre {
            return Err(PipelineError::Serial { serial: self.serial, pre: spans.pre });
        }
        if self.gap > spans.software() {
            return Err(PipelineError::Gap { gap: self.gap, software: spans.software() });
        }
        Ok(self)
    }

    /// The gap between two transfers with this engine.
    pub fn gap_in_effect(&self) -> Nanos {
        if self.engine == CqEngine::Hardware { Nanos::ZERO } else { self.gap }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_impossible_parameter_has_its_error() {
        let good = Pipeline::new(Spans::from_micros(635, 1414, 51), Bytes(128 << 10));
        assert_eq!(good.checked(), Ok(good));
        let broken = |change: &dyn Fn(&mut Pipeline)| {
            let mut pipeline = good;
            change(&mut pipeline);
            pipeline.checked().unwrap_err().to_string()
        };
        for (change, expected) in [
            (&(|p: &mut Pipeline| p.spans.pre = Nanos::ZERO) as &dyn Fn(&mut Pipeline), "pre is 0 us"),
            (&|p| p.spans.hw = Nanos::ZERO, "hw is 0 us"),
            (&|p| p.spans.post = Nanos::ZERO, "post is 0 us"),
            (&|p| p.spans.hw = Nanos::from_secs(61), "hw is 61.00 s"),
            (&|p| p.chunk = Bytes(1000), "chunk is 1000 B"),
            (&|p| p.chunk = Bytes(0), "chunk is 0 B"),
            (&|p| p.depth = 0, "depth is 0; expected 1 to 32, the tasks"),
            (&|p| p.depth = 33, "depth is 33"),
            (&|p| p.cores = 0, "cores is 0"),
            (&|p| p.serial = Nanos::from_micros(636), "serial part of pre is 636.0 us"),
            (&|p| p.gap = Nanos::from_micros(687), "gap is 687.0 us"),
        ] {
            assert!(broken(change).starts_with(expected), "{} != {expected}", broken(change));
        }
        let unqueued = Pipeline { depth: 64, engine: CqEngine::None, ..good };
        assert_eq!(unqueued.checked(), Ok(unqueued));
    }
}
