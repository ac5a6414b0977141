//! The result as it is serialised.

use serde::Serialize;

pub use super::machine::{CpuRow, DeviceRow, ProcessorRow};
pub use super::named::{NamedPart, NamedParts};
pub use super::over_time::{ColumnRow, OverTime};
use crate::correlate::Unpaired;

/// Times of one span. Unit: microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Times {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

/// Requests of one kind, and where their time goes. A span is `null` if the recording does not have its events.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpanRow {
    /// `major:minor`.
    pub device: String,
    /// read, write, discard, erase, flush or other.
    pub op: String,
    /// The size of a request; 0 for a flush, and for sizes that are summed up because there are too many.
    pub size_bytes: u64,
    /// Who waits: direct, sync, fsync, async, readahead, writeback; unknown without system calls.
    pub mode: String,
    /// Requests.
    pub count: u64,
    /// 1: system call to the first bio.
    pub vfs_us: Option<Times>,
    /// 2: bio to driver.
    pub block_us: Option<Times>,
    /// 3: driver to command.
    pub issue_us: Option<Times>,
    /// 4: the card.
    pub hardware_us: Option<Times>,
    /// 5: end of the card's work to the caller.
    pub post_us: Option<Times>,
    /// 5 in its parts; `null` if no call waits for such a request.
    pub post_parts: Option<PostParts>,
    /// Parts of 1 and 5 with a name; `null` if no event shows one.
    pub named_parts: Option<NamedParts>,
    /// Driver to completion: the D2C of blktrace's tools.
    pub device_us: Times,
    /// Begin to end.
    pub total_us: Times,
    /// The part of 2 and 3 in which the request waited for others. Unit: microseconds, mean.
    pub waited_us: f64,
    /// The share of the card in the time from begin to end. Unit: percent.
    pub hardware_percent: Option<f64>,
    /// Requests that begin where the last one of this kind ended. Unit: percent.
    pub sequential_percent: f64,
}

/// Span 5 in its parts, of the requests whose call returned after them: of several in a call, the last. A part is
/// `null` if the recording does not have its events.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PostParts {
    /// Requests.
    pub count: u64,
    /// Of those, with the wake-up of the thread: `sched_waking` or `sched_wakeup`.
    pub with_wake: u64,
    /// Of those, with the thread's begin on a processor: `sched_switch`.
    pub with_run: u64,
    /// End of the card's work to `block_rq_complete`.
    pub completion_us: Option<Times>,
    /// `block_rq_complete` to the last wake-up of the thread before its call returns. An fsync that waits for the
    /// journal has that in it too.
    pub wake_us: Option<Times>,
    /// `block_rq_complete` to the thread on a processor: `wake_us`, and the wait for the processor.
    pub run_us: Option<Times>,
    /// From there, else from the wake-up, to the return of the call.
    pub return_us: Option<Times>,
}

/// Requests of one kind as the white paper on command queueing has them: three stages, and what follows from them.
/// Without waiting for other requests. Speeds are MiB/s, which the paper writes MB/s.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PaperRow {
    /// `major:minor`.
    pub device: String,
    /// read or write.
    pub op: String,
    /// The size of a request.
    pub size_bytes: u64,
    /// direct, sync or fsync.
    pub mode: String,
    /// At least half of the requests begin where the last one of this kind ended.
    pub is_sequential: bool,
    /// Requests.
    pub count: u64,
    /// From the system call to the card, the mean. Unit: microseconds.
    pub pre_us: f64,
    /// In the card.
    pub hardware_us: f64,
    /// From the card to the caller.
    pub post_us: f64,
    /// The share of pre and post in all three.
    pub overhead_percent: f64,
    /// One request at a time.
    pub theoretical_mib_per_s: f64,
    /// The same with a card that needs no time.
    pub zero_hardware_mib_per_s: f64,
    /// Many threads on several processors: the longest stage is the limit.
    pub many_threads_mib_per_s: f64,
    /// What these requests had: their bytes over the time in which any of them was in progress.
    pub measured_mib_per_s: f64,
}

