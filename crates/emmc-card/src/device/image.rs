//! A device as bytes: what of it survives power.
//!
//! Two parts: the flash, whose image is large and whose records say what came after, and the state, which is small and
//! put on record whole whenever it has changed. Absent on purpose: the command level's part (`card::image`), and any
//! file.

use emmc_units::Instant;
use serde::{Deserialize, Serialize};

use super::{Device, DeviceError};
use crate::nand::{BytesAre, NandImage, Payload, StoredContent};
use crate::profile::{Layout, LayoutError, Partitioning};

/// Why bytes are no image of a card.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// They are something else, or of another version.
    #[error("expected \"emmclab card 2\" at byte 0: this is no state of a virtual card, or of another version")]
    Magic,
    /// They are cut off or damaged.
    #[error("the state is damaged: {0}")]
    Damaged(String),
    /// They are of a card of another profile.
    #[error("the state is of a card of another shape than profile {0}")]
    OtherShape(String),
    /// The card's contents are kept elsewhere, and were not given.
    #[error("the card has contents, which are kept beside its state and were not given")]
    Contents,
    /// The profile makes no card.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// What of a device survives power beside its flash.
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
}

impl DeviceImage {
    /// How much a device must keep that is to become this; `has_payload`: the bytes of the host are kept by the edge.
    ///
    /// Errors: they are, and are not given.
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
    /// All of the flash, as if everything under way at `now` were done.
    pub(crate) fn to_image(&self, now: Instant) -> DeviceImage {
        DeviceImage { seed: self.options.seed, now, nand: self.storage.nand.to_image() }
    }

    /// The rest of what survives power.
    pub(crate) fn to_state(&self) -> DeviceState {
        DeviceState {
            worn_out: self.worn_out,
            partitioning: self.partitioning,
            csd: self.registers.csd,
            ext_csd: self.registers.ext_csd.to_vec(),
        }
    }

    /// A new device becomes what was left of one, and is without power; `records` came after the image.
    ///
    /// Errors: an image or records of another card.
    pub(crate) fn restore(
        &mut self,
        image: DeviceImage,
        state: DeviceState,
        records: &[&[u8]],
        payload: Option<Box<dyn Payload>>,
    ) -> Result<(), ImageError> {
        let other = || ImageError::OtherShape(self.profile.name.clone());
        // The layers are laid out over flash that is still new; what they know is rebuilt when power comes on.
        let layout = Layout::new(&self.profile, &state.partitioning, image.seed).map_err(|_: LayoutError| other())?;
        self.storage.lay_out(&self.profile.ftl, &layout, Instant::START);
        if !self.storage.nand.restore(image.nand) {
            return Err(other());
        }
        if !records.iter().all(|records| self.storage.nand.replay_all(records)) {
            return Err(ImageError::Damaged("a record names what the flash does not have".into()));
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
