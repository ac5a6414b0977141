//! The arguments of `bus`.

use std::time::Duration;

use clap::{Args, ValueHint};

use super::known;

#[derive(Args, Debug)]
pub(crate) struct BusArgs {
    /// A card, a partition of it, or where its filesystem is mounted [default: the only card]
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) place: Option<String>,
    /// Read for this long at each clock
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = known::time_of_work)]
    pub(crate) time: Duration,
    /// With errors, try 3/4, 1/2 and 1/4 of the clock until one is clean; the clock is set back at the end
    #[arg(long)]
    pub(crate) lower: bool,
    /// With errors, try these clocks instead, in this order
    #[arg(long, value_name = "FREQUENCY", value_delimiter = ',', value_parser = known::frequency)]
    pub(crate) clock: Vec<u64>,
    /// Seed of the places that are read
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
}
