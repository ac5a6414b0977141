//! Background operations, reset, trim, firmware, production state.

use emmc_regs::ext_csd::{reg, rst_n_name};

use super::Facts;
use crate::evidence::Evidence;
use crate::finding::{Finding, Severity};

pub(super) fn find(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    findings.extend(background(facts));
    findings.extend(hardware_reset(facts));
    findings.extend(no_trim(facts));
    findings.extend(trim_off(facts));
    findings.extend(firmware(facts));
    findings.extend(mode(facts));
    findings.extend(production_state(facts));
    findings.extend(locked(facts));
}

fn background(facts: &Facts<'_>) -> Option<Finding> {
    let info = facts.info;
    if info.bkops_supported != Some(true) || !facts.at_least(5) {
        return None;
    }
    let evidence = Evidence::value(reg::BKOPS_EN, facts.csd.byte(reg::BKOPS_EN)?);
    let (manual, auto) = (info.bkops_manual?, info.bkops_auto? && facts.at_least(8));
    match (manual, auto) {
        (true, false) => Some(
            Finding::new(
                Severity::Notice,
                "bkops-manual",
                "Manual background operations are on permanently: the part waits for the host to start them",
            )
            .evidence(evidence)
            .advice("Linux starts them only when the part signals an urgent need: expect slow writes before that")
            .advice(if facts.at_least(8) {
                "AUTO_EN can be switched on in addition, and off again: the part then uses idle time by itself"
            } else {
                "this revision has no automatic mode, and the bit cannot be cleared"
            })
            .source("Linux drivers/mmc/core/mmc_ops.c, mmc_run_bkops"),
        ),
        (false, false) => Some(
            Finding::new(
                Severity::Notice,
                "bkops-off",
                "Background operations are neither automatic nor manual: the part may clean up while writes wait",
            )
            .evidence(evidence)
            .advice(if facts.at_least(8) {
                "try AUTO_EN (`mmc bkops_en auto`): it can be switched off again. MANUAL_EN is one-time"
            } else {
                "MANUAL_EN is one-time and obliges the host to start the operations: set it only if the system does so"
            }),
        ),
        (_, true) => None,
    }
}

fn hardware_reset(facts: &Facts<'_>) -> Option<Finding> {
    let function = facts.info.rst_n_function.filter(|function| matches!(function, 0 | 2))?;
    // The register exists from eMMC 4.4; on an older part its zero means nothing.
    if !facts.at_least(4) {
        return None;
    }
    let what = "The reset line has no effect: after a warm reboot the part may be left in a mode that the boot ROM does \
                not expect, and the board hangs until power is cut";
    let finding = Finding::new(Severity::Notice, "hardware-reset-off", what)
        .evidence(Evidence::of(reg::RST_n_FUNCTION, format!(" = {function:#04x} ({})", rst_n_name(function))));
    Some(match function {
        0 => finding.advice(
            "if the board wires RST_n, enable it in production: the choice is one-time in both directions. If not, \
             make sure that a reboot cuts the part's power",
        ),
        _ => finding.advice("it is permanently disabled: make sure that a reboot cuts the part's power"),
    })
}

/// Every part from eMMC 4.5 on has discard; a 4.41 part without trim can only erase groups.
fn no_trim(facts: &Facts<'_>) -> Option<Finding> {
    let features = facts.info.sec_features.filter(|features| features & 0x10 == 0)?;
    if facts.info.rev.is_none_or(|rev| rev >= 6) {
        return None;
    }
    Some(
        Finding::new(
            Severity::Notice,
            "no-trim",
            "The part does not support trim: it never learns which sectors are free",
        )
        .evidence(Evidence::value(reg::SEC_FEATURE_SUPPORT, features))
        .advice("leave some space unpartitioned and erase it once: the part uses it as spare space"),
    )
}

/// Nothing tells the card which data was deleted: it keeps moving dead data, and writes become slow.
fn trim_off(facts: &Facts<'_>) -> Option<Finding> {
    let setup = facts.card.blocks.trim.as_ref()?;
    let kernel_discards = setup.discard_max_bytes != Some(0);
    if kernel_discards && (setup.mounts_without_discard.is_empty() || setup.fstrim_timer != Some(false)) {
        return None;
    }
    let what = "No trim reaches the card: it never learns which data was deleted, and its writes can become slow";
    let finding = Finding::new(Severity::Notice, "trim-off", what);
    if !kernel_discards {
        return Some(
            finding
                .evidence("queue/discard_max_bytes = 0: the kernel sends no discard")
                .advice("look for MMC_CAP_ERASE in the host driver and for a quirk of this part in the kernel"),
        );
    }
    let mounts = setup.mounts_without_discard.join(", ");
    Some(
        finding
            .evidence(format!("mounted without `discard`: {mounts}; fstrim.timer is not enabled"))
            .command("fstrim -av", "trims every mounted filesystem once")
            .command("systemctl enable --now fstrim.timer", "trims them once a week"),
    )
}

fn firmware(facts: &Facts<'_>) -> Option<Finding> {
    let status = facts
        .csd
        .byte(reg::FFU_STATUS)
        .filter(|status| *status != 0 && facts.at_least(7) && facts.info.ffu == Some(true))?;
    let name = match status {
        0x10 => "general error",
        0x11 => "install error",
        0x12 => "download error",
        _ => "a code that the standard does not assign",
    };
    Some(
        Finding::new(Severity::Warning, "firmware-update-failed", format!("The last firmware update failed: {name}"))
            .evidence(Evidence::value(reg::FFU_STATUS, status))
            .advice("the part runs its old firmware; repeat the update with the vendor's tool and image"),
    )
}

fn mode(facts: &Facts<'_>) -> Option<Finding> {
    let mode = facts.csd.byte(reg::MODE_CONFIG).filter(|mode| *mode != 0 && facts.at_least(7))?;
    let what = match mode {
        1 => "The part is in firmware update mode: it treats written data as firmware",
        0x10 => "The part is in a vendor-specific mode: reads and writes may not access the data",
        _ => "The part is in a mode that the standard does not assign",
    };
    Some(
        Finding::new(Severity::Warning, "mode-not-normal", what)
            .evidence(Evidence::value(reg::MODE_CONFIG, mode))
            .advice("end the tool that set this mode, or power-cycle: that clears the register"),
    )
}

fn production_state(facts: &Facts<'_>) -> Option<Finding> {
    let state =
        facts.csd.byte(reg::PRODUCTION_STATE_AWARENESS).filter(|state| matches!(state, 1..=3) && facts.at_least(7))?;
    let what = "The part still assumes that it is not soldered: it stores data for the reflow oven, not for service";
    Some(
        Finding::new(Severity::Warning, "production-state", what)
            .evidence(Evidence::value(reg::PRODUCTION_STATE_AWARENESS, state))
            .advice("end the production loading as the vendor describes, so that the state becomes NORMAL, and read it again"),
    )
}

/// CARD_IS_LOCKED, bit 25 of the card status.
fn locked(facts: &Facts<'_>) -> Option<Finding> {
    let status = facts.card.status.filter(|status| status >> 25 & 1 == 1)?;
    Some(
        Finding::new(
            Severity::Warning,
            "card-locked",
            "The card is locked by a password: data cannot be read or written",
        )
        .evidence(format!("card status = {status:#010x}, CARD_IS_LOCKED"))
        .advice("unlock it with the password (CMD42); without it only a forced erase helps, which destroys all data"),
    )
}
