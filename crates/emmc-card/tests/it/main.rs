//! The integration tests of `emmc-card`, one module per topic, linked once.

mod command_level;
mod data_path;
mod enhanced;
mod firmware;
mod ftl_contract;
mod harness;
mod image;
mod models;
mod partition_cuts;
mod persistence;
mod profiles;
mod rpmb_cuts;
mod scripts;
mod segment_cards;
mod slc_cache;
mod write_amplification;