/// Commands of the MMC layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandCounts {
    /// All commands and tasks.
    pub count: u64,
    /// Tasks of a command queue in hardware.
    pub queued_tasks: u64,
    /// CMD13.
    pub polls: u64,
    /// With an error.
    pub errors: u64,
    /// While re-tuning was needed or in progress.
    pub retuned: u64,
    /// Switches between partitions.
    pub partition_switches: u64,
    /// Time with a command in progress. Unit: milliseconds.
    pub busy_ms: f64,
}

/// Commands with data of a recording without block events.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandRow {
    /// Whether they write.
    pub write: bool,
    /// Unit: blocks of 512 bytes.
    pub blocks: u32,
    /// How many.
    pub count: u64,
    /// Unit: microseconds.
    pub mean_us: f64,
}

/// A command that took long.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stall {
    /// When it started, on the recording's clock. Unit: seconds.
    pub at_s: f64,
    /// How long the card had it. Unit: milliseconds.
    pub took_ms: f64,
    /// What it was.
    pub what: String,
    /// The controller, such as mmc0.
    pub host: String,
    /// CMD25 and the like; `CQE task` for a task of the command queue.
    pub command: String,
    /// The first block, or the argument.
    pub argument: u32,
    /// Unit: bytes.
    pub size_bytes: u64,
    /// The thread that had to wait, if it is known.
    pub who: Option<String>,
}

/// A figure of btt: every bio counts, merged ones too. Unit: seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stage {
    /// Q2G, G2I, I2D, D2C or Q2C.
    pub name: &'static str,
    /// The shortest.
    pub min_s: f64,
    /// The mean.
    pub mean_s: f64,
    /// The longest.
    pub max_s: f64,
    /// How many.
    pub count: u64,
}

/// A thread with its requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Waiter {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub name: Option<String>,
    /// Requests that it queued.
    pub requests: u64,
    /// Unit: bytes.
    pub written_bytes: u64,
    /// Unit: bytes.
    pub read_bytes: u64,
    /// The sum of its requests' times. Unit: milliseconds.
    pub waited_ms: f64,
}

/// Requests that were made for one reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reason {
    /// direct I/O, read, read-ahead, sync write, journal, metadata, write-back, flush, discard, swap or other.
    pub why: String,
    /// How many.
    pub requests: u64,
    /// Unit: bytes.
    pub read_bytes: u64,
    /// Unit: bytes.
    pub written_bytes: u64,
    /// The sum of the requests' times. Unit: milliseconds.
    pub waited_ms: f64,
    /// The threads that queued most of them, by time.
    pub threads: Vec<String>,
}

/// A file that requests were made for.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TouchedFile {
    /// `major:minor` of its file system or disk.
    pub device: String,
    /// Its number, for `find -inum`.
    pub inode: u64,
    /// Requests.
    pub requests: u64,
    /// Unit: bytes.
    pub read_bytes: u64,
    /// Unit: bytes.
    pub written_bytes: u64,
    /// The sum of the requests' times. Unit: milliseconds.
    pub waited_ms: f64,
}

/// What the host could do with these spans, by the model of `sim pipeline`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limit {
    /// The requests that most of the time goes to.
    pub op: String,
    /// Unit: bytes.
    pub size_bytes: u64,
    /// As in `spans`.
    pub mode: String,
    /// The longest span of these: vfs, block, issue, hardware (device without MMC events) or post; processor if several
    /// requests at a time kept all processors of which a switch is recorded busy for 95 % of their time.
    pub ceiling: String,
    /// Software before the card, without waiting for other requests. Unit: microseconds.
    pub pre_us: f64,
    /// The card.
    pub hardware_us: f64,
    /// Software after it.
    pub post_us: f64,
    /// The program's own work between two requests, one at a time; `null` if idle times are not recorded, or none
    /// came alone.
    pub own_us: Option<f64>,
    /// The work of all processors for one of several requests, or for one alone if there are too few; `null` as before.
    pub processor_us: Option<f64>,
    /// Whether the card's time is from MMC events; else it is the driver's, with what the driver adds.
    pub is_hardware: bool,
    /// One request after the other. Unit: MB/s (10^6).
    pub theoretical_mb_per_s: f64,
    /// The same with a card that needs no time.
    pub zero_hardware_mb_per_s: f64,
    /// What these requests had: their bytes over the time in which any of them was in progress.
    pub measured_mb_per_s: f64,
    /// Predictions.
    pub predicted: Vec<Prediction>,
}

