//! Field firmware update of an eMMC as a host does it: what the registers say, the commands that may be sent, and the
//! update itself.
//!
//! What changes the card ([`FfuCommand::download`], [`FfuCommand::install`]) exists only with a [`Consent`] to what
//! cannot be reverted. Absent on purpose: system calls (`emmc-linux`), the image's content, which is the maker's, and
//! the card's side (`emmc-card`).
//!
//! Source: JESD84-B51 clauses 6.6.19 and 7.4; the modes are those of mmc-utils (`ffu`, `opt_ffu1` to `opt_ffu4`).

#[cfg(test)]
mod tests;
mod update;

use emmc_regs::ext_csd::{ExtCsd, reg};

use crate::{Approved, CommandPort, Consent, NotAgreed, PortError};

pub use update::{Ended, Event, Order, Update, carry_out};

/// Linux takes no more in one command (MMC_IOC_MAX_BYTES). Unit: bytes.
pub const CHUNK_BYTES_MAX: u32 = 512 << 10;
/// CMD23 counts no more sectors of 512 bytes; no eMMC's firmware is near that. Unit: bytes.
pub const IMAGE_BYTES_MAX: u64 = 65_535 * 512;
/// What a card may take that does not say how long it installs (OPERATION_CODES_TIMEOUT is 0). Unit: ms.
const INSTALL_MS: u32 = 60_000;
/// Bytes in one block of CMD24 and CMD25.
const BLOCK_BYTES: usize = 512;

/// How an image is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FfuMode {
    /// CMD23 and CMD25 for each chunk, which enters the mode and leaves it again in one request of the kernel: nothing
    /// else reaches a card in the mode. As `mmc ffu`.
    Chunks,
    /// The same, and the mode is left at the end only. As `mmc opt_ffu1`.
    Stay,
    /// CMD25 without a count, ended by CMD12; the mode is left at the end only. As `mmc opt_ffu2`. Linux 6.12 gives up
    /// between the two: it waits for the end of CMD25.
    Open,
    /// CMD24 for each block, which enters the mode and leaves it again. As `mmc opt_ffu3`.
    Blocks,
    /// CMD24 for each block; the mode is left at the end only. As `mmc opt_ffu4`.
    BlocksStay,
}

impl FfuMode {
    /// As an argument and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chunks => "chunks",
            Self::Stay => "stay",
            Self::Open => "open",
            Self::Blocks => "blocks",
            Self::BlocksStay => "blocks-stay",
        }
    }

    /// Whether the card stays in the mode from the first chunk to the last.
    pub const fn stays(self) -> bool {
        matches!(self, Self::Stay | Self::Open | Self::BlocksStay)
    }

    /// Whether each block has its own command.
    pub const fn is_by_block(self) -> bool {
        matches!(self, Self::Blocks | Self::BlocksStay)
    }
}

/// What a card's registers say of firmware updates. A value is absent if its bytes are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FfuState {
    /// SUPPORTED_MODES.FFU; a card before eMMC 5.0 has none.
    pub supported: Option<bool>,
    /// FW_CONFIG.UPDATE_DISABLE, which is set for ever.
    pub disabled: Option<bool>,
    /// FFU_FEATURES: MODE_OPERATION_CODES installs; else a reset or a power cycle does.
    pub operation_codes: Option<bool>,
    /// FFU_ARG: where the image is written to.
    pub argument: Option<u32>,
    /// FIRMWARE_VERSION of the firmware that runs.
    pub firmware: Option<[u8; 8]>,
    /// FFU_STATUS: what came of the last update.
    pub status: Option<u8>,
    /// MODE_CONFIG: 0 is normal, 1 is firmware update.
    pub mode: Option<u8>,
    /// NUMBER_OF_FW_SECTORS_CORRECTLY_PROGRAMMED.
    pub programmed: Option<u32>,
    /// OPERATION_CODES_TIMEOUT; absent also if it is not defined. Unit: us.
    pub timeout_us: Option<u64>,
    /// What DATA_SECTOR_SIZE says. Unit: bytes.
    pub sector_bytes: Option<u32>,
}

impl FfuState {
    /// Of an EXT_CSD.
    pub fn of(ext_csd: &ExtCsd) -> Self {
        let rev = ext_csd.byte(reg::EXT_CSD_REV);
        // Before 5.0 these bytes are reserved.
        let has = |least: u8| rev.is_none_or(|rev| rev >= least);
        let byte = |field| ext_csd.byte(field).filter(|_| has(7));
        let supported = if has(7) { ext_csd.bit(reg::SUPPORTED_MODES, 0) } else { Some(false) };
        let word = |field| ext_csd.raw(field).filter(|_| has(7)).map(|value| value as u32);
        let large = ext_csd.byte(reg::DATA_SECTOR_SIZE).map(|size| has(6) && size == 1);
        Self {
            supported,
            disabled: if has(5) { ext_csd.bit(reg::FW_CONFIG, 0) } else { Some(false) },
            operation_codes: ext_csd.bit(reg::FFU_FEATURES, 0).filter(|_| has(7)),
            argument: word(reg::FFU_ARG),
            firmware: ext_csd.raw(reg::FIRMWARE_VERSION).filter(|_| has(7)).map(u64::to_le_bytes),
            status: byte(reg::FFU_STATUS),
            mode: byte(reg::MODE_CONFIG),
            programmed: word(reg::NUMBER_OF_FW_SECTORS_CORRECTLY_PROGRAMMED),
            timeout_us: byte(reg::OPERATION_CODES_TIMEOUT).filter(|raw| (1..=0x17).contains(raw)).map(|raw| 100 << raw),
            sector_bytes: large.map(|large| if large { 4096 } else { 512 }),
        }
    }

