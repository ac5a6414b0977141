//! A checkpoint beside requests: the state is written in pieces, one with each commit, while the card works.
//!
//! Three steps, after each of which the process may die:
//! 1. An empty journal is made; the present one gets the name of an earlier one, and the new one continues it. The
//!    state file and both journals are the card.
//! 2. Pieces go to a new state, under a name of its own, which nobody reads.
//! 3. When it is complete, another thread gives it its name and removes the earlier journal: the system takes its time
//!    for removing large files. From then on the new state and the second journal are the card.
//!
//! What cannot be written is given up; state and journals stay as they are, and are valid.

use std::path::Path;
use std::thread::JoinHandle;

use emmc_card::card::Card;
use emmc_units::Instant;

use super::journal::Journal;
use super::newest;
use super::state::{Header, NewState};
use super::{EARLIER_JOURNAL_FILE, NEW_STATE_FILE, STATE_FILE};

/// Units in one piece, if blocks are smaller: some tens of microseconds of work. Unit: mapping units.
const PIECE_UNITS: u32 = 1024;

/// A checkpoint in progress.
#[derive(Debug)]
pub(super) enum Checkpoint {
    /// The blocks from `next` on are not in the state yet.
    Writing { state: NewState, next: u32 },
    /// A complete state gets its name.
    Placing(Placing),
}

/// The progress after a step.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// More steps are needed.
    Going,
    /// The state of this generation has its name.
    Done(u64),
}

impl Checkpoint {
    /// Begins the state of the journal's generation; the rest of its header is that of the state before.
    ///
    /// Errors: the system's.
    pub(super) fn begin(
        folder: &Path,
        journal: &Journal,
        before: Header,
        card: &Card,
        now: Instant,
    ) -> std::io::Result<Self> {
        let outline = card.to_outline(now);
        let path = folder.join(NEW_STATE_FILE);
        let (generation, start) = (journal.generation(), journal.size_bytes());
        let header = Header { generation, start, follow: Some(true), ..before };
        let state = NewState::create(&path, header, &outline)?;
        Ok(Self::Writing { state, next: 0 })
    }

    /// Takes one step; everything that changed the card must be in the journal.
    ///
    /// Errors: the system's.
    pub(super) fn step(
        self,
        folder: &Path,
        journal: &Journal,
        card: &Card,
    ) -> std::io::Result<(Option<Self>, Progress)> {
        match self {
            Self::Writing { mut state, mut next } => {
                let end = card.blocks_to_store();
                if next == end {
                    return Ok((Some(Self::Placing(Placing::start(state, folder)?)), Progress::Going));
                }
                next = add_piece(&mut state, card, next, PIECE_UNITS, journal.size_bytes())?;
                Ok((Some(Self::Writing { state, next }), Progress::Going))
            }
            Self::Placing(placing) if placing.is_under_way() => Ok((Some(Self::Placing(placing)), Progress::Going)),
            Self::Placing(placing) => placing.wait().map(|generation| (None, Progress::Done(generation))),
        }
    }
}

/// Adds the blocks from `first` on, about as many as hold `units` units; returns the next one.
pub(super) fn add_piece(
    state: &mut NewState,
    card: &Card,
    first: u32,
    units: u32,
    position: u64,
) -> std::io::Result<u32> {
    let blocks = (units / card.device().nand().geometry().units_per_block().max(1)).max(1);
    let end = first.saturating_add(blocks).min(card.blocks_to_store());
    state.add(position, &card.blocks_to_piece(first..end))?;
    Ok(end)
}

/// The thread that places a state. It is waited for before the folder is left.
#[derive(Debug)]
pub(super) struct Placing {
    generation: u64,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

impl Placing {
    fn start(state: NewState, folder: &Path) -> std::io::Result<Self> {
        let (generation, name, folder) = (state.generation(), folder.join(STATE_FILE), folder.to_path_buf());
        let earlier = folder.join(EARLIER_JOURNAL_FILE);
        let place = move || {
            state.place(&name, false)?;
            // From now on an older state is known to be one.
            newest::note(&folder, generation);
            // A later checkpoint replaces what stays.
            let _ = std::fs::remove_file(earlier);
            Ok(())
        };
        let thread = std::thread::Builder::new().name("checkpoint".into()).spawn(place)?;
        Ok(Self { generation, thread: Some(thread) })
    }

    fn is_under_way(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Waits for its end; returns the generation.
    ///
    /// Errors: the system's.
    pub(super) fn wait(mut self) -> std::io::Result<u64> {
        let ended = self.thread.take().map_or(Ok(Ok(())), JoinHandle::join);
        // A panic there was printed when it happened.
        ended.unwrap_or_else(|_| Err(std::io::Error::other("the thread panicked")))?;
        Ok(self.generation)
    }
}

impl Drop for Placing {
    fn drop(&mut self) {
        // The folder is locked for this process until the thread has ended.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
