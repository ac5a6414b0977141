//! The block devices above a disk, and what tells them which data was deleted.

use serde::Serialize;

/// What a block device is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LayerKind {
    /// The disk at the bottom.
    Disk,
    /// A partition.
    Partition,
    /// dm-crypt: LUKS or plain.
    Crypt,
    /// A logical volume of LVM.
    Lvm,
    /// A RAID of md.
    Raid,
    /// A file as a block device.
    Loop,
    /// Another device of the device mapper.
    Mapper,
    /// Anything else.
    #[default]
    Other,
}

/// A mounted filesystem.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MountedOn {
    /// Where.
    pub point: String,
    /// Its type.
    pub fstype: String,
    /// Options of the mount and of the filesystem.
    pub options: Vec<String>,
    /// Written since the filesystem was made, as ext4 and f2fs count it. Unit: bytes.
    pub lifetime_written_bytes: Option<u64>,
    /// The options of its line in /etc/fstab.
    pub fstab_options: Option<Vec<String>>,
}

/// One block device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Layer {
    /// Kernel name: `mmcblk0p2`, `dm-0`.
    pub name: String,
    /// What it is.
    pub kind: LayerKind,
    /// The name that the device mapper knows it by.
    pub mapped_name: Option<String>,
    /// The layers below it, by name.
    pub below: Vec<String>,
    /// The first sector of a partition. Unit: sectors of 512 bytes.
    pub start_sectors: Option<u64>,
    /// Unit: bytes.
    pub size_bytes: Option<u64>,
    /// The largest discard that it accepts; 0: none. Unit: bytes.
    pub discard_max_bytes: Option<u64>,
    /// What the hardware would accept: more than `discard_max_bytes` if somebody has lowered that. Unit: bytes.
    pub discard_max_hw_bytes: Option<u64>,
    /// Smaller or unaligned discards are dropped. Unit: bytes.
    pub discard_granularity_bytes: Option<u64>,
    /// Written to it since the boot, or since it exists. Unit: bytes.
    pub written_bytes: Option<u64>,
    /// Discarded on it in the same time. Unit: bytes.
    pub discarded_bytes: Option<u64>,
    /// The filesystem on it.
    pub mounted: Option<MountedOn>,
    /// Whether it is swap space.
    pub is_swap: bool,
}

/// What runs `fstrim`, and which discards are configured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrimServices {
    /// Whether systemd's `fstrim.timer` is enabled, where there is systemd.
    pub fstrim_timer: Option<bool>,
    /// When the timer last ran.
    pub fstrim_last_run: Option<String>,
    /// Files of cron that run `fstrim`.
    pub cron: Vec<String>,
    /// `issue_discards` in lvm.conf: whether removing a volume discards it.
    pub lvm_issue_discards: Option<bool>,
    /// Lines of crypttab with `discard`: the names of the mappings.
    pub crypttab_discard: Vec<String>,
    /// The names of all mappings in crypttab.
    pub crypttab: Vec<String>,
}

/// All layers above one disk, each after those below it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stack {
    /// The disk comes first.
    pub layers: Vec<Layer>,
    /// Who trims.
    pub services: TrimServices,
}

impl Stack {
    /// A layer by its name.
    pub fn layer(&self, name: &str) -> Option<&Layer> {
        self.layers.iter().find(|layer| layer.name == name)
    }

    /// The layer and those below it, down to the disk; of a RAID the first member only.
    pub fn path<'a>(&'a self, top: &'a Layer) -> Vec<&'a Layer> {
        let mut path = vec![top];
        while let Some(below) = path.last().and_then(|layer| self.layer(layer.below.first()?)) {
            // A copied tree may hold a circle.
            if path.iter().any(|known| known.name == below.name) {
                break;
            }
            path.push(below);
        }
        path
    }
}
