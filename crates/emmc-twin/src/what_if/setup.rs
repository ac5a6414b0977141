//! How a card is set up and used.

use emmc_card::profile::Profile;
use emmc_units::Size;
use emmc_workload::duty::{Discard, FilesystemKind, Update};

/// A card's configuration, and how the host uses it.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The part of the user area with one bit a cell; `None`: as the card is.
    pub pslc: Option<Size>,
    /// WR_REL_SET of the user area; `None`: as the card is.
    pub reliable: Option<bool>,
    /// Whether the volatile cache is on, if the card has one.
    pub cache: bool,
    /// Whether the command queue is used; `None`: if the card has one.
    pub queueing: Option<bool>,
    /// Requests that the host keeps outstanding.
    pub depth: u32,
    /// When the card learns that data is no longer needed.
    pub discard: Discard,
    /// The filesystem; `None`: overwrites in place.
    pub filesystem: Option<FilesystemKind>,
    /// Flush or commit interval; `None`: never. Unit: seconds.
    pub flush_s: Option<f64>,
    /// The end of the user area that no partition uses.
    pub unpartitioned: Size,
    /// By how much the partition's start is off an allocation unit. Unit: bytes.
    pub off_bytes: Offset,
    /// Logs stay in memory, up to this size. Unit: bytes.
    pub log_in_memory: Option<u64>,
    /// A/B updates.
    pub update: Option<Update>,
    /// Another capacity, or another part.
    pub capacity: Capacity,
}

/// By how much a partition's start is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offset {
    /// By a page of the flash.
    Page,
    /// Unit: bytes.
    Bytes(u64),
}

/// How large the part is.
#[derive(Clone, Debug, PartialEq)]
pub enum Capacity {
    /// As it is.
    Same,
    /// This many times as large, with this many times the blocks.
    Times(f64),
    /// A shipped profile.
    Shipped(Box<Profile>),
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            pslc: None,
            reliable: None,
            cache: true,
            queueing: None,
            depth: 1,
            discard: Discard::Never,
            filesystem: None,
            flush_s: Some(5.0),
            unpartitioned: Size::Percent(0),
            off_bytes: Offset::Bytes(0),
            log_in_memory: None,
            update: None,
            capacity: Capacity::Same,
        }
    }
}

/// A part of this many times the capacity, of the same blocks, dies and firmware.
pub(super) fn enlarged(profile: &Profile, times: f64) -> Profile {
    let mut large = profile.clone();
    let group = u64::from(profile.areas.wp_group_bytes);
    let groups = (profile.areas.user_bytes as f64 * times / group as f64).round().max(1.0) as u64;
    large.areas.user_bytes = groups * group;
    let of = |number: u32| (f64::from(number) * times).round() as u32;
    large.areas.enhanced_groups_max = (f64::from(profile.areas.enhanced_groups_max) * times) as u32;
    large.nand.spare_blocks = of(profile.nand.spare_blocks);
    large.nand.factory_bad_blocks = of(profile.nand.factory_bad_blocks).min(large.nand.spare_blocks);
    large.nand.blocks = profile.nand.blocks.map(of);
    large
}
