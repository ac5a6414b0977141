//! The rules that a profile keeps.
//!
//! One file per section, each rule with the field that breaks it. Sections are checked in sequence, so that arithmetic
//! over several sections uses only values in range.

mod areas;
mod controller;
mod ftl;
mod identity;
mod nand;
#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::ops::RangeInclusive;

use emmc_regs::CardKind;

use super::capacity::{Layout, LayoutError, Partitioning};
use super::registers::override_fault;
use super::{Profile, ProfileError};

/// Longest name of a profile.
const NAME_MAX: usize = 40;

type Checked = Result<(), ProfileError>;

/// A profile under examination.
struct Rules<'a> {
    profile: &'a Profile,
}

impl Profile {
    /// Whether a profile may have this name: 1 to 40 of a-z, 0-9 and inner hyphens.
    pub fn is_name(name: &str) -> bool {
        let letters = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        let framed = name.starts_with('-') || name.ends_with('-') || name.is_empty() || name.len() > NAME_MAX;
        letters && !framed
    }

    /// Checks every rule.
    ///
    /// Errors: the first broken one, naming field and rule.
    pub fn check(&self) -> Result<(), ProfileError> {
        let rules = Rules { profile: self };
        rules.name()?;
        rules.identity()?;
        rules.areas()?;
        rules.nand()?;
        rules.ftl()?;
        rules.controller()?;
        rules.registers()?;
        rules.capacity()
    }
}

impl Rules<'_> {
    fn broken(&self, field: &'static str, found: impl Display, rule: impl Display) -> ProfileError {
        let profile = self.profile.name.escape_debug().to_string();
        ProfileError::Rule { profile, field, found: found.to_string(), rule: rule.to_string() }
    }

    fn require(&self, holds: bool, field: &'static str, found: impl Display, rule: impl Display) -> Checked {
        if holds { Ok(()) } else { Err(self.broken(field, found, rule)) }
    }

    /// A number between bounds, which no undefined number is.
    fn range<T: PartialOrd + Display>(&self, field: &'static str, found: T, bounds: RangeInclusive<T>) -> Checked {
        let rule = format!("must be {} to {}", bounds.start(), bounds.end());
        self.require(bounds.contains(&found), field, found, rule)
    }

    /// A size in whole steps.
    fn multiple(&self, field: &'static str, found: u64, step: u64) -> Checked {
        self.require(found % step.max(1) == 0, field, found, format_args!("must be a multiple of {step}"))
    }

    fn is_sd(&self) -> bool {
        self.profile.kind == CardKind::Sd
    }

    fn name(&self) -> Checked {
        let name = &self.profile.name;
        let rule = format!("must be 1 to {NAME_MAX} of a-z, 0-9 and inner hyphens");
        self.require(Profile::is_name(name), "name", format_args!("{name:?}"), rule)?;
        let description = &self.profile.description;
        let one_line = !description.trim().is_empty() && !description.chars().any(char::is_control);
        self.require(one_line, "description", format_args!("{description:?}"), "must be one line of text")?;
        let unclean = |text: &&String| text.trim().is_empty() || text.chars().any(char::is_control);
        match self.profile.sources.iter().find(unclean) {
            Some(source) => Err(self.broken("sources", format_args!("{source:?}"), "must be lines of text")),
            None => Ok(()),
        }
    }

    fn registers(&self) -> Checked {
        let fault = self.profile.registers.iter().find_map(|(name, value)| {
            let fault =
                if self.is_sd() { Some("is for eMMC; SD has no EXT_CSD".into()) } else { override_fault(name, *value) };
            Some((name, value, fault?))
        });
        match fault {
            Some((name, value, fault)) => Err(self.broken("registers", format_args!("{name:?} {value}"), fault)),
            None => Ok(()),
        }
    }

    /// Whether the blocks suffice, as it leaves the factory and with the smallest and largest enhanced areas.
    fn capacity(&self) -> Checked {
        let max = u64::from(self.profile.areas.enhanced_groups_max);
        let sizes = [0, 1, max / 2, max.saturating_sub(1), max].into_iter().filter(|groups| *groups <= max);
        for groups in sizes {
            let partitioning = Partitioning { enhanced_groups: groups, ..Partitioning::default() };
            if let Err(error) = Layout::new(self.profile, &partitioning, 0) {
                return Err(self.does_not_fit(error, groups));
            }
        }
        Ok(())
    }

    fn does_not_fit(&self, error: LayoutError, groups: u64) -> ProfileError {
        let when = if groups == 0 { String::new() } else { format!(" when {groups} groups are enhanced") };
        let rule = format!("{error}{when}");
        match (error, self.profile.nand.blocks) {
            (LayoutError::TooFewBlocks { .. }, Some(blocks)) => self.broken("nand.blocks", blocks, rule),
            (LayoutError::TooFewBlocks { .. }, None) => {
                let rule = format!("{rule}: more over-provisioning, fewer or smaller blocks kept free");
                self.broken("nand.over_provisioning", self.profile.nand.over_provisioning, rule)
            }
            (LayoutError::TrimLogTooLarge { .. }, _) => {
                self.broken("nand.pages_per_block", self.profile.nand.pages_per_block, rule)
            }
            (LayoutError::TooManyUnits { .. }, _) => self.broken("ftl.unit_bytes", self.profile.ftl.unit_bytes, rule),
            _ => self.broken("areas.enhanced_groups_max", self.profile.areas.enhanced_groups_max, rule),
        }
    }
}
