/// Why a health question has no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HealthError {
    /// An invalid threshold.
    #[error("{}; expected 1 to 100 %, the warning not above the critical one", given(*warn, *crit))]
    Thresholds {
        /// Where a warning begins, in percent, if it was given.
        warn: Option<u8>,
        /// Where it is critical, in percent, if it was given.
        crit: Option<u8>,
    },
    /// A factor of the endurance is 0.
    #[error("{what} is 0; expected at least 1")]
    EnduranceZero {
        /// Which factor.
        what: &'static str,
    },
    /// The endurance overflows.
    #[error("{block_bytes} bytes x {blocks} blocks x {cycles} cycles is more than 2^64 bytes")]
    EnduranceTooLarge {
        /// Size of a block.
        block_bytes: u64,
        /// Blocks.
        blocks: u64,
        /// Cycles.
        cycles: u64,
    },
    /// An impossible write amplification.
    #[error("write amplification is {found:?}; expected 1 to 10000")]
    WriteAmplification {
        /// The number.
        found: f64,
    },
    /// A line of a history file is not an observation.
    #[error("{name}: line {line}: expected {expected}, found {found}")]
    HistoryLine {
        /// The file, as the user called it.
        name: String,
        /// Line, counted from 1.
        line: usize,
        /// What should be there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// The time when a card was read is unknown.
    #[error("{name}: expected the time when the card was read, found {found}; a snapshot has it")]
    NoTime {
        /// The source, as the user called it.
        name: String,
        /// What was found instead.
        found: String,
    },
    /// The observations are from more than one card.
    #[error("observations of different cards: CID {first} and CID {other}")]
    DifferentCards {
        /// The CID of the first observation that has one.
        first: String,
        /// The CID that differs.
        other: String,
    },
    /// An observation is older than the date of being put in service.
    #[error("the first observation, {first}, is older than the date of being put in service, {since}")]
    InServiceLate {
        /// When it was put in service.
        since: String,
        /// Time of the first observation.
        first: String,
    },
    /// There are no observations.
    #[error("no observation; expected at least one line with a time and a life time")]
    NoObservation,
}

/// Only the thresholds that the user gave.
fn given(warn: Option<u8>, crit: Option<u8>) -> String {
    match (warn, crit) {
        (Some(warn), Some(crit)) => format!("warning at {warn} % and critical at {crit} %"),
        (Some(warn), None) => format!("warning at {warn} %"),
        (None, Some(crit)) => format!("critical at {crit} %"),
        (None, None) => "no threshold".into(),
    }
}
