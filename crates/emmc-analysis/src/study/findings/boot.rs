//! Boot areas and write protection.

use emmc_regs::CardKind;
use emmc_regs::crc::Crc;
use emmc_regs::csd::Csd;
use emmc_regs::ext_csd::reg;

use super::super::configuration::boot_source;
use super::Facts;
use crate::evidence::{Citation, Evidence};
use crate::finding::{Finding, Severity};

pub(super) fn find(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    findings.extend(boot_enabled(facts));
    findings.extend(boot_areas(facts));
    findings.extend(whole_card(facts, CardKind::Emmc));
    findings.extend(user_area(facts));
    findings.extend(read_only_disk(facts));
}

fn boot_enabled(facts: &Facts<'_>) -> Option<Finding> {
    let enable = facts.info.boot_config.boot_partition_enable.filter(|enable| *enable != 0)?;
    let what = format!("The part is set to boot from: {}", boot_source(enable));
    let config = facts.csd.byte(reg::PARTITION_CONFIG).map(|config| Evidence::value(reg::PARTITION_CONFIG, config));
    let config = config.unwrap_or_else(|| {
        Evidence::of(Citation::bits(reg::PARTITION_CONFIG, "BOOT_PARTITION_ENABLE"), format!(" = {enable}"))
    });
    let mut finding = Finding::new(Severity::Notice, "boot-enabled", what).evidence(config);
    if let Some(bus) = facts.info.boot_config.bus_conditions {
        finding = finding.evidence(Evidence::value(reg::BOOT_BUS_CONDITIONS, bus));
    }
    Some(finding.advice("an update of the boot loader must write this area, or write the other one and switch to it"))
}

fn boot_areas(facts: &Facts<'_>) -> Option<Finding> {
    let status = facts.info.boot_config.wp_status?;
    let has_boot = facts.info.boot.is_some_and(|boot| boot.0 > 0);
    if !has_boot || !facts.at_least(6) {
        return None;
    }
    let evidence = Evidence::value(reg::BOOT_WP_STATUS, status);
    let areas = [status & 3, status >> 2 & 3];
    if areas.contains(&2) {
        let what = "A boot area is permanently write protected: its content can never be changed";
        let finding = Finding::new(Severity::Notice, "boot-protected-for-good", what).evidence(evidence);
        return Some(
            finding
                .advice("its boot loader cannot be updated; do not keep this part as a spare where updates are needed"),
        );
    }
    if areas != [0, 0] {
        return None;
    }
    let what = "The boot areas are not write protected by the part: only the kernel's force_ro guards them";
    let boots = facts.info.boot_config.boot_partition_enable.is_some_and(|enable| matches!(enable, 1 | 2));
    let mut finding = Finding::new(Severity::Notice, "boot-unprotected", what).evidence(evidence);
    if let (true, Some(config)) = (boots, facts.csd.byte(reg::PARTITION_CONFIG)) {
        finding = finding.evidence(Evidence::value(reg::PARTITION_CONFIG, config));
    }
    Some(finding.advice(
        "if the boot loader matters, protect both areas at each start until the next power cycle (B_PWR_WP_EN); \
         permanent protection is one-time",
    ))
}

/// The CSD's bits, which SD cards have too.
pub(super) fn whole_card(facts: &Facts<'_>, kind: CardKind) -> Option<Finding> {
    let csd = Csd::new(kind, facts.card.csd?);
    // A damaged copy of the register is reported as damaged; its bits are not used.
    if matches!(csd.crc(), Crc::Wrong { .. }) {
        return None;
    }
    if csd.perm_write_protect() {
        let what = "The whole card is permanently write protected";
        let finding =
            Finding::new(Severity::Critical, "card-protected-for-good", what).evidence("CSD PERM_WRITE_PROTECT = 1");
        return Some(finding.advice("the card can only be read: copy its data and replace it"));
    }
    if csd.tmp_write_protect() {
        let what = "The whole card is write protected until the bit is cleared";
        let finding = Finding::new(Severity::Warning, "card-protected", what).evidence("CSD TMP_WRITE_PROTECT = 1");
        return Some(finding.advice("find out who set it; it is cleared by programming the CSD (CMD27)"));
    }
    None
}

fn user_area(facts: &Facts<'_>) -> Option<Finding> {
    let user_wp = facts.info.user_wp.filter(|user_wp| user_wp & 0x05 != 0)?;
    let (severity, what, advice) = match user_wp & 0x04 != 0 {
        true => (
            Severity::Warning,
            "Write protection of the user area is set to permanent: the next write-protect command is permanent",
            "switch US_PERM_WP_EN off before any write-protect command, or disable it permanently (US_PERM_WP_DIS)",
        ),
        false => (
            Severity::Notice,
            "Write protection of the user area is set to last until the next power cycle",
            "groups that are protected before then refuse writes until the power cycle",
        ),
    };
    Some(
        Finding::new(severity, "user-area-protection", what)
            .evidence(Evidence::value(reg::USER_WP, user_wp))
            .advice(advice)
            .advice("no register shows which groups are protected: run `mmc writeprotect user get` (CMD31)"),
    )
}

fn read_only_disk(facts: &Facts<'_>) -> Option<Finding> {
    let disks = facts.card.blocks.disks.iter();
    let mut user =
        disks.filter(|disk| disk.read_only == Some(true) && !disk.name.contains("boot") && !disk.name.contains("rpmb"));
    let disk = user.next()?;
    let what = format!("The kernel refuses writes to {}", disk.name);
    Some(
        Finding::new(Severity::Warning, "disk-read-only", what).evidence(format!("{} is read only", disk.name)).advice(
            "check force_ro in sysfs, the lock switch (SD) and the card's write protection; the kernel's log names the cause",
        ),
    )
}
