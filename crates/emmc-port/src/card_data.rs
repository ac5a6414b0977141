//! The data of one card from one or more sources.

use std::collections::BTreeMap;

use emmc_regs::CardKind;
use emmc_regs::cid::Cid;
use emmc_regs::ext_csd::{ExtCsd, Offset};
use emmc_units::{Bytes, Sectors};
use serde::{Deserialize, Serialize};

/// The recognised form of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Format {
    /// A card on this machine.
    Live,
    /// A copied /sys tree.
    SysRoot,
    /// 512 bytes of EXT_CSD.
    ExtCsdBinary,
    /// 1024 hexadecimal digits, byte 0 first (debugfs of current kernels).
    ExtCsdHex,
    /// 1024 hexadecimal digits, byte 511 first (debugfs of old kernels).
    ExtCsdHexReversed,
    /// `mmc extcsd read` of mmc-utils.
    MmcUtilsExtCsd,
    /// `mmc extcsd read` of the ChromiumOS fork.
    ChromiumOsExtCsd,
    /// `mmc cid read`, `mmc csd read` of mmc-utils.
    MmcUtilsIds,
    /// U-Boot `mmc reg read extcsd all`.
    UBootRegRead,
    /// U-Boot `mmc info`.
    UBootInfo,
    /// Hexadecimal CID, CSD, SCR or SSR, as sysfs prints them.
    RegisterHex,
    /// The `sd_partition` tool's check.
    SdPartition,
    /// Attributes of sysfs as `grep`, `head`, `cat` or `udevadm info` print them.
    SysfsText,
    /// The lines that Linux logs when it detects a card.
    KernelLog,
    /// `lsblk -b`, `lsblk -J`, `fdisk -l`, `df`: the card's disks, partitions and filesystems in Linux.
    BlockLayerText,
    /// Another tool's vendor health text, or a saved vendor reply.
    VendorReport,
    /// A snapshot of this tool.
    Snapshot,
    /// The virtual card.
    Virtual,
}

/// Where the data came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Origin {
    /// The name that the user gave.
    pub name: String,
    /// Its recognised form.
    pub format: Format,
    /// The forms that a snapshot was taken from, the first one named first; empty for every other form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_as: Vec<Format>,
    /// When it was read from the card: RFC 3339, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_at: Option<String>,
    /// Notes for the reader: values from the last probe, ignored bytes, assumptions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Origin {
    /// A source of one form, of which nothing else is known.
    pub fn new(name: impl Into<String>, format: Format) -> Self {
        Self { name: name.into(), format, taken_as: Vec::new(), taken_at: None, notes: Vec::new() }
    }

    /// The forms in which the data was first saved: those of a snapshot, else the form of the source.
    pub fn forms(&self) -> &[Format] {
        if self.taken_as.is_empty() { std::slice::from_ref(&self.format) } else { &self.taken_as }
    }
}

/// The data of one card; unknown values are `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CardData {
    /// The sources, the first one named first.
    pub origins: Vec<Origin>,
    /// eMMC or SD, if it is known.
    pub kind: Option<CardKind>,
    /// CID.
    pub cid: Option<Cid>,
    /// CSD, 16 bytes.
    pub csd: Option<[u8; 16]>,
    /// EXT_CSD, whole or in part.
    pub ext_csd: Option<ExtCsd>,
    /// OCR.
    pub ocr: Option<u32>,
    /// Relative card address.
    pub rca: Option<u16>,
    /// Card status, the R1 response to CMD13.
    pub status: Option<u32>,
    /// SCR, 8 bytes.
    pub scr: Option<[u8; 8]>,
    /// SD status, 64 bytes.
    pub ssr: Option<[u8; 64]>,
    /// Attributes of `/sys/block/mmcblkN/device`, as printed.
    pub sysfs: BTreeMap<String, String>,
    /// The host controller's side.
    pub host: Host,
    /// Disks, partitions and filesystems of the card in Linux.
    pub blocks: BlockLayer,
    /// Values from text that does not print the register.
    pub stated: Stated,
    /// Vendor health replies and texts, undecoded.
    pub reports: Vec<SavedReport>,
    /// Offsets of EXT_CSD bytes with bits that were inferred from a text's words and sizes, ascending.
    pub inferred: Vec<u16>,
    /// Disagreements of two sources of the same card: one sentence each.
    pub conflicts: Vec<String>,
}

/// The host controller, from debugfs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Host {
    /// `ios`: clock, bus width, timing, voltages, as printed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ios: BTreeMap<String, String>,
    /// `err_stats`: errors by kind since boot.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub err_stats: BTreeMap<String, u64>,
}

impl Host {
    /// Whether debugfs had no data.
    pub fn is_empty(&self) -> bool {
        self.ios.is_empty() && self.err_stats.is_empty()
    }
}

/// Disks and filesystems.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockLayer {
    /// The user area (`mmcblk0`), boot areas (`mmcblk0boot0`), GP partitions (`mmcblk0gp0`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<Disk>,
    /// Mounted filesystems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filesystems: Vec<Filesystem>,
    /// What brings trim to the card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim: Option<TrimSetup>,
}

