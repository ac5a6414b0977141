//! A card as bytes: everything that survives power, and records of changes.
//!
//! [`Card::to_image`] is the complete state at an instant; [`Card::take_changes`] returns later changes in increments;
//! from both, [`Card::from_image`] rebuilds the card as of the last record, with no operation in progress. The state
//! can also be taken in pieces while the card works: [`Card::to_outline`], then each of its blocks once with
//! [`Card::blocks_to_piece`]. A piece is the state of its blocks between two records of changes, and has its place
//! among them. The host's bytes may be stored by the edge ([`Payload`]). Absent on purpose: files, and when something
//! is saved (`emmc-serve`).

use std::borrow::Cow;
use std::ops::Range;

use emmc_regs::ext_csd::EXT_CSD_BYTES;
use emmc_units::Instant;
use serde::{Deserialize, Serialize};

use super::Card;
use super::legality::Phase;
use crate::device::{Area, Device, DeviceImage, DeviceOptions, DeviceState, ImageError};
use crate::nand::{ContentsCheck, Payload};
use crate::profile::Profile;

/// First bytes of an image; the number changes with the format.
const MAGIC: &[u8] = b"emmclab card 2\n";

/// Persistent state other than flash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CardState {
    now: Instant,
    is_powered: bool,
    device: DeviceState,
    burnt: Vec<u8>,
    password: Vec<u8>,
    /// Area, first sector, sectors, code of CMD31.
    protected: Vec<(Area, u64, u64, u8)>,
    features: FeatureState,
    /// Addresses that an SD card has published, so that it continues the sequence.
    addresses: u16,
}

/// A card without its device: the rest of the persistent state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rest(CardState);

/// Persistent state of the features.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FeatureState {
    pub(crate) rpmb: super::rpmb::Persistent,
    pub(crate) rpmb_counter: u32,
    pub(crate) firmware: Option<[u8; 8]>,
    pub(crate) power_cycles: u32,
    pub(crate) unannounced: u32,
    pub(crate) is_partitioned: bool,
}

impl Card {
    /// The persistent state, as if all operations in progress at `now` were done.
    pub fn to_image(&self, now: Instant) -> Vec<u8> {
        self.pack(&self.device.to_image(now), now)
    }

    /// The persistent state but for the blocks of the flash; all of it, if the flash cannot take records.
    pub fn to_outline(&self, now: Instant) -> Vec<u8> {
        match self.device.nand().keeps_orders() {
            true => self.pack(&self.device.to_outline(now), now),
            false => self.to_image(now),
        }
    }

    /// The number of blocks that an outline lacks.
    pub fn blocks_to_store(&self) -> u32 {
        let nand = self.device.nand();
        if nand.keeps_orders() { nand.geometry().blocks } else { 0 }
    }

    /// Blocks in their present state. Earlier changes must have been taken.
    pub fn blocks_to_piece(&self, blocks: Range<u32>) -> Vec<u8> {
        let mut records = Vec::new();
        blocks.for_each(|block| self.device.nand().record_block(block, &mut records));
        lz4_flex::compress_prepend_size(&records)
    }

    fn pack(&self, device: &DeviceImage, now: Instant) -> Vec<u8> {
        // Plain numbers are written to memory, which cannot fail.
        let mut bytes = postcard::to_allocvec(&(self.state_at(now), device)).unwrap_or_default();
        if !device.data_ages.is_empty() {
            bytes.extend(postcard::to_allocvec(&device.data_ages).unwrap_or_default());
        }
        let mut out = MAGIC.to_vec();
        out.extend(lz4_flex::compress_prepend_size(&bytes));
        out
    }

