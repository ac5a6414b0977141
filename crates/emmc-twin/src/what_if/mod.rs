//! What changes if something is changed: a virtual card under a duty, as it is and with changes, side by side.
//!
//! `change` reads changes, `setup` has what they set, `board` makes the card of a setup by the commands of a host,
//! `question` has what is asked, `trial` is that card under the duty, `steady` reaches the steady state and measures,
//! `outlook` extends the wear to the end of life, `life` runs a whole life, `ranking` compares parts. Absent on
//! purpose: files, and factors in place of mechanisms: every figure but the years is counted on the simulated card.

mod board;
mod change;
mod life;
mod outlook;
mod question;
mod ranking;
mod result;
mod setup;
mod steady;
mod trial;

pub use change::{Change, ChangeError, KEYS};
pub use life::{Life, LifeEnd, LifeStep, life};
pub use question::{Question, Written, what_if};
pub use ranking::{Needs, Ranking, Rated, Unfit, ranking, rate};
pub use result::{Answer, DutyFacts, Latencies, WhatIf};
pub use setup::{Capacity, Offset, Setup};

use emmc_card::card::Card;
use emmc_units::Instant;

/// Makes the card of today, powered; called once for each setup, because a trial changes the card.
pub type MakeCard<'a> = &'a dyn Fn() -> Result<(Card, Instant), String>;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WhatIfError {
    /// A change that the card cannot do, or data that does not fit.
    #[error("{change}: {what}")]
    Refused {
        /// The change, or `today`.
        change: String,
        /// Why.
        what: String,
    },
    /// Cancelled.
    #[error("stopped")]
    Stopped,
}
