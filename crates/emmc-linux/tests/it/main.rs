//! The integration tests of `emmc-linux`, one module per topic, linked once.

#[cfg(feature = "bench")]
mod block_io;
#[cfg(feature = "bench")]
mod file_tree;
mod live_card;
mod mmc_utils;
#[cfg(feature = "bench")]
mod restore;
#[cfg(feature = "bench")]
mod session;
mod shim;
#[cfg(feature = "trace")]
mod tracefs;
