//! The fault model: the possible effects of a power cut on the flash.
//!
//! # When
//! Every program and every erase is a *step*; [`Nand::steps`](crate::nand::Nand::steps) counts them. A [`FaultPlan`]
//! cuts power at a step: of eight cuts one is just before the step's cells begin to change, one just after they have
//! changed but before the controller knows, and six in between, at a random instant. That call and every later call
//! returns [`PowerLost`](crate::nand::NandError::PowerLost) until power is back.
//! [`Nand::power_off`](crate::nand::Nand::power_off) cuts at an instant instead. Operations that were to end by the
//! instant of the cut ([`Nand::off_since`](crate::nand::Nand::off_since)) are neither undone nor damaged, except the
//! pairs named below.
//!
//! # Operations in progress
//! The flash changes its state when an operation is issued, and returns when it will be done. At a cut, every
//! incomplete operation on any die is
//! - *undone* if its cells had not begun to change: a page stays erased, a block stays unerased. Dies do not wait for
//!   each other, so an erased page may be below a programmed one: a hole.
//! - *interrupted* otherwise.
//!
//! # An interrupted program
//! - Its page is *torn* (three in four: unreadable) or *unstable* (readable, and may become unreadable). It never looks
//!   erased.
//! - With more than one bit a cell, the pages of the same word line that were programmed before it, acknowledged or
//!   not, are damaged too: each is unstable (one in four), torn (two in four) or unharmed. Pages that share a word
//!   line: [`Geometry::word_line`](crate::nand::Geometry::word_line). SLC and pSLC pages have no such neighbours.
//! - A block with a torn page, or with a hole, accepts no more programs before it is erased. Its other content stays.
//!
//! # An interrupted erase
//! It wears the block like a complete one. Each of its pages is torn, unstable with its old content, or erased; the
//! first page never reads as erased, so that a scan of the whole block detects it. The block must be erased again
//! before it is programmed. Old content may return this way: a layer must not treat it as current. An erase that was
//! going to fail is interrupted like any other, and the block is not bad yet; nor is one that was to be marked bad
//! after the cut.
//!
//! # Unstable pages
//! One simplification in the controller's favour: a page that is readable at power-on stays readable until recovery is
//! over. After that ([`Nand::decay`](crate::nand::Nand::decay)) no unstable page is readable, and at each power-on each
//! of them becomes unreadable with probability one half. A scan cannot distinguish an unstable page from a good one,
//! but it can find candidates ([`FoundPage::doubtful`](crate::nand::FoundPage::doubtful)); recovery copies the needed
//! units from there.
//!
//! # Never
//! No page reads with wrong bytes: uncorrectable data is reported as such. No page of another word line is damaged, no
//! other block, and reads do no damage. Wear, bad-block marks, and the count of sessions in sequence numbers survive. A
//! page that failed to program ([`ProgramFailed`](crate::nand::NandError::ProgramFailed)) is torn, and damages no pair.
//! Absent on purpose: brown-outs that corrupt data in transfer, and cuts that destroy the part.

/// A power cut at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultPlan {
    /// The step: the program or erase that makes [`Nand::steps`](crate::nand::Nand::steps) reach it.
    pub step: u64,
    /// Seed for the instant and the damage.
    pub seed: u64,
}
