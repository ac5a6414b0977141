//! The plan as a document: written by `plan`, read by `apply`.

use emmc_port::{CardData, serial_text};
use emmc_regs::CardKind;
use emmc_regs::ext_csd::{ByteWrite, EXT_CSD_BYTES, reg};
use emmc_units::Bytes;
use serde::{Deserialize, Serialize};

use super::groups::Protection;
use crate::hwpart::{Certainty, Commands};

/// The schema of a plan; its number rises if an older reader would misread a newer plan.
pub const PLAN_SCHEMA: &str = "emmclab.plan/1";

/// Changes of a card's configuration, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// The kind of change: `hwpart`, `boot`, `cache` and so on.
    pub change: String,
    /// Whether no rule is broken: only such a plan can be carried out.
    pub ok: bool,
    /// The card's data, as the user called it.
    pub source: String,
    /// The request as command line arguments.
    pub requested: Vec<String>,
    /// The card that the plan is for.
    pub card: CardIdentity,
    /// Every rule that is broken.
    pub refusals: Vec<Objection>,
    /// Warnings, although no rule is broken.
    pub warnings: Vec<Objection>,
    /// What is sent, in order; empty where a rule is broken, or where the card is as requested already.
    pub steps: Vec<Step>,
    /// Whether a step cannot be reverted.
    pub permanent: bool,
    /// What is lost, a sentence each.
    pub lost: Vec<String>,
    /// The areas before and after.
    pub capacity: Capacity,
    /// The power cycle that the change needs.
    pub power_cycle: PowerCycle,
    /// What the card must hold afterwards.
    pub verify: Vec<Expected>,
    /// Bytes that a commit would make final although the plan does not write them: they must hold this value.
    #[serde(default)]
    pub beside: Vec<Expected>,
    /// What to do after the last step, in order.
    pub after: Vec<String>,
    /// The same as commands of other tools; absent if a rule is broken.
    pub commands: Option<Commands>,
}

/// What identifies a card.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CardIdentity {
    /// eMMC or SD, if known.
    pub kind: Option<CardKind>,
    /// CID, 32 hexadecimal digits, if known.
    pub cid: Option<String>,
    /// PSN of the CID, as sysfs prints it.
    pub serial: Option<String>,
    /// PNM of the CID.
    pub product: Option<String>,
    /// EXT_CSD_REV, if known.
    pub ext_csd_rev: Option<u8>,
}

/// A broken rule, or a warning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Objection {
    /// Stable name for scripts.
    pub rule: String,
    /// What is wrong, in one sentence.
    pub what: String,
    /// The figures that show it.
    #[serde(default)]
    pub evidence: Vec<String>,
    /// What to do instead.
    #[serde(default)]
    pub advice: Vec<String>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Step {
    /// CMD6: bits of a byte of EXT_CSD.
    Register(RegisterStep),
    /// CMD28 or CMD29: protection of groups of the user area.
    Groups(GroupStep),
}

/// Bits of one byte of EXT_CSD.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RegisterStep {
    /// Byte of EXT_CSD, 0 to 191.
    pub offset: u16,
    /// The register's name.
    pub name: String,
    /// Which byte of the register, lowest first.
    pub index: u16,
    /// The bits that the step sets; the others stay.
    pub mask: u8,
    /// What the byte holds before; absent where it is not known.
    pub old: Option<u8>,
    /// What it holds afterwards.
    pub new: u8,
    /// Whether it cannot be reverted.
    pub one_time: bool,
    /// It is needed during the change only, and is no part of the result.
    pub passing: bool,
    /// How long it lasts.
    pub lasts: String,
    /// The register that shows its effect, where the byte itself does not: bits that only select do not last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_by: Option<Expected>,
    /// Its purpose.
    pub purpose: String,
}

/// Protection of groups of the user area, one command a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupStep {
    /// First sector.
    pub first_sector: u64,
    /// Sectors of a group.
    pub group_sectors: u64,
    /// The number of groups.
    pub groups: u64,
    /// Bytes that an address of the card counts: 1 or 512.
    pub address_bytes: u64,
    /// The protection afterwards.
    pub protection: Protection,
    /// Whether it cannot be reverted.
    pub one_time: bool,
}

