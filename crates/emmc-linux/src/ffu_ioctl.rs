//! The system call that carries the steps of a firmware update to a card, as one request of the kernel.
//!
//! The kernel sends them with no other command between. Absent on purpose: which steps, and what they need
//! (`emmc_port::ffu`).
#![allow(unsafe_code)]
#![warn(clippy::undocumented_unsafe_blocks)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use emmc_port::ffu::{FfuCommand, FfuStep};
use libc::Ioctl;

use crate::ioctl::{MMC_IOC_MULTI_CMD, MmcIocCmd, R1_BUSY, R1_PLAIN, R1_WITH_DATA};

/// As many steps as the longest command has.
const STEPS_MAX: usize = 4;

/// `struct mmc_ioc_multi_cmd` with room for [`STEPS_MAX`] commands.
#[repr(C)]
struct Commands {
    num_of_cmds: u64,
    cmds: [MmcIocCmd; STEPS_MAX],
}

fn prepared(step: &FfuStep<'_>) -> MmcIocCmd {
    let opcode = step.opcode().into();
    let mut cmd = match *step {
        FfuStep::Switch(approved) => MmcIocCmd::new(opcode, approved.argument(), R1_BUSY),
        FfuStep::Count(blocks) => MmcIocCmd::new(opcode, blocks.into(), R1_PLAIN),
        FfuStep::Stop => MmcIocCmd::new(opcode, 0, R1_BUSY),
        FfuStep::Write { address, data, .. } => {
            let mut cmd = MmcIocCmd::new(opcode, address, R1_WITH_DATA);
            (cmd.blksz, cmd.blocks) = (512, (data.len() / 512) as u32);
            // The kernel only reads from it, as `write_flag` says.
            cmd.data_ptr = data.as_ptr() as usize as u64;
            cmd
        }
    };
    cmd.write_flag = i32::from(!matches!(step, FfuStep::Count(_)));
    cmd
}

/// Sends the steps, and returns when the card is no longer busy, with each command and its status. Called by `commit`
/// alone.
///
/// Errors: the kernel's; EPERM without CAP_SYS_RAWIO, ETIMEDOUT where the card does not answer.
pub(crate) fn send_firmware(device: &File, command: &FfuCommand<'_>) -> io::Result<Vec<(u8, u32)>> {
    let steps = command.steps();
    if steps.is_empty() || steps.len() > STEPS_MAX {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut commands = Commands {
        num_of_cmds: steps.len() as u64,
        // Those that no step fills are not sent.
        cmds: std::array::from_fn(|index| steps.get(index).map_or_else(|| MmcIocCmd::new(13, 0, R1_PLAIN), prepared)),
    };
    commands.cmds[steps.len() - 1].cmd_timeout_ms = command.timeout_ms();
    let number = MMC_IOC_MULTI_CMD as Ioctl;
    // SAFETY: the request reads the number of commands and as many commands behind it, and writes their responses;
    // `commands` holds at least as many and lives until the call returns. Each `data_ptr` is the address of a slice of
    // `blksz * blocks` bytes or less than 512 more, of which the kernel reads as many; it is borrowed by `command`, and
    // outlives the call.
    let done = unsafe { libc::ioctl(device.as_raw_fd(), number, std::ptr::from_mut(&mut commands)) };
    if done == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(steps.iter().zip(&commands.cmds).map(|(step, cmd)| (step.opcode(), cmd.response[0])).collect())
}
