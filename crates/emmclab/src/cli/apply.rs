//! `apply`: a plan, a card, and what to do with them.

use std::path::PathBuf;

use clap::{Args, ValueHint};

#[derive(Args, Debug)]
pub(crate) struct ApplyArgs {
    /// A plan that `emmclab plan ... -o PLAN.json` saved; - for standard input
    #[arg(value_name = "PLAN", value_hint = ValueHint::FilePath)]
    pub(crate) plan: PathBuf,
    /// The card: a device, or the folder of a virtual card; for --verify and --rehearse saved registers, too
    #[arg(value_name = "TARGET", value_hint = ValueHint::AnyPath)]
    pub(crate) target: String,
    /// Send nothing: report where the card stands with the plan
    #[arg(long, conflicts_with_all = ["rehearse", "permanent", "snapshot"])]
    pub(crate) verify: bool,
    /// Send nothing: carry the plan out on a virtual card with the registers of TARGET, with the power cycle
    #[arg(long, conflicts_with_all = ["permanent", "snapshot"])]
    pub(crate) rehearse: bool,
    /// Agree to what cannot be reverted: the card's serial number, as `emmclab show` prints it
    #[arg(long, value_name = "SERIAL")]
    pub(crate) permanent: Option<String>,
    /// Where the registers before the change are saved [default: PLAN.before.json beside the plan]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) snapshot: Option<PathBuf>,
}