/// The mechanisms that inform a card about deleted data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrimSetup {
    /// The largest discard that the kernel sends. Unit: bytes. 0: it sends none.
    /// Source: Linux `Documentation/ABI/stable/sysfs-block`, `queue/discard_max_bytes`.
    pub discard_max_bytes: Option<u64>,
    /// Mount points of writable filesystems that discard at each delete (mount option `discard`).
    pub mounts_with_discard: Vec<String>,
    /// Mount points of writable filesystems that do not.
    pub mounts_without_discard: Vec<String>,
    /// Whether systemd's `fstrim.timer` is enabled, where there is systemd.
    pub fstrim_timer: Option<bool>,
}

impl BlockLayer {
    /// Whether no value is known.
    pub fn is_empty(&self) -> bool {
        self.disks.is_empty() && self.filesystems.is_empty() && self.trim.is_none()
    }
}

/// A block device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Disk {
    /// Kernel name without `/dev/`.
    pub name: String,
    /// Size.
    pub bytes: Option<Bytes>,
    /// Whether the kernel refuses writes.
    pub read_only: Option<bool>,
    /// Entries of the partition table.
    #[serde(default)]
    pub partitions: Vec<Partition>,
}

/// An entry of a partition table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Partition {
    /// Kernel name without `/dev/`.
    pub name: String,
    /// First sector, if known.
    pub start: Option<Sectors>,
    /// Size.
    pub bytes: Option<Bytes>,
    /// Partition type as printed.
    pub kind: Option<String>,
    /// Mount point.
    pub mount: Option<String>,
}

/// A mounted filesystem, as `df` counts it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Filesystem {
    /// Device as printed: `/dev/mmcblk0p1`, `/dev/root`.
    pub device: String,
    /// Type, if printed.
    pub fstype: Option<String>,
    /// Size for data, without the filesystem's metadata.
    pub bytes: Bytes,
    /// In use.
    pub used: Bytes,
    /// Free to ordinary users.
    pub available: Bytes,
    /// Mount point.
    pub mount: String,
}

/// A size that was printed rounded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatedSize {
    /// As printed: `7.3 GiB`.
    pub text: String,
    /// Smallest size that prints so.
    pub min: Bytes,
    /// Largest size that prints so.
    pub max: Bytes,
}

/// Values from text that does not print the register they come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Stated {
    /// CID.MID.
    pub manufacturer_id: Option<u8>,
    /// CID.OID, 16 bits as the older kernels print it.
    pub oem_id: Option<u16>,
    /// CID.PNM.
    pub name: Option<String>,
    /// CID.PSN.
    pub serial: Option<u32>,
    /// Manufacturing date as printed; mmc-utils prints a wrong one.
    pub date: Option<String>,
    /// Version of the standard: `5.1`.
    pub mmc_version: Option<String>,
    /// Version of the SD specification: `3.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sd_version: Option<String>,
    /// Bus clock in Hz.
    pub bus_speed_hz: Option<u64>,
    /// Bus mode as printed.
    pub bus_mode: Option<String>,
    /// Bus width as printed: `8-bit DDR`.
    pub bus_width: Option<String>,
    /// User capacity, rounded.
    pub user_capacity: Option<StatedSize>,
    /// High-capacity write-protect group.
    pub hc_wp_group: Option<Bytes>,
    /// Erase group in force.
    pub erase_group: Option<Bytes>,
    /// Enhanced user area, rounded.
    pub enh_user_size: Option<StatedSize>,
    /// Largest enhanced area.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_enh_size: Option<Bytes>,
}

/// The form of a saved vendor report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum VendorFormat {
    /// Micron emmcparm text.
    Emmcparm,
    /// sdmon output.
    Sdmon,
    /// A vendor command's reply: 512 bytes, or a multiple.
    Reply {
        /// Family, as named in `emmc-analysis`; `None`: recognise it by its signature.
        family: Option<String>,
        /// Argument of the command that read it, if known.
        argument: Option<u32>,
    },
}

/// A vendor health report, undecoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedReport {
    /// Its form.
    pub format: VendorFormat,
    /// Its content.
    pub content: Vec<u8>,
}

impl CardData {
    /// Data of one source without any known values.
    pub fn new(name: impl Into<String>, format: Format) -> Self {
        Self { origins: vec![Origin::new(name, format)], ..Self::default() }
    }

    /// The sources' names, joined; a file with several forms is named once.
    pub fn name(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for origin in &self.origins {
            if !names.contains(&origin.name.as_str()) {
                names.push(&origin.name);
            }
        }
        names.join(" + ")
    }

    /// Adds a note to the first source.
    pub fn note(&mut self, note: impl Into<String>) {
        if let Some(origin) = self.origins.first_mut() {
            origin.notes.push(note.into());
        }
    }

    /// Whether byte `offset` of EXT_CSD was at least partly inferred from words and sizes instead of read.
    pub fn is_inferred(&self, offset: impl Offset) -> bool {
        self.inferred.binary_search(&offset.offset()).is_ok()
    }
}
