//! Where a card stands with a plan: read from its registers alone, so that it is the same after a cut, a signal or a
//! week.

use emmc_port::{CommandPort, PortError};
use emmc_regs::ext_csd::{EXT_CSD_BYTES, ExtCsd, reg};
use serde::Serialize;

use super::document::{CardIdentity, Expected, Plan, RegisterStep, Step};
use super::groups::Protection;
use crate::hwpart::Certainty;

/// Where a card stands with a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Stand {
    /// No step is done.
    NothingDone,
    /// Some steps are done, and the plan can go on.
    PartlyWritten,
    /// All steps are done; they have no effect before a power cycle.
    PowerCycleDue,
    /// The card is as planned.
    Done,
    /// A register holds neither its old nor its new value: the plan is for another state of the card.
    Differs,
}

/// A card's state, step by step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Standing {
    /// The verdict.
    pub stand: Stand,
    /// The verdict in a sentence.
    pub what: String,
    /// Each step that is part of the result.
    pub steps: Vec<StepStand>,
    /// What the verdict rests on beside the steps, and what the registers cannot show.
    pub notes: Vec<String>,
}

/// One step on the card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepStand {
    /// The step.
    pub step: String,
    /// What the card holds, of groups what differs.
    pub found: String,
    /// `old`, `new`, or `other`.
    pub is: Held,
}

/// Which value a step finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Held {
    /// The value before the plan, of some groups at least.
    Old,
    /// The value of the plan.
    New,
    /// Neither.
    Other,
}

/// The card is not the one that the plan is for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the card of the plan: {what} is {found}, the plan is for {planned}")]
pub struct OtherCard {
    /// What differs.
    pub what: &'static str,
    /// The card's.
    pub found: String,
    /// The plan's.
    pub planned: String,
}

impl CardIdentity {
    /// Whether a card is this one. What neither knows is not compared.
    ///
    /// Errors: it is another one, or it is not known whether it is.
    pub fn is_of(&self, card: &Self) -> Result<(), OtherCard> {
        let text = |value: Option<String>| value.unwrap_or_else(|| "unknown".into());
        let pairs = [
            ("the CID", card.cid.clone(), self.cid.clone()),
            ("EXT_CSD_REV", card.ext_csd_rev.map(|rev| rev.to_string()), self.ext_csd_rev.map(|rev| rev.to_string())),
        ];
        match pairs.into_iter().find(|(_, found, planned)| found != planned) {
            Some((what, found, planned)) => Err(OtherCard { what, found: text(found), planned: text(planned) }),
            None => Ok(()),
        }
    }
}

impl RegisterStep {
    /// What a card with these registers holds of this step.
    pub(super) fn held(&self, image: &[u8; EXT_CSD_BYTES]) -> Held {
        if let Some(shown) = &self.shown_by {
            let found = u64::from(image.get(usize::from(shown.offset)).copied().unwrap_or_default()) & shown.mask;
            return match () {
                () if found == shown.expected => Held::New,
                () if Some(found) == shown.before => Held::Old,
                () => Held::Other,
            };
        }
        let byte = image.get(usize::from(self.offset)).copied().unwrap_or_default();
        let is = |value: u8| (byte ^ value) & self.mask == 0;
        match self.old {
            _ if is(self.new) => Held::New,
            Some(old) if is(old) => Held::Old,
            // What was not known before may be anything.
            None => Held::Old,
            _ => Held::Other,
        }
    }

    fn stand(&self, image: &[u8; EXT_CSD_BYTES]) -> StepStand {
        let byte = |offset: u16| image.get(usize::from(offset)).copied().unwrap_or_default();
        let shown = self.shown_by.as_ref().map(|shown| format!(", {} {:#04x}", shown.name, byte(shown.offset)));
        let found = format!("{:#04x}{}", byte(self.offset), shown.unwrap_or_default());
        StepStand { step: Step::Register(self.clone()).text(), found, is: self.held(image) }
    }
}

impl Plan {
    /// Where a card stands with this plan.
    ///
    /// Errors: the card does not answer.
    pub fn standing(&self, port: &mut dyn CommandPort) -> Result<Standing, PortError> {
        let ext_csd = port.ext_csd()?;
        let mut steps = Vec::new();
        for step in &self.steps {
            match step {
                Step::Register(step) if step.passing => {}
                Step::Register(register) => steps.push(register.stand(&ext_csd)),
                Step::Groups(groups) => {
                    let found = groups.read(port, ext_csd[reg::ERASE_GROUP_DEF] & 1 == 1)?;
                    steps.push(groups_stand(step, groups.protection, &found));
                }
            }
        }
        Ok(self.judge(steps, &ExtCsd::from_bytes(ext_csd)))
    }

    /// The same from registers that were saved; of groups it knows nothing.
    pub fn standing_of(&self, ext_csd: &[u8; EXT_CSD_BYTES]) -> Standing {
        let steps = self.registers().filter(|step| !step.passing).map(|step| step.stand(ext_csd));
        self.judge(steps.collect(), &ExtCsd::from_bytes(*ext_csd))
    }

