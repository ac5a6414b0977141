//! The system call that carries frames to a card's RPMB and back.
//!
//! The kernel selects the RPMB, sends CMD23 before each transfer, and selects the former area afterwards. Absent on
//! purpose: which frames, and what the answer proves (`emmc_port::rpmb`).
#![allow(unsafe_code)]
#![warn(clippy::undocumented_unsafe_blocks)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use emmc_port::rpmb::RpmbCommand;
use emmc_regs::rpmb::{FRAME_BYTES, Frame};
use libc::Ioctl;

use crate::ioctl::{MMC_IOC_MULTI_CMD, MmcIocCmd, R1_WITH_DATA};

/// In `write_flag`: CMD23 asks for a reliable write.
///
/// Source: Linux `drivers/mmc/core/block.c`, `__mmc_blk_ioctl_cmd`; mmc-utils.
const RELIABLE: u32 = 1 << 31;

/// `struct mmc_ioc_multi_cmd` with room for three commands.
#[repr(C)]
struct Commands {
    num_of_cmds: u64,
    cmds: [MmcIocCmd; 3],
}

fn transfer(opcode: u32, bytes: *mut u8, frames: usize) -> MmcIocCmd {
    let mut cmd = MmcIocCmd::new(opcode, 0, R1_WITH_DATA);
    (cmd.blksz, cmd.blocks) = (FRAME_BYTES as u32, frames as u32);
    cmd.data_ptr = bytes as usize as u64;
    cmd
}

/// What came back from a request.
#[derive(Debug)]
pub(crate) struct Carried {
    /// The frames that answer it.
    pub(crate) answer: Vec<Frame>,
    /// Each transfer's command and its status.
    pub(crate) statuses: Vec<(u8, u32)>,
}

/// Sends a request to the RPMB as one request of the kernel. Called by `commit` alone.
///
/// Errors: the kernel's; EPERM without CAP_SYS_RAWIO, ETIMEDOUT where the card does not answer.
pub(crate) fn send_rpmb(device: &File, command: &RpmbCommand) -> io::Result<Carried> {
    let mut request: Vec<u8> = command.frames().iter().flat_map(|frame| *frame.bytes()).collect();
    let mut result = command.result_request().map(|frame| *frame.bytes());
    let mut answer = vec![0; usize::from(command.answer_frames()) * FRAME_BYTES];
    let mut first = transfer(25, request.as_mut_ptr(), command.frames().len());
    first.write_flag = if command.changes_card() { (RELIABLE | 1) as i32 } else { 1 };
    let mut second = match &mut result {
        Some(bytes) => transfer(25, bytes.as_mut_ptr(), 1),
        None => transfer(18, answer.as_mut_ptr(), answer.len() / FRAME_BYTES),
    };
    second.write_flag = i32::from(result.is_some());
    let third = transfer(18, answer.as_mut_ptr(), answer.len() / FRAME_BYTES);
    let count = if result.is_some() { 3 } else { 2 };
    let mut commands = Commands { num_of_cmds: count, cmds: [first, second, third] };
    let number = MMC_IOC_MULTI_CMD as Ioctl;
    // SAFETY: the request reads the number of commands and as many commands behind it, and writes their responses;
    // `commands` holds three and lives until the call returns. Each `data_ptr` is the address of `request`, `result` or
    // `answer`, which have the `blksz * blocks` bytes that the kernel reads or writes, outlive the call, and are
    // referred to by nothing else meanwhile.
    let done = unsafe { libc::ioctl(device.as_raw_fd(), number, std::ptr::from_mut(&mut commands)) };
    if done == -1 {
        return Err(io::Error::last_os_error());
    }
    let opcodes: &[u8] = if result.is_some() { &[25, 25, 18] } else { &[25, 18] };
    let statuses = opcodes.iter().zip(&commands.cmds).map(|(opcode, cmd)| (*opcode, cmd.response[0])).collect();
    Ok(Carried { answer: answer.chunks_exact(FRAME_BYTES).map(Frame::from_bytes).collect(), statuses })
}
