//! The integration tests of `emmc-analysis`, one module per topic, linked once.

mod damage;
mod damage_classes;
mod damage_sdmon;
mod damage_splices;
mod round_trip;
