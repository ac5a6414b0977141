//! How long each of the 4096 bits lasts, against a list written from the standard's table and not from ours.

use super::{EXT_CSD_BYTES, field_at};
use crate::Persistence::{self, *};

/// First byte, bytes, bits, and how long they last. What is not listed below byte 192 is reserved or the vendor's.
///
/// Source: JESD84-B51 7.4, table "Extended CSD", column "Cell Type", and the tables of the single registers.
const MODES: [(u16, u16, u8, Persistence); 84] = [
    (15, 1, 0x01, UntilReset),             // CMDQ_MODE_EN: R/W/E_P
    (16, 1, 0x0f, Kept),                   // SECURE_REMOVAL_TYPE, supported: R
    (16, 1, 0x30, OneTime),                // configured: R/W
    (17, 1, 0x33, Kept),                   // PRODUCT_STATE_AWARENESS_ENABLEMENT: R, R/W/E
    (18, 4, 0xff, Kept),                   // MAX_PRE_LOADING_DATA_SIZE: R
    (22, 4, 0xff, UntilReset),             // PRE_LOADING_DATA_SIZE: R/W/E_P
    (26, 1, 0xff, NotSpecified),           // FFU_STATUS: a state
    (29, 2, 0xff, UntilReset),             // MODE_OPERATION_CODES: W/E_P, MODE_CONFIG: R/W/E_P
    (31, 1, 0x01, NotSpecified),           // BARRIER_CTRL: sources differ
    (32, 1, 0x03, UntilReset),             // FLUSH_CACHE: W/E_P
    (33, 1, 0x01, UntilReset),             // CACHE_CTRL: R/W/E_P
    (34, 1, 0xff, UntilReset),             // POWER_OFF_NOTIFICATION: R/W/E_P
    (35, 1, 0xff, NotSpecified),           // PACKED_FAILURE_INDEX: a state
    (36, 1, 0x03, NotSpecified),           // PACKED_COMMAND_STATUS: a state
    (37, 15, 0xff, UntilReset),            // CONTEXT_CONF: R/W/E_P
    (52, 2, 0xff, OneTimeOnceCommitted),   // EXT_PARTITIONS_ATTRIBUTE: R/W
    (54, 1, 0x1f, NotSpecified),           // EXCEPTION_EVENTS_STATUS: a state
    (56, 1, 0x1e, UntilReset),             // EXCEPTION_EVENTS_CTRL: R/W/E_P
    (58, 1, 0xff, NotSpecified),           // DYNCAP_NEEDED: a state
    (59, 1, 0xff, UntilReset),             // CLASS_6_CTRL: R/W/E_P
    (60, 2, 0xff, Kept),                   // INI_TIMEOUT_EMU, DATA_SECTOR_SIZE: R
    (62, 1, 0xff, OneTime),                // USE_NATIVE_SECTOR: R/W
    (63, 1, 0xff, Kept),                   // NATIVE_SECTOR_SIZE: R
    (64, 64, 0xff, NotSpecified),          // the vendor's
    (130, 1, 0x01, Kept),                  // PROGRAM_CID_CSD_DDR_SUPPORT: R
    (131, 1, 0xff, Kept),                  // PERIODIC_WAKEUP: R/W/E
    (132, 1, 0xff, UntilReset),            // TCASE_SUPPORT: W/E_P
    (133, 1, 0xff, Kept),                  // PRODUCTION_STATE_AWARENESS: R/W/E
    (134, 1, 0x01, OneTime),               // SEC_BAD_BLK_MGMNT: R/W
    (136, 4, 0xff, OneTimeOnceCommitted),  // ENH_START_ADDR: R/W
    (140, 3, 0xff, OneTimeOnceCommitted),  // ENH_SIZE_MULT: R/W
    (143, 12, 0xff, OneTimeOnceCommitted), // GP_SIZE_MULT_1 to _4: R/W
    (155, 1, 0x01, OneTime),               // PARTITION_SETTING_COMPLETED: R/W
    (156, 1, 0x1f, OneTimeOnceCommitted),  // PARTITIONS_ATTRIBUTE: R/W
    (157, 3, 0xff, Kept),                  // MAX_ENH_SIZE_MULT: R
    (160, 1, 0x07, Kept),                  // PARTITIONING_SUPPORT: R
    (161, 1, 0x01, UntilReset),            // HPI_MGMT: R/W/E_P
    (162, 1, 0x03, OneTime),               // RST_n_FUNCTION: R/W
    (163, 1, 0x01, OneTime),               // BKOPS_EN, MANUAL_EN: R/W
    (163, 1, 0x02, Kept),                  // AUTO_EN: R/W/E
    (164, 2, 0xff, UntilReset),            // BKOPS_START, SANITIZE_START: W/E_P
    (166, 1, 0x15, Kept),                  // WR_REL_PARAM: R
    (167, 1, 0x1f, OneTimeOnceCommitted),  // WR_REL_SET: R/W
    (168, 1, 0xff, Kept),                  // RPMB_SIZE_MULT: R
    (169, 1, 0x01, OneTime),               // FW_CONFIG: R/W
    (171, 1, 0x05, UntilReset),            // USER_WP, US_PWR_WP_EN, US_PERM_WP_EN: R/W/E_P
    (171, 1, 0x08, UntilPowerCycle),       // US_PWR_WP_DIS: R/W/C_P
    (171, 1, 0x10, OneTime),               // US_PERM_WP_DIS: R/W
    (171, 1, 0x40, OneTime),               // CD_PERM_WP_DIS: R/W
    (171, 1, 0x80, OneTime),               // PERM_PSWD_DIS: R/W
    (173, 1, 0x03, UntilPowerCycle),       // BOOT_WP, B_PWR_WP_EN, B_PWR_WP_SEC_SEL: R/W/C_P
    (173, 1, 0x04, OneTime),               // B_PERM_WP_EN: R/W
    (173, 1, 0x08, UntilPowerCycle),       // B_PERM_WP_SEC_SEL: R/W/C_P
    (173, 1, 0x10, OneTime),               // B_PERM_WP_DIS: R/W
    (173, 1, 0xc0, UntilPowerCycle),       // B_PWR_WP_DIS, B_SEC_WP_SEL: R/W/C_P
    (174, 1, 0x0f, NotSpecified),          // BOOT_WP_STATUS: a state
    (175, 1, 0x01, UntilReset),            // ERASE_GROUP_DEF: R/W/E_P
    (177, 1, 0x1f, Kept),                  // BOOT_BUS_CONDITIONS: R/W/E
    (178, 1, 0x01, UntilPowerCycle),       // BOOT_CONFIG_PROT, PWR_BOOT_CONFIG_PROT: R/W/C_P
    (178, 1, 0x10, OneTime),               // PERM_BOOT_CONFIG_PROT: R/W
    (179, 1, 0x07, UntilReset),            // PARTITION_CONFIG, PARTITION_ACCESS: R/W/E_P
    (179, 1, 0x38, Kept),                  // BOOT_PARTITION_ENABLE: R/W/E
    (179, 1, 0x40, Kept),                  // BOOT_ACK: R/W/E
    (181, 1, 0xff, Kept),                  // ERASED_MEM_CONT: R
    (183, 1, 0x8f, UntilReset),            // BUS_WIDTH: W/E_P
    (184, 1, 0x01, Kept),                  // STROBE_SUPPORT: R
    (185, 1, 0xff, UntilReset),            // HS_TIMING: R/W/E_P
    (187, 1, 0x0f, UntilReset),            // POWER_CLASS: R/W/E_P
    (189, 1, 0xff, Kept),                  // CMD_SET_REV: R
    (191, 1, 0xff, UntilReset),            // CMD_SET: R/W/E_P
    // What follows is read-only: the states among it, and what is reserved.
    (193, 1, 0xff, NotSpecified),
    (195, 1, 0xff, NotSpecified),
    (204, 1, 0xff, NotSpecified),
    (211, 1, 0x02, NotSpecified), // SECURE_WP_EN_STATUS
    (227, 1, 0xff, NotSpecified),
    (233, 1, 0xff, NotSpecified),
    (242, 4, 0xff, NotSpecified),  // CORRECTLY_PRG_SECTORS_NUM
    (246, 1, 0x03, NotSpecified),  // BKOPS_STATUS
    (270, 32, 0xff, NotSpecified), // VENDOR_PROPRIETARY_HEALTH_REPORT
    (302, 4, 0xff, NotSpecified),  // NUMBER_OF_FW_SECTORS_CORRECTLY_PROGRAMMED
    (306, 1, 0xff, NotSpecified),
    (309, 177, 0xff, NotSpecified),
    (505, 1, 0x03, NotSpecified), // EXT_SECURITY_ERR
    (506, 6, 0xff, NotSpecified),
];

