//! Dumps of real parts: an independent decoder agrees field by field, and every revision decodes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use emmc_regs::ext_csd::{ExtCsd, fields, mmc_version};

/// Names under which Aaru's independent decoding lists a register, and the standard's.
const AARU_NAMES: [(&str, &str); 64] = [
    ("SecureRemovalType", "SECURE_REMOVAL_TYPE"),
    ("CacheControl", "CACHE_CTRL"),
    ("PowerOffNotification", "POWER_OFF_NOTIFICATION"),
    ("SupportsProgramCxDInDDR", "PROGRAM_CID_CSD_DDR_SUPPORT"),
    ("MaxEnhancedAreaSize", "MAX_ENH_SIZE_MULT"),
    ("PartitioningSupport", "PARTITIONING_SUPPORT"),
    ("HPIManagement", "HPI_MGMT"),
    ("HWResetFunction", "RST_n_FUNCTION"),
    ("WriteReliabilityParameterRegister", "WR_REL_PARAM"),
    ("WriteReliabilitySettingRegister", "WR_REL_SET"),
    ("RPMBSize", "RPMB_SIZE_MULT"),
    ("BootAreaWriteProtectionRegister", "BOOT_WP"),
    ("BootWriteProtectionStatus", "BOOT_WP_STATUS"),
    ("HighCapacityEraseGroupDefinition", "ERASE_GROUP_DEF"),
    ("StrobeSupport", "STROBE_SUPPORT"),
    ("HighSpeedInterfaceTiming", "HS_TIMING"),
    ("Revision", "EXT_CSD_REV"),
    ("Structure", "CSD_STRUCTURE"),
    ("DeviceType", "DEVICE_TYPE"),
    ("DriverStrength", "DRIVER_STRENGTH"),
    ("OutOfInterruptBusyTiming", "OUT_OF_INTERRUPT_TIME"),
    ("PartitionSwitchingTime", "PARTITION_SWITCH_TIME"),
    ("SecureWriteProtectInformation", "SECURE_WP_INFO"),
    ("SectorCount", "SEC_COUNT"),
    ("SleepNotificationTimeout", "SLEEP_NOTIFICATION_TIME"),
    ("SleepAwakeTimeout", "S_A_TIMEOUT"),
    ("SleepCurrentVccQ", "S_C_VCCQ"),
    ("SleepCurrentVcc", "S_C_VCC"),
    ("HighCapacityWriteProtectGroupSize", "HC_WP_GRP_SIZE"),
    ("ReliableWriteSectorCount", "REL_WR_SEC_C"),
    ("HighCapacityEraseTimeout", "ERASE_TIMEOUT_MULT"),
    ("HighCapacityEraseUnitSize", "HC_ERASE_GRP_SIZE"),
    ("AccessSize", "ACC_SIZE"),
    ("BootPartitionSize", "BOOT_SIZE_MULT"),
    ("BootInformation", "BOOT_INFO"),
    ("SecureTRIMMultiplier", "SEC_TRIM_MULT"),
    ("SecureEraseMultiplier", "SEC_ERASE_MULT"),
    ("SecureFeatureSupport", "SEC_FEATURE_SUPPORT"),
    ("TRIMMultiplier", "TRIM_MULT"),
    ("InitializationTimeAfterPartition", "INI_TIMEOUT_AP"),
    ("PowerOffNotificationTimeout", "POWER_OFF_LONG_TIME"),
    ("GenericCMD6Timeout", "GENERIC_CMD6_TIME"),
    ("CacheSize", "CACHE_SIZE"),
    ("FirmwareVersion", "FIRMWARE_VERSION"),
    ("OptimalTrimUnitSize", "OPTIMAL_TRIM_UNIT_SIZE"),
    ("OptimalWriteSize", "OPTIMAL_WRITE_SIZE"),
    ("OptimalReadSize", "OPTIMAL_READ_SIZE"),
    ("PreEOLInformation", "PRE_EOL_INFO"),
    ("DeviceLifeEstimationTypeA", "DEVICE_LIFE_TIME_EST_TYP_A"),
    ("DeviceLifeEstimationTypeB", "DEVICE_LIFE_TIME_EST_TYP_B"),
    ("CMDQueuingDepth", "CMDQ_DEPTH"),
    ("CMDQueuingSupport", "CMDQ_SUPPORT"),
    ("SupportedModes", "SUPPORTED_MODES"),
    ("ExtendedPartitionsSupport", "EXT_SUPPORT"),
    ("LargeUnitSize", "LARGE_UNIT_SIZE_M1"),
    ("ContextManagementCaps", "CONTEXT_CAPABILITIES"),
    ("TagResourcesSize", "TAG_RES_SIZE"),
    ("TagUnitSize", "TAG_UNIT_SIZE"),
    ("DataTagSupport", "DATA_TAG_SUPPORT"),
    ("MaxPackedWriteCommands", "MAX_PACKED_WRITES"),
    ("MaxPackedReadCommands", "MAX_PACKED_READS"),
    ("BackgroundOperationsSupport", "BKOPS_SUPPORT"),
    ("HPIFeatures", "HPI_FEATURES"),
    ("SupportedCommandSets", "S_CMD_SET"),
];

