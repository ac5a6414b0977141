//! What a machine has done with a card since it was started.

/// A machine, as far as it names itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// `/etc/machine-id`.
    pub id: Option<String>,
    /// Changes with each boot.
    pub boot_id: Option<String>,
    /// Since the boot. Unit: seconds.
    pub uptime_s: Option<u64>,
    /// The device tree's model, or the product's name in DMI.
    pub board: Option<String>,
    /// The image's version in os-release, else the distribution's.
    pub release: Option<String>,
    /// The kernel's release: `6.12.9`.
    pub kernel: Option<String>,
}

/// Requests to a card's user area since the boot.
///
/// Source: Linux Documentation/block/stat.rst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostTotals {
    /// Unit: bytes.
    pub read_bytes: u64,
    /// Unit: bytes.
    pub written_bytes: u64,
    /// Unit: bytes. Absent before Linux 4.18.
    pub discarded_bytes: Option<u64>,
    /// Absent before Linux 5.5.
    pub flushes: Option<u64>,
}

/// A machine's use of one card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Whose.
    pub machine: Machine,
    /// What was read and written.
    pub totals: Option<HostTotals>,
    /// The disk is read-only, or a filesystem on it after an error.
    pub read_only: Option<bool>,
    /// Errors that filesystems on the card have counted (ext4), since they were made or checked.
    pub io_errors: Option<u64>,
}
