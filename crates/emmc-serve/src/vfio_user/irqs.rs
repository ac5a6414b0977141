//! Interrupts: one level of the function, signalled to the client by eventfds as INTx or MSI.
//!
//! INTx is a level: it is signalled once and then masked until the client unmasks it; then it is signalled again if
//! still asserted. MSI is signalled at each rising edge. Arming either signals immediately if the level is asserted:
//! drivers re-arm while it is.

use std::os::fd::OwnedFd;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::write;

use super::protocol::Errno;

/// Interrupt indices of a PCI function: INTx, MSI, MSI-X, error, request.
pub(super) const INDICES: u32 = 5;
const INTX: u32 = 0;
const MSI: u32 = 1;

/// Flags of an index.
const EVENTFD: u32 = 1;
const MASKABLE: u32 = 1 << 1;
const AUTOMASKED: u32 = 1 << 2;

/// Flags of a request.
const DATA_NONE: u32 = 1;
const DATA_BOOL: u32 = 1 << 1;
const DATA_EVENTFD: u32 = 1 << 2;
const MASK: u32 = 1 << 3;
const UNMASK: u32 = 1 << 4;
const TRIGGER: u32 = 1 << 5;

/// Where interrupts go.
#[derive(Debug)]
pub(super) struct Irqs {
    has_msi: bool,
    intx: Option<OwnedFd>,
    intx_masked: bool,
    msi: Option<OwnedFd>,
    level: bool,
    /// MSI has been signalled for the present level.
    told: bool,
}

impl Irqs {
    pub(super) fn new(has_msi: bool) -> Self {
        Self { has_msi, intx: None, intx_masked: false, msi: None, level: false, told: false }
    }

    /// Flags and count of an index.
    pub(super) fn info(&self, index: u32) -> (u32, u32) {
        match index {
            INTX => (EVENTFD | MASKABLE | AUTOMASKED, 1),
            MSI if self.has_msi => (EVENTFD, 1),
            _ => (0, 0),
        }
    }

    /// The function's line is asserted or deasserted.
    pub(super) fn update(&mut self, level: bool) {
        self.level = level;
        if !level {
            self.told = false;
            return;
        }
        if let Some(msi) = &self.msi {
            if !self.told {
                self.told = true;
                signal(msi);
            }
        } else if let (Some(intx), false) = (&self.intx, self.intx_masked) {
            self.intx_masked = true;
            signal(intx);
        }
    }

    /// A client arms, disarms, masks, unmasks or triggers an interrupt.
    ///
    /// Errors: no such interrupt, contradictory flags, a number of eventfds that does not match the count.
    pub(super) fn set(
        &mut self,
        flags: u32,
        index: u32,
        start: u32,
        count: u32,
        data: &[u8],
        mut fds: Vec<OwnedFd>,
    ) -> Result<(), Errno> {
        let (_, there) = if index < INDICES { self.info(index) } else { return Err(Errno::Invalid) };
        let in_range = start.checked_add(count).is_some_and(|end| end <= there);
        let kinds = (flags & (DATA_NONE | DATA_BOOL | DATA_EVENTFD), flags & (MASK | UNMASK | TRIGGER));
        // Disarming an interrupt that is not armed is no error.
        if kinds == (DATA_NONE, TRIGGER) && count == 0 {
            self.arm(index, None);
            return Ok(());
        }
        let fits = match kinds.0 {
            DATA_BOOL => data.len() == count as usize,
            DATA_EVENTFD => fds.len() <= 1,
            kind => kind == DATA_NONE,
        };
        if !in_range || count != 1 || !fits {
            return Err(Errno::Invalid);
        }
        let asked = kinds.0 != DATA_BOOL || data[0] != 0;
        match kinds {
            (DATA_EVENTFD, TRIGGER) => self.arm(index, fds.pop()),
            (DATA_NONE | DATA_BOOL, TRIGGER) if asked => self.armed(index).into_iter().for_each(signal),
            (DATA_NONE | DATA_BOOL, MASK) if index == INTX => self.intx_masked |= asked,
            (DATA_NONE | DATA_BOOL, UNMASK) if index == INTX && asked => {
                self.intx_masked = false;
                self.update(self.level);
            }
            (DATA_BOOL, TRIGGER | UNMASK) => {}
            _ => return Err(Errno::NotSupported),
        }
        Ok(())
    }

