//! The system calls that need `unsafe`: the MMC ioctl, the size of a filesystem and of a terminal.
//!
//! All go through the C library, so that a library preloaded in front of it sees them. What changes a card is one
//! function here, which takes an [`Approved`] only and which `commit` alone calls, and one each in `rpmb_ioctl` and
//! `ffu_ioctl`;
//! [`BlockRead`] cannot name such a command. Absent on purpose: any judgement of a command.
#![allow(unsafe_code)]
#![warn(clippy::undocumented_unsafe_blocks)]

use std::ffi::{CString, c_int, c_uint};
use std::fs::File;
use std::io;
use std::mem::{MaybeUninit, offset_of, size_of};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

#[cfg(feature = "bench")]
use emmc_port::{Approved, ApprovedErase};
use emmc_units::Bytes;
// A signed int in musl, an unsigned long in glibc: the cast keeps the bits.
use libc::Ioctl;
#[cfg(not(target_env = "gnu"))]
use libc::statvfs;
// On 32 bits the other one fails for large filesystems.
#[cfg(target_env = "gnu")]
use libc::statvfs64 as statvfs;

/// Bytes in every block that is read here: EXT_CSD and the answers to CMD56.
pub(crate) const BLOCK_BYTES: usize = 512;

/// One command for the card.
///
/// Source: Linux `include/uapi/linux/mmc/ioctl.h`, `struct mmc_ioc_cmd`. The padding makes it the same on 32 bits.
#[repr(C)]
pub(crate) struct MmcIocCmd {
    pub(crate) write_flag: c_int,
    is_acmd: c_int,
    opcode: u32,
    arg: u32,
    pub(crate) response: [u32; 4],
    flags: c_uint,
    pub(crate) blksz: c_uint,
    pub(crate) blocks: c_uint,
    postsleep_min_us: c_uint,
    postsleep_max_us: c_uint,
    data_timeout_ns: c_uint,
    pub(crate) cmd_timeout_ms: c_uint,
    pad: u32,
    pub(crate) data_ptr: u64,
}

const _: () = assert!(size_of::<MmcIocCmd>() == 72);
const _: () = assert!(offset_of!(MmcIocCmd, response) == 16);
const _: () = assert!(offset_of!(MmcIocCmd, data_ptr) == 64);

/// `_IOWR(179, 0, struct mmc_ioc_cmd)`.
///
/// Source: Linux `include/uapi/asm-generic/ioctl.h`. The architectures that lay out the direction otherwise (MIPS,
/// PowerPC, SPARC) arrive at the same number.
const MMC_IOC_CMD: u32 = 3 << 30 | (size_of::<MmcIocCmd>() as u32) << 16 | MMC_BLOCK_MAJOR << 8;
/// `_IOWR(179, 1, struct mmc_ioc_multi_cmd)`, whose size is that of the number of commands before them.
#[cfg(feature = "bench")]
pub(crate) const MMC_IOC_MULTI_CMD: u32 = 3 << 30 | 8 << 16 | MMC_BLOCK_MAJOR << 8 | 1;
const MMC_BLOCK_MAJOR: u32 = 179;
const _: () = assert!(MMC_IOC_CMD == 0xc048_b300);

/// `MMC_RSP_R1 | MMC_CMD_AC`.
const R1: c_uint = 0x15;
/// `MMC_RSP_SPI_R1 | MMC_RSP_R1 | MMC_CMD_AC`.
#[cfg(feature = "bench")]
pub(crate) const R1_PLAIN: c_uint = 0x95;
/// `MMC_RSP_SPI_R1B | MMC_RSP_R1B | MMC_CMD_AC`.
#[cfg(feature = "bench")]
pub(crate) const R1_BUSY: c_uint = 0x49d;
/// `MMC_RSP_SPI_R1 | MMC_RSP_R1 | MMC_CMD_ADTC`.
pub(crate) const R1_WITH_DATA: c_uint = 0xb5;

/// A command for which the card sends one block, without a change of its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockRead {
    opcode: u32,
    arg: u32,
}

impl BlockRead {
    /// CMD8 of an eMMC: the card sends its EXT_CSD.
    pub(crate) const SEND_EXT_CSD: Self = Self::send_ext_csd(0);

    /// CMD8 with an argument, which the standard does not use and some makers answer with a report of theirs.
    pub(crate) const fn send_ext_csd(argument: u32) -> Self {
        Self { opcode: 8, arg: argument }
    }

    /// CMD56: the card sends a block of its maker's; `None` where bit 0 of the argument makes it a write.
    pub(crate) fn gen_cmd(argument: u32) -> Option<Self> {
        (argument & 1 == 1).then_some(Self { opcode: 56, arg: argument })
    }
}

