//! The arguments of `bench`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
#[cfg(feature = "sim")]
use emmc_units::Nanos;
use emmc_units::Size;

/// How requests are submitted to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineArg {
    /// io_uring if the kernel supports it, else pread and pwrite
    #[default]
    Auto,
    /// io_uring or an error
    #[value(name = "io_uring")]
    IoUring,
    /// pread and pwrite, with threads if several requests are outstanding
    Pread,
}

#[derive(Args, Debug, Default)]
pub(crate) struct BenchArgs {
    /// A block device, a file, a folder (for a temporary file in it), or a virtual card: sim:PROFILE,
    /// sim:PROFILE@PERCENT, sim:FOLDER
    #[arg(required_unless_present = "list", value_parser = super::known::target(), hide_possible_values = true)]
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) target: Option<OsString>,
    /// The suite; --list prints them
    #[arg(long, default_value = "speed", value_name = "NAME", value_parser = super::known::suite())]
    #[arg(hide_possible_values = true)]
    pub(crate) suite: String,
    /// List the suites
    #[arg(long, conflicts_with_all = ["target", "suite", "rows"])]
    pub(crate) list: bool,
    /// Start of the measured area on the target
    #[arg(long, value_name = "SIZE")]
    pub(crate) from: Option<Size>,
    /// Size of the measured area, if the suite supports a choice; a target file that does not exist is created with
    /// this size and removed afterwards
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<Size>,
    /// Number of outstanding requests, if the suite supports a choice
    #[arg(long, value_name = "COUNT")]
    pub(crate) queue_depth: Option<u32>,
    /// Limit of written data, for suites that run until they have enough data
    #[arg(long, value_name = "SIZE")]
    pub(crate) write_budget: Option<Size>,
    /// Run only these rows, e.g. record sizes: 4,128,16384
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) rows: Vec<String>,
    /// Skip everything that writes
    #[arg(long)]
    pub(crate) read_only: bool,
    /// The recorded requests for the suites replay and boot: fio iolog, blktrace, blkparse, ftrace, trace.dat,
    /// CSV or MSR CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Issue recorded requests at their recorded times instead of as fast as possible
    #[arg(long, requires = "trace")]
    pub(crate) timed: bool,
    /// Wrap recorded requests beyond the target's end around to its start
    #[arg(long, requires = "trace")]
    pub(crate) wrap: bool,
    /// Seed of everything random
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub(crate) seed: u64,
    /// Allow overwriting the content of the device or file
    #[arg(long)]
    pub(crate) destroy: bool,
    /// Confirm with the device's name instead of at the prompt, for scripts
    #[arg(long, value_name = "NAME", requires = "destroy")]
    pub(crate) yes_i_mean: Option<String>,
    /// Save the content before and restore it after, also after Ctrl-C; after kill -9 or a power cut only with
    /// --save-to and then --restore-from
    #[arg(long)]
    pub(crate) save_restore: bool,
    /// Save the content to this new file instead of to memory
    #[arg(long, value_name = "FILE", requires = "save_restore")]
    pub(crate) save_to: Option<PathBuf>,
    /// Measure nothing: restore the content that a killed bench left in the file of --save-to
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["list", "suite", "from", "size", "queue_depth", "write_budget", "rows", "read_only",
                                "trace", "seed", "save_restore", "save_to", "engine"])]
    pub(crate) restore_from: Option<PathBuf>,
    /// How requests are submitted to the kernel
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub(crate) engine: EngineArg,
    /// Limit a virtual card to one request at a time, like a controller without command queueing
    #[cfg(feature = "sim")]
    #[arg(long)]
    pub(crate) no_queueing: bool,
    /// How often the queue engine asks a virtual card for ready tasks (CIT), in microseconds; 213 is the reset value
    /// [default: 20.48]
    #[cfg(feature = "sim")]
    #[arg(long, value_name = "US", value_parser = poll, conflicts_with = "no_queueing")]
    pub(crate) queue_poll_us: Option<Nanos>,
    /// The controller reports the end of a flush by an interrupt; without this the host asks with growing pauses, as
    /// Linux does where the controller cannot wait 30 s for a virtual card
    #[cfg(feature = "sim")]
    #[arg(long)]
    pub(crate) no_flush_polling: bool,
    /// Attach a virtual card to this board, with its software time per request or its page cache: its name, or the
    /// file of a host, e.g. one that `lab calibrate` wrote
    #[cfg(feature = "sim")]
    #[arg(long, alias = "host", value_name = "BOARD|FILE", value_parser = super::known::board())]
    pub(crate) board: Option<String>,
}

/// Microseconds between two questions of the queue engine.
#[cfg(feature = "sim")]
fn poll(text: &str) -> Result<Nanos, String> {
    match text.parse::<f64>() {
        Ok(us) if (0.01..=POLL_US_MAX).contains(&us) => Ok(Nanos::from_micros_f64(us)),
        _ => Err(format!("expected microseconds, 0.01 to {POLL_US_MAX}, e.g. 20.48")),
    }
}

/// The longest that CIT holds: 65535 periods of a clock of 19.2 MHz. Unit: microseconds.
#[cfg(feature = "sim")]
const POLL_US_MAX: f64 = 3413.0;
