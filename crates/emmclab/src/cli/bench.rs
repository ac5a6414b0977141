//! The arguments of `bench`.

use clap::Args;
use emmc_units::Size;

#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    /// A block device, a file, or a virtual card: sim:PROFILE[@PERCENT], sim:FOLDER
    #[arg(required_unless_present = "list")]
    pub(crate) target: Option<String>,
    /// The suite; --list tells them
    #[arg(long, default_value = "iozone", value_name = "NAME")]
    pub(crate) suite: String,
    /// List the suites
    #[arg(long)]
    pub(crate) list: bool,
    /// Where on the target the measured area begins
    #[arg(long, value_name = "SIZE")]
    pub(crate) from: Option<Size>,
    /// How large the measured area is, where the suite lets it be chosen
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
    /// For everything left to chance
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub(crate) seed: u64,
    /// A virtual card takes one request at a time, as behind a controller without command queueing
    #[cfg(feature = "sim")]
    #[arg(long)]
    pub(crate) no_queueing: bool,
}