    fn judge(&self, steps: Vec<StepStand>, ext_csd: &ExtCsd) -> Standing {
        let count = |is: Held| steps.iter().filter(|step| step.is == is).count();
        let (new, old, other) = (count(Held::New), count(Held::Old), count(Held::Other));
        let is_committed = self.commits() && ext_csd.bit(reg::PARTITION_SETTING_COMPLETED, 0) == Some(true);
        let mut notes = Vec::new();
        let stand = if other > 0 {
            Stand::Differs
        } else if let Some(name) = self.changed_beside(ext_csd.bytes()) {
            notes.push(format!("{name} is not as it was, and the plan does not name it"));
            Stand::Differs
        } else if is_committed && old > 0 {
            notes.push("PARTITION_SETTING_COMPLETED is set, but not with the values of the plan".into());
            Stand::Differs
        } else if old > 0 && new == 0 {
            Stand::NothingDone
        } else if old > 0 {
            Stand::PartlyWritten
        } else {
            self.at_power_cycle(ext_csd, &mut notes)
        };
        let stand = self.armed(stand, ext_csd, &mut notes);
        self.volatile_note(stand, &mut notes);
        let what = self.sentence(stand, new, steps.len());
        Standing { stand, what, steps, notes }
    }

    /// All steps are done: have they had their effect?
    fn at_power_cycle(&self, ext_csd: &ExtCsd, notes: &mut Vec<String>) -> Stand {
        let mut is_shown = false;
        for check in self.verify.iter().filter(|check| check.at_power_cycle) {
            let Some(found) = ext_csd.uint(check.offset, check.width).map(|found| found & check.mask) else { continue };
            let is_changed = check.before.is_some_and(|before| before != check.expected);
            is_shown |= is_changed;
            if found == check.expected {
                continue;
            }
            if is_changed && check.before == Some(found) {
                notes.push(format!("{} is still {found}: power was not cycled since", check.name));
                return Stand::PowerCycleDue;
            }
            notes.push(difference(check, found));
            if check.certainty == Certainty::Exact {
                return Stand::Differs;
            }
        }
        for check in self.verify.iter().filter(|check| !check.at_power_cycle) {
            let found = ext_csd.uint(check.offset, check.width).map(|found| found & check.mask);
            if let Some(found) = found.filter(|found| *found != check.expected) {
                notes.push(difference(check, found));
                return Stand::Differs;
            }
        }
        if self.power_cycle.required && !is_shown && !self.steps.is_empty() {
            notes.push("whether power was cycled since cannot be read from the registers of this plan".into());
        }
        Stand::Done
    }

    /// USER_WP still has what was needed while groups were protected.
    fn armed(&self, stand: Stand, ext_csd: &ExtCsd, notes: &mut Vec<String>) -> Stand {
        let mut passing = self.registers().filter(|step| step.passing && step.offset == reg::USER_WP.offset);
        let (Some(first), Some(byte)) = (passing.next(), ext_csd.byte(reg::USER_WP)) else { return stand };
        let last = passing.last().unwrap_or(first);
        let is_before = first.old.is_some_and(|old| (old ^ byte) & first.mask == 0);
        if is_before || last.held(ext_csd.bytes()) == Held::New || stand == Stand::Differs {
            return stand;
        }
        notes.push("USER_WP still has the kind of protection of the plan: every group protected now gets it".into());
        Stand::PartlyWritten
    }

    fn volatile_note(&self, stand: Stand, notes: &mut Vec<String>) {
        let is_volatile = |step: &RegisterStep| !step.passing && step.lasts.starts_with("until-");
        let groups = |step: &Step| matches!(step, Step::Groups(step) if step.protection == Protection::PowerOn);
        let lapses = self.registers().any(is_volatile) || self.steps.iter().any(groups);
        if lapses && matches!(stand, Stand::NothingDone | Stand::PartlyWritten) {
            notes.push(
                "a part of the plan does not outlast a power cycle: it may have been done and have lapsed".into(),
            );
        }
    }

    fn sentence(&self, stand: Stand, new: usize, all: usize) -> String {
        match stand {
            Stand::NothingDone => "nothing done: the card is as it was when the plan was made".into(),
            Stand::PartlyWritten if self.commits() => {
                format!(
                    "partly written, not committed: {new} of {all} steps; nothing is final, a power cycle clears them"
                )
            }
            Stand::PartlyWritten => format!("partly written: {new} of {all} steps; apply the plan again to go on"),
            Stand::PowerCycleDue if self.commits() => "committed, power cycle due".into(),
            Stand::PowerCycleDue => "written, power cycle due".into(),
            Stand::Done => "done: the card is as planned".into(),
            Stand::Differs => "differs: the card is neither as it was nor as planned; make a new plan".into(),
        }
    }
}

fn difference(check: &Expected, found: u64) -> String {
    let about = if check.certainty == Certainty::Estimated { "about " } else { "" };
    format!("{} is {found}, expected {about}{}", check.name, check.expected)
}

/// Of groups: all as planned, or some not yet, or some with a protection that cannot be weakened.
fn groups_stand(step: &Step, wanted: Protection, found: &[Protection]) -> StepStand {
    let text = |kind: &Protection| {
        let count = found.iter().filter(|found| *found == kind).count();
        (count > 0).then(|| format!("{count} {}", kind.word()))
    };
    let counts: Vec<String> = Protection::ALL.iter().filter_map(text).collect();
    let lasts = |kind: &Protection| *kind > Protection::Temporary && *kind > wanted;
    let is = match (found.iter().all(|kind| *kind == wanted), found.iter().any(lasts)) {
        (true, _) => Held::New,
        (_, true) => Held::Other,
        (_, false) => Held::Old,
    };
    StepStand { step: step.text(), found: counts.join(", "), is }
}