/// The areas before and after.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Capacity {
    /// As they are.
    pub before: Vec<CapacityOf>,
    /// As they will be.
    pub after: Vec<CapacityOf>,
}

/// The size of an area.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapacityOf {
    /// `user`, `boot1`, `boot2`, `rpmb`, `gp1` to `gp4`.
    pub area: String,
    /// Its size.
    pub bytes: Bytes,
    /// Certainty of the size.
    pub certainty: Certainty,
}

/// The power cycle that a change needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PowerCycle {
    /// The change has no effect before.
    pub required: bool,
    /// How long the first initialisation may take, in milliseconds; absent where the part does not say.
    pub wait_ms: Option<u64>,
}

/// What a register must hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Expected {
    /// First byte of EXT_CSD.
    pub offset: u16,
    /// Bytes, lowest first.
    pub width: u16,
    /// The register's name.
    pub name: String,
    /// The bits that count.
    pub mask: u64,
    /// What it held before; absent where it is not known.
    pub before: Option<u64>,
    /// What it should hold.
    pub expected: u64,
    /// Whether it must match, or is an estimate.
    pub certainty: Certainty,
    /// It is the card's own register, which changes at the power cycle.
    pub at_power_cycle: bool,
}

/// Why a file is no plan that can be carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Not JSON.
    #[error("not a plan: {0}")]
    NotJson(String),
    /// Another document.
    #[error("not a plan: its schema is {found}; expected {PLAN_SCHEMA}, or a document with such a plan in it")]
    Schema {
        /// The schema found.
        found: String,
    },
    /// It has steps that no plan has.
    #[error("not a sound plan: {0}")]
    Unsound(String),
}

impl CardIdentity {
    /// Of a card's data.
    pub fn of(card: &CardData) -> Self {
        let rev = card.ext_csd.as_ref().and_then(|ext_csd| ext_csd.byte(reg::EXT_CSD_REV));
        let kind = card.kind.or(card.ext_csd.is_some().then_some(CardKind::Emmc));
        let decoded = card.cid.zip(kind).map(|(cid, kind)| cid.decode(kind, rev));
        Self {
            kind,
            cid: card.cid.map(|cid| cid.0.iter().map(|byte| format!("{byte:02x}")).collect()),
            serial: decoded.as_ref().map(|identity| serial_text(identity.serial_number)),
            product: decoded.map(|identity| identity.product_name),
            ext_csd_rev: rev,
        }
    }
}

impl Step {
    /// Whether it cannot be reverted.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Register(step) => step.one_time,
            Self::Groups(step) => step.one_time,
        }
    }

    /// One line about it.
    pub fn text(&self) -> String {
        match self {
            Self::Register(step) => {
                let old = step.old.map_or("unknown".into(), |old| format!("{old:#04x}"));
                format!("{}[{}] {old} -> {:#04x}", step.name, step.offset, step.new)
            }
            Self::Groups(step) => {
                let end = step.first_sector + step.groups * step.group_sectors;
                let range = format!("sectors {} to {end}, {} groups", step.first_sector, step.groups);
                format!("protection of {range}: {}", step.protection.word())
            }
        }
    }
}

impl Plan {
    /// Reads a plan: a document of its own, or the key `plan` of another one.
    ///
    /// Errors: another document; steps that no planner makes.
    pub fn read(text: &str) -> Result<Self, PlanError> {
        let mut document: serde_json::Value =
            serde_json::from_str(text).map_err(|error| PlanError::NotJson(error.to_string()))?;
        let schema =
            |document: &serde_json::Value| document.get("schema").and_then(|schema| schema.as_str().map(str::to_owned));
        let found = schema(&document);
        if found.as_deref() != Some(PLAN_SCHEMA) {
            let inner = document.get_mut("plan").map(serde_json::Value::take);
            match inner.filter(|inner| schema(inner).as_deref() == Some(PLAN_SCHEMA)) {
                Some(inner) => document = inner,
                None => {
                    return Err(PlanError::Schema {
                        found: found.map_or("absent".into(), |found| format!("{found:?}")),
                    });
                }
            }
        }
        let plan: Self = serde_json::from_value(document).map_err(|error| PlanError::Unsound(error.to_string()))?;
        plan.check()?;
        Ok(plan)
    }

