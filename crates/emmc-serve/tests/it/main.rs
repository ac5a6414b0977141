//! The integration tests of `emmc-serve`, one module per topic, linked once.

mod fuse;
mod memory;
mod nbd;
