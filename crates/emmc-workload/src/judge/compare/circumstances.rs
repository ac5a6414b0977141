//! Differences between the conditions of results.

use super::entries::Entry;
use crate::import::SavedResult;
use crate::result::state::{CardState, MOST};

/// The states of the cards when a result and earlier ones made the same measurement.
#[derive(Default)]
pub(super) struct States {
    /// Figures measured in different states, and a description of the first one.
    differ: (usize, String),
    /// Figures whose state is not known.
    unknown: usize,
}

impl States {
    pub(super) fn look_at(&mut self, ours: &Entry<'_>, theirs: Option<&Entry<'_>>) {
        let Some(theirs) = theirs.filter(|theirs| theirs.base.is_some() && ours.base.is_some()) else { return };
        let known = |state: &&CardState| !state.is_unknown() && state.of_share.is_none_or(|share| share >= MOST);
        match (ours.state.filter(known), theirs.state.filter(known)) {
            (Some(a), Some(b)) if a.differs_from(b) => {
                if self.differ.0 == 0 {
                    self.differ.1 = format!("{}: {} before, {} here", ours.what(), a.describe(), b.describe());
                }
                self.differ.0 += 1;
            }
            (Some(_), Some(_)) => {}
            _ => self.unknown += 1,
        }
    }

    pub(super) fn warnings(&self, name: &str) -> Vec<String> {
        let figures = |count: usize| if count == 1 { "1 figure".into() } else { format!("{count} figures") };
        let mut warnings = Vec::new();
        if self.differ.0 > 0 {
            let (count, example) = &self.differ;
            let what = "the card's state differs from that of the results before";
            warnings.push(format!("{name}: {what} for {}, e.g. {example}", figures(*count)));
        }
        if self.unknown > 0 {
            let what = "the card's state (fresh, filled, aged, trimmed) is not known for both results";
            warnings.push(format!(
                "{name}: {what} for {}: the state alone can explain a difference",
                figures(self.unknown)
            ));
        }
        warnings
    }
}

/// Why results may not be comparable: each against the first.
pub(super) fn warnings(results: &[SavedResult]) -> Vec<String> {
    let mut warnings = Vec::new();
    let Some((first, others)) = results.split_first() else { return warnings };
    for other in others {
        for (what, ours, theirs) in told(first).into_iter().zip(told(other)).map(|((what, a), (_, b))| (what, a, b)) {
            match (ours, theirs) {
                (Some(ours), Some(theirs)) if ours != theirs => {
                    warnings.push(format!("{what} differs: {ours} in {}, {theirs} in {}", first.name, other.name));
                }
                (None, Some(known)) | (Some(known), None) if MATTERS.contains(&what) => {
                    warnings
                        .push(format!("{what} is known for only one of {} and {}: {known}", first.name, other.name));
                }
                _ => {}
            }
        }
    }
    for result in results {
        for doubt in &result.doubts {
            warnings.push(format!("{}: {}: {}", result.name, doubt.what, doubt.evidence));
        }
        if let Some(reason) = result.outcomes.iter().find_map(|outcome| outcome.ended_early.as_ref()) {
            warnings.push(format!("{}: it ended early: {reason}", result.name));
        }
    }
    warnings
}

/// Conditions with so much effect that a missing value is worth a warning.
const MATTERS: [&str; 2] = ["command queueing", "the card's cache"];

fn told(result: &SavedResult) -> Vec<(&'static str, Option<String>)> {
    let context = &result.context;
    let on = |on: Option<bool>| on.map(|on| if on { "on".to_owned() } else { "off".to_owned() });
    let card = context.card.as_ref();
    let disk = context.disk.as_ref();
    let life = context.life_before.map(|life| {
        let tenths = |tenths: Option<u8>| tenths.map_or("unknown".into(), |tenths| tenths.to_string());
        format!("{}/{} tenths", tenths(life.type_a), tenths(life.type_b))
    });
    let filesystem = context.filesystem.as_ref();
    vec![
        ("the kind of target", result.target_kind.map(|kind| format!("{kind:?}").to_lowercase())),
        ("the engine", result.engine.clone()),
        ("command queueing", on(card.and_then(|card| card.queueing_on))),
        ("the card's cache", on(card.and_then(|card| card.cache_on))),
        ("the bus", context.bus.as_ref().map(|bus| format!("{}, {} Hz", bus.mode, bus.clock_hz))),
        ("the used life", life),
        ("the scheduler", disk.and_then(|disk| disk.scheduler.clone())),
        ("the filesystem", filesystem.map(|fs| format!("{} ({})", fs.fstype, fs.options))),
        ("the page cache", filesystem.map(|fs| if fs.cached { "used".into() } else { "passed by".into() })),
        ("the kernel", context.host.as_ref().map(|host| host.kernel.clone())),
        ("the board", context.host.as_ref().and_then(|host| host.model.clone())),
        ("the governor", context.host.as_ref().map(|host| host.governors.join(" ")).filter(|all| !all.is_empty())),
    ]
}