    /// Rebuilds a card, without power, from its profile, its image or outline, and what followed; also returns the time
    /// of its power-off.
    ///
    /// Shape: `parts` in the order in which they were taken.
    /// Errors: not an image, a damaged one, or one of another profile; a block is missing; contents that are stored
    /// elsewhere and were not passed.
    pub fn from_image(
        profile: Profile,
        bytes: &[u8],
        parts: &[Part<'_>],
        payload: Option<Box<dyn Payload>>,
    ) -> Result<(Self, Instant), ImageError> {
        let packed = bytes.strip_prefix(MAGIC).ok_or(ImageError::Magic)?;
        let damaged = |error: &dyn std::fmt::Display| ImageError::Damaged(error.to_string());
        let unpacked = unpack(packed)?;
        let ((mut state, mut image), behind): ((CardState, DeviceImage), &[u8]) =
            postcard::take_from_bytes(&unpacked).map_err(|error| damaged(&error))?;
        if !behind.is_empty() {
            image.data_ages = postcard::from_bytes(behind).map_err(|error| damaged(&error))?;
        }
        let options = DeviceOptions { keep: image.keep(payload.is_some())?, seed: image.seed };
        let mut card = Self::new(profile, options)?;
        let mut flash = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Part::Changes(record) => {
                    let (at, of_flash, newer) = split(record).ok_or_else(|| damaged(&"a record is cut off"))?;
                    flash.push(Cow::Borrowed(of_flash));
                    state = newer.unwrap_or(state);
                    state.now = at;
                }
                Part::Blocks(piece) => flash.push(Cow::Owned(unpack(piece)?)),
            }
        }
        card.device.restore(image, state.device.clone(), &flash, payload)?;
        card.phase = Phase::Off;
        let now = state.now;
        card.take_state(state)?;
        Ok((card, now))
    }

    /// From now on changes are recorded; call [`Card::to_image`] after this.
    pub fn log_changes(&mut self, now: Instant) {
        self.device.nand_mut().log_changes();
        self.recorded = Some(self.state_at(now));
    }

    /// Appends the changes since the last call to `out`, as one record; `false`: no changes.
    ///
    /// `looks_closer`: registers and features are compared too; else only the flash.
    pub fn take_changes(&mut self, out: &mut Vec<u8>, looks_closer: bool, now: Instant) -> bool {
        let start = out.len();
        out.extend_from_slice(&now.0.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        let mut changed = self.device.nand_mut().take_changes(out);
        let length = (out.len() - start - 12) as u32;
        out[start + 8..start + 12].copy_from_slice(&length.to_le_bytes());
        if let Some(last) = self.recorded.as_ref().filter(|_| looks_closer) {
            // Time alone does not make a record.
            let state = self.state_at(last.now);
            if state != *last {
                out.extend(postcard::to_allocvec(&state).unwrap_or_default());
                self.recorded = Some(state);
                changed = true;
            }
        }
        if !changed {
            out.truncate(start);
        }
        changed
    }

    /// Makes the host's bytes durable; call it before the records that refer to them are saved.
    ///
    /// Errors: why that failed.
    pub fn settle_contents(&mut self) -> Result<(), String> {
        self.device.nand_mut().settle_payload()
    }

    /// End of the used payload slots.
    pub fn contents_end(&self) -> u32 {
        self.device.nand().payload_end()
    }

    /// Compares the bytes in the payload with the checksums that were recorded with them: at most `most` units, spread
    /// evenly over the flash, or all.
    pub fn check_contents(&self, most: Option<usize>) -> ContentsCheck {
        self.device.nand().check_contents(most)
    }

    /// Whether all units in the payload have checksums. No content is read.
    pub fn contents_have_sums(&self) -> bool {
        self.device.nand().has_all_sums()
    }

    /// Releases unused space of the payload.
    pub fn tidy_contents(&mut self) {
        self.device.nand_mut().tidy_payload();
    }

    /// Releases some unused space of the payload, in a short time; `true`: that was all that is worth it. The release
    /// of its slots must be saved.
    pub fn tidy_some_contents(&mut self) -> bool {
        self.device.nand_mut().tidy_some_payload()
    }

    /// The taken changes are saved.
    pub fn changes_are_kept(&mut self) {
        self.device.nand_mut().changes_are_kept();
    }

    /// Takes the device out, for work below the command level.
    pub fn into_parts(mut self) -> (Device, Rest) {
        self.direct();
        let state = CardState { is_powered: false, ..self.state_at(Instant::START) };
        (self.device, Rest(state))
    }

    /// Reassembles the parts.
    pub fn from_parts(device: Device, Rest(state): Rest) -> Self {
        let mut card = Self::over(device);
        // The value comes from `into_parts`: all sizes are right.
        let _ = card.take_state(state);
        card
    }

    fn state_at(&self, now: Instant) -> CardState {
        CardState {
            now,
            is_powered: self.phase != Phase::Off,
            device: self.device.to_state(),
            burnt: self.rules.burnt().to_vec(),
            password: self.lock.password().to_vec(),
            protected: self.features.protect.kept().collect(),
            features: self.features.to_state(),
            addresses: self.sd.addresses,
        }
    }

    /// Restores a state; the device has its own part.
    fn take_state(&mut self, state: CardState) -> Result<(), ImageError> {
        let size = |_| ImageError::Damaged("one-time bits are not of 512 bytes".into());
        let burnt: [u8; EXT_CSD_BYTES] = state.burnt.try_into().map_err(size)?;
        self.rules.set_burnt(burnt);
        self.lock.set_password(state.password);
        self.features.take_state(state.features);
        self.sd.addresses = state.addresses;
        for (area, first, sectors, code) in state.protected {
            self.features.protect.keep(area, first, sectors, code);
        }
        if state.is_powered {
            // Not switched off in order: power was lost with the process that served it.
            self.features_power_off(state.now);
        }
        Ok(())
    }
}

/// What follows an image or an outline.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// A result of [`Card::take_changes`].
    Changes(&'a [u8]),
    /// A result of [`Card::blocks_to_piece`].
    Blocks(&'a [u8]),
}

fn unpack(packed: &[u8]) -> Result<Vec<u8>, ImageError> {
    // LZ4 expands at most 255 times: a larger claim would only allocate memory.
    let promised = packed.first_chunk().map_or(0, |size| u32::from_le_bytes(*size)) as usize;
    if promised / 255 > packed.len() {
        return Err(ImageError::Damaged(format!("{} bytes cannot hold {promised}", packed.len())));
    }
    lz4_flex::decompress_size_prepended(packed).map_err(|error| ImageError::Damaged(error.to_string()))
}

/// Splits a record: its time, the flash's changes, and the other state if changed.
fn split(record: &[u8]) -> Option<(Instant, &[u8], Option<CardState>)> {
    let (now, rest) = record.split_at_checked(8)?;
    let (length, rest) = rest.split_at_checked(4)?;
    let (now, length) = (u64::from_le_bytes(now.try_into().ok()?), u32::from_le_bytes(length.try_into().ok()?));
    let (flash, state) = rest.split_at_checked(length as usize)?;
    let state = if state.is_empty() { None } else { Some(postcard::from_bytes(state).ok()?) };
    Some((Instant(now), flash, state))
}
