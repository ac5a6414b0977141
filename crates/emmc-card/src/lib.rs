//! The virtual eMMC: a whole card in software, from flash cells to registers.
//!
//! Layers, each depending only on the one below: `card` (commands and their rules) -> `device` (areas, the data path,
//! power) -> `ftl` (the place of each unit) -> `nand` (blocks, pages, time, wear). `condition` is what is inside, for
//! reports. The host owns time: every call gets the current instant, and returns the instant of its completion. Absent
//! on purpose: files, clocks, threads, sockets, and requests that share the card's queue (`emmc-sim`). Same profile,
//! same seed, same bytes.

pub mod card;
pub mod condition;
pub mod device;
pub mod ftl;
pub mod nand;
pub mod profile;