/// Has the card send one block.
///
/// Errors: the kernel's; EPERM without CAP_SYS_RAWIO or on a partition, ETIMEDOUT where the card does not answer.
pub(crate) fn read_block(device: &File, command: BlockRead) -> io::Result<[u8; BLOCK_BYTES]> {
    let mut block = [0u8; BLOCK_BYTES];
    let mut cmd = MmcIocCmd::new(command.opcode, command.arg, R1_WITH_DATA);
    cmd.blksz = BLOCK_BYTES as c_uint;
    cmd.blocks = 1;
    cmd.data_ptr = block.as_mut_ptr() as usize as u64;
    // SAFETY: `data_ptr` is the address of `block`, which outlives the call and has the `blksz * blocks` bytes that the
    // kernel writes; nothing else refers to it meanwhile.
    unsafe { cmd.send(device)? };
    Ok(block)
}

/// Requests the card's status: the R1 response to CMD13.
///
/// Errors: the kernel's, as of [`read_block`].
pub(crate) fn read_status(device: &File, rca: u16) -> io::Result<u32> {
    let mut cmd = MmcIocCmd::new(13, u32::from(rca) << 16, R1);
    // SAFETY: `blksz * blocks` is zero: the kernel moves no data.
    unsafe { cmd.send(device)? };
    let [status, ..] = cmd.response;
    Ok(status)
}

/// Has the card send the kinds of protection of 32 groups (CMD31), two bits each, the first group in the lowest.
///
/// Errors: the kernel's, as of [`read_block`].
#[cfg(feature = "bench")]
pub(crate) fn read_protection(device: &File, address: u32) -> io::Result<u64> {
    let mut block = [0u8; 8];
    let mut cmd = MmcIocCmd::new(31, address, R1_WITH_DATA);
    (cmd.blksz, cmd.blocks) = (block.len() as c_uint, 1);
    cmd.data_ptr = block.as_mut_ptr() as usize as u64;
    // SAFETY: `data_ptr` is the address of `block`, which outlives the call and has the `blksz * blocks` bytes that the
    // kernel writes; nothing else refers to it meanwhile.
    unsafe { cmd.send(device)? };
    Ok(u64::from_be_bytes(block))
}

/// Sends an approved command, and returns when the card is no longer busy. Called by `commit` alone.
///
/// Errors: the kernel's, as of [`read_block`].
#[cfg(feature = "bench")]
pub(crate) fn send_approved(device: &File, command: Approved) -> io::Result<()> {
    let mut cmd = MmcIocCmd::new(command.opcode().into(), command.argument(), R1_BUSY);
    cmd.write_flag = 1;
    // SAFETY: `blksz * blocks` is zero: the kernel moves no data.
    unsafe { cmd.send(device) }
}

/// `struct mmc_ioc_multi_cmd` with three commands.
#[cfg(feature = "bench")]
#[repr(C)]
struct ThreeCommands {
    num_of_cmds: u64,
    cmds: [MmcIocCmd; 3],
}

/// Sends an approved erase as one request of the kernel, and returns when the card is no longer busy, with the three
/// responses. Called by `commit` alone.
///
/// Errors: the kernel's, as of [`read_block`].
#[cfg(feature = "bench")]
pub(crate) fn send_erase(device: &File, erase: ApprovedErase) -> io::Result<[u32; 3]> {
    let command = |(opcode, argument): (u8, u32)| {
        let is_last = opcode == 38;
        let mut cmd = MmcIocCmd::new(opcode.into(), argument, if is_last { R1_BUSY } else { R1_PLAIN });
        cmd.write_flag = 1;
        cmd.cmd_timeout_ms = if is_last { erase.timeout_ms() } else { 0 };
        cmd
    };
    let mut three = ThreeCommands { num_of_cmds: 3, cmds: erase.commands().map(command) };
    let request = MMC_IOC_MULTI_CMD as Ioctl;
    // SAFETY: the request reads the number of commands and as many commands behind it, and writes their responses;
    // `three` holds those and lives until the call returns. `blksz * blocks` of each is zero: the kernel moves no data.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), request, std::ptr::from_mut(&mut three)) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(three.cmds.map(|cmd| cmd.response[0])) }
}

impl MmcIocCmd {
    pub(crate) fn new(opcode: u32, arg: u32, flags: c_uint) -> Self {
        Self {
            write_flag: 0,
            is_acmd: 0,
            opcode,
            arg,
            response: [0; 4],
            flags,
            blksz: 0,
            blocks: 0,
            postsleep_min_us: 0,
            postsleep_max_us: 0,
            data_timeout_ns: 0,
            cmd_timeout_ms: 0,
            pad: 0,
            data_ptr: 0,
        }
    }

