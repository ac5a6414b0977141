use super::{Checked, Rules};
use crate::nand::CellMode;
use crate::profile::registers::{BYTE_ADDRESSED_MAX, byte_addressed_size};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// What 32 bits of sectors hold.
const USER_MAX: u64 = (1 << 41) - 512;

impl Rules<'_> {
    pub(super) fn areas(&self) -> Checked {
        let areas = &self.profile.areas;
        self.range("areas.user_bytes", areas.user_bytes, MIB..=USER_MAX)?;
        self.multiple("areas.user_bytes", areas.user_bytes, 512)?;
        if areas.user_bytes <= BYTE_ADDRESSED_MAX {
            let rule = "up to 2 GiB must be 1 to 4095 times a power of two that the CSD can hold (2 KiB to 1 MiB)";
            let fits = byte_addressed_size(areas.user_bytes).is_some();
            self.require(fits, "areas.user_bytes", areas.user_bytes, rule)?;
        } else if self.is_sd() {
            self.multiple("areas.user_bytes", areas.user_bytes, 512 * KIB)?;
        }
        if self.is_sd() {
            return self.no_emmc_areas();
        }
        // One byte counts units of 128 KiB; RPMB has at most half of the range.
        self.multiple("areas.boot_bytes", areas.boot_bytes.into(), 128 * KIB)?;
        self.range("areas.boot_bytes", u64::from(areas.boot_bytes), 0..=255 * 128 * KIB)?;
        self.multiple("areas.rpmb_bytes", areas.rpmb_bytes.into(), 128 * KIB)?;
        self.range("areas.rpmb_bytes", u64::from(areas.rpmb_bytes), 0..=16 * MIB)?;
        let erase = u64::from(areas.erase_group_bytes);
        self.range("areas.erase_group_bytes", erase, 512 * KIB..=255 * 512 * KIB)?;
        self.multiple("areas.erase_group_bytes", erase, 512 * KIB)?;
        let group = u64::from(areas.wp_group_bytes);
        self.range("areas.wp_group_bytes", group, erase..=255 * erase)?;
        self.multiple("areas.wp_group_bytes", group, erase)?;
        self.enhanced(group)
    }

    fn enhanced(&self, group: u64) -> Checked {
        let (areas, cell) = (&self.profile.areas, self.profile.nand.cell);
        let (field, max) = ("areas.enhanced_groups_max", areas.enhanced_groups_max);
        if matches!(cell, CellMode::Slc) {
            return self.require(max == 0, field, max, "must be 0 where nand.cell is slc: nothing can be enhanced");
        }
        // A group with one bit a cell takes the place of as many as there were bits.
        let most = (areas.user_bytes / (group * u64::from(cell.bits()))).min(0xff_ffff);
        let rule = format!("must be at most {most}: each takes {} groups of the user area", cell.bits());
        self.require(u64::from(max) <= most, field, max, rule)
    }

    fn no_emmc_areas(&self) -> Checked {
        let areas = &self.profile.areas;
        for (field, found) in [
            ("areas.boot_bytes", areas.boot_bytes),
            ("areas.rpmb_bytes", areas.rpmb_bytes),
            ("areas.enhanced_groups_max", areas.enhanced_groups_max),
        ] {
            self.require(found == 0, field, found, "must be 0 on an SD card")?;
        }
        Ok(())
    }
}
