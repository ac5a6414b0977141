//! The Linux edge: cards of this machine, and copies of another machine's /sys, as sources.
//!
//! Cards are read: CMD8, CMD13 and, on request, CMD56 by ioctl; attributes from sysfs; the host's side from debugfs;
//! mounts from /proc. Whatever cannot be read becomes a note and does not affect the rest. With feature `bench` block
//! devices and files are also targets of a bench, which writes to them: `block_io`, in a `session` that checks, asks,
//! saves and restores; and `commit` sends approved changes of a card's configuration, which nothing else does. With
//! feature `trace` the kernel's tracing records into an instance of its own: `tracefs`. Absent on purpose: any
//! interpretation (`emmc-analysis`).
//! `unsafe` code is in `ioctl`, `rpmb_ioctl`, `stdio`, `block_io::uring` and `block_io::discard` only.

mod activity;
#[cfg(feature = "bench")]
pub mod bench_context;
#[cfg(feature = "bench")]
pub mod block_io;
mod blocks;
#[cfg(feature = "bench")]
mod boot_area;
mod card_name;
#[cfg(feature = "bench")]
mod commit;
mod debugfs;
#[cfg(feature = "bench")]
mod ffu_ioctl;
#[cfg(feature = "bench")]
pub mod file_tree;
mod gather;
#[cfg(feature = "bench")]
pub mod hold;
mod ioctl;
#[cfg(feature = "bench")]
mod kernel_log;
mod list;
mod live_card;
#[cfg(feature = "bench")]
mod live_link;
#[cfg(feature = "bench")]
mod lock_ioctl;
mod mounts;
#[cfg(feature = "trace")]
pub mod paths;
#[cfg(feature = "bench")]
mod rpmb_ioctl;
#[cfg(feature = "bench")]
pub mod session;
#[cfg(feature = "bench")]
mod signature;
mod stack;
mod stdio;
#[cfg(feature = "bench")]
pub mod stored_file;
mod stream;
mod sysfs;
mod sysroot;
#[cfg(feature = "bench")]
mod system_use;
#[cfg(feature = "trace")]
pub mod tracefs;
mod tree;
#[cfg(feature = "bench")]
pub mod trimming;
#[cfg(feature = "bench")]
pub mod usage;

pub use activity::activity;
pub use blocks::holds_root;
#[cfg(feature = "bench")]
pub use boot_area::UnlockedArea;
pub use card_name::{card_node, card_part, disk_name, is_card_name};
#[cfg(feature = "bench")]
pub use commit::{LivePort, LiveRpmb};
pub use ioctl::{terminal_columns, terminal_rows};
#[cfg(feature = "bench")]
pub use kernel_log::KernelLog;
pub use list::{CardList, ListedCard, list};
pub use live_card::LiveCard;
#[cfg(feature = "bench")]
pub use live_link::LiveLink;
pub use stack::{disk_below, host_of, stack};
pub use stdio::stdout_was_closed;
pub use stream::open_stream;
pub use sysroot::SysRoot;
#[cfg(feature = "bench")]
pub use system_use::{WriterCounts, system_use};
