//! Rules between registers: what the field table cannot say of one byte. Each belongs to a field and is asked wherever
//! that field changes, whatever the request.

use emmc_regs::ext_csd::{ExtCsd, Field, reg};

use super::document::Objection;

/// A change of registers, all writes together.
pub(super) struct Change<'a> {
    pub(super) old: &'a ExtCsd,
    pub(super) new: &'a ExtCsd,
}

/// What a rule found.
enum Found {
    /// It holds.
    Holds,
    /// A register that decides it is not known.
    Unknown(&'static Field),
    /// It is broken.
    Broken(Objection),
}

struct Rule {
    fields: &'static [&'static Field],
    check: fn(&Change) -> Found,
}

/// Every rule that the change breaks, of the fields that change.
pub(super) fn broken(change: &Change) -> Vec<Objection> {
    let of = |rule: &&Rule| rule.fields.iter().any(|field| change.changes(field));
    let found = RULES.iter().filter(of).filter_map(|rule| match (rule.check)(change) {
        Found::Holds => None,
        Found::Broken(objection) => Some(objection),
        Found::Unknown(field) => Some(unknown(&[field.to_string()])),
    });
    found.collect()
}

/// Registers that the source lacks.
pub(super) fn unknown(fields: &[String]) -> Objection {
    Objection {
        rule: "register-unknown".into(),
        what: "the source lacks registers that are needed for a decision".into(),
        evidence: fields.to_vec(),
        advice: vec!["read all 512 bytes from the card, or give a dump of them".into()],
    }
}

pub(super) fn objection(rule: &str, what: impl Into<String>, evidence: Vec<String>) -> Objection {
    Objection { rule: rule.into(), what: what.into(), evidence, advice: Vec::new() }
}

impl Change<'_> {
    fn changes(&self, field: &Field) -> bool {
        field.bytes().any(|offset| self.old.byte(offset) != self.new.byte(offset))
    }

    /// Whether the bits change.
    fn changes_bits(&self, field: &'static Field, mask: u8) -> bool {
        self.old.bits(field, mask) != self.new.bits(field, mask)
    }

    /// A property of the card that must have one of the bits.
    fn needs(&self, field: &'static Field, mask: u8, rule: &str, what: &str) -> Found {
        match self.old.bits(field, mask) {
            None => Found::Unknown(field),
            Some(0) => {
                let value = self.old.byte(field).map_or("?".into(), |value| format!("{value:#04x}"));
                Found::Broken(objection(rule, what, vec![format!("{field} is {value}")]))
            }
            Some(_) => Found::Holds,
        }
    }
}

const RULES: [Rule; 13] = [
    Rule { fields: &PARTITIONING, check: |_| partitioning() },
    Rule { fields: &DRIVER, check: |_| driver() },
    Rule { fields: &[reg::CACHE_CTRL], check: cache },
    Rule { fields: &[reg::BARRIER_CTRL], check: barrier },
    Rule { fields: &[reg::BKOPS_EN], check: bkops },
    Rule { fields: &[reg::USE_NATIVE_SECTOR], check: native },
    Rule { fields: &[reg::SEC_BAD_BLK_MGMNT], check: bad_blocks },
    Rule { fields: &[reg::SECURE_REMOVAL_TYPE], check: removal },
    Rule { fields: &[reg::PARTITION_CONFIG, reg::BOOT_BUS_CONDITIONS], check: boot_locked },
    Rule { fields: &[reg::PARTITION_CONFIG], check: boot_from },
    Rule { fields: &[reg::BOOT_BUS_CONDITIONS], check: boot_bus },
    Rule { fields: &[reg::USER_WP, reg::BOOT_WP], check: protection },
    Rule { fields: &[reg::PRODUCT_STATE_AWARENESS_ENABLEMENT, reg::PRODUCTION_STATE_AWARENESS], check: production },
];

pub(super) const PARTITIONING: [&Field; 10] = [
    reg::EXT_PARTITIONS_ATTRIBUTE,
    reg::ENH_START_ADDR,
    reg::ENH_SIZE_MULT,
    reg::GP_SIZE_MULT_1,
    reg::GP_SIZE_MULT_2,
    reg::GP_SIZE_MULT_3,
    reg::GP_SIZE_MULT_4,
    reg::PARTITIONS_ATTRIBUTE,
    reg::WR_REL_SET,
    reg::PARTITION_SETTING_COMPLETED,
];

/// What the host's driver sets for itself while it runs.
const DRIVER: [&Field; 13] = [
    reg::CMDQ_MODE_EN,
    reg::POWER_OFF_NOTIFICATION,
    reg::CONTEXT_CONF,
    reg::EXCEPTION_EVENTS_CTRL,
    reg::CLASS_6_CTRL,
    reg::TCASE_SUPPORT,
    reg::HPI_MGMT,
    reg::BUS_WIDTH,
    reg::HS_TIMING,
    reg::POWER_CLASS,
    reg::CMD_SET,
    reg::PRE_LOADING_DATA_SIZE,
    reg::MODE_CONFIG,
];

