//! Boards with published spans.

use emmc_units::{Bytes, Nanos};
use serde::Serialize;

use crate::{CqEngine, DEPTH_QUEUED_MAX, Pipeline, Spans};

/// How a program accesses data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Through the page cache; writes are synchronous.
    Sync,
    /// Direct I/O (`O_DIRECT`).
    Direct,
    /// The publication does not say.
    Unstated,
}

/// The request to the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Data from the card.
    Read,
    /// Data to the card.
    Write,
}

/// Position of a request relative to the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Adjacent to it.
    Sequential,
    /// Random.
    Random,
}

/// The spans of one workload on one board, as measured and published.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredSpans {
    /// The name on the command line.
    pub name: &'static str,
    /// The access method.
    pub access: Access,
    /// Read or write.
    pub operation: Operation,
    /// Sequential or random.
    pub order: Order,
    /// Bytes per request.
    pub chunk: Bytes,
    /// The three stages.
    pub spans: Spans,
    /// The measured speed. Unit: MiB/s (printed as MB/s).
    pub measured_mib_s: Option<f64>,
    /// The source of the figures.
    pub source: &'static str,
}

/// A board: its host's handling of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Platform {
    /// The name on the command line.
    pub name: &'static str,
    /// The board.
    pub title: &'static str,
    /// Processor and kernel.
    pub host: &'static str,
    /// Source: Table 1.
    pub cores: u32,
    /// Source: Table 1.
    pub engine: CqEngine,
    /// From the end of a transfer until its interrupt is handled and the issuing thread runs.
    pub gap_completion: Nanos,
    /// From there until the next transfer starts.
    pub gap_issue: Nanos,
    /// The source of the two parts of the gap.
    pub gap_source: &'static str,
    /// The measured workloads.
    pub workloads: &'static [MeasuredSpans],
}

/// The boards that ship.
///
/// Source: Micron, *Linux Storage System Analysis for e.MMC With Command Queuing* (white paper), Tables 1 to 3; the
/// same figures as data in testdata/cq_tables/cq_tables.json. Spans were taken with ftrace; the paper puts the error of
/// that at about 2 %.
pub const PLATFORMS: [Platform; 2] = [
    Platform {
        name: "jetson-tx1",
        title: "NVIDIA Jetson TX1, 8 GB eMMC at HS400",
        host: "4 x Cortex-A57 at 1.73 GHz, Linux 3.19, ext4",
        cores: 4,
        engine: CqEngine::Software,
        gap_completion: Nanos::from_micros(50),
        gap_issue: Nanos::from_micros(75),
        gap_source: "completion: the shortest post of Table 2, an upper bound of interrupt and wake-up. Issue, Assumed: the Zynq's, \
                     scaled by clock (667 MHz to 1.73 GHz)",
        workloads: &[
            row("sync-sequential-write", Access::Sync, Operation::Write, [635, 1414, 51], 36.0),
            row("direct-sequential-write", Access::Direct, Operation::Write, [141, 1360, 53], 71.0),
            row("sync-sequential-read", Access::Sync, Operation::Read, [99, 377, 100], 197.0),
            row("direct-sequential-read", Access::Direct, Operation::Read, [232, 440, 50], 175.0),
        ],
    },
    Platform {
        name: "zynq-zed",
        title: "Xilinx Zynq ZedBoard, 32 GB eMMC at HS400",
        host: "2 x Cortex-A9 at 667 MHz, Linux 4.1, ext4",
        cores: 2,
        engine: CqEngine::Hardware,
        gap_completion: Nanos::from_micros(92),
        gap_issue: Nanos::from_micros(195),
        gap_source: "completion: the post of Table 3's random write, which copies nothing: an upper bound of interrupt and wake-up. \
                     Issue, Assumed: what is left of the paper's gain of about 10 % (one number fitted to one number)",
        workloads: &[
            random("random-read", Operation::Read, [737, 524, 383]),
            random("random-write", Operation::Write, [1715, 259, 92]),
        ],
    },
];

const fn row(
    name: &'static str,
    access: Access,
    operation: Operation,
    [pre, hw, post]: [u64; 3],
    measured: f64,
) -> MeasuredSpans {
    MeasuredSpans {
        name,
        access,
        operation,
        order: Order::Sequential,
        chunk: Bytes(128 << 10),
        spans: Spans::from_micros(pre, hw, post),
        measured_mib_s: Some(measured),
        source: "white paper, Table 2",
    }
}

const fn random(name: &'static str, operation: Operation, [pre, hw, post]: [u64; 3]) -> MeasuredSpans {
    MeasuredSpans {
        name,
        access: Access::Unstated,
        operation,
        order: Order::Random,
        chunk: Bytes(64 << 10),
        spans: Spans::from_micros(pre, hw, post),
        measured_mib_s: None,
        source: "white paper, Table 3",
    }
}

/// The board of this name.
pub fn platform(name: &str) -> Option<&'static Platform> {
    PLATFORMS.iter().find(|platform| platform.name == name)
}

impl Platform {
    /// The workload of this name.
    pub fn workload(&self, name: &str) -> Option<&'static MeasuredSpans> {
        self.workloads.iter().find(|workload| workload.name == name)
    }

    /// The pipeline of one of its workloads: its cores and queue engine, depth 32, all of pre serial (both kernels have
    /// one `mmcqd` thread for a card).
    pub fn pipeline(&self, workload: &MeasuredSpans) -> Pipeline {
        Pipeline {
            spans: workload.spans,
            serial: workload.spans.pre,
            chunk: workload.chunk,
            depth: DEPTH_QUEUED_MAX,
            cores: self.cores,
            engine: self.engine,
            gap: (self.gap_completion + self.gap_issue).min(workload.spans.software()),
        }
    }
}
