//! The system call that carries a request of CMD42 to a card.
//!
//! CMD13 follows in the same request of the kernel, so that no other command sees the errors of CMD42 first. Absent on
//! purpose: which requests, and what they need (`emmc_port::lock`).
#![allow(unsafe_code)]
#![warn(clippy::undocumented_unsafe_blocks)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use emmc_port::lock::LockCommand;
use libc::Ioctl;

use crate::ioctl::{MMC_IOC_MULTI_CMD, MmcIocCmd, R1_PLAIN, R1_WITH_DATA};

/// `struct mmc_ioc_multi_cmd` with room for two commands.
#[repr(C)]
struct Commands {
    num_of_cmds: u64,
    cmds: [MmcIocCmd; 2],
}

/// Sends CMD42 and CMD13; returns the status in the response to each. Called by `commit` alone.
///
/// Errors: the kernel's; EPERM without CAP_SYS_RAWIO, ETIMEDOUT where the card does not answer or is busy for longer
/// than the host controller waits.
pub(crate) fn send_lock(device: &File, command: &LockCommand, rca: u16) -> io::Result<[u32; 2]> {
    let block = command.block();
    let mut first = MmcIocCmd::new(42, 0, R1_WITH_DATA);
    (first.write_flag, first.blksz, first.blocks) = (1, block.len() as u32, 1);
    first.cmd_timeout_ms = command.timeout_ms();
    // The kernel only reads from it, as `write_flag` says.
    first.data_ptr = block.as_ptr() as usize as u64;
    let mut commands = Commands { num_of_cmds: 2, cmds: [first, MmcIocCmd::new(13, u32::from(rca) << 16, R1_PLAIN)] };
    let number = MMC_IOC_MULTI_CMD as Ioctl;
    // SAFETY: the request reads the number of commands and the two behind it, and writes their responses; `commands`
    // holds them and lives until the call returns. `data_ptr` is the address of the block of `blksz` bytes that
    // `command` owns, of which the kernel reads as many; it is borrowed for the whole call.
    let done = unsafe { libc::ioctl(device.as_raw_fd(), number, std::ptr::from_mut(&mut commands)) };
    if done == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(commands.cmds.map(|cmd| cmd.response[0]))
}
