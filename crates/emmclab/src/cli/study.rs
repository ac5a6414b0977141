//! The arguments of `study`.

#[cfg(any(feature = "bench", feature = "trace", feature = "twin"))]
use std::path::PathBuf;

use clap::{Args, ValueHint};

#[cfg(feature = "html")]
use super::SaveArgs;
use super::{HistoryArgs, LiveArgs, MoreArgs, known};

#[derive(Args, Debug)]
pub(crate) struct StudyArgs {
    /// Device, saved file, - for standard input, or sim:PROFILE [default: piped input, else
    /// the only card of this machine]
    #[arg(value_parser = known::source(), hide_possible_values = true, value_hint = ValueHint::AnyPath)]
    pub(crate) source: Option<String>,
    /// Study a demonstration card: a virtual card with 62 % of its life used
    #[arg(long, conflicts_with_all = ["source", "with", "vendor_reply", "sysroot", "vendor_health", "since", "history", "at"])]
    pub(crate) demo: bool,
    #[command(flatten)]
    pub(crate) more: MoreArgs,
    #[cfg(feature = "html")]
    #[command(flatten)]
    pub(crate) save: SaveArgs,
    /// Print everything: all evidence, health, speed, capacity, settings
    #[arg(long)]
    pub(crate) full: bool,
    #[command(flatten)]
    pub(crate) history: HistoryArgs,
    #[command(flatten)]
    pub(crate) live: LiveArgs,
    /// Output of `bench --json` for the same card, any suite (may be repeated); without one, a virtual card is measured
    #[cfg(feature = "bench")]
    #[arg(long, value_name = "FILE")]
    pub(crate) bench: Vec<PathBuf>,
    /// Output of `trust --json` for the same card: whether it must go leads the report
    #[cfg(feature = "bench")]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) trust: Option<PathBuf>,
    /// A recording of this card's requests: what limits its speed (`emmclab trace record`)
    #[cfg(feature = "trace")]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) trace: Option<PathBuf>,
    /// Output of `sim what-if --json` for this card or its twin: what a change would give
    #[cfg(feature = "twin")]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) what_if: Option<PathBuf>,
    /// Measure the read speed of a live card: takes some seconds, writes nothing
    #[cfg(feature = "bench")]
    #[arg(long)]
    pub(crate) measure: bool,
}
