//! The host controller of a card of this machine: its bus, its counters, its clock.
//!
//! Setting the clock changes the controller, not the card, and lasts until the kernel sets it again. Absent on purpose:
//! bus modes, which the kernel selects when it finds the card.

use std::io;

use emmc_port::{BusLink, Host, SourceError};

use crate::card_name::is_card_name;
use crate::debugfs::Debugfs;
use crate::kernel_log::KernelLog;
use crate::tree::Tree;

/// The host controller of a card.
#[derive(Debug)]
pub struct LiveLink {
    tree: Tree,
    debugfs: Debugfs,
    log: Option<KernelLog>,
}

impl LiveLink {
    /// The host of a disk: `mmcblk0`.
    ///
    /// Errors: no card of MMC or SD; debugfs cannot be read.
    pub fn open(disk: &str) -> Result<Self, SourceError> {
        let refused = |reason: String| SourceError::Unsupported { name: disk.into(), reason };
        if disk.contains('/') || !is_card_name(&format!("/dev/{disk}")) {
            return Err(refused("not a card at an MMC or SD host; a card reader hides its bus".into()));
        }
        let tree = Tree::live();
        let debugfs = Debugfs::find(&tree, disk).map_err(|error| refused(unreadable(&error)))?;
        Ok(Self { tree, debugfs, log: KernelLog::from_now().ok() })
    }
}

fn unreadable(error: &io::Error) -> String {
    format!(
        "{error}: /sys/kernel/debug needs root, and `mount -t debugfs none /sys/kernel/debug` where it is not mounted"
    )
}

impl BusLink for LiveLink {
    fn host(&mut self) -> Result<Host, String> {
        let (host, missing) = self.debugfs.host(&self.tree);
        // Kernels before 6.0 have no counters.
        match missing.into_iter().find(|(path, _)| path.ends_with("ios")) {
            Some((_, error)) => Err(unreadable(&error)),
            None => Ok(host),
        }
    }

    fn set_clock(&mut self, hz: u64) -> Result<(), String> {
        let path = self.debugfs.clock_path();
        std::fs::write(&path, hz.to_string()).map_err(|error| match error.raw_os_error() {
            Some(libc::EINVAL) => format!("{hz} Hz is outside of what the controller can give"),
            _ => format!("{}: {error}", path.display()),
        })
    }

    fn new_log(&mut self) -> Option<String> {
        let bytes = self.log.as_mut()?.read_new().ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_card_has_no_link() {
        for (disk, says) in [("sda", "not a card"), ("mmcblk987", "debug"), ("../mmcblk0", "not a card")] {
            let error = LiveLink::open(disk).unwrap_err().to_string();
            assert!(error.starts_with(disk) && error.contains(says), "{error}");
        }
    }
}
