//! The integration tests of `emmc-workload`, one module per topic, linked once.

mod burst;
mod cards;
mod class;
mod classics;
mod closed_form;
mod contract;
mod files;
mod flashbench;
mod iozone;
mod jobs;
mod published;
mod replay;
mod steady;
mod stopped;
mod trim;
mod white_paper;
