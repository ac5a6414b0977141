//! The arguments of `bench`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use emmc_units::Size;

/// How requests are handed to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineArg {
    /// io_uring where the kernel has it, else pread and pwrite
    #[default]
    Auto,
    /// io_uring or an error
    #[value(name = "io_uring")]
    IoUring,
    /// pread and pwrite, with threads where several requests are outstanding
    Pread,
}

#[derive(Args, Debug, Default)]
pub(crate) struct BenchArgs {
    /// A block device, a file, a folder (a file is made in it and removed), or a virtual card: sim:PROFILE, sim:PROFILE@PERCENT, sim:FOLDER
    #[arg(required_unless_present = "list", value_parser = super::known::target(), hide_possible_values = true)]
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) target: Option<OsString>,
    /// The suite; --list tells them
    #[arg(long, default_value = "speed", value_name = "NAME", value_parser = super::known::suite())]
    #[arg(hide_possible_values = true)]
    pub(crate) suite: String,
    /// List the suites
    #[arg(long, conflicts_with_all = ["target", "suite", "rows"])]
    pub(crate) list: bool,
    /// Where on the target the measured area begins
    #[arg(long, value_name = "SIZE")]
    pub(crate) from: Option<Size>,
    /// How large the measured area is, where the suite lets it be chosen; a file that is not there is made of this size, and
    /// removed
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<Size>,
    /// Requests outstanding, where the suite lets them be chosen
    #[arg(long, value_name = "COUNT")]
    pub(crate) queue_depth: Option<u32>,
    /// The most that may be written, where the suite goes on until it has seen enough
    #[arg(long, value_name = "SIZE")]
    pub(crate) write_budget: Option<Size>,
    /// Only these rows, e.g. record sizes: 4,128,16384
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) rows: Vec<String>,
    /// Leave out everything that writes
    #[arg(long)]
    pub(crate) read_only: bool,
    /// The recorded requests of the suite replay: fio's iolog, blktrace's binary, blkparse's text, MSR's CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Make recorded requests at their times rather than as fast as it goes
    #[arg(long, requires = "trace")]
    pub(crate) timed: bool,
    /// Recorded requests beyond the target's end begin anew at its beginning
    #[arg(long, requires = "trace")]
    pub(crate) wrap: bool,
    /// For everything left to chance
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub(crate) seed: u64,
    /// Let what is on the device or file be lost
    #[arg(long)]
    pub(crate) destroy: bool,
    /// The device's name, instead of typing it when asked: for scripts
    #[arg(long, value_name = "NAME", requires = "destroy")]
    pub(crate) yes_i_mean: Option<String>,
    /// Put back what was on it, also after Ctrl-C; not after kill -9 or a power cut
    #[arg(long)]
    pub(crate) save_restore: bool,
    /// Save what was on it in this new file rather than in memory
    #[arg(long, value_name = "FILE", requires = "save_restore")]
    pub(crate) save_to: Option<PathBuf>,
    /// How requests are handed to the kernel
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub(crate) engine: EngineArg,
    /// A virtual card takes one request at a time, as behind a controller without command queueing
    #[cfg(feature = "sim")]
    #[arg(long)]
    pub(crate) no_queueing: bool,
    /// Put a virtual card behind this board, with its processor's spans or its page cache
    #[cfg(feature = "sim")]
    #[arg(long, alias = "host", value_name = "BOARD", value_parser = super::known::board())]
    pub(crate) board: Option<String>,
}