fn partitioning() -> Found {
    let mut objection =
        objection("partitioning", "partitioning registers are one layout, checked and committed together", Vec::new());
    objection.advice.push("use `emmclab plan hwpart`".into());
    Found::Broken(objection)
}

fn driver() -> Found {
    let what = "the host's driver sets this register for itself while it runs: it is no configuration of the card";
    Found::Broken(objection("driver-register", what, Vec::new()))
}

fn cache(change: &Change) -> Found {
    if change.new.bit(reg::CACHE_CTRL, 0) == Some(false) {
        return Found::Holds;
    }
    match change.old.raw(reg::CACHE_SIZE) {
        None => Found::Unknown(reg::CACHE_SIZE),
        Some(0) => {
            let evidence = vec![format!("{} is 0", reg::CACHE_SIZE)];
            Found::Broken(objection("cache-unsupported", "the part has no volatile cache", evidence))
        }
        Some(_) => Found::Holds,
    }
}

fn barrier(change: &Change) -> Found {
    change.needs(reg::BARRIER_SUPPORT, 1, "barrier-unsupported", "the part has no cache barrier")
}

fn bkops(change: &Change) -> Found {
    let has = change.needs(reg::BKOPS_SUPPORT, 1, "bkops-unsupported", "the part has no background operations");
    match (has, change.old.byte(reg::EXT_CSD_REV)) {
        (Found::Holds, Some(rev)) if rev < 8 && change.new.bit(reg::BKOPS_EN, 1) == Some(true) => {
            let evidence = vec![format!("{} is {rev}, 8 (5.1) or higher is required", reg::EXT_CSD_REV)];
            Found::Broken(objection(
                "bkops-auto-unsupported",
                "the part has no background operations of its own",
                evidence,
            ))
        }
        (has, _) => has,
    }
}

fn native(change: &Change) -> Found {
    change.needs(reg::NATIVE_SECTOR_SIZE, 1, "native-unsupported", "the part has no native sectors of 4 KiB")
}

fn bad_blocks(change: &Change) -> Found {
    let what = "the part does not erase the blocks that it retires";
    change.needs(reg::SEC_FEATURE_SUPPORT, 4, "bad-blocks-unsupported", what)
}

fn removal(change: &Change) -> Found {
    let Some(kind) = change.new.bits(reg::SECURE_REMOVAL_TYPE, 0x30) else {
        return Found::Unknown(reg::SECURE_REMOVAL_TYPE);
    };
    let what = "the part does not offer this type of secure removal";
    change.needs(reg::SECURE_REMOVAL_TYPE, 1 << (kind >> 4), "removal-type-unsupported", what)
}

fn boot_locked(change: &Change) -> Found {
    let accesses_only = !change.changes_bits(reg::PARTITION_CONFIG, 0x78) && !change.changes(reg::BOOT_BUS_CONDITIONS);
    match change.old.bits(reg::BOOT_CONFIG_PROT, 0x11) {
        _ if accesses_only => Found::Holds,
        None => Found::Unknown(reg::BOOT_CONFIG_PROT),
        Some(0) => Found::Holds,
        Some(locked) => {
            let evidence = vec![format!("{} is {locked:#04x}", reg::BOOT_CONFIG_PROT)];
            let end = if locked & 0x10 != 0 { "permanently" } else { "until the next power cycle" };
            Found::Broken(objection("boot-config-locked", format!("the boot configuration is locked {end}"), evidence))
        }
    }
}

fn boot_from(change: &Change) -> Found {
    if change.changes_bits(reg::PARTITION_CONFIG, 7) {
        return driver();
    }
    let Some(config) = change.new.byte(reg::PARTITION_CONFIG) else { return Found::Unknown(reg::PARTITION_CONFIG) };
    match (config >> 3 & 7, change.old.byte(reg::BOOT_SIZE_MULT)) {
        (0 | 7, _) => Found::Holds,
        (1 | 2, None) => Found::Unknown(reg::BOOT_SIZE_MULT),
        (1 | 2, Some(0)) => {
            let evidence = vec![format!("{} is 0", reg::BOOT_SIZE_MULT)];
            Found::Broken(objection("no-boot-areas", "the part has no boot areas", evidence))
        }
        (1 | 2, Some(_)) => Found::Holds,
        (reserved, _) => {
            let evidence = vec![format!("BOOT_PARTITION_ENABLE {reserved} is reserved")];
            Found::Broken(objection("no-such-value", "the standard assigns no meaning to the value", evidence))
        }
    }
}

