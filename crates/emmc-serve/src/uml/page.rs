//! The page that the calendar shares with a machine: `struct um_timetravel_schedshm` of Linux, version 2.
//!
//! Source: Linux, `include/uapi/linux/um_timetravel.h`. The header has a page of its own; 128 bytes follow for each
//! client, the calendar among them with number 0.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

const VERSION: u32 = 2;
/// Unit: bytes.
const HEADER: usize = 4096;
const CLIENT: usize = 128;
const CLIENTS: usize = 2;
const SIZE: usize = HEADER + CLIENTS * CLIENT;

/// Offsets in the header.
const VERSION_AT: usize = 0;
const SIZE_AT: usize = 4;
const FREE_UNTIL_AT: usize = 8;
const CURRENT_AT: usize = 16;
const RUNNING_AT: usize = 24;
const CLIENTS_AT: usize = 26;
/// Offsets in a client's part.
const CAPABILITIES_AT: usize = HEADER;
const FLAGS_AT: usize = HEADER + 4;
const REQUEST_AT: usize = HEADER + 8;

/// The client leaves requests in the page.
const SHARES_TIME: u32 = 1;
/// It asks to run at its request's time.
const ASKS_TO_RUN: u32 = 1;

/// The machine's number; the calendar has 0.
pub(super) const MACHINE: u16 = 1;

/// The page. The machine writes to it at any time: every value is checked where it is used.
#[derive(Debug)]
pub(super) struct Page {
    file: File,
    map: MmapRaw,
}

impl Page {
    /// A page in which the machine runs, at time 0, until `free_until`.
    ///
    /// Errors: the system's.
    pub(super) fn new(free_until: u64) -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(memfd_create("emmclab-calendar", flags)?);
        file.set_len(SIZE as u64)?;
        // The machine gets the file too: it must not take pages away.
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let map = MmapOptions::new().len(SIZE).map_raw(&file)?;
        let page = Self { file, map };
        page.word(VERSION_AT).store(VERSION, Ordering::SeqCst);
        page.word(SIZE_AT).store(SIZE as u32, Ordering::SeqCst);
        page.half(CLIENTS_AT).store(CLIENTS as u16, Ordering::SeqCst);
        // The calendar shares time as well: the machine leaves its requests here also while the calendar runs.
        page.word(CAPABILITIES_AT).store(SHARES_TIME, Ordering::SeqCst);
        page.set_current(0);
        page.set_free_until(free_until);
        page.set_running(MACHINE);
        Ok(page)
    }

    /// The file, for the machine.
    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Whether the machine's kernel uses the page.
    pub(super) fn is_used(&self) -> bool {
        self.word(CAPABILITIES_AT + CLIENT).load(Ordering::SeqCst) & SHARES_TIME != 0
    }

    pub(super) fn current(&self) -> u64 {
        self.long(CURRENT_AT).load(Ordering::SeqCst)
    }

    pub(super) fn set_current(&self, ns: u64) {
        self.long(CURRENT_AT).store(ns, Ordering::SeqCst);
    }

    pub(super) fn set_free_until(&self, ns: u64) {
        self.long(FREE_UNTIL_AT).store(ns, Ordering::SeqCst);
    }

    pub(super) fn set_running(&self, client: u16) {
        self.half(RUNNING_AT).store(client, Ordering::SeqCst);
    }

    /// When the machine wants to run next.
    pub(super) fn request(&self) -> Option<u64> {
        let asks = self.word(FLAGS_AT + CLIENT).load(Ordering::SeqCst) & ASKS_TO_RUN != 0;
        asks.then(|| self.long(REQUEST_AT + CLIENT).load(Ordering::SeqCst))
    }

    fn long(&self, at: usize) -> &AtomicU64 {
        assert!(at % 8 == 0 && at + 8 <= SIZE);
        // SAFETY: inside the mapping and aligned (just checked; a mapping starts at a page). It lives as long as
        // `self`, its file cannot shrink, and here it is accessed by atomic operations only.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(at).cast()) }
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at % 4 == 0 && at + 4 <= SIZE);
        // SAFETY: as in `long`.
        unsafe { AtomicU32::from_ptr(self.map.as_mut_ptr().add(at).cast()) }
    }

    fn half(&self, at: usize) -> &AtomicU16 {
        assert!(at % 2 == 0 && at + 2 <= SIZE);
        // SAFETY: as in `long`.
        unsafe { AtomicU16::from_ptr(self.map.as_mut_ptr().add(at).cast()) }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    impl Page {
        /// The machine writes to its part.
        pub(in crate::uml) fn ask(&self, capabilities: u32, flags: u32, at: u64) {
            self.word(CAPABILITIES_AT + CLIENT).store(capabilities, Ordering::SeqCst);
            self.word(FLAGS_AT + CLIENT).store(flags, Ordering::SeqCst);
            self.long(REQUEST_AT + CLIENT).store(at, Ordering::SeqCst);
        }

        /// The machine's kernel may run until then, and who runs.
        pub(in crate::uml) fn state(&self) -> (u64, u16) {
            (self.long(FREE_UNTIL_AT).load(Ordering::SeqCst), self.half(RUNNING_AT).load(Ordering::SeqCst))
        }
    }

    #[test]
    fn the_layout_is_that_of_the_kernel() {
        let page = Page::new(0x1122).unwrap();
        let mut bytes = [0; SIZE];
        page.file.read_exact_at(&mut bytes, 0).unwrap();
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!([word(0), word(4), word(8), word(16)], [2, 4352, 0x1122, 0]);
        assert_eq!((bytes[24..28].to_vec(), word(4096)), ([1u16.to_ne_bytes(), 2u16.to_ne_bytes()].concat(), 1));
        assert!(!page.is_used() && page.request().is_none());
        page.file.write_all_at(&[1, 0, 0, 0, 1, 0, 0, 0, 7], 4096 + 128).unwrap();
        assert_eq!((page.is_used(), page.request()), (true, Some(7)));
        assert!(page.file.set_len(0).is_err(), "a page that the machine can take away");
    }
}
