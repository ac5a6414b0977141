//! Earlier observations of a card, for a forecast of its end of life.

use std::path::PathBuf;

use clap::Args;

/// Earlier observations of a card.
#[derive(Args, Debug, Default)]
pub(crate) struct HistoryArgs {
    /// An earlier snapshot of the same card, or a dump with its time, for the forecast (may be repeated)
    #[arg(long, value_name = "FILE[@TIME]")]
    pub(crate) since: Vec<String>,
    /// When the source was read from the card, e.g. 2026-11-21T08:00:00Z; for sources that do not contain it
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
    /// A history file: one JSON object per line with time, life_a, life_b
    #[arg(long, value_name = "FILE")]
    pub(crate) history: Option<PathBuf>,
}