fn testdata(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path)
}

fn dump(part: &str) -> [u8; 512] {
    let text = std::fs::read_to_string(testdata(&format!("ext_csd_raw/{part}/{part}.ext_csd.hex"))).unwrap();
    let mut bytes = [0; 512];
    let digits = text.trim();
    assert_eq!(digits.len(), 1024, "{part}");
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * index..2 * index + 2], 16).unwrap();
    }
    bytes
}

#[test]
fn aaru_64g_agrees_with_its_independent_decoding_field_by_field() {
    let text = std::fs::read_to_string(testdata("ext_csd_raw/aaru-64g/aaru-64g.decoded.json")).unwrap();
    let decoded: BTreeMap<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
    let ext_csd = ExtCsd::from_bytes(dump("aaru-64g"));
    let rows: BTreeMap<String, u64> = ext_csd.rows(false).map(|row| (row.name.to_string(), row.raw)).collect();
    for (key, value) in &decoded {
        let (_, name) =
            AARU_NAMES.iter().find(|(aaru, _)| aaru == key).unwrap_or_else(|| panic!("{key} has no name here"));
        let expected = match value {
            serde_json::Value::Array(bytes) => {
                bytes.iter().rev().fold(0, |number, byte| number << 8 | byte.as_u64().unwrap())
            }
            number => number.as_u64().unwrap(),
        };
        assert_eq!(rows[*name], expected, "{name}");
    }
    assert_eq!(decoded.len(), 64);
    // Fields that the independent decoder leaves out are zero here, except for fields that it does not support.
    let listed: Vec<&str> =
        decoded.keys().filter_map(|key| AARU_NAMES.iter().find(|(a, _)| a == key)).map(|n| n.1).collect();
    for row in ext_csd.rows(false).filter(|row| row.raw != 0) {
        assert!(listed.contains(&row.name.as_ref()), "{} = {:#x} is set and not listed", row.name, row.raw);
    }
}

#[test]
fn every_revision_is_decoded() {
    for rev in 0..=9 {
        let mut bytes = dump("samsung-klm-8g");
        bytes[192] = rev;
        let (info, anomalies) = ExtCsd::from_bytes(bytes).decode();
        assert_eq!(info.rev, Some(rev));
        assert!(mmc_version(rev).is_some(), "{rev}");
        assert_eq!(anomalies.iter().any(|anomaly| anomaly.field == "EXT_CSD_REV"), rev == 4, "{rev}: {anomalies:?}");
    }
    let mut bytes = dump("samsung-klm-8g");
    bytes[192] = 10;
    assert!(ExtCsd::from_bytes(bytes).decode().1.iter().any(|anomaly| anomaly.field == "EXT_CSD_REV"));
}

#[test]
fn real_parts_have_their_published_sizes() {
    for (part, sectors, boot, rpmb, wp_group, max_enh_kib) in [
        ("samsung-klm-8g", 15_269_888, 4 << 20, 512 << 10, 8 << 20, Some(3_817_472)),
        ("samsung-bjnb4r-32g", 61_071_360, 4 << 20, 4 << 20, 8 << 20, None),
        ("ac100-mmc32g", 62_521_344, 2 << 20, 256 << 10, 4 << 20, None),
        ("aaru-64g", 120_832_000, 4 << 20, 4 << 20, 4 << 20, None),
    ] {
        let (info, anomalies) = ExtCsd::from_bytes(dump(part)).decode();
        assert_eq!(info.user_sectors.unwrap().0, sectors, "{part}");
        assert_eq!(info.boot.unwrap().0, boot, "{part}");
        assert_eq!(info.rpmb.unwrap().0, rpmb, "{part}");
        assert_eq!(info.hc_wp_group.unwrap().0, wp_group, "{part}");
        let max = info.hw_partition.max_enh_groups.unwrap() * info.hc_wp_group.unwrap().0;
        assert!(max_enh_kib.is_none_or(|kib| kib == max >> 10), "{part}: {max}");
        assert!(anomalies.iter().all(|anomaly| anomaly.field == "RESERVED"), "{part}: {anomalies:?}");
    }
}

#[test]
fn every_byte_of_a_real_dump_is_listed() {
    for part in ["samsung-klm-8g", "samsung-bjnb4r-32g", "ac100-mmc32g", "aaru-64g"] {
        let bytes = dump(part);
        let mut rebuilt = [0u8; 512];
        for row in ExtCsd::from_bytes(bytes).rows(true) {
            for index in 0..row.width {
                rebuilt[usize::from(row.offset + index)] = (row.raw >> (8 * index)) as u8;
            }
        }
        assert_eq!(rebuilt, bytes, "{part}");
    }
    assert_eq!(fields().count(), 160);
}
