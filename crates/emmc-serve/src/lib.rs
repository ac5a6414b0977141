//! The virtual card as a live device.
//!
//! `served` owns the card, its folder and the clock, behind one lock. Fronts serve clients from it: `sdhci` and `cqhci`
//! over `vfio_user` for a whole virtual machine and over `uml` for one in simulated time, `nbd` and `fuse` for the
//! areas as block devices, `control` for orders that no host can send. Layers (`layer`) wrap the one block interface.
//! Absent on purpose: any knowledge of flash or of the standard; that is in `emmc_card`.

pub mod block;
mod child;
pub mod clock;
pub mod control;
mod cqhci;
pub mod fuse;
mod guest_memory;
pub mod layer;
mod listener;
pub mod loop_device;
pub mod nbd;
pub mod output;
pub mod pci;
pub mod sdhci;
pub mod served;
pub mod store;
mod stream;
pub mod uml;
pub mod vfio_user;
