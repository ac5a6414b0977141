//! Tests of what-if questions and whole lives against their arithmetic.

mod card;
mod flashbench;
mod life;
mod load;
mod ranking;
mod what_if;
