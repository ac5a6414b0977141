//! Values that no part holds: a register that was shifted, mixed or never one shows many of them, a real one hardly
//! any.
//!
//! Absent on purpose: what merely breaks the standard (`anomaly`), and any judgement of how much is too much for a use.

use super::{ExtCsd, Field, fields, reg};

/// Bytes whose upper bits every revision of the standard reserves, and the largest value that a part can hold there.
///
/// Source: JESD84-A441 to JESD84-B51. Health registers are left out: real parts put 0xff there.
const LIMITS: [(&Field, u8); 36] = [
    (reg::CMDQ_MODE_EN, 0x01),
    (reg::BARRIER_CTRL, 0x01),
    (reg::CACHE_CTRL, 0x01),
    (reg::DATA_SECTOR_SIZE, 0x01),
    (reg::USE_NATIVE_SECTOR, 0x01),
    (reg::NATIVE_SECTOR_SIZE, 0x01),
    (reg::PROGRAM_CID_CSD_DDR_SUPPORT, 0x01),
    (reg::PRODUCTION_STATE_AWARENESS, 0x03),
    (reg::PARTITION_SETTING_COMPLETED, 0x01),
    (reg::PARTITIONS_ATTRIBUTE, 0x1f),
    (reg::PARTITIONING_SUPPORT, 0x07),
    (reg::HPI_MGMT, 0x01),
    (reg::RST_n_FUNCTION, 0x02),
    (reg::BKOPS_EN, 0x03),
    (reg::WR_REL_PARAM, 0x1f),
    (reg::WR_REL_SET, 0x1f),
    (reg::BOOT_WP_STATUS, 0x0f),
    (reg::ERASE_GROUP_DEF, 0x01),
    (reg::BOOT_CONFIG_PROT, 0x11),
    (reg::ERASED_MEM_CONT, 0x01),
    (reg::STROBE_SUPPORT, 0x01),
    (reg::CMD_SET, 0x01),
    (reg::CSD_STRUCTURE, 0x03),
    (reg::S_A_TIMEOUT, 0x17),
    (reg::S_C_VCCQ, 0x0d),
    (reg::S_C_VCC, 0x0d),
    (reg::ACC_SIZE, 0x0f),
    (reg::BOOT_INFO, 0x07),
    (reg::BKOPS_STATUS, 0x03),
    (reg::CMDQ_SUPPORT, 0x01),
    (reg::SUPPORTED_MODES, 0x03),
    (reg::EXT_SUPPORT, 0x03),
    (reg::DATA_TAG_SUPPORT, 0x01),
    (reg::BKOPS_SUPPORT, 0x01),
    (reg::HPI_FEATURES, 0x03),
    (reg::S_CMD_SET, 0x01),
];

impl ExtCsd {
    /// The fields with impossible values: each once, lowest offset first.
    ///
    /// Only known bytes count. Of the real registers in testdata none has more than one.
    pub fn impossible_fields(&self) -> Vec<&'static Field> {
        let over = LIMITS.iter().filter(|(field, most)| self.byte(field.offset).is_some_and(|value| value > *most));
        let over = over.map(|(field, _)| *field);
        let rev = self.byte(reg::EXT_CSD_REV.offset);
        // The public sources disagree by one about the revision that brought a field.
        let too_new = |field: &Field| rev.is_some_and(|rev| field.since_rev > rev.saturating_add(1));
        let odd = fields().filter(|field| (field.is_reserved() || too_new(field)) && self.holds_any(field));
        let mut list: Vec<&'static Field> = over.chain(self.odd_values()).chain(odd).collect();
        list.sort_by_key(|field| field.offset);
        list.dedup();
        list
    }

    /// Fields at odds with the standard in other ways than by an upper bound.
    fn odd_values(&self) -> impl Iterator<Item = &'static Field> {
        let byte = |field: &Field| self.byte(field.offset);
        let rev = byte(reg::EXT_CSD_REV);
        let wrong = [
            (reg::EXT_CSD_REV, matches!(rev, Some(0 | 4 | 10..))),
            (reg::HS_TIMING, byte(reg::HS_TIMING).is_some_and(|timing| timing & 0x0f > 3)),
        ];
        let since = |least: u8| rev.is_some_and(|rev| rev >= least);
        let groups = [reg::HC_WP_GRP_SIZE, reg::HC_ERASE_GRP_SIZE];
        // Fields that a part fills in. Several may be empty for one reason, so that only the first counts.
        let empty = [
            (reg::DEVICE_TYPE, byte(reg::DEVICE_TYPE).is_some_and(|modes| modes & 0x03 == 0)),
            (reg::SEC_COUNT, since(2) && self.raw(reg::SEC_COUNT) == Some(0)),
            (reg::HC_ERASE_GRP_SIZE, since(3) && groups.iter().any(|field| byte(field) == Some(0))),
            (reg::S_CMD_SET, since(6) && byte(reg::S_CMD_SET) == Some(0)),
        ];
        let empty = empty.into_iter().find(|(_, empty)| *empty);
        wrong.into_iter().chain(empty).filter_map(|(field, found)| found.then_some(field))
    }

    fn holds_any(&self, field: &Field) -> bool {
        let vendor = field.access.contains(&super::Access::Vendor);
        let mut bytes = (field.offset..field.offset.saturating_add(field.width)).filter_map(|offset| self.byte(offset));
        !vendor && bytes.any(|byte| byte != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part() -> ExtCsd {
        let mut bytes = [0; 512];
        let set = [(192, 8), (194, 2), (196, 0x57), (215, 1), (221, 16), (224, 1), (502, 1), (503, 1), (504, 1)];
        set.into_iter().for_each(|(offset, value)| bytes[offset] = value);
        ExtCsd::from_bytes(bytes)
    }

    fn names(ext_csd: &ExtCsd) -> Vec<&'static str> {
        ext_csd.impossible_fields().iter().map(|field| field.name).collect()
    }

    #[test]
    fn a_valid_register_has_no_impossible_fields_and_a_shifted_one_has_many() {
        assert_eq!(names(&part()), [""; 0]);
        let mut bytes = *part().bytes();
        bytes.rotate_right(1);
        assert!(names(&ExtCsd::from_bytes(bytes)).len() > 5);
        assert!(names(&ExtCsd::from_bytes([0xff; 512])).len() > 40);
    }

    #[test]
    fn each_impossible_value_is_found_and_unknown_bytes_are_ignored() {
        for (offset, value, name) in
            [(499, 2, "DATA_TAG_SUPPORT"), (185, 4, "HS_TIMING"), (215, 0, "SEC_COUNT"), (504, 0, "S_CMD_SET")]
        {
            let mut ext_csd = part();
            ext_csd.set_uint(offset, 1, value);
            assert_eq!(names(&ext_csd), [name]);
        }
        let mut old = part();
        old.set_uint(192, 1, 5);
        old.set_uint(268, 1, 1);
        assert_eq!(names(&old), ["DEVICE_LIFE_TIME_EST_TYP_A"]);
        assert_eq!(names(&ExtCsd::unknown()), [""; 0]);
    }
}
