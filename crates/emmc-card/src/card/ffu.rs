//! Field firmware update: a mode in which writes go to the firmware, and the step that installs it.
//!
//! MODE_CONFIG selects the mode; writes to the address FFU_ARG then download. The host may leave the mode between
//! chunks, as mmc-utils does. MODE_OPERATION_CODES installs, and the new version runs after the next reset or power
//! cycle. An image starts with [`MAGIC`], the version, its sectors and a digest; a sector that starts with these begins
//! a new image. Absent on purpose: vendor specific mode, and signatures: the digest detects errors, it is no
//! authentication.
//!
//! Source: JESD84-B51 clauses 6.6.19, 7.4; mmc-utils and fwupd as hosts. The image format is this card's own.

use emmc_regs::ext_csd::{EXT_CSD_BYTES, reg};
use sha2::{Digest, Sha256};

use super::partition::Refused;

const INSTALL: u8 = 1;
const ABORT: u8 = 2;

const SUCCESS: u8 = 0x00;
const GENERAL_ERROR: u8 = 0x10;
const INSTALL_ERROR: u8 = 0x11;
const DOWNLOAD_ERROR: u8 = 0x12;

/// First bytes of a firmware image of the virtual card.
const MAGIC: &[u8; 16] = b"emmclab firmware";
const VERSION: usize = 16;
const SECTORS: usize = 24;
const DIGEST: usize = 32;
const SECTOR: usize = 512;
/// Larger than any valid image.
const SECTORS_MAX: u32 = 1 << 16;

/// Makes a firmware image that the virtual card accepts.
///
/// Shape: whole sectors; the first is the header.
pub fn firmware_image(version: [u8; 8], body: &[u8]) -> Vec<u8> {
    let body_bytes = body.len().next_multiple_of(SECTOR);
    let mut image = vec![0; SECTOR + body_bytes];
    image[..VERSION].copy_from_slice(MAGIC);
    image[VERSION..SECTORS].copy_from_slice(&version);
    let sectors = (image.len() / SECTOR) as u32;
    image[SECTORS..SECTORS + 4].copy_from_slice(&sectors.to_le_bytes());
    image[SECTOR..SECTOR + body.len()].copy_from_slice(body);
    let digest = Sha256::digest(&image[SECTOR..]);
    image[DIGEST..DIGEST + 32].copy_from_slice(&digest);
    image
}

/// A download in progress, and the installed version.
#[derive(Clone, Debug, Default)]
pub(crate) struct Firmware {
    /// Downloaded data; lost with power.
    image: Vec<u8>,
    /// The version that runs after the next reset.
    installed: Option<[u8; 8]>,
}

impl Firmware {
    /// The version that runs after the next reset.
    pub(crate) fn installed(&self) -> Option<[u8; 8]> {
        self.installed
    }

    /// Restores it.
    pub(crate) fn restore(&mut self, installed: Option<[u8; 8]>) {
        *self = Self { installed, ..Self::default() };
    }
}

/// Whether writes to FFU_ARG download firmware now.
pub(crate) fn is_downloading(ext_csd: &[u8; EXT_CSD_BYTES]) -> bool {
    ext_csd[reg::MODE_CONFIG] == 1
}

