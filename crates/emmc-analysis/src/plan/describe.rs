//! What a plan loses, warns of, verifies and asks for afterwards.

use emmc_regs::ext_csd::{ExtCsd, Field, reg};
use emmc_units::{Bytes, SECTOR_BYTES};

use super::document::{Expected, GroupStep, Objection, Plan, RegisterStep, Step};
use super::groups::Protection;
use super::rules::objection;
use crate::hwpart::Certainty;

/// A bit of USER_WP.
const PERM_PSWD_DIS: u8 = 1 << 7;

/// What is lost, warned of, verified and done afterwards.
pub(super) fn describe(plan: &mut Plan, old: &ExtCsd) {
    for step in plan.steps.clone() {
        match step {
            Step::Register(step) if !step.passing => describe_register(plan, &step),
            Step::Groups(step) => describe_groups(plan, &step),
            Step::Register(_) => {}
        }
    }
    warn_of_secure_protection(plan, old);
    if plan.power_cycle.required {
        plan.lost.push("all data: the part is formatted for sectors of 4 KiB at the next power cycle".into());
        plan.verify.push(Expected { at_power_cycle: true, ..expected(reg::DATA_SECTOR_SIZE, old, 1) });
        plan.after.push("switch the card's power off and on; a reboot alone may not be enough".into());
    }
    if !plan.steps.is_empty() {
        plan.after.push("compare the card with the plan: emmclab apply --verify PLAN TARGET".into());
    }
}

/// SECURE_WP_EN_STATUS: the card may refuse what changes write protection; only the RPMB says whether it allows that.
fn warn_of_secure_protection(plan: &mut Plan, old: &ExtCsd) {
    let is_on = old.byte(reg::SECURE_WP_INFO).is_some_and(|info| info & 3 == 3);
    let changes = plan.steps.iter().any(|step| match step {
        Step::Groups(_) => true,
        Step::Register(step) => [reg::USER_WP, reg::BOOT_WP].iter().any(|field| field.offset == step.offset),
    });
    if is_on && changes {
        plan.warnings.push(Objection {
            advice: vec!["allow changes first: emmclab rpmb protect TARGET allow --key KEY".into()],
            ..objection(
                "secure-write-protection",
                "secure write protection is on: the card refuses changes of write protection unless they are allowed",
                vec![format!("{} is {:#04x}", reg::SECURE_WP_INFO, old.byte(reg::SECURE_WP_INFO).unwrap_or_default())],
            )
        });
    }
}

pub(super) fn expected(field: &'static Field, old: &ExtCsd, value: u64) -> Expected {
    let Field { offset, width, name, .. } = *field;
    Expected {
        offset,
        width,
        name: name.into(),
        mask: u64::MAX >> (64 - 8 * u32::from(width.clamp(1, 8))),
        before: old.raw(field),
        expected: value,
        certainty: Certainty::Exact,
        at_power_cycle: false,
    }
}

fn describe_register(plan: &mut Plan, step: &RegisterStep) {
    if step.one_time {
        plan.lost.push(format!("the choice: {} can never be changed back", step.name));
    }
    if step.offset == reg::USER_WP.offset && step.mask & step.new & PERM_PSWD_DIS != 0 {
        let what = "the passwords: a card that has one keeps it, and if it is locked, nothing unlocks it any more";
        plan.lost.push(what.into());
    }
    let volatile = match step.lasts.as_str() {
        "until-reset" => Some("a power cycle, a hardware reset and CMD0 (a reset of the kernel) clear it"),
        "until-power-cycle" => Some("a power cycle and a hardware reset clear it"),
        _ => None,
    };
    if let Some(end) = volatile {
        let what = match step.one_time {
            true => format!("some bits of {} do not last: {end}; what is permanent stays", step.name),
            false => format!("{} does not last: {end}", step.name),
        };
        plan.warnings.push(objection("volatile", what, Vec::new()));
    }
    if let Some(shown) = &step.shown_by {
        plan.verify.push(shown.clone());
        return;
    }
    plan.verify.push(Expected {
        offset: step.offset,
        width: 1,
        name: step.name.clone(),
        mask: step.mask.into(),
        before: step.old.map(|old| u64::from(old & step.mask)),
        expected: u64::from(step.new & step.mask),
        certainty: Certainty::Exact,
        at_power_cycle: false,
    });
}

fn describe_groups(plan: &mut Plan, step: &GroupStep) {
    let bytes = |sectors: u64| Bytes(sectors * SECTOR_BYTES);
    let range = format!("{} from {} on", bytes(step.groups * step.group_sectors), bytes(step.first_sector));
    match step.protection {
        Protection::Permanent => plan.lost.push(format!("writing to {range} of the user area, for ever")),
        Protection::PowerOn => plan.warnings.push(objection(
            "volatile",
            format!("protection of {range} ends at the next power cycle or hardware reset"),
            Vec::new(),
        )),
        Protection::None | Protection::Temporary => {}
    }
}