    /// # Safety
    /// `data_ptr` must point to `blksz * blocks` bytes that the kernel may write to.
    unsafe fn send(&mut self, device: &File) -> io::Result<()> {
        // SAFETY: the request number names a structure of this layout (asserted above), which lives until the call
        // returns; the caller vouches for the address inside.
        let result = unsafe { libc::ioctl(device.as_raw_fd(), MMC_IOC_CMD as Ioctl, std::ptr::from_mut(self)) };
        if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// How full a mounted filesystem is, as `df` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Space {
    /// Blocks for data.
    pub(crate) total: Bytes,
    /// Free blocks, including those reserved for root.
    pub(crate) free: Bytes,
    /// Free blocks for every user.
    pub(crate) available: Bytes,
}

/// Measures the filesystem mounted at `path`.
///
/// Errors: the kernel's, and a path with a zero byte.
pub(crate) fn space(path: &Path) -> io::Result<Space> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut answer = MaybeUninit::<statvfs>::uninit();
    // SAFETY: `path` ends in a zero byte and `answer` has room for the structure that the call fills.
    if unsafe { statvfs(path.as_ptr(), answer.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so it filled the structure.
    let answer = unsafe { answer.assume_init() };
    // On 32 bits the size of a block is narrower.
    #[allow(clippy::useless_conversion)]
    let block_bytes = u64::from(answer.f_frsize);
    let bytes = |blocks: u64| Bytes(blocks.saturating_mul(block_bytes));
    Ok(Space { total: bytes(answer.f_blocks), free: bytes(answer.f_bfree), available: bytes(answer.f_bavail) })
}

/// Processor time that this process has used: its own and the kernel's for it.
#[cfg(feature = "bench")]
pub(crate) fn processor_time() -> [std::time::Duration; 2] {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` has room for the structure that the call fills; it is all numbers, so zeros are valid too.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    [usage.ru_utime, usage.ru_stime]
        .map(|time| std::time::Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000))
}

/// Begins to write a file's data back without waiting for it (`sync_file_range`).
///
/// Errors: the kernel's.
#[cfg(feature = "bench")]
pub(crate) fn start_write_back(file: &File) -> io::Result<()> {
    // SAFETY: no memory is passed; the file is open until the call returns.
    let result = unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Gives the calling thread a copy of all mounts for itself; it keeps its own working folder from then on, too.
///
/// Errors: the kernel's; EPERM without CAP_SYS_ADMIN.
#[cfg(feature = "bench")]
pub(crate) fn own_mounts() -> io::Result<()> {
    // SAFETY: no memory is passed. Mounts, root and working folder of this thread alone are no longer shared with the
    // others; open files still are.
    let result = unsafe { libc::unshare(libc::CLONE_NEWNS) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// What is behind a loop device, whatever its name is now.
#[cfg(feature = "bench")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoopBacking {
    /// The file's filesystem: major and minor number.
    pub(crate) device: (u32, u32),
    /// The file's inode.
    pub(crate) inode: u64,
    /// A block device behind it: major and minor number; zeros for a file.
    pub(crate) block_device: (u32, u32),
}

/// The state of a loop device (`LOOP_GET_STATUS64`).
///
/// Source: Linux `include/uapi/linux/loop.h`, `struct loop_info64`: `lo_device`, `lo_inode`, `lo_rdevice` are the first
/// three of its 29 words.
///
/// Errors: the kernel's; ENXIO if nothing is attached.
#[cfg(feature = "bench")]
pub(crate) fn loop_backing(device: &File) -> io::Result<LoopBacking> {
    const LOOP_GET_STATUS64: u32 = 0x4c05;
    const WORDS: usize = 232 / 8;
    let mut info = [0u64; WORDS];
    // SAFETY: the kernel writes a `struct loop_info64`, which has the size and the alignment of this array; it lives
    // until the call returns.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64 as Ioctl, info.as_mut_ptr()) };
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    // Source: Linux `include/linux/kdev_t.h`, `new_encode_dev`.
    let number = |word: u64| ((word >> 8 & 0xfff) as u32, (word & 0xff | word >> 12 & 0xfff00) as u32);
    Ok(LoopBacking { device: number(info[0]), inode: info[1], block_device: number(info[2]) })
}

/// Columns of the terminal at standard output, if it is one.
pub fn terminal_columns() -> Option<usize> {
    terminal_size().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Rows of the terminal at standard output, if it is one.
pub fn terminal_rows() -> Option<usize> {
    terminal_size().map(|size| usize::from(size.ws_row)).filter(|rows| *rows > 0)
}

fn terminal_size() -> Option<libc::winsize> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCGWINSZ fills a `winsize`, which `size` is.
    let result = unsafe { libc::ioctl(io::stdout().as_raw_fd(), libc::TIOCGWINSZ, std::ptr::from_mut(&mut size)) };
    (result == 0).then_some(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_number_matches_the_kernel() {
        assert_eq!((MMC_IOC_CMD, size_of::<MmcIocCmd>()), (0xc048_b300, 72));
    }

    #[test]
    fn a_write_cannot_be_expressed() {
        assert_eq!(BlockRead::gen_cmd(0), None);
        assert_eq!(BlockRead::gen_cmd(0xffff_fffe), None);
        assert_eq!(BlockRead::gen_cmd(0x4b53_5461), Some(BlockRead { opcode: 56, arg: 0x4b53_5461 }));
    }

    #[test]
    fn a_file_that_is_no_card_is_refused() {
        let file = File::open("/dev/null").unwrap();
        let error = read_block(&file, BlockRead::SEND_EXT_CSD).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
        assert_eq!(read_status(&file, 1).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
    }

    #[test]
    fn the_size_of_a_filesystem_is_read() {
        let space = space(Path::new("/")).unwrap();
        assert!(space.total >= space.free && space.free >= space.available && space.total > Bytes(0), "{space:?}");
        assert!(super::space(Path::new("/no such folder")).is_err());
    }
}