    /// Whether the sectors that the card counts are these bytes, in its sectors or in those of 512 bytes: the standard
    /// says the first, and cards with sectors of 4 KiB are known that do the second.
    pub fn counts(&self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        let sector = u64::from(self.sector_bytes.unwrap_or(512));
        self.programmed.map(u64::from).is_some_and(|count| count * sector == bytes || count * 512 == bytes)
    }

    /// What one installation may take, in whole milliseconds.
    pub fn install_ms(&self) -> u32 {
        self.timeout_us.map_or(INSTALL_MS, |time| u32::try_from(time.div_ceil(1000)).unwrap_or(u32::MAX))
    }
}

/// FFU_STATUS in words.
pub const fn status_text(status: u8) -> &'static str {
    match status {
        0x00 => "success",
        0x10 => "general error",
        0x11 => "install error",
        0x12 => "download error",
        _ => "a code that the standard does not assign",
    }
}

/// A firmware version: as text if all of it can be printed, else its bytes in hexadecimal digits.
pub fn version_text(version: &[u8; 8]) -> String {
    let text = version.trim_ascii_end();
    let text = &text[..text.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)];
    match !text.is_empty() && text.iter().all(u8::is_ascii_graphic) {
        true => text.iter().copied().map(char::from).collect(),
        false => version.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}")),
    }
}

/// A step of a command: what the card gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FfuStep<'a> {
    /// CMD6.
    Switch(Approved),
    /// CMD23: the number of blocks that follow.
    Count(u16),
    /// CMD24, or CMD25 with several blocks.
    Write {
        /// 24 or 25.
        opcode: u8,
        /// FFU_ARG.
        address: u32,
        /// Whole blocks of 512 bytes.
        data: &'a [u8],
    },
    /// CMD12.
    Stop,
}

impl FfuStep<'_> {
    /// Index of its command.
    pub const fn opcode(&self) -> u8 {
        match self {
            Self::Switch(approved) => approved.opcode(),
            Self::Count(_) => 23,
            Self::Write { opcode, .. } => *opcode,
            Self::Stop => 12,
        }
    }
}

/// Steps that may be sent, with no other command between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FfuCommand<'a> {
    steps: Vec<FfuStep<'a>>,
    timeout_ms: u32,
}

impl<'a> FfuCommand<'a> {
    /// Enters the mode, for [`FfuMode::stays`].
    ///
    /// Errors: nobody agreed to what cannot be reverted.
    pub fn enter(consent: Consent) -> Result<Self, NotAgreed> {
        Ok(Self { steps: vec![FfuStep::Switch(Approved::firmware_mode(consent)?)], timeout_ms: 0 })
    }

    /// Leaves the mode.
    pub fn leave() -> Self {
        Self { steps: vec![FfuStep::Switch(Approved::normal_mode())], timeout_ms: 0 }
    }

    /// Ends a transfer that was begun without a count.
    pub fn stop() -> Self {
        Self { steps: vec![FfuStep::Stop], timeout_ms: 0 }
    }

    /// Sends a part of an image to FFU_ARG.
    ///
    /// Shape: `data` is one block of 512 bytes where the mode is by block, else whole blocks of at most
    /// [`CHUNK_BYTES_MAX`].
    /// Errors: nobody agreed to what cannot be reverted.
    pub fn download(mode: FfuMode, address: u32, data: &'a [u8], consent: Consent) -> Result<Self, NotAgreed> {
        let enter = Approved::firmware_mode(consent)?;
        let count = FfuStep::Count((data.len() / BLOCK_BYTES) as u16);
        let write = FfuStep::Write { opcode: if mode.is_by_block() { 24 } else { 25 }, address, data };
        let mut steps = match mode {
            FfuMode::Chunks | FfuMode::Stay => vec![count, write],
            FfuMode::Open => vec![write, FfuStep::Stop],
            FfuMode::Blocks | FfuMode::BlocksStay => vec![write],
        };
        if !mode.stays() {
            steps.insert(0, FfuStep::Switch(enter));
            steps.push(FfuStep::Switch(Approved::normal_mode()));
        }
        Ok(Self { steps, timeout_ms: 0 })
    }

    /// Installs what was downloaded, by MODE_OPERATION_CODES; the card leaves the mode by itself.
    ///
    /// Errors: nobody agreed to what cannot be reverted.
    pub fn install(timeout_ms: u32, consent: Consent) -> Result<Self, NotAgreed> {
        let steps = vec![
            FfuStep::Switch(Approved::firmware_mode(consent)?),
            FfuStep::Switch(Approved::install_firmware(consent)?),
        ];
        Ok(Self { steps, timeout_ms })
    }

    /// In the order of sending.
    pub fn steps(&self) -> &[FfuStep<'a>] {
        &self.steps
    }

    /// The most that the last step may take; zero: as every CMD6. Unit: ms.
    pub const fn timeout_ms(&self) -> u32 {
        self.timeout_ms
    }
}

/// A card that takes firmware.
pub trait FfuPort: CommandPort {
    /// Sends the steps, and returns when the card is ready again without an error bit.
    ///
    /// Errors: refused, no answer.
    fn update(&mut self, command: &FfuCommand<'_>) -> Result<(), PortError>;
}