/// A predicted speed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prediction {
    /// Outstanding requests.
    pub depth: u32,
    /// Processors.
    pub cores: u32,
    /// Whether the card's command queue is used, in hardware.
    pub queueing: bool,
    /// Unit: MB/s (10^6).
    pub mb_per_s: f64,
}

/// What a recording shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Analysis {
    /// The formats of the files.
    pub forms: Vec<String>,
    /// The clock, if the recording names it.
    pub clock: Option<String>,
    /// From the first event to the last. Unit: seconds.
    pub duration_s: f64,
    /// Events that were read.
    pub events: u64,
    /// Completed requests.
    pub requests: u64,
    /// Completed requests of other devices: those of a disk beside the card, or those of no chosen device.
    pub other_requests: u64,
    /// Everything that has no partner.
    pub unpaired: u64,
    /// The same by kind.
    pub unpaired_by: Unpaired,
    /// Events that the kernel or the recorder dropped, as far as they are counted.
    pub lost_events: u64,
    /// Losses whose number of events is unknown.
    pub losses_uncounted: u64,
    /// Damaged places in the files.
    pub damaged: u64,
    /// The first of them.
    pub damage: Vec<String>,
    /// Which spans are there: exact, derived or absent, with the events.
    pub sources: Vec<SpanSource>,
    /// Requests by kind; most time first.
    pub spans: Vec<SpanRow>,
    /// The same kinds in the three stages of the white paper, if a call waits for them and all stages are recorded.
    pub paper: Vec<PaperRow>,
    /// What the host could do; `null` without requests of a size.
    pub limit: Option<Limit>,
    /// Bios.
    pub bios: u64,
    /// Merged bios.
    pub merges: u64,
    /// Split bios.
    pub splits: u64,
    /// Requests that the driver returned.
    pub requeues: u64,
    /// Requests with an error.
    pub errors: u64,
    /// Commits of a journal.
    pub commits: u64,
    /// The figures of btt.
    pub stages: Vec<Stage>,
    /// Devices.
    pub devices: Vec<DeviceRow>,
    /// Processors whose idle times are recorded.
    pub processors: Vec<ProcessorRow>,
    /// Which processors had the requests.
    pub cpus: Vec<CpuRow>,
    /// The MMC layer; `null` without its events.
    pub commands: Option<CommandCounts>,
    /// Commands with data, if no block events are recorded.
    pub command_rows: Vec<CommandRow>,
    /// Commands that took long; the longest first.
    pub stalls: Vec<Stall>,
    /// Threads; the longest wait first.
    pub waiters: Vec<Waiter>,
    /// Why requests were made; most time first.
    pub reasons: Vec<Reason>,
    /// Files of requests, as far as events name them; most time first.
    pub files: Vec<TouchedFile>,
    /// Requests over time; `null` without requests.
    pub over_time: Option<OverTime>,
    /// What limits the speed, as far as the recording shows it.
    pub causes: Vec<String>,
}

/// Where a span comes from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpanSource {
    /// vfs, block, issue, hardware, post, or wake-up, which is a part of post.
    pub span: &'static str,
    /// exact, derived or absent.
    pub quality: &'static str,
    /// The events that bound it, or what is missing.
    pub events: &'static str,
}
