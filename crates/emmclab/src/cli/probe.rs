//! The arguments of `probe`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueHint};
use emmc_probe::Part;
use emmc_units::Size;

use super::EngineArg;

#[derive(Args, Debug, Default)]
pub(crate) struct ProbeArgs {
    /// A block device, a file, or a virtual card: sim:PROFILE, sim:PROFILE@PERCENT, sim:FOLDER
    #[arg(value_parser = super::known::target(), hide_possible_values = true)]
    #[arg(value_hint = ValueHint::AnyPath, required_unless_present = "from")]
    pub(crate) target: Option<OsString>,
    /// Conclude from saved results of one card: output of flashbench, iozone or fio (JSON), bench --json; - for
    /// standard input
    #[arg(long, num_args = 1.., value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["target", "write", "start", "size", "write_budget", "seed", "destroy", "yes_i_mean"])]
    #[arg(conflicts_with_all = ["save_restore", "save_to", "engine", "time_budget", "only"])]
    pub(crate) from: Vec<String>,
    /// Also run the probes that write; without it nothing is written
    #[arg(long)]
    pub(crate) write: bool,
    /// Print everything: the evidence of each parameter
    #[arg(long)]
    pub(crate) full: bool,
    /// Start of the probed area on the target
    #[arg(long, value_name = "SIZE")]
    pub(crate) start: Option<Size>,
    /// Size of the probed area [default: to the end of the target]
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<Size>,
    /// Limit of written data [default: 2 GiB]
    #[arg(long, value_name = "SIZE", requires = "write")]
    pub(crate) write_budget: Option<Size>,
    /// Limit of time: what was not measured until then has no value [default: 20min]
    #[arg(long, value_name = "TIME", value_parser = super::known::time_of_work)]
    pub(crate) time_budget: Option<Duration>,
    /// Measure only these parts, e.g. --only capacity: whether all of the card is there; what that overwrites is
    /// restored
    #[arg(long, value_name = "PART", value_delimiter = ',', value_parser = part())]
    pub(crate) only: Vec<Part>,
    /// Seed of everything random
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub(crate) seed: u64,
    /// Allow overwriting the content of the device or file
    #[arg(long, requires = "write")]
    pub(crate) destroy: bool,
    /// Confirm with the device's name instead of at the prompt, for scripts
    #[arg(long, value_name = "NAME", requires = "destroy")]
    pub(crate) yes_i_mean: Option<String>,
    /// Save the content before and restore it after, also after Ctrl-C; after kill -9 or a power cut only with
    /// --save-to and then `bench --restore-from`
    #[arg(long, requires = "write")]
    pub(crate) save_restore: bool,
    /// Save the content to this new file instead of to memory
    #[arg(long, value_name = "FILE", requires = "save_restore")]
    pub(crate) save_to: Option<PathBuf>,
    /// How requests are submitted to the kernel
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub(crate) engine: EngineArg,
}

/// A part of a probe, by name.
fn part() -> impl TypedValueParser<Value = Part> {
    PossibleValuesParser::new(Part::ALL.map(Part::name)).map(|name| {
        let named = Part::ALL.into_iter().find(|part| part.name() == name);
        named.unwrap_or(Part::Capacity)
    })
}
