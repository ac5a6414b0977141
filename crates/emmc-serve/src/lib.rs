//! The virtual card as a live device.
//!
//! `served` owns the card, its folder and the clock, behind one lock; a front answers clients out of it: `sdhci` and
//! `cqhci` over `vfio_user` for a whole virtual machine, `nbd` and `fuse` for its areas as block devices, `control` for
//! what no host can ask. Layers (`layer`) wrap the one block interface. Absent on purpose: any knowledge of flash or of
//! the standard; that is `emmc_card`.

pub mod block;
pub mod clock;
pub mod control;
mod cqhci;
pub mod fuse;
pub mod layer;
pub mod loop_device;
pub mod nbd;
pub mod pci;
pub mod sdhci;
pub mod served;
pub mod store;
pub mod vfio_user;