/// The address to which firmware is written.
pub(crate) fn address(ext_csd: &[u8; EXT_CSD_BYTES]) -> u32 {
    let bytes = &ext_csd[reg::FFU_ARG.range()];
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// The rule of MODE_CONFIG beyond its access class.
///
/// Errors: a mode that the card does not have; FW_CONFIG has switched updates off for ever.
pub(crate) fn check_mode(ext_csd: &[u8; EXT_CSD_BYTES], value: u8) -> Result<(), Refused> {
    Refused::unless(value == 0 || value == 1 && is_offered(ext_csd))
}

/// The rule of MODE_OPERATION_CODES beyond its access class.
///
/// Errors: an operation that the card does not have, or outside the mode.
pub(crate) fn check_operation(ext_csd: &[u8; EXT_CSD_BYTES], value: u8) -> Result<(), Refused> {
    let has_operations = ext_csd[reg::FFU_FEATURES] & 1 == 1;
    let is_known = matches!(value, INSTALL | ABORT);
    Refused::unless(is_known && is_offered(ext_csd) && has_operations && is_downloading(ext_csd))
}

fn is_offered(ext_csd: &[u8; EXT_CSD_BYTES]) -> bool {
    ext_csd[reg::SUPPORTED_MODES] & 1 == 1 && ext_csd[reg::FW_CONFIG] & 1 == 0
}

impl Firmware {
    /// Takes sectors written to FFU_ARG.
    pub(crate) fn download(&mut self, ext_csd: &mut [u8; EXT_CSD_BYTES], data: &[u8]) {
        for sector in data.chunks_exact(SECTOR) {
            if sector.starts_with(MAGIC) {
                self.image.clear();
            }
            if self.image.len() < SECTORS_MAX as usize * SECTOR {
                self.image.extend_from_slice(sector);
            }
        }
        if ext_csd[reg::FFU_FEATURES] & 1 == 0 {
            // The next reset or power cycle installs what is there, whenever power is lost.
            self.installed = None;
            self.install();
        }
        self.tell(ext_csd);
    }

    /// MODE_OPERATION_CODES: installs or aborts; both end the mode.
    pub(crate) fn operate(&mut self, ext_csd: &mut [u8; EXT_CSD_BYTES], operation: u8) {
        if operation == INSTALL {
            ext_csd[reg::FFU_STATUS] = self.install();
        }
        self.image.clear();
        ext_csd[reg::MODE_CONFIG] = 0;
        self.tell(ext_csd);
    }

    /// Reset by CMD0, by the pin or by power: the installed version runs; a card without operation codes installs now.
    pub(crate) fn reset(&mut self, ext_csd: &mut [u8; EXT_CSD_BYTES]) {
        if ext_csd[reg::FFU_FEATURES] & 1 == 0 && !self.image.is_empty() {
            ext_csd[reg::FFU_STATUS] = self.install();
        }
        self.image.clear();
        self.tell(ext_csd);
        if let Some(version) = self.installed.take() {
            ext_csd[reg::FIRMWARE_VERSION.range()].copy_from_slice(&version);
        }
    }

    /// Power is lost: downloaded data is lost, except that a card without operation codes installs a whole image.
    pub(crate) fn power_off(&mut self, ext_csd: &mut [u8; EXT_CSD_BYTES]) {
        if ext_csd[reg::FFU_FEATURES] & 1 == 0 && !self.image.is_empty() {
            ext_csd[reg::FFU_STATUS] = self.install();
        }
        self.image.clear();
    }

    fn install(&mut self) -> u8 {
        let Some(header) = self.image.get(..SECTOR) else { return GENERAL_ERROR };
        let sectors =
            u32::from_le_bytes([header[SECTORS], header[SECTORS + 1], header[SECTORS + 2], header[SECTORS + 3]]);
        if !header.starts_with(MAGIC) {
            return INSTALL_ERROR;
        }
        if self.image.len() as u64 != u64::from(sectors) * SECTOR as u64 {
            return DOWNLOAD_ERROR;
        }
        let digest = Sha256::digest(&self.image[SECTOR..]);
        if digest[..] != header[DIGEST..DIGEST + 32] {
            return INSTALL_ERROR;
        }
        let mut version = [0; 8];
        version.copy_from_slice(&header[VERSION..SECTORS]);
        self.installed = Some(version);
        SUCCESS
    }

    /// NUMBER_OF_FW_SECTORS_CORRECTLY_PROGRAMMED.
    fn tell(&self, ext_csd: &mut [u8; EXT_CSD_BYTES]) {
        let sectors = (self.image.len() / SECTOR) as u32;
        ext_csd[reg::NUMBER_OF_FW_SECTORS_CORRECTLY_PROGRAMMED.range()].copy_from_slice(&sectors.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part() -> [u8; EXT_CSD_BYTES] {
        let mut ext_csd = [0; EXT_CSD_BYTES];
        (ext_csd[reg::SUPPORTED_MODES], ext_csd[reg::FFU_FEATURES]) = (1, 1);
        ext_csd[reg::FFU_ARG.range()].copy_from_slice(&0xfffa_fff0u32.to_le_bytes());
        ext_csd[reg::FIRMWARE_VERSION.range()].copy_from_slice(b"OLD     ");
        ext_csd[reg::MODE_CONFIG] = 1;
        ext_csd
    }

    fn programmed(ext_csd: &[u8; EXT_CSD_BYTES]) -> u8 {
        ext_csd[reg::NUMBER_OF_FW_SECTORS_CORRECTLY_PROGRAMMED]
    }

    #[test]
    fn an_image_in_two_chunks_is_active_after_the_reset() {
        let (mut ext_csd, mut firmware) = (part(), Firmware::default());
        assert_eq!(address(&ext_csd), 0xfffa_fff0);
        let image = firmware_image(*b"NEW     ", &[0x5a; 1000]);
        assert_eq!(image.len(), 3 * SECTOR);
        firmware.download(&mut ext_csd, &image[..SECTOR]);
        assert_eq!(programmed(&ext_csd), 1);
        firmware.download(&mut ext_csd, &image[SECTOR..]);
        assert_eq!(programmed(&ext_csd), 3);
        firmware.operate(&mut ext_csd, INSTALL);
        assert_eq!((ext_csd[reg::FFU_STATUS], ext_csd[reg::MODE_CONFIG], programmed(&ext_csd)), (SUCCESS, 0, 0));
        assert_eq!(ext_csd[reg::FIRMWARE_VERSION.range()], *b"OLD     ");
        firmware.power_off(&mut ext_csd);
        firmware.reset(&mut ext_csd);
        assert_eq!(ext_csd[reg::FIRMWARE_VERSION.range()], *b"NEW     ");
    }

    #[test]
    fn without_operation_codes_a_power_cycle_installs_a_whole_image() {
        let image = firmware_image(*b"NEW     ", &[1; 1024]);
        for (sent, status, version) in [(2, DOWNLOAD_ERROR, b"OLD     "), (3, SUCCESS, b"NEW     ")] {
            let (mut ext_csd, mut firmware) = (part(), Firmware::default());
            ext_csd[reg::FFU_FEATURES] = 0;
            firmware.download(&mut ext_csd, &image[..sent * SECTOR]);
            // What is kept if the process of the card is killed here.
            let kept = firmware.installed();
            firmware.power_off(&mut ext_csd);
            firmware.reset(&mut ext_csd);
            assert_eq!((ext_csd[reg::FFU_STATUS], &ext_csd[reg::FIRMWARE_VERSION.range()]), (status, &version[..]));
            assert_eq!(kept.is_some(), sent == 3);
        }
        // A second download replaces the first, also where it is not completed.
        let (mut ext_csd, mut firmware) = (part(), Firmware::default());
        ext_csd[reg::FFU_FEATURES] = 0;
        firmware.download(&mut ext_csd, &image);
        firmware.download(&mut ext_csd, &image[..SECTOR]);
        assert_eq!(firmware.installed(), None);
    }

    #[test]
    fn an_invalid_image_is_not_installed() {
        let good = firmware_image(*b"NEW     ", &[1; 600]);
        let mut torn = good.clone();
        torn[700] ^= 1;
        let mut anything = good.clone();
        anything[0] = b'E';
        for (image, status) in [
            (&[][..], GENERAL_ERROR),
            (&good[..SECTOR], DOWNLOAD_ERROR),
            (&torn[..], INSTALL_ERROR),
            (&anything[..], INSTALL_ERROR),
        ] {
            let (mut ext_csd, mut firmware) = (part(), Firmware::default());
            firmware.download(&mut ext_csd, image);
            firmware.operate(&mut ext_csd, INSTALL);
            assert_eq!(ext_csd[reg::FFU_STATUS], status);
            firmware.reset(&mut ext_csd);
            assert_eq!(ext_csd[reg::FIRMWARE_VERSION.range()], *b"OLD     ");
        }
    }

    #[test]
    fn a_download_can_be_restarted_and_aborted() {
        let (mut ext_csd, mut firmware) = (part(), Firmware::default());
        let image = firmware_image(*b"NEW     ", &[1; 512]);
        firmware.download(&mut ext_csd, &image[..SECTOR]);
        firmware.download(&mut ext_csd, &image);
        assert_eq!(programmed(&ext_csd), 2);
        firmware.operate(&mut ext_csd, ABORT);
        assert_eq!((ext_csd[reg::FFU_STATUS], programmed(&ext_csd)), (SUCCESS, 0));
        firmware.reset(&mut ext_csd);
        assert_eq!(ext_csd[reg::FIRMWARE_VERSION.range()], *b"OLD     ");
        // Without operation codes the reset installs.
        ext_csd[reg::FFU_FEATURES] = 0;
        firmware.download(&mut ext_csd, &image);
        firmware.reset(&mut ext_csd);
        assert_eq!(ext_csd[reg::FIRMWARE_VERSION.range()], *b"NEW     ");
    }

    #[test]
    fn updates_can_be_disabled_and_modes_can_be_absent() {
        let mut ext_csd = part();
        for (mode, allowed) in [(1, true), (0, true), (0x10, false)] {
            assert_eq!(check_mode(&ext_csd, mode).is_ok(), allowed, "{mode}");
        }
        for (operation, allowed) in [(1, true), (3, false)] {
            assert_eq!(check_operation(&ext_csd, operation).is_ok(), allowed, "{operation}");
        }
        ext_csd[reg::MODE_CONFIG] = 0;
        assert_eq!(check_operation(&ext_csd, 1), Err(Refused), "outside the mode");
        ext_csd[reg::FW_CONFIG] = 1;
        assert_eq!((check_mode(&ext_csd, 1), check_mode(&ext_csd, 0)), (Err(Refused), Ok(())));
        ext_csd[reg::FW_CONFIG] = 0;
        ext_csd[reg::SUPPORTED_MODES] = 0;
        assert_eq!(check_mode(&ext_csd, 1), Err(Refused));
    }
}
