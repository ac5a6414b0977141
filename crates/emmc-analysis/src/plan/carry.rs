//! Carrying a plan out: each step is checked against the card as it is, sent, and read back; the first surprise ends
//! it.
//!
//! It can begin at any state that the plan left behind: what the card holds already is not sent again. Absent on
//! purpose: consent (the caller's), and how commands reach the card (a [`CommandPort`]).

use emmc_port::{Approved, CommandPort, Consent, PortError};
use emmc_regs::ext_csd::{Access, ByteWrite, EXT_CSD_BYTES, WRITABLE_LAST, field_at, reg};

use super::document::{GroupStep, Plan, RegisterStep, Step};
use super::groups::Protection;
use super::rules::PARTITIONING;
use super::standing::Held;

/// What happens while a plan is carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A step is about to be sent.
    Sends(String),
    /// It was sent, and reads back as planned.
    Sent(String),
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every step is done.
    Complete,
    /// The watch asked to stop, between two steps.
    Stopped,
    /// The card is not as expected; nothing further was sent.
    Surprise(String),
    /// The card does not answer any more: whether the last command had an effect is not known.
    Lost(String),
}

/// Sends what is missing. `watch` is called around each step; before one, `false` stops.
pub fn carry_out(
    plan: &Plan,
    port: &mut dyn CommandPort,
    consent: Consent,
    watch: &mut dyn FnMut(&Event) -> bool,
) -> Ended {
    let mut run = Run { plan, port, consent, image: [0; EXT_CSD_BYTES] };
    let result = run.read().and_then(|()| run.steps(watch));
    match result {
        Ok(()) => Ended::Complete,
        Err(ended @ Ended::Lost(_)) => ended,
        Err(ended) => match run.disarm() {
            Ok(()) => ended,
            Err(_) => Ended::Lost("USER_WP could not be set back".into()),
        },
    }
}

struct Run<'a> {
    plan: &'a Plan,
    port: &'a mut dyn CommandPort,
    consent: Consent,
    /// EXT_CSD as last read.
    image: [u8; EXT_CSD_BYTES],
}

impl From<PortError> for Ended {
    fn from(error: PortError) -> Self {
        match error {
            PortError::Refused { .. } => Self::Surprise(error.to_string()),
            PortError::Lost { .. } => Self::Lost(error.to_string()),
        }
    }
}

fn surprise<T>(what: impl Into<String>) -> Result<T, Ended> {
    Err(Ended::Surprise(what.into()))
}

