//! EXT_CSD: the implied values of the profile, by field names, then its explicit ones.
//!
//! Fields that are younger than the part's EXT_CSD_REV stay 0. Fields not named here are 0 at power-on: modes, one-time
//! registers, status.

use emmc_regs::ext_csd::{EXT_CSD_BYTES, ExtCsd, field_named};
use emmc_units::SECTOR_BYTES;

use crate::profile::{BusMode, Profile};

const BOOT_UNIT: u64 = 128 << 10;
const ERASE_UNIT: u64 = 512 << 10;

/// Fields that follow from other sections of a profile, and where from: they cannot be overridden.
pub(super) const IMPLIED: [(&str, &str); 12] = [
    ("SEC_COUNT", "areas.user_bytes"),
    ("BOOT_SIZE_MULT", "areas.boot_bytes"),
    ("RPMB_SIZE_MULT", "areas.rpmb_bytes"),
    ("HC_ERASE_GRP_SIZE", "areas.erase_group_bytes"),
    ("HC_WP_GRP_SIZE", "areas.wp_group_bytes"),
    ("MAX_ENH_SIZE_MULT", "areas.enhanced_groups_max"),
    ("EXT_CSD_REV", "identity.ext_csd_rev"),
    ("FIRMWARE_VERSION", "identity.firmware"),
    ("CACHE_SIZE", "controller.cache_bytes"),
    ("CMDQ_DEPTH", "controller.queue_depth"),
    ("CMDQ_SUPPORT", "controller.queue_depth"),
    ("DEVICE_TYPE", "controller.bus_max"),
];

/// What is wrong with an override, if anything.
pub(in crate::profile) fn override_fault(name: &str, value: u64) -> Option<String> {
    let Some(field) = field_named(name).filter(|field| field.name.eq_ignore_ascii_case(name)) else {
        return Some("must be the name of an EXT_CSD field".into());
    };
    if let Some((_, section)) = IMPLIED.iter().find(|(implied, _)| implied.eq_ignore_ascii_case(name)) {
        return Some(format!("follows from {section}; set that instead"));
    }
    let bits = 8 * u32::from(field.width);
    if bits > 64 {
        return Some("has more than 8 bytes and cannot be set".into());
    }
    (bits < 64 && value >> bits != 0).then(|| format!("must fit into {bits} bits"))
}

pub(super) fn ext_csd(profile: &Profile) -> [u8; EXT_CSD_BYTES] {
    let mut image = Image { csd: ExtCsd::from_bytes([0; EXT_CSD_BYTES]), rev: profile.identity.ext_csd_rev };
    image.sizes(profile);
    image.bus(profile);
    image.times();
    image.features(profile);
    image.access(profile);
    image.identity(profile);
    for (name, value) in &profile.registers {
        image.write(name, *value, 0);
    }
    *image.csd.bytes()
}

struct Image {
    csd: ExtCsd,
    rev: u8,
}

impl Image {
    /// Sets a field, unless it is younger than the part.
    fn set(&mut self, name: &str, value: u64) {
        self.write(name, value, self.rev);
    }

    fn write(&mut self, name: &str, value: u64, rev: u8) {
        let field = field_named(name);
        debug_assert!(field.is_some(), "{name}");
        if let Some(field) = field.filter(|field| rev == 0 || field.since_rev <= rev) {
            self.csd.set_uint(field.offset, field.width, value);
        }
    }

    fn sizes(&mut self, profile: &Profile) {
        let areas = &profile.areas;
        let (erase, group) = (u64::from(areas.erase_group_bytes), u64::from(areas.wp_group_bytes));
        self.set("SEC_COUNT", areas.user_bytes / SECTOR_BYTES);
        self.set("BOOT_SIZE_MULT", u64::from(areas.boot_bytes) / BOOT_UNIT);
        self.set("RPMB_SIZE_MULT", u64::from(areas.rpmb_bytes) / BOOT_UNIT);
        self.set("HC_ERASE_GRP_SIZE", erase / ERASE_UNIT);
        self.set("HC_WP_GRP_SIZE", group / erase.max(1));
        self.set("MAX_ENH_SIZE_MULT", areas.enhanced_groups_max.into());
        // Extended attributes came with 4.5.
        let attributes = if self.rev >= 6 { 7 } else { 3 };
        self.set("PARTITIONING_SUPPORT", if areas.enhanced_groups_max > 0 { attributes } else { 0 });
    }

    fn bus(&mut self, profile: &Profile) {
        let bus = profile.controller.bus_max;
        let ddr = bus >= BusMode::Ddr52x4;
        let device_type = match bus {
            BusMode::Hs400 => 0x57,
            BusMode::Hs200 | BusMode::Hs200x4 => 0x17,
            BusMode::Ddr52 | BusMode::Ddr52x4 => 0x07,
            BusMode::Hs52 | BusMode::Hs52x4 | BusMode::Hs52x1 => 0x03,
            _ => 0x01,
        };
        self.set("DEVICE_TYPE", device_type);
        // CSD_STRUCTURE 2 is "CSD 1.2", that of every part since 4.1.
        self.set("CSD_STRUCTURE", 2);
        self.set("STROBE_SUPPORT", u64::from(bus == BusMode::Hs400));
        self.set("DRIVER_STRENGTH", if self.rev >= 8 { 0x1f } else { 0x0f });
        // Alternative boot and boot at high speed; in DDR where there is such a mode.
        self.set("BOOT_INFO", if ddr { 7 } else { 5 });
        self.set("S_CMD_SET", 1);
    }

