//! Judgement of results: what limits a speed, reasons to doubt it, comparison, and published results to compare with.

pub(crate) mod causes;
pub mod compare;
pub(crate) mod doubts;
pub mod reference;
pub mod spans;
