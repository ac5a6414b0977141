//! Tests of twins of published measurements, and of what-if questions and whole lives against their arithmetic.

mod card;
mod flashbench;
mod inputs;
mod life;
mod load;
mod ranking;
mod what_if;
