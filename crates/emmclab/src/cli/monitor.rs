//! The arguments of `monitor`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::{MoreArgs, known};

#[derive(Args, Debug)]
pub(crate) struct MonitorArgs {
    /// Device, saved file, - for standard input, or sim:PROFILE [default: every card of this machine]
    #[arg(value_parser = known::source(), hide_possible_values = true, value_hint = ValueHint::AnyPath)]
    pub(crate) source: Option<String>,
    #[command(flatten)]
    pub(crate) more: MoreArgs,
    /// Take one sample of each card and end, as without it: a timer starts the next one
    #[arg(long)]
    pub(crate) once: bool,
    /// Print one line of JSON per card, of at most 1024 bytes, also beside --append and --metrics
    #[arg(long)]
    pub(crate) ndjson: bool,
    /// Append the line to this file if wear, state or errors changed since its last line, or that is 30 days old
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) append: Option<PathBuf>,
    /// Append a line at least this often
    #[arg(long, value_name = "DAYS", default_value = "30", requires = "append")]
    #[arg(value_parser = clap::value_parser!(u32).range(..=3650))]
    pub(crate) at_least: u32,
    /// Replace this file by metrics in Prometheus' text format, for a textfile collector
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) metrics: Option<PathBuf>,
    /// The fleet's secret, in a file: identities are hashed with it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) salt_file: Option<PathBuf>,
    /// Name of this machine in the fleet [default: a hash of its machine-id]
    #[arg(long, value_name = "NAME")]
    pub(crate) device_id: Option<String>,
    /// When a saved source was read from the card, e.g. 2026-11-21T08:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
    /// Also ask a live card for its vendor's health report, if read commands are enough
    #[arg(long)]
    pub(crate) vendor_health: bool,
    /// Where a question for the vendor's report that has not ended is noted; the card is not asked again then
    #[arg(long, value_name = "DIR", default_value = "/var/lib/emmclab", requires = "vendor_health")]
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) state: PathBuf,
}
