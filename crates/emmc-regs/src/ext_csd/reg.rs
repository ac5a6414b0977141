//! Every field of the table by its name: `reg::SEC_COUNT`.
//!
//! A constant is the table's own row, found when the program is compiled: a name that the table lacks does not build.
//! Outside this crate no other place spells a register's number.

use super::field::Field;
use super::{table_low, table_modes, table_properties};

macro_rules! named {
    ($($name:ident)*) => {
        $(
            #[doc = concat!("The row of ", stringify!($name), ".")]
            #[allow(non_upper_case_globals)] // RST_n_FUNCTION is the standard's spelling
            pub const $name: &Field = row(stringify!($name));
        )*

        #[cfg(test)]
        const ALL: &[&Field] = &[$($name),*];
    };
}

named! {
    CMDQ_MODE_EN
    SECURE_REMOVAL_TYPE
    PRODUCT_STATE_AWARENESS_ENABLEMENT
    MAX_PRE_LOADING_DATA_SIZE
    PRE_LOADING_DATA_SIZE
    FFU_STATUS
    MODE_OPERATION_CODES
    MODE_CONFIG
    BARRIER_CTRL
    FLUSH_CACHE
    CACHE_CTRL
    POWER_OFF_NOTIFICATION
    PACKED_FAILURE_INDEX
    PACKED_COMMAND_STATUS
    CONTEXT_CONF
    EXT_PARTITIONS_ATTRIBUTE
    EXCEPTION_EVENTS_STATUS
    EXCEPTION_EVENTS_CTRL
    DYNCAP_NEEDED
    CLASS_6_CTRL
    INI_TIMEOUT_EMU
    DATA_SECTOR_SIZE
    USE_NATIVE_SECTOR
    NATIVE_SECTOR_SIZE
    VENDOR_SPECIFIC_FIELD
    PROGRAM_CID_CSD_DDR_SUPPORT
    PERIODIC_WAKEUP
    TCASE_SUPPORT
    PRODUCTION_STATE_AWARENESS
    SEC_BAD_BLK_MGMNT
    ENH_START_ADDR
    ENH_SIZE_MULT
    GP_SIZE_MULT_1
    GP_SIZE_MULT_2
    GP_SIZE_MULT_3
    GP_SIZE_MULT_4
    PARTITION_SETTING_COMPLETED
    PARTITIONS_ATTRIBUTE
    MAX_ENH_SIZE_MULT
    PARTITIONING_SUPPORT
    HPI_MGMT
    RST_n_FUNCTION
    BKOPS_EN
    BKOPS_START
    SANITIZE_START
    WR_REL_PARAM
    WR_REL_SET
    RPMB_SIZE_MULT
    FW_CONFIG
    USER_WP
    BOOT_WP
    BOOT_WP_STATUS
    ERASE_GROUP_DEF
    BOOT_BUS_CONDITIONS
    BOOT_CONFIG_PROT
    PARTITION_CONFIG
    ERASED_MEM_CONT
    BUS_WIDTH
    STROBE_SUPPORT
    HS_TIMING
    POWER_CLASS
    CMD_SET_REV
    CMD_SET
    EXT_CSD_REV
    CSD_STRUCTURE
    DEVICE_TYPE
    DRIVER_STRENGTH
    OUT_OF_INTERRUPT_TIME
    PARTITION_SWITCH_TIME
    PWR_CL_52_195
    PWR_CL_26_195
    PWR_CL_52_360
    PWR_CL_26_360
    MIN_PERF_R_4_26
    MIN_PERF_W_4_26
    MIN_PERF_R_8_26_4_52
    MIN_PERF_W_8_26_4_52
    MIN_PERF_R_8_52
    MIN_PERF_W_8_52
    SECURE_WP_INFO
    SEC_COUNT
    SLEEP_NOTIFICATION_TIME
    S_A_TIMEOUT
    PRODUCTION_STATE_AWARENESS_TIMEOUT
    S_C_VCCQ
    S_C_VCC
    HC_WP_GRP_SIZE
    REL_WR_SEC_C
    ERASE_TIMEOUT_MULT
    HC_ERASE_GRP_SIZE
    ACC_SIZE
    BOOT_SIZE_MULT
    BOOT_INFO
    SEC_TRIM_MULT
    SEC_ERASE_MULT
    SEC_FEATURE_SUPPORT
    TRIM_MULT
    MIN_PERF_DDR_R_8_52
    MIN_PERF_DDR_W_8_52
    PWR_CL_200_130
    PWR_CL_200_195
    PWR_CL_DDR_52_195
    PWR_CL_DDR_52_360
    CACHE_FLUSH_POLICY
    INI_TIMEOUT_AP
    CORRECTLY_PRG_SECTORS_NUM
    BKOPS_STATUS
    POWER_OFF_LONG_TIME
    GENERIC_CMD6_TIME
    CACHE_SIZE
    PWR_CL_DDR_200_360
    FIRMWARE_VERSION
    DEVICE_VERSION
    OPTIMAL_TRIM_UNIT_SIZE
    OPTIMAL_WRITE_SIZE
    OPTIMAL_READ_SIZE
    PRE_EOL_INFO
    DEVICE_LIFE_TIME_EST_TYP_A
    DEVICE_LIFE_TIME_EST_TYP_B
    VENDOR_PROPRIETARY_HEALTH_REPORT
    NUMBER_OF_FW_SECTORS_CORRECTLY_PROGRAMMED
    CMDQ_DEPTH
    CMDQ_SUPPORT
    BARRIER_SUPPORT
    FFU_ARG
    OPERATION_CODES_TIMEOUT
    FFU_FEATURES
    SUPPORTED_MODES
    EXT_SUPPORT
    LARGE_UNIT_SIZE_M1
    CONTEXT_CAPABILITIES
    TAG_RES_SIZE
    TAG_UNIT_SIZE
    DATA_TAG_SUPPORT
    MAX_PACKED_WRITES
    MAX_PACKED_READS
    BKOPS_SUPPORT
    HPI_FEATURES
    S_CMD_SET
    EXT_SECURITY_ERR
}

/// GP_SIZE_MULT_1 to _4.
pub const GP_SIZE_MULT: [&Field; 4] = [GP_SIZE_MULT_1, GP_SIZE_MULT_2, GP_SIZE_MULT_3, GP_SIZE_MULT_4];

const fn row(name: &str) -> &'static Field {
    match find(&table_low::TABLE, name) {
        Some(field) => field,
        None => match find(&table_modes::TABLE, name) {
            Some(field) => field,
            None => match find(&table_properties::TABLE, name) {
                Some(field) => field,
                None => panic!("the table has no field of that name"),
            },
        },
    }
}

const fn find(table: &'static [Field], name: &str) -> Option<&'static Field> {
    let mut index = 0;
    while index < table.len() {
        if is_same(table[index].name, name) {
            return Some(&table[index]);
        }
        index += 1;
    }
    None
}

/// `==` of texts is not for constants yet.
const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut index = 0;
    while index < a.len() && index < b.len() && a[index] == b[index] {
        index += 1;
    }
    index == a.len() && index == b.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_exactly_one_constant() {
        let table: Vec<&Field> = super::super::fields().filter(|field| !field.is_reserved()).collect();
        assert_eq!(ALL, table);
        assert_eq!((SEC_COUNT.offset, SEC_COUNT.width), (212, 4));
        assert_eq!(GP_SIZE_MULT.map(|field| field.offset), [143, 146, 149, 152]);
    }
}
