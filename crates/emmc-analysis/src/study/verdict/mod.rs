//! The verdict: the card's identity, health, speed, power-cut safety and setup, and what to do.
//!
//! Everything here follows from the rest of the study. Absent on purpose: layout, and figures of its own.

mod health;
mod safety;
mod setup;
mod unknowns;

use emmc_port::CardData;
use emmc_regs::ext_csd::{DeviceInfo, ExtCsd};
use serde::Serialize;

use super::{Measured, Study};
use crate::finding::{Command, Finding, Severity};
use crate::health::CannotTell;

/// The maximum number of commands: the urgent ones, not all that are possible.
const COMMANDS_MAX: usize = 2;

/// The verdict in a few lines.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// What it is: maker, name, standard, size.
    pub card: String,
    /// Whether it is a virtual card.
    #[serde(rename = "virtual")]
    pub is_virtual: bool,
    /// That the card must go, and why, if a result of `trust` was given that has a reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<Answer>,
    /// How worn it is.
    pub health: Answer,
    /// How fast it is and why, if measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<Answer>,
    /// What a power cut may lose.
    pub safety: Answer,
    /// How it is configured.
    pub setup: Answer,
    /// Whether there is a finding that is critical or a warning.
    #[serde(rename = "urgent")]
    pub is_urgent: bool,
    /// What to do, the most urgent first.
    #[serde(rename = "do")]
    pub todo: Vec<Command>,
    /// What this source cannot answer, and what would.
    pub cannot_tell: Vec<CannotTell>,
}

/// One line of the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// Its severity.
    pub severity: Severity,
    /// The answer in a sentence.
    pub text: String,
    /// Its evidence, in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

impl Answer {
    /// An answer without evidence.
    pub fn new(severity: Severity, text: impl Into<String>) -> Self {
        Self { severity, text: text.into(), evidence: None }
    }

    /// Adds its evidence.
    #[must_use]
    pub fn evidence(mut self, evidence: impl Into<String>) -> Self {
        self.evidence = Some(evidence.into());
        self
    }
}

/// The input of the lines.
struct Facts<'a> {
    card: &'a CardData,
    csd: &'a ExtCsd,
    info: &'a DeviceInfo,
    study: &'a Study,
}

/// Summarizes a study; the verdict in it is not read.
pub(super) fn verdict(card: &CardData, study: &Study, measured: &Measured, source: &str) -> Verdict {
    let unknown = ExtCsd::unknown();
    let csd = card.ext_csd.as_ref().unwrap_or(&unknown);
    let (info, _) = csd.decode();
    let facts = Facts { card, csd, info: &info, study };
    let todo = todo(study);
    Verdict {
        card: study.card_name(),
        is_virtual: study.is_virtual(),
        trust: None,
        health: health::answer(&facts),
        speed: measured.speed.clone(),
        safety: safety::answer(&facts),
        setup: setup::answer(&facts),
        is_urgent: study.findings.iter().any(|finding| finding.severity <= Severity::Warning),
        todo: if todo.is_empty() { vec![next_step(study, measured, source)] } else { todo },
        cannot_tell: unknowns::list(&facts, measured),
    }
}

/// The commands of the most urgent findings.
fn todo(study: &Study) -> Vec<Command> {
    let worth_doing = |finding: &&Finding| finding.severity <= Severity::Notice;
    let mut commands: Vec<Command> = Vec::new();
    for command in study.findings.iter().filter(worth_doing).flat_map(|finding| finding.commands.first()) {
        if commands.iter().all(|known| known.command != command.command) && commands.len() < COMMANDS_MAX {
            commands.push(command.clone());
        }
    }
    commands
}

/// The next step when nothing is urgent: measure what is unknown, else monitor.
fn next_step(study: &Study, measured: &Measured, source: &str) -> Command {
    let is_urgent = study.findings.iter().any(|finding| finding.severity <= Severity::Warning);
    let (command, why) = match (study.live_device(), measured.speed.is_some()) {
        _ if is_urgent => (format!("emmclab study {source} --full"), "prints the evidence of the warning below"),
        (Some(device), false) => (format!("emmclab study {device} --measure"), "nothing is urgent; measures the speed"),
        (Some(device), true) => {
            (format!("emmclab check {device}"), "nothing is urgent; run it from cron for early warning")
        }
        (None, _) => (format!("emmclab study {source} --full"), "nothing is urgent"),
    };
    Command { command, why: why.into() }
}

#[cfg(test)]
mod tests;
