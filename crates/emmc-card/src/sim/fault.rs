//! The fault model: what a power cut does to the flash, and what it never does.
//!
//! # When
//! Every program and every erase is a *step*; [`Nand::steps`](crate::nand::Nand::steps) counts them. A [`FaultPlan`]
//! cuts power at a step: of eight cuts one comes just before the step's cells begin to change, one just after they are
//! done but before the controller hears of it, and six in between, anywhere. That call and every call after it answers
//! [`PowerLost`](crate::nand::NandError::PowerLost) until power is back.
//! [`Nand::power_off`](crate::nand::Nand::power_off)
//! cuts at an instant instead. Nothing that was answered to be done by the instant of the cut
//! ([`Nand::off_since`](crate::nand::Nand::off_since)) is taken back or damaged, but for the pairs named below.
//!
//! # What was under way
//! The flash changes its state when an operation is issued, and says when it will be done. At a cut, every operation on
//! any die that is not done by then is
//! - *taken back* if its cells had not begun to change: the page is erased, the block is not. Dies do not wait for each
//!   other, so a page may be erased below one that is programmed: a hole.
//! - *interrupted* otherwise.
//!
//! # An interrupted program
//! - Its page is *torn* (three in four: it does not read) or *unstable* (it reads, and may stop to). It never looks
//!   erased.
//! - With more than one bit a cell, the pages of the same word line that were programmed before it, acknowledged or
//!   not,
//!   are damaged too: each is unstable (one in four), torn (two in four) or unharmed. Which pages share a word line:
//!   [`Geometry::word_line`](crate::nand::Geometry::word_line). SLC and pSLC pages have no such neighbours.
//! - Its block takes no more programs before it is erased if a page of it is torn; nor does one with a hole. What else
//!   is in
//!   it stays.
//!
//! # An interrupted erase
//! Wears the block like a whole one. Each of its pages is torn, unstable with its old content, or erased; the first
//! page never reads as erased, so that a scan of the whole block finds out. The block must be erased again before it is
//! programmed. Old content may so come back: a layer must not take it for new. An erase that was to fail is interrupted
//! like any other, and the block is not bad yet; nor is one that was to be marked bad after the cut.
//!
//! # Unstable pages
//! The one kindness: what reads when power comes back reads until recovery is over. After that
//! ([`Nand::decay`](crate::nand::Nand::decay)) no unstable page reads, and at each return of power each of them stops
//! with one half. A scan cannot tell an unstable page from a good one, but it can tell where one may be
//! ([`FoundPage::doubtful`](crate::nand::FoundPage::doubtful)); recovery copies what it needs from there.
//!
//! # Never
//! No page reads with wrong bytes: what cannot be corrected is known to be so. No page of another word line is damaged,
//! no other block, nothing by reading. Wear, bad-block marks, and the count of sessions in order numbers survive. A
//! page that failed to program ([`ProgramFailed`](crate::nand::NandError::ProgramFailed)) is torn, and damages no pair.
//! Absent on purpose: brown-outs that garble what is being sent, and cuts that break the part.

/// Power goes at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultPlan {
    /// The step: the program or erase that makes [`Nand::steps`](crate::nand::Nand::steps) reach it.
    pub step: u64,
    /// From which the instant and the damage are drawn.
    pub seed: u64,
}