fn boot_bus(change: &Change) -> Found {
    let Some(conditions) = change.new.byte(reg::BOOT_BUS_CONDITIONS) else {
        return Found::Unknown(reg::BOOT_BUS_CONDITIONS);
    };
    match (conditions >> 3 & 3, conditions & 3) {
        (3, _) | (_, 3) => {
            let evidence = vec![format!("{} would be {conditions:#04x}", reg::BOOT_BUS_CONDITIONS)];
            Found::Broken(objection("no-such-value", "the standard assigns no meaning to the value", evidence))
        }
        (1, _) => change.needs(reg::BOOT_INFO, 4, "boot-mode-unsupported", "the part does not boot at high speed"),
        (2, _) => {
            change.needs(reg::BOOT_INFO, 2, "boot-mode-unsupported", "the part does not boot at double data rate")
        }
        _ => Found::Holds,
    }
}

/// What is disabled is not enabled, nor the reverse; permanent protection does not spread.
fn protection(change: &Change) -> Found {
    let disabled = |field: &'static Field, pairs: [(u8, u8); 2]| {
        let value = change.new.byte(field)?;
        let both = pairs.iter().any(|(enable, disable)| value & enable != 0 && value & disable != 0);
        let evidence = vec![format!("{field} would be {value:#04x}")];
        both.then(|| objection("protection-disabled", "this protection is disabled in the part", evidence))
    };
    let both = disabled(reg::USER_WP, [(1, 8), (4, 0x10)]).or_else(|| disabled(reg::BOOT_WP, [(1, 0x40), (4, 0x10)]));
    match both {
        Some(objection) => Found::Broken(objection),
        None if change.changes(reg::BOOT_WP) => spread(change),
        None => Found::Holds,
    }
}

/// B_PERM_WP_EN stays set, and each write of the byte names areas again: B_SEC_WP_SEL is cleared by every power cycle.
fn spread(change: &Change) -> Found {
    let (Some(old), Some(new)) = (change.old.byte(reg::BOOT_WP), change.new.byte(reg::BOOT_WP)) else {
        return Found::Unknown(reg::BOOT_WP);
    };
    let changed = old ^ new;
    if changed & 5 == 5 || changed & 5 != 0 && changed & 0x50 != 0 {
        let evidence = vec![format!("{} {old:#04x} -> {new:#04x}", reg::BOOT_WP)];
        let what = "one plan enables one kind of protection: BOOT_WP_STATUS shows one after the other";
        return Found::Broken(objection("protection-mixed", what, evidence));
    }
    if old & 4 == 0 || new & 4 == 0 {
        return Found::Holds;
    }
    let Some(status) = change.old.byte(reg::BOOT_WP_STATUS) else { return Found::Unknown(reg::BOOT_WP_STATUS) };
    let after = boot_wp_status(new, status);
    let is_permanent = |status: u8, area: u8| status >> (2 * area) & 3 == 2;
    match (0..2).find(|area| is_permanent(after, *area) && !is_permanent(status, *area)) {
        None => Found::Holds,
        Some(area) => {
            let what = format!("the permanent protection of one boot area would spread to boot{}", area + 1);
            let mut objection = objection("protection-spreads", what, vec![format!("{} is {old:#04x}", reg::BOOT_WP)]);
            objection.advice.push("protect the area that is permanently protected, or none".into());
            Found::Broken(objection)
        }
    }
}

/// BOOT_WP_STATUS after a write of BOOT_WP.
///
/// Source: JESD84-B51 7.4.
pub(super) fn boot_wp_status(boot_wp: u8, before: u8) -> u8 {
    let mut status = before;
    for (enable, select, code) in [(1u8, 2u8, 1u8), (4, 8, 2)] {
        for area in 0..2u8 {
            let chosen = boot_wp & 0x80 == 0 || (boot_wp & select != 0) == (area == 1);
            if boot_wp & enable != 0 && chosen && status >> (2 * area) & 3 < code {
                status = status & !(3 << (2 * area)) | code << (2 * area);
            }
        }
    }
    status
}

fn production(change: &Change) -> Found {
    let field = reg::PRODUCT_STATE_AWARENESS_ENABLEMENT;
    let (Some(enablement), Some(state)) = (change.new.byte(field), change.new.byte(reg::PRODUCTION_STATE_AWARENESS))
    else {
        return Found::Unknown(field);
    };
    let evidence = vec![format!("{field} would be {enablement:#04x}")];
    if enablement & 0x10 != 0 && enablement & 1 == 0 || enablement & 0x20 != 0 && enablement & 2 == 0 {
        let what = "the part does not have this mode of production state awareness";
        return Found::Broken(objection("production-mode-unsupported", what, evidence));
    }
    let is_enabled = match state {
        0 => true,
        1 | 2 => enablement & 0x11 == 0x11,
        _ => enablement & 0x22 == 0x22,
    };
    if is_enabled || !change.changes(reg::PRODUCTION_STATE_AWARENESS) {
        return Found::Holds;
    }
    let mut objection = objection("production-mode-off", "the state belongs to a mode that is not enabled", evidence);
    objection.advice.push("add --enable manual or --enable auto".into());
    Found::Broken(objection)
}
