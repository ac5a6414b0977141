//! The Linux edge: cards of this machine, and copies of another machine's /sys, as sources.
//!
//! Everything is read: CMD8, CMD13 and, where asked for, CMD56 by ioctl; attributes from sysfs; the host's side from
//! debugfs; what is mounted from /proc. Whatever cannot be read becomes a note and costs nothing else.
//! Absent on purpose: any command that changes a card, and any meaning of what was read (`emmc-analysis`).
//! The only `unsafe` code is in `ioctl`.

#[cfg(feature = "bench")]
pub mod block_io;
mod blocks;
mod card_name;
mod debugfs;
mod gather;
mod ioctl;
mod list;
mod live;
mod mounts;
mod sysfs;
mod sysroot;
mod tree;

pub use card_name::is_card_name;
pub use ioctl::terminal_columns;
pub use list::{CardList, ListedCard, list};
pub use live::LiveCard;
pub use sysroot::SysRoot;