    /// The timeouts that hosts are to use: those of published registers, far above the times of the model.
    fn times(&mut self) {
        for (name, value) in [
            // 100 ms until a HPI is obeyed, 30 ms to switch partitions, 250 ms for any other CMD6.
            ("OUT_OF_INTERRUPT_TIME", 10),
            ("PARTITION_SWITCH_TIME", 3),
            ("GENERIC_CMD6_TIME", 25),
            // 26 ms to sleep and wake, 655 ms after a sleep notification, 1 s after a long power-off notification.
            ("S_A_TIMEOUT", 0x12),
            ("SLEEP_NOTIFICATION_TIME", 0x10),
            ("POWER_OFF_LONG_TIME", 100),
            // 1 s for the first initialisation after partitioning.
            ("INI_TIMEOUT_AP", 10),
            // 300 ms to erase a group, twice that to trim one, 5.1 s to do so securely.
            ("ERASE_TIMEOUT_MULT", 1),
            ("TRIM_MULT", 2),
            ("SEC_TRIM_MULT", 17),
            ("SEC_ERASE_MULT", 17),
            // 819 ms to install firmware.
            ("OPERATION_CODES_TIMEOUT", 0x0d),
            // 128 uA asleep on either supply.
            ("S_C_VCCQ", 7),
            ("S_C_VCC", 7),
        ] {
            self.set(name, value);
        }
    }

    fn features(&mut self, profile: &Profile) {
        let controller = &profile.controller;
        // Every part since 4.4 has EN_REL_WR, and all published parts protect all areas, with or without the choice
        // (HS_CTRL_REL).
        self.set("WR_REL_PARAM", 4 | u64::from(controller.write_reliability));
        self.set("WR_REL_SET", 0x1f);
        self.set("REL_WR_SEC_C", 1);
        // Secure erase, secure bad block management, trim; sanitize came with 4.5.
        self.set("SEC_FEATURE_SUPPORT", if self.rev >= 6 { 0x55 } else { 0x15 });
        self.set("SECURE_REMOVAL_TYPE", 1);
        self.set("HPI_FEATURES", 1);
        let background = profile.ftl.gc_high_blocks > 0 || controller.auto_bkops || profile.ftl.slc_cache.is_some();
        self.set("BKOPS_SUPPORT", u64::from(background));
        self.set("CACHE_SIZE", u64::from(controller.cache_bytes) / 128);
        self.set("BARRIER_SUPPORT", u64::from(controller.cache_bytes > 0));
        if controller.queue_depth > 0 {
            self.set("CMDQ_SUPPORT", 1);
            self.set("CMDQ_DEPTH", u64::from(controller.queue_depth) - 1);
        }
        self.set("MAX_PACKED_WRITES", controller.packed_commands.into());
        self.set("MAX_PACKED_READS", controller.packed_commands.into());
        // Five contexts of one large unit (1 MiB), data tags of 4 KiB, both extended attributes.
        self.set("CONTEXT_CAPABILITIES", 5);
        self.set("DATA_TAG_SUPPORT", 1);
        self.set("TAG_UNIT_SIZE", 3);
        self.set("EXT_SUPPORT", 3);
        // Firmware updates go to an address that no user area has, and are installed by an operation code.
        self.set("SUPPORTED_MODES", 1);
        self.set("FFU_FEATURES", 1);
        self.set("FFU_ARG", 0xfffa_fff0);
    }

    /// Sizes that suit the flash.
    fn access(&mut self, profile: &Profile) {
        let nand = &profile.nand;
        let stripe = u64::from(nand.page_bytes) * u64::from(nand.planes) * u64::from(nand.dies);
        let log2 = |bytes: u64| u64::from(bytes.max(1).ilog2());
        self.set("ACC_SIZE", (log2(stripe.max(512)) - 8).min(0x0f));
        self.set("OPTIMAL_WRITE_SIZE", (stripe / 4096).min(255));
        self.set("OPTIMAL_READ_SIZE", (u64::from(nand.page_bytes) / 4096).clamp(1, 255));
        let unit = u64::from(profile.ftl.unit_bytes.max(4096));
        self.set("OPTIMAL_TRIM_UNIT_SIZE", (log2(unit) - 11).min(0x15));
    }

    fn identity(&mut self, profile: &Profile) {
        self.set("EXT_CSD_REV", self.rev.into());
        let mut firmware = [0; 8];
        for (byte, letter) in firmware.iter_mut().zip(profile.identity.firmware.bytes()) {
            *byte = letter;
        }
        self.set("FIRMWARE_VERSION", u64::from_le_bytes(firmware));
        self.set("PRE_EOL_INFO", 1);
        self.set("DEVICE_LIFE_TIME_EST_TYP_A", 1);
        self.set("DEVICE_LIFE_TIME_EST_TYP_B", 1);
    }
}
