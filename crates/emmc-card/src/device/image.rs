//! A device as bytes: what is left of it when power is off.

use emmc_units::Instant;
use serde::{Deserialize, Serialize};

use super::{Device, DeviceError, DeviceOptions};
use crate::nand::{Keep, NandImage};
use crate::profile::{Layout, Partitioning, Profile};

/// What an image starts with; the number changes when its form does.
const MAGIC: &[u8] = b"emmclab card 1\n";

#[derive(Serialize, Deserialize)]
struct DeviceImage {
    seed: u64,
    now: Instant,
    worn_out: bool,
    partitioning: Partitioning,
    ext_csd: Vec<u8>,
    nand: NandImage,
}

/// Why bytes are no image of a card.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// They are something else, or of another version.
    #[error("expected \"emmclab card 1\" at byte 0: this is no state of a virtual card, or of another version")]
    Magic,
    /// They are cut off or damaged.
    #[error("the state is damaged: {0}")]
    Damaged(String),
    /// They are of a card of another profile.
    #[error("the state is of a card of another shape than profile {0}")]
    OtherShape(String),
    /// The profile makes no card.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl Device {
    /// Switches power off at `now` and answers with what is left: everything that was in flash by then.
    pub fn into_image(mut self, now: Instant) -> Vec<u8> {
        self.power_off(now);
        let image = DeviceImage {
            seed: self.options.seed,
            now,
            worn_out: self.worn_out,
            partitioning: self.partitioning,
            ext_csd: self.registers.ext_csd.to_vec(),
            nand: self.storage.nand.to_image(),
        };
        // Plain numbers into memory: nothing of it can fail.
        let bytes = postcard::to_allocvec(&image).unwrap_or_default();
        let mut out = MAGIC.to_vec();
        out.extend(lz4_flex::compress_prepend_size(&bytes));
        out
    }

    /// A card from its profile and what was left of it, without power; answers also when that was.
    ///
    /// Errors: no image, a damaged one, or one of another profile.
    pub fn from_image(profile: Profile, bytes: &[u8]) -> Result<(Self, Instant), ImageError> {
        let packed = bytes.strip_prefix(MAGIC).ok_or(ImageError::Magic)?;
        let damaged = |error: &dyn std::fmt::Display| ImageError::Damaged(error.to_string());
        let unpacked = lz4_flex::decompress_size_prepended(packed).map_err(|error| damaged(&error))?;
        let image: DeviceImage = postcard::from_bytes(&unpacked).map_err(|error| damaged(&error))?;
        let name = profile.name.clone();
        let mut device = Self::new(profile, DeviceOptions { keep: Keep::Orders, seed: image.seed })?;
        let other = || ImageError::OtherShape(name.clone());
        // The layers are laid out over flash that is still new; what they know is rebuilt when power comes on.
        let layout = Layout::new(&device.profile, &image.partitioning, image.seed).map_err(|_| other())?;
        device.storage.lay_out(&device.profile.ftl, &layout, Instant::START);
        if !device.storage.nand.restore(image.nand) {
            return Err(other());
        }
        device.registers.ext_csd = image.ext_csd.try_into().map_err(|_| damaged(&"EXT_CSD is not 512 bytes"))?;
        (device.partitioning, device.worn_out, device.powered) = (image.partitioning, image.worn_out, false);
        Ok((device, image.now))
    }
}
