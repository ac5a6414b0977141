//! The integration tests of `emmc-host`, one module per topic, linked once.

mod closed_forms;
mod tables;
