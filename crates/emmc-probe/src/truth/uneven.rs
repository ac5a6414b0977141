//! Cards of which a part is another card: slower, or mapped by pages at the start.

use std::ops::Range;

use emmc_port::{BlockDone, BlockOp, BlockRequest, BlockTarget, TargetError, TargetFill, TargetShape};
use emmc_sim::SimTarget;
use emmc_units::{Instant, Nanos, Rng};

use super::{MIB, TrueCard, pick};

/// A part that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct TruePart {
    /// Unit: bytes.
    pub range: Range<u64>,
    /// It is at the start, and takes writes in any order.
    pub is_for_fat: bool,
    /// Its card.
    profile: String,
}

impl TruePart {
    /// A part of a card: of those that map by units, in half of the cases one for FATs; else a slower one.
    pub fn random(card: &TrueCard) -> Self {
        let rng = &mut Rng::new(card.seed ^ 0x7072_6f62_6502);
        let is_for_fat = card.unit_bytes.is_some() && rng.below(2) == 0;
        if is_for_fat {
            let mut profile = card.profile.replace("mapping = \"segment\"", "mapping = \"page\"");
            let mut lines: Vec<&str> = profile.lines().collect();
            lines.retain(|line| {
                !["segment =", "map_load_us", "map_span", "over_provisioning"].iter().any(|of| line.starts_with(of))
            });
            profile = lines.join("\n").replace("[nand]\n", "[nand]\nover_provisioning = 0.2\n");
            return Self { range: 0..pick(rng, &[4, 8, 16, 32]) * MIB, is_for_fat, profile };
        }
        let user = card.user_bytes;
        let start = rng.below(3) * user / 4;
        let range = start..start + user / 4 + rng.below(user / 4);
        // Slower by its firmware and by its flash, so that all sizes of writes are.
        let times = pick(rng, &[2.0, 3.0, 5.0]);
        let mut profile = String::new();
        for line in card.profile.lines() {
            let slower = match line.split_once(" = ") {
                Some(("write_overhead_us", us)) => {
                    us.parse::<f64>().ok().map(|us| format!("write_overhead_us = {}", us * times))
                }
                Some(("program_us", us)) => {
                    let each = us.trim_matches(['[', ']']).split(", ").filter_map(|us| us.parse::<f64>().ok());
                    Some(format!("program_us = {:.1?}", each.map(|us| us * times).collect::<Vec<_>>()))
                }
                _ => None,
            };
            profile.push_str(slower.as_deref().unwrap_or(line));
            profile.push('\n');
        }
        Self { range, is_for_fat, profile }
    }
}

impl TrueCard {
    /// Whether a part for FATs takes small writes in an order that the rest of the card does not take.
    pub(super) fn has_fat_region(&self) -> bool {
        self.mapping_class == "sequential" && self.part.as_ref().is_some_and(|part| part.is_for_fat)
    }

    /// Whether a description of a part for FATs is true: it exists, and is as large at least.
    pub(super) fn is_fat_region(&self, kind: &str) -> bool {
        let part = self.part.as_ref().filter(|_| self.has_fat_region());
        let truth = part.map_or(0, |part| part.range.end / MIB);
        match kind.strip_prefix("at least the first ").and_then(|rest| rest.strip_suffix(" MiB")) {
            Some(size) => size.parse::<u64>().is_ok_and(|size| size <= truth && 4 * size + 16 >= truth),
            None => truth == 0,
        }
    }
}

/// Two cards behind one interface, on one clock.
#[derive(Debug)]
pub(super) struct TwoCards {
    main: SimTarget,
    part: SimTarget,
    range: Range<u64>,
}

impl TwoCards {
    pub(super) fn new(card: &TrueCard, part: &TruePart) -> Result<Self, String> {
        let (main, other) = (card.target()?, card.target_of(&part.profile)?);
        Ok(Self { main, part: other, range: part.range.clone() })
    }
}

impl BlockTarget for TwoCards {
    fn shape(&self) -> &TargetShape {
        self.main.shape()
    }

    fn now(&mut self) -> Instant {
        self.main.now()
    }

    fn submit(&mut self, request: BlockRequest) -> Result<(), TargetError> {
        self.main.submit(request)
    }

    fn wait(&mut self) -> Result<BlockDone, TargetError> {
        self.main.wait()
    }

    fn complete(&mut self, request: BlockRequest) -> Result<BlockDone, TargetError> {
        if request.op == BlockOp::Flush {
            self.part.complete(request)?;
            return self.main.complete(request);
        }
        if !self.range.contains(&request.offset_bytes) {
            return self.main.complete(request);
        }
        let behind = self.main.now().since(self.part.now());
        self.part.idle(behind)?;
        let done = self.part.complete(request)?;
        self.main.idle(done.done.since(done.submitted))?;
        Ok(done)
    }

    fn idle(&mut self, time: Nanos) -> Result<(), TargetError> {
        self.main.idle(time)
    }

    fn fill(&self) -> Option<TargetFill> {
        self.main.fill()
    }
}
