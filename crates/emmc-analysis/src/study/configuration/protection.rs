//! Boot, write protection, secure erase.

use emmc_port::CardData;
use emmc_regs::csd::Csd;
use emmc_regs::ext_csd::{DeviceInfo, ExtCsd, reg};
use emmc_regs::{Area, CardKind};

use super::{Rows, Topic, at_least, flags, plain, with, yes_no};
use crate::evidence::Citation;

pub(super) fn rows(card: &CardData, csd: &ExtCsd, info: &DeviceInfo, rows: &mut Rows) {
    boot(csd, info, rows);
    protection(card, csd, info, rows);
    security(csd, info, rows);
}

fn boot(csd: &ExtCsd, info: &DeviceInfo, rows: &mut Rows) {
    rows.topic = Topic::Boot;
    let enable = info.boot_config.boot_partition_enable.map(|enable| plain(boot_source(enable)));
    rows.add("boots from", [Citation::bits(reg::PARTITION_CONFIG, "BOOT_PARTITION_ENABLE")], enable);
    let ack = info.boot_config.boot_ack.map(|ack| yes_no(ack, "the part acknowledges the boot operation", ""));
    rows.add("boot acknowledge", [Citation::bits(reg::PARTITION_CONFIG, "BOOT_ACK")], ack);
    let bus = info.boot_config.bus_conditions.map(|bus| {
        let mode = match bus >> 3 & 3 {
            0 => "single rate, backward compatible",
            1 => "single rate, high speed",
            2 => "double rate",
            _ => "mode not assigned",
        };
        let lines = match bus & 3 {
            0 if bus >> 3 & 3 == 2 => "4 lines",
            0 => "1 line",
            1 => "4 lines",
            2 => "8 lines",
            _ => "width not assigned",
        };
        let after = if bus & 4 == 0 { "reset to 1 line after boot" } else { "kept after boot" };
        with(format!("{mode}, {lines}"), after)
    });
    rows.add("boot bus", reg::BOOT_BUS_CONDITIONS, bus);
    let modes = csd
        .byte(reg::BOOT_INFO)
        .map(|raw| plain(flags(raw, &[(0, "alternative boot"), (1, "double rate"), (2, "high speed")])));
    rows.add_if_told("boot modes offered", reg::BOOT_INFO, modes);
    let locked = csd.byte(reg::BOOT_CONFIG_PROT).map(|raw| {
        plain(match (raw & 0x10 != 0, raw & 1 != 0) {
            (true, _) => "permanently locked",
            (false, true) => "locked until the next power cycle",
            (false, false) => "not locked",
        })
    });
    rows.add("boot configuration", reg::BOOT_CONFIG_PROT, locked);
}

/// What BOOT_PARTITION_ENABLE selects.
pub(in crate::study) fn boot_source(enable: u8) -> &'static str {
    match enable {
        0 => "nothing: boot is not enabled",
        1 => Area::Boot(0).title(),
        2 => Area::Boot(1).title(),
        7 => Area::User.title(),
        _ => "not assigned",
    }
}

fn protection(card: &CardData, csd: &ExtCsd, info: &DeviceInfo, rows: &mut Rows) {
    rows.topic = Topic::Protection;
    if at_least(info, 6) {
        let state = |raw: u8| match raw & 3 {
            0 => "not protected",
            1 => "until the next power cycle",
            2 => "permanent",
            _ => "not assigned",
        };
        let source = reg::BOOT_WP_STATUS;
        // U-Boot's text gives only the two bits of each area.
        let (first, second) = (csd.bits(source, 0b0011), csd.bits(source, 0b1100));
        rows.add("write protection of boot area 1", source, first.map(|raw| plain(state(raw))));
        rows.add("write protection of boot area 2", source, second.map(|raw| plain(state(raw >> 2))));
    }
    const BOOT_WP: [(u8, &str); 7] = [
        (0, "B_PWR_WP_EN"),
        (1, "B_PWR_WP_SEC_SEL"),
        (2, "B_PERM_WP_EN"),
        (3, "B_PERM_WP_SEC_SEL"),
        (4, "B_PERM_WP_DIS"),
        (6, "B_PWR_WP_DIS"),
        (7, "B_SEC_WP_SEL"),
    ];
    rows.add_if_told(
        "boot write protection bits",
        reg::BOOT_WP,
        csd.byte(reg::BOOT_WP).map(|raw| plain(flags(raw, &BOOT_WP))),
    );
    const USER_WP: [(u8, &str); 6] = [
        (0, "US_PWR_WP_EN"),
        (2, "US_PERM_WP_EN"),
        (3, "US_PWR_WP_DIS"),
        (4, "US_PERM_WP_DIS"),
        (6, "CD_PERM_WP_DIS"),
        (7, "PERM_PSWD_DIS"),
    ];
    let kind = "effect of the next write-protect command; only CMD31 shows which groups are protected";
    rows.add("user write protection bits", reg::USER_WP, info.user_wp.map(|raw| with(flags(raw, &USER_WP), kind)));
    let whole = card.csd.map(|bytes| {
        let csd = Csd::new(CardKind::Emmc, bytes);
        plain(match (csd.perm_write_protect(), csd.tmp_write_protect()) {
            (true, _) => "permanent",
            (false, true) => "until switched off",
            (false, false) => "not protected",
        })
    });
    rows.add_if_told("write protection of the whole card", "CSD PERM_WRITE_PROTECT, TMP_WRITE_PROTECT", whole);
    let secure = csd.byte(reg::SECURE_WP_INFO).filter(|raw| at_least(info, 8) && raw & 1 == 1);
    let secure = secure.map(|raw| plain(if raw & 2 == 0 { "supported, off" } else { "on" }));
    rows.add_if_told("secure write protection", reg::SECURE_WP_INFO, secure);
}

fn security(csd: &ExtCsd, info: &DeviceInfo, rows: &mut Rows) {
    rows.topic = Topic::Security;
    const FEATURES: [(u8, &str); 4] =
        [(0, "secure erase and trim"), (2, "secure handling of retired blocks"), (4, "trim"), (6, "sanitize")];
    let features = info.sec_features.map(|raw| plain(flags(raw, &FEATURES)));
    rows.add("erase features", reg::SEC_FEATURE_SUPPORT, features);
    const REMOVAL: [(u8, &str); 4] = [
        (0, "erase"),
        (1, "overwrite with a character, then erase"),
        (2, "overwrite with a character, its complement and a random one"),
        (3, "vendor-specific"),
    ];
    let removal = csd.byte(reg::SECURE_REMOVAL_TYPE).filter(|raw| at_least(info, 7) && raw & 0x0f != 0).map(|raw| {
        let index = usize::from(raw >> 4 & 3);
        let chosen = REMOVAL.get(index).map_or("", |(_, name)| *name);
        with(chosen, format!("offered: {}", flags(raw & 0x0f, &REMOVAL)))
    });
    rows.add_if_told("secure removal", reg::SECURE_REMOVAL_TYPE, removal);
    let rpmb = info.rpmb.map(|rpmb| match rpmb.0 {
        0 => plain("none"),
        _ => with(rpmb.to_string(), "no register shows whether its key is set"),
    });
    rows.add("replay-protected memory", reg::RPMB_SIZE_MULT, rpmb);
}
