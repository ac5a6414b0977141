//! Registers for tests, and the checksum of a CID.

use emmc_units::Rng;

/// 512 bytes of EXT_CSD, zero but for these registers: first byte, width, value.
pub(crate) fn ext_csd(registers: &[(usize, usize, u32)]) -> [u8; 512] {
    let mut bytes = [0; 512];
    for &(offset, width, value) in registers {
        bytes[offset..offset + width].copy_from_slice(&value.to_le_bytes()[..width]);
    }
    bytes
}

/// Micron S0J56 on an Apalis iMX8QM, before partitioning, as its board vendor described it.
pub(crate) fn s0j56() -> [u8; 512] {
    // Published: the sizes in sectors and groups of the console session, and what `mmc info` prints of the part.
    let published = [
        (192, 1, 8),          // EXT_CSD_REV: "MMC version 5.1"
        (212, 4, 31_080_448), // SEC_COUNT: the whole user area in the refused command
        (224, 1, 1),          // HC_ERASE_GRP_SIZE: "Erase Group Size: 512 KiB"
        (221, 1, 16),         // HC_WP_GRP_SIZE: "HC WP Group Size: 8 MiB"
        (157, 3, 939),        // MAX_ENH_SIZE_MULT: "1897 > 939"
        (226, 1, 252),        // BOOT_SIZE_MULT: "Boot Capacity: 31.5 MiB"
        (168, 1, 32),         // RPMB_SIZE_MULT: "RPMB Capacity: 4 MiB"
    ];
    // Assumed, as other parts of the standard's version 5.1 have it.
    let assumed = [
        (160, 1, 0x07), // PARTITIONING_SUPPORT: all of it
        (166, 1, 0x05), // WR_REL_PARAM: as the same vendor's other board prints it
        (167, 1, 0x1f), // WR_REL_SET: on for every area; "User Capacity: 14.8 GiB WRREL" tells bit 0 only
        (241, 1, 30),   // INI_TIMEOUT_AP: 3 s
        (194, 1, 2),    // CSD_STRUCTURE
        (196, 1, 0x57), // DEVICE_TYPE: up to HS400 at 1.8 V
    ];
    let all: Vec<_> = published.into_iter().chain(assumed).collect();
    ext_csd(&all)
}

/// The CID of an eMMC as 32 hexadecimal digits, its checksum right.
pub(crate) fn emmc_cid(manufacturer_id: u8, product_name: &[u8; 6]) -> String {
    let mut bytes = [manufacturer_id, 0x01, 0x4e, 0, 0, 0, 0, 0, 0, 0x10, 0x01, 0x23, 0x45, 0x67, 0x44, 0];
    bytes[3..9].copy_from_slice(product_name);
    bytes[15] = crc7(&bytes[..15]) << 1 | 1;
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// CRC7 with the polynomial x^7 + x^3 + 1, bit by bit.
fn crc7(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).rev().fold(crc, |crc: u8, bit| {
            let feedback = if (crc >> 6 & 1) == (byte >> bit & 1) { 0 } else { 0x09 };
            ((crc << 1) ^ feedback) & 0x7f
        })
    })
}

/// Pseudorandom bytes that are the same in every run.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut bytes: Vec<u8> = (0..length.div_ceil(8)).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
    bytes.truncate(length);
    bytes
}