    /// Whether every step is one that the field table allows and that is marked for what it is.
    fn check(&self) -> Result<(), PlanError> {
        let unsound = |what: String| Err(PlanError::Unsound(what));
        if self.ok != self.refusals.is_empty() || !self.ok && !self.steps.is_empty() {
            return unsound("`ok` contradicts its refusals and steps".into());
        }
        if self.permanent != self.steps.iter().any(Step::is_permanent) {
            return unsound("`permanent` contradicts its steps".into());
        }
        let rev = self.card.ext_csd_rev.unwrap_or(u8::MAX);
        for (index, step) in self.steps.iter().enumerate() {
            match step {
                Step::Register(step) => step.check(rev).or_else(unsound)?,
                Step::Groups(step) => step.check().or_else(unsound)?,
            }
            let commits =
                matches!(step, Step::Register(step) if step.offset == reg::PARTITION_SETTING_COMPLETED.offset);
            if commits && index + 1 != self.steps.len() {
                return unsound("PARTITION_SETTING_COMPLETED is not its last step".into());
            }
        }
        Ok(())
    }

    /// The steps of registers.
    pub fn registers(&self) -> impl Iterator<Item = &RegisterStep> {
        self.steps.iter().filter_map(|step| if let Step::Register(step) = step { Some(step) } else { None })
    }

    /// A register beside the plan that does not hold what it held.
    pub(super) fn changed_beside(&self, ext_csd: &[u8; EXT_CSD_BYTES]) -> Option<&str> {
        let differs = |kept: &&Expected| {
            let byte = ext_csd.get(usize::from(kept.offset)).copied().unwrap_or_default();
            u64::from(byte) != kept.expected
        };
        self.beside.iter().find(differs).map(|kept| kept.name.as_str())
    }

    /// Whether it is closed by PARTITION_SETTING_COMPLETED.
    pub fn commits(&self) -> bool {
        self.registers().any(RegisterStep::commits)
    }
}

impl RegisterStep {
    /// Whether it makes the partitioning final.
    pub fn commits(&self) -> bool {
        self.offset == reg::PARTITION_SETTING_COMPLETED.offset
    }

    fn check(&self, rev: u8) -> Result<(), String> {
        let old = self.old.unwrap_or(!self.mask & self.new);
        if (old ^ self.new) & !self.mask != 0 {
            return Err(format!("{}: it changes bits outside its mask", self.name));
        }
        let write = ByteWrite::new(self.offset, old, self.new, rev).map_err(|error| error.to_string())?;
        if write.field().name != self.name {
            return Err(format!("byte {} is {}, not {:?}", self.offset, write.field().name, self.name));
        }
        if (write.one_time() != 0 || write.makes_permanent()) != self.one_time {
            return Err(format!("{}: `one_time` is not what the register is", self.name));
        }
        Ok(())
    }
}

impl GroupStep {
    fn check(&self) -> Result<(), String> {
        let end =
            self.groups.checked_mul(self.group_sectors).and_then(|sectors| sectors.checked_add(self.first_sector));
        let fits = end.is_some_and(|end| end <= u64::from(u32::MAX));
        let aligned = self.group_sectors > 0 && self.first_sector % self.group_sectors == 0;
        if !fits || !aligned || self.groups == 0 || !matches!(self.address_bytes, 1 | 512) {
            return Err("its groups are not groups of a card".into());
        }
        if self.one_time != (self.protection == Protection::Permanent) {
            return Err("groups: `one_time` is not what the protection is".into());
        }
        Ok(())
    }
}