impl Run<'_> {
    fn read(&mut self) -> Result<(), Ended> {
        self.image = self.port.ext_csd()?;
        Ok(())
    }

    fn steps(&mut self, watch: &mut dyn FnMut(&Event) -> bool) -> Result<(), Ended> {
        let plan = self.plan;
        // What was needed for the groups is set back even after a request to stop.
        let mut restores = false;
        for step in &plan.steps {
            match step {
                Step::Register(register) => {
                    if register.held(&self.image) == Held::New {
                        continue;
                    }
                    if !watch(&Event::Sends(step.text())) && !restores {
                        return Err(Ended::Stopped);
                    }
                    self.register(register)?;
                    watch(&Event::Sent(step.text()));
                }
                Step::Groups(groups) => {
                    self.groups(groups, watch)?;
                    restores = true;
                }
            }
        }
        Ok(())
    }

    fn register(&mut self, step: &RegisterStep) -> Result<(), Ended> {
        let before = self.image;
        let old = before[usize::from(step.offset)];
        if !step.passing && step.held(&before) == Held::Other {
            return surprise(format!("{} holds {old:#04x}, which the plan does not know", step.name));
        }
        if step.commits() {
            self.complete_before_commit()?;
        }
        let new = old & !step.mask | step.new & step.mask;
        let rev = before[reg::EXT_CSD_REV];
        let write = ByteWrite::new(step.offset, old, new, rev).map_err(|error| Ended::Surprise(error.to_string()))?;
        let command = Approved::write(&write, self.consent).map_err(|error| Ended::Surprise(error.to_string()))?;
        self.port.send(command)?;
        self.read()?;
        let found = self.image[usize::from(step.offset)];
        if found != new {
            return surprise(format!("{} reads back {found:#04x} instead of {new:#04x}", step.name));
        }
        if let Some(shown) = step.shown_by.as_ref().filter(|_| step.held(&self.image) != Held::New) {
            return surprise(format!("{} does not show the effect of {}", shown.name, step.name));
        }
        match self.side_effect(&before, step.offset) {
            Some(name) => surprise(format!("{name} changed, although {} was written", step.name)),
            None => Ok(()),
        }
    }

    /// All that is committed must be there, and nothing else.
    fn complete_before_commit(&self) -> Result<(), Ended> {
        let missing = |step: &&RegisterStep| !step.passing && !step.commits() && step.held(&self.image) != Held::New;
        if let Some(step) = self.plan.registers().find(missing) {
            let what = "is not as written any more: the card was reset or lost power; nothing is committed";
            return surprise(format!("{} {what}", step.name));
        }
        match self.plan.changed_beside(&self.image).or_else(|| self.unnamed()) {
            Some(name) => surprise(format!("{name} would be committed with a value that the plan does not name")),
            None => Ok(()),
        }
    }

    /// A register of the partitioning that holds a value, although the plan neither writes it nor knows what it held: a
    /// plan of incomplete registers.
    fn unnamed(&self) -> Option<&'static str> {
        let is_named = |offset: u16| {
            let beside = self.plan.beside.iter().any(|kept| kept.offset == offset);
            beside || self.plan.registers().any(|step| step.offset == offset)
        };
        // Write reliability has a value from the factory.
        let fields = PARTITIONING.into_iter().filter(|field| *field != reg::WR_REL_SET);
        let holds = |offset: &u16| !is_named(*offset) && self.image[usize::from(*offset)] != 0;
        fields
            .flat_map(|field| field.bytes().map(move |offset| (field, offset)))
            .find(|(_, offset)| holds(offset))
            .map(|(field, _)| field.name)
    }

    /// A register of the configuration that changed although another one was written.
    fn side_effect(&self, before: &[u8; EXT_CSD_BYTES], written: u16) -> Option<&'static str> {
        let keeps = |access: Access| matches!(access, Access::W1 | Access::RWE | Access::RWCp);
        (0..=WRITABLE_LAST).filter(|offset| *offset != written).find_map(|offset| {
            let changed = before[usize::from(offset)] ^ self.image[usize::from(offset)];
            let field = field_at(offset).filter(|_| changed != 0)?;
            let index = offset - field.offset;
            let kept = (0..8).any(|bit| changed >> bit & 1 == 1 && keeps(field.access_of_bit(index, bit)));
            kept.then_some(field.name)
        })
    }

    fn groups(&mut self, step: &GroupStep, watch: &mut dyn FnMut(&Event) -> bool) -> Result<(), Ended> {
        if self.image[reg::ERASE_GROUP_DEF] & 1 == 0 || self.image[reg::USER_WP] & 5 != step.protection.user_wp() {
            return surprise("ERASE_GROUP_DEF or USER_WP is not as written any more: the card was reset");
        }
        let found = step.read(self.port, true)?;
        let stronger = |kind: &&Protection| **kind > step.protection && **kind > Protection::Temporary;
        if let Some(kind) = found.iter().find(stronger) {
            return surprise(format!("a group has {} protection, which no command ends", kind.word()));
        }
        for (group, kind) in (0u64..).zip(&found).filter(|(_, kind)| **kind != step.protection) {
            let text = format!(
                "group at sector {}: {} -> {}",
                step.first_sector + group * step.group_sectors,
                kind.word(),
                step.protection.word()
            );
            if !watch(&Event::Sends(text.clone())) {
                return Err(Ended::Stopped);
            }
            let address = step.address(group);
            // Stronger protection that is not to be is freed first.
            if *kind > step.protection {
                self.port.send(Approved::free_group(address))?;
            }
            if step.protection > Protection::None {
                let command = Approved::protect_group(address, &self.image, self.consent);
                self.port.send(command.map_err(|error| Ended::Surprise(error.to_string()))?)?;
            }
            let one =
                GroupStep { first_sector: step.first_sector + group * step.group_sectors, groups: 1, ..step.clone() };
            if one.read(self.port, true)? != [step.protection] {
                return surprise(format!("{text}: it reads back otherwise"));
            }
            watch(&Event::Sent(text));
        }
        Ok(())
    }

    /// Sets USER_WP back, so that no later command protects a group more than it says.
    fn disarm(&mut self) -> Result<(), Ended> {
        let is_group = |step: &Step| matches!(step, Step::Groups(_));
        if !self.plan.steps.iter().any(is_group) {
            return Ok(());
        }
        let last = self.plan.registers().filter(|step| step.offset == reg::USER_WP.offset).last();
        match last.filter(|last| last.held(&self.image) != Held::New) {
            Some(last) => self.register(last),
            None => Ok(()),
        }
    }
}
