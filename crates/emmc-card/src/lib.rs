//! The virtual eMMC: a whole card in software, from flash cells to registers.
//!
//! Layers, each knowing only the one below: `card` (commands and their rules) -> `device` (areas, the data path, power)
//! -> `ftl` (where a unit lies) -> `nand` (blocks, pages, time, wear). `sim` drives a card through workloads and power
//! cuts. The host owns time: every call is told the instant at which it happens, and answers with the instant at which
//! it is done. Absent on purpose: files, clocks, threads, sockets. Same profile, same seed, same bytes.

pub mod card;
pub mod device;
pub mod ftl;
pub mod nand;
pub mod profile;
pub mod sim;
