//! The persistent state of a device, as bytes.
//!
//! Two parts: the flash, with a large image and incremental records, and the other state, which is small and recorded
//! as a whole whenever it has changed. Absent on purpose: the command level's part (`card::image`), and any file.

use std::borrow::Cow;

use emmc_units::Instant;
use serde::{Deserialize, Serialize};

use super::{Device, DeviceError};
use crate::nand::{BytesAre, NandImage, Payload, StoredContent};
use crate::profile::{Layout, LayoutError, Partitioning};

/// Why bytes are not an image of a card.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// Other data, or another version.
    #[error("expected \"emmclab card 2\" at byte 0: this is no state of a virtual card, or of another version")]
    Magic,
    /// Truncated or damaged.
    #[error("the state is damaged: {0}")]
    Damaged(String),
    /// The image of a card with another profile.
    #[error("the state belongs to a card that does not match profile {0}: expected the profile that it was made with")]
    OtherShape(String),
    /// The card's contents are stored elsewhere, and were not passed.
    #[error("the card has contents, which are stored beside its state and were not passed")]
    Contents,
    /// The profile is not valid.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// Persistent state of a device other than its flash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeviceState {
    worn_out: bool,
    partitioning: Partitioning,
    csd: [u8; 16],
    ext_csd: Vec<u8>,
}

/// A device, with its flash.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DeviceImage {
    pub(crate) seed: u64,
    pub(crate) now: Instant,
    nand: NandImage,
    /// When the data of each block was programmed, if the flash ages: saved behind the rest.
    #[serde(skip)]
    pub(crate) data_ages: Vec<Instant>,
}

impl DeviceImage {
    /// The content model that a device needs for this image; `has_payload`: the edge stores the host's bytes.
    ///
    /// Errors: it does, and they were not passed.
    pub(crate) fn keep(&self, has_payload: bool) -> Result<StoredContent, ImageError> {
        match self.nand.bytes_are() {
            _ if has_payload => Ok(StoredContent::Data),
            BytesAre::NotKept => Ok(StoredContent::Orders),
            BytesAre::Here => Ok(StoredContent::Data),
            BytesAre::Outside => Err(ImageError::Contents),
        }
    }
}

impl Device {
    /// The flash, as if all operations in progress at `now` were done.
    pub(crate) fn to_image(&self, now: Instant) -> DeviceImage {
        DeviceImage { nand: self.storage.nand.to_image(), ..self.to_outline(now) }
    }

    /// The same without the blocks.
    pub(crate) fn to_outline(&self, now: Instant) -> DeviceImage {
        let nand = &self.storage.nand;
        DeviceImage { seed: self.options.seed, now, nand: nand.to_outline(), data_ages: nand.data_ages() }
    }

    /// The other persistent state.
    pub(crate) fn to_state(&self) -> DeviceState {
        DeviceState {
            worn_out: self.worn_out,
            partitioning: self.partitioning,
            csd: self.registers.csd,
            ext_csd: self.registers.ext_csd.to_vec(),
        }
    }

    fn same_ages(&self, at: Instant) -> Vec<Instant> {
        vec![at; self.storage.nand.geometry().blocks as usize]
    }

    /// Restores a new device from an image and later `records`; it is without power.
    ///
    /// Errors: an image or records of another card.
    pub(crate) fn restore(
        &mut self,
        image: DeviceImage,
        state: DeviceState,
        records: &[Cow<'_, [u8]>],
        payload: Option<Box<dyn Payload>>,
    ) -> Result<(), ImageError> {
        let other = || ImageError::OtherShape(self.profile.name.clone());
        // The layers are laid out over flash that is still new; their memory is rebuilt at power-on.
        let layout = Layout::new(&self.profile, &state.partitioning, image.seed).map_err(|_: LayoutError| other())?;
        self.storage.lay_out(&self.profile.ftl, &layout, Instant::START);
        if !self.storage.nand.restore(image.nand) {
            return Err(other());
        }
        // A card that did not age before is as old as its image.
        let ages = if image.data_ages.is_empty() { self.same_ages(image.now) } else { image.data_ages };
        if !self.storage.nand.set_data_ages(&ages) {
            return Err(other());
        }
        if !records.iter().all(|records| self.storage.nand.replay_all(records)) {
            return Err(ImageError::Damaged("a record names what the flash does not have".into()));
        }
        let missing = self.storage.nand.missing_blocks();
        if missing > 0 {
            return Err(ImageError::Damaged(format!("{missing} blocks are missing")));
        }
        if !self.storage.nand.restored(payload) {
            return Err(ImageError::Damaged("contents are where they cannot be".into()));
        }
        if !self.storage.has_units_of_its_own() {
            return Err(ImageError::Damaged("a page holds a unit that its region does not have".into()));
        }
        let size = |_| ImageError::Damaged("EXT_CSD is not 512 bytes".into());
        self.registers.ext_csd = state.ext_csd.try_into().map_err(size)?;
        self.registers.csd = state.csd;
        (self.partitioning, self.worn_out, self.powered) = (state.partitioning, state.worn_out, false);
        Ok(())
    }
}