    fn armed(&self, index: u32) -> Option<&OwnedFd> {
        match index {
            INTX => self.intx.as_ref(),
            MSI => self.msi.as_ref(),
            _ => None,
        }
    }

    fn arm(&mut self, index: u32, fd: Option<OwnedFd>) {
        let fd = fd.filter(never_blocks);
        match index {
            INTX => (self.intx, self.intx_masked) = (fd, false),
            MSI => self.msi = fd,
            _ => return,
        }
        self.told = false;
        self.update(self.level);
    }
}

/// Makes an eventfd of a client non-blocking, so that it cannot block the server; returns whether that worked.
fn never_blocks(fd: &OwnedFd) -> bool {
    fcntl_getfl(fd).and_then(|flags| fcntl_setfl(fd, flags | OFlags::NONBLOCK)).is_ok()
}

/// Adds one to an eventfd. A full one has not been read yet; a bad one is its owner's problem.
fn signal(fd: &OwnedFd) {
    let _ = write(fd, &1u64.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};
    use rustix::io::read;

    fn event() -> (OwnedFd, OwnedFd) {
        let fd = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        (fd.try_clone().unwrap(), fd)
    }

    fn count(fd: &OwnedFd) -> u64 {
        let mut raw = [0; 8];
        read(fd, &mut raw).map_or(0, |_| u64::from_ne_bytes(raw))
    }

    #[test]
    fn msi_is_sent_at_each_rising_edge_and_when_armed() {
        let mut irqs = Irqs::new(true);
        let (given, fd) = event();
        irqs.update(true);
        irqs.set(DATA_EVENTFD | TRIGGER, MSI, 0, 1, &[], vec![given]).unwrap();
        assert_eq!(count(&fd), 1, "it was up already");
        irqs.update(true);
        assert_eq!(count(&fd), 0);
        irqs.update(false);
        irqs.update(true);
        assert_eq!(count(&fd), 1);
        irqs.set(DATA_NONE | TRIGGER, MSI, 0, 0, &[], vec![]).unwrap();
        irqs.update(false);
        irqs.update(true);
        assert_eq!(count(&fd), 0);
    }

    #[test]
    fn intx_waits_for_its_unmask() {
        let mut irqs = Irqs::new(false);
        let (given, fd) = event();
        irqs.set(DATA_EVENTFD | TRIGGER, INTX, 0, 1, &[], vec![given]).unwrap();
        irqs.update(true);
        irqs.update(false);
        irqs.update(true);
        assert_eq!(count(&fd), 1);
        irqs.set(DATA_NONE | UNMASK, INTX, 0, 1, &[], vec![]).unwrap();
        assert_eq!(count(&fd), 1, "still up");
        irqs.update(false);
        irqs.set(DATA_BOOL | UNMASK, INTX, 0, 1, &[1], vec![]).unwrap();
        assert_eq!(count(&fd), 0, "no longer up");
        irqs.set(DATA_NONE | MASK, INTX, 0, 1, &[], vec![]).unwrap();
        irqs.update(true);
        assert_eq!(count(&fd), 0, "masked by the client");
    }

    #[test]
    fn invalid_values_are_refused() {
        let mut irqs = Irqs::new(false);
        for (flags, index, start, count, data) in [
            (DATA_NONE | TRIGGER, 5, 0, 1, &[][..]),
            (DATA_EVENTFD | TRIGGER, MSI, 0, 1, &[]),
            (DATA_NONE | TRIGGER, INTX, 1, 1, &[]),
            (DATA_NONE | TRIGGER, INTX, u32::MAX, 2, &[]),
            (DATA_BOOL | TRIGGER, INTX, 0, 1, &[]),
            (DATA_NONE | DATA_BOOL | TRIGGER, INTX, 0, 1, &[1]),
            (DATA_NONE, INTX, 0, 1, &[]),
            (0, INTX, 0, 1, &[]),
            (DATA_EVENTFD | UNMASK, INTX, 0, 1, &[]),
        ] {
            assert!(irqs.set(flags, index, start, count, data, vec![]).is_err(), "{flags:#x} {index}");
        }
        irqs.set(DATA_NONE | TRIGGER, 4, 0, 0, &[], vec![]).unwrap();
        let (one, other) = event();
        assert!(irqs.set(DATA_EVENTFD | TRIGGER, INTX, 0, 1, &[], vec![one, other]).is_err());
    }
}