/// Bits of read-only bytes from 192 on that the standard leaves unassigned.
const UNASSIGNED: [(u16, u8); 19] = [
    (197, 0xe0),
    (211, 0xfc),
    (225, 0xf0),
    (228, 0xf8),
    (231, 0xaa),
    (240, 0xfe),
    (246, 0xfc),
    (307, 0xe0),
    (308, 0xfe),
    (486, 0xfe),
    (492, 0xfe),
    (493, 0xfc),
    (494, 0xfc),
    (496, 0x80),
    (499, 0xfe),
    (502, 0xfe),
    (503, 0xfc),
    (504, 0xe0),
    (505, 0xfc),
];

fn by_the_standard(byte: u16, bit: u8) -> Persistence {
    let is_here = |&&(first, bytes, mask, _): &&(u16, u16, u8, Persistence)| {
        (first..first + bytes).contains(&byte) && mask >> bit & 1 == 1
    };
    let mut listed = MODES.iter().filter(is_here);
    let found = listed.next();
    assert_eq!(listed.next(), None, "bit {bit} of byte {byte} is listed twice");
    let is_unassigned = UNASSIGNED.iter().any(|&(at, mask)| at == byte && mask >> bit & 1 == 1);
    match found {
        Some((.., persistence)) => *persistence,
        None if byte < 192 || is_unassigned => NotSpecified,
        None => Kept,
    }
}

#[test]
fn every_bit_has_the_persistence_of_the_standard() {
    let mut counts = std::collections::BTreeMap::new();
    for byte in 0..EXT_CSD_BYTES as u16 {
        let field = field_at(byte).unwrap();
        for bit in 0..8 {
            let found = field.persistence_of_bit(byte - field.offset, bit);
            assert_eq!(found, by_the_standard(byte, bit), "{field}: bit {bit} of byte {byte}");
            *counts.entry(found).or_insert(0) += 1;
        }
    }
    assert_eq!(counts.values().sum::<i32>(), 4096);
    assert_eq!(counts.len(), 6, "every class occurs: {counts:?}");
}

#[test]
fn a_persistence_beyond_the_access_type_has_a_source() {
    for field in super::fields() {
        let stated = field.persistence.into_iter().chain(field.bits.iter().filter_map(|bits| bits.persistence));
        for (persistence, source) in stated {
            assert!(!source.is_empty(), "{field}");
            assert_ne!(persistence, field.access[0].into(), "{field}: says what its access type says");
        }
    }
}
